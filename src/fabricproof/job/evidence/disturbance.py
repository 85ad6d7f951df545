"""What is red and was disturbed by others is UNJUDGED, where the disturbance explains it.

A disturbance explains a number that would be within its bounds had the others not been there.  It
excuses no impossible number, no wrong path and no number over errors, and makes none PASS.

Three things are read: traffic of others on the rails, what others took of the CPUs that the ranks
were to run on (``rank.sh``), and other jobs on the nodes, as the scheduler told the job's script.
A rank waits for a core only while somebody else runs there: ranks of the same job may crowd each
other (four nodes that are one machine with two cores), and that counts for nothing here.  Of other
jobs squeue lists also what has ended, for ``MinJobAge`` (300 s where nobody says, slurm.conf(5)),
so that a short job between two looks is not missed; what a site hides from its users
(``PrivateData=jobs``) is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.core.findings import Finding, as_notes
from fabricproof.core.hostlist import cpus_of, expand
from fabricproof.core.measure import Verdict
from fabricproof.core.records import text_of
from fabricproof.core.units import by_key
from fabricproof.job.evidence.leg_folder import CORES, RankRecord
from fabricproof.job.leg import Leg
from fabricproof.traffic import Evidence, Expectation, PathState
from fabricproof.traffic.disturbance import (
    Disturbance,
    DisturbanceKind,
    each_kind,
    foreign_traffic,
    strongest,
)
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Judgement, Report, is_of_errors

#: ticks of ``/proc/stat`` and ``/proc/PID/stat`` in a second (USER_HZ: Linux
#: include/asm-generic/param.h; 100 on all machines that MPI runs on)
TICKS_PER_SECOND = 100

#: a leg that was shorter is no measure of shares: a tick would be more than one per cent of it
LEAST_SECONDS = 1.0

#: gaps of a smaller share are interrupts and the timer, not the work of others
MIN_GAPS = 0.05


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """What one rank saw between its two looks, in seconds; ``waited`` None where nobody counts.

    ``gaps`` is the share of time, 0 to 1, that a hypervisor took in a loop right around the
    leg, where the kernel counts no stolen time; None where nobody looked.
    """

    record: RankRecord
    start: float
    end: float
    busy: float
    idle: float
    steal: float
    own: float
    waited: float | None
    gaps: float | None


def counted_seconds(records: Iterable[RankRecord]) -> dict[str, float]:
    """Return node -> seconds from its first look before the leg to its last one after."""
    spans: dict[str, tuple[float, float]] = {}
    for each in _readings(records):
        start, end = spans.get(each.record.node, (each.start, each.end))
        spans[each.record.node] = (min(start, each.start), max(end, each.end))
    return {node: end - start for node, (start, end) in spans.items()}


def starved_cores(records: Sequence[RankRecord]) -> tuple[Disturbance, ...]:
    """Return for each set of CPUs what share of the leg's time others kept its ranks waiting.

    Others' time is what the CPUs were busy, less what the job's own ranks took.  Ranks waited no
    longer than that, no longer than the kernel's pressure says that anybody waited, and never
    while a CPU of theirs was idle.  Time that the hypervisor stole counts for each rank.
    """
    readings = list(_readings(records))
    places = dict.fromkeys((each.record.machine, each.record.cpus) for each in readings)
    spans = counted_seconds(records)
    if not spans or max(spans.values()) < LEAST_SECONDS:
        return ()
    return tuple(
        _of_place([each for each in readings if _place(each) == place], readings)
        for place in places
    )


def _place(each: _Reading) -> tuple[str, str]:
    return each.record.machine, each.record.cpus


def _cpus(record: RankRecord) -> frozenset[int]:
    return cpus_of(record.cpus) or frozenset()


def _of_place(here: Sequence[_Reading], everywhere: Sequence[_Reading]) -> Disturbance:
    seconds = waited = taken = stolen = hidden = 0.0
    cpus = _cpus(here[0].record)
    for part in sorted({each.record.part for each in here}):
        now = [each for each in here if each.record.part == part]
        wall = max(each.end for each in now) - min(each.start for each in now)
        own = sum(
            each.own
            for each in everywhere
            if each.record.part == part
            and each.record.machine == now[0].record.machine
            and cpus & _cpus(each.record)
        )
        others = max(0.0, max(each.busy for each in now) - own)
        limits = [others, max(0.0, wall - max(each.idle for each in now))]
        limits += [max(each.waited or 0.0 for each in now)] if now[0].waited is not None else []
        seconds, waited = seconds + wall, waited + min(limits)
        taken += others
        stolen += max(each.steal for each in now) / max(1, len(cpus)) * len(now)
        gaps = max(each.gaps or 0.0 for each in now)
        hidden += gaps * wall if gaps >= MIN_GAPS else 0.0
    nodes = sorted({each.record.node for each in here})
    share = min(1.0, (waited + stolen + hidden) / seconds) if seconds > 0 else 0.0
    reason = (
        f"others ran {taken:.2f} s on CPU {here[0].record.cpus} of {', '.join(nodes)} in "
        f"{seconds:.2f} s: its ranks waited up to {share:.0%} of the time"
    )
    reason += f", {stolen:.2f} s of it stolen by the hypervisor" if stolen >= 0.01 else ""
    if hidden:
        reason += (
            f"; the hypervisor took the CPU for {hidden / seconds:.0%} of the time in a loop right "
            "before and after, and counts nothing as stolen"
        )
    return Disturbance(
        kind=DisturbanceKind.STARVED_CORES, share=share, reason=reason, node=nodes[0]
    )


def _readings(records: Iterable[RankRecord]) -> Iterator[_Reading]:
    for each in records:
        before, after = each.before.get(CORES, {}), each.after.get(CORES, {})
        rise = {name: after[name] - before[name] for name in before if name in after}
        due = {"clock_us", "busy_ticks", "idle_ticks", "steal_ticks", "own_ticks"}
        if not due <= rise.keys() or min(rise.values()) < 0 or not rise["clock_us"]:
            continue
        ticks = {name: rise[name] / TICKS_PER_SECOND for name in due if name.endswith("ticks")}
        yield _Reading(
            record=each,
            start=before["clock_us"] / 1e6,
            end=after["clock_us"] / 1e6,
            busy=ticks["busy_ticks"],
            idle=ticks["idle_ticks"],
            steal=ticks["steal_ticks"],
            own=ticks["own_ticks"],
            waited=rise["waited_us"] / 1e6 if "waited_us" in rise else None,
            gaps=after["lost_us"] / after["paced_us"] if after.get("paced_us") else None,
        )


#: Figures are means over the whole leg, its start included; one message size may have had twice
#: its share of what came and went.  Our choice.
CONCENTRATION = 2.0

#: nothing is explained to more than this share of the time: nobody divides by what is left
MOST = 0.95


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What others did around a leg: all figures, and what nobody could read."""

    found: tuple[Disturbance, ...] = ()
    unknown: tuple[str, ...] = ()


#: of a leg that passed a smaller share is not worth a line: our choice
NOTED = 0.1

#: nothing was read of anybody
NOBODY = Surroundings()


def around(
    leg: Leg, ranks: Sequence[RankRecord], evidence: Evidence, expected: Expectation
) -> Surroundings:
    """Return what others did around one attempt of ``leg``."""
    seconds = counted_seconds(ranks)
    rate = leg.fabric.link.data_rate_mb_s if leg.fabric else None
    traffic = foreign_traffic(evidence, expected, seconds, rate)
    cores = starved_cores(ranks)
    unknown = [] if traffic or leg.same_node else ["other traffic"]
    unknown += [] if cores else ["waits for a core"]
    return Surroundings(found=(*traffic, *cores), unknown=tuple(unknown))


#: objections, and what is worth reading beside them
Testimony = tuple[tuple[Objection, ...], tuple[Finding, ...]]


def disturbances_of(report: Report, near: Surroundings, num_ranks: int = 2) -> Testimony:
    """Return which red numbers others explain, and what was ruled out for those they do not.

    ``num_ranks`` is the leg's: a collective may wait for a burst at each step.
    """
    if report.net_path is not None and report.net_path.state is not PathState.PROVEN:
        return (), ()  # errors rose, or nobody knows the path: that comes first
    heavy = [each for each in each_kind(near.found) if each.counts]
    failed = [each for each in report.quantities if each.verdict is Verdict.FAIL]
    explained = [
        each.name
        for each in failed
        if heavy
        and each.value is not None
        and not is_of_errors(each)
        and _explains(each, each.value, near.found, num_ranks)
    ]
    red = any(each.verdict is not Verdict.PASS for each in report.quantities)
    notes = [f"disturbed: {each.reason}" for each in heavy if red or each.weight >= NOTED]
    known = report.net_path is not None or near.found  # a relation speaks for its legs
    if known and len(failed) > len(explained):
        notes.append(_ruled_out(near))
    if not explained:
        return (), as_notes(notes)
    objection = Objection(
        kind=ObjectionKind.DISTURBED,
        reason=f"disturbed: {'; '.join(each.reason for each in heavy)}",
        quantities=frozenset(explained),
        disturbance=max(heavy, key=lambda each: each.weight).kind.value,
    )
    return (objection,), as_notes(notes)


def _explains(
    judgement: Judgement, value: float, found: Sequence[Disturbance], num_ranks: int
) -> bool:
    """Tell whether the number would be within its bounds without what others took."""
    if any(each.share is None for each in found):
        return _is_outside(judgement, value)
    share = min(MOST, CONCENTRATION * share_taken(found))
    if judgement.lower is not None and value < judgement.lower:
        return value / (1 - share) >= judgement.lower
    if judgement.upper is None or value <= judgement.upper:
        return False  # it is red for another reason
    traffic = strongest(found, DisturbanceKind.FOREIGN_TRAFFIC)
    queued_us = 0.0
    if traffic is not None and traffic.counts and judgement.unit == "us":
        # Each message that has to cross finds the wire taken as often as the others have it.
        steps = max(1, num_ranks - 1)
        queued_us = CONCENTRATION * (traffic.share or 0) * traffic.burst_us * steps
    return value * (1 - share) - queued_us <= judgement.upper


def _is_outside(judgement: Judgement, value: float) -> bool:
    below = judgement.lower is not None and value < judgement.lower
    return below or (judgement.upper is not None and value > judgement.upper)


def spoiling(near: Surroundings) -> Disturbance | None:
    """Return the largest of what disturbed a round so much that it does not count; None: it does.

    From :data:`NOTED` on.  Less than that is scatter, which the rounds show themselves.
    """
    worth = [each for each in near.found if each.counts and each.weight >= NOTED]
    return max(worth, key=lambda each: each.weight, default=None)


def share_taken(found: Iterable[Disturbance]) -> float:
    """Return what share of the leg's time others cost at most.

    A message has two ends: the two worst places of cores add up, and so do cores and wire.
    """
    figures = by_key((each.kind, each.share or 0.0) for each in found if each.counts)
    ends = {DisturbanceKind.STARVED_CORES: 2}
    return sum(sum(sorted(all_)[-ends.get(kind, 1) :]) for kind, all_ in figures.items())


def share_beyond(taken: float, borne: float) -> float:
    """Return what of a low number others explain beyond what good ones bore as well, 0 to MOST.

    Args:
        taken: what others cost it, as :func:`share_taken` has it.
        borne: what they cost a number that was good all the same.
    """
    return min(MOST, CONCENTRATION * max(0.0, taken - borne))


def _ruled_out(near: Surroundings) -> str:
    said = [
        each.reason + (", too little to explain it" if each.counts else "")
        for each in each_kind(near.found)
    ]
    text = f"ruled out: {'; '.join(said) or 'nothing'}"
    return f"{text}; not known: {', '.join(near.unknown)}" if near.unknown else text


#: what the script of the legs leaves in the folder of an attempt
JOBS_FILE = "jobs"

#: rates and times: what another job on the node takes from; a damaged packet is nobody's load
_DISTURBED_UNITS = frozenset({"MB/s", "us"})


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """Another job that was on nodes of a leg while it ran."""

    job_id: str
    user: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return f"job {self.job_id} of {self.user} was on {', '.join(self.nodes)} during this leg"


def neighbours_of(report: Report, folder: Path, nodes: Collection[str]) -> Testimony:
    """Return what the other jobs on the nodes of the attempt in ``folder`` explain.

    Outside Slurm nobody was asked, and nothing is said.  What passed although they were there stays
    PASS: it is within its bounds.
    """
    if not (folder / JOBS_FILE).exists():
        return (), ()
    return of_other_jobs(report, read_neighbours(folder, nodes))


def of_other_jobs(report: Report, found: tuple[Neighbour, ...] | None) -> Testimony:
    """Return what other jobs on the nodes explain; ``found`` is None if nobody could say."""
    if found is None:
        if all(each.verdict is not Verdict.FAIL for each in report.quantities):
            return (), ()
        text = "not known: whether other jobs were on the nodes, squeue did not answer"
        return (), as_notes([text])
    if not found:
        return (), ()
    notes = [f"disturbed: {each}" for each in found]
    objection = Objection(
        kind=ObjectionKind.OTHER_JOB,
        reason=notes[0] + (f" (and {len(found) - 1} more jobs)" if len(found) > 1 else ""),
        quantities=frozenset(
            each.name
            for each in report.quantities
            if each.unit in _DISTURBED_UNITS or each.verdict is not Verdict.FAIL
        ),
        disturbance=DisturbanceKind.OTHER_JOB.value,
    )
    return (objection,), as_notes(notes)


def read_neighbours(folder: Path, nodes: Collection[str]) -> tuple[Neighbour, ...] | None:
    """Return the other jobs that were on ``nodes`` while the attempt in ``folder`` ran.

    None where the scheduler was not asked or did not answer: then nobody knows.
    """
    try:
        lines = text_of(folder / JOBS_FILE, errors="replace").splitlines()
        own, begin, end = lines[0].split(" ")
        if lines[-1] != "answered":
            return None
        rows = [line.split("|") for line in lines[1:-1]]
        found = [_neighbour(row, nodes, float(begin), float(end)) for row in rows]
    except (OSError, ValueError, IndexError, FabricproofError):
        return None
    return tuple(each for each in found if each is not None and each.job_id != own)


def _neighbour(
    row: list[str], nodes: Collection[str], begin: float, end: float
) -> Neighbour | None:
    """Return the job of one row where it overlaps; times are whole seconds, touching is none."""
    job_id, user, started, ended, where = row
    shared = tuple(sorted({*expand(where)} & {*nodes}))
    if not shared or _seconds(started) >= end or _seconds(ended) <= begin:
        return None
    return Neighbour(job_id=job_id, user=user, nodes=shared)


def _seconds(text: str) -> float:
    """Return a time of squeue; of a job without an end (``NONE``, ``N/A``) it is never."""
    return float(text) if text.isdecimal() else math.inf
