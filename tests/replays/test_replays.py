"""Every published number of the design page ``replays.md``, judged as its reader would judge it.

One row per case: what a person types, the verdict, the exit status, and words that the output
must hold.  The inputs stand beside this file, as the tool printed them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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
        ("104% of the bare link",),
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


@pytest.mark.parametrize(("program", "value", "options", "ends"), ONE_ROW)
def test_a_table_of_one_row_is_judged_as_its_number(
    program: str,
    value: str,
    options: tuple[str, ...],
    ends: tuple[str, int],
    fabricproof: Callable[..., Any],
    tmp_path: Path,
) -> None:
    file = tmp_path / "one.out"
    header = f"# OSU MPI {TITLES[program]} v7.2\n# Size      Bandwidth (MB/s)\n"
    file.write_text(header + f"{4194304:<10}{value:>18}\n")
    ended = fabricproof("judge", file, *options, "--json")
    assert (ended.record["verdict"], ended.status) == ends


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
