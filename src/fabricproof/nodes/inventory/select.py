"""Which inventories a person means: a node now, a node then, all nodes at a date or in a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fabricproof.core.errors import InputMissingError
from fabricproof.nodes.inventory.store import Seen

#: as :func:`fabricproof.job.run.start.new_run_id` makes them
_RUN = re.compile(r"\d{8}T\d{6}Z-\w+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z?)?")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What somebody asked for.

    Attributes:
        words: as it was asked for, ``n1@2026-11-01``.
        node: None for all nodes.
        seen: node -> the line of the index that counts; its digest may be None.
    """

    words: str
    node: str | None
    seen: dict[str, Seen]


def choose(index: Sequence[Seen], words: str) -> Chosen:
    """Return what ``words`` name.

    Args:
        index: all that was seen, oldest first.
        words: ``NODE`` (last seen), ``NODE@WHEN``, or ``WHEN`` alone for all nodes, all as last
            seen where it is empty; WHEN is a date (``2026-11-01``, the state at its end, or
            ``2026-11-01T12:00Z``), the identity of a run, or the beginning of a digest (with a
            node).

    Raises:
        InputMissingError: nothing was seen of that node, then, or in that run.
    """
    node, _, when = words.rpartition("@")
    if not node and not _is_when(when):
        node, when = when, ""
    of_node = [each for each in index if not node or each.node == node]
    if not of_node:
        _refuse(words, "node", {each.node for each in index})
    found = [each for each in of_node if _applies(each, when)]
    if not found:
        _refuse(words, "look", {f"{each.time} in run {each.run_id}" for each in of_node[-3:]})
    # Of two lines of a node the later counts; one where nothing was seen says nothing of the node.
    last: dict[str, Seen] = {}
    for each in found:
        if each.digest is not None or each.node not in last or _RUN.fullmatch(when):
            last[each.node] = each
    return Chosen(words=words, node=node or None, seen=dict(sorted(last.items())))


def _is_when(text: str) -> bool:
    return bool(_RUN.fullmatch(text) or _DATE.fullmatch(text))


def _applies(each: Seen, when: str) -> bool:
    if not when:
        return True
    if _RUN.fullmatch(when):
        return each.run_id == when
    if _DATE.fullmatch(when):
        return each.time[: len(when.rstrip("Z"))] <= when.rstrip("Z")
    return each.digest is not None and len(when) >= 4 and each.digest.startswith(when)


def _refuse(words: str, what: str, known: set[str]) -> None:
    raise InputMissingError(
        f"no inventory of {words!r}",
        expected=f"a {what} that is known: {', '.join(sorted(known)[-20:]) or 'none is yet'}",
        next_step="fabricproof inventory show lists them; each run of a check adds its nodes",
    )
