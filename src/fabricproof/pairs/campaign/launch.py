"""Measure a campaign inside a job that has its nodes: launch after launch until nothing is left.

First the planned rounds over each path, then for a ladder the suspects with partners that were
good, then second looks.  What a node that died leaves unmeasured is left for another job.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.core.whole_file import write_whole
from fabricproof.nodes.doctor import render_script
from fabricproof.pairs.campaign.again import next_round
from fabricproof.pairs.campaign.kernel import (
    BUILD,
    BUILD_SCRIPT,
    KERNEL,
    KernelPlan,
    render_schedule,
)
from fabricproof.pairs.campaign.plan import Campaign, PlannedRound, save, steps_of
from fabricproof.pairs.campaign.record import (
    LAUNCH_FILE,
    RECORD_FILE,
    SCHEDULE_FILE,
    KernelRecord,
    launches,
    left_on,
    measured,
    read_launch,
)
from fabricproof.pairs.campaign.verdict import Outcome, judge_campaign
from fabricproof.site import Site
from fabricproof.stacks.environment import shell_line, shell_word
from fabricproof.stacks.launch import Layout, layout_options, naming_the_nodes
from fabricproof.stacks.stack import NetPath, ResolvedStack

SCRIPT_FILE = "job.sh"
LOOK = Path(__file__).parent / "look.sh"

#: launches over one path that come to nothing new before the rest is left
_MOST_VAIN = 2

#: beside the rounds: modules, compiler, start of the ranks; in s
_START_SECONDS = 120

#: A launch that has not begun its record by then hangs, in s, as MPI_Init did where Slurm's PMIx
#: took other nodes for its own (stacks.launch).  What hundreds of nodes more may take.
_LEAST_BEGIN_SECONDS, _NODES_A_SECOND = 30, 10

#: the kernel is built where it runs, by the stack's own compiler, once for all launches
_LAUNCH = """\
#!/bin/bash
cd {folder} || exit 74
{head}cp ../launch.0/kernel ../launch.0/kernel.built . 2>/dev/null
if [ ! -x kernel ]; then
    {build}
fi
if [ ! -x kernel ]; then
    echo "fabricproof kernel: mpicc of {stack} does not build it (build.log)" >stderr
    exit 69
fi
timeout -k 5 {start} {launch} bash ./{look} {rails} >rails 2>look.err
if ! grep -v ' up$' rails >down; then
    timeout -k 5 {limit} {launch} ./kernel {schedule} {record} >stdout 2>stderr &
    for ((each = 0; each < {begin}; each++)); do
        if [ -s {record} ] || ! kill -0 $! 2>/dev/null; then break; fi
        sleep 1
    done
    [ -s {record} ] || kill $! 2>/dev/null
    wait $!
    echo $? >status
fi
"""


@dataclass(frozen=True, kw_only=True)
class Means:
    """All that a campaign needs of the world.

    Attributes:
        subject: the stack, and how it is started.
        folder: of the campaign; the nodes see it too.
        nodes: those that this job has.
    """

    site: Site
    subject: ResolvedStack
    folder: Path
    environment: Mapping[str, str]
    nodes: Collection[str]
    say: Callable[[str], object]


def conduct(campaign: Campaign, means: Means) -> Outcome:
    """Measure what a campaign lacks and this job can measure; return what it came to.

    Raises:
        FabricproofError: the stack cannot be started, or a record is damaged; what was measured is
            kept.
    """
    hindered = [_Hindered() for _ in campaign.net_paths]
    for net_path in range(len(campaign.net_paths)):
        _measure(campaign, means, net_path, hindered[net_path])
    outcome = judge_campaign(means.site, campaign, measured(means.folder, campaign))
    while (further := next_round(outcome)) is not None:
        names, before = campaign.nodes, outcome.rounds
        listed = " ".join(f"{names[one]}-{names[other]}" for one, other in further.pairs[:8])
        means.say(f"{further.why}: {listed}")
        campaign = campaign.with_round(further.pairs, further.net_paths, is_again=further.is_again)
        save(means.folder, campaign)
        for net_path in further.net_paths:
            _measure(campaign, means, net_path, hindered[net_path])
        outcome = judge_campaign(means.site, campaign, measured(means.folder, campaign))
        if outcome.rounds == before:
            break  # Nothing of it can be measured now: it is left, and those after it too.
    return outcome


@dataclass(kw_only=True)
class _Hindered:
    """Nodes whose rail over a path is not up, and pairs that hung, as its launches showed."""

    down: set[str] = field(default_factory=set)
    stuck: set[tuple[int, frozenset[str]]] = field(default_factory=set)

    def learn(self, launch: KernelRecord) -> bool:
        """Take what a launch showed; tell whether it is new."""
        before = len(self.down), len(self.stuck)
        self.down |= set(launch.down)
        self.stuck |= launch.stuck
        return before != (len(self.down), len(self.stuck))


def _measure(campaign: Campaign, means: Means, net_path: int, hindered: _Hindered) -> None:
    """Launch over one path until nothing is left that can be measured, or nothing new comes."""
    vain = 0
    left = left_on(net_path, campaign, measured(means.folder, campaign))
    while vain <= _MOST_VAIN:
        had = set(means.nodes) - hindered.down
        cut = (
            replace(
                each,
                pairs=tuple(
                    pair
                    for pair in each.pairs
                    if campaign.names(pair) <= had
                    and (each.number, campaign.names(pair)) not in hindered.stuck
                ),
            )
            for each in left
        )
        rounds = tuple(each for each in cut if each.pairs)
        if not rounds:
            return
        launch = _launch(campaign, means, net_path, rounds)
        before, left = left, left_on(net_path, campaign, measured(means.folder, campaign))
        if launch.reason:
            means.say(f"{campaign.path_name(net_path)}: {launch.reason}")
        came_to_something = _num_pairs(left) < _num_pairs(before)
        vain = 0 if hindered.learn(launch) or came_to_something else vain + 1


def _num_pairs(rounds: Iterable[PlannedRound]) -> int:
    return sum(len(each.pairs) for each in rounds)


def _launch(
    campaign: Campaign, means: Means, net_path: int, rounds: tuple[PlannedRound, ...]
) -> KernelRecord:
    used = sorted({node for each in rounds for pair in each.pairs for node in pair})
    at = {node: number for number, node in enumerate(used)}
    plan = KernelPlan(
        nodes=tuple(campaign.nodes[node] for node in used),
        steps=steps_of(means.site, campaign, net_path),
        rounds=tuple(
            (each.number, tuple((at[one], at[other]) for one, other in each.pairs))
            for each in rounds
        ),
        share_cores=means.site.partition(campaign.partition).oversubscribed,
    )
    numbers = [int(path.suffix[1:]) for path in launches(means.folder)]
    folder = means.folder / f"launch.{max(numbers, default=-1) + 1}"
    folder.mkdir()
    script = render_launch(means.subject, path_of(means.subject, campaign, net_path), plan, folder)
    write_whole(folder / SCHEDULE_FILE, render_schedule(plan))
    for source in (KERNEL, BUILD_SCRIPT, LOOK):
        write_whole(folder / source.name, source.read_bytes())
    write_whole(folder / SCRIPT_FILE, script)
    write_whole(folder / LAUNCH_FILE, json.dumps({"net_path": net_path}) + "\n")
    means.say(
        f"{campaign.path_name(net_path)}: {len(used)} nodes, {len(rounds)} rounds of some "
        f"{plan.seconds_per_round:.0f} s"
    )
    run_script(folder, means.environment)
    launch = read_launch(folder)
    assert launch is not None, "its plan was just written"
    return launch


def run_script(folder: Path, environment: Mapping[str, str]) -> None:
    """Run the script in ``folder`` on the nodes of the job that this program runs in."""
    with (folder / "script.out").open("wb") as out:
        subprocess.run(
            ["bash", SCRIPT_FILE],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )


def render_launch(subject: ResolvedStack, net_path: NetPath, plan: KernelPlan, folder: Path) -> str:
    """Return the script that runs ``plan`` in ``folder``, on its nodes of a job.

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
    count, is_srun = len(plan.nodes), subject.launcher == "srun"
    layout = layout_options(
        subject.family, subject.launcher, Layout(num_nodes=count, nodes=plan.nodes)
    )
    options = [word for word in layout if not word.startswith("--ntasks=")]
    if is_srun:
        first = ["srun", f"--ntasks={count}", "--kill-on-bad-exit=1"]
    else:
        hidden = [word for name in subject.launch.hidden for word in ("-u", name)]
        first = [*(["env", *hidden] if hidden else []), subject.launch.launcher, "-np", str(count)]
    command = [shell_word(each) for each in (*first, *options, *subject.options)]
    if is_srun:
        command = list(naming_the_nodes(command, plan.nodes))
    rounds = 2 * len(plan.rounds) * plan.seconds_per_round
    return _LAUNCH.format(
        folder=shell_word(str(folder)),
        head=render_script((), subject, settings=settings),
        build=BUILD,
        stack=subject.name,
        start=_START_SECONDS,
        launch=" ".join(command),
        look=LOOK.name,
        rails=shell_line(net_path.rails),
        limit=60 * math.ceil((_START_SECONDS + plan.limit_seconds + rounds) / 60),
        schedule=SCHEDULE_FILE,
        record=RECORD_FILE,
        begin=min(_START_SECONDS, _LEAST_BEGIN_SECONDS + count // _NODES_A_SECOND),
    )


def path_of(subject: ResolvedStack, campaign: Campaign, net_path: int) -> NetPath:
    """Return how the stack is told to take a path of the campaign."""
    for each in subject.net_paths:
        if (each.fabric, each.rails) == (campaign.fabric, campaign.net_paths[net_path]):
            return each
    raise ConfigError(
        f"the site has no path {campaign.path_name(net_path)} over {campaign.fabric}",
        source=subject.source,
        expected=" or ".join(each.name for each in subject.net_paths),
    )
