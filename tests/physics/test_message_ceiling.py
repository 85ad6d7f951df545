"""What messages of one size can carry: headers of packets, and what an adapter can post."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.physics import Fabric, bound, find_link, message_ceiling

SIZES = st.integers(1, 2**30)
LINKS = st.sampled_from(["SDR", "QDR", "FDR", "EDR", "HDR", "NDR", "XDR", "100GbE", "10GbE"])


@st.composite
def verbs(draw: st.DrawFn) -> Fabric:
    link = find_link(draw(LINKS))
    protocol = "rocev2" if link.technology == "ethernet" else "ib"
    return Fabric(link=link, protocol=protocol, num_rails=draw(st.integers(1, 8)))


@pytest.mark.parametrize(
    ("link", "protocol", "size", "share"),
    [
        ("EDR", "ib", 64, 64 / 90),
        ("EDR", "ib", 2, 2 / 28),
        ("EDR", "ib", 4096, 4096 / 4122),
        ("EDR", "ib", 4097, 4097 / 4149),
        ("25GbE", "rocev2", 64, 64 / 146),
        ("Omni-Path 100", "opa", 64, 64 / 88),
    ],
)
def test_a_packet_of_its_own_brings_its_headers(
    link: str, protocol: str, size: int, share: float
) -> None:
    fabric = Fabric(link=find_link(link), protocol=protocol)
    ceiling = message_ceiling(fabric, size, packet_each=True)
    assert (ceiling.name, ceiling.resource) == ("packets", "link")
    assert ceiling.high_mb_s == pytest.approx(fabric.link.data_rate_mb_s * share)


@given(verbs(), SIZES)
def test_large_messages_come_as_near_to_the_bound_as_packets_allow(
    fabric: Fabric, size: int
) -> None:
    ceiling = message_ceiling(fabric, size, packet_each=True)
    assert ceiling.high_mb_s <= bound(fabric).high_mb_s * (1 + 1e-12)
    whole = message_ceiling(fabric, 4096 * size, packet_each=True)
    assert whole.high_mb_s == pytest.approx(bound(fabric).high_mb_s)


@given(verbs(), SIZES, st.booleans(), st.booleans())
def test_rails_and_directions_multiply(
    fabric: Fabric, size: int, packet_each: bool, both: bool
) -> None:
    one = message_ceiling(replace(fabric, num_rails=1), size, packet_each=packet_each)
    many = message_ceiling(replace(fabric, bidirectional=both), size, packet_each=packet_each)
    factor = fabric.num_rails * (2 if both else 1)
    assert many.high_mb_s == pytest.approx(one.high_mb_s * factor)


@given(verbs(), SIZES)
def test_a_program_that_may_join_messages_is_never_held_to_packets(
    fabric: Fabric, size: int
) -> None:
    joined = message_ceiling(fabric, size, packet_each=False)
    assert joined.name == "message_rate"
    assert joined.high_mb_s >= message_ceiling(fabric, size, packet_each=True).high_mb_s


@pytest.mark.parametrize("protocol", ["tcp", "tcp-bypass", "iwarp", "udp"])
def test_a_stream_has_no_packets_of_messages(protocol: str) -> None:
    fabric = Fabric(link=find_link("100GbE"), protocol=protocol)
    assert message_ceiling(fabric, 8, packet_each=True).name == "message_rate"
    ipoib = Fabric(link=find_link("EDR"), protocol="ipoib")
    assert message_ceiling(ipoib, 8, packet_each=True).name == "message_rate"


@pytest.mark.parametrize(
    ("link", "adapter_per_s"),
    [
        ("FDR", 35e6),
        ("FDR", 150e6),
        ("EDR", 200e6),
        ("HDR", 215e6),
        ("NDR", 370e6),
        ("HDR100", 370e6),
        ("Omni-Path 100", 160e6),
        ("Slingshot 200", 200e6),
        ("CN5000", 400e6),
        ("XDR", 740e6),
    ],
)
def test_what_vendors_publish_stays_possible(link: str, adapter_per_s: float) -> None:
    fabric = Fabric(link=find_link(link))
    ceiling = message_ceiling(fabric, 8, packet_each=False)
    assert ceiling.high_mb_s >= 1.5 * adapter_per_s * 8 / 1e6
    assert ceiling.resource == "HCA"


def test_unlike_rails_have_no_one_link() -> None:
    fabric = Fabric(link=find_link("QDR"), unlike_rails_high_mb_s=7000.0, num_rails=2)
    assert message_ceiling(fabric, 8, packet_each=True).name == "message_rate"
