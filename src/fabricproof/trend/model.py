"""What history shows, as plain records that every report is made of."""

from __future__ import annotations

from dataclasses import dataclass

from fabricproof.stats.steps import Drift, Step
from fabricproof.store import Key, Run


@dataclass(frozen=True, kw_only=True)
class FoundStep:
    """A lasting change of one quantity.

    Attributes:
        key: the quantity.
        step: when and how much; its columns are indices into :attr:`Trend.runs`.
        worse: whether it is to the worse; False: to the better.
        run: the first run after it.
        coincides: inventory fields that changed between the runs it may lie between, one
            sentence each; empty where none did or nobody looked.
    """

    key: Key
    step: Step
    worse: bool
    run: Run
    coincides: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FoundDrift:
    """A slow change of one quantity."""

    key: Key
    drift: Drift
    worse: bool


@dataclass(frozen=True, kw_only=True)
class Event:
    """Steps that begin together, told once: one cause is likely.

    Attributes:
        run: the first run after it.
        steps: its steps, the largest first.
        where: what they have in common: ``rail1``, ``vc2``, ``openmpi5``; empty where nothing.
        coincides: as in :class:`FoundStep`, of all of them.
        sentence: for a person.
    """

    run: Run
    steps: tuple[FoundStep, ...]
    where: str
    coincides: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Trend:
    """What the history of a site shows.

    Attributes:
        site: its name.
        runs: that were looked at, oldest first.
        num_quantities: rows that have enough runs to show anything.
        num_short: rows that have too few.
        events: newest first.
        drifts: the largest first.
        warnings: what was passed over.
        alpha: the chance of even one false event.
    """

    site: str
    runs: tuple[Run, ...]
    num_quantities: int
    num_short: int
    events: tuple[Event, ...]
    drifts: tuple[FoundDrift, ...]
    warnings: tuple[str, ...]
    alpha: float
