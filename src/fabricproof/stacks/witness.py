"""Ask every rank of a launch where it is and which MPI answers it.

Run by the launcher in place of a benchmark, with the stack's Python, it prints one line for each
rank; :func:`read_witnesses` and :func:`world_fault` judge them.  A launcher whose PMI does not fit
starts every rank as a world of one, and some MPIs say nothing about it.
"""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import asdict, dataclass

_MARK = "fabricproof-witness "
_LINE = re.compile(re.escape(_MARK) + r"(\{.*?\})")


@dataclass(frozen=True, kw_only=True)
class Witness:
    """What one rank says: its world, its node and CPUs, the library's version in one line."""

    rank: int
    size: int
    node: str
    cpus: tuple[int, ...]
    library: str


def read_witnesses(text: str) -> tuple[Witness, ...]:
    """Return the witnesses in ``text``, by rank; other output between them does not matter."""
    records = [json.loads(match[1]) for match in _LINE.finditer(text)]
    found = (Witness(**{**each, "cpus": tuple(each["cpus"])}) for each in records)
    return tuple(sorted(found, key=lambda witness: witness.rank))


def world_fault(witnesses: tuple[Witness, ...], *, num_ranks: int, num_nodes: int) -> str | None:
    """Return why these ranks are not the launch that was asked for; None where they are."""
    if len(witnesses) != num_ranks:
        return f"{num_ranks} ranks were started, {len(witnesses)} answered"
    if num_ranks > 1 and all(witness.size == 1 for witness in witnesses):
        return (
            "every rank started as its own world of one: the launcher's PMI does not fit this MPI"
        )
    if [witness.rank for witness in witnesses] != list(range(num_ranks)) or any(
        witness.size != num_ranks for witness in witnesses
    ):
        return f"the ranks do not form one world of {num_ranks}"
    nodes = {witness.node for witness in witnesses}
    if len(nodes) != num_nodes:
        return f"{num_nodes} nodes were asked for, the ranks are on {', '.join(sorted(nodes))}"
    return None


def main() -> None:
    """Print this rank's line."""
    from mpi4py import MPI  # type: ignore[import-not-found] # noqa: PLC0415 - the stack has it

    world = MPI.COMM_WORLD
    witness = Witness(
        rank=world.Get_rank(),
        size=world.Get_size(),
        node=platform.node(),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        library=MPI.Get_library_version().strip().splitlines()[0],
    )
    print(_MARK + json.dumps(asdict(witness)), flush=True)  # noqa: T201 - a script's output


if __name__ == "__main__":
    main()
