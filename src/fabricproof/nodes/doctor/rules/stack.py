"""Rules about the stack and the node: is it the MPI that was meant, does it load, are rails there.

What preflight says of rails is the doctor's finding too, with what follows for the stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.doctor.facts import Facts, ProgramFacts, family_of, version_of
from fabricproof.nodes.doctor.findings import absent, diagnosis, fine, unseen, wrong
from fabricproof.nodes.preflight import preflight
from fabricproof.site import FabricSpec
from fabricproof.stacks.container import Container, Inside, told_lacks
from fabricproof.stacks.spack import is_below

#: stands for the link of a fabric that has none, of which no rate is judged
_ANY_LINK = "1GbE"

#: what a rail that is not as declared comes to where no job runs; of all else it is UNJUDGED, and
#: nothing follows
_ELSEWHERE = {"rate": Verdict.UNJUDGED, "device": Verdict.FAIL}

#: quantity of preflight -> what it means if it is not as declared, and what mends it
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


def judge_stack(facts: Facts) -> Iterator[Finding]:
    """Yield what is to be said of the stack, its MPI library and its programs."""
    subject = facts.subject
    if subject.absent:
        means = "none of its programs can run; every check on it would be MISSING"
        yield absent("stack", f"{subject.name}: {subject.absent}", "", means, subject.mend)
    elif subject.stale:
        means = "what runs is not what the site's files say"
        yield unseen("stack", f"{subject.name} is stale: {subject.stale}", "", means, subject.mend)
    if facts.module is not None:
        yield _module(facts)
    if subject.container is not None:
        yield _container(facts, subject.container)
    elif not subject.absent:
        yield _identity(facts)
        yield from (_program(facts, each) for each in facts.programs)


def _module(facts: Facts) -> Finding:
    answer = facts.module
    assert answer is not None
    # Environment Modules before 5.0 ends with 0 all the same.
    if answer.status == 0 and "ERROR" not in answer.output:
        return fine("module", answer.command, answer.command)
    means = "the stack's MPI is not in the environment; the system's, or none, would answer"
    mend = "module avail; then correct modules = [...] of the stack, or module_paths of the site"
    text = next(iter(answer.lines), answer.fault)
    return absent("module", text, answer.command, means, f"{mend}, in {facts.subject.source}")


def _container(facts: Facts, container: Container) -> Finding:
    """Return whether the runtime starts the image, and what rails a program does not see there."""
    answer, subject, seen = facts.container, facts.subject, facts.seen_by("container")
    if answer is None or (answer.status == 0 and container.outer):
        text = "not asked" if answer is None else f"srun has Pyxis; not started: {container.image}"
        return unseen("container", text, seen)
    table = f"[container] of {subject.name} in {subject.source}"
    if answer.status != 0:
        runtime = "Pyxis" if container.outer else container.inner[0]
        said = (answer.lines or [answer.fault])[-1]
        text = f"{runtime} does not start {container.image}: {said}"
        means = "no program of this stack starts; every check on it would be MISSING"
        return absent("container", text, seen, means, f"correct {table}, or its modules")
    roots = [line for line in answer.lines if line.startswith("root ")]
    if len(roots) < 2 or roots[0] == roots[1]:
        text = "a program that was started so has the root of the node itself"
        means = f"it does not run in {container.image}: every number would be INVALID"
        return wrong("container", text, seen, means, f"correct runtime in {table}")
    begin = "lacks "
    lacks = tuple(line.removeprefix(begin) for line in answer.lines if line.startswith(begin))
    if lacks and facts.node.is_node:
        told, _, mend = told_lacks([(facts.node.host, Inside(lacks=lacks))]).rpartition(" (")
        means = "an MPI that is told its path fails there, any other falls back to TCP"
        return wrong("container", told, seen, means, mend.removesuffix(")"))
    here = f"; no {', no '.join(lacks)} on this machine" if lacks else ""
    return fine("container", f"a program starts in {container.image}{here}", seen)


def _identity(facts: Facts) -> Finding:
    subject, library, seen = facts.subject, facts.library, facts.seen_by("asker")
    where = f"of {subject.name} in {subject.source}"
    if library.version is None:
        if not (library.fault and library.has_command):
            return unseen("MPI", "not asked", seen)
        text = f"the MPI library does not load: {library.fault}"
        mend = subject.mend or f"check modules and suites {where}"
        return absent("MPI", text, seen, "no program of this stack starts here", mend)
    whole = "\n".join(library.version)
    family, version = family_of(whole), version_of(whole)
    # MPICH's version string spreads over lines; the first one tells.
    line = " ".join(library.version[0].split()).partition(", package")[0]
    line = line.replace("MPICH Version: ", "MPICH ")
    text = f"{line} ({library.path or 'path unknown'})"
    if family != subject.family:
        text += f" answers, declared is {subject.family} {subject.version}"
        means = f"PMI, launcher and paths would be chosen for {subject.family} and not fit"
        mend = f"set family and version {where}, or load the right module"
        return wrong("MPI", text, seen, means, mend)
    if version is None:
        return unseen("MPI", f"{text}: its version is unknown", seen)
    pairs = zip(version.split("."), subject.version.split("."), strict=False)
    if all(one == other for one, other in pairs):  # 2021.18.1 and 2021.18
        return fine("MPI", text, seen)
    means = "results would be kept under a version that did not run"
    mend = f'version = "{version}" in the stack {subject.name} of {subject.source}'
    return unseen("MPI", f"{text}, declared is version {subject.version}", seen, means, mend)


def _program(facts: Facts, program: ProgramFacts) -> Finding:
    seen, prefix = facts.seen_by(f"ldd:{program.path}"), facts.subject.prefix
    name = program.path.rpartition("/")[2]
    if program.fault:
        return unseen("program", f"{program.path}: {program.fault}", seen)
    if program.missing:
        means = 'it ends before main with "cannot open shared object file"'
        mend = facts.subject.mend or "load the module that brings the library"
        text = f"{name} finds no {', '.join(program.missing)}"
        return wrong("program", text, seen, means, mend)
    if program.mpi is None:
        return unseen("program", f"{name} names no MPI library", seen)
    text = f"{name} loads {program.mpi}"
    if prefix and prefix != "/usr" and not is_below(Path(program.mpi), Path(prefix)):
        means = "another MPI than the stack's would be measured under its name"
        mend = facts.subject.mend or "unset LD_LIBRARY_PATH"
        return wrong("program", f"{text}, which is not below {prefix}", seen, means, mend)
    return fine("program", text, seen)


def judge_node(facts: Facts) -> Iterator[Finding]:
    """Yield what is to be said of the machine on which all this was seen."""
    node, subject = facts.node, facts.subject
    if not node.is_node:
        text = f"{node.host} was asked, on which no job of {subject.partition.name} runs"
        means = "what is said of interfaces, devices and limits may differ on the nodes"
        yield diagnosis(None, "node", text, "", means, "--on-node asks a node")
    for spec in subject.fabrics:
        yield from _rails(facts, spec)
    if any(net_path.protocol in _LOCKING for net_path in subject.net_paths):
        yield _memlock(facts)
    known = {*subject.settings, *(subject.launch.environment if subject.launch else ())}
    known |= {name for net_path in subject.net_paths for name in net_path.environment}
    for name, value in sorted(node.environment.items()):
        if _CHOOSING.match(name) and name not in known:
            text = f"{name}={value} is set outside the stack and the site"
            means = "it steers the MPI's choice, and nothing of ours overrides it"
            yield unseen("variable", text, facts.seen_by("environment"), means, f"unset {name}")


def _memlock(facts: Facts) -> Finding:
    limit, seen = facts.node.memlock_kib, facts.seen_by("memlock")
    if limit is None or not facts.node.is_node:
        text = "how much memory a job may lock on a node is unknown"
        return unseen("memlock", text, seen, mend="ask a node: --on-node")
    if limit < 0:
        return fine("memlock", "unlimited", seen)
    means = (
        'memory registration fails when buffers grow: "Cannot allocate memory", or UCX leaves '
        "verbs for TCP"
    )
    mend = "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"
    mend = f"LimitMEMLOCK=infinity in slurmd.service, {mend}"
    return unseen("memlock", f"a process may lock {limit} KiB of memory", seen, means, mend)


def _rails(facts: Facts, spec: FabricSpec) -> Iterator[Finding]:
    """Yield what preflight says of a fabric's rails here.

    A fabric without a link (the memory of one machine) has no rate: its rails must be there.
    """
    declared, seen = spec, facts.seen_by("look")
    if spec.link is None:
        rails = [{"interface": each.interface} for each in spec.rails]
        plain = {"name": spec.name, "link": _ANY_LINK, "rails": rails}
        declared = FabricSpec.model_validate(plain)
    result = preflight(declared, {facts.node.host: facts.node.machine})
    for each in result.findings:
        if spec.link or (each.fact == "state" and each.where.rail != "lo"):
            yield _rail(facts, spec, each)
    for note in result.notes if spec.link else ():
        yield diagnosis(None, "rail", note.text, seen)


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
    found = diagnosis(verdict, "rail", text, facts.seen_by("look"), means, mend)
    return replace(found, where=finding.where, quantity=finding.quantity)
