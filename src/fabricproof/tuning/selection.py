"""MPICH's selection file: its library's own table with our rules in front.

The library reads one table for all collectives, and a collective without an entry ends the program
(maint/gen_coll.py of v5.0.1: ``MPIR_Assert(cnt)``), so that nothing but its own table can be begun
with.  It holds that table as text (maint/tuning/coll/json_gen.sh), from where it is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.tuning.knobs import Knobs, SizeUnit
from fabricproof.tuning.rules import Rule

#: how the table begins in the library, and what only this one of its tables has
_BEGINS, _HAS = b'{"collective=', '"collective=ibcast"'

#: The file is mapped and read as a C string (csel.c, MPIR_Csel_create_from_file): one that fills
#: its last page to the brim has no zero behind it.
PAGE_BYTES = 4096


def table_in(library: bytes) -> str | None:
    """Return the selection table that an MPICH library holds, None where there is none."""
    start = library.find(_BEGINS)
    while start >= 0:
        end = library.find(b"\0", start)
        text = library[start:end].decode("utf-8", errors="replace")
        if _HAS in text and _is_table(text):
            return text
        start = library.find(_BEGINS, start + 1)
    return None


def _is_table(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def selection_file(
    library_table: str, mendings: Iterable[tuple[Knobs, int, Sequence[Rule]]]
) -> str:
    """Return the library's table with rules for some collectives on some numbers of ranks.

    Raises:
        ParseError: the table is not of the form that is known.
        ConfigError: an algorithm cannot stand in a file.
    """
    try:
        table: dict[str, Any] = json.loads(library_table)
        for knobs, num_ranks, rules in sorted(mendings, key=lambda each: -each[1]):
            entry = table[f"collective={knobs.collective}"]
            entry["comm_type=intra"] = _with_rules(
                entry["comm_type=intra"], knobs, num_ranks, rules
            )
    except (ValueError, KeyError, TypeError) as error:
        raise ParseError(
            f"a selection table of unknown form: {error!r}", source="the MPICH library"
        ) from None
    text = json.dumps(table, indent=1) + "\n"
    return text + " " * (len(text.encode()) % PAGE_BYTES == 0)


def _with_rules(
    own: Mapping[str, Any], knobs: Knobs, num_ranks: int, rules: Sequence[Rule]
) -> dict[str, Any]:
    """Return the branches for one number of ranks, the library's own for all others."""
    return {
        f"comm_size<={num_ranks - 1}": own,
        f"comm_size<={num_ranks}": _sizes(own, knobs, num_ranks, rules),
        "comm_size=any": own,
    }


def _sizes(
    own: Mapping[str, Any], knobs: Knobs, num_ranks: int, rules: Sequence[Rule]
) -> dict[str, Any]:
    total = knobs.unit is SizeUnit.BLOCK_OF_ALL_RANKS
    key, unit = ("total_msg_size", num_ranks) if total else ("avg_msg_size", 1)
    branches: dict[str, Any] = {}
    for rule in rules:
        if rule.algorithm is None:
            continue
        if rule.algorithm.file is None or rule.first_bytes is None or rule.last_bytes is None:
            raise ConfigError(
                "an algorithm that cannot stand in a selection file", got=rule.algorithm.label
            )
        if rule.first_bytes > 0:
            branches[f"{key}<{rule.first_bytes * unit}"] = own
        branches[f"{key}<={rule.last_bytes * unit}"] = {f"algorithm={rule.algorithm.file}": {}}
    return {**branches, f"{key}=any": own}
