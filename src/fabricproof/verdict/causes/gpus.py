"""What is promised of buffers on GPUs, and what copies through the host look like."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from fabricproof.core.measure import Verdict
from fabricproof.physics import Fabric, Gpus, through_host_mb_s
from fabricproof.verdict.value import Judgement

#: A figure between these parts of what copies through the host give without a pipeline is "about"
#: that: copies are slower than their slot allows, and a short pipeline hides a part of them.
THROUGH_HOST = (0.5, 1.25)


def through_host(value_mb_s: float, fabric: Fabric) -> str | None:
    """Return what to say of a bandwidth, in MB/s, that copies through the host explain, or None."""
    copied = through_host_mb_s(fabric)
    if copied is None or not THROUGH_HOST[0] * copied <= value_mb_s <= THROUGH_HOST[1] * copied:
        return None
    return (
        f"as through the host: GPUDirect seems off (messages that wait for a copy at "
        f"{'each end' if fabric.gpus and fabric.gpus.ends == 2 else 'one end'} give about "
        f"{copied:.0f} MB/s)"
    )


def on_gpus(
    judgements: Sequence[Judgement], buffers: str, fabric: Fabric | None, given: Container[str]
) -> tuple[list[Judgement], list[str]]:
    """Return judgements of buffers on GPUs under their own names, and what is worth reading.

    Physics promises a bandwidth only where the adapter reaches the GPU and its slot is stated:
    otherwise what is below the ceilings is UNJUDGED.  What reaches them is fast enough all the
    same.

    Args:
        judgements: as of buffers of hosts.
        buffers: one of :data:`fabricproof.core.units.BUFFERS`.
        fabric: as the program loads it; None where none was declared.
        given: the quantities that a reference was given for.
    """
    found, told = [], []
    for each in judgements:
        if each.verdict is Verdict.UNJUDGED and not each.named:
            continue  # a point inside the curve, which no law binds
        sentence = None
        if fabric is not None and each.value is not None and each.unit == "MB/s" and each.named:
            sentence = through_host(each.value, fabric)
        mine = _unless_unpromised(each, fabric, given)
        if sentence and mine.verdict is Verdict.UNJUDGED:
            mine = replace(mine, reason=f"{mine.reason}; {sentence}")
        if sentence and mine.verdict is not Verdict.PASS:
            told.append(f"{buffers}{each.name}: {sentence}")
        named = each.name.startswith(("bandwidth", "latency"))
        found.append(replace(mine, name=f"{buffers}{each.name}") if named else mine)
    return found, told


def _unless_unpromised(
    judgement: Judgement, fabric: Fabric | None, given: Container[str]
) -> Judgement:
    """Return what is below its physical reference as UNJUDGED where physics promised nothing."""
    value, lower = judgement.value, judgement.lower
    is_given = judgement.name in given or "bandwidth" in given
    if judgement.verdict is not Verdict.FAIL or is_given or fabric is None or fabric.gpus is None:
        return judgement
    why = unpromised(fabric.gpus)
    if not why or value is None or lower is None or value >= lower:
        return judgement
    reason = f"{judgement.reason}; but {why}: give a reference"
    return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)


def unpromised(gpus: Gpus) -> str:
    """Return why physics promises no bandwidth of GPUs; empty where it does."""
    if gpus.direct is None:
        return "whether GPUDirect is possible here is not stated"
    if not gpus.direct:
        return (
            "GPUDirect is not possible here, and what the copies through the host cost is not known"
        )
    return "" if gpus.slot is not None else "the slot of the GPU is not stated"
