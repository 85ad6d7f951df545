"""The judge on whole tables: no green for what was not measured, no red that is taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.core.measure import COLUMNS, Table, Verdict, texts_of
from fabricproof.physics import Fabric, bound, find_link
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict import judge
from fabricproof.verdict.table import judge_table, unanswered
from fabricproof.verdict.value import (
    Judgement,
    Reference,
    Report,
    Rules,
    at_least,
    at_most,
    from_text,
)
from tables import CX2, FDR, GBE, MIB, against, bandwidths, hockney, latencies, table

HEALTHY = hockney(6600, 0.6)
LATENCY = {0: 1.0, **{2**power: round(1.0 + 2**power / 6500, 2) for power in range(23)}}
PING = ("message_size", "repetitions", "latency_us", "bandwidth_mb_s")


def stated(*texts: str) -> dict[str, Reference]:
    return dict(from_text(text, tolerance=None, origin="test") for text in texts)


def by_name(report: Report) -> dict[str, Judgement]:
    return {each.name: each for each in report.quantities}


def pingpong(rows: list[tuple[int, float]], **attributes: int | str) -> Table:
    made = [(size, 100, time, round(size / time, 2)) for size, time in rows]
    return table("PingPong", PING, made, suite="imb", **attributes)


# --- bandwidth curves


def test_a_healthy_curve_passes_in_every_row() -> None:
    report = judge_table(HEALTHY, against(FDR))
    assert report.verdict is Verdict.PASS
    assert len(report.quantities) == len(HEALTHY.rows)


def test_the_plateau_is_named_and_the_curve_is_not() -> None:
    named = [each.name for each in judge_table(HEALTHY, against(FDR)).quantities if each.named]
    assert named == ["bandwidth_4MiB"]


def test_a_low_plateau_fails() -> None:
    report = judge_table(hockney(5600, 0.6), against(FDR))
    assert by_name(report)["bandwidth_4MiB"].verdict is Verdict.FAIL
    assert report.verdict is Verdict.FAIL


def test_one_bad_row_inside_the_curve_is_red_by_itself() -> None:
    rows = dict(HEALTHY.rows)
    rows[65536] /= 10
    report = judge_table(bandwidths(rows), against(FDR))
    assert [each.name for each in report.quantities if each.verdict is Verdict.FAIL] == [
        "bandwidth_64KiB"
    ]
    assert any(text.startswith("dip: 64KiB") for text in texts_of(report.findings))


def test_one_impossible_row_spoils_the_table() -> None:
    rows = dict(HEALTHY.rows)
    rows[65536] = 7000.0
    report = judge_table(bandwidths(rows), against(FDR))
    assert report.verdict is Verdict.INVALID
    assert "103% of the bare link" in by_name(report)["bandwidth_64KiB"].reason


def test_without_a_fabric_and_without_references_nothing_passes() -> None:
    assert judge_table(HEALTHY, against(None)).verdict is Verdict.UNJUDGED


def test_small_messages_that_round_to_nothing_are_left_out_but_never_the_plateau() -> None:
    rows = {1: 0.0, 2: 0.0, 4: 0.01, 8: 0.02, 16: 0.03, 32: 0.07, 64: 0.13}
    names = by_name(judge_table(bandwidths(rows), against(GBE)))
    assert "bandwidth_1B" not in names
    assert "bandwidth_4B" in names
    assert judge_table(bandwidths({1: 0.0}), against(GBE)).verdict is Verdict.INVALID


def test_a_zero_in_a_large_row_is_no_rounding() -> None:
    rows = {**dict(HEALTHY.rows), 65536: 0.0}
    assert judge_table(bandwidths(rows), against(FDR)).verdict is Verdict.INVALID


def test_both_directions_have_both_ceilings() -> None:
    rows = {4 * MIB: 13000.0}
    assert judge_table(bandwidths(rows, "osu_bibw"), against(FDR)).verdict is Verdict.PASS
    assert judge_table(bandwidths(rows, "osu_bw"), against(FDR)).verdict is Verdict.INVALID
    one_way = bandwidths({4 * MIB: 6500.0}, "osu_bibw")
    assert judge_table(one_way, against(FDR)).verdict is Verdict.FAIL


# --- tables that end early or begin late


@pytest.mark.parametrize("last", [8, 64, 256])
def test_a_table_of_small_messages_says_nothing_about_the_plateau(last: int) -> None:
    report = judge_table(hockney(6600, 0.6, last=last), against(FDR))
    assert report.verdict is Verdict.UNJUDGED
    named = report.quantities[-1]
    assert named.name == f"bandwidth_{last}B"
    assert "cannot show the plateau" in named.reason


def test_small_messages_that_are_too_slow_have_no_excuse() -> None:
    rows = dict(hockney(6600, 0.6, last=64).rows)
    rows[64] /= 20
    assert judge_table(bandwidths(rows), against(FDR)).verdict is Verdict.FAIL


def test_a_short_table_that_reaches_the_plateau_passes_with_a_note() -> None:
    report = judge_table(hockney(6600, 0.6, last=256 * 1024), against(FDR))
    assert report.verdict is Verdict.PASS
    assert any("the table ends at 256KiB" in text for text in texts_of(report.findings))
    assert not any(
        "ends at" in text for text in texts_of(judge_table(HEALTHY, against(FDR)).findings)
    )


@pytest.mark.parametrize(("value", "verdict"), [(6300.0, Verdict.PASS), (5600.0, Verdict.FAIL)])
@pytest.mark.parametrize("size", [MIB, 4 * MIB])
def test_a_single_large_row_is_a_plateau(size: int, value: float, verdict: Verdict) -> None:
    assert judge_table(bandwidths({size: value}), against(FDR)).verdict is verdict


def test_a_single_small_row_is_not() -> None:
    report = judge_table(bandwidths({4096: 3000.0}), against(FDR))
    assert report.verdict is Verdict.UNJUDGED


def test_a_single_row_without_a_fabric_is_held_against_the_reference_as_it_stands() -> None:
    rules = against(None, references=stated("3.4 GB/s"))
    assert judge_table(bandwidths({4 * MIB: 3400.0}), rules).verdict is Verdict.PASS
    assert judge_table(bandwidths({4 * MIB: 3000.0}), rules).verdict is Verdict.FAIL


def test_a_table_that_begins_late_is_not_judged_by_a_start_up_time_it_does_not_hold() -> None:
    late = hockney(4600, 50, first=65536)
    forty = Fabric(link=find_link("40GbE"))
    assert judge_table(late, against(forty)).verdict is Verdict.PASS


# --- references


def test_a_reference_of_one_size_names_that_size() -> None:
    report = judge_table(HEALTHY, against(FDR, references=stated("bandwidth_64KiB=6 GB/s")))
    judged = by_name(report)["bandwidth_64KiB"]
    assert (judged.named, judged.verdict, judged.origin) == (True, Verdict.PASS, "test")


def test_a_size_that_a_reference_asks_for_and_the_table_lacks_is_missing() -> None:
    short = hockney(6600, 0.6, last=MIB)
    report = judge_table(short, against(FDR, references=stated("bandwidth_4MiB=6 GB/s")))
    assert by_name(report)["bandwidth_4MiB"].verdict is Verdict.MISSING
    assert report.verdict is Verdict.MISSING


def test_a_size_lost_in_rounding_is_judged_where_a_reference_asks_for_it() -> None:
    made = bandwidths({**dict(hockney(117, 50).rows), 1: 0.0})
    report = judge_table(made, against(GBE, references=stated("bandwidth_1B=1 MB/s")))
    assert by_name(report)["bandwidth_1B"].verdict is Verdict.INVALID


def test_a_latency_reference_of_any_size_is_answered_beside_bandwidths() -> None:
    made = pingpong([(0, 40.0), (1, 41.0), (2, 42.0), (4, 43.0), (8, 70.0)])
    report = judge_table(made, against(GBE, references=stated("latency_8B=50 us")))
    assert by_name(report)["latency_8B"].verdict is Verdict.FAIL
    report = judge_table(made, against(GBE, references=stated("latency_64B=50 us")))
    assert by_name(report)["latency_64B"].verdict is Verdict.MISSING


def test_a_latency_reference_means_nothing_to_a_table_without_times() -> None:
    references = stated("latency=1 us", "latency_8B=1 us")
    report = judge_table(HEALTHY, against(FDR, references=references))
    assert report.verdict is Verdict.PASS
    assert unanswered(references, report.quantities) == ["latency", "latency_8B"]


def test_a_reference_in_a_foreign_unit_leaves_the_table_unjudged() -> None:
    foreign = {"bandwidth": at_least(6.6, unit="GB/s", origin="x")}
    report = judge_table(bandwidths({4 * MIB: 6600.0}), against(FDR, references=foreign))
    assert report.verdict is Verdict.UNJUDGED


# --- latencies


def test_a_latency_table_needs_somebody_to_say_what_it_should_be() -> None:
    report = judge_table(latencies(LATENCY), against(FDR))
    assert by_name(report)["latency_0B"].verdict is Verdict.UNJUDGED
    assert report.verdict is Verdict.UNJUDGED


def test_a_latency_table_with_a_reference_passes_in_every_row() -> None:
    report = judge_table(latencies(LATENCY), against(FDR, references=stated("latency=1.1 us")))
    assert report.verdict is Verdict.PASS
    assert {each.verdict for each in report.quantities} == {Verdict.PASS}


def test_a_large_message_faster_than_the_wire_is_invalid_though_the_small_ones_are_fine() -> None:
    rows = {**LATENCY, 4 * MIB: 4 * MIB / 7000}
    report = judge_table(latencies(rows), against(FDR, references=stated("latency=1.1 us")))
    assert by_name(report)["latency_4MiB"].verdict is Verdict.INVALID
    assert report.verdict is Verdict.INVALID


def test_a_large_message_slower_than_the_curve_law_fails() -> None:
    rows = {**LATENCY, 4 * MIB: 2 * LATENCY[4 * MIB]}
    report = judge_table(latencies(rows), against(FDR, references=stated("latency=1.1 us")))
    assert by_name(report)["latency_4MiB"].verdict is Verdict.FAIL


@pytest.mark.parametrize("program", ["osu_put_latency", "osu_get_latency"])
def test_a_put_is_judged_along_its_curve_too(program: str) -> None:
    rules = against(FDR, references=stated("latency=1.1 us"))
    assert judge_table(latencies(LATENCY, program), rules).verdict is Verdict.PASS


def test_completion_at_the_origin_has_no_floor() -> None:
    rows = [(1, 0.1), (2, 0.1)]
    columns = ("message_size", "latency_us")
    made = table("osu_put_latency", columns, rows, synchronization="MPI_Win_flush_local")
    assert judge_table(made, against(FDR)).verdict is Verdict.UNJUDGED
    plain = table("osu_put_latency", columns, rows, synchronization="MPI_Win_flush")
    assert judge_table(plain, against(FDR)).verdict is Verdict.INVALID


def test_pairs_that_share_a_rail_slow_each_other_down() -> None:
    rows = {0: 1.0, **{2**power: 1.0 + 8 * 2**power / 6500 for power in range(23)}}
    rules = against(FDR, references=stated("latency=1.1 us"))
    told = judge_table(latencies(rows, "osu_multi_lat", num_pairs=8), rules)
    assert told.verdict is Verdict.PASS
    untold = judge_table(latencies(rows, "osu_multi_lat"), rules)
    assert untold.verdict is Verdict.UNJUDGED
    assert "how many pairs" in by_name(untold)["latency_4MiB"].reason


def test_many_tcp_connections_are_no_excuse_for_one_pair() -> None:
    flows = replace(GBE, num_flows=36)
    rows = {0: 50.0, **{2**power: 50.0 + 20 * 2**power / 117 for power in range(23)}}
    report = judge_table(latencies(rows), against(flows, references=stated("latency=60 us")))
    assert report.verdict is Verdict.FAIL


# --- collectives


@pytest.mark.parametrize("program", ["osu_bcast", "osu_allreduce", "osu_gather"])
def test_a_collective_is_never_green_by_physics_and_never_below_a_floor(program: str) -> None:
    made = table(program, ("message_size", "latency_avg_us"), [(1, 0.1), (2, 0.1), (4, 0.1)])
    report = judge_table(made, against(FDR))
    assert {each.verdict for each in report.quantities} == {Verdict.UNJUDGED}


def test_a_collective_passes_only_in_the_sizes_that_have_references() -> None:
    made = table("osu_bcast", ("message_size", "latency_avg_us"), [(1, 5.0), (2, 5.0)])
    one = judge_table(made, against(FDR, references=stated("latency=6 us")))
    assert one.verdict is Verdict.UNJUDGED
    both = stated("latency_1B=6 us", "latency_2B=6 us")
    assert judge_table(made, against(FDR, references=both)).verdict is Verdict.PASS


def test_a_barrier_has_no_size() -> None:
    made = table("osu_barrier", ("latency_avg_us",), [(5.0,)])
    report = judge_table(made, against(FDR, references=stated("latency=6 us")))
    assert [(each.name, each.verdict) for each in report.quantities] == [("latency", Verdict.PASS)]


def test_a_table_without_numbers_to_judge_is_unjudged() -> None:
    made = table("osu_hello", ("num_processes",), [(2,)])
    assert judge_table(made, against(FDR)).verdict is Verdict.UNJUDGED


# --- IMB


def test_the_first_time_is_named_where_it_is_not_judged() -> None:
    made = pingpong([(0, 49.81), (4 * MIB, 36276.94)])
    report = judge_table(made, against(GBE))
    assert report.verdict is Verdict.PASS
    assert any("latency_0B = 49.81 us not judged" in text for text in texts_of(report.findings))


def test_shared_memory_shows_in_any_row() -> None:
    made = pingpong([(0, 49.81), (1, 0.44), (4 * MIB, 36276.94)])
    report = judge_table(made, against(GBE))
    assert by_name(report)["latency_1B"].verdict is Verdict.INVALID


def test_aggregated_times_are_not_latencies() -> None:
    rows = [(size, 100, time, round(size / time, 2)) for size, time in ((1, 0.05), (4 * MIB, 36e3))]
    made = table("Unidir_put", PING, rows, suite="imb", mode="AGGREGATE")
    assert judge_table(made, against(GBE)).verdict is Verdict.PASS
    made = table("Unidir_put", PING, rows, suite="imb", mode="NON-AGGREGATE")
    assert judge_table(made, against(GBE)).verdict is Verdict.INVALID


def test_groups_that_ran_at_once_are_not_held_against_whole_rails() -> None:
    made = pingpong([(4 * MIB, 72000.0)], multi=1, group=0)
    report = judge_table(made, against(GBE))
    assert report.verdict is Verdict.UNJUDGED
    assert "several groups" in by_name(report)["bandwidth_4MiB"].reason
    given_ = against(GBE, references=stated("bandwidth=58 MB/s"))
    assert judge_table(made, given_).verdict is Verdict.PASS


def test_many_processes_of_an_exchange_are_not_held_against_whole_rails() -> None:
    columns = ("message_size", "latency_max_us", "bandwidth_mb_s")
    row = [(4 * MIB, 145000.0, round(2 * 4 * MIB / 145000.0, 2))]
    two = table("Sendrecv", columns, row, suite="imb", num_processes=2)
    eight = table("Sendrecv", columns, row, suite="imb", num_processes=8)
    assert judge_table(two, against(GBE)).verdict is Verdict.FAIL
    assert judge_table(eight, against(GBE)).verdict is Verdict.UNJUDGED


def test_pairs_count_as_flows() -> None:
    limited = replace(Fabric(link=find_link("100GbE")), flow_limit_gbit_s=10)
    made = bandwidths({4 * MIB: 4500.0}, "osu_mbw_mr", num_pairs=4)
    shared = replace(limited, num_flows=4)
    assert judge_table(made, against(shared)).verdict is Verdict.PASS
    assert judge_table(bandwidths({4 * MIB: 4500.0}), against(limited)).verdict is Verdict.INVALID


# --- soundness and the path


def test_a_failed_validation_spoils_every_row() -> None:
    made = replace(HEALTHY, attributes={"validation": "Fail"})
    report = judge_table(made, against(FDR))
    assert {each.verdict for each in report.quantities} == {Verdict.INVALID}
    passed = replace(HEALTHY, attributes={"validation": "Pass"})
    assert judge_table(passed, against(FDR)).verdict is Verdict.PASS


def test_a_row_that_contradicts_itself_is_invalid() -> None:
    made = table("PingPong", PING, [(4 * MIB, 10, 36276.94, 112.0)], suite="imb")
    assert judge_table(made, against(GBE)).verdict is Verdict.INVALID


def proof(state: PathState) -> PathProof:
    return PathProof(state=state, reason=f"it is {state}", findings=("seen",))


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (PathState.PROVEN, Verdict.PASS),
        (PathState.WRONG, Verdict.INVALID),
        (PathState.UNKNOWN, Verdict.UNJUDGED),
        (PathState.DISTURBED, Verdict.FAIL),
    ],
)
def test_the_path_has_the_last_word_over_a_green(state: PathState, verdict: Verdict) -> None:
    report = judge_table(HEALTHY, against(FDR, path_required=True), proof(state))
    assert {each.verdict for each in report.quantities} == {verdict}
    assert "seen" in texts_of(report.findings)
    if verdict is not Verdict.PASS:
        assert all(f"it is {state}" in each.reason for each in report.quantities)


@pytest.mark.parametrize("state", [PathState.UNKNOWN, PathState.DISTURBED, PathState.PROVEN])
def test_no_path_makes_a_red_better(state: PathState) -> None:
    report = judge_table(hockney(3000, 0.6), against(FDR), proof(state))
    assert report.verdict is Verdict.FAIL


def test_a_path_that_is_due_and_not_shown_is_never_green() -> None:
    report = judge_table(HEALTHY, against(FDR, path_required=True))
    assert {each.verdict for each in report.quantities} == {Verdict.UNJUDGED}


def test_a_file_without_counters_says_so() -> None:
    assert any(
        "path not shown" in text for text in texts_of(judge_table(HEALTHY, against(FDR)).findings)
    )


# --- laws

SIZES = st.lists(st.integers(min_value=0, max_value=2**26), min_size=1, max_size=8, unique=True)
NUMBERS = st.floats(min_value=0, max_value=1e18, allow_nan=False)
PROGRAMS = [
    ("osu", "osu_bw"),
    ("osu", "osu_bibw"),
    ("osu", "osu_mbw_mr"),
    ("osu", "osu_latency"),
    ("osu", "osu_multi_lat"),
    ("osu", "osu_put_latency"),
    ("osu", "osu_allreduce"),
    ("osu", "osu_barrier"),
    ("osu-mpi4py", "osu_bw"),
    ("imb", "PingPong"),
    ("imb", "PingPing"),
    ("imb", "Exchange"),
    ("imb", "Uniband"),
    ("imb", "Allreduce"),
    ("imb", "Window"),
    ("iperf3", "iperf3"),
    ("linktest", "bidirectional"),
]
RULES = [
    against(None),
    against(FDR),
    against(GBE),
    against(CX2, path_required=True),
    against(FDR, references=stated("latency=1 us", "bandwidth=6 GB/s", "bandwidth_64KiB=5 GB/s")),
    against(None, references={"latency": at_most(5, origin="x")}),
]


@st.composite
def any_table(draw: st.DrawFn) -> Table:
    """A table of any known columns: what some parser could return, and worse."""
    suite, program = draw(st.sampled_from(PROGRAMS))
    others = st.sampled_from(sorted(set(COLUMNS) - {"message_size"}))
    columns = draw(st.lists(others, min_size=1, max_size=4, unique=True))
    sizes = sorted(draw(SIZES)) if draw(st.booleans()) else None
    rows = [
        (*([] if sizes is None else [size]), *(draw(NUMBERS) for _ in columns))
        for size in sizes or [0]
    ]
    names = columns if sizes is None else ["message_size", *columns]
    attributes = draw(
        st.dictionaries(
            st.sampled_from(["num_pairs", "streams", "num_processes", "multi", "group"]),
            st.integers(min_value=0, max_value=4096),
        )
    )
    return table(program, names, rows, suite=suite, **attributes)


@settings(max_examples=300, deadline=None)
@given(any_table(), st.sampled_from(RULES))
def test_the_judge_has_a_verdict_on_every_table(made: Table, rules: Rules) -> None:
    report = judge_table(made, rules)
    assert report.quantities
    for each in report.quantities:
        assert each.reason
        if each.verdict is Verdict.PASS:
            assert each.reference is not None
            assert each.value is not None
            assert not rules.path_required
    if report.verdict is Verdict.PASS:
        assert rules.fabric is not None or rules.references


@settings(max_examples=100, deadline=None)
@given(st.floats(min_value=10, max_value=9000), st.floats(0, 0.9), st.floats(0, 0.9))
def test_a_tighter_tolerance_never_makes_a_table_green(
    plateau: float, one: float, other: float
) -> None:
    tight, loose = sorted((one, other))
    made = hockney(plateau, 1.0)
    if judge_table(made, against(FDR, tolerance=loose)).verdict is not Verdict.PASS:
        assert judge_table(made, against(FDR, tolerance=tight)).verdict is not Verdict.PASS


@settings(max_examples=100, deadline=None)
@given(
    st.floats(min_value=bound(FDR).low_mb_s * 0.92, max_value=bound(FDR).high_mb_s),
    st.floats(min_value=0.5, max_value=5.0),
)
def test_a_fabric_that_follows_the_model_is_never_red(plateau: float, start: float) -> None:
    assert judge_table(hockney(plateau, start), against(FDR)).verdict is Verdict.PASS


# --- several pairs, on nobody knows how many nodes


@pytest.mark.parametrize(
    ("value", "pairs", "verdict"),
    [
        # 31 pairs of nodes on 100GbE (a vendor's own acceptance document): impossible for one
        # node, possible for 31
        (378066.0, 620, Verdict.UNJUDGED),
        (12000.0, 2, Verdict.UNJUDGED),
        (20000.0, 2, Verdict.UNJUDGED),
        (30000.0, 2, Verdict.INVALID),
        # too slow for one node is too slow for more
        (6000.0, 2, Verdict.FAIL),
        (12000.0, 1, Verdict.PASS),
    ],
)
def test_a_sum_over_pairs_is_judged_by_what_is_known(
    value: float, pairs: int, verdict: Verdict
) -> None:
    made = bandwidths({4 * MIB: value}, "osu_mbw_mr", num_pairs=pairs)
    link = Fabric(link=find_link("100GbE"))
    assert judge_table(made, against(link)).verdict is verdict


def test_a_run_of_our_own_puts_all_pairs_between_two_nodes() -> None:
    rules = replace(against(Fabric(link=find_link("100GbE"))), path_required=True)
    made = bandwidths({4 * MIB: 30000.0}, "osu_mbw_mr", num_pairs=4)
    assert judge_table(made, rules).verdict is Verdict.INVALID


# --- IMB up to 4.x prints MiB


@pytest.mark.parametrize(
    ("printed", "verdict", "value"), [(108.36, Verdict.PASS, 113.62), (80.93, Verdict.FAIL, 84.86)]
)
def test_mebibytes_are_judged_as_megabytes(printed: float, verdict: Verdict, value: float) -> None:
    columns = ("message_size", "repetitions", "latency_us", "bandwidth_mib_s")
    made = table("PingPong", columns, [(4 * MIB, 10, 4.0 / printed * 1e6, printed)])
    report = judge_table(replace(made, suite="imb"), against(Fabric(link=find_link("1GbE"))))
    (judged,) = [each for each in report.quantities if each.unit == "MB/s"]
    assert judged.verdict is verdict
    assert judged.value == pytest.approx(value, abs=0.01)


# --- a protocol switch of an otherwise healthy curve

LATENCIES = {2**power: 1.0 + 2**power / 12000 for power in range(23)}


def judged_curve(changes: dict[int, float], *references: str) -> Report:
    rows = [(size, time * changes.get(size, 1.0)) for size, time in LATENCIES.items()]
    made = table("osu_latency", ("message_size", "latency_us"), rows)
    rules = against(Fabric(link=find_link("HDR100")))
    given = dict(from_text(text, tolerance=None, origin="test") for text in references)
    return judge_table(made, replace(rules, references=given))


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Verdict.PASS),
        ({32768: 2.4}, Verdict.PASS),
        ({32768: 2.4, 65536: 1.9}, Verdict.PASS),
        # a dip over several sizes, two dips, one too deep, one at the end or beyond the switches
        ({32768: 2.4, 65536: 1.9, 131072: 1.7}, Verdict.FAIL),
        ({4096: 4.0, 65536: 1.9}, Verdict.FAIL),
        ({32768: 4.0}, Verdict.FAIL),
        ({4 * MIB: 1.6}, Verdict.FAIL),
        ({MIB: 1.6}, Verdict.FAIL),
    ],
)
def test_one_switch_is_a_finding_and_no_more_than_one(
    changes: dict[int, float], verdict: Verdict
) -> None:
    report = judged_curve(changes, "latency=1.2 us")
    assert report.verdict is verdict
    told = [text for text in texts_of(report.findings) if text.startswith("protocol switch")]
    assert len(told) == (len(changes) if verdict is Verdict.PASS else 0)


def test_a_switch_is_within_the_bounds_that_history_and_perflog_hold_it_to() -> None:
    """A PASS outside its own bounds is red for ReFrame."""
    rows = [
        (size, size / (time * changed))
        for size, time in LATENCIES.items()
        for changed in [2.2 if size == 65536 else 1.0]
    ]
    rates = bandwidths(dict(rows), "osu_bw")
    slow = judged_curve({32768: 2.4, 65536: 1.9}, "latency=1.2 us")
    fast = judge_table(rates, against(Fabric(link=find_link("HDR100"))))
    for report in (slow, fast):
        switched = [each for each in report.quantities if "taken for" in each.reason]
        assert switched
        for each in switched:
            assert each.value is not None
            assert each.lower is None or each.value >= each.lower
            assert each.upper is None or each.value <= each.upper


def test_a_reference_that_names_the_size_judges_the_switch() -> None:
    report = judged_curve({32768: 2.4}, "latency=1.2 us", "latency_32KiB=4 us")
    assert report.verdict is Verdict.FAIL


# --- a latency table that was cut


def test_a_cut_latency_table_is_no_pass_by_its_first_row() -> None:
    rows = [(size, time) for size, time in LATENCIES.items() if size <= 32]
    made = table("osu_latency", ("message_size", "latency_us"), rows)
    rules = against(Fabric(link=find_link("HDR100")))

    def verdict(*references: str) -> Verdict:
        given = dict(from_text(text, tolerance=None, origin="test") for text in references)
        return judge_table(made, replace(rules, references=given)).verdict

    assert verdict("latency=1.2 us") is Verdict.MISSING
    assert verdict("latency=1.2 us", "latency_32B=1.2 us") is Verdict.PASS


# --- the text as a whole, for programs

PUT = (Path(__file__).parents[1] / "replays" / "gbe_osu_put_bw.out").read_text()


def test_a_text_is_judged_by_what_is_given() -> None:
    gigabit = Fabric(link=find_link("1GbE"))
    assert judge(PUT, gigabit).verdict is Verdict.PASS
    assert judge(PUT).verdict is Verdict.UNJUDGED
    assert judge(PUT, references=["bandwidth=117 MB/s"]).verdict is Verdict.PASS
    assert judge(PUT, references=["bandwidth=200 MB/s"]).verdict is Verdict.FAIL
    assert judge(PUT + PUT.replace("116.96", "216.96"), gigabit).verdict is Verdict.INVALID


def test_what_a_text_does_not_hold_is_missing_and_a_damaged_one_is_refused() -> None:
    report = judge(PUT, references=["latency=60 us", "bandwidth=117 MB/s"])
    assert report.verdict is Verdict.MISSING
    with pytest.raises(ParseError):
        judge(PUT + "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n1   \n")
    with pytest.raises(ConfigError, match="two values for bandwidth"):
        judge(PUT, references=["bandwidth=1 GB/s", "bandwidth=2 GB/s"])
