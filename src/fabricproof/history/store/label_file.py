"""Names that people give to runs, so that a comparison can say ``before-swap``.

``perflogs/<site>/labels.jsonl`` is only appended to: one line for each time that somebody gave a
run a name or took it away; the last line of a run and a name counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fabricproof.core.errors import InputMissingError, ParseError
from fabricproof.core.records import append_records, may_exist, read_records
from fabricproof.core.units import stamp

LABELS_FILE = "labels.jsonl"

#: of the runs that look again at what was red or left open in a night, in `run` or in `pairs run`:
#: chosen for that, they are no sample of anything, and are on a side or in a trend only where
#: somebody names them
LOOK_LABEL = "night-look"

#: of the runs of an admission: chosen for a repair, they are no sample either
ADMISSION_LABEL = "admit"

#: name of the runs of ``pairs run``: its sizes and seconds are its own
CAMPAIGN_LABEL = "pairs"

#: begins with a letter, so that no label reads as a date, a count or the identity of a run
LABEL = re.compile(r"[A-Za-z][\w.+-]{0,63}")

#: words that choose runs in another way; see compare.sides
_TAKEN = frozenset({"latest", "last", "label", "baseline", "stack"})


def no_samples(labels: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the runs that are no sample of the site: second looks and admissions."""
    return {
        run
        for name in (LOOK_LABEL, ADMISSION_LABEL, CAMPAIGN_LABEL)
        for run in labels.get(name, ())
    }


def labels(
    perflogs: Path, site: str, on_torn: Callable[[str], object] | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Return label -> the runs that have it, in the order in which they were given it.

    Raises:
        ParseError: a damaged line that no crash explains.
        InputMissingError: the file cannot be read.
    """
    path = perflogs / site / LABELS_FILE
    if not may_exist(path):
        return {}
    found: dict[str, dict[str, None]] = {}
    for record in read_records(path, on_torn=on_torn):
        try:
            name, run_id, given = record["label"], record["run_id"], record["given"]
        except KeyError as error:
            raise ParseError(
                "damaged label", source=str(path), expected=f"a line with {error}", got=str(record)
            ) from None
        runs = found.setdefault(str(name), {})
        runs.pop(str(run_id), None)
        if given:
            runs[str(run_id)] = None
    return {name: tuple(runs) for name, runs in found.items() if runs}


def labels_of(known: Mapping[str, Iterable[str]], run_id: str) -> tuple[str, ...]:
    """Return the labels of one run."""
    return tuple(name for name, runs in known.items() if run_id in runs)


def require_label(name: str) -> str:
    """Return ``name`` where it can be a label.

    Raises:
        ParseError: it could be read as something else.
    """
    if name.lower() in _TAKEN or ".." in name:
        raise ParseError(
            "no label",
            expected=f"none of {', '.join(sorted(_TAKEN))}, and no two dots: these choose runs",
            got=repr(name),
            next_step="choose a name such as before-swap",
        )
    if not LABEL.fullmatch(name):
        raise ParseError(
            "no label",
            expected="a letter, then up to 63 letters, digits, dots, pluses, hyphens, underscores",
            got=repr(name),
            next_step="choose a name such as before-swap",
        )
    return name


def set_label(
    perflogs: Path, site: str, run_ids: Iterable[str], name: str, *, given: bool = True
) -> tuple[str, ...]:
    """Give runs a label, or take it away; return the runs for which that changed something.

    The caller knows that the runs exist.

    Raises:
        ParseError: the name can be no label.
        InputMissingError: a label is taken away from a run that does not have it.
        OutputError: it could not be written.
    """
    if given:
        require_label(name)
    has = set(labels(perflogs, site).get(name, ()))
    asked = tuple(dict.fromkeys(run_ids))
    lacking = [each for each in asked if each not in has]
    if lacking and not given:
        raise InputMissingError(
            f"run {lacking[0]} has no label {name}",
            source=str(perflogs / site / LABELS_FILE),
            expected=f"one of: {', '.join(sorted(has)) or 'no run has it'}",
        )
    changed = tuple(each for each in asked if (each in has) is not given)
    time = stamp()
    append_records(
        perflogs / site / LABELS_FILE,
        [{"run_id": each, "label": name, "given": given, "time": time} for each in changed],
        next_step="make room, or the file writable; give the label again",
    )
    return changed
