"""iperf3's retransmissions and its own limit, and tables whose end was not seen."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.network import RETRANSMITTED_PER_MILLION, judge_retransmissions
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules, at_least, at_most

DATA = Path(__file__).parents[1] / "data"
#: 32.05 GB in segments of 1448 B
DEBUG = (DATA / "iperf3/debug.txt").read_text("utf-8")
SEGMENTS = 32.0512e9 / 1448


def judged(text: str, rules: Rules) -> tuple[Verdict, list[str]]:
    (table,) = parse_text(text)
    report = judge_table(table, rules)
    return report.verdict, texts_of(report.findings)


def with_retransmits(events: int) -> Table:
    (table,) = parse_text(re.sub(r"114( +sender)", rf"{events}\1", DEBUG))
    return table


@pytest.mark.parametrize(
    ("events", "is_judged", "is_told"),
    [(0, False, False), (114, False, False), (2000, False, True), (9_000_000, True, False)],
)
def test_too_many_retransmissions_are_no_pass(events: int, is_judged: bool, is_told: bool) -> None:
    rules = Rules(fabric=None, references={"bandwidth": at_least(1.0, origin="test")})
    report = judge_table(with_retransmits(events), rules)
    assert report.verdict is (Verdict.UNJUDGED if is_judged else Verdict.PASS)
    assert any("sent again" in note for note in texts_of(report.findings)) is is_told
    errors = [each for each in report.quantities if each.unit == "ppm"]
    assert [each.value for each in errors] == (
        [pytest.approx(events / SEGMENTS * 1e6, rel=1e-3)] if is_judged else []
    )


def test_the_limit_of_retransmissions_is_a_rate() -> None:
    at_limit = SEGMENTS * RETRANSMITTED_PER_MILLION / 1e6
    assert not judge_retransmissions(with_retransmits(int(0.99 * at_limit)))[0]
    assert judge_retransmissions(with_retransmits(int(1.01 * at_limit)))[0]


def test_a_run_of_our_own_is_judged_by_the_counters_of_its_nodes() -> None:
    rules = Rules(fabric=None, path_required=True)
    report = judge_table(with_retransmits(9_000_000), rules)
    assert [each.unit for each in report.quantities] == ["MB/s"]


@pytest.mark.parametrize(
    ("limit_mb_s", "verdict"),
    [(0, Verdict.FAIL), (12.5, Verdict.UNJUDGED), (100, Verdict.FAIL)],
)
def test_a_rate_that_was_asked_for_is_no_fault_of_the_path(
    limit_mb_s: float, verdict: Verdict
) -> None:
    report = json.loads((DATA / "iperf3/udp-report.txt").read_text("utf-8"))
    report["start"]["test_start"]["target_bitrate"] = int(limit_mb_s * 8e6)
    report["start"]["connected"][0]["local_host"] = "10.0.0.1"
    fabric = Fabric(link=find_link("1GbE"))
    assert judged(json.dumps(report), Rules(fabric=fabric))[0] is verdict


LATENCY = (DATA / "perftest/ib_read_lat-mlx4-all.txt").read_text("utf-8")


def test_sizes_below_an_end_that_was_not_seen_are_missing() -> None:
    fabric = Fabric(link=find_link("QDR 4x"))
    rules = Rules(fabric=fabric, references={"latency": at_most(10.0, origin="test")})
    cut = LATENCY[: LATENCY.index(" 64  ")]
    assert judged(LATENCY, rules)[0] is Verdict.PASS
    verdict, notes = judged(cut, rules)
    assert verdict is Verdict.MISSING
    assert any("end of the output" in note for note in notes)


def test_one_row_without_its_ruler_is_judged_and_said_to_be_so() -> None:
    text = (DATA / "perftest/ib_write_bw-no-end.txt").read_text("utf-8")
    verdict, notes = judged(text, Rules(fabric=Fabric(link=find_link("100GbE"))))
    assert verdict is Verdict.PASS
    assert any("end of the output" in note for note in notes)
