"""The verdict on one look at a fabric.  Pure.

A link is judged by what is declared for it, else by the best that both its ends support; a port by
its state; hosts by the list they are expected on; cables between switches by their siblings, those
of hosts by where other hosts have the same rail; the subnet by its managers and LIDs; counters by
whether they still can tell anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fabricproof.core.findings import Finding, Where, as_notes
from fabricproof.core.measure import Verdict
from fabricproof.physics import Link
from fabricproof.subnet.cabling import cabling_findings, links_of_ends, trunk_findings
from fabricproof.subnet.model import Cable, Manager, Network, NodeKind, Port, SubnetLook
from fabricproof.subnet.result import SubnetResult, fail, found, passed, unjudged
from fabricproof.traffic import ENDS, ERROR_COUNTERS, HIGH


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What is declared about a fabric; what is not declared is not judged, or by the fabric itself.

    Attributes:
        link: of every cable, at least; None: what both ends of each support.
        rail_links: port of a rail (``mlx5_0:1``) -> its own link, where the rails are unlike; it
            counts for the cables of hosts, and ``link``, the slowest, for all others.
        hosts: that must be there, by host name.
        switches: port of a rail (``mlx5_0:1``) -> patterns of the names of its switches.
    """

    link: Link | None = None
    rail_links: Mapping[str, Link] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    switches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def judge_look(look: SubnetLook, expected: Expected) -> SubnetResult:
    """Return what is to be said of one look; nothing at all where it shows no cable."""
    network = look.network
    if not network.cables:
        return SubnetResult(findings=())
    findings = [
        *(_links(network, expected) if look.has_states or expected.link else ()),
        *_states(network),
        *_stateless(look, is_declared=expected.link is not None),
        *_lids(network),
        *trunk_findings(network),
        *_hosts(network, expected.hosts),
        *_managers(look.managers),
        *_counters(look),
    ]
    if look.complaints:
        more = f" (and {len(look.complaints) - 1} more)" if len(look.complaints) > 1 else ""
        sentence = f"part of the fabric may not have been seen: {look.complaints[0]}{more}"
        findings.append(unjudged("look", Where(), sentence))
    crossed, orderless = cabling_findings(network, expected.hosts, expected.switches)
    return SubnetResult(
        findings=(*findings, *crossed), notes=as_notes((*orderless, *_notes(look, expected)))
    )


def _links(network: Network, expected: Expected) -> Iterator[Finding]:
    good = 0
    link, own = expected.link, links_of_ends(network, expected.rail_links)
    for cable in network.cables:
        is_inner = any(network.is_inner(port.end.guid) for port in (cable.one, cable.other))
        of_rail = [own[port.end] for port in (cable.one, cable.other) if port.end in own]
        declared = None if is_inner else next(iter(of_rail), link)
        red = _declared(network, cable, declared) if declared else _supported(network, cable)
        if red is None:
            good += 1
        else:
            yield red
    if good:
        by = f"{link.name} or better" if link else "the best that both ends support"
        by = "what the site declares, or better" if own else by
        yield passed("link", good, f"{good} of {len(network.cables)} links are at {by}")


def _declared(network: Network, cable: Cable, link: Link) -> Finding | None:
    """Judge a cable by the declared link; the worse of what its two ends say counts."""
    where = network.between(cable)
    for port in (cable.one, cable.other):
        have = port.link
        if have is None:
            return _unknown(where, port)
        narrow, slow = have.lanes < link.lanes, have.line_rate_gbit_s < link.line_rate_gbit_s
        # Half as many lanes of twice the speed carry the same: HDR 2x where EDR 4x is declared.
        if have.data_rate_gbit_s >= link.data_rate_gbit_s * (1 - 1e-9):
            continue
        what = " and ".join(
            word for word, is_less in (("width", narrow), ("speed", slow)) if is_less
        )
        return fail(
            "link",
            where,
            f"{where} is at {port.words} ({have.data_rate_gbit_s:g} Gb/s), below {link.name} "
            f"({link.data_rate_gbit_s:g} Gb/s), which is declared: {what} trained down; "
            + _mend(narrow=narrow, slow=slow),
        )
    return _torn(network, cable)


def _torn(network: Network, cable: Cable) -> Finding | None:
    """Doubt a cable whose ends say other widths or speeds: one link has one of each."""
    pairs = (cable.one.lanes, cable.other.lanes), (cable.one.speed, cable.other.speed)
    if all(None in pair or pair[0] == pair[1] for pair in pairs):
        return None
    where = network.between(cable)
    return unjudged(
        "link",
        where,
        f"{where}: its ends disagree, {cable.one.words} and {cable.other.words}: it trained anew "
        "during the look, or one end tells wrong; look again",
    )


def _supported(network: Network, cable: Cable) -> Finding | None:
    """Judge a cable by what both its ends support; what is wrong goes before what is not known."""
    where = network.between(cable)
    ports = (cable.one, cable.other)
    for port in ports:
        parts = [
            *([f"width {port.could_lanes}x"] if port.could_lanes else []),
            *([f"speed {port.could_speed}"] if port.could_speed else []),
        ]
        if parts:
            return fail(
                "link",
                where,
                f"{where} is at {port.words}; both ends support {' and '.join(parts)}: "
                + _mend(narrow=port.could_lanes is not None, slow=port.could_speed is not None),
            )
    if (torn := _torn(network, cable)) is not None:
        return torn
    for port in ports:
        if port.could_unnamed:
            return unjudged(
                "link",
                where,
                f"{where} is at {port.words}; both ends support more, which the tool cannot name: "
                "a newer infiniband-diags may, or declare the link",
            )
        if port.link is None:
            return _unknown(where, port)
    return None


def _mend(*, narrow: bool, slow: bool) -> str:
    if narrow and not slow:
        return "a lane of the cable or connector is lost, or the cable is a splitter"
    if slow and not narrow:
        return "cable or transceiver is of a slower kind or damaged, or a setting limits the port"
    return "reseat or replace the cable; ibportstate shows what is enabled"


def _unknown(where: Where, port: Port) -> Finding:
    return unjudged(
        "link",
        where,
        f"{where}: width or speed is not known to the tool ({port.words}): a newer "
        "infiniband-diags may know it",
    )


#: IBA specification vol. 1, 7.2.7: Initialize waits for the subnet manager, Armed for traffic
_WAITS = {
    "Initialize": "no subnet manager has configured it",
    "Armed": "the subnet manager began and did not activate it",
}


def _why(state: str) -> str:
    return _WAITS.get(state, "it carries no traffic")


def _states(network: Network) -> Iterator[Finding]:
    linked = [port for port in network.ports.values() if port.peer is not None]
    read = [port for port in linked if port.state]
    active = [port for port in read if port.state == "Active"]
    waiting = {port.state for port in read}
    if len(read) == len(linked) and len(waiting) == 1 and not active:
        state = waiting.pop()
        yield fail(
            "state",
            Where(),
            f"all {len(linked)} linked ports are {state}, none is Active: {_why(state)}",
        )
        return
    shaky = [port for port in active if port.physical != "LinkUp"]
    for port in shaky:
        # Active, and the link is not up below it.
        where = network.where(port.end)
        is_known = bool(port.physical) and not port.physical.startswith("?")
        told = fail if is_known else unjudged
        yield told(
            "state",
            where,
            f"{where} is Active, and its physical state is {port.physical or 'not known'}, not "
            "LinkUp: the link trains anew; look again, then reseat or replace the cable",
        )
    for cable in network.cables:
        ends = [each for each in (cable.one, cable.other) if each.state not in {"", "Active"}]
        for port in ends[: 1 if len({each.state for each in ends}) == 1 else 2]:
            where = network.between(cable) if len(ends) == 2 else network.where(port.end)
            yield fail(
                "state",
                where,
                f"{where} has a link and is {port.state}, not Active: {_why(port.state)}",
            )
    for port in network.ports.values():
        if port.peer is None and port.state not in {"", "Down"}:
            where = network.where(port.end)
            yield fail(
                "state",
                where,
                f"{where} is {port.state}/{port.physical}, and nothing at its other end answers",
            )
    if good := len(active) - len(shaky):
        yield passed("state", good, f"{good} of {len(linked)} linked ports are Active")


def _lids(network: Network) -> Iterator[Finding]:
    of_lid: dict[int, set[tuple[str, int]]] = defaultdict(set)
    for port in network.ports.values():
        if port.peer is None:
            continue
        is_switch = network.is_switch(port.end.guid)
        if port.lid == 0 and port.state in {"Active", ""}:
            where = network.where(port.end)
            yield fail("lid", where, f"{where} has no LID: no subnet manager has been there")
        if port.lid:
            of_lid[port.lid].add((port.end.guid, 0 if is_switch else port.end.port))
    for lid, whose in sorted(of_lid.items()):
        if len(whose) > 1:
            nodes = [
                network.name(guid) + (f" port {port}" if port else "")
                for guid, port in sorted(whose)
            ]
            names = " and ".join(nodes)
            yield fail(
                "lid",
                Where(nodes=tuple(nodes)),
                f"LID {lid} is given to {names}: two subnet managers are at work",
            )


def _hosts(network: Network, expected: Iterable[str]) -> Iterator[Finding]:
    due = tuple(dict.fromkeys(name.partition(".")[0] for name in expected))
    linked = {port.end.guid for port in network.ports.values() if port.peer is not None}
    there = [name for name in due if not linked.isdisjoint(network.hosts.get(name, ()))]
    for name in due:
        if name in there:
            continue
        how = (
            "has no link: its cable is out"
            if name in network.hosts
            else "not on this fabric: off, its cable out, its driver not loaded, or its adapter's "
            "description is not its host name (rdma-ndd)"
        )
        text = f"{name} is expected and {how}"
        yield found(Verdict.MISSING, "hosts", Where(node=name), text)
    if there:
        yield passed("hosts", len(there), f"{len(there)} of {len(due)} expected hosts are there")


def _managers(managers: tuple[Manager, ...] | None) -> Iterator[Finding]:
    if managers is None:
        return
    masters = [each for each in managers if each.is_master]
    words = {1: "discovering", 2: "standby", 3: "master"}
    named = "; ".join(
        f"LID {each.lid} (0x{each.guid}) {words.get(each.state, 'not active')}, priority "
        f"{each.priority}"
        for each in managers
    )
    if masters and not managers[0].is_master:
        yield fail(
            "manager",
            Where(),
            f"the ports still name LID {managers[0].lid} as their manager, which is no master "
            f"({named}): traps and queries go nowhere; have the master sweep anew",
        )
    elif len(masters) == 1:
        yield passed("manager", 1, f"one master: {named}")
    elif masters:
        yield fail(
            "manager",
            Where(),
            f"{len(masters)} subnet managers are masters of one subnet ({named}): they change "
            "LIDs and routes under each other; stop one",
        )
    else:
        yield fail("manager", Where(), f"no subnet manager is master ({named or 'none at all'})")


def _counters(look: SubnetLook) -> Iterator[Finding]:
    if look.counters is None:
        return
    ended = 0
    for end, values in sorted(look.counters.items()):
        known = end.guid in look.network.nodes
        where = (
            look.network.where(end)
            if known
            else Where(node=f"0x{end.guid}", rail=f"port {end.port}")
        )
        port = look.network.ports.get(end)
        lid = port.lid if port is not None and port.lid else "LID"
        for counter, limit in ENDS.items():
            if values.get(counter) == limit:
                ended += 1
                yield unjudged(
                    "counters",
                    where,
                    f"{counter} of {where} stands at its end ({limit}) and shows no "
                    f"further rise: reset it (perfquery -R {lid} {end.port}) and look again",
                )
    yield from _counted_in_part(look)
    good = look.counted_ports - ended
    if good > 0:
        yield passed("counters", good, f"the counters of {good} ports can be read")


def _counted_in_part(look: SubnetLook) -> Iterator[Finding]:
    """Yield one finding where fewer nodes or ports were asked for counters than there are.

    Who asks for counters gets those of every port of every node; an adapter inside a switch (SHARP)
    need not have any.  Ports alone do not tell: those of switches that nothing is linked to are
    among them, and make up for adapters that nobody asked.
    """
    if look.counters is None:
        return
    linked, nodes = len(look.network.outer_links), len(look.network.nodes)
    if look.counted_ports < linked:
        sentence = f"the counters of {look.counted_ports} ports were read, and {linked} have a link"
    elif look.counted_nodes != nodes:
        sentence = (
            f"the counters of {look.counted_nodes} nodes were read, and ibnetdiscover "
            f"showed {nodes}"
        )
    else:
        return
    told = f"{sentence}: nobody knows what the others counted (ibqueryerrors asks all)"
    yield unjudged("counters", Where(), told)


def _stateless(look: SubnetLook, *, is_declared: bool) -> Iterator[Finding]:
    """Yield what nobody knows of the links where ``iblinkinfo`` was not asked.

    Args:
        look: what was seen.
        is_declared: a link is declared that every cable was held against.
    """
    if look.has_states:
        return
    if not is_declared:
        sentence = (
            "what both ends of the links support was not read (iblinkinfo), and no link is "
            "declared: width and speed were held against nothing (--link 'EDR 4x')"
        )
        yield unjudged("link", Where(), sentence)
    sentence = "whether the links are Active was not read: iblinkinfo -l > iblinkinfo.txt"
    yield unjudged("state", Where(), sentence)


def _notes(look: SubnetLook, expected: Expected) -> Iterator[str]:
    network = look.network
    if expected.rail_links and expected.link is not None:
        rails = ", ".join(f"{rail} {link.name}" for rail, link in expected.rail_links.items())
        yield (
            f"the site's rails are unlike ({rails}): cables of hosts are held against their rail's "
            f"link, all others against {expected.link.name}"
        )
    if expected.hosts:
        due = {name.partition(".")[0] for name in expected.hosts}
        more = [name for name in network.hosts if name not in due]
        if more:
            yield f"not on the list of expected hosts: {', '.join(more)}"
    nameless = [
        guid
        for guid, node in network.nodes.items()
        if node.kind is NodeKind.HOST
        and network.host_of(guid) is None
        and not network.is_inner(guid)
    ]
    if nameless:
        yield (
            f"{len(nameless)} adapters have the factory's description, not their host's name "
            f"(first 0x{min(nameless)}): rdma-ndd sets it"
        )
    disabled = [
        str(network.where(end))
        for end, port in network.ports.items()
        if port.physical == "Disabled"
    ]
    if disabled:
        yield f"disabled by somebody: {', '.join(sorted(disabled))}"
    if look.managers is not None and len(look.managers) == 1:
        yield "no second subnet manager stands by: if this one ends, nothing joins any more"
    for end, values in sorted((look.counters or {}).items()):
        stood = {
            name: value
            for name, value in sorted(values.items())
            if name in ERROR_COUNTERS and value
        }
        if stood and end.guid in network.nodes:
            high = " (high)" if max(stood.values()) >= HIGH else ""
            words = ", ".join(f"{name} {value}" for name, value in stood.items())
            yield f"errors since the counters were reset, {network.where(end)}: {words}{high}"
    yield from (f"not looked at: {what}" for what in look.not_seen)
