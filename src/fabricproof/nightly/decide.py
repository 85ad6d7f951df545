"""The verdict on legs that were measured again, and which node the red ones blame; pure.

A red pair is looked at again on the same two nodes; if that is red too, each of its nodes with
another partner.  What is red with other partners is to blame; what is red only together is the
pair.  All legs of a night that are red on the same nodes over the same rails are evidence for one
blame.  What is UNJUDGED because of others, or of too few rounds, is measured once more on the same
nodes.  The rule with its reasons: docs/decisions/0025-confirmation.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fabricproof.core.measure import Verdict
from fabricproof.nightly.confirm import (
    RED,
    Blame,
    Confirmation,
    Look,
    LookColour,
    LookResult,
    Red,
    Role,
)
from fabricproof.verdict.partners import WithOthers, at_fault


def decide_all(reds: Sequence[Red], looks: Sequence[Sequence[Look]]) -> tuple[Confirmation, ...]:
    """Return what the looks of one night say of each of ``reds``."""
    alone = [decide(red, mine) for red, mine in zip(reds, looks, strict=True)]
    return tuple(decide(each.red, each.looks, _same_place(each, alone)) for each in alone)


def _same_place(one: Confirmation, others: Iterable[Confirmation]) -> list[Confirmation]:
    """Return the other legs that are red again on the same nodes over the same rails.

    What is red over one rail is evidence for several rails of which it is one, not the reverse.
    What is INVALID is another fault than what is slow.
    """
    if one.finding is not LookResult.CONFIRMED or one.red.of_campaign:
        return []
    rails = set(one.red.rails)

    def place(each: Confirmation) -> tuple[object, ...]:
        red = each.red
        is_invalid = red.verdict is Verdict.INVALID
        return each.finding, red.of_campaign, is_invalid, red.key.partition, red.nodes

    return [
        other
        for other in others
        if other is not one
        and place(other) == place(one)
        and (set(other.red.rails) == rails or (other.red.rails and set(other.red.rails) < rails))
    ]


def decide(red: Red, looks: Sequence[Look], beside: Sequence[Confirmation] = ()) -> Confirmation:
    """Return what ``looks`` say of ``red``.

    Nothing is cleared by less than a green look on the same nodes, and INVALID by none at all.
    Of several looks with one role the worst counts.  What was UNJUDGED takes its look's verdict.

    ``beside``: other legs that are red again on its nodes; their looks count for whom to blame.
    """
    same = _worst(looks, Role.SAME)
    blame, who = Blame.UNKNOWN, ""
    if red.of_campaign and red.verdict in RED:
        finding = LookResult.CONFIRMED if red.verdict is Verdict.FAIL else LookResult.UNCONFIRMED
        if finding is LookResult.CONFIRMED and red.at_fault:
            blame = Blame.CAMPAIGN
    elif red.verdict is Verdict.UNJUDGED and same is LookColour.NONE:
        again = any(look.verdict is Verdict.UNJUDGED for look in looks)
        finding = LookResult.UNJUDGED if again else LookResult.UNCONFIRMED
    elif red.verdict is Verdict.UNJUDGED:
        finding = LookResult.NOW_GREEN if same is LookColour.GREEN else LookResult.NOW_RED
    elif same is LookColour.NONE:
        finding = LookResult.UNCONFIRMED
    elif same is LookColour.GREEN:
        invalid = red.verdict is Verdict.INVALID
        finding = LookResult.NEVER_CLEARED if invalid else LookResult.NOT_REPEATED
    else:
        finding = LookResult.CONFIRMED
        sides = PairSides.of(red, [looks, *(each.looks for each in beside)])
        blame = Blame.CAMPAIGN if red.faults else blame_of(sides)
        who = _who(red, sides, blame)
        unseen = (each.reason for each in looks if each.role is not Role.SAME and each.reason)
        who += f" ({why})" if blame is Blame.UNKNOWN and (why := next(unseen, "")) else ""
    first, second = red.halves or ((), ())
    blamed = {
        Blame.FIRST: first,
        Blame.SECOND: second,
        Blame.BOTH: (*first, *second),
        Blame.PAIR: (*first, *second),
        Blame.CAMPAIGN: red.at_fault,
        Blame.UNKNOWN: (),
    }[blame]
    return Confirmation(
        red=red,
        looks=tuple(looks),
        finding=finding,
        blame=blame,
        blamed=tuple(sorted(blamed)),
        sentence=_sentence(red, looks, finding, who),
    )


def _worst(looks: Iterable[Look], role: Role) -> LookColour:
    seen = {look.colour for look in looks if look.role is role}
    order = (LookColour.RED, LookColour.GREEN)
    return next((each for each in order if each in seen), LookColour.NONE)


@dataclass(frozen=True, kw_only=True)
class PairSides:
    """What all legs that are red on the same nodes saw of their two sides with others.

    Attributes:
        names: of the first side and of the second.
        colours: what each leg saw of the first side and of the second.
    """

    names: tuple[str, str]
    colours: tuple[tuple[LookColour, LookColour], ...]

    @classmethod
    def of(cls, red: Red, looks: Sequence[Sequence[Look]]) -> PairSides:
        """Return what the looks of each leg saw of the sides of ``red``."""
        first, second = red.halves or ((), ())
        return cls(
            names=(",".join(first), ",".join(second)),
            colours=tuple((_worst(each, Role.FIRST), _worst(each, Role.SECOND)) for each in looks),
        )

    def count(self, at: int, colour: LookColour) -> int:
        """Return in how many legs a side, 0 or 1, had a colour."""
        return sum(each[at] is colour for each in self.colours)

    def words(self, at: int) -> str:
        """Return ``is green``, ``is red with others in 7 of 8 legs``."""
        red, green = self.count(at, LookColour.RED), self.count(at, LookColour.GREEN)
        many = len(self.colours) > 1
        if not red + green:
            return "was not seen with others"
        if red:
            return "is red with others " + (f"in {red} of {red + green} legs" if many else "too")
        return "is green" + f" in {green} legs" * many


def blame_of(sides: PairSides) -> Blame:
    """Return whom the looks with others blame.

    A side that is green clears itself only: without a look at the other in the same leg, that and
    the way between are not told apart.
    """
    both = [
        WithOthers(red=sides.count(at, LookColour.RED), good=sides.count(at, LookColour.GREEN))
        for at in (0, 1)
    ]
    match at_fault(both):
        case [True, True]:
            return Blame.BOTH
        case [True, False]:
            return Blame.FIRST
        case [False, True]:
            return Blame.SECOND
    only_together = (LookColour.GREEN, LookColour.GREEN) in sides.colours
    return Blame.PAIR if only_together else Blame.UNKNOWN


def _sentence(red: Red, looks: Sequence[Look], finding: LookResult, who: str) -> str:
    where = " and ".join(",".join(half) for half in red.halves or ()) or ",".join(red.nodes)
    same = [look for look in looks if look.role is Role.SAME]
    unseen = (same and same[0].reason) or "no look at the same nodes came about"
    if red.verdict is Verdict.UNJUDGED:
        return _sentence_of_unjudged(red, looks, finding, where, unseen)
    match finding:
        case LookResult.CONFIRMED if red.of_campaign:
            return f"seen in rounds over all nodes, and by a stock program: {red.reason}"
        case LookResult.CONFIRMED:
            return f"red again on {where}; {who}"
        case LookResult.UNCONFIRMED:
            return f"red once and stays red: {unseen}"
        case LookResult.NEVER_CLEARED:
            return f"INVALID once, green when looked at again on {where}: no repeating clears that"
    other = [look.reason for look in same if look.verdict in RED]
    how = f"green, but for another number ({other[0]})," if other else "green"
    return f"{how} when looked at again on {where}: kept as a flutter"


def _sentence_of_unjudged(
    red: Red, looks: Sequence[Look], finding: LookResult, where: str, unseen: str
) -> str:
    is_told = bool(red.faults) and finding is not LookResult.NOW_GREEN
    known = f"on its way, by {_faults(red)}; " if is_told else ""
    if finding is LookResult.UNCONFIRMED:
        return f"{known}{red.cause}; stays UNJUDGED, not measured again: {unseen}"
    order = list(LookColour)
    look = min(
        (look for look in looks if look.verdict is not None),
        key=lambda each: order.index(each.colour),
    )
    reason = (look.leg.reason if look.leg else "") or look.reason
    said = ": ".join(filter(None, (f"{look.verdict} on {where}", reason)))
    return f"{known}{red.cause}; measured again: {said}; first UNJUDGED: {red.reason}"


def _faults(red: Red) -> str:
    return f"rounds over all nodes: {'; '.join(each.text for each in red.faults)}"


#: what follows from the looks at both sides
_CONCLUSIONS = {
    Blame.BOTH: ": each, or what all share",
    Blame.PAIR: ": only the way between",
    Blame.UNKNOWN: ": not told apart",
}


def _who(red: Red, sides: PairSides, blame: Blame) -> str:
    """Return whom a red that was confirmed blames, with what was seen of both sides."""
    if blame is Blame.CAMPAIGN:
        return f"why, by {_faults(red)}"
    if red.halves is None:
        return "nodes not told apart: they have no two sides to try with others"
    first, second = (1, 0) if blame is Blame.SECOND else (0, 1)
    said = f"{sides.names[first]} on {red.net_path} {sides.words(first)}, "
    said += f"{sides.names[second]} {sides.words(second)}"
    one, other = (LookColour.RED, LookColour.GREEN), (LookColour.GREEN, LookColour.RED)
    if {one, other} <= set(sides.colours):
        return f"{said}: the legs contradict each other"
    return said + _CONCLUSIONS.get(blame, "")
