"""Lists of hosts as Slurm folds them, ``vc[1-2,4]``, and of CPUs as the kernel prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from fabricproof.core.errors import ConfigError, ParseError

#: numbers that one range may stand for: ten times the nodes of the largest machines, at about 200
#: bytes of memory for each name
MAX_NAMES = 1_000_000

#: what a node, or a reservation, may be called in Slurm; nothing else is given to scontrol
SAFE_NAME = re.compile(r"\w[\w.-]*")

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,100})-(\d{1,100})")


def fold(nodes: Iterable[str]) -> str:
    """Return node names as Slurm folds them, ``vc[1-2,4]``; as they are where that cannot be."""
    names = list(nodes)
    if any("[" in name for name in names):  # of a program that folds: it may stand for millions
        return ",".join(names)
    try:
        return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return ",".join(names)


def expand(text: str, source: str = "hostlist", line: int = 1) -> tuple[str, ...]:
    """Return the names in a hostlist: ``vc[1-2,4]`` is vc1, vc2 and vc4; none for ``""``.

    Raises:
        ParseError: it is no hostlist; ``source`` and ``line`` say where it stands.
        ConfigError: a range of it stands for more than :data:`MAX_NAMES` names.
    """
    if text in {"", "(null)"}:
        return ()
    got = repr(text[:80])
    ranges = _RANGE.findall(",".join(_BRACKETS.findall("".join(text.split()))))
    if any(int(last) - int(first) >= MAX_NAMES for first, last in ranges):
        problem, expected = "a hostlist of too many names", f"ranges of {MAX_NAMES} at most"
        raise ConfigError(problem, source=source, line=line, expected=expected, got=got)
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    # ClusterShell lets those of some wrong ranges through: n[1-2-3-4-5], n[--1]
    except (NodeSetException, ValueError, AssertionError) as error:
        problem, expected = "damaged hostlist", f"a hostlist ({error})"
        raise ParseError(problem, source=source, line=line, expected=expected, got=got) from None


#: no machine has a million CPUs
_SPAN = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


def cpus_of(text: str) -> frozenset[int] | None:
    """Return the CPUs of ``0-3,8``: 0, 1, 2, 3 and 8; none for ``""``, None for what is no list."""
    spans = [_SPAN.fullmatch(part) for part in text.split(",")] if text else []
    if None in spans:
        return None
    ends = [(int(span[1]), int(span[2] or span[1])) for span in spans if span]
    return frozenset(cpu for first, last in ends for cpu in range(first, last + 1))
