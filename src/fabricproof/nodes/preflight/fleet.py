"""The nodes of one partition against each other: cards, cables, addresses."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fabricproof.core.findings import Finding, Where
from fabricproof.core.units import by_key, first_few
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.remarks import network_notes
from fabricproof.nodes.inventory.words import meaning_of, name_of, shown
from fabricproof.nodes.preflight.sight import FLEET, Sight, as_stated, measured, not_known, note
from fabricproof.nodes.topology import Hanging, astray, cabling_of

#: facts of a rail's card in which nodes must be alike unless the site states or allows otherwise
ALIKE = (
    *("model", "type", "psid", "board", "firmware", "driver", "driver_version", "parent", "pcie"),
    *("max_payload_bytes", "fec", "mtu"),
)

#: facts in which being unlike is said and is no verdict; the same of the node
TUNING = ("rings", "queues", "offloads", "pause", "coalescing", "numa_node", "transceiver")
NODE_TUNING = ("kernel", "governor", "tcp_congestion_control", "smt", "irqbalance")

#: less than this is too little for MPI's shared memory and a job's records.  Our choice.
LEAST_FREE_BYTES = 16 << 20

Groups = dict[Value, tuple[str, ...]]


def group(values: Mapping[str, Value | None]) -> Groups:
    """Return value -> the nodes that have it, the most common first; unknown ones are left out."""
    known = {node: value for node, value in values.items() if value is not None}
    order = [value for value, _ in Counter(known.values()).most_common()]
    return {value: tuple(n for n in known if known[n] == value) for value in order}


def minority(groups: Groups) -> tuple[str, ...]:
    """Return the nodes that have not the most common value; all of them if none is."""
    sizes = [len(nodes) for nodes in groups.values()]
    start = 0 if sizes[:1] == sizes[1:2] else 1
    return tuple(node for nodes in list(groups.values())[start:] for node in nodes)


def judge_fleet(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield one finding: the cards of a rail are alike on all nodes, or in what they are not."""
    if len(sights) < 2:
        return
    wanted = sights[0].wanted
    settled = _stated(sights[0]) | set(wanted.expect.mixed)
    unlike = {fact: _groups(fact, sights) for fact in ALIKE if fact not in settled}
    unlike = {fact: groups for fact, groups in unlike.items() if len(groups) > 1}
    odd = sorted({node for groups in unlike.values() for node in minority(groups)})
    reason, brief = f"{wanted.rail} is alike on {len(sights)} nodes", ""
    if unlike:
        words = "; ".join(_words(fact, groups) for fact, groups in unlike.items())
        reason = f"mixed fleet on {wanted.rail}: {words}"
        facts = ", ".join(map(name_of, unlike))
        brief = f"mixed fleet on {wanted.rail}: {facts} of {first_few(odd)} not as elsewhere"
    nodes = odd or [each.machine.node for each in sights]
    where, origin = Where(rail=wanted.rail, nodes=tuple(nodes)), "nodes of one partition are alike"
    alike = (len(sights) - len(odd), len(sights))
    yield measured(where, FLEET, reason, *alike, "1", origin, brief=brief)


def _stated(sight: Sight) -> set[str]:
    """Return the facts that are judged by what the site states."""
    expect, wanted = sight.wanted.expect, sight.wanted
    facts = {
        name
        for name in ("model", "psid", "firmware", "driver", "driver_version", "fec")
        if getattr(expect, name) is not None
    }
    also = {"model": "type", "psid": "board"}
    facts |= {other for name, other in also.items() if name in facts}
    settled = {
        "mtu": wanted.mtu,
        "pcie": wanted.physics.slot,
        "max_payload_bytes": wanted.physics.max_payload_bytes,
    }
    return facts | {name for name, value in settled.items() if value is not None}


def _groups(fact: str, sights: Sequence[Sight]) -> Groups:
    values = {each.machine.node: (each.facts or {}).get(fact) for each in sights}
    if fact == "firmware" and any(value is not None for value in values.values()):
        # A driver that names none on one node and some on another is a difference, if both nodes
        # were asked: nothing hindered ethtool.
        for each in sights:
            was_asked = not any(
                trouble.is_of_all or (trouble.tool == "ethtool" and "-m" not in trouble.command)
                for trouble in each.machine.troubles
            )
            if values[each.machine.node] is None and was_asked:
                values[each.machine.node] = "none"
    return group(values)


def _words(fact: str, groups: Groups) -> str:
    """Return ``firmware 20.41 on vc1, vc3 (2 of 4), 20.35 on vc2``, and what it may mean."""
    total = sum(map(len, groups.values()))
    named = [
        f"{shown(fact, value)} on {first_few(nodes)} ({len(nodes)} of {total})"
        for value, nodes in groups.items()
    ]
    first, second = list(groups)[:2]
    meaning = meaning_of(fact, first, second, (first_few(groups[first]), first_few(groups[second])))
    return f"{name_of(fact)} {', '.join(named)}" + (f": {meaning}" if meaning else "")


def fleet_notes(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield what is unlike between nodes and is no verdict; what is allowed to be is said too."""
    for wanted in [each.wanted for each in sights[:1]]:
        for fact in (*TUNING, *(each for each in ALIKE if each in wanted.expect.mixed)):
            groups = _groups(fact, sights)
            if fact not in wanted.expect.tuning and len(groups) > 1:
                text = f"{wanted.rail} is unlike between nodes: {_words(fact, groups)}"
                yield Finding(where=Where(rail=wanted.rail), text=text)
    made_up = {
        str(facts["rate_in_sysfs"]): each.wanted.rail
        for each in sights
        if (facts := each.facts) and each.is_soft and "rate_in_sysfs" in facts
    }
    for rate, rail in made_up.items():
        why = "which the kernel makes up for a software device: not judged"
        yield Finding(where=Where(rail=rail), text=f"{rail} says {rate!r} in sysfs, {why}")


def node_notes(machines: Sequence[Machine]) -> Iterator[Finding]:
    """Yield in what nodes are unlike, whose IP networks overlap, and where a disk is full."""
    overlaps = by_key(
        (each.where.rail, each) for machine in machines for each in network_notes(machine)
    )
    for first, *others in overlaps.values():
        nodes = [each.where.node for each in others]
        more = f"; likewise on {first_few(nodes)}" if others else ""
        yield Finding(where=Where(node="" if others else first.where.node), text=first.text + more)
    for fact in NODE_TUNING:
        values: dict[str, Value | None] = {
            each.node: {**each.facts.get("tuning", {}), **each.facts.get("node", {})}.get(fact)
            for each in machines
        }
        if len(groups := group(values)) > 1:
            yield Finding(text=f"nodes are unlike: {_words(fact, groups)}")


def shared_wires(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield a red finding for each software rail of one node that shares its interface."""
    for parent, those in by_key((each.parent, each) for each in sights if each.is_soft).items():
        for sight in those if parent and len(those) > 1 else ():
            rails = " and ".join(each.wanted.rail for each in those)
            brief = f"{rails} on {sight.machine.node} are over one interface"
            reason = (
                f"{brief}: {parent} below them carries all their bytes, which are no number of "
                f"{len(those)} rails; make each device over an interface of its own"
            )
            origin = f"site: {len(sights)} rails"
            found = as_stated(sight, "wire", reason, fits=False, origin=origin, brief=brief)
            # It blames no card.
            where = Where(rail=sight.wanted.rail, nodes=(sight.machine.node,))
            yield replace(found, where=where)


def judge_addresses(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield each address of a rail that two nodes own, or at which another machine answers.

    A peer's neighbour table says which hardware address answered.  If it is another node's, the
    traffic goes there; a stranger's may be a switch's or cloud's proxy ARP.
    """
    owned = by_key(
        (address.partition("/")[0], each)
        for each in sights
        for address in str((each.facts or {}).get("addresses", "")).split()
    )
    origin = "an address has one owner"
    at = {_tail(mac): e.machine.node for e in sights for mac in e.machine.now.macs.values()}
    for address, owners in owned.items():
        nodes = list(dict.fromkeys(each.machine.node for each in owners))
        text = f"{address} belongs to {' and '.join(nodes)}"
        for each in owners if len(nodes) > 1 else ():
            reason = f"{each.words}: {text}: what is sent to one may reach the other"
            yield as_stated(each, "address", reason, fits=False, origin=origin, brief=text)
        own = {_tail(mac) for mac in owners[0].machine.now.macs.values()}
        for each in sights if len(nodes) == 1 and own else ():
            key = f"{each.part.partition(' ')[2]} {address}"
            heard = _tail(each.machine.now.neighbours.get(key, ""))
            if not heard or heard in own or each.machine.node in nodes:
                continue
            other = at.get(heard)
            text = f"{each.words} finds {address} of {nodes[0]} at {other or heard}"
            reason = f"{text}: another machine answers for it (ip neigh, arping -D)"
            found = as_stated(each, "address", reason, fits=False, origin=origin, brief=text)
            if other is None:
                found = not_known(each, "address", f"{reason}; a proxy, or an address given twice")
            yield replace(
                found, where=Where(rail=each.wanted.rail, nodes=(each.machine.node, *nodes))
            )


def exchanged_addresses(of_rails: Sequence[Sequence[Sight]]) -> Iterator[Finding]:
    """Yield a red finding for each rail of a node with an address of another rail's network.

    A rail's network is that of most nodes; if each node has one of its own, nothing is said.
    """
    usual: dict[str, str] = {}  # network -> rail
    for sights in of_rails:
        counts = Counter(network for each in sights for network in _networks(each))
        for network, count in counts.most_common(1):
            if count > 1 and 2 * count > len(sights):
                usual[network] = sights[0].wanted.rail
    for each in (each for sights in of_rails for each in sights):
        mine = {usual.get(network) for network in _networks(each)}
        others = sorted(mine - {None, each.wanted.rail}, key=str)
        if others and each.wanted.rail not in mine and each.wanted.rail in usual.values():
            text = f"{each.words} has an address of {others[0]}'s network"
            reason = f"{text}: addresses of two rails are exchanged, or its cables are"
            origin = "the network of most nodes"
            yield as_stated(each, "address", reason, fits=False, origin=origin, brief=text)


def _networks(sight: Sight) -> set[str]:
    words = str((sight.facts or {}).get("addresses", "")).split()
    return {str(ipaddress.ip_interface(each).network) for each in words}


def _tail(mac: str) -> str:
    """Return a MAC address, of an IPoIB address the GUID: flags and queue pair may differ."""
    return mac.lower()[-23:]


def judge_sizes(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield a red finding for each rail over which small packets pass and full-size ones do not."""
    for each in sights:
        for ping, size in each.machine.now.pings.items():
            name, peer, largest = ping.split()
            if size == "small" and name == each.part.partition(" ")[2]:
                text = f"{each.words} loses packets of {largest} bytes to {peer} and back"
                reason = f"{text}, small ones pass: the MTU of a switch port between them is less"
                found = as_stated(
                    each, "path_mtu", reason, fits=False, origin="the ends' MTU", brief=text
                )
                where = Where(rail=each.wanted.rail, nodes=(each.machine.node, peer))
                yield replace(found, where=where)


def judge_room(machines: Sequence[Machine], rail: str) -> Iterator[Finding]:
    """Yield a red finding for each folder of a node in which nearly nothing can be written."""
    for machine in machines:
        for folder, free in machine.now.free_bytes.items():
            if free < LEAST_FREE_BYTES:
                text = f"{folder} of {machine.node} is full"
                reason = f"{text}: {free >> 20} MiB are free, where MPI and the job's records write"
                where, origin = Where(node=machine.node, rail=rail), "what a job writes"
                yield measured(where, "room", reason, free, LEAST_FREE_BYTES, "B", origin)


def cabling(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield findings and notes on the switches that the nodes' rails hang on; LLDP says where.

    The rule is that of ``subnet check`` (``nodes.topology.cabling``).  The nodes of a job are
    alike, so that a rail in the wrong switch is a FAIL too; if few nodes say so it is a note.
    If the site declares the switches of all rails, its word counts in place of the majority.
    """
    where: dict[tuple[str, str], Sight] = {}
    hangings, names, titles = [], dict[str, str](), dict[str, str]()
    for each in sights:
        facts = each.facts or {}
        if switch := str(facts.get("switch_id", "")):
            hanging = Hanging(node=each.machine.node, rail=each.wanted.rail, switch=switch)
            hangings.append(hanging)
            where[hanging.node, hanging.rail] = each
            name = str(facts.get("switch", ""))
            # several may have the same name, none the same id
            titles[switch] = f"{name} ({switch})" if name else switch
            names |= {switch: name} if name else {}
    declared = {each.wanted.rail: tuple(each.wanted.spec.switches) for each in where.values()}
    if declared and all(declared.values()):
        # A switch that tells no name may be the declared one.
        for stray in astray([each for each in hangings if each.switch in names], declared, names):
            sight = where[stray.hanging.node, stray.hanging.rail]
            reason = (
                f"{sight.words} is in the wrong switch: it hangs on {titles[stray.hanging.switch]},"
                f" which the site declares for {' and '.join(stray.rails) or 'no rail'} (LLDP)"
            )
            yield as_stated(sight, "cabling", reason, fits=False, origin="the site's rails")
        return
    found = cabling_of(hangings)
    few = f"; {len(found.fitting)} nodes are cabled alike, too few to judge"
    for against in found.against:
        for wrong in against.wrong:
            what = "crossed" if against.is_crossed else "in the wrong switch"
            sight, others = where[against.node, wrong.rail], against.others[wrong.switch]
            reason = (
                f"{sight.words} is {what}: it hangs on {titles[wrong.switch]}, where other nodes "
                f"have {' and '.join(others)} (LLDP)"
            )
            if found.is_sure:
                yield as_stated(sight, "cabling", reason, fits=False, origin="most nodes' rails")
            elif len(found.against) == 1:
                yield note(sight, reason + few)
