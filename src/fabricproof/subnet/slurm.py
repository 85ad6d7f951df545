"""Where Slurm's topology and the cables disagree.  Pure.

Slurm's switches need not have the names of the real ones, so names are not compared: hosts that
Slurm puts on one leaf must share a switch, hosts of two leaves must not be on the same, and the
number of switches between hosts must be what Slurm counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key
from fabricproof.nodes.topology import Shape, Topology
from fabricproof.subnet.finding import FabricFinding, fail, passed
from fabricproof.subnet.model import Network
from fabricproof.subnet.shape import Hops

_Switches = frozenset[str]

#: Up to so many leaves the distance of every two is compared, beyond that of each to the first: a
#: thousand leaves have half a million pairs.  Our choice.
_ALL_PAIRS = 64


def slurm_findings(
    network: Network, topology: Topology
) -> tuple[tuple[FabricFinding, ...], tuple[str, ...]]:
    """Return findings and notes of the comparison.

    A leaf's switches are those that most of its hosts are linked to; a host that is linked to
    others is the one that is named.
    """
    if topology.shape is Shape.FLAT:
        return (), ("Slurm knows no topology: every host is as near as any other to it",)
    leaves = by_key((topology.leaf(name), name) for name in topology.nodes)
    usual = {leaf: _usual(network, hosts) for leaf, hosts in leaves.items()}
    findings = [*_absent(network, topology), *_strangers(network, leaves, usual)]
    findings += _merged(network, usual)
    findings += _distances(network, topology, leaves, usual)
    held = [name for name in topology.nodes if name.partition(".")[0] in network.hosts]
    if held and not any(each.verdict is Verdict.FAIL for each in findings):
        sentence = f"Slurm places {len(held)} hosts as their cables do"
        findings.append(passed("slurm", len(held), sentence))
    known = {name.partition(".")[0] for name in topology.nodes}
    more = [name for name in network.hosts if name not in known]
    notes = (f"not in Slurm's topology: {', '.join(more)}",) if more else ()
    return tuple(findings), notes


def _switches_of(network: Network, name: str) -> _Switches:
    return network.leaves_of.get(name.partition(".")[0], frozenset())


def _usual(network: Network, hosts: list[str]) -> _Switches:
    """Return the switches of most hosts; of equal numbers the first, so that order is nothing."""
    counts = Counter(filter(None, (_switches_of(network, name) for name in hosts)))
    return min(counts, key=lambda each: (-counts[each], sorted(each)), default=frozenset())


def _names(network: Network, switches: _Switches) -> str:
    return " and ".join(sorted(map(network.name, switches)))


def _absent(network: Network, topology: Topology) -> Iterator[FabricFinding]:
    for name in topology.nodes:
        if name.partition(".")[0] not in network.hosts:
            yield FabricFinding(
                verdict=Verdict.MISSING,
                quantity="slurm",
                where=name,
                sentence=f"Slurm's topology has {name}, and this fabric has no such host",
            )


def _strangers(
    network: Network, leaves: Mapping[str, list[str]], usual: Mapping[str, _Switches]
) -> Iterator[FabricFinding]:
    for leaf, hosts in leaves.items():
        for name in hosts:
            mine = _switches_of(network, name)
            if not mine or mine == usual[leaf]:
                continue
            if mine < usual[leaf]:
                lost = _names(network, usual[leaf] - mine)
                yield fail("slurm", name, f"{name} has no link to {lost}, as the others of {leaf}")
                continue
            yield fail(
                "slurm",
                name,
                f"Slurm puts {name} on {leaf}, whose hosts are cabled to "
                f"{_names(network, usual[leaf])}; {name} is cabled to {_names(network, mine)}",
            )


def _merged(network: Network, usual: Mapping[str, _Switches]) -> Iterator[FabricFinding]:
    found = by_key((switches, leaf) for leaf, switches in usual.items() if switches)
    for switches, leaves in found.items():
        if len(leaves) > 1:
            yield fail(
                "slurm",
                ", ".join(leaves),
                f"Slurm has {' and '.join(leaves)}, and the hosts of all are cabled to "
                f"{_names(network, switches)}: nearer than Slurm thinks",
            )


def _distances(
    network: Network,
    topology: Topology,
    leaves: Mapping[str, list[str]],
    usual: Mapping[str, _Switches],
) -> Iterator[FabricFinding]:
    """Compare the switches between one host of each two leaves (see :data:`_ALL_PAIRS`)."""
    if topology.shape is Shape.BLOCK:
        return
    hops = Hops(network=network)
    ones = {
        leaf: next(
            (name for name in sorted(hosts) if _switches_of(network, name) == usual[leaf]), None
        )
        for leaf, hosts in leaves.items()
        if usual[leaf]
    }
    names = [(leaf, name) for leaf, name in sorted(ones.items()) if name is not None]
    for number, (leaf, one) in enumerate(names if len(names) <= _ALL_PAIRS else names[:1]):
        for other_leaf, other in names[number + 1 :]:
            told = topology.hops(one, other)
            seen = hops.between(one.partition(".")[0], other.partition(".")[0])
            if told != seen and usual[leaf] != usual[other_leaf]:
                yield fail(
                    "slurm",
                    f"{leaf} - {other_leaf}",
                    f"from {one} ({leaf}) to {other} ({other_leaf}) Slurm counts "
                    f"{_count(told)}, the cables {_count(seen)}",
                )


def _count(hops: int | None) -> str:
    if hops is None:
        return "no way"
    return f"{hops} switch{'' if hops == 1 else 'es'}"
