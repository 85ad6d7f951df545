"""From tries to figures: rates with bounds, and from which strength on a fault is caught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricproof.history.stats.share import Share
from fabricproof.history.stats.shifts import ALPHA as FALSE_WORDS
from fabricproof.history.stats.shifts import Change
from fabricproof.proof.compared import RIGHT, SidesChange, SidesTry
from fabricproof.proof.library import FaultEntry
from fabricproof.proof.tries import CleanCampaign, Try


@dataclass(frozen=True, kw_only=True)
class FaultFigures:
    """What all tries of one fault came to.

    Attributes:
        entry: of the library.
        by_strength: strength -> caught.
        caught, blamed, worded: at the strength at which it must be caught.
        half, all_but: least strength tried from which on 50 % and 99 % were caught; None: none.
        first_bad: seed and words of the first try that was not right there.
    """

    entry: FaultEntry
    by_strength: Mapping[float, Share]
    caught: Share
    blamed: Share
    worded: Share
    half: float | None
    all_but: float | None
    first_bad: str


def of_fault(entry: FaultEntry, tries: Sequence[Try]) -> FaultFigures:
    """Return the figures of one fault."""
    mine = [each for each in tries if each.fault == entry.title]
    by_strength = {
        strength: _share([each.caught for each in mine if each.strength == strength])
        for strength in entry.strengths
    }
    due = [each for each in mine if each.strength == entry.must]
    bad = next((each for each in due if each.said), None)
    return FaultFigures(
        entry=entry,
        by_strength=by_strength,
        caught=_share([each.caught for each in due]),
        blamed=_share([each.blamed for each in due]),
        worded=_share([each.worded for each in due]),
        half=_floor(by_strength, 0.5),
        all_but=_floor(by_strength, 0.99),
        first_bad=f"seed {bad.seed} ({bad.fabric}): {bad.said}" if bad else "",
    )


def _share(hits: Sequence[bool]) -> Share:
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


@dataclass(frozen=True, kw_only=True)
class SidesFigures:
    """What all comparisons with one change came to.

    Attributes:
        change: between the sides.
        words: last word -> comparisons that ended so.
        right: comparisons whose last word was a right one.
        first_bad: seed and words of the first other one.
    """

    change: SidesChange
    words: Mapping[Change, Share]
    right: Share
    first_bad: str

    @property
    def is_as_promised(self) -> bool:
        """Whether false words are no surer than ``ALPHA``'s rate, and no real change was missed.

        Without a change ``compare`` promises a false word in one comparison of twenty at most
        (``history.stats.shifts.ALPHA``): the least credible rate must not be above.
        """
        wrong = Share(hits=self.right.of - self.right.hits, of=self.right.of)
        if Change.WORSE in RIGHT[self.change]:
            return not wrong.hits
        return not wrong.of or wrong.bounds[0] <= FALSE_WORDS


def of_sides(change: SidesChange, tries: Sequence[SidesTry]) -> SidesFigures:
    """Return the figures of one change."""
    mine = [each for each in tries if each.change == change.value]
    bad = next((each for each in mine if each.said), None)
    return SidesFigures(
        change=change,
        words={word: _share([each.word == word.value for each in mine]) for word in Change},
        right=_share([not each.said for each in mine]),
        first_bad=f"seed {bad.seed} ({bad.fabric}, {bad.noise}): {bad.said}" if bad else "",
    )
