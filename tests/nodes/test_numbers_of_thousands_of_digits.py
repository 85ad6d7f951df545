"""What a node said, with thousands of digits in place of any number: read on, never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.units import digits_of
from fabricproof.nodes.discover.read import read_host, read_slurm
from fabricproof.nodes.inventory.read import read_machine

DATA = Path(__file__).parents[1] / "data"
LOOKS = sorted((DATA / "inventory").glob("*.txt"))
CLUSTERS = sorted((DATA / "discover").glob("*/[!t]*.txt"))
HUGE = "9" * 5000


def _with_huge(text: str, data: st.DataObject) -> str:
    places = list(re.finditer(r"\d+", text))
    place = data.draw(st.sampled_from(places))
    return text[: place.start()] + HUGE + text[place.end() :]


@given(data=st.data())
def test_in_a_look_at_a_node(data: st.DataObject) -> None:
    """It broke the judging of the job that looked."""
    text = data.draw(st.sampled_from(LOOKS)).read_text(encoding="utf-8", errors="replace")
    assert read_machine(_with_huge(text, data), "n1").node == "n1"


@given(data=st.data())
def test_in_what_a_machine_shows(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(CLUSTERS))
    text = _with_huge(path.read_text(encoding="utf-8", errors="replace"), data)
    if path.name == "slurm.txt":
        read_slurm(text)
    else:
        read_host(text, str(path))


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("12", 12), (HUGE, None), ("-1", None), ("", None), ("x", None)]
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert digits_of(text) == number
