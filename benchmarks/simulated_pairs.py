"""Campaigns over a machine that does not exist: faults drawn by a seed, and whether blame is right.

Values have 3 % of noise, one in a hundred is low by chance, and the judge is told nothing but the
values and where the nodes hang.  Each rail is a network of its own with its own leaves, which have
uplinks enough: no flow waits for another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fabricproof.core.errors import ConfigError
from fabricproof.pairs.blame.judge import Judged, judge_matrix
from fabricproof.pairs.blame.say import DIRECTIONS, blame_of, kind_of, place
from fabricproof.pairs.blame.suspects import ALL, RECEIVE, TRANSMIT, Suspect, SuspectKind
from fabricproof.pairs.fabric import Leaves, leaves_of
from fabricproof.pairs.ladder import FIRST_ROUNDS, MOST_AGAIN, Ladder
from fabricproof.pairs.matrix import Kind, Matrix
from fabricproof.pairs.schedule import Indices, Order, Schedule

#: what a healthy pair has, in MB/s: one rail of HDR
_HEALTHY_MB_S = 24_000.0

#: what a rail at fault reaches of that, least and most
_STRENGTH = (0.2, 0.75)

#: kinds of fault and how often each is drawn
_KINDS = (
    (SuspectKind.NODE, 0.3),
    (SuspectKind.RAIL, 0.4),
    (SuspectKind.LEAF, 0.1),
    (SuspectKind.UPLINK, 0.2),
)

#: leaves with a fault of their own, of all
_MOST_LEAVES = 0.125


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A machine and its campaigns.

    Attributes:
        num_nodes: nodes, 4 or more.
        per_leaf: nodes on each leaf.
        num_rails: rails, 1 or more.
        num_faults: faults of each campaign, 0 for a clean one.
        noise: standard deviation of a value, as a part of it.
        chance: part of the values that is low without a fault.
        is_full: all pairs, and not the ladder.
        strength: what one at fault reaches of a healthy one, least and most.
        kinds: of fault, of which alone is drawn; empty: all, as often as they are.
    """

    num_nodes: int
    per_leaf: int
    num_rails: int = 2
    num_faults: int = 0
    noise: float = 0.03
    chance: float = 0.01
    is_full: bool = False
    strength: tuple[float, float] = _STRENGTH
    kinds: tuple[SuspectKind, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a machine that cannot be."""
        if self.num_nodes < 4 or self.num_rails < 1 or self.per_leaf < 1 or self.num_faults < 0:
            raise ConfigError(
                "impossible campaign",
                expected="4 nodes or more, a rail and a node on a leaf or more",
                got=f"{self.num_nodes} nodes, {self.per_leaf} a leaf, {self.num_rails} rails, "
                f"{self.num_faults} faults",
            )


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What one campaign came to.

    Attributes:
        faults: names of what was at fault, as blame would name them.
        blamed: names of whom was blamed.
        true: blames of a place that is at fault.
        found: faults whose place is blamed.
        located: found faults of which kind, rail and direction are right, too.
    """

    seed: int
    faults: tuple[str, ...]
    blamed: tuple[str, ...]
    num_rounds: int
    true: int
    found: int
    located: int
    verdict: str


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something at fault, and what it lets its rows have."""

    suspect: Suspect
    factor: float


def draw_faults(setting: Setting, leaves: Leaves, random: np.random.Generator) -> tuple[Fault, ...]:
    """Return faults none of which hides another: no node below a leaf or at an uplink at fault."""
    drawn = [(kind, weight) for kind, weight in _KINDS if kind in (setting.kinds or (kind,))]
    kinds = [kind for kind, _ in drawn]
    weights = [weight / sum(weight for _, weight in drawn) for _, weight in drawn]
    room = max(int(leaves.num_leaves * _MOST_LEAVES), 1) if leaves.num_leaves > 2 else 0
    taken_leaves: set[int] = set()
    taken_nodes: set[int] = set()
    faults: list[Fault] = []
    for _ in range(1000 * setting.num_faults):
        if len(faults) == setting.num_faults:
            break
        kind = kinds[int(random.choice(len(kinds), p=weights))]
        suspect = _drawn(kind, setting, leaves, random)
        of_leaf = suspect.kind is not SuspectKind.NODE
        leaf = suspect.number if of_leaf else int(leaves.leaf_of[suspect.number])
        if of_leaf and (len(taken_leaves) >= room or _has_node(leaf, leaves, taken_nodes)):
            continue
        if leaf in taken_leaves or (not of_leaf and suspect.number in taken_nodes):
            continue
        (taken_leaves if of_leaf else taken_nodes).add(suspect.number)
        factor = float(random.uniform(*setting.strength))
        faults.append(Fault(suspect=suspect, factor=factor))
    return tuple(faults)


def _has_node(leaf: int, leaves: Leaves, nodes: set[int]) -> bool:
    return any(leaves.leaf_of[node] == leaf for node in nodes)


def _drawn(
    kind: SuspectKind, setting: Setting, leaves: Leaves, random: np.random.Generator
) -> Suspect:
    rail = int(random.integers(setting.num_rails))
    side = int(random.choice([ALL, TRANSMIT, RECEIVE]))
    if kind is SuspectKind.LEAF:
        number = int(random.integers(leaves.num_leaves))
        return Suspect(kind=kind, number=number, rail=rail)
    if kind is SuspectKind.UPLINK:
        return Suspect(
            kind=SuspectKind.LEAF,
            number=int(random.integers(leaves.num_leaves)),
            rail=rail,
            side=int(random.choice([TRANSMIT, RECEIVE])),
            across=True,
        )
    number = int(random.integers(setting.num_nodes))
    if kind is SuspectKind.NODE or setting.num_rails == 1:
        return Suspect(kind=SuspectKind.NODE, number=number, side=side)
    return Suspect(kind=SuspectKind.NODE, number=number, rail=rail, side=side)


class Machine:
    """A machine with faults that measures pairs."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting = setting
        self.leaves = leaves_of(setting.num_nodes, setting.per_leaf)
        self.random = np.random.default_rng([seed, 0])
        self.faults = draw_faults(setting, self.leaves, self.random)
        self.names = tuple(f"n{number}" for number in range(setting.num_nodes))
        self.rails = tuple(f"rail{number}" for number in range(setting.num_rails))

    def matrix(self, rounds: Sequence[Indices], first: int = 0) -> Matrix:
        """Measure ``rounds``, both directions of each pair over every rail at once."""
        rails = self.setting.num_rails
        parts = [np.concatenate([pairs, pairs[:, ::-1]]) for pairs in rounds]
        flows = np.concatenate(parts) if parts else np.zeros((0, 2), dtype=np.int64)
        numbers = np.repeat(np.arange(first, first + len(parts)), [len(part) for part in parts])
        count = len(flows) * rails
        matrix = Matrix(
            nodes=self.names,
            rails=self.rails,
            kind=Kind(quantity="bandwidth", unit="MB/s"),
            source=np.tile(flows[:, 0], rails).astype(np.int32),
            destination=np.tile(flows[:, 1], rails).astype(np.int32),
            both_ways=np.zeros(count, dtype=bool),
            rail=np.repeat(np.arange(rails), len(flows)).astype(np.int32),
            round=np.tile(numbers, rails).astype(np.int32),
            value=np.ones(count),
            origin="simulated",
        )
        return self._with_values(matrix)

    def _with_values(self, matrix: Matrix) -> Matrix:
        setting, random, count = self.setting, self.random, len(matrix)
        factor = np.ones(count)
        for fault in self.faults:
            rows = fault.suspect.rows(matrix, self.leaves)
            factor[rows] = np.minimum(factor[rows], fault.factor)
        by_chance = random.random(count) < setting.chance
        factor[by_chance] *= random.uniform(0.3, 0.8, int(by_chance.sum()))
        noise = np.maximum(1 + setting.noise * random.normal(size=count), 0.1)
        return replace(matrix, value=_HEALTHY_MB_S * factor * noise)


def joined(first: Matrix, second: Matrix) -> Matrix:
    """Return the rows of two matrices of the same nodes and rails."""
    columns = ("source", "destination", "both_ways", "rail", "round", "value")
    both: dict[str, npt.NDArray[np.generic]] = {
        name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in columns
    }
    return replace(first, **both)  # type: ignore[arg-type]


def climb(machine: Machine, seed: int) -> tuple[Judged, int]:
    """Run the ladder over a machine; return what it came to, and the rounds that it took."""
    ladder = Ladder(leaves=machine.leaves, seed=seed)
    matrix = machine.matrix(list(ladder.first()))
    judged = judge_matrix(matrix, leaves=machine.leaves)
    num_rounds = FIRST_ROUNDS
    while len(pairs := ladder.further(judged, num_rounds - FIRST_ROUNDS)):
        matrix = joined(matrix, machine.matrix([pairs], first=num_rounds))
        num_rounds += 1
        judged = judge_matrix(matrix, leaves=machine.leaves)
    return judged, num_rounds


def measure_every_pair(machine: Machine) -> tuple[Judged, int]:
    """Run a full matrix and second looks at low pairs; return what it came to, and the rounds."""
    schedule = Schedule(order=Order.LEAFWISE, leaves=machine.leaves)
    matrix = machine.matrix(list(schedule.rounds()))
    judged = judge_matrix(matrix, leaves=machine.leaves)
    ladder, seen = Ladder(leaves=machine.leaves), set[tuple[int, int]]()
    num_rounds = schedule.num_rounds
    for _ in range(MOST_AGAIN):
        pairs = [pair for pair in _low_once(judged, ladder) if pair not in seen]
        if not pairs:
            break
        seen.update(pairs)
        matrix = joined(matrix, machine.matrix([np.array(pairs)], first=num_rounds))
        judged = judge_matrix(matrix, leaves=machine.leaves)
        num_rounds += 1
    return judged, num_rounds


def _low_once(judged: Judged, ladder: Ladder) -> Iterator[tuple[int, int]]:
    """Yield pairs that are low and of which no end is suspect, no node twice."""
    used = ladder.suspects(judged)
    low = np.flatnonzero(judged.low & ~judged.contended & (judged.explanation.by == -1))
    for row in low[np.argsort(judged.shortfall[low], kind="stable")].tolist():
        ends = sorted((int(judged.matrix.source[row]), int(judged.matrix.destination[row])))
        if not used & set(ends):
            used |= set(ends)
            yield ends[0], ends[1]


def run_campaign(setting: Setting, seed: int) -> Campaign:
    """Simulate one campaign and say how right the blame is."""
    machine = Machine(setting, seed)
    if setting.is_full:
        judged, num_rounds = measure_every_pair(machine)
    else:
        judged, num_rounds = climb(machine, seed)
    return _scored(machine, judged, seed, num_rounds)


def _scored(machine: Machine, judged: Judged, seed: int, num_rounds: int) -> Campaign:
    blame = blame_of(judged)
    truth = {}
    for fault in machine.faults:
        suspect = fault.suspect
        name = place(judged, suspect)
        spot = machine.names[suspect.number] if suspect.kind is SuspectKind.NODE else name
        exact = (kind_of(judged, suspect).value, name, DIRECTIONS[suspect.side])
        truth[spot] = exact
    spots = [each.where.node or each.name for each in blame]
    exact_blames = {(each.fact, each.name, each.where.direction) for each in blame}
    return Campaign(
        seed=seed,
        faults=tuple(" ".join(exact) for exact in truth.values()),
        blamed=tuple(f"{each.fact} {each.name} {each.where.direction}" for each in blame),
        num_rounds=num_rounds,
        true=sum(spot in truth for spot in spots),
        found=sum(spot in set(spots) for spot in truth),
        located=sum(exact in exact_blames for exact in truth.values()),
        verdict=judged.verdict.value,
    )


@dataclass(frozen=True, kw_only=True)
class Score:
    """How right the blame of several campaigns is.

    Attributes:
        precision: part of the blames that name a place at fault; None without any.
        recall: part of the faults whose place is blamed; None without any.
        localisation: part of those with kind, rail and direction right; None without any.
        clean_blamed: campaigns without a fault in which anybody was blamed.
    """

    campaigns: int
    faults: int
    blames: int
    precision: float | None
    recall: float | None
    localisation: float | None
    clean_blamed: int
    most_rounds: int


def score(campaigns: Sequence[Campaign]) -> Score:
    """Return how right the blame of ``campaigns`` is."""
    faults = sum(len(each.faults) for each in campaigns)
    blames = sum(len(each.blamed) for each in campaigns)
    true, found, located = (
        sum(getattr(each, name) for each in campaigns) for name in ("true", "found", "located")
    )
    return Score(
        campaigns=len(campaigns),
        faults=faults,
        blames=blames,
        precision=true / blames if blames else None,
        recall=found / faults if faults else None,
        localisation=located / found if found else None,
        clean_blamed=sum(bool(each.blamed) for each in campaigns if not each.faults),
        most_rounds=max((each.num_rounds for each in campaigns), default=0),
    )
