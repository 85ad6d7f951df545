"""Nights of the past, each judged as if it were the newest, by what was known before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fabricproof.core.errors import InputMissingError
from fabricproof.core.units import counted, percent
from fabricproof.history.baseline.freezing import AT_LEAST, Ask, freeze, ports_of
from fabricproof.history.baseline.past import (
    CountedNumbers,
    NotKnownGoodError,
    Number,
    Spoilt,
    measured,
)
from fabricproof.history.baseline.review import Turned, replay, without_baseline
from fabricproof.history.compare.facts import Machines
from fabricproof.history.prove.model import CallRule, NightVerdict
from fabricproof.history.store import Key, Run, Store
from fabricproof.history.trend.find import LEAST_RUNS, Question, TooFewRunsError, find_trend
from fabricproof.history.trend.model import Trend

#: nights that a baseline is learnt from, as ``baseline propose`` takes them
LEARNT_FROM = 30

#: verdicts that somebody is called for
_RED = ("FAIL", "INVALID")

_ASK = Ask(name="replay", frozen="", command="", newest_only=True)

#: told with what is done, how much of it, and of how much
Tell = Callable[[str, int, int], None]


@dataclass(kw_only=True)
class Past:
    """A site's nights on their way through the rules.

    Attributes:
        ids: the nights, oldest first.
        machines: what the nodes were made of.
        red: number that physics or a reference made red, and in which run; filled by
            :meth:`judged`.
        beyond: run, node and rail of legs that a baseline of the nights before made red; filled
            likewise.
        no_baseline: why the newest night without a baseline had none; empty where all had one.
    """

    store: Store
    ids: Sequence[str]
    machines: Machines
    red: set[tuple[Key, str]] = field(default_factory=set)
    beyond: set[tuple[str, str, str]] = field(default_factory=set)
    no_baseline: str = ""
    _measured: dict[str, CountedNumbers] = field(default_factory=dict)

    def judged(self, tell: Tell) -> tuple[NightVerdict, ...]:
        """Return what each night would have been told, oldest first."""
        found = []
        runs = {each.run_id: each for each in self.store.runs}
        for at, run_id in enumerate(self.ids):
            told = {
                CallRule.LIMITS: self._limits(runs[run_id]),
                CallRule.BASELINE: self._baseline(at),
                CallRule.TREND: self._trend(at),
            }
            said = {rule: words for rule, words in told.items() if words is not None}
            found.append(NightVerdict(run=runs[run_id], said=said))
            if at >= LEARNT_FROM:
                del self._measured[self.ids[at - LEARNT_FROM]]
            tell("night", at + 1, len(self.ids))
        return tuple(found)

    def _limits(self, run: Run) -> str:
        """Return what physics and the references of that night made red; empty for nothing."""
        red: list[Number | Spoilt] = []
        verdicts: Counter[str] = Counter()
        here = self._measured[run.run_id] = measured(self.store, [run.run_id])
        for number in here.numbers:
            verdict = without_baseline(number)
            if verdict in _RED:
                red.append(number)
                verdicts[verdict] += 1
                self.red.add((key_of(self.store.site, number), run.run_id))
        # Losses have no direction, and no baseline judges them.
        for each in here.spoilt:
            if each.verdict in _RED:
                red.append(each)
                verdicts[each.verdict] += 1
        words = [f"{count} {word}" for word, count in sorted(verdicts.items())]
        if red:
            words[-1] += f": {red[0].place.label} {red[0].quantity}{_more(len(red))}"
        missing = run.legs.get("MISSING", 0)
        return ", ".join([*words, *([f"{counted(missing, 'leg')} MISSING"] if missing else [])])

    def _baseline(self, at: int) -> str | None:
        """Return what a baseline of the nights before would have made red; None: there was none."""
        if at < AT_LEAST:
            return None
        before = self.ids[max(0, at - LEARNT_FROM) : at]
        try:
            ask = replace(_ASK, beyond=frozenset(self.beyond))
            several = [self._measured[each] for each in sorted(before)]
            known = CountedNumbers(
                numbers=[number for each in several for number in each.numbers],
                spoilt=[spoilt for each in several for spoilt in each.spoilt],
            )
            learnt = freeze(self.store, before, self.machines, ask, known).baseline
        except NotKnownGoodError as error:
            self.no_baseline = f"{self.ids[at]}: {error}"
            return None
        night = [self.ids[at]]
        here = self._measured[self.ids[at]].numbers
        past = replay(self.store, night, self.machines, old=None, new=learnt, known=here)
        if not past.judged:
            return None
        red = [each for each in past.turned if each.after == "FAIL"]
        self.beyond |= {port for each in red for port in ports_of(each.run_id, each.place)}
        return f"{_beyond(red[0])}{_more(len(red))}" if red else ""

    def _trend(self, at: int) -> str | None:
        if at + 1 < LEAST_RUNS:
            return None
        try:
            trend = find_trend(self.store, Question(runs=self.ids[: at + 1]), self.machines)
        except (TooFewRunsError, InputMissingError):
            return None
        return _worse(trend) if trend.is_worse_now else ""


def key_of(site: str, number: Number) -> Key:
    """Return the key of a number in a matrix across builds and versions of a tool."""
    place = replace(number.place, build="*", tool_version="*")
    return Key(
        site=site,
        **vars(place),
        quantity=number.quantity,
        unit=number.unit,
        message_size=number.message_size,
        better=number.better,
        named=number.named,
    )


def _more(count: int) -> str:
    return f" and {count - 1} more" if count > 1 else ""


def _beyond(each: Turned) -> str:
    bound = "" if each.bound is None else f", bound {each.bound:.4g}"
    return f"{each.place.label} {each.quantity} = {each.value:.4g} {each.unit}{bound}"


def _worse(trend: Trend) -> str:
    """Return the newest thing that grew worse and still is."""
    if trend.silent:
        return trend.silent[0]
    lasting = [
        event
        for event in trend.events
        if any(each.worse and each.lasts and each.step.sure for each in event.steps)
    ]
    if lasting:
        return lasting[0].sentence.partition(" (")[0]
    drifts = [each for each in trend.drifts if each.worse and each.drift.sure]
    first = drifts[0]
    return (
        f"{counted(len(drifts), 'drift')} to the worse: {first.key.label} "
        f"{percent(first.drift.per_run, 2)} a run"
    )
