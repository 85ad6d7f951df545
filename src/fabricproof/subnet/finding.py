"""What is said of a fabric: one finding for each thing that was expected or could not be seen.

A verdict on less than all must say so; notes stand beside.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabricproof.core.measure import Verdict, worst


@dataclass(frozen=True, kw_only=True)
class FabricFinding:
    """One thing that was expected of a fabric, and what was seen.

    Attributes:
        quantity: ``link``, ``state``, ``lid``, ``trunks``, ``hosts``, ``manager``, ``counters``,
            ``cabling``, ``look``.
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
class SubnetResult:
    """All findings of one look, and what is only worth knowing."""

    findings: tuple[FabricFinding, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; SKIPPED where nothing was judged."""
        if not self.findings:
            return Verdict.SKIPPED
        return worst([each.verdict for each in self.findings])


def fail(quantity: str, where: str, sentence: str) -> FabricFinding:
    """Return a FAIL."""
    return FabricFinding(verdict=Verdict.FAIL, quantity=quantity, where=where, sentence=sentence)


def unjudged(quantity: str, where: str, sentence: str) -> FabricFinding:
    """Return what nobody can tell."""
    return FabricFinding(
        verdict=Verdict.UNJUDGED, quantity=quantity, where=where, sentence=sentence
    )


def passed(quantity: str, number: int, sentence: str) -> FabricFinding:
    """Return a PASS that stands for ``number`` things."""
    return FabricFinding(
        verdict=Verdict.PASS, quantity=quantity, where="", sentence=sentence, number=number
    )
