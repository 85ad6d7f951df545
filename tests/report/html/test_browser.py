"""The page in a real browser: drawn, walked by keyboard, printed, read by machine; nothing asked.

Opt in: ``pytest -m browser``, with chromium on the PATH.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser, find_browser
from made_report import HOSTILE, made_report, recorded_report

from fabricproof.report.formats.html.page import render_html
from fabricproof.report.formats.html.payload import all_keys, rounded
from fabricproof.report.model import ReportData

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SECTIONS = ("verdict", "change", "curves", "matrix", "trend", "inventory", "legs", "raw", "notes")
VIEWS = ("curves", "matrix", "trend", "raw", "quantities")

#: WCAG 2.1, 1.4.3: of text against its ground
LEAST_CONTRAST = 4.5

#: Relative luminance and contrast as WCAG 2.1 defines them, of every text that is seen.
CONTRASTS = """(() => {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0] : [255, 255, 255];
  };
  const bad = [];
  let num = 0;
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length || element.closest('.unseen, script, style')) {
      continue;
    }
    const style = getComputedStyle(element);
    const ink = parts(element.closest('svg') ? style.fill : style.color);
    const [one, two] = [light(ink), light(ground(element))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (two + 0.05);
    num += 1;
    const name = [element.tagName, element.className, contrast.toFixed(2)].join();
    if (contrast < LEAST) bad.push(name);
  }
  return {num, bad: [...new Set(bad)]};
})()"""


@pytest.fixture(scope="module")
def browser(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    if "browser" not in str(request.config.option.markexpr):
        pytest.skip("opt in: pytest -m browser")
    program = find_browser()
    if program is None:
        pytest.fail("no chromium on the PATH: ci/bootstrap.sh packages")
    one = Browser(program, tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def data() -> ReportData:
    return made_report(num_nodes=5, num_sizes=12, nights=8)


@pytest.fixture(scope="module")
def page(data: ReportData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(data, tmp_path_factory.mktemp("page"))


def written(data: ReportData, folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(render_html(data), encoding="utf-8")
    return path


def draw_all(browser: Browser) -> None:
    """Bring every view near the window, as a reader who scrolls."""
    for name in SECTIONS:
        browser.show(f"#{name}")
    browser.until(
        "[...document.querySelectorAll('[data-view]')].every(e => e.classList.contains('drawn'))"
    )
    browser.frames()


def in_panel(browser: Browser) -> list[list[str]]:
    """Return the cells of the raw numbers' panel."""
    rows = browser.run(
        "[...document.querySelectorAll('#panel[open] tbody tr')]"
        ".map(r => [...r.cells].map(c => c.textContent))"
    )
    return [list(map(str, row)) for row in rows]


def wanted_rows(data: ReportData, row: int) -> list[tuple[str, str, float | int | None, str, str]]:
    key = all_keys(data)[row]
    return [
        (each.run_id, str(each.attempt), rounded(each.value), each.verdict, each.reason)
        for each in data.raw[key]
    ]


def test_it_draws_everything_asks_for_nothing_and_complains_of_nothing(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    draw_all(browser)
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.run("document.querySelector('#trouble').hidden") is True


def test_the_policy_stops_what_would_ask(browser: Browser, page: Path) -> None:
    """The guard works: a picture put into the page is refused and an inline handler is not run."""
    browser.open(page)
    browser.run(
        "(() => { const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x';"
        " document.body.append(i);"
        " document.body.insertAdjacentHTML('beforeend', '<p id=p onclick=\"window.hit=1\">');"
        " document.getElementById('p').click(); })()"
    )
    browser.frames()
    assert browser.run("window.hit === undefined") is True
    assert any("Content Security Policy" in each for each in browser.complaints())
    refused = [each["params"] for each in browser.events if "blockedReason" in each["params"]]
    assert [each["blockedReason"] for each in refused] == ["csp"]


def test_the_curve_has_a_mark_for_each_number(
    browser: Browser, page: Path, data: ReportData
) -> None:
    """Eight curves have marks, each a mark for each of its sizes, with the key of its number."""
    browser.open(page)
    browser.show("#curves")
    browser.until("document.querySelector('#curves .pt')")
    rows = browser.run(
        "[...document.querySelectorAll('#curves .plot .pt')].map(e => +e.dataset.key)"
    )
    assert len(rows) == len(set(rows)) == 8 * 12
    keys = all_keys(data)
    assert {keys[row].program for row in rows} == {"osu_bw"}
    bold = browser.run(
        "[...document.querySelectorAll('#curves .focus .pt')].map(e=>+e.dataset.key)"
    )
    assert {keys[row].nodes for row in bold} == {"node1,node3"}
    assert len(bold) == 12
    assert browser.run("document.querySelectorAll('#curves .redpt').length") == 1
    for kind in ("ceiling", "reference", "before", "after"):
        assert browser.run(f"document.querySelectorAll('#curves .plot .l-{kind}').length") == 1
    for kind in ("accepted", "band", "runs"):
        assert browser.run(f"document.querySelectorAll('#curves .plot .a-{kind}').length") == 1


def test_marks_stand_where_their_numbers_are(
    browser: Browser, page: Path, data: ReportData
) -> None:
    """Heights of the bold curve's marks are linear in the logarithm of its numbers."""
    browser.open(page)
    browser.show("#curves")
    browser.until("document.querySelector('#curves .focus .pt')")
    marks = browser.run(
        "[...document.querySelectorAll('#curves .focus .pt')].map(e => [+e.dataset.key,"
        " +e.getAttribute('transform').match(/,([-\\d.]+)/)[1]])"
    )
    values = np.log([data.matrix.values[int(row), -1] for row, _ in marks])
    heights = np.array([height for _, height in marks])
    slope, level = np.polyfit(values, heights, 1)
    assert slope < 0
    np.testing.assert_allclose(slope * values + level, heights, atol=0.3)


def test_a_click_on_a_point_opens_its_raw_numbers(
    browser: Browser, page: Path, data: ReportData
) -> None:
    browser.open(page)
    browser.show("#curves")
    browser.until("document.querySelector('#curves .focus .pt')")
    row, x, y = browser.run(
        "(() => { const e = [...document.querySelectorAll('#curves .focus .pt')].pop();"
        " const b = e.getBoundingClientRect();"
        " return [+e.dataset.key, b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    browser.click(x, y)
    browser.until("document.querySelector('#panel').open")
    assert browser.run("+document.querySelector('#panel').dataset.key") == row
    found = in_panel(browser)
    wanted = wanted_rows(data, int(row))
    assert len(found) == len(wanted) == 9
    for cells, (run_id, attempt, value, verdict, reason) in zip(found, wanted, strict=True):
        assert cells[0] == run_id
        assert cells[2] == attempt
        assert float(cells[4].split()[0]) == value
        assert cells[5].endswith(verdict)
        assert cells[6] == reason
        assert re.search(r"records\.jsonl:\d+$", cells[7])
    assert [cells[3] for cells in found][-2:] == ["no", "yes"]
    browser.press("Escape")
    browser.until("!document.querySelector('#panel').open")


def test_a_chart_is_walked_by_keys(browser: Browser, page: Path) -> None:
    """Tab to it, arrows along and across, Enter opens, Esc closes and the chart has focus again."""
    browser.open(page)
    browser.show("#curves")
    browser.until("document.querySelector('#curves .pt')")
    browser.run("document.querySelector('#curves-as').focus()")
    browser.press("Tab")
    assert browser.run("document.activeElement.className.includes('chart')") is True
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    said = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        browser.press(key)
        said.append(browser.run("document.querySelector('#said').textContent"))
    assert len(set(said)) == 4
    assert "node1 - node3: 1B" in said[0]
    assert "node1 - node3: 2B" in said[1]
    assert "2B" in said[2]
    assert "node1 - node3" not in said[2]
    browser.press("Enter")
    browser.until("document.querySelector('#panel').open")
    browser.press("Escape")
    browser.until("!document.querySelector('#panel').open")
    assert browser.run("document.activeElement.className.includes('chart')") is True


def test_a_matrix_is_walked_by_keys(browser: Browser, page: Path, data: ReportData) -> None:
    browser.open(page)
    browser.show("#matrix")
    browser.until("document.querySelector('#matrix td[data-key]')")
    assert browser.run("document.querySelectorAll('#matrix td[data-key]').length") == 5 * 4
    assert browser.run("document.querySelectorAll('#matrix td.redcell').length") == 2
    assert browser.run("document.querySelectorAll('#matrix td[tabindex=\"0\"]').length") == 1
    browser.run("document.querySelector('#matrix td[tabindex=\"0\"]').focus()")
    assert browser.run("document.activeElement.dataset.at") == "0,1"
    browser.press("ArrowRight")
    assert browser.run("document.activeElement.dataset.at") == "0,2"
    assert "node1 - node3" in browser.run("document.activeElement.getAttribute('aria-label')")
    browser.press("ArrowDown")
    assert browser.run("document.activeElement.dataset.at") == "1,2"
    browser.press("ArrowUp")
    browser.press("Enter")
    browser.until("document.querySelector('#panel').open")
    key = all_keys(data)[int(browser.run("+document.querySelector('#panel').dataset.key"))]
    assert (key.nodes, key.message_size) == ("node1,node3", 2**11)
    browser.press("Escape")


def test_the_keys_are_told_and_the_first_tab_skips(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.press("Tab")
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0
    browser.press("?", "?")
    browser.until("document.querySelector('#help').open")
    browser.press("Escape")
    browser.until("!document.querySelector('#help').open")


def test_what_is_used_by_tab_has_a_name(browser: Browser, page: Path) -> None:
    """Every control has a name for a screen reader, every table a caption, every chart a table."""
    browser.open(page)
    draw_all(browser)
    nameless = browser.run(
        "[...document.querySelectorAll('button, select, input, a, [tabindex], svg[role=img]')]"
        ".filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length"
        " || e.closest('label'))).map(e => e.outerHTML.slice(0, 90))"
    )
    assert nameless == []
    assert browser.run("[...document.querySelectorAll('table')].every(t => t.caption)") is True
    assert browser.run("document.querySelectorAll('#curves table, #trend .view table').length") >= 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground(browser: Browser, page: Path, scheme: str) -> None:
    browser.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    browser.open(page)
    draw_all(browser)
    found = browser.run(CONTRASTS.replace("LEAST", str(LEAST_CONTRAST)))
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert found["num"] > 300
    assert found["bad"] == []


def test_curves_differ_in_more_than_colour(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.show("#curves")
    browser.until("document.querySelector('#curves .pt')")
    looks = browser.run(
        "[...document.querySelectorAll('#curves .plot .series:not(.faint)')].map(g => ["
        "getComputedStyle(g.querySelector('.curve')).strokeDasharray,"
        "g.querySelector('.pt').getAttribute('d').replace(/[-\\d.]+/g, '')])"
    )
    dashes, shapes = {each[0] for each in looks}, [each[1] for each in looks]
    assert len(looks) == len(dashes) == 8
    assert len(set(shapes)) >= 5


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_itself_never_scrolls_sideways(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    draw_all(browser)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelector('#curves .plot').clientWidth") <= width
    for key in ("Home", "End"):
        browser.run("document.querySelector('#curves .chart').focus()")
        browser.press("ArrowRight")
        browser.press(key)
        browser.frames()
        assert browser.run("document.querySelector('#curves .tip').hidden") is False
        assert browser.run("document.documentElement.scrollWidth") <= width


def test_hostile_text_is_shown_and_never_run(browser: Browser, tmp_path: Path) -> None:
    data = made_report(num_nodes=3, num_sizes=4, nights=4, spoil=HOSTILE)
    browser.open(written(data, tmp_path), width=390)
    draw_all(browser)
    browser.run("document.querySelector('#matrix button.raw').click()")
    assert "<img src=x onerror=" in "".join(in_panel(browser)[0])
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.complaints() == []
    assert len(browser.requests()) == 1
    assert browser.run("document.documentElement.scrollWidth") <= 390


def test_on_paper_everything_is_drawn_and_open(browser: Browser, page: Path) -> None:
    """What was never scrolled to is drawn before it is printed; dark mode prints as light."""
    browser.open(page)
    browser.run(
        "window.addEventListener('beforeprint', () => { window.printed = {"
        " views: document.querySelectorAll('.drawn').length,"
        " curves: document.querySelectorAll('#curves .plot .pt').length,"
        " trend: document.querySelectorAll('#trend .plot .pt').length,"
        " shut: document.querySelectorAll('details:not([open])').length }; })"
    )
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 7
    assert browser.run("window.printed.views") == len(VIEWS)
    assert browser.run("window.printed.shut") == 0
    assert browser.run("window.printed.curves") == 8 * 12
    assert browser.run("window.printed.trend") == 8 * 8
    browser.call("Emulation.setEmulatedMedia", media="print")
    hidden = browser.run(
        "[...document.querySelectorAll('main > section')]"
        ".filter(s => s.getBoundingClientRect().height < 40).map(s => s.id)"
    )
    navigation = browser.run("getComputedStyle(document.querySelector('nav')).display")
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert hidden == []
    assert navigation == "none"
    assert ground == "rgb(255, 255, 255)"


def test_without_a_script_it_still_says_what_is_red(browser: Browser, page: Path) -> None:
    browser.open(page, scripts=False)
    # The page's own script is off; asking it questions is not.
    text = browser.run("document.body.innerText")
    ready = browser.run("document.documentElement.dataset.ready")
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert ready is None
    assert "FAIL" in text
    assert "JavaScript, which is switched off" in text
    assert "node[1,3]" in text
    assert "firmware=28.41" in text


def test_tables_are_searched(browser: Browser, page: Path, data: ReportData) -> None:
    browser.open(page)
    draw_all(browser)
    assert data.comparison is not None
    num = len(data.comparison.quantities)
    worse = sum(each.shift.change == "WORSE" for each in data.comparison.quantities)
    browser.run(
        "(() => { const s = document.querySelector('#quantity-word'); s.value = 'WORSE';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    caption = browser.run("document.querySelector('#quantities caption').textContent")
    assert f"of {worse})" in caption
    assert worse < num
    browser.run(
        "(() => { const i = document.querySelector('#legs-search'); i.value = 'fail rail0';"
        " i.dispatchEvent(new Event('input')); })()"
    )
    rows = browser.run(
        "[...document.querySelectorAll('#legs tbody tr')].filter(r => !r.hidden).length"
    )
    assert rows == sum(leg.verdict == "FAIL" for leg in data.session.legs)


def test_recorded_runs_are_shown(browser: Browser, tmp_path: Path) -> None:
    """Four real runs of the virtual cluster: all views drawn, all legs there."""
    data = recorded_report(tmp_path / "perflogs")
    browser.open(written(data, tmp_path))
    draw_all(browser)
    assert browser.complaints() == []
    assert browser.run("document.querySelectorAll('#legs tbody tr').length") == len(
        data.session.legs
    )
    assert browser.run("document.querySelectorAll('#curves .pt').length") > 20
    assert browser.run("document.querySelectorAll('#matrix td[data-key]').length") >= 2


def test_one_run_and_nothing_else_is_a_page_too(
    browser: Browser, data: ReportData, tmp_path: Path
) -> None:
    bare: dict[str, Any] = {"comparison": None, "trend": None, "raw": {}, "bounds": {}, "bands": {}}
    matrix = replace(
        data.matrix,
        runs=data.matrix.runs[-1:],
        values=data.matrix.values[:, -1:],
        verdicts=tuple((row[-1],) for row in data.matrix.verdicts),
    )
    browser.open(written(replace(data, matrix=matrix, machines={}, **bare), tmp_path))
    draw_all(browser)
    assert browser.complaints() == []
    assert browser.run("document.querySelectorAll('#curves .plot .pt').length") == 8 * 12
    assert "one run only" in browser.run("document.querySelector('#trend').innerText")


def test_a_large_report_answers(browser: Browser, tmp_path: Path) -> None:
    """40 nodes, 4 rails, 23 sizes, 15 nights, 55 thousand raw numbers: drawn, and a click opens."""
    data = made_report(num_nodes=40, num_rails=4, nights=15, all_pairs=False, latency=False)
    browser.open(written(data, tmp_path))
    draw_all(browser)
    assert browser.complaints() == []
    assert browser.run("document.querySelectorAll('#matrix td[data-key]').length") == 80
    browser.run("document.querySelector('#matrix td[data-key]').click()")
    assert len(in_panel(browser)) == 15


def test_a_matrix_of_all_pairs_and_very_many_legs(browser: Browser, tmp_path: Path) -> None:
    """40 nodes, 780 pairs: a cell for each way round, and all legs after one click."""
    data = made_report(num_nodes=40, num_rails=1, num_sizes=2, nights=2, latency=False)
    browser.open(written(data, tmp_path))
    draw_all(browser)
    assert browser.run("document.querySelectorAll('#matrix td[data-key]').length") == 2 * 780
    assert browser.run("document.querySelectorAll('#legs tbody tr').length") == 400
    browser.run("document.querySelector('#legs .controls button').click()")
    assert browser.run("document.querySelectorAll('#legs tbody tr').length") == 781
    assert browser.run("document.querySelector('#legs .controls .remark').textContent") == (
        "781 of 781 rows"
    )
    browser.run("[...document.querySelectorAll('#legs button.raw')].pop().click()")
    assert len(in_panel(browser)) == 2
    assert browser.complaints() == []
