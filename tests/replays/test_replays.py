"""Every published number of the design page ``replays.md``, judged as its reader would judge it.

One row per case: what a person types, the verdict, the exit status, and words that the output
must hold.  The inputs stand beside this file as the tool printed them; where a document states
numbers only, the judge is called with them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules, around, at_least, judge_value
from tables import bandwidths

HERE = Path(__file__).parent

PASS, FAIL, INVALID, UNJUDGED = ("PASS", 0), ("FAIL", 1), ("INVALID", 3), ("UNJUDGED", 5)

FLOW = ("--link", "100GbE,flow-limit=10 Gb/s")


@dataclass(frozen=True)
class Replay:
    """One row of the page."""

    document: str
    file: str
    options: tuple[str, ...]
    ends: tuple[str, int]
    says: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.file, *self.options)).replace("--", "")


REPLAYS = [
    Replay("001", "c5n_osu_bw.out", FLOW, PASS, ("flow limit binds",)),
    Replay("001", "c5n_osu_bw.out", ("--link", "100GbE"), FAIL, ("one TCP connection",)),
    Replay("001", "c5n_osu_bw_plain.out", FLOW, PASS, ("flow limit",)),
    Replay("001", "c5n_osu_bw_plain.out", ("--link", "100GbE"), FAIL, ("one TCP connection",)),
    Replay(
        "001",
        "c5n_osu_bw_links36.out",
        ("--link", f"{FLOW[1]},flows=36"),
        FAIL,
        ("one core is the likely bound", "step: 32KiB carries 1179.53 MB/s, 64KiB 2349.06"),
    ),
    Replay(
        "001",
        "c5n_osu_bw_links36_plain.out",
        ("--link", f"{FLOW[1]},flows=36"),
        FAIL,
        ("one core is the likely bound",),
    ),
    Replay(
        "001",
        "c5n_osu_mbw_mr.out",
        ("--link", "100GbE,flows=72"),
        INVALID,
        ("103% of the bare link",),
    ),
    # On how many nodes the pairs ran is not in the table: nobody said it, so no red and no green.
    Replay("001", "c5n_osu_mbw_mr.out", ("--link", "100GbE"), UNJUDGED, ("give a --reference",)),
    Replay(
        "001",
        "c5n_osu_mbw_mr_plain.out",
        ("--link", f"{FLOW[1]},mtu=9001,flows=72"),
        INVALID,
        ("the declared fabric is wrong or part of the traffic took another path",),
    ),
    Replay("001", "c5n_iperf3_one_stream.out", FLOW, PASS, ("flow limit",)),
    Replay("001", "c5n_iperf3_one_stream.out", ("--link", "100GbE"), FAIL, ("one TCP connection",)),
    Replay(
        "001",
        "c5n_iperf3_four_streams.out",
        ("--link", f"{FLOW[1]},capability=25.4 Gb/s"),
        PASS,
        ("declared: the host binds",),
    ),
    Replay("001", "c5n_iperf3_four_streams.out", FLOW, FAIL, ("one core",)),
    Replay("001", "c5n_iperf_one_stream.out", FLOW, PASS, ("flow limit",)),
    Replay("001", "c5n_iperf_36_streams.out", FLOW, PASS, ("link binds",)),
    Replay("004", "gbe_osu_put_bw.out", ("--link", "1GbE,mtu=1500"), PASS, ("99.4% of",)),
    Replay("004", "gbe_osu_put_bw.out", ("--link", "1GbE"), PASS, ("99.4% of 117.69",)),
    Replay("004", "gbe_imb_p2p_pingpong.out", ("--link", "1GbE"), PASS, ("not judged",)),
    Replay(
        "004",
        "gbe_imb_p2p_pingpong.out",
        ("--link", "1GbE,mtu=1500", "--reference", "latency=60 us"),
        PASS,
        ("latency_0B", "83.0% of 60 us"),
    ),
    Replay("004", "40gbe_imb_p2p_pingpong.out", ("--link", "40GbE"), INVALID, ("shared memory",)),
    *(
        Replay(
            "004",
            "40gbe_imb_p2p_pingpong.out",
            ("--link", f"40GbE,mtu={mtu}"),
            INVALID,
            ("shared memory", "bandwidth_256KiB", "the ceiling"),
        )
        for mtu in ("1500", "9000")
    ),
]


@pytest.mark.parametrize("replay", REPLAYS, ids=str)
def test_the_verdict_of_a_published_number(replay: Replay, fabricproof: Callable[..., Any]) -> None:
    ended = fabricproof("judge", HERE / replay.file, *replay.options)
    verdict, status = replay.ends
    assert ended.out.splitlines()[0].endswith(f": {verdict}")
    assert ended.status == status
    for words in replay.says:
        assert words in ended.out


@pytest.mark.parametrize("replay", REPLAYS, ids=str)
def test_the_record_of_a_published_number(replay: Replay, fabricproof: Callable[..., Any]) -> None:
    ended = fabricproof("judge", HERE / replay.file, *replay.options, "--json")
    record = ended.record
    assert record["verdict"] == replay.ends[0]
    assert ended.status == replay.ends[1]
    assert record["quantities"]
    for quantity in record["quantities"]:
        assert set(quantity) >= {
            "name",
            "value",
            "unit",
            "ceiling",
            "reference",
            "lower",
            "upper",
            "origin",
            "verdict",
            "reason",
        }
        if quantity["verdict"] == "PASS":
            lower, upper = quantity["lower"], quantity["upper"]
            assert quantity["reference"] is not None
            assert lower is not None or upper is not None
            assert lower is None or quantity["value"] >= lower


def test_every_replay_file_is_in_the_manifest() -> None:
    there = {path.name for path in HERE.iterdir() if path.suffix == ".out"}
    assert there == {replay.file for replay in REPLAYS}


def _reasons(fabricproof: Callable[..., Any], file: str, *options: str) -> dict[str, str]:
    record = fabricproof("judge", HERE / file, *options, "--json").record
    return {each["name"]: each["reason"] for each in record["quantities"]}


def test_the_shared_memory_latency_is_what_the_document_missed(
    fabricproof: Callable[..., Any],
) -> None:
    reasons = _reasons(fabricproof, "40gbe_imb_p2p_pingpong.out", "--link", "40GbE")
    assert "0.44 us is below the floor" in reasons["latency_0B"]
    assert "4986.11 MB/s is 100.6% of the ceiling" in reasons["bandwidth_256KiB"]


#: the documents' single numbers as a table of one row, as somebody types them in by hand
ONE_ROW = [
    ("osu_bw", "3400.00", ("--link", "QDR 4x,pcie=2.0x8"), PASS),
    ("osu_bw", "3400.00", ("--link", "QDR 4x,pcie=2.0x8,mps=128"), PASS),
    (
        "osu_bw",
        "3400.00",
        ("--link", "QDR 4x,pcie=2.0x8,rails=2,share-slot"),
        PASS,
    ),
    ("osu_bw", "3400.00", ("--link", "QDR 4x,pcie=2.0x8,rails=2"), FAIL),
    ("osu_bw", "3900.00", ("--link", "QDR 4x,pcie=3.0x8,mtu=2048"), PASS),
    (
        "osu_bw",
        "5800.00",
        ("--link", "QDR 4x,pcie=3.0x8,rails=2,share-slot"),
        FAIL,
    ),
    ("osu_bw", "4650.00", ("--link", "FDR10 4x,pcie=3.0x8"), PASS),
    ("osu_bw", "5600.00", ("--link", "FDR 4x,pcie=3.0x8"), FAIL),
    ("osu_bw", "6300.00", ("--link", "FDR 4x,pcie=3.0x8"), PASS),
    ("osu_bw", "6300.00", ("--link", "FDR 4x"), PASS),
    (
        "osu_bw",
        "6500.00",
        ("--link", "FDR 4x,pcie=3.0x8,rails=2,share-slot"),
        PASS,
    ),
    ("osu_bw", "3867.00", ("--link", "QDR 4x,pcie=3.0x8"), PASS),
    ("osu_bw", "3376.00", ("--link", "QDR 4x,pcie=2.0x8"), PASS),
    ("osu_bw", "3376.00", ("--link", "QDR 4x,pcie=3.0x8"), FAIL),
    ("osu_bibw", "7505.00", ("--link", "QDR 4x,pcie=3.0x8"), PASS),
    ("osu_bibw", "6388.00", ("--link", "QDR 4x,pcie=2.0x8"), PASS),
    ("osu_bw", "7505.00", ("--link", "QDR 4x,pcie=3.0x8"), INVALID),
    ("osu_bibw", "10424.00", ("--link", "QDR 4x,rails=2"), FAIL),
    ("osu_bibw", "10424.00", ("--reference", "13.9 GB/s"), FAIL),
    ("osu_bibw", "10251.00", ("--reference", "13.9 GB/s"), FAIL),
    ("osu_bw", "20456.00", ("--reference", "21 GB/s", "--tolerance", "0.10"), PASS),
    ("osu_bw", "18456.00", ("--reference", "21 GB/s", "--tolerance", "0.10"), FAIL),
    ("osu_bw", "12500.00", ("--link", "BXI v2"), PASS),
    ("osu_bw", "12510.00", ("--link", "BXI v2"), INVALID),
    ("osu_bw", "13011.67", ("--link", "100GbE"), INVALID),
    ("osu_bw", "3400.00", ("--reference", "3.4 GB/s"), PASS),
    ("osu_bw", "3.40", ("--reference", "3.4 GB/s"), FAIL),
    ("osu_bw", "3400.00", ("--reference", "27.2 Gb/s"), PASS),
    ("osu_bw", "0.00", ("--link", "QDR 4x"), INVALID),
    ("osu_bw", "3400.00", (), UNJUDGED),
]

TITLES = {"osu_bw": "Bandwidth Test", "osu_bibw": "Bi-Directional Bandwidth Test"}


def _one_row(folder: Path, program: str, value: str) -> Path:
    file = folder / "one.out"
    header = f"# OSU MPI {TITLES[program]} v7.2\n# Size      Bandwidth (MB/s)\n"
    file.write_text(header + f"{4194304:<10}{value:>18}\n")
    return file


@pytest.mark.parametrize(("program", "value", "options", "ends"), ONE_ROW)
def test_a_table_of_one_row_is_judged_as_its_number(
    program: str,
    value: str,
    options: tuple[str, ...],
    ends: tuple[str, int],
    fabricproof: Callable[..., Any],
    tmp_path: Path,
) -> None:
    ended = fabricproof("judge", _one_row(tmp_path, program, value), *options, "--json")
    assert (ended.record["verdict"], ended.status) == ends


@pytest.mark.parametrize(
    ("value", "link", "says"),
    [
        ("3400.00", "QDR 4x,pcie=2.0x8,mps=128", "103.6% of 3282"),
        ("5600.00", "FDR 4x,pcie=3.0x8", "below the lower bound 6059.4; the rank may sit on the"),
        ("5800.00", "QDR 4x,pcie=3.0x8,rails=2,share-slot", "; the rank may sit on the wrong"),
        # a slower riser is named before the socket
        ("3376.00", "QDR 4x,pcie=3.0x8", "3554.9; what a PCIe 2.0x8 slot carries"),
    ],
)
def test_what_is_said_of_a_single_number(
    value: str, link: str, says: str, fabricproof: Callable[..., Any], tmp_path: Path
) -> None:
    ended = fabricproof("judge", _one_row(tmp_path, "osu_bw", value), "--link", link)
    assert says in ended.out


#: document 002, bandwidth of the random ring by cores, MB/s, and what the links allow of it
RINGS = [
    (374.0, 603.6, "62.0% of 603.6"),
    (345.0, 603.6, "57.2% of 603.6"),
    (156.0, 603.6, "25.8% of 603.6"),
    (91.0, 603.6, "15.1% of 603.6"),
    (97.0, 603.6, "16.1% of 603.6"),
    (21.0, 241.7, "8.7% of 241.7"),
]


@pytest.mark.parametrize(("measured", "due", "says"), RINGS)
def test_the_random_ring_of_document_002(measured: float, due: float, says: str) -> None:
    reference = at_least(due, tolerance=0.1, origin="the links of the ring")
    judged = judge_value(
        name="bandwidth", value=measured, unit="MB/s", message_size=None, reference=reference
    )
    assert judged.verdict is Verdict.FAIL
    assert says in judged.reason


def test_both_directions_that_are_hardly_more_than_one() -> None:
    """Document 003, LinkTest, GiB/s."""
    reference = around(2.0, unit="1", tolerance=0.1, origin="both directions over one")
    verdicts = [
        judge_value(
            name="gain", value=both / one, unit="1", message_size=None, reference=reference
        ).verdict
        for both, one in ((23.1, 11.6), (9.9, 9.0))
    ]
    assert verdicts == [Verdict.PASS, Verdict.FAIL]


def test_a_dip_of_document_003_is_told() -> None:
    """A curve that was read off its figure, GiB/s."""
    values = (2.0, 3.9, 7.2, 10.1, 11.5, 11.3, 9.8, 11.0, 11.4, 11.6, 11.6)
    curve = {1024 << step: value * 1.073741824e3 for step, value in enumerate(values)}
    report = judge_table(bandwidths(curve), Rules(fabric=Fabric(link=find_link("BXI v2"))))
    assert report.verdict is Verdict.PASS
    assert any("dip: 64KiB" in text for text in texts_of(report.findings))


def test_the_installed_command_judges_too() -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "fabricproof.cli",
            "judge",
            "c5n_osu_mbw_mr.out",
            "--link",
            "100GbE,flows=72",
        ],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 3
    assert "c5n_osu_mbw_mr.out: osu_mbw_mr: INVALID" in ended.stdout
    assert ended.stderr == ""
