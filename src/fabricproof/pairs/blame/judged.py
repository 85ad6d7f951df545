"""What a judged matrix is: its verdict, which rows are low, and who explains them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fabricproof.core.measure import Verdict
from fabricproof.pairs.blame.explain import Explanation, Found
from fabricproof.pairs.blame.measure import Measure
from fabricproof.pairs.blame.pair import BadPair
from fabricproof.pairs.blame.suspects import Flags
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.matrix import Matrix


class MatrixVerdict(StrEnum):
    """The verdict on a matrix; all words but the last are those of :class:`Verdict`."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INVALID = "INVALID"
    MISSING = "MISSING"
    UNJUDGED = "UNJUDGED"
    UNDECIDED = "UNDECIDED"
    """Something is low, and the matrix does not tell whose fault it is."""

    @property
    def as_verdict(self) -> Verdict:
        """The verdict that a run would count this as."""
        return Verdict.UNJUDGED if self is MatrixVerdict.UNDECIDED else Verdict(self.value)


class WhyUndecided(StrEnum):
    """Why something is low and nobody is blamed."""

    CHANCE = "chance"
    CONTENTION = "contention"
    GROUP = "group"
    FEW = "few"
    NODE = "node"
    RIVALS = "rivals"
    UNCONFIRMED = "unconfirmed"
    """No stock program saw it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged(Measure):
    """What a matrix came to.

    ``below_over`` also has what the only pair misses one way, in every look.

    Attributes:
        explanation: who explains what is low.
        unexplained: rows that are plainly low and that nobody explains.
        recovered: rows that are low, and good in most other looks at the same pair.
        weak: who would explain low rows, were there more of them.
        is_contention: whether many rows are low and nobody explains them.
        bounded: kinds whose level a reference judges.
        impossible: rows better than physics allows.
    """

    matrix: Matrix
    verdict: MatrixVerdict
    explanation: Explanation
    bad_pairs: tuple[BadPair, ...]
    unexplained: Flags
    recovered: Flags
    weak: tuple[Found, ...]
    is_contention: bool
    bounded: frozenset[int]
    impossible: Flags
    leaves: Leaves | None
    reason: str = ""

    @property
    def below(self) -> tuple[int, ...]:
        """Kinds whose healthy rows are themselves below their reference."""
        return tuple(dict.fromkeys(kind for kind, _ in self.below_over))
