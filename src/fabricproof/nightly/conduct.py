"""Look again at what was red or left open in a run, and keep both outcomes.

How ReFrame is started, and how Slurm is asked for its nodes, is handed in: this decides only what
is asked when, so that it can be tried without a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from fabricproof.core.errors import ExitStatus, FabricproofError
from fabricproof.core.measure import Verdict
from fabricproof.core.records import append_records, record_file
from fabricproof.core.units import by_key
from fabricproof.job.run import RunResult
from fabricproof.nightly.confirm import Confirmation, Look, LookColour, Red, Role, record
from fabricproof.nightly.decide import decide_all
from fabricproof.nightly.looks import (
    Batch,
    LookAsked,
    Partners,
    batches_of,
    look_at,
    open_of,
    reds_of,
    unseen,
    why_no_look,
)
from fabricproof.site import NightSpec

#: looks at one red leg: the same nodes, and each of its two sides with another partner
LOOKS_OF_A_RED = 3


class Runner(Protocol):
    """Starts ReFrame with ``arguments``, on ``nodes`` if they are named."""

    def __call__(self, arguments: Sequence[str], nodes: tuple[str, ...]) -> RunResult:
        """Return what the run came to."""


@dataclass(kw_only=True)
class Budget:
    """How much looking again a night may do.

    Attributes:
        checks: that may still be run again.
        until: when no further look begins, of ``clock``, in s.
    """

    checks: int
    until: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def of(cls, spec: NightSpec) -> Budget:
        """Return what a site allows, from now on."""
        return cls(checks=spec.confirm_checks, until=time.monotonic() + 60 * spec.confirm_minutes)

    def take(self, batch: Batch, most: int) -> tuple[Batch, str]:
        """Return what is to be had of ``batch``, and why the rest is not."""
        if self.clock() >= self.until:
            why = "the time for confirming was over (confirm_minutes of [night])"
            return replace(batch, checks=()), why
        count = min(len(batch.checks), self.checks, most)
        self.checks -= count
        why = "enough checks were run again tonight (confirm_checks of [night])"
        return replace(batch, checks=batch.checks[:count]), why


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """What looking again came to; ``ended``: the look that did not come to its end."""

    confirmations: tuple[Confirmation, ...]
    ended: RunResult | None = None


class Confirmer:
    """Looks again at the legs of one run that are red or left open."""

    def __init__(
        self,
        site: str,
        run: Runner,
        usable: Callable[[str], tuple[str, ...]],
        budget: Budget,
        say: Callable[[str], object],
    ) -> None:
        self.site = site
        self.run = run
        self.usable = usable
        self.budget = budget
        self.say = say
        self.looks: list[list[Look]] = []
        self.ended: RunResult | None = None

    def confirm(self, result: RunResult) -> Confirmed:
        """Look at every red leg of ``result`` again, on the same nodes and with others.

        What is left of the budget is for what is UNJUDGED for a cause that passes.
        """
        return self._confirm(reds_of(result), result)

    def measure_again(self, result: RunResult) -> Confirmed:
        """Look once more at what is UNJUDGED for a cause that passes, never at what is red."""
        return self._confirm((), result)

    def _confirm(self, reds: tuple[Red, ...], result: RunResult) -> Confirmed:
        every = (*reds, *open_of(result))
        self.looks = [[] for _ in every]
        asks = [
            LookAsked(at=at, red=red, role=Role.SAME, nodes=red.nodes)
            for at, red in enumerate(every)
        ]
        for ask in asks:
            if why := why_no_look(ask.red):
                self.looks[ask.at].append(unseen(ask, why))
        asks = [ask for ask in asks if not self.looks[ask.at]]
        # To know whose fault one leg is takes two looks more, and is worth more than another leg.
        # A check that runs again for a red leg is the second look at its open ones as well.
        first = [ask for ask in asks if ask.at < len(reds)]
        self._look(first, asks, -(-self.budget.checks // LOOKS_OF_A_RED))
        # Whom rounds over all nodes blame needs no partners to be told apart.
        again = [
            ask
            for ask in first
            if not ask.red.faults
            and any(look.colour is LookColour.RED for look in self.looks[ask.at])
        ]
        if again:
            self._with_others(again, reds, result)
        left = [
            ask
            for ask in asks
            if ask.at >= len(reds) and not any(look.run_id for look in self.looks[ask.at])
        ]
        self._look(left, left, self.budget.checks)
        return Confirmed(confirmations=decide_all(every, self.looks), ended=self.ended)

    def _with_others(
        self, again: Sequence[LookAsked], reds: Sequence[Red], result: RunResult
    ) -> None:
        usable: dict[str, tuple[str, ...]] = {}
        for partition in sorted({ask.red.key.partition for ask in again}):
            try:
                usable[partition] = self.usable(partition)
            except FabricproofError as error:
                self.say(f"no partners in {partition}: {error}")
        partners = Partners.after(result, reds, usable)
        asks = []
        for ask in again:
            sides, why = partners.sides_of(ask.red)
            asks += [replace(ask, role=role, nodes=nodes) for role, nodes in sides]
            if why:
                self.looks[ask.at].append(unseen(replace(ask, role=Role.FIRST), why))
        self._look(asks, asks, self.budget.checks)

    def _look(
        self, asks: Sequence[LookAsked], answered: Sequence[LookAsked], allowance: int
    ) -> None:
        """Run what ``asks`` need, within an allowance of checks; keep what ``answered`` saw.

        Each batch gets a fair share.  The batches of both sides of a pair have their checks in one
        order, so that they are cut alike.
        """
        batches = batches_of(asks)
        for number, batch in enumerate(batches):
            mine = [ask for ask in answered if batch.answers(ask)]
            share = max(1, allowance // (len(batches) - number)) if allowance > 0 else 0
            taken, why = replace(batch, checks=()), ""
            if self.ended:
                why = self.ended.stopped
            else:
                taken, why = self.budget.take(batch, share)
            allowance -= len(taken.checks)
            ran = self._started(taken, mine) if taken.checks else None
            for ask in mine:
                if ran is None or not taken.answers(ask):
                    look = unseen(ask, why)
                else:
                    # What a look had not come to is not red: only a look that ended counts.
                    look = unseen(ask, ran.stopped) if ran.stopped else look_at(ask, ran)
                self.looks[ask.at].append(look)

    def _started(self, batch: Batch, asks: Sequence[LookAsked]) -> RunResult:
        names = ", ".join(check for check, _ in batch.checks)
        where = f"{names} with {batch.stack} on {','.join(batch.nodes)}"
        reds = [ask.red for ask in asks]
        if all(red.verdict is Verdict.UNJUDGED for red in reds):
            causes = dict.fromkeys(f"{red.key.leg} {red.cause}" for red in reds)
            self.say(f"measuring again: {where}: {', '.join(causes)}")
        else:
            self.say(f"looking again: {where}")
        ran = started(lambda: self.run(batch.arguments(self.site), batch.nodes))
        if ran.stopped:
            self.ended = ran
        return ran


def started(run: Callable[[], RunResult]) -> RunResult:
    """Return what a run came to, also one that could not begin."""
    try:
        return run()
    except FabricproofError as error:
        return RunResult(run_id="", stopped=str(error), status=int(error.exit_status))
    except OSError as error:
        # No process, no memory, no file left: the night ends with a line, and tells of it.
        reason = f"the system refuses: {error}"
        unavailable = int(ExitStatus.UNAVAILABLE)
        return RunResult(run_id="", stopped=reason, status=unavailable, refused=True)
    except KeyboardInterrupt:
        interrupted = int(ExitStatus.INTERRUPTED)
        return RunResult(run_id="", stopped="interrupted", status=interrupted)


def keep(perflogs: Path, site: str, confirmations: Sequence[Confirmation], night: str) -> None:
    """Append the confirmations to the records of their partitions, both outcomes of each."""
    lines = (
        (
            record_file(perflogs / site / each.red.key.partition, each.red.run_id),
            {
                "kind": "confirmation",
                "night": night,
                "site": site,
                "run_id": each.red.run_id,
                # Every record says whose it is; a confirmation belongs to no job of the run.
                "unique_name": "",
                "job_id": "",
                **record(each),
            },
        )
        for each in confirmations
        if each.red.key.partition  # what ran nowhere has no records; the log has it
    )
    for path, mine in by_key(lines).items():
        append_records(path, mine)
