"""The judge on whole tables: no green for what was not measured, no red that is taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof import judge
from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import COLUMNS, Table, Verdict
from fabricproof.core.units import size_label
from fabricproof.physics import Fabric, bound, find_link
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.references import from_text
from fabricproof.verdict.table import judge_table, unanswered
from fabricproof.verdict.value import (
    Judgement,
    Reference,
    Report,
    Rules,
    at_least,
    at_most,
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


PASS, FAIL, INVALID, UNJUDGED, MISSING, *_ = Verdict
BIG = 4 * MIB
#: eight pairs over one rail
SHARED = {0: 1.0, **{2**power: 1.0 + 8 * 2**power / 6500 for power in range(23)}}
TIMES = [(0, 40.0), (1, 41.0), (2, 42.0), (4, 43.0), (8, 70.0)]
FORTY = Fabric(link=find_link("40GbE"))
NAMES = [f"bandwidth_{size_label(int(size))}" for size, _ in HEALTHY.rows]
LIMITED = replace(Fabric(link=find_link("100GbE")), flow_limit_gbit_s=10)


def curve(changes: dict[int, float], last: int = BIG) -> Table:
    return bandwidths({**dict(hockney(6600, 0.6, last=last).rows), **changes})


def put(synchronization: str) -> Table:
    rows, columns = [(1, 0.1), (2, 0.1)], ("message_size", "latency_us")
    return table("osu_put_latency", columns, rows, synchronization=synchronization)


def collective(program: str, *times: float) -> Table:
    rows = [(2**power, time) for power, time in enumerate(times)]
    return table(program, ("message_size", "latency_avg_us"), rows)


def imb(program: str, size_and_time: list[tuple[int, float]], **attributes: int | str) -> Table:
    return replace(pingpong(size_and_time, **attributes), program=program)


def exchange(processes: int) -> Table:
    columns = ("message_size", "latency_max_us", "bandwidth_mb_s")
    row = [(BIG, 145000.0, round(2 * BIG / 145000.0, 2))]
    return table("Sendrecv", columns, row, suite="imb", num_processes=processes)


def pairs(mb_s: float, **attributes: int) -> Table:
    return bandwidths({BIG: mb_s}, "osu_mbw_mr", **attributes)


def given_(*texts: str, fabric: Fabric | None = FDR) -> Rules:
    return against(fabric, references=stated(*texts))


Case = tuple[Table, Rules, Verdict, dict[str, Verdict], str]

#: what is judged by which rules, the verdict, those of some quantities, and words of why
CASES: dict[str, Case] = {
    "a healthy curve": (HEALTHY, against(FDR), PASS, {}, "path not shown"),
    "a low plateau": (hockney(5600, 0.6), against(FDR), FAIL, {"bandwidth_4MiB": FAIL}, ""),
    "one bad row inside the curve": (
        curve({65536: dict(HEALTHY.rows)[65536] / 10}), against(FDR), FAIL,
        {**dict.fromkeys(NAMES, PASS), "bandwidth_64KiB": FAIL}, "dip: 64KiB"),
    "one impossible row": (
        curve({65536: 7000.0}), against(FDR), INVALID, {"bandwidth_64KiB": INVALID},
        "103% of the bare link"),
    "no fabric and no references": (HEALTHY, against(None), UNJUDGED, {}, ""),
    "a plateau that rounds to nothing": (bandwidths({1: 0.0}), against(GBE), INVALID, {}, ""),
    "a zero in a large row": (curve({65536: 0.0}), against(FDR), INVALID, {}, ""),
    "both directions": (bandwidths({BIG: 13000.0}, "osu_bibw"), against(FDR), PASS, {}, ""),
    "both of one direction": (bandwidths({BIG: 13000.0}), against(FDR), INVALID, {}, ""),
    "one of both": (bandwidths({BIG: 6500.0}, "osu_bibw"), against(FDR), FAIL, {}, ""),
    **{f"small messages alone, to {last} B": (
        hockney(6600, 0.6, last=last), against(FDR), UNJUDGED, {f"bandwidth_{last}B": UNJUDGED},
        "cannot show the plateau") for last in (8, 64, 256)},
    "small messages that are too slow": (
        curve({64: dict(HEALTHY.rows)[64] / 20}, last=64), against(FDR), FAIL, {}, ""),
    "a short table with its plateau": (
        curve({}, last=256 * 1024), against(FDR), PASS, {}, "the table ends at 256KiB"),
    **{f"a single row of {mb_s} at {size}": (
        bandwidths({size: mb_s}), against(FDR), verdict, {}, "")
        for size in (MIB, BIG) for mb_s, verdict in ((6300.0, PASS), (5600.0, FAIL))},
    "a single small row": (bandwidths({4096: 3000.0}), against(FDR), UNJUDGED, {}, ""),
    "a single row that meets a reference": (
        bandwidths({BIG: 3400.0}), given_("3.4 GB/s", fabric=None), PASS, {}, ""),
    "a single row below a reference": (
        bandwidths({BIG: 3000.0}), given_("3.4 GB/s", fabric=None), FAIL, {}, ""),
    "a table that begins late": (hockney(4600, 50, first=65536), against(FORTY), PASS, {}, ""),
    "a reference of one size": (
        HEALTHY, given_("bandwidth_64KiB=6 GB/s"), PASS, {"bandwidth_64KiB": PASS}, ""),
    "a size that the table lacks": (
        curve({}, last=MIB), given_("bandwidth_4MiB=6 GB/s"), MISSING,
        {"bandwidth_4MiB": MISSING}, ""),
    "a size lost in rounding that a reference asks for": (
        bandwidths({**dict(hockney(117, 50).rows), 1: 0.0}),
        given_("bandwidth_1B=1 MB/s", fabric=GBE), INVALID, {"bandwidth_1B": INVALID}, ""),
    "a latency asked for beside bandwidths": (
        pingpong(TIMES), given_("latency_8B=50 us", fabric=GBE), FAIL, {"latency_8B": FAIL}, ""),
    "a latency asked for and not there": (
        pingpong(TIMES), given_("latency_64B=50 us", fabric=GBE), MISSING,
        {"latency_64B": MISSING}, ""),
    "a reference in a foreign unit": (
        bandwidths({BIG: 6600.0}),
        against(FDR, references={"bandwidth": at_least(6.6, unit="GB/s", origin="x")}), UNJUDGED,
        {}, ""),
    "a latency table without reference": (
        latencies(LATENCY), against(FDR), UNJUDGED, {"latency_0B": UNJUDGED}, ""),
    **{f"{program} with a reference": (
        latencies(LATENCY, program), given_("latency=1.1 us"), PASS, {}, "")
        for program in ("osu_latency", "osu_put_latency", "osu_get_latency")},
    "a large message faster than the wire": (
        latencies({**LATENCY, BIG: BIG / 7000}), given_("latency=1.1 us"), INVALID,
        {"latency_4MiB": INVALID}, ""),
    "a large message slower than the curve": (
        latencies({**LATENCY, BIG: 2 * LATENCY[BIG]}), given_("latency=1.1 us"), FAIL,
        {"latency_4MiB": FAIL}, ""),
    "completion at the origin": (put("MPI_Win_flush_local"), against(FDR), UNJUDGED, {}, ""),
    "completion below the floor": (put("MPI_Win_flush"), against(FDR), INVALID, {}, ""),
    "pairs that share a rail": (
        latencies(SHARED, "osu_multi_lat", num_pairs=8), given_("latency=1.1 us"), PASS, {}, ""),
    "pairs that nobody counted": (
        latencies(SHARED, "osu_multi_lat"), given_("latency=1.1 us"), UNJUDGED,
        {"latency_4MiB": UNJUDGED}, "how many pairs"),
    "many flows are no excuse for one pair": (
        latencies({0: 50.0, **{2**power: 50.0 + 20 * 2**power / 117 for power in range(23)}}),
        given_("latency=60 us", fabric=replace(GBE, num_flows=36)), FAIL, {}, ""),
    **{f"{program} by physics": (
        collective(program, 0.1, 0.1, 0.1), against(FDR), UNJUDGED,
        {f"latency_{size}B": UNJUDGED for size in (1, 2, 4)}, "")
        for program in ("osu_bcast", "osu_allreduce", "osu_gather")},
    "a collective with one reference": (
        collective("osu_bcast", 5.0, 5.0), given_("latency=6 us"), UNJUDGED, {}, ""),
    "a collective with all references": (
        collective("osu_bcast", 5.0, 5.0), given_("latency_1B=6 us", "latency_2B=6 us"), PASS,
        {}, ""),
    "a barrier": (
        table("osu_barrier", ("latency_avg_us",), [(5.0,)]), given_("latency=6 us"), PASS,
        {"latency": PASS}, ""),
    "no numbers": (table("osu_hello", ("num_processes",), [(2,)]), against(FDR), UNJUDGED, {}, ""),
    "the first time of a ping-pong": (
        pingpong([(0, 49.81), (BIG, 36276.94)]), against(GBE), PASS, {},
        "latency_0B = 49.81 us not judged"),
    "shared memory": (
        pingpong([(0, 49.81), (1, 0.44), (BIG, 36276.94)]), against(GBE), INVALID,
        {"latency_1B": INVALID}, ""),
    "aggregated times": (
        imb("Unidir_put", [(1, 0.05), (BIG, 36e3)], mode="AGGREGATE"), against(GBE), PASS, {}, ""),
    "times one by one": (
        imb("Unidir_put", [(1, 0.05), (BIG, 36e3)], mode="NON-AGGREGATE"), against(GBE), INVALID,
        {}, ""),
    "groups at once": (
        pingpong([(BIG, 72000.0)], multi=1, group=0), against(GBE), UNJUDGED,
        {"bandwidth_4MiB": UNJUDGED}, "several groups"),
    "groups at once with a reference": (
        pingpong([(BIG, 72000.0)], multi=1, group=0), given_("bandwidth=58 MB/s", fabric=GBE),
        PASS, {}, ""),
    "an exchange of two": (exchange(2), against(GBE), FAIL, {}, ""),
    "an exchange of eight": (exchange(8), against(GBE), UNJUDGED, {}, ""),
    "pairs are flows": (
        pairs(4500.0, num_pairs=4), against(replace(LIMITED, num_flows=4)), PASS, {}, ""),
    "more than a flow may": (pairs(4500.0), against(LIMITED), INVALID, {}, ""),
    "a failed validation": (
        replace(HEALTHY, attributes={"validation": "Fail"}), against(FDR), INVALID,
        dict.fromkeys(NAMES, INVALID), ""),
    "a passed validation": (
        replace(HEALTHY, attributes={"validation": "Pass"}), against(FDR), PASS, {}, ""),
    "a row that contradicts itself": (
        table("PingPong", PING, [(BIG, 10, 36276.94, 112.0)], suite="imb"), against(GBE), INVALID,
        {}, ""),
    "a path that is due and not shown": (
        HEALTHY, against(FDR, path_required=True), UNJUDGED, dict.fromkeys(NAMES, UNJUDGED), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_judged(name: str) -> None:
    made, rules, verdict, some, words = CASES[name]
    report = judge_table(made, rules)
    judged = by_name(report)
    assert (report.verdict, {each: judged[each].verdict for each in some}) == (verdict, some)
    said = [each.reason for each in report.quantities] + texts_of(report.findings)
    assert not words or any(words in each for each in said)
    if verdict is PASS:
        assert {each.verdict for each in report.quantities} == {PASS}
        assert made is not HEALTHY or not any("ends at" in each for each in said)


def test_every_row_is_judged_but_for_small_messages_that_round_to_nothing() -> None:
    assert len(judge_table(HEALTHY, against(FDR)).quantities) == len(HEALTHY.rows)
    rows = {1: 0.0, 2: 0.0, 4: 0.01, 8: 0.02, 16: 0.03, 32: 0.07, 64: 0.13}
    names = by_name(judge_table(bandwidths(rows), against(GBE)))
    assert ("bandwidth_1B" in names, "bandwidth_4B" in names) == (False, True)


def test_a_reference_of_one_size_names_that_size() -> None:
    judged = by_name(judge_table(HEALTHY, given_("bandwidth_64KiB=6 GB/s")))["bandwidth_64KiB"]
    assert (judged.named, judged.origin) == (True, "test")


def test_the_plateau_is_named_and_the_curve_is_not() -> None:
    named = [each.name for each in judge_table(HEALTHY, against(FDR)).quantities if each.named]
    assert named == ["bandwidth_4MiB"]


def test_a_latency_reference_means_nothing_to_a_table_without_times() -> None:
    references = stated("latency=1 us", "latency_8B=1 us")
    report = judge_table(HEALTHY, against(FDR, references=references))
    assert report.verdict is Verdict.PASS
    assert unanswered(references, report.quantities) == ["latency", "latency_8B"]


# --- soundness and the path


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


# --- laws

SIZES = st.lists(st.integers(min_value=0, max_value=2**26), min_size=1, max_size=8, unique=True)
NUMBERS = st.floats(min_value=0, max_value=1e18, allow_nan=False)
PROGRAMS = [
    ("osu", "osu_bw"), ("osu", "osu_bibw"), ("osu", "osu_mbw_mr"), ("osu", "osu_latency"),
    ("osu", "osu_multi_lat"), ("osu", "osu_put_latency"), ("osu", "osu_allreduce"),
    ("osu", "osu_barrier"), ("osu-mpi4py", "osu_bw"), ("imb", "PingPong"), ("imb", "PingPing"),
    ("imb", "Exchange"), ("imb", "Uniband"), ("imb", "Allreduce"), ("imb", "Window"),
    ("iperf3", "iperf3"), ("linktest", "bidirectional"),
]  # fmt: skip
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
    others = st.sampled_from(
        sorted({*COLUMNS, "latency_p50_us", "bandwidth_p99_mb_s"} - {"message_size"})
    )
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
    ("changes", "references", "verdict"),
    [
        ({}, [], PASS),
        ({32768: 2.4}, [], PASS),
        ({32768: 2.4, 65536: 1.9}, [], PASS),
        # a dip over several sizes, two dips, one too deep, one at the end or beyond the switches
        ({32768: 2.4, 65536: 1.9, 131072: 1.7}, [], FAIL),
        ({4096: 4.0, 65536: 1.9}, [], FAIL),
        ({32768: 4.0}, [], FAIL),
        ({4 * MIB: 1.6}, [], FAIL),
        ({MIB: 1.6}, [], FAIL),
        # a reference that names the size judges the switch
        ({32768: 2.4}, ["latency_32KiB=4 us"], FAIL),
    ],
)
def test_one_switch_is_a_finding_and_no_more_than_one(
    changes: dict[int, float], references: list[str], verdict: Verdict
) -> None:
    report = judged_curve(changes, "latency=1.2 us", *references)
    assert report.verdict is verdict
    told = [text for text in texts_of(report.findings) if text.startswith("protocol switch")]
    assert references or len(told) == (len(changes) if verdict is PASS else 0)


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
