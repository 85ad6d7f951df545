"""What a fact is called in the field, its unit, and what it may mean where it differs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fabricproof.nodes.inventory.facts import Value, slot_of


@dataclass(frozen=True, kw_only=True)
class Word:
    """How a fact is spoken of.

    Attributes:
        name: in words.
        meaning: what a difference may mean, for any two values.
        less: where both are numbers, what it may mean on the side that has less; ``{side}`` and
            ``{share}`` are filled in.
    """

    name: str
    unit: str = ""
    meaning: str = ""
    less: str = ""


_TRAINED_DOWN = "{share} the rate on {side}: cable, transceiver or the other end made it train down"
_MIXED = "mixed firmware: latency, message rate and limits may differ between these"
_KERNEL = "another kernel: drivers, TCP and mitigations may differ, and with them latency"

WORDS: dict[str, Word] = {
    "kernel": Word(name="kernel", meaning=_KERNEL),
    "os": Word(name="operating system", meaning="another image: libraries may differ too"),
    "cpu": Word(name="processor", meaning="another processor: latency and copies differ"),
    "cpus": Word(name="CPUs", meaning="another count of cores, or SMT"),
    "microcode": Word(name="microcode", meaning="another BIOS or package; mitigations may differ"),
    "smt": Word(name="SMT", meaning="ranks share cores where it is on"),
    "governor": Word(
        name="CPU governor", meaning="all but performance let cores sleep: latency and jitter rise"
    ),
    "turbo": Word(name="turbo", meaning="cores of unlike speed: latency differs"),
    "huge_pages": Word(name="transparent huge pages", meaning="registration of memory differs"),
    "options": Word(name="kernel options", meaning="IOMMU, isolation or mitigations differ"),
    "locked_memory": Word(
        name="locked memory", unit=" kB", meaning="too little stops verbs; unlimited is usual"
    ),
    "numa_balancing": Word(
        name="NUMA balancing", meaning="pages move while ranks run where it is 1"
    ),
    "irqbalance": Word(name="irqbalance", meaning="interrupts move between cores where it runs"),
    "tcp_congestion_control": Word(
        name="TCP congestion control", meaning="a flow's rate under loss and fairness differ"
    ),
    "rmem_max": Word(name="receive buffer at most", unit=" bytes", less="one flow may stay slower"),
    "wmem_max": Word(name="send buffer at most", unit=" bytes", less="one flow may stay slower"),
    "distance": Word(name="NUMA distances", meaning="another layout of sockets (or BIOS setting)"),
    "state": Word(name="link state", meaning="where it is down, nothing takes this path"),
    "phys_state": Word(name="physical state", meaning="the link is not trained on one of them"),
    "rate_gbit_s": Word(name="link rate", unit=" Gb/s", less=_TRAINED_DOWN),
    "speed_mbit_s": Word(name="link rate", unit=" Mb/s", less=_TRAINED_DOWN),
    "speed_best_mbit_s": Word(
        name="fastest rate", unit=" Mb/s", meaning="another card, or another module in the cage"
    ),
    "shaped_to_mbit_s": Word(
        name="shaped to", unit=" Mb/s", less="{share} the rate on {side}: tc lets no more out"
    ),
    "shaper_queue_bytes": Word(
        name="shaper's queue", unit=" bytes", less="bursts are dropped sooner on {side}"
    ),
    "switch": Word(name="switch", meaning="the cable is in another switch (LLDP)"),
    "switch_id": Word(name="switch's id", meaning="the cable is in another switch (LLDP)"),
    "width": Word(name="link width", meaning="a lane of cable or connector is lost"),
    "lanes": Word(name="lanes", less="{share} the lanes on {side}: split cable or a lane lost"),
    "link": Word(name="link", meaning="another speed or width of the link"),
    "lane_speed": Word(name="speed of a lane", meaning="the link trained to another generation"),
    "mtu": Word(
        name="MTU",
        unit=" bytes",
        less="less payload in each packet on {side}; two ends with unlike MTU lose large packets",
    ),
    "kind": Word(name="kind", meaning="another sort of device: nothing of it is comparable"),
    "parent": Word(
        name="interface below", meaning="the software device sends over another interface"
    ),
    "rate_in_sysfs": Word(
        name="rate that sysfs makes up", meaning="no rate: its interface's driver says another"
    ),
    "roce": Word(name="RoCE", meaning="two ends need one version in common"),
    "gids": Word(
        name="GIDs from", meaning="an end without an IPv4 GID is not reached over IPv4 (address?)"
    ),
    "mtu_best": Word(name="MTU at most", unit=" bytes"),
    "layer": Word(name="link layer", meaning="InfiniBand against Ethernet: no common fabric"),
    "firmware": Word(name="firmware", meaning=_MIXED),
    "psid": Word(
        name="PSID", meaning="another board or another vendor's firmware: they are updated apart"
    ),
    "board": Word(name="board", meaning="another card"),
    "model": Word(name="model", meaning="another card"),
    "type": Word(name="HCA type", meaning="another card"),
    "ids": Word(name="PCI ids", meaning="another chip"),
    "subsystem": Word(name="subsystem ids", meaning="another board with the same chip"),
    "driver": Word(name="driver", meaning="another driver: nothing of it is comparable"),
    "driver_version": Word(name="driver version", meaning="the kernel's own against a vendor's"),
    "pcie": Word(name="PCIe link", meaning="the slot carries another share"),
    "pcie_best": Word(name="PCIe link at best (card)", meaning="another card"),
    "pcie_best_of_slot": Word(
        name="PCIe link at best (slot)", meaning="another slot, riser or BIOS setting"
    ),
    "max_payload_bytes": Word(
        name="PCIe MaxPayload", unit=" bytes", less="each PCIe packet carries less on {side}"
    ),
    "max_payload_best_bytes": Word(name="PCIe MaxPayload at best", unit=" bytes"),
    "numa_node": Word(name="NUMA node", meaning="near for other cores: bind ranks accordingly"),
    "irqs": Word(name="interrupts", meaning="another count of queues"),
    "irq_cpus": Word(name="interrupts go to CPUs", meaning="they meet the ranks on other cores"),
    "offloads": Word(name="offloads", meaning="CPU per packet differs, and TCP rates with it"),
    "rings": Word(name="rings", meaning="bursts are dropped earlier by the smaller ring"),
    "queues": Word(name="queues", meaning="flows spread over more or fewer cores"),
    "queue_pairs_best": Word(name="queue pairs at most"),
    "coalescing": Word(name="interrupt coalescing", meaning="latency of small messages differs"),
    "pause": Word(name="pause frames", meaning="a port without them drops where others wait"),
    "fec": Word(name="FEC", meaning="about 0.1 us of latency, or errors that nobody corrects"),
    "connector": Word(name="connector", meaning="copper against fibre"),
    "transceiver": Word(name="cable or transceiver", meaning="another part in the cage"),
    "cable_serial": Word(name="serial of the cable", meaning="the cable was replaced"),
    "mac": Word(name="MAC address", meaning="the card was replaced"),
    "guid": Word(name="GUID", meaning="the card was replaced"),
    "lid": Word(name="LID", meaning="the subnet manager gave out addresses anew"),
    "sm_lid": Word(name="subnet manager's LID", meaning="another subnet manager, or none"),
    "gid_prefix": Word(name="GID prefix", meaning="another subnet"),
    "pci": Word(name="PCI address", meaning="the card sits in another slot"),
    "master": Word(name="part of", meaning="bonded or bridged on one of them"),
    "addresses": Word(name="addresses", meaning="it was given others"),
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
    word = WORDS.get(fact, Word(name=fact))
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
