"""``site-configs/<site>/baselines/NAME.json``: written for people who review it in a diff.

One quantity a line, sorted, so that a change of one number is a change of one line.  What nodes
have in common stands once.  The file is written beside its place and moved there in one step: a
full disk leaves what was there before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fabricproof.core.errors import (
    ConfigError,
    InputMissingError,
    OutputError,
    ParseError,
    words_of,
)
from fabricproof.core.plain import typed_at
from fabricproof.core.records import (
    text_of,
)
from fabricproof.core.whole_file import whole_file
from fabricproof.verdict.baseline.model import (
    PLACE,
    Baseline,
    BaselineLeg,
    BaselineNode,
    BaselineRow,
    Facts,
    Outlier,
)
from fabricproof.verdict.baseline.sound import read_limit, read_node, read_place

FORMAT = 1

#: below the site's folder
FOLDER = "baselines"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: significant digits of a number that was computed, not measured
_DIGITS = 6


def path_of(site_folder: Path, name: str) -> Path:
    """Return the file of baseline ``name``.

    Raises:
        ConfigError: it is no name of a file.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "not a name for a baseline",
            expected="letters, digits, dot, dash and underscore, a letter or digit first",
            got=repr(name),
        )
    return site_folder / FOLDER / f"{name}.json"


def names_in(site_folder: Path) -> list[str]:
    """Return the names of a site's baselines, sorted."""
    return sorted(path.stem for path in (site_folder / FOLDER).glob("*.json"))


def write_baseline(path: Path, baseline: Baseline, *, replace: bool = False) -> None:
    """Write a baseline, whole or not at all.

    Raises:
        ConfigError: there is one of that name and ``replace`` is not asked for.
        OutputError: it could not be written; what was there before is as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, replace=replace) as file:
            file.write(as_text(baseline).encode())
    except FileExistsError:
        raise ConfigError(
            "there is a baseline of that name",
            source=str(path),
            expected="a name of its own",
            next_step="another NAME, or --replace",
        ) from None
    except OSError as error:
        raise OutputError(
            f"cannot write the baseline: {error.strerror}",
            source=str(path),
            next_step="make room; nothing was changed",
        ) from None


def as_text(baseline: Baseline) -> str:
    """Return the file's text: the same for the same baseline, whatever the order it was made in."""
    return "".join(_lines(baseline))


def _lines(baseline: Baseline) -> Iterator[str]:
    head = {
        "format": FORMAT,
        "name": baseline.name,
        "site": baseline.site,
        "frozen": baseline.frozen,
        "fabricproof": baseline.version,
        "command": baseline.command,
        "false_alarms": baseline.false_alarms,
        "floors": dict(sorted(baseline.floors.items())),
        "settings": list(baseline.settings),
    }
    yield "{\n"
    for name, value in head.items():
        yield f" {_json(name)}: {_json(value)},\n"
    yield from _table("runs", baseline.runs)
    yield from _table("builds", baseline.builds)
    yield from _list("set_aside", sorted(baseline.set_aside))
    if baseline.not_judged:
        yield from _list("not_judged", sorted(baseline.not_judged))
    kinds, nodes = _kinds(baseline.nodes)
    yield from _table("kinds", kinds, deep=True)
    yield from _table("nodes", nodes)
    groups = sorted(baseline.groups, key=lambda each: tuple(asdict(each.place).values()))
    yield ' "groups": ['
    for number, group in enumerate(groups):
        yield ",\n" if number else "\n"
        yield from _group(group)
    yield "\n ]\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _table(name: str, table: Mapping[str, Any], *, deep: bool = False) -> Iterator[str]:
    """Yield a table with one entry a line; one part a line where the entries are tables too."""
    entries = []
    for key in sorted(table):
        value = table[key]
        text = _json(value)
        if deep:
            parts = ",\n".join(f"   {_json(part)}: {_json(value[part])}" for part in sorted(value))
            text = f"{{\n{parts}\n  }}"
        entries.append(f"  {_json(key)}: {text}")
    yield f" {_json(name)}: {{\n" + ",\n".join(entries) + "\n },\n"


def _list(name: str, items: Sequence[str]) -> Iterator[str]:
    inner = ",\n".join(f"  {_json(each)}" for each in items)
    yield f" {_json(name)}: [{chr(10) + inner + chr(10) + ' ' if items else ''}],\n"


def _group(group: BaselineLeg) -> Iterator[str]:
    runs = sorted({run for row in group.rows for run in row.samples})
    place = asdict(group.place)
    yield "  {"
    yield ", ".join(f"{_json(name)}: {_json(place[name])}" for name in PLACE[:7]) + ",\n   "
    yield ", ".join(f"{_json(name)}: {_json(place[name])}" for name in PLACE[7:]) + ",\n"
    yield f'   "runs": {_json(runs)},\n   "rows": [\n'
    rows = sorted(group.rows, key=lambda each: (each.unit, each.message_size or 0, each.quantity))
    yield ",\n".join(f"    {_json(_row(row, runs))}" for row in rows)
    yield "\n   ]}"


def _row(row: BaselineRow, runs: Sequence[str]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "quantity": row.quantity,
        "unit": row.unit,
        "size": row.message_size,
        "better": row.better,
        "named": row.named,
        "median": _short(row.median),
        "spread": _short(row.spread),
        "low": _short(row.low),
        "high": _short(row.high),
        "samples": [row.samples.get(run) for run in runs],
    }
    if row.outliers:
        aside = sorted(row.outliers, key=lambda each: each.run_id)
        record["outliers"] = [[each.run_id, each.value, each.reason] for each in aside]
    return record


def _short(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


def _kinds(nodes: Mapping[str, BaselineNode]) -> tuple[dict[str, Facts], dict[str, Any]]:
    """Return what nodes have in common, once, and of each node the rest.

    A node's ``own`` facts are laid over those of its kind.
    """
    kinds: dict[str, Facts] = {}
    rest: dict[str, Any] = {}
    for name in sorted(nodes):
        node = nodes[name]
        kind = next((each for each in sorted(kinds) if _near(kinds[each], node.facts)), None)
        if kind is None:
            kind = f"like {name}"
            kinds[kind] = node.facts
        own = {
            part: values
            for part, facts in sorted(node.facts.items())
            if (values := {k: v for k, v in facts.items() if kinds[kind][part].get(k) != v})
        }
        told = {fact: text for fact in ("model", "firmware") if (text := node.told(fact))}
        rest[name] = {"kind": kind, **told, "digests": sorted(node.digests)}
        if own:
            rest[name]["own"] = own
    return kinds, rest


def _near(first: Facts, second: Facts) -> bool:
    """Tell whether two nodes have the same facts by name, so that values alone tell them apart."""
    names = ({part: sorted(facts) for part, facts in each.items()} for each in (first, second))
    return next(names) == next(names)


def read_baseline(path: Path) -> Baseline:
    """Read what :func:`write_baseline` wrote.

    Raises:
        InputMissingError: there is no such file; the message names those there are.
        ParseError: it is damaged, of another format, or says what cannot be.
    """
    try:
        text = text_of(path)
    except FileNotFoundError:
        known = ", ".join(names_in(path.parents[1])) or "none is frozen yet"
        raise InputMissingError(
            "no such baseline",
            source=str(path),
            expected=f"one of: {known}",
            got=repr(path.stem),
            next_step="fabricproof baseline freeze NAME RUNS",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputMissingError("cannot read the baseline", source=str(path), got=str(error)) from (
            None
        )
    try:
        return from_text(text)
    except json.JSONDecodeError as error:
        raise ParseError(
            "damaged baseline",
            source=str(path),
            line=error.lineno,
            expected="JSON as baseline freeze writes it",
            got=error.msg,
            next_step="git log on the file, or freeze it again",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(
            "damaged baseline",
            source=str(path),
            expected=f"a file of format {FORMAT} as baseline freeze writes it",
            got=words_of(error),
            next_step="git log on the file, or freeze it again",
        ) from None


def from_text(text: str) -> Baseline:
    """Return the baseline that :func:`as_text` wrote.

    Raises:
        ValueError: it is of another format, or a number in it cannot be.
        KeyError: something is missing in it.
    """
    record = json.loads(text)
    if record["format"] != FORMAT:
        raise ValueError(f"format {record['format']}")
    floors = typed_at(record, "floors", dict)
    if not record["runs"] or not record["groups"]:
        raise ValueError("it was learnt from nothing")
    return Baseline(
        name=typed_at(record, "name", str),
        site=typed_at(record, "site", str),
        frozen=typed_at(record, "frozen", str),
        command=typed_at(record, "command", str),
        version=typed_at(record, "fabricproof", str),
        runs=typed_at(record, "runs", dict[str, str]),
        builds=typed_at(record, "builds", dict[str, str]),
        nodes={
            name: _node(each, record["kinds"])
            for name, each in typed_at(record, "nodes", dict).items()
        },
        groups=tuple(map(_read_group, typed_at(record, "groups", list))),
        settings=typed_at(record, "settings", tuple[str, ...]),
        set_aside=typed_at(record, "set_aside", tuple[str, ...]),
        not_judged=typed_at({"not_judged": [], **record}, "not_judged", tuple[str, ...]),
        false_alarms=typed_at(record, "false_alarms", float),
        floors={unit: typed_at(floors, unit, float) for unit in floors},
    )


def _node(record: Mapping[str, Any], kinds: Mapping[str, Facts]) -> BaselineNode:
    own = record.get("own", {})
    facts = {part: {**each, **own.get(part, {})} for part, each in kinds[record["kind"]].items()}
    return read_node({"digests": record["digests"], "facts": facts})


def _read_group(record: Mapping[str, Any]) -> BaselineLeg:
    runs = typed_at(record, "runs", tuple[str, ...])
    rows = tuple(_read_row(each, runs) for each in typed_at(record, "rows", list))
    return BaselineLeg(place=read_place({name: record[name] for name in PLACE}), rows=rows)


def _read_row(record: Mapping[str, Any], runs: Sequence[str]) -> BaselineRow:
    named, size = record["named"], record["size"]
    if type(named) is not bool or type(size) not in {int, type(None)}:
        raise TypeError(f"named or size of {record['quantity']}")
    samples = dict(zip(runs, typed_at(record, "samples", list), strict=True))
    limit = read_limit({**record, "runs": len(samples)})
    return BaselineRow(
        quantity=limit.quantity,
        unit=limit.unit,
        message_size=size,
        better=limit.better,
        named=named,
        median=limit.median,
        spread=typed_at(record, "spread", float),
        low=limit.low,
        high=limit.high,
        samples={run: typed_at(samples, run, float) for run in samples if samples[run] is not None},
        outliers=tuple(map(_read_outlier, typed_at({"outliers": [], **record}, "outliers", list))),
    )


def _read_outlier(triple: Sequence[Any]) -> Outlier:
    record = dict(zip(("run", "value", "reason"), triple, strict=True))
    return Outlier(
        run_id=typed_at(record, "run", str),
        value=typed_at(record, "value", float),
        reason=typed_at(record, "reason", str),
    )
