"""Rules about the node: rails, rates, locked memory, variables from outside; and the world seen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabricproof.core.errors import FabricproofError
from fabricproof.nodes.doctor.facts import Facts, HcaPort, Interface
from fabricproof.nodes.doctor.findings import Diagnosis, Level
from fabricproof.nodes.doctor.subject import NetPath
from fabricproof.physics import (
    SOFT_ROCE_NAME,
    Link,
    find_link,
    why_not_the_device,
)

#: sysfs rounds rates: '56 Gb/sec' for FDR's 54.5 data and 56.25 line Gb/s
_RATE_TOLERANCE = 0.05

#: protocols whose transports lock memory.
_LOCKING = frozenset({"ib", "rocev2", "opa", "slingshot", "efa"})

#: variables that choose a transport or a device.
_CHOOSING = re.compile(
    r"^(UCX_(TLS|NET_DEVICES)|FI_PROVIDER|FI_\w+_IFACE|OMPI_MCA_(pml|btl|mtl|osc)\w*|"
    r"I_MPI_(FABRICS|OFI_PROVIDER|PMI_LIBRARY)|MPIR_CVAR_CH4_NETMOD|SLURM_MPI_TYPE)$"
)


def judge_node(facts: Facts) -> Iterator[Diagnosis]:
    """Yield what is to be said of the machine on which all this was seen."""
    if not facts.node.is_node:
        yield Diagnosis(
            level=Level.NOTE,
            topic="node",
            seen=f"{facts.node.host} was asked, on which no job of {facts.subject.partition} runs",
            means="what is said of interfaces, devices and limits may differ on the nodes",
            mend="--on-node asks a node",
        )
    for net_path in facts.subject.net_paths:
        if len(net_path.rails) == 1:
            yield _rail(facts, net_path, net_path.rails[0])
    yield from _memlock(facts)
    yield from _outside(facts)


def _rail(facts: Facts, net_path: NetPath, rail: str) -> Diagnosis:
    node = facts.node
    if node.interfaces is None or node.hcas is None:
        return Diagnosis(
            level=Level.UNKNOWN,
            topic="rail",
            seen=f"{rail} of {net_path.fabric}: sysfs did not answer",
            command=facts.seen_by("interfaces", "hcas"),
        )
    port = next((each for each in node.hcas if rail in {each.name, each.device}), None)
    netdev = next((each for each in node.interfaces if each.name == rail), None)
    if port is None and netdev is None:
        return _no_rail(facts, net_path, rail)
    state = port.state if port else netdev.state if netdev else ""
    if state.lower() not in {"active", "up", "unknown"}:
        return Diagnosis(
            level=Level.ERROR if node.is_node else Level.UNKNOWN,
            topic="rail",
            seen=f"{rail} of {net_path.fabric} is {state} on {node.host}",
            command=facts.seen_by("interfaces", "hcas"),
            means="no message crosses it; an MPI that may choose takes another path",
            mend=f"ibstat {port.device}" if port else f"ip link set {rail} up",
        )
    link = find_link(net_path.link) if net_path.link else None
    if link is not None and (link.is_soft or (port is not None and port.parent is not None)):
        return _device(facts, net_path, link, rail, port)
    return _rate(facts, net_path, rail, port, netdev)


def _device(
    facts: Facts, net_path: NetPath, link: Link, rail: str, port: HcaPort | None
) -> Diagnosis:
    """Say whether a rail is the software device that the site declares, or stands for an adapter.

    Its rate is not compared: what sysfs says of it is made up.
    """
    parent = port.parent if port else None
    wrong = why_not_the_device(link, f"{rail} on {facts.node.host}", parent)
    if wrong:
        seen, _, mend = wrong.partition(": state ")
        return Diagnosis(
            level=Level.ERROR,
            topic="rail",
            seen=seen,
            command=facts.seen_by("hcas"),
            means="every number is judged by a link that is not there",
            mend=f"state {mend}",
        )
    rate = f", whose {port.rate!r} in sysfs is made up" if port and port.rate else ""
    return Diagnosis(
        level=Level.OK,
        topic="rail",
        seen=f"{rail} of {net_path.fabric} is there on {facts.node.host}: {SOFT_ROCE_NAME} over "
        f"{parent or 'an interface that it does not say'}{rate}",
        command=facts.seen_by("hcas"),
        means="no HCA: no subnet manager, no LIDs, no GPUDirect; the CPU's time is its speed",
    )


def _no_rail(facts: Facts, net_path: NetPath, rail: str) -> Diagnosis:
    node = facts.node
    ports = [port.name for port in node.hcas or ()]
    known = ", ".join([*ports, *(each.name for each in node.interfaces or ())])
    return Diagnosis(
        level=Level.ERROR if node.is_node else Level.UNKNOWN,
        topic="rail",
        seen=f"the rail {rail!r} of fabric {net_path.fabric} does not exist on {node.host}, "
        f"which has {known}",
        command=facts.seen_by("interfaces", "hcas"),
        means="every leg over it fails, and none over all rails can run" if node.is_node else "",
        mend=f"name one of these as rail of {net_path.fabric} in fabric.toml"
        if node.is_node
        else "ask a node: --on-node",
    )


def _rate(
    facts: Facts, net_path: NetPath, rail: str, port: HcaPort | None, netdev: Interface | None
) -> Diagnosis:
    expected = find_link(net_path.link).data_rate_gbit_s if net_path.link else None
    observed = _observed(port, netdev)
    command = facts.seen_by("hcas" if port else "interfaces")
    told = f"{rail} of {net_path.fabric} is there on {facts.node.host}"
    if expected is None or observed is None:
        return Diagnosis(
            level=Level.OK if expected is None else Level.UNKNOWN,
            topic="rail",
            seen=told + ("" if expected is None else ", its rate is unknown"),
            command=command,
        )
    if abs(observed - expected) <= _RATE_TOLERANCE * expected:
        return Diagnosis(
            level=Level.OK, topic="rail", seen=f"{told}, {observed:g} Gb/s", command=command
        )
    slower = observed < expected
    return Diagnosis(
        level=Level.WARNING if slower else Level.NOTE,
        topic="rail",
        seen=f"{told}: {rail}: link rate is {observed} Gb/s, expected {expected} Gb/s: a cable or "
        "transceiver made the link train down" if slower
        else f"{told} and says {observed:g} Gb/s, fabric.toml {expected:g} Gb/s (a virtual or "
        "shaped link says what it likes)",
        command=command,
        means="bandwidth will be judged by a rate that the link does not have" if slower else "",
        mend="reseat or change the cable; or the true link in fabric.toml" if slower else "",
    )  # fmt: skip


def _observed(port: HcaPort | None, netdev: Interface | None) -> float | None:
    if port is not None:
        try:
            return find_link(port.rate).data_rate_gbit_s
        except FabricproofError:
            return None
    speed = netdev.speed_mbit_s if netdev else None
    return None if speed is None else speed / 1000


def _memlock(facts: Facts) -> Iterator[Diagnosis]:
    node = facts.node
    if not any(net_path.protocol in _LOCKING for net_path in facts.subject.net_paths):
        return
    if node.memlock_kib is None or not node.is_node:
        yield Diagnosis(
            level=Level.UNKNOWN,
            topic="memlock",
            seen="how much memory a job may lock on a node is unknown",
            command=facts.seen_by("memlock"),
            mend="ask a node: --on-node",
        )
    elif node.memlock_kib >= 0:
        yield Diagnosis(
            level=Level.WARNING,
            topic="memlock",
            seen=f"a process may lock {node.memlock_kib} KiB of memory",
            command=facts.seen_by("memlock"),
            means='memory registration fails when buffers grow: "Cannot allocate memory", or '
            "UCX leaves verbs for TCP",
            mend="LimitMEMLOCK=infinity in slurmd.service, PropagateResourceLimitsExcept=MEMLOCK "
            "in slurm.conf",
        )
    else:
        yield Diagnosis(
            level=Level.OK,
            topic="memlock",
            seen="unlimited",
            command=facts.seen_by("memlock"),
        )


def _outside(facts: Facts) -> Iterator[Diagnosis]:
    """Report variables that choose a path and come from neither the stack nor the site."""
    known = set(facts.subject.settings) | {
        name for net_path in facts.subject.net_paths for name in net_path.environment
    }
    launch = facts.subject.launch
    known |= set(launch.environment) if launch else set()
    found = {
        name: value
        for name, value in facts.node.environment.items()
        if _CHOOSING.match(name) and name not in known
    }
    for name, value in sorted(found.items()):
        yield Diagnosis(
            level=Level.WARNING,
            topic="variable",
            seen=f"{name}={value} is set outside the stack and the site",
            command=facts.seen_by("environment"),
            means="it steers the MPI's choice, and nothing of ours overrides it",
            mend=f"unset {name}",
        )


def judge_world(facts: Facts) -> Iterator[Diagnosis]:
    """Yield what two real ranks saw, or that none were started."""
    world = facts.world
    if facts.subject.absent:
        return
    if world is None:
        yield Diagnosis(
            level=Level.UNKNOWN,
            topic="world",
            seen="no rank was started",
            mend="--run starts two, and says what world they see",
        )
    elif world.fault is None:
        yield Diagnosis(
            level=Level.OK,
            topic="world",
            seen=f"world of {world.num_ranks}: right",
            command=world.command,
        )
    else:
        last = [line.strip() for line in world.output.splitlines() if line.strip()][-3:]
        yield Diagnosis(
            level=Level.ERROR,
            topic="world",
            seen=world.fault,
            command=world.command,
            means="no benchmark of this stack can be believed: " + " | ".join(last)[:400],
            mend="the ERROR above, if there is one; else the launcher's own words",
        )
