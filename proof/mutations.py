"""Each rule of the verdict switched off in memory: the proof must notice.

A test holds this list against the code: whatever a deciding function calls is a rule here, or has
its reason there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from fabricproof.history.stats.shifts import Change
from fabricproof.nightly import Blame, LookColour, LookResult
from fabricproof.traffic import _TESTS, PathProof, PathState, prove_path
from proof.library import PAIRS, FaultEntry, read_library
from proof.tries import Try, attempt

#: of each fault that may notice
SEEDS = (0, 1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class MutatedRule:
    """A rule, and how it is switched off.

    Attributes:
        name: as faults name it.
        targets: ``module:attribute``, where it is looked up, below ``fabricproof`` or in ``proof``.
        off: from what stands there to what stands there instead.
    """

    name: str
    targets: tuple[str, ...]
    off: Callable[[Any], Any]


def _rule(name: str, targets: str, off: Callable[[Any], Any]) -> MutatedRule:
    return MutatedRule(name=name, targets=tuple(targets.split()), off=off)


def _returns(value: Any) -> Callable[[Any], Any]:
    return lambda _: lambda *_, **__: value


def _argument(at: int) -> Callable[[Any], Any]:
    """Return what replaces a function by one that returns an argument unchanged."""
    return lambda _: lambda *given, **__: given[at]


def _without_test(name: str) -> Callable[[Any], Any]:
    return lambda tests: tuple(test for test in tests if test.__name__ != name)


def _each_not_cleared(decide: Any) -> Any:
    def decided(*given: Any) -> Any:
        found = decide(*given)
        cleared = found.finding is LookResult.NEVER_CLEARED
        return replace(found, finding=LookResult.NOT_REPEATED) if cleared else found

    return decided


def _changed(at: int, **changes: Any) -> Callable[[Any], Any]:
    """Return what calls a function with an argument that has other fields."""
    return lambda old: (
        lambda *given: old(*given[:at], replace(given[at], **changes), *given[at + 1 :])
    )


def _nothing_of(unit: str) -> Callable[[Any], Any]:
    """Return what calls a function whose last argument is a unit, but not with this one."""
    return lambda old: lambda *given: None if given[-1] == unit else old(*given)


def _without_trouble(read: Any) -> Any:
    return lambda folder: (read(folder)[0], None)


def _last_look(_: Any) -> Any:
    return lambda looks, **_: looks[-1]


def _blind(look: Any) -> Any:
    return lambda *given: replace(look(*given), colour=LookColour.NONE)


def _changed_to(at: int, value: Any) -> Callable[[Any], Any]:
    """Return what calls a function with another argument in one place."""
    return lambda old: lambda *given: old(*given[:at], value, *given[at + 1 :])


def _without_margin(old: Any) -> Any:
    def changed(family: Any, p: float, *given: Any) -> Any:
        margin = given[-1] if p > family.alpha else 1e-9
        return old(family, p, *given[:-1], margin)

    return changed


def _same_where_open(old: Any) -> Any:
    def changed(*given: Any) -> Any:
        found = old(*given)
        return replace(found, change=Change.SAME) if found.change is Change.UNDECIDED else found

    return changed


def _zeros(_: Any) -> Any:
    return lambda first, *_: np.zeros(len(first))


def _surest(_: Any) -> Any:
    return lambda first, *_: (np.zeros(len(first)), np.zeros(len(first)))


_NOTHING = _returns(None)
_VALUE, _LIMITS, _TABLE = "verdict.value:", "verdict.limits:", "verdict.table:"
_OUTCOME, _JOIN, _AGAIN = "job.outcome:", "job.run.join:", "job.outcome:needs_second_look"

_PROVEN = PathProof(state=PathState.PROVEN, reason="nobody looked")

#: of the path, one each of the tests of ``traffic``, in their order
PATH_RULES = tuple(
    _rule(test.__name__, "traffic:_TESTS", _without_test(test.__name__)) for test in _TESTS
)

RULES: tuple[MutatedRule, ...] = (
    *PATH_RULES,
    _rule("path proof", f"{_OUTCOME}prove_path", _returns(_PROVEN)),
    _rule(
        "errors rose",
        "traffic:read_rises job.outcome:wire_events",
        lambda old: lambda *_: old((), ()),
    ),
    _rule("path of a number", f"{_TABLE}of_path", _returns(())),
    _rule("ceiling", f"{_VALUE}impossible", _changed_to(1, None)),
    _rule("floor", f"{_VALUE}impossible", _changed_to(2, None)),
    _rule("possible", f"{_VALUE}impossible", _returns(None)),
    _rule("lower bound", f"{_VALUE}_against", _changed(1, lower=None)),
    _rule("upper bound", f"{_VALUE}_against", _changed(1, upper=None)),
    _rule("curve law", f"{_TABLE}_curve_reference", _NOTHING),
    _rule("curve law of rates", f"{_TABLE}_curve_reference", _nothing_of("MB/s")),
    _rule("curve law of times", f"{_TABLE}_curve_reference", _nothing_of("us")),
    _rule("protocol switch", f"{_TABLE}without_switches", lambda _: lambda each: (list(each), [])),
    _rule("row against itself", f"{_LIMITS}row_fault", _NOTHING),
    _rule("fault of a row", f"{_LIMITS}Limits.fault", _NOTHING),
    _rule("exit status", f"{_OUTCOME}read_status", _returns(0)),
    _rule("failed rank", f"{_OUTCOME}failed_rank", _NOTHING),
    _rule("damaged evidence", f"{_OUTCOME}read_ranks", _without_trouble),
    _rule("sizes asked for", f"{_OUTCOME}read_table", _changed(1, expected_sizes=())),
    _rule("rank that came back", f"{_OUTCOME}_net_path", lambda _: _path_of_all),
    _rule("library", f"{_OUTCOME}objections_of", _returns(())),
    _rule("judgement of errors", f"{_OUTCOME}_with_errors", _argument(0)),
    _rule("limit of errors", "job.evidence.error_rates:red_from", _returns(10**15)),
    _rule("losses that nobody counted", "job.evidence.error_rates:_uncounted", _returns([])),
    _rule("excuse by others", f"{_OUTCOME}disturbances_of", _returns(((), ()))),
    _rule("others explain the number", "job.evidence.disturbance:_explains", _returns(False)),
    _rule("excuse by other jobs", f"{_OUTCOME}other_jobs_of", _returns(((), ()))),
    _rule("second look", f"{_AGAIN} job.relations.judge:needs_second_look", _returns(False)),
    _rule("both looks weighed", f"{_OUTCOME}weighed", _last_look),
    _rule("red twice", f"{_OUTCOME}_of_looks", _last_look),
    _rule("red at two looks that could judge", f"{_OUTCOME}_is_red_once", _returns(False)),
    _rule("directions", "proof.machine.night:against_directions", _returns({})),
    _rule("case without records", f"{_JOIN}_without_records", _NOTHING),
    _rule(
        "required checks", "proof.machine.night:assemble", lambda old: lambda *g: old(*g[:2], ())
    ),
    _rule("failed case against its records", f"{_JOIN}_unless_another_leg", _argument(1)),
    _rule("confirmation", "nightly.decide:decide", lambda old: lambda red, *_: old(red, ())),
    _rule("confirmed by a look at the same nodes", "nightly.conduct:look_at", _blind),
    _rule("the same number in both jobs", "nightly.confirm:_passed", _returns(False)),
    _rule("INVALID is not cleared", "nightly.decide:decide", _each_not_cleared),
    _rule("blame by partners", "nightly.conduct:Confirmer._with_others", _NOTHING),
    _rule("blame of the right side", "nightly.decide:blame_of", _returns(Blame.FIRST)),
    _rule("one blame of all legs", "nightly.decide:_same_place", _returns([])),
    _rule("the leg the other way", "nightly.looks:_answering", lambda _: lambda key: (key,)),
)

#: of the words over several nights: ``compare``, ``trend``, a baseline
_STATS, _COMPARE, _TREND = "history.stats.", "history.compare.", "history.trend.find:"
_BOUNDS = "history.baseline.bounds:"
HISTORY_RULES: tuple[MutatedRule, ...] = (
    _rule("surer than by chance: two sides", f"{_STATS}shifts:_shift", _changed_to(1, 0.0)),
    _rule("margin: two sides", f"{_STATS}shifts:_shift", _without_margin),
    _rule("SAME by its interval", f"{_STATS}shifts:_shift", _same_where_open),
    _rule("excuse by others: two sides", "history.surroundings:Beside.explains", _returns(False)),
    _rule("what looks worse", f"{_COMPARE}verdict:looks_worse", _returns(False)),
    _rule("what so few runs cannot say", f"{_COMPARE}doubts:unreachable_notes", _returns(())),
    _rule("what was measured before", f"{_COMPARE}comparison:_uncompared", _returns(())),
    _rule("what gave no number after", f"{_COMPARE}table:gone_after", _returns({})),
    _rule("surer than by chance: steps, drifts", f"{_STATS}steps:_adjusted", _surest),
    _rule("surer than by chance: last run", f"{_STATS}steps:last_run", _zeros),
    _rule("last run", f"{_STATS}steps:_last_steps", _returns(())),
    _rule("drifts", f"{_STATS}steps:_chance_of_drifts", _returns({})),
    _rule("sure after every run", f"{_STATS}steps:level_of_look", _returns(1.0)),
    _rule("margin: steps", f"{_STATS}step_fit:lasting", _changed_to(2, 0.0)),
    _rule("nights that hang together", f"{_STATS}steps:hanging_together", _returns(0.0)),
    _rule("what was taken back", f"{_TREND}_lasting", lambda _: lambda each, _: [True] * len(each)),
    _rule("what has no number now", f"{_TREND}gone_now", _returns(())),
    _rule("known good", "history.baseline.freeze:why_not_good", _returns("")),
    _rule("outliers set aside", f"{_BOUNDS}_outliers", _returns({})),
    _rule("bound as wide as the scatter", f"{_BOUNDS}_bounds", _changed_to(3, 0.0)),
)
RULES += HISTORY_RULES


def _path_of_all(*given: Any) -> PathProof:
    _, _, evidence, expected = given
    return prove_path(evidence, expected)


#: rules that no fault of the model can miss, and why
UNNOTICED: Mapping[str, str] = {
    "known good": "three sick nights of ten move neither the median nor the spread of a baseline; "
    "tests/history/baseline/test_freeze.py misses it",
    "rails_are_apart": "Soft-RoCE, which the model does not have",
    "wires_below_carried_them": "Soft-RoCE, which the model does not have",
    "the leg the other way": "a pair without partners in place is then not told apart in that leg, "
    "and another leg of the night tells; tests/nightly/test_looks.py misses it",
    "one blame of all legs": "no leg of the first seeds misses its bound by so little; slow node "
    "(memory) with seed 7 has one: tests/proof/test_mutations.py",
    "messages_took_the_rails": "beside messages of up to 4 MiB no rail has fewer packets than "
    "messages are due; a leg of small ones alone would show it",
    "something_was_due": "every leg of the model has bytes that are due",
}


def import_target(module: str) -> Any:
    """Return the module of a target: below ``fabricproof``, or one of ``proof``."""
    return importlib.import_module(
        module if module.startswith("proof.") else f"fabricproof.{module}"
    )


@contextmanager
def switched_off(rule: MutatedRule) -> Iterator[None]:
    """Take a rule out of the running program for a while."""
    kept: list[tuple[Any, str, Any]] = []
    try:
        for target in rule.targets:
            module, _, path = target.partition(":")
            holder: Any = import_target(module)
            owner, _, name = path.rpartition(".")
            holder = attrgetter(owner)(holder) if owner else holder
            old = getattr(holder, name)
            kept.append((holder, name, old))
            setattr(holder, name, rule.off(old))
        yield
    finally:
        for holder, name, old in reversed(kept):
            setattr(holder, name, old)


def _seen(entry: FaultEntry, seed: int) -> tuple[str, bool, bool, bool]:
    assert entry.must is not None
    try:
        came: Try = attempt(entry, entry.must, seed)
    except Exception as error:  # without the rule the product may not even run: that is noticed
        return type(error).__name__, False, False, False
    return came.verdict, came.caught, came.blamed, came.worded


@cache
def _right(title: str, seed: int) -> tuple[str, bool, bool, bool]:
    return _seen(next(each for each in read_library() if each.title == title), seed)


def who_notices(rule: MutatedRule, *, everybody: bool = True) -> tuple[str, ...]:
    """Return the faults that are no longer right without a rule; the first that notices ends it.

    Args:
        rule: to be switched off.
        everybody: ask all faults, after those that name the rule; else these alone.
    """
    due = [each for each in read_library() if each.must is not None and each.effect != PAIRS]
    mine = [each for each in due if rule.name in each.rules]
    asked = [*mine, *(each for each in due if everybody and each not in mine)]
    for entry in asked:
        for seed in SEEDS:
            right = _right(entry.title, seed)
            with switched_off(rule):
                without = _seen(entry, seed)
            if _is_worse(right, without):
                return (entry.title,)
    return ()


def _is_worse(right: tuple[Any, ...], without: tuple[Any, ...]) -> bool:
    """Tell whether what was right is not: caught, blamed or worded."""
    return any(was and not is_ for was, is_ in zip(right[1:], without[1:], strict=True))
