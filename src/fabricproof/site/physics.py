"""What a declared fabric is to physics: links, slots and rails as records."""

from __future__ import annotations

from typing import Any

from fabricproof.core.errors import ConfigError
from fabricproof.physics import Fabric, Shaper, bound, find_link, find_slot
from fabricproof.site.schema import FabricSpec, RailSpec


def build_fabric(spec: FabricSpec, rails: tuple[str, ...], *, num_flows: int = 1) -> Fabric:
    """Return the physics of a declared fabric over the named rails, ``num_flows`` flows on each.

    Raises:
        ConfigError: an unknown rail, link, slot, protocol, MTU or MaxPayload.
    """
    by_name = {rail.interface: rail for rail in spec.rails}
    unknown = [rail for rail in rails if rail not in by_name]
    if unknown:
        raise ConfigError(
            f"fabric {spec.name!r} has no such rail",
            expected=f"one of {', '.join(by_name)}",
            got=repr(unknown[0]),
        )
    if len(set(rails)) != len(rails):
        raise ConfigError("a rail twice", expected=f"each rail of {spec.name!r} once")
    chosen = [by_name[name] for name in rails] or [spec.rails[0]]
    if spec.link is None:
        raise ConfigError(
            f"fabric {spec.name!r} has no link", expected="a fabric with a link, to judge by"
        )
    link = min((find_link(rail.link or spec.link) for rail in chosen), key=_rate)
    slots = [find_slot(text) for rail in chosen if (text := rail.pcie or spec.pcie)]
    payloads = [
        each for rail in chosen if (each := rail.max_payload_bytes or spec.max_payload_bytes)
    ]
    return Fabric(
        link=link,
        protocol=spec.protocol,
        mtu=spec.mtu,
        slot=min(slots, key=lambda slot: slot.raw_mb_s) if slots else None,
        max_payload_bytes=min(payloads) if payloads else None,
        num_rails=len(chosen),
        num_flows=num_flows,
        rails_share_slot=spec.rails_share_slot,
        flow_limit_gbit_s=spec.flow_limit_gbit_s,
        shaper=Shaper(**spec.shaper.model_dump()) if spec.shaper else None,
        capability_mb_s=spec.capability_gbit_s * 125 if spec.capability_gbit_s else None,
        unlike_rails_high_mb_s=_unlike_rails(spec, chosen),
    )


def protocol_of(spec: FabricSpec) -> str:
    """Return the protocol of a declared fabric; sockets where it has no link at all."""
    return "tcp" if spec.link is None else build_fabric(spec, ()).framing.name


def _unlike_rails(spec: FabricSpec, chosen: list[RailSpec]) -> float | None:
    """Return the sum of the rails' own ceilings where they are not alike, None where they are."""
    if spec.rails_share_slot or len({(r.link, r.pcie, r.max_payload_bytes) for r in chosen}) < 2:
        return None
    return sum(bound(build_fabric(spec, (rail.interface,))).high_mb_s for rail in chosen)


def _rate(link: Any) -> float:
    return float(link.data_rate_gbit_s)
