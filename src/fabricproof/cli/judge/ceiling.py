"""``fabricproof ceiling``: what a fabric can carry, and what binds."""

from __future__ import annotations

from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.output import KEYS_HELP, emit, fabric_option
from fabricproof.physics import Ceiling, Fabric, Floor, binding, bound, ceilings, latency_floor_us

_REASONS = {
    "link": "The link binds: its line rate is the lowest ceiling",
    "protocol": "The link binds: what its line rate leaves after packet headers is the lowest "
    "ceiling",
    "slot": "The slot binds: the raw rate of the host bus is the lowest ceiling",
    "slot_packet": "The slot binds: what the host bus leaves after its packet headers is the "
    "lowest ceiling",
    "flow": "The flow limit binds: more flows would carry more",
    "capability": "The hosts bind, as declared",
}


def _mb_s_to_gbit_s(value: float) -> float:
    return value * 8 / 1000


def ceiling_record(ceiling: Ceiling) -> dict[str, Any]:
    """Return ``ceiling`` as plain data; ``mb_s`` and ``gbit_s`` are the nominal reading."""
    return {
        "name": ceiling.name,
        "mb_s": ceiling.nominal_mb_s,
        "gbit_s": _mb_s_to_gbit_s(ceiling.nominal_mb_s),
        "low_mb_s": ceiling.low_mb_s,
        "high_mb_s": ceiling.high_mb_s,
        "resource": ceiling.resource,
        "formula": ceiling.formula,
        "source": ceiling.source,
    }


def describe_fabric(fabric: Fabric) -> str:
    """Return what is stated about ``fabric``, and what is not, in one line."""
    mtu = "MTU not stated" if fabric.mtu is None else f"MTU {fabric.mtu}"
    unstated = "" if fabric.protocol else " (protocol not stated)"
    parts = [fabric.link.name, fabric.framing.name + unstated, mtu]
    if fabric.link.is_soft:
        parts.append("software: no slot")
    elif fabric.slot is None:
        parts.append("slot unknown (no pcie)")
    else:
        payload = fabric.max_payload_bytes
        parts.append(fabric.slot.name)
        parts.append("MaxPayload not stated" if payload is None else f"MaxPayload {payload}")
    parts.append("1 rail" if fabric.num_rails == 1 else f"{fabric.num_rails} rails")
    if fabric.num_rails > 1 and fabric.slot is not None:
        parts.append("one slot for all" if fabric.rails_share_slot else "a slot for each")
    if fabric.bidirectional:
        parts.append("both directions added")
    return ", ".join(parts)


def sentence(fabric: Fabric, binds: Ceiling) -> str:
    """Return which ceiling binds and why, in a sentence."""
    text = f"{_REASONS[binds.name]} ({binds.name}, {binds.nominal_mb_s:.1f} MB/s)"
    if fabric.link.is_soft:
        text += "; the kernel's software may manage less"
    elif fabric.slot is None:
        text += "; the slot was not stated and may bind lower"
    return text + "."


def _record(fabric: Fabric, limits: tuple[Ceiling, ...], floor: Floor) -> dict[str, Any]:
    binds = binding(limits)
    return {
        "fabric": describe_fabric(fabric),
        "ceilings": [ceiling_record(ceiling) for ceiling in limits],
        "binding": ceiling_record(binds),
        "binds": binds.name,
        "bound": ceiling_record(bound(fabric)),
        "reason": sentence(fabric, binds),
        "latency_floor_us": floor.us,
        "latency_floor_formula": floor.formula,
        "latency_floor_source": floor.source,
    }


def _row(ceiling: Ceiling) -> str:
    numbers = (ceiling.low_mb_s, ceiling.nominal_mb_s, ceiling.high_mb_s)
    mb_s = "".join(f"{value:12.2f}" for value in numbers)
    gbit_s = "".join(f"{_mb_s_to_gbit_s(value):10.3f}" for value in numbers)
    return f"{ceiling.name:<12}{mb_s} {gbit_s}   {ceiling.formula}"


def _lines(fabric: Fabric, limits: tuple[Ceiling, ...], floor: Floor) -> list[str]:
    total = bound(fabric)
    head = f"{'':<12}{'low':>12}{'nominal':>12}{'high':>12} {'low':>10}{'nominal':>10}{'high':>10}"
    return [
        describe_fabric(fabric),
        "",
        f"{'ceiling':<12}{'MB/s':>36} {'Gb/s':>30}   nominal from",
        head,
        *(_row(ceiling) for ceiling in limits),
        "",
        sentence(fabric, binding(limits)),
        f"A healthy system comes near {total.low_mb_s:.1f} MB/s.",
        f"A value above {total.high_mb_s:.1f} MB/s is impossible.",
        (
            f"Latency floor, one way, no payload: {floor.us:g} us. "
            "A lower value did not take this path."
        ),
    ]


@click.command(epilog=KEYS_HELP)
@fabric_option(required=True)
@options.as_json
def command(*, fabric: Fabric, as_json: bool) -> None:
    r"""Show what a fabric can carry, and which ceiling binds.

    \b
    Examples:
      fabricproof ceiling --link 'FDR 4x,pcie=3.0x8,mps=256,mtu=2048'
      fabricproof ceiling --link QDR,pcie=2.0x8,mps=128,rails=2,share-slot
      fabricproof ceiling --link '100GbE,flow-limit=10 Gb/s,mtu=9001'

    low: every healthy system comes near it.  high: nothing above it is possible.  They differ where
    something is not stated.  The formulas and their sources are in docs/physics.md and in --json.
    """
    limits = ceilings(fabric)
    floor = latency_floor_us(fabric, 0)
    found = (fabric, limits, floor)
    emit(_record(*found), _lines(*found), as_json=as_json)
