"""What is worth telling somebody after a night: changes of state, and nothing else; pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.core.project import site_option
from fabricproof.core.provenance import LegKey
from fabricproof.core.units import by_key
from fabricproof.nightly.confirm import labels_of
from fabricproof.nightly.state import LegColour, LegState, Night, NightEnd, Nights

#: lines of a notice on changes, and on what is red; the rest are counted
LINES_TOLD = 20


class ChangeKind(StrEnum):
    """What changed."""

    RED = "RED"
    GREEN = "GREEN"
    BLAME = "OTHER NODES"
    UNJUDGED = "UNJUDGED"
    NIGHT = "NIGHT"


@dataclass(frozen=True, kw_only=True)
class NightChange:
    """One change of state; ``key`` is None for the night itself."""

    kind: ChangeKind
    sentence: str
    key: LegKey | None = None
    blamed: tuple[str, ...] = ()
    net_path: str = ""


def changes(history: Nights, tonight: Night, *, max_gap_hours: float) -> tuple[NightChange, ...]:
    """Return what ``tonight`` changed against the nights before it."""
    before = history.legs()
    found = list(_night_changes(history, tonight, max_gap_hours))
    for key, state in sorted(history.counting(tonight).items()):
        change = _leg_change(key, before.get(key), state)
        if change is not None:
            found.append(change)
    return tuple(sorted(found, key=lambda each: _ORDER[each.kind]))


_ORDER = {
    ChangeKind.RED: 0,
    ChangeKind.BLAME: 1,
    ChangeKind.NIGHT: 2,
    ChangeKind.UNJUDGED: 3,
    ChangeKind.GREEN: 4,
}


def _leg_change(key: LegKey, before: LegState | None, now: LegState) -> NightChange | None:
    was = before.colour if before else None
    change = NightChange(
        kind=ChangeKind.RED,
        sentence=now.sentence,
        key=key,
        blamed=now.blamed,
        net_path=now.net_path,
    )
    if now.colour is LegColour.RED:
        if before is None or was is not LegColour.RED:
            return change
        if now.blamed and set(now.blamed) != set(before.blamed):
            said = f"{now.sentence} (before: {','.join(before.blamed) or 'not told apart'})"
            return NightChange(
                kind=ChangeKind.BLAME,
                sentence=said,
                key=key,
                blamed=now.blamed,
                net_path=now.net_path,
            )
        return None
    if now.colour is LegColour.UNJUDGED:
        judged = was in {LegColour.GREEN, LegColour.RED}
        return (
            NightChange(kind=ChangeKind.UNJUDGED, sentence=now.sentence, key=key)
            if judged
            else None
        )
    if was is not LegColour.RED:
        return None
    assert before is not None, "it was red"
    how = "no longer in the run" if now.colour is LegColour.GONE else "green again"
    flutter = ", though red at first tonight" if now.flutter else ""
    return NightChange(
        kind=ChangeKind.GREEN, sentence=f"{how}{flutter}", key=key, blamed=before.blamed
    )


def _night_changes(history: Nights, tonight: Night, max_gap_hours: float) -> Iterator[NightChange]:
    """Yield what changed between nights; a run handed over is none, and hides no silence."""
    if not tonight.is_own:
        return
    own = [each for each in history.nights if each.is_own]
    last = own[-1] if own else None
    if last is not None and last.ended is NightEnd.LOST:
        yield NightChange(
            kind=ChangeKind.NIGHT, sentence=f"the night before was lost: {last.reason}"
        )
    if last is not None:
        gap = tonight.time - last.time
        if gap > datetime.timedelta(hours=max_gap_hours):
            hours = gap.total_seconds() / 3600
            yield NightChange(
                kind=ChangeKind.NIGHT,
                sentence=f"no night ran for {hours:.0f} hours, "
                f"since {last.time:%Y-%m-%d %H:%M} UTC",
            )
    was = last.ended if last is not None else NightEnd.WHOLE
    if tonight.ended is was:
        return
    if tonight.ended is not NightEnd.WHOLE:
        yield NightChange(
            kind=ChangeKind.NIGHT, sentence=f"{tonight.ended.value}: {tonight.reason}"
        )
    elif was is not NightEnd.LOST:
        yield NightChange(kind=ChangeKind.NIGHT, sentence=f"whole again (before: {was.value})")


def subject(site: str, told: Sequence[NightChange], red: int) -> str:
    """Return one line: what changed, how much is red now, which nodes."""
    counts = {
        kind: count for kind in ChangeKind if (count := sum(each.kind is kind for each in told))
    }
    words = ", ".join(_counted(kind, count) for kind, count in counts.items())
    guilty = sorted(
        {
            " ".join(filter(None, (",".join(each.blamed), each.net_path)))
            for each in told
            if each.blamed and each.kind is not ChangeKind.GREEN
        }
    )
    nodes = f" ({', '.join(guilty[:4])}{' ...' if len(guilty) > 4 else ''})" if guilty else ""
    return f"fabricproof {site}: {words or 'nothing changed'}{nodes}; {red} red now"


def _counted(kind: ChangeKind, count: int) -> str:
    match kind:
        case ChangeKind.RED:
            return f"{count} leg{'s' * (count > 1)} turned RED"
        case ChangeKind.GREEN:
            return f"{count} green again"
        case ChangeKind.BLAME:
            return f"{count} red on other nodes"
        case ChangeKind.UNJUDGED:
            return f"{count} no longer judged"
        case ChangeKind.NIGHT:
            return "the night itself"


def body(
    site: str, told: Sequence[NightChange], red: Mapping[str, LegState], tonight: Night
) -> str:
    """Return the text of a notice: the changes, what is red now, what to run next."""
    groups = told_together(told)
    lines = [f"{each[0].kind.value:<12}{words_of(each)}" for each in groups[:LINES_TOLD]]
    if left := sum(map(len, groups[LINES_TOLD:])):
        lines.append(f"and {left} more changes")
    lines.append("")
    lines += ["Red now:"] if red else ["Nothing is red now."]
    states = by_key((_red(state), LegKey.of(key)) for key, state in sorted(red.items()))
    shown = list(states.items())
    lines += [f"  {labels_of(keys)}: {words}" for words, keys in shown[:LINES_TOLD]]
    if left := sum(len(keys) for _, keys in shown[LINES_TOLD:]):
        lines.append(f"  and {left} more")
    flutters = sum(state.flutter for state in tonight.legs.values())
    if flutters:
        lines.append(f"{flutters} red at first and green when looked at again (flutters).")
    lines += ["", f"night {tonight.night}, {tonight.ended.value}; run {tonight.run_id or '-'}"]
    if tonight.run_id:
        lines.append(f"next: fabricproof report {tonight.run_id} {site_option(site)}")
    return "\n".join(lines)


def told_together(told: Iterable[NightChange]) -> list[list[NightChange]]:
    """Return the changes, those together of which the same is said."""
    return list(by_key(((each.kind, each.sentence), each) for each in told).values())


def words_of(group: Sequence[NightChange]) -> str:
    """Return what is said of changes that are told together, with their legs."""
    keys = [each.key for each in group if each.key]
    return ": ".join(filter(None, (labels_of(keys), group[0].sentence)))


def _red(state: LegState) -> str:
    blamed = f"{','.join(state.blamed)} {state.net_path}: " if state.blamed else ""
    return f"{blamed}{state.verdict} {state.sentence}".rstrip()


def red_of(history: Nights) -> dict[str, LegState]:
    """Return what is red after the last night, by the text of its key."""
    states = sorted(history.legs().items())
    return {str(key): state for key, state in states if state.colour is LegColour.RED}
