"""What machines say against themselves: parts below their best, far cards, subnets, IP networks.

A port gets its LID from the subnet manager, which programs the GID prefix and its own LID too (IBA
specification vol. 1, 14.2.5.6 PortInfo: LID, MasterSMLID, GidPrefix); a port that waits for one
stays in INIT.  Networks that do not meet need prefixes of their own: Open MPI takes ports of one
prefix for ports that reach each other, and warns if a node has several (its FAQ, "I'm getting
lots of errors with multiple ports on the same host", and source document 000).

Linux owns addresses by host and not by interface: if the networks of two interfaces overlap, it
answers ARP for either on both (ip-sysctl.rst, ``arp_ignore`` and ``arp_filter``) and sends by the
route with the longest prefix, so that a rail's traffic may take the other one.  Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice

from fabricproof.core.findings import Finding, Where
from fabricproof.core.hostlist import cpus_of
from fabricproof.core.units import by_key, digits_of
from fabricproof.nodes.inventory.facts import Machine, Value, slot_of

#: what every subnet has unless its manager is told otherwise (IBA specification vol. 1, 4.1.1)
DEFAULT_PREFIX = "fe80:0000:0000:0000"

#: what the kernel gives as the distance of a NUMA node to itself (ACPI specification, SLIT)
OWN_DISTANCE = 10


def notes(machine: Machine) -> tuple[Finding, ...]:
    """Return a note on each part that does less than it is able to, and on the node's networks."""
    below = (
        Finding(where=Where(node=machine.node, rail=part.split()[-1]), text=f"{part}: {sentence}")
        for part, facts in machine.facts.items()
        for sentence in _below(facts)
    )
    where = Where(node=machine.node)
    subnets = (Finding(where=where, text=sentence) for sentence in subnet_notes(machine))
    return (*below, *subnets, *network_notes(machine))


def _below(facts: Mapping[str, Value]) -> Iterator[str]:
    slots = (slot_of(facts.get(name)) for name in ("pcie", "pcie_best", "pcie_best_of_slot"))
    now, able, above = slots
    if now and able and now.raw_mb_s < able.raw_mb_s:
        is_narrow = above is not None and above.raw_mb_s <= now.raw_mb_s
        why = (
            "the slot can no more" if is_narrow else "narrow slot or riser, or the card sits badly"
        )
        yield f"trained to {now.name}, the card is able to {able.name}: {why}"
    speed, best = facts.get("speed_mbit_s"), facts.get("speed_best_mbit_s")
    if isinstance(speed, int) and isinstance(best, int) and speed < best:
        yield f"link at {speed} of {best} Mb/s: cable, transceiver or the other end"


def subnet_notes(machine: Machine) -> Iterator[str]:
    """Yield what an administrator should know of the subnets that a node's ports are on.

    RoCE has no subnet manager.  A LID is 0 if no manager has been there; what nobody read is not
    guessed.
    """
    live: dict[str, list[tuple[str, int | None, int | None]]] = {}
    for part, facts in machine.facts.items():
        if not part.startswith("port ") or facts.get("layer") != "InfiniBand":
            continue
        name = part.partition(" ")[2]
        state, manager = str(facts.get("state", "")), _lid(facts.get("sm_lid"))
        if "INIT" in state or ("ACTIVE" in state and manager == 0):
            yield (
                f"{name} on {machine.node} has a link and no subnet manager: start opensm on one "
                "node (systemctl enable --now opensm), or the switch's own"
            )
        if "ACTIVE" in state:
            port = (name, manager, _lid(facts.get("lid")))
            live.setdefault(str(facts.get("gid_prefix", "")), []).append(port)
    for prefix, ports in sorted(live.items()):
        managers = by_key((manager, name) for name, manager, _ in ports if manager)
        if prefix and len(managers) > 1:
            words = "; ".join(f"LID {lid}: {', '.join(of)}" for lid, of in sorted(managers.items()))
            yield (
                f"GID prefix {prefix} on {machine.node} has {len(managers)} subnet managers "
                f"({words}): networks that do not meet need prefixes of their own (subnet_prefix "
                "in opensm.conf), or MPI takes them for one"
            )
        lids = by_key(((manager, lid), name) for name, manager, lid in ports if lid)
        for (_, lid), names in lids.items():
            if len(names) > 1:
                yield (
                    f"LID {lid} is given to {' and '.join(names)} on {machine.node}: they are on "
                    "networks that do not meet, or two managers are at work"
                )
        known = {manager for _, manager, _ in ports}
        if prefix and len(ports) > 1 and len(known) == 1 and None not in known:
            default = ", the default" if prefix == DEFAULT_PREFIX else ""
            yield (
                f"{' and '.join(name for name, _, _ in ports)} on {machine.node} share GID prefix "
                f"{prefix}{default}, and one subnet manager: rails of one subnet; Open MPI's "
                "warning of more than one active port with the same GID prefix is harmless here "
                "(btl_openib_warn_default_gid_prefix=0)"
            )


def _lid(value: Value | None) -> int | None:
    """Return a LID as sysfs prints it: ``0x1`` or ``1``."""
    try:
        return int(str(value), 0)
    except ValueError:
        return None


def network_notes(machine: Machine) -> Iterator[Finding]:
    """Yield each two interfaces of a node whose IP networks overlap; their names are the rail."""
    found = {
        part.partition(" ")[2]: _networks(str(facts.get("addresses", "")))
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


@dataclass(frozen=True, kw_only=True)
class CardDistance:
    """How far a card (``interface ib0``, ``port mlx5_0:1``) is from the CPUs of a rank.

    ``is_far``: some CPUs of the rank lie on another NUMA node; ``place`` says it for people.
    """

    part: str
    place: str
    is_far: bool


def distances(machine: Machine, cpus: str) -> tuple[CardDistance, ...]:
    """Return how far each card is from a rank that may run on ``cpus``, if that matters.

    ``cpus`` are as the kernel lists them, ``0-3,8``; ``unknown`` says nothing.
    """
    begin, ours = "numa node", cpus_of(cpus) or frozenset()
    nodes = {
        int(part.removeprefix(begin)): facts
        for part, facts in machine.facts.items()
        if part.startswith(begin) and part.removeprefix(begin).isdecimal()
    }
    of_node = {n: cpus_of(str(facts.get("cpus", ""))) or frozenset() for n, facts in nodes.items()}
    mine = [number for number, those in of_node.items() if ours & those]
    found = []
    for part, facts in machine.facts.items() if len(nodes) > 1 and mine else ():
        place = facts.get("numa_node")
        if not isinstance(place, int) or place not in nodes:
            continue
        rows = [str(nodes[number].get("distance", "")).split() for number in mine]
        at = sorted(nodes).index(place)
        told = (digits_of(row[at]) for row in rows if len(row) == len(nodes))
        spread = sorted({each for each in told if each is not None})
        is_far = spread[-1] > OWN_DISTANCE if spread else any(each != place for each in mine)
        known = " to ".join(map(str, dict.fromkeys((*spread[:1], *spread[-1:]))))
        word = "far" if is_far else "near"
        words = f"{known} ({word})" if known else f"not known, {word}"
        text = f"NUMA node {place}: distance {words}"
        found.append(CardDistance(part=part, place=text, is_far=is_far))
    return tuple(found)
