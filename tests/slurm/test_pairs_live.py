"""All pairs on a real Slurm: a clean ladder, a receive side that is slow, a campaign killed.

Opt in: ``pytest -m slurm`` with a virtual cluster of four nodes or more up (FABRICPROOF_VCLUSTER
names it), of any rate: the site says what the cluster does.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FABRICPROOF = ROOT / "bin" / "fabricproof"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
WORK = ROOT / "work" / "slurm-tests"  # not below /tmp: every node has its own
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not BIN.is_dir(), reason=f"no virtual cluster {CLUSTER!r} is up"),
]


def _rate_mbit() -> int:
    said = subprocess.run(
        [FABRICPROOF, "vcluster", "status", "--name", CLUSTER, "--json"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    (found,) = {each // 1_000_000 for each in json.loads(said.stdout)["plan"]["rail_rates_bit_s"]}
    return int(found)


@pytest.fixture(scope="module")
def site() -> Path:
    """Give the cluster's site, with its rate and messages that suit it, where all nodes see it."""
    folder = WORK / "pairs-site" / "site"
    shutil.rmtree(folder.parent, ignore_errors=True)
    shutil.copytree(ROOT / "site-configs" / "vcluster", folder)
    rate = _rate_mbit()
    for name, pattern, text in (
        ("fabric.toml", r"200MbE", f"{rate}MbE"),
        (
            "site.toml",
            r'max_message_size = "\w+"',
            f'max_message_size = "{2 ** round(math.log2(4 * rate))}KiB"',
        ),
        ("site.toml", r"leg_seconds = [\d.]+", "leg_seconds = 0.5"),
    ):
        file = folder / name
        changed, count = re.subn(pattern, text, file.read_text())
        assert count, name
        file.write_text(changed)
    return folder


def _start(site: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [FABRICPROOF, "pairs", "run", "--json", "--site", site, *options],
        env={**os.environ, "FABRICPROOF_VCLUSTER": CLUSTER, "FABRICPROOF_WORK": str(WORK)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def _run(site: Path, *options: str) -> tuple[int, dict[str, Any]]:
    process = _start(site, *options)
    out, err = process.communicate(timeout=300)
    assert out, err
    return process.returncode, json.loads(out)


def _bandwidth(record: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in record["results"] if each["quantity"] == "bandwidth")


def _fault(*arguments: str) -> None:
    command = [FABRICPROOF, "vcluster", "fault", "--name", CLUSTER, "vc3", "rail0"]
    subprocess.run([*command, *arguments], check=True, timeout=60)


@pytest.fixture
def slow_receive_side() -> Iterator[None]:
    _fault("--rate", f"{_rate_mbit() * 300}kbit", "--direction", "in")
    yield
    _fault("--clear")


def test_a_clean_ladder_over_one_rail_and_over_all_blames_nobody(site: Path) -> None:
    status, record = _run(site, "--over", "rail0", "--over", "all")
    # Cores that others take slow all pairs or one; a second look then makes no FAIL of it.
    assert (status, record["verdict"]) in {(0, "PASS"), (5, "UNJUDGED")}, record
    assert record["left"] == []
    assert all("disturbed" in each["reason"] for each in record["troubles"])
    assert not any(each["blame"] for each in record["results"] if each["counts"])
    assert record["proven_paths"] >= 2 * 2 * (len(record["nodes"]) // 2)  # two paths, two rounds
    assert {each["net_paths"][0] for each in record["results"]} == {"rail0", "rail0+rail1"}


@pytest.mark.usefixtures("slow_receive_side")
def test_a_slow_receive_side_is_blamed_by_node_rail_and_direction(site: Path) -> None:
    status, record = _run(site, "--over", "each", "--no-confirm")
    assert (status, record["verdict"]) == (1, "FAIL"), record
    (blame,) = _bandwidth(record)["blame"]
    assert (blame["fact"], blame["where"]["node"], blame["where"]["rail"]) == (
        "rail",
        "vc3",
        "rail0",
    )
    assert blame["where"]["direction"] == "receive"
    assert blame["share"] == pytest.approx(0.3, abs=0.06)


def _begin(site: Path, *options: str) -> tuple[subprocess.Popen[str], Path]:
    """Start a full campaign over rail0 and wait until two rounds have ended; give its folder."""
    process = _start(site, "--over", "rail0", "--full", "--no-confirm", *options)
    assert process.stderr is not None
    for line in process.stderr:
        if "round 1:" in line:
            break
    return process, max((WORK / "pairs").iterdir())


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.long)]
)
def test_a_campaign_that_is_interrupted_is_resumed(site: Path, number: signal.Signals) -> None:
    process, folder = _begin(site)
    if number == signal.SIGINT:  # Ctrl-C reaches ReFrame as well
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    time.sleep(1)
    status, record = _run(site, "--resume", folder.name, "--no-confirm")
    assert status in {0, 5}, record
    assert record["left"] == []
    seen = [
        (each["round"], *sorted((each["from"], each["to"])), each["from"])
        for path in sorted(folder.glob("launch.*/record.jsonl"))
        for each in _ended(path)
        if each["mode"] == "uni"
    ]
    count = len(record["nodes"])
    # Second looks, as cores that others take call for, are rounds of their own.
    assert len(seen) == len(set(seen)) >= count * (count - 1)


@pytest.fixture
def revived() -> Iterator[None]:
    """Bring vc4 back afterwards."""
    yield
    command = [FABRICPROOF, "vcluster", "revive", "--name", CLUSTER, "vc4"]
    subprocess.run(command, check=True, timeout=60)


@pytest.mark.long
@pytest.mark.usefixtures("revived")
def test_of_a_node_that_dies_the_pairs_are_missing_and_the_others_are_judged(site: Path) -> None:
    process, _ = _begin(site)
    kill = [FABRICPROOF, "vcluster", "kill", "--name", CLUSTER, "vc4"]
    subprocess.run(kill, check=True, timeout=60)
    out, err = process.communicate(timeout=350)
    assert process.returncode == 4, err
    record = json.loads(out)
    assert record["verdict"] == "MISSING"
    assert record["left"]
    assert all("vc4" in pair for each in record["left"] for pair in each["pairs"])
    assert _bandwidth(record)["verdict"] in {"PASS", "UNJUDGED"}, record
    assert _bandwidth(record)["blame"] == []


def _ended(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the values of the rounds that ended."""
    values: list[dict[str, Any]] = []
    for line in path.read_text().splitlines(keepends=True):
        fields = json.loads(line) if line.endswith("\n") else {"record": "cut"}
        if fields["record"] == "value":
            values.append(fields)
        elif fields["record"] == "end":
            yield from values
            values = []


@pytest.mark.long
def test_the_kernel_agrees_with_osu_bw_within_two_percent(site: Path) -> None:
    said = subprocess.run(
        [BIN / "sinfo", "-h", "-N", "-p", "compute", "-o", "%N"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    others = sorted(set(said.stdout.split()) - {"vc1", "vc2"})
    # Both are slowed by whatever else runs on these cores, never sped up: the best of each counts.
    ours = theirs = 0.0
    for _ in range(3):
        _, record = _run(site, "--over", "rail0", "--without", ",".join(others), "--no-confirm")
        (population,) = _bandwidth(record)["population"]
        ours = max(ours, population["most"])
        theirs = max(theirs, *_osu_bw(site, _bandwidth(record)["size"]))
        if ours == pytest.approx(theirs, rel=0.02):
            return
    pytest.fail(f"kernel {ours} MB/s, osu_bw {theirs} MB/s")


def _osu_bw(site: Path, size: str) -> list[float]:
    """Return what osu_bw measures from vc1 to vc2 over rail0, and back."""
    check = ROOT / "checks" / "pt2pt" / "pairs.py"
    ended = subprocess.run(
        [FABRICPROOF, "run", "--site", site, "--json", "-c", check, "-n", "^OsuBandwidth%",
         "-p", "openmpi5"],
        env={**os.environ, "FABRICPROOF_VCLUSTER": CLUSTER, "FABRICPROOF_NODES": "vc1,vc2",
             "FABRICPROOF_WORK": str(WORK),
             "FABRICPROOF_PERFLOGS": str(site.parent)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    legs = [leg for leg in json.loads(ended.stdout)["legs"] if leg["leg"].startswith("rail0")]
    return [
        each["value"]
        for leg in legs
        for each in leg["quantities"]
        if each["name"] == f"bandwidth_{size}"
    ]
