"""From tries to figures: rates with bounds, and from which strength on a fault is caught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proof.library import FaultEntry
from proof.share import Share
from proof.tries import CleanCampaign, Try


@dataclass(frozen=True, kw_only=True)
class FaultFigures:
    """What all tries of one fault came to.

    Attributes:
        by_strength: strength -> caught.
        caught, blamed, worded: at the strength at which it must be caught.
        all_but: least strength tried from which on 99 % were caught; None: none.
        first_bad: seed and words of the first try that was not right there.
    """

    entry: FaultEntry
    by_strength: Mapping[float, Share]
    caught: Share
    blamed: Share
    worded: Share
    all_but: float | None
    first_bad: str

    @property
    def is_as_promised(self) -> bool:
        """Whether no more was missed, or blamed wrongly, than the product says it may.

        The least credible rate must not be above: of a fault, one miss is too many.
        """
        shares = (
            Share(hits=each.of - each.hits, of=each.of) for each in (self.caught, self.blamed)
        )
        return all(not each.of or each.bounds[0] <= self.entry.wrong_at_most for each in shares)


def of_fault(entry: FaultEntry, tries: Sequence[Try]) -> FaultFigures:
    """Return the figures of one fault."""
    mine = [each for each in tries if each.fault == entry.title]
    by_strength = {
        strength: share_of([each.caught for each in mine if each.strength == strength])
        for strength in entry.strengths
    }
    due = [each for each in mine if each.strength == entry.must]
    bad = next((each for each in due if each.said), None)
    return FaultFigures(
        entry=entry,
        by_strength=by_strength,
        caught=share_of([each.caught for each in due]),
        blamed=share_of([each.blamed for each in due]),
        worded=share_of([each.worded for each in due]),
        all_but=_floor(by_strength, 0.99),
        first_bad=f"seed {bad.seed} ({bad.fabric}): {bad.said}" if bad else "",
    )


def share_of(hits: Sequence[bool]) -> Share:
    """Return how many hits are true."""
    return Share(hits=sum(hits), of=len(hits))


def _floor(by_strength: Mapping[float, Share], due: float) -> float | None:
    """Return the first strength from which on no share is below ``due``; None where none is."""
    found = None
    for strength, share in reversed(list(by_strength.items())):
        if not share.of or share.hits < due * share.of:
            break
        found = strength
    return found


@dataclass(frozen=True, kw_only=True)
class CleanFigures:
    """What campaigns without a fault came to, each as the part of them that had any of it."""

    campaigns: int
    nights: int
    false: Mapping[str, Share]
    second_looks: Share
    confirmations: Share


def of_clean(campaigns: Sequence[CleanCampaign]) -> CleanFigures:
    """Return the figures of campaigns without a fault."""
    nights = sum(each.nights for each in campaigns)
    count = len(campaigns)
    false = {
        word: Share(hits=sum(bool(each.verdicts.get(word)) for each in campaigns), of=count)
        for word in ("FAIL", "INVALID", "MISSING", "UNJUDGED")
    }
    false["blame"] = Share(hits=sum(bool(each.blamed) for each in campaigns), of=count)
    return CleanFigures(
        campaigns=count,
        nights=nights,
        false=false,
        second_looks=Share(hits=sum(each.second_looks for each in campaigns), of=nights),
        confirmations=Share(hits=sum(each.confirmations for each in campaigns), of=nights),
    )
