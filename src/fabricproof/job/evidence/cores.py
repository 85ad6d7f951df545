"""What others took of the CPUs that the ranks were to run on, from what ``rank.sh`` read.

A rank waits for a core only while somebody else runs there.  Ranks of the same job may crowd each
other (four nodes that are one machine with two cores): that is their own doing and counts for
nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabricproof.job.evidence.ranks import CORES, RankRecord
from fabricproof.traffic.disturbance import Disturbance, DisturbanceKind

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


def _of_place(here: Sequence[_Reading], everywhere: Sequence[_Reading]) -> Disturbance:
    seconds = waited = taken = stolen = hidden = 0.0
    cpus = cpus_of(here[0].record.cpus)
    for part in sorted({each.record.part for each in here}):
        now = [each for each in here if each.record.part == part]
        wall = max(each.end for each in now) - min(each.start for each in now)
        own = sum(
            each.own
            for each in everywhere
            if each.record.part == part
            and each.record.machine == now[0].record.machine
            and cpus & cpus_of(each.record.cpus)
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


def cpus_of(text: str) -> frozenset[int]:
    """Return the CPUs of a kernel list (``0-3,8``); none where it is not one."""
    try:
        spans = [part.split("-") for part in text.split(",")]
        return frozenset(cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1))
    except ValueError:
        return frozenset()
