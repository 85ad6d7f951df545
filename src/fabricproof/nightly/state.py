"""What each leg was after each night: ``night/state.jsonl`` of a site, only ever appended to.

Three kinds of line.  ``began`` and ``night`` are the two ends of a night: a beginning without its
end is a night that was lost.  ``notice`` says what was told to whom, and whether it arrived.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ParseError, words_of
from fabricproof.core.measure import Verdict
from fabricproof.core.plain import typed_at
from fabricproof.core.provenance import LegKey
from fabricproof.core.records import (
    append_records,
    may_exist,
    read_records,
)
from fabricproof.core.units import TIME_FORM, stamp
from fabricproof.job.run import RunResult
from fabricproof.nightly.confirm import FLUTTERED, RED, Confirmation, mildest_first

FOLDER = ".night"
STATE_FILE = "state.jsonl"

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


@dataclass(frozen=True, kw_only=True)
class LegState:
    """A leg after a night.

    Attributes:
        verdict: of the leg; the one that the run gave it where it fluttered.
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
class Night:
    """One night, as the state file has it."""

    night: str
    time: datetime.datetime
    ended: NightEnd
    reason: str = ""
    run_id: str = ""
    arguments: tuple[str, ...] = ()
    legs: Mapping[LegKey, LegState] = field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        """It made a run of its own, or tried to: none that was made before was handed to it."""
        return bool(self.arguments) or self.ended is NightEnd.LOST

    def looks_back(self, run_id: str) -> bool:
        """Tell whether it was handed a run that is older than ``run_id``.

        A night's own run is never older, whatever the clock said when the other one began.
        """
        if self.is_own:
            return False
        mine, other = _BEGUN.match(self.run_id), _BEGUN.match(run_id)
        return mine is not None and other is not None and mine[0] < other[0]


@dataclass(frozen=True, kw_only=True)
class Nights:
    """All nights of a site, oldest first, and what was told of them."""

    nights: tuple[Night, ...]
    notices: tuple[Mapping[str, Any], ...]

    def legs(self) -> dict[LegKey, LegState]:
        """Return the state of each leg after the last night that saw it.

        A run older than the one that a state rests on, handed over by its identity, changes none.
        """
        return {key: state for key, (_, state) in self._resting().items()}

    def counting(self, tonight: Night) -> dict[LegKey, LegState]:
        """Return the legs of a night that is not in the history whose state it tells anew."""
        resting = self._resting()
        return {
            key: state
            for key, state in tonight.legs.items()
            if key not in resting or not tonight.looks_back(resting[key][0])
        }

    def _resting(self) -> dict[LegKey, tuple[str, LegState]]:
        found: dict[LegKey, tuple[str, LegState]] = {}
        for night in self.nights:
            for key, state in night.legs.items():
                if key not in found or not night.looks_back(found[key][0]):
                    found[key] = (night.run_id, state)
        return found

    def evidence(self, red: Iterable[str]) -> frozenset[str]:
        """Return the runs in which one of the legs ``red``, still red now, was red."""
        wanted = set(red)
        return frozenset(
            night.run_id
            for night in self.nights
            for key, state in night.legs.items()
            if state.colour is LegColour.RED and str(key) in wanted
        )

    def flutters(self, nights: int, run_id: str) -> dict[LegKey, int]:
        """Return in how many of the last nights before this one each leg fluttered.

        Args:
            nights: how many count, this one included.
            run_id: the run of this night, which does not count twice where it is looked at twice.
        """
        counted = [each for each in self.nights if each.legs and each.run_id != run_id]
        found: dict[LegKey, set[str]] = {}
        for night in counted[max(0, len(counted) - (nights - 1)) :]:
            for key, state in night.legs.items():
                if state.flutter:
                    found.setdefault(key, set()).add(night.run_id)
        return {key: len(runs) for key, runs in found.items()}


def now() -> datetime.datetime:
    """Return the time, in UTC and whole seconds."""
    return datetime.datetime.now(tz=datetime.UTC).replace(microsecond=0)


def state_file(perflogs: Path, site: str) -> Path:
    """Return where the state of ``site`` is kept."""
    return perflogs / site / FOLDER / STATE_FILE


def read_history(path: Path, on_torn: Callable[[str], object] | None = None) -> Nights:
    """Return what the state file says; nothing where there is none."""
    if not may_exist(path):
        return Nights(nights=(), notices=())
    begun: dict[str, Night] = {}
    notices = []
    for number, line in enumerate(read_records(path, on_torn=on_torn), start=1):
        try:
            if line["kind"] == "notice":
                for name, kind in _NOTICE.items():
                    typed_at(line, name, kind)
                notices.append(line)
            else:
                night = _read_night(line)
                begun[night.night] = night
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ParseError(
                f"damaged state of the nights: {words_of(error)}",
                source=str(path),
                line=number,
                expected="a line that fabricproof nightly wrote",
                next_step="move the file away: the next night begins a new one",
            ) from None
    return Nights(nights=tuple(begun.values()), notices=tuple(notices))


#: what a line on a notice must hold, each of which kind
_NOTICE = {
    "notice": str,
    "subject": str,
    "text": str,
    "tries": int,
    "channel": str,
    "sent": bool,
}


def _read_night(line: Mapping[str, Any]) -> Night:
    """Return a night; what came to no leg of a run that was handed to it no night would mend."""
    time = datetime.datetime.strptime(line["time"], TIME_FORM).replace(tzinfo=datetime.UTC)
    name = typed_at(line, "night", str)
    if line["kind"] == "began":
        reason = f"it began {line['time']} on {line['host']} and nothing says how it ended"
        return Night(night=name, time=time, ended=NightEnd.LOST, reason=reason)
    return Night(
        night=name,
        time=time,
        ended=NightEnd(line["ended"]),
        reason=typed_at(line, "reason", str),
        run_id=typed_at(line, "run_id", str),
        arguments=typed_at(line, "arguments", tuple[str, ...]),
        legs={
            key: _read_state(each)
            for key, each in (
                (LegKey.of(text), each) for text, each in typed_at(line, "legs", dict).items()
            )
            if key.partition or line["arguments"]
        },
    )


def _read_state(line: Mapping[str, Any]) -> LegState:
    return LegState(
        colour=LegColour(line["state"]),
        verdict=typed_at(line, "verdict", str),
        blamed=typed_at(line, "blamed", tuple[str, ...]),
        net_path=typed_at(line, "road", str),
        sentence=typed_at(line, "sentence", str),
        flutter=typed_at(line, "flutter", bool),
    )


def append_began(path: Path, night: str, *, host: str, pid: int) -> None:
    """Write that a night begins."""
    time = stamp(now())
    began = {"kind": "began", "night": night, "time": time, "host": host, "pid": pid}
    append_records(path, [began])


def append_night(path: Path, night: Night, *, before: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write how a night ended.

    ``before``: lines that must be there where the night's is: what is to be told of it.
    """
    append_records(
        path,
        [
            *before,
            {
                "kind": "night",
                "night": night.night,
                "time": stamp(night.time),
                "ended": night.ended.value,
                "reason": night.reason,
                "run_id": night.run_id,
                "arguments": list(night.arguments),
                "legs": {
                    str(key): {
                        "state": each.colour.value,
                        "verdict": each.verdict,
                        "blamed": list(each.blamed),
                        "road": each.net_path,
                        "sentence": each.sentence,
                        "flutter": each.flutter,
                    }
                    for key, each in night.legs.items()
                },
            },
        ],
    )


def states_of(
    result: RunResult, confirmations: Sequence[Confirmation], *, whole: bool
) -> dict[LegKey, LegState]:
    """Return the state of each leg of a run that was confirmed and settled.

    Of a run that did not come to its end, what is MISSING says nothing: it was not come to.  What
    doubts the whole run is no leg: the run's verdict says it.
    """
    found = {each.red.key: each for each in mildest_first(confirmations)}
    states: dict[LegKey, LegState] = {}
    for leg in result.legs:
        colour = _colour(leg.verdict)
        unseen = not whole and leg.verdict is Verdict.MISSING
        if colour is None or unseen or leg.doubts_run:
            continue
        key = leg.key
        mine = found.get(key)
        flutter = mine is not None and mine.finding in FLUTTERED
        state = LegState(
            colour=colour,
            verdict=(mine.red.verdict if mine and flutter else leg.verdict).value,
            blamed=mine.blamed if mine else (),
            net_path=mine.red.net_path if mine else "",
            sentence=mine.sentence if mine else leg.reason,
            flutter=flutter,
        )
        if key not in states or state.colour is LegColour.RED:
            states[key] = state
    return states


def _colour(verdict: Verdict) -> LegColour | None:
    if verdict in RED:
        return LegColour.RED
    return {Verdict.PASS: LegColour.GREEN, Verdict.UNJUDGED: LegColour.UNJUDGED}.get(verdict)


def gone(
    history: Nights,
    arguments: Sequence[str],
    legs: Iterable[LegKey],
    skipped: Iterable[LegKey],
) -> dict[LegKey, LegState]:
    """Return the red legs of the same selection that a whole night did not have any more.

    A check that left no leg is named without one; once it has legs again it is green or red by
    them.  What was taken from the list of required checks, or built again, is not red for ever.
    Of a check that left no leg tonight, whose build failed or which was skipped, nothing is gone:
    it measured nothing.  Where it measured something, what else of it was skipped holds nothing.

    ``arguments``: of the night; what another selection had is not missed.
    """
    seen, skipped = {*legs}, {*skipped}
    seen |= skipped - {replace(key, leg="") for key in seen if key.leg}
    same = {
        key
        for night in history.nights
        if night.arguments == tuple(arguments)
        for key, state in night.legs.items()
        if state.colour is LegColour.RED
    }
    return {
        key: LegState(colour=LegColour.GONE, sentence="no longer in the run")
        for key, state in history.legs().items()
        if state.colour is LegColour.RED
        and key in same
        and key not in seen
        and replace(key, leg="") not in seen
    }
