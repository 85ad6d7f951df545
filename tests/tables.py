"""Tables as the parsers return them, made by hand; and the fabrics they are judged against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabricproof.core.measure import Table
from fabricproof.physics import Fabric, find_link, find_slot
from fabricproof.verdict.value import Rules

MIB = 1024 * 1024

FDR = Fabric(link=find_link("FDR 4x"))
QDR = Fabric(link=find_link("QDR 4x"))
GBE = Fabric(link=find_link("1GbE"), mtu=1500)
CX2 = Fabric(link=find_link("QDR 4x"), slot=find_slot("2.0x8"))


def table(
    program: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[float]],
    *,
    suite: str = "osu",
    **attributes: str | float,
) -> Table:
    """Return a table of ``program``; keyword arguments are what its output says beside."""
    return Table(
        suite=suite,
        program=program,
        version=None,
        columns=tuple(columns),
        rows=tuple(tuple(row) for row in rows),
        source="made.out",
        line=2,
        row_lines=tuple(range(3, 3 + len(rows))),
        attributes=attributes,
    )


def bandwidths(rows: Mapping[int, float], program: str = "osu_bw", **attributes: int) -> Table:
    """Return a table of message size and MB/s."""
    return table(program, ("message_size", "bandwidth_mb_s"), list(rows.items()), **attributes)


def latencies(rows: Mapping[int, float], program: str = "osu_latency", **attributes: int) -> Table:
    """Return a table of message size and us."""
    return table(program, ("message_size", "latency_us"), list(rows.items()), **attributes)


def hockney(plateau: float, start_us: float, *, first: int = 1, last: int = 4 * MIB) -> Table:
    """Return the bandwidth curve of a fabric that follows t = t0 + n / r, two decimals."""
    sizes = [first]
    while sizes[-1] < last:
        sizes.append(2 * sizes[-1])
    return bandwidths({size: round(size / (start_us + size / plateau), 2) for size in sizes})


def against(fabric: Fabric | None, **facts: object) -> Rules:
    """Return rules with ``fabric``."""
    return Rules(fabric=fabric, **facts)  # type: ignore[arg-type]
