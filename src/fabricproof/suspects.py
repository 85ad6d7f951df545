"""Why a bandwidth may be too low: known limits whose payload the number happens to match.

These are suspicions, offered in the order in which an administrator would check them, never a
verdict.
"""

from __future__ import annotations

from dataclasses import replace

from fabricproof.fabric import Fabric, bound, ceilings, find_slot

#: A number between this fraction of a limit's conservative end and its generous end "matches" it.
MATCH = 0.95

#: slots that cards end up in, or train down to, from the slowest
SLOTS = ("1.0x8", "2.0x4", "2.0x8", "3.0x4", "3.0x8", "4.0x8", "3.0x16")


def suspects(value_mb_s: float, fabric: Fabric) -> list[str]:
    """Return sentences that say what ``value_mb_s`` looks like, most likely first.

    Args:
        value_mb_s: a bandwidth that failed its reference.
        fabric: what it was judged against.
    """
    return [
        sentence
        for sentence in (
            _fewer_rails(value_mb_s, fabric),
            _single_flow(fabric),
            _one_core(value_mb_s, fabric),
            _slower_slot(value_mb_s, fabric),
            _far_socket(fabric),
        )
        if sentence
    ]


def _fewer_rails(value: float, fabric: Fabric) -> str | None:
    if fabric.num_rails < 2:
        return None
    one = bound(replace(fabric, num_rails=1))
    if MATCH * one.low_mb_s <= value <= one.high_mb_s:
        return f"about what one rail carries ({one.low_mb_s:.0f}): did the others take part?"
    return None


def _single_flow(fabric: Fabric) -> str | None:
    if fabric.link.technology != "ethernet" or fabric.flow_limit_gbit_s is not None:
        return None
    if fabric.num_flows == 1 and fabric.link.data_rate_gbit_s >= 25:
        return "one TCP connection: a per-flow limit of the provider or of one core is likely"
    return None


def _one_core(value: float, fabric: Fabric) -> str | None:
    is_ethernet = fabric.link.technology == "ethernet"
    if is_ethernet and fabric.num_flows > 1 and value > 1000:
        return "several connections driven by one process: one core is the likely bound"
    return None


def _slower_slot(value: float, fabric: Fabric) -> str | None:
    for name in SLOTS:
        slot = find_slot(name)
        if fabric.slot is not None and slot.raw_mb_s >= fabric.slot.raw_mb_s:
            continue
        trial = replace(fabric, slot=slot)
        packet = next(each for each in ceilings(trial) if each.name == "slot_packet")
        if MATCH * packet.low_mb_s <= value <= packet.high_mb_s:
            return (
                f"what a PCIe {name} slot carries ({packet.low_mb_s:.0f} to "
                f"{packet.high_mb_s:.0f} MB/s): compare the slot's negotiated generation and width"
            )
    return None


def _far_socket(fabric: Fabric) -> str | None:
    if fabric.slot is None and fabric.link.technology == "ethernet":
        return None
    return "first look whether the rank sits on the HCA's own socket (--map-by dist, rankfile)"
