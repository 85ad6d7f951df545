"""What differs between the sides, what cannot be told apart, and what the order in time says."""

from __future__ import annotations

from pathlib import Path

from made import Made, nights, node_facts

from fabricproof.history.compare.changes import causes
from fabricproof.history.compare.model import FieldChange

BEFORE, AFTER = "2026-11-01..2026-11-10", "2026-11-11.."


def test_the_field_that_changed_is_named_with_values_and_nodes(tmp_path: Path) -> None:
    """Firmware on every node is one line: old, new, where."""
    made = Made(tmp_path)
    nights(made, range(1, 4))
    nights(made, range(11, 14), facts=node_facts(firmware="28.41.1000"))
    found = made.compare(BEFORE, AFTER)
    assert {(each.part, each.fact, each.first, each.second) for each in found.changes} == {
        ("interface rail0", "firmware", "28.39.1002", "28.41.1000"),
        ("interface rail1", "firmware", "28.39.1002", "28.41.1000"),
    }
    assert {each.nodes for each in found.changes} == {("n1", "n2", "n3")}
    assert not any("tell them apart" in each for each in found.warnings)


def test_firmware_and_kernel_together_cannot_be_told_apart(tmp_path: Path) -> None:
    """Two independent fields are one warning that names both."""
    made = Made(tmp_path)
    nights(made, range(1, 4))
    nights(made, range(11, 14), facts=node_facts(firmware="28.41.1000", kernel="6.6.1"))
    found = made.compare(BEFORE, AFTER)
    assert (
        "firmware and kernel both changed: this comparison cannot tell them apart" in found.warnings
    )


def test_a_card_that_was_replaced_is_one_cause(tmp_path: Path) -> None:
    """MAC and GUID change together with a card: no two causes."""

    def change(fact: str) -> FieldChange:
        return FieldChange(
            part="interface rail0", fact=fact, nodes=("n1",), first="1", second="2", sentence=""
        )

    assert len(causes([change("mac"), change("guid"), change("addresses")])) == 1
    assert len(causes([change("rate_gbit_s"), change("width")])) == 1
    assert causes([change("mac"), change("mtu")]) == ("MTU", "parts replaced or moved")


def test_a_field_that_varies_within_a_side_is_warned_of(tmp_path: Path) -> None:
    """A side that is half old and half new is no one state."""
    made = Made(tmp_path)
    nights(made, range(1, 4))
    nights(made, (11, 12), facts=node_facts(rail1_mtu=1400))
    nights(made, (13, 14))
    found = made.compare(BEFORE, AFTER)
    assert any(
        "interface rail1: MTU changed within the second side" in each for each in found.warnings
    )
    assert all(each.partly for each in found.changes)


SAME, OTHER = "0a" * 32, "0b" * 32


def test_nodes_that_nobody_looked_at_are_said(tmp_path: Path) -> None:
    """Without an inventory nobody can say that nothing else changed."""
    made = Made(tmp_path)
    nights(made, range(1, 4))
    nights(made, range(11, 14), facts={"n1": None, "n2": node_facts(), "n3": node_facts()})
    for side, words in (("second", (BEFORE, AFTER)), ("first", (AFTER, BEFORE))):
        found = made.compare(*words)
        assert any(f"3 of 3 runs of the {side} side" in each for each in found.warnings)
        assert found.changes == ()


def test_builds_that_changed_are_said(tmp_path: Path) -> None:
    """Of a stack that was built anew nothing is compared, and it says why."""
    made = Made(tmp_path)
    nights(made, range(1, 4), stacks={"openmpi5": "a" * 64, "mpich5": "b" * 64})
    nights(made, range(11, 14), stacks={"openmpi5": "a" * 64, "mpich5": "c" * 64})
    found = made.compare(BEFORE, AFTER)
    assert [each.part for each in found.changes] == ["stack mpich5"]


def test_sides_that_alternate_are_fine_and_said(tmp_path: Path) -> None:
    """A run of one side between two of the other is no fault."""
    made = Made(tmp_path)
    ids = nights(made, range(1, 9))
    found = made.compare(",".join(ids[::2]), ",".join(ids[1::2]))
    assert any("alternate in time" in each for each in found.warnings)


def test_a_first_side_that_is_the_later_one_is_said(tmp_path: Path) -> None:
    """B before A reads backwards: the warning says whose words these are."""
    made = Made(tmp_path)
    nights(made, range(1, 4))
    nights(made, range(11, 14))
    found = made.compare(AFTER, BEFORE)
    assert any("is the later one" in each for each in found.warnings)
