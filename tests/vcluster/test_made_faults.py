"""Faults by place: what is refused, and what the cables are to be where several meet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcluster.errors import ConfigError
from vcluster.plan import Wishes, make_plan
from vcluster.rails import faults
from vcluster.rails.faults import IN, OUT, Fault, Place

#: vc1 to vc3 on leaf 1, vc4 and vc5 on leaf 2
PLAN = make_plan(
    "five", Wishes(nodes=5, leaves=2, rate_bit_s=40_000_000, uplink_bit_s=120_000_000), 6000
)
_RATES = st.none() | st.integers(10**6, 10**8)
_FAULTS = st.builds(
    Fault,
    rate_bit_s=_RATES,
    loss_percent=st.none() | st.floats(0.01, 100),
    direction=st.sampled_from([None, IN, OUT]),
    cut=st.booleans(),
)
_PLACES = st.builds(
    Place,
    host=st.sampled_from(["vc1", "vc2", "vc4", "leaf1", "leaf2", "uplink1"]),
    rail=st.integers(0, 1),
)


def _cable(there: dict[Place, Fault], node: str, rail: int = 0) -> faults.Cable:
    return faults.cable(PLAN, there, PLAN.node(node), rail)


@given(st.dictionaries(_PLACES, _FAULTS, max_size=5))
def test_faults_survive_their_file(there: dict[Place, Fault]) -> None:
    assert faults.from_json(faults.as_json(there)) == there


@given(st.dictionaries(_PLACES, _FAULTS, max_size=5))
def test_a_cable_is_as_planned_unless_it_or_its_leaf_has_a_fault(there: dict[Place, Fault]) -> None:
    for node in PLAN.nodes:
        elsewhere = {
            at: what
            for at, what in there.items()
            if at.rail != 0 or at.host not in {node.name, f"leaf{node.leaf}"}
        }
        assert faults.cable(PLAN, elsewhere, node, 0) == _cable({}, node.name)


def test_what_is_planned_is_healthy() -> None:
    healthy = _cable({}, "vc1")
    assert (healthy.rate_in, healthy.rate_out, healthy.mtu) == (40_000_000, 40_000_000, 1500)
    assert (healthy.lost_in, healthy.lost_out, healthy.senders) == (0, 0, ())
    assert not healthy.cut
    assert faults.uplink(PLAN, {}, 1, 0, IN).rate_bit_s == 120_000_000


@pytest.mark.parametrize(
    ("direction", "rates"),
    [(None, (10**7, 10**7)), (IN, (10**7, 4 * 10**7)), (OUT, (4 * 10**7, 10**7))],
)
def test_a_rate_holds_in_its_direction(direction: str | None, rates: tuple[int, int]) -> None:
    there = {Place(host="vc2", rail=0): Fault(rate_bit_s=10**7, direction=direction)}
    slow = _cable(there, "vc2")
    assert (slow.rate_in, slow.rate_out) == rates


def test_a_leaf_is_all_of_its_cables_and_the_slowest_of_two_faults_counts() -> None:
    there = {
        Place(host="leaf1", rail=0): Fault(rate_bit_s=2 * 10**7),
        Place(host="vc2", rail=0): Fault(rate_bit_s=10**7, direction=IN),
    }
    assert [_cable(there, f"vc{n}").rate_in for n in range(1, 6)] == [
        *(20_000_000, 10_000_000, 20_000_000, 40_000_000, 40_000_000)
    ]
    assert _cable(there, "vc2").rate_out == 20_000_000
    assert _cable(there, "vc2", 1) == _cable({}, "vc2", 1)


def test_two_faults_lose_what_each_loses_of_what_is_left() -> None:
    there = {
        Place(host="leaf1", rail=0): Fault(loss_percent=50.0),
        Place(host="vc1", rail=0): Fault(loss_percent=50.0, direction=OUT),
    }
    assert _cable(there, "vc1").lost_out == pytest.approx(0.75)
    assert _cable(there, "vc1").lost_in == pytest.approx(0.5)


def test_a_fault_of_a_pair_is_at_the_port_of_who_receives() -> None:
    there = {Place(host="vc1", peer="vc4", rail=0): Fault(rate_bit_s=10**7, direction=OUT)}
    (sender,) = _cable(there, "vc4").senders
    assert (sender.host, sender.rate_bit_s, sender.lost) == (11, 10**7, 0)
    assert _cable(there, "vc1").senders == ()
    both = {at: replace(what, direction=None) for at, what in there.items()}
    assert [each.host for each in _cable(both, "vc1").senders] == [14]
    assert _cable(both, "vc2") == _cable({}, "vc2")


def test_an_uplink_has_two_directions() -> None:
    there = {Place(host="uplink2", rail=1): Fault(rate_bit_s=10**7, direction=OUT)}
    assert faults.uplink(PLAN, there, 2, 1, OUT).rate_bit_s == 10**7
    for leaf, rail, way in ((2, 1, IN), (2, 0, OUT), (1, 1, OUT)):
        assert faults.uplink(PLAN, there, leaf, rail, way).rate_bit_s == 120_000_000


def test_all_rails_where_none_is_named() -> None:
    said = [str(at) for at in faults.places(PLAN, "vc1", None, "vc4")]
    assert said == ["vc1-vc4/rail0", "vc1-vc4/rail1"]
    assert [str(at) for at in faults.places(PLAN, "uplink2", "rail1", None)] == ["uplink2/rail1"]


@pytest.mark.parametrize(
    ("host", "interface", "peer", "said"),
    [
        ("vc9", "rail0", None, "no such node"),
        ("leaf3", "rail0", None, "no such leaf"),
        ("uplink0", None, None, "no such leaf"),
        ("vc1", "rail2", None, "no such rail"),
        ("vc1", "rail0", "vc1", "no pair"),
        ("leaf1", "rail0", "vc1", "no pair"),
        ("vc1", "rail0", "leaf1", "no such node"),
    ],
)
def test_a_place_that_is_not_there_is_refused(
    host: str, interface: str | None, peer: str | None, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        faults.places(PLAN, host, interface, peer)


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        (Place(host="leaf1", rail=0), Fault(mtu=1400)),
        (Place(host="uplink1", rail=0), Fault(queue_bytes=5000)),
        (Place(host="vc1", peer="vc2", rail=0), Fault(cut=True)),
        (Place(host="vc1", peer="vc2", rail=0), Fault(firmware="9")),
    ],
)
def test_a_place_that_cannot_have_a_fault_is_refused(place: Place, wanted: Fault) -> None:
    with pytest.raises(ConfigError, match="cannot have this fault"):
        faults.require_fit(PLAN, place, wanted)


def test_a_node_with_one_rail_has_nothing_to_be_crossed_with() -> None:
    place, wanted = Place(host="vc2", rail=0), Fault(crossed=True)
    faults.require_fit(PLAN, place, wanted)
    one = replace(PLAN, rail_rates_bit_s=PLAN.rail_rates_bit_s[:1])
    with pytest.raises(ConfigError, match="no other rail to be crossed with"):
        faults.require_fit(one, place, wanted)


@pytest.mark.parametrize(("host", "rail"), [("vc1", "rail0"), ("leaf1", None), ("uplink1", None)])
def test_only_a_node_has_a_cpu(host: str, rail: str | None) -> None:
    with pytest.raises(ConfigError, match="no CPU"):
        faults.cpu_place(PLAN, host, rail, None)


def test_a_rate_may_be_a_share_of_what_is_planned() -> None:
    node, link = Place(host="vc1", rail=0), Place(host="uplink1", rail=0)
    assert faults.rate_of(PLAN, node, "30%") == 12_000_000
    assert faults.rate_of(PLAN, link, "30%") == 36_000_000
    assert faults.rate_of(PLAN, link, "8mbit") == 8_000_000
    for text in ("0%", "101%", "x%", "%", "inf%", "nan%", "-3%", "0.1%"):
        with pytest.raises(ConfigError):
            faults.rate_of(PLAN, node, text)
    with pytest.raises(ConfigError, match="nothing limits"):
        faults.rate_of(replace(PLAN, uplink_bit_s=None), link, "30%")
