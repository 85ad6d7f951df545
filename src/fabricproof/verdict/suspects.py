"""Why a bandwidth may be too low: known limits whose payload the number happens to match.

These are suspicions, offered in the order in which an administrator would check them, never a
verdict.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from fabricproof.core.measure import Verdict
from fabricproof.physics import (
    Ceiling,
    Fabric,
    Gpus,
    bound,
    ceilings,
    find_slot,
    through_host_mb_s,
)
from fabricproof.verdict.value import Judgement

#: A number between this fraction of a limit's conservative end and its generous end "matches" it.
MATCH = 0.95

#: A figure between these parts of what copies through the host give without a pipeline is "about"
#: that: copies are slower than their slot allows, and a short pipeline hides a part of them.
THROUGH_HOST = (0.5, 1.25)

#: slots that cards end up in, or train down to, from the slowest
SLOTS = ("1.0x8", "2.0x4", "2.0x8", "3.0x4", "3.0x8", "4.0x8", "3.0x16")


#: MaxPayload that many machines run at while the specification allows more: the usual culprit.
SMALL_MAX_PAYLOAD = 128


def unended(*, ranks_ended: bool) -> str:
    """Return what keeps a program from ending that printed everything: never the fabric.

    Measured: ``srun --mpi=pmix`` with Open MPI's pml/ucx hung at the end in 5 to 15 % of starts,
    its own mpirun in none of 10.

    Args:
        ranks_ended: every rank ended, only what started them did not.
    """
    who = "MPI_Finalize had not returned"
    if ranks_ended:
        who = "every rank ended, the launcher did not"
    return (
        f"it had printed everything and had not ended: {who}, which says nothing of the fabric; "
        'where srun starts this stack, let its own launcher do it (launcher = "mpirun" in its '
        "[[stacks]])"
    )


def explained(judgement: Judgement, fabric: Fabric | None) -> Judgement:
    """Return a judged bandwidth with what its number looks like added to its reason.

    ``judgement`` is of a bandwidth in MB/s; ``fabric`` is None where none was declared.
    """
    value = judgement.value
    if fabric is None or value is None:
        return judgement
    extra: list[str] = []
    if judgement.verdict is Verdict.FAIL:
        extra = suspects(value, fabric)
    elif judgement.verdict is Verdict.INVALID and value > (link := ceilings(fabric)[0]).high_mb_s:
        extra = [f"it is {value / link.high_mb_s:.0%} of the bare link's {link.high_mb_s:.0f} MB/s"]
    return replace(judgement, reason="; ".join([judgement.reason, *extra]))


def suspects(value_mb_s: float, fabric: Fabric) -> list[str]:
    """Return sentences that say what ``value_mb_s`` looks like, most likely first."""
    return [
        sentence
        for sentence in (
            _through_host(value_mb_s, fabric),
            _fewer_rails(value_mb_s, fabric),
            _single_flow(fabric),
            _one_core(value_mb_s, fabric),
            _lossy_ethernet(fabric),
            _software(fabric),
            _slower_slot(value_mb_s, fabric),
            _far_socket(fabric),
        )
        if sentence
    ]


def _through_host(value: float, fabric: Fabric) -> str | None:
    copied = through_host_mb_s(fabric)
    if copied is None or not THROUGH_HOST[0] * copied <= value <= THROUGH_HOST[1] * copied:
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
            sentence = _through_host(each.value, fabric)
        mine = _unless_unpromised(each, fabric, given)
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


def _fewer_rails(value: float, fabric: Fabric) -> str | None:
    if fabric.num_rails < 2:
        return None
    one = bound(replace(fabric, num_rails=1))
    if MATCH * one.low_mb_s <= value <= one.high_mb_s:
        return f"about what one rail carries ({one.low_mb_s:.0f}): did the others take part?"
    return None


def _single_flow(fabric: Fabric) -> str | None:
    if not _is_tcp(fabric) or fabric.flow_limit_gbit_s is not None:
        return None
    if fabric.num_flows == 1 and fabric.link.data_rate_gbit_s >= 25:
        return "one TCP connection: a per-flow limit of the provider or of one core is likely"
    return None


def _one_core(value: float, fabric: Fabric) -> str | None:
    if _is_tcp(fabric) and fabric.num_flows > 1 and value > 1000:
        return "several connections: if one process drives them all, one core is the likely bound"
    return None


def _is_tcp(fabric: Fabric) -> bool:
    return fabric.link.technology == "ethernet" and fabric.framing.name.startswith("tcp")


def _is_roce(fabric: Fabric) -> bool:
    return fabric.link.technology == "ethernet" and fabric.framing.name == "rocev2"


def _lossy_ethernet(fabric: Fabric) -> str | None:
    if not _is_roce(fabric):
        return None
    return (
        "RoCE sends again what Ethernet drops: compare the adapter's out_of_sequence and pause "
        "counters before and after (rdma statistic show, ethtool -S)"
    )


def _software(fabric: Fabric) -> str | None:
    if not fabric.link.is_soft:
        return None
    return (
        "a Soft-RoCE device is a core's work: one that shares its core, or that is emulated on a "
        "busy machine, carries less"
    )


def _slower_slot(value: float, fabric: Fabric) -> str | None:
    if fabric.link.is_soft:
        return None
    for name in SLOTS:
        slot = find_slot(name)
        if fabric.slot is not None and slot.raw_mb_s >= fabric.slot.raw_mb_s:
            continue
        small = fabric.max_payload_bytes or SMALL_MAX_PAYLOAD
        low = _packet_ceiling(replace(fabric, slot=slot, max_payload_bytes=small)).low_mb_s
        high = _packet_ceiling(replace(fabric, slot=slot)).high_mb_s
        if MATCH * low <= value <= high:
            return (
                f"what a PCIe {name} slot carries ({low:.0f} to {high:.0f} MB/s): "
                "compare the slot's negotiated generation and width"
            )
    return None


def _packet_ceiling(fabric: Fabric) -> Ceiling:
    return next(each for each in ceilings(fabric) if each.name == "slot_packet")


def _far_socket(fabric: Fabric) -> str | None:
    bare_ethernet = fabric.link.technology == "ethernet" and not _is_roce(fabric)
    if fabric.link.is_soft or (fabric.slot is None and bare_ethernet):
        return None
    socket = (
        "the rank may sit on the wrong socket: bind it to the one that the HCA's slot belongs to "
        "(--map-by dist, rankfile)"
    )
    if not fabric.bidirectional:
        return socket
    # One process sends and receives, memory moves twice the bytes, and PCIe carries the requests
    # of one way beside the data of the other: each may bind with link and slot whole.
    return (
        "measure one direction alone: if that reaches its ceiling, link and slot are whole, and "
        "what is short is the core or the memory that serve both ways at once; if not, "
        f"{socket}"
    )
