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


ROCE = replace(C5N, protocol="rocev2", num_flows=8)


@pytest.mark.parametrize(
    ("value", "fabric", "unsaid"),
    [
        (500, replace(C5N, flow_limit_gbit_s=10), "one TCP"),  # a stated limit
        (6000, ROCE, "TCP"),
        (6000, ROCE, "several connections"),
        (3200, CX2, "2.0x8"),  # a slot is not its own suspect
        (40, GBE, ""),  # plain Ethernet without a slot has no socket to suspect
    ],
)
def test_what_is_no_suspect(value: float, fabric: Fabric, unsaid: str) -> None:
    assert not any(unsaid in text for text in suspects(value, fabric))


def test_both_ways_at_once_blame_the_socket_only_after_one_way_alone() -> None:
    (said,) = suspects(20800, replace(EDR, bidirectional=True))
    assert said.index("the core or the memory") < said.index("wrong socket")


@pytest.mark.parametrize(
    ("verdict", "value", "fabric", "said"),
    [
        (Verdict.FAIL, 5600, FDR, "because; the rank may sit on the wrong socket"),
        (Verdict.INVALID, 13011.67, C5N, "because; it is 104% of the bare link's 12500 MB/s"),
        # nothing is suspected without a failure, a number and a fabric
        *((each, 100, FDR, None) for each in (Verdict.PASS, Verdict.UNJUDGED, Verdict.MISSING)),
        (Verdict.FAIL, 100.0, None, None),
        (Verdict.FAIL, None, FDR, None),
    ],
)
def test_a_reason_gets_its_suspects(
    verdict: Verdict, value: float | None, fabric: Fabric | None, said: str | None
) -> None:
    reason = explained(_judgement(verdict, value), fabric).reason
    assert reason == "because" if said is None else reason.startswith(said)
