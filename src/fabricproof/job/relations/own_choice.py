"""Judge a stack's own choice of a collective's algorithm against all others, in turns in one job.

The legs are raw material: by themselves they are neither due nor judged, since a bad algorithm has
a right to be slow, and one that the library cannot use here ends with an error on purpose.  Their
path, and whether a time is possible, counts as for any other leg.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

from fabricproof.core.findings import as_notes
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.units import at_size
from fabricproof.job.outcome import first_reason
from fabricproof.job.relation import OwnChoice
from fabricproof.job.relations.measures import Looks, NoNumberError
from fabricproof.traffic import PathState
from fabricproof.tuning import OWN, Choice, ChoiceResult, Times, decide
from fabricproof.verdict.value import Judgement, Report, no_number

#: what the own choice may differ by between the first and the last turn before it is said
DRIFT = 1.1

_VERDICTS = {
    ChoiceResult.AS_GOOD: Verdict.PASS,
    ChoiceResult.LOSES: Verdict.PASS,
    ChoiceResult.LOSES_BADLY: Verdict.FAIL,
    ChoiceResult.UNCERTAIN: Verdict.UNJUDGED,
}

_PATHS = {PathState.WRONG: Verdict.INVALID, PathState.UNKNOWN: Verdict.UNJUDGED}


def judge_own_choice(wanted: OwnChoice, looks: Looks) -> Report:
    """Judge every message size of a sweep; every attempt of a leg is a time of its own.

    Raises:
        NoNumberError: the own choice has no time that counts.
    """
    _require_usable(wanted.series[OWN], looks)
    others, lost = _usable(wanted, looks)
    choices = _choices(wanted, others, looks)
    quantities = [
        _judgement(wanted, found, len(others)) if isinstance(found, Choice) else found
        for found in choices
    ]
    known = [each for each in choices if isinstance(each, Choice)]
    said = [
        f"{at_size('own_choice', each.size)}: {_reason(wanted, each)}"
        for each in known
        if each.standing is ChoiceResult.LOSES
    ]
    drift = math.exp(sum(math.log(each.drift) for each in known) / max(len(known), 1))
    if max(drift, 1 / drift) > DRIFT:
        said.append(f"the own choice took {drift:.2f} times as long at the end as at the beginning")
    return Report(
        verdict=worst([each.verdict for each in quantities]),
        quantities=tuple(quantities),
        findings=as_notes((*said, *lost, *wanted.left_out)),
        net_path=looks[wanted.series[OWN][0]].report.net_path,
    )


def legs_in_question(wanted: OwnChoice, looks: Looks) -> frozenset[str]:
    """Return the legs to run again: of the own choice, and of the best where it is not as good."""
    again = set(wanted.series[OWN])
    for each in _choices(wanted, _usable(wanted, looks)[0], looks):
        if isinstance(each, Choice) and each.standing is not ChoiceResult.AS_GOOD and each.best:
            again |= set(wanted.series[each.best])
    return frozenset(again)


def _usable(wanted: OwnChoice, looks: Looks) -> tuple[list[str], list[str]]:
    """Return the algorithms whose every leg has numbers, and a sentence on those that have none."""
    usable, lost = [], dict[str, list[str]]()
    for name, legs in wanted.series.items():
        if name == OWN:
            continue
        try:
            _require_usable(legs, looks)
        except NoNumberError as error:
            why = error.reason.partition(": ")[2]
            lost.setdefault(why, []).append(wanted.labels.get(name, name))
        else:
            usable.append(name)
    return usable, [f"not comparable: {', '.join(who)}: {why}" for why, who in lost.items()]


def _require_usable(legs: Sequence[str], looks: Looks) -> None:
    """Raise unless every attempt has times of its own path, good or bad."""
    for name in legs:
        if name not in looks:
            raise NoNumberError(Verdict.MISSING, f"leg {name}: it was never planned")
        for each in looks[name].attempts or (looks[name],):
            report, path = each.report, each.report.net_path
            verdict, reason = Verdict.UNJUDGED, getattr(each, "foreign", "")
            if report.verdict in {Verdict.MISSING, Verdict.SKIPPED}:
                verdict, reason = report.verdict, first_reason(report)
            elif path is None or path.state in _PATHS:
                verdict = _PATHS[path.state] if path else Verdict.UNJUDGED
                reason = path.reason if path else "no path was shown"
            if reason:
                raise NoNumberError(verdict, f"leg {name}: {reason}")


def _choices(wanted: OwnChoice, others: Sequence[str], looks: Looks) -> list[Choice | Judgement]:
    """Return what was decided for each size, or the judgement of one without a time of its own."""
    found: list[Times | Judgement] = []
    for size in wanted.sizes:
        try:
            own_us = _times(wanted.series[OWN], size, looks)
        except NoNumberError as error:
            name = at_size("own_choice", size)
            found.append(no_number(name, error.verdict, error.reason, "x"))
            continue
        others_us = {}
        for name in others:
            # An algorithm without a possible time of that size is not compared there.
            with contextlib.suppress(NoNumberError):
                others_us[name] = _times(wanted.series[name], size, looks)
        found.append(Times(size=size, own_us=own_us, others_us=others_us))
    decided = iter(decide([each for each in found if isinstance(each, Times)], wanted.bar))
    return [next(decided) if isinstance(each, Times) else each for each in found]


def _times(legs: Sequence[str], size: int | None, looks: Looks) -> tuple[float, ...]:
    """Return the times of all attempts at ``legs`` for one size, in us."""
    wanted, times = at_size("latency", size), []
    for leg, attempt in [(name, each) for name in legs for each in looks[name].attempts]:
        found = next((e for e in attempt.report.quantities if e.name == wanted), None)
        if found is None or found.value is None:
            raise NoNumberError(Verdict.MISSING, f"leg {leg} has no time of it")
        if found.verdict is Verdict.INVALID or not 0 < found.value < math.inf:
            raise NoNumberError(Verdict.INVALID, f"leg {leg}: {found.reason}")
        times.append(found.value)
    return tuple(times)


def _judgement(wanted: OwnChoice, choice: Choice, num_others: int) -> Judgement:
    name = at_size("own_choice", choice.size)
    if choice.best is None:
        reason = "no other algorithm could be measured: nothing to hold the own choice against"
        return no_number(name, Verdict.UNJUDGED, reason, "x")
    return Judgement(
        name=name,
        value=choice.gain,
        unit="x",
        message_size=choice.size,
        verdict=_VERDICTS[choice.standing],
        reason=_reason(wanted, choice),
        reference=1.0,
        upper=wanted.bar.loss_limit,
        origin=f"the best of {num_others} algorithms in the same job",
    )


def _reason(wanted: OwnChoice, choice: Choice) -> str:
    best, limit = str(choice.best), f"{wanted.bar.loss_limit:g} x"
    said = (
        f"own choice {choice.own_us:.4g} us, {wanted.labels.get(best, best)} "
        f"{choice.best_us:.4g} us: {choice.gain:.3g} x, noise {choice.noise:.1%}"
    )
    if choice.standing is ChoiceResult.AS_GOOD:
        return f"{said}, at most {choice.at_most:.3g} x: as good as any"
    if choice.standing is ChoiceResult.UNCERTAIN:
        return f"{said}: up to {choice.at_most:.3g} x is open, the limit is {limit}"
    side = "not above" if choice.standing is ChoiceResult.LOSES else "above"
    return f"{said}, surely {choice.at_least:.3g} x, {side} {limit}; {wanted.mended_by.get(best)}"
