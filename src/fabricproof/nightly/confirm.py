"""What is measured again after a run, what each look saw, and what became of it: plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fabricproof.core.findings import Finding
from fabricproof.core.measure import BADNESS, Verdict
from fabricproof.core.plain import plain
from fabricproof.core.provenance import LegKey
from fabricproof.job.run import LegResult
from fabricproof.verdict.value import ERROR_UNIT

#: verdicts that are red: judged and bad, impossible, or due and not there
RED: frozenset[Verdict] = frozenset({Verdict.FAIL, Verdict.INVALID, Verdict.MISSING})

#: Less than this part of how far a pair is beyond its bound explains nothing of it.  Our choice; in
#: simulation noise put a healthy node 0.2 % beyond its bound where the pair was 32 % beyond.
MILD_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class Red:
    """A leg that is looked at again: it was red, or UNJUDGED for a cause that passes.

    Attributes:
        nodes: of its job, sorted; empty if it ran nowhere.
        rails: interfaces of its path; empty if unknown.
        device: what software stood for an adapter there (``Soft-RoCE``); empty if none did.
        cause: what left it UNJUDGED, for a person: ``was disturbed``; empty for what is red.
        of_campaign: rounds over all nodes showed it, and a stock program was asked in the same job.
        faults: whom such rounds of the same night blame for it.
        leg: all that the run says of it.
    """

    key: LegKey
    verdict: Verdict
    reason: str
    nodes: tuple[str, ...]
    run_id: str
    rails: tuple[str, ...] = ()
    device: str = ""
    cause: str = ""
    of_campaign: bool = False
    faults: tuple[Finding, ...] = ()
    leg: LegResult | None = field(default=None, compare=False, repr=False)

    def is_explained_by(self, seen: LegResult, *, beside_others: bool) -> bool:
        """Tell whether what is red in ``seen`` repeats or explains this.

        Two jobs that fail, each by a number that was good in the other, repeat nothing.  Beside
        others a side that misses its bound by a little does not explain a pair that misses it by
        far, nor does any FAIL explain what is impossible.
        """
        if self.leg is not None and _passed(self.leg, seen) and _passed(seen, self.leg):
            return False
        if not beside_others:
            return True
        if (self.verdict, seen.verdict) == (Verdict.INVALID, Verdict.FAIL):
            return False
        here, there = _beyond(self.leg) if self.leg is not None else None, _beyond(seen)
        return here is None or there is None or there >= MILD_SHARE * here

    @property
    def halves(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The two nodes of a pair, or the halves of more; None if there are no two equal sides."""
        middle, odd = divmod(len(self.nodes), 2)
        return None if odd or not middle else (self.nodes[:middle], self.nodes[middle:])

    @property
    def at_fault(self) -> tuple[str, ...]:
        """The nodes that rounds over all nodes blame for it, sorted."""
        return tuple(sorted({each.where.node for each in self.faults if each.where.node}))

    @property
    def net_path(self) -> str:
        """``rail1`` or ``rxe0:1 Soft-RoCE``; the leg's name if its rails are unknown."""
        return " ".join(filter(None, ("+".join(self.rails) or self.key.leg or "-", self.device)))


def _beyond(leg: LegResult) -> float | None:
    """Return how far the worst number is beyond its bound, as a part of it; None if it has none."""
    bad = [each for each in leg.quantities if each.verdict in RED]
    if any(each.verdict is not Verdict.FAIL or each.unit == ERROR_UNIT for each in bad):
        return None
    shares = []
    for each in bad:
        if not each.value or not (each.lower or each.upper):
            return None
        shares.append(
            max((each.lower or 0.0) / each.value, each.value / each.upper if each.upper else 0.0)
        )
    return max(shares) - 1 if shares else None


def _passed(failed: LegResult, other: LegResult) -> bool:
    """Tell whether all numbers that failed in one look passed in the other.

    What was lost or damaged is no such number: it is added up over looks.
    """
    bad = [each for each in failed.quantities if each.verdict in RED]
    good = {each.name for each in other.quantities if each.verdict is Verdict.PASS}
    is_counted = failed.verdict is Verdict.FAIL and all(each.unit != ERROR_UNIT for each in bad)
    return is_counted and bool(bad) and {each.name for each in bad} <= good


class Role(StrEnum):
    """Which question a look answers."""

    SAME = "same nodes"
    FIRST = "first side with others"
    SECOND = "second side with others"


class LookColour(StrEnum):
    """What a look saw.  ``NONE``: nothing, or somewhere else; it neither clears nor confirms."""

    RED = "red"
    GREEN = "green"
    NONE = "not seen"


@dataclass(frozen=True, kw_only=True)
class Look:
    """One run of a red leg's check, to see it again.

    Attributes:
        nodes: that it was asked to run on.
        verdict: of the leg in that run; None if it is not in it.
        leg: all that the run says of it, if it was seen.
    """

    role: Role
    nodes: tuple[str, ...]
    colour: LookColour
    run_id: str = ""
    verdict: Verdict | None = None
    reason: str = ""
    leg: LegResult | None = field(default=None, compare=False, repr=False)


class LookResult(StrEnum):
    """What became of a leg that was looked at again."""

    CONFIRMED = "CONFIRMED"
    """Red again on the same nodes: red."""
    NOT_REPEATED = "NOT REPEATED"
    """Green when looked at again on the same nodes: a flutter, kept and counted."""
    NEVER_CLEARED = "NOT CLEARED"
    """INVALID, and green when looked at again: stays red, a wrong path is no bad luck."""
    UNCONFIRMED = "NOT LOOKED AT"
    """No look came about: stays red, or UNJUDGED."""
    FLUTTERS = "FLUTTERS"
    """Green when looked at again, as in too many nights before: red."""
    NOW_GREEN = "JUDGED GREEN"
    """UNJUDGED at first, PASS when measured again: PASS."""
    NOW_RED = "JUDGED RED"
    """UNJUDGED at first, red when measured again: red."""
    UNJUDGED = "UNJUDGED"
    """UNJUDGED at first, and when measured again: that is the verdict."""


#: results of a leg that was green when it was looked at again
FLUTTERED: frozenset[LookResult] = frozenset({LookResult.NOT_REPEATED, LookResult.FLUTTERS})


class Blame(StrEnum):
    """Who is to blame for a confirmed red."""

    FIRST = "first side"
    SECOND = "second side"
    BOTH = "both sides"
    PAIR = "only together"
    CAMPAIGN = "by all pairs"
    UNKNOWN = "not told apart"


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """What the looks say of a leg.

    Attributes:
        looks: all of them, both outcomes kept.
        blame: who; UNKNOWN unless it is CONFIRMED.
        blamed: the nodes to look at, sorted; empty if nobody can be told apart.
        sentence: all of this for a person.
        flutters: nights, this one included, in which it was red once and then green.
    """

    red: Red
    looks: tuple[Look, ...]
    finding: LookResult
    blame: Blame
    blamed: tuple[str, ...]
    sentence: str
    flutters: int = 0

    @property
    def stays_red(self) -> bool:
        """Whether the leg counts as red today."""
        return self.verdict in RED

    @property
    def verdict(self) -> Verdict:
        """The verdict that counts, once it was looked at again."""
        if self.finding is LookResult.NOT_REPEATED:
            return Verdict.PASS
        return (self.counting and self.counting.verdict) or self.red.verdict

    @property
    def counting(self) -> Look | None:
        """The look that takes the place of what was UNJUDGED; None if none does."""
        colours = {LookResult.NOW_GREEN: LookColour.GREEN, LookResult.NOW_RED: LookColour.RED}
        colour = colours.get(self.finding)
        return next((look for look in self.looks if look.colour is colour), None)


def mildest_first(confirmations: Iterable[Confirmation]) -> list[Confirmation]:
    """Return the confirmations so that the worst of one leg on several nodes has the last word."""
    return sorted(confirmations, key=lambda each: BADNESS.index(each.verdict), reverse=True)


def record(confirmation: Confirmation) -> dict[str, Any]:
    """Return a confirmation as plain data, the form of ``--json`` and of the records."""
    red = confirmation.red
    looks = [
        plain(each, without={"colour", "leg"}, outcome=each.colour) for each in confirmation.looks
    ]
    return {
        **plain(red.key),
        "rails": list(red.rails),
        "nodes": list(red.nodes),
        "first_verdict": red.verdict.value,
        "first_reason": red.reason,
        "first_run_id": red.run_id,
        **plain(confirmation, "stays_red", without={"red"}, looks=looks),
    }
