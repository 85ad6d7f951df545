"""Stack against stack: the same collective on the same layout, and who takes how much longer.

Stacks differ by factors of three to five in the same collective on the same wires, for the
algorithms they choose; no reference shows that as long as each stack is judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.core.measure import Verdict
from fabricproof.job.run import LegResult

#: A stack that takes this many times the best one's time is worth a line.
WORTH_TELLING = 3.0

#: lines of a run's report
LINES = 5

#: the verdicts whose numbers compare: possible, and on the path that they claim
_MEASURED = frozenset({Verdict.PASS, Verdict.FAIL})


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One quantity of one collective on one layout, over the stacks of one suite.

    Attributes:
        place: partition and fabric.
        suite: which all of them ran: a port's own time would be taken for the MPI's.
        program: the collective.
        leg: path and layout.
        quantity: ``latency_64KiB``.
        times_us: stack -> time in us, the best first; two or more.
    """

    place: tuple[str, str]
    suite: str
    program: str
    leg: str
    quantity: str
    times_us: dict[str, float]

    @property
    def factor(self) -> float:
        """How many times the best stack's time the worst one takes."""
        times = list(self.times_us.values())
        return times[-1] / times[0]

    def sentence(self) -> str:
        """Return it for a person, in one line."""
        stacks = list(self.times_us)
        others = "; ".join(f"{name} {time:.4g}" for name, time in self.times_us.items())
        return (
            f"{self.program} {self.leg} {self.quantity}: {stacks[-1]} takes {self.factor:.1f} x "
            f"the time of {stacks[0]} (us: {others})"
        )


def compare_stacks(legs: Sequence[LegResult]) -> list[Comparison]:
    """Return every quantity of a collective that two stacks or more measured, worst factor first.

    Only numbers on a proven path that are possible count.  A stream that only the root of a
    broadcast, gather or scatter timed tells when a buffer was free, and is left out.
    """
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for leg in legs:
        for name, time in _times(leg):
            key = (leg.partition, leg.fabric, leg.suite, leg.program, leg.path_name, name)
            found.setdefault(key, {})[leg.stack] = time
    made = [
        Comparison(
            place=(key[0], key[1]),
            suite=key[2],
            program=key[3],
            leg=key[4],
            quantity=key[5],
            times_us=dict(sorted(times.items(), key=lambda each: (each[1], each[0]))),
        )
        for key, times in found.items()
        if len(times) > 1
    ]
    return sorted(made, key=lambda each: (-each.factor, each.program, each.leg, each.quantity))


def _times(leg: LegResult) -> Iterator[tuple[str, float]]:
    known = collective_of(leg.suite, leg.program)
    if known is None or known.times_root_alone:
        return
    for each in leg.quantities:
        if each.verdict in _MEASURED and each.unit == "us" and each.value is not None:
            yield each.name, float(each.value)


def slow_stacks(legs: Sequence[LegResult]) -> list[str]:
    """Return a sentence for each collective and layout where a stack is far behind the best.

    The size in the middle of all, by factor, must show it: a stall spoils one size, an algorithm
    many.  No more than :data:`LINES` are told.
    """
    groups: dict[tuple[str, ...], list[Comparison]] = {}
    for each in compare_stacks(legs):
        groups.setdefault((*each.place, each.suite, each.program, each.leg), []).append(each)
    middle = [group[len(group) // 2] for group in groups.values()]
    told = sorted(
        (each for each in middle if each.factor >= WORTH_TELLING), key=lambda each: -each.factor
    )
    lines = [each.sentence() for each in told]
    if len(lines) > LINES:
        return [*lines[:LINES], f"and {len(lines) - LINES} more collectives where stacks differ"]
    return lines
