"""The matrix of a pair campaign in the report: drawn from its record, said in words and numbers."""

from __future__ import annotations

import base64
import re
import sys
import zlib
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from made_report import HOSTILE, made_report
from test_page import Outline

from fabricproof.core.errors import ParseError
from fabricproof.pairs import (
    Picture,
    judge_matrix,
    leaves_of,
    picture_of,
    read_matrices,
    read_picture,
    say,
)
from fabricproof.pairs.blame.judge import MatrixVerdict
from fabricproof.report.formats.page import render_html, render_pairs

sys.path.insert(0, str(Path(__file__).parents[2] / "pairs"))
from matrices import Fault, healthy, made, of_node, written

_CUT = base64.b64encode(zlib.compress(bytes(range(16)))[:-8]).decode()


def drawn(folder: Path, num: int, fault: Fault = healthy, per_leaf: int = 4) -> Picture:
    """Return the picture of a made matrix."""
    (matrix,) = read_matrices(str(written(folder / "m.csv", made(num, fault, noise=0.0))))
    judged = judge_matrix(matrix, leaves=leaves_of(num, per_leaf))
    return picture_of(judged, say(judged), "bandwidth over rail0", "fabricproof pairs run")


def words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.split("<body>")[1])).split())


def test_the_blamed_stand_above_their_matrix_with_what_to_measure_next(tmp_path: Path) -> None:
    page = render_pairs([drawn(tmp_path, 16, of_node(3, 0.3, side="receive"))])
    text = words(page)
    assert page.index("n0003 receives at 30 %: 15 of 15 pairs") < page.index("<svg")
    assert "Measure next: n0003 on another port and cable, measured with n0000" in text
    assert "Next: fabricproof pairs run" in text
    # Beside colour: the share stands in the tables.
    assert re.search(r"<td>n0003</td><td class=\"n\">100 %</td><td class=\"n\">30 %</td>", page)


def test_the_page_is_whole_asks_for_nothing_and_runs_nothing(tmp_path: Path) -> None:
    page = render_pairs([drawn(tmp_path, 16, of_node(3, 0.3))])
    outline = Outline(page)
    assert outline.wrong == []
    assert outline.open == []
    assert {name for name, _ in outline.tags}.isdisjoint({"script", "img", "link", "iframe"})
    assert not [facts for _, facts in outline.tags if {"src", "style", "onclick"} & set(facts)]
    (role,) = [facts for name, facts in outline.tags if name == "svg"]
    assert role["role"] == "img"
    assert "16 nodes" in str(role["aria-label"])


def test_the_record_keeps_the_picture(tmp_path: Path) -> None:
    picture = drawn(tmp_path, 10, of_node(3, 0.3))
    again = read_picture({"run_id": "r", **picture.record()}, "here")
    assert render_pairs([again]) == render_pairs([picture])
    assert again.leaves == (("leaf0", 4), ("leaf1", 4), ("leaf2", 2))
    np.testing.assert_allclose(again.cells, picture.cells, atol=0.01)


def test_a_share_is_rounded_down_and_no_cell_is_made_up(tmp_path: Path) -> None:
    picture = drawn(tmp_path, 4)
    cells = picture.cells.copy()
    cells[0, 1], cells[2, 3] = 0.899, np.nan
    again = read_picture(replace(picture, cells=cells).record(), "here")
    assert again.cells[0, 1] == 0.89
    assert np.isnan(again.cells[2, 3])


@pytest.mark.parametrize(
    "change",
    [
        {"cells": "AA"},
        {"cells": "?"},
        {"cells": _CUT},
        {"nodes": ["a"]},
        {"leaves": [["l", 3]]},
        {"verdict": "GOOD"},
    ],
)
def test_a_damaged_record_is_said_and_not_drawn(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(ParseError):
        read_picture({**drawn(tmp_path, 4).record(), **change}, "here")


def test_512_nodes_are_readable_and_light(tmp_path: Path) -> None:
    guilty = of_node(400, 0.5)
    page = render_pairs([drawn(tmp_path, 512, guilty, per_leaf=16)])
    assert len(page) < 600_000
    # Two pixels a node, the blamed one named in bold though not every name has room.
    assert 'viewBox="0 0 1244' in page
    assert re.search(r'font-weight="bold">n0400</text>', page)
    assert ">n0401</text>" not in page
    assert "Leaf to leaf" in page


def test_the_report_has_the_section_only_with_a_campaign(tmp_path: Path) -> None:
    data = made_report(num_nodes=2, nights=2)
    assert 'id="pairs"' not in render_html(data)
    assert "#pairs" not in render_html(data)
    picture = drawn(tmp_path, 8, of_node(3, 0.3))
    good = replace(picture, title="good", blame=(), verdict=MatrixVerdict.PASS)
    page = render_html(replace(data, pairs=(good, picture)))
    assert '<section id="pairs"' in page
    assert page.index("bandwidth over rail0") < page.index("<h3>good")
    assert Outline(page).wrong == []


def test_nothing_breaks_out_of_the_matrix(tmp_path: Path) -> None:
    picture = drawn(tmp_path, 8, of_node(3, 0.3))
    names = tuple(f"{HOSTILE}{at}" for at in range(8))
    page = render_pairs([replace(picture, title=HOSTILE, nodes=names)])
    outline = Outline(page)
    assert outline.wrong == []
    assert "img" not in {name for name, _ in outline.tags}
    page.encode()
