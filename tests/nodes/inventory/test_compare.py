"""What differs between two nodes, and between one node then and now, in the field's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_nodes import NAMES, machine

from fabricproof.nodes.inventory.differences import compare
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.words import meaning_of, name_of, shown


def sentences(first: Machine, second: Machine) -> str:
    return "\n".join(each.sentence for each in compare(first, second))


@pytest.mark.parametrize(
    "words",
    [
        (
            "port mlx5_0:1: PCIe link PCIe 4.0, 16 lanes on cn001, PCIe 4.0, 8 lanes on cn002: "
            "half the PCIe rate on cn002; half the lanes: narrow slot or riser, or the card sits "
            "badly"
        ),
        (
            "link rate 200 Gb/s on cn001, 100 Gb/s on cn002: half the rate on cn002: cable, "
            "transceiver or the other end made it train down"
        ),
        (
            "link width 4X on cn001, 2X on cn002: half the width on cn002: lanes of cable or "
            "connector are lost"
        ),
        "firmware 20.41.1000 on cn001, 20.35.4030 on cn002: mixed firmware",
        (
            "node: kernel 5.14.0-427.el9.x86_64 on cn001, 5.14.0-362.el9.x86_64 on cn002: "
            "another kernel"
        ),
        "MTU 4096 bytes on cn001, 2048 bytes on cn002: less payload in each packet on cn002",
        "PCIe MaxPayload 512 bytes on cn001, 256 bytes on cn002: each PCIe packet carries less",
        "CPU governor performance on cn001, performance x 63 powersave x 1 on cn002",
    ],
)
def test_a_degraded_node_against_a_healthy_one(words: str) -> None:
    assert words in sentences(machine("mlx5-healthy"), machine("mlx5-degraded"))


def test_it_is_the_lesser_side_that_is_named_whichever_comes_first() -> None:
    said = sentences(machine("mlx5-degraded"), machine("mlx5-healthy"))
    assert "half the PCIe rate on cn002" in said
    assert "half the rate on cn002" in said


def test_two_nodes_are_not_compared_by_serials_and_addresses() -> None:
    other = machine("mlx5-new-cable", "cn009")
    assert compare(machine("mlx5-healthy"), other) == ()


def test_a_replaced_cable_is_a_change_of_one_node() -> None:
    (found,) = compare(machine("mlx5-healthy"), machine("mlx5-new-cable"), ("then", "now"))
    assert (found.part, found.fact) == ("interface ib0", "cable_serial")
    assert found.sentence == (
        "interface ib0: serial of the cable MT2217VS05123 on then, MT2301VS00042 on now: "
        "the cable was replaced"
    )


def test_an_interface_that_is_called_otherwise_is_found_by_its_card() -> None:
    found = compare(machine("bnxt-healthy"), machine("bnxt-degraded"))
    assert [each.fact for each in found if each.fact in {"name", ""}] == ["name"]
    said = "\n".join(each.sentence for each in found)
    assert "enp97s0f0np0 of eth01 is called enp182s0f0np0 on eth02" in said
    assert "link rate 25000 Mb/s on eth01, 10000 Mb/s on eth02: 40% of the rate on eth02" in said
    assert "NUMA node 0 on eth01, 1 on eth02" in said
    assert "offloads GRO on eth01, no other on eth02: CPU per packet differs" in said


def test_a_missing_rail_is_named() -> None:
    whole = machine("mlx5-healthy")
    facts = {part: each for part, each in whole.facts.items() if not part.startswith("port")}
    (found,) = compare(whole, Machine(node="cn002", facts=facts))
    assert found.sentence.startswith("port mlx5_0:1 is on cn001 only: missing, not seen")
    (turned,) = compare(Machine(node="cn002", facts=facts), whole)
    assert turned.sentence.startswith("port mlx5_0:1 is on cn001 only")


def test_what_one_side_could_not_read_is_not_known_there_and_means_nothing() -> None:
    said = sentences(machine("mlx5-healthy"), machine("mlx5-user"))
    assert "port mlx5_0:1: PCIe MaxPayload 512 bytes on cn001, not known on cn003" in said
    assert "half" not in said


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_does_not_differ_from_itself(name: str) -> None:
    assert compare(machine(name), machine(name)) == ()


VALUES = st.one_of(st.integers(0, 9), st.sampled_from(["4.0x8", "4.0x16", "2X", "4X", "x"]))
FACTS = st.dictionaries(st.sampled_from(["pcie", "width", "mtu", "mac", "new_fact"]), VALUES)
MACHINES = st.dictionaries(st.sampled_from(["node", "interface a", "interface b"]), FACTS)


@given(first=MACHINES, second=MACHINES)
def test_both_ways_find_as_much_and_nothing_means_the_same_kind(
    first: dict[str, dict[str, Value]], second: dict[str, dict[str, Value]]
) -> None:
    one, other = Machine(node="n", facts=first), Machine(node="n", facts=second)
    there, back = compare(one, other, ("a", "b")), compare(other, one, ("b", "a"))
    assert len(there) == len(back)
    assert (not there) == (first == second)


@pytest.mark.parametrize(
    ("fact", "first", "second", "words"),
    [
        ("pcie", "3.0x8", "4.0x8", "an older generation"),
        ("pcie", "4.0x4", "4.0x16", "a quarter of the PCIe rate on a"),
        ("pcie", "strange", "4.0x16", "another share"),
        ("speed_mbit_s", 10_000, 0, "none of the rate on b"),
        ("width", "4X", "odd", "a lane of cable"),
        ("new_fact", 1, 2, ""),
    ],
)
def test_what_a_difference_may_mean(fact: str, first: Value, second: Value, words: str) -> None:
    said = meaning_of(fact, first, second, ("a", "b"))
    assert words in said
    assert bool(said) == bool(words)


def test_a_fact_without_a_word_of_its_own_is_shown_by_its_name() -> None:
    assert (name_of("new_fact"), shown("new_fact", 3)) == ("new fact", "3")
