"""Read what libraries and their tools say: our asker, ``ucx_info``, ``fi_info``, ``ldd``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fabricproof.nodes.doctor.facts import Answer, LibraryFacts, ProgramFacts

#: the MPI library by any family's name; not libmpi_cxx, libmpifort, libmpi_usempi...
_MPI_LIBRARY = re.compile(r"^libmpi(ch|_ilp64|_mt|_abi)?\.so")

#: UCX < 1.8 wrote ``Transport:`` with less indentation; the words are the same (tools/info).
_UCX_LINE = re.compile(r"^#\s+(Transport|Device):\s+(\S+)")
_UCX_VERSION = re.compile(r"^# (?:Library version:|Version|UCT version=)\s*(\d[\w.]*)", re.M)

_FI_PROVIDER = re.compile(r"^(?:provider: )?([\w;-]+)(?::)?$")
_FI_DETAIL = re.compile(r"^\s+(fabric|domain|version|type|protocol):\s*(.*)$")


def _pairs(lines: Iterable[str]) -> list[tuple[str, str]]:
    split = (line.partition(": ") for line in lines)
    return [(key, value) for key, colon, value in split if colon]


def _two(value: str) -> tuple[str, str]:
    first, _, rest = value.partition(" ")
    return first, rest.partition(" ")[0]


def read_asker(answer: Answer) -> LibraryFacts:
    """Return what :mod:`.asker` printed; without its last line nothing that is absent is "none"."""
    said: dict[str, list[str]] = {}
    for key, value in _pairs(answer.output.splitlines()):
        said.setdefault(key, []).append(value)
    loads = tuple(said.get("loads", ()))
    fault = "; ".join(said.get("fault", ())) if "asked" not in said else ""
    if "asked" not in said and not fault:
        fault = answer.fault or "its answer was cut off"
    has_fabric, has_ucx = "libfabric" in said, "ucx-asked" in said
    domains = tuple(_two(value) for value in said.get("provider-domain", ()))
    transports = tuple(_two(value) for value in said.get("ucx-transport", ()))
    return LibraryFacts(
        path=next((path for path in loads if _MPI_LIBRARY.match(path.rpartition("/")[2])), None),
        version=tuple(said["version"]) if "version" in said else None,
        loads=loads,
        verbs_in=tuple(said.get("verbs-in", ())),
        libfabric=said.get("libfabric", [None])[0],
        providers=tuple(said.get("provider", ())) if has_fabric else None,
        domains=domains if has_fabric else None,
        pmix=next(iter(re.findall(r"PMIx v?(\d[\w.]*)", " ".join(said.get("pmix", ())))), None),
        ucx=said.get("ucx", [None])[0],
        ucx_modules=tuple(said.get("ucx-module", ())),
        transports=transports if has_ucx else None,
        fault=fault,
    )


def read_ucx_devices(answer: Answer) -> tuple[tuple[str, str], ...] | None:
    """Return the (transport, device) pairs of ``ucx_info -d``; None where it did not answer."""
    if answer.status:
        return None
    found, transport = [], ""
    for line in answer.output.splitlines():
        match = _UCX_LINE.match(line)
        if match and match[1] == "Transport":
            transport = match[2]
        elif match and transport:
            found.append((transport, match[2]))
    return tuple(found)


def read_ucx_version(answer: Answer) -> str | None:
    """Return the version in ``ucx_info -v``; None where it is not there."""
    match = _UCX_VERSION.search(answer.output)
    return match[1] if match else None


def read_fi_info(answer: Answer) -> tuple[tuple[str, str], ...] | None:
    """Return (provider, domain) of ``fi_info`` or ``fi_info -l`` (which names no domain).

    None where it did not answer; ``fi_info -p X`` ends with status 61 (ENODATA) where provider X
    offers nothing, which is an answer.
    """
    if answer.status not in {0, 61}:
        return None
    found: list[tuple[str, str]] = []
    for line in answer.output.splitlines():
        head, detail = _FI_PROVIDER.match(line), _FI_DETAIL.match(line)
        if head:
            found.append((head[1], ""))
        elif detail and detail[1] == "domain" and found:
            found[-1] = (found[-1][0], detail[2])
    return tuple(dict.fromkeys(found))


def read_ldd(path: str, answer: Answer) -> ProgramFacts:
    """Return what ``ldd`` says a program loads."""
    if answer.status and "=>" not in answer.output:
        return ProgramFacts(path=path, fault=answer.fault)
    mpi, missing = None, []
    for line in answer.output.splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and place.startswith("not found"):
            missing.append(name)
        elif arrow and _MPI_LIBRARY.match(name):
            mpi = place.rpartition(" (")[0] or place
    return ProgramFacts(path=path, mpi=mpi, missing=tuple(missing))
