"""Soft-RoCE as a link of its own: its names, its ceilings, what it has not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError, UnknownLinkError
from fabricproof.physics import (
    Fabric,
    Shaper,
    bound,
    ceilings,
    find_link,
    find_slot,
    known_links,
    latency_floor_us,
    soft_roce_link,
)

RATES = st.floats(min_value=1e-3, max_value=400).map(lambda rate: float(f"{rate:.6g}"))
MTUS = st.sampled_from([256, 512, 1024, 2048, 4096])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Soft-RoCE 100 Mb/s", "Soft-RoCE 100 Mb/s"),
        ("soft roce 100M", "Soft-RoCE 100 Mb/s"),
        ("SoftRoCE 100Mbit/s", "Soft-RoCE 100 Mb/s"),
        ("soft_roce 0.1 Gb/s", "Soft-RoCE 100 Mb/s"),
        ("Soft-RoCEv2 100 Mbps", "Soft-RoCE 100 Mb/s"),
        ("rxe 100 Mb/s", "Soft-RoCE 100 Mb/s"),
        ("rdma_rxe 100mbit", "Soft-RoCE 100 Mb/s"),
        ("100 Mb/s Soft-RoCE", "Soft-RoCE 100 Mb/s"),
        ("100MbE soft-roce", "Soft-RoCE 100 Mb/s"),
        ("Soft-RoCE 100GbE", "Soft-RoCE 100 Gb/s"),
        ("rxe 2.5G", "Soft-RoCE 2.5 Gb/s"),
        ("Soft-RoCE 2500 kbit/s", "Soft-RoCE 2.5 Mb/s"),
        ("Soft-RoCE 1000 kb/s", "Soft-RoCE 1 Mb/s"),
        ("Soft-RoCE 0.4 Tb/s", "Soft-RoCE 400 Gb/s"),
    ],
)
def test_the_ways_people_write_it(text: str, name: str) -> None:
    link = find_link(text)
    assert (link.name, link.technology, link.is_soft) == (name, "soft-roce", True)
    assert find_link(f"  {text.upper()} ") == link


@pytest.mark.parametrize(
    "text",
    ["Soft-RoCE", "rxe", "Soft-RoCE 100", "Soft-RoCE 0 Mb/s", "Soft-RoCE EDR 4x", "rxe -1 Gb/s",
     "Soft-RoCE 1 Gb/s 1 Gb/s", "Soft-RoCE fast", "Soft-RoCE 100 MB/s", "rxe 1GB",
     "Soft-RoCE 999 kb/s", "rxe 401G", "Soft-RoCE 0.0000000000001 Mb/s"],
)  # fmt: skip
def test_without_a_rate_it_is_refused_and_told_how_to_state_one(text: str) -> None:
    with pytest.raises(UnknownLinkError, match="no rate of its own") as caught:
        find_link(text)
    assert "'Soft-RoCE 100 Mb/s'" in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "tc qdisc show" in (caught.value.next_step or "")


@pytest.mark.parametrize("rate", [0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(UnknownLinkError, match="no rate of its own"):
        soft_roce_link(rate)


def test_no_other_link_is_soft() -> None:
    assert not any(link.is_soft for link in known_links().values())
    # a port's name is no link
    with pytest.raises(UnknownLinkError, match="unknown link"):
        find_link("rxe0 100 Mb/s")


@given(RATES)
def test_its_name_finds_it_again(rate: float) -> None:
    link = soft_roce_link(rate)
    assert find_link(link.name).data_rate_gbit_s == pytest.approx(rate, rel=1e-9)
    assert find_link(link.name).name == link.name


@given(RATES, MTUS | st.none(), st.integers(1, 4), st.booleans())
def test_ceilings_scale_with_the_rate_and_are_ordered(
    rate: float, mtu: int | None, rails: int, both: bool
) -> None:
    one = bound(Fabric(link=soft_roce_link(1.0), mtu=mtu, num_rails=rails, bidirectional=both))
    this = bound(Fabric(link=soft_roce_link(rate), mtu=mtu, num_rails=rails, bidirectional=both))
    assert this.low_mb_s <= this.nominal_mb_s <= this.high_mb_s
    wire = rate * 125 * rails * (2 if both else 1)
    assert 0 < this.high_mb_s < wire
    for name in ("low_mb_s", "nominal_mb_s", "high_mb_s"):
        assert getattr(this, name) == pytest.approx(getattr(one, name) * rate)


@given(RATES, MTUS, MTUS)
def test_a_larger_path_mtu_carries_more(rate: float, first: int, second: int) -> None:
    small, large = sorted((first, second))
    link = soft_roce_link(rate)
    less, more = (bound(Fabric(link=link, mtu=mtu)) for mtu in (small, large))
    assert less.low_mb_s <= more.low_mb_s
    assert less.high_mb_s <= more.high_mb_s


@given(RATES, MTUS)
def test_it_carries_what_rocev2_carries_on_a_wire_and_no_more_than_the_packets_leave(
    rate: float, mtu: int
) -> None:
    soft = bound(Fabric(link=soft_roce_link(rate), protocol="rocev2", mtu=mtu))
    assert soft == bound(Fabric(link=soft_roce_link(rate), mtu=mtu))  # its usual protocol
    assert soft.nominal_mb_s == pytest.approx(rate * 125 * mtu / (mtu + 58 + 24))
    # Linux counts what it hands to the device: 58 of headers; tbf adds the rest where it is told to
    assert soft.high_mb_s == pytest.approx(rate * 125 * mtu / (mtu + 58))


def test_the_rate_through_a_plain_token_bucket_is_possible() -> None:
    # ib_write_bw through `tbf rate 100mbit` without stab, path MTU 4096: 0.0985 Gb/s
    limit = bound(Fabric(link=find_link("Soft-RoCE 100 Mb/s"), mtu=4096))
    assert limit.low_mb_s < 0.0985 * 125 < limit.high_mb_s


def test_more_than_the_shaper_lets_through_is_impossible() -> None:
    for limit in ceilings(Fabric(link=find_link("Soft-RoCE 100 Mb/s"), mtu=4096)):
        assert limit.excludes(12.6)


@given(RATES, MTUS | st.none(), st.integers(0, 2**24))
def test_its_floor_is_the_kernels_and_not_an_adapters(
    rate: float, mtu: int | None, size: int
) -> None:
    fabric = Fabric(link=soft_roce_link(rate), mtu=mtu)
    floor = latency_floor_us(fabric, size)
    assert floor.us == pytest.approx(1.0 + size / bound(fabric).high_mb_s)
    assert "kernel" in floor.source
    # between an adapter and the kernel's UDP, which has a system call more
    adapter = latency_floor_us(Fabric(link=find_link("100GbE"), protocol="rocev2"), 0).us
    kernel = latency_floor_us(Fabric(link=find_link("100GbE"), protocol="udp"), 0).us
    assert adapter < latency_floor_us(fabric, 0).us < kernel


@given(st.integers(1, 65536), st.integers(0, 2**20))
def test_a_shaper_lets_its_bucket_pass_at_once(burst: int, size: int) -> None:
    link = find_link("Soft-RoCE 100 Mb/s")
    shaper = Shaper(burst_bytes=burst, instant_bytes=burst)
    shaped = latency_floor_us(Fabric(link=link, mtu=4096, shaper=shaper), size).us
    assert 1.0 <= shaped <= latency_floor_us(Fabric(link=link, mtu=4096), size).us
    assert shaped == pytest.approx(1.0) if size <= burst else shaped > 1.0


def test_it_has_no_slot() -> None:
    with pytest.raises(ConfigError, match="has no PCIe slot"):
        Fabric(link=find_link("rxe 1G"), slot=find_slot("3.0x8"))


@pytest.mark.parametrize("protocol", ["ib", "tcp", "ipoib", "udp"])
def test_only_rocev2_runs_over_it(protocol: str) -> None:
    with pytest.raises(ConfigError, match="does not run over soft-roce") as caught:
        Fabric(link=find_link("rxe 1G"), protocol=protocol)
    assert "rocev2" in (caught.value.next_step or "")


def test_its_mtu_is_the_path_mtu_of_the_queue_pair() -> None:
    with pytest.raises(ConfigError, match="256, 512, 1024, 2048, 4096"):
        Fabric(link=find_link("rxe 1G"), mtu=4200)
