"""What an output says of its own path, of losses, and of a limit that it was given.

A run over another transport, device or fabric, or within one node, proves nothing of the declared
rails: INVALID.  What more devices than declared carried, or what lost much, is no PASS.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from fabricproof.benchmarks.program import NCCL_SUITES
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import SOFT_ROCE, Fabric
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import ERROR_UNIT, Judgement, no_number

#: ``Link type`` of perftest -> technologies over which it says something else.  Of EFA and others
#: it says IB or Unknown: both stand for "not specified" (link_layer_str, and the kernel's drivers).
_NOT_OVER = {
    "Ethernet": frozenset({"infiniband", "omni-path"}),
    "IB": frozenset({"ethernet", SOFT_ROCE}),
}

#: what libfabric (prov/tcp, prov/sockets, prov/udp), UCX, Open MPI, NCCL and Google's plugin call
#: sockets
_SOCKETS = frozenset(
    {"tcp", "tcp;ofi_rxm", "sockets", "udp", "udp;ofi_rxd", "Socket", "FastSocket"}
)

#: what NCCL, its plugins (``IBext_v8``, ``gIB``), libfabric, UCX, Open MPI and old Intel MPI call
#: verbs
_BY_VERBS = re.compile(
    r"g?IB\w*|InfiniBand|RoCE|verbs(?:;\w+)?|(?:rc|dc|ud|gga)(?:_\w+)?|ofa|openib"
)

#: what sockets speak
_BY_SOCKETS = frozenset({"tcp", "tcp-bypass", "udp", "ipoib"})

#: a word -> the technologies that it can be over: the link layer of NCCL's cards, and providers
#: of libfabric (prov/psm2, prov/opx, prov/cxi, prov/efa)
_ONLY_OVER = {
    "InfiniBand": frozenset({"infiniband", "omni-path"}),
    "RoCE": frozenset({"ethernet", SOFT_ROCE}),
    "psm2": frozenset({"omni-path"}),
    "opx": frozenset({"omni-path"}),
    "cxi": frozenset({"slingshot"}),
    "efa": frozenset({"efa", "ethernet"}),
}

#: Retransmissions per million segments above which a file proves no healthy path: our choice, and
#: the limit of our own legs of more than two nodes, whose senders overflow the buffer of a port.
RETRANSMITTED_PER_MILLION = 1000.0
#: the limit of our own legs of two nodes, above which a file is told of them
PAIR_PER_MILLION = 10.0
#: so few are chance: from a path that loses as much as it may, 20 come instead of 10 once in 300
_FEWEST = 20
#: payload of a full frame of 1500 B with TCP's time stamps, if the output tells no segment size
_SEGMENT_BYTES = 1448
#: a rate within this fraction of the limit that the run had reached it
_REACHED = 0.9


def network_of(table: Table) -> str:
    """Return the transports and devices that the library says it used; empty if unknown."""
    said = table.attributes
    used = str(said.get("network", "")).replace(",", " and ")
    devices = str(said.get("network_devices", "")).replace(",", " and ")
    return f"{used} on {devices}" if used and devices else used or devices


def objections_of(
    table: Table, fabric: Fabric | None, devices: Collection[str] = ()
) -> tuple[Objection, ...]:
    """Return what the output says of its own path that speaks against its numbers.

    ``fabric`` is as the program loads it, None if nothing is declared; ``devices`` are those of the
    rails, as programs of verbs name them, empty if unknown.
    """
    found = []
    if reason := path_fault(table, fabric, devices):
        found.append(Objection(kind=ObjectionKind.OTHER_PATH, reason=reason))
    used = int(table.attributes.get("num_devices", 0))
    if fabric is not None and used > fabric.num_rails:
        rails = "one rail is" if fabric.num_rails == 1 else f"{fabric.num_rails} rails are"
        reason = (
            f"{used} devices of a node took part ({network_of(table)}), and {rails} declared: "
            f"give rails={used}, or measure one device alone"
        )
        found.append(Objection(kind=ObjectionKind.MORE_DEVICES, reason=reason))
    return tuple(found)


def path_fault(table: Table, fabric: Fabric | None, devices: Collection[str]) -> str | None:
    """Return why a table is of another path than the declared one, by its own word, or None."""
    if own := table.attributes.get("own_address"):
        return f"both ends have the address {own}: what it moved never left the node"
    if fabric is None:
        return None
    if table.suite == "perftest":
        return _other_device(table, fabric, devices)
    if table.attributes.get("num_nodes") == 1 and table.suite not in NCCL_SUITES:
        return "all ranks ran on one node, by the output's own word: their bytes crossed no link"
    return _other_network(table, fabric, devices)


def _other_network(table: Table, fabric: Fabric, devices: Collection[str]) -> str | None:
    """Return why a library took another path than the declared one, or None.

    Sockets beside verbs say that ranks of NCCL differ; of an MPI library one of them may be of
    something beside the messages (one-sided windows, collectives of another library).
    """
    used = frozenset(str(table.attributes.get("network", "")).split(","))
    sockets, verbs = used & _SOCKETS, frozenset(filter(_BY_VERBS.fullmatch, used))
    says = f"the library says that it used {network_of(table)}"
    if sockets and verbs:
        return f"{says}: its ranks did not take one path" if table.suite in NCCL_SUITES else None
    speaks, technology = fabric.framing.name, fabric.link.technology
    other = verbs if speaks in _BY_SOCKETS else sockets
    if other or any(technology not in _ONLY_OVER.get(word, {technology}) for word in used):
        return (
            f"{says}, and the declared link is {fabric.link.name} ({speaks}): the run took another "
            "path, or the declaration is wrong"
        )
    names = str(table.attributes.get("network_devices", "")).split(",")
    if devices and verbs and not {each.partition(":")[0] for each in names} <= {"", *devices}:
        return f"{says}, and the rails are of {' or '.join(sorted(devices))}"
    return None


def _other_device(table: Table, fabric: Fabric, devices: Collection[str]) -> str | None:
    said = table.attributes
    printed = str(said.get("link_layer", ""))
    if devices and said.get("device", "") not in {"", *devices}:
        named = " or ".join(sorted(devices))
        return f"the output is of the device {said['device']}, and the rails are of {named}"
    if fabric.link.technology not in _NOT_OVER.get(printed, ()):
        return None
    # Drivers that specify no link layer print IB; those of InfiniBand have its transport.
    if printed == "IB" and said.get("transport", "IB") != "IB":
        return None
    device = said.get("device", "the device")
    return (
        f"the output says Link type {printed} of {device}, and the declared link is "
        f"{fabric.link.name} ({fabric.link.technology}): the run was over another fabric, or the "
        "declaration is wrong"
    )


def judge_retransmissions(table: Table) -> tuple[list[Judgement], list[str]]:
    """Judge TCP's retransmissions per million segments of iperf3, if they are many.

    Too many are UNJUDGED: a sender also counts those that it sent again in vain, and a file has no
    counter that tells them apart (TCPDSACKRecv), which a run of our own reads.

    Returns:
        The judgement, none if they are few; and a note if two nodes alone would lose less.
    """
    said = table.attributes
    events, moved = int(said.get("retransmits", 0)), float(said.get("moved_bytes", 0))
    segments = moved / float(said.get("mss_bytes", _SEGMENT_BYTES))
    per_million = events / max(segments, events, 1) * 1e6
    found = f"{events} of {segments:.3g} segments were sent again, {per_million:.3g} per million"
    if events < _FEWEST or per_million <= PAIR_PER_MILLION:
        return [], []
    if per_million <= RETRANSMITTED_PER_MILLION:
        return [], [found]
    judged = no_number(
        "retransmitted_per_million_packets",
        Verdict.UNJUDGED,
        f"{found}: above {RETRANSMITTED_PER_MILLION:g} the path lost them or others filled it, "
        "unless they had arrived (TCPDSACKRecv of the sender counts those)",
        ERROR_UNIT,
    )
    return [replace(judged, value=per_million, upper=RETRANSMITTED_PER_MILLION)], []


def unless_limited(judgement: Judgement, table: Table) -> Judgement:
    """Return a FAIL as UNJUDGED where ``iperf3 -b`` limited the run to a rate that it reached."""
    limit, value = float(table.attributes.get("target_mb_s", 0)), judgement.value
    if judgement.verdict is not Verdict.FAIL or value is None or not 0 < _REACHED * limit <= value:
        return judgement
    reason = f"{judgement.reason}; but the run was limited to {limit:.6g} MB/s (-b), and reached it"
    return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)


def describe_loss(table: Table) -> list[str]:
    """Return what was lost on the way of UDP, in words; nothing if all arrived."""
    lost, sent = (int(table.attributes.get(name, 0)) for name in ("lost_datagrams", "datagrams"))
    if lost <= 0 or sent <= 0:
        return []
    return [f"{lost} of {sent} datagrams ({lost / sent:.2%}) were lost; only what arrived counts"]
