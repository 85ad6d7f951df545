"""Rails cabled crosswise: a host's first adapter where other hosts have their second.  Pure.

A rail is the adapter that a host's description names (``n017 mlx5_0``), and of adapters with
several ports each port.  Adapters without such a name are not compared: the order of GUIDs is that
of the factory, not of the slots.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from fabricproof.core.measure import Verdict
from fabricproof.core.units import natural
from fabricproof.nodes.topology import Against, Cabling, Hanging, cabling_of, fold
from fabricproof.subnet.finding import FabricFinding, fail, passed
from fabricproof.subnet.model import Network

#: rails of a host: those of hosts with other adapters are no measure for it
_Kind = tuple[str, ...]


def cabling_findings(
    network: Network, hosts: Collection[str] = ()
) -> tuple[tuple[FabricFinding, ...], tuple[str, ...]]:
    """Return findings and notes; of ``hosts`` alone where some are given.

    A host that stands alone against the others is always named.  It is a FAIL where chance gives no
    such order (see ``nodes.topology.cabling``) and two of its own cables are exchanged; where it is
    on switches of other hosts, it is one only among ``hosts``: it may be of another kind.
    """
    chosen = {name.partition(".")[0] for name in hosts}
    kinds: dict[_Kind, list[str]] = defaultdict(list)
    for host, adapters in network.hosts.items():
        rails = _rails(network, adapters)
        if len(set(rails)) == len(rails) > 1 and (not chosen or host in chosen):
            kinds[tuple(sorted(rails, key=natural))].append(host)
    findings: list[FabricFinding] = []
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
    return tuple(findings), tuple(notes)


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


def _named(network: Network, each: Against, cabling: Cabling, *, is_alike: bool) -> FabricFinding:
    where = "; ".join(
        f"{wrong.rail} hangs on {network.name(wrong.switch)}, where other hosts have "
        f"{' and '.join(each.others[wrong.switch])}"
        for wrong in each.wrong
    )
    what = "crossed" if each.is_crossed else "a cable in the wrong switch"
    doubts = []
    if not cabling.is_sure:
        doubts.append(f"only {len(cabling.fitting)} hosts are cabled alike, which may be chance")
    if not each.is_crossed and not is_alike:
        doubts.append("or a host of another kind: --hosts names those that are alike")
    sentence = f"{each.node}: {where}: {what}"
    if not doubts:
        return fail("cabling", each.node, sentence)
    return FabricFinding(
        verdict=Verdict.UNJUDGED,
        quantity="cabling",
        where=each.node,
        sentence=f"{sentence} ({'; '.join(doubts)})",
    )
