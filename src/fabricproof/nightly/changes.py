"""What is worth telling somebody after a night: changes of state, and nothing else; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.core.project import site_option
from fabricproof.core.provenance import LegKey
from fabricproof.core.units import by_key, counted, first_few
from fabricproof.nightly.log import LegColour, LegState, Night, NightEnd, NightState

#: lines of a notice on changes, and on what is red; the rest are counted
LINES_TOLD = 20

#: legs that are named if one thing is said of many
LEGS_NAMED = 8


class ChangeKind(StrEnum):
    """What changed; the worst first."""

    RED = "RED"
    BLAME = "OTHER NODES"
    NIGHT = "NIGHT"
    UNJUDGED = "UNJUDGED"
    GREEN = "GREEN"


#: a kind of change in the subject of a notice, after the number of its legs
_SUBJECTS = {
    ChangeKind.RED: "turned RED",
    ChangeKind.BLAME: "red on other nodes",
    ChangeKind.NIGHT: "the night itself",
    ChangeKind.UNJUDGED: "no longer judged",
    ChangeKind.GREEN: "green again",
}


@dataclass(frozen=True, kw_only=True)
class NightChange:
    """One change of state; ``leg`` is the text of its key, None for the night itself."""

    kind: ChangeKind
    sentence: str
    leg: str | None = None
    blamed: tuple[str, ...] = ()
    net_path: str = ""


def changes(state: NightState, tonight: Night, *, max_gap_hours: float) -> tuple[NightChange, ...]:
    """Return what ``tonight`` changed against the nights before it."""
    before = state.resting()
    found = list(_night_changes(state, tonight, max_gap_hours)) if tonight.is_own else []
    for key, leg in sorted(tonight.legs.items()):
        run_id, old = before.get(key, ("", LegState(colour=LegColour.UNKNOWN)))
        change = None if tonight.looks_back(run_id) else _leg_change(key, old, leg)
        found += [change] if change else []
    order = list(ChangeKind)
    return tuple(sorted(found, key=lambda each: order.index(each.kind)))


def _leg_change(key: str, before: LegState, now: LegState) -> NightChange | None:
    was_red = before.colour is LegColour.RED
    said, blamed = now.sentence, now.blamed
    match now.colour:
        case LegColour.RED if not was_red:
            kind = ChangeKind.RED
        case LegColour.RED if blamed and set(blamed) != set(before.blamed):
            kind = ChangeKind.BLAME
            said = f"{said} (before: {','.join(before.blamed) or 'not told apart'})"
        case LegColour.UNJUDGED if before.colour in {LegColour.GREEN, LegColour.RED}:
            kind, blamed = ChangeKind.UNJUDGED, ()
        case LegColour.GREEN | LegColour.GONE if was_red:
            kind, blamed = ChangeKind.GREEN, before.blamed
            said = "no longer in the run" if now.colour is LegColour.GONE else "green again"
            said += ", though red at first tonight" * now.flutter
        case _:
            return None
    return NightChange(kind=kind, sentence=said, leg=key, blamed=blamed, net_path=now.net_path)


def _night_changes(
    state: NightState, tonight: Night, max_gap_hours: float
) -> Iterator[NightChange]:
    last = state.own[-1] if state.own else None
    was = last.ended if last is not None else NightEnd.WHOLE
    said = []
    if last is not None:
        if was is NightEnd.LOST:
            said.append(f"the night before was lost: {last.reason}")
        hours = (tonight.at - last.at).total_seconds() / 3600
        if hours > max_gap_hours:
            said.append(f"no night ran for {hours:.0f} hours, since {last.at:%Y-%m-%d %H:%M} UTC")
    if tonight.ended is not was and tonight.ended is not NightEnd.WHOLE:
        said.append(f"{tonight.ended.value}: {tonight.reason}")
    elif tonight.ended is not was and was is not NightEnd.LOST:
        said.append(f"whole again (before: {was.value})")
    for sentence in said:
        yield NightChange(kind=ChangeKind.NIGHT, sentence=sentence)


def subject(site: str, told: Sequence[NightChange], red: int) -> str:
    """Return one line: what changed, how much is red now, which nodes."""
    counts = {kind: sum(each.kind is kind for each in told) for kind in ChangeKind}
    words = ", ".join(
        (counted(num, "leg") + " ") * (kind is not ChangeKind.NIGHT) + _SUBJECTS[kind]
        for kind, num in counts.items()
        if num
    )
    guilty = {
        " ".join(filter(None, (",".join(each.blamed), each.net_path)))
        for each in told
        if each.blamed and each.kind is not ChangeKind.GREEN
    }
    nodes = f" ({first_few(sorted(guilty))})" if guilty else ""
    return f"fabricproof {site}: {words or 'nothing changed'}{nodes}; {red} red now"


def body(
    site: str, told: Sequence[NightChange], red: Mapping[str, LegState], tonight: Night
) -> str:
    """Return the text of a notice: the changes, what is red now, what to run next."""
    groups = told_together(told)
    lines = [f"{each[0].kind.value:<12}{words_of(each)}" for each in groups[:LINES_TOLD]]
    if left := sum(map(len, groups[LINES_TOLD:])):
        lines.append(f"and {left} more changes")
    lines += ["", "Red now:" if red else "Nothing is red now."]
    states = by_key((_red(state), key) for key, state in sorted(red.items()))
    shown = list(states.items())
    lines += [f"  {labels_of(keys)}: {words}" for words, keys in shown[:LINES_TOLD]]
    if left := sum(len(keys) for _, keys in shown[LINES_TOLD:]):
        lines.append(f"  and {left} more")
    if flutters := sum(state.flutter for state in tonight.legs.values()):
        lines.append(f"{flutters} red at first and green when looked at again (flutters).")
    lines += ["", f"night {tonight.night}, {tonight.ended.value}; run {tonight.run_id or '-'}"]
    if tonight.run_id:
        lines.append(f"next: fabricproof report {tonight.run_id} {site_option(site)}")
    return "\n".join(lines)


def labels_of(keys: Iterable[str]) -> str:
    """Return legs of which the same is said, for a person; of many the first are named."""
    return first_few([LegKey.of(each).label for each in keys], LEGS_NAMED, " legs")


def told_together(told: Iterable[NightChange]) -> list[list[NightChange]]:
    """Return the changes, those together of which the same is said."""
    return list(by_key(((each.kind, each.sentence), each) for each in told).values())


def words_of(group: Sequence[NightChange]) -> str:
    """Return what is said of changes that are told together, with their legs."""
    keys = [each.leg for each in group if each.leg]
    return ": ".join(filter(None, (labels_of(keys), group[0].sentence)))


def _red(state: LegState) -> str:
    blamed = f"{','.join(state.blamed)} {state.net_path}: " if state.blamed else ""
    return f"{blamed}{state.verdict} {state.sentence}".rstrip()
