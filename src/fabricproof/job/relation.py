"""What is to hold between the legs of one job: a ratio, a balance, frames, a library's own choice.

Where no single number says enough, a ratio of two measurements on the same nodes within seconds
does: two rails over one, MPI over the TCP below it, the far socket over the near one.  The planner
writes these into ``plan.json``; :mod:`fabricproof.job.relations` judges them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from fabricproof.tuning import Bar
from fabricproof.verdict.value import Reference


class Bind(StrEnum):
    """Where a rank is to run: on which NUMA node, seen from the slot of its rail."""

    NEAR = "near"
    """On that of the slot."""
    FAR = "far"
    """On any other."""


class Pick(StrEnum):
    """Which of several legs counts."""

    LARGEST = "largest"
    SMALLEST = "smallest"


@dataclass(frozen=True, kw_only=True)
class RatioSide:
    """One side of a ratio.

    Attributes:
        legs: their names.
        quantity: ``bandwidth``, ``latency``, ``random_ring_bandwidth``.
        sizes: message sizes in bytes; None for a number without one.
        pick: which leg counts at each size.
    """

    legs: tuple[str, ...]
    quantity: str
    sizes: tuple[int | None, ...]
    pick: Pick = Pick.LARGEST


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """What some legs measured over what others did: the median over their sizes.

    Attributes:
        reference: in unit ``x``; None if nobody says what it should be.
        most: above this it is impossible; None if there is no such limit.
        scale: times this, for a program that prints a part of what it moves.
        hint: what is usually wrong where it is red.
        held: leg -> where its ranks must have run, else there is no ratio.
        names: leg -> what a person calls it; these are shown, best first.
    """

    over: RatioSide
    under: RatioSide
    reference: Reference | None
    most: float | None = None
    scale: float = 1.0
    hint: str = ""
    held: dict[str, Bind] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Balance:
    """How large messages are shared among rails, and from which size on several rails help.

    Attributes:
        singles: rail -> name of the leg that had it to itself.
        together: name of the leg over all rails.
        large_part: the start of that leg with large messages alone; None if it started once.
        expected_gain: all rails over the best one, by physics.
        weights: rail -> its part of the summed rate, by physics.
        reference: of the balance, in unit ``x``.
        threshold_bytes: the size from which on several rails should help; None if unstated.
        hint: what is usually wrong where it is red.
    """

    singles: dict[str, str]
    together: str
    large_part: int | None
    expected_gain: float
    weights: dict[str, float]
    reference: Reference
    threshold_bytes: int | None
    hint: str
    most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Frames:
    """The largest frame that passes between two nodes: the declared MTU, in bytes."""

    mtu_bytes: int


@dataclass(frozen=True, kw_only=True)
class OwnChoice:
    """A library's own choice of an algorithm against all others, size by size.

    Attributes:
        series: ``own``, or an algorithm's id -> its legs, in turn.
        labels: algorithm's id -> what a table calls it.
        mended_by: algorithm's id -> how a site makes it the choice.
        sizes: message sizes in bytes; None for an operation without messages.
        left_out: a sentence for each algorithm that was not tried.
        bar: how large a loss is one.
    """

    series: dict[str, tuple[str, ...]]
    labels: dict[str, str]
    mended_by: dict[str, str]
    sizes: tuple[int | None, ...]
    left_out: tuple[str, ...]
    bar: Bar


@dataclass(frozen=True, kw_only=True)
class Relation:
    """What is to hold between legs.

    Attributes:
        name: what its row is called, unique among the legs and relations of a job.
        what: what is to hold, and by what it is judged.
        legs: names of the legs it rests on, which run again before it is called red.
        suite, program, rails: for its row, as a leg's.
        owns: names of the legs that are measured for it alone: by themselves they are neither due
            nor judged.
        turns: leg -> the leg that measures, in one short start, what the relation needs of it, and
            runs in turn with the others until the relation is decided; empty if one look decides.
    """

    name: str
    what: Ratio | Balance | Frames | OwnChoice
    legs: tuple[str, ...]
    suite: str
    program: str
    rails: tuple[str, ...] = ()
    owns: tuple[str, ...] = ()
    turns: dict[str, str] = field(default_factory=dict)


def owned_legs(relations: Iterable[Relation]) -> frozenset[str]:
    """Return the names of the legs that are raw material of a relation."""
    return frozenset(name for each in relations for name in (*each.owns, *each.turns.values()))
