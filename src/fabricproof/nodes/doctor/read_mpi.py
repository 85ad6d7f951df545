"""Read what an MPI's own tools say: ``ompi_info``, ``mpichversion``, ``mpiname``, ``mpicc -v``."""

from __future__ import annotations

import re

from fabricproof.nodes.doctor.facts import Answer, MpiFacts, WrapperFacts

_COMPONENT = re.compile(r"^mca:(\w+):([\w-]+):version:")
_CONFIGURE = re.compile(
    r"^(?:config:cli|MPICH configure|MPICH[^:]* configure|.*Configure.*?):\s*(.*)"
)
#: a path alone on its line; Open MPI's wrapper begins its answer with its own path, too.
_LINK = re.compile(r"^/\S*$")
_PMIX = re.compile(r"^pmix:version:full:(\S+)", re.M)

_FAMILIES = {
    "openmpi": re.compile(r"Open MPI|open-?mpi", re.I),
    "intelmpi": re.compile(r"Intel\(R\) MPI", re.I),
    "mvapich": re.compile(r"MVAPICH", re.I),
    "mpich": re.compile(r"MPICH", re.I),
}
_VERSION = {
    "openmpi": re.compile(r"Open MPI\)?:?\s+v?(\d+(?:\.\d+)*\w*)"),
    "intelmpi": re.compile(r"(?:Library|Version)\s+(\d{4}(?:\.\d+)*)"),
    "mvapich": re.compile(r"MVAPICH\S*\s+(?:Version\s*:?\s*)?(\d+(?:\.\d+)*\w*)", re.I),
    "mpich": re.compile(r"MPICH Version:\s*(\d+(?:\.\d+)*\w*)"),
}


def family_of(text: str) -> str | None:
    """Return the MPI family that a version string or a compiler line speaks of; None if none.

    MVAPICH and Intel MPI speak of MPICH too and are looked for before it.
    """
    return next((name for name, words in _FAMILIES.items() if words.search(text)), None)


def version_of(text: str) -> str | None:
    """Return the MPI's version in its version string; None where it has none."""
    family = family_of(text)
    match = _VERSION[family].search(text) if family else None
    return match[1] if match else None


def read_mpi(*answers: Answer | None) -> MpiFacts:
    """Return what ``ompi_info --parsable``, ``pmix_info`` or ``mpichversion`` say of the build."""
    texts = [each.output for each in answers if each is not None and each.status == 0]
    lines = [line for text in texts for line in text.splitlines()]
    components = frozenset(
        f"{match[1]}:{match[2]}" for line in lines if (match := _COMPONENT.match(line))
    )
    configure = next((match[1] for line in lines if (match := _CONFIGURE.match(line))), None)
    pmix = next((match[1] for text in texts if (match := _PMIX.search(text))), None)
    return MpiFacts(components=components or None, configure=configure, pmix=pmix)


def read_wrapper(answer: Answer | None) -> WrapperFacts | None:
    """Return the wrapper: its path, its links followed, each a line, then what it says it is.

    None where no ``mpicc`` is on PATH.
    """
    if answer is None or not answer.output.startswith("/"):
        return None
    path, *rest = answer.output.splitlines()
    links = [line for line in rest if _LINK.match(line)]
    told = "\n".join(line for line in rest if not _LINK.match(line))
    real = links[-1] if links else path
    family = family_of(told) or family_of(real.rpartition("/")[2])
    return WrapperFacts(
        path=path,
        real=real,
        alternatives=any(link.startswith("/etc/alternatives/") for link in links),
        family=family,
    )
