"""What differs between the sides, what cannot be told apart, and what the order in time says."""

from __future__ import annotations

import gzip
import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import Made, nights, node_facts

from fabricproof.core.records import append_records
from fabricproof.history.compare import facts
from fabricproof.history.compare.changes import causes
from fabricproof.history.compare.doubts import trend_p
from fabricproof.history.compare.model import FieldChange, comparison_record
from fabricproof.history.compare.text import lines

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


def kernels(made: Made, day: int, stacks: tuple[str, ...], digest: str, **more: Any) -> None:
    fields = {"suite": "fabricproof", **more}
    run_id = made.run(day, stacks=dict.fromkeys(stacks, "a" * 64), **fields)
    told = {"findings": ["kernel"], "finding_kinds": [{"kind": "kernel", "fact": digest}]}
    for stack in stacks if digest else ():
        leg = next(
            each for each in made.lines if (each["run_id"], each["stack"]) == (run_id, stack)
        )
        rest = {"kind": "leg", "verdict": "PASS", "attempts": 1, "reasons": []}
        made.lines.append({**leg, **told, **rest})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (SAME, SAME, "same binary, SHA-256 0a0a0a0a0a0a"),
        (SAME, OTHER, "not the same binary, SHA-256 0a0a0a0a0a0a before, 0b0b0b0b0b0b after"),
        ("", "", ""),
    ],
)
def test_whether_the_kernel_was_one_binary(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    made = Made(tmp_path)
    kernels(made, 1, ("mpich5", "openmpi5"), before)
    kernels(made, 11, ("mpich5", "openmpi5"), after)
    found = made.compare(BEFORE, AFTER)
    assert found.kernels == ((f"kernel of all pairs (mpich5, openmpi5): {said}",) if said else ())
    assert comparison_record(found)["kernels"] == list(found.kernels)
    assert {f"  {each}" for each in found.kernels} <= set(lines(found))


def test_records_are_read_once_for_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A year of them is a gigabyte, of which a comparison of five nights read each line twice."""
    made, opened, plain = Made(tmp_path), list[Path](), facts.open_lines

    def counted(path: Path) -> Any:
        opened.append(path)
        return plain(path)

    monkeypatch.setattr(facts, "open_lines", counted)
    kernels(made, 1, ("mpich5", "openmpi5"), SAME)
    kernels(made, 11, ("mpich5", "openmpi5"), OTHER)
    assert made.compare(BEFORE, AFTER).kernels
    assert len(opened) == 1


@pytest.mark.parametrize(("other", "word"), [(SAME, "same"), (OTHER, "not the same")])
def test_whether_two_stacks_of_one_run_had_one_binary(
    other: str, word: str, tmp_path: Path
) -> None:
    made = Made(tmp_path)
    for day in (1, 2, 3):
        kernels(made, day, ("mpich5",), SAME)
        kernels(made, day, ("intelmpi",), other)
    found = made.compare("stack=mpich5", "stack=intelmpi", across=("stack", "build"))
    (said,) = found.kernels
    assert said.startswith(f"kernel of all pairs (intelmpi, mpich5): {word} binary, SHA-256 0a0a")


def programs(made: Made, day: int, digests: dict[str, str]) -> None:
    """Leave a leg's record of each stack, with the digest of its program's file."""
    run_id = made.run(day, stacks=dict.fromkeys(digests, "a" * 64))
    for stack, digest in digests.items():
        leg = next(
            each for each in made.lines if (each["run_id"], each["stack"]) == (run_id, stack)
        )
        more = {"kind": "leg", "verdict": "PASS", "attempts": 1, "reasons": [], "findings": []}
        made.lines.append({**leg, **more, **({"binary": digest} if digest else {})})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (SAME, SAME, ""),
        (SAME, OTHER, "not the same binary, SHA-256 0a0a0a0a0a0a before, 0b0b0b0b0b0b after"),
        (SAME, "", ""),
        ("", "", ""),
    ],
)
def test_a_program_that_was_replaced_in_its_place_is_told(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    made = Made(tmp_path)
    programs(made, 1, {"mpich5": before})
    programs(made, 11, {"mpich5": after})
    found = made.compare(BEFORE, AFTER)
    assert [each.partition(": ")[2] for each in found.kernels] == ([said] if said else [])


@pytest.mark.parametrize(("other", "word"), [(SAME, "same"), (OTHER, "not the same")])
def test_whether_one_build_of_a_suite_served_two_stacks(
    other: str, word: str, tmp_path: Path
) -> None:
    made = Made(tmp_path)
    for day in (1, 2, 3):
        programs(made, day, {"mpich5": SAME, "intelmpi": other})
    found = made.compare("stack=mpich5", "stack=intelmpi", across=("stack", "build"))
    (said,) = found.kernels
    assert said.startswith(f"osu osu_bw (intelmpi, mpich5): {word} binary, SHA-256 0a0a")


def test_a_stack_without_digests_hides_no_other_stacks_kernel(tmp_path: Path) -> None:
    """Both sides ran openmpi4, of which no file is known; the kernel ran on a stack of each."""
    made = Made(tmp_path)
    for day, stack, digest in ((1, "mpich5", SAME), (11, "intelmpi", OTHER)):
        programs(made, day, {"openmpi4": ""})
        kernels(made, day, (stack,), digest, hour=2)
    (said,) = made.compare(BEFORE, AFTER).kernels
    assert said.startswith("kernel of all pairs (intelmpi, mpich5): not the same binary")


def test_another_program_in_common_hides_no_kernel(tmp_path: Path) -> None:
    """Both sides ran osu_bw on openmpi4; what is common is looked at program by program."""
    made = Made(tmp_path)
    for day, stack in ((1, "mpich5"), (11, "intelmpi")):
        programs(made, day, {"openmpi4": SAME})
        kernels(made, day, (stack,), OTHER, hour=2)
    (said,) = made.compare(BEFORE, AFTER).kernels
    assert said.startswith("kernel of all pairs (intelmpi, mpich5): same binary, SHA-256 0b0b")


def test_another_partitions_build_replaced_nothing(tmp_path: Path) -> None:
    """A partition that only one side measured has a build of its own."""
    made = Made(tmp_path)
    kernels(made, 1, ("mpich5",), SAME)
    kernels(made, 11, ("mpich5",), SAME)
    kernels(made, 11, ("mpich5",), OTHER, hour=2, partition="gpu")
    (said,) = made.compare(BEFORE, AFTER).kernels
    assert said == ("kernel of all pairs (mpich5 on compute): same binary, SHA-256 0a0a0a0a0a0a")


def test_two_binaries_on_both_sides_are_the_same_ones(tmp_path: Path) -> None:
    """Nobody reads that a pair of binaries is not the pair that it is."""
    made = Made(tmp_path)
    for day in (1, 11):
        kernels(made, day, ("mpich5",), SAME)
        kernels(made, day, ("mpich5",), OTHER, hour=2)
    (said,) = made.compare(BEFORE, AFTER).kernels
    assert said == (
        "kernel of all pairs (mpich5): the same binaries, SHA-256 0a0a0a0a0a0a and 0b0b0b0b0b0b"
    )


def test_a_kernel_of_one_side_alone_is_compared_with_nothing(tmp_path: Path) -> None:
    made = Made(tmp_path)
    kernels(made, 1, ("mpich5",), SAME)
    made.run(1, hour=2)
    made.run(11)
    assert made.compare(BEFORE, AFTER).kernels == ()


def test_packed_records_of_a_past_month_are_read(tmp_path: Path) -> None:
    """Environments and binaries are read from the files themselves, whatever their form."""
    made = Made(tmp_path)
    kernels(made, 1, ("mpich5",), SAME, variables={"UCX_TLS": "rc"})
    packed = tmp_path / "made" / "compute" / "records-2026-10.jsonl"
    append_records(packed, made.lines)
    packed.with_name(f"{packed.name}.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    made.lines.clear()
    kernels(made, 11, ("mpich5",), OTHER, variables={"UCX_TLS": "ud"})
    found = made.compare(BEFORE, AFTER)
    assert [(each.fact, each.first, each.second) for each in found.changes] == [
        ("UCX_TLS", "rc", "ud")
    ]
    (said,) = found.kernels
    assert said.startswith("kernel of all pairs (mpich5): not the same binary, SHA-256 0a0a")


def test_nodes_that_nobody_looked_at_are_said(tmp_path: Path) -> None:
    """Without an inventory nobody can say that nothing else changed."""
    made = Made(tmp_path)
    nights(made, range(1, 4))
    nights(made, range(11, 14), facts={"n1": None, "n2": node_facts(), "n3": node_facts()})
    for side, words in (("second", (BEFORE, AFTER)), ("first", (AFTER, BEFORE))):
        found = made.compare(*words)
        assert any(f"3 of 3 runs of the {side} side" in each for each in found.warnings)
        assert found.changes == ()


@pytest.mark.parametrize(("seen", "is_told"), [("unknown", False), ("/opt/other/libmpi.so", True)])
def test_what_nobody_saw_of_a_rank_is_no_change(
    tmp_path: Path, seen: str, *, is_told: bool
) -> None:
    """A program that ended before it was looked at has no library, not another one."""
    made = Made(tmp_path)
    nights(made, [*range(1, 7), *range(11, 17)])
    for line in made.lines:
        is_after = line["run_id"] >= "20261110"
        library = seen if is_after and line["leg"] == "rail1" else "/opt/mpi/libmpi.so"
        line["environment_digest"] = f"{len(library):012}"
        if line["kind"] == "environment":
            line["environment"] = {"variables": {}, "ranks": [{"library": library}]}
    found = made.compare("2026-11-01..2026-11-06", "2026-11-11..2026-11-16")
    assert [each.fact for each in found.changes] == ["library of the ranks"] * is_told


def test_a_variable_of_the_legs_is_found(tmp_path: Path) -> None:
    """The environment is compared from the records, by leg."""
    made = Made(tmp_path)
    nights(made, range(1, 4), variables={"UCX_TLS": "rc"})
    nights(made, range(11, 14), variables={"UCX_TLS": "ud"})
    found = made.compare(BEFORE, AFTER)
    assert [(each.part, each.fact, each.first, each.second) for each in found.changes] == [
        ("environment openmpi5", "UCX_TLS", "rc", "ud")
    ]


def test_builds_that_changed_are_said(tmp_path: Path) -> None:
    """Of a stack that was built anew nothing is compared, and it says why."""
    made = Made(tmp_path)
    nights(made, range(1, 4), stacks={"openmpi5": "a" * 64, "mpich5": "b" * 64})
    nights(made, range(11, 14), stacks={"openmpi5": "a" * 64, "mpich5": "c" * 64})
    found = made.compare(BEFORE, AFTER)
    assert [each.part for each in found.changes] == ["stack mpich5"]


def test_drift_within_a_side_is_warned_of(tmp_path: Path) -> None:
    """A side that loses 3 % a night has no level of its own."""
    made = Made(tmp_path, noise=0.002)
    for day in range(1, 9):
        made.run(day, factor=lambda where, day=day: 0.97**day if where[2] == "bandwidth" else 1)
    nights(made, range(11, 19))
    found = made.compare(BEFORE, AFTER)
    assert any("moves within the first side by itself" in each for each in found.warnings)
    assert not any("moves within the second side" in each for each in found.warnings)


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


@pytest.mark.parametrize("count", [4, 5, 6])
def test_the_exact_trend_counts_every_order(count: int) -> None:
    """The p of each order is the share of orders that are at least as monotone."""

    def score(order: tuple[int, ...]) -> int:
        return abs(sum((b > a) - (b < a) for a, b in itertools.combinations(order, 2)))

    orders = list(itertools.permutations(range(count)))
    scores = [score(each) for each in orders]
    for order in orders[:: max(1, len(orders) // 40)]:
        share = sum(each >= score(order) for each in scores) / len(orders)
        assert trend_p(order) == pytest.approx(share if score(order) else 1.0)


@given(st.lists(st.floats(0.1, 10), max_size=40))
def test_a_trend_is_a_probability_and_blind_to_direction(numbers: list[float]) -> None:
    """P lies in (0, 1], and reading the runs backwards changes nothing."""
    p = trend_p(numbers)
    assert 0 < p <= 1
    assert trend_p(numbers[::-1]) == pytest.approx(p)


def test_the_normal_approximation_meets_the_exact_count() -> None:
    """At 30 numbers both agree: one tie between neighbours in size takes the second path."""
    numbers = [float((7 * at) % 31) + at / 3 for at in range(30)]
    last, near = min(
        itertools.combinations(range(30), 2),
        key=lambda pair: abs(numbers[pair[0]] - numbers[pair[1]]),
    )
    tied = list(numbers)
    tied[last] = tied[near]
    assert math.isclose(trend_p(numbers), trend_p(tied), rel_tol=0.2)
