"""Read what Slurm says of MPIs and partitions: ``srun --mpi=list`` and ``scontrol show``."""

from __future__ import annotations

import re

from fabricproof.nodes.doctor.facts import Answer, SlurmFacts
from fabricproof.site.scheduling import read_traits

#: ``srun: MPI types are...`` before 20.11, ``MPI plugin types are...`` since 21.08.
_LIST_HEAD = re.compile(r"MPI (?:plugin )?types are")
_PMIX_VERSIONS = re.compile(r"pmix plugin versions available:\s*(.*)")
_PMIX = re.compile(r"^pmix_v(\d+)$")
_SETTING = re.compile(r"^(\w+)\s*=\s*(.*)$", re.M)


def read_slurm(mpi_list: Answer, config: Answer, partitions: Answer | None = None) -> SlurmFacts:
    """Return what the commands say; a silent Slurm is a fault, not "no plugins"."""
    listed = mpi_list.output.splitlines()
    if not any(_LIST_HEAD.search(line) for line in listed):
        reason = mpi_list.fault or "srun --mpi=list says something else"
        return SlurmFacts(fault=config.fault or reason)
    words, versions = _types(listed)
    versions |= {int(match[1]) for word in words if (match := _PMIX.match(word))}
    settings = dict(_SETTING.findall(config.output)) if config.status == 0 else {}
    return SlurmFacts(
        version=settings.get("SLURM_VERSION"),
        mpi_types=tuple(words),
        pmix_versions=tuple(sorted(versions)),
        mpi_default=settings.get("MpiDefault"),
        traits=read_traits(_output(config), _output(partitions)),
        fault=config.fault,
    )


def _output(answer: Answer | None) -> str:
    return answer.output if answer is not None and answer.status == 0 else ""


def _types(lines: list[str]) -> tuple[list[str], set[int]]:
    words: list[str] = []
    versions: set[int] = set()
    for line in (line.strip().removeprefix("srun: ") for line in lines):
        special = _PMIX_VERSIONS.search(line)
        if special:
            names = re.split(r"[,\s]+", special[1].strip())
            versions |= {int(match[1]) for name in names if (match := _PMIX.match(name))}
        elif re.fullmatch(r"[\w-]+", line):
            words.append(line)
    return words, versions


def effective_type(options: tuple[str, ...], default: str | None) -> str | None:
    """Return the plugin that srun will take: the last ``--mpi=`` wins, else ``MpiDefault``."""
    chosen = default
    for option, following in zip(options, (*options, "")[1:], strict=True):
        if option.startswith("--mpi="):
            chosen = option.removeprefix("--mpi=")
        elif option == "--mpi":
            chosen = following
    return chosen
