"""What the proof on a site's own nights came to: plain records, ``--json``, text for a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fabricproof.core.plain import plain
from fabricproof.core.units import columns, counted
from fabricproof.history.stats.share import Share
from fabricproof.history.store import Run

#: a promise is called broken where it could be kept in fewer than one of so many such proofs
_SURE = 0.001


class CallRule(StrEnum):
    """By what a night is judged."""

    LIMITS = "limits"
    BASELINE = "baseline"
    TREND = "trend"


@dataclass(frozen=True, kw_only=True)
class NightVerdict:
    """A night of the past as if it were the newest.

    Attributes:
        said: by each rule that could judge it, what is red; empty where nothing is.
    """

    run: Run
    said: Mapping[CallRule, str]

    def is_red(self, rule: CallRule) -> bool:
        """Whether a rule makes the night red."""
        return bool(self.said.get(rule))


@dataclass(frozen=True, kw_only=True)
class Call:
    """A night in which a rule is red that was not red the night before.

    Attributes:
        said: by each such rule.
        lasts: nights, this one included, until none of these rules is red.
    """

    run: Run
    said: Mapping[CallRule, str]
    lasts: int


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Nights of one level.

    Attributes:
        runs: oldest first.
        steps: moments at which trend sees a step in the whole history.
        is_newest: whether they are those since the last step.
    """

    runs: tuple[Run, ...]
    steps: int
    is_newest: bool


@dataclass(frozen=True, kw_only=True)
class Strength:
    """A loss, as a fraction, and how many tries with it were caught."""

    loss: float
    caught: Share


@dataclass(frozen=True, kw_only=True)
class NoticedFrom:
    """The least loss of one rail of one node that a rule notices.

    Attributes:
        nights: with the loss; one of them must be red, or trend tells it after the last.
        half: caught in half of the tries and more; None: not even the largest tried.
        all_but: in 99 % and more.
    """

    rule: CallRule
    nights: int
    half: Strength | None
    all_but: Strength | None


@dataclass(frozen=True, kw_only=True)
class KindFloor:
    """Floors of one metric on one fabric.

    Attributes:
        metric: bandwidth, message rate or latency.
        places: rails of nodes that the loss was put on.
    """

    fabric: str
    metric: str
    places: int
    floors: tuple[NoticedFrom, ...]


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """What is told of clean nights, which is false each time.

    Attributes:
        told: rule to nights (baseline) or orders of all nights (trend) that were red.
        promised: rule to the share that may be.
        by_night: drawn histories in which who asks trend each night has a false call.
        red: the nights that the baseline made red, oldest first.
    """

    told: Mapping[CallRule, Share]
    promised: Mapping[CallRule, float]
    by_night: Share
    red: tuple[Run, ...]

    def broken(self) -> list[CallRule]:
        """Return the rules that are red more often than promised, hardly by chance."""
        return [
            rule for rule, share in self.told.items() if share.p_of(self.promised[rule]) < _SURE
        ]


@dataclass(frozen=True, kw_only=True)
class SiteProof:
    """What the rules of today say of a site's own nights, and what they would notice there.

    Attributes:
        nights: oldest first.
        no_baseline: why the last night without a baseline had none; empty where all had one.
        stretch: the nights of one level that the rest is about.
        seed: of the orders of these nights.
        lag: how much one night hangs together with the next; 0 where no more than by chance.
        drifts: slow changes in the whole history.
        num_red: numbers of the stretch that were red by limits and are left out of it.
        notes: what was passed over while reading.
        shuffled: None where the stretch is too short.
        floors: empty where it is.
    """

    site: str
    nights: tuple[NightVerdict, ...]
    no_baseline: str
    stretch: Stretch
    seed: int
    lag: float
    drifts: int
    num_red: int
    notes: tuple[str, ...]
    shuffled: Shuffled | None = None
    floors: tuple[KindFloor, ...] = field(default=())

    @property
    def calls(self) -> tuple[Call, ...]:
        """When somebody would have been called: a rule turned red."""
        found = []
        before: frozenset[CallRule] = frozenset()
        for at, night in enumerate(self.nights):
            red = frozenset(rule for rule in CallRule if night.is_red(rule))
            new = red - before
            if new:
                said = {rule: night.said[rule] for rule in CallRule if rule in new}
                found.append(Call(run=night.run, said=said, lasts=self._lasts(at, new)))
            before = red
        return tuple(found)

    def _lasts(self, at: int, rules: frozenset[CallRule]) -> int:
        count = 0
        for night in self.nights[at:]:
            if not any(night.is_red(rule) for rule in rules):
                break
            count += 1
        return count

    def red_of(self, rule: CallRule) -> tuple[int, int]:
        """Return the nights that a rule makes red, and those that it could judge."""
        judged = [night for night in self.nights if rule in night.said]
        return sum(night.is_red(rule) for night in judged), len(judged)


def proof_record(proof: SiteProof) -> dict[str, Any]:
    """Return the form of ``--json``; losses are fractions, bounds those of 95 %."""
    return plain(
        proof,
        nights=[plain(each, run=each.run.named) for each in proof.nights],
        calls=[plain(each, run=each.run.named) for each in proof.calls],
        stretch=plain(proof.stretch, runs=[each.named for each in proof.stretch.runs]),
        shuffled=_shuffled(proof.shuffled) if proof.shuffled else None,
        floors=[
            plain(kind, floors=[_noticed(each) for each in kind.floors]) for kind in proof.floors
        ],
    )


def _shuffled(shuffled: Shuffled) -> dict[str, Any]:
    return plain(
        shuffled,
        told={rule: plain(share, "bounds") for rule, share in shuffled.told.items()},
        by_night=plain(shuffled.by_night, "bounds"),
        red=[each.named for each in shuffled.red],
        broken=shuffled.broken(),
    )


def _noticed(floor: NoticedFrom) -> dict[str, Any]:
    half, all_but = (
        plain(each, caught=plain(each.caught, "bounds")) if each else None
        for each in (floor.half, floor.all_but)
    )
    return plain(floor, half=half, all_but=all_but)


_TEXT_WIDTH = 100

#: calls that are shown
_SHOWN = 12


def proof_lines(proof: SiteProof, *, verbose: bool = False) -> Iterator[str]:
    """Yield the proof, line by line."""
    for number, part in enumerate((_past(proof, verbose=verbose), _clean(proof), _seen(proof)), 1):
        if number > 1:
            yield ""
        for line in part:
            yield from (
                textwrap.wrap(
                    line,
                    _TEXT_WIDTH,
                    subsequent_indent=" " * (len(line) - len(line.lstrip()) + 2),
                    break_on_hyphens=False,
                    drop_whitespace=True,
                )
                if len(line) > _TEXT_WIDTH
                else [line]
            )
    yield from (f"note: {each}" for each in proof.notes)


def _past(proof: SiteProof, *, verbose: bool) -> Iterator[str]:
    calls = proof.calls
    first, last = proof.nights[0].run.night, proof.nights[-1].run.night
    called = counted(len(calls), "time") if calls else "never"
    yield (
        f"{proof.site}, {counted(len(proof.nights), 'night')} from {first} to {last} UTC: "
        f"by the rules of today you would have been called {called}"
    )
    shown = calls if verbose else calls[-_SHOWN:]
    for call in shown:
        lasts = counted(call.lasts, "night")
        for rule, words in call.said.items():
            yield f"  {call.run.night}  {lasts}, {rule}: {words}"
    if len(shown) < len(calls):
        yield f"  and {len(calls) - len(shown)} earlier ones: --all shows them"
    counts = (
        f"{rule} {red} of {judged}" for rule in CallRule for red, judged in [proof.red_of(rule)]
    )
    yield f"red nights: {', '.join(counts)}; a rule judges no night that has too few before it"
    yield (
        "limits are physics and references as they were that night; the baseline is learnt anew "
        "before each night from up to 30 nights before it, of no rail of a node that was red by it"
        "; trend looks at the newest 60"
    )
    yield "a night looks a second time at what is red, which a replay cannot: this is the most"
    if proof.no_baseline:
        yield f"no baseline could be learnt for a night, last {proof.no_baseline}"


def _clean(proof: SiteProof) -> Iterator[str]:
    runs = proof.stretch.runs
    since = "since the last step" if proof.stretch.is_newest else "the longest without a step"
    which = since if proof.stretch.steps else "no step in them"
    yield (
        f"clean nights: {len(runs)} from {runs[0].night} to {runs[-1].night} UTC ({which}), in "
        f"other orders (seed {proof.seed})"
    )
    if proof.num_red:
        yield f"  {counted(proof.num_red, 'number')} of them, red by limits, left out"
    if proof.shuffled is None:
        yield (
            "  too few to say what is called falsely or what would be noticed: 8 with a number "
            "that is not red are the least"
        )
        return
    told, promised = proof.shuffled.told, proof.shuffled.promised
    yield (
        f"  baseline  each night judged by others: red {told[CallRule.BASELINE]}; "
        f"promised {_percent(promised[CallRule.BASELINE])}"
    )
    if proof.shuffled.red:
        nights = ", ".join(each.night for each in proof.shuffled.red[-_SHOWN:])
        yield f"    red, falsely unless the night was bad by itself: {nights}"
    yield (
        f"  trend     orders in which it tells a change: {told[CallRule.TREND]}; "
        f"promised {_percent(promised[CallRule.TREND])} at most; it compares with such orders "
        "itself, so that this says little"
    )
    yield (
        f"    asked each night, as nights are: a false call in {proof.shuffled.by_night} drawn "
        f"histories of {counted(min(len(runs), 60), 'night')}"
    )
    for rule in proof.shuffled.broken():
        yield (
            f"  BROKEN: {rule} is red more often than promised (p < {_SURE:g}), or these nights "
            "were bad"
        )
    if proof.lag > 0:
        yield (
            f"  one night hangs together with the next (correlation {proof.lag:.2f}), which other "
            "orders lose: real nights are called falsely more often, and less is noticed"
        )
    if proof.drifts:
        yield (
            f"  {counted(proof.drifts, 'drift')} in the history: in other orders that is noise, "
            "and what is noticed is understated"
        )


def _seen(proof: SiteProof) -> Iterator[str]:
    if not proof.floors:
        return
    yield "one rail of one node is slower in the newest nights: what is noticed in 99 % of tries"
    for kind in proof.floors:
        one, three = (_surely(kind, nights) for nights in (1, 3))
        yield f"  {kind.fabric}, {_LOST[kind.metric]}: in one night {one}, in three {three}"
    rows: list[Sequence[str]] = [("", "", "one night, 50 %", "99 %", "three nights, 50 %", "99 %")]
    for kind in proof.floors:
        for rule in (CallRule.BASELINE, CallRule.TREND):
            mine = [each for each in kind.floors if each.rule is rule]
            cells = [_cell(each) for floor in mine for each in (floor.half, floor.all_but)]
            if cells:
                name = f"{kind.fabric} {kind.metric}" if rule is CallRule.BASELINE else ""
                rows.append((name, str(rule), *cells))
    yield from (f"  {line}" for line in columns(rows, frozenset({2, 3, 4, 5})))
    tries = sorted({each.caught.of for kind in proof.floors for each in _all(kind)})
    if tries:
        least = Share(hits=tries[0], of=tries[0]).bounds[0]
        yield (
            f"  {tries[0]} to {tries[-1]} tries each: all of {tries[0]} caught proves "
            f"{_percent(least)}; tries share the same nights, so that few nights leave more doubt "
            "than that"
        )
    yield (
        "  only quantities of that metric over that rail alone are made slower; the baseline must "
        "be one of the nights before (fabricproof baseline freeze)"
    )


#: how a loss of a metric is said
_LOST = {
    "bandwidth": "less bandwidth",
    "message rate": "fewer messages",
    "latency": "longer latency",
}


def _surely(kind: KindFloor, nights: int) -> str:
    """Return from which loss on the better rule notices 99 % of tries."""
    found = [
        (each.all_but.loss, each.rule)
        for each in kind.floors
        if each.nights == nights and each.all_but is not None
    ]
    if not found:
        return "nothing for sure"
    loss, rule = min(found)
    return f"from {_percent(loss)} on ({rule})"


def _all(kind: KindFloor) -> Iterator[Strength]:
    for floor in kind.floors:
        yield from (each for each in (floor.half, floor.all_but) if each is not None)


def _cell(strength: Strength | None) -> str:
    return "none" if strength is None else _percent(strength.loss)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
