"""Prometheus text: what a strict reader of the format accepts, in base units, and bounded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import RUN, leg, quantity, report

from fabricproof.core.measure import Verdict
from fabricproof.report.formats.prometheus import render_prometheus

_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)\{(?P<labels>.*)\} (?P<value>\S+)", re.ASCII)
_LABEL = re.compile(r'(?P<name>[a-zA-Z_]\w*)="(?P<value>(?:[^"\\\n]|\\[\\n"])*)"(?:,|$)', re.ASCII)
_UNESCAPED = {"\\\\": "\\", "\\n": "\n", '\\"': '"'}

Series = tuple[str, frozenset[tuple[str, str]]]


def read(text: str) -> dict[Series, float]:
    """Read exposition format 0.0.4 strictly: one HELP and TYPE before each family, no series twice.

    Source: Prometheus, "Exposition formats", text format details.
    """
    assert text.endswith("\n")
    found: dict[Series, float] = {}
    helped: list[str] = []
    typed: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            helped.append(line.split(" ", 3)[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind == "gauge"
            assert name == helped[-1]
            typed.append(name)
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            # All lines of a family stand together, under its TYPE.
            assert sample["name"] == typed[-1]
            series = (sample["name"], frozenset(labels(sample["labels"]).items()))
            assert series not in found
            found[series] = float(sample["value"])
    assert len(set(typed)) == len(typed)
    assert helped == typed
    return found


def labels(text: str) -> dict[str, str]:
    found, end = {}, 0
    while end < len(text):
        match = _LABEL.match(text, end)
        assert match, text[end:]
        assert match["name"] not in found
        words = re.sub(r"\\.", lambda escape: _UNESCAPED[escape[0]], match["value"])
        found[match["name"]], end = words, match.end()
    return found


def values(text: str, name: str) -> list[float]:
    return [value for (metric, _), value in read(text).items() if metric == name]


def test_units_are_base_units() -> None:
    rows = [("MB/s", 47.0), ("MiB/s", 2.0), ("us", 3.0), ("x", 1.9), ("furlong", 5.0)]
    named = tuple(
        quantity(name=f"q{number}", unit=unit, value=value, reference=None)
        for number, (unit, value) in enumerate(rows)
    )
    text = render_prometheus(report(leg(quantities=named)))
    assert values(text, "fabricproof_bandwidth_bytes_per_second") == [47e6, 2.0 * 2**20]
    assert values(text, "fabricproof_time_seconds") == [pytest.approx(3e-6)]
    assert values(text, "fabricproof_ratio") == [1.9]
    assert values(text, "fabricproof_value") == [5.0]


def test_a_number_that_is_not_there_is_no_sample() -> None:
    """A zero would be a measurement, a NaN would be an alert that nobody understands."""
    text = render_prometheus(
        report(leg(Verdict.MISSING, quantities=(quantity("MISSING", value=None),)))
    )
    assert values(text, "fabricproof_bandwidth_bytes_per_second") == []
    assert values(text, "fabricproof_leg_verdict") == [4]


def test_the_run_is_told_and_skipped_legs_are_counted() -> None:
    text = render_prometheus(
        report(leg(), leg(Verdict.SKIPPED, reason="none", quantities=(), check="Other"))
    )
    assert values(text, "fabricproof_run_verdict") == [0]
    assert values(text, "fabricproof_run_start_timestamp_seconds") == [RUN.start.timestamp()]
    assert len(values(text, "fabricproof_leg_verdict")) == 1
    assert 'fabricproof_run_legs{site="here",verdict="SKIPPED"} 1\n' in text


def test_nothing_judged_is_no_pass() -> None:
    assert values(render_prometheus(report()), "fabricproof_run_verdict") == [6]


def test_over_the_limit_red_stays_and_the_rest_is_counted() -> None:
    legs = [leg(leg=f"rail{number}") for number in range(20)]
    text = render_prometheus(report(*legs, leg(Verdict.FAIL, leg="red")), limit=4)
    assert 'leg="red"' in text
    kept = [name for name, _ in read(text) if "leg_verdict" in name or "bandwidth" in name]
    assert len(kept) <= 4
    (left_out,) = values(text, "fabricproof_series_left_out")
    assert left_out == 21 * 3 - 4


def test_a_leg_told_twice_has_its_worse_verdict() -> None:
    text = render_prometheus(report(leg(), leg(Verdict.FAIL)))
    assert values(text, "fabricproof_leg_verdict") == [1]
    assert values(text, "fabricproof_series_left_out") == [3]


@settings(deadline=None)
@given(words=st.text())
def test_any_words_can_be_read_back(words: str) -> None:
    data = report(leg(check=words, stack=words))
    held = words.encode("utf-8", errors="replace").decode()
    text = render_prometheus(data)
    text.encode("utf-8")
    legs = [series for series in read(text) if series[0] == "fabricproof_leg_verdict"]
    assert dict(legs[0][1])["check"] == held
