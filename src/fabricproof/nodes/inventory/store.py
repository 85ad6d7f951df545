"""Inventories on disk: one file per node and change, an index of who saw it when; how to choose.

``perflogs/<site>/.inventory/<node>/<digest>.json`` is written once and never changed.
``perflogs/<site>/.inventory/index.jsonl`` gets one line per node and run, and another if the node
changed within the run.  It is only appended to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fabricproof.core.errors import FabricproofError, InputMissingError, ParseError
from fabricproof.core.hostlist import SAFE_NAME
from fabricproof.core.project import site_option
from fabricproof.core.records import (
    append_records,
    may_exist,
    read_json,
    read_records,
    text_of,
)
from fabricproof.core.whole_file import refusal_of, whole_file
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.read import read_machine

FORMAT = 1
INDEX_FILE = "index.jsonl"

#: below the perflogs of a site
FOLDER = ".inventory"

_MACHINE = TypeAdapter(Machine)


@dataclass(frozen=True, kw_only=True)
class StateSeen:
    """A line of the index: what a node was found to be in a run.

    Attributes:
        time: UTC, ``2026-11-20T21:54:14Z``.
        node: as the scheduler calls it.
        run_id: the run whose job looked.
        digest: names the file; None if nothing was seen.
        reason: why nothing was.
    """

    time: str
    node: str
    run_id: str
    digest: str | None
    reason: str = ""


_STATE = TypeAdapter(StateSeen)


def inventory_of_job(
    folder: Path, looks: Path, nodes: Iterable[str], *, run_id: str, time: str
) -> tuple[dict[str, str | None], str]:
    """Return node -> digest for the records of a job, and what went wrong; keep the files.

    The measurement is worth more than its inventory: whatever goes wrong here is a sentence.
    """
    nodes = sorted(set(nodes))
    try:
        return keep_looks(folder, looks, nodes, run_id=run_id, time=time), ""
    except (FabricproofError, OSError) as error:
        return dict.fromkeys(nodes), f"inventory not kept: {error}"


def keep_looks(
    folder: Path, looks: Path, nodes: Iterable[str], *, run_id: str, time: str
) -> dict[str, str | None]:
    """Keep what a job's nodes left of themselves in ``looks``, and return node -> digest.

    A node that left nothing has None, and the index says why.  ``nodes`` took part in the
    measurement; those that left a look are added.

    Raises:
        OutputError: what was seen could not be kept.
    """
    left = {path.stem: path for path in looks.glob("*.txt")}
    seen = []
    for node in sorted({*nodes, *left}):
        digest, reason = None, "the look at it left nothing"
        if not SAFE_NAME.fullmatch(node):
            reason = "its name is none that a folder can have"
        elif node in left:
            machine = read_machine(text_of(left[node], errors="replace"), node)
            reason = "; ".join(machine.unknown) or reason
            if machine.facts:
                write_machine(folder, machine)
                digest, reason = machine.digest, ""
        seen.append(StateSeen(time=time, node=node, run_id=run_id, digest=digest, reason=reason))
    # Readers take the last line: a state that comes back within a run is written again.
    last = {(each.node, each.run_id): each.digest for each in read_index(folder)}
    new = [each for each in seen if last.get((each.node, run_id), "") != each.digest]
    append_records(folder / INDEX_FILE, [vars(each) for each in new])
    return {each.node: each.digest for each in seen}


def write_machine(folder: Path, machine: Machine) -> Path:
    """Write a machine unless it is there already; return its file.

    Raises:
        OutputError: it could not be written; no half of it is left.
    """
    path = folder / machine.node / f"{machine.digest}.json"
    if path.exists():
        return path
    record = {
        "format": FORMAT,
        "digest": machine.digest,
        "node": machine.node,
        "facts": machine.facts,
        "troubles": [asdict(each) for each in machine.troubles],
    }
    with refusal_of("keep the inventory", path, "make room"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write((json.dumps(record, indent=1) + "\n").encode())
    return path


def read_kept(folder: Path, node: str, digest: str) -> Machine:
    """Read what :func:`write_machine` wrote.

    Raises:
        ParseError: it is gone or damaged.
    """
    path = folder / node / f"{digest}.json"
    try:
        record = read_json(path)
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}")
        return _MACHINE.validate_python(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParseError(
            "no readable inventory",
            source=str(path),
            expected=f"a file of format {FORMAT}",
            got=str(error).partition("\n")[0] or type(error).__name__,
        ) from None


def read_index(folder: Path, on_torn: Callable[[str], object] | None = None) -> list[StateSeen]:
    """Return the index, oldest first; empty if nothing was kept yet.

    Raises:
        ParseError: a damaged line that no crash explains.
    """
    path = folder / INDEX_FILE
    found: list[StateSeen] = []
    for record in read_records(path, on_torn=on_torn) if may_exist(path) else ():
        try:
            found.append(_STATE.validate_python(record))
        except ValidationError:
            expected = "time, node, run_id and digest"
            raise ParseError(
                "damaged index", source=str(path), expected=expected, got=str(record)[:60]
            ) from None
    return found


#: as :func:`fabricproof.job.run.start.new_run_id` makes them
_RUN = re.compile(r"\d{8}T\d{6}Z-\w+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z?)?")


@dataclass(frozen=True, kw_only=True)
class InventoryChoice:
    """What somebody asked for.

    Attributes:
        words: as it was asked for, ``n1@2026-11-01``.
        node: None for all nodes.
        seen: node -> the line of the index that counts; its digest may be None.
    """

    words: str
    node: str | None
    seen: dict[str, StateSeen]


def choose(index: Sequence[StateSeen], words: str, site: str = "") -> InventoryChoice:
    """Return what ``words`` name.

    Args:
        index: all that was seen, oldest first.
        words: ``NODE`` (last seen), ``NODE@WHEN``, or ``WHEN`` alone for all nodes, all as last
            seen if it is empty; WHEN is a date (``2026-11-01``, the state at its end, or
            ``2026-11-01T12:00Z``), the identity of a run, or the beginning of a digest (with a
            node).
        site: its name, for what is said next if there is none.

    Raises:
        InputMissingError: nothing was seen of that node, then, or in that run.
    """
    node, _, when = words.rpartition("@")
    if not node and not is_when(when):
        node, when = when, ""
    of_node = [each for each in index if not node or each.node == node]
    found = [each for each in of_node if _applies(each, when)]
    if not found:
        looks = {f"{each.time} in run {each.run_id}" for each in of_node[-3:]}
        known = sorted(looks or {each.node for each in index})[-20:]
        what = "look" if looks else "node"
        raise InputMissingError(
            f"no inventory of {words!r}",
            expected=f"a {what} that is known: {', '.join(known) or 'none is yet'}",
            next_step=f"fabricproof inventory show {site_option(site)}".rstrip(),
        )
    # Of two lines of a node the later counts; one where nothing was seen says nothing of the node.
    last: dict[str, StateSeen] = {}
    for each in found:
        if each.digest is not None or each.node not in last or is_run(when):
            last[each.node] = each
    return InventoryChoice(words=words, node=node or None, seen=dict(sorted(last.items())))


def is_run(text: str) -> bool:
    """Tell whether ``text`` is the whole identity of a run."""
    return bool(_RUN.fullmatch(text))


def is_when(text: str) -> bool:
    """Tell whether ``text`` is a date or the whole identity of a run."""
    return is_run(text) or bool(_DATE.fullmatch(text))


def _applies(each: StateSeen, when: str) -> bool:
    if is_run(when):
        return each.run_id == when
    if _DATE.fullmatch(when):
        return each.time[: len(when.rstrip("Z"))] <= when.rstrip("Z")
    # the beginning of a digest
    return not when or (len(when) >= 4 and (each.digest or "").startswith(when))
