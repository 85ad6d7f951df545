"""Replace what names a site, its nodes and its people, the same name by the same stand-in.

What a reader needs stays readable: ``n17`` becomes ``node3`` everywhere, in file names, in folded
lists, in raw outputs.  Numbers, versions and models stay.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ClusterShell.NodeSet import NodeSet

#: accounts that tell nobody's name
_NOBODY = frozenset({"", "root", "nobody", "slurm"})

#: addresses that every machine has
_EVERYWHERE = frozenset({"0.0.0.0", "127.0.0.1", "::", "::1"})  # noqa: S104 - not bound to

_HEX = "[0-9a-fA-F]"
_MAC = re.compile(rf"(?<![\w:])(?:{_HEX}{{2}}:){{5,19}}{_HEX}{{2}}(?![\w:])")
_GUID = re.compile(rf"(?<![\w:])(?:(?:{_HEX}{{4}}:){{3}}{_HEX}{{4}}|0x{_HEX}{{16}})(?![\w:])")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")
_IPV6 = re.compile(rf"(?<![\w:.])(?:{_HEX}{{0,4}}:){{2,7}}{_HEX}{{0,4}}(?![\w:])")


class Anonymous:
    """Stands in for names; one object for a whole bundle, so that stand-ins agree.

    Args:
        nodes: names of all nodes; they become ``node1``, ``node2`` ... in their own order.
        users: accounts; they become ``user1`` ...
        serials: serial numbers of hardware.
        sites: names of the site.
        folders: whole paths, which may be called after people and projects.
    """

    def __init__(
        self,
        *,
        nodes: Iterable[str],
        users: Iterable[str] = (),
        serials: Iterable[str] = (),
        sites: Iterable[str] = (),
        folders: Iterable[str] = (),
    ) -> None:
        ordered = sorted({node for node in nodes if node}, key=_natural)
        self.nodes = {node: f"node{number}" for number, node in enumerate(ordered, start=1)}
        names = dict(self.nodes)
        for kind, words in (("user", set(users) - _NOBODY), ("serial", serials), ("site", sites)):
            kept = sorted({word for word in words if word and word not in names})
            names |= {word: f"{kind}{number}" for number, word in enumerate(kept, start=1)}
        paths = sorted({path for path in folders if len(path) > 1})
        names |= {path: f"/folder{number}" for number, path in enumerate(paths, start=1)}
        self._names = names
        self._known = _pattern(names)
        self._folded = _pattern_of_folded(ordered)
        self._found: dict[str, dict[str, str]] = {}

    def text(self, words: str) -> str:
        """Return ``words`` with stand-ins."""
        if self._folded is not None:
            words = self._folded.sub(self._unfold, words)
        if self._known is not None:
            words = self._known.sub(lambda match: self._names[match[0]], words)
        words = _GUID.sub(lambda match: self._numbered("guid", match[0]), words)
        words = _MAC.sub(lambda match: self._numbered("mac", match[0]), words)
        words = _IPV4.sub(self._address, words)
        return _IPV6.sub(self._address, words)

    def of(self, thing: Any) -> Any:
        """Return a record, or anything made of records, with stand-ins in all of its text."""
        if isinstance(thing, str):
            # Words of an enumeration are no names.
            return self.text(thing) if type(thing) is str else thing
        if is_dataclass(thing) and not isinstance(thing, type):
            return replace(
                thing, **{each.name: self.of(getattr(thing, each.name)) for each in fields(thing)}
            )
        if isinstance(thing, Mapping):
            return {self.of(key): self.of(value) for key, value in thing.items()}
        if isinstance(thing, list | tuple):
            return type(thing)(self.of(each) for each in thing)
        return thing

    def _unfold(self, match: re.Match[str]) -> str:
        names = [self.nodes.get(node, "node0") for node in NodeSet(match[0])]
        return str(NodeSet.fromlist(names))

    def _numbered(self, kind: str, found: str) -> str:
        known = self._found.setdefault(kind, {})
        return known.setdefault(found.lower(), f"{kind}{len(known) + 1}")

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        if str(address) in _EVERYWHERE:
            return match[0]
        return self._numbered("address", str(address))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    ordered = sorted(names, key=len, reverse=True)
    if not ordered:
        return None
    # A name ends at a dot and at a hyphen too: n17.rate, n17-ib.
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, ordered))})(?![A-Za-z0-9_])")


def _pattern_of_folded(nodes: Iterable[str]) -> re.Pattern[str] | None:
    stems = {re.sub(r"\d+$", "", node) for node in nodes if node[-1:].isdigit()}
    if not stems:
        return None
    words = "|".join(map(re.escape, sorted(stems, key=len, reverse=True)))
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{words})\[\d[\d,-]*\]")
