"""The verdict on legs that were measured again, and which node the red ones blame; pure.

A red pair is looked at again on the same two nodes; where that is red too, each of its nodes with
another partner.  What is red with other partners is to blame; what is red only together is the
pair.  All legs of a night that are red on the same nodes over the same rails are evidence for one
blame.  What is UNJUDGED because of others, or of too few rounds, is measured once more on the same
nodes.  The rule with its reasons: docs/decisions/0025-confirmation.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

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

    def is_of_them(other: Confirmation) -> bool:
        own = set(other.red.rails)
        return own == rails or (bool(own) and own < rails)

    mine = [other for other in others if other is not one and _place(other) == _place(one)]
    return [other for other in mine if is_of_them(other)]


def _place(confirmation: Confirmation) -> tuple[object, ...]:
    red = confirmation.red
    is_invalid = red.verdict is Verdict.INVALID
    return confirmation.finding, red.of_campaign, is_invalid, red.key.partition, red.nodes


def decide(red: Red, looks: Sequence[Look], beside: Sequence[Confirmation] = ()) -> Confirmation:
    """Return what ``looks`` say of ``red``.

    Nothing is cleared by less than a green look on the same nodes, and INVALID by none at all.
    Of several looks with one role the worst counts.  What was UNJUDGED takes its look's verdict.

    ``beside``: other legs that are red again on its nodes; their looks count for whom to blame.
    """
    if red.of_campaign and red.verdict in RED:
        is_seen = red.verdict is Verdict.FAIL
        finding = LookResult.CONFIRMED if is_seen else LookResult.UNCONFIRMED
        who = Blame.CAMPAIGN if is_seen and red.at_fault else Blame.UNKNOWN
        return _confirmation(red, looks, finding, who)
    same = _worst(looks, Role.SAME)
    every = (red, *(each.red for each in beside))
    if red.verdict is Verdict.UNJUDGED:
        return _confirmation(red, looks, _of_unjudged(same, looks), Blame.UNKNOWN)
    if same is LookColour.NONE:
        return _confirmation(red, looks, LookResult.UNCONFIRMED, Blame.UNKNOWN)
    if same is LookColour.GREEN:
        invalid = red.verdict is Verdict.INVALID
        finding = LookResult.NEVER_CLEARED if invalid else LookResult.NOT_REPEATED
        return _confirmation(red, looks, finding, Blame.UNKNOWN)
    sides = PairSides(
        red=red,
        looks=(tuple(looks), *(each.looks for each in beside)),
        cleared_by=next(filter(None, (each.cleared_by for each in every)), ""),
    )
    blame = Blame.CAMPAIGN if red.faults else blame_of(sides)
    return _confirmation(red, looks, LookResult.CONFIRMED, blame, sides)


def _of_unjudged(same: LookColour, looks: Sequence[Look]) -> LookResult:
    if same is not LookColour.NONE:
        return LookResult.NOW_GREEN if same is LookColour.GREEN else LookResult.NOW_RED
    again = any(look.verdict is Verdict.UNJUDGED for look in looks)
    return LookResult.UNJUDGED if again else LookResult.UNCONFIRMED


def _worst(looks: Iterable[Look], role: Role) -> LookColour:
    seen = {look.colour for look in looks if look.role is role}
    return next(
        (each for each in (LookColour.RED, LookColour.GREEN) if each in seen), LookColour.NONE
    )


@dataclass(frozen=True, kw_only=True)
class SideSeen:
    """In how many legs one side of a red pair was seen with others, and what it was there.

    Attributes:
        red: legs in which it was red with others.
        green: legs in which it was green with others.
        num_legs: all that were red on the pair.
    """

    name: str
    red: int
    green: int
    num_legs: int

    @property
    def is_mostly_red(self) -> bool:
        """Whether it was red with others at least as often as green."""
        return self.red > 0 and self.red >= self.green

    @property
    def words(self) -> str:
        """``is green``, ``is red with others in 7 of 8 legs``."""
        seen = self.red + self.green
        if not seen:
            return "was not seen with others"
        if not self.red:
            return "is green" + f" in {seen} legs" * (self.num_legs > 1)
        return "is red with others " + (
            f"in {self.red} of {seen} legs" if self.num_legs > 1 else "too"
        )


@dataclass(frozen=True, kw_only=True)
class PairSides:
    """What all legs that are red on the same nodes saw of their two sides with others."""

    red: Red
    looks: tuple[tuple[Look, ...], ...]
    cleared_by: str = ""

    @cached_property
    def colours(self) -> tuple[tuple[LookColour, LookColour], ...]:
        """What each leg saw of the first side and of the second."""
        return tuple((_worst(each, Role.FIRST), _worst(each, Role.SECOND)) for each in self.looks)

    @cached_property
    def seen(self) -> tuple[SideSeen, SideSeen]:
        """The first side and the second."""
        first, second = (
            SideSeen(
                name=",".join(half),
                red=sum(each[at] is LookColour.RED for each in self.colours),
                green=sum(each[at] is LookColour.GREEN for each in self.colours),
                num_legs=len(self.looks),
            )
            for at, half in enumerate(self.red.halves or ((), ()))
        )
        return first, second

    @property
    def contradict(self) -> bool:
        """Whether one leg clears the side that another one blames, and blames the other side."""
        one, other = (LookColour.RED, LookColour.GREEN), (LookColour.GREEN, LookColour.RED)
        return {one, other} <= set(self.colours)


def blame_of(sides: PairSides) -> Blame:
    """Return whom the looks with others blame.

    A side that is red with others is to blame even where the other was not seen: it is red without
    it.  Where legs differ, a side is to blame that is red with others at least as often as green;
    where neither is, any that is red at all: a leg that misses its bound by a little may be good
    with others by a little.  One that is green clears itself only: without a look at the other in
    the same leg, that and the way between are not told apart.
    """
    first, second = sides.seen
    mostly = (first.is_mostly_red, second.is_mostly_red)
    match mostly if any(mostly) else (first.red > 0, second.red > 0):
        case (True, True):
            return Blame.BOTH
        case (True, False):
            return Blame.FIRST
        case (False, True):
            return Blame.SECOND
    only_together = (LookColour.GREEN, LookColour.GREEN) in sides.colours
    return Blame.PAIR if only_together else Blame.UNKNOWN


def _confirmation(
    red: Red,
    looks: Sequence[Look],
    finding: LookResult,
    blame: Blame,
    sides: PairSides | None = None,
) -> Confirmation:
    return Confirmation(
        red=red,
        looks=tuple(looks),
        finding=finding,
        blame=blame,
        blamed=_blamed(red, blame),
        sentence=_sentence(red, looks, finding, blame, sides),
    )


def _blamed(red: Red, blame: Blame) -> tuple[str, ...]:
    first, second = red.halves or ((), ())
    nodes = {
        Blame.FIRST: first,
        Blame.SECOND: second,
        Blame.BOTH: (*first, *second),
        Blame.PAIR: (*first, *second),
        Blame.CAMPAIGN: red.at_fault,
        Blame.UNKNOWN: (),
    }
    return tuple(sorted(nodes[blame]))


def _sentence(
    red: Red, looks: Sequence[Look], finding: LookResult, blame: Blame, sides: PairSides | None
) -> str:
    where = " and ".join(",".join(half) for half in red.halves or ()) or ",".join(red.nodes)
    if red.verdict is Verdict.UNJUDGED:
        return _sentence_of_unjudged(red, looks, finding, where)
    match finding:
        case LookResult.CONFIRMED if red.of_campaign:
            return f"seen in rounds over all nodes, and by a stock program: {red.reason}"
        case LookResult.UNCONFIRMED:
            return f"red once and stays red: {_why_unseen(looks)}"
        case LookResult.NEVER_CLEARED:
            return f"INVALID once, green when looked at again on {where}: no repeating clears that"
        case LookResult.NOT_REPEATED | LookResult.FLUTTERS:
            return f"{_how_green(looks)} when looked at again on {where}: kept as a flutter"
        case LookResult.CONFIRMED:
            assert sides is not None, "what is red again has its sides"
            return f"red again on {where}; {_who(sides, blame)}"
        case LookResult.NOW_GREEN | LookResult.NOW_RED | LookResult.UNJUDGED:
            raise AssertionError("what was red is not judged anew")


def _how_green(looks: Sequence[Look]) -> str:
    """Return ``green``, or by which other number alone the same nodes were red."""
    other = [look for look in looks if look.role is Role.SAME and look.verdict in RED]
    return f"green, but for another number ({other[0].reason})," if other else "green"


def _sentence_of_unjudged(red: Red, looks: Sequence[Look], finding: LookResult, where: str) -> str:
    known = f"on its way, by {_faults(red)}; " * bool(red.faults)
    if finding is LookResult.NOW_GREEN:
        known = ""
    if finding is LookResult.UNCONFIRMED:
        return f"{known}{red.cause}; stays UNJUDGED, not measured again: {_why_unseen(looks)}"
    seen = [look for look in looks if look.verdict is not None]
    look = min(
        seen, key=lambda each: (each.colour is not LookColour.RED, each.colour is LookColour.NONE)
    )
    reason = (look.leg.reason if look.leg else "") or look.reason
    said = ": ".join(filter(None, (f"{look.verdict} on {where}", reason)))
    return f"{known}{red.cause}; measured again: {said}; first UNJUDGED: {red.reason}"


def _faults(red: Red) -> str:
    return f"rounds over all nodes: {'; '.join(each.text for each in red.faults)}"


def _why_unseen(looks: Sequence[Look]) -> str:
    same = [look for look in looks if look.role is Role.SAME]
    return same[0].reason if same and same[0].reason else "no look at the same nodes came about"


def _who(sides: PairSides, blame: Blame) -> str:
    if blame is Blame.CAMPAIGN:
        return f"why, by {_faults(sides.red)}"
    against = (
        f"; but {sides.cleared_by} blames neither in its rounds over all nodes: they contradict "
        "each other"
    )
    return _who_by_partners(sides, blame) + against * bool(sides.cleared_by)


def _who_by_partners(sides: PairSides, blame: Blame) -> str:
    if sides.red.halves is None:
        return "nodes not told apart: they have no two sides to try with others"
    first, second = sides.seen
    on = f" on {sides.red.net_path}"
    many = first.num_legs > 1
    differ = ": the legs contradict each other" * sides.contradict
    match blame:
        case Blame.FIRST | Blame.SECOND:
            guilty, other = (first, second) if blame is Blame.FIRST else (second, first)
            between = ", " if other.red or other.green else "; "
            return f"{guilty.name}{on} {guilty.words}{between}{other.name} {other.words}{differ}"
        case Blame.BOTH if many:
            each = f"{first.name}{on} {first.words}, {second.name} {second.words}"
            return f"{each}: {'the legs contradict each other' if differ else _EACH}"
        case Blame.BOTH:
            return f"{first.name} and {second.name}{on} are both red with others: {_EACH}"
        case Blame.PAIR:
            legs = f" in {first.num_legs} legs" * many
            both = f"{first.name} and {second.name}{on}"
            return f"both are green with others{legs}: only the way between {both}"
        case Blame.UNKNOWN | Blame.CAMPAIGN:
            return _not_told_apart(sides)


_EACH = "each, or what all share"


def _not_told_apart(sides: PairSides) -> str:
    first, second = sides.seen
    if first.green and not second.green:
        return f"{first.name} is green with others: {second.name}, or the way between"
    if second.green and not first.green:
        return f"{second.name} is green with others: {first.name}, or the way between"
    told = (look for looks in sides.looks for look in looks)
    said = [look.reason for look in told if look.role is not Role.SAME and look.reason]
    return f"nodes not told apart: {said[0] if said else 'neither was seen with others'}"
