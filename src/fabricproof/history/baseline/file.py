"""The file of a baseline, ``site-configs/<site>/baselines/NAME.json``, and whether it still holds.

It is written to be reviewed: one quantity a line, sorted; a changed median is a changed line.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.core.plain import plain
from fabricproof.core.units import by_key
from fabricproof.core.whole_file import refusal_of, whole_file
from fabricproof.history.machines import Machines, last_known
from fabricproof.history.store import Key
from fabricproof.nodes.inventory.changed import why_changed
from fabricproof.verdict.references import FORMAT, Baseline, BaselineRow, read_baseline

if TYPE_CHECKING:
    from fabricproof.history.store import Store

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


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
    return site_folder / "baselines" / f"{name}.json"


def names_in(site_folder: Path) -> list[str]:
    """Return the names of a site's baselines, sorted."""
    return sorted(path.stem for path in (site_folder / "baselines").glob("*.json"))


def find_baseline(site_folder: Path, name: str) -> Baseline:
    """Read baseline ``name`` of a site.

    Raises:
        ConfigError: it is no name of a file.
        InputMissingError: there is no such file; the message names those there are.
        ParseError: it is damaged, of another format, or says what cannot be.
    """
    path = path_of(site_folder, name)
    if not path.is_file():
        raise InputMissingError(
            "no such baseline",
            source=str(path),
            expected=f"one of: {', '.join(names_in(site_folder)) or 'none is frozen yet'}",
            got=repr(name),
            next_step="fabricproof baseline freeze NAME RUNS",
        )
    return read_baseline(path)


def write_baseline(path: Path, baseline: Baseline, *, over: bool = False) -> None:
    """Write a baseline, whole or not at all.

    Raises:
        ConfigError: there is one of that name and ``over`` is not asked for.
        OutputError: it could not be written; what was there before is as it was.
    """
    with refusal_of("write the baseline", path, "make room; nothing was changed"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with whole_file(path, replace=over) as file:
                file.write(as_text(baseline).encode())
        except FileExistsError:
            raise name_taken(path) from None


def name_taken(path: Path) -> ConfigError:
    """Return the refusal to write over another baseline."""
    return ConfigError(
        "there is a baseline of that name",
        source=str(path),
        expected="a name of its own",
        next_step="another NAME, or --replace",
    )


def as_text(baseline: Baseline) -> str:
    """Return the file's text: the same for the same baseline, in whatever order it was made."""
    groups = tuple(sorted(baseline.groups, key=lambda each: astuple(each.place)))
    return _json({"format": FORMAT, **plain(replace(baseline, groups=groups))}) + "\n"


def _json(value: Any, depth: int = 0) -> str:
    """Return JSON, one entry a line, down to the rows (``groups``, group, ``rows``, row)."""
    entries = [*value.values()] if isinstance(value, dict) else value
    if not entries or not isinstance(value, dict | list) or depth > 3:
        return json.dumps(value, ensure_ascii=False)
    if depth > 1 and not any(isinstance(each, dict | list) for each in entries):
        return json.dumps(value, ensure_ascii=False)
    lines = [_json(each, depth + 1) for each in entries]
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {line}" for key, line in zip(value, lines, strict=True)]
    first, last = "{}" if isinstance(value, dict) else "[]"
    new = "\n" + " " * depth
    return f"{first}{new} " + f",{new} ".join(lines) + new + last


def why_not_valid(baseline: Baseline, machines: Machines, store: Store | None) -> list[str]:
    """Return why ``baseline`` does not judge nodes and stacks as they were last seen."""
    newest = {node: seen.digest for node, seen in machines.newest().items()}
    nodes = (
        why_changed(name, baseline.facts_of(name), machines.facts(name, newest.get(name)))
        for name in baseline.nodes
    )
    last = last_known(run.builds for run in store.runs) if store else {}
    builds = (
        f"{stack}: build {', '.join(builds)} -> {now}"
        for stack, builds in builds_of(baseline).items()
        if (now := last.get(stack)) and now not in builds
    )
    return [*filter(None, nodes), *builds]


def keyed(baseline: Baseline) -> dict[Key, BaselineRow]:
    """Return every quantity of a baseline under its key of history."""
    names = ("quantity", "unit", "message_size", "better", "named")
    return {
        Key(
            site=baseline.site, **asdict(place), **{name: getattr(row, name) for name in names}
        ): row
        for place, row in baseline.rows()
    }


def builds_of(baseline: Baseline) -> dict[str, list[str]]:
    """Return stack to the builds that a baseline has numbers of."""
    return by_key(sorted({(each.place.stack, each.place.build) for each in baseline.groups}))
