"""The course of one night from its beginning to its line in the state file.

Whatever happens, the night says how it ended, keeps what it has, and tells of it: a scheduler that
is down, a full disk, an interrupt are states of the night, never of the network.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricproof.core.errors import ExitStatus, FabricproofError, OutputError
from fabricproof.core.measure import Verdict
from fabricproof.core.project import site_option
from fabricproof.core.records import append_records
from fabricproof.history.store import set_label
from fabricproof.job.run import RunResult
from fabricproof.nightly.changes import NightChange, body, changes, subject
from fabricproof.nightly.conduct import (
    Budget,
    Confirmed,
    Confirmer,
    Runner,
    keep,
    started,
)
from fabricproof.nightly.confirm import Confirmation
from fabricproof.nightly.looks import settled, with_flutters
from fabricproof.nightly.notify import Delivery, Notice, deliver, pending, unsent
from fabricproof.nightly.state import (
    LegColour,
    LegState,
    Night,
    NightEnd,
    Nights,
    append_began,
    append_night,
    gone,
    now,
    read_history,
    state_file,
    states_of,
)
from fabricproof.site import Site

#: label that the runs of nights get
LABEL = "night"


@dataclass(frozen=True, kw_only=True)
class NightMeans:
    """What a night is conducted with.

    Attributes:
        arguments: ReFrame's, of the run; none where it was made before: nobody knows then what
            is no longer in it.
        run: makes a look, which has its label before it begins.
        first: the run of the night itself, or what was made before.
        usable: nodes of a partition that may run a job now.
        confirm: look again at what is red or left open.
    """

    site: Site
    perflogs: Path
    night: str
    arguments: tuple[str, ...]
    run: Runner
    first: Callable[[], RunResult]
    usable: Callable[[str], tuple[str, ...]]
    say: Callable[[str], object]
    confirm: bool = True
    notify: bool = True

    @property
    def state_path(self) -> Path:
        """The site's state file."""
        return state_file(self.perflogs, self.site.name)


@dataclass(frozen=True, kw_only=True)
class NightOutcome:
    """What a night came to.

    Attributes:
        red: everything that is red now, of this night and of earlier ones.
        status: exit status where it is no verdict's; None where the verdict's.
    """

    night: Night
    site: str = ""
    first: RunResult | None = None
    result: RunResult | None = None
    confirmations: tuple[Confirmation, ...] = ()
    changes: tuple[NightChange, ...] = ()
    red: dict[str, LegState] = field(default_factory=dict)
    deliveries: tuple[Delivery, ...] = ()
    status: int | None = None
    notes: tuple[str, ...] = ()


def spend(means: NightMeans) -> NightOutcome:
    """Spend a night: run, confirm, keep, compare with before, tell.

    The caller holds the lock.

    Raises:
        OutputError: the beginning cannot be written; nothing was started.
    """
    notes: list[str] = []
    history = read_history(means.state_path, on_torn=notes.append)
    append_began(means.state_path, means.night, host=socket.gethostname(), pid=os.getpid())
    ran = started(means.first)
    ended = _end_of(ran)
    confirmed = (
        _confirm(means, ran, history) if ended is NightEnd.WHOLE else Confirmed(confirmations=())
    )
    reason, status = ran.stopped, ran.status
    if confirmed.ended is not None:
        ended, status = _end_of(confirmed.ended), confirmed.ended.status
        reason = f"while confirming: {confirmed.ended.stopped}"
    outcome = _outcome(means, ran, (ended, reason), confirmed, history, notes)
    early = None if ended is NightEnd.WHOLE else int(status or ExitStatus.SOFTWARE)
    outcome = replace(outcome, status=early)
    notice = _notice(means, outcome) if means.notify else None
    outcome = _kept(means, outcome, notice)
    return _told(means, outcome, history, notice)


def _end_of(ran: RunResult) -> NightEnd:
    if not ran.stopped:
        return NightEnd.WHOLE
    ends = {
        int(ExitStatus.UNAVAILABLE): NightEnd.NO_SCHEDULER,
        int(ExitStatus.INTERRUPTED): NightEnd.EARLY,
    }
    return NightEnd.FAILED if ran.refused else ends.get(int(ran.status), NightEnd.FAILED)


def _confirm(means: NightMeans, ran: RunResult, history: Nights) -> Confirmed:
    if not means.confirm:
        return Confirmed(confirmations=())
    spec = means.site.night
    confirmer = Confirmer(means.site.name, means.run, means.usable, Budget.of(spec), means.say)
    try:
        found = confirmer.confirm(ran)
    except KeyboardInterrupt:
        early = int(ExitStatus.INTERRUPTED)
        ended = RunResult(run_id="", stopped="interrupted", status=early)
        return Confirmed(confirmations=(), ended=ended)
    before = history.flutters(spec.flutter_nights, ran.run_id)
    counted = with_flutters(found.confirmations, before, spec.flutter_nights)
    return replace(found, confirmations=counted)


def _outcome(
    means: NightMeans,
    ran: RunResult,
    how: tuple[NightEnd, str],
    confirmed: Confirmed,
    history: Nights,
    notes: Sequence[str],
) -> NightOutcome:
    result = None if ran.left_nothing else settled(ran, confirmed.confirmations)
    legs = {}
    if result is not None:
        # A run that came to its end is whole, even where confirming it did not.
        legs = states_of(result, confirmed.confirmations, whole=not ran.stopped)
        if not ran.stopped and means.arguments:
            skipped = (leg.key for leg in result.legs if leg.verdict is Verdict.SKIPPED)
            legs |= gone(history, means.arguments, legs, skipped)
    ended, reason = how
    night = Night(
        night=means.night,
        time=now(),
        ended=ended,
        reason=reason,
        run_id=result.run_id if result else "",
        arguments=means.arguments,
        legs=legs,
    )
    states = {**history.legs(), **history.counting(night)}
    return NightOutcome(
        night=night,
        site=means.site.name,
        first=None if ran.left_nothing else ran,
        result=result,
        confirmations=confirmed.confirmations,
        changes=changes(history, night, max_gap_hours=means.site.night.max_gap_hours),
        red={
            str(key): state
            for key, state in sorted(states.items())
            if state.colour is LegColour.RED
        },
        notes=(*notes, *_kept_from_newer(history, night)),
    )


def _kept_from_newer(history: Nights, night: Night) -> Iterator[str]:
    """Say where the run was too old to change a state."""
    count = len(night.legs) - len(history.counting(night))
    if count:
        yield (
            f"run {night.run_id} is older than what is known of {count} of its "
            f"{len(night.legs)} legs: they keep their state"
        )


def _kept(means: NightMeans, outcome: NightOutcome, notice: Notice | None) -> NightOutcome:
    """Write confirmations, label and state; what cannot be written is said, and the status.

    With the state, and before it, goes what is to be told: a state that is known is no change to
    the next night, which would tell nobody.
    """
    told = pending(means.site.night, notice)
    steps: list[Callable[[], object]] = [
        lambda: keep(means.perflogs, means.site.name, outcome.confirmations, means.night),
        lambda: append_night(means.state_path, outcome.night, before=told),
        lambda: _label(means, outcome.night.run_id),
    ]
    troubles = list(_troubles(steps))
    if not troubles:
        return outcome
    notes = (*outcome.notes, *(str(each) for each in troubles))
    return replace(outcome, notes=notes, status=outcome.status or int(ExitStatus.IO))


def _label(means: NightMeans, run_id: str) -> None:
    if run_id:
        set_label(means.perflogs, means.site.name, [run_id], LABEL)


def _troubles(steps: Sequence[Callable[[], object]]) -> Iterator[FabricproofError]:
    for step in steps:
        try:
            step()
        except FabricproofError as error:
            yield error


def _told(
    means: NightMeans, outcome: NightOutcome, history: Nights, notice: Notice | None
) -> NightOutcome:
    """Tell what changed and what could not be told before; keep what became of it."""
    if not means.notify:
        return outcome
    deliveries = deliver(means.site.night, notice, unsent(history.notices))
    return replace(outcome, deliveries=deliveries, notes=(*outcome.notes, *_log(means, deliveries)))


def _notice(means: NightMeans, outcome: NightOutcome) -> Notice | None:
    site = means.site.name
    if not outcome.changes:
        return None
    return Notice(
        name=means.night,
        subject=subject(site, outcome.changes, len(outcome.red)),
        text=body(site, outcome.changes, outcome.red, outcome.night),
    )


def _log(means: NightMeans, deliveries: Sequence[Delivery]) -> Iterator[str]:
    lines = [each.record() for each in deliveries]
    try:
        append_records(means.state_path, lines)
    except OutputError as error:
        yield f"what was told is not kept, it may be told again: {error}"


def alive(site: Site, perflogs: Path, *, notify: bool) -> tuple[str, tuple[Delivery, ...]]:
    """Return why the nights of ``site`` are not well, empty where they are; tell it once.

    For a second timer, best on another machine: a timer that is dead cannot say so itself.
    """
    path = state_file(perflogs, site.name)
    history = read_history(path)
    why, since = _why_not_alive(history, site.night.max_gap_hours)
    name = f"silent-{since}"
    told = any(line["notice"] == name and line["sent"] for line in history.notices)
    if not why or not notify or told:
        return why, ()
    notice = Notice(
        name=name,
        subject=f"fabricproof {site.name}: no night was whole",
        text=f"{why}\nnext: look at the timer, then: fabricproof nightly {site_option(site.name)}",
    )
    deliveries = deliver(site.night, notice, ())
    with contextlib.suppress(OutputError):
        append_records(path, [each.record() for each in deliveries])
    return why, deliveries


def _why_not_alive(history: Nights, max_gap_hours: float) -> tuple[str, str]:
    """Return why, and the night since which; only a whole night that made its own run is a life."""
    own = [each for each in history.nights if each.is_own]
    whole = [each for each in own if each.ended is NightEnd.WHOLE]
    last = f"; the last night: {own[-1].ended.value}: {own[-1].reason}" if own else ""
    if not whole:
        return f"no night was ever whole here{last}", "ever"
    hours = (now() - whole[-1].time).total_seconds() / 3600
    if hours <= max_gap_hours:
        return "", whole[-1].night
    said = f"the last whole night ended {whole[-1].time:%Y-%m-%d %H:%M} UTC, {hours:.0f} hours ago"
    since = last if own[-1] is not whole[-1] else ""
    return f"{said}; {max_gap_hours:g} are allowed{since}", whole[-1].night
