"""What a comparison came to, as plain records that every report is made of, and as ``--json``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabricproof.core.errors import ExitStatus, FabricproofError
from fabricproof.core.plain import plain
from fabricproof.history.stats.shifts import Change, Shift
from fabricproof.history.store import Key, Run
from fabricproof.history.store.model import MARGINS


class SideError(FabricproofError, ValueError):
    """What was asked for names no side, or sides that cannot stand against each other."""

    exit_status = ExitStatus.USAGE


class NothingComparedError(FabricproofError, ValueError):
    """A side is empty, or the sides have no quantity in common."""

    exit_status = ExitStatus.NOTHING_JUDGED


def typed(key: str, patterns: Sequence[str]) -> str:
    """Return the options that choose by a key, as they are typed."""
    return " ".join(f"--only {shlex.quote(f'{key}={each}')}" for each in patterns)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison.

    Attributes:
        words: as it was asked for: ``firmware=28.39``, ``2026-11-01..2026-11-10``.
        runs: that it holds, oldest first.
        baseline: name of the baseline it is, empty where it is runs.
    """

    words: str
    runs: tuple[Run, ...]
    baseline: str = ""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One quantity on both sides.

    Attributes:
        key: what was compared; ``*`` in a field that was allowed to differ.
        shift: what became of it.
        first: run to value, in the unit of the key, of the runs of the first side.
        note: what a reader must know: numbers set aside, a side without any.
    """

    key: Key
    shift: Shift
    first: Mapping[str, float]
    second: Mapping[str, float]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Quantities that share a rail, a pair, a node or a stack, or all of them.

    Attributes:
        kind: ``rail``, ``pair``, ``node``, ``stack``, ``program`` or ``overall``.
        name: ``rail1``, ``vc1 - vc3``, ``vc2``, ``openmpi5``.
        metric: ``bandwidth``, ``latency`` ...; empty where it is over all of them.
        change: what is said of it.
        shift: of the typical quantity of the group (one row of the same family), None where the
            group has no row of its own.
        counts: how many quantities have which word.
        sentence: for a tired administrator.
        better: 1 where more of the metric is better, -1 where less is.
        band: ``short`` (to 1 KiB), ``medium`` (to 64 KiB) or ``long`` messages, whose scatter is
            unlike; empty where there are no messages.
        also: other groups that hold the very same quantities, ``pair vc1 - vc2``.
    """

    kind: str
    name: str
    metric: str
    change: Change
    shift: Shift | None
    counts: Mapping[Change, int]
    sentence: str
    better: int = 1
    band: str = ""
    also: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """``bandwidth of long messages``; the metric alone where it has no messages."""
        return f"{self.metric}, {self.band} messages" if self.band else self.metric

    @property
    def where(self) -> str:
        """``rail1``, ``pair vc1 - vc3``: a name that says its kind says it once."""
        if self.kind == "overall":
            return "everything together"
        return self.name if self.name.startswith(self.kind) else f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """One inventory field, or build, that differs between the sides.

    Attributes:
        part: ``interface rail1``, ``node``, ``stack openmpi5``.
        fact: ``firmware``.
        first: values on the first side, joined by commas; empty where unknown.
        partly: whether some runs of the two sides have one value in common.
    """

    part: str
    fact: str
    nodes: tuple[str, ...]
    first: str
    second: str
    sentence: str
    partly: bool = False


@dataclass(frozen=True, kw_only=True)
class Unpaired:
    """A quantity that only one side has, or that has no like on the other.

    Attributes:
        side: 1 or 2, the side that has it.
        reason: ``not measured on the other side``, ``build 51af.. against 8ed9..`` ...
        unlike: fields of the key in which its nearest like differs; none where the reason is
            another.
    """

    key: Key
    side: int
    reason: str
    unlike: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that a comparison says.

    Attributes:
        site: name of the site.
        first: the side before.
        second: the side after.
        overall: the last word; with ``reason`` why.
        quantities: every quantity that both sides have, the surest worsening first.
        groups: overall first, then rails, pairs, nodes, stacks.
        changes: what else differs between the sides.
        disturbed: ``first`` or ``second``, the side of which others took more, where that explains
            a change, so that it is UNDECIDED; else empty.
        warnings: what cannot be told apart, what was passed over.
        unpaired: what was not compared, and why.
        alpha: the rate of comparisons without any change in which one word would be wrong.
        margins: metric to the smallest change that matters, as a fraction.
        directionless: how many quantities on both sides have no better or worse.
        suspects: UNDECIDED quantities that look worse and so forbid SAME and BETTER.
        more_runs: how many more runs on each side would decide what is open; None: none, or
            no number of runs would.
        filters: key of ``--only`` to its patterns, where less than all was asked for: ``rail`` to
            ``("rail0",)``.  Every word is of these quantities alone.
        options: what else was asked for, as it is typed: ``("--across", "build")``.
    """

    site: str
    first: Side
    second: Side
    overall: Change
    reason: str
    quantities: tuple[Compared, ...]
    groups: tuple[Group, ...]
    changes: tuple[FieldChange, ...]
    warnings: tuple[str, ...]
    unpaired: tuple[Unpaired, ...]
    alpha: float
    margins: Mapping[str, float] = field(default_factory=dict)
    directionless: int = 0
    suspects: tuple[Compared, ...] = ()
    more_runs: int | None = None
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    disturbed: str = ""

    @property
    def asked_for(self) -> str:
        """``--only rail=rail0 --only size=1MiB``; empty where everything was."""
        return " ".join(typed(name, values) for name, values in self.filters.items())


def grouped(several: Iterable[Unpaired]) -> list[tuple[int, str, tuple[str, ...], int]]:
    """Return (side, reason, fields that are unlike, how many), the most first."""
    counts = Counter((each.side, each.reason, each.unlike) for each in several)
    return [(*group, count) for group, count in counts.most_common()]


def parse_margins(texts: Sequence[str]) -> dict[str, float]:
    """Return the margins with those of ``bandwidth=3%`` or ``latency=0.05`` in place.

    Raises:
        SideError: an unknown metric, or no fraction between 0 and 1.
    """
    margins = dict(MARGINS)
    for text in texts:
        name, _, value = text.partition("=")
        name = name.replace("-", " ").replace("_", " ")
        try:
            number = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            number = -1.0
        if name not in margins or not 0 < number < 1:
            raise SideError(
                "no margin",
                expected="METRIC=PERCENT as latency=5%, above 0% and below 100%, with one of "
                f"{', '.join(margins)}",
                got=repr(text),
            )
        margins[name] = number
    return margins


#: of the form; grows with each change that a reader of it must know
FORMAT = 2


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """Return everything that a comparison says; every number that it rests on is in it."""
    not_compared = [
        {"side": side, "reason": reason, "quantities": count}
        for side, reason, _, count in grouped(comparison.unpaired)
    ]
    suspects = [each.key.label for each in comparison.suspects]
    record = plain(comparison, suspects=suspects, not_compared=not_compared)
    return {"format": FORMAT, **record}
