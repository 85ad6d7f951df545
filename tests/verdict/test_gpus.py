"""Buffers on GPUs: quantities of their own, the slot of the GPU, and copies through the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ConfigError
from fabricproof.core.measure import Table, Verdict, texts_of
from fabricproof.physics import Fabric, Gpus, bound, find_link, find_slot, through_host_mb_s
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.suspects import THROUGH_HOST
from fabricproof.verdict.table import judge_table, unanswered
from fabricproof.verdict.value import Report, Rules, from_text, from_texts
from tables import MIB, bandwidths, latencies

DATA = Path(__file__).parents[1] / "data" / "osu"

SLOT = find_slot("4.0x16")
HDR = Fabric(link=find_link("HDR 4x"))
DIRECT = replace(HDR, gpus=Gpus(slot=SLOT, direct=True))
UNKNOWN = replace(HDR, gpus=Gpus(slot=SLOT))
NOT_DIRECT = replace(HDR, gpus=Gpus(slot=SLOT, direct=False))

GOOD_MB_S = 24000.0
#: 1 / (1 / 24687 + 2 / 28800) for HDR 4x between two GPUs in slots 4.0x16
COPIED_MB_S = 9100.0

PLACES = {"DEVICE (D)": "D", "HOST (H)": "H", "MANAGED MEMORY (M)": "M"}


def on(table: Table, sends: str = "DEVICE (D)", receives: str = "DEVICE (D)") -> Table:
    said = {"accelerator": "CUDA", "send_buffer": sends, "receive_buffer": receives}
    return replace(table, attributes={**table.attributes, **said})


def made(mb_s: float, program: str = "osu_bw") -> Table:
    return bandwidths({1: 0.5, 1024: 500.0, 4 * MIB: mb_s}, program)


def judged(table: Table, fabric: Fabric | None = DIRECT, *references: str) -> Report:
    given = from_texts(references, origin="given")
    return judge_table(table, Rules(fabric=fabric, references=given))


# --- names


@pytest.mark.parametrize(
    ("sends", "receives", "name"),
    [
        ("DEVICE (D)", "DEVICE (D)", "device_bandwidth_4MiB"),
        ("HOST (H)", "DEVICE (D)", "host_to_device_bandwidth_4MiB"),
        ("DEVICE (D)", "HOST (H)", "device_to_host_bandwidth_4MiB"),
        ("MANAGED MEMORY (M)", "DEVICE (D)", "device_bandwidth_4MiB"),
        ("HOST (H)", "HOST (H)", "bandwidth_4MiB"),
    ],
)
def test_a_quantity_is_called_after_where_its_buffers_lay(
    sends: str, receives: str, name: str
) -> None:
    report = judged(on(made(GOOD_MB_S), sends, receives))
    assert [each.name for each in report.quantities if each.named] == [name]
    assert report.verdict is Verdict.PASS


def test_a_latency_likewise() -> None:
    report = judged(on(latencies({1: 5.47, 4 * MIB: 600.0})), DIRECT, "device_latency=5 us")
    assert [(each.name, each.verdict) for each in report.quantities] == [
        ("device_latency_1B", Verdict.PASS)
    ]
    cut = judged(on(latencies({1: 5.47, 1024: 5.64})), DIRECT, "device_latency=5 us")
    assert "(device_latency_1KiB=...)" in cut.quantities[-1].reason


def test_a_collective_on_gpus_says_only_the_accelerator() -> None:
    table = parse_text(
        "# OSU MPI-CUDA Allreduce Latency Test v5.9\n# Size       Avg Latency(us)\n"
        "4                      20.00\n8                      20.10\n"
    )[0]
    names = [each.name for each in judge_table(table, Rules(fabric=HDR)).quantities]
    assert names == ["device_latency_4B", "device_latency_8B"]


# --- references


def test_no_reference_of_hosts_judges_a_gpu_and_none_of_a_gpu_a_host() -> None:
    slow, fast = on(made(COPIED_MB_S)), on(made(GOOD_MB_S))
    assert judged(slow, DIRECT, "bandwidth=5 GB/s").verdict is Verdict.FAIL
    assert judged(fast, DIRECT, "host_to_device_bandwidth=90 GB/s").verdict is Verdict.PASS
    assert judged(slow, UNKNOWN, "device_bandwidth=9 GB/s").verdict is Verdict.PASS
    assert judged(slow, UNKNOWN, "device_bandwidth=24 GB/s").verdict is Verdict.FAIL
    assert judged(made(COPIED_MB_S), HDR, "device_bandwidth=5 GB/s").verdict is Verdict.FAIL


def test_a_reference_that_nothing_answers_is_told() -> None:
    report = judged(on(made(GOOD_MB_S)))
    asked = ["bandwidth", "device_bandwidth", "device_bandwidth_4MiB", "device_latency"]
    assert unanswered(asked, report.quantities) == ["bandwidth", "device_latency"]


def test_a_size_that_a_reference_names_is_judged_and_a_missing_one_told() -> None:
    table = on(made(GOOD_MB_S))
    assert judged(table, DIRECT, "device_bandwidth_1KiB=900 MB/s").verdict is Verdict.FAIL
    report = judged(table, DIRECT, "device_bandwidth_2KiB=900 MB/s")
    assert [each.name for each in report.quantities if each.verdict is Verdict.MISSING] == [
        "device_bandwidth_2KiB"
    ]


def test_a_name_that_is_no_quantity_is_refused() -> None:
    assert from_text("device_latency_8=3 us", tolerance=None, origin="")[0] == "device_latency_8B"
    for wrong in ("gpu_bandwidth=1 GB/s", "host_to_device_busbw=1 GB/s", "device_latency=1 GB/s"):
        with pytest.raises(ConfigError):
            from_text(wrong, tolerance=None, origin="")


# --- what physics promises


@pytest.mark.parametrize(
    ("fabric", "verdict", "words"),
    [
        (DIRECT, Verdict.FAIL, "below the lower bound"),
        (UNKNOWN, Verdict.UNJUDGED, "whether GPUDirect is possible here is not stated"),
        (NOT_DIRECT, Verdict.UNJUDGED, "GPUDirect is not possible here"),
        (HDR, Verdict.UNJUDGED, "whether GPUDirect is possible here is not stated"),
        (replace(HDR, gpus=Gpus(direct=True)), Verdict.UNJUDGED, "the slot of the GPU"),
        (None, Verdict.UNJUDGED, "no reference"),
    ],
)
def test_a_slow_number_is_red_where_the_site_promises_gpudirect(
    fabric: Fabric | None, verdict: Verdict, words: str
) -> None:
    report = judged(on(made(15000.0)), fabric)
    assert report.verdict is verdict
    assert words in report.quantities[-1].reason


def test_what_reaches_the_ceilings_is_fast_enough_whoever_promised_what() -> None:
    for fabric in (DIRECT, UNKNOWN, NOT_DIRECT, HDR):
        assert judged(on(made(GOOD_MB_S)), fabric).verdict is Verdict.PASS


def test_errors_on_the_path_stay_red_where_nothing_is_promised() -> None:
    proof = PathProof(state=PathState.DISTURBED, reason="symbol errors")
    report = judge_table(on(made(GOOD_MB_S)), Rules(fabric=UNKNOWN), proof)
    assert report.verdict is Verdict.FAIL


def test_the_slot_of_the_gpu_binds_and_what_is_above_it_is_impossible() -> None:
    narrow = replace(HDR, gpus=Gpus(slot=find_slot("3.0x8"), direct=True))
    report = judged(on(made(GOOD_MB_S)), narrow)
    assert report.verdict is Verdict.INVALID
    assert "gpu_slot" in report.quantities[-1].reason
    assert judged(on(made(7000.0)), narrow).verdict is Verdict.PASS
    # buffers of hosts never cross it
    assert judged(made(GOOD_MB_S), narrow).verdict is Verdict.PASS


def test_both_ways_a_slot_carries_twice() -> None:
    narrow = replace(HDR, gpus=Gpus(slot=find_slot("3.0x8"), direct=True))
    assert judged(on(made(13500.0, "osu_bibw")), narrow).verdict is Verdict.PASS
    assert judged(on(made(16000.0, "osu_bibw")), narrow).verdict is Verdict.INVALID


def test_a_point_inside_the_curve_is_not_red_and_an_impossible_one_is() -> None:
    step = {1: 0.5, 1024: 5.0, MIB: 300.0, 4 * MIB: GOOD_MB_S}
    assert judged(on(bandwidths(step))).verdict is Verdict.PASS
    assert judged(bandwidths(step), HDR).verdict is Verdict.FAIL
    assert judged(on(bandwidths({**step, MIB: 60000.0}))).verdict is Verdict.INVALID


# --- through the host


@pytest.mark.parametrize(("fabric", "verdict"), [(DIRECT, "FAIL"), (UNKNOWN, "UNJUDGED")])
def test_what_copies_through_the_host_explain_is_told_so(fabric: Fabric, verdict: str) -> None:
    report = judged(on(made(COPIED_MB_S)), fabric)
    assert report.verdict == verdict
    words = "as through the host: GPUDirect seems off"
    assert words in report.quantities[-1].reason
    assert any(words in each for each in texts_of(report.findings))


@pytest.mark.parametrize("mb_s", [1000.0, 15000.0, GOOD_MB_S])
def test_nothing_is_said_of_the_host_where_the_number_is_another(mb_s: float) -> None:
    report = judged(on(made(mb_s)), DIRECT)
    said = [each.reason for each in report.quantities] + texts_of(report.findings)
    assert not any("through the host" in each for each in said)


def test_a_pass_by_the_sites_own_number_is_told_nothing_of_the_host() -> None:
    report = judged(on(made(COPIED_MB_S)), DIRECT, "device_bandwidth=9 GB/s")
    assert report.verdict is Verdict.PASS
    assert not any("through the host" in each for each in texts_of(report.findings))


def test_copies_at_one_end_cost_less_than_at_two() -> None:
    both = through_host_mb_s(DIRECT)
    one = through_host_mb_s(replace(HDR, gpus=Gpus(slot=SLOT, ends=1)))
    assert both is not None
    assert one is not None
    assert both == pytest.approx(COPIED_MB_S, rel=0.01)
    assert both < one < bound(HDR).low_mb_s
    assert THROUGH_HOST[0] < 1 < THROUGH_HOST[1]
    assert through_host_mb_s(HDR) is None
    assert through_host_mb_s(replace(HDR, gpus=Gpus(direct=True))) is None


def test_more_gpus_have_more_slots_and_none_is_refused() -> None:
    two = replace(HDR, num_rails=4, gpus=Gpus(slot=find_slot("3.0x8"), num_gpus=2))
    assert bound(two).high_mb_s == pytest.approx(2 * 8 * 984.615, rel=0.01)
    # unlike rails never outgrow the slot
    unlike = replace(two, unlike_rails_high_mb_s=90000.0)
    assert bound(unlike).high_mb_s == bound(two).high_mb_s
    with pytest.raises(ConfigError, match="num_gpus"):
        Gpus(num_gpus=0)


# --- what others printed


def test_a_published_host_to_device_bandwidth_over_fdr() -> None:
    """openucx/ucx issue 3984: FDR, 6098.41 MB/s, "close to the native IB bandwidth"."""
    table = parse_text((DATA / "osu_bw-H-D-5.6.1.txt").read_text())[0]
    fdr = Fabric(link=find_link("FDR 4x"), gpus=Gpus(slot=find_slot("3.0x16"), direct=True))
    report = judged(table, fdr)
    assert report.verdict is Verdict.PASS
    assert report.quantities[-1].name == "host_to_device_bandwidth_4MiB"


def test_a_published_latency_between_gpus() -> None:
    """Piz Daint, Aries, GPUDirect: 5.47 us for 1 B (user guide of Sarus)."""
    table = parse_text((DATA / "osu_latency-D-D-5.7.txt").read_text())[0]
    report = judged(table, None, "device_latency=5.5 us")
    assert [each.verdict for each in report.quantities if each.name == "device_latency_1B"] == []
    assert report.quantities[0].name == "device_latency_0B"
    assert judged(table, None, "device_latency_1B=5.5 us").quantities[-1].value == 5.47
