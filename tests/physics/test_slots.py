"""PCIe slots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import UnknownLinkError
from fabricproof.physics import find_slot

#: one lane in MB/s, as PCI-SIG publishes it (generation 6 after CRC and FEC)
LANE_MB_S = {1: 250, 2: 500, 3: 984.615, 4: 1969.231, 5: 3938.462, 6: 7562.5}


@pytest.mark.parametrize("generation", LANE_MB_S)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 12, 16, 32])
def test_raw_rate_of_every_generation_and_width(generation: int, lanes: int) -> None:
    slot = find_slot(f"{generation}.0x{lanes}")
    assert (slot.generation, slot.lanes) == (generation, lanes)
    assert slot.raw_mb_s == pytest.approx(lanes * LANE_MB_S[generation], rel=1e-6)
    assert find_slot(slot.name) == slot
    assert len(slot.source) > 12


@pytest.mark.parametrize(
    "text",
    ["3.0x8", "3x8", "PCIe 3.0 x8", "pcie3.0x8", "PCI-Express 3.0 x8", "PCI Express Gen3 x8",
     "Gen3 x8", "gen 3 x8", "Generation 3 x8", "PCI 3.0 x8", "3.1x8", "8 GT/s x8",
     "8.0 GT/s PCIe x8", "8GT/s, width x8", " 3.0 X8 ", "3.0\u00d78"],
)  # fmt: skip
def test_the_ways_people_write_a_slot(text: str) -> None:
    assert find_slot(text).name == "PCIe 3.0 x8"


def test_the_numbers_of_the_documents() -> None:
    assert find_slot("2.0x8").raw_mb_s == 4000
    assert find_slot("3.0x8").raw_mb_s == pytest.approx(7877, abs=0.5)
    assert find_slot("3.0x8").formula == "8 lanes x 8 GT/s x 128/130 / 8"


@pytest.mark.parametrize(
    "text",
    ["", "x8", "3.0", "7.0x8", "0x8", "3.0x3", "3.0x0", "16x4", "9 GT/s x8", "3.0x8x8", "foo"],
)
def test_an_unknown_slot_is_refused_and_the_message_helps(text: str) -> None:
    with pytest.raises(UnknownLinkError) as caught:
        find_slot(text)
    assert "1.0 to 6.0" in str(caught.value)
    assert "x16" in str(caught.value)
    assert repr(text) in str(caught.value)


@given(st.text(max_size=20))
def test_any_text_is_a_slot_or_is_refused(text: str) -> None:
    try:
        slot = find_slot(text)
    except UnknownLinkError:
        return
    assert slot.raw_mb_s > 0
