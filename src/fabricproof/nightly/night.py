"""The course of one night, from the event that begins it to the one that ends it.

Whatever happens, the night says how it ended, keeps what it has, and tells of it: a scheduler that
is down, a full disk, an interrupt are states of the night, never of the network.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from fabricproof.core.errors import ExitStatus, FabricproofError
from fabricproof.core.measure import Verdict
from fabricproof.core.project import site_option
from fabricproof.core.provenance import LegKey
from fabricproof.core.units import stamp
from fabricproof.history.store import set_label
from fabricproof.job.run import RunResult
from fabricproof.nightly.changes import NightChange, body, changes, subject
from fabricproof.nightly.conduct import Budget, Confirmed, Confirmer, Runner, keep, started
from fabricproof.nightly.confirm import Confirmation
from fabricproof.nightly.log import (
    Began,
    LegState,
    Night,
    NightEnd,
    NightState,
    Notice,
    Told,
    append,
    fold,
    gone,
    log_file,
    now,
    read_log,
    states_of,
)
from fabricproof.nightly.looks import settled, with_flutters
from fabricproof.nightly.notify import channels, deliver
from fabricproof.site import Site

#: label that the runs of nights get
LABEL = "night"


@dataclass(frozen=True, kw_only=True)
class NightMeans:
    """What a night is conducted with.

    Attributes:
        arguments: ReFrame's, of the run; none if it was made before: what is no longer in it is
            unknown then.
        run: makes a look, which has its label before it begins.
        first: the run of the night itself, or what was made before.
        usable: nodes of a partition that may run a job now.
    """

    site: Site
    perflogs: Path
    night: str
    arguments: tuple[str, ...]
    run: Runner
    first: Callable[[], RunResult]
    usable: Callable[[str], tuple[str, ...]]
    say: Callable[[str], object]
    notify: bool = True


@dataclass(frozen=True, kw_only=True)
class NightOutcome:
    """What a night came to.

    Attributes:
        first: the run before what was confirmed; None if there was none, as is ``result``.
        red: everything that is red now, of this night and of earlier ones.
        told: each notice that was tried on a channel, and whether it is of an earlier night.
        status: exit status if it is no verdict's; None if it is the verdict's.
    """

    night: Night
    site: str = ""
    first: RunResult | None = None
    result: RunResult | None = None
    confirmations: tuple[Confirmation, ...] = ()
    changes: tuple[NightChange, ...] = ()
    red: dict[str, LegState] = field(default_factory=dict)
    told: tuple[Told, ...] = ()
    status: int | None = None
    notes: tuple[str, ...] = ()


def spend(means: NightMeans) -> NightOutcome:
    """Spend a night: run, confirm, keep, compare with before, tell.

    The caller holds the lock.

    Raises:
        OutputError: the beginning cannot be written; nothing was started.
    """
    site, spec, notes = means.site.name, means.site.night, list[str]()
    path = log_file(means.perflogs, site)
    state = read_log(path, on_torn=notes.append)
    append(path, Began(night=means.night, time=stamp(), host=socket.gethostname(), pid=os.getpid()))
    ran = started(means.first)
    found = _confirmed(means, ran, state)
    last, result = found.ended or ran, None
    if not ran.left_nothing:
        result = settled(ran, found.confirmations)
    night = _ended(means, ran, found, result, state)
    legs = night.legs
    changed = changes(state, night, max_gap_hours=spec.max_gap_hours)
    resting = state.resting()
    old = sum(night.looks_back(resting[key][0]) for key in legs if key in resting)
    if old:
        notes.append(
            f"run {night.run_id} is older than what is known of {old} of its {len(legs)} legs: "
            "they keep their state"
        )
    red = fold([night], state).red()
    if means.notify and changed:
        notice = Notice(
            name=means.night,
            subject=subject(site, changed, len(red)),
            text=body(site, changed, red, night),
            channels=channels(spec),
        )
        night = replace(night, notice=notice)
    troubles = [
        *_trouble(lambda: keep(means.perflogs, site, found.confirmations, means.night)),
        *_trouble(lambda: append(path, night)),
    ]
    if night.run_id:
        troubles += _trouble(lambda: set_label(means.perflogs, site, [night.run_id], LABEL))
    status = None if night.ended is NightEnd.WHOLE else int(last.status or ExitStatus.SOFTWARE)
    if troubles:
        status = status or int(ExitStatus.IO)
    told, more = _tell(means, path, fold([night], state)) if means.notify else ((), [])
    return NightOutcome(
        night=night,
        site=site,
        first=None if ran.left_nothing else ran,
        result=result,
        confirmations=found.confirmations,
        changes=changed,
        red=red,
        told=told,
        status=status,
        notes=(*notes, *troubles, *more),
    )


def _ended(
    means: NightMeans,
    ran: RunResult,
    found: Confirmed,
    result: RunResult | None,
    state: NightState,
) -> Night:
    """Return the event that ends the night, without what it has to tell."""
    last = found.ended or ran
    legs: dict[str, LegState] = {}
    if result is not None:
        # A run that came to its end is whole, even if confirming it did not.
        legs = states_of(result, found.confirmations, whole=not ran.stopped)
        if not ran.stopped and means.arguments:
            skipped = (leg.key for leg in result.legs if leg.verdict is Verdict.SKIPPED)
            legs |= gone(state, means.arguments, legs, skipped)
        if not means.arguments:
            # What came to no leg of a run that was handed over no night would mend.
            legs = {key: leg for key, leg in legs.items() if LegKey.of(key).partition}
    return Night(
        night=means.night,
        time=stamp(now()),
        ended=_end_of(last),
        reason=f"while confirming: {last.stopped}" if found.ended else ran.stopped,
        run_id=result.run_id if result else "",
        arguments=means.arguments,
        legs=legs,
    )


def _end_of(ran: RunResult) -> NightEnd:
    if not ran.stopped:
        return NightEnd.WHOLE
    ends = {
        int(ExitStatus.UNAVAILABLE): NightEnd.NO_SCHEDULER,
        int(ExitStatus.INTERRUPTED): NightEnd.EARLY,
    }
    return NightEnd.FAILED if ran.refused else ends.get(int(ran.status), NightEnd.FAILED)


def _confirmed(means: NightMeans, ran: RunResult, state: NightState) -> Confirmed:
    if ran.stopped:
        return Confirmed(confirmations=())
    spec = means.site.night
    confirmer = Confirmer(means.site.name, means.run, means.usable, Budget.of(spec), means.say)
    try:
        found = confirmer.confirm(ran)
    except KeyboardInterrupt:
        early = int(ExitStatus.INTERRUPTED)
        ended = RunResult(run_id="", stopped="interrupted", status=early)
        return Confirmed(confirmations=(), ended=ended)
    before = state.flutters(spec.flutter_nights, ran.run_id)
    counted = tuple(with_flutters(found.confirmations, before, spec.flutter_nights))
    return replace(found, confirmations=counted)


def _trouble(step: Callable[[], object]) -> list[str]:
    """Return why something could not be kept; empty if it was."""
    try:
        step()
    except FabricproofError as error:
        return [str(error)]
    return []


def _tell(means: NightMeans, path: Path, state: NightState) -> tuple[tuple[Told, ...], list[str]]:
    """Tell what waits; each delivery is an event at once, so that a kill tells little twice."""
    told, notes = [], []
    for each in deliver(means.site.night, state.waiting):
        told.append(each)
        notes += [
            f"what was told is not kept, it may be told again: {why}"
            for why in _trouble(partial(append, path, each))
        ]
    return tuple(told), notes


def what_was_sent(told: Sequence[Told], night: str = "") -> Iterator[str]:
    """Yield a sentence for each notice that was tried; ``night``: the one whose own is none old."""
    for each in told:
        old = "" if night in {"", each.notice} else " (of an earlier night)"
        if each.sent:
            yield f"told by {each.channel}{old}"
        else:
            yield f"NOT told by {each.channel}{old}, tried again next night: {each.reason}"


def alive(site: Site, perflogs: Path, *, notify: bool) -> tuple[str, tuple[Told, ...]]:
    """Return why the nights of ``site`` are not well, empty if they are; tell it once.

    For a second timer, best on another machine: a timer that is dead cannot say so itself.
    """
    path = log_file(perflogs, site.name)
    state = read_log(path)
    why, since = _why_not_alive(state, site.night.max_gap_hours)
    name = f"silent-{since}"
    if not why or not notify or name in state.sent:
        return why, ()
    notice = Notice(
        name=name,
        subject=f"fabricproof {site.name}: no night was whole",
        text=f"{why}\nnext: look at the timer, then: fabricproof nightly {site_option(site.name)}",
        channels=channels(site.night),
    )
    told = []
    _trouble(lambda: append(path, notice))
    for each in deliver(site.night, {(channel, name): (notice, 0) for channel in notice.channels}):
        told.append(each)
        _trouble(partial(append, path, each))
    return why, tuple(told)


def _why_not_alive(state: NightState, max_gap_hours: float) -> tuple[str, str]:
    """Return why, and the night since which; only a whole night that made its own run counts."""
    own = state.own
    whole = [each for each in own if each.ended is NightEnd.WHOLE]
    last = f"; the last night: {own[-1].ended.value}: {own[-1].reason}" if own else ""
    if not whole:
        return f"no night was ever whole here{last}", "ever"
    hours = (now() - whole[-1].at).total_seconds() / 3600
    if hours <= max_gap_hours:
        return "", whole[-1].night
    said = f"the last whole night ended {whole[-1].at:%Y-%m-%d %H:%M} UTC, {hours:.0f} hours ago"
    since = last if own[-1] is not whole[-1] else ""
    return f"{said}; {max_gap_hours:g} are allowed{since}", whole[-1].night
