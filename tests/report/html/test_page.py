"""The page without a browser: what it holds, that nothing breaks out of it, how light it is."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_report import HOSTILE, made_report, recorded_report

from fabricproof.core.findings import Finding, FindingKind
from fabricproof.core.measure import Verdict
from fabricproof.history.store.model import FIELDS
from fabricproof.job.run import LegResult, SessionResult
from fabricproof.report.formats.html import markup
from fabricproof.report.formats.html.headline import rails_of
from fabricproof.report.formats.html.markup import Markup, escaped, folded, number, tag
from fabricproof.report.formats.html.page import render_html
from fabricproof.report.formats.html.payload import (
    AS_RAW,
    Sentences,
    all_keys,
    collect,
    packed,
    rounded,
)
from fabricproof.report.model import ReportData

SECTIONS = (
    "verdict", "change", "curves", "matrix", "trend", "inventory", "legs", "raw", "notes",
)  # fmt: skip
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
    assert sorted(set(outline.ids)) == sorted(outline.ids)
    assert page.startswith("<!DOCTYPE html>\n<html lang=")


def test_every_section_is_there_in_order_with_its_heading(page: str) -> None:
    found = re.findall(r'<section id="(\w+)" aria-labelledby="(\w+)-title">', page)
    assert found == [(name, name) for name in SECTIONS]
    for name in SECTIONS:
        assert f'<a href="#{name}">' in page
        assert f'<h2 id="{name}-title">' in page


def test_the_policy_allows_this_very_script_and_style_and_no_request(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    told = policy[1].replace("&#x27;", "'")
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    script = re.search(r"<script>(.*?)</script>", page, re.S)
    assert style is not None
    assert script is not None
    for text in (style[1], script[1]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in told
    assert told.startswith("default-src 'none'; ")
    assert "unsafe" not in told
    assert "http" not in told


def test_nothing_points_outside_of_the_file(page: str) -> None:
    """No attribute that loads anything, no address but anchors; the SVG name space is none."""
    for name, facts in Outline(page).tags:
        assert name not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        for attribute in ("src", "srcset", "action", "poster", "style"):
            assert attribute not in facts
        assert str(facts.get("href", "#")).startswith("#")
        assert not [each for each in facts if each.startswith("on")]
    assert set(re.findall(r"https?://[^\"'\s)]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "url(" not in page
    assert "@import" not in page


def test_hostile_text_stays_text() -> None:
    """Names, reasons and paths with an end tag of a script, a quote, a NUL, half a surrogate."""
    data = made_report(num_nodes=3, num_sizes=3, nights=4, spoil=HOSTILE)
    text = render_html(data)
    outline = Outline(text)
    assert outline.wrong == []
    assert not [facts for name, facts in outline.tags if name == "img"]
    assert text.count("</script>") == 2
    assert "onerror=alert(1)>" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert any("<img src=x onerror=alert(1)>" in each for each in outline.texts)
    text.encode("utf-8")
    assert "\x00" not in text


@settings(max_examples=60)
@given(st.text())
def test_any_text_comes_back_as_it_was_but_for_what_no_page_may_hold(text: str) -> None:
    made = tag("p", text, title=text)
    parser = Outline(f"<!DOCTYPE html>{made}")
    wanted = re.sub("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)
    assert parser.wrong == []
    assert parser.tags == [("p", {"title": wanted})]
    assert "".join(parser.texts) == wanted


def test_markup_is_escaped_once() -> None:
    assert escaped("<&") == "&lt;&amp;"
    assert escaped(escaped("<&")) == "&lt;&amp;"
    assert isinstance(tag("b", "x"), Markup)


def test_the_same_data_make_the_same_page(data: ReportData, page: str) -> None:
    assert render_html(data) == page


def test_without_a_script_verdict_red_legs_and_groups_are_there(page: str) -> None:
    static = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    verdict = static[static.index('id="verdict"') : static.index('id="change"')]
    assert "FAIL" in verdict
    assert "node[1,3]" in verdict
    assert "FAIL in 2 of 2 attempts, red in 1 of 8 runs" in verdict
    assert "fabricproof run --site made -n OsuBandwidth -p openmpi5" in verdict
    change = static[static.index('id="change"') : static.index('id="curves"')]
    assert "WORSE" in change
    assert "firmware=28.39" in change
    assert change.count('class="dots"') >= 4
    assert static.count("<noscript>") >= 3


def test_what_was_found_on_a_green_leg_is_in_the_first_section(data: ReportData) -> None:
    said = "preflight: rail0 on n1 has MTU 576 instead of 1500"
    green = [each for each in data.session.legs if each.verdict is Verdict.PASS][:3]
    legs = tuple(
        replace(each, findings=(Finding(text=said, kind=FindingKind.PREFLIGHT),)) for each in green
    )
    page = render_html(replace(data, session=SessionResult(run_id="r", legs=legs)))
    assert "Found on green legs" not in render_html(data)
    first = page[page.index('id="verdict"') :]
    told = first[first.index("Found on green legs") :]
    assert said in told[: told.index("</ul>")]
    assert "and 2 more PASS" in told[: told.index("</ul>")]


def test_a_word_is_never_told_by_its_colour_alone(page: str) -> None:
    """Every verdict and word has a symbol and is spelled."""
    spans = re.findall(r'<span class="word w-(\w+)">(.*?)</span> (\w+)</span>', page)
    assert spans
    for word, symbol, spelled in spans:
        assert word == spelled
        assert symbol.strip().endswith(("●", "▼", "✕", "○", "?", "-", "▲", "="))


def unpacked(text: str) -> dict[str, Any]:
    found = re.search(
        r'<script type="text/plain" id="data" data-coding="(\w+)">(.*?)</script>', text
    )
    assert found is not None
    if found[1] == "plain":
        return dict(json.loads(found[2]))
    return dict(json.loads(gzip.decompress(base64.b64decode(found[2]))))


def values_of(columns: dict[str, Any]) -> list[list[float | None]]:
    """Read the values back as the page's script does."""
    raw = columns["raw"]
    run_ids = [run[0] for run in columns["runs"]]
    at, rows = 0, []
    for row, num in zip(columns["values"], raw["num"], strict=False):
        counting = {
            raw["runs"][raw["run"][each]]: raw["value"][each]
            for each in range(at, at + num)
            if raw["attempt"][each] >= 0
        }
        rows.append(
            [
                counting[run_id] if value == AS_RAW else value
                for run_id, value in zip(run_ids, row, strict=True)
            ]
        )
        at += num
    return rows


def test_every_value_of_the_matrix_is_in_the_page(data: ReportData, page: str) -> None:
    columns = unpacked(page)
    read = np.array(values_of(columns), dtype=float)
    np.testing.assert_allclose(read, data.matrix.values, rtol=1e-4)
    assert columns["keys"]["stack"]["words"] == ["openmpi5"]


def test_of_real_records_every_raw_number_comes_back(tmp_path: Path) -> None:
    """Run, attempt, value, verdict, reason, file and line of each, from recorded runs."""
    data = recorded_report(tmp_path)
    columns = unpacked(render_html(data))
    raw = columns["raw"]
    numbers = [each for key in all_keys(data) for each in data.raw.get(key, ())]
    assert len(numbers) == len(raw["run"]) > 400
    last: dict[tuple[int, int], int] = {}
    taken = [0] * len(raw["forms"])
    for at, each in enumerate(numbers):
        place = (raw["run"][at], raw["file"][at])
        last[place] = last.get(place, 0) + raw["line"][at]
        attempt = raw["attempt"][at]
        form = raw["form"][at]
        pieces = raw["forms"][form].split("\x00")
        gaps = raw["gaps"][form][taken[form] : taken[form] + len(pieces) - 1]
        taken[form] += len(pieces) - 1
        reason = pieces[0] + "".join(a + b for a, b in zip(gaps, pieces[1:], strict=True))
        assert (raw["runs"][place[0]], raw["files"][place[1]]) == (each.run_id, each.file)
        assert last[place] == each.line
        assert (attempt if attempt >= 0 else -attempt - 1) == each.attempt
        assert (attempt >= 0) == each.counts
        assert raw["value"][at] == rounded(each.value)
        assert raw["words"][raw["word"][at]] == each.verdict
        assert reason == each.reason


def test_a_leg_opens_the_numbers_of_its_own_nodes(data: ReportData, page: str) -> None:
    """A leg's link leads to the key of its own nodes, never to another pair's of the same leg."""
    keys = all_keys(data)
    static = page[page.index('id="legs"') : page.index('id="raw"')]
    links = re.findall(r'class="nodes">node\[?([\d,-]+)\]?</span>.*?data-key="(\d+)"', static)
    assert len(links) > 10
    for nodes, row in links:
        told = nodes.replace("-", ",").split(",")
        assert keys[int(row)].nodes == ",".join(f"node{each}" for each in told)


@given(st.lists(st.text(alphabet="a1. 0e-\x00é", max_size=12), max_size=20))
def test_sentences_come_back_from_forms_and_gaps(texts: list[str]) -> None:
    sentences = Sentences()
    forms = [sentences(text) for text in texts]
    taken = [0] * len(sentences.gaps)
    for text, form in zip(texts, forms, strict=True):
        pieces = sentences.forms.all[form].split("\x00")
        gaps = sentences.gaps[form][taken[form] : taken[form] + len(pieces) - 1]
        taken[form] += len(pieces) - 1
        again = pieces[0] + "".join(a + b for a, b in zip(gaps, pieces[1:], strict=True))
        assert again == text.replace("\x00", "\ufffd")


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_numbers_keep_five_digits(value: float) -> None:
    short = rounded(value)
    assert short is not None
    assert abs(short - value) <= 5e-5 * value


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_null_and_a_dash(value: float | None) -> None:
    assert rounded(value) is None
    assert number(value) in {"-", "inf", "-inf"}


def test_small_data_stay_readable_and_cannot_end_their_element() -> None:
    text, coding = packed({"reason": "</script><!--"})
    assert coding == "plain"
    assert "<" not in text
    assert json.loads(text) == {"reason": "</script><!--"}
    assert packed({"reason": ["x" * 100] * 1000})[1] == "gzip"


def test_an_empty_history_is_not_called_fine(data: ReportData) -> None:
    """No worsening found among one quantity, and how many nobody could look at."""
    assert data.trend is not None
    trend = replace(data.trend, events=(), drifts=(), num_quantities=1, num_short=421)
    page = render_html(replace(data, trend=trend))
    assert (
        "No lasting worsening found</strong> (among 1 with enough runs; 421 have too few)" in page
    )
    few = render_html(replace(data, trend=replace(trend, too_few_for_steps=True)))
    assert "No lasting worsening found" not in few
    assert "Too few runs to tell a lasting worsening" in few


def test_a_bare_report_says_what_it_does_not_know(data: ReportData) -> None:
    """No comparison, no trend, no inventory, no legs: said, and never green."""
    bare = ReportData(
        site=data.site,
        made=data.made,
        run=data.run,
        session=SessionResult(run_id=data.run.run_id, legs=()),
        matrix=replace(data.matrix, keys=(), values=np.empty((0, 8)), verdicts=()),
    )
    text = render_html(bare)
    assert bare.session.verdict is Verdict.SKIPPED
    assert "Nothing was judged in this run." in text
    assert "Nothing was compared" in text
    assert "Nobody looked for changes over time" in text
    assert "Nobody saw what the nodes are made of." in text
    assert Outline(text).wrong == []


def test_a_report_of_some_nodes_and_nights_is_light() -> None:
    """20 nodes x 2 rails x 23 sizes x 10 nights: 9200 raw numbers in less than 40 bytes each."""
    data = made_report(num_nodes=20, nights=10, all_pairs=False, latency=False)
    num = sum(map(len, data.raw.values()))
    text = render_html(data)
    shell = render_html(made_report(num_nodes=2, num_rails=1, num_sizes=1, nights=2))
    assert num > 9200
    assert len(text) - len(shell) < 40 * num


def test_of_very_many_legs_the_red_ones_stand_in_the_page_and_none_is_lost() -> None:
    """630 legs: what the table leaves out is in the packed data, leg by leg with its keys."""
    data = made_report(num_nodes=36, num_rails=1, num_sizes=2, nights=2, latency=False)
    page = render_html(data)
    static = page[page.index('id="legs"') : page.index('id="raw"')]
    columns = unpacked(page)["legs"]
    shown = static.count("<tr>") - 1
    assert shown == 400
    assert shown + len(columns["of"]) == len(data.session.legs) == 631
    assert "w-FAIL" in static
    assert "w-MISSING" in static
    keys = all_keys(data)
    for cells, rows in zip(columns["of"], columns["keys"], strict=True):
        verdict, _, _, leg, _, nodes, _, _ = (columns["words"][each] for each in cells)
        assert verdict == "PASS"
        assert {keys[row].leg for row in rows} == {leg}
        assert {folded(keys[row].nodes.split(",")) for row in rows} == {nodes}
        assert len(rows) == 2


def test_all_columns_have_one_entry_for_each_key(data: ReportData) -> None:
    keys = all_keys(data)
    columns = collect(data, keys)
    assert {len(columns["keys"][name]) for name in ("message_size", "better", "named")} == {
        len(keys)
    }
    assert len(columns["bounds"]["ceiling"]) == len(columns["raw"]["num"]) == len(keys)
    comparison = columns["comparison"]
    lengths = {
        len(each) for name, each in comparison.items() if name in {"key", "ratio", "low", "p"}
    }
    assert lengths == {len(keys)}


def test_every_field_of_a_key_tells_curves_apart() -> None:
    """A field that the script does not know would draw unlike numbers as one curve."""
    assets = Path(markup.__file__).parent / "assets"
    choose = (assets / "choose.js").read_text(encoding="utf-8")
    curve = re.search(r"const CURVE = \[(.*?)\];", choose, re.S)
    family = re.search(r"function familyOf.*?\[(.*?)\]", choose, re.S)
    known = re.search(r"const FIELDS = \[(.*?)\];", (assets / "data.js").read_text("utf-8"), re.S)
    assert curve is not None
    assert family is not None
    assert known is not None
    told = set(re.findall(r'"(\w+)"', curve[1])) | set(re.findall(r'"(\w+)"', family[1]))
    by_themselves = {"site", "quantity", "message_size", "better", "named"}
    assert told | by_themselves == set(FIELDS)
    names = set(re.findall(r'"(\w+)"', known[1]))
    assert names == set(FIELDS) - {"message_size", "better", "named"}


def test_a_red_leg_without_a_number_names_its_rails_as_they_are() -> None:
    leg = LegResult(verdict=Verdict.MISSING, check="x", leg="eth0.100.back", rails=("eth0.100",))
    assert rails_of(leg) == "eth0.100"
    assert rails_of(replace(leg, rails=())) == "eth0"
