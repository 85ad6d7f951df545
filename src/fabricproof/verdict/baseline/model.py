"""A baseline as plain records: the numbers of known-good runs, and what they hold for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from fabricproof.core.hostlist import fold

#: a fact of an inventory is a word or a whole number
Value = str | int
Facts = Mapping[str, Mapping[str, Value]]


#: a change by this factor that a bound does not see makes the row worthless: a choice
BLIND_FACTOR = 2.0


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """A number that was measured, is kept, and that no bound was learnt from.

    Attributes:
        run_id: where it was measured.
        value: in the unit of its row.
        reason: why it was set aside.
    """

    run_id: str
    value: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class Limit:
    """As much of a row as a judge needs.

    Attributes:
        quantity: ``bandwidth_1MiB``.
        unit: ``MB/s``, ``us`` ...
        better: 1 where more is better, -1 where less is.
        median: in ``unit``.
        low: lower bound.
        high: upper bound.
        runs: how many it was learnt from.
    """

    quantity: str
    unit: str
    better: int
    median: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True, kw_only=True)
class BaselineRow:
    """One quantity of one group.

    Attributes:
        quantity: ``bandwidth_1MiB``.
        unit: ``MB/s``, ``us``, ``x`` ...
        message_size: in bytes; None for a quantity without one.
        better: 1 where more is better, -1 where less is.
        named: whether it is one of the quantities that carry a verdict, or a point of a curve.
        median: of the samples that are no outliers, in ``unit``.
        spread: relative standard deviation from run to run, with what like quantities lend it.
        low: lower bound in ``unit``.
        high: upper bound in ``unit``.
        samples: run to value, outliers left out.
    """

    quantity: str
    unit: str
    message_size: int | None
    better: int
    named: bool
    median: float
    spread: float
    low: float
    high: float
    samples: Mapping[str, float]
    outliers: tuple[Outlier, ...] = ()

    @property
    def limit(self) -> Limit:
        """What a judge needs of it."""
        return Limit(
            quantity=self.quantity,
            unit=self.unit,
            better=self.better,
            median=self.median,
            low=self.low,
            high=self.high,
            runs=len(self.samples),
        )

    @property
    def detects(self) -> float:
        """The smallest loss that it is sure to see, as a fraction of the median.

        Of a latency: the smallest rise.
        """
        bound = self.low if self.better > 0 else self.high
        return abs(bound / self.median - 1)

    @property
    def blind(self) -> bool:
        """Whether half a bandwidth, or twice a latency, lies within its bounds."""
        if self.better > 0:
            return self.low < self.median / BLIND_FACTOR
        return self.high > self.median * BLIND_FACTOR


@dataclass(frozen=True, kw_only=True)
class LegPlace:
    """Everything but the quantity in which two numbers must agree: a leg of a check of a stack.

    Attributes:
        fabric: the network that was measured.
        stack: name of the MPI stack.
        build: the beginning of the digest of its identity; another build is another stack.
        suite: ``osu``, ``osu-mpi4py``, ``imb`` ...
        program: ``osu_bw``.
        tool_version: of the suite as it printed it; empty where it prints none.
        leg: the path and the layout, ``rail0``, ``rail1.hops3``.
        rails: that the leg went over, joined by commas.
        nodes: that took part, sorted, joined by commas; of a pair its two ends.
        settings: what the tool said of its own setting: ``num_pairs=1 window_size=64``.
    """

    partition: str
    fabric: str
    stack: str
    build: str
    suite: str
    program: str
    tool_version: str
    check: str
    leg: str
    rails: str
    nodes: str
    settings: str

    @property
    def pair(self) -> str:
        """``vc1 - vc3`` for a pair, ``vc[1-4]`` for more, the node for one."""
        nodes = self.nodes.split(",")
        return " - ".join(nodes) if len(nodes) <= 2 else fold(nodes)

    @property
    def label(self) -> str:
        """``openmpi4 osu_bw rail0 vc1 - vc2``."""
        return f"{self.stack} {self.program} {self.leg} {self.pair}"


#: the names of a place's fields, in order
PLACE: tuple[str, ...] = tuple(each.name for each in fields(LegPlace))


@dataclass(frozen=True, kw_only=True)
class BaselineLeg:
    """The quantities of one place."""

    place: LegPlace
    rows: tuple[BaselineRow, ...]


@dataclass(frozen=True, kw_only=True)
class BaselineNode:
    """What a node was made of in the runs that the baseline was learnt from.

    Attributes:
        digests: of its inventories in those runs; all say the same of what matters.
        facts: the facts that matter: see :mod:`fabricproof.verdict.baseline.apply`.
    """

    digests: tuple[str, ...]
    facts: Facts

    def told(self, fact: str) -> str:
        """Return the values of a fact over all parts, joined; empty where nobody knows."""
        found = [str(each[fact]) for each in self.facts.values() if fact in each]
        return ", ".join(dict.fromkeys(found))


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Numbers of known-good runs, with everything they rest on.

    Attributes:
        name: ``spring-2026``.
        frozen: when it was made, UTC, ``2026-11-21T21:54:14Z``.
        runs: run to its beginning (UTC) of every run that gave a number.
        builds: stack to the digest of its identity, and what that says in words.
        nodes: name to what it was.
        groups: sorted by place.
        settings: the words of a tool's own setting that make two numbers unlike, as they were
            when this was frozen.
        set_aside: what was not learnt from and why, one sentence each.
        not_judged: legs that were measured in these runs and have no quantity in it, with the
            reason; of a file that is older than this field, empty.
        false_alarms: share of runs without any change in which a number is out of its bounds.
        floors: unit to the tightest bound, as a fraction of the median.
    """

    name: str
    site: str
    frozen: str
    command: str
    version: str
    runs: Mapping[str, str]
    builds: Mapping[str, str]
    nodes: Mapping[str, BaselineNode]
    groups: tuple[BaselineLeg, ...]
    settings: tuple[str, ...]
    set_aside: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    false_alarms: float = 0.01
    floors: Mapping[str, float] = field(default_factory=dict)

    @property
    def date(self) -> str:
        """The day it was frozen."""
        return self.frozen[:10]

    @property
    def words(self) -> str:
        """``baseline spring-2026 of 2026-03-21``."""
        return f"baseline {self.name} of {self.date}"

    def rows(self) -> Iterator[tuple[LegPlace, BaselineRow]]:
        """Yield every quantity with its place."""
        for group in self.groups:
            for row in group.rows:
                yield group.place, row
