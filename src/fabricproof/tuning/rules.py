"""From decisions about sizes to rules: which algorithm for which range of message sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fabricproof.core.errors import ConfigError
from fabricproof.tuning.decision import Choice
from fabricproof.tuning.knobs import Algorithm
from fabricproof.tuning.sweeps import AUTO, Sweep

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
        name: _worth(sweep.choices, name)
        for name in {name for choice in sweep.choices for name in choice.winners}
        if name != AUTO
        and all(
            choice.means_us.get(name, float("inf")) <= NEIGHBOUR * choice.own_us
            for choice in sweep.choices
        )
    }
    best = max(fit, key=lambda name: (fit[name], name), default=None)
    return sweep.knobs.find(best) if best is not None else None


def _worth(choices: Iterable[Choice], name: str) -> float:
    return sum(choice.own_us / choice.means_us[name] for choice in choices)
