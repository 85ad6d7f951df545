"""Latency floors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.physics import Fabric, bound, find_link, known_links, latency_floor_us


@given(st.sampled_from(list(known_links())), st.integers(0, 2**30), st.integers(0, 2**30))
def test_a_larger_message_never_has_a_lower_floor(name: str, first: int, second: int) -> None:
    fabric = Fabric(link=find_link(name))
    small, large = sorted((first, second))
    assert latency_floor_us(fabric, small).us <= latency_floor_us(fabric, large).us


def test_the_floor_is_the_protocol_plus_the_time_on_the_wire() -> None:
    fabric = Fabric(link=find_link("100MbE"), protocol="tcp", mtu=1500)
    floor = latency_floor_us(fabric, 1_000_000)
    assert floor.us == pytest.approx(2.0 + 1_000_000 / bound(fabric).high_mb_s)
    assert floor.formula == "2 us (tcp) + 1000000 B / 11.8661 MB/s"
    assert "conservative" in floor.source


def test_adding_up_both_directions_does_not_make_one_message_faster() -> None:
    one = Fabric(link=find_link("1GbE"))
    both = Fabric(link=find_link("1GbE"), bidirectional=True)
    assert latency_floor_us(both, 4096) == latency_floor_us(one, 4096)


def test_kernel_tcp_cannot_be_under_two_microseconds_but_bypass_can() -> None:
    link = find_link("100GbE")
    assert latency_floor_us(Fabric(link=link, protocol="tcp"), 0).us == 2.0
    assert latency_floor_us(Fabric(link=link, protocol="onload"), 0).us < 1.0


def test_an_unstated_protocol_has_the_floor_of_the_fastest_one_the_link_can_carry() -> None:
    unstated = latency_floor_us(Fabric(link=find_link("100GbE")), 0)
    assert unstated.us == latency_floor_us(Fabric(link=find_link("100GbE"), protocol="roce"), 0).us
    assert 0.44 < unstated.us < 1.2
    assert latency_floor_us(Fabric(link=find_link("QDR"), protocol="ipoib"), 0).us == 2.0
    assert latency_floor_us(Fabric(link=find_link("QDR")), 0).us == 0.5
