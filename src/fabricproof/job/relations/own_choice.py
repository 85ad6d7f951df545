"""Judge a stack's own choice of a collective's algorithm against all others, in turns in one job.

The legs are raw material: by themselves they are neither due nor judged, since a bad algorithm has
a right to be slow, and one that the library cannot use here ends with an error on purpose.  What
they took, on which path, and whether it is possible, counts as for any other leg.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from fabricproof.core.findings import as_notes
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.units import at_size
from fabricproof.job.leg import Relation
from fabricproof.job.outcome import Outcome, first_reason
from fabricproof.job.relations.ratio import Looks, not_judged
from fabricproof.traffic import PathState
from fabricproof.tuning import OWN, Bar, Choice, ChoiceResult, Times, decide
from fabricproof.verdict.value import Judgement, Report

#: what the own choice may differ by between the first and the last turn before it is said
DRIFT = 1.1

_VERDICTS = {
    ChoiceResult.AS_GOOD: Verdict.PASS,
    ChoiceResult.LOSES: Verdict.PASS,
    ChoiceResult.LOSES_BADLY: Verdict.FAIL,
    ChoiceResult.UNCERTAIN: Verdict.UNJUDGED,
}


def judge_own_choice(relation: Relation, looks: Looks) -> Report:
    """Judge every message size of a sweep; every attempt of a leg is a time of its own.

    Settings:
        series: name of a series (``own``, or an algorithm's id) -> its legs, in turn.
        labels: algorithm id -> what a table calls it.
        mended_by: algorithm id -> how a site makes it the choice.
        sizes: message sizes in bytes, None for an operation without messages.
        left_out: sentences on algorithms that were not tried.
        bar: the fields of :class:`~fabricproof.tuning.decision.Bar`.
    """
    spoiled = _spoiled(relation.settings["series"][OWN], looks)
    if spoiled is not None:
        verdict, reason = spoiled
        return Report(verdict=verdict, quantities=(not_judged("own_choice", verdict, reason),))
    others, lost = usable_series(relation, looks)
    bar = Bar(**relation.settings["bar"])
    tables = [_times(relation, others, size, looks) for size in relation.settings["sizes"]]
    choices = iter(decide([table for table in tables if table is not None], bar))
    quantities = tuple(
        _unmeasured(relation, size, looks)
        if table is None
        else _judgement(relation, next(choices), bar, len(others))
        for size, table in zip(relation.settings["sizes"], tables, strict=True)
    )
    findings = [*_beside(relation, tables, bar), *lost]
    return Report(
        verdict=worst([each.verdict for each in quantities]),
        quantities=quantities,
        findings=as_notes((*findings, *relation.settings["left_out"])),
        net_path=looks[relation.settings["series"][OWN][0]].report.net_path,
    )


def legs_in_question(relation: Relation, looks: Looks) -> frozenset[str]:
    """Return the legs to run again: of the own choice, and of the best where it is not as good."""
    series = relation.settings["series"]
    again = set(series[OWN])
    others, _ = usable_series(relation, looks)
    tables = [_times(relation, others, size, looks) for size in relation.settings["sizes"]]
    for choice in decide([each for each in tables if each], Bar(**relation.settings["bar"])):
        if choice.standing is not ChoiceResult.AS_GOOD and choice.best is not None:
            again |= set(series[choice.best])
    return frozenset(again)


def usable_series(relation: Relation, looks: Looks) -> tuple[dict[str, list[str]], list[str]]:
    """Return the algorithms whose every leg has numbers, and a sentence on each that has none."""
    usable: dict[str, list[str]] = {}
    lost: dict[str, list[str]] = {}
    for name, legs in relation.settings["series"].items():
        if name == OWN:
            continue
        spoiled = _spoiled(legs, looks)
        if spoiled is None:
            usable[name] = legs
        else:
            lost.setdefault(spoiled[1].partition(": ")[2], []).append(_named(relation, name))
    return usable, [f"not comparable: {', '.join(who)}: {why}" for why, who in lost.items()]


def _named(relation: Relation, algorithm: str) -> str:
    return str(relation.settings["labels"].get(algorithm, algorithm))


def _spoiled(legs: Iterable[str], looks: Looks) -> tuple[Verdict, str] | None:
    """Return why some of ``legs`` cannot be compared, None where all can."""
    for name in legs:
        if name not in looks:
            return Verdict.MISSING, f"leg {name}: it was never planned"
        if not looks[name].attempts:
            return Verdict.MISSING, f"leg {name}: {first_reason(looks[name].report)}"
        for attempt in looks[name].attempts:
            trouble = _trouble(attempt.report)
            if trouble is None and attempt.foreign:
                trouble = Verdict.UNJUDGED, attempt.foreign
            if trouble is not None:
                return trouble[0], f"leg {name}: {trouble[1]}"
    return None


def _trouble(report: Report) -> tuple[Verdict, str] | None:
    if report.verdict in {Verdict.MISSING, Verdict.SKIPPED}:
        return report.verdict, first_reason(report)
    if report.net_path is None:
        return Verdict.UNJUDGED, "no path was shown"
    if report.net_path.state is PathState.WRONG:
        return Verdict.INVALID, report.net_path.reason
    if report.net_path.state is PathState.UNKNOWN:
        return Verdict.UNJUDGED, report.net_path.reason
    return None


def _quantities(look: Outcome, size: int | None) -> list[Judgement | None]:
    """Return what each attempt measured for one size."""
    name = at_size("latency", size)
    return [
        next((each for each in attempt.report.quantities if each.name == name), None)
        for attempt in look.attempts
    ]


def times_of(legs: Iterable[str], size: int | None, looks: Looks) -> tuple[float, ...]:
    """Return the possible times of ``legs`` for one size, in us; impossible ones are no times."""
    found = (each for name in legs for each in _quantities(looks[name], size))
    return tuple(
        each.value
        for each in found
        if each is not None
        and each.value is not None
        and each.verdict is not Verdict.INVALID
        and math.isfinite(each.value)
        and each.value > 0
    )


def _times(
    relation: Relation, others: Mapping[str, list[str]], size: int | None, looks: Looks
) -> Times | None:
    """Return the times to compare for one size, None where one of the own choice is missing.

    An algorithm with an impossible time of that size is not compared there.
    """
    mine = relation.settings["series"][OWN]
    own_us = times_of(mine, size, looks)
    if len(own_us) != _runs(mine, looks):
        return None
    found = {name: times_of(legs, size, looks) for name, legs in others.items()}
    whole = {name: each for name, each in found.items() if len(each) == _runs(others[name], looks)}
    return Times(size=size, own_us=own_us, others_us=whole)


def _runs(legs: Iterable[str], looks: Looks) -> int:
    return sum(len(looks[name].attempts) for name in legs)


def _unmeasured(relation: Relation, size: int | None, looks: Looks) -> Judgement:
    """Return the judgement of a size for which the own choice has no possible time."""
    for name in relation.settings["series"][OWN]:
        for found in _quantities(looks[name], size):
            if found is None:
                reason = f"leg {name} has no time of it"
                return not_judged(at_size("own_choice", size), Verdict.MISSING, reason)
            if found.verdict is Verdict.INVALID:
                reason = f"leg {name}: {found.reason}"
                return not_judged(at_size("own_choice", size), Verdict.INVALID, reason)
    reason = "the own choice has no time above zero"
    return not_judged(at_size("own_choice", size), Verdict.INVALID, reason)


def _judgement(relation: Relation, choice: Choice, bar: Bar, num_others: int) -> Judgement:
    if choice.best is None:
        reason = "no other algorithm could be measured: nothing to hold the own choice against"
        return not_judged(at_size("own_choice", choice.size), Verdict.UNJUDGED, reason)
    return Judgement(
        name=at_size("own_choice", choice.size),
        value=choice.gain,
        unit="x",
        message_size=choice.size,
        verdict=_VERDICTS[choice.standing],
        reason=_reason(relation, choice, bar),
        reference=1.0,
        upper=bar.loss_limit,
        origin=f"the best of {num_others} algorithms in the same job",
    )


def _reason(relation: Relation, choice: Choice, bar: Bar) -> str:
    said = (
        f"own choice {choice.own_us:.4g} us, {_named(relation, str(choice.best))} "
        f"{choice.best_us:.4g} us: {choice.gain:.3g} x"
    )
    noise = f"noise {choice.noise:.1%}"
    mending = relation.settings["mended_by"].get(choice.best)
    match choice.standing:
        case ChoiceResult.AS_GOOD:
            return f"{said}, at most {choice.at_most:.3g} x: as good as any ({noise})"
        case ChoiceResult.LOSES:
            return (
                f"{said}, surely {choice.at_least:.3g} x: not above {bar.loss_limit:g} x; {mending}"
            )
        case ChoiceResult.LOSES_BADLY:
            return (
                f"{said}, surely {choice.at_least:.3g} x ({noise}), above {bar.loss_limit:g} x; "
                f"{mending}"
            )
        case ChoiceResult.UNCERTAIN:
            return (
                f"{said}, but the noise of {choice.noise:.0%} leaves up to {choice.at_most:.3g} x "
                f"open, and {bar.loss_limit:g} x is the limit"
            )


def _beside(relation: Relation, tables: Iterable[Times | None], bar: Bar) -> list[str]:
    """Return what is worth saying of sizes that pass, and of a drift."""
    choices = decide([table for table in tables if table is not None], bar)
    said = [
        f"{at_size('own_choice', each.size)}: {_reason(relation, each, bar)}"
        for each in choices
        if each.standing is ChoiceResult.LOSES
    ]
    drift = math.exp(sum(math.log(each.drift) for each in choices) / max(len(choices), 1))
    if max(drift, 1 / drift) > DRIFT:
        said.append(f"the own choice took {drift:.2f} times as long at the end as at the beginning")
    return said
