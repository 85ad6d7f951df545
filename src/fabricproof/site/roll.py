"""The checks that a site is required to run: committed, so that an absent one is noticed.

ReFrame passes over a check file that cannot be imported with a warning, and over a check that no
partition fits in silence.  The list of required checks is what it is compared with.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError

from fabricproof.core.errors import ConfigError, words_of
from fabricproof.core.records import may_exist, read_json
from fabricproof.core.whole_file import write_whole
from fabricproof.site.model import Site
from fabricproof.site.schema import PartitionSpec

ROLL_FILE = "roll.json"
ROLL_VERSION = 1


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    check: str
    fabric: str
    partition: str
    stack: str
    tags: list[str]


class _Roll(BaseModel):
    model_config = ConfigDict(strict=True)
    version: Literal[1]
    due: list[_Entry]


def make_roll(site: Site, described: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a site's required checks from what ``reframe --describe`` says of its checks."""
    entries = []
    for check in described:
        # A check that is none of ours has no fabric, and is not required.
        fabric = str(check.get("params", check).get("fabric", "no-"))
        if fabric.startswith("no-"):
            continue
        name, tags = str(check["name"]).split(" ", maxsplit=1)[0], sorted(check["tags"])
        for partition in site.partitions:
            if fabric in partition.fabrics:
                once = [stack_of_looks(site, partition)] if check.get("once") else []
                entries += [
                    {
                        "check": name,
                        "fabric": fabric,
                        "partition": partition.name,
                        "stack": stack,
                        "tags": tags,
                    }
                    for stack in once or partition.stacks
                ]
    return sorted(entries, key=lambda each: json.dumps(each, sort_keys=True))


def stack_of_looks(site: Site, partition: PartitionSpec) -> str:
    """Return the stack that starts what needs none: the first that needs not be built for it."""
    ready = [name for name in partition.stacks if site.stack(name).spack is None]
    return (ready or partition.stacks)[0]


def write_roll(folder: Path, entries: Sequence[Mapping[str, Any]]) -> Path:
    """Write a site's roll for a person to review and commit."""
    path = folder / ROLL_FILE
    lines = ",\n".join("  " + json.dumps(entry, sort_keys=True) for entry in entries)
    write_whole(path, f'{{"version": {ROLL_VERSION}, "due": [\n{lines}\n]}}\n')
    return path


def read_roll(folder: Path) -> list[dict[str, Any]]:
    """Return the required checks of a site; an empty list if the site keeps none.

    Raises:
        ConfigError: the file is damaged or of another version.
    """
    path = folder / ROLL_FILE
    if not may_exist(path):
        return []
    try:
        roll = _Roll.model_validate(read_json(path))
        return [entry.model_dump() for entry in roll.due]
    except (OSError, ValueError) as error:
        words = error.errors()[0]["msg"] if isinstance(error, ValidationError) else words_of(error)
        raise ConfigError(
            f"damaged roll: {words}",
            source=str(path),
            expected=f"a roll of version {ROLL_VERSION}",
            next_step="make it again: fabricproof site roll SITE --write",
        ) from None


#: options of ReFrame that say where checks are and how they run, each with a value
_SETTINGS = (
    *("-c/--checkpath", "-S/--setvar", "-J/--job-option", "-m/--module", "-M/--map-module"),
    *("-u/--unload-module", "--module-mappings", "--module-path"),
)
#: that select checks by what the roll does not follow
_NARROWING = (
    *("-x/--exclude", "-T/--exclude-tag", "-E/--filter-expr", "-P/--parameterize", "--system"),
    *("--maintainer", "--mode"),
)
_NARROWING_FLAGS = ("--cpu-only", "--gpu-only", "--failed")


class _Taken(argparse.Action):
    """Appends the long option and its value, in the order of the command line."""

    def __call__(
        self, _parser: object, namespace: Any, values: Any, _option: object = None
    ) -> None:
        namespace.given.append((self.option_strings[-1], None if values == [] else values))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


#: those of ReFrame's options that matter here (reframe/frontend/cli.py)
_PARSER = _Parser(add_help=False)
for _names in ("-t/--tag", "-n/--name", "-p/--prgenv", *_SETTINGS, *_NARROWING):
    _PARSER.add_argument(*_names.split("/"), action=_Taken)
for _names in ("-r/--run", "-v/--verbose", "-q/--quiet", "-R/--recursive", *_NARROWING_FLAGS):
    _PARSER.add_argument(*_names.split("/"), action=_Taken, nargs=0)
_PARSER.add_argument("--restore-session", action=_Taken, nargs="?")

#: options of a command line in order, by their long names, and their values; None: a flag
Given = list[tuple[str, str | None]]


def _parse(arguments: Sequence[str]) -> tuple[Given, list[str]]:
    """Return those options of a ReFrame command line that matter, and what else there is.

    What ReFrame itself would refuse is all else: nothing of it will run.
    """
    namespace = argparse.Namespace(given=[])
    try:
        _, rest = _PARSER.parse_known_args(arguments, namespace)
    except ValueError:
        return [], [*arguments]
    return namespace.given, rest


def _words(given: Given) -> list[str]:
    return [option if value is None else f"{option}={value}" for option, value in given]


def _values(given: Given, wanted: str) -> list[str]:
    return [value or "" for option, value in given if option == wanted]


def _long(names: Iterable[str]) -> set[str]:
    return {each.rpartition("/")[2] for each in names}


def due_entries(
    roll: Sequence[Mapping[str, Any]], arguments: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the entries that a ReFrame command line should have run.

    Only tags are followed, as ReFrame does: every ``-t`` must be found in one of a check's tags
    (``have_tag`` in reframe/frontend/filters.py searches).  With any other narrowing option
    nothing is due, because the person chose.
    """
    given, _ = _parse(arguments)
    narrowing = {*_long(_NARROWING), *_NARROWING_FLAGS, "--restore-session", "--name", "--prgenv"}
    if {option for option, _ in given} & {*narrowing, "--checkpath", "--setvar"}:
        return []
    tags = _values(given, "--tag")
    return [
        entry
        for entry in roll
        if all(any(re.search(tag, each) for each in entry["tags"]) for tag in tags)
    ]


def selects_only(arguments: Sequence[str]) -> bool:
    """Tell whether ReFrame's ``arguments`` choose checks and stacks, or say what these are.

    A second look is then the same but for what it selects.
    """
    given, rest = _parse(arguments)
    shown = {"--verbose", "--quiet", "--recursive", "--run", "--tag", "--name", "--prgenv"}
    return not rest and {option for option, _ in given} <= {*shown, *_long(_SETTINGS)}


def setting_options(arguments: Sequence[str]) -> list[str]:
    """Return those of ReFrame's ``arguments`` that say where checks are and how they run.

    What looks again at some checks of a run needs them as well.
    """
    kept = {*_long(_SETTINGS), "--recursive"}
    return _words([pair for pair in _parse(arguments)[0] if pair[0] in kept])


def values_of(arguments: Sequence[str], option: str) -> list[str]:
    """Return what ReFrame is given with ``--tag``, ``--name`` or ``--prgenv``."""
    return _values(_parse(arguments)[0], option)


def with_whole_stacks(arguments: Sequence[str], stacks: Collection[str]) -> list[str]:
    """Return ReFrame's ``arguments`` where ``-p STACK`` means this stack and no other.

    ReFrame takes any environment whose name begins with something that the value fits: ``-p
    openmpi`` would select ``openmpi5`` too.  A value that is no stack's name stays a pattern.
    """
    given, rest = _parse(arguments)
    whole: Given = [
        (option, f"^{value}$" if option == "--prgenv" and value in stacks else value)
        for option, value in given
    ]
    return [*_words(whole), *rest] if whole != given else [*arguments]
