"""The limits of one table: what its own words say of pairs, directions, rails and shapers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, Shaper, find_link, latency_floor_us
from fabricproof.verdict.limits import Limits, loaded_fabric, num_pairs
from fabricproof.verdict.references import from_text
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules
from tables import FDR, GBE, MIB, against, bandwidths, hockney, latencies, table

SHAPED = Fabric(
    link=find_link("1GbE"),
    mtu=1500,
    shaper=Shaper(burst_bytes=65536, peak_factor=4, instant_bytes=16384),
)


def limits(made: Table, rules: Rules) -> Limits:
    return Limits(made, rules)


@pytest.mark.parametrize(
    ("attributes", "pairs"),
    [
        ({}, 1),
        ({"num_pairs": 72}, 72),
        ({"streams": 36}, 36),
        ({"num_processes": 2}, 1),
        ({"num_processes": 8}, 4),
        ({"num_processes": 1}, 1),
    ],
)
def test_pairs_are_what_the_output_says(attributes: dict[str, int], pairs: int) -> None:
    assert num_pairs(bandwidths({1: 1.0}, **attributes)) == pairs


def test_a_stated_number_of_flows_is_kept_and_directions_are_the_programs() -> None:
    stated = replace(GBE, num_flows=9, bidirectional=True)
    loaded = loaded_fabric(bandwidths({1: 1.0}, num_pairs=4), stated)
    assert (loaded.num_flows, loaded.bidirectional) == (9, False)
    assert loaded_fabric(bandwidths({1: 1.0}, "osu_bibw"), GBE).bidirectional


GIVEN = against(FDR, references=dict([from_text("5 GB/s", tolerance=None, origin="x")]))
GROUPS = table("PingPong", ("message_size", "bandwidth_mb_s"), [(1, 1.0)], suite="imb", multi=1)


@pytest.mark.parametrize(
    ("made", "rules", "reference"),
    [
        (bandwidths({1: 1.0}), GIVEN, 5000.0),  # before physics
        (latencies({0: 1.0}, "osu_multi_lat"), GIVEN, None),  # without pairs
        (GROUPS, against(FDR), None),  # silent until somebody speaks
        (GROUPS, GIVEN, 5000.0),
    ],
)
def test_a_given_reference_judges_what_it_can(
    made: Table, rules: Rules, reference: float | None
) -> None:
    found = limits(made, rules)
    assert (found.reference.value if found.reference else None) == reference
    assert reference is None or found.silence is None


def test_without_a_fabric_there_is_no_floor_and_no_ceiling() -> None:
    found = limits(bandwidths({1: 1.0}), against(None))
    assert (found.ceiling, found.reference) == (None, None)
    assert found.floor({"message_size": 8}) is None


def test_the_points_of_a_curve_are_held_against_one_rail() -> None:
    two = replace(FDR, num_rails=2)
    found = limits(hockney(6500, 1.0), against(two))
    assert found.reference is not None
    assert found.curve_mb_s == pytest.approx(found.reference.value / 2)
    one = limits(hockney(6500, 1.0), against(FDR))
    assert one.reference is not None
    assert one.curve_mb_s == one.reference.value


TWO = replace(FDR, num_rails=2)
ROWS = dict(hockney(6500, 0.6).rows)
LATE = {size: value * (2 if size > 8192 else 1) for size, value in ROWS.items()}
DIP = {**ROWS, 65536: ROWS[65536] / 3}
SHORT = {1024: 900.0, 65536: 300.0, 64 * MIB: 117.0}


def iperf(protocol: str) -> Table:
    return table("iperf3", ("bandwidth_mb_s",), [(119.6,)], suite="iperf3", protocol=protocol)


@pytest.mark.parametrize(
    ("made", "rules", "verdict"),
    [
        # a curve that stripes late, and one that never does
        (bandwidths(LATE), against(TWO), Verdict.PASS),
        (bandwidths(ROWS), against(TWO), Verdict.FAIL),
        # a shaper lets short messages pass faster and the plateau not
        (bandwidths(SHORT), against(SHAPED), Verdict.PASS),
        (bandwidths(SHORT), against(GBE), Verdict.INVALID),
        (bandwidths({**SHORT, 64 * MIB: 125.0}), against(SHAPED), Verdict.INVALID),
        # a looser curve is the rules' to say, and leaves the plateau as it is
        (bandwidths(DIP), against(FDR), Verdict.FAIL),
        (bandwidths(DIP), against(FDR, curve_tolerance=5.0), Verdict.PASS),
        (hockney(5600, 0.6), against(FDR, curve_tolerance=100.0), Verdict.FAIL),
        # UDP has shorter headers than TCP
        (iperf("UDP"), against(GBE), Verdict.PASS),
        (iperf("TCP"), against(GBE), Verdict.INVALID),
        # as often as the port runs by itself, the last message is nothing: shared memory is found
        (
            replace(latencies({1: 0.46}, "osu_multi_lat"), suite="osu-mpi4py"),
            Rules(fabric=GBE),
            Verdict.INVALID,
        ),
    ],
)
def test_a_table_is_judged_within_its_limits(made: Table, rules: Rules, verdict: Verdict) -> None:
    assert judge_table(made, rules).verdict is verdict


def test_a_wire_has_one_ceiling_for_every_size() -> None:
    found = limits(bandwidths({1: 1.0}), against(GBE))
    assert found.ceiling_of(64) == found.ceiling_of(4 * MIB) == found.ceiling


def test_a_message_without_a_ceiling_has_none_in_its_record() -> None:
    judged = judge_table(bandwidths({1024: 900.0}), against(SHAPED)).quantities[0]
    assert (judged.ceiling, judged.upper) == (None, None)


@given(st.integers(min_value=1, max_value=2**28))
def test_a_shaper_never_lowers_a_ceiling(size: int) -> None:
    shaped = limits(bandwidths({1: 1.0}), against(SHAPED))
    made = shaped.ceiling_of(size)
    assert made is not None
    assert shaped.ceiling is not None
    assert made.high_mb_s >= shaped.ceiling.high_mb_s
    larger = shaped.ceiling_of(2 * size)
    assert larger is not None
    assert larger.high_mb_s <= made.high_mb_s


def test_a_stated_protocol_outranks_the_output() -> None:
    assert loaded_fabric(iperf("UDP"), replace(GBE, protocol="tcp")).protocol == "tcp"


@pytest.mark.parametrize(
    ("suite", "program", "version", "repetitions", "share", "invalid"),
    [
        ("osu-mpi4py", "osu_multi_lat", None, 60, 0.997, False),
        ("osu-mpi4py", "osu_multi_lat", None, 60, 0.99, True),
        ("osu-mpi4py", "osu_multi_lat", None, 3, 0.93, False),
        ("osu-mpi4py", "osu_multi_lat", None, 3, 0.9, True),
        ("osu", "osu_multi_lat", "5.7.1", 60, 0.997, False),
        ("osu", "osu_multi_lat", "5.8", 60, 0.997, True),
        ("osu", "osu_multi_lat", "7.2", 60, 0.997, True),
        ("osu-mpi4py", "osu_latency", None, 60, 0.997, True),
    ],
)
def test_the_mean_of_both_ends_may_miss_the_last_message(
    suite: str, program: str, version: str | None, repetitions: int, share: float, invalid: bool
) -> None:
    """Seen live, 23.73 MB/s: 43998 us for 1 MiB of the port, 0.2 % below what its bytes take."""
    floor = latency_floor_us(GBE, MIB).us
    made = replace(
        latencies({MIB: floor * share}, program),
        suite=suite,
        version=version,
        attributes={"least_repetitions": repetitions},
    )
    report = judge_table(made, Rules(fabric=GBE))
    assert (report.verdict is Verdict.INVALID) == invalid
