"""A relation: a judgement across legs of one job, where no single number says enough.

Two rails over one, MPI over the TCP below it, the far socket over the near one: each is a ratio of
two measurements on the same nodes at the same time, and holds where both numbers alone look fine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fabricproof.job.plan.leg import Leg


@dataclass(frozen=True, kw_only=True)
class Relation:
    """What is to hold between legs.

    Attributes:
        name: what a row is called, unique among the legs and relations of a job: ``scaling``.
        kind: how it is judged: a key of :data:`fabricproof.job.relations.judge.JUDGES`.
        legs: names of the legs it rests on, which run again before it is called red.
        suite: for the row, as a leg's.
        program: for the row, as a leg's.
        rails: the rails it speaks of.
        settings: what its kind needs; plain values, they are written to ``plan.json``.
        owns_legs: its legs are measured for it alone: it judges them, and by themselves they are
            neither due nor judged.
        turns: leg -> the leg that measures in one start what the relation needs of it, which runs
            in turn with the others until the relation is decided; empty where one look decides.
    """

    name: str
    kind: str
    legs: tuple[str, ...]
    suite: str
    program: str
    rails: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    owns_legs: bool = False
    turns: dict[str, str] = field(default_factory=dict)

    def as_leg(self) -> Leg:
        """Return the leg under whose name the relation stands in records and reports."""
        return Leg(
            name=self.name,
            rails=self.rails,
            suite=self.suite,
            program=self.program,
            environment={},
            commands=(),
            expected_sizes=(),
            sent_bytes=None,
            sent_per_message=None,
            sent_messages=None,
            spread=False,
            required=(),
            fabric=None,
            tolerance=0.0,
        )


def in_turns(relation: Relation, turns: Mapping[str, Leg]) -> Relation:
    """Return the relation, to be decided by rounds of ``turns``: leg -> the leg in its stead."""
    return replace(relation, turns={name: leg.name for name, leg in turns.items()})


def owned_legs(relations: Iterable[Relation]) -> frozenset[str]:
    """Return the names of the legs that are raw material of a relation."""
    return frozenset(
        name
        for each in relations
        for name in (*(each.legs if each.owns_legs else ()), *each.turns.values())
    )
