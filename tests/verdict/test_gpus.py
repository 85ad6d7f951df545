"""Buffers on GPUs: quantities of their own, the slot of the GPU, and copies through the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ConfigError
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, Gpus, bound, find_link, find_slot, through_host_mb_s
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.causes.evidence import THROUGH_HOST
from fabricproof.verdict.references import from_text, from_texts
from fabricproof.verdict.table import judge_table, unanswered
from fabricproof.verdict.value import Report, Rules
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


PASS, FAIL, INVALID, UNJUDGED, MISSING, *_ = Verdict
SLOW, FAST, MIDDLE = (on(made(mb_s)) for mb_s in (COPIED_MB_S, GOOD_MB_S, 15000.0))
NARROW = replace(HDR, gpus=Gpus(slot=find_slot("3.0x8"), direct=True))
STEP = {1: 0.5, 1024: 5.0, MIB: 300.0, 4 * MIB: GOOD_MB_S}
NOT_STATED = "whether GPUDirect is possible here is not stated"
COPIED = "as through the host: GPUDirect seems off"


@pytest.mark.parametrize(
    ("table", "fabric", "references", "verdict", "words"),
    [
        # no reference of hosts judges a GPU and none of a GPU a host
        (SLOW, DIRECT, ["bandwidth=5 GB/s"], FAIL, COPIED),
        (FAST, DIRECT, ["host_to_device_bandwidth=90 GB/s"], PASS, ""),
        (SLOW, UNKNOWN, ["device_bandwidth=9 GB/s"], PASS, ""),
        (SLOW, DIRECT, ["device_bandwidth=9 GB/s"], PASS, ""),
        (SLOW, UNKNOWN, ["device_bandwidth=24 GB/s"], FAIL, ""),
        (made(COPIED_MB_S), HDR, ["device_bandwidth=5 GB/s"], FAIL, ""),
        # a slow number is red where the site promises GPUDirect
        (MIDDLE, DIRECT, [], FAIL, "below the lower bound"),
        (MIDDLE, UNKNOWN, [], UNJUDGED, NOT_STATED),
        (MIDDLE, NOT_DIRECT, [], UNJUDGED, "GPUDirect is not possible here"),
        (MIDDLE, HDR, [], UNJUDGED, NOT_STATED),
        (MIDDLE, replace(HDR, gpus=Gpus(direct=True)), [], UNJUDGED, "the slot of the GPU"),
        (MIDDLE, None, [], UNJUDGED, "no reference"),
        (on(made(1000.0)), DIRECT, [], FAIL, ""),
        # what copies through the host explain is told so
        (SLOW, DIRECT, [], FAIL, COPIED),
        (SLOW, UNKNOWN, [], UNJUDGED, COPIED),
        # what reaches the ceilings is fast enough, whoever promised what
        *((FAST, fabric, [], PASS, "") for fabric in (DIRECT, UNKNOWN, NOT_DIRECT, HDR)),
        # the slot of the GPU binds, both ways twice, and buffers of hosts never cross it
        (FAST, NARROW, [], INVALID, "gpu_slot"),
        (on(made(7000.0)), NARROW, [], PASS, ""),
        (made(GOOD_MB_S), NARROW, [], PASS, ""),
        (on(made(13500.0, "osu_bibw")), NARROW, [], PASS, ""),
        (on(made(16000.0, "osu_bibw")), NARROW, [], INVALID, ""),
        # a point inside the curve is not red, and an impossible one is
        (on(bandwidths(STEP)), DIRECT, [], PASS, ""),
        (bandwidths(STEP), HDR, [], FAIL, ""),
        (on(bandwidths({**STEP, MIB: 60000.0})), DIRECT, [], INVALID, ""),
    ],
)
def test_buffers_on_gpus_are_judged(
    table: Table, fabric: Fabric | None, references: list[str], verdict: Verdict, words: str
) -> None:
    report = judged(table, fabric, *references)
    assert report.verdict is verdict
    assert words in report.quantities[-1].reason
    said = [each.reason for each in report.quantities] + texts_of(report.findings)
    copied = table is SLOW and verdict is not PASS
    assert copied or fabric is NOT_DIRECT or not any("through the host" in each for each in said)
    assert any(COPIED in each for each in texts_of(report.findings)) is copied


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


def test_errors_on_the_path_stay_red_where_nothing_is_promised() -> None:
    proof = PathProof(state=PathState.DISTURBED, reason="symbol errors")
    report = judge_table(on(made(GOOD_MB_S)), Rules(fabric=UNKNOWN), proof)
    assert report.verdict is Verdict.FAIL


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
