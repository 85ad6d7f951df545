"""What a campaign is to measure: its nodes, paths and rounds, what they take, and its file."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fabricproof.core.errors import ExitStatus, FabricproofError, InputMissingError, ParseError
from fabricproof.core.units import parse_size
from fabricproof.core.whole_file import write_whole
from fabricproof.pairs.campaign.kernel import (
    FORMAT,
    Mode,
    Step,
    as_pairs,
    plan_steps,
    round_seconds,
)
from fabricproof.pairs.fabric import Leaves, leaves_by_name, leaves_of
from fabricproof.pairs.ladder import FIRST_ROUNDS, Ladder
from fabricproof.pairs.schedule import Order, Schedule
from fabricproof.physics import Fabric, bound, latency_floor_us
from fabricproof.site import PartitionSpec, Site

PLAN_FILE = "campaign.json"

#: a small message is guessed to cost this many times the physical floor, to size the effort
#: (as in the legs of checks)
_LATENCY_GUESS = 20

#: What a core that plays nodes of a virtual cluster carries, in MB/s: two cores of 2.5 GHz played
#: sixteen nodes with rails of 25 Mb/s, 200 Mb/s in all; two pairs over two rails of 200 Mb/s each,
#: four times as much, came to 88.8 % of their rate there.
CORE_MB_S = 12.5

#: numbers of two nodes
NodePair = tuple[int, int]


class CampaignRunsError(FabricproofError):
    """Another program measures this campaign."""

    exit_status = ExitStatus.BUSY


@dataclass(frozen=True, kw_only=True)
class PlannedRound:
    """A round of the campaign.

    Attributes:
        pairs: nobody twice.
        net_paths: numbers of the paths over which it is measured.
        is_adaptive: whether it was added for suspects.
        is_again: whether it is a second look at pairs that were low.
        part: its place in a round that is measured in turns, from 0.
    """

    number: int
    pairs: tuple[NodePair, ...]
    net_paths: tuple[int, ...]
    is_adaptive: bool = False
    is_again: bool = False
    part: int = 0


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What a campaign is to measure.

    Attributes:
        id: the name of its folder; of a check's, the folder itself.
        site: folder of the site.
        leaf_of: name of the leaf of each node; empty if unknown.
        out: nodes of the partition that take no part -> their state in Slurm.
        skipped: nodes that are left out by choice -> why.
        net_paths: interfaces of each path to be measured, one or several.
        size: of the large message, in bytes.
        seconds: budget of one measurement of a pair.
        both_ways: whether both ways at once are measured, too.
        is_full: every pair; else the ladder.
        at_once: pairs of a round that measure at the same time at most; 0: all of it.
    """

    id: str
    site: str
    site_name: str
    partition: str
    fabric: str
    stack: str
    nodes: tuple[str, ...] = ()
    leaf_of: tuple[str, ...] = ()
    out: Mapping[str, str]
    skipped: Mapping[str, str]
    net_paths: tuple[tuple[str, ...], ...] = ()
    rounds: tuple[PlannedRound, ...] = ()
    size: int
    seconds: float
    both_ways: bool = False
    is_full: bool = True
    seed: int = 0
    at_once: int = 0
    format: int = FORMAT
    __pydantic_config__ = ConfigDict(extra="forbid")

    @property
    def resume(self) -> str:
        """The command that measures what is left."""
        return f"fabricproof pairs run --resume {shlex.quote(self.id)}"

    @property
    def places(self) -> Leaves | None:
        """Where the nodes hang; None if unknown."""
        if not self.leaf_of:
            return None
        return leaves_by_name(self.nodes, dict(zip(self.nodes, self.leaf_of, strict=True)))

    @property
    def leaves(self) -> Leaves:
        """Where the nodes hang; all on one leaf if unknown."""
        return self.places or leaves_of(len(self.nodes), len(self.nodes))

    @cached_property
    def modes(self) -> Counter[Mode]:
        """How many values each pair has of each mode."""
        return Counter({Mode.PINGPONG: 1, Mode.UNI: 2} | ({Mode.BI: 1} if self.both_ways else {}))

    @property
    def num_adaptive(self) -> int:
        """Rounds that were added for suspects."""
        return sum(each.is_adaptive and each.part == 0 for each in self.rounds)

    @property
    def again(self) -> frozenset[int]:
        """Numbers of the rounds that are second looks."""
        return frozenset(each.number for each in self.rounds if each.is_again)

    def path_name(self, net_path: int) -> str:
        """Return ``rail0+rail1``."""
        return "+".join(self.net_paths[net_path])

    def names(self, pair: NodePair) -> frozenset[str]:
        """Return the names of two nodes."""
        return frozenset((self.nodes[pair[0]], self.nodes[pair[1]]))

    def with_round(
        self, pairs: tuple[NodePair, ...], net_paths: tuple[int, ...], *, is_again: bool = False
    ) -> Campaign:
        """Return the campaign with a further round: for suspects, or as a second look."""
        first = max((each.number for each in self.rounds), default=-1) + 1
        added = parts_of_rounds([pairs], net_paths, self.at_once, first=first)
        more = (replace(each, is_adaptive=not is_again, is_again=is_again) for each in added)
        return replace(self, rounds=(*self.rounds, *more))


def parts_of_rounds(
    rounds: Iterable[tuple[NodePair, ...]],
    net_paths: Iterable[int],
    at_once: int,
    *,
    first: int = 0,
) -> Iterator[PlannedRound]:
    """Yield rounds over paths, each in as many turns as it takes.

    ``at_once``: pairs that measure at the same time at most (:func:`pairs_at_once`); 0: all.
    """
    over = tuple(net_paths)
    parts = (
        (number, pairs[begin : begin + (at_once or len(pairs))])
        for pairs in rounds
        for number, begin in enumerate(range(0, len(pairs), at_once or max(len(pairs), 1)))
    )
    for number, (part, pairs) in enumerate(parts, start=first):
        yield PlannedRound(number=number, pairs=pairs, net_paths=over, part=part)


def planned_rounds(
    campaign: Campaign, *, order: Order = Order.LEAFWISE, first_rounds: int = FIRST_ROUNDS
) -> tuple[PlannedRound, ...]:
    """Return the rounds that a campaign begins with: every pair, or the first of the ladder.

    Whoever has a bye in all of them gets a partner in one round more.
    """
    leaves = campaign.leaves
    if campaign.is_full:
        rounds = Schedule(order=order, leaves=leaves, seed=campaign.seed).rounds()
    else:
        rounds = Ladder(leaves=leaves, seed=campaign.seed, first_rounds=first_rounds).first()
    planned = as_pairs(each.tolist() for each in rounds)
    met = sorted({node for pairs in planned for pair in pairs for node in pair})
    alone = sorted(set(range(leaves.num_nodes)) - set(met))
    free = [*alone, *met][: 2 * ((len(alone) + 1) // 2)]
    byes = tuple(zip(free[::2], free[1::2], strict=False))
    every = (*planned, byes) if byes else planned
    return tuple(parts_of_rounds(every, range(len(campaign.net_paths)), campaign.at_once))


def rounds_for(campaign: Campaign, count: int, order: Order) -> tuple[PlannedRound, ...]:
    """Return ``count`` rounds over every path: each pair once, then all of them again and again."""
    rounds = (
        pairs
        for again in itertools.count()
        for each in Schedule(
            order=order, leaves=campaign.leaves, seed=campaign.seed + again
        ).rounds()
        for pairs in as_pairs([each.tolist()])
    )
    parts = parts_of_rounds(rounds, range(len(campaign.net_paths)), campaign.at_once)
    return tuple(itertools.islice(parts, count))


def with_rounds(
    site: Site,
    campaign: Campaign,
    *,
    order: Order = Order.LEAFWISE,
    first_rounds: int = FIRST_ROUNDS,
    minutes: float = 0,
) -> Campaign:
    """Return the campaign with its rounds: as planned, then every pair again for so long in all."""
    campaign = replace(campaign, at_once=pairs_at_once(site, campaign, os.cpu_count() or 1))
    rounds = planned_rounds(campaign, order=order, first_rounds=first_rounds)
    left = int(60 * minutes / sum(seconds_over_paths(site, campaign))) - len(rounds)
    more = rounds_for(campaign, max(left, 0), order)
    added = (replace(each, number=len(rounds) + each.number) for each in more)
    return replace(campaign, rounds=(*rounds, *added))


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
        out={},
        skipped={},
        size=parse_size(partition.max_message_size),
        seconds=partition.leg_seconds,
    )


def physics(site: Site, campaign: Campaign, net_path: int) -> Fabric:
    """Return the physics of a path of the campaign."""
    connections = site.stack(campaign.stack).connections
    return site.fabric(campaign.fabric, campaign.net_paths[net_path], num_flows=connections)


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


def seconds_over_paths(site: Site, campaign: Campaign) -> tuple[float, ...]:
    """Return what one round takes over each path, by its budgets."""
    paths = range(len(campaign.net_paths))
    return tuple(round_seconds(steps_of(site, campaign, each)) for each in paths)


def seconds_of_all(site: Site, campaign: Campaign) -> float:
    """Return what all planned rounds take, each over its paths."""
    over = seconds_over_paths(site, campaign)
    return sum(over[at] for each in campaign.rounds for at in each.net_paths)


def pairs_at_once(site: Site, campaign: Campaign, cores: int) -> int:
    """Return how many pairs of a round may measure at the same time; 0: all of them.

    Where nodes share cores (``oversubscribed``) the cores carry what on real nodes the wire does:
    more pairs at once would be held against a rate that this machine does not have.

    ``cores``: of the machine that plays the nodes.
    """
    if not site.partition(campaign.partition).oversubscribed:
        return 0
    paths = range(len(campaign.net_paths))
    fastest = max(bound(physics(site, campaign, each)).low_mb_s for each in paths)
    return max(1, int(cores * CORE_MB_S / fastest))


def save(folder: Path, campaign: Campaign) -> None:
    """Write the plan of a campaign, whole."""
    write_whole(folder / PLAN_FILE, json.dumps(asdict(campaign), indent=1) + "\n")


_PLAN = TypeAdapter(Campaign)


def load(folder: Path) -> Campaign:
    """Return the campaign in ``folder``."""
    path = folder / PLAN_FILE
    try:
        found = _PLAN.validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        raise InputMissingError(
            f"no campaign: {error.strerror}", source=str(path), next_step=f"ls {folder.parent}"
        ) from None
    except ValidationError:
        found = None
    if found is None or found.format != FORMAT:
        raise ParseError(
            "damaged plan of a campaign", source=str(path), expected=f"one of format {FORMAT}"
        )
    return found


@contextlib.contextmanager
def only_one(folder: Path, what: str) -> Iterator[None]:
    """Keep a second program that does the same away from the campaign in ``folder``.

    A file system without locks (Lustre without "flock") keeps nobody away.
    """
    with (folder / f"{what}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CampaignRunsError(
                "this campaign is going on already",
                source=str(folder),
                next_step="wait for it, or end the other one",
            ) from None
        except OSError:
            pass
        yield
