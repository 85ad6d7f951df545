"""What a judged matrix is: its verdict, which rows are low, and who explains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.core.measure import Verdict
from fabricproof.pairs.blame.explain import Explanation, Found
from fabricproof.pairs.blame.pair import BadPair
from fabricproof.pairs.blame.suspects import Flags, Values
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
class Judged:
    """What a matrix came to.

    Attributes:
        explanation: who explains what is low.
        alone: goodness of each row as it would be on links of its own: more than measured where the
            load of its round is known.
        shortfall: of each row the logarithm of value over yardstick, better is more.
        low: rows that are low.
        fast: rows that are plainly better than the yardstick.
        contended: rows that the load of their round explains.
        yardsticks: of each kind and rail the healthy value, in the unit of the kind.
        unexplained: rows that are plainly low and that nobody explains.
        recovered: rows that are low, and good in most other looks at the same pair.
        weak: who would explain low rows, were there more of them.
        is_contention: whether many rows are low and nobody explains them.
        scatter: the largest standard deviation of healthy rows that no reference judges.
        is_wide: whether that is so much that they are no yardstick.
        few: rows whose like are too few, nodes or values, to be a yardstick.
        bounded: kinds whose level a reference judges.
        below_over: kind and rail whose healthy rows are themselves below their reference.
        between: kind and rail -> the healthy value of pairs between leaves, where it is below the
            reference and nobody knows what their rounds let them have.
        impossible: rows better than physics allows.
        leaves: where the nodes hang, None where nobody said.
        reason: why the verdict is what it is.
    """

    matrix: Matrix
    verdict: MatrixVerdict
    explanation: Explanation
    bad_pairs: tuple[BadPair, ...]
    alone: Values
    shortfall: Values
    low: Flags
    fast: Flags
    contended: Flags
    yardsticks: dict[tuple[int, int], float]
    unexplained: Flags
    recovered: Flags
    weak: tuple[Found, ...]
    is_contention: bool
    scatter: float
    is_wide: bool
    few: Flags
    bounded: frozenset[int]
    below_over: tuple[tuple[int, int], ...]
    between: Mapping[tuple[int, int], float]
    impossible: Flags
    leaves: Leaves | None
    reason: str = ""

    @property
    def below(self) -> tuple[int, ...]:
        """Kinds whose healthy rows are themselves below their reference."""
        return tuple(dict.fromkeys(kind for kind, _ in self.below_over))
