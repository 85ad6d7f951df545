"""Published numbers: what the physics must allow, refuse and explain."""

from __future__ import annotations

from typing import Any

import pytest

from fabricproof.physics import Ceiling, Fabric, bound, find_link, find_slot
from fabricproof.physics import latency_floor_us as floor

#: default tolerance of the judge: what "comes near low" means
TOLERANCE = 0.10


def fabric(link: str, slot: str | None = None, **rest: Any) -> Fabric:
    return Fabric(link=find_link(link), slot=find_slot(slot) if slot else None, **rest)


def limits(link: str, slot: str | None = None, **rest: Any) -> Ceiling:
    return bound(fabric(link, slot, **rest))


def healthy(value: float, ceiling: Ceiling) -> bool:
    return value >= ceiling.low_mb_s * (1 - TOLERANCE) and not ceiling.excludes(value)


@pytest.mark.parametrize("payload", [None, 128])
def test_connectx2_qdr_is_bound_by_its_slot_and_healthy(payload: int | None) -> None:
    ceiling = limits("QDR", "2.0x8", max_payload_bytes=payload)
    assert ceiling.resource == "slot"
    assert healthy(3400, ceiling)


def test_max_payload_explains_the_15_percent_that_the_document_wonders_about() -> None:
    ceiling = limits("QDR", "2.0x8", max_payload_bytes=128)
    assert ceiling.nominal_mb_s == pytest.approx(3370, abs=5)
    assert ceiling.high_mb_s == pytest.approx(3460, abs=5)
    assert limits("QDR", "2.0x8", max_payload_bytes=256).nominal_mb_s == pytest.approx(3660, abs=5)


def _gain(one: Fabric, many: Fabric) -> float:
    return bound(many).nominal_mb_s / bound(one).nominal_mb_s


def test_two_ports_of_one_connectx2_gain_nothing() -> None:
    one = fabric("QDR", "2.0x8")
    two = fabric("QDR", "2.0x8", num_rails=2, rails_share_slot=True)
    assert _gain(one, two) == 1.0
    assert bound(two).resource == "slot"


def test_two_hcas_in_slots_of_their_own_gain_all() -> None:
    one, two = fabric("FDR", "3.0x8"), fabric("FDR", "3.0x8", num_rails=2)
    assert _gain(one, two) == pytest.approx(2.0)


def test_connectx3_qdr_is_bound_by_its_link_and_healthy() -> None:
    ceiling = limits("QDR", "3.0x8")
    assert ceiling.resource == "link"
    assert healthy(3900, ceiling)


def test_two_qdr_rails_of_connectx3_share_the_slot_and_58_gb_s_is_too_little() -> None:
    ceiling = limits("QDR", "3.0x8", num_rails=2, rails_share_slot=True)
    assert ceiling.resource == "slot"
    assert not healthy(5800, ceiling)
    assert ceiling.low_mb_s * (1 - TOLERANCE) > 5800


@pytest.mark.parametrize(
    ("link", "value", "good"),
    [("FDR10", 4650, True), ("FDR", 5600, False), ("FDR", 6300, True)],
)
def test_single_rails_of_connectx3(link: str, value: float, good: bool) -> None:
    ceiling = limits(link, "3.0x8")
    assert ceiling.resource == "link"
    assert healthy(value, ceiling) is good
    assert limits("FDR10", "3.0x8").high_mb_s < 5000


def test_two_fdr_rails_are_healthy_and_hardly_gain() -> None:
    two = fabric("FDR", "3.0x8", num_rails=2, rails_share_slot=True)
    assert bound(two).resource == "slot"
    assert healthy(6500, bound(two))
    assert 1.0 < _gain(fabric("FDR", "3.0x8"), two) < 1.1


def test_c5n_single_flow_is_healthy_against_the_flow_limit_and_not_against_the_link() -> None:
    with_limit = limits("100GbE", flow_limit_gbit_s=10)
    assert with_limit.resource == "flow limit"
    assert healthy(1181.72, with_limit)
    assert healthy(1181.72, limits("100GbE", flow_limit_gbit_s=10, mtu=9001))
    assert not healthy(1181.72, limits("100GbE"))


def test_c5n_above_the_declared_rate_is_impossible() -> None:
    assert limits("100GbE").excludes(13011.67)
    assert limits("100GbE", mtu=9001).excludes(13011.67)
    assert not limits("100GbE").excludes(93.0 / 8 * 1000)


def test_gordon_rail_0_is_bound_by_the_link() -> None:
    ceiling = limits("QDR", "3.0x8")
    for value in (3830, 3867, 3883):
        assert healthy(value, ceiling)


def test_gordon_rail_1_is_bound_by_its_riser_and_fails_where_both_rails_are_declared_equal() -> (
    None
):
    riser = limits("QDR", "2.0x8")
    assert riser.resource == "slot"
    for value in (3250, 3376, 3380):
        assert healthy(value, riser)
    assert not healthy(3376, limits("QDR", "3.0x8"))


def test_gordon_full_duplex() -> None:
    both = limits("QDR", "3.0x8", bidirectional=True)
    assert both.high_mb_s == pytest.approx(2 * limits("QDR", "3.0x8").high_mb_s)
    assert both.low_mb_s < 2 * limits("QDR", "3.0x8").low_mb_s
    assert healthy(7505, both)
    assert healthy(7515, both)
    assert not healthy(6613, both)
    riser = limits("QDR", "2.0x8", bidirectional=True)
    assert healthy(6388, riser)
    assert healthy(6457, riser)


@pytest.mark.parametrize("value", [115.62, 116.96])
def test_1_gbe_over_tcp(value: float) -> None:
    ceiling = limits("1GbE", mtu=1500)
    assert ceiling.nominal_mb_s == pytest.approx(117.69, abs=0.005)
    assert value < ceiling.nominal_mb_s
    assert healthy(value, ceiling)


def test_40_gbe_over_tcp_cannot_do_what_was_published() -> None:
    assert limits("40GbE", mtu=1500).nominal_mb_s == pytest.approx(4707, abs=1)
    assert limits("40GbE", mtu=9000).nominal_mb_s == pytest.approx(4950, abs=1)
    for mtu in (None, 1500, 9000):
        assert limits("40GbE", mtu=mtu).excludes(4986.11)


@pytest.mark.parametrize("protocol", [None, "tcp", "tcp-bypass", "rocev2", "udp"])
def test_044_us_over_ethernet_is_impossible(protocol: str | None) -> None:
    assert floor(fabric("40GbE", protocol=protocol), 0).us > 0.44


def test_published_latencies_stay_possible() -> None:
    assert floor(fabric("QDR", "3.0x8"), 0).us < 1.03
    assert floor(fabric("1GbE"), 0).us < 48.05
    assert floor(fabric("10GbE", protocol="onload"), 4).us < 0.640


def test_bxi_reaches_its_documented_ceiling_and_not_more() -> None:
    ceiling = limits("BXI v2")
    assert not ceiling.excludes(11.64153 * 1024**3 / 1e6)
    assert ceiling.excludes(12600)


def test_omni_path_as_measured_elsewhere() -> None:
    assert healthy(12380.57, limits("Omni-Path 100"))


def test_slingshot_as_published_by_sites() -> None:
    assert healthy(24000, limits("Slingshot 200"))


@pytest.mark.parametrize(("rate", "value"), [("400MbE", 46.5), ("100MbE", 11.7)])
def test_virtual_rails_follow_the_same_formula(rate: str, value: float) -> None:
    assert healthy(value, limits(rate, mtu=1500))
    assert limits(rate, mtu=1500).excludes(limits(rate).nominal_mb_s * 1448 / 1514 / (1448 / 1538))
