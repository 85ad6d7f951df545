"""One job for one launch of the kernel: its script, how it is submitted, how it is followed."""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.errors import ConfigError, FabricproofError, UnavailableError
from fabricproof.core.hostlist import fold
from fabricproof.core.whole_file import write_whole
from fabricproof.job.evidence.leg_folder import read_text
from fabricproof.job.job_end import REACHED_END, RECORD_END, read_end
from fabricproof.nodes.doctor import render_script
from fabricproof.nodes.slurm import ask
from fabricproof.pairs.campaign.ledger import RECORD_FILE, SCHEDULE_FILE, read_launch
from fabricproof.pairs.campaign.plan import (
    BUILD,
    BUILD_SCRIPT,
    KERNEL,
    KernelPlan,
    render_schedule,
)
from fabricproof.pairs.campaign.record import GrowingRecord, KernelRecord
from fabricproof.stacks.environment import shell_line, shell_word
from fabricproof.stacks.launch import Layout, layout_options, naming_the_nodes
from fabricproof.stacks.stack import NetPath, ResolvedStack

SCRIPT_FILE = "job.sh"
LOOK = Path(__file__).parent / "look.sh"

#: what a rank that hangs says before it ends the launch (kernel.c, too_long)
_STUCK = re.compile(r"fabricproof kernel: stuck (\S+) with (\S+) in round (\d+),")

#: how often the job is looked at, and how long one may be unknown before it counts as gone, in s
_LOOK_SECONDS, _GONE_SECONDS = 1.0, 6.0

#: how often jobs that were cancelled are looked for: a minute; Slurm kills after KillWait, 30 s
_ENDING_LOOKS = 60

#: beside the rounds: modules, compiler, start of the ranks; in s
_START_SECONDS = 120

#: A launch that has not begun its record by then hangs, in s, as MPI_Init did where Slurm's PMIx
#: took other nodes for its own (stacks.launch).  What hundreds of nodes more may take.
_LEAST_BEGIN_SECONDS, _NODES_A_SECOND = 30, 10

#: Built where it runs, by the stack's own compiler.
_BUILD = """\
cp ../launch.0/kernel ../launch.0/kernel.built . 2>/dev/null
if [ ! -x kernel ]; then
    {build}
fi
if [ ! -x kernel ]; then
    echo "fabricproof kernel: mpicc of {stack} does not build it (build.log)" >stderr
    exit 69
fi
"""


_WATCH = """\
    for ((each = 0; each < {seconds}; each++)); do
        if [ -s {record} ] || ! kill -0 $! 2>/dev/null; then break; fi
        sleep 1
    done
    [ -s {record} ] || kill $! 2>/dev/null
    wait $!
    echo $? >status
"""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a launch ended.

    Attributes:
        reason: why it did not come to its end; empty where it did.
        down: node -> which of its rails is not up; then no rank was started.
        stuck: pairs that hung, with the number of the round.
    """

    reason: str
    down: Mapping[str, str] = field(default_factory=dict)
    stuck: frozenset[tuple[int, frozenset[str]]] = frozenset()


def job_minutes(plan: KernelPlan) -> int:
    """Return what the job asks for, in minutes: twice what its rounds should take."""
    rounds = 2 * len(plan.rounds) * plan.seconds_per_round
    return math.ceil((_START_SECONDS + plan.limit_seconds + rounds) / 60)


def render_job(
    subject: ResolvedStack,
    net_path: NetPath,
    plan: KernelPlan,
    folder: Path,
    *,
    named: bool = False,
) -> str:
    """Return the script of the job that runs ``plan`` in ``folder``.

    ``named``: the job may have more nodes than the plan: the launcher is told which.

    Raises:
        ConfigError: the stack cannot be started, or cannot take this path.
    """
    why = subject.absent or subject.launch_fault or net_path.refusal
    if why or subject.launch is None:
        raise ConfigError(
            f"{subject.name} cannot measure over {'+'.join(net_path.rails)}: {why}",
            source=subject.source,
            next_step=subject.mend or None,
        )
    settings = {**subject.launch.environment, **net_path.environment}
    head = render_script((), subject, settings=settings)
    assert subject.launch is not None
    count = len(plan.nodes)
    where = Layout(num_nodes=count, nodes=plan.nodes if named else ())
    layout = layout_options(subject.family, subject.launcher, where)
    options = [word for word in layout if not word.startswith("--ntasks=")]
    if subject.launcher == "srun":
        first = ["srun", f"--ntasks={count}", "--kill-on-bad-exit=1"]
    else:
        hidden = [word for name in subject.launch.hidden for word in ("-u", name)]
        first = [*(["env", *hidden] if hidden else []), subject.launch.launcher, "-np", str(count)]
    command = [shell_word(each) for each in (*first, *options, *subject.options)]
    if named and subject.launcher == "srun":
        command = list(naming_the_nodes(command, plan.nodes))
    seconds, launch = 60 * job_minutes(plan), " ".join(command)
    begin = min(_START_SECONDS, _LEAST_BEGIN_SECONDS + len(plan.nodes) // _NODES_A_SECOND)
    return (
        f"#!/bin/bash\ncd {shell_word(str(folder))} || exit 74\n{RECORD_END}\n{head}"
        f"{_BUILD.format(build=BUILD, stack=subject.name)}"
        f"timeout -k 5 {_START_SECONDS} {launch} bash ./{LOOK.name} {shell_line(net_path.rails)} "
        ">rails 2>look.err\n"
        "if ! grep -v ' up$' rails >down; then\n"
        f"    timeout -k 5 {seconds} {launch} ./kernel "
        f"{SCHEDULE_FILE} {RECORD_FILE} "
        ">stdout 2>stderr &\n"
        f"{_WATCH.format(seconds=begin, record=RECORD_FILE)}fi\n"
        f"{REACHED_END}\n"
    )


def prepare(
    folder: Path,
    subject: ResolvedStack,
    net_path: NetPath,
    plan: KernelPlan,
    *,
    named: bool = False,
) -> None:
    """Write all that the job needs into ``folder``; arguments as of :func:`render_job`."""
    script = render_job(subject, net_path, plan, folder, named=named)
    write_whole(folder / SCHEDULE_FILE, render_schedule(plan))
    for source in (KERNEL, BUILD_SCRIPT, LOOK):
        write_whole(folder / source.name, source.read_bytes())
    write_whole(folder / SCRIPT_FILE, script)


def submit(
    folder: Path, subject: ResolvedStack, plan: KernelPlan, environment: Mapping[str, str]
) -> str:
    """Submit the job in ``folder``; return its number.

    Raises:
        UnavailableError: Slurm refuses it.
    """
    said = ask(
        [
            *("sbatch", "--parsable", "--no-requeue", "--exclusive"),
            *(f"--job-name={_job_name(folder.parent)}", f"--time={job_minutes(plan)}"),
            *(f"--nodes={len(plan.nodes)}", f"--ntasks={len(plan.nodes)}", "--ntasks-per-node=1"),
            *(f"--nodelist={fold(plan.nodes)}", f"--output={folder / 'slurm.out'}"),
            *subject.access,
            str(folder / SCRIPT_FILE),
        ],
        environment,
    )
    return said.strip().partition(";")[0]


#: how the folder of a campaign of ``pairs run`` ends: as the identity of a run
_IDENTITY = re.compile(r"Z-[0-9a-f]{6}$")


def _job_name(campaign: Path) -> str:
    """Return the name of all jobs of a campaign, and of no other's.

    The folders of the campaigns of checks are all called alike: there the whole path tells.
    """
    if _IDENTITY.search(campaign.name):
        return f"pairs-{campaign.name[-6:]}"
    return f"pairs-{hashlib.sha256(str(campaign.resolve()).encode()).hexdigest()[:8]}"


def end_left(
    campaign: Path,
    environment: Mapping[str, str],
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> tuple[str, ...]:
    """Cancel the jobs that a program that was killed left of a campaign; return their numbers.

    They would measure what is to be measured now.  What they have measured is kept.

    Raises:
        UnavailableError: Slurm does not answer, or they do not end.
    """
    asked = ["squeue", "-h", "-u", str(os.getuid()), "-n", _job_name(campaign), "-o", "%A"]
    found = tuple(ask(asked, environment).split())
    for job in found:
        _cancel(job, environment)
    for _ in range(_ENDING_LOOKS):
        left = ask(asked, environment).split() if found else []
        if not left:
            return found
        sleep(_LOOK_SECONDS)
    raise UnavailableError(
        f"a job that an earlier program left of this campaign does not end: {', '.join(left)}",
        source=str(campaign),
        next_step=f"scancel {' '.join(left)}",
    )


def run_here(folder: Path, environment: Mapping[str, str]) -> Ended:
    """Run the script in ``folder`` on the nodes of the job that this program runs in."""
    with (folder / "slurm.out").open("wb") as out:
        subprocess.run(
            ["bash", SCRIPT_FILE],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    end = read_end(folder)
    return _ended(folder, "" if end and end.reached else "its script was ended")


def follow(
    folder: Path,
    job_id: str,
    environment: Mapping[str, str],
    *,
    queue_seconds: float,
    on_record: Callable[[KernelRecord], object],
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Ended:
    """Wait for a job, and give its record as it grows; return how it ended.

    A job that waits too long, or whoever interrupts this, has the job cancelled: what it measured
    is kept.

    ``queue_seconds``: how long it may wait for its nodes.
    ``on_record``: takes the record each time that a round ended.
    """
    seen, gone_since, begin = 0, None, clock()
    growing = GrowingRecord(folder / RECORD_FILE)
    try:
        while True:
            record = growing.look()
            if len(record.rounds) > seen:
                seen = len(record.rounds)
                on_record(record)
            end = read_end(folder)
            state = "" if end else _state(job_id, environment)
            if end is not None:
                return _ended(folder, "" if end.reached else "its script was ended")
            if state in {"PENDING", "CONFIGURING"} and clock() - begin > queue_seconds:
                _cancel(job_id, environment)
                return _ended(folder, f"it waited {queue_seconds / 60:.0f} minutes in the queue")
            if state in {"", "gone"}:
                gone_since = gone_since if gone_since is not None else clock()
                if clock() - gone_since > _GONE_SECONDS:
                    return _ended(folder, "the job ended without its script's last word")
            else:
                gone_since = None
            sleep(_LOOK_SECONDS)
    except BaseException:
        _cancel(job_id, environment)
        raise


def _state(job_id: str, environment: Mapping[str, str]) -> str:
    """Return the state of a job in the queue; ``gone`` where Slurm no longer has it."""
    try:
        return ask(["squeue", "-h", "-j", job_id, "-o", "%T"], environment).strip() or "gone"
    except UnavailableError as error:
        return "gone" if "nvalid job id" in str(error) else "unknown"


def _cancel(job_id: str, environment: Mapping[str, str]) -> None:
    try:
        ask(["scancel", "--quiet", job_id], environment)
    except FabricproofError:
        return  # Slurm is away: the job ends at its own time limit


def _ended(folder: Path, why: str) -> Ended:
    if read_launch(folder).is_done and not why:
        return Ended(reason="")
    said_down = read_text(folder / "down").splitlines()
    down = dict(line.split(" ", 1) for line in said_down if " " in line)
    if down:
        reason = ", ".join(f"{node} {rail}" for node, rail in sorted(down.items()))
        return Ended(reason=f"not up: {reason}", down=down)
    found = _STUCK.findall(read_text(folder / "stderr"))
    stuck = frozenset((int(number), frozenset((one, other))) for one, other, number in found)
    lines = [line.strip() for line in read_text(folder / "stderr").splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("fabricproof kernel")]
    status, said = read_text(folder / "status").strip(), (own or lines[-1:] or [""])[0][:300]
    words = [why or f"the kernel ended with status {status or 'unknown'}", said]
    return Ended(reason=": ".join(filter(None, words)), stuck=stuck)
