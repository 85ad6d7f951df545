"""Replace what names a site, its nodes and its people, the same name by the same stand-in.

What a reader needs stays readable: ``n17`` becomes ``node3`` everywhere, in file names, in folded
lists, in raw outputs.  Numbers, versions and models stay.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException

from fabricproof.core.units import natural

#: accounts that tell nobody's name
_NOBODY = frozenset({"", "root", "nobody", "slurm"})

#: addresses that every machine has
_EVERYWHERE = frozenset({"0.0.0.0", "127.0.0.1", "::", "::1"})  # noqa: S104 - not bound to

_HEX = "[0-9a-fA-F]"
_MAC = re.compile(rf"(?<![\w:])(?:{_HEX}{{2}}[:-]){{5,19}}{_HEX}{{2}}(?!\w|[:-]{_HEX}{{2}}(?!\w))")
_GUID = re.compile(rf"(?<![\w:])(?:(?:{_HEX}{{4}}:){{3}}{_HEX}{{4}}|0x{_HEX}{{16}})(?![\w:])")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")
_IPV6 = re.compile(rf"(?<![\w:.])(?:{_HEX}{{0,4}}:){{2,7}}{_HEX}{{0,4}}(?![\w:])")
#: the end of its domain is a word: ``openmpi@5.0.11`` is a version
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?![\w-])")

_UUID = re.compile(rf"(?<![\w-]){_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}(?![\w-])")

#: Where people and projects have their folders: the history may come from any account and any
#: checkout.  Folders of systems (``/usr``, ``/opt``, ``/proc``) say which software it was.
_OF_PEOPLE = (
    "afs beegfs cluster data export fast global gpfs gscratch home homes lustre mnt net nfs "
    "nobackup p proj project projects root scratch share shared u user users vol work"
)
_FOLDER = re.compile(
    rf"(?<![\w.:/-])/(?:{'|'.join(_OF_PEOPLE.split())})\d*(?:/[\w.@+~-]+)*(?=/|(?![\w.@+~-]))"
)

#: what Slurm calls a project: ``--account=x``, ``-A x``, ``SLURM_JOB_ACCOUNT=x``, as JSON too
_ACCOUNT = re.compile(
    r"""((?:--(?:account|wckey|reservation)[= ]"""
    r"""|(?<![\w-])-A[ =]+(?=[A-Za-z_])|\w*_(?:ACCOUNT|WCKEY|RESERVATION)["']?\s?[=:]\s?)["']?)"""
    r"""([A-Za-z0-9_][\w.-]*)"""
)

#: a word with folded numbers: ``n[1-2,5]``, ``gpu-a0[117-118]``, ``r[1-2]n[1-4]``
_FOLDED = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z][\w.-]*(?:\[\d[\d,-]*\][\w.-]*)+")


def accounts_in(words: str) -> set[str]:
    """Return the accounts, reservations and keys that ``words`` give to Slurm or have from it."""
    return {match[2] for match in _ACCOUNT.finditer(words)}


def macs_in(words: str) -> set[str]:
    """Return the hardware addresses in ``words``, without that of the loopback."""
    return {mac for mac in _MAC.findall(words) if set(mac) - set("0:-")}


class Anonymous:
    """Stands in for names; one object for a whole bundle, so that stand-ins agree.

    Args:
        nodes: names of all nodes; they become ``node1``, ``node2`` ... in their own order.
        users: accounts; they become ``user1`` ...
        serials: serial numbers of hardware.
        sites: names of the site, its own the first.
        folders: whole paths, which may be called after people and projects.
        accounts: what Slurm charges.
        macs: hardware addresses, which are found without their colons too (``enx02ab...``).

    Upper and lower case are the same name; a node known with its domain is known without it too.
    """

    def __init__(
        self,
        *,
        nodes: Iterable[str],
        users: Iterable[str] = (),
        serials: Iterable[str] = (),
        sites: Iterable[str] = (),
        folders: Iterable[str] = (),
        accounts: Iterable[str] = (),
        macs: Iterable[str] = (),
    ) -> None:
        ordered = sorted({node.lower() for node in nodes if node}, key=natural)
        self.nodes = _stand_ins_of_nodes(ordered)
        names = dict(self.nodes)
        domains = {node.partition(".")[2] for node in ordered if not _is_address(node)}
        places = [*sites, *sorted(domain for domain in domains if "." in domain)]
        kinds = (
            ("user", sorted(set(users) - _NOBODY)),
            ("serial", sorted(serials)),
            ("site", places),
            ("account", sorted(set(accounts) - _NOBODY)),
        )
        for kind, words in kinds:
            kept = [word for word in dict.fromkeys(map(str.lower, words)) if word not in names]
            names |= {word: f"{kind}{at}" for at, word in enumerate(filter(None, kept), start=1)}
        paths = sorted({path.lower() for path in folders if len(path) > 1})
        names |= {path: f"/folder{number}" for number, path in enumerate(paths, start=1)}
        self._names = names
        self._given = frozenset(names.values())
        self._known = _pattern(names)
        self._stems = {_stem(node) for node in self.nodes}
        self._folded = _pattern_of_folded(self.nodes)
        self._found: dict[str, dict[str, str]] = {}
        self._bare = _pattern_of_bare(macs)

    def text(self, words: str) -> str:
        """Return ``words`` with stand-ins."""
        words = _MAIL.sub(lambda match: self._numbered("mail", match[0]), words)
        words = _FOLDED.sub(self._unfold_known, words)
        if self._folded is not None:
            words = self._folded.sub(self._unfold, words)
        if self._known is not None:
            words = self._known.sub(lambda match: self._names[match[0].lower()], words)
        words = _FOLDER.sub(self._folder, words)
        words = _ACCOUNT.sub(self._account, words)
        words = _UUID.sub(lambda match: self._numbered("uuid", match[0]), words)
        words = _GUID.sub(lambda match: self._numbered("guid", match[0]), words)
        words = _MAC.sub(lambda match: self._mac(match[0]), words)
        if self._bare is not None:
            words = self._bare.sub(lambda match: self._mac(match[0]), words)
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

    def _unfold_known(self, match: re.Match[str]) -> str:
        return self._unfold(match) if _stem(match[0].lower()) in self._stems else match[0]

    def _unfold(self, match: re.Match[str]) -> str:
        try:
            nodes = list(NodeSet(match[0].lower()))
        except NodeSetException:
            return "node0"
        return str(NodeSet.fromlist([self.nodes.get(node, "node0") for node in nodes]))

    def _folder(self, match: re.Match[str]) -> str:
        """Return a path with its folder replaced; the last part, a file's name, stays."""
        folder, _, name = match[0].rpartition("/")
        if not folder:
            return match[0]
        return f"{self._numbered('/other-folder', folder)}/{name}"

    def _account(self, match: re.Match[str]) -> str:
        known = match[2] in self._given or match[2] in _NOBODY
        return match[0] if known else match[1] + self._numbered("other-account", match[2])

    def _mac(self, found: str) -> str:
        return self._numbered("mac", re.sub("[:-]", "", found))

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


def _is_address(name: str) -> bool:
    return name.replace(".", "").isdigit()


def _stand_ins_of_nodes(ordered: Iterable[str]) -> dict[str, str]:
    """Return each name's stand-in; one for a node with and without its domain."""
    ordered = list(ordered)
    shorts = {node: node if _is_address(node) else node.partition(".")[0] for node in ordered}
    whole = Counter(short for node, short in shorts.items() if node != short)
    known: dict[str, str] = {}
    names: dict[str, str] = {}
    for node, short in shorts.items():
        # Of two domains with an n1 each, nobody can say which one is meant by n1.
        same = node if whole[short] > 1 else short
        names[node] = known.setdefault(same, f"node{len(known) + 1}")
        names.setdefault(short, names[node])
    return names


def _stem(name: str) -> str:
    """Return a name, folded or not, with ``#`` for each of its numbers: ``gpu-a#``, ``r#n#``."""
    return re.sub(r"(?:\d|\[[\d,-]*\])+", "#", name)


def _pattern_of_bare(macs: Iterable[str]) -> re.Pattern[str] | None:
    bare = sorted({re.sub("[:-]", "", mac) for mac in macs if _MAC.fullmatch(mac)})
    if not bare:
        return None
    return re.compile(rf"(?<![0-9a-f])(?:{'|'.join(bare)})(?![0-9a-f])", re.IGNORECASE)


def _pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    ordered = sorted(names, key=len, reverse=True)
    if not ordered:
        return None
    # A name ends at a dot and at a hyphen too: n17.rate, n17-ib; one with a number at its end, as
    # nodes have it, at an underscore: n17_ib.
    words = "|".join(
        re.escape(each) + (r"(?![A-Za-z0-9])" if each[-1:].isdigit() else r"(?![A-Za-z0-9_])")
        for each in ordered
    )
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{words})", re.IGNORECASE)


def _pattern_of_folded(nodes: Iterable[str]) -> re.Pattern[str] | None:
    stems = {re.sub(r"\d+$", "", node) for node in nodes if node[-1:].isdigit()}
    if not stems:
        return None
    words = "|".join(map(re.escape, sorted(stems, key=len, reverse=True)))
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{words})\d*\[\d[\d,-]*\]", re.IGNORECASE)
