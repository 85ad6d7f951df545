"""A planned comparison: two states of a site, switched and measured in turn.

Rounds are randomised blocks (Fisher 1935, *The Design of Experiments*, chapter 4): within each
both states are measured once, in an order drawn by lot, so that neither a drift nor the time of
day can pass for the difference.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NoReturn

from fabricproof.core.errors import (
    FabricproofError,
    InputMissingError,
    ParseError,
    UnavailableError,
)
from fabricproof.core.plain import typed
from fabricproof.core.records import read_json
from fabricproof.core.whole_file import refusal_of, whole_file
from fabricproof.history.compare.model import SideError

FORMAT = 1

#: below the perflogs of a site
FOLDER = "ab"

_NAME = re.compile(r"[A-Za-z][\w.-]{0,59}")

#: what stands for "the switch back was not seen to work"
UNKNOWN = "unknown"


class SwitchedError(FabricproofError, RuntimeError):
    """A site could not be switched, or could not be switched back."""

    exit_status = UnavailableError.exit_status


@dataclass(frozen=True, kw_only=True)
class InterleavedRun:
    """One run of a plan.

    Attributes:
        round: from 1; the block that both its runs are in.
        side: ``a`` or ``b``.
        run_id: empty until it came to its end.
    """

    round: int
    side: str
    run_id: str = ""


@dataclass(frozen=True, kw_only=True)
class InterleavedPlan:
    """An interleaved comparison, and how far it is.

    Attributes:
        name: of the switch, and of the labels ``NAME-a`` and ``NAME-b``.
        steps: in the order in which they run.
        arguments: of ``fabricproof run``, the same for each; None until the first began.
        switched: the state that the site was last put into; empty where it is back.
    """

    name: str
    seed: int
    steps: tuple[InterleavedRun, ...]
    arguments: tuple[str, ...] | None
    switched: str

    @property
    def next_step(self) -> InterleavedRun | None:
        """The first step without a run; None where all are done."""
        return next((each for each in self.steps if not each.run_id), None)

    @property
    def blocks(self) -> dict[str, int]:
        """Run to its round, of rounds of which both runs are there."""
        done = [each for each in self.steps if each.run_id]
        whole = {each.round for each in done if each.side == "a"} & {
            each.round for each in done if each.side == "b"
        }
        return {each.run_id: each.round for each in done if each.round in whole}

    @property
    def rounds(self) -> int:
        """How many there are."""
        return max((each.round for each in self.steps), default=0)

    def runs_of(self, side: str) -> tuple[str, ...]:
        """Return the runs of one side in whole rounds."""
        return tuple(
            each.run_id for each in self.steps if each.side == side and each.run_id in self.blocks
        )

    def label_of(self, side: str) -> str:
        """Return the label of the runs of a side."""
        return f"{self.name}-{side}"

    def with_run(self, step: InterleavedRun, run_id: str) -> InterleavedPlan:
        """Return the plan with the run of a step."""
        done = replace(step, run_id=run_id)
        return replace(self, steps=tuple(done if each == step else each for each in self.steps))


def make_plan(name: str, rounds: int, seed: int) -> InterleavedPlan:
    """Return a plan of ``rounds`` rounds, the order within each drawn with ``seed``.

    Raises:
        SideError: the name can be no label, or there is no round.
    """
    if not _NAME.fullmatch(name):
        raise SideError(
            "no name for a plan",
            expected="a letter, then up to 59 letters, digits, dots, hyphens, underscores",
            got=repr(name),
        )
    if rounds < 1:
        raise SideError("no round", expected="--rounds 1 or more", got=str(rounds))
    lot = random.Random(seed)  # noqa: S311 - an order, no secret
    steps = [
        InterleavedRun(round=number, side=side)
        for number in range(1, rounds + 1)
        for side in lot.sample(["a", "b"], 2)
    ]
    return InterleavedPlan(name=name, seed=seed, steps=tuple(steps), arguments=None, switched="")


def fewest_rounds(alpha: float) -> int:
    """Return the rounds from which BETTER or WORSE can be said at all.

    Within ``k`` blocks of two there are ``2 ** k`` orders, and a two-sided test calls at least two
    of them as extreme as any: no p is below ``2 ** (1 - k)``.
    """
    rounds = 1
    while 2.0 ** (1 - rounds) > alpha:
        rounds += 1
    return rounds


def state_file(perflogs: Path, site: str, name: str) -> Path:
    """Return where a plan is kept."""
    return perflogs / site / FOLDER / f"{name}.json"


def write_plan(path: Path, plan: InterleavedPlan) -> None:
    """Write a plan, whole or not at all.

    Raises:
        OutputError: it could not be written; what was there before is as it was.
    """
    text = json.dumps({"format": FORMAT, **asdict(plan)}, indent=1)
    with refusal_of("keep the plan", path, "make room"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(f"{text}\n".encode())


def read_plan(path: Path) -> InterleavedPlan:
    """Read what :func:`write_plan` wrote.

    Raises:
        InputMissingError: there is no such plan.
        ParseError: it is damaged.
    """
    try:
        record = read_json(path)
        if not isinstance(record, dict) or record.pop("format", None) != FORMAT:
            raise ValueError("another format, or none")
        return typed(InterleavedPlan, record)
    except FileNotFoundError:
        known = ", ".join(sorted(each.stem for each in path.parent.glob("*.json"))) or "none"
        raise InputMissingError(
            "no such plan",
            source=str(path),
            expected=f"one of: {known}",
            next_step=f"fabricproof ab plan {path.stem} --rounds 6",
        ) from None
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, got: str) -> ParseError:
    return ParseError(
        "no readable plan",
        source=str(path),
        expected=f"a file of format {FORMAT}",
        got=got[:200],
        next_step="move it away and plan anew; its runs keep their labels",
    )


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What one run of a plan came to.

    Attributes:
        whole: it came to its end, whatever its verdict.
        reason: why it did not.
    """

    run_id: str
    whole: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class InterleavedMeans:
    """What conducting a plan needs from outside.

    Attributes:
        switch: puts the site into ``a`` or ``b``, or ``back``; raises where it cannot.
        measure: runs the checks once with the plan's arguments.
        label: gives a run a label.
        keep: writes the plan.
        tell: takes each line of progress.
    """

    switch: Callable[[str], None]
    measure: Callable[[tuple[str, ...]], RunOutcome]
    label: Callable[[str, str], object]
    keep: Callable[[InterleavedPlan], None]
    tell: Callable[[str], None]


def conduct(plan: InterleavedPlan, means: InterleavedMeans) -> InterleavedPlan:
    """Run what is left of a plan; the site is switched back whatever happens.

    Each step is kept before and after it: what interrupts it costs that step alone.

    Raises:
        SwitchedError: a switch failed, or the switch back did.
        UnavailableError: a run did not come to its end.
        KeyboardInterrupt: after the switch back.
    """
    if plan.next_step is None:
        return plan
    try:
        while (step := plan.next_step) is not None:
            plan = _kept(replace(plan, switched=step.side), means)
            means.tell(f"round {step.round} of {plan.rounds}: switching to {step.side}")
            means.switch(step.side)
            plan = _measured(plan, step, means)
    except BaseException as error:
        _back_after(plan, means, error)
    return switch_back(plan, means)


def _measured(
    plan: InterleavedPlan, step: InterleavedRun, means: InterleavedMeans
) -> InterleavedPlan:
    means.tell(f"round {step.round} of {plan.rounds}: measuring {plan.label_of(step.side)}")
    measured = means.measure(plan.arguments or ())
    if not measured.whole:
        raise UnavailableError(
            f"run {measured.run_id} of round {step.round} did not come to its end",
            got=measured.reason or None,
            next_step=f"fabricproof ab run {plan.name}   # goes on from here",
        )
    means.label(measured.run_id, plan.label_of(step.side))
    return _kept(plan.with_run(step, measured.run_id), means)


def _kept(plan: InterleavedPlan, means: InterleavedMeans) -> InterleavedPlan:
    means.keep(plan)
    return plan


def _back_after(plan: InterleavedPlan, means: InterleavedMeans, error: BaseException) -> NoReturn:
    """Switch back after something went wrong, then say what; both are said where both did."""
    try:
        switch_back(plan, means)
    except FabricproofError as second:
        raise SwitchedError(
            f"{second.problem}, after: {error or type(error).__name__}",
            expected=second.expected,
            got=second.got,
            next_step=second.next_step,
        ) from error
    raise error


def switch_back(plan: InterleavedPlan, means: InterleavedMeans) -> InterleavedPlan:
    """Put the site back and say so in the plan.

    Raises:
        SwitchedError: it could not be; the plan keeps that the state is not known.
    """
    means.tell("switching back")
    try:
        means.switch("back")
    except BaseException:
        means.keep(replace(plan, switched=UNKNOWN))
        raise
    return _kept(replace(plan, switched=""), means)


def plan_lines(plan: InterleavedPlan, commands: Mapping[str, str]) -> Iterator[str]:
    """Yield a plan for a person: what will be run in which order, and how far it is."""
    done = sum(bool(each.run_id) for each in plan.steps)
    runs = f"{done} of {len(plan.steps)} runs done"
    yield f"plan {plan.name}: {plan.rounds} rounds, {runs}, seed {plan.seed}"
    for name, command in commands.items():
        yield f"  {name:<5} {command}"
    for number in range(1, plan.rounds + 1):
        steps = [each for each in plan.steps if each.round == number]
        told = ", ".join(f"{each.side} {each.run_id or '-'}" for each in steps)
        yield f"  round {number:>2}: {told}"
    if plan.switched:
        yield f"  WARNING switched to {plan.switched}, not back: fabricproof ab back {plan.name}"
