"""What ``slurm.sh`` printed, read into :class:`SlurmSeen`.  Text in, record out."""

from __future__ import annotations

import re

from fabricproof.nodes.discover.facts import PartitionSeen, SlurmSeen
from fabricproof.nodes.discover.sections import read_pairs, split_sections, whole_number
from fabricproof.site.scheduling import read_traits

#: states of sinfo's %t in which a node runs jobs, or will; a mark after it (``*`` does not answer,
#: ``~`` powered down, ``#`` powering up) is cut off (sinfo(1), NODE STATE CODES)
_USABLE = frozenset({"idle", "mix", "alloc", "comp", "resv", "plnd"})
_SILENT = "*"


def read_slurm(text: str) -> SlurmSeen | None:
    """Return what Slurm said; None where there is none, or where it did not answer."""
    sections = split_sections(text)
    where = read_pairs(sections.get("where", []))
    if not where.get("sinfo") or "end" not in sections:
        return None
    default = set(sections.get("default", []))
    config = "\n".join(line.strip() for line in sections.get("config", []))
    traits = read_traits(config, "\n".join(sections.get("sharing", [])))
    version = re.search(r"\d+\.\d+\.\d+\S*", where.get("version", ""))
    return SlurmSeen(
        version=version[0] if version else "",
        sinfo=where["sinfo"],
        conf=where.get("conf", ""),
        settings=read_pairs(sections.get("config", [])),
        partitions=_read_partitions(sections.get("partitions", []), default),
        traits=traits,
        topology=tuple(line for line in sections.get("topology", []) if "=" in line),
        licenses=tuple(
            line.partition("=")[2].split()[0]
            for line in sections.get("licenses", [])
            if line.startswith("LicenseName=")
        ),
        mpi_types=_read_mpi_types(sections.get("mpi", [])),
    )


def _read_partitions(lines: list[str], default: set[str]) -> tuple[PartitionSeen, ...]:
    """Return the partitions; sinfo prints a line for each state that a partition's nodes are in."""
    rows: dict[str, list[list[str]]] = {}
    for line in lines:
        fields = line.strip().split("|")
        if len(fields) == 7:
            rows.setdefault(fields[0], []).append(fields)
    return tuple(_partition(name, found, default) for name, found in rows.items())


def _partition(name: str, rows: list[list[str]], default: set[str]) -> PartitionSeen:
    counts = [(whole_number(row[3]) or 0, row[5]) for row in rows]
    cpus = [found for row in rows if (found := whole_number(row[4].rstrip("+")))]
    return PartitionSeen(
        name=name,
        num_nodes=sum(count for count, _ in counts),
        num_usable=sum(count for count, state in counts if _is_usable(state)),
        cpus=min(cpus) if cpus else None,
        is_up=rows[0][1] == "up",
        is_default=name in default,
        limit_minutes=_minutes(rows[0][2]),
        nodes=",".join(sorted(row[6] for row in rows if row[6])),
    )


def _is_usable(state: str) -> bool:
    return not state.endswith(_SILENT) and re.sub(r"\W+$", "", state) in _USABLE


def _minutes(text: str) -> int | None:
    """Return sinfo's ``[days-]hours:minutes:seconds`` in minutes; None for ``infinite``."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if found is None:
        return None
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    return (days * 24 + hours) * 60 + minutes


def _read_mpi_types(lines: list[str]) -> tuple[str, ...]:
    """Return the plugins: one a line after a heading, or (before Slurm 21) ``srun: NAME``."""
    words = [line.strip().removeprefix("srun: ").strip() for line in lines]
    return tuple(word for word in words if re.fullmatch(r"[a-z][\w]*", word))
