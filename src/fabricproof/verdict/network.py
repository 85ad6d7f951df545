"""The path that an output says it took, against the declared one.

A run over another transport, device or fabric, or within one node, proves nothing of the declared
rails: INVALID.  What more devices than declared carried is no PASS.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import SOFT_ROCE, Fabric
from fabricproof.verdict.value import Judgement

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

_NCCL = frozenset({"nccl-tests", "rccl-tests"})


def network_of(table: Table) -> str:
    """Return the transports and devices that the library says it used; empty if unknown."""
    said = table.attributes
    used = str(said.get("network", "")).replace(",", " and ")
    devices = str(said.get("network_devices", "")).replace(",", " and ")
    return f"{used} on {devices}" if used and devices else used or devices


def on_the_path(
    judgements: Sequence[Judgement],
    table: Table,
    fabric: Fabric | None,
    devices: Collection[str] = (),
) -> list[Judgement]:
    """Return judgements with what the output says of its own path.

    Args:
        judgements: of the table.
        table: with the attributes of ``benchmarks.parsers.network``.
        fabric: as the program loads it; None if nothing is declared.
        devices: of the rails, as programs of verbs name them; empty if unknown.
    """
    fault, doubt = path_fault(table, fabric, devices), _more_devices(table, fabric)
    found = []
    for each in judgements:
        if fault and each.verdict is not Verdict.INVALID:
            found.append(replace(each, verdict=Verdict.INVALID, reason=fault))
        elif doubt and each.verdict is Verdict.PASS:
            reason = f"{each.reason}; but {doubt}"
            found.append(replace(each, verdict=Verdict.UNJUDGED, reason=reason))
        else:
            found.append(each)
    return found


def path_fault(table: Table, fabric: Fabric | None, devices: Collection[str]) -> str | None:
    """Return why a table is of another path than the declared one, by its own word, or None."""
    if own := table.attributes.get("own_address"):
        return f"both ends have the address {own}: what it moved never left the node"
    if fabric is None:
        return None
    if table.suite == "perftest":
        return _other_device(table, fabric, devices)
    if table.attributes.get("num_nodes") == 1 and table.suite not in _NCCL:
        return "all ranks ran on one node, by the output's own word: their bytes crossed no link"
    return _other_network(table, fabric, devices)


def _more_devices(table: Table, fabric: Fabric | None) -> str:
    """Return why what passed may be the work of undeclared rails; empty if it is not."""
    used = int(table.attributes.get("num_devices", 0))
    if fabric is None or used <= fabric.num_rails:
        return ""
    rails = "one rail is" if fabric.num_rails == 1 else f"{fabric.num_rails} rails are"
    return (
        f"{used} devices of a node took part ({network_of(table)}), and {rails} declared: "
        f"give rails={used}, or measure one device alone"
    )


def _other_network(table: Table, fabric: Fabric, devices: Collection[str]) -> str | None:
    """Return why a library took another path than the declared one, or None.

    Words for sockets and for verbs side by side say that ranks of NCCL differ; of an MPI library
    they may be of something beside the messages (one-sided windows, collectives of another).
    """
    used = frozenset(str(table.attributes.get("network", "")).split(","))
    sockets, verbs = used & _SOCKETS, frozenset(filter(_BY_VERBS.fullmatch, used))
    says = f"the library says that it used {network_of(table)}"
    if sockets and verbs:
        return f"{says}: its ranks did not take one path" if table.suite in _NCCL else None
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
    """Return why perftest ran over another path than the declared one, or None."""
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
