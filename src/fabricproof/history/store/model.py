"""The words that history is told in: what makes two numbers comparable, a run, a matrix of both."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from fabricproof.core.units import size_label

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """Everything in which two numbers must agree before they are compared.

    Attributes:
        site: name of the site.
        partition: where the job ran.
        fabric: the network that was measured.
        stack: name of the MPI stack.
        build: the beginning of the digest of its identity; another build is another stack.
        suite: ``osu``, ``osu-mpi4py``, ``imb`` ...
        program: ``osu_bw``.
        tool_version: of the suite as it printed it; empty where it prints none.
        check: name of the check.
        leg: the path and the layout, ``rail0``, ``rail1.hops3``.
        rails: that the leg went over, joined by commas.
        nodes: that took part, sorted, joined by commas; of a pair its two ends.
        settings: what the tool said of its own setting: ``num_pairs=1 window_size=64``.
        quantity: ``bandwidth_4MiB``.
        unit: ``MB/s``, ``us``, ``x``, ``1/s``.
        message_size: in bytes; None for a quantity without one.
        better: 1 where more is better, -1 where less is, 0 where neither (a state, a count).
        named: whether it is one of the quantities that carry a verdict, or a point of a curve.
    """

    site: str
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
    quantity: str
    unit: str
    message_size: int | None = None
    better: int = 0
    named: bool = True

    @property
    def pair(self) -> str:
        """``vc1 - vc3`` for a pair, ``vc1 .. vc4 (4)`` for more, the node for one."""
        nodes = self.nodes.split(",")
        if len(nodes) <= 2:
            return " - ".join(nodes)
        return f"{nodes[0]} .. {nodes[-1]} ({len(nodes)})"

    @property
    def label(self) -> str:
        """One line for a person: program, leg, quantity, stack, pair."""
        return f"{self.stack} {self.program} {self.leg} {self.quantity} {self.pair}"

    @property
    def size(self) -> str:
        """``4MiB``; empty where there is none."""
        return "" if self.message_size is None else size_label(self.message_size)


#: the columns that make a key, in order.
FIELDS: tuple[str, ...] = tuple(each.name for each in fields(Key))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the checks.

    Attributes:
        run_id: its beginning in UTC and six digits, ``20261121T213422Z-1a6c68``.
        start: its beginning, UTC.
        inventory: node to the digest of what it was made of; None where nobody saw it, or where
            it changed within the run.
        builds: stack to the digest of its identity.
        rows: how many quantities it has in the records.
        legs: verdict word -> how many legs have it in the records; a leg that left none is not
            counted, so that this is no verdict of the run.
    """

    run_id: str
    start: datetime.datetime
    inventory: Mapping[str, str | None] = field(default_factory=dict)
    builds: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    legs: Mapping[str, int] = field(default_factory=dict)

    @property
    def night(self) -> str:
        """``2026-11-21 21:34``, for axes and tables."""
        return self.start.strftime("%Y-%m-%d %H:%M")


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Quantities by runs: the number that counted in each run.

    Attributes:
        keys: one for each row.
        runs: one for each column, oldest first.
        values: shape (keys, runs), in the unit of the key; NaN where a run has no usable number:
            not measured, INVALID, MISSING, zero or negative.
        verdicts: shape (keys, runs): the verdict word of each number; empty where there is none.
        set_aside: (row, column, reason) of each number that was measured and is not used.
    """

    keys: tuple[Key, ...]
    runs: tuple[Run, ...]
    values: Values
    verdicts: tuple[tuple[str, ...], ...] = ()
    set_aside: tuple[tuple[int, int, str], ...] = ()
