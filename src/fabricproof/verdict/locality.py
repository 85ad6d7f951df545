"""Near and far socket: did a binding hold, and which policy is worth having?

An adapter's slot belongs to one NUMA node; a rank on another one reaches it through the link
between the sockets, which costs bandwidth and latency (document 000 of the sources: FDR 5.6 GB/s
from the far socket, 6.3 from the near one).  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from fabricproof.core.hostlist import cpus_of

#: Policies this close to the best are as good: two runs of one policy differ by as much.
AS_GOOD = 0.03


class Bind(StrEnum):
    """Where a rank is to run."""

    NEAR = "near"
    """On the NUMA node of the rail's slot."""
    FAR = "far"
    """On any other."""


def why_not_held(bind: Bind, cpus: str, home: int | None, numa_cpus: Mapping[int, str]) -> str:
    """Return why a rank that may run on ``cpus`` is not bound as asked; empty where it is.

    ``home`` is the NUMA node of the rail's slot, None where nobody knows; CPUs are as the kernel
    lists them.
    """
    if home is None or home not in numa_cpus:
        return "the NUMA node of the rail is not known"
    mine, beside = cpus_of(cpus), cpus_of(numa_cpus[home])
    if mine is None or beside is None:
        no_list = cpus if mine is None else numa_cpus[home]
        return f"no list of CPUs: expected 0-3,8, got {no_list!r}"
    if not mine:
        return "nobody saw on which CPUs the rank may run"
    if bind is Bind.NEAR and not mine <= beside:
        return f"it may run on CPUs {cpus}, the rail's NUMA node {home} has {numa_cpus[home]}"
    if bind is Bind.FAR and mine & beside:
        return f"it may run on CPUs {cpus}, some of which ({numa_cpus[home]}) are the rail's own"
    return ""


def advise(values: Mapping[str, float], *, unit: str, more_is_better: bool) -> str:
    """Return which policy to take: ``bind near: 6.3 GB/s against 5.6 GB/s (far)``.

    ``values``: policy -> what was measured with it, positive, in ``MB/s`` or ``us``.
    """
    order = sorted(values, key=lambda name: values[name], reverse=more_is_better)
    top = values[order[0]]
    best = tuple(name for name in order if abs(values[name] - top) / top <= AS_GOOD)
    rest = [name for name in order if name not in best]
    if not rest:
        said = ", ".join(f"{name} {_amount(values[name], unit)}" for name in order)
        return f"no binding is better: {said}"
    against = ", ".join(f"{_amount(values[name], unit)} ({name})" for name in rest)
    words = f"bind {best[0]}: {_amount(top, unit)} against {against}"
    return words + (f"; {' and '.join(best[1:])} as good" if best[1:] else "")


def _amount(value: float, unit: str) -> str:
    if unit == "MB/s" and value >= 1000:
        return f"{value / 1000:.3g} GB/s"
    return f"{value:.4g} {unit}"
