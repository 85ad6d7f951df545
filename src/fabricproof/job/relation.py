"""What is to hold between the legs of one job: a ratio, a balance, frames, a library's own choice.

If no single number says enough, a ratio of two measurements on the same nodes within seconds does:
two rails over one, MPI over the TCP below it, the far socket over the near one.  The planner writes
these into ``plan.json``; :mod:`fabricproof.job.relations` judges them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from fabricproof.tuning import Bar
from fabricproof.verdict.value import Reference


class Bind(StrEnum):
    """On which NUMA node a rank is to run: on that of its rail's slot, or on any other."""

    NEAR = "near"
    FAR = "far"


class Pick(StrEnum):
    """Which of several legs counts."""

    LARGEST = "largest"
    SMALLEST = "smallest"


@dataclass(frozen=True, kw_only=True)
class RatioSide:
    """One side of a ratio: a quantity of some legs, of which ``pick`` counts at each size."""

    legs: tuple[str, ...]
    quantity: str  # ``bandwidth``, ``latency``, ``random_ring_bandwidth``
    sizes: tuple[int | None, ...]  # in bytes; None for a number without one
    pick: Pick = Pick.LARGEST


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """What some legs measured over what others did: the median over their sizes."""

    over: RatioSide
    under: RatioSide
    reference: Reference | None  # in unit ``x``; None if nobody says what it should be
    most: float | None = None  # above this it is impossible; None if there is no such limit
    scale: float = 1.0  # times this, for a program that prints a part of what it moves
    hint: str = ""  # what is usually wrong if it is red
    held: dict[str, Bind] = field(default_factory=dict)  # leg -> where its ranks must have run
    names: dict[str, str] = field(default_factory=dict)  # leg -> its word in the list, best first


@dataclass(frozen=True, kw_only=True)
class Balance:
    """How large messages are shared among rails, and from which size on several rails help."""

    singles: dict[str, str]  # rail -> the leg that had it to itself
    together: str  # the leg over all rails
    large_part: int | None  # its start with large messages alone; None if it started once
    expected_gain: float  # all rails over the best one, by physics
    weights: dict[str, float]  # rail -> its part of the summed rate, by physics
    reference: Reference  # of the balance, in unit ``x``
    threshold_bytes: int | None  # from here on several rails should help; None if unstated
    hint: str
    most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Frames:
    """The largest frame that passes between two nodes: the declared MTU, in bytes."""

    mtu_bytes: int


@dataclass(frozen=True, kw_only=True)
class OwnChoice:
    """A library's own choice of an algorithm against all others, size by size."""

    series: dict[str, tuple[str, ...]]  # ``own``, or an algorithm's id -> its legs, in turn
    labels: dict[str, str]  # algorithm's id -> what a table calls it
    mended_by: dict[str, str]  # algorithm's id -> how a site makes it the choice
    sizes: tuple[int | None, ...]  # in bytes; None for an operation without messages
    left_out: tuple[str, ...]  # a sentence for each algorithm that was not tried
    bar: Bar  # how large a loss is one


@dataclass(frozen=True, kw_only=True)
class Relation:
    """What is to hold between legs; suite, program and rails are those of its row."""

    name: str  # of its row, unique among the legs and relations of a job
    what: Ratio | Balance | Frames | OwnChoice
    legs: tuple[str, ...]  # that it rests on, and that run again before it is called red
    suite: str
    program: str
    rails: tuple[str, ...] = ()
    owns: tuple[str, ...] = ()  # legs measured for it alone: not judged by themselves
    #: leg -> the leg that measures, in one short start, what is needed of it, and runs in turn with
    #: the others until the relation is decided; empty if one look decides
    turns: dict[str, str] = field(default_factory=dict)


def owned_legs(relations: Iterable[Relation]) -> frozenset[str]:
    """Return the names of the legs that are raw material of a relation."""
    return frozenset(name for each in relations for name in (*each.owns, *each.turns.values()))
