"""Rules about the node: rails, rates, locked memory, variables from outside; and the world seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.doctor.facts import Facts
from fabricproof.nodes.doctor.findings import diagnosis, fine, noted
from fabricproof.nodes.preflight import preflight
from fabricproof.site import FabricSpec

#: stands for the link of a fabric that has none, of which no rate is judged
_ANY_LINK = "1GbE"

#: what a rail that is not as declared comes to where no job runs; of all else it is UNJUDGED, and
#: nothing follows
_ELSEWHERE = {"rate": Verdict.UNJUDGED, "device": Verdict.FAIL}

#: quantity of preflight -> what it means where it is not as declared, and what mends it
_FOLLOWS = {
    "absent": (
        "every leg over it fails, and none over all rails can run",
        "name one of these as rail of {fabric} in fabric.toml",
    ),
    "state": (
        "no message crosses it; an MPI that may choose takes another path",
        "{tool}; or correct rails of {fabric} in fabric.toml",
    ),
    "rate": (
        "bandwidth will be judged by a rate that the link does not have",
        "reseat or change the cable; or the true link of {fabric} in fabric.toml",
    ),
    "device": (
        "every number is judged by a link that is not there",
        "correct link or rails of {fabric} in fabric.toml",
    ),
    "": (
        "numbers over it are not those of the fabric that is declared",
        "put the node right; or what is true of {fabric} in fabric.toml",
    ),
}

#: what a device that is as declared means all the same
_SOFTWARE = "no HCA: no subnet manager, no LIDs, no GPUDirect; the CPU's time is its speed"

#: protocols whose transports lock memory.
_LOCKING = frozenset({"ib", "rocev2", "opa", "slingshot", "efa"})

#: variables that choose a transport or a device.
_CHOOSING = re.compile(
    r"^(UCX_(TLS|NET_DEVICES)|FI_PROVIDER|FI_\w+_IFACE|OMPI_MCA_(pml|btl|mtl|osc)\w*|"
    r"I_MPI_(FABRICS|OFI_PROVIDER|PMI_LIBRARY)|MPIR_CVAR_CH4_NETMOD|SLURM_MPI_TYPE)$"
)


def judge_node(facts: Facts) -> Iterator[Finding]:
    """Yield what is to be said of the machine on which all this was seen."""
    if not facts.node.is_node:
        yield diagnosis(
            None,
            "node",
            f"{facts.node.host} was asked, on which no job of {facts.subject.partition.name} runs",
            means="what is said of interfaces, devices and limits may differ on the nodes",
            mend="--on-node asks a node",
        )
    for spec in facts.subject.fabrics:
        yield from _rails(facts, spec)
    yield from _memlock(facts)
    yield from _outside(facts)


def _rails(facts: Facts, spec: FabricSpec) -> Iterator[Finding]:
    """Yield what preflight says of a fabric's rails here.

    A fabric without a link (the memory of one machine) has no rate: its rails must be there.
    """
    declared = spec
    if spec.link is None:
        rails = [{"interface": each.interface} for each in spec.rails]
        plain = {"name": spec.name, "link": _ANY_LINK, "rails": rails}
        declared = FabricSpec.model_validate(plain)
    result = preflight(declared, {facts.node.host: facts.node.machine})
    for each in result.findings:
        if spec.link or (each.fact == "state" and each.where.rail != "lo"):
            yield _rail(facts, spec, each)
    for note in result.notes if spec.link else ():
        yield noted("rail", note.text, facts.seen_by("look"))


def _rail(facts: Facts, spec: FabricSpec, finding: Finding) -> Finding:
    text, _, state = finding.reason.partition(": state ")
    verdict, means, mend = Verdict.UNJUDGED, "", ""
    is_told = facts.node.is_node or finding.fact in _ELSEWHERE
    if finding.verdict is Verdict.PASS:
        verdict, means = Verdict.PASS, _SOFTWARE if finding.fact == "device" else ""
    elif finding.verdict is Verdict.FAIL and is_told:
        verdict = Verdict.FAIL if facts.node.is_node else _ELSEWHERE[finding.fact]
        parts = facts.node.machine.facts if facts.node.machine else ()
        there = {part.partition(" ")[2] for part in parts}
        fact = finding.fact if finding.where.rail in there else "absent"
        means, mend = _FOLLOWS.get(fact, _FOLLOWS[""])
        hca, port, _ = finding.where.rail.partition(":")
        tool = f"ibstat {hca}" if port else f"ip link set {hca} up"
        mend = f"state {state}" if state else mend.format(tool=tool, fabric=spec.name)
    elif not facts.node.is_node:
        mend = "ask a node: --on-node"
    seen = diagnosis(verdict, "rail", text, facts.seen_by("look"), means=means, mend=mend)
    return replace(seen, where=finding.where, quantity=finding.quantity)


def _memlock(facts: Facts) -> Iterator[Finding]:
    node = facts.node
    if not any(net_path.protocol in _LOCKING for net_path in facts.subject.net_paths):
        return
    if node.memlock_kib is None or not node.is_node:
        yield diagnosis(
            Verdict.UNJUDGED,
            "memlock",
            "how much memory a job may lock on a node is unknown",
            seen_by=facts.seen_by("memlock"),
            mend="ask a node: --on-node",
        )
    elif node.memlock_kib >= 0:
        yield diagnosis(
            Verdict.UNJUDGED,
            "memlock",
            f"a process may lock {node.memlock_kib} KiB of memory",
            seen_by=facts.seen_by("memlock"),
            means='memory registration fails when buffers grow: "Cannot allocate memory", or '
            "UCX leaves verbs for TCP",
            mend="LimitMEMLOCK=infinity in slurmd.service, PropagateResourceLimitsExcept=MEMLOCK "
            "in slurm.conf",
        )
    else:
        yield fine("memlock", "unlimited", facts.seen_by("memlock"))


def _outside(facts: Facts) -> Iterator[Finding]:
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
        yield diagnosis(
            Verdict.UNJUDGED,
            "variable",
            f"{name}={value} is set outside the stack and the site",
            seen_by=facts.seen_by("environment"),
            means="it steers the MPI's choice, and nothing of ours overrides it",
            mend=f"unset {name}",
        )


def judge_world(facts: Facts) -> Iterator[Finding]:
    """Yield what two real ranks saw, or that none were started."""
    world = facts.world
    if facts.subject.absent:
        return
    if world is None:
        yield diagnosis(
            Verdict.UNJUDGED,
            "world",
            "no rank was started",
            mend="--run starts two, and says what world they see",
        )
    elif world.fault is None:
        yield fine("world", f"world of {world.num_ranks}: right", world.command)
    else:
        last = [line.strip() for line in world.output.splitlines() if line.strip()][-3:]
        yield diagnosis(
            Verdict.FAIL,
            "world",
            world.fault,
            seen_by=world.command,
            means="no benchmark of this stack can be believed: " + " | ".join(last)[:400],
            mend="the FAIL above, if there is one; else the launcher's own words",
        )
