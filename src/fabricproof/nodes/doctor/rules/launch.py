"""Rules about the start of ranks: PMI against Slurm's, the launcher, root, and the world seen.

What a mismatch does was measured with Slurm 22.05 (plugins none, pmi2, pmix_v4) and Open MPI 4.1.4
and 5.0.11, MPICH 5.0.2, Intel MPI 2021.18; see docs/doctor.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.doctor.facts import Facts
from fabricproof.nodes.doctor.findings import diagnosis, fine, unseen
from fabricproof.nodes.doctor.read import effective_type, family_of
from fabricproof.site.scheduling import find_troubles

#: what Spack's stub for Open MPI 4 ``schedulers=slurm ~legacylaunchers`` prints before ``exit 2``.
_STUB = re.compile(r"legacylaunchers")

#: families whose mpiexec is MPICH's Hydra
_HYDRA = {"mvapich", "mvapich2", "parastation", "craympich"}

_ALONE = "every rank would start as its own world of one: no message crosses anything"

#: (family, plugin) -> what happens; measured, see the module's docstring.
_CONSEQUENCES = {
    ("openmpi", "none"): _ALONE,
    ("openmpi", "pmi2"): _ALONE + " (Open MPI 4 stops in MPI_Init instead)",
    ("mpich", "none"): _ALONE,
    ("mpich", "pmix"): 'every rank stops in MPI_Init: "unsupported PMI version PMIx"',
    ("mvapich", "none"): _ALONE,
    ("mvapich", "pmix"): 'every rank stops in MPI_Init: "unsupported PMI version PMIx"',
    ("intelmpi", "none"): _ALONE + ', or stops in MPI_Init: "PMI2_Job_GetId returned 14"',
    ("intelmpi", "pmix"): 'every rank stops in MPI_Init: "PMI2_Job_GetId returned 14", because '
    "I_MPI_PMI_LIBRARY names libpmi2",
}

#: what each of Slurm's plugins speaks to a rank; pmi2 answers PMI-1's words too.
_SERVED = {"pmi2": {"pmi1", "pmi2"}, "cray_shasta": {"pmi2"}, "none": set[str]()}


def judge_launch(facts: Facts) -> Iterator[Finding]:
    """Yield what is to be said of how ranks start."""
    subject = facts.subject
    if subject.launch is None:
        yield diagnosis(
            Verdict.FAIL,
            "launch",
            subject.launch_fault,
            means="no rank can be started this way",
            mend="apt-get install libpmi2-0 (RPM systems: slurm-libpmi), or launcher = "
            f'"mpirun" in the stack {subject.name} of {subject.source}',
        )
        return
    yield from _scheduling(facts)
    if subject.partition.uses_slurm and subject.launcher == "srun":
        yield from _slurm(facts)
    elif subject.launcher != "srun" and not subject.nowhere:
        yield from _own_launcher(facts)
        yield from _root(facts)


def _scheduling(facts: Facts) -> Iterator[Finding]:
    """Yield what this Slurm will not do for the partition, whatever the stack."""
    partition = facts.subject.partition
    if facts.slurm is None:
        return
    for trouble in find_troubles(partition, facts.slurm.traits):
        yield replace(trouble, seen_by=facts.seen_by("config", "partitions"))


def spoken(facts: Facts) -> tuple[set[str], str] | None:
    """Return which PMIs the MPI speaks to a launcher and how that is known; None if unknown."""
    tell = {"openmpi": _openmpi, "intelmpi": _intelmpi}.get(facts.subject.family, _mpich)
    return tell(facts)


def _openmpi(facts: Facts) -> tuple[set[str], str] | None:
    """Open MPI 5 speaks PMIx alone; 4 also PMI-1 and PMI-2 where built ``--with-pmi`` (s1, s2)."""
    components = facts.mpi.components or frozenset()
    version = _pmix_version(facts)
    told = f"PMIx {version}" if version else "PMIx"
    if not facts.subject.version.startswith("4"):
        return {"pmix"}, told
    if not components:
        return None
    older = {"pmix:s1": "pmi1", "pmix:s2": "pmi2"}
    extra = {word for name, word in older.items() if name in components}
    return {"pmix", *extra}, told + (" and PMI-1/2 (--with-pmi)" if extra else "")


def _pmix_version(facts: Facts) -> str | None:
    """Return the version of the client that is really loaded, else what pmix_info says."""
    return facts.library.pmix or facts.mpi.pmix


def _mpich(facts: Facts) -> tuple[set[str], str] | None:
    """MPICH and MVAPICH: the configure line and the loaded client library tell.

    Options as in MPICH's doc/wiki/design/PMI.md; without any of them its own client speaks PMI-1.
    """
    configure = facts.mpi.configure
    if configure is None:
        lines = facts.library.version or ()
        configure = next((line for line in lines if "onfigure" in line), None)
    if facts.library.loaded("libpmix") or "--with-pmix" in (configure or ""):
        return {"pmix"}, "PMIx (built --with-pmix)"
    if facts.library.loaded("libpmi2") or re.search(r"--with-pmi2?=\S*pmi2", configure or ""):
        return {"pmi2"}, "PMI-2 (built --with-pmi=pmi2)"
    if facts.library.loaded("libpmi.so"):
        return {"pmi1"}, "PMI-1 through libpmi"
    return None if configure is None else ({"pmi1"}, "PMI-1 only (no --with-pmi in its build)")


def _intelmpi(facts: Facts) -> tuple[set[str], str] | None:
    """Intel MPI speaks through the library that I_MPI_PMI_LIBRARY names."""
    launch = facts.subject.launch
    library = (launch.environment if launch else {}).get("I_MPI_PMI_LIBRARY", "")
    name = library.rpartition("/")[2]
    known = (
        ("libpmi2", "pmi2", "PMI-2"),
        ("libpmix", "pmix", "PMIx"),
        ("libpmi.", "pmi1", "PMI-1"),
    )
    for begins, word, label in known:
        if name.startswith(begins):
            return {word}, f"{label} (I_MPI_PMI_LIBRARY={library})"
    return None


def _slurm(facts: Facts) -> Iterator[Finding]:
    subject, slurm = facts.subject, facts.slurm
    command = facts.seen_by("mpi_list", "config")
    if slurm is None or slurm.mpi_types is None:
        yield diagnosis(
            Verdict.MISSING,
            "PMI",
            f"Slurm does not answer: {slurm.fault if slurm else 'not asked'}",
            seen_by=command,
            means="nothing can be started, and which PMI it has is unknown",
            mend="sinfo; then start slurmctld, or correct path and SLURM_CONF of the site",
        )
        return
    chosen = effective_type(subject.options, slurm.mpi_default)
    if chosen is None:
        yield unseen("PMI", "srun's default PMI is unknown", command)
    elif chosen not in slurm.mpi_types:
        yield _no_plugin(facts, chosen, command)
    else:
        yield _match(facts, chosen, command)
        yield from _pmix_versions(facts, chosen)
        yield from _intel_library(facts)
        yield from _short_lines(facts)


def _no_plugin(facts: Facts, chosen: str, command: str) -> Finding:
    slurm = facts.slurm
    assert slurm is not None
    return diagnosis(
        Verdict.FAIL,
        "PMI",
        f"srun would be told --mpi={chosen}; this Slurm has {', '.join(slurm.mpi_types or ())}",
        seen_by=command,
        means=f"srun ends at once: it finds no plugin mpi/{chosen}",
        mend=f"install Slurm's {chosen} plugin (Debian: slurm-wlm-basic-plugins; RPM: "
        f'slurm-{chosen}), or launcher = "mpirun" in the stack of {facts.subject.source}',
    )


def _plugin_family(chosen: str) -> str:
    return "pmix" if chosen.startswith("pmix") else chosen


def _match(facts: Facts, chosen: str, command: str) -> Finding:
    subject, plugin = facts.subject, _plugin_family(chosen)
    words = spoken(facts)
    if words is None:
        return diagnosis(
            Verdict.UNJUDGED,
            "PMI",
            f"srun --mpi={chosen}; which PMI this {subject.family} speaks is unknown",
            seen_by=command,
            mend="fabricproof stack doctor --run shows it",
        )
    speaks, how = words
    if speaks & _SERVED.get(plugin, {plugin}):
        return fine("PMI", f"srun --mpi={chosen}, the MPI speaks {how}", command)
    return diagnosis(
        Verdict.FAIL,
        "PMI",
        f"srun would be told --mpi={chosen}, but this {subject.family} speaks {how}",
        seen_by=command,
        means=_CONSEQUENCES.get((subject.family, plugin), _ALONE + ", or stop in MPI_Init"),
        mend=_pmi_mend(facts, speaks),
    )


def _pmi_mend(facts: Facts, speaks: set[str]) -> str:
    subject, slurm = facts.subject, facts.slurm
    word = "pmix" if "pmix" in speaks else "pmi2"
    if any("--mpi" in each for each in subject.spec.launcher_options):
        return f"remove --mpi from launcher_options of {subject.name} in {subject.source}"
    if slurm is not None and word in (slurm.mpi_types or ()):
        return f'pmi = "{word}" in the stack {subject.name} of {subject.source}'
    return f'launcher = "mpirun" in the stack {subject.name} of {subject.source}'


def _pmix_versions(facts: Facts, chosen: str) -> Iterator[Finding]:
    slurm, version = facts.slurm, _pmix_version(facts)
    assert slurm is not None
    if _plugin_family(chosen) != "pmix" or facts.subject.family != "openmpi":
        return
    major = int(version.partition(".")[0]) if version and version[0].isdigit() else None
    if major is None or not slurm.pmix_versions:
        yield unseen(
            "PMIx",
            "the version of the MPI's PMIx, or of Slurm's plugin, is unknown",
            facts.seen_by("asker", "mpi_list"),
        )
        return
    ahead = major - max(slurm.pmix_versions)
    plugin = ", ".join(f"pmix_v{each}" for each in slurm.pmix_versions)
    seen = f"the MPI's PMIx is {version}, Slurm's plugin {plugin}"
    yield diagnosis(
        Verdict.UNJUDGED if ahead > 1 else None if ahead == 1 else Verdict.PASS,
        "PMIx",
        seen + (": newer than Slurm's" if ahead > 0 else ""),
        seen_by=facts.seen_by("asker", "mpi_list"),
        means="versions next to each other were seen to work (PMIx 5.0 under pmix_v4); further "
        "apart, ranks may hang in MPI_Init"
        if ahead > 0
        else "",
        mend=f"prove it with --run; or build with pmix@{max(slurm.pmix_versions)} (Spack: "
        f'packages: pmix: require: "@{max(slurm.pmix_versions)}")'
        if ahead > 0
        else "",
    )


def _intel_library(facts: Facts) -> Iterator[Finding]:
    launch = facts.subject.launch
    library = (launch.environment if launch else {}).get("I_MPI_PMI_LIBRARY")
    on_node = facts.node.pmi_libraries
    if library is None or on_node is None or library in on_node:
        return
    yield diagnosis(
        Verdict.FAIL if facts.node.is_node else Verdict.UNJUDGED,
        "PMI",
        f"I_MPI_PMI_LIBRARY={library} is not on {facts.node.host}",
        seen_by=facts.seen_by("pmi"),
        means='Intel MPI says "Could not open ..." and falls back on a client of its own, or '
        "starts every rank as a world of one (older than 2021.10)",
        mend="apt-get install libpmi2-0 on the nodes (RPM systems: slurm-libpmi)",
    )


def _short_lines(facts: Facts) -> Iterator[Finding]:
    """Slurm reads a PMI-1 command in 1024 bytes (MAX_READLINE); UCX addresses are longer.

    docs/stacks.md, "Why MPICH with UCX fails now and then under srun".
    """
    subject = facts.subject
    words = spoken(facts)
    net_paths = [
        net_path.name
        for net_path in subject.net_paths
        if not net_path.refusal and net_path.environment.get("MPIR_CVAR_CH4_NETMOD") == "ucx"
    ]
    if net_paths and words is not None and words[0] == {"pmi1"}:
        yield diagnosis(
            Verdict.UNJUDGED,
            "PMI",
            f"{', '.join(net_paths)} goes through UCX, and the MPI speaks {words[1]}",
            seen_by=facts.seen_by("asker", "mpichversion"),
            means="UCX addresses do not fit Slurm's PMI-1 lines of 1024 bytes: now and then the "
            'start fails with "value not properly terminated in client request", or hangs',
            mend=f'launcher = "mpiexec" in the stack {subject.name} of {subject.source}, or build '
            "mpich pmi=pmix",
        )


def _own_launcher(facts: Facts) -> Iterator[Finding]:
    subject, answer = facts.subject, facts.launcher
    name = subject.launch.launcher if subject.launch else subject.launcher
    if answer is None:
        yield unseen("launcher", f"{name} was not asked")
    elif _STUB.search(answer.output):
        yield diagnosis(
            Verdict.FAIL,
            "launcher",
            f"{name} is a stub that exits {answer.status}: Open MPI 4 built with "
            "schedulers=slurm ~legacylaunchers",
            seen_by=answer.command,
            means="nothing starts",
            mend=f'launcher = "srun" in {subject.source}, or build openmpi +legacylaunchers',
        )
    elif answer.status:
        yield diagnosis(
            Verdict.FAIL,
            "launcher",
            f"{name}: {answer.fault}",
            seen_by=answer.command,
            means="nothing starts",
            mend=subject.mend or f"load the modules that bring {name}",
        )
    else:
        yield _launcher_identity(facts, name, answer.output, answer.command)


def _launcher_identity(facts: Facts, name: str, output: str, command: str) -> Finding:
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    told = " ".join(lines[:2])[:80]
    family = family_of(output) or ("mpich" if "HYDRA" in output else None)
    kin = {family, *_HYDRA} if family == "mpich" else {family}
    if family is None or facts.subject.family in kin:
        return diagnosis(
            Verdict.PASS if family else Verdict.UNJUDGED,
            "launcher",
            f"{name}: {told}",
            seen_by=command,
        )
    return diagnosis(
        Verdict.FAIL,
        "launcher",
        f"{name} is {told}: of {family}, not {facts.subject.family}",
        seen_by=command,
        means=_ALONE,
        mend=facts.subject.mend or f"load the modules of {facts.subject.name} last",
    )


def _root(facts: Facts) -> Iterator[Finding]:
    node, subject = facts.node, facts.subject
    if subject.family != "openmpi" or node.uid != 0:
        return
    known = {**node.environment, **subject.settings}
    begin = "OMPI" if subject.version.startswith("4") else "PRTE"
    names = [f"{begin}_ALLOW_RUN_AS_ROOT", f"{begin}_ALLOW_RUN_AS_ROOT_CONFIRM"]
    if all(name in known for name in names):
        return
    yield diagnosis(
        Verdict.FAIL,
        "launcher",
        "this is root, and Open MPI's mpirun refuses root",
        seen_by=facts.seen_by("uid"),
        means='mpirun ends with "mpirun has detected an attempt to run as root"',
        mend=f'run as a user; or environment = {{ {names[0]} = "1", {names[1]} = "1" }}',
    )
