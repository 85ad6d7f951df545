"""The limits of one table: what its own words say of pairs, directions, rails and shapers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, Shaper, find_link, latency_floor_us
from fabricproof.verdict.limits import Limits, loaded_fabric, num_pairs
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules, from_text
from tables import FDR, GBE, MIB, against, bandwidths, hockney, latencies, table

SHAPED = Fabric(
    link=find_link("1GbE"),
    mtu=1500,
    shaper=Shaper(burst_bytes=65536, peak_factor=4, instant_bytes=16384),
)


def limits(made: Table, rules: Rules) -> Limits:
    return Limits.of(made, reading_of(made), rules)


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


def test_a_given_reference_comes_before_physics() -> None:
    given_ = dict([from_text("5 GB/s", tolerance=None, origin="x")])
    found = limits(bandwidths({1: 1.0}), against(FDR, references=given_)).reference
    assert found is not None
    assert found.value == 5000.0


def test_without_a_fabric_there_is_no_floor_and_no_ceiling() -> None:
    found = limits(bandwidths({1: 1.0}), against(None))
    assert (found.ceiling, found.reference) == (None, None)
    assert found.floor(reading_of(bandwidths({1: 1.0})), 8) is None


def test_the_points_of_a_curve_are_held_against_one_rail() -> None:
    two = replace(FDR, num_rails=2)
    found = limits(hockney(6500, 1.0), against(two))
    assert found.reference is not None
    assert found.curve_reference is not None
    assert found.curve_reference.value == pytest.approx(found.reference.value / 2)
    one = limits(hockney(6500, 1.0), against(FDR))
    assert one.curve_reference is one.reference


def test_a_curve_that_stripes_late_is_green_and_one_that_never_does_is_red() -> None:
    two = replace(FDR, num_rails=2)
    rows = dict(hockney(6500, 0.6).rows)
    late = {size: value * (2 if size > 8192 else 1) for size, value in rows.items()}
    assert judge_table(bandwidths(late), against(two)).verdict is Verdict.PASS
    assert judge_table(bandwidths(rows), against(two)).verdict is Verdict.FAIL


def test_a_wire_has_one_ceiling_for_every_size() -> None:
    found = limits(bandwidths({1: 1.0}), against(GBE))
    assert found.ceiling_of(64) == found.ceiling_of(4 * MIB) == found.ceiling


def test_a_shaper_lets_short_messages_pass_faster_and_the_plateau_not() -> None:
    rows = {1024: 900.0, 65536: 300.0, 64 * MIB: 117.0}
    assert judge_table(bandwidths(rows), against(SHAPED)).verdict is Verdict.PASS
    assert judge_table(bandwidths(rows), against(GBE)).verdict is Verdict.INVALID
    fast = {**rows, 64 * MIB: 125.0}
    assert judge_table(bandwidths(fast), against(SHAPED)).verdict is Verdict.INVALID


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


def test_a_looser_curve_is_the_rules_to_say() -> None:
    rows = dict(hockney(6500, 0.6).rows)
    rows[65536] /= 3
    assert judge_table(bandwidths(rows), against(FDR)).verdict is Verdict.FAIL
    loose = against(FDR, curve_tolerance=5.0)
    assert judge_table(bandwidths(rows), loose).verdict is Verdict.PASS


def test_a_looser_curve_leaves_the_plateau_as_it_is() -> None:
    loose = against(FDR, curve_tolerance=100.0)
    assert judge_table(hockney(5600, 0.6), loose).verdict is Verdict.FAIL


def test_multi_pair_latencies_without_pairs_have_no_reference() -> None:
    made = latencies({0: 1.0}, "osu_multi_lat")
    given_ = dict([from_text("5 GB/s", tolerance=None, origin="x")])
    assert limits(made, against(FDR, references=given_)).reference is None


def test_a_table_of_groups_is_silent_until_somebody_speaks() -> None:
    made = table("PingPong", ("message_size", "bandwidth_mb_s"), [(1, 1.0)], suite="imb", multi=1)
    assert limits(made, against(FDR)).reference is None
    given_ = dict([from_text("5 GB/s", tolerance=None, origin="x")])
    found = limits(made, against(FDR, references=given_))
    assert found.reference is not None
    assert found.silence is None


@pytest.mark.parametrize(("protocol", "verdict"), [("UDP", Verdict.PASS), ("TCP", Verdict.INVALID)])
def test_udp_has_shorter_headers_than_tcp(protocol: str, verdict: Verdict) -> None:
    made = table("iperf3", ("bandwidth_mb_s",), [(119.6,)], suite="iperf3", protocol=protocol)
    assert judge_table(made, against(GBE)).verdict is verdict


def test_a_stated_protocol_outranks_the_output() -> None:
    made = table("iperf3", ("bandwidth_mb_s",), [(119.6,)], suite="iperf3", protocol="UDP")
    assert loaded_fabric(made, replace(GBE, protocol="tcp")).protocol == "tcp"


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


def test_a_pasted_table_of_a_mean_keeps_its_floor() -> None:
    """As often as the port runs by itself, the last message is nothing: shared memory is found."""
    made = replace(latencies({1: 0.46}, "osu_multi_lat"), suite="osu-mpi4py")
    assert judge_table(made, Rules(fabric=GBE)).verdict is Verdict.INVALID
