"""What a comparison came to, as plain records that every report is made of."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabricproof.core.errors import ExitStatus, FabricproofError
from fabricproof.core.plain import plain
from fabricproof.history.stats.shifts import Change, Shift
from fabricproof.history.store import Key, Run
from fabricproof.history.store.model import MARGINS, metric_of


class SideError(FabricproofError, ValueError):
    """What was asked for names no side, or sides that cannot stand against each other."""

    exit_status = ExitStatus.USAGE


class NothingComparedError(FabricproofError, ValueError):
    """A side is empty, or the sides have no quantity in common."""

    exit_status = ExitStatus.NOTHING_JUDGED


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison.

    Attributes:
        words: as it was asked for: ``firmware=28.39``, ``2026-11-01..2026-11-10``.
        runs: that it holds, oldest first.
        baseline: name of the baseline whose runs they are, empty if of none.
    """

    words: str
    runs: tuple[Run, ...]
    baseline: str = ""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One quantity on both sides.

    Attributes:
        key: what was compared; ``*`` in a field that was allowed to differ.
        first: run to value, in the unit of the key, of the runs of the first side.
        note: what a reader must know: numbers set aside, what others took, scatter.
    """

    key: Key
    shift: Shift
    first: Mapping[str, float]
    second: Mapping[str, float]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Quantities of one metric that share a rail, a pair, a node or a stack, or all of them.

    Attributes:
        kind: ``overall``, ``rail``, ``pair``, ``node``, ``stack`` or ``program``.
        name: ``rail1``, ``vc1 - vc3``, ``vc2``, ``openmpi5``.
        shift: of the typical quantity of the group, None if nothing is left to compare.
        counts: how many quantities have which word.
        sentence: what counts beside the number.
        better: 1 if more of the metric is better, -1 if less is.
        band: ``short``, ``medium`` or ``long`` messages; empty without messages.
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
        """``bandwidth, long messages``; the metric alone if it has no messages."""
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
        first: values on the first side, joined by commas; empty if unknown.
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
class NotCompared:
    """Quantities that one side alone has, for one reason.

    Attributes:
        side: 1 or 2, the side that has them.
        reason: ``not measured on the other side``, ``build 51af.. against 8ed9..`` ...
        unlike: fields of the key in which the nearest quantity of the other side differs.
    """

    side: int
    reason: str
    unlike: tuple[str, ...]
    quantities: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that a comparison says.

    Attributes:
        first: the side before.
        second: the side after.
        overall: the last word; with ``reason`` why.
        quantities: every quantity that both sides have, the surest worsening first.
        groups: overall first, then rails, pairs, nodes, stacks, programs.
        changes: what else differs between the sides.
        warnings: what cannot be told apart, what was passed over.
        not_compared: quantities of one side only.
        suspects: UNDECIDED quantities that look worse and so forbid SAME and BETTER.
        slight: what is surely worse by less than its margin, the largest first.
        more_runs: how many more runs on each side would decide what is open; None if nothing is, or
            no number of runs would.
        filters: key of ``--only`` to its patterns: every word is of these quantities alone.
        options: what else was asked for, as it is typed: ``("--across", "build")``.
        disturbed: ``first`` or ``second``, the side of which others took more, if that explains
            a change, so that it is UNDECIDED; else empty.
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
    not_compared: tuple[NotCompared, ...]
    alpha: float
    margins: Mapping[str, float]
    suspects: tuple[Compared, ...] = ()
    slight: tuple[str, ...] = ()
    more_runs: int | None = None
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    disturbed: str = ""

    @property
    def asked_for(self) -> str:
        """``--only rail=rail0 --only size=1MiB``; empty if everything was."""
        return typed(self.filters)


def typed(only: Mapping[str, Sequence[str]]) -> str:
    """Return the options that choose quantities, as they are typed."""
    words = (f"{key}={each}" for key, patterns in only.items() for each in patterns)
    return " ".join(f"--only {shlex.quote(each)}" for each in words)


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
FORMAT = 3


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """Return everything that a comparison says; every number that it rests on is in it."""
    suspects = [each.key.label for each in comparison.suspects]
    return {"format": FORMAT, **plain(comparison, suspects=suspects)}


_COLUMNS = (
    "stack", "build", "program", "check", "leg", "rails", "nodes", "quantity", "unit",
    "message_size", "better",
)  # fmt: skip
_NUMBERS = (
    "num_first", "num_second", "median_first", "median_second", "ratio", "low", "high", "p",
    "detectable",
)  # fmt: skip


def comparison_csv(comparison: Comparison) -> str:
    """Return one line for each quantity: what it is, its word, its numbers."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow((*_COLUMNS, "metric", "change", *_NUMBERS))
    for each in comparison.quantities:
        numbers = (getattr(each.shift, name) for name in _NUMBERS)
        place = (getattr(each.key, name) for name in _COLUMNS)
        table.writerow((*place, metric_of(each.key), each.shift.change.value, *numbers))
    return text.getvalue()
