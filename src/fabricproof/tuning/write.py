"""The text that makes an MPI take other algorithms: rules in, variables and files out; pure.

What each library reads, and where that is written down, stands in ``data/*.toml`` and beside the
functions here; tests start the real libraries with these files and ask them what they did.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabricproof.core.errors import ConfigError, ParseError, words_of
from fabricproof.core.units import by_key
from fabricproof.tuning.knobs import Knobs, SizeUnit
from fabricproof.tuning.sweeps import Rule

#: stands in variables for the folder of the files
FOLDER = "{folder}"

OPENMPI_RULES, OPENMPI_HAN, MPICH_SELECTION = "coll_tuned.conf", "coll_han.conf", "selection.json"


@dataclass(frozen=True, kw_only=True)
class Mending:
    """The rules of one collective on one number of ranks.

    ``for_all`` is the id of an algorithm that may serve for every size, None where none may.
    """

    knobs: Knobs
    num_ranks: int
    rules: tuple[Rule, ...]
    for_all: str | None = None


@dataclass(frozen=True, kw_only=True)
class TuningWritten:
    """What a stack is to read.

    Attributes:
        environment: variables, with :data:`FOLDER` for the folder of the files.
        notes: what a reader should know of it.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def placed(self, folder: str) -> dict[str, str]:
        """Return the variables for files in ``folder``, an absolute path."""
        return {name: text.replace(FOLDER, folder) for name, text in self.environment.items()}


def write(
    mendings: Sequence[Mending], header: Sequence[str], library_table: str | None = None
) -> TuningWritten:
    """Return what makes one MPI follow the rules of all ``mendings``.

    Args:
        mendings: of one family and version; at least one with rules.
        header: lines for the head of each file that has comments.
        library_table: MPICH's own selection table, as its library holds it; None where unknown.

    Raises:
        ConfigError: no rules, several families, or rules that this MPI cannot be told.
    """
    mendings = [each for each in mendings if each.rules]
    families = {each.knobs.family for each in mendings}
    if len(families) != 1:
        raise ConfigError(
            "a tuning needs rules for one MPI", expected="one family", got=str(sorted(families))
        )
    family = families.pop()
    if family == "openmpi":
        return _openmpi(mendings, header)
    if family == "intelmpi":
        return _intelmpi(mendings)
    if family == "mpich":
        return _mpich(mendings, library_table)
    raise ConfigError(f"nobody has recorded how {family} is told rules", got=family)


# --- Open MPI -------------------------------------------------------------------------------------


def _openmpi(mendings: Sequence[Mending], header: Sequence[str]) -> TuningWritten:
    """Return Open MPI's file of dynamic rules, and from 5.0 on han's that hands over to it.

    Format: ompi/mca/coll/tuned/coll_tuned_dynamic_file.c and coll_tuned_dynamic_rules.c (the
    nearest rule at or below a size counts, and at or below a number of ranks; without one the first
    does; algorithm 0 is the library's own choice), the same in 4.0 to 5.0 (a version line is read
    since 5.0 only and not needed).  A forced algorithm would stand before the file in 5.0 and is
    therefore taken back.
    """
    lines = [f"# {line}" for line in header]
    by_collective = _by_collective(mendings)
    lines.append(f"{len(by_collective)} # collectives")
    environment = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": f"{FOLDER}/{OPENMPI_RULES}",
    }
    for collective, group in by_collective.items():
        knobs = group[0].knobs
        environment[f"OMPI_MCA_coll_tuned_{collective}_algorithm"] = "0"
        lines.append(f"{knobs.rule_id} # {collective}")
        lines += _rank_steps(group, _tuned_lines, "0 0 0 0 # own choice")
    files = {OPENMPI_RULES: "\n".join(lines) + "\n"}
    han = {name: group for name, group in by_collective.items() if group[0].knobs.has_han}
    if han:
        files[OPENMPI_HAN] = _han_file(han, header)
        environment["OMPI_MCA_coll_han_use_dynamic_file_rules"] = "1"
        environment["OMPI_MCA_coll_han_dynamic_rules_filename"] = f"{FOLDER}/{OPENMPI_HAN}"
    blind = [(name, group[0].knobs.blind) for name, group in by_collective.items()]
    notes = tuple(f"{name}: {words}" for name, words in blind if words)
    return TuningWritten(environment=environment, files=files, notes=notes)


def _by_collective(mendings: Sequence[Mending]) -> dict[str, list[Mending]]:
    in_order = sorted(mendings, key=lambda each: (each.knobs.collective, each.num_ranks))
    return by_key((each.knobs.collective, each) for each in in_order)


def _rank_steps(
    group: Sequence[Mending], lines_of: Callable[[Mending], list[str]], own: str, first: int = 0
) -> list[str]:
    """Return the rules of each number of ranks, with the own choice for every other number."""
    steps: dict[int, list[str]] = {first: [own]}
    for each in group:
        steps.setdefault(each.num_ranks + 1, [own])
        steps[each.num_ranks] = lines_of(each)
    lines = [f"{len(steps)} # numbers of ranks"]
    for ranks in sorted(steps):
        lines += [f"{ranks} # ranks and more", str(len(steps[ranks])), *steps[ranks]]
    return lines


def _tuned_lines(mending: Mending) -> list[str]:
    """Return lines of size, algorithm, fan-out, segment size; 0 leaves the last two to it."""
    unit = mending.num_ranks if mending.knobs.unit is SizeUnit.BLOCK_OF_ALL_RANKS else 1
    return _size_steps(
        mending.rules,
        lambda size, rule: (
            f"{size * unit} {rule.algorithm.id} 0 0 # {rule.algorithm.name}"
            if rule is not None and rule.algorithm is not None
            else f"{_after(size, unit)} 0 0 0 # own choice"
        ),
    )


def _after(size: int, unit: int) -> int:
    """Return where the own choice begins again, in the rules' unit, ``size`` being one too far."""
    return (size - 1) * unit + 1 if size else 0


def _size_steps(rules: Sequence[Rule], line_of: Callable[[int, Rule | None], str]) -> list[str]:
    """Return a line for each step of a table whose every rule holds up to the next.

    ``line_of(size, rule)`` writes one; without a rule the size is the first of an own choice.
    """
    lines: list[str] = []
    expected = 0
    for rule in rules:
        first = rule.first_bytes or 0
        if first > expected or (not lines and first):
            lines.append(line_of(expected, None))
        lines.append(line_of(first, rule))
        expected = (rule.last_bytes or 0) + 1
    if rules[-1].last_bytes is not None:
        lines.append(line_of(expected, None))
    return lines


def _han_file(by_collective: Mapping[str, Sequence[Mending]], header: Sequence[str]) -> str:
    """Return han's rules for the whole communicator: tuned where there is a rule, han elsewhere.

    Format: ompi/mca/coll/han/coll_han_dynamic_file.[hc] of 5.0: the last rule at or below counts,
    numbers of ranks begin at 1, sizes at 0.  Sizes are a rank's block, also for allgather.
    """
    lines = [f"# {line}" for line in header]
    lines.append(f"{len(by_collective)} # collectives")
    for collective, group in by_collective.items():
        lines += [collective, "1 # level", "global_communicator"]
        lines += _rank_steps(group, _han_lines, "0 han", first=1)
    return "\n".join(lines) + "\n"


def _han_lines(mending: Mending) -> list[str]:
    return _size_steps(
        mending.rules,
        lambda size, rule: (
            f"{size} tuned" if rule is not None and rule.algorithm is not None else f"{size} han"
        ),
    )


# --- Intel MPI ------------------------------------------------------------------------------------


#: the largest size that a condition of Intel MPI names
LARGEST_BYTES = 2**31 - 1

_FOR_EVERY_NUMBER = (
    "{} holds for every number of ranks, and the ends of its table for sizes beyond the measured"
)


def _intelmpi(mendings: Sequence[Mending]) -> TuningWritten:
    """Return Intel MPI's variables: ``<preset>:<first>-<last>;...``, from 0 up without a gap.

    Syntax: Intel MPI Library Developer Reference, "I_MPI_ADJUST Family Environment Variables"; what
    the library makes of it: ``data/intelmpi.toml``.
    """
    environment, notes = {}, []
    for each in mendings:
        variable = each.knobs.id_variable
        if variable in environment or any(rule.algorithm is None for rule in each.rules):
            raise ConfigError(
                f"{variable} is one table for all numbers of ranks, of presets alone",
                got="rules for several, or sizes left to the library",
                next_step="tune for the number of ranks that matters most",
            )
        environment[variable] = ";".join(_conditions(each.rules))
        notes.append(_FOR_EVERY_NUMBER.format(variable))
    return TuningWritten(environment=environment, notes=tuple(notes))


def _conditions(rules: Sequence[Rule]) -> Iterator[str]:
    firsts = [rule.first_bytes or 0 for rule in rules]
    for index, rule in enumerate(rules):
        assert rule.algorithm is not None, "refused before"
        first = firsts[index] if index else 0
        last = firsts[index + 1] - 1 if index + 1 < len(rules) else LARGEST_BYTES
        # A barrier has no messages, and one preset for all needs no conditions.
        yield f"{rule.algorithm.id}:{first}-{last}" if len(rules) > 1 else rule.algorithm.id


# --- MPICH ----------------------------------------------------------------------------------------


_OF_THIS_LIBRARY = (
    "the file is the library's own table with these rules in front: after an update of MPICH, "
    "write it anew"
)


def _mpich(mendings: Sequence[Mending], library_table: str | None) -> TuningWritten:
    """Return MPICH's selection file where every algorithm can stand in one, else its variables.

    A variable forces one algorithm for all sizes and all numbers of ranks, so that only one that
    loses nowhere is worth it.
    """
    # A forced algorithm stands before the file, and the device's own choice before both.
    free = {
        name: text
        for each in mendings
        for name, text in (
            (each.knobs.id_variable, "auto"),
            (f"MPIR_CVAR_{each.knobs.collective.upper()}_DEVICE_COLLECTIVE", "0"),
        )
    }
    in_file = all(
        rule.algorithm is None or rule.algorithm.file for each in mendings for rule in each.rules
    )
    if library_table is not None and in_file:
        return TuningWritten(
            environment={
                "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": f"{FOLDER}/{MPICH_SELECTION}",
                **free,
            },
            files={MPICH_SELECTION: selection_file(library_table, mendings)},
            notes=(_OF_THIS_LIBRARY,),
        )
    environment, notes = dict(free), []
    for each in mendings:
        if each.for_all is None:
            raise ConfigError(
                f"MPICH can be told one algorithm of {each.knobs.collective} for all sizes, and "
                "none wins somewhere without losing elsewhere",
                next_step="nothing to write; the sweep's table says which size wants which",
            )
        environment[each.knobs.id_variable] = each.for_all
        notes.append(
            f"{each.knobs.id_variable} holds for all sizes and numbers of ranks: measured sizes "
            "are no slower with it, others nobody knows"
        )
    return TuningWritten(environment=environment, notes=tuple(notes))


#: MPICH's library reads one table for all collectives, and a collective without an entry ends the
#: program (maint/gen_coll.py of v5.0.1: ``MPIR_Assert(cnt)``), so that nothing but its own table,
#: with our rules in front, can be begun with.  It holds that table as text
#: (maint/tuning/coll/json_gen.sh): how it begins in the library, and what only this one has
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


def selection_file(library_table: str, mendings: Iterable[Mending]) -> str:
    """Return the library's table with rules for some collectives on some numbers of ranks.

    Raises:
        ParseError: the table is not of the form that is known.
        ConfigError: an algorithm cannot stand in a file.
    """
    try:
        table: dict[str, Any] = json.loads(library_table)
        for each in sorted(mendings, key=lambda each: -each.num_ranks):
            entry = table[f"collective={each.knobs.collective}"]
            entry["comm_type=intra"] = _with_rules(entry["comm_type=intra"], each)
    except (ValueError, KeyError, TypeError) as error:
        raise ParseError(
            f"a selection table of unknown form: {words_of(error)}", source="the MPICH library"
        ) from None
    text = json.dumps(table, indent=1) + "\n"
    return text + " " * (len(text.encode()) % PAGE_BYTES == 0)


def _with_rules(own: Mapping[str, Any], mending: Mending) -> dict[str, Any]:
    """Return the branches for one number of ranks, the library's own for all others."""
    return {
        f"comm_size<={mending.num_ranks - 1}": own,
        f"comm_size<={mending.num_ranks}": _sizes(own, mending),
        "comm_size=any": own,
    }


def _sizes(own: Mapping[str, Any], mending: Mending) -> dict[str, Any]:
    total = mending.knobs.unit is SizeUnit.BLOCK_OF_ALL_RANKS
    key, unit = ("total_msg_size", mending.num_ranks) if total else ("avg_msg_size", 1)
    branches: dict[str, Any] = {}
    for rule in mending.rules:
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
