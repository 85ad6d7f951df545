"""Values between ranks, one on each node, as LinkTest and mpiGraph print them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from fabricproof.core.errors import ParseError
from fabricproof.core.units import by_key, natural
from fabricproof.pairs.matrix import Kind, Matrix

#: two ranks, and what the first reached with the second
RankValue = tuple[int, int, float]


def missing_of(values: Iterable[RankValue], hosts: Mapping[int, str], num: int) -> tuple[str, ...]:
    """Return how many of all ordered pairs of ranks have no value, and the first of them."""
    seen, total = {(one, other) for one, other, _ in values}, num * (num - 1)
    if len(seen) >= total:
        return ()
    every = ((a, b) for a in range(num) for b in range(num) if a != b)
    first = islice((pair for pair in every if pair not in seen), 3)
    words = [" to ".join(hosts.get(each, f"rank {each}") for each in one) for one in first]
    more = " ..." if total - len(seen) > len(words) else ""
    return (f"{total - len(seen)} of {total} values: {', '.join(words)}{more}",)


def unplaced(hosts: Mapping[int, str], num: int) -> tuple[str, ...]:
    """Return how many ranks nobody placed on a node."""
    count = num - len(hosts)
    return (f"where {count} of {num} ranks ran",) if count > 0 else ()


def matrix_of_ranks(
    values: Iterable[RankValue],
    hosts: Mapping[int, str],
    kind: Kind,
    source: str,
    *,
    both_ways: bool,
    rounds: Iterable[int] = (),
) -> Matrix:
    """Return the values between ranks that were placed on nodes as a matrix, one each way.

    Of repeated ones the median counts, of two the better one.  ``rounds``: of each, if known.
    """
    looks = by_key(((a, b), value) for a, b, value in values if a in hosts and b in hosts)
    rows = [
        (*pair, sorted(own, reverse=kind.lower_is_better)[len(own) // 2])
        for pair, own in looks.items()
    ]
    if not rows:
        raise ParseError("no value of two nodes", source=source)
    nodes = sorted({hosts[rank] for row in rows for rank in row[:2]}, key=natural)
    number = {name: at for at, name in enumerate(nodes)}
    ends = np.array([[number[hosts[a]], number[hosts[b]]] for a, b, _ in rows], dtype=np.int32)
    return Matrix(
        nodes=tuple(nodes),
        rails=("",),
        kind=kind,
        source=ends[:, 0],
        destination=ends[:, 1],
        both_ways=np.full(len(rows), both_ways),
        rail=np.zeros(len(rows), dtype=np.int32),
        round=np.array(list(rounds) or [-1] * len(rows), dtype=np.int32),
        value=np.array([value for _, _, value in rows]),
        origin=source,
    )


def check_ranks(
    values: Iterable[RankValue], hosts: Mapping[int, str], num: int, source: str
) -> None:
    """Refuse ranks beyond their number, and several on a node, which share its rails."""
    highest = max((*hosts, *(max(one, other) for one, other, _ in values)), default=0)
    if highest >= num:
        raise ParseError(
            "a rank beyond the number of ranks",
            source=source,
            expected=f"at most {num - 1}",
            got=str(highest),
        )
    if len(set(hosts.values())) < len(hosts):
        raise ParseError(
            "several ranks ran on one node, which shared its rails",
            source=source,
            expected="one rank on each node",
            next_step="run it with one task on each node (srun --ntasks-per-node=1)",
        )


def without_labels(text: str, words: str) -> str:
    """Return a text without the ranks that ``srun --label`` puts before its lines.

    ``words``: what a line of the program begins with.
    """
    if re.search(rf"^ *\d+: {words}", text, re.MULTILINE) is None:
        return text
    return re.sub(r"^ *\d+: ?", "", text, flags=re.MULTILINE)


def only(pattern: re.Pattern[str], text: str, source: str, what: str) -> int:
    """Return the number of a line of the header; 0 where there is none."""
    found = {int(each) for each in pattern.findall(text)}
    if len(found) > 1:
        raise ParseError(f"two runs in one output, with unlike {what}", source=source)
    return found.pop() if found else 0
