"""The smallest sample with which each rule can fire at all, found by trying the rule itself.

What is tried is far off and hardly scatters: with fewer nothing could, however bad it is.
"""

from __future__ import annotations

import itertools
import random
import re
import tempfile
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.core.measure import Verdict
from fabricproof.history.stats.shifts import Change
from fabricproof.history.trend.model import trend_lines
from fabricproof.job.evidence.error_rates import TCP_PAIR_LIMIT, red_from, visible_rate
from fabricproof.job.rounds import RatioStanding, RoundBounds, decide_rounds
from fabricproof.pairs import Setting, SuspectKind, run_campaign
from fabricproof.proof.histories import (
    HistoryEffect,
    compare_nights,
    freeze_nights,
    sides_of,
    trend_of,
)
from fabricproof.proof.machine import effects
from fabricproof.proof.machine.effects import Injection
from fabricproof.proof.machine.model import SOCKETS, ModelMachine, NoiseKind
from fabricproof.proof.machine.night import Conductor, ModelNight
from fabricproof.proof.machine.scene import Scene
from fabricproof.proof.nights import MadeNight, Slow, night_of

#: what a rail loses here, and its verdict is sought among so many
LOSS, MOST = 0.5, 40

#: runs after a step from which on trend may call it
_CALLED = 3

#: whether a rule fires with a sample of so many, and what is said of it
Fired = tuple[bool, str]


@dataclass(frozen=True, kw_only=True)
class Least:
    """A rule and what it takes.

    Attributes:
        rule: what it says.
        sample: of what it takes how many.
        below: what the product says with one fewer.
    """

    rule: str
    sample: str
    below: str


def least_samples() -> tuple[Least, ...]:
    """Return what every rule takes."""
    return tuple(
        _least(rule, unit, fires, first)
        for rule, unit, fires, first in (
            ("a number against its bounds: FAIL", "looks in a job", _looks, 1),
            ("path of a number: INVALID", "looks in a job", _path_looks, 1),
            ("night: a node is blamed", "usable nodes", _partners, 2),
            ("pairs run: a node is blamed", "nodes", _campaign, 4),
            ("relation between legs: FAIL", "rounds", _ratio_red, 1),
            ("relation between legs: PASS", "rounds", _ratio_green, 1),
            ("losses on a lossless fabric: FAIL", "packets", _lossless, 1),
            ("losses of TCP at ten times its limit: seen", "packets", _tcp, 1),
            ("compare: BETTER or WORSE", "runs on each side", _sides_worse, 1),
            ("compare: SAME", "runs on each side", _sides_same, 1),
            ("compare: one run against several", "runs of the other side", _one_run, 1),
            ("trend: a step", "runs", _step, 1),
            ("trend: a step three runs ago, for sure", "runs", _sure_step, 1),
            ("trend: a step two runs ago", "runs", _newest_step, 1),
            ("trend: a last run that is far off", "runs", _last_run, 1),
            ("trend: a drift", "runs", _drift, 1),
            ("baseline: any bound", "runs", _baseline, 1),
        )
    )


def _least(rule: str, unit: str, fires: Callable[[int], Fired], first: int) -> Least:
    most = 10**7 if unit == "packets" else MOST
    sizes = range(first, most)
    at = bisect_left(sizes, 1, key=lambda size: fires(size)[0])
    if at == len(sizes):
        raise AssertionError(f"{rule}: it never fires")
    below = fires(sizes[at - 1])[1] if at else "nothing is below it"
    return Least(rule=rule, sample=f"{sizes[at]} {unit}", below=below)


def _machine(nodes: int = 2) -> ModelMachine:
    names = tuple(f"n{number}" for number in range(1, nodes + 1))
    chance = random.Random(7)  # noqa: S311 - it draws noise, no secret
    return ModelMachine(fabric=SOCKETS, nodes=names, chance=chance, noise=NoiseKind.LOGNORMAL)


# --- one night


def _looks(num: int) -> Fired:
    """A rail that is slow at the first ``num`` looks of each job."""
    return _night(num, effects.port_rate, Verdict.FAIL)


def _path_looks(num: int) -> Fired:
    return _night(num, effects.wrong_rail, Verdict.INVALID)


def _night(num: int, effect: Callable[[Scene, Injection], None], due: Verdict) -> Fired:
    def at_looks(scene: Scene, drawn: Injection) -> None:
        if scene.attempt <= num:
            effect(scene, drawn)

    came = _play(_machine(3), at_looks)
    told = came.said or next((line for line in came.everything.splitlines() if "look" in line), "")
    return came.result.verdict is due, _from(told, "second look")


def _partners(num: int) -> Fired:
    came = _play(_machine(num), effects.port_rate)
    said = next((each.sentence for each in came.confirmations), "")
    return any(each.blamed == ("n1",) for each in came.confirmations), _from(said, "nodes not")


def _play(machine: ModelMachine, effect: Callable[[Scene, Injection], None]) -> ModelNight:
    rail = machine.fabric.rails[0]
    drawn = Injection(strength=LOSS, node="n1", peer="n2", rail=rail, machine=machine)
    conductor = Conductor(machine=machine, changes=[lambda scene: effect(scene, drawn)])
    try:
        return conductor.night(("n1", "n2"))
    finally:
        conductor.end()


def _campaign(num: int) -> Fired:
    setting = Setting(
        num_nodes=num, per_leaf=8, num_faults=1, strength=(LOSS, LOSS), kinds=(SuspectKind.NODE,)
    )
    came = run_campaign(setting, 0)
    return bool(came.located), f"{came.verdict}, blamed: {', '.join(came.blamed) or 'nobody'}"


def _ratio(num: int, ratio: float, due: RatioStanding) -> Fired:
    found = decide_rounds([ratio * (1 + each / 1e6) for each in range(num)], RoundBounds(lower=1.0))
    return found.standing is due, f"{found.standing}: some {found.would_tell} rounds would tell"


def _ratio_red(num: int) -> Fired:
    return _ratio(num, LOSS, RatioStanding.BELOW)


def _ratio_green(num: int) -> Fired:
    return _ratio(num, 1.5, RatioStanding.INSIDE)


def _lossless(num: int) -> Fired:
    return red_from(num, 0.0) <= num, ""


def _tcp(num: int) -> Fired:
    seen = visible_rate(num, TCP_PAIR_LIMIT)
    return seen <= 10 * TCP_PAIR_LIMIT, f"so few packets show no rate below {seen:.4g} per million"


# --- several nights


def _sides_worse(num: int) -> Fired:
    return _compared(*sides_of(HistoryEffect.SIDES_RAIL, LOSS, _machine(), num), Change.WORSE)


def _sides_same(num: int) -> Fired:
    return _compared(*sides_of(HistoryEffect.SIDES_NOTHING, LOSS, _machine(), num), Change.SAME)


def _one_run(num: int) -> Fired:
    before, after = sides_of(HistoryEffect.SIDES_RAIL, LOSS, _machine(), num)
    return _compared(before, after[:1], Change.WORSE)


def _compared(before: list[MadeNight], after: list[MadeNight], due: Change) -> Fired:
    with tempfile.TemporaryDirectory() as folder:
        found = compare_nights(Path(folder), before, after)
    told = next((each for each in found.warnings if "cannot be BETTER" in each), "")
    return found.overall is due, told or found.reason


def _step(num: int) -> Fired:
    return _told(num, lambda at: float(at >= num / 2))


def _newest_step(num: int) -> Fired:
    return _told(num, lambda at: float(at >= num - 2))


def _last_run(num: int) -> Fired:
    return _told(num, lambda at: float(at == num - 1))


def _drift(num: int) -> Fired:
    return _told(num, lambda at: at / num, is_drift=True)


def _sure_step(num: int) -> Fired:
    return _told(num, lambda at: float(at >= num - _CALLED), is_sure=True)


def _told(
    num: int, part: Callable[[int], float], *, is_drift: bool = False, is_sure: bool = False
) -> Fired:
    machine = _machine()
    rail = machine.fabric.rails[-1]
    slow = [Slow(by=LOSS * part(at), touches=lambda place: place[0] == rail) for at in range(num)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = trend_of(Path(folder), [night_of(machine, each) for each in slow])
        except FabricproofError as error:
            return False, str(error)
    fires = bool(found.drifts) if is_drift else found.looks_worse_now and not found.drifts
    fires = fires and (found.is_worse_now or not is_sure)
    return fires, next(itertools.chain(found.warnings, trend_lines(found)))


def _baseline(num: int) -> Fired:
    machine = _machine()
    with tempfile.TemporaryDirectory() as folder:
        try:
            freeze_nights(Path(folder), [night_of(machine) for _ in range(num)])
        except FabricproofError as error:
            return False, str(error)
    return True, ""


def _from(text: str, word: str) -> str:
    """Return the clause of a sentence that begins with a word; all of it where none does."""
    at = text.find(word)
    return re.split("[;\n]", text[max(at, 0) :], maxsplit=1)[0][:200]
