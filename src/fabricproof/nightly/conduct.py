"""Look again at what was red or left open in a run, and keep both outcomes.

How ReFrame is started, and how Slurm is asked for its nodes, is handed in: this decides only what
is asked when, so that it can be tried without a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from fabricproof.core.errors import ExitStatus, FabricproofError
from fabricproof.core.measure import Verdict
from fabricproof.core.records import append_records
from fabricproof.job.run import RunResult
from fabricproof.nightly.confirm import Confirmation, Look, LookColour, Red, Role, record
from fabricproof.nightly.decide import decide_all
from fabricproof.nightly.looks import (
    Batch,
    batches_of,
    first_looks,
    look_at,
    open_of,
    partners,
    reds_of,
    swaps,
    unseen,
    why_no_look,
)
from fabricproof.site import NightSpec

#: looks at one red leg: the same nodes, and each of its two sides with another partner
LOOKS_OF_A_RED = 3


class Runner(Protocol):
    """Starts ReFrame with ``arguments``, on ``nodes`` where they are named."""

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

    def take(self, batch: Batch, most: int) -> tuple[Batch | None, str]:
        """Take what is to be had of ``batch``; return it, and why the rest is not."""
        if self.clock() >= self.until:
            return None, "the time for confirming was over (confirm_minutes of [night])"
        count = min(len(batch.checks), self.checks, most)
        self.checks -= count
        refusal = "enough checks were run again tonight (confirm_checks of [night])"
        return (replace(batch, checks=batch.checks[:count]) if count else None), refusal


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
        self.looks: dict[int, list[Look]] = {}
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
        self.looks = {index: [] for index in range(len(every))}
        for index, red in enumerate(every):
            if why := why_no_look(red):
                self.looks[index].append(unseen(red, Role.SAME, red.nodes, why))
        # A check that runs again for a red leg is the second look at its open ones as well.
        first = [(index, red, Role.SAME) for index, red in enumerate(every)]
        # To know whose fault one leg is takes two looks more, and is worth more than another leg.
        allowance = -(-self.budget.checks // LOOKS_OF_A_RED)
        batches = first_looks(reds)
        for number, batch in enumerate(batches):
            share = _share(allowance, len(batches) - number)
            allowance -= self._look(batch, first, share)
        # Whom rounds over all nodes blame needs no partners to be told apart.
        again = [(i, red) for i, red in enumerate(reds) if self._is_red_again(i) and not red.faults]
        if again:
            self._with_others(again, reds, result)
        self._at_what_is_open([each for each in first if each[0] >= len(reds)])
        found = decide_all(every, [self.looks[index] for index in range(len(every))])
        return Confirmed(confirmations=found, ended=self.ended)

    def _at_what_is_open(self, every: Sequence[tuple[int, Red, Role]]) -> None:
        left = [each for each in every if not any(look.run_id for look in self.looks[each[0]])]
        batches = first_looks(red for _, red, _ in left)
        for number, batch in enumerate(batches):
            self._look(batch, left, _share(self.budget.checks, len(batches) - number))

    def _is_red_again(self, index: int) -> bool:
        return any(
            look.role is Role.SAME and look.colour is LookColour.RED for look in self.looks[index]
        )

    def _with_others(
        self, again: Sequence[tuple[int, Red]], reds: Sequence[Red], result: RunResult
    ) -> None:
        usable: dict[str, tuple[str, ...]] = {}
        for partition in sorted({red.key.partition for _, red in again}):
            try:
                usable[partition] = self.usable(partition)
            except FabricproofError as error:
                self.say(f"no partners in {partition}: {error}")
        free = partners(reds, result, usable)
        tried = swaps([red for _, red in again], free)
        index_of = {id(red): index for index, red in again}
        for swap in tried:
            if swap.why_not:
                index = index_of[id(swap.red)]
                self.looks[index].append(unseen(swap.red, swap.role, (), swap.why_not))
        wanted = {(index_of[id(each.red)], each.nodes, each.role): each for each in tried}
        batches = batches_of(tried)
        for number, batch in enumerate(batches):
            mine = [
                (index, each.red, role)
                for (index, nodes, role), each in wanted.items()
                if nodes == batch.nodes
            ]
            self._look(batch, mine, _share(self.budget.checks, len(batches) - number))

    def _look(self, batch: Batch, reds: Sequence[tuple[int, Red, Role]], most: int) -> int:
        """Run what is to be had of a batch, keep what it says; return how many checks that was."""
        mine = [
            (index, red, role)
            for index, red, role in reds
            if (red.key.partition, red.key.stack) == (batch.partition, batch.stack)
            and (red.key.check, red.key.fabric) in batch.checks
            and (role is not Role.SAME or red.nodes == batch.nodes)
        ]
        taken, refusal = (None, self.ended.stopped) if self.ended else self.budget.take(batch, most)
        ran = self._started(taken, [red for _, red, _ in mine]) if taken else None
        for index, red, role in mine:
            if taken is None or ran is None or (red.key.check, red.key.fabric) not in taken.checks:
                seen = unseen(red, role, batch.nodes, refusal)
            elif ran.stopped:
                # What a look had not come to is not red: only a look that ended counts.
                seen = unseen(red, role, batch.nodes, ran.stopped)
            else:
                seen = look_at(red, role, batch.nodes, ran)
            self.looks[index].append(seen)
        return len(taken.checks) if taken else 0

    def _started(self, batch: Batch, reds: Sequence[Red]) -> RunResult:
        names = ", ".join(check for check, _ in batch.checks)
        where = f"{names} with {batch.stack} on {','.join(batch.nodes)}"
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


def _share(left: int, batches: int) -> int:
    """Return how many of ``left`` checks one of ``batches`` may take: a fair share.

    The batches of both sides of a pair have their checks in one order, so that they are cut alike.
    """
    return max(1, left // batches) if left > 0 else 0


def keep(perflogs: Path, site: str, confirmations: Sequence[Confirmation], night: str) -> None:
    """Append the confirmations to the records of their partitions, both outcomes of each."""
    by_partition: dict[str, list[dict[str, Any]]] = {}
    for each in confirmations:
        line = {
            "kind": "confirmation",
            "night": night,
            "site": site,
            "run_id": each.red.run_id,
            # Every record says whose it is; a confirmation belongs to no job of the run.
            "unique_name": "",
            "job_id": "",
            **record(each),
        }
        by_partition.setdefault(each.red.key.partition, []).append(line)
    for partition, lines in by_partition.items():
        if partition:  # what ran nowhere has no perflog; the state file has it
            append_records(perflogs / site / partition / "records.jsonl", lines)
