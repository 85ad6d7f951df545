"""Draw the README's picture: the curve of a real run, as the report's page shows it.

fabricproof report RUN -o run.html
.venv/bin/python tests/report/html/picture.py run.html docs/curve.png
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from browser import Browser, find_browser

#: shows the bandwidths of osu_bw and returns where chart and legend are, in CSS pixels
_SHOW = """(() => {
  const family = document.getElementById("curves-family");
  family.value = [...family.options].find(each => each.text.startsWith("osu_bw bandwidth")).value;
  family.dispatchEvent(new Event("change", {bubbles: true}));
  document.querySelector(".tip")?.remove();
  const figure = document.querySelector(".figure");
  const box = figure.getBoundingClientRect();
  const legends = [...figure.parentElement.querySelectorAll("ul, .legend, .key")];
  const bottom = Math.max(box.bottom, ...legends.map(each => each.getBoundingClientRect().bottom));
  return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: bottom - box.y + 4};
})()"""


def main(page: Path, picture: Path) -> None:
    """Write the picture of a report's page."""
    program = find_browser()
    if program is None:
        raise SystemExit("picture: no Chromium here; next: apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, Path(folder))
        try:
            browser.open(page.resolve(), width=1000)
            browser.until("document.getElementById('curves-family')")
            browser.run(_SHOW)
            browser.frames()
            clip = {**browser.run(_SHOW), "scale": 1.5}
            answer = browser.call(
                "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
            )
        finally:
            browser.close()
    picture.write_bytes(base64.b64decode(answer["data"]))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
