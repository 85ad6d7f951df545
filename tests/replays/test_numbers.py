"""Numbers that the source documents print without a table, judged by physics from Python."""

from __future__ import annotations

import pytest

from fabricproof.core.units import parse_quantity
from fabricproof.physics import Fabric, bound, expected_rail_gain, find_link, find_slot
from fabricproof.verdict.suspects import explained
from fabricproof.verdict.value import from_ceiling, judge_value


def fabric(link: str, slot: str = "", **changes: object) -> Fabric:
    return Fabric(link=find_link(link), slot=find_slot(slot) if slot else None, **changes)  # type: ignore[arg-type]


TWO = {"num_rails": 2, "rails_share_slot": True}

#: document, number, fabric, verdict, words of the reason
NUMBERS = [
    ("000 ConnectX-2", "3.4 GB/s", fabric("QDR 4x", "2.0x8"), "PASS", "the slot binds"),
    ("000 its two ports", "3.4 GB/s", fabric("QDR 4x", "2.0x8", **TWO), "PASS", "the slot binds"),
    ("000 ConnectX-3", "3.9 GB/s", fabric("QDR 4x", "3.0x8"), "PASS", "the link binds"),
    ("000 its two ports", "5.8 GB/s", fabric("QDR 4x", "3.0x8", **TWO), "FAIL", "wrong socket"),
    ("000 FDR10", "4.65 GB/s", fabric("FDR10 4x", "3.0x8"), "PASS", "the link binds"),
    ("000 FDR, far socket", "5.6 GB/s", fabric("FDR 4x", "3.0x8"), "FAIL", "wrong socket"),
    ("000 FDR, near socket", "6.3 GB/s", fabric("FDR 4x", "3.0x8"), "PASS", "the link binds"),
    ("000 FDR, two ports", "6.5 GB/s", fabric("FDR 4x", "3.0x8", **TWO), "PASS", "slot binds"),
    ("002 rail 0", "3867 MB/s", fabric("QDR 4x", "3.0x8"), "PASS", "the link binds"),
    ("002 rail 1, riser", "3376 MB/s", fabric("QDR 4x", "2.0x8"), "PASS", "the slot binds"),
    ("002 rail 1, as rail 0", "3376 MB/s", fabric("QDR 4x", "3.0x8"), "FAIL", "PCIe 2.0x8 slot"),
    (
        "002 rail 0, both ways",
        "7505 MB/s",
        fabric("QDR 4x", "3.0x8", bidirectional=True),
        "PASS",
        "the link binds",
    ),
    ("003 BXI", "11.64153 GiB/s", fabric("BXI v2"), "PASS", "the link binds"),
    ("003 BXI, too good", "13.0 GiB/s", fabric("BXI v2"), "INVALID", "the ceiling"),
]


@pytest.mark.parametrize(
    ("document", "number", "path", "verdict", "words"), NUMBERS, ids=[each[0] for each in NUMBERS]
)
def test_a_printed_number(
    document: str, number: str, path: Fabric, verdict: str, words: str
) -> None:
    ceiling = bound(path)
    judged = judge_value(
        name="bandwidth",
        value=parse_quantity(number, "MB/s"),
        unit="MB/s",
        message_size=None,
        reference=from_ceiling(ceiling, tolerance=0.1),
        ceiling=ceiling,
    )
    judged = explained(judged, path)
    assert judged.verdict == verdict, document
    assert words in judged.reason


@pytest.mark.parametrize(
    ("link", "slot", "gain"), [("QDR 4x", "2.0x8", 1.0), ("FDR 4x", "3.0x8", 1.07)]
)
def test_what_a_second_port_can_gain_in_one_slot(link: str, slot: str, gain: float) -> None:
    """Document 000 measured none with ConnectX-2, and 3 % with FDR, where 7 % can be had."""
    one = fabric(link, slot)
    two = fabric(link, slot, num_rails=2, rails_share_slot=True)
    assert expected_rail_gain(one, two) == pytest.approx(gain, abs=0.005)
