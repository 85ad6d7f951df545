"""What a low number looks like, in the order in which one would check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.physics import Fabric, find_link, find_slot
from fabricproof.verdict.suspects import explained, suspects
from fabricproof.verdict.value import Judgement
from tables import CX2, FDR, GBE, QDR

CX3 = Fabric(link=find_link("QDR 4x"), slot=find_slot("3.0x8"), num_rails=2, rails_share_slot=True)
EDR = Fabric(link=find_link("EDR 4x"))
C5N = Fabric(link=find_link("100GbE"))


def _judgement(verdict: Verdict, value: float | None) -> Judgement:
    return Judgement(
        name="bandwidth", value=value, unit="MB/s", message_size=None, verdict=verdict,
        reason="because",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "fabric", "first"),
    [
        (5800, CX3, "wrong socket"),
        (3900, CX3, "about what one rail carries"),
        (3376, replace(QDR, slot=find_slot("3.0x8")), "a PCIe 2.0x8 slot"),
        (3376, QDR, "a PCIe 2.0x8 slot"),
        (1600, CX2, "a PCIe 1.0x8 slot"),
        (5600, FDR, "wrong socket"),
        (1181, C5N, "one TCP connection"),
        (6000, replace(C5N, protocol="rocev2"), "RoCE sends again"),
        (20800, replace(EDR, bidirectional=True), "measure one direction alone"),
        (2811, replace(C5N, num_flows=36, flow_limit_gbit_s=10), "one core"),
    ],
)
def test_the_first_suspect(value: float, fabric: Fabric, first: str) -> None:
    assert first in suspects(value, fabric)[0]


def test_a_stated_flow_limit_is_no_suspect() -> None:
    assert not any("one TCP" in text for text in suspects(500, replace(C5N, flow_limit_gbit_s=10)))


def test_both_ways_at_once_blame_the_socket_only_after_one_way_alone() -> None:
    (said,) = suspects(20800, replace(EDR, bidirectional=True))
    assert said.index("the core or the memory") < said.index("wrong socket")


def test_verbs_over_ethernet_are_no_tcp() -> None:
    said = " ".join(suspects(6000, replace(C5N, protocol="rocev2", num_flows=8)))
    assert "TCP" not in said
    assert "several connections" not in said


def test_a_slot_is_not_its_own_suspect() -> None:
    assert not any("2.0x8" in text for text in suspects(3200, CX2))


def test_plain_ethernet_without_a_slot_has_no_socket_to_suspect() -> None:
    assert suspects(40, GBE) == []


def test_a_failure_gets_its_suspects_after_the_reason() -> None:
    said = explained(_judgement(Verdict.FAIL, 5600), FDR)
    assert said.reason.startswith("because; the rank may sit on the wrong socket")


def test_an_impossible_number_is_set_beside_the_bare_link() -> None:
    said = explained(_judgement(Verdict.INVALID, 13011.67), C5N)
    assert said.reason == "because; it is 104% of the bare link's 12500 MB/s"


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.UNJUDGED, Verdict.MISSING])
def test_nothing_is_suspected_without_a_failure(verdict: Verdict) -> None:
    assert explained(_judgement(verdict, 100), FDR).reason == "because"


@pytest.mark.parametrize(("value", "fabric"), [(100.0, None), (None, FDR)])
def test_nothing_is_suspected_without_a_number_and_a_fabric(
    value: float | None, fabric: Fabric | None
) -> None:
    assert explained(_judgement(Verdict.FAIL, value), fabric).reason == "because"
