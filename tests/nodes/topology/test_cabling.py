"""Rails cabled crosswise: named from the majority, alone, and nothing where there is none."""

from __future__ import annotations

import random as randomness

from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.nodes.topology import Cabling, Hanging, cabling_of

#: node -> switch of each of its rails
Plan = dict[str, list[str]]


def hung(plan: Plan) -> Cabling:
    return cabling_of(
        Hanging(node=node, rail=f"mlx5_{rail}", switch=switch)
        for node, switches in plan.items()
        for rail, switch in enumerate(switches)
    )


@st.composite
def planes(draw: st.DrawFn) -> Plan:
    """Draw leaf groups of three nodes or more; two rails or more on two switches or more."""
    num_rails = draw(st.integers(2, 8))
    leaf_of = [0, 1, *(draw(st.integers(0, 3)) for _ in range(num_rails - 2))]
    return {
        f"n{group}-{number}": [f"g{group}leaf{leaf}" for leaf in leaf_of]
        for group in range(draw(st.integers(1, 4)))
        for number in range(draw(st.integers(3, 9)))
    }


def crossed(draw: st.DataObject, plan: Plan) -> tuple[Plan, str]:
    """Return ``plan`` with two cables of one node exchanged, and which node."""
    node = draw.draw(st.sampled_from(sorted(plan)))
    mine = list(plan[node])
    one = draw.draw(st.integers(0, len(mine) - 1))
    other = draw.draw(
        st.sampled_from([at for at, switch in enumerate(mine) if switch != mine[one]])
    )
    mine[one], mine[other] = mine[other], mine[one]
    return {**plan, node: mine}, node


@given(planes())
@settings(max_examples=60, deadline=None)
def test_a_clean_fabric_names_nobody(plan: Plan) -> None:
    assert hung(plan).against == ()
    assert set(hung(plan).fitting) == set(plan)


@given(planes(), st.data())
@settings(max_examples=100, deadline=None)
def test_one_crossed_node_is_named_alone(plan: Plan, data: st.DataObject) -> None:
    bad, node = crossed(data, plan)
    found = hung(bad)
    assert [each.node for each in found.against] == [node]
    assert found.against[0].is_crossed
    assert set(found.fitting) == set(plan) - {node}
    (first, second) = found.against[0].wrong
    assert {first.rail, second.rail} <= {f"mlx5_{rail}" for rail in range(8)}
    assert first.rail in found.against[0].others[second.switch]


@given(planes(), st.data())
@settings(max_examples=60, deadline=None)
def test_names_are_nothing(plan: Plan, data: st.DataObject) -> None:
    bad, _ = crossed(data, plan)
    switches = sorted({switch for each in bad.values() for switch in each})
    new_nodes = dict(zip(bad, data.draw(st.permutations(sorted(bad))), strict=True))
    new_switches = dict(zip(switches, data.draw(st.permutations(switches)), strict=True))
    renamed = {new_nodes[node]: [new_switches[each] for each in mine] for node, mine in bad.items()}
    before, after = hung(bad), hung(renamed)
    assert [new_nodes[each.node] for each in before.against] == [
        each.node for each in after.against
    ]
    assert before.is_sure is after.is_sure
    assert {new_nodes[node] for node in before.fitting} == set(after.fitting)


def test_all_rails_on_one_leaf_say_nothing() -> None:
    found = hung({f"n{number}": ["leaf", "leaf"] for number in range(20)})
    assert found == Cabling()


def test_two_nodes_of_two_orders_are_open() -> None:
    """Nobody knows which of the two is right, however many others are."""
    others = {f"n{number}": ["a0", "a1"] for number in range(20)}
    found = hung({**others, "x": ["b0", "b1"], "y": ["b1", "b0"]})
    assert (found.against, found.open, found.is_sure) == ((), ("x", "y"), True)


def test_a_node_alone_on_its_switches_is_no_measure() -> None:
    found = hung({"x": ["b0", "b1"]})
    assert (found.fitting, found.against, found.open) == ((), (), ())


def test_few_nodes_are_not_sure() -> None:
    """Of twelve nodes with two rails one crossed is sure, of eleven it is not: 24 of 2048."""
    for number, is_sure in ((3, False), (11, False), (12, True)):
        plan = {f"n{at}": ["a0", "a1"] for at in range(number)}
        assert hung({**plan, "n1": ["a1", "a0"]}).is_sure is is_sure, number


def test_a_third_of_the_nodes_is_an_intention() -> None:
    plan = {f"n{at}": ["a0", "a1"] if at % 3 else ["a1", "a0"] for at in range(300)}
    assert not hung(plan).is_sure


def test_cables_exchanged_between_two_nodes() -> None:
    plan = {f"n{at:02}": ["a0", "a1"] for at in range(20)}
    found = hung({**plan, "n03": ["a1", "a1"], "n04": ["a0", "a0"]})
    assert [(each.node, each.is_crossed) for each in found.against] == [
        ("n03", False),
        ("n04", False),
    ]


def test_rails_plugged_in_at_random_are_hardly_ever_sure() -> None:
    random = randomness.Random(17)
    sure = 0
    for _ in range(1000):
        plan = {f"n{at}": random.sample(["a0", "a1"], 2) for at in range(16)}
        sure += hung(plan).is_sure
    assert sure <= 20


def test_a_node_that_shows_one_rail_takes_no_certainty_from_the_others() -> None:
    """Its link is down or its lldpd silent: it hangs in one order only, whatever the order is."""
    plan = {f"n{at}": ["a0", "a1"] for at in range(40)}
    found = hung({**plan, "loose": ["a0"], "x": ["a1", "a0"], "y": ["a1", "a0"]})
    assert found.is_sure
    assert [(each.node, each.is_crossed) for each in found.against] == [("x", True), ("y", True)]
    assert "loose" in found.fitting


def test_nodes_that_show_one_rail_are_no_evidence_of_an_order() -> None:
    plan = {f"n{at}": ["a0", "a1"] for at in range(3)}
    loose = {f"l{at}": ["a0"] for at in range(40)}
    assert not hung({**plan, **loose, "x": ["a1", "a0"]}).is_sure
