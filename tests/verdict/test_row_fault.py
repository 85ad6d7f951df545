"""A table that contradicts itself proves nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.laws import row_fault
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules, at_least, at_most
from tables import FDR, table

SIZES = st.sampled_from([1, 8, 1024, 65536, 4 * 1024 * 1024])
TIMES = st.floats(min_value=0.5, max_value=1e5)

PING = ("message_size", "repetitions", "latency_us", "bandwidth_mb_s")
BOTH = (
    "message_size", "repetitions", "latency_min_us", "latency_max_us", "latency_avg_us",
    "bandwidth_mb_s",
)  # fmt: skip
RATE = ("message_size", "bandwidth_mb_s", "message_rate_per_s")


def fault_of(made: Table) -> str | None:
    """Return what is wrong with the first row."""
    return row_fault(made, reading_of(made), made.named_rows[0])


def _imb(program: str, columns: tuple[str, ...], row: tuple[float, ...]) -> str | None:
    return fault_of(table(program, columns, [row], suite="imb"))


@given(SIZES, TIMES)
def test_what_imb_computes_is_sound(size: int, time: float) -> None:
    printed = round(time, 2)
    assert _imb("PingPong", PING, (size, 100, printed, round(size / time, 2))) is None
    assert _imb("PingPing", PING, (size, 100, printed, round(size / time, 2))) is None
    for program, factor in (("Sendrecv", 2), ("Exchange", 4)):
        row = (size, 100, printed, printed, printed, round(factor * size / time, 2))
        assert _imb(program, BOTH, row) is None


@pytest.mark.parametrize(
    ("program", "columns", "row"),
    [
        ("PingPong", PING, (65536, 100, 625.94, 209.40)),
        ("Sendrecv", BOTH, (65536, 100, 99.0, 100.0, 99.5, 655.36)),
        ("Exchange", BOTH, (65536, 100, 99.0, 100.0, 99.5, 1310.72)),
        ("Uniband", RATE, (1024, 200.0, 100000)),
    ],
)
def test_a_row_that_contradicts_itself_is_named(
    program: str, columns: tuple[str, ...], row: tuple[float, ...]
) -> None:
    fault = _imb(program, columns, row)
    assert fault is not None
    assert "the row contradicts itself" in fault
    assert f"the table says {row[columns.index('bandwidth_mb_s')]:g}" in fault


P2P = (*PING, "message_rate_per_s")
DENIED = "under way at once"


@pytest.mark.parametrize(
    ("columns", "row", "said"),
    [
        # rows of the document
        (P2P, (262144, 3200, 52.57, 4986.11, 19021), None),
        (P2P, (1, 100000, 48.05, 0.02, 20813), None),
        (PING, (0, 100, 0.0, 0.0), None),  # a time lost in rounding binds nothing
        # a time that the message rate denies
        (P2P, (32, 20, 60.38, 0.53, 16562), None),
        *((P2P, (32, 20, time_us, 0.53, 16562), DENIED) for time_us in (1e18, 600.0, 0.6e9)),
        (P2P, (32, 20, 0.02, 0.53, 16562), ""),
    ],
)
def test_a_time_and_a_rate_agree(
    columns: tuple[str, ...], row: tuple[float, ...], said: str | None
) -> None:
    fault = _imb("PingPong", columns, row)
    assert fault is None if said is None else said in (fault or "nothing")
    assert (fault is None) is (said is None)


def test_osu_rates_and_bandwidths_agree() -> None:
    def fault(rate: float) -> str | None:
        return fault_of(table("osu_mbw_mr", RATE, [(4194304, 12910.31, rate)], num_pairs=72))

    assert fault(3078.06) is None
    assert fault(1539.03) is not None


def test_a_failed_validation_is_named_whatever_the_row() -> None:
    made = table("osu_bw", ("message_size", "bandwidth_mb_s"), [(1, 1.0)], validation="Fail")
    assert "data validation failed" in str(fault_of(made))


def test_wrong_bytes_that_imb_found_at_any_size_make_all_of_the_table_invalid() -> None:
    def verdict(defects: float) -> Verdict:
        rows = [(0, 1000, 1.3, 0.0, defects), (1048576, 40, 170.0, 6168.09, 0.0)]
        made = table("PingPong", (*PING, "defects"), rows, suite="imb")
        references = {"latency": at_most(2.0, origin="test")}
        return judge_table(made, Rules(fabric=FDR, references=references)).verdict

    assert verdict(0.0) is Verdict.PASS
    assert verdict(0.01) is Verdict.PASS  # IMB's own tolerance
    assert verdict(1.0) is Verdict.INVALID


COUNTS = [
    ("imb", "PingPong", PING, (8, 0, 2.0, 4.0), {}),
    ("perftest", "ib_write_bw", RATE, (8, 4.0, 500000), {"num_qps": 0}),
    ("osu", "osu_mbw_mr", RATE, (8, 4.0, 500000), {"num_pairs": 0}),
    ("iperf3", "iperf3", ("bandwidth_mb_s",), (4.0,), {"duration_s": 0, "moved_bytes": 4}),
    ("imb", "PingPong", PING, (8, 100, 2.0, 4.0), {"num_processes": 1}),
]


@pytest.mark.parametrize(("suite", "program", "columns", "row", "said"), COUNTS)
def test_nothing_that_ran_never_passes(
    suite: str, program: str, columns: tuple[str, ...], row: tuple[float, ...], said: dict[str, int]
) -> None:
    made = table(program, columns, [row], suite=suite, **said)
    rules = Rules(fabric=None, references={"bandwidth": at_least(1, origin="x")})
    assert judge_table(made, rules).verdict is Verdict.INVALID


def test_of_a_derived_datatype_the_bytes_on_the_wire_count() -> None:
    """OSU 7.4, -D: a quarter of each buffer crosses."""
    columns = ("message_size", "latency_us", "transmit_size")
    rows = [(8 << n, round(1.2 + (2 << n) / 12300, 2), 2 << n) for n in range(20)]
    rules = Rules(
        fabric=Fabric(link=find_link("EDR")), references={"latency": at_most(1.2, origin="x")}
    )
    report = judge_table(table("osu_latency", columns, rows), rules)
    assert report.verdict is Verdict.PASS
    assert report.quantities[-1].name == "latency_4MiB"
    slow = [(size, time * (2 if size > 1 << 20 else 1), sent) for size, time, sent in rows]
    assert judge_table(table("osu_latency", columns, slow), rules).verdict is Verdict.FAIL
    fast = [(size, time / 2, sent) for size, time, sent in rows]
    assert judge_table(table("osu_latency", columns, fast), rules).verdict is Verdict.INVALID


LAT = (
    "message_size", "latency_min_us", "latency_max_us", "latency_p50_us", "latency_avg_us",
    "latency_p99_us", "latency_p999_us",
)  # fmt: skip
#: ib_write_lat over HDR, in the order of LAT; and what cannot be
SOUND = (2, 0.88, 9.63, 0.91, 0.92, 1.10, 9.63)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (SOUND, None),
        ((2, 0.92, 0.93, 0.91, 0.92, 0.91, 0.92), None),
        ((2, 0.88, 9.63, 0.87, 0.92, 1.10, 9.63), None),
        ((2, 5.00, 9.63, 0.91, 0.92, 1.10, 9.63), "latency_min_us"),
        ((2, 0.88, 9.63, 0.70, 0.92, 1.10, 9.63), "latency_min_us"),
        ((2, 0.88, 0.90, 0.89, 0.92, 0.90, 0.90), "latency_avg_us"),
        ((2, 0.88, 9.63, 0.91, 0.92, 0.10, 9.63), "latency_p50_us"),
        ((2, 0.88, 9.63, 0.91, 0.92, 1.10, 1.00), "latency_p99_us"),
        ((2, 0.88, 9.63, 0.91, 0.92, 1.10, 19.0), "latency_p999_us"),
        ((2, 0.10, 9.63, 0.91, 0.92, 1.10, 9.63), "below the floor"),
    ],
)
def test_times_of_perftest_are_in_order_and_the_least_is_possible(
    row: tuple[float, ...], fault: str | None
) -> None:
    made = table("ib_write_lat", LAT, [row], suite="perftest")
    rules = Rules(
        fabric=Fabric(link=find_link("HDR")), references={"latency": at_most(1, origin="x")}
    )
    (judged,) = judge_table(made, rules).quantities
    if fault is None:
        assert judged.verdict is Verdict.PASS
    else:
        assert judged.verdict is Verdict.INVALID
        assert fault in judged.reason


@pytest.mark.parametrize(
    ("peak", "sound"), [(0.0, True), (5000.0, True), (6300.0, True), (4985.0, True), (99.0, False)]
)
def test_no_average_is_above_its_peak(peak: float, sound: bool) -> None:
    """A peak of 0 was not measured; one a little above the wire is of whole cycles of the CPU."""
    columns = ("message_size", "bandwidth_peak_mb_s", "bandwidth_mb_s", "message_rate_per_s")
    made = table("ib_write_bw", columns, [(65536, peak, 5000.0, 76294)], suite="perftest")
    assert (fault_of(made) is None) is sound


TAILS = ("message_size", "bandwidth_mb_s", *(f"bandwidth_p{n}_mb_s" for n in (50, 90, 99)))


@pytest.mark.parametrize(
    ("tails", "fault"),
    [
        ((6200.0, 6350.0, 6400.0), None),
        ((6200.0, 6000.0, 6400.0), "bandwidth_p50_mb_s"),
        ((6200.0, 6350.0, 9000.0), "of the ceiling"),
    ],
)
def test_tails_of_osu_are_in_order_and_within_the_ceiling(
    tails: tuple[float, ...], fault: str | None
) -> None:
    """OSU 7.4 sorts them (omb_calculate_tail_lat); each is of one window."""
    made = table("osu_bw", TAILS, [(4194304, 6300.0, *tails)])
    (judged,) = judge_table(made, Rules(fabric=FDR)).quantities
    assert (judged.verdict is Verdict.PASS) is (fault is None)
    assert (fault or "") in judged.reason
