"""Run a campaign: launch after launch until all that can be had now is measured.

First the planned rounds over each path, then for a ladder the suspects with partners that were
good.  What a node that is busy, or that died, leaves unmeasured is left for another time.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from fabricproof.core.errors import ConfigError
from fabricproof.core.units import parse_size
from fabricproof.core.whole_file import write_whole
from fabricproof.pairs.campaign.further import next_round
from fabricproof.pairs.campaign.job import Ended, end_left, follow, prepare, run_here, submit
from fabricproof.pairs.campaign.ledger import (
    LAUNCH_FILE,
    Campaign,
    PlannedRound,
    Readings,
    in_turns,
    launches,
    left_on,
    save,
)
from fabricproof.pairs.campaign.nodes import Standing, once_ended
from fabricproof.pairs.campaign.path import pairs_of, prove_pair
from fabricproof.pairs.campaign.plan import (
    KernelPlan,
    Mode,
    Step,
    as_pairs,
    plan_steps,
    round_seconds,
)
from fabricproof.pairs.campaign.record import KernelRecord, RoundRecord
from fabricproof.pairs.campaign.verdict import (
    Outcome,
    judge_campaign,
    physics,
)
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.ladder import FIRST_ROUNDS, Ladder
from fabricproof.pairs.schedule import Order, Schedule
from fabricproof.physics import Link, bound, latency_floor_us
from fabricproof.site import PartitionSpec, Site
from fabricproof.stacks.stack import NetPath, ResolvedStack
from fabricproof.traffic import PathState

#: launches over one path that come to nothing new before the rest is left
_MOST_VAIN = 2

#: a small message is guessed to cost this many times the physical floor, to size the effort
#: (as in the legs of checks)
_LATENCY_GUESS = 20

#: What a core that plays nodes of a virtual cluster carries, in MB/s: two cores of 2.5 GHz played
#: sixteen nodes with rails of 25 Mb/s, 200 Mb/s in all; two pairs over two rails of 200 Mb/s each,
#: four times as much, came to 88.8 % of their rate there.
CORE_MB_S = 12.5


@dataclass(frozen=True, kw_only=True)
class Means:
    """All that a campaign needs of the world.

    Attributes:
        subject: the stack, and how it is started.
        folder: of the campaign; the nodes see it too.
        inside: this program runs in a job that has all nodes of the campaign.
    """

    site: Site
    subject: ResolvedStack
    folder: Path
    environment: Mapping[str, str]
    standing: Callable[[], Standing]
    say: Callable[[str], object]
    inside: bool = False

    @cached_property
    def readings(self) -> Readings:
        """What stands in the folder; read once."""
        return Readings(self.folder)


def planned_rounds(
    leaves: Leaves,
    num_paths: int,
    *,
    is_full: bool,
    order: Order,
    seed: int,
    at_once: int = 0,
    first_rounds: int = FIRST_ROUNDS,
) -> tuple[PlannedRound, ...]:
    """Return the rounds that a campaign begins with, each over every path.

    ``is_full``: every pair; else the first rounds of the ladder.
    ``at_once``: pairs that measure at the same time at most (:func:`pairs_at_once`); 0: all.
    ``first_rounds``: random rounds of the ladder.
    """
    schedule = Schedule(order=order, leaves=leaves, seed=seed)
    ladder = Ladder(leaves=leaves, seed=seed, first_rounds=first_rounds)
    rounds = schedule.rounds() if is_full else ladder.first()
    planned = as_pairs(each.tolist() for each in rounds)
    met = {node for pairs in planned for pair in pairs for node in pair}
    alone = [node for node in range(leaves.num_nodes) if node not in met]
    free = [*alone, *sorted(met)]
    pairs = []
    while free and free[0] in alone and len(free) > 1:
        pairs.append((free.pop(0), free.pop(0)))
    every = (*planned, *((tuple(pairs),) if pairs else ()))
    return tuple(parts_of_rounds(every, range(num_paths), at_once))


def rounds_for(
    leaves: Leaves, num_paths: int, *, count: int, order: Order, seed: int, at_once: int = 0
) -> tuple[PlannedRound, ...]:
    """Return ``count`` rounds over every path: each pair once, then all of them again and again.

    ``count``: of rounds, and of turns where nodes share cores.
    ``seed``: of what is random; each time all pairs are measured has the next.
    ``at_once``: as in :func:`planned_rounds`.
    """
    rounds = (
        pairs
        for again in itertools.count()
        for each in Schedule(order=order, leaves=leaves, seed=seed + again).rounds()
        for pairs in as_pairs([each.tolist()])
    )
    parts = parts_of_rounds(rounds, range(num_paths), at_once)
    return tuple(itertools.islice(parts, count))


def blank_campaign(
    site: Site, partition: PartitionSpec, fabric: str, stack: str, *, name: str
) -> Campaign:
    """Return a campaign over every pair as the site has it, without nodes, paths and rounds."""
    return Campaign(
        id=name,
        site=str(site.folder.resolve()),
        site_name=site.name,
        partition=partition.name,
        fabric=fabric,
        stack=stack,
        nodes=(),
        leaf_of=(),
        out={},
        skipped={},
        net_paths=(),
        rounds=(),
        size=parse_size(partition.max_message_size),
        seconds=partition.leg_seconds,
        both_ways=False,
        is_full=True,
    )


def parts_of_rounds(
    rounds: Iterable[tuple[tuple[int, int], ...]],
    net_paths: Iterable[int],
    at_once: int,
    *,
    first: int = 0,
) -> Iterator[PlannedRound]:
    """Yield rounds over paths, each in as many turns as it takes.

    ``at_once``: as in :func:`planned_rounds`.
    """
    over = tuple(net_paths)
    parts = (turn for pairs in rounds for turn in enumerate(in_turns(pairs, at_once)))
    for number, (part, pairs) in enumerate(parts, start=first):
        yield PlannedRound(number=number, pairs=pairs, net_paths=over, part=part)


def seconds_over_paths(site: Site, campaign: Campaign) -> tuple[float, ...]:
    """Return what one round takes over each path, by its budgets."""
    paths = range(len(campaign.net_paths))
    return tuple(round_seconds(steps_of(site, campaign, each)) for each in paths)


def seconds_of_round(site: Site, campaign: Campaign) -> float:
    """Return what one round takes over all paths, one after the other."""
    return sum(seconds_over_paths(site, campaign))


def seconds_of_all(site: Site, campaign: Campaign) -> float:
    """Return what all planned rounds take, each over its paths."""
    over = seconds_over_paths(site, campaign)
    return sum(over[at] for each in campaign.rounds for at in each.net_paths)


def pairs_at_once(site: Site, campaign: Campaign, cores: int) -> int:
    """Return how many pairs of a round may measure at the same time; 0: all of them.

    Where nodes share cores (``oversubscribed``) the cores carry what on real nodes the wire does:
    more pairs at once would be held against a rate that this machine does not have.  So a round is
    measured in turns, as LinkTest does in its serial mode.

    ``cores``: of the machine that plays the nodes.
    """
    if not site.partition(campaign.partition).oversubscribed:
        return 0
    paths = range(len(campaign.net_paths))
    fastest = max(bound(physics(site, campaign, each)).low_mb_s for each in paths)
    return max(1, int(cores * CORE_MB_S / fastest))


def conduct(campaign: Campaign, means: Means) -> Outcome:
    """Measure what a campaign lacks and can have now; return what it came to.

    Raises:
        FabricproofError: Slurm is away, the stack cannot be started, or a record is damaged; what
            was measured is kept.
    """
    hindered = [_Hindered() for _ in campaign.net_paths]
    for net_path in range(len(campaign.net_paths)):
        _measure(campaign, means, net_path, hindered[net_path])
    outcome = _judged(campaign, means)
    while (further := next_round(outcome)) is not None:
        names, before = campaign.nodes, outcome.rounds
        listed = " ".join(f"{names[one]}-{names[other]}" for one, other in further.pairs[:8])
        means.say(f"{further.why}: {listed}")
        campaign = campaign.with_round(further.pairs, further.net_paths, is_again=further.is_again)
        save(means.folder, campaign)
        for net_path in further.net_paths:
            _measure(campaign, means, net_path, hindered[net_path])
        outcome = _judged(campaign, means)
        if outcome.rounds == before:
            # Nothing of it can be had now: it is left for --resume, and those after it too.
            break
    notes = dict.fromkeys(note for each in hindered for note in each.notes)
    return replace(outcome, notes=(*notes, *outcome.notes))


def take_over(means: Means) -> None:
    """End the jobs that a program that was killed left of a campaign.

    Raises:
        UnavailableError: Slurm does not answer, or they do not end.
    """
    if ended := end_left(means.folder, means.environment):
        means.say(f"cancelled what an earlier program left: job {', '.join(ended)}")


@dataclass(kw_only=True)
class _Hindered:
    """What over one path cannot be measured in this run, as its launches showed.

    Attributes:
        down: nodes whose rail is not up.
        stuck: pairs that hung, with the number of the round.
        notes: the same in words.
    """

    down: set[str] = field(default_factory=set)
    stuck: set[tuple[int, frozenset[str]]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def learn(self, ended: Ended) -> bool:
        """Take what a launch showed; tell whether it is new."""
        before = len(self.down), len(self.stuck)
        self.down |= set(ended.down)
        self.stuck |= ended.stuck
        self.notes += [f"not up: {node} {rail}" for node, rail in ended.down.items()]
        self.notes += [
            f"hung in round {number}: {' - '.join(sorted(pair))}" for number, pair in ended.stuck
        ]
        return before != (len(self.down), len(self.stuck))


def _judged(campaign: Campaign, means: Means) -> Outcome:
    return judge_campaign(means.site, campaign, means.readings.measured(campaign))


def _measure(campaign: Campaign, means: Means, net_path: int, hindered: _Hindered) -> None:
    """Launch over one path until nothing is left that can be had, or nothing comes of it."""
    vain = 0
    left = left_on(net_path, campaign, means.readings.measured(campaign))
    while vain <= _MOST_VAIN:
        free = once_ended(campaign.nodes, means.standing).free if left else ()
        rounds = _possible(campaign, left, set(free), hindered)
        if not rounds:
            return
        ended = _launch(campaign, means, net_path, rounds)
        before, left = left, left_on(net_path, campaign, means.readings.measured(campaign))
        if ended.reason:
            means.say(f"{campaign.path_name(net_path)}: {ended.reason}")
        came_to_something = _count(left) < _count(before)
        vain = 0 if hindered.learn(ended) or came_to_something else vain + 1


def _count(rounds: Iterable[PlannedRound]) -> int:
    return sum(len(each.pairs) for each in rounds)


def _possible(
    campaign: Campaign, rounds: Iterable[PlannedRound], free: set[str], hindered: _Hindered
) -> tuple[PlannedRound, ...]:
    """Return what of ``rounds`` can be measured with the nodes that are free."""
    nodes = campaign.nodes
    can = [name in free and name not in hindered.down for name in nodes]
    cut = (
        replace(
            each,
            pairs=tuple(
                (one, other)
                for one, other in each.pairs
                if can[one]
                and can[other]
                and (each.number, frozenset((nodes[one], nodes[other]))) not in hindered.stuck
            ),
        )
        for each in rounds
    )
    return tuple(each for each in cut if each.pairs)


def steps_of(site: Site, campaign: Campaign, net_path: int) -> tuple[Step, ...]:
    """Return what every pair is measured by over a path, by the rules of all legs."""
    fabric = physics(site, campaign, net_path)
    stated = site.fabric_spec(campaign.fabric).typical_latency_us
    return plan_steps(
        max_size=campaign.size,
        rate_mb_s=bound(fabric).low_mb_s,
        latency_us=stated or _LATENCY_GUESS * latency_floor_us(fabric, 0).us,
        seconds=campaign.seconds,
        both_ways=campaign.both_ways,
    )


def _launch(
    campaign: Campaign, means: Means, net_path: int, rounds: tuple[PlannedRound, ...]
) -> Ended:
    partition = means.site.partition(campaign.partition)
    used = sorted({node for each in rounds for pair in each.pairs for node in pair})
    at = {node: number for number, node in enumerate(used)}
    plan = KernelPlan(
        nodes=tuple(campaign.nodes[node] for node in used),
        steps=steps_of(means.site, campaign, net_path),
        rounds=tuple(
            (each.number, tuple((at[one], at[other]) for one, other in each.pairs))
            for each in rounds
        ),
        share_cores=partition.oversubscribed,
    )
    numbers = [int(path.suffix[1:]) for path in launches(means.folder)]
    folder = means.folder / f"launch.{max(numbers, default=-1) + 1}"
    folder.mkdir()
    chosen = path_of(means.subject, campaign, net_path)
    write_whole(folder / LAUNCH_FILE, json.dumps({"net_path": net_path}) + "\n")
    name = campaign.path_name(net_path)
    what = f"{len(used)} nodes, {len(rounds)} rounds of some {plan.seconds_per_round:.0f} s"
    if means.inside:
        prepare(folder, means.subject, chosen, plan, named=True)
        means.say(f"{name}: {what}")
        return run_here(folder, means.environment)
    prepare(folder, means.subject, chosen, plan)
    job = submit(folder, means.subject, plan, means.environment)
    means.say(f"{name}: job {job}, {what}")
    link = physics(means.site, campaign, net_path).link
    told = 0

    def tell(record: KernelRecord) -> None:
        nonlocal told
        for each in record.rounds[told:]:
            means.say(f"{name}: {_round_words(campaign, net_path, link, each)}")
        told = len(record.rounds)

    return follow(
        folder,
        job,
        means.environment,
        queue_seconds=60 * partition.queue_minutes,
        on_record=tell,
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


def _round_words(campaign: Campaign, net_path: int, link: Link, ended: RoundRecord) -> str:
    values = [each.bandwidth_mb_s for each in ended.values if each.mode is Mode.UNI]
    pairs = pairs_of(ended)
    proofs = [
        prove_pair(ended, pair, own, campaign.net_paths[net_path], link)
        for pair, own in pairs.items()
    ]
    unproven = [each for each in proofs if each.state is not PathState.PROVEN]
    said = (
        f"path not proven of {len(unproven)}: {unproven[0].reason}" if unproven else "path proven"
    )
    span = f"{np.min(values):.4g} to {np.max(values):.4g} MB/s" if values else "nothing"
    return f"round {ended.number}: {len(pairs)} pairs, {span}, {said}"


def default_size(site: Site, partition: str, asked: str | None) -> int:
    """Return the size of the large message, in bytes: as asked, else the partition's largest."""
    return parse_size(asked or site.partition(partition).max_message_size)
