"""Laws of the ceilings, and the guards of a fabric."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError, UnknownLinkError
from fabricproof.physics import (
    CLOCK_TOLERANCE,
    Ceiling,
    Fabric,
    binding,
    bound,
    ceilings,
    find_link,
    find_slot,
    known_links,
)
from fabricproof.physics.model import make_slot
from fabricproof.physics.protocols import known_protocols

PAYLOADS = [128, 256, 512, 1024, 2048, 4096]
LANES = [1, 2, 4, 8, 12, 16, 32]


@st.composite
def fabrics(draw: st.DrawFn, *, with_slot: bool = False) -> Fabric:
    """Any fabric that can be."""
    link = draw(st.sampled_from(list(known_links().values())))
    spoken = [row for row in known_protocols().values() if link.technology in row.technologies]
    protocol = draw(st.sampled_from(spoken))
    mtus: list[Any] = [None]
    if not isinstance(protocol.mtus, range):
        mtus += protocol.mtus
    else:
        mtus += [576, 1280, 1500, 4200, 9000, 9216, 65535]
    slots = st.builds(make_slot, st.integers(1, 6), st.sampled_from(LANES))
    slot = draw(slots if with_slot else st.none() | slots)
    return Fabric(
        link=link,
        protocol=protocol,
        mtu=draw(st.sampled_from(mtus)),
        slot=slot,
        max_payload_bytes=draw(st.sampled_from([None, *PAYLOADS])) if slot else None,
        num_rails=draw(st.integers(1, 8)),
        rails_share_slot=draw(st.booleans()) if slot else False,
        flow_limit_gbit_s=draw(st.none() | st.floats(0.01, 1000)),
        num_flows=draw(st.integers(1, 64)),
        bidirectional=draw(st.booleans()),
        capability_mb_s=draw(st.none() | st.floats(1, 1e6)),
    )


def assert_nowhere_lower(more: Fabric, less: Fabric) -> None:
    for higher, lower in zip(ceilings(more), ceilings(less), strict=True):
        assert higher.name == lower.name
        assert higher.low_mb_s >= lower.low_mb_s * (1 - 1e-12)
        assert higher.nominal_mb_s >= lower.nominal_mb_s * (1 - 1e-12)
        assert higher.high_mb_s >= lower.high_mb_s * (1 - 1e-12)
    assert bound(more).nominal_mb_s >= bound(less).nominal_mb_s * (1 - 1e-12)


@given(fabrics())
def test_low_nominal_and_high_are_ordered_and_positive(fabric: Fabric) -> None:
    for ceiling in (*ceilings(fabric), bound(fabric)):
        assert 0 < ceiling.low_mb_s <= ceiling.nominal_mb_s <= ceiling.high_mb_s < float("inf")
        assert ceiling.formula
        assert ceiling.source


@given(fabrics())
def test_the_binding_ceiling_is_the_lowest_and_gives_the_bound(fabric: Fabric) -> None:
    limits = ceilings(fabric)
    binds = binding(limits)
    total = bound(fabric)
    assert binds in limits
    assert binds.nominal_mb_s == min(ceiling.nominal_mb_s for ceiling in limits)
    assert (total.name, total.nominal_mb_s) == (binds.name, binds.nominal_mb_s)
    assert total.low_mb_s == min(ceiling.low_mb_s for ceiling in limits)
    assert total.high_mb_s == min(ceiling.high_mb_s for ceiling in limits)


@given(fabrics(), st.integers(1, 8))
def test_more_rails_never_lower_a_ceiling(fabric: Fabric, more: int) -> None:
    assert_nowhere_lower(replace(fabric, num_rails=fabric.num_rails + more), fabric)


@given(fabrics())
def test_one_rail_never_beats_many(fabric: Fabric) -> None:
    one = replace(fabric, num_rails=1)
    gain = bound(fabric).nominal_mb_s / bound(one).nominal_mb_s
    assert 1 - 1e-12 <= gain <= fabric.num_rails * (1 + 1e-12)


@given(fabrics(with_slot=True))
def test_slots_of_their_own_never_lower_what_a_shared_slot_allows(fabric: Fabric) -> None:
    shared = replace(fabric, rails_share_slot=True)
    assert_nowhere_lower(replace(fabric, rails_share_slot=False), shared)


@given(fabrics(), st.data())
def test_a_larger_mtu_never_lowers_a_ceiling(fabric: Fabric, data: st.DataObject) -> None:
    assume(fabric.framing.mtus)
    is_range = isinstance(fabric.framing.mtus, range)
    choices = (576, 1500, 4000, 9000, 65535) if is_range else fabric.framing.mtus
    small, large = sorted(data.draw(st.tuples(*[st.sampled_from(choices)] * 2)))
    assert_nowhere_lower(replace(fabric, mtu=large), replace(fabric, mtu=small))


@given(fabrics(with_slot=True), st.tuples(st.sampled_from(PAYLOADS), st.sampled_from(PAYLOADS)))
def test_a_larger_max_payload_never_lowers_a_ceiling(fabric: Fabric, pair: tuple[int, int]) -> None:
    less, more = (replace(fabric, max_payload_bytes=payload) for payload in sorted(pair))
    assert_nowhere_lower(more, less)


@given(fabrics(with_slot=True), st.tuples(st.sampled_from(LANES), st.sampled_from(LANES)))
def test_more_lanes_never_lower_a_ceiling(fabric: Fabric, pair: tuple[int, int]) -> None:
    assert fabric.slot is not None
    less, more = (
        replace(fabric, slot=make_slot(fabric.slot.generation, lanes)) for lanes in sorted(pair)
    )
    assert_nowhere_lower(more, less)


@given(fabrics(with_slot=True), st.integers(1, 5), st.integers(1, 5))
def test_a_newer_generation_never_lowers_a_ceiling(fabric: Fabric, older: int, steps: int) -> None:
    assert fabric.slot is not None
    newer = min(6, older + steps)
    less, more = (
        replace(fabric, slot=make_slot(generation, fabric.slot.lanes))
        for generation in (older, newer)
    )
    assert_nowhere_lower(more, less)


@given(fabrics(), st.integers(1, 64))
def test_more_flows_never_lower_a_ceiling(fabric: Fabric, more: int) -> None:
    assert_nowhere_lower(replace(fabric, num_flows=fabric.num_flows + more), fabric)


@given(fabrics())
def test_both_directions_carry_at_most_twice_and_at_least_as_much(fabric: Fabric) -> None:
    one = replace(fabric, bidirectional=False, capability_mb_s=None)
    both = replace(one, bidirectional=True)
    for single, double in zip(ceilings(one), ceilings(both), strict=True):
        assert double.nominal_mb_s == pytest.approx(2 * single.nominal_mb_s)
        assert double.high_mb_s == pytest.approx(2 * single.high_mb_s)
        assert single.low_mb_s < double.low_mb_s <= 2 * single.low_mb_s * (1 + 1e-12)


@given(fabrics(with_slot=True))
def test_stating_what_was_left_out_never_widens_the_interval_beyond_the_unstated_one(
    fabric: Fabric,
) -> None:
    unstated = ceilings(replace(fabric, max_payload_bytes=None))[3]
    stated = [ceilings(replace(fabric, max_payload_bytes=size))[3] for size in PAYLOADS[1:]]
    assert unstated.low_mb_s == pytest.approx(min(ceiling.low_mb_s for ceiling in stated))
    assert unstated.high_mb_s == pytest.approx(max(ceiling.high_mb_s for ceiling in stated))


def test_where_everything_is_stated_the_link_and_its_protocol_are_one_number() -> None:
    fabric = Fabric(link=find_link("FDR"), mtu=2048, slot=find_slot("3.0x8"), max_payload_bytes=256)
    for ceiling in ceilings(fabric)[:3]:
        assert ceiling.low_mb_s == ceiling.nominal_mb_s == ceiling.high_mb_s


def test_without_a_slot_there_is_no_slot_ceiling() -> None:
    assert [c.name for c in ceilings(Fabric(link=find_link("FDR")))] == ["link", "protocol"]


def test_all_ceilings_in_order_and_what_each_belongs_to() -> None:
    fabric = Fabric(
        link=find_link("100GbE"),
        slot=find_slot("3.0x16"),
        flow_limit_gbit_s=10,
        capability_mb_s=2853,
    )
    assert [(c.name, c.resource) for c in ceilings(fabric)] == [
        ("link", "link"),
        ("protocol", "link"),
        ("slot", "slot"),
        ("slot_packet", "slot"),
        ("flow", "flow limit"),
        ("capability", "host"),
    ]


def test_a_declared_capability_binds_but_makes_nothing_impossible() -> None:
    physics = Fabric(link=find_link("100GbE"))
    declared = bound(replace(physics, capability_mb_s=2853))
    assert (declared.name, declared.nominal_mb_s) == ("capability", 2853)
    assert declared.high_mb_s == bound(physics).high_mb_s


def test_formulas_can_be_followed_with_a_calculator() -> None:
    fabric = Fabric(
        link=find_link("QDR"), mtu=2048, slot=find_slot("2.0x8"), max_payload_bytes=128, num_rails=2
    )
    formulas = {ceiling.name: ceiling.formula for ceiling in ceilings(fabric)}
    assert formulas == {
        "link": "4 x 10 Gb/s x 8/10 / 8 x 2 rails",
        "protocol": "8000 x 2048/2074",
        "slot": "8 lanes x 5 GT/s x 8/10 / 8 x 2 rails",
        "slot_packet": "8000 x 128/152",
    }


def test_a_flit_slot_shows_the_flit_in_its_formula() -> None:
    fabric = Fabric(link=find_link("XDR"), slot=find_slot("6.0x16"), max_payload_bytes=512)
    assert ceilings(fabric)[3].formula == "121000 x 236/242 x 512/528"
    assert ceilings(fabric)[3].nominal_mb_s == pytest.approx(121000 * 236 / 242 * 512 / 528)


def test_excluded_is_above_high_by_more_than_clocks_can_err() -> None:
    ceiling = bound(Fabric(link=find_link("40GbE")))
    assert not ceiling.excludes(ceiling.high_mb_s)
    assert not ceiling.excludes(ceiling.high_mb_s * (1 + 0.9 * CLOCK_TOLERANCE))
    assert ceiling.excludes(ceiling.high_mb_s * (1 + 1.1 * CLOCK_TOLERANCE))


def test_the_first_of_equal_ceilings_binds() -> None:
    def ceiling(name: str) -> Ceiling:
        return Ceiling(name=name, low_mb_s=1, nominal_mb_s=1, high_mb_s=1, formula="", source="")

    assert binding([ceiling("link"), ceiling("slot")]).name == "link"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_rails": 0}, "num_rails is out of range"),
        ({"num_rails": 1.5}, "num_rails is out of range"),
        ({"num_flows": 0}, "num_flows is out of range"),
        ({"flow_limit_gbit_s": 0.0}, "flow_limit_gbit_s is out of range"),
        ({"flow_limit_gbit_s": float("nan")}, "flow_limit_gbit_s is out of range"),
        ({"capability_mb_s": -1.0}, "capability_mb_s is out of range"),
        ({"mtu": 1500}, "no MTU 1500 with ib: expected one of 256, 512, 1024, 2048, 4096"),
        ({"max_payload_bytes": 100}, "MaxPayload: expected one of 128, 256, 512, 1024, 2048, 4096"),
        ({"max_payload_bytes": 8192}, "got 8192"),
        ({"slot": None, "max_payload_bytes": 256}, "without the slot"),
        ({"slot": None, "rails_share_slot": True}, "without the slot"),
        (
            {"protocol": "tcp"},
            "protocol tcp does not run over infiniband.*over this link: ib, ipoib",
        ),
    ],
)
def test_a_fabric_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    fabric = Fabric(link=find_link("QDR"), slot=find_slot("3.0x8"))
    with pytest.raises(ConfigError, match=message):
        replace(fabric, **changes)


def test_an_unknown_protocol_is_refused_when_the_fabric_is_made() -> None:
    with pytest.raises(UnknownLinkError, match="quic"):
        Fabric(link=find_link("1GbE"), protocol="quic")
