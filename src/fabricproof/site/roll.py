"""The checks that a site is required to run: committed, so that an absent one is noticed.

ReFrame passes over a check file that cannot be imported with a warning, and over a check that no
partition fits in silence.  The list of required checks is what it is compared with.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, words_of
from fabricproof.core.records import may_exist, read_json
from fabricproof.core.whole_file import write_whole
from fabricproof.site import Site
from fabricproof.site.schema import PartitionSpec

ROLL_FILE = "roll.json"
ROLL_VERSION = 1

#: options of ReFrame that narrow the selection in ways the list does not follow
_NARROWING_SHORT = re.compile(r"-[nxEpcTSP]")
_NARROWING_LONG = (
    "--name",
    "--exclude",
    "--exclude-tag",
    "--filter-expr",
    "--prgenv",
    "--checkpath",
    "--cpu-only",
    "--gpu-only",
    "--maintainer",
    "--system",
    "--mode",
    "--restore-session",
    "--failed",
    "--setvar",
    "--parameterize",
)

#: options of ReFrame that say where checks are and how they run, each with a value
_SETTING_SHORT = ("-c", "-S", "-J", "-m", "-M", "-u")
_SETTING_LONG = (
    "--checkpath",
    "--setvar",
    "--job-option",
    "--module",
    "--map-module",
    "--module-mappings",
    "--module-path",
    "--unload-module",
)

_RECURSIVE = "--recursive"

#: the selecting options whose values are followed
_FOLLOWED = {"-t": "--tag", "-n": "--name", "-p": "--prgenv"}

#: flags without a value, which may stand together with the option after them: ``-rt quick``
_BUNDLE = re.compile(r"-[vqrR]+(?=[^vqrR-])")
_FLAGS = re.compile(r"-[vqrR]+")


def make_roll(site: Site, described: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a site's required checks from what ``reframe --describe`` says of its checks."""
    entries = []
    for check in described:
        # A check that is none of ours has no fabric, and is not required.
        fabric = check.get("params", check).get("fabric", "no-")
        if str(fabric).startswith("no-"):
            continue
        for partition in site.partitions:
            if fabric not in partition.fabrics:
                continue
            entries += [
                {
                    "check": str(check["name"]).split(" ", maxsplit=1)[0],
                    "fabric": str(fabric),
                    "partition": partition.name,
                    "stack": stack,
                    "tags": sorted(check["tags"]),
                }
                for stack in _stacks(site, partition, check)
            ]
    return sorted(entries, key=lambda each: json.dumps(each, sort_keys=True))


def _stacks(site: Site, partition: PartitionSpec, check: Mapping[str, Any]) -> list[str]:
    """Return the stacks with which a check is due: all, or the one that looks for all."""
    return [stack_of_looks(site, partition)] if check.get("once") else partition.stacks


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
    """Return the required checks of a site; an empty list where the site keeps none.

    Raises:
        ConfigError: the file is damaged or of another version.
    """
    path = folder / ROLL_FILE
    if not may_exist(path):
        return []
    try:
        record = read_json(path)
        if record["version"] != ROLL_VERSION:
            raise ConfigError(
                "roll of another version",
                source=str(path),
                expected=str(ROLL_VERSION),
                got=str(record["version"]),
            )
        if not isinstance(record["due"], list):
            raise TypeError("due is no list")
        return [_checked(entry) for entry in record["due"]]
    except ConfigError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"damaged roll: {words_of(error)}",
            source=str(path),
            expected=f"a roll of version {ROLL_VERSION}, its list due, and in it of each check "
            "its texts check, fabric, partition, stack, and its list tags",
            next_step="make it again: fabricproof site roll SITE --write",
        ) from None


def _checked(entry: dict[str, Any]) -> dict[str, Any]:
    """Return ``entry``; KeyError or TypeError where it lacks what a run is compared with."""
    for key in ("check", "fabric", "partition", "stack"):
        if not isinstance(entry[key], str):
            raise TypeError(f"{key} is no text")
    tags = entry["tags"]
    if not isinstance(tags, list) or not all(isinstance(each, str) for each in tags):
        raise TypeError("tags is no list of texts")
    return entry


def due_entries(
    roll: Sequence[Mapping[str, Any]], arguments: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the entries that a ReFrame command line should have run.

    Only tags are followed, as ReFrame does: every ``-t`` must be found in one of a check's tags
    (``have_tag`` in reframe/frontend/filters.py searches).  With any other narrowing option
    nothing is due, because the person chose.
    """
    chosen = [option for option, _ in _options(arguments)]
    if any(each in _NARROWING_LONG or _NARROWING_SHORT.match(each) for each in chosen):
        return []
    tags = [value for option, value in _options(arguments) if option == "--tag"]
    return [
        entry
        for entry in roll
        if all(any(re.search(tag, each) for each in entry["tags"]) for tag in tags)
    ]


def selects_only(arguments: Sequence[str]) -> bool:
    """Tell whether ReFrame's ``arguments`` choose checks and stacks, or say what these are.

    A second look is then the same but for what it selects.
    """
    harmless = {"-r", "--run", *_FOLLOWED.values()}
    return all(option in harmless for option, _ in _options(_parted(arguments)[1]))


def setting_options(arguments: Sequence[str]) -> list[str]:
    """Return those of ReFrame's ``arguments`` that say where checks are and how they run.

    What looks again at some checks of a run needs them as well, as they were given, but for flags
    that stand together with them: of those it needs ``-R``.
    """
    return _parted(arguments)[0]


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options that say where checks are and how they run, and all others."""
    settings: list[str] = []
    others: list[str] = []
    rest = iter(arguments)
    for given in rest:
        flags, argument = _unbundled(given)
        settings += ["-R"] if "R" in flags else []
        if not argument:
            left = flags.replace("R", "")
            others += [f"-{left}"] if left else []
            continue
        option, mark, _ = _spelled_out(argument)
        is_short = not argument.startswith("--") and argument[:2] in _SETTING_SHORT
        if option in _SETTING_LONG or is_short:
            has_value = mark or (is_short and len(argument) > len("-c"))
            settings += [argument, *([] if has_value else itertools.islice(rest, 1))]
        elif option == _RECURSIVE:
            settings.append(argument)
        else:
            # A value may look like an option.
            follows = option in _FOLLOWED.values() and not mark
            others += [argument, *itertools.islice(rest, int(follows))]
    return settings, others


def _unbundled(argument: str) -> tuple[str, str]:
    """Return the flags that an argument begins with, and what is left as an option of its own.

    Of ``-rRcmine`` they are ``rR`` and ``-cmine``.
    """
    if _FLAGS.fullmatch(argument):
        return argument[1:], ""
    bundle = _BUNDLE.match(argument)
    return (bundle[0][1:], f"-{argument[bundle.end() :]}") if bundle else ("", argument)


def unfitting_names(arguments: Sequence[str], ran: Iterable[str]) -> list[str]:
    """Return the values of ``-n`` that fit none of the checks that ran or were skipped.

    As ReFrame does (``have_any_name`` in reframe/frontend/filters.py), a value is searched for in
    the name without blanks.  Those by hash (``/...``) and variant (``NAME@2``) are not followed.

    Names in ``ran`` are as its report has them, ``OsuBandwidth %fabric=eth0``.
    """
    names = [name.replace(" ", "") for name in ran]
    asked = [value for option, value in _options(arguments) if option == "--name"]
    followed = [each for each in asked if "@" not in each and not each.startswith("/")]
    return [each for each in followed if not any(re.search(each, name) for name in names)]


def with_whole_stacks(arguments: Sequence[str], stacks: Collection[str]) -> list[str]:
    """Return ReFrame's ``arguments`` where ``-p STACK`` means this stack and no other.

    ReFrame takes any environment whose name begins with something that the value fits: ``-p
    openmpi`` would select ``openmpi5`` too.  A value that is no stack's name stays a pattern.

    Names of stacks are letters, digits, ``_`` and ``-``.
    """
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        option, mark, value = _spelled_out(argument)
        if option != "--prgenv":
            found.append(argument)
            continue
        bundle = _BUNDLE.match(argument)
        found += [bundle[0]] if bundle else []
        values = [value] if mark else list(itertools.islice(rest, 1))
        found += ["-p", *(f"^{each}$" if each in stacks else each for each in values)]
    return found


def _options(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Return the options of a ReFrame command line, the values of those that are followed."""
    found = []
    rest = iter(arguments)
    for argument in rest:
        option, mark, value = _spelled_out(argument)
        follows = option in _FOLLOWED.values() and not mark
        found.append((option, next(rest, "") if follows else value))
    return found


def _spelled_out(argument: str) -> tuple[str, str, str]:
    """Return an argument as option, ``=`` and value, in the spelling this module knows.

    Besides ``-r -t quick`` argparse takes ``-rt quick``, ``-rtquick`` and ``--ta quick``.
    A beginning that fits several options is an error of ReFrame's and runs nothing.
    """
    argument = _BUNDLE.sub("-", argument) if not argument.startswith("--") else argument
    if argument[:2] in _FOLLOWED:
        return _FOLLOWED[argument[:2]], "=" if len(argument) > 2 else "", argument[2:]
    option, mark, value = argument.partition("=")
    if len(option) > len("--"):
        known = ("--tag", *_NARROWING_LONG, *_SETTING_LONG, _RECURSIVE)
        option = next((name for name in known if name.startswith(option)), option)
    return option, mark, value
