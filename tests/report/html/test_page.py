"""The page without a browser: what it holds, that nothing breaks out of it, how light it is."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_report import HOSTILE, made_report, recorded_report

from fabricproof.core.findings import Finding, FindingKind
from fabricproof.core.measure import Verdict
from fabricproof.job.run import RunResult
from fabricproof.report.formats import svg
from fabricproof.report.formats.page import number, render_html
from fabricproof.report.model import ReportData

SECTIONS = ("red", "curves", "change", "history", "machines", "legs", "raw", "words")
VOID = {"br", "col", "hr", "input", "meta"}


class Outline(HTMLParser):
    """Elements that are open, and what is wrong with how they end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        if len(facts) != len(attrs):
            self.wrong.append(f"twice the same attribute: {attrs}")
        self.tags.append((tag, facts))
        if "id" in facts:
            self.ids.append(str(facts["id"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> ends nothing at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.texts.append(data)


@pytest.fixture(scope="module")
def data() -> ReportData:
    return made_report(num_nodes=4, num_sizes=8, nights=8)


@pytest.fixture(scope="module")
def page(data: ReportData) -> str:
    return render_html(data)


def test_every_element_ends_and_no_id_is_given_twice(page: str) -> None:
    outline = Outline(page)
    assert outline.wrong == []
    assert outline.open == []
    assert sorted(set(outline.ids)) == sorted(outline.ids) == sorted(SECTIONS)
    assert re.findall(r'<section id="(\w+)"', page) == list(SECTIONS)
    assert page.startswith("<!DOCTYPE html>\n<html lang=")


def test_the_policy_allows_its_style_no_script_and_no_request(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    assert policy is not None
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    told = policy[1].replace("&#39;", "'")
    assert told.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; ")
    assert "<script" not in page
    assert "unsafe" not in told


def test_nothing_points_outside_of_the_file(page: str) -> None:
    for name, facts in Outline(page).tags:
        assert name not in {"link", "img", "iframe", "object", "embed", "base", "form", "script"}
        assert not {"src", "srcset", "action", "poster", "style", "href"} & facts.keys()
        assert not [each for each in facts if each.startswith("on")]
    assert re.findall(r"https?://[^\"'\s)]+", page) == []
    assert "url(" not in page
    assert "@import" not in page


def test_hostile_text_stays_text() -> None:
    """Names, reasons and paths with an end tag of a script, a quote, a NUL, half a surrogate."""
    text = render_html(made_report(num_nodes=3, num_sizes=3, nights=4, spoil=HOSTILE))
    outline = Outline(text)
    assert outline.wrong == []
    assert not [facts for name, facts in outline.tags if name in {"img", "script"}]
    assert any("<img src=x onerror=alert(1)>" in each for each in outline.texts)
    text.encode("utf-8")
    assert "\x00" not in text


def test_the_same_data_make_the_same_page(data: ReportData, page: str) -> None:
    assert render_html(data) == page


def test_the_first_screen_says_what_is_red_how_often_and_what_to_run(page: str) -> None:
    first = page[page.index("<header") : page.index('<section id="curves"')]
    assert "FAIL" in first
    assert "node1 - node3" in first
    assert "red in 1 of 8 runs" in first
    assert '<svg class="spark"' in first
    assert "<code>fabricproof run --site made -n OsuBandwidth -p openmpi5</code>" in first
    assert "rail1 carries 7 % less on every pair" in first


def test_a_red_run_without_a_number_is_no_green_page(data: ReportData) -> None:
    """What was not measured has no sparkline, and is said before all else."""
    legs = [each for each in data.session.legs if each.verdict is Verdict.MISSING]
    page = render_html(replace(data, session=RunResult(run_id="r", legs=tuple(legs))))
    first = page[page.index("<header") : page.index('<section id="curves"')]
    assert '<header class="v-MISSING">' in first
    assert "TIMEOUT" in first
    assert "was good enough" not in page


def test_a_green_page_says_so_and_what_was_found_on_green_legs(data: ReportData) -> None:
    said = "preflight: rail0 on n1 has MTU 576 instead of 1500"
    green = [each for each in data.session.legs if each.verdict is Verdict.PASS][:3]
    legs = tuple(
        replace(each, findings=(Finding(text=said, kind=FindingKind.PREFLIGHT),)) for each in green
    )
    page = render_html(replace(data, session=RunResult(run_id="r", legs=legs)))
    first = page[page.index("<header") : page.index('<section id="curves"')]
    assert "Every leg that was due was measured, took its path, and was good enough." in first
    assert "Found on green legs" in first
    assert said in first
    assert "and 2 more PASS" in first
    assert "Found on green legs" not in render_html(data)


def test_a_word_is_never_told_by_its_colour_alone(page: str) -> None:
    """Every verdict and word has a symbol and is spelled."""
    spans = re.findall(r'<span class="word w-(\w+)"><span [^>]*>(.)</span> (\w+)</span>', page)
    assert spans
    for word, symbol, spelled in spans:
        assert word == spelled
        assert symbol in "●▼✕○?-▲="


def test_a_bare_report_says_what_it_does_not_know(data: ReportData) -> None:
    """No comparison, no history, no inventory, no legs: said, and never green."""
    bare = ReportData(
        site=data.site,
        made=data.made,
        run=data.run,
        session=RunResult(run_id=data.run.run_id, legs=()),
        matrix=replace(data.matrix, keys=(), values=np.empty((0, 8)), verdicts=()),
    )
    text = render_html(bare)
    assert "Nothing was judged in this run" in text
    assert "Nobody looked at what the nodes are made of." in text
    assert "was good enough" not in text
    assert Outline(text).wrong == []


def test_an_empty_history_of_few_runs_is_not_called_fine(data: ReportData) -> None:
    assert data.trend is not None
    trend = replace(data.trend, events=(), drifts=(), num_quantities=1, num_short=421)
    assert "No lasting change was found" in render_html(replace(data, trend=trend))
    few = render_html(replace(data, trend=replace(trend, too_few_for_steps=True)))
    assert "No lasting change was found" not in few
    assert "Too few runs to tell a lasting change" in few


def test_of_very_many_legs_every_red_one_stands_in_the_page() -> None:
    data = made_report(num_nodes=36, num_rails=1, num_sizes=2, nights=2, latency=False)
    page = render_html(data)
    legs = page[page.index('<section id="legs"') : page.index('<section id="raw"')]
    assert legs.count("<tr>") - 1 == 400
    assert f"400 of {len(data.session.legs)}; the others are PASS or SKIPPED" in legs
    assert "w-FAIL" in legs
    assert "w-MISSING" in legs


def test_every_attempt_of_what_is_red_has_file_and_line(tmp_path: Path) -> None:
    data = recorded_report(tmp_path)
    page = render_html(data)
    mine = [
        each
        for numbers in data.raw.values()
        for each in numbers
        if each.run_id == data.run.run_id and each.verdict not in {"PASS", "SKIPPED"}
    ]
    for each in mine[:100]:
        assert f"<td>{each.file}:{each.line}</td>" in page
    assert Outline(page).wrong == []


def test_panels_show_each_curve_once_the_worst_first(data: ReportData, page: str) -> None:
    panels = re.findall(r"<figcaption>(\S+ \(\w+\): \w+)</figcaption>", page)
    assert sorted(panels) == ["osu_bw (osu): bandwidth", "osu_latency (osu): latency"]
    for legend in re.findall(r'<ul class="legend">(.*?)</ul>', page, re.S):
        words = re.findall(r"</span> (\w+)</span>", legend)
        assert words[0] == "FAIL"
        assert words == sorted(words, key=["FAIL", "PASS"].index)
    # one ring for each point that did not pass, in each panel
    assert page.count('<circle class="red"') == sum(
        each.verdict is Verdict.FAIL for leg in data.session.legs for each in leg.quantities
    )


_SIZES = st.lists(st.integers(0, 2**30), min_size=2, max_size=20, unique=True).map(sorted)
_VALUE = st.floats(min_value=1e-3, max_value=1e6)


@given(_SIZES, st.data(), st.booleans())
def test_a_larger_value_is_never_drawn_lower(
    sizes: list[int], draw: st.DataObject, logarithmic: bool
) -> None:
    values = draw.draw(st.lists(_VALUE, min_size=len(sizes), max_size=len(sizes)))
    line = svg.CurveLine(points=tuple(zip(sizes, values, strict=True)))
    text = svg.curves([line], [], "MB/s", "t", logarithmic=logarithmic)
    found = re.findall(r'<circle class="dot l0" cx="([-\d.e]+)" cy="([-\d.e]+)"', text)
    points = [(float(x), float(y)) for x, y in found]
    assert len(points) == len(sizes)
    assert all(0 <= x <= 460 and 0 <= y <= 280 for x, y in points)
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    heights = sorted(zip(values, (-y for _, y in points), strict=True))
    assert [y for _, y in heights] == sorted(y for _, y in heights)


@given(st.lists(st.none() | _VALUE, max_size=30), st.none() | _VALUE, st.none() | _VALUE)
def test_a_sparkline_ends_at_the_last_number_and_stays_inside(
    values: list[float | None], one: float | None, two: float | None
) -> None:
    lower, upper = (min(one, two), max(one, two)) if one and two else (one, None)
    text = svg.sparkline(values, "t", lower, upper)
    if sum(each is not None for each in values) < 2:
        assert text == ""
        return
    (x, y), *_ = re.findall(r'class="last" cx="([\d.]+)" cy="([\d.]+)"', text)
    assert 0 <= float(x) <= 160
    assert 0 <= float(y) <= 34


@given(st.floats(0.01, 100), st.none() | st.floats(0.01, 100), st.none() | st.floats(0.01, 100))
def test_an_interval_beyond_the_drawing_ends_in_an_arrow(
    ratio: float, one: float | None, two: float | None
) -> None:
    low, high = (min(one, two), max(one, two)) if one and two else (None, None)
    reach = svg.reach_of([ratio], [])
    text = svg.interval(ratio, low, high, 0.03, reach, "WORSE")
    assert "nan" not in text
    beyond = sum(abs(math.log(each)) > math.log(reach) for each in (low, high) if each)
    assert text.count("l5 4l-5 4") + text.count("l-5 4l5 4") == beyond


@pytest.mark.parametrize("value", [None, float("nan")])
def test_what_is_no_number_is_a_dash(value: float | None) -> None:
    assert number(value, "MB/s") == "-"
