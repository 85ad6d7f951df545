"""Rails on Ethernet cabled crosswise, as LLDP shows it."""

from __future__ import annotations

from seen_nodes import fabric, nodes, written

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.preflight.judge import preflight
from fabricproof.nodes.preflight.sight import Preflight

ETHERNET = {"link": "200MbE", "rails": [{"interface": "eth0"}, {"interface": "eth1"}]}


def node(name: str, *switches: str) -> Machine:
    parts = {
        f"interface eth{rail}": {"switch": switch, "switch_id": f"mac of {switch}"}
        for rail, switch in enumerate(switches)
    }
    return written(name, {part: dict(facts) for part, facts in parts.items()})


def cluster(number: int, *odd: Machine) -> Preflight:
    plain = [node(f"n{at:02}", "leaf0", "leaf1") for at in range(number)]
    return preflight(fabric(**ETHERNET), nodes(*plain, *odd))


def cabling(result: Preflight) -> list[Finding]:
    return [each for each in result.findings if each.fact == "cabling"]


def notes(result: Preflight) -> list[str]:
    return [each.text for each in result.notes if "LLDP" in each.text]


def test_a_crossed_node_is_red_on_both_its_rails() -> None:
    found = cabling(cluster(15, node("n99", "leaf1", "leaf0")))
    assert [(each.verdict, each.where.hosts, each.where.rail) for each in found] == [
        (Verdict.FAIL, ("n99",), "eth0"),
        (Verdict.FAIL, ("n99",), "eth1"),
    ]
    assert found[0].reason == (
        "eth0 on n99 is crossed: it hangs on leaf1 (mac of leaf1), where other nodes have eth1 "
        "(LLDP)"
    )


def test_a_node_that_shows_one_rail_clears_no_other() -> None:
    odd = (node("n97", "leaf1", "leaf0"), node("n99", "leaf1", "leaf0"))
    found = cabling(cluster(40, node("n98", "leaf0"), *odd))
    assert [each.where.hosts for each in found if each.where.rail == "eth0"] == [("n97",), ("n99",)]
    assert {each.verdict for each in found} == {Verdict.FAIL}


def test_nodes_that_hang_alike_say_nothing() -> None:
    assert cabling(cluster(16)) == []
    assert notes(cluster(16)) == []


def test_of_few_nodes_it_is_a_note() -> None:
    result = cluster(3, node("n99", "leaf1", "leaf0"))
    assert cabling(result) == []
    assert len(notes(result)) == 2
    assert notes(result)[0].endswith("; 3 nodes are cabled alike, too few to judge")


def test_a_cable_in_the_wrong_switch() -> None:
    (found,) = cabling(cluster(15, node("n99", "leaf0", "leaf0")))
    assert (found.where.rail, found.verdict) == ("eth1", Verdict.FAIL)
    assert "is in the wrong switch" in found.reason


def test_switches_of_one_name_are_told_apart_by_their_id() -> None:
    """Factory names: all switches call themselves sonic."""
    plain = [node(f"n{at:02}", "leaf0", "leaf1") for at in range(16)]
    same = [
        written(
            each.node, {part: {**facts, "switch": "sonic"} for part, facts in each.facts.items()}
        )
        for each in [*plain, node("n99", "leaf1", "leaf0")]
    ]
    assert len(cabling(preflight(fabric(**ETHERNET), nodes(*same)))) == 2


def test_where_nobody_asked_lldp_nothing_is_said() -> None:
    silent = [written(f"n{at}", {"interface eth0": {}, "interface eth1": {}}) for at in range(9)]
    assert cabling(preflight(fabric(**ETHERNET), nodes(*silent))) == []


def test_what_the_site_declares_needs_no_majority() -> None:
    rails = [
        {"interface": "eth0", "switches": ["leaf0*"]},
        {"interface": "eth1", "switches": ["leaf1*", "spare"]},
    ]
    declared = {**ETHERNET, "rails": rails}
    good, crossed = node("n01", "leaf0", "leaf1"), node("n02", "leaf1", "leaf0")
    moved = node("n03", "leaf0", "core")
    found = cabling(preflight(fabric(**declared), nodes(good, crossed, moved)))
    assert [(each.verdict, each.where.hosts, each.where.rail) for each in found] == [
        (Verdict.FAIL, ("n02",), "eth0"),
        (Verdict.FAIL, ("n02",), "eth1"),
        (Verdict.FAIL, ("n03",), "eth1"),
    ]
    assert "which the site declares for eth1 (LLDP)" in found[0].reason
    assert "which the site declares for no rail (LLDP)" in found[2].reason
    # A switch that tells no name may be the right one.
    mute = written(
        "n04", {"interface eth0": {"switch_id": "m"}, "interface eth1": {"switch_id": "n"}}
    )
    assert cabling(preflight(fabric(**declared), nodes(good, mute))) == []
    # All but one crossed: the majority would have it the other way round.
    most = [node(f"n{at:02}", "leaf1", "leaf0") for at in range(2, 17)]
    wrong = {
        each.where.hosts[0] for each in cabling(preflight(fabric(**declared), nodes(good, *most)))
    }
    assert wrong == {f"n{at:02}" for at in range(2, 17)}
