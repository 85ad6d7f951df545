"""Sides that cannot stand against each other: one clear sentence each, and what would help."""

from __future__ import annotations

from pathlib import Path

import pytest
from made import Made, nights

from fabricproof.history.compare.model import NothingComparedError, SideError

BEFORE, AFTER = "2026-11-01..2026-11-10", "2026-11-11.."


def test_a_run_on_both_sides_is_refused_by_name(tmp_path: Path) -> None:
    """A run cannot be before and after: the message names it."""
    made = Made(tmp_path)
    ids = nights(made, range(1, 5))
    with pytest.raises(SideError, match=rf"2 runs on both sides: {ids[1]}, {ids[2]}"):
        made.compare("2026-11-01..2026-11-03", "2026-11-02..")


@pytest.mark.parametrize(
    ("after", "field"),
    [
        ({"stacks": {"openmpi5": "b" * 64}}, "build"),
        ({"tool_version": "7.5"}, "tool_version"),
        ({"attributes": {"num_pairs": 2}}, "settings"),
        ({"partition": "gpu"}, "partition"),
        ({"stacks": {"mpich5": "a" * 64}}, "stack"),
    ],
)
def test_no_common_quantity_says_which_field_differs(
    tmp_path: Path, after: dict[str, object], field: str
) -> None:
    """Another build, version, setting, partition or stack is never joined in silence."""
    made = Made(tmp_path)
    nights(made, range(1, 4))
    nights(made, range(11, 14), **after)
    with pytest.raises(NothingComparedError, match=rf"{field} .* against .*--across {field}"):
        made.compare(BEFORE, AFTER)


@pytest.mark.parametrize(
    ("after", "field"),
    [({"stacks": {"openmpi5": "b" * 64}}, "build"), ({"tool_version": "7.5"}, "tool_version")],
)
def test_across_joins_what_may_differ_and_says_so(
    tmp_path: Path, after: dict[str, object], field: str
) -> None:
    """Asked for, unlike builds stand against each other, the key says ``*`` and a warning so."""
    made = Made(tmp_path)
    nights(made, range(1, 7))
    nights(made, range(11, 17), **after)
    found = made.compare(BEFORE, AFTER, across=(field,))
    assert {getattr(each.key, field) for each in found.quantities} == {"*"}
    assert any(f"unlike {field}" in each for each in found.warnings)


@pytest.mark.parametrize("field", ["quantity", "unit", "message_size", "nonsense"])
def test_across_what_is_measured_is_refused(tmp_path: Path, field: str) -> None:
    """A latency never stands against a bandwidth, nor 4 MiB against 8 bytes."""
    made = Made(tmp_path)
    nights(made, (1, 11))
    with pytest.raises(SideError, match=f"--across {field}"):
        made.compare(BEFORE, AFTER, across=(field,))


def test_unlike_units_are_not_compared(tmp_path: Path) -> None:
    """MB/s against MiB/s has no common quantity, and the message says the unit."""
    made = Made(tmp_path)
    nights(made, range(1, 3), metrics=("bandwidth",))
    nights(made, range(11, 13), metrics=("bandwidth",))
    for line in made.lines:
        if line["run_id"] > "20261111" and line["kind"] == "quantity":
            line["quantity_unit"] = "MiB/s"
    with pytest.raises(NothingComparedError, match="unit MB/s against MiB/s"):
        made.compare(BEFORE, AFTER)


def test_a_side_without_usable_numbers_is_empty(tmp_path: Path) -> None:
    """Runs in which everything failed are no side."""
    made = Made(tmp_path)
    nights(made, range(1, 3))
    nights(made, range(11, 13), verdict=lambda _: "MISSING")
    with pytest.raises(NothingComparedError, match="no usable number on the side"):
        made.compare(BEFORE, AFTER)


def test_what_one_side_alone_has_is_counted_with_its_reason(tmp_path: Path) -> None:
    """Part of the quantities unlike, part common: both are told."""
    made = Made(tmp_path)
    nights(made, range(1, 7), stacks={"openmpi5": "a" * 64, "mpich5": "b" * 64})
    nights(made, range(11, 17), stacks={"openmpi5": "a" * 64, "mpich5": "c" * 64})
    found = made.compare(BEFORE, AFTER)
    reasons = {each.reason for each in found.unpaired}
    assert reasons == {f"build {'b' * 12} against {'c' * 12}"}
    assert {each.key.stack for each in found.quantities} == {"openmpi5"}
