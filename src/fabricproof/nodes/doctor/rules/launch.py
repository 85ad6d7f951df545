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
from fabricproof.nodes.doctor.facts import Facts, SlurmFacts, effective_type, family_of
from fabricproof.nodes.doctor.findings import absent, diagnosis, fine, unseen, wrong
from fabricproof.site.scheduling import find_troubles

#: families whose mpiexec is MPICH's Hydra
_HYDRA = {"mpich", "mvapich", "mvapich2", "parastation", "craympich"}

_ALONE = "every rank would start as its own world of one: no message crosses anything"
_UNSUPPORTED = 'every rank stops in MPI_Init: "unsupported PMI version PMIx"'

#: (family, plugin) -> what happens; measured, see the module's docstring.
_CONSEQUENCES = {
    ("openmpi", "none"): _ALONE,
    ("openmpi", "pmi2"): _ALONE + " (Open MPI 4 stops in MPI_Init instead)",
    ("mpich", "none"): _ALONE,
    ("mpich", "pmix"): _UNSUPPORTED,
    ("mvapich", "none"): _ALONE,
    ("mvapich", "pmix"): _UNSUPPORTED,
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
        mend = f'launcher = "mpirun" in the stack {subject.name} of {subject.source}'
        mend = f"apt-get install libpmi2-0 (RPM systems: slurm-libpmi), or {mend}"
        yield wrong("launch", subject.launch_fault, "", "no rank can be started this way", mend)
        return
    if facts.slurm is not None:
        for trouble in find_troubles(subject.partition, facts.slurm.traits):
            yield replace(trouble, seen_by=facts.seen_by("config", "partitions"))
    if subject.partition.uses_slurm and subject.launcher == "srun":
        yield from _slurm(facts)
    elif subject.launcher != "srun" and not subject.nowhere:
        yield _own_launcher(facts)
        yield from _root(facts)


def spoken(facts: Facts) -> tuple[set[str], str] | None:
    """Return which PMIs the MPI speaks to a launcher and how that is known; None if unknown."""
    tell = {"openmpi": _openmpi, "intelmpi": _intelmpi}.get(facts.subject.family, _mpich)
    return tell(facts)


def _openmpi(facts: Facts) -> tuple[set[str], str] | None:
    """Open MPI 5 speaks PMIx alone; 4 also PMI-1 and PMI-2 if built ``--with-pmi`` (s1, s2)."""
    components, version = facts.mpi.components, facts.library.pmix or facts.mpi.pmix
    told = f"PMIx {version}" if version else "PMIx"
    if not facts.subject.version.startswith("4"):
        return {"pmix"}, told
    if not components:
        return None
    older = {"pmix:s1": "pmi1", "pmix:s2": "pmi2"}
    extra = {word for name, word in older.items() if name in components}
    return {"pmix", *extra}, told + (" and PMI-1/2 (--with-pmi)" if extra else "")


def _mpich(facts: Facts) -> tuple[set[str], str] | None:
    """MPICH and MVAPICH: the configure line and the loaded client library tell.

    Options as in MPICH's doc/wiki/design/PMI.md; without any of them its own client speaks PMI-1.
    """
    configure, lines = facts.mpi.configure, facts.library.version or ()
    configure = configure or next((line for line in lines if "onfigure" in line), None)
    if facts.library.loaded("libpmix") or "--with-pmix" in (configure or ""):
        return {"pmix"}, "PMIx (built --with-pmix)"
    if facts.library.loaded("libpmi2") or re.search(r"--with-pmi2?=\S*pmi2", configure or ""):
        return {"pmi2"}, "PMI-2 (built --with-pmi=pmi2)"
    if facts.library.loaded("libpmi.so"):
        return {"pmi1"}, "PMI-1 through libpmi"
    return None if configure is None else ({"pmi1"}, "PMI-1 only (no --with-pmi in its build)")


def _pmi_library(facts: Facts) -> str:
    return (
        facts.subject.launch.environment.get("I_MPI_PMI_LIBRARY", "")
        if facts.subject.launch
        else ""
    )


def _intelmpi(facts: Facts) -> tuple[set[str], str] | None:
    """Intel MPI speaks through the library that I_MPI_PMI_LIBRARY names."""
    library = _pmi_library(facts)
    known = {
        "libpmi2": ("pmi2", "PMI-2"),
        "libpmix": ("pmix", "PMIx"),
        "libpmi.": ("pmi1", "PMI-1"),
    }
    for begins, (word, label) in known.items():
        if library.rpartition("/")[2].startswith(begins):
            return {word}, f"{label} (I_MPI_PMI_LIBRARY={library})"
    return None


def _slurm(facts: Facts) -> Iterator[Finding]:
    subject, slurm = facts.subject, facts.slurm
    seen = facts.seen_by("mpi_list", "config")
    if slurm is None or slurm.mpi_types is None:
        text = f"Slurm does not answer: {slurm.fault if slurm else 'not asked'}"
        means = "nothing can be started, and which PMI it has is unknown"
        mend = "sinfo; then start slurmctld, or correct path and SLURM_CONF of the site"
        yield absent("PMI", text, seen, means, mend)
        return
    chosen = effective_type(subject.options, slurm.mpi_default)
    if chosen is None:
        yield unseen("PMI", "srun's default PMI is unknown", seen)
    elif chosen not in slurm.mpi_types:
        text = f"srun would be told --mpi={chosen}; this Slurm has {', '.join(slurm.mpi_types)}"
        means = f"srun ends at once: it finds no plugin mpi/{chosen}"
        mend = (
            f"install Slurm's {chosen} plugin (Debian: slurm-wlm-basic-plugins; RPM: "
            f'slurm-{chosen}), or launcher = "mpirun" in the stack of {subject.source}'
        )
        yield wrong("PMI", text, seen, means, mend)
    else:
        yield _match(facts, slurm, chosen, seen)
        if chosen.startswith("pmix") and subject.family == "openmpi":
            yield _pmix_versions(facts, slurm)
        yield from _intel_library(facts)
        yield from _short_lines(facts)


def _match(facts: Facts, slurm: SlurmFacts, chosen: str, seen: str) -> Finding:
    subject, plugin = facts.subject, "pmix" if chosen.startswith("pmix") else chosen
    words = spoken(facts)
    if words is None:
        text = f"srun --mpi={chosen}; which PMI this {subject.family} speaks is unknown"
        return unseen("PMI", text, seen, mend="fabricproof stack doctor --run shows it")
    speaks, how = words
    if speaks & _SERVED.get(plugin, {plugin}):
        return fine("PMI", f"srun --mpi={chosen}, the MPI speaks {how}", seen)
    text = f"srun would be told --mpi={chosen}, but this {subject.family} speaks {how}"
    means = _CONSEQUENCES.get((subject.family, plugin), _ALONE + ", or stop in MPI_Init")
    word = "pmix" if "pmix" in speaks else "pmi2"
    where = f"in the stack {subject.name} of {subject.source}"
    mend = f'pmi = "{word}" {where}'
    if any("--mpi" in each for each in subject.spec.launcher_options):
        mend = f"remove --mpi from launcher_options of {subject.name} in {subject.source}"
    elif word not in (slurm.mpi_types or ()):
        mend = f'launcher = "mpirun" {where}'
    return wrong("PMI", text, seen, means, mend)


def _pmix_versions(facts: Facts, slurm: SlurmFacts) -> Finding:
    version, seen = facts.library.pmix or facts.mpi.pmix, facts.seen_by("asker", "mpi_list")
    if version is None or not version[0].isdigit() or not slurm.pmix_versions:
        text = "the version of the MPI's PMIx, or of Slurm's plugin, is unknown"
        return unseen("PMIx", text, seen)
    best = max(slurm.pmix_versions)
    ahead = int(version.partition(".")[0]) - best
    plugin = ", ".join(f"pmix_v{each}" for each in slurm.pmix_versions)
    text = f"the MPI's PMIx is {version}, Slurm's plugin {plugin}"
    if ahead <= 0:
        return fine("PMIx", text, seen)
    means = (
        "versions next to each other were seen to work (PMIx 5.0 under pmix_v4); further apart, "
        "ranks may hang in MPI_Init"
    )
    mend = f'pmix@{best} (Spack: packages: pmix: require: "@{best}")'
    mend = f"prove it with --run; or build with {mend}"
    verdict = Verdict.UNJUDGED if ahead > 1 else None
    return diagnosis(verdict, "PMIx", f"{text}: newer than Slurm's", seen, means, mend)


def _intel_library(facts: Facts) -> Iterator[Finding]:
    library, on_node = _pmi_library(facts), facts.node.pmi_libraries
    if not library or on_node is None or library in on_node:
        return
    text = f"I_MPI_PMI_LIBRARY={library} is not on {facts.node.host}"
    means = (
        'Intel MPI says "Could not open ..." and falls back on a client of its own, or starts '
        "every rank as a world of one (older than 2021.10)"
    )
    mend = "apt-get install libpmi2-0 on the nodes (RPM systems: slurm-libpmi)"
    verdict = Verdict.FAIL if facts.node.is_node else Verdict.UNJUDGED
    yield diagnosis(verdict, "PMI", text, facts.seen_by("pmi"), means, mend)


def _short_lines(facts: Facts) -> Iterator[Finding]:
    """Slurm reads a PMI-1 command in 1024 bytes (MAX_READLINE); UCX addresses are longer.

    docs/stacks.md, "Why MPICH with UCX fails now and then under srun".
    """
    subject, words = facts.subject, spoken(facts)
    over_ucx = [
        each.name
        for each in subject.net_paths
        if not each.refusal and each.environment.get("MPIR_CVAR_CH4_NETMOD") == "ucx"
    ]
    if over_ucx and words is not None and words[0] == {"pmi1"}:
        text = f"{', '.join(over_ucx)} goes through UCX, and the MPI speaks {words[1]}"
        means = (
            "UCX addresses do not fit Slurm's PMI-1 lines of 1024 bytes: now and then the start "
            'fails with "value not properly terminated in client request", or hangs'
        )
        mend = f'launcher = "mpiexec" in the stack {subject.name} of {subject.source}, or build '
        seen = facts.seen_by("asker", "mpichversion")
        yield unseen("PMI", text, seen, means, f"{mend}mpich pmi=pmix")


def _own_launcher(facts: Facts) -> Finding:
    subject, answer = facts.subject, facts.launcher
    name = subject.launch.launcher if subject.launch else subject.launcher
    if answer is None:
        return unseen("launcher", f"{name} was not asked")
    # what the stub of Spack's Open MPI 4 ``~legacylaunchers`` prints before ``exit 2``
    if "legacylaunchers" in answer.output:
        built = "Open MPI 4 built with schedulers=slurm ~legacylaunchers"
        text = f"{name} is a stub that exits {answer.status}: {built}"
        mend = f'launcher = "srun" in {subject.source}, or build openmpi +legacylaunchers'
        return wrong("launcher", text, answer.command, "nothing starts", mend)
    if answer.status:
        mend = subject.mend or f"load the modules that bring {name}"
        text = f"{name}: {answer.fault}"
        return wrong("launcher", text, answer.command, "nothing starts", mend)
    told = " ".join(" ".join(line.split()) for line in answer.lines[:2])[:80]
    family = family_of(answer.output) or ("mpich" if "HYDRA" in answer.output else None)
    if family is None:
        return unseen("launcher", f"{name}: {told}", answer.command)
    if subject.family in (_HYDRA if family == "mpich" else {family}):
        return fine("launcher", f"{name}: {told}", answer.command)
    text = f"{name} is {told}: of {family}, not {subject.family}"
    mend = subject.mend or f"load the modules of {subject.name} last"
    return wrong("launcher", text, answer.command, _ALONE, mend)


def _root(facts: Facts) -> Iterator[Finding]:
    node, subject = facts.node, facts.subject
    begin = "OMPI" if subject.version.startswith("4") else "PRTE"
    names = [f"{begin}_ALLOW_RUN_AS_ROOT", f"{begin}_ALLOW_RUN_AS_ROOT_CONFIRM"]
    known = {**node.environment, **subject.settings}
    if subject.family == "openmpi" and node.uid == 0 and not all(name in known for name in names):
        text = "this is root, and Open MPI's mpirun refuses root"
        means = 'mpirun ends with "mpirun has detected an attempt to run as root"'
        mend = f'run as a user; or environment = {{ {names[0]} = "1", {names[1]} = "1" }}'
        yield wrong("launcher", text, facts.seen_by("uid"), means, mend)


def judge_world(facts: Facts) -> Iterator[Finding]:
    """Yield what two real ranks saw, or that none were started."""
    world = facts.world
    if facts.subject.absent:
        return
    if world is None:
        mend = "--run starts two, and says what world they see"
        yield unseen("world", "no rank was started", mend=mend)
    elif world.fault is None:
        yield fine("world", f"world of {world.num_ranks}: right", world.command)
    else:
        last = [line.strip() for line in world.output.splitlines() if line.strip()][-3:]
        means = "no benchmark of this stack can be believed: " + " | ".join(last)[:400]
        mend = "the FAIL above, if there is one; else the launcher's own words"
        yield wrong("world", world.fault, world.command, means, mend)
