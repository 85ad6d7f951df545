"""``fabricproof judge`` as a stranger calls it: right, half right and wrong."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

REPLAYS = Path(__file__).resolve().parents[1] / "replays"
PUT = REPLAYS / "gbe_osu_put_bw.out"
PING = REPLAYS / "gbe_imb_p2p_pingpong.out"
NDR = REPLAYS.parent / "data" / "perftest" / "ib_write_bw-ndr-gbits.txt"
MANY = REPLAYS.parent / "data" / "imb" / "mpi1-all.txt"

Command = Callable[..., Any]

BW = "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n"


def one_row(folder: Path, value: str, size: int = 4194304) -> Path:
    file = folder / "one.out"
    file.write_text(f"{BW}{size:<10}{value:>18}\n")
    return file


# --- what comes out


def test_the_worst_file_decides(fabricproof: Command) -> None:
    red = REPLAYS / "40gbe_imb_p2p_pingpong.out"
    ended = fabricproof("judge", PUT, red, "--link", "1GbE")
    assert ended.status == 3
    assert f"{PUT}: osu_put_bw: PASS" in ended.out
    assert f"{red}: PingPong: INVALID" in ended.out


def test_a_damaged_table_costs_that_table_and_no_green(
    tmp_path: Path, fabricproof: Command
) -> None:
    file = tmp_path / "two.out"
    file.write_text(PUT.read_text("utf-8") + BW + "1   1.00\n4   4.00\n")
    ended = fabricproof("judge", file, "--link", "1GbE")
    assert ended.status == 65
    assert f"{file}: osu_put_bw: PASS" in ended.out
    assert f"{file}: damaged table: MISSING" in ended.out
    assert "a row is missing" in ended.err
    assert fabricproof("judge", file, "--link", "1GbE", "--json").record["verdict"] == "MISSING"


def test_tables_of_one_program_are_told_by_their_line(
    fabricproof: Command,
) -> None:
    ended = fabricproof("judge", MANY, "--link", "100GbE")
    assert f"{MANY}: PingPong: " in ended.out
    assert f"{MANY}:292: Biband: FAIL\n" in ended.out
    assert f"{MANY}:310: Biband: UNJUDGED\n" in ended.out


def test_the_record_has_each_table_with_its_verdict(fabricproof: Command) -> None:
    record = fabricproof("judge", MANY, "--link", "100GbE", "--json").record
    biband = [each for each in record["tables"] if each["program"] == "Biband"]
    assert [(each["line"], each["verdict"]) for each in biband] == [
        (292, "FAIL"),
        (310, "UNJUDGED"),
    ]
    assert [each["attributes"]["num_processes"] for each in biband] == [2, 4]
    findings = [text for each in record["tables"] for text in each["findings"]]
    assert findings == record["findings"]
    named = [tuple(each[k] for k in ("source", "line", "name")) for each in record["quantities"]]
    assert len(set(named)) == len(named)


def test_standard_input_is_read(fabricproof: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(buffer=io.BytesIO(PUT.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    ended = fabricproof("judge", "-", "--link", "1GbE")
    assert (ended.status, ended.out.splitlines()[0]) == (0, "-: osu_put_bw: PASS")


def test_a_closed_standard_input_is_no_bug(
    fabricproof: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for name in ("judge", "parse"):
        ended = fabricproof(name, "-")
        assert (ended.status, ended.err.count("\n")) == (66, 1)
        assert "<stdin>: cannot read: it is closed" in ended.err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_the_encoding_of_a_redirecting_shell_is_read(
    encoding: str, fabricproof: Command, tmp_path: Path
) -> None:
    file = tmp_path / "put.out"
    file.write_bytes(PUT.read_text().encode(encoding))
    assert fabricproof("judge", file, "--link", "1GbE").status == 0


@pytest.mark.parametrize(("tolerance", "status"), [("1%", 1), ("0.01", 1), ("10 %", 0), (".1", 0)])
def test_a_tolerance_is_a_fraction_or_a_percentage(
    tolerance: str, status: int, fabricproof: Command
) -> None:
    options = ("--reference", "119 MB/s", "--tolerance", tolerance)
    assert fabricproof("judge", PUT, *options, "--link", "10GbE").status == status


def test_a_red_row_inside_a_green_curve_is_shown_with_its_reason(
    fabricproof: Command, tmp_path: Path
) -> None:
    file = tmp_path / "dent.out"
    file.write_text(PUT.read_text().replace("            116.06", "             11.06"))
    ended = fabricproof("judge", file, "--link", "1GbE")
    assert ended.status == 1
    assert "FAIL     bandwidth_64KiB" in ended.out
    assert "curve law from" in ended.out


# --- green only for what was measured


@pytest.mark.parametrize(
    ("reference", "status"),
    [
        ("116 MB/s", 0),
        ("0.116 GB/s", 0),
        ("0.93 Gb/s", 0),
        ("3.4 GB/s", 1),
        ("bandwidth_4MiB=116 MB/s", 5),
        ("bandwidth_4194304=200 MB/s", 1),
    ],
)
def test_the_unit_of_a_reference_is_converted(
    reference: str, status: int, fabricproof: Command
) -> None:
    assert fabricproof("judge", PUT, "--reference", reference).status == status


def test_a_reference_that_nothing_answers_is_missing(fabricproof: Command) -> None:
    ended = fabricproof("judge", PUT, "--link", "1GbE", "--reference", "latency=60 us")
    assert ended.status == 4
    assert "MISSING  latency" in ended.out
    ended = fabricproof("judge", PUT, PING, "--link", "1GbE", "--reference", "latency=60 us")
    assert ended.status == 0


@pytest.mark.parametrize("value", ["0.00", "4001.50", "4040.00"])
def test_an_impossible_number_is_invalid(value: str, fabricproof: Command, tmp_path: Path) -> None:
    file = one_row(tmp_path, value)
    assert fabricproof("judge", file, "--link", "QDR 4x,mtu=4096").status == 3


def test_a_failed_validation_is_invalid(fabricproof: Command, tmp_path: Path) -> None:
    file = tmp_path / "c.out"
    file.write_text(
        "# OSU MPI Bandwidth Test v7.2\n"
        "# Size      Bandwidth (MB/s)        Validation\n"
        "2097152             3900.00              Pass\n"
        "4194304             3900.00              Fail\n"
    )
    ended = fabricproof("judge", file, "--link", "QDR 4x")
    assert ended.status == 3
    assert "data validation failed" in ended.out


def test_a_collective_is_never_green_by_itself(fabricproof: Command, tmp_path: Path) -> None:
    file = tmp_path / "allreduce.out"
    file.write_text(
        "# OSU MPI Allreduce Latency Test v7.2\n# Size       Avg Latency(us)\n"
        "4                       5.00\n8                       5.10\n"
    )
    assert fabricproof("judge", file, "--link", "FDR 4x").status == 5
    both = ("--reference", "latency_4B=6 us", "--reference", "latency_8B=6 us")
    assert fabricproof("judge", file, "--link", "FDR 4x", *both).status == 0


# --- what cannot be judged


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["none.out"], 66, "none.out: cannot read"),
        ([PUT, "--link", "XDR 99x"], 78, "XDR 99x"),
        ([PUT, "--link", "1GbE,rails=0"], 78, "rails is out of range"),
        ([PUT, "--link", "1GbE,capability=fast"], 78, "capability is not a rate"),
        ([PUT, "--link", "1GbE,bidirectional"], 78, "counts one direction"),
        ([PUT, "--only", "rail=rail0"], 78, "--only rail says nothing without the site"),
        ([PUT, "--reference", "116"], 78, "--reference: not a quantity"),
        ([PUT, "--reference", "116 furlongs"], 78, "unknown unit"),
        ([PUT, "--reference", "speed=116 MB/s"], 78, "unknown quantity"),
        ([PUT, "--reference", "latency=116 MB/s"], 78, "does not fit"),
        ([PUT, "--reference", "1 MB/s", "--reference", "2 MB/s"], 78, "two values for bandwidth"),
        ([PUT, "--link", "1GbE", "--reference", "3.4 GB/s"], 78, "above the ceiling"),
        ([PUT, "--link", "1GbE", "--tolerance", "1"], 78, "impossible tolerance"),
        ([PUT, "--link", "1GbE", "--tolerance", "nan"], 78, "impossible tolerance"),
        ([PUT, "--link", "1GbE", "--tolerance", "some"], 2, "no fraction: write 10 % as"),
        ([PUT, "--site", "nowhere"], 66, "no such site"),
        ([PUT, "--site", "vcluster", "--only", "partition=none"], 78, "unknown partition"),
        ([PUT, "--site", "vcluster", "--only", "fabric=none"], 78, "unknown fabric"),
        ([PUT, "--site", "vcluster", "--only", "rail=none"], 78, "no such rail"),
        ([PUT, "--site", "vcluster", *["--only", "rail=rail0"] * 2], 78, "a rail twice"),
        ([PUT, "--site", "vcluster", "--only", "stack=openmpi*"], 78, "stack fits several"),
        ([], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_judged_ends_with_one_line_and_its_status(
    arguments: list[object],
    status: int,
    words: str,
    fabricproof: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = fabricproof("judge", *arguments)
    assert ended.status == status
    assert words in ended.err
    assert ended.out == ""
    if status != 2:
        assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        BW,
        BW + "1  0.5\n",
        BW + "1                       0.47\n4                       1.90\n",
        PING.read_text().replace("0.27", "0.2"),
        "slurmstepd: error: *** STEP 1.0 CANCELLED DUE TO TIME LIMIT ***\n" + PUT.read_text()[:300],
    ],
)
def test_a_damaged_output_is_no_verdict(text: str, fabricproof: Command, tmp_path: Path) -> None:
    file = tmp_path / "damaged.out"
    file.write_text(text)
    ended = fabricproof("judge", file, "--link", "1GbE")
    assert ended.status == 65
    assert ended.err.startswith(f"fabricproof: {file}:")


# --- sites

SITE = {
    "site.toml": """\
[site]
name = "made"
tolerance = 0.5
[[partitions]]
name = "p"
fabrics = ["eth"]
stacks = ["s"]
[[stacks]]
name = "s"
family = "openmpi"
version = "5"
""",
    "fabric.toml": """\
[[fabrics]]
name = "eth"
link = "1GbE"
rails = [{ interface = "r0" }, { interface = "r1" }]
""",
    "references.toml": """\
[[references]]
quantity = "latency"
value = "60 us"
fabric = "eth"
origin = "measured"
""",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in SITE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_site_gives_fabric_references_and_tolerance(fabricproof: Command, site: Path) -> None:
    record = fabricproof("judge", PING, "--site", site, "--json").record
    named = {each["name"]: each for each in record["quantities"] if each["named"]}
    assert named["latency_0B"]["origin"] == "site (measured)"
    plateau = named["bandwidth_4MiB"]
    assert plateau["lower"] == pytest.approx(0.5 * plateau["reference"])
    assert record["verdict"] == "PASS"


def test_a_stated_tolerance_outranks_the_sites(fabricproof: Command, site: Path) -> None:
    ended = fabricproof("judge", PING, "--site", site, "--tolerance", "0.01")
    assert ended.status == 1


def test_a_site_reference_above_the_ceiling_is_refused(fabricproof: Command, site: Path) -> None:
    text = SITE["references.toml"].replace("latency", "bandwidth").replace("60 us", "1 GB/s")
    (site / "references.toml").write_text(text)
    ended = fabricproof("judge", PING, "--site", site)
    assert ended.status == 78
    assert "site (measured)" in ended.err


def test_a_reference_of_one_build_judges_no_file_and_that_is_said(
    fabricproof: Command, site: Path
) -> None:
    text = SITE["references.toml"].replace("60 us", "1 us") + 'stack_digest = "0a1b2c3d4e5f"\n'
    (site / "references.toml").write_text(text)
    record = fabricproof("judge", PING, "--site", site, "--json").record
    assert "site (measured)" not in {each["origin"] for each in record["quantities"]}
    assert record["findings"][0]["text"] == (
        "the site's reference latency = 1 us was measured with build 0a1b2c3d4e5f, this is not "
        "known: it does not apply"
    )
    assert "0a1b2c3d4e5f" in fabricproof("judge", PING, "--site", site).out


# --- the command itself


def test_heavy_libraries_stay_out_of_the_way() -> None:
    code = (
        "import sys; from fabricproof.cli.main import group\n"
        f"sys.argv = ['fabricproof']\n"
        f"try: group.main(['judge', {str(PUT)!r}, '--link', '1GbE'], standalone_mode=False)\n"
        "except SystemExit as end: assert end.code == 0\n"
        "print([name for name in ('pydantic', 'rich', 'reframe', 'yaml') if name in sys.modules])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"


def test_a_site_states_the_gpus_that_a_file_was_measured_with(
    fabricproof: Command, tmp_path: Path
) -> None:
    example = Path(__file__).parents[2] / "site-configs" / "infiniband-ndr"
    output = tmp_path / "bw.txt"
    rows = "".join(
        f"{2**power:<10}{2**power / (1 + 2**power / 20000):18.2f}\n" for power in range(23)
    )
    output.write_text(
        "# OSU MPI-CUDA Bandwidth Test v7.2\n"
        "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n"
        f"# Size      Bandwidth (MB/s)\n{rows}"
    )
    for line, words in (
        ("", "whether GPUDirect is possible here is not stated"),
        ('gpus = { kind = "cuda", pcie = "5.0x16", direct = true }', "FAIL"),
        ('gpus = { kind = "cuda", pcie = "4.0x8", direct = true }', "INVALID"),
    ):
        site = tmp_path / f"site{len(line)}"
        site.mkdir()
        for each in example.glob("*.toml"):
            text = each.read_text().replace('fabrics = ["ndr"]\n', f'fabrics = ["ndr"]\n{line}\n')
            (site / each.name).write_text(text)
        out = fabricproof("judge", output, "--site", site, "--only", "partition=gpu").out
        assert words in out
        assert "device_bandwidth_4MiB" in out


@pytest.mark.parametrize(
    ("device", "only", "verdict"),
    [
        ("mlx5_0", [], "PASS"),
        ("mlx5_3", [], "PASS"),  # the other rail: it is judged by that one's link
        ("mlx5_0", ["--only", "rail=mlx5_0:1"], "PASS"),
        ("mlx5_3", ["--only", "rail=mlx5_0:1"], "INVALID"),
        ("mlx5_7", [], "INVALID"),
    ],
)
def test_an_output_of_another_device_than_the_rails_is_invalid(
    device: str, only: list[str], verdict: str, tmp_path: Path, fabricproof: Command
) -> None:
    """It was PASS: perftest says over which device it ran, and nobody held it against the rail."""
    text = NDR.read_text("utf-8")
    path = tmp_path / "out.txt"
    path.write_text(text.replace(": mlx5_0", f": {device}"))
    where = ["--site", "infiniband-ndr", "--only", "partition=gpu", *only]
    record = fabricproof("judge", str(path), *where, "--json").record
    assert record["verdict"] == verdict
    (judged,) = record["quantities"]
    assert (f"of the device {device}, and the rails are of" in judged["reason"]) is (
        verdict == "INVALID"
    )


def test_the_cost_of_many_damaged_tables_is_linear(tmp_path: Path, fabricproof: Command) -> None:
    """Four times the tables: four times the work, 16 times if each is compared with all others."""

    def cost_s(times: int) -> float:
        file = tmp_path / f"{times}.out"
        file.write_text("# Benchmarking PingPong\n" * times)
        best = float("inf")
        for _ in range(2):
            start = time.process_time()
            assert fabricproof("judge", file, "--link", "EDR").status == 65
            best = min(best, time.process_time() - start)
        return best

    assert cost_s(16_000) < 12 * cost_s(4000)


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("pairs/rail.csv", "pairs judge"),
        ("pairs/linktest/serial.txt", "pairs judge"),
        ("history/report/vcluster/compute/records.jsonl", "report --site"),
    ],
)
def test_what_another_command_reads_is_pointed_to(
    file: str, command: str, fabricproof: Command
) -> None:
    ended = fabricproof("judge", REPLAYS.parent / "data" / file)
    assert ended.status == 65
    assert f"next: fabricproof {command}" in ended.err
