"""What is said of a fabric: one finding for each thing that was expected, and notes beside."""

from __future__ import annotations

from dataclasses import dataclass

from fabricproof.core.measure import Verdict, worst


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was expected of a fabric, and what was seen.

    Attributes:
        verdict: the verdict on it.
        quantity: ``link``, ``state``, ``lid``, ``trunks``, ``hosts``, ``manager``, ``counters``,
            ``shape``, ``slurm``, ``cables``, ``look``.
        where: the port, cable, host or switch; empty where it is the whole fabric.
        sentence: for a person, with what was expected and what it means.
        number: how many things a PASS stands for.
    """

    verdict: Verdict
    quantity: str
    where: str
    sentence: str
    number: int = 1


@dataclass(frozen=True, kw_only=True)
class Result:
    """All findings of one look, or of the comparison of two, and what is only worth knowing."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; SKIPPED where nothing was judged."""
        if not self.findings:
            return Verdict.SKIPPED
        return worst([each.verdict for each in self.findings])


def fail(quantity: str, where: str, sentence: str) -> Finding:
    """Return a FAIL."""
    return Finding(verdict=Verdict.FAIL, quantity=quantity, where=where, sentence=sentence)


def passed(quantity: str, number: int, sentence: str) -> Finding:
    """Return a PASS that stands for ``number`` things."""
    return Finding(
        verdict=Verdict.PASS, quantity=quantity, where="", sentence=sentence, number=number
    )
