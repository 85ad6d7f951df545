"""How the tests of this folder call ``fabricproof`` on a cluster of guests, and what they read."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = "vcluster-rdma"
PREFLIGHT = str(ROOT / "checks" / "pt2pt" / "link_preflight.py")
PERFTEST = str(ROOT / "checks" / "pt2pt" / "verbs.py")
SMALL = str(Path(__file__).parent / "checks" / "rdma_small.py")

#: one run: some jobs of two emulated cores, and those of others before them
PATIENCE_SECONDS = 400

#: of a guest that boots under software emulation
BOOT_SECONDS = 120

#: after Ctrl-C: ReFrame cancels its jobs, and fabricproof collects what had finished
ENDING_SECONDS = 30

#: one test with its fixtures: at most three runs, the end of one that hangs, faults in and out
TEST_SECONDS = 3 * PATIENCE_SECONDS + ENDING_SECONDS + 2 * BOOT_SECONDS

#: InfiniBand counts octets divided by 4 (IBA specification vol. 1, 16.1.3.5 PortCounters)
WORD_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Session:
    """An environment in which ``fabricproof`` finds the cluster, and how to call it."""

    environment: dict[str, str]
    cluster: str

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of ``fabricproof ARGUMENTS``."""
        return [str(Path(sys.executable).parent / "fabricproof"), *arguments]

    def start(self, *arguments: str, site: str = SITE) -> subprocess.Popen[str]:
        """Start ``fabricproof run --json ARGUMENTS``."""
        return subprocess.Popen(
            self.command("run", "--site", site, "--json", *arguments),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group that ``end`` can reach
        )

    def run(
        self, checks: str, *paths: str, site: str = SITE, stacks: str = ".*"
    ) -> tuple[int, list[dict[str, Any]]]:
        """Run checks and return the exit status and every leg that was not skipped.

        Args:
            checks: names, with bars between.
            paths: files that hold them.
            site: name or folder.
            stacks: names, with bars between.
        """
        files = [part for path in paths or (SMALL,) for part in ("-c", path)]
        status, legs = self.finish(
            self.start(*files, "-n", rf"^({checks})\b", "-p", f"^({stacks})$", site=site)
        )
        assert {leg["check"] for leg in legs} == set(checks.split("|"))
        return status, legs

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]]]:
        """Wait for what :meth:`start` started."""
        try:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            self.end(process)
        assert out, err
        legs = json.loads(out)["legs"]
        return process.returncode, [leg for leg in legs if leg["verdict"] != "SKIPPED"]

    def end(self, process: subprocess.Popen[str]) -> None:
        """End a run that goes on, as Ctrl-C does and then by force, with the jobs it leaves.

        A job that stays would hold the license that the next run waits for.
        """
        if process.poll() is not None:
            return
        _signal_group(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=ENDING_SECONDS)
        # Also where the first one ended the leader: what it started may not have listened.
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        left = self._jobs()
        if left:
            with contextlib.suppress(subprocess.CalledProcessError):  # ended meanwhile
                self.slurm("scancel", *left)

    def _jobs(self) -> list[str]:
        """Return the numbers of these tests' own jobs, which start below their own folder."""
        lines = self.slurm("squeue", "--noheader", "--format=%i %Z").splitlines()
        mine = f"{self.environment['FABRICPROOF_WORK']}/"
        jobs = [line.partition(" ") for line in lines]
        return [number for number, _, folder in jobs if folder.strip().startswith(mine)]

    def vcluster(self, verb: str, *arguments: str) -> str:
        """Return what ``fabricproof vcluster VERB`` prints for this cluster."""
        done = subprocess.run(
            self.command("vcluster", verb, "--name", self.cluster, *arguments),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=BOOT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def fault(self, node: str, rail: str, *options: str) -> Iterator[None]:
        """Put a fault into a rail, and take it out whatever happens."""
        self.vcluster("fault", node, rail, *options)
        try:
            yield
        finally:
            self.vcluster("fault", node, rail, "--clear")

    def slurm(self, program: str, *arguments: str) -> str:
        """Return what a command of the cluster's Slurm prints."""
        folder = Path("/run/fabricproof/vcluster") / self.cluster / "bin"
        return subprocess.run(
            [str(folder / program), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    def wait_for_rank(self, check: str, rank: int, seconds: float = 120) -> None:
        """Wait until a rank of a check's first leg has read its counters: its program runs then."""
        begun = time.time()
        stage = Path(self.environment["FABRICPROOF_WORK"]) / "stage"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = stage.glob(f"*/{SITE}/*/*/{check}*/legs/*.1/rank.{rank}.0")
            if any(path.stat().st_mtime > begun and path.stat().st_size for path in found):
                return
            time.sleep(0.5)
        raise AssertionError(f"rank {rank} of {check} never ran")


def unavailable(words: str) -> NoReturn:
    """Skip; but fail where the cluster was named: who named it wants it measured."""
    if os.environ.get("FABRICPROOF_VCLUSTER"):
        pytest.fail(words)
    pytest.skip(words)


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, number)


def by_path(legs: list[dict[str, Any]], check: str = "") -> dict[str, dict[str, Any]]:
    """Return the legs of one check, or of the only one, by path."""
    mine = [leg for leg in legs if not check or leg["check"] == check]
    found = {leg["leg"]: leg for leg in mine}
    assert len(found) == len(mine), [leg["leg"] for leg in mine]
    return found


def folder_of(leg: dict[str, Any]) -> Path:
    """Return where the latest attempt of a leg lies: ReFrame moves what passed to its output."""
    stage = Path(leg["stage_folder"])
    kept = Path(str(stage).replace("/stage/", "/output/"))
    whole = stage if (stage / "legs").is_dir() else kept
    name = re.sub(r"[^A-Za-z0-9]", "_", leg["leg"])
    return sorted((whole / "legs").glob(f"{name}.[12]"))[-1]


def port_bytes(leg: dict[str, Any], port: str, counter: str = "port_xmit_data") -> dict[int, int]:
    """Return by how many bytes a port's counter moved around a leg, by rank, read from raw text."""
    moved: dict[int, int] = {}
    for path in folder_of(leg).glob("rank.*"):
        rank = int(path.name.split(".")[1])  # rank.RANK.PART
        text = path.read_text()
        words = [
            int(match[1])
            for when in ("before", "after")
            if (match := re.search(rf"^{when} {port}\b.* {counter}=(\d+)", text, re.MULTILINE))
        ]
        assert len(words) == 2, f"{path}: no {counter} of {port} before and after"
        moved[rank] = moved.get(rank, 0) + WORD_BYTES * (words[1] - words[0])
    assert moved, f"no ranks in {folder_of(leg)}"
    return moved


def told_bytes(leg: dict[str, Any]) -> int:
    """Return what the leg's command line makes its first rank send, counted here anew."""
    plan = json.loads((folder_of(leg).parents[1] / "plan.json").read_text())
    (mine,) = [each for each in plan["legs"] if each["name"] == leg["leg"]]
    total = 0
    for argv in mine["commands"]:
        if leg["suite"] == "perftest":  # ib_write_bw -s SIZE -n NUMBER
            total += int(argv[argv.index("-s") + 1]) * int(argv[argv.index("-n") + 1])
            continue
        for segment in (each for each in argv if each.count(":") == 3):  # portrunner.py
            sizes, iterations, warmups, window = segment.split(":")
            each_round = sum(map(int, sizes.split(","))) * int(window)
            total += each_round * (int(iterations) + int(warmups))
    assert total > 0, mine["commands"]
    return total
