"""What ``look.sh`` printed on one machine, read into :class:`HostSeen`.  Text in, record out."""

from __future__ import annotations

import re

from fabricproof.core.errors import ParseError
from fabricproof.nodes.discover.facts import HostSeen, ProgramSeen
from fabricproof.nodes.discover.sections import read_pairs, read_rows, split_sections, whole_number
from fabricproof.nodes.discover.wires import read_interfaces, read_payloads, read_ports


def read_host(text: str, source: str) -> HostSeen:
    """Return what one machine showed.

    Args:
        text: the output of ``look.sh``.
        source: where it came from, for the message.

    Raises:
        ParseError: the recording is cut off, or is none.
    """
    sections = split_sections(text)
    facts = read_pairs(sections.get("host", []))
    if "name" not in facts or "end" not in sections:
        raise ParseError(
            "not a whole recording of a machine",
            source=source,
            expected="sections from '#== host' to '#== end'",
            got=f"{len(sections)} sections",
            next_step="record it again",
        )
    payloads = read_payloads(sections.get("lspci", []))
    modules_system, modules = _read_modules(sections.get("modules", []))
    return HostSeen(
        name=facts["name"],
        boot=facts.get("boot", ""),
        cpus=whole_number(facts.get("cpus")),
        system=", ".join(facts[key] for key in ("os", "kernel", "arch") if facts.get(key)),
        numa_cpus={name: row.get("cpus", "") for name, row in read_rows(sections.get("numa", []))},
        interfaces=read_interfaces(sections, payloads),
        ports=read_ports(sections, payloads),
        modules=modules,
        modules_system=modules_system,
        programs={
            name: ProgramSeen(path=row["path"], said=row.get("said", ""))
            for name, row in read_rows(sections.get("programs", []))
            if "path" in row
        },
        headers={
            name: row["prefix"]
            for name, row in reversed(read_rows(sections.get("headers", [])))
            if "prefix" in row
        },
        pmi2_library=next(iter(sections.get("pmi2", [])), None),
        missing=tuple(sections.get("missing", [])),
        is_root=facts.get("user") == "0",
    )


def _read_modules(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the module system and the full names, without folders, headings and marks."""
    system, names = "nomod", []
    for line in lines:
        word = line.strip()
        if word.startswith("system="):
            system = word.removeprefix("system=")
        elif re.fullmatch(r"[\w+.][\w+./@-]*[\w+](?:\([\w:@=]*\))?", word) and "/" in word:
            names.append(re.sub(r"\([^)]*\)$", "", word))
    is_folder = {name.rpartition("/")[0] for name in names}
    return system, tuple(dict.fromkeys(name for name in names if name not in is_folder))
