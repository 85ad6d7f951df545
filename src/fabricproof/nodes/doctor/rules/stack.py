"""Rules about the stack itself: is it there, is it the MPI that was meant, does it load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.doctor.facts import Facts, ProgramFacts
from fabricproof.nodes.doctor.findings import diagnosis, fine, noted, unseen
from fabricproof.nodes.doctor.read import family_of, version_of
from fabricproof.stacks.container import Container, Inside, told_lacks
from fabricproof.stacks.spack import is_below


def judge_stack(facts: Facts) -> Iterator[Finding]:
    """Yield what is to be said of the stack, its MPI library, its programs and its wrapper."""
    yield from _presence(facts)
    yield from _module(facts)
    if facts.subject.container is not None:
        yield _container(facts, facts.subject.container)
        return
    if not facts.subject.absent:
        yield _identity(facts)
        yield from (_program(facts, each) for each in facts.programs)
    yield from _build(facts)
    if not facts.subject.nowhere:
        yield from _wrapper(facts)


def _presence(facts: Facts) -> Iterator[Finding]:
    subject = facts.subject
    if subject.absent:
        yield diagnosis(
            Verdict.MISSING,
            "stack",
            f"{subject.name}: {subject.absent}",
            means="none of its programs can run; every check on it would be MISSING",
            mend=subject.mend,
        )
    elif subject.stale:
        yield diagnosis(
            Verdict.UNJUDGED,
            "stack",
            f"{subject.name} is stale: {subject.stale}",
            means="what runs is not what the site's files say",
            mend=subject.mend,
        )


def _module(facts: Facts) -> Iterator[Finding]:
    answer = facts.module
    if answer is None:
        return
    # Environment Modules before 5.0 ends with 0 all the same.
    failed = answer.status != 0 or "ERROR" in answer.output
    lines = [line.strip() for line in answer.output.splitlines() if line.strip()]
    if not failed:
        yield fine("module", answer.command, answer.command)
        return
    yield diagnosis(
        Verdict.MISSING,
        "module",
        lines[0] if lines else answer.fault,
        answer.command,
        means="the stack's MPI is not in the environment; the system's, or none, would answer",
        mend="module avail; then correct modules = [...] of the stack, or module_paths of the "
        f"site, in {facts.subject.source}",
    )


def _container(facts: Facts, container: Container) -> Finding:
    """Return whether the runtime starts the image, and what rails a program does not see there."""
    answer, subject, command = facts.container, facts.subject, facts.seen_by("container")
    if answer is None or (answer.status == 0 and container.outer):
        seen = "not asked" if answer is None else f"srun has Pyxis; not started: {container.image}"
        return unseen("container", seen, command)
    lines = [line.strip() for line in answer.output.splitlines() if line.strip()]
    table = f"[container] of {subject.name} in {subject.source}"
    if answer.status != 0:
        runtime = "Pyxis" if container.outer else container.inner[0]
        said = (lines or [answer.fault])[-1]
        return diagnosis(
            Verdict.MISSING,
            "container",
            f"{runtime} does not start {container.image}: {said}",
            seen_by=command,
            means="no program of this stack starts; every check on it would be MISSING",
            mend=f"correct {table}, or its modules",
        )
    roots = [line for line in lines if line.startswith("root ")]
    if len(roots) < 2 or roots[0] == roots[1]:
        return diagnosis(
            Verdict.FAIL,
            "container",
            "a program that was started so has the root of the node itself",
            seen_by=command,
            means=f"it does not run in {container.image}: every number would be INVALID",
            mend=f"correct runtime in {table}",
        )
    lacks = tuple(each.removeprefix("lacks ") for each in lines if each.startswith("lacks "))
    return _seen_inside(facts, container, Inside(lacks=lacks))


def _seen_inside(facts: Facts, container: Container, inside: Inside) -> Finding:
    command = facts.seen_by("container")
    told, _, mend = told_lacks([(facts.node.host, inside)]).rpartition(" (")
    if inside.lacks and facts.node.is_node:
        return diagnosis(
            Verdict.FAIL,
            "container",
            told,
            seen_by=command,
            means="an MPI that is told its path fails there, any other falls back to TCP",
            mend=mend.removesuffix(")"),
        )
    here = f"; no {', no '.join(inside.lacks)} on this machine" if inside.lacks else ""
    return fine("container", f"a program starts in {container.image}{here}", command)


def _identity(facts: Facts) -> Finding:
    subject, library = facts.subject, facts.library
    command = facts.seen_by("asker")
    if library.version is None:
        if not (library.fault and library.has_command):
            return unseen("MPI", "not asked", command)
        where = f"check modules and suites of {subject.name} in {subject.source}"
        return diagnosis(
            Verdict.MISSING,
            "MPI",
            f"the MPI library does not load: {library.fault}",
            command,
            means="no program of this stack starts here",
            mend=subject.mend or where,
        )
    text = "\n".join(library.version)
    family, version = family_of(text), version_of(text)
    seen = f"{_short(library.version)} ({library.path or 'path unknown'})"
    if family != subject.family:
        return diagnosis(
            Verdict.FAIL,
            "MPI",
            f"{seen} answers, declared is {subject.family} {subject.version}",
            seen_by=command,
            means=f"PMI, launcher and paths would be chosen for {subject.family} and not fit",
            mend=f"set family and version of {subject.name} in {subject.source}, or load the "
            "right module",
        )
    return _version_finding(facts, seen, version)


def _version_finding(facts: Facts, seen: str, version: str | None) -> Finding:
    subject, command = facts.subject, facts.seen_by("asker")
    if version is None:
        return unseen("MPI", f"{seen}: its version is unknown", command)
    same = _begins_alike(version, subject.version)
    return diagnosis(
        Verdict.PASS if same else Verdict.UNJUDGED,
        "MPI",
        seen if same else f"{seen}, declared is version {subject.version}",
        seen_by=command,
        means="" if same else "results would be kept under a version that did not run",
        mend=""
        if same
        else f'version = "{version}" in the stack {subject.name} of {subject.source}',
    )


def _begins_alike(seen: str, declared: str) -> bool:
    """Tell whether one version is the beginning of the other: 2021.18.1 and 2021.18."""
    pairs = zip(seen.split("."), declared.split("."), strict=False)
    return all(left == right for left, right in pairs)


def _short(version: tuple[str, ...]) -> str:
    """Return the telling part of a version string: MPICH's spreads over lines."""
    line = " ".join(version[0].split())
    return line.partition(", package")[0].replace("MPICH Version: ", "MPICH ")


def _program(facts: Facts, program: ProgramFacts) -> Finding:
    command = facts.seen_by(f"ldd:{program.path}")
    name = program.path.rpartition("/")[2]
    if program.fault:
        return unseen("program", f"{program.path}: {program.fault}", command)
    if program.missing:
        return diagnosis(
            Verdict.FAIL,
            "program",
            f"{name} finds no {', '.join(program.missing)}",
            seen_by=command,
            means='it ends before main with "cannot open shared object file"',
            mend=facts.subject.mend or "load the module that brings the library",
        )
    return _loaded(facts, program, name, command)


def _loaded(facts: Facts, program: ProgramFacts, name: str, command: str) -> Finding:
    prefix = facts.subject.prefix
    if program.mpi is None:
        return unseen("program", f"{name} names no MPI library", command)
    if prefix and prefix != "/usr" and not is_below(Path(program.mpi), Path(prefix)):
        return diagnosis(
            Verdict.FAIL,
            "program",
            f"{name} loads {program.mpi}, which is not below {prefix}",
            seen_by=command,
            means="another MPI than the stack's would be measured under its name",
            mend=facts.subject.mend or "unset LD_LIBRARY_PATH",
        )
    return fine("program", f"{name} loads {program.mpi}", command)


def _build(facts: Facts) -> Iterator[Finding]:
    if facts.mpi.configure:
        yield noted(
            "build",
            f"configured with {facts.mpi.configure[:300]}",
            facts.seen_by("ompi_info" if facts.mpi.components else "mpichversion"),
        )


def _wrapper(facts: Facts) -> Iterator[Finding]:
    subject, wrapper = facts.subject, facts.wrapper
    if wrapper is None:
        return
    command = facts.seen_by("wrapper")
    told = wrapper.path if wrapper.path == wrapper.real else f"{wrapper.path} -> {wrapper.real}"
    if wrapper.family is None:
        yield unseen("mpicc", f"{told}: its MPI is unknown", command)
    elif wrapper.family == subject.family:
        yield fine("mpicc", told, command)
    else:
        yield _wrong_wrapper(facts, told, command)


def _wrong_wrapper(facts: Facts, told: str, command: str) -> Finding:
    subject, wrapper = facts.subject, facts.wrapper
    assert wrapper is not None
    why = ", a link of the alternatives system" if wrapper.alternatives else ""
    if subject.kind == "provisioned":
        # Its programs are not compiled here: nothing that runs depends on mpicc.
        return noted(
            "mpicc",
            f"{told}{why} belongs to {wrapper.family}; this stack has no wrapper of its own",
            command,
        )
    return diagnosis(
        Verdict.FAIL,
        "mpicc",
        f"two MPIs: mpicc is {told}{why}, and builds for {wrapper.family}, not {subject.family}",
        seen_by=command,
        means=f"what is built as {subject.name} would be linked with {wrapper.family}",
        mend=_wrapper_mend(facts),
    )


def _wrapper_mend(facts: Facts) -> str:
    wrapper = facts.wrapper
    if wrapper is not None and wrapper.alternatives:
        return (
            "let Spack build this MPI (remove its external), or point the link: "
            f"update-alternatives --config mpi (to mpicc.{facts.subject.family})"
        )
    return f"load the modules of {facts.subject.name} after every other MPI's"
