"""What is said of a fabric: one finding for each thing that was expected or could not be seen.

The fact of a finding is ``link``, ``state``, ``lid``, ``trunks``, ``hosts``, ``manager``,
``counters``, ``cabling`` or ``look``.  Where it names a cable, its peer is the other end.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabricproof.core.findings import Finding, FindingKind, Where
from fabricproof.core.measure import Quantity, Verdict, worst


@dataclass(frozen=True, kw_only=True)
class SubnetResult:
    """All findings of one look, and what is only worth knowing."""

    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; SKIPPED where nothing was judged."""
        found = [each.verdict for each in self.findings if each.verdict]
        return worst(found) if found else Verdict.SKIPPED


def found(verdict: Verdict, fact: str, where: Where, text: str) -> Finding:
    """Return a finding with a verdict."""
    return Finding(kind=FindingKind.SUBNET, verdict=verdict, fact=fact, where=where, text=text)


def fail(fact: str, where: Where, text: str) -> Finding:
    """Return a FAIL."""
    return found(Verdict.FAIL, fact, where, text)


def unjudged(fact: str, where: Where, text: str) -> Finding:
    """Return what nobody can tell."""
    return found(Verdict.UNJUDGED, fact, where, text)


def passed(fact: str, number: int, text: str) -> Finding:
    """Return a PASS that stands for ``number`` things, which is its quantity."""
    quantity = Quantity(
        name=fact, value=number, unit="1", message_size=None, verdict=Verdict.PASS, reason=text
    )
    return Finding(
        kind=FindingKind.SUBNET, verdict=Verdict.PASS, fact=fact, quantity=quantity, text=text
    )
