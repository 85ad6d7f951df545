"""Read ``scontrol show topology``: text in, a topology out.

Forms (Slurm's source: ``_print_topo_record`` of topology/tree and topology/block, the former in
``src/api/topo_info.c`` before 23.11; recorded from 22.05)::

    SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=vc[1-2]
    SwitchName=spine Level=1 LinkSpeed=1 Nodes=vc[1-4] Switches=leaf[1-2]
    BlockName=b1 BlockIndex=0 Nodes=node[01-08] BlockSize=8

    AggregatedBlock=b[1-2] BlockIndex=2 Nodes=node[01-16] BlockSize=16
"""

from __future__ import annotations

from fabricproof.core.errors import ParseError
from fabricproof.core.hostlist import expand
from fabricproof.nodes.topology.model import Shape, SwitchGroup, Topology

#: what Slurm says where it has no topology (scontrol, ``slurm_print_topo_info_msg``)
NO_TOPOLOGY = "No topology information available"

_KEYS = {
    "SwitchName": frozenset({"Level", "LinkSpeed", "Nodes", "Switches"}),
    "BlockName": frozenset({"BlockIndex", "Nodes", "BlockSize"}),
    "AggregatedBlock": frozenset({"BlockIndex", "Nodes", "BlockSize"}),
}


def parse_topology(text: str, source: str = "scontrol show topology") -> Topology:
    """Read what ``scontrol show topology`` printed.

    Nothing, or Slurm's own sentence that there is none, is a flat topology.

    Raises:
        ParseError: a line of another form, a name twice, trees and blocks in one text, a switch
            below another that is not there, or a cut last line.
        ConfigError: a hostlist in it stands for too many names (:mod:`fabricproof.core.hostlist`).
    """
    groups: list[SwitchGroup] = []
    heads: set[str] = set()
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or NO_TOPOLOGY in line:
            continue
        facts = _facts(line, source, number)
        head = next(iter(facts))
        heads.add("SwitchName" if head == "SwitchName" else "BlockName")
        groups.append(_group(head, facts, source, number))
        if groups[-1].name in {group.name for group in groups[:-1]}:
            raise _damage("a name that was not there yet", line, source, number)
    if groups and not text.endswith("\n"):
        raise _damage("a newline at its end", lines[-1], source, len(lines))
    if len(heads) > 1:
        raise _damage("a tree or blocks, not both", lines[0], source, 1)
    _check_children(groups, source)
    if not groups:
        return Topology(shape=Shape.FLAT)
    return Topology(
        shape=Shape.TREE if heads == {"SwitchName"} else Shape.BLOCK, groups=tuple(groups)
    )


def _facts(line: str, source: str, number: int) -> dict[str, str]:
    pairs = [word.partition("=") for word in line.split()]
    facts = {key: value for key, _, value in pairs}
    head = pairs[0][0]
    known = _KEYS.get(head)
    if known is None or len(facts) != len(pairs) or not all(mark for _, mark, _ in pairs):
        raise _damage("SwitchName=... or BlockName=... with key=value", line, source, number)
    if not facts.keys() - {head} <= known or not facts[head]:
        raise _damage(f"{head}=NAME with {', '.join(sorted(known))}", line, source, number)
    return facts


def _group(head: str, facts: dict[str, str], source: str, number: int) -> SwitchGroup:
    level = facts.get("Level", "1" if head == "AggregatedBlock" else "0")
    size = facts.get("BlockSize", "0")
    for key, value in (("Level", level), ("BlockSize", size)):
        if not value.isdecimal():
            raise _damage(f"a whole number as {key}", value, source, number)
    return SwitchGroup(
        name=facts[head],
        level=int(level),
        nodes=expand(facts.get("Nodes", ""), source, number),
        children=expand(facts.get("Switches", ""), source, number),
        block_size=int(size),
    )


def _check_children(groups: list[SwitchGroup], source: str) -> None:
    names = {group.name for group in groups}
    for group in groups:
        lost = [child for child in group.children if child not in names]
        if lost:
            raise ParseError(
                f"switch {group.name} has switches below it that are not listed",
                source=source,
                expected="a line for each",
                got=", ".join(lost),
            )


def _damage(expected: str, line: str, source: str, number: int) -> ParseError:
    return ParseError(
        "damaged topology", source=source, line=number, expected=expected, got=repr(line[:80])
    )
