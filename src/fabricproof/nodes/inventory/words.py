"""What a fact is called in the field, its unit, and what it may mean where it differs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from fabricproof.nodes.inventory.facts import Value, slot_of


class Word(NamedTuple):
    """How a fact is spoken of: its name, what a difference may mean, its unit.

    ``less`` is what it may mean on the side that has less, if both values are numbers; ``{side}``
    and ``{share}`` are filled in.
    """

    name: str
    meaning: str = ""
    unit: str = ""
    less: str = ""


_TRAINED_DOWN = "{share} the rate on {side}: cable, transceiver or the other end made it train down"
_MIXED = "mixed firmware: latency, message rate and limits may differ between these"
_KERNEL = "another kernel: drivers, TCP and mitigations may differ, and with them latency"

WORDS: dict[str, Word] = {
    "kernel": Word("kernel", _KERNEL),
    "os": Word("operating system", "another image: libraries may differ too"),
    "cpu": Word("processor", "another processor: latency and copies differ"),
    "cpus": Word("CPUs", "another count of cores, or SMT"),
    "microcode": Word("microcode", "another BIOS or package; mitigations may differ"),
    "smt": Word("SMT", "ranks share cores where it is on"),
    "governor": Word(
        "CPU governor", "all but performance let cores sleep: latency and jitter rise"
    ),
    "turbo": Word("turbo", "cores of unlike speed: latency differs"),
    "huge_pages": Word("transparent huge pages", "registration of memory differs"),
    "options": Word("kernel options", "IOMMU, isolation or mitigations differ"),
    "locked_memory": Word(
        "locked memory", "too little stops verbs; unlimited is usual", unit=" kB"
    ),
    "numa_balancing": Word("NUMA balancing", "pages move while ranks run where it is 1"),
    "irqbalance": Word("irqbalance", "interrupts move between cores where it runs"),
    "tcp_congestion_control": Word(
        "TCP congestion control", "a flow's rate under loss and fairness differ"
    ),
    "rmem_max": Word("receive buffer at most", unit=" bytes", less="one flow may stay slower"),
    "wmem_max": Word("send buffer at most", unit=" bytes", less="one flow may stay slower"),
    "distance": Word("NUMA distances", "another layout of sockets (or BIOS setting)"),
    "state": Word("link state", "where it is down, nothing takes this path"),
    "phys_state": Word("physical state", "the link is not trained on one of them"),
    "rate_gbit_s": Word("link rate", unit=" Gb/s", less=_TRAINED_DOWN),
    "speed_mbit_s": Word("link rate", unit=" Mb/s", less=_TRAINED_DOWN),
    "speed_best_mbit_s": Word(
        "fastest rate", "another card, or another module in the cage", unit=" Mb/s"
    ),
    "shaped_to_mbit_s": Word(
        "shaped to", unit=" Mb/s", less="{share} the rate on {side}: tc lets no more out"
    ),
    "shaper_queue_bytes": Word(
        "shaper's queue", unit=" bytes", less="bursts are dropped sooner on {side}"
    ),
    "switch": Word("switch", "the cable is in another switch (LLDP)"),
    "switch_id": Word("switch's id", "the cable is in another switch (LLDP)"),
    "width": Word("link width", "a lane of cable or connector is lost"),
    "lanes": Word("lanes", less="{share} the lanes on {side}: split cable or a lane lost"),
    "link": Word("link", "another speed or width of the link"),
    "lane_speed": Word("speed of a lane", "the link trained to another generation"),
    "mtu": Word(
        "MTU",
        unit=" bytes",
        less="less payload in each packet on {side}; two ends with unlike MTU lose large packets",
    ),
    "kind": Word("kind", "another sort of device: nothing of it is comparable"),
    "parent": Word("interface below", "the software device sends over another interface"),
    "rate_in_sysfs": Word(
        "rate that sysfs makes up", "no rate: its interface's driver says another"
    ),
    "roce": Word("RoCE", "two ends need one version in common"),
    "gids": Word("GIDs from", "an end without an IPv4 GID is not reached over IPv4 (address?)"),
    "mtu_best": Word("MTU at most", unit=" bytes"),
    "layer": Word("link layer", "InfiniBand against Ethernet: no common fabric"),
    "firmware": Word("firmware", _MIXED),
    "psid": Word("PSID", "another board or another vendor's firmware: they are updated apart"),
    "board": Word("board", "another card"),
    "model": Word("model", "another card"),
    "type": Word("HCA type", "another card"),
    "ids": Word("PCI ids", "another chip"),
    "subsystem": Word("subsystem ids", "another board with the same chip"),
    "driver": Word("driver", "another driver: nothing of it is comparable"),
    "driver_version": Word("driver version", "the kernel's own against a vendor's"),
    "pcie": Word("PCIe link", "the slot carries another share"),
    "pcie_best": Word("PCIe link at best (card)", "another card"),
    "pcie_best_of_slot": Word("PCIe link at best (slot)", "another slot, riser or BIOS setting"),
    "max_payload_bytes": Word(
        "PCIe MaxPayload", unit=" bytes", less="each PCIe packet carries less on {side}"
    ),
    "max_payload_best_bytes": Word("PCIe MaxPayload at best", unit=" bytes"),
    "numa_node": Word("NUMA node", "near for other cores: bind ranks accordingly"),
    "irqs": Word("interrupts", "another count of queues"),
    "irq_cpus": Word("interrupts go to CPUs", "they meet the ranks on other cores"),
    "offloads": Word("offloads", "CPU per packet differs, and TCP rates with it"),
    "rings": Word("rings", "bursts are dropped earlier by the smaller ring"),
    "queues": Word("queues", "flows spread over more or fewer cores"),
    "queue_pairs_best": Word("queue pairs at most"),
    "coalescing": Word("interrupt coalescing", "latency of small messages differs"),
    "pause": Word("pause frames", "a port without them drops where others wait"),
    "fec": Word("FEC", "about 0.1 us of latency, or errors that nobody corrects"),
    "connector": Word("connector", "copper against fibre"),
    "transceiver": Word("cable or transceiver", "another part in the cage"),
    "cable_serial": Word("serial of the cable", "the cable was replaced"),
    "mac": Word("MAC address", "the card was replaced"),
    "guid": Word("GUID", "the card was replaced"),
    "lid": Word("LID", "the subnet manager gave out addresses anew"),
    "sm_lid": Word("subnet manager's LID", "another subnet manager, or none"),
    "gid_prefix": Word("GID prefix", "another subnet"),
    "pci": Word("PCI address", "the card sits in another slot"),
    "master": Word("part of", "bonded or bridged on one of them"),
    "addresses": Word("addresses", "it was given others"),
}


def name_of(fact: str) -> str:
    """Return what a fact is called."""
    return WORDS[fact].name if fact in WORDS else fact.replace("_", " ")


def shown(fact: str, value: Value) -> str:
    """Return a value as a person reads it."""
    if fact.startswith("pcie") and "x" in str(value):
        return "PCIe {}, {} lanes".format(*str(value).split("x", 1))
    return f"{value}{WORDS[fact].unit if fact in WORDS else ''}"


def meaning_of(fact: str, first: Value, second: Value, sides: tuple[str, str]) -> str:
    """Return what it may mean that a fact differs; empty where nobody knows."""
    special = _SPECIAL.get(fact)
    said = special(first, second, sides) if special else ""
    if said:
        return said
    word = WORDS.get(fact, Word(fact))
    if word.less and isinstance(first, int) and isinstance(second, int):
        side = sides[0] if first < second else sides[1]
        return word.less.format(side=side, share=_share(first, second))
    return word.meaning


def _share(first: float, second: float) -> str:
    low, high = sorted((first, second))
    if not low:
        return "none of"
    named = {0.5: "half", 0.25: "a quarter of", 0.125: "an eighth of"}
    ratio = low / high
    near = next((words for share, words in named.items() if abs(ratio / share - 1) < 0.02), None)
    return near or f"{ratio:.0%} of"


def _slots(first: Value, second: Value, sides: tuple[str, str]) -> str:
    """Say whether a PCIe link lost lanes or generations, and what is left of its rate."""
    here, there = slot_of(first), slot_of(second)
    if here is None or there is None:
        return ""
    less, more = (here, there) if here.raw_mb_s < there.raw_mb_s else (there, here)
    side = sides[0] if less is here else sides[1]
    why = []
    if less.lanes < more.lanes:
        share = _share(less.lanes, more.lanes)
        why.append(f"{share} the lanes: narrow slot or riser, or the card sits badly")
    if less.generation < more.generation:
        why.append("an older generation: slot, riser or BIOS setting")
    rate = _share(less.raw_mb_s, more.raw_mb_s)
    return f"{rate} the PCIe rate on {side}; {' and '.join(why)}" if why else ""


def _widths(first: Value, second: Value, sides: tuple[str, str]) -> str:
    lanes = [re.match(r"(\d{1,9})X", str(value)) for value in (first, second)]
    if not lanes[0] or not lanes[1] or lanes[0][1] == lanes[1][1]:
        return ""
    here, there = int(lanes[0][1]), int(lanes[1][1])
    side = sides[0] if here < there else sides[1]
    return f"{_share(here, there)} the width on {side}: lanes of cable or connector are lost"


_SPECIAL: dict[str, Callable[[Value, Value, tuple[str, str]], str]] = {
    "pcie": _slots,
    "width": _widths,
}
