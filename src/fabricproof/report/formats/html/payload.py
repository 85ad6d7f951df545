"""Every number of a report, once, as compact columns that the page's script draws from.

Words are dictionary encoded, numbers have five significant digits, a reason is a sentence with
gaps and the numbers that fill them.  All of it is compressed: a report of a hundred nodes and
thirty nights stays small enough to be mailed.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fabricproof.core.records import QuantityRecord
from fabricproof.core.units import by_key
from fabricproof.history.store import FIELDS, Key, Run
from fabricproof.job.run import LegResult
from fabricproof.report.formats.html.markup import folded
from fabricproof.report.model import RawNumber, ReportData

#: below this many bytes the data stays readable JSON: nothing is won by packing it
PLAIN_BYTES = 32 * 1024

#: of every number; the noise of a measurement is in the third
DIGITS = 5

#: stands in the matrix for "the one raw number that counts in that run": no number is zero there
AS_RAW = 0

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Words:
    """A dictionary: each word once, by the order in which it was first seen."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def __call__(self, word: str) -> int:
        """Return the number of ``word``."""
        return self.index.setdefault(word, len(self.index))

    @property
    def all(self) -> list[str]:
        """Every word, by its number."""
        return list(self.index)


class Sentences:
    """Reasons that differ in their numbers only are told apart by these alone."""

    def __init__(self) -> None:
        self.forms = Words()
        self.gaps: list[list[str]] = []

    def __call__(self, sentence: str) -> int:
        """Return the number of the sentence's form; its numbers go to the form's own list."""
        numbers = _NUMBER.findall(sentence)
        form = self.forms(_NUMBER.sub("\x00", sentence.replace("\x00", "\ufffd")))
        if form == len(self.gaps):
            self.gaps.append([])
        self.gaps[form] += numbers
        return form


def rounded(value: float | None) -> float | int | None:
    """Return a number with :data:`DIGITS` digits; None for none, and for what is no number."""
    if value is None or not -float("inf") < value < float("inf"):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) else short


def all_keys(data: ReportData) -> tuple[Key, ...]:
    """Return the keys of everything in the report, those of the matrix first, each once."""
    found = dict.fromkeys(data.matrix.keys)
    found.update(dict.fromkeys(data.raw))
    found.update(dict.fromkeys(data.bounds))
    if data.comparison is not None:
        found.update(dict.fromkeys(each.key for each in data.comparison.quantities))
    if data.trend is not None:
        found.update(dict.fromkeys(step.key for event in data.trend.events for step in event.steps))
        found.update(dict.fromkeys(each.key for each in data.trend.drifts))
    return tuple(found)


def collect(data: ReportData, keys: Sequence[Key]) -> dict[str, Any]:
    """Return the report's numbers as plain columns; ``keys`` as :func:`all_keys` returns them."""
    index = {key: row for row, key in enumerate(keys)}
    raw = _raw(data, keys)
    columns: dict[str, Any] = {}
    for name in FIELDS:
        values = [getattr(key, name) for key in keys]
        if name in {"message_size", "better"}:
            columns[name] = values
        elif name == "named":
            columns[name] = [int(value) for value in values]
        else:
            words = Words()
            columns[name] = {"of": [words(value) for value in values], "words": words.all}
    return {
        "site": data.site,
        "runs": [[run.run_id, run.night] for run in data.matrix.runs],
        "now": next(
            (index for index, run in enumerate(data.matrix.runs) if run.run_id == data.run.run_id),
            None,
        ),
        "marks": _marks(data.matrix.runs),
        "keys": columns,
        "values": _values(data),
        "verdicts": _verdicts(data),
        "raw": raw,
        "bounds": _bounds(data, keys),
        "bands": _bands(data, keys),
        "comparison": _comparison(data, index),
        "trend": _trend(data, index),
    }


def packed(columns: Mapping[str, Any]) -> tuple[str, str]:
    """Return the data as text for a page, and its coding: ``plain`` or ``gzip`` (in base64).

    No ``<`` is left in the plain text, so that nothing in it can end the element around it.
    """
    text = json.dumps(columns, separators=(",", ":"), allow_nan=False)
    if len(text) <= PLAIN_BYTES:
        return text.replace("<", "\\u003c"), "plain"
    squeezed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    return base64.b64encode(squeezed).decode(), "gzip"


def _marks(runs: Sequence[Run]) -> list[list[Any]]:
    """Return (column, sentence) of each run before which a node or a build was another."""
    marks: list[list[Any]] = []
    machines: dict[str, str] = {}
    builds: dict[str, str] = {}
    for column, run in enumerate(runs):
        nodes = [
            node
            for node, digest in run.inventory.items()
            if digest and machines.get(node, digest) != digest
        ]
        stacks = [name for name, build in run.builds.items() if builds.get(name, build) != build]
        said = [f"inventory of {folded(nodes)} changed"] if nodes else []
        said += [f"{name} is another build" for name in sorted(stacks)]
        if said:
            marks.append([column, "; ".join(said)])
        machines |= {node: digest for node, digest in run.inventory.items() if digest}
        builds |= run.builds
    return marks


def _values(data: ReportData) -> list[list[float | int | None]]:
    return [
        _with_reference(key, row, data)
        for key, row in zip(data.matrix.keys, _rows(data), strict=True)
    ]


def _rows(data: ReportData) -> Iterable[list[float]]:
    rows: list[list[float]] = data.matrix.values.tolist()
    return rows


def _with_reference(key: Key, row: list[float], data: ReportData) -> list[float | int | None]:
    counting = by_key(
        (each.run_id, rounded(each.value)) for each in data.raw.get(key, ()) if each.counts
    )
    return [
        AS_RAW if value is not None and counting.get(run.run_id) == [value] else value
        for run, value in zip(data.matrix.runs, map(rounded, row), strict=True)
    ]


def _verdicts(data: ReportData) -> dict[str, Any]:
    words = Words()
    words("")
    return {
        "of": [[words(word) for word in row] for row in data.matrix.verdicts],
        "words": words.all,
    }


def _raw(data: ReportData, keys: Sequence[Key]) -> dict[str, Any]:
    """Return the raw numbers, key after key, as columns.

    A line is told as its distance from the line before it of the same file and run.
    """
    runs, verdicts, files, reasons = Words(), Words(), Words(), Sentences()
    columns: dict[str, list[Any]] = {name: [] for name in ("run", "attempt", "value", "word")}
    columns |= {name: [] for name in ("form", "file", "line")}
    last: dict[tuple[int, int], int] = {}
    for each in (number for key in keys for number in data.raw.get(key, ())):
        run, file = runs(each.run_id), files(each.file)
        columns["run"].append(run)
        columns["file"].append(file)
        columns["attempt"].append(each.attempt if each.counts else -each.attempt - 1)
        columns["value"].append(rounded(each.value))
        columns["word"].append(verdicts(each.verdict))
        columns["form"].append(reasons(each.reason))
        columns["line"].append(each.line - last.get((run, file), 0))
        last[run, file] = each.line
    return {
        "num": [len(data.raw.get(key, ())) for key in keys],
        **columns,
        "runs": runs.all,
        "words": verdicts.all,
        "files": files.all,
        "forms": reasons.forms.all,
        "gaps": reasons.gaps,
    }


def red_raw(data: ReportData) -> list[tuple[Key, RawNumber]]:
    """Return the raw numbers of this run's quantities that did not pass, all attempts."""
    found = []
    for key, numbers in data.raw.items():
        mine = [each for each in numbers if each.run_id == data.run.run_id]
        if any(each.counts and each.verdict not in {"PASS", "SKIPPED"} for each in mine):
            found += [(key, each) for each in mine]
    return found


def _bounds(data: ReportData, keys: Sequence[Key]) -> dict[str, Any]:
    names, origins = Words(), Words()
    bounds = [data.bounds.get(key) for key in keys]
    columns: dict[str, Any] = {
        name: [None if each is None else rounded(getattr(each, name)) for each in bounds]
        for name in ("ceiling", "reference", "lower", "upper")
    }
    columns["ceiling_name"] = [names("" if each is None else each.ceiling_name) for each in bounds]
    columns["origin"] = [origins("" if each is None else each.origin) for each in bounds]
    return {**columns, "ceiling_names": names.all, "origins": origins.all}


def _bands(data: ReportData, keys: Sequence[Key]) -> dict[str, Any]:
    names = Words()
    rows = [(row, data.bands[key]) for row, key in enumerate(keys) if key in data.bands]
    return {
        "key": [row for row, _ in rows],
        "low": [rounded(band.low) for _, band in rows],
        "median": [rounded(band.median) for _, band in rows],
        "high": [rounded(band.high) for _, band in rows],
        "baseline": [names(band.baseline) for _, band in rows],
        "baselines": names.all,
    }


#: what the page needs of each shift, in the order of its columns
_SHIFT = ("ratio", "low", "high", "level", "p", "detectable", "more_runs", "num_first",
          "num_second", "median_first", "median_second")  # fmt: skip


def _comparison(data: ReportData, index: Mapping[Key, int]) -> dict[str, Any] | None:
    made = data.comparison
    if made is None:
        return None
    words, notes = Words(), Words()
    columns: dict[str, Any] = {
        name: [rounded(getattr(each.shift, name)) for each in made.quantities] for name in _SHIFT
    }
    return {
        "first": made.first.words,
        "second": made.second.words,
        "first_runs": [run.run_id for run in made.first.runs],
        "second_runs": [run.run_id for run in made.second.runs],
        "key": [index[each.key] for each in made.quantities],
        "word": [words(each.shift.change.value) for each in made.quantities],
        "words": words.all,
        "note": [notes(each.note) for each in made.quantities],
        "notes": notes.all,
        **columns,
    }


def _trend(data: ReportData, index: Mapping[Key, int]) -> dict[str, Any] | None:
    made = data.trend
    if made is None:
        return None
    return {
        "events": [
            {
                "run": event.run.run_id,
                "sentence": event.sentence,
                "steps": [
                    [index[each.key], each.run.run_id, rounded(each.step.ratio), int(each.worse)]
                    for each in event.steps
                ],
            }
            for event in made.events
        ],
        "drifts": [
            [index[each.key], rounded(each.drift.total), int(each.worse)] for each in made.drifts
        ],
    }


Place = tuple[str, ...]


def places(data: ReportData, keys: Sequence[Key]) -> dict[Place, int]:
    """Return the row of ``keys`` for each place that the reported run measured.

    A place that fits two quantities of this run is left out: better no link than a wrong one.
    """
    found: dict[Place, int] = {}
    twice: set[Place] = set()
    for row, key in enumerate(keys):
        for each in data.raw.get(key, ()):
            if each.run_id == data.run.run_id and each.counts:
                facts = (key.partition, key.fabric, key.stack, key.suite, key.program, key.check)
                told = (key.leg, key.nodes, key.quantity, each.verdict, str(each.value))
                place = (*facts, *told)
                if found.setdefault(place, row) != row:
                    twice.add(place)
    return {place: row for place, row in found.items() if place not in twice}


def place_of(leg: LegResult, quantity: QuantityRecord) -> Place:
    """Return the place of one number of a leg, in a report as people read it."""
    net_path = leg.path_name
    facts = (leg.partition, leg.fabric, leg.stack, leg.suite, leg.program, leg.check, net_path)
    nodes = quantity.nodes or leg.nodes
    told = (quantity.name, quantity.verdict.value, str(quantity.value))
    return (*facts, ",".join(sorted(nodes)), *told)
