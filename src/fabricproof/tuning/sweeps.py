"""Sweeps as they stand in the records, what is decided anew from them, and the rules of that.

A rule says which algorithm is for which range of message sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fabricproof.core.errors import ConfigError, ParseError, words_of
from fabricproof.core.plain import typed_at
from fabricproof.tuning.decision import Bar, Choice, Times, decide
from fabricproof.tuning.knobs import Algorithm, Knobs, find_knobs

#: series that are no algorithm: the choice that is judged, the one before a tuning, and the
#: library's own choice where the site's environment forces another
OWN, UNTUNED, AUTO = "own", "untuned", "auto"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One sweep of one collective with one stack on one layout.

    Attributes:
        run_id: the run it belongs to.
        stack_version: family and version, for people.
        suite, program: what was measured.
        knobs: what can be said to this MPI about the collective.
        own_environment: what the site's environment already says about the collective.
        tuning: variables of a tuning that was on trial.
        choices: the decision for each message size.
        labels: algorithm id -> what a table calls it.
        left_out: sentences on algorithms that were not tried.
    """

    run_id: str
    site: str
    partition: str
    fabric: str
    stack: str
    stack_version: str
    suite: str
    program: str
    knobs: Knobs
    num_nodes: int
    ranks_per_node: int
    nodes: tuple[str, ...]
    rails: tuple[str, ...]
    own_environment: Mapping[str, str]
    tuning: Mapping[str, str]
    choices: tuple[Choice, ...]
    tables: tuple[Times, ...]
    labels: Mapping[str, str]
    left_out: tuple[str, ...]
    bar: Bar

    @property
    def num_ranks(self) -> int:
        """Ranks that took part."""
        return self.num_nodes * self.ranks_per_node

    def label(self, algorithm: str) -> str:
        """Return what a table calls an algorithm."""
        return self.labels.get(algorithm, algorithm)


def sweeps_of(records: Iterable[Mapping[str, Any]], source: str) -> list[Sweep]:
    """Return the sweeps among ``records``, decided anew.

    Raises:
        ParseError: a record of a sweep is damaged.
    """
    return [_sweep(record, source) for record in records if record.get("kind") == "sweep"]


def _sweep(record: Mapping[str, Any], source: str) -> Sweep:
    try:
        knobs, reason = find_knobs(record["family"], record["mpi_version"], record["collective"])
        if knobs is None:
            raise ParseError(f"a sweep that nobody knows the knobs of: {reason}", source=source)
        bar = Bar(**record["bar"])
        tables = tuple(_tables(record["series"]))
        return Sweep(
            **{
                name: typed_at(record, name, str)
                for name in (
                    "run_id",
                    "site",
                    "partition",
                    "fabric",
                    "stack",
                    "stack_version",
                    "suite",
                    "program",
                )
            },
            knobs=knobs,
            num_nodes=_count(record["num_nodes"], "num_nodes"),
            ranks_per_node=_count(record["ranks_per_node"], "ranks_per_node"),
            nodes=typed_at(record, "nodes", tuple[str, ...]),
            rails=typed_at(record, "rails", tuple[str, ...]),
            own_environment=typed_at(record, "own_environment", dict[str, str]),
            tuning=typed_at(record, "tuning", dict[str, str]),
            choices=decide(tables, bar),
            tables=tables,
            labels={each["algorithm"]: typed_at(each, "label", str) for each in record["series"]},
            left_out=typed_at(record, "left_out", tuple[str, ...]),
            bar=bar,
        )
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        if isinstance(error, ParseError):
            raise
        raise ParseError(
            f"damaged record of a sweep: {words_of(error)}",
            source=source,
            expected="a record as the check AlgorithmSweep writes it",
            got=f"that of run {record.get('run_id')} with {record.get('stack')}",
            next_step="sweep again, or take the record out",
        ) from None


def _count(value: object, name: str, least: int = 1) -> int:
    if type(value) is not int or value < least:
        raise TypeError(f"{name} is no number of them")
    return value


def _times(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the times of one size that were measured, us; a turn without one left 0."""
    us = typed_at(row, "us", list)
    if not all(type(each) in {int, float} and math.isfinite(each) for each in us):
        raise TypeError("a time is no finite number")
    return tuple(float(each) for each in us if each > 0)


def _tables(series: Iterable[Mapping[str, Any]]) -> Iterable[Times]:
    """Yield the times of each message size; sizes without a time of the own choice are none."""
    by_size: dict[int | None, dict[str, tuple[float, ...]]] = {}
    for each in series:
        for row in each["times_us"]:
            size = None if row["size"] is None else _count(row["size"], "size", least=0)
            if times := _times(row):
                by_size.setdefault(size, {})[typed_at(each, "algorithm", str)] = times
    for size, found in by_size.items():
        others = {name: each for name, each in found.items() if name not in {OWN, UNTUNED}}
        if OWN in found:
            yield Times(size=size, own_us=found[OWN], others_us=others)


#: a neighbour's winner is taken where it is no slower than this; one rule then serves both sizes
NEIGHBOUR = 1.1


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One algorithm for a range of message sizes, and why.

    Attributes:
        first_bytes: smallest message size of the range; None for an operation without messages.
        last_bytes: largest one, included; nothing is said of sizes that nobody measured.
        algorithm: which one; None leaves the choice to the library.
        gain: the smallest measured gain over the own choice in the range; 1 where the own choice
            is only written down, because a file would otherwise take it away.
    """

    first_bytes: int | None
    last_bytes: int | None
    algorithm: Algorithm | None
    gain: float


def rules_of(sweep: Sweep) -> tuple[Rule, ...]:
    """Return the rules that mend what a sweep found, in the order of sizes; none where all is well.

    Where the site's environment itself forces an algorithm, sizes for which that is as good as any
    keep it by a rule: the mending replaces the site's variables.  An MPI that has no rules for some
    sizes only gets one for each measured size.

    Raises:
        ConfigError: it would need one where no algorithm is as good as the own choice.
    """
    if not any(choice.winners for choice in sweep.choices):
        return ()
    if _takes_variables_away(sweep):
        return (_for_all_sizes(sweep),)
    rules: list[Rule] = []
    for choice in sweep.choices:
        rule = _rule(sweep, choice, rules[-1] if rules else None)
        if rule is None:
            continue
        if rules and rules[-1].algorithm == rule.algorithm and _follows(sweep, rules[-1], rule):
            widened = replace(
                rules[-1], last_bytes=rule.last_bytes, gain=min(rules[-1].gain, rule.gain)
            )
            rules[-1] = widened
        else:
            rules.append(rule)
    return tuple(rules)


def _rule(sweep: Sweep, choice: Choice, before: Rule | None) -> Rule | None:
    chosen = _chosen(choice, before)
    if chosen is not None:
        algorithm = None if chosen == AUTO else sweep.knobs.find(chosen)
        gain = choice.own_us / choice.winners[chosen]
    else:
        algorithm, gain = sweep.knobs.forced(sweep.own_environment), 1.0
        if algorithm is None and sweep.knobs.names_all_sizes:
            algorithm, gain = _as_good(sweep, choice)
        if algorithm is None:
            return None
    return Rule(first_bytes=choice.size, last_bytes=choice.size, algorithm=algorithm, gain=gain)


def _takes_variables_away(sweep: Sweep) -> bool:
    """Tell whether the library's own choice, without the site's variables, serves for all sizes."""
    worst = max(
        choice.means_us.get(AUTO, float("inf"))
        / min(choice.own_us, *(choice.winners.values() or [choice.own_us]))
        for choice in sweep.choices
    )
    return worst <= NEIGHBOUR


def _for_all_sizes(sweep: Sweep) -> Rule:
    gains = [choice.own_us / choice.means_us[AUTO] for choice in sweep.choices if choice.winners]
    sizes = [choice.size for choice in sweep.choices]
    return Rule(first_bytes=sizes[0], last_bytes=sizes[-1], algorithm=None, gain=min(gains))


def _as_good(sweep: Sweep, choice: Choice) -> tuple[Algorithm, float]:
    """Return the fastest algorithm that is about as fast as an own choice that has no name."""
    known = {name: time for name, time in choice.means_us.items() if name != AUTO}
    best = min(known, key=known.__getitem__, default=None)
    if best is None or known[best] > NEIGHBOUR * choice.own_us:
        raise ConfigError(
            f"{sweep.knobs.family} leaves no size of {sweep.knobs.collective} to its own choice "
            "once one is tuned, and for some size none of its algorithms is as good",
            next_step="nothing to write; the sweep's table says which size wants which",
        )
    return sweep.knobs.find(best), choice.own_us / known[best]


def _chosen(choice: Choice, before: Rule | None) -> str | None:
    """Return the winner to take: the one of the neighbour where it is about as fast as the best."""
    if not choice.winners:
        return None
    best = next(iter(choice.winners))
    old = before.algorithm.id if before is not None and before.algorithm is not None else AUTO
    if choice.winners.get(old, float("inf")) <= NEIGHBOUR * choice.winners[best]:
        return old
    return best


def _follows(sweep: Sweep, before: Rule, rule: Rule) -> bool:
    """Tell whether no measured size lies between two rules."""
    sizes = [choice.size for choice in sweep.choices]
    return sizes.index(rule.first_bytes) == sizes.index(before.last_bytes) + 1


def one_for_all(sweep: Sweep) -> Algorithm | None:
    """Return an algorithm that wins for some size and is at least as good for all; None without.

    For an MPI that can be told one algorithm for all sizes and no more.
    """
    fit = {
        name: sum(choice.own_us / choice.means_us[name] for choice in sweep.choices)
        for name in {name for choice in sweep.choices for name in choice.winners}
        if name != AUTO
        and all(
            choice.means_us.get(name, float("inf")) <= NEIGHBOUR * choice.own_us
            for choice in sweep.choices
        )
    }
    best = max(fit, key=lambda name: (fit[name], name), default=None)
    return sweep.knobs.find(best) if best is not None else None
