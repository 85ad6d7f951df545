"""Faults of the library made for real, each on a drawn pair, rail and moment: what is said of them.

    .venv/bin/python benchmarks/faults_live.py [--draws N] [FAULT...]

Without ``--draws`` it prints what each fault draws from its first seed and measures nothing.  Else
a virtual cluster of four nodes comes up (root; a fault, some fifteen seconds) and is taken down,
and for faults of verbs one of two guests (some half a minute each).
Rows go to ``work/faults_live.jsonl``; ``proof.live`` says what they hold.  Faults of a
node or a rail are drawn by ``pairs_live.py``.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from proof.library import FaultEntry, read_library
from proof.live import LiveDraw

ROOT = Path(__file__).parents[1]
NAME = "faultslive"
ROWS = ROOT / "work" / "faults_live.jsonl"
#: not below /tmp: every node has its own
WORK = ROOT / "work" / "faults-live"
#: on another file system than the stage folders, which the disk of a draw is full of
PERFLOGS = ROOT / "work" / "faults-live-perflogs"
SLURM = Path("/run/fabricproof/vcluster") / NAME / "bin"
NODES, RAILS = ("vc1", "vc2", "vc3", "vc4"), ("rail0", "rail1")
#: of the guests, which are two
VERBS = ("rxe0:1", "rxe1:1")
FABRICPROOF = ROOT / "bin" / "fabricproof"
BOTH = "rail0+rail1"

Draw = dict[str, Any]


def vcluster(*words: str) -> str:
    """Return what a command of the virtual cluster prints."""
    command = [sys.executable, "-m", "vcluster", words[0], "--name", NAME, *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=True).stdout


def site_with(folder: Path, file: str, pattern: str, text: str, of: str = "vcluster") -> Path:
    """Return a site like the cluster's, one place of one file changed."""
    site = folder / "site"
    if not site.exists():
        shutil.copytree(ROOT / "site-configs" / of, site)
    changed, count = re.subn(pattern, text, (site / file).read_text())
    assert count, (file, pattern)
    (site / file).write_text(changed)
    return site


def environment(draw: Draw) -> dict[str, str]:
    """Return what a run on the drawn pair has in its environment."""
    return {
        **os.environ,
        "FABRICPROOF_VCLUSTER": NAME,
        "FABRICPROOF_WORK": str(WORK),
        "FABRICPROOF_PERFLOGS": str(PERFLOGS),
        "FABRICPROOF_NODES": ",".join(draw["pair"]),
        "FABRICPROOF_DRAWN_OLD": str(WORK / "old.txt"),
        "FABRICPROOF_DRAWN_JOBS": str(WORK / "jobs"),
        "FABRICPROOF_SCHEDULER_PATIENCE": "6",
        "FABRICPROOF_DRAWN_LIBRARY": str(ROOT / ".stacks" / "intelmpi" / "lib" / "libmpi.so.12"),
    }


def start(
    draw: Draw, fault: str = "", *, site: str | Path = "vcluster", by: Sequence[str] = ("run",)
) -> subprocess.Popen[str]:
    """Start the check of a draw, which makes the fault itself where one is named."""
    check = CHECKS.get(fault, "DrawnOfBothRails" if draw["rails"] == BOTH else "DrawnOfOneRail")
    words = {"fault": fault, "rails": draw["rails"], "amount": draw["amount"]}
    settings = [word for key, value in words.items() for word in ("-S", f"{check}.{key}={value}")]
    command = [FABRICPROOF, *by, "--site", site, "--json", "-t", "fault"]
    command += ["-p", f"^{STACKS.get(fault, 'openmpi5')}$"]
    command += ["-c", ROOT / "benchmarks" / "checks", "-n", f"^{check}%", *settings]
    return _started(draw, command)


#: title -> the stack that can have it: Intel MPI's library has the name and the interface of
#: MPICH's, and its IMB prints a time and a rate
STACKS = {
    "other MPI library loaded than named": "mpich5",
    "columns that contradict each other": "mpich5",
    "TCP below a verbs device": "openmpi4",
    "protocol switch of a healthy stack": "openmpi4",
}

#: title -> the check that can have it, where it is none of bandwidth
CHECKS = {
    "columns that contradict each other": "DrawnOfColumns",
    "reference that is wrong by two": "DrawnOfTimes",
}


def _started(draw: Draw, command: Sequence[object]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        list(map(str, command)),
        env=environment(draw),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the JSON of a run, or its exit status and what it said where it has none."""
    out, err = process.communicate(timeout=400)
    if not out:
        return {"verdict": f"exit {process.returncode}", "said": err}
    return dict(json.loads(out))


@contextmanager
def running(*command: str) -> Iterator[None]:
    """Keep a program running meanwhile."""
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(child.pid, 15)
        child.wait(timeout=30)


def on(node: str, *command: str) -> list[str]:
    """Return a command that runs on a node."""
    words = [sys.executable, "-m", "vcluster", "exec", "--name", NAME, node, "--", *command]
    return list(words)


def address_of(node: str, rail: str) -> str:
    """Return the address of a rail."""
    asked = on(node, "ip", "-4", "-o", "address", "show", rail)
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=30).stdout
    return said.split()[said.split().index("inet") + 1].partition("/")[0]


def spoiled(entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Run the check that makes this fault itself."""
    return finish(start(draw, entry.title))


def on_guests(entry: FaultEntry, draw: Draw, folder: Path) -> dict[str, Any]:
    """Run the check that makes this fault itself over real verbs, in few seconds of two guests."""
    small = "leg_seconds = 1.0", "64KiB"
    site_with(folder, "site.toml", "leg_seconds = 2.0", small[0], "vcluster-rdma")
    return finish(start(draw, entry.title, site=site_with(folder, "site.toml", "1MiB", small[1])))


def one_night(entry: FaultEntry, draw: Draw, folder: Path) -> dict[str, Any]:
    """Run the check that makes this fault itself as a night, which looks again at what is red."""
    return finish(start(draw, entry.title, site=site_with(folder, "site.toml", "", ""), by=NIGHT))


def flutter(_entry: FaultEntry, draw: Draw, folder: Path) -> dict[str, Any]:
    """Slow a rail down until the first job of a night has ended."""
    vcluster("fault", draw["pair"][0], draw["rails"], "--rate", f"{draw['amount']}%")
    process = start(draw, site=site_with(folder, "site.toml", "", ""), by=NIGHT)
    try:
        jobs = _jobs_of(process)
        while _is_queued(jobs[0]):
            time.sleep(0.1)
    finally:
        vcluster("fault", draw["pair"][0], draw["rails"], "--clear")
    return finish(process)


def begun(entry: FaultEntry, draw: Draw) -> tuple[subprocess.Popen[str], list[str]]:
    """Start the check of a draw; return it once its job runs, with the job's number."""
    process = start(draw, entry.title)
    return process, _jobs_of(process)


def _jobs_of(process: subprocess.Popen[str]) -> list[str]:
    while process.poll() is None:
        asked = [SLURM / "squeue", "-h", "-t", "RUNNING", "-o", "%i %40j"]
        lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\n")
        jobs = [line.split()[0] for line in lines if "rfm_Drawn" in line]
        if jobs:
            return jobs
        time.sleep(0.1)
    raise SystemExit("the job of a draw never ran")


def _is_queued(job: str) -> bool:
    asked = [SLURM / "squeue", "-h", "-j", job]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return bool(done.stdout.strip())


def killed(entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Cancel the job at a drawn moment after it began."""
    process, jobs = begun(entry, draw)
    time.sleep(draw["amount"])
    subprocess.run([SLURM / "scancel", *jobs], check=True)
    return finish(process)


def dead_node(entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Kill a node of the pair at a drawn moment after the job began."""
    process, _jobs = begun(entry, draw)
    time.sleep(draw["amount"])
    node = draw["pair"][draw["amount"] % 2]
    vcluster("kill", node)
    try:
        return finish(process)
    finally:
        vcluster("revive", node)


def controller_away(entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Kill slurmctld at a drawn moment after the job began."""
    process, jobs = begun(entry, draw)
    time.sleep(draw["amount"])
    subprocess.run(on("head", "pkill", "-9", "-x", "slurmctld"), check=True, timeout=60)
    try:
        return finish(process)
    finally:
        vcluster("up")  # the controller alone
        subprocess.run([SLURM / "scancel", "--quiet", *jobs], check=False)


def full_disk(entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Fill the file system of the stage folders while the benchmark is about to start."""
    process, jobs = begun(entry, draw)
    stuffing = WORK / "stuffing"
    stage = max(WORK.glob("stage/*"), key=lambda each: each.stat().st_mtime)
    while not list(stage.glob("*/*/*/*/legs/*/rank.0.*")):
        time.sleep(0.05)
    size = shutil.disk_usage(WORK).free - draw["amount"]
    with contextlib.suppress(OSError), stuffing.open("wb", buffering=0) as file:
        file.write(bytes(size))
    # ReFrame's own log lies there, too: there is room again once the job is over.
    while _is_queued(jobs[0]):
        time.sleep(0.1)
    stuffing.unlink()
    return finish(process)


def vanished(_entry: FaultEntry, draw: Draw, folder: Path) -> dict[str, Any]:
    """Spoil a drawn line of the file of a check that the site requires."""
    lines = (ROOT / "checks" / "pt2pt" / "pairs.py").read_text().splitlines(keepends=True)
    lines.insert(draw["amount"], "def (\n")
    (folder / "pairs.py").write_text("".join(lines))
    # Only a choice by tags lets the required checks be due; all of them are in that file.
    checks = ["-c", folder, "-t", "quick", "-p", "^openmpi5$"]
    command = [FABRICPROOF, "run", "--site", "vcluster", "--json", *checks]
    return finish(_started(draw, command))


def sent_aside(_entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Route what a node sends to the other's rail over the other rail, where it arrives too."""
    one, other = draw["pair"]
    rail = draw["rails"]
    beside = next(each for each in RAILS if each != rail)
    target = address_of(other, rail)
    # The other end has to take what comes in by the wrong rail, as routers of one network do.
    for node in (one, other):
        for each in ("all", *RAILS):
            _set(node, f"net.ipv4.conf.{each}.rp_filter=0")
    hop = address_of(other, beside)
    route = ["ip", "route", "replace", target, "via", hop, "dev", beside]
    subprocess.run(on(one, *route, "src", address_of(one, rail)), check=True, timeout=30)
    try:
        return finish(start(draw))
    finally:
        subprocess.run(on(one, "ip", "route", "del", target), check=True, timeout=30)


def _set(node: str, setting: str) -> None:
    subprocess.run(
        on(node, "sysctl", "-q", "-w", setting), check=True, timeout=30, stdout=subprocess.DEVNULL
    )


def one_look(_entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Slow a rail down until the first look has ended."""
    before = set(WORK.glob("stage/*"))
    vcluster("fault", draw["pair"][0], draw["rails"], "--rate", f"{draw['amount']}%")
    process = start(draw)
    while process.poll() is None:
        ours = set(WORK.glob("stage/*")) - before
        if any(list(each.glob("*/*/*/*/legs/*.1/status")) for each in ours):
            break
        time.sleep(0.02)
    vcluster("fault", draw["pair"][0], draw["rails"], "--clear")
    return finish(process)


def crowded(_entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Send into the drawn rail from a third node, what the draw says of 200 Mb/s."""
    victim, rail = draw["pair"][1], draw["rails"]
    third = next(node for node in NODES if node not in draw["pair"])
    send = f"iperf3 -c {address_of(victim, rail)} -p 5999 -b {draw['amount']}M -t 300"
    return beside_iperf3(draw, victim, third, send)


def beside_iperf3(draw: Draw, server: str, client: str, send: str) -> dict[str, Any]:
    """Run the check of a draw while a node sends to another by the command ``send``."""
    with (
        running(*on(server, "iperf3", "-s", "-p", "5999")),
        running(*on(client, "sh", "-c", f"sleep 1; exec {send}")),
    ):
        return finish(start(draw))


def beside(_entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Send over management both ways, what the draw says of 200 Mb/s."""
    one, other = draw["pair"]
    send = f"iperf3 -c {address_of(other, 'mgmt0')} -p 5999 --bidir -b {draw['amount']}M -t 300"
    return beside_iperf3(draw, other, one, send)


def other_job(_entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Share the nodes, and have another job send from one of the pair over the drawn rail."""
    vcluster("down")
    vcluster("up", "--nodes", str(len(NODES)), "--oversubscribe")
    one, rail = draw["pair"][0], draw["rails"]
    third = next(node for node in NODES if node not in draw["pair"])
    send = f"iperf3 -c {address_of(third, rail)} -p 5999 -b {draw['amount']}M -t 300"
    command = [SLURM / "sbatch", "-J", "other", "-w", one, "-o", "/dev/null", "--wrap", send]
    try:
        with running(*on(third, "iperf3", "-s", "-p", "5999")):
            time.sleep(1)
            subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
            return finish(start(draw))
    finally:
        vcluster("down")
        vcluster("up", "--nodes", str(len(NODES)))


def crossed(_entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Plug the rails of one node of the pair into each other's switches."""
    node = draw["pair"][draw["amount"]]
    vcluster("fault", node, "--crossed")
    try:
        return finish(start(draw))
    finally:
        vcluster("fault", node, "--clear")


def referred(entry: FaultEntry, draw: Draw, folder: Path) -> dict[str, Any]:
    """Run on a site that states half the latency that was just measured."""
    healthy = finish(start(draw, entry.title))
    measured = next(
        each["value"]
        for leg in healthy["legs"]
        for each in leg["quantities"]
        if each["name"] == "latency_4KiB"
    )
    stated = (
        f'[[references]]\nquantity = "latency_4KiB"\nvalue = "{measured / 2:.1f} us"\n'
        'tolerance = 0.2\nfabric = "eth0"\norigin = "typed"\n\n'
    )
    site = site_with(folder, "references.toml", r"(?=\[\[references)", stated)
    return finish(start(draw, entry.title, site=site))


def declared(link: str) -> Callable[[FaultEntry, Draw, Path], dict[str, Any]]:
    """Return how a run goes whose site declares another link."""

    def run(_entry: FaultEntry, draw: Draw, folder: Path) -> dict[str, Any]:
        return finish(start(draw, site=str(site_with(folder, "fabric.toml", "200MbE", link))))

    return run


def damaged(entry: FaultEntry, draw: Draw, folder: Path) -> dict[str, Any]:
    """Damage the records of a real red run, and ask for its report."""
    vcluster("fault", draw["pair"][0], draw["rails"], "--rate", "50%")
    try:
        run = finish(start(draw))["run_id"]
    finally:
        vcluster("fault", draw["pair"][0], draw["rails"], "--clear")
    perflogs = folder / "perflogs"
    shutil.copytree(PERFLOGS, perflogs)
    (file,) = perflogs.rglob(f"{run}.jsonl")
    text = file.read_text()
    cut = text.rindex("\n", 0, -1) + draw["amount"]
    file.write_text(_made_green(text) if entry.variant else text[:cut])
    if "report of ReFrame" in entry.variant:
        for report in perflogs.rglob("*.json"):
            if run in report.read_text():
                report.write_text(_made_green(report.read_text()))
    command = [FABRICPROOF, "report", run, "--site", "vcluster", "--json"]
    asked = subprocess.run(
        list(map(str, command)),
        env={**environment(draw), "FABRICPROOF_PERFLOGS": str(perflogs)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if not asked.stdout:
        return {"verdict": f"exit {asked.returncode}", "said": asked.stderr}
    return dict(json.loads(asked.stdout))


def _made_green(text: str) -> str:
    for word in ("FAIL", "INVALID", "MISSING", "UNJUDGED"):
        text = text.replace(f'"{word}"', '"PASS"')
    return text.replace('"result": "fail"', '"result": "pass"')


def unlike(entry: FaultEntry, draw: Draw, _: Path) -> dict[str, Any]:
    """Give one node another MTU or firmware, and ask the check of links."""
    option, nodes = UNLIKE[entry.title]
    vcluster("fault", draw["pair"][0], draw["rails"], option, str(draw["amount"]))
    check = ["-c", ROOT / "checks" / "pt2pt" / "link_preflight.py", "-n", "^LinkPreflight"]
    command = [FABRICPROOF, "run", "--site", "vcluster", "--json", *check, "-p", "^openmpi5$"]
    try:
        return finish(_started({**draw, "pair": nodes or draw["pair"]}, command))
    finally:
        vcluster("fault", draw["pair"][0], draw["rails"], "--clear")


#: title -> what the virtual cluster is asked for, and the nodes that are looked at; empty: the pair
UNLIKE: dict[str, tuple[str, tuple[str, ...]]] = {
    "wrong MTU on a node": ("--mtu", ()),
    "mixed firmware": ("--firmware", NODES),
}


#: what looks again at what is red, and tells nobody
NIGHT = ("nightly", "--no-notify")

#: a run that ends before there is a verdict to print: with which documented status, saying what
ENDS = {
    "controller away": ("exit 69", "the scheduler stopped answering during the run"),
    "full disk": ("exit 74", "the disk is full, and nothing of this run counts"),
}

#: title -> how it is made, the rails it is drawn from, and the numbers
MADE: dict[str, tuple[Callable[..., dict[str, Any]], tuple[str, ...], tuple[int, int]]] = {
    "traffic over management": (spoiled, RAILS, (0, 0)),
    "wrong MTU on a node": (unlike, RAILS, (1000, 1490)),
    "mixed firmware": (unlike, RAILS, (1000, 9999)),
    "TCP below a verbs device": (on_guests, VERBS, (0, 0)),
    "protocol switch of a healthy stack": (on_guests, VERBS, (2, 32)),
    "wrong rail used": (spoiled, RAILS, (0, 0)),
    "one rail of two used": (spoiled, (BOTH,), (0, 1)),
    "shared memory instead of the fabric": (spoiled, RAILS, (0, 0)),
    "other MPI library loaded than named": (spoiled, RAILS, (0, 0)),
    "benchmark that prints without sending": (spoiled, RAILS, (0, 0)),
    "stale output of an older run": (spoiled, RAILS, (0, 0)),
    "truncated output": (spoiled, RAILS, (1, 6)),
    "interleaved output": (spoiled, RAILS, (5, 12)),
    "wrong unit": (spoiled, RAILS, (0, 0)),
    "wrong unit, GB/s under MB/s": (spoiled, RAILS, (0, 0)),
    "hung rank": (spoiled, RAILS, (0, 1)),
    "ranks on the wrong node": (spoiled, RAILS, (0, 0)),
    "stalls at both looks, each of another number": (spoiled, RAILS, (5, 15)),
    "stall beside a look that nobody counted": (spoiled, RAILS, (30, 60)),
    "rank that never came back to be counted": (spoiled, RAILS, (0, 1)),
    "columns that contradict each other": (spoiled, RAILS, (12, 20)),
    "check that ReFrame failed for a reason of its own": (spoiled, RAILS, (1, 2)),
    "flutter of one job": (flutter, RAILS, (30, 60)),
    "wrong path in one job": (one_night, RAILS, (0, 0)),
    "stalls in both jobs, each of another number": (one_night, RAILS, (5, 15)),
    "as many bytes beside as on the rail": (beside, RAILS, (300, 400)),
    "other job on the node": (other_job, RAILS, (80, 150)),
    "rails cabled crosswise": (crossed, RAILS, (0, 1)),
    "reference that is wrong by two": (referred, RAILS, (0, 0)),
    "job killed": (killed, RAILS, (0, 6)),
    "dead node": (dead_node, RAILS, (0, 6)),
    "controller away": (controller_away, RAILS, (0, 6)),
    "full disk": (full_disk, RAILS, (0, 500)),
    "check that silently vanished": (vanished, RAILS, (0, 40)),
    "rails cabled crosswise, what the node sends leaves by the other rail": (
        sent_aside,
        RAILS,
        (0, 0),
    ),
    "launcher that hides a rank's failure": (spoiled, RAILS, (0, 1)),
    "stall at one look": (one_look, RAILS, (30, 60)),
    "other traffic on the rail": (crowded, RAILS, (80, 150)),
    "fabric declared wrong (both ways)": (declared("100MbE"), RAILS, (0, 0)),
    "fabric declared wrong (both ways), twice": (declared("400MbE"), RAILS, (0, 0)),
    "record file damaged": (damaged, RAILS, (20, 300)),
    "record file damaged, made green by hand, on a slow rail": (damaged, RAILS, (0, 0)),
    "record file damaged, and the report of ReFrame too": (damaged, RAILS, (0, 0)),
}


def drawn(title: str, seed: int) -> Draw:
    """Return the pair, the rails and the number of a draw."""
    dice = random.Random(f"{title} {seed}")
    made, rails, numbers = MADE[title]
    # A night chooses nodes for itself: the first ones of an idle cluster.
    nodes = NODES[:2] if made in {one_night, flutter, on_guests} else NODES
    return {
        "pair": tuple(dice.sample(nodes, 2) if len(nodes) == 2 else sorted(dice.sample(nodes, 2))),
        "rails": dice.choice(rails),
        "amount": dice.randint(*numbers),
    }


def told(result: dict[str, Any]) -> str:
    """Return all that a person is told of a run."""
    if "night" in result:
        return json.dumps(result)
    lines = [str(result.get("said", "")), *map(str, result.get("notes", ()))]
    for leg in result.get("legs", ()):
        lines += [str(leg["reason"]), *map(str, leg["findings"])]
        lines += [f"{each['name']}: {each['reason']}" for each in leg["quantities"]]
    return "\n".join(lines)


def seen(entry: FaultEntry, seed: int) -> tuple[LiveDraw, str]:
    """Make one draw of a fault; return its row, and what was said."""
    draw = drawn(entry.title, seed)
    load = os.getloadavg()[0]
    (WORK / "jobs").unlink(missing_ok=True)
    # A night remembers what was red before: each draw has a history of its own.
    shutil.rmtree(PERFLOGS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        result = MADE[entry.title][0](entry, draw, Path(folder))
    words = told(result)
    row = LiveDraw(
        fault=entry.title,
        by="nightly" if "night" in result else "run",
        draw=f"{' - '.join(draw['pair'])} {draw['rails']} {draw['amount']}",
        verdict=result["verdict"],
        caught=_is_caught(entry, result["verdict"], words),
        blamed=None,
        date=datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d"),
        load=round(load, 1),
    )
    return row, words


def _is_caught(entry: FaultEntry, verdict: str, words: str) -> bool:
    status, said = ENDS.get(entry.title, ("", ""))
    if verdict == status:
        return said in words
    # What is not simulated has no verdict in the library: it is red by name.
    return verdict in ({each.value for each in entry.verdicts} or {"FAIL"})


def keep_old() -> None:
    """Measure once without a fault, and keep what the benchmark printed: the older run."""
    finish(start({"pair": NODES[:2], "rails": "rail0", "amount": 0}))
    printed = max(WORK.rglob("legs/*/stdout"), key=lambda each: each.stat().st_mtime)
    shutil.copy(printed, WORK / "old.txt")


def main() -> None:
    """Make the faults that are named, or all of them, or say what they draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument("fault", nargs="*", default=[*MADE])
    given = parser.parse_args()
    if not given.draws:
        for title in given.fault:
            print(f"{title}: {drawn(title, 1)}")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    vcluster("down")
    of_verbs = [title for title in given.fault if MADE[title][0] is on_guests]
    others = [title for title in given.fault if title not in of_verbs]
    if others:
        # A file system of its own, so that it can be filled; the nodes see what was there before.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "drawn", WORK], check=True)
        try:
            vcluster("up", "--nodes", str(len(NODES)))
            keep_old()
            draw_all(others, given.draws)
        finally:
            vcluster("down")
            subprocess.run(["umount", "--lazy", WORK], check=True)
    if of_verbs:
        try:
            vcluster("up", "--kind", "rdma")
            draw_all(of_verbs, given.draws)
        finally:
            vcluster("down")


def draw_all(titles: Sequence[str], draws: int) -> None:
    """Make so many draws of each fault; write a row of each, and print it."""
    library = {entry.title: entry for entry in read_library()}
    for seed in range(1, draws + 1):
        for title in titles:
            row, words = seen(library[title], seed)
            with ROWS.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            missing = [each for each in library[title].words if not re.search(each, words)]
            print(json.dumps(asdict(row)), missing, words[:400] if missing else "", flush=True)


if __name__ == "__main__":
    main()
