"""The judge on collectives: recorded tables, and one made for each guard."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.benchmarks.catalogue import collective_of, reading_of
from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Table, Verdict
from fabricproof.core.units import size_label
from fabricproof.physics.collective import RankLayout
from fabricproof.verdict.laws import row_fault
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules, at_most
from tables import GBE, table

DATA = Path(__file__).parents[1] / "data"
COLLECTIVES = [
    *DATA.glob("osu/osu_*all*.txt"), *DATA.glob("osu/osu_*scatter*.txt"),
    *DATA.glob("osu/osu_*reduce*.txt"), *DATA.glob("osu/osu_*bcast*.txt"),
    *DATA.glob("osu/osu_*barrier*.txt"), *DATA.glob("osu-mpi4py/*.txt"),
    DATA / "imb" / "mpi1-all.txt", DATA / "imb" / "nbc.txt",
]  # fmt: skip
FULL = ("message_size", "latency_avg_us", "latency_min_us", "latency_max_us")
FOUR = RankLayout(num_ranks=4)


def judged(made: Table, rules: Rules) -> dict[str, tuple[Verdict, str]]:
    report = judge_table(made, rules)
    return {each.name: (each.verdict, each.reason) for each in report.quantities}


@pytest.mark.parametrize("path", COLLECTIVES, ids=lambda path: path.stem)
def test_recorded_rows_do_not_contradict_themselves(path: Path) -> None:
    """Every row that a real program printed is sound by the laws that its source gives."""
    seen = 0
    for each in parse_text(path.read_text(), str(path)):
        program = collective_of(each.suite, each.program)
        if program is None:
            continue
        for row in each.named_rows:
            assert row_fault(each, reading_of(each), row) is None, row
            seen += 1
    assert seen or "neighbor" in path.stem or path.parent.name == "osu-mpi4py"


PASS, FAIL, INVALID, UNJUDGED, MISSING, *_ = Verdict
LARGE = (1 << 20, 3000, 2900, 3100)
ITS = ("repetitions", "latency_min_us", "latency_avg_us")
#: 1 MiB to each of three other nodes at 1 Gb/s takes 8.7 ms at least; 3 ms did not
TWO_ROWS = table("osu_allreduce", FULL, [(4, 90, 80, 100), LARGE])
LIKE = [(4, 90, 80, 100), (8, 90, 80, 100)]


@pytest.mark.parametrize(
    ("made", "layout", "limits", "expected", "words"),
    [
        (table("osu_allreduce", FULL, LIKE), FOUR, {},
         {"latency_4B": UNJUDGED, "latency_8B": UNJUDGED}, ""),
        (TWO_ROWS, FOUR, {"latency_1MiB": 20000, "latency_4B": 200},
         {"latency_4B": PASS, "latency_1MiB": INVALID}, "below the floor"),
        # a pasted table of unknown layout has no floor
        (table("osu_allreduce", FULL, [LARGE]), None, {"latency_1MiB": 20000},
         {"latency_1MiB": PASS}, ""),
        # the root is done when its buffer is free; the counters, not the time, show the path
        (table("osu_bcast", FULL, [(1 << 20, 3000, 100, 9000)]), FOUR, {"latency_1MiB": 20000},
         {"latency_1MiB": PASS}, ""),
        (table("osu_bcast", FULL, [(4, 900, 100, 1000)]), FOUR, {"latency_4B": 100},
         {"latency_4B": FAIL}, ""),
        # a mean outside its extremes
        *((table("osu_alltoall", FULL, [(4, mean, 80, 100)]), FOUR, {"latency_4B": 900},
           {"latency_4B": INVALID}, "contradicts itself") for mean in (70, 110)),
        # a barrier has one quantity without size
        (table("osu_barrier", ("latency_avg_us",), [(900,)]), FOUR, {"latency": 2000},
         {"latency": PASS}, ""),
        (table("osu_barrier", ("message_size", "latency_us"), [(0, 900)], suite="osu-mpi4py"),
         FOUR, {"latency": 2000}, {"latency": PASS}, ""),
        (table("Barrier", ITS, [(9, 900, 900)], suite="imb"), FOUR, {"latency": 2000},
         {"latency": PASS}, ""),
        (table("Barrier", (ITS[0], ITS[2]), [(9, 0.2)], suite="imb"), FOUR, {"latency": 2000},
         {"latency": INVALID}, ""),
        # IMB prints a row of 0 bytes, in which MPICH's collectives return at once
        (table("Bcast", FULL[:2], [(0, 0.0), (1, 70)], suite="imb"), None, {},
         {"latency_1B": UNJUDGED}, ""),
        # a bare latency means the smallest message
        (table("osu_bcast", FULL, LIKE), None, {"latency": 60},
         {"latency_4B": FAIL, "latency_8B": UNJUDGED}, ""),
    ],
)  # fmt: skip
def test_a_collective_is_judged(
    made: Table, layout: RankLayout | None, limits: dict[str, float],
    expected: dict[str, Verdict], words: str,
) -> None:  # fmt: skip
    references = {name: at_most(limit, origin="x") for name, limit in limits.items()}
    found = judged(made, Rules(fabric=GBE, layout=layout, references=references))
    assert {name: verdict for name, (verdict, _) in found.items()} == expected
    assert words in list(found.values())[-1][1]


OVERLAP = ("message_size", "overall_us", "compute_us", "pure_communication_us", "overlap_percent")


@pytest.mark.parametrize(
    ("suite", "program", "row", "sound"),
    [
        ("osu", "osu_iallreduce", (4, 150, 100, 100, 50), True),
        ("osu", "osu_iallreduce", (4, 150, 100, 100, 90), False),
        ("osu", "osu_iallreduce", (4, 300, 100, 100, 0), True),
        ("osu", "osu_iallreduce", (4, 150, 100, 100, 101), False),
        ("imb", "Iallreduce", (4, 150, 100, 100, 50), True),
        ("imb", "Iallreduce", (4, 150, 200, 100, 75), True),
        ("imb", "Iallreduce", (4, 150, 200, 100, 100), False),
    ],
)
def test_the_overlap_follows_from_the_times(
    suite: str, program: str, row: tuple[float, ...], sound: bool
) -> None:
    made = table(program, OVERLAP, [row], suite=suite)
    rules = Rules(fabric=GBE, references={"latency_4B": at_most(900, origin="x")})
    verdict, _ = judged(made, rules)["latency_4B"]
    assert verdict is (Verdict.PASS if sound else Verdict.INVALID)


def test_the_overlap_is_told_and_not_judged() -> None:
    made = table("osu_iallreduce", OVERLAP, [(4, 150, 100, 100, 50)])
    report = judge_table(made, Rules(fabric=GBE))
    assert "50 % of the communication overlaps with computing at 4B" in texts_of(report.findings)


@pytest.mark.parametrize(("time_us", "told"), [(40, True), (12_000, False)])
def test_a_time_in_which_the_roots_bytes_cannot_travel_is_told(time_us: float, told: bool) -> None:
    """A scatter of 64 KiB over a wire of 1 Gb/s: 192 KiB leave the root in 1.7 ms."""
    made = table("osu_scatter", FULL, [(65536, time_us, 1, 2 * time_us)])
    rules = Rules(fabric=GBE, layout=FOUR, references={"latency_64KiB": at_most(20000, origin="x")})
    report = judge_table(made, rules)
    assert report.quantities[0].verdict is Verdict.PASS
    assert any("is no delivery" in finding for finding in texts_of(report.findings)) is told


def test_a_dip_of_a_collective_is_no_protocol_switch() -> None:
    """Its sizes have references or nothing: no law of a curve says what is due between them."""
    rows = [(2**power, 20.0 if power != 12 else 35.0) for power in range(20)]
    made = table("osu_bcast", ("message_size", "latency_avg_us"), rows)
    wanted = {f"latency_{size_label(size)}": at_most(22.0, origin="test") for size, _ in rows}
    report = judge_table(made, Rules(fabric=GBE, references=wanted))
    assert report.verdict is Verdict.FAIL
    assert not [each for each in texts_of(report.findings) if each.startswith("protocol switch")]
