"""What a night comes to once its reds were looked at again, and the flutter rule; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabricproof.core import measure
from fabricproof.core.measure import FindingKind, Verdict
from fabricproof.job.run import LegResult, SessionResult
from fabricproof.nightly.confirm import Confirmation, LegKey, LookResult, mildest_first
from fabricproof.nightly.looks import key_of

#: So many flutters of one leg within the nights that count are red.  A leg that stalls by chance in
#: one night of a hundred does so three times in ten nights with a chance of 1.1e-4 (binomial); a
#: loose connector does so within weeks.
FLUTTERS_RED = 3


def with_flutters(
    confirmations: Sequence[Confirmation], before: Mapping[LegKey, int], nights: int
) -> tuple[Confirmation, ...]:
    """Return the confirmations with their flutters counted; too many make one red again.

    Args:
        confirmations: of this night.
        before: leg to the earlier nights, within the last ``nights``, in which it fluttered.
        nights: over how many nights is counted, this one included.
    """
    return tuple(_counted(each, before.get(each.red.key, 0), nights) for each in confirmations)


def _counted(confirmation: Confirmation, before: int, nights: int) -> Confirmation:
    if confirmation.finding is not LookResult.NOT_REPEATED:
        return replace(confirmation, flutters=before)
    count = before + 1
    said = f"{confirmation.sentence}, {count} in the last {nights} nights"
    if count < FLUTTERS_RED:
        return replace(confirmation, flutters=count, sentence=said)
    return replace(
        confirmation,
        flutters=count,
        finding=LookResult.FLUTTERS,
        sentence=f"{said}: {FLUTTERS_RED} are red",
    )


def settled(result: SessionResult, confirmations: Sequence[Confirmation]) -> SessionResult:
    """Return the run's result with what was not repeated as the PASS that the look saw.

    What was UNJUDGED and is judged now is what its look measured.  Everything else keeps its
    verdict; each leg that was looked at says what became of it.
    """
    found = {(each.red.key, each.red.verdict): each for each in mildest_first(confirmations)}
    return replace(result, legs=tuple(_settled(leg, found) for leg in result.legs))


def _settled(leg: LegResult, found: Mapping[tuple[LegKey, Verdict], Confirmation]) -> LegResult:
    mine = found.get((key_of(leg), leg.verdict))
    if mine is None:
        return leg
    if mine.counting is not None:
        return _measured_again(leg, mine)
    told = measure.Finding(text=f"confirmation: {mine.finding.value}: {mine.sentence}")
    findings = (told, *leg.findings)
    if mine.verdict is leg.verdict:
        return replace(leg, findings=findings)
    words = f"second look: it was {leg.verdict.value}: {leg.reason}"
    said = measure.Finding(text=words, kind=FindingKind.SECOND_LOOK_PASSED)
    return replace(leg, verdict=Verdict.PASS, reason="", findings=(*findings, said))


def _measured_again(leg: LegResult, mine: Confirmation) -> LegResult:
    """Return what the look measured in place of what was UNJUDGED, with both outcomes said."""
    look = mine.counting
    assert look is not None, "the caller asked"
    passed = mine.verdict is Verdict.PASS
    kind = FindingKind.SECOND_LOOK_PASSED if passed else FindingKind.NOTE
    told = measure.Finding(text=f"confirmation: {mine.finding.value}: {mine.sentence}", kind=kind)
    if look.leg is not None and key_of(look.leg) == mine.red.key:
        return replace(look.leg, findings=(told, *look.leg.findings))
    # A look whose check left no leg at all: the leg keeps its name.
    return replace(leg, verdict=mine.verdict, reason=look.reason, findings=(told, *leg.findings))
