"""What is red because of others is UNJUDGED, as far as what they took explains how far it is off.

Read are the traffic of others on the rails, what others took of the CPUs that the ranks were to run
on (``rank.sh``), and other jobs on the nodes.  It excuses no impossible number, no wrong path and
no number over errors, and makes none PASS.

A rank waits for a core only while somebody else runs there: ranks of the same job may crowd each
other, and that counts for nothing here.  Of other jobs squeue lists also what has ended, for
``MinJobAge`` (300 s by default, slurm.conf(5)); what a site hides from its users
(``PrivateData=jobs``) is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.core.findings import Finding, as_notes
from fabricproof.core.hostlist import cpus_of, expand
from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key
from fabricproof.job.evidence.leg_folder import CORES, RankRecord, read_text
from fabricproof.job.leg import Leg
from fabricproof.traffic import Evidence, Expectation, PathState
from fabricproof.traffic.disturbance import (
    CONCENTRATION,
    MOST,
    NOTED,
    Disturbance,
    DisturbanceKind,
    Disturbances,
    foreign_traffic,
    largest_of,
    largest_of_each_kind,
    share_taken,
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

#: what the script of the legs leaves in the folder of an attempt
JOBS_FILE = "jobs"

#: rates and times: what another job on the node takes from; a damaged packet is nobody's load
_DISTURBED_UNITS = frozenset({"MB/s", "us"})

#: objections, and what is worth reading beside them
Testimony = tuple[tuple[Objection, ...], tuple[Finding, ...]]


#: what one rank saw of its CPUs between its two looks, in seconds
_Times = tuple[RankRecord, Mapping[str, float]]


def _core_times(records: Iterable[RankRecord]) -> list[_Times]:
    found: list[_Times] = []
    for each in records:
        before, after = each.before.get(CORES, {}), each.after.get(CORES, {})
        rise = {name: after[name] - before[name] for name in before if name in after}
        due = {"clock_us", "busy_ticks", "idle_ticks", "steal_ticks", "own_ticks"}
        if not due <= rise.keys() or min(rise.values()) < 0 or not rise["clock_us"]:
            continue
        times = {
            name.removesuffix("_ticks"): rise[name] / TICKS_PER_SECOND
            for name in due - {"clock_us"}
        }
        times |= {"start": before["clock_us"] / 1e6, "end": after["clock_us"] / 1e6}
        if "waited_us" in rise:  # else the kernel keeps no pressure
            times["waited"] = rise["waited_us"] / 1e6
        # share of a loop right around the leg that a hypervisor took
        times["gaps"] = after["lost_us"] / after["paced_us"] if after.get("paced_us") else 0.0
        found.append((each, times))
    return found


def _wall_seconds(times: Sequence[_Times]) -> float:
    return max(each["end"] for _, each in times) - min(each["start"] for _, each in times)


def counted_seconds(records: Iterable[RankRecord]) -> dict[str, float]:
    """Return node -> seconds from its first look before the leg to its last one after."""
    of_nodes = by_key((rank.node, (rank, each)) for rank, each in _core_times(records))
    return {node: _wall_seconds(here) for node, here in of_nodes.items()}


def starved_cores(records: Sequence[RankRecord]) -> tuple[Disturbance, ...]:
    """Return for each set of CPUs what share of the leg's time others kept its ranks waiting.

    Others' time is what the CPUs were busy, less what the job's own ranks took.  Ranks waited no
    longer than that, no longer than the kernel's pressure says that anybody waited, and never
    while a CPU of theirs was idle.  Time that the hypervisor stole counts for each rank.
    """
    if max(counted_seconds(records).values(), default=0.0) < LEAST_SECONDS:
        return ()
    times = _core_times(records)
    of_cpus = by_key(((rank.machine, rank.cpus), (rank, each)) for rank, each in times)
    return tuple(_on_cpus(here, times) for here in of_cpus.values())


def _on_cpus(here: Sequence[_Times], everywhere: Sequence[_Times]) -> Disturbance:
    seconds = waited = taken = stolen = hidden = 0.0
    machine, listed = here[0][0].machine, here[0][0].cpus
    cpus = cpus_of(listed) or frozenset()
    for part, now in by_key((rank.part, (rank, each)) for rank, each in here).items():
        most = {name: max(each.get(name, 0.0) for _, each in now) for name in now[0][1]}
        wall = _wall_seconds(now)
        own = sum(
            each["own"]
            for rank, each in everywhere
            if (rank.part, rank.machine) == (part, machine)
            and cpus & (cpus_of(rank.cpus) or frozenset())
        )
        others = max(0.0, most["busy"] - own)
        limits = [others, max(0.0, wall - most["idle"]), most.get("waited", others)]
        seconds, waited, taken = seconds + wall, waited + min(limits), taken + others
        stolen += most["steal"] / max(1, len(cpus)) * len(now)
        hidden += most["gaps"] * wall if most["gaps"] >= MIN_GAPS else 0.0
    nodes = sorted({rank.node for rank, _ in here})
    share = min(1.0, (waited + stolen + hidden) / seconds) if seconds > 0 else 0.0
    reason = (
        f"others ran {taken:.2f} s on CPU {listed} of {', '.join(nodes)} in "
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


def measure_disturbances(
    leg: Leg, ranks: Sequence[RankRecord], evidence: Evidence, expected: Expectation
) -> Disturbances:
    """Return what others took during one attempt of ``leg``."""
    seconds = counted_seconds(ranks)
    rate = leg.fabric.link.data_rate_mb_s if leg.fabric else None
    traffic = foreign_traffic(evidence, expected, seconds, rate)
    cores = starved_cores(ranks)
    unknown = [] if traffic or leg.same_node else ["other traffic"]
    return Disturbances(
        found=(*traffic, *cores),
        unknown=(*unknown, *([] if cores else ["waits for a core"])),
        seconds=max(seconds.values(), default=0.0),
        sent_bytes=sum(expected.sent_bytes),
    )


def disturbances_of(report: Report, others: Disturbances, num_ranks: int = 2) -> Testimony:
    """Return which red numbers others explain, and what was ruled out for those they do not.

    ``num_ranks`` is the leg's: a collective may wait for a burst at each step.
    """
    if report.net_path is not None and report.net_path.state is not PathState.PROVEN:
        return (), ()  # errors rose, or nobody knows the path: that comes first
    largest = largest_of_each_kind(others.found)
    heavy = [each for each in largest if each.counts]
    failed = [each for each in report.quantities if each.verdict is Verdict.FAIL]
    speeds = [each for each in failed if not is_of_errors(each)]
    times = _concentration(report, speeds, others)
    explained = [
        each.name
        for each in speeds
        if heavy and _explains(each, others.found, num_ranks, concentration=times)
    ]
    red = any(each.verdict is not Verdict.PASS for each in report.quantities)
    notes = [f"disturbed: {each.reason}" for each in heavy if red or each.weight >= NOTED]
    known = report.net_path is not None or others.found  # a relation speaks for its legs
    if known and len(failed) > len(explained):
        said = [
            each.reason + (", too little to explain it" if each.counts else "") for each in largest
        ]
        unknown = f"; not known: {', '.join(others.unknown)}" if others.unknown else ""
        notes.append(f"ruled out: {'; '.join(said) or 'nothing'}{unknown}")
    if not explained:
        return (), as_notes(notes)
    objection = Objection(
        kind=ObjectionKind.DISTURBED,
        reason=f"disturbed: {'; '.join(each.reason for each in heavy)}",
        quantities=frozenset(explained),
        disturbance=max(heavy, key=lambda each: each.weight).kind.value,
    )
    return (objection,), as_notes(notes)


def _concentration(report: Report, red: Sequence[Judgement], others: Disturbances) -> float:
    """Return how many times the mean share others can have taken of the time of the red numbers.

    All that they took, at most, fell into the time t of the red message sizes: seconds / t times
    the mean.  t is bytes of the size / its bandwidth, if each size is sent equally often: the
    large ones, that decide, then have no more than they had.  Never above :data:`CONCENTRATION`.
    """
    sizes = {each.name: each.message_size or 0 for each in report.quantities}
    each_size = others.sent_bytes / max(1, sum(sizes.values()))
    red_seconds = sum(
        each_size * sizes[each.name] / 1e6 / each.value
        for each in red
        if each.unit == "MB/s" and each.value
    )
    if not red_seconds or not others.seconds:
        return CONCENTRATION
    return min(CONCENTRATION, max(1.0, others.seconds / red_seconds))


def _explains(
    judgement: Judgement, found: Sequence[Disturbance], num_ranks: int, *, concentration: float
) -> bool:
    """Tell whether the number would be within its bounds without what others took."""
    value, lower, upper = judgement.value, judgement.lower, judgement.upper
    if value is None:
        return False
    too_low = lower is not None and value < lower
    too_high = upper is not None and value > upper
    if any(each.share is None for each in found):  # nobody knows how much
        return too_low or too_high
    share = min(MOST, concentration * share_taken(found))
    if too_low:
        return value / (1 - share) >= (lower or 0)
    traffic = largest_of(found, DisturbanceKind.FOREIGN_TRAFFIC)
    queued_us = 0.0
    if traffic is not None and traffic.counts and judgement.unit == "us":
        # Each message that has to cross finds the wire taken as often as the others have it.
        steps = max(1, num_ranks - 1)
        queued_us = CONCENTRATION * (traffic.share or 0) * traffic.burst_us * steps
    return too_high and value * (1 - share) - queued_us <= (upper or 0)


def other_jobs_of(report: Report, folder: Path, nodes: Collection[str]) -> Testimony:
    """Return what other jobs on the nodes of the attempt in ``folder`` explain.

    Outside Slurm nobody was asked, and nothing is said.  What passed stays PASS.
    """
    found = read_other_jobs(folder, nodes) if (folder / JOBS_FILE).exists() else ()
    if found is None:
        red = any(each.verdict is Verdict.FAIL for each in report.quantities)
        text = "not known: whether other jobs were on the nodes, squeue did not answer"
        return (), as_notes([text] if red else [])
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


def read_other_jobs(folder: Path, nodes: Collection[str]) -> tuple[str, ...] | None:
    """Return a sentence for each other job on ``nodes`` while the attempt in ``folder`` ran.

    None if the scheduler was not asked or did not answer.  Times are whole seconds: jobs that touch
    do not overlap.
    """
    found = []
    try:
        first, *rows, last = read_text(folder / JOBS_FILE).splitlines()
        own, begin, end = first.split(" ")
        for job_id, user, *times, where in (row.split("|") for row in rows):
            # A job without an end (NONE, N/A) has none yet.
            started, ended = (float(x) if x.isdecimal() else math.inf for x in times)
            shared = sorted({*expand(where)} & {*nodes})
            if shared and started < float(end) and ended > float(begin) and job_id != own:
                there = ", ".join(shared)
                found.append(f"job {job_id} of {user} was on {there} during this leg")
    except (ValueError, FabricproofError):
        return None
    return tuple(found) if last == "answered" else None
