"""Which causes are named of a number out of its bounds, and which are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, bound, find_link, find_slot
from fabricproof.verdict.causes import suspects
from fabricproof.verdict.causes.suspects import causes_of, explained
from fabricproof.verdict.curve import inverted_latencies
from fabricproof.verdict.value import Judgement
from tables import CX2, FDR, GBE, MIB, QDR, bandwidths, hockney, latencies, table

CX3 = Fabric(link=find_link("QDR 4x"), slot=find_slot("3.0x8"), num_rails=2, rails_share_slot=True)
EDR = Fabric(link=find_link("EDR 4x"))
C5N = Fabric(link=find_link("100GbE"))
ROCE = replace(C5N, protocol="rocev2", num_flows=8)
TEN = Fabric(link=find_link("10GbE"))
TABLES = (suspects.PRINTED, suspects.SHOWN, suspects.MATCHES, suspects.USUAL, suspects.NEXT,
          suspects.BEYOND)  # fmt: skip


def red(mb_s: float, fabric: Fabric, **facts: Any) -> Judgement:
    """Return a bandwidth that is held against ``fabric``: FAIL below it, INVALID above."""
    limit = bound(fabric)
    is_low = mb_s < 0.9 * limit.low_mb_s
    named: dict[str, Any] = {
        "name": "bandwidth", "value": mb_s, "unit": "MB/s", "message_size": 4 * MIB,
        "verdict": Verdict.FAIL if is_low else Verdict.INVALID, "reason": "because",
        "reference": limit.low_mb_s, "lower": 0.9 * limit.low_mb_s, "ceiling": limit.high_mb_s,
    }  # fmt: skip
    return Judgement(**{**named, **facts})


def names(value: float, fabric: Fabric, of: Table | None = None, **facts: Any) -> list[str]:
    of = of or bandwidths({4 * MIB: value}, **facts)
    return [name for name, _ in causes_of(red(value, fabric), of, fabric)]


def run(suite: str, value: float, **attributes: Any) -> Table:
    """Return one row of a suite with one column of bandwidth."""
    program = {"iperf3": "iperf3", "perftest": "ib_write_bw"}[suite]
    columns = ("message_size", "bandwidth_mb_s")
    return table(program, columns, [(4 * MIB, value)], suite=suite, **attributes)


@pytest.mark.parametrize(
    ("value", "fabric", "causes"),
    [
        (5800, CX3, ["far_socket"]),
        (3900, CX3, ["one_rail"]),
        (3376, replace(QDR, slot=find_slot("3.0x8")), ["slower_slot", "far_socket"]),
        (3376, QDR, ["slower_slot", "far_socket"]),
        (1600, CX2, ["slower_slot"]),
        (5600, FDR, ["far_socket"]),
        (1181, C5N, ["one_connection", "other_link"]),
        (1177, replace(C5N, flow_limit_gbit_s=20), ["other_link"]),  # a limit that is stated
        (8000, ROCE, ["lossy_ethernet", "far_socket"]),
        (20800, replace(EDR, bidirectional=True), ["both_ways", "far_socket"]),
        (12300, replace(EDR, bidirectional=True), ["one_direction"]),
        (2811, replace(C5N, num_flows=36, flow_limit_gbit_s=10), ["one_core"]),
        # a port that trained down: half the lanes, an older generation, another interface
        (6170, EDR, ["other_link"]),
        (6740, EDR, ["other_link"]),
        (4200, EDR, ["ask_verbs"]),  # no wrong socket costs so much
        (70, GBE, ["ask_verbs"]),  # plain Ethernet without a slot has no socket to suspect
        (30, Fabric(link=find_link("Soft-RoCE 1 Gb/s")), ["software"]),
        # above the ceiling
        (1.995 * 117.7, GBE, ["more_rails", "bare_link"]),
        (2 * 12300, EDR, ["more_rails", "faster_link", "bare_link"]),
        (9000, FDR, ["bare_link"]),
    ],
)
def test_the_causes_of_a_number(value: float, fabric: Fabric, causes: list[str]) -> None:
    found = names(value, fabric)
    assert found == causes or (causes == ["other_link"] and found[:1] == causes)


def test_the_nearest_rate_is_named_with_its_share() -> None:
    for value, fabric, words in (
        (1181, C5N, "10GbE to 100.4%"),
        (6170, EDR, "EDR 2x to 10"),
        (6740, EDR, "FDR 4x to 10"),
    ):
        found = dict(causes_of(red(value, fabric), bandwidths({4 * MIB: value}), fabric))
        assert found["other_link"].startswith(words)


@pytest.mark.parametrize(
    ("of", "fabric", "causes"),
    [
        # a curve that carried more than the limit refutes it, and falls
        (bandwidths({64: 300, MIB: 12000, 4 * MIB: 3050}), EDR, ["falls"]),
        (bandwidths({64: 300, MIB: 5000, 4 * MIB: 4200}), EDR, ["ask_verbs"]),
        # intel/mpi-benchmarks issue 37, Exchange over HDR100
        (bandwidths({MIB // 2: 12394.29, MIB: 5260.33, 4 * MIB: 3778.18}, "osu_bibw"),
         replace(EDR, bidirectional=True), ["falls"]),
        # what verbs do with small messages refutes TCP over another port
        (bandwidths({1: 5, MIB: 1150, 4 * MIB: 1177}), EDR, ["ask_verbs"]),
        (bandwidths({1: 0.4, MIB: 1150, 4 * MIB: 1177}), EDR, ["sockets", "other_link"]),
        (bandwidths({1: 0.4, MIB: 1150, 4 * MIB: 1177}), TEN, []),
        (run("perftest", 2892), ROCE, ["other_link"]),
        (run("perftest", 800), EDR, ["ask_third_node"]),
        (run("perftest", 115.7, device="rxe0"), ROCE, ["soft_device", "other_link"]),
        (run("iperf3", 905, streams=1), TEN, ["one_connection"]),
        # esnet/iperf issue 286: 16 connections, of which the sum was posted
        (run("iperf3", 4400), C5N, ["one_core"]),
        (run("iperf3", 417, streams=2), replace(TEN, num_flows=2), ["one_core", "smaller_port"]),
        (run("iperf3", 80, streams=1), GBE, ["ask_sockets"]),
        (bandwidths({4 * MIB: 5000}, num_devices=1, network_devices="mlx5_0:1"),
         replace(EDR, num_rails=2), ["fewer_devices"]),
        (bandwidths({4 * MIB: 5000}, warnings="locked_memory,no_device"), EDR,
         ["no_device", "locked_memory"]),
        (bandwidths({4 * MIB: 5000}, warnings="cpu_frequency"), EDR, ["ask_verbs"]),
    ],
)  # fmt: skip
def test_what_its_table_shows(of: Table, fabric: Fabric, causes: list[str]) -> None:
    value = of.column("bandwidth_mb_s")[-1]
    assert names(value, fabric, of) == causes


def test_a_peak_far_above_the_average() -> None:
    columns = ("message_size", "bandwidth_peak_mb_s", "bandwidth_mb_s")
    for peak, causes in ((5902.5, ["stalls"]), (3000.0, ["lossy_ethernet"])):
        of = table("ib_write_bw", columns, [(4 * MIB, peak, 2322.5)], suite="perftest")
        assert names(2322.5, ROCE, of) == causes


@pytest.mark.parametrize(
    ("fabric", "first_us", "causes"),
    [
        (EDR, 13.6, ["sockets"]),
        (EDR, 2.9, ["ask_verbs"]),
        (C5N, 60.0, ["ask_verbs"]),  # sockets were declared
    ],
)
def test_the_causes_of_a_latency(fabric: Fabric, first_us: float, causes: list[str]) -> None:
    judgement = red(first_us, fabric, unit="us", lower=None, upper=1.2, verdict=Verdict.FAIL)
    of = latencies({1: first_us, 1024: 2 * first_us})
    assert [name for name, _ in causes_of(judgement, of, fabric)] == causes
    of = replace(of, attributes={"warnings": "cpu_frequency"})
    assert causes_of(judgement, of, fabric)[0][0] == "cpu_frequency"


def test_a_latency_below_the_floor_of_tcp_may_be_that_of_verbs() -> None:
    """open-mpi/ompi issue 12785: UCX took RDMA where a TCP device was asked for."""
    tcp = replace(C5N, protocol="tcp")
    for time_us, causes in ((1.33, ["verbs_instead"]), (0.3, [])):
        facts = {"unit": "us", "ceiling": 2.0, "lower": None, "verdict": Verdict.INVALID}
        found = causes_of(red(time_us, tcp, **facts), latencies({1: time_us}), tcp)
        assert [name for name, _ in found] == causes


@pytest.mark.parametrize(
    ("facts", "fabric"),
    [
        ({"verdict": Verdict.PASS}, EDR),
        ({"verdict": Verdict.UNJUDGED}, EDR),
        ({"verdict": Verdict.MISSING, "value": None}, EDR),
        ({"verdict": Verdict.INVALID}, EDR),  # of another path: not above its ceiling
        ({"lower": 100.0}, EDR),  # fast enough, and errors rose
        ({"lower": None, "unit": "ppm"}, EDR),
        ({}, None),
    ],
)
def test_what_is_within_its_bounds_has_no_cause(
    facts: dict[str, Any], fabric: Fabric | None
) -> None:
    judgement = red(5600, EDR, **facts)
    assert explained([judgement], bandwidths({4 * MIB: 5600}), fabric) == [judgement]


def test_causes_stand_in_the_reason_of_what_is_named() -> None:
    of = bandwidths({4 * MIB: 5600})
    named, point = red(5600, FDR), red(5600, FDR, named=False)
    assert explained([point, named], of, FDR)[0] == point
    assert explained([named], of, FDR)[0].reason.startswith("because; the rank may sit")
    first, last = explained([point, point], of, FDR)
    assert first == point
    assert last.reason != point.reason


def test_a_table_that_holds_something_impossible_has_no_low_number_to_explain() -> None:
    low, high = red(5600, FDR), red(9000, FDR)
    of = bandwidths({MIB: 9000, 4 * MIB: 5600})
    first, last = explained([high, low], of, FDR)
    assert first.reason != high.reason
    assert last == low


def test_a_slot_is_named_within_the_range_that_is_printed() -> None:
    (name, sentence), *_ = causes_of(red(1600, CX2), bandwidths({4 * MIB: 1600}), CX2)
    low, high = (float(each) for each in sentence.split("(")[1].split(" MB/s")[0].split(" to "))
    assert name == "slower_slot"
    assert low <= 1600 <= high


def test_messages_that_are_faster_than_shorter_ones() -> None:
    assert inverted_latencies(latencies({128: 12.45, 256: 3.76, 512: 3.82})) == [
        "256B takes 3.76 us, 128B 12.45 us: short messages go another way, and a slower one"
    ]
    assert inverted_latencies(latencies({0: 1.4, 1: 1.1, 2: 1.1})) == []
    assert inverted_latencies(bandwidths({1: 3.0})) == []


@given(st.floats(1.0, 60000.0), st.sampled_from([EDR, FDR, QDR, C5N, ROCE, TEN, GBE, CX2, CX3]))
def test_each_red_number_has_causes_and_never_many(value: float, fabric: Fabric) -> None:
    judgement = red(value, fabric)
    limit = bound(fabric)
    found = causes_of(judgement, bandwidths({4 * MIB: value}), fabric)
    assert len(found) <= suspects.MOST
    assert found or 0.9 * limit.low_mb_s <= value <= limit.high_mb_s or value > limit.high_mb_s


@given(st.floats(100, 11000), st.floats(0.2, 30))
def test_a_whole_curve_has_causes_wherever_it_levels_off(plateau: float, start_us: float) -> None:
    curve = hockney(plateau, start_us)
    value = curve.column("bandwidth_mb_s")[-1]
    assert names(value, EDR, curve)


def test_each_row_has_a_name_of_its_own_and_a_source() -> None:
    rows = [row for rows in TABLES for row in rows]
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.sentence and row.source for row in rows)


def test_a_curve_that_ends_before_its_plateau_says_nothing_of_a_slot() -> None:
    """An MPI below 256 KiB has its protocols in it; perftest has its largest message by default."""
    short = replace(red(1600, CX2), name="bandwidth_64KiB", message_size=64 * 1024)
    of_mpi = bandwidths({64 * 1024: 1600})
    assert "slower_slot" not in [name for name, _ in causes_of(short, of_mpi, CX2)]
    columns = ("message_size", "bandwidth_mb_s")
    of_verbs = table("ib_write_bw", columns, [(64 * 1024, 1600)], suite="perftest")
    assert "slower_slot" in [name for name, _ in causes_of(short, of_verbs, CX2)]
