"""Read the record of the kernel of a campaign over all nodes, run on two of them as a program.

pairs/campaign/kernel.c writes it, JSON lines, of which ``pairs.campaign.record``
reads all.  Here one pair did one thing: a row for each size of what the first rank led.  A latency
is half of the mean time there and back, a bandwidth all bytes over all time, as OSU has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fabricproof.benchmarks.parsers.grammar.chatter import death
from fabricproof.benchmarks.parsers.grammar.text import TextSection
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table
from fabricproof.core.records import parse_json

_COLUMNS = {"pingpong": "latency_us", "uni": "bandwidth_mb_s", "bi": "bandwidth_mb_s"}

#: column of a ping-pong -> what the record calls it, and the repetitions from which on five or more
#: of them are slower: our choice
_TAILS = {"latency_p95_us": ("p95_us", 100), "latency_p99_us": ("p99_us", 500)}


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table of a record.

    Raises:
        ParseError: it is cut off or damaged, or several pairs or modes stand in it.
    """
    first, attributes, modes = "", dict[str, str](), set()
    rows: list[tuple[float, float]] = []
    mine: list[dict[str, Any]] = []
    lines: list[int] = []
    is_done = False
    for index, line in _records(section):
        try:
            kind = line["record"]
            if kind == "campaign":
                attributes, ranks = _attributes(line), line["ranks"]
            elif kind == "rank" and line["rank"] == 0:
                first = line["node"]
                attributes["library"] = str(line.get("library", ""))
            elif kind == "value" and line["from"] == first:
                modes.add(str(line["mode"]))
                rows.append((_size(line), _value(line)))
                mine.append(line)
                lines.append(section.first + index)
            is_done = kind == "done"
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise _damaged(section, index) from None
    sizes = [size for size, _ in rows]
    if not is_done:
        raise section.error(len(section.lines) - 1, "a record that is cut off", expected='"done"')
    if ranks != 2 or len(modes) != 1 or len(set(sizes)) != len(sizes):
        raise section.error(
            0, "not one pair that did one thing", expected="two ranks, one mode, each size once"
        )
    (mode,) = modes
    try:
        tails = _tails(mine) if mode == "pingpong" else {}
    except OverflowError:  # a whole number of more digits than any time has
        raise _damaged(section, lines[0] - section.first) from None
    return (
        Table(
            suite="fabricproof",
            program=mode,
            version=None,
            columns=("message_size", _COLUMNS[mode], *tails),
            rows=tuple((*row, *tail) for row, *tail in zip(rows, *tails.values(), strict=True)),
            source=section.source,
            line=section.first,
            row_lines=tuple(lines),
            attributes={name: each for name, each in attributes.items() if each},
        ),
    )


def _attributes(line: dict[str, Any]) -> dict[str, str]:
    """Return what the kernel is: its MPI, what it was built against, its digest."""
    told = {name: str(line.get(name, "")) for name in ("build", "sha256")}
    return {"mpi": name_of_mpi(str(line["mpi"])), **told}


def name_of_mpi(said: str) -> str:
    """Return name and version of what ``MPI_Get_library_version`` says: ``Open MPI v5.0.11``.

    Args:
        said: as the kernel records it, with semicolons between its lines.
    """
    return " ".join(re.split(r"[;,]|MPICH Release", said)[0].split())[:80]


def _records(section: TextSection) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, line in enumerate(section.lines):
        if death(line):
            raise section.error(index, "the job ended badly", expected="a run that ended well")
        if line.startswith("{"):
            try:
                found = parse_json(line)
            except ValueError:
                raise _damaged(section, index) from None
            if isinstance(found, dict):
                yield index, found


def _damaged(section: TextSection, index: int) -> ParseError:
    return section.error(index, "damaged record of pairs", expected="one of the kernel's lines")


def _tails(values: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the columns of slow repetitions, one way; those that every size has enough of."""
    return {
        column: [value[name] / 2 for value in values]
        for column, (name, least) in _TAILS.items()
        if all(
            isinstance(value.get(name), float | int) and int(value["repetitions"]) >= least
            for value in values
        )
    }


def _size(line: dict[str, Any]) -> float:
    """Return a message size in bytes; an infinite one is not whole either."""
    size = float(line["size"])
    if not size.is_integer():
        raise ValueError(f"{size} is no number of bytes")
    return size


def _value(line: dict[str, Any]) -> float:
    """Return the mean latency in us, or the bandwidth in MB/s: bytes over us."""
    repetitions, total_us = int(line["repetitions"]), float(line["total_us"])
    if line["mode"] == "pingpong":
        return total_us / repetitions / 2
    ways = {"uni": 1, "bi": 2}[line["mode"]]
    return ways * int(line["size"]) * int(line["window"]) * repetitions / total_us
