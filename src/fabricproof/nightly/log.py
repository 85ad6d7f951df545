"""The log of a site's nights, only ever appended to, and what follows from its events.

``.night/events.jsonl`` of a site has four kinds of event: a night ``began``, a ``night`` ended,
there is a ``notice`` to tell, and a notice was ``told``.  What a night has to tell is part of the
event that ends it, so that no kill comes between the two.  Everything else is computed from the
events (:func:`fold`): a night that is killed leaves a shorter log, and the next one goes on from
it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from fabricproof.core.errors import ParseError, words_of
from fabricproof.core.measure import Verdict
from fabricproof.core.plain import plain, typed
from fabricproof.core.provenance import LegKey
from fabricproof.core.records import append_records, may_exist, read_records
from fabricproof.core.units import TIME_FORM
from fabricproof.job.run import RunResult
from fabricproof.nightly.confirm import FLUTTERED, RED, Confirmation, mildest_first

FOLDER = ".night"
LOG_FILE = "events.jsonl"

#: nights in which an old notice is tried again; after a week nobody wants it
NIGHTS_TRIED = 7

#: the beginning of a run's identity: when it began
_BEGUN = re.compile(r"\d{8}T\d{6}Z")


class NightEnd(StrEnum):
    """How a night ended."""

    WHOLE = "whole"
    EARLY = "ended early"
    NO_SCHEDULER = "no scheduler"
    FAILED = "failed"
    LOST = "lost"
    """It began, and nothing says how it ended: killed, power cut."""


class LegColour(StrEnum):
    """State of a leg."""

    RED = "red"
    GREEN = "green"
    UNJUDGED = "unjudged"
    GONE = "gone"
    """Of the same selection, but no longer there."""
    UNKNOWN = "unknown"
    """No night saw it before."""


@dataclass(frozen=True, kw_only=True)
class LegState:
    """A leg after a night.

    Attributes:
        verdict: of the leg; the one that the run gave it if it fluttered.
        sentence: why; empty for a plain green.
        flutter: it was red once and green when looked at again.
    """

    colour: LegColour
    verdict: str = ""
    blamed: tuple[str, ...] = ()
    net_path: str = ""
    sentence: str = ""
    flutter: bool = False


@dataclass(frozen=True, kw_only=True)
class Notice:
    """What is to be told, on which channels: ``mail``, ``webhook``."""

    name: str
    subject: str
    text: str
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Told:
    """What became of a notice on one channel."""

    notice: str
    channel: str
    sent: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Began:
    """A night begins."""

    night: str
    time: str
    host: str
    pid: int


@dataclass(frozen=True, kw_only=True)
class Night:
    """One night that ended.

    Attributes:
        legs: the state of each leg that it saw, by the text of its key.
        arguments: ReFrame's, of its own run; none if a run that was made before was handed to it.
        notice: what it has to tell.
    """

    night: str
    time: str
    ended: NightEnd
    reason: str = ""
    run_id: str = ""
    arguments: tuple[str, ...] = ()
    legs: Mapping[str, LegState] = field(default_factory=dict)
    notice: Notice | None = None

    @property
    def at(self) -> datetime.datetime:
        """When it ended."""
        return datetime.datetime.strptime(self.time, TIME_FORM).replace(tzinfo=datetime.UTC)

    @property
    def is_own(self) -> bool:
        """It made a run of its own, or tried to."""
        return bool(self.arguments) or self.ended is NightEnd.LOST

    def looks_back(self, run_id: str) -> bool:
        """Tell whether it was handed a run that is older than ``run_id``.

        A night's own run is never older, whatever the clock said when the other one began.
        """
        mine, other = _BEGUN.match(self.run_id), _BEGUN.match(run_id)
        return not self.is_own and bool(mine and other and mine[0] < other[0])


Event = Began | Night | Notice | Told
_KINDS: Mapping[str, type[Event]] = {
    "began": Began,
    "night": Night,
    "notice": Notice,
    "told": Told,
}


@dataclass(kw_only=True)
class NightState:
    """What is known after some events.

    Attributes:
        nights: by their names, oldest first; one without its end is LOST.
        waiting: notices that were not told yet, by channel and name, with the tries so far.
        sent: names of the notices that somebody was told.
    """

    nights: dict[str, Night] = field(default_factory=dict)
    waiting: dict[tuple[str, str], tuple[Notice, int]] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)

    @property
    def own(self) -> list[Night]:
        """Nights that made a run of their own; one handed over hides no silence."""
        return [each for each in self.nights.values() if each.is_own]

    def resting(self) -> dict[str, tuple[str, LegState]]:
        """Return the state of each leg after the last night that saw it, and the run of that.

        A run older than the one that a state rests on, handed over by its identity, changes none.
        """
        found: dict[str, tuple[str, LegState]] = {}
        for night in self.nights.values():
            for key, leg in night.legs.items():
                if key not in found or not night.looks_back(found[key][0]):
                    found[key] = (night.run_id, leg)
        return found

    def red(self) -> dict[str, LegState]:
        """Return what is red after the last night, sorted by key."""
        states = sorted(self.resting().items())
        return {key: leg for key, (_, leg) in states if leg.colour is LegColour.RED}

    def evidence(self) -> frozenset[str]:
        """Return the runs in which one of the legs that are still red was red."""
        red = self.red()
        return frozenset(
            night.run_id
            for night in self.nights.values()
            for key, leg in night.legs.items()
            if leg.colour is LegColour.RED and key in red
        )

    def flutters(self, nights: int, run_id: str) -> dict[str, int]:
        """Return in how many of the last nights before this one each leg fluttered.

        Args:
            nights: how many count, this one included.
            run_id: the run of this night, which does not count twice if it is looked at twice.
        """
        seen = [each for each in self.nights.values() if each.legs and each.run_id != run_id]
        found: dict[str, set[str]] = {}
        for night in seen[max(0, len(seen) - (nights - 1)) :]:
            for key, leg in night.legs.items():
                if leg.flutter:
                    found.setdefault(key, set()).add(night.run_id)
        return {key: len(runs) for key, runs in found.items()}


def fold(events: Iterable[Event], before: NightState | None = None) -> NightState:
    """Return what is known after ``events``, oldest first, and after all that was before them."""
    before = before or NightState()
    state = NightState(nights={**before.nights}, waiting={**before.waiting}, sent={*before.sent})
    for event in events:
        match event:
            case Began(night=name, time=time):
                reason = f"it began {time} on {event.host} and nothing says how it ended"
                state.nights[name] = Night(
                    night=name, time=time, ended=NightEnd.LOST, reason=reason
                )
            case Night():
                state.nights[event.night] = event
                _to_tell(state, event.notice)
            case Notice():
                _to_tell(state, event)
            case Told(notice=name, channel=channel, sent=sent):
                notice, tries = state.waiting.pop((channel, name), (None, 0))
                if sent:
                    state.sent.add(name)
                elif notice is not None and tries + 1 < NIGHTS_TRIED:
                    state.waiting[channel, name] = (notice, tries + 1)
    return state


def _to_tell(state: NightState, notice: Notice | None) -> None:
    if notice is not None:
        state.waiting |= {(channel, notice.name): (notice, 0) for channel in notice.channels}


def now() -> datetime.datetime:
    """Return the time, in UTC and whole seconds."""
    return datetime.datetime.now(tz=datetime.UTC).replace(microsecond=0)


def log_file(perflogs: Path, site: str) -> Path:
    """Return where the log of ``site`` is kept."""
    return perflogs / site / FOLDER / LOG_FILE


def append(path: Path, *events: Event) -> None:
    """Append events to the log: all of them or, with an OutputError, none."""
    names = {kind: name for name, kind in _KINDS.items()}
    append_records(path, [{"kind": names[type(each)], **plain(each)} for each in events])


def read_log(path: Path, on_torn: Callable[[str], object] | None = None) -> NightState:
    """Return what follows from a log; nothing is known if there is none.

    Raises:
        ParseError: a line is no event and was not torn by a crash.
    """
    events: list[Event] = []
    lines = read_records(path, on_torn=on_torn) if may_exist(path) else ()
    for number, line in enumerate(lines, start=1):
        try:
            fields = {name: each for name, each in line.items() if name not in {"format", "kind"}}
            event = typed(_KINDS[line["kind"]], fields)
            if isinstance(event, Night):
                assert event.at
                [LegKey.of(key) for key in event.legs]
            events.append(event)
        except (KeyError, TypeError, ValueError) as error:
            raise ParseError(
                f"damaged log of the nights: {words_of(error)}",
                source=str(path),
                line=number,
                expected="a line that fabricproof nightly wrote",
                next_step="move the file away: the next night begins a new one",
            ) from None
    return fold(events)


def states_of(
    result: RunResult, confirmations: Sequence[Confirmation], *, whole: bool
) -> dict[str, LegState]:
    """Return the state of each leg of a run that was confirmed and settled.

    Of a run that did not come to its end, what is MISSING says nothing: it was not come to.  What
    doubts the whole run is no leg: the run's verdict says it.
    """
    found = {each.red.key: each for each in mildest_first(confirmations)}
    colours = dict.fromkeys(RED, LegColour.RED)
    colours |= {Verdict.PASS: LegColour.GREEN, Verdict.UNJUDGED: LegColour.UNJUDGED}
    states: dict[str, LegState] = {}
    for leg in result.legs:
        unseen = not whole and leg.verdict is Verdict.MISSING
        if leg.verdict not in colours or unseen or leg.doubts_run:
            continue
        key, mine = str(leg.key), found.get(leg.key)
        flutter = mine is not None and mine.finding in FLUTTERED
        state = LegState(
            colour=colours[leg.verdict],
            verdict=(mine.red.verdict if mine and flutter else leg.verdict).value,
            blamed=mine.blamed if mine else (),
            net_path=mine.red.net_path if mine else "",
            sentence=mine.sentence if mine else leg.reason,
            flutter=flutter,
        )
        if key not in states or state.colour is LegColour.RED:
            states[key] = state
    return states


def gone(
    state: NightState, arguments: Sequence[str], legs: Iterable[str], skipped: Iterable[LegKey]
) -> dict[str, LegState]:
    """Return the red legs of the same selection that a whole night did not have any more.

    A check that left no leg is named without one; once it has legs again it is green or red by
    them.  What was taken from the list of required checks, or built again, is not red for ever.
    Of a check that left no leg tonight, whose build failed or which was skipped, nothing is gone:
    it measured nothing.  If it measured something, what else of it was skipped holds nothing.

    ``arguments``: of the night; what another selection had is not missed.
    """
    seen = {LegKey.of(each) for each in legs}
    seen |= {*skipped} - {replace(key, leg="") for key in seen if key.leg}
    same = {
        key
        for night in state.nights.values()
        if night.arguments == tuple(arguments)
        for key, leg in night.legs.items()
        if leg.colour is LegColour.RED
    }
    return {
        text: LegState(colour=LegColour.GONE, sentence="no longer in the run")
        for text in state.red()
        if text in same
        and (key := LegKey.of(text)) not in seen
        and replace(key, leg="") not in seen
    }
