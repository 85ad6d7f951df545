"""The page in a real browser: seen, printed, small, dark; nothing asked, no script run.

Opt in: ``pytest -m browser``, with chromium on the PATH.
"""

from __future__ import annotations

import datetime
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, find_browser
from made_report import HOSTILE, made_report, recorded_report

from fabricproof.report.formats.page import render_html
from fabricproof.report.gather import gather
from fabricproof.report.model import ReportData
from fabricproof.site import load_site

sys.path.insert(0, str(Path(__file__).parents[1]))
from report_data import HEALTHY, SLOW, recorded

NOW = datetime.datetime(2026, 11, 22, 7, tzinfo=datetime.UTC)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

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


def test_it_asks_for_nothing_and_complains_of_nothing(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    for each in (page, written(recorded_report(tmp_path / "perflogs"), tmp_path)):
        browser.open(each)
        browser.frames()
        assert browser.complaints() == []
        assert browser.requests() == [each.as_uri()]


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


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_text_is_read_in_both_modes(browser: Browser, page: Path, mode: str) -> None:
    browser.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": mode}]
    )
    browser.open(page)
    seen = browser.run(CONTRASTS.replace("LEAST", str(LEAST_CONTRAST)))
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert seen["num"] > 200
    assert seen["bad"] == []


@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_never_scrolls_sideways(browser: Browser, tmp_path: Path, width: int) -> None:
    """Tables scroll by themselves, also with names that no line can break."""
    data = made_report(num_nodes=3, num_sizes=4, nights=4, spoil=HOSTILE)
    for each in (data, made_report(num_nodes=6, num_sizes=12, nights=8)):
        browser.open(written(each, tmp_path), width=width)
        assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_verdict_and_what_is_red_are_on_the_first_screen(browser: Browser, page: Path) -> None:
    browser.open(page, width=1400, height=800)
    bottoms = browser.run(
        "['header', '#red article', '#red .commands', '#red .beside']"
        ".map(s => document.querySelector(s).getBoundingClientRect().bottom)"
    )
    assert max(bottoms[:3]) < 800
    browser.open(page, width=390, height=800)
    bottom = browser.run("document.querySelector('#red article').getBoundingClientRect().bottom")
    assert bottom < 800


def test_on_paper_everything_is_there_in_light_colours(browser: Browser, page: Path) -> None:
    browser.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}]
    )
    browser.open(page)
    pdf = browser.pdf()
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 4


@pytest.mark.parametrize(("name", "run"), [("red", SLOW), ("green", HEALTHY)])
def test_the_pictures_of_the_documents_are_of_recorded_runs(
    browser: Browser, tmp_path: Path, name: str, run: str
) -> None:
    """``FABRICPROOF_PICTURES=docs pytest -m browser -k pictures`` writes them anew."""
    site = load_site("vcluster")
    data = gather(site, recorded(tmp_path), run, now=NOW).data
    browser.open(written(data, tmp_path), width=1000, height=900)
    path = Path(os.environ.get("FABRICPROOF_PICTURES", tmp_path)) / f"report-{name}.png"
    browser.screenshot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000
    assert browser.run("document.querySelector('h1').innerText").endswith("vcluster")
