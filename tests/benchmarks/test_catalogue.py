"""What each program's numbers mean, against the sources that print them."""

from __future__ import annotations

import re

import pytest
from catalogue_answers import ANSWERS, both_at_once, text

from fabricproof.benchmarks.catalogue import OSU, SUITES, meaning, reading_of
from fabricproof.benchmarks.program import Consistency, Program, ProgramKind
from tables import bandwidths, latencies, table

PRINTS_MB_S = {row.name for row in OSU if "bw" in row.name}
P2P = ("message_size", "repetitions", "latency_us", "bandwidth_mb_s", "message_rate_per_s")
MPI1 = ("message_size", "repetitions", "latency_us", "bandwidth_mb_s")


@pytest.mark.parametrize("program", sorted(PRINTS_MB_S))
@pytest.mark.parametrize("suite", ["osu", "osu-mpi4py"])
def test_every_osu_program_that_prints_mb_s_is_judged_by_it(suite: str, program: str) -> None:
    assert meaning(suite, program).kind is ProgramKind.BANDWIDTH
    # mpi4py's port of osu_bibw counts one of the two directions that it moves.
    both_ways = "bibw" in program and (suite, program) != ("osu-mpi4py", "osu_bibw")
    assert meaning(suite, program).bidirectional == both_ways


@pytest.mark.parametrize("program", sorted({row.name for row in OSU} - PRINTS_MB_S))
def test_no_other_program_is_held_against_a_bandwidth(program: str) -> None:
    assert meaning("osu", program).kind is not ProgramKind.BANDWIDTH


@pytest.mark.parametrize(
    ("suite", "program", "kind"),
    [
        *(
            ("osu", program, ProgramKind.COLLECTIVE)
            for program in ("osu_bcast", "osu_allreduce", "osu_barrier", "osu_nonsense")
        ),
        ("linktest", "osu_bw", ProgramKind.COLLECTIVE),  # an unknown suite knows nothing
        ("osu", "OSU_BW", ProgramKind.COLLECTIVE),  # the case of a name matters but for IMB's
        *(
            ("imb", program, ProgramKind.BANDWIDTH)
            for program in ("Unidir_put", "Unidir_Put", "bidir_get", "PingPong")
        ),
    ],
)
def test_what_a_program_is(suite: str, program: str, kind: ProgramKind) -> None:
    reading = meaning(suite, program)
    assert reading.kind is kind
    assert kind is ProgramKind.BANDWIDTH or not reading.crosses


BOTH = ("Sendrecv", "Exchange", "Biband")
ONE_WAY = ("PingPong", "PingPing", "Uniband", "Bidir_put", "Bidir_Get")


@pytest.mark.parametrize("program", [*BOTH, *ONE_WAY])
def test_some_programs_count_both_directions(program: str) -> None:
    assert meaning("imb", program).bidirectional is (program in BOTH)


def test_pingping_of_imb_p2p_counts_what_that_of_imb_mpi1_does_not() -> None:
    row = (65536, 100, 20.0, 6553.60, 100000)
    p2p = table("PingPing", P2P, [row], suite="imb")
    mpi1 = table("PingPing", MPI1, [row[:4]], suite="imb")
    assert reading_of(p2p).bidirectional
    assert not reading_of(mpi1).bidirectional


def test_the_header_decides_over_the_columns() -> None:
    row = (65536, 100, 20.0, 3276.80, 50000)
    said = table("PingPing", P2P, [row], suite="imb", binary="IMB-MPI1")
    assert not reading_of(said).bidirectional
    said = table("PingPing", MPI1, [row[:4]], suite="imb", binary="IMB-P2P")
    assert reading_of(said).consistency is Consistency.RATE_TIMES_SIZE


@pytest.mark.parametrize("program", ["Birandom", "Unirandom", "Corandom", "Stencil2D"])
def test_random_pairs_have_no_path_to_be_held_against(program: str) -> None:
    made = table(program, P2P, [(1, 1, 1.0, 1.0, 1000000)], suite="imb")
    assert reading_of(made).kind is ProgramKind.COLLECTIVE


@pytest.mark.parametrize(
    ("attributes", "crosses"),
    [
        ({}, True),
        ({"synchronization": "MPI_Win_flush"}, True),
        ({"synchronization": "MPI_Win_flush_local"}, False),
        ({"mode": "AGGREGATE"}, False),
        ({"mode": "NON-AGGREGATE"}, True),
    ],
)
def test_a_time_that_ends_at_the_origin_holds_no_crossing(
    attributes: dict[str, str], crosses: bool
) -> None:
    columns = ("message_size", "latency_us")
    made = table("osu_put_latency", columns, [(1, 1.0)], **attributes)
    assert reading_of(made).crosses == crosses


def test_plain_tables_keep_their_meaning() -> None:
    assert reading_of(bandwidths({1: 1.0})) == meaning("osu", "osu_bw")
    assert reading_of(latencies({1: 1.0})) == meaning("osu", "osu_latency")


def test_every_answer_of_the_catalogue_is_the_reviewed_one() -> None:
    """A changed fact is seen here; write the file anew and defend its difference by a source."""
    assert text().splitlines() == ANSWERS.read_text(encoding="utf-8").splitlines()


def rows() -> list[Program]:
    return [row for programs in SUITES.values() for row in programs]


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_no_name_and_no_title_stands_for_two_programs(suite: str) -> None:
    """The look-ups are by name, IMB's in any case, and by title: the later row would win."""
    names = [row.name.lower() for row in SUITES[suite]]
    titles = [title for row in SUITES[suite] for title in {*row.titles, *row.port_titles}]
    assert len(set(names)) == len(names)
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("row", [row for row in rows() if row.messages], ids=lambda row: row.name)
def test_what_is_counted_is_moved(row: Program) -> None:
    """Two directions in the bandwidth are two on the wire at once; pairs and floors likewise."""
    assert row.messages is not None
    if row.meaning.bidirectional:
        assert both_at_once(row.messages)
    if row.meaning.kind is ProgramKind.LATENCY:
        assert not both_at_once(row.messages)
        assert not row.messages.windowed
    if row.meaning.round_trip:
        assert (row.messages.forth, row.messages.back) == (0, 1)
    assert row.messages.forth or row.messages.back


def imb_lists() -> dict[str, set[str]]:
    """The names of ``IMB-* -list``, by binary."""
    found: dict[str, set[str]] = {}
    text = (ANSWERS.parent / "imb-2021.11-list.txt").read_text(encoding="utf-8")
    for part in re.split(r"^(?=IMB-\S+ -list$)", text, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        found[command.split()[0]] = {line.strip("# ").partition(" ")[0] for line in lines}
    return found


@pytest.mark.parametrize("row", SUITES["imb"], ids=lambda row: row.name)
def test_every_imb_program_is_in_the_binary_that_the_row_names(row: Program) -> None:
    assert row.name.rpartition("/")[2] in imb_lists()[row.binary]
