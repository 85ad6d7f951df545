"""What machines say against themselves: parts below their best, far cards, subnets, IP networks.

A port gets its LID from the subnet manager, which programs the GID prefix and its own LID too (IBA
specification vol. 1, 14.2.5.6 PortInfo: LID, MasterSMLID, GidPrefix); a port that waits for one
stays in INIT.  Networks that do not meet need prefixes of their own: Open MPI takes ports of one
prefix for ports that reach each other, and warns where a node has several (its FAQ, "I'm getting
lots of errors with multiple ports on the same host", and source document 000).

Linux owns addresses by host and not by interface: where the networks of two interfaces overlap,
it answers ARP for either on both (ip-sysctl.rst, ``arp_ignore`` and ``arp_filter``) and sends by
the route with the longest prefix, so that a rail's traffic may take the other one.  Pure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice

from fabricproof.core.findings import Finding, Where
from fabricproof.core.hostlist import cpus_of
from fabricproof.core.units import by_key, digits_of
from fabricproof.nodes.inventory.facts import Machine, Value, slot_of

#: what every subnet has unless its manager is told otherwise (IBA specification vol. 1, 4.1.1)
DEFAULT_PREFIX = "fe80:0000:0000:0000"


def subnet_notes(machine: Machine) -> Iterator[str]:
    """Yield what an administrator should know of the subnets that a node's ports are on.

    RoCE has no subnet manager.  A LID is 0 where no manager has been there; what nobody read is
    not guessed.
    """
    ports = {
        part.removeprefix("port "): facts
        for part, facts in machine.facts.items()
        if part.startswith("port ") and facts.get("layer") == "InfiniBand"
    }
    live: dict[str, list[tuple[str, int | None, int | None]]] = {}
    for name, facts in ports.items():
        state, manager = str(facts.get("state", "")), _whole(facts.get("sm_lid"))
        if "INIT" in state or ("ACTIVE" in state and manager == 0):
            yield (
                f"{name} on {machine.node} has a link and no subnet manager: start opensm on one "
                "node (systemctl enable --now opensm), or the switch's own"
            )
        if "ACTIVE" in state:
            port = (name, manager, _whole(facts.get("lid")))
            live.setdefault(str(facts.get("gid_prefix", "")), []).append(port)
    for prefix, of_prefix in sorted(live.items()):
        managers = by_key((manager, name) for name, manager, _ in of_prefix if manager)
        names = " and ".join(name for name, _, _ in of_prefix)
        if prefix and len(managers) > 1:
            words = "; ".join(f"LID {lid}: {', '.join(of)}" for lid, of in sorted(managers.items()))
            yield (
                f"GID prefix {prefix} on {machine.node} has {len(managers)} subnet managers "
                f"({words}): networks that do not meet need prefixes of their own (subnet_prefix "
                "in opensm.conf), or MPI takes them for one"
            )
        lids = by_key(((manager, lid), name) for name, manager, lid in of_prefix if lid)
        for (_, lid), of_lid in lids.items():
            if len(of_lid) > 1:
                yield (
                    f"LID {lid} is given to {' and '.join(of_lid)} on {machine.node}: they are on "
                    "networks that do not meet, or two managers are at work"
                )
        known = {manager for _, manager, _ in of_prefix}
        if prefix and len(of_prefix) > 1 and len(known) == 1 and None not in known:
            default = ", the default" if prefix == DEFAULT_PREFIX else ""
            yield (
                f"{names} on {machine.node} share GID prefix {prefix}{default}, and one subnet "
                "manager: rails of one subnet; Open MPI's warning of more than one active port "
                "with the same GID prefix is harmless here (btl_openib_warn_default_gid_prefix=0)"
            )


def _whole(value: Value | None) -> int | None:
    """Return a LID as sysfs prints it: ``0x1`` or ``1``."""
    try:
        return int(str(value), 0)
    except ValueError:
        return None


#: what the kernel gives as the distance of a NUMA node to itself (ACPI specification, SLIT)
OWN_DISTANCE = 10


def notes(machine: Machine) -> tuple[Finding, ...]:
    """Return a note on each part that does less than it is able to, and on the node's networks."""
    below = (
        Finding(where=Where(node=machine.node, rail=part.split()[-1]), text=f"{part}: {sentence}")
        for part, facts in machine.facts.items()
        for sentence in _below(facts)
    )
    subnets = (
        Finding(where=Where(node=machine.node), text=sentence) for sentence in subnet_notes(machine)
    )
    return (*below, *subnets, *network_notes(machine))


def network_notes(machine: Machine) -> Iterator[Finding]:
    """Yield each two interfaces of a node whose IP networks overlap; their names are the rail."""
    found = {
        part.removeprefix("interface "): _networks(str(facts.get("addresses", "")))
        for part, facts in machine.facts.items()
        if part.startswith("interface ")
    }
    for (one, ours), (other, theirs) in combinations(found.items(), 2):
        both = ((a, b) for a in ours for b in theirs if a.network.overlaps(b.network))
        for here, there in islice(both, 1):
            text = (
                f"{one} ({here}) and {other} ({there}) on {machine.node} are in IP networks "
                "that overlap: the kernel may send over either, whichever a program asks for; give "
                "each rail a network of its own"
            )
            yield Finding(where=Where(node=machine.node, rail=f"{one}+{other}"), text=text)


def _networks(addresses: str) -> list[ipaddress.IPv4Interface]:
    """Read ``10.0.0.1/24 10.1.0.1/16``; addresses without a network of their own are left out."""
    found = []
    for word in addresses.split():
        try:
            each = ipaddress.IPv4Interface(word)
        except ValueError:
            continue
        if not (each.is_link_local or each.is_loopback) and each.network.num_addresses > 1:
            found.append(each)
    return found


def _below(facts: Mapping[str, Value]) -> Iterator[str]:
    now, able = slot_of(facts.get("pcie")), slot_of(facts.get("pcie_best"))
    above = slot_of(facts.get("pcie_best_of_slot"))
    if now and able and now.raw_mb_s < able.raw_mb_s:
        why = "the slot can no more" if above and above.raw_mb_s <= now.raw_mb_s else ""
        why = why or "narrow slot or riser, or the card sits badly"
        yield f"trained to {now.name}, the card is able to {able.name}: {why}"
    speed, best = facts.get("speed_mbit_s"), facts.get("speed_best_mbit_s")
    if isinstance(speed, int) and isinstance(best, int) and speed < best:
        yield f"link at {speed} of {best} Mb/s: cable, transceiver or the other end"


@dataclass(frozen=True, kw_only=True)
class CardDistance:
    """How far a card is from the CPUs of a rank.

    Attributes:
        part: ``interface ib0``, ``port mlx5_0:1``.
        spread: the kernel's distances from the rank's NUMA nodes to it, sorted; none where it
            does not give them.
        is_far: some CPUs of the rank lie on another NUMA node.
    """

    part: str
    numa_node: int
    spread: tuple[int, ...]
    is_far: bool

    @property
    def place(self) -> str:
        """The card's NUMA node and its distance, for people."""
        word = "far" if self.is_far else "near"
        ends = dict.fromkeys((*self.spread[:1], *self.spread[-1:]))
        known = " to ".join(map(str, ends))
        said = f"{known} ({word})" if known else f"not known, {word}"
        return f"NUMA node {self.numa_node}: distance {said}"


def distances(machine: Machine, cpus: str) -> tuple[CardDistance, ...]:
    """Return how far each card is from a rank that may run on ``cpus``, where that matters.

    ``cpus`` are as the kernel lists them, ``0-3,8``; ``unknown`` says nothing.
    """
    nodes = {
        int(found[1]): facts
        for part, facts in machine.facts.items()
        if (found := re.fullmatch(r"numa node(\d{1,9})", part))
    }
    ours = cpus_of(cpus) or frozenset()
    mine = {
        number
        for number, facts in nodes.items()
        if ours & (cpus_of(str(facts.get("cpus", ""))) or frozenset())
    }
    if len(nodes) < 2 or not mine:
        return ()
    return tuple(
        _distance(part, nodes, mine, place)
        for part, facts in machine.facts.items()
        if isinstance(place := facts.get("numa_node"), int) and place in nodes
    )


def _distance(
    part: str, nodes: Mapping[int, Mapping[str, Value]], mine: Iterable[int], place: int
) -> CardDistance:
    """Return how far a part on NUMA node ``place`` is from the NUMA nodes ``mine``."""
    order = sorted(nodes)
    found = set()
    for number in mine:
        row = [digits_of(each) for each in str(nodes[number].get("distance", "")).split()]
        if len(row) == len(order) and (far := row[order.index(place)]) is not None:
            found.add(far)
    is_far = max(found) > OWN_DISTANCE if found else place not in mine
    return CardDistance(part=part, numa_node=place, spread=tuple(sorted(found)), is_far=is_far)
