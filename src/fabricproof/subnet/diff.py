"""What changed between two looks at one fabric: cables, hosts, links, managers, counters.  Pure.

A node is known by its GUID, so that new LIDs and new names are no change of cables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabricproof.core.measure import Verdict
from fabricproof.subnet.finding import (
    FabricFinding,
    SubnetResult,
    asked_less,
    complaints,
    counted_in_part,
    fail,
    passed,
    stateless,
)
from fabricproof.subnet.model import Cable, End, Network, NodeKind, Port, PortCounters, SubnetLook
from fabricproof.traffic import ENDS, CounterSample, read_rises

Pair = frozenset[End]

#: counters that ``ibqueryerrors`` prints where they are not zero, as far as their rise is told
_PRINTED = (*ENDS, "VL15_dropped")


def compare_looks(before: SubnetLook, after: SubnetLook) -> SubnetResult:
    """Return what the second look shows that the first did not, and the other way round."""
    old, new = before.network, after.network
    findings: list[FabricFinding] = [*_nodes(old, new)]
    notes: list[str] = [*_new_nodes(old, new)]
    told, added = _cables(old, new)
    findings += told
    notes += added
    findings += _trained(old, new)
    notes += [*_named(old, new), *_managed(before, after)]
    more, said = _counted(before, after)
    findings += more
    notes += said
    findings += [*asked_less(before, after), *complaints(before), *complaints(after)]
    if not before.has_states:  # else it is among what the second look was not asked
        findings += stateless(after, is_declared=True)
    same = len(_pairs(old).keys() & _pairs(new).keys())
    if same:
        findings.append(passed("cables", same, f"{same} cables are where they were"))
    return SubnetResult(findings=tuple(findings), notes=tuple(notes))


def _pairs(network: Network) -> dict[Pair, Cable]:
    return {frozenset((each.one.end, each.other.end)): each for each in network.cables}


def _nodes(old: Network, new: Network) -> Iterator[FabricFinding]:
    lost_hosts = [name for name in old.hosts if not _is_there(name, old, new)]
    for name in lost_hosts:
        yield FabricFinding(
            verdict=Verdict.MISSING,
            quantity="hosts",
            where=name,
            sentence=f"{name} was on the fabric and is no more",
        )
    for guid, node in old.nodes.items():
        host = old.host_of(guid)
        if guid in new.nodes or host in lost_hosts:
            continue
        words = {
            NodeKind.SWITCH: "the switch",
            NodeKind.HOST: "the adapter",
            NodeKind.ROUTER: "the router",
        }[node.kind]
        swapped = f" ({host} has another now)" if host in new.hosts else ""
        sentence = f"{words} {old.name(guid)} (0x{guid}) is gone{swapped}"
        yield fail("nodes", old.name(guid), sentence)


def _is_there(host: str, old: Network, new: Network) -> bool:
    """Tell whether a host of the first look is in the second, under another name too.

    An adapter that lost its host's name (rdma-ndd did not start) is the same host's; one that has
    the name of another old host was put into that.
    """
    return host in new.hosts or any(
        guid in new.nodes and new.host_of(guid) not in old.hosts for guid in old.hosts[host]
    )


def _new_nodes(old: Network, new: Network) -> Iterator[str]:
    for guid in new.nodes:
        if guid not in old.nodes:
            yield f"new: {new.nodes[guid].kind.value.lower()} {new.name(guid)} (0x{guid})"


def _cables(old: Network, new: Network) -> tuple[list[FabricFinding], list[str]]:
    """Return swaps, moves and losses of cables, and the new ones as notes."""
    had, have = _pairs(old), _pairs(new)
    gone = {pair: had[pair] for pair in had if pair not in have}
    come = {pair: have[pair] for pair in have if pair not in had}
    findings: list[FabricFinding] = []
    for finding, olds, news in [*_swaps(old, gone, come)]:
        findings.append(finding)
        for pair in olds:
            gone.pop(pair, None)
        for pair in news:
            come.pop(pair, None)
    for pair, cable in list(gone.items()):
        where = old.between(cable)
        moved = next((each for each in come if each & pair), None)
        if moved is None:
            findings.append(fail("cables", where, _loss(old, new, cable)))
            continue
        there = new.between(come.pop(moved))
        findings.append(fail("cables", where, f"a cable was moved: {where} before, {there} now"))
    return findings, [f"new cable: {new.between(cable)}" for cable in come.values()]


def _swaps(
    old: Network, gone: Mapping[Pair, Cable], come: Mapping[Pair, Cable]
) -> Iterator[tuple[FabricFinding, tuple[Pair, ...], tuple[Pair, ...]]]:
    """Yield two cables whose four ends are paired otherwise now."""
    new_of = {end: pair for pair in come for end in pair}
    done: set[Pair] = set()
    for pair, cable in gone.items():
        far = [new_of[end] for end in sorted(pair) if end in new_of]
        if pair in done or len(far) != 2 or far[0] == far[1]:
            continue
        others = (far[0] | far[1]) - pair
        partner = next((each for each in gone if each == others), None)
        if partner is None or partner in done:
            continue
        done |= {pair, partner}
        one, other = old.between(cable), old.between(gone[partner])
        sentence = f"two cables are swapped: {one}; {other} before, and crosswise now"
        where = f"{one}; {other}"
        yield fail("cables", where, sentence), (pair, partner), (far[0], far[1])


def _loss(old: Network, new: Network, cable: Cable) -> str:
    where = old.between(cable)
    states = [
        f"{old.where(end)} is {port.physical or port.state} now"
        for end in (cable.one.end, cable.other.end)
        if (port := new.ports.get(end)) is not None and port.peer is None
    ]
    return f"{where}: the link is gone" + (f" ({'; '.join(states)})" if states else "")


def _trained(old: Network, new: Network) -> Iterator[FabricFinding]:
    had = _pairs(old)
    for pair, cable in _pairs(new).items():
        if pair not in had:
            continue
        where = new.between(cable)
        ends = ((had[pair].one, cable.one), (had[pair].other, cable.other))
        slower = {
            f"was at {before.words}, is at {after.words}": new.where(after.end)
            for before, after in ends
            if _less(after, before)
        }
        is_whole = len({(before.words, after.words) for before, after in ends}) == 1
        for words, end in slower.items():
            at = where if is_whole else f"{where}: {end}"
            yield fail("link", where, f"{at} {words}")
        for one, other in ends:
            if one.state == "Active" and other.state not in {"", "Active"}:
                yield fail(
                    "state",
                    new.where(other.end),
                    f"{new.where(other.end)} was Active and is {other.state}",
                )
            elif one.physical == "LinkUp" and other.physical not in {"", "LinkUp"}:
                yield fail(
                    "state",
                    new.where(other.end),
                    f"{new.where(other.end)} was LinkUp and is {other.physical}",
                )


def _less(after: Port, before: Port) -> bool:
    one, other = before.link, after.link
    if one is None or other is None:
        return one is not None
    return other.data_rate_gbit_s < one.data_rate_gbit_s


def _named(old: Network, new: Network) -> Iterator[str]:
    both = [guid for guid in old.nodes if guid in new.nodes]
    for guid in both:
        before, after = old.nodes[guid].description, new.nodes[guid].description
        if before != after:
            yield f"0x{guid} was called {before!r}, is called {after!r}"
    lids = [
        new.where(end)
        for end, port in new.ports.items()
        if end in old.ports
        and {port.lid, old.ports[end].lid}.isdisjoint({None, 0})
        and port.lid != old.ports[end].lid
    ]
    if lids:
        yield f"{len(lids)} ports have another LID (first {min(lids)})"
    had = _pairs(old)
    for pair, cable in _pairs(new).items():
        if pair not in had:
            continue
        for one, other in ((had[pair].one, cable.one), (had[pair].other, cable.other)):
            if _less(one, other):
                yield f"{new.between(cable)} was at {one.words}, is at {other.words}: better"
                break


def _managed(before: SubnetLook, after: SubnetLook) -> Iterator[str]:
    if before.managers is None or after.managers is None:
        return
    old = {each.guid for each in before.managers if each.is_master}
    new = {each.guid for each in after.managers if each.is_master}
    if old != new:
        yield (
            f"another subnet manager: {', '.join(f'0x{guid}' for guid in sorted(old)) or 'none'} "
            f"before, {', '.join(f'0x{guid}' for guid in sorted(new)) or 'none'} now"
        )


def _counted(before: SubnetLook, after: SubnetLook) -> tuple[list[FabricFinding], list[str]]:
    """Judge what the counters rose by, as ``counters.py`` judges those of a run."""
    if before.counters is None or after.counters is None:
        which = "first" if before.counters is None else "second"
        return [], [f"no counters in the {which} look: nobody knows whether errors rose"]
    findings = [
        *counted_in_part(before, " in the first look"),
        *counted_in_part(after, " in the second look"),
    ]
    notes: list[str] = []
    compared = 0
    ends = sorted(before.counters.keys() | after.counters.keys())
    for end in ends:
        if end.guid not in after.network.nodes or end.guid not in before.network.nodes:
            continue
        old, new = _known(before, end), _known(after, end)
        names = sorted(old.keys() & new.keys())
        if not names:
            continue
        compared += 1
        where = f"port:{end.port}"
        sample = CounterSample(
            node=after.network.name(end.guid),
            interface=where,
            before={name: old[name] for name in names},
            after={name: new[name] for name in names},
        )
        rises = read_rises([sample], [where])
        place = after.network.where(end)
        findings += [fail("counters", place, sentence) for sentence in rises.errors]
        findings += [
            FabricFinding(
                verdict=Verdict.UNJUDGED, quantity="counters", where=place, sentence=sentence
            )
            for sentence in rises.doubts
        ]
        notes += rises.notes
    if all(look.zero_nodes == look.network.nodes.keys() for look in (before, after)):
        compared = min(before.counted_ports, after.counted_ports)
    good = compared - len({each.where for each in findings if each.where})
    if good > 0:
        findings.append(passed("counters", good, f"{good} ports counted no new errors"))
    return findings, notes


def _known(look: SubnetLook, end: End) -> PortCounters:
    """Return the counters of a port that one look tells, with the zeros that it need not print."""
    assert look.counters is not None
    zeros = dict.fromkeys(_PRINTED, 0) if end.guid in look.zero_nodes else {}
    return {**zeros, **look.counters.get(end, {})}
