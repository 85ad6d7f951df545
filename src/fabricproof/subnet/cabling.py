"""Cables missing between switches, and rails of hosts cabled crosswise.  Pure.

Two switches are to be joined by as many cables as their siblings.

A rail is the adapter that a host's description names (``n017 mlx5_0``), and of adapters with
several ports each port.  Adapters without such a name are not compared: the order of GUIDs is that
of the factory, not of the slots.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from fabricproof.core.findings import Finding, Where
from fabricproof.core.hostlist import fold
from fabricproof.core.units import by_key, natural
from fabricproof.nodes.topology import Against, Cabling, Hanging, astray, cabling_of, steps_from
from fabricproof.physics import Link
from fabricproof.subnet.model import End, Network
from fabricproof.subnet.result import fail, passed, unjudged

#: rails of a host: those of hosts with other adapters are no measure for it
_Kind = tuple[str, ...]

_Declared = TypeVar("_Declared")

_IN_WRONG_SWITCH = "a cable in the wrong switch"
_OTHER_KIND = "or a host of another kind: --hosts names those that are alike"

#: Without a declaration at most one of so many hosts may lack a rail that the others have: where
#: more do, somebody meant it.  As of nodes that are crossed; our choice.
_FEW = 4


def cabling_findings(
    network: Network,
    hosts: Collection[str] = (),
    declared: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return findings and notes; of ``hosts`` alone where some are given.

    Hosts that have all rails of ``declared`` (port -> patterns of its switches' names) are held
    against that, all others against each other.  Of ``hosts``, which are to be alike, each is named
    that lacks a rail which the others have: an adapter whose cable is out is on no fabric.

    A host that stands alone against the others is always named.  It is a FAIL where chance gives no
    such order (see ``nodes.topology.cabling``) and two of its own cables are exchanged; where it is
    on switches of other hosts, it is one only among ``hosts``: it may be of another kind.
    """
    chosen = {name.partition(".")[0] for name in hosts}
    kinds: dict[_Kind, list[str]] = defaultdict(list)
    by_site = _with_ports(declared)
    mine: list[str] = []
    shown: dict[str, list[str]] = {}
    for host, adapters in network.hosts.items():
        rails = _rails(network, adapters)
        if chosen and host not in chosen:
            continue
        shown[host] = rails
        if declared and all(not names.isdisjoint(rails) for names in by_site):
            mine.append(host)
        elif len(set(rails)) == len(rails) > 1:
            kinds[tuple(sorted(rails, key=natural))].append(host)
    findings = [*_by_declaration(network, mine, by_site, is_alike=bool(chosen))]
    notes: list[str] = []
    for members in kinds.values():
        cabling = cabling_of(_hangings(network, members))
        if cabling.against and not cabling.is_sure and len(cabling.against) > 1:
            notes.append(_orderless((*cabling.fitting, *(each.node for each in cabling.against))))
            continue
        findings += [
            _named(network, each, cabling, is_alike=bool(chosen)) for each in cabling.against
        ]
        if cabling.fitting and cabling.is_sure:
            sentence = f"the rails of {len(cabling.fitting)} hosts hang where most hosts have them"
            findings.append(passed("cabling", len(cabling.fitting), sentence))
        if cabling.open:
            notes.append(_orderless(cabling.open))
    if chosen:
        findings += _lost(shown, mine, by_site)
    return tuple(findings), tuple(notes)


def _lost(
    shown: Mapping[str, Collection[str]], mine: Collection[str], by_site: Collection[frozenset[str]]
) -> Iterator[Finding]:
    """Yield the hosts of which a rail is not on the fabric, where the others have it.

    Args:
        shown: host that is to be as the others -> its rails.
        mine: those of them that have all rails of the site; where none has, most hosts count.
        by_site: the names that each rail of the site may have.
    """
    if mine:
        others = len(mine)
        lacking = {
            host: [min(names, key=len) for names in by_site if names.isdisjoint(rails)]
            for host, rails in shown.items()
        }
    else:
        whole = Counter(
            frozenset(each)
            for each in shown.values()
            if len(set(each)) == len(each) > 1 and all(each)
        )
        usual, others = whole.most_common(1)[0] if whole else (frozenset[str](), 0)
        lacking = {
            host: sorted(usual.difference(rails), key=natural)
            for host, rails in shown.items()
            if usual.issuperset(rails)
        }
    lost = {host: rails for host, rails in lacking.items() if rails}
    if not mine and _FEW * len(lost) > len(shown):
        return
    for host, rails in lost.items():
        verb, them = ("is", "it") if len(rails) == 1 else ("are", "them")
        where = f"where {others} other {'host has' if others == 1 else 'hosts have'} {them}"
        sentence = f"{host}: {' and '.join(rails)} {verb} not on this fabric, {where}"
        yield unjudged("cabling", Where(node=host), sentence)


def _with_ports(declared: Mapping[str, _Declared]) -> dict[frozenset[str], _Declared]:
    """Return the names that a port has here -> what is declared of it.

    ``mlx5_0:1`` is ``mlx5_0`` where it is the only port.
    """
    found: dict[frozenset[str], _Declared] = {}
    for interface, what in declared.items():
        device, _, port = interface.partition(":")
        names = {f"{device} port {port or 1}", *([device] if port in {"", "1"} else [])}
        found[frozenset(names)] = what
    return found


def links_of_ends(network: Network, declared: Mapping[str, Link]) -> dict[End, Link]:
    """Return the ports of hosts that the site declares a link of their own for.

    Args:
        network: the fabric.
        declared: port of a rail (``mlx5_0:1``) -> its link.
    """
    of_rail = {name: link for names, link in _with_ports(declared).items() for name in names}
    return {
        End(guid=guid, port=port): of_rail[rail]
        for adapters in network.hosts.values()
        for guid in adapters
        for port in range(1, network.nodes[guid].num_ports + 1)
        if (rail := _rail(network, guid, port)) in of_rail
    }


def _by_declaration(
    network: Network,
    hosts: Collection[str],
    declared: Mapping[frozenset[str], tuple[str, ...]],
    *,
    is_alike: bool,
) -> Iterator[Finding]:
    """Yield what the site's own words say of hosts that have all of its rails."""
    patterns = {rail: switches for names, switches in declared.items() for rail in names}
    hangings = list(_hangings(network, hosts))
    names = {each.switch: network.name(each.switch) for each in hangings}
    wrong = by_key((each.hanging.node, each) for each in astray(hangings, patterns, names))
    linked = {(each.node, each.rail) for each in hangings}
    bare = {
        host: [
            rail
            for rail in _rails(network, network.hosts[host])
            if rail in patterns and (host, rail) not in linked
        ]
        for host in hosts
    }
    for host, loose in bare.items():
        if loose:
            yield unjudged(
                "cabling", Where(node=host), f"{host}: {' and '.join(loose)} hangs on no switch"
            )
    good = sum(host not in wrong and not bare[host] for host in hosts)
    if good:
        yield passed("cabling", good, f"the rails of {good} hosts hang where the site declares")
    for host, stray in wrong.items():
        there = set(_rails(network, network.hosts[host]))
        where = "; ".join(
            f"{each.hanging.rail} hangs on {names[each.hanging.switch]}, which the site declares "
            f"for {' and '.join(rail for rail in each.rails if rail in there) or 'no rail'}"
            for each in stray
        )
        is_crossed = len(stray) > 1 and all(each.rails for each in stray)
        sentence = f"{host}: {where}: {'crossed' if is_crossed else _IN_WRONG_SWITCH}"
        if is_crossed or is_alike:
            yield fail("cabling", Where(node=host), sentence)
        else:
            yield unjudged("cabling", Where(node=host), f"{sentence} ({_OTHER_KIND})")


def _orderless(hosts: tuple[str, ...]) -> str:
    return (
        f"the rails of {len(hosts)} hosts hang on their switches in no common order, and "
        f"are not judged: {fold(sorted(hosts, key=natural))}"
    )


def _rails(network: Network, adapters: Collection[str]) -> list[str]:
    return [
        _rail(network, guid, port)
        for guid in adapters
        for port in range(1, network.nodes[guid].num_ports + 1)
    ]


def _rail(network: Network, guid: str, port: int) -> str:
    """Return ``mlx5_0``, ``HCA-1 port 2``; of an adapter without a device's name ``port 2``."""
    node = network.nodes[guid]
    device = " ".join(node.description.split()[1:])
    return f"{device} port {port}".strip() if node.num_ports > 1 else device


def _hangings(network: Network, hosts: Collection[str]) -> Iterator[Hanging]:
    for host in hosts:
        for guid in network.hosts[host]:
            for number in range(1, network.nodes[guid].num_ports + 1):
                far = network.peer_switch(guid, number)
                if far is not None:
                    yield Hanging(node=host, rail=_rail(network, guid, number), switch=far)


def _named(network: Network, each: Against, cabling: Cabling, *, is_alike: bool) -> Finding:
    where = "; ".join(
        f"{wrong.rail} hangs on {network.name(wrong.switch)}, where other hosts have "
        f"{' and '.join(each.others[wrong.switch])}"
        for wrong in each.wrong
    )
    what = "crossed" if each.is_crossed else _IN_WRONG_SWITCH
    doubts = []
    if not cabling.is_sure:
        doubts.append(f"only {len(cabling.fitting)} hosts are cabled alike, which may be chance")
    if not each.is_crossed and not is_alike:
        doubts.append(_OTHER_KIND)
    sentence = f"{each.node}: {where}: {what}"
    if not doubts:
        return fail("cabling", Where(node=each.node), sentence)
    return unjudged("cabling", Where(node=each.node), f"{sentence} ({'; '.join(doubts)})")


def trunk_findings(network: Network) -> Iterator[Finding]:
    """Yield the pairs of switches with fewer cables between them than most of their siblings.

    Of a two-level tree the siblings are all pairs of leaf and spine; of other networks all pairs
    that are joined at all.  Nothing is said where no number is that of more than half of them.
    """
    counts = Counter(_pair(cable.one.end.guid, cable.other.end.guid) for cable in network.trunks)
    siblings = _leaf_and_spine(network, counts) or sorted(counts)
    if not siblings:
        return
    usual, times = Counter(counts[pair] for pair in siblings).most_common(1)[0]
    if 2 * times <= len(siblings):
        return
    for one, other in sorted(siblings, key=lambda pair: tuple(map(network.name, pair))):
        number = counts[one, other]
        if number < usual:
            where = Where(node=network.name(one), peer=network.name(other))
            cables = f"{number} cable{'' if number == 1 else 's'}"
            yield fail(
                "trunks",
                where,
                f"{where}: {cables} where {times} of its sibling pairs have {usual}: "
                "traffic over it is slower, or goes a longer way",
            )


def _leaf_and_spine(network: Network, trunks: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return all pairs of leaf and spine of a two-level tree; none where it is no such tree.

    Hosts are at its lowest level only, and cables between neighbouring levels only.
    """
    with_hosts = {
        far.end.guid
        for cable in network.cables
        for mine, far in ((cable.one, cable.other), (cable.other, cable.one))
        if network.is_switch(far.end.guid)
        and not network.is_switch(mine.end.guid)
        and not network.is_inner(mine.end.guid)
    }
    beside: dict[str, set[str]] = {guid: set() for guid in network.switches}
    for one, other in trunks:
        beside[one].add(other)
        beside[other].add(one)
    levels = steps_from(beside, with_hosts)
    if len(levels) != len(beside) or any(levels[one] == levels[other] for one, other in trunks):
        return []
    if set(levels.values()) != {0, 1}:
        return []
    leaves = [guid for guid, level in levels.items() if level == 0]
    spines = [guid for guid, level in levels.items() if level == 1]
    return [_pair(leaf, spine) for leaf in leaves for spine in spines]


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
