"""What the network should be able to do: links, protocols, slots, ceilings and floors."""

from __future__ import annotations

from fabricproof.physics.bounds import (
    CLOCK_TOLERANCE,
    Ceiling,
    Floor,
    binding,
    bound,
    ceilings,
    latency_floor_us,
    message_ceiling,
    through_host_mb_s,
)
from fabricproof.physics.links import (
    SOFT_ROCE,
    SOFT_ROCE_NAME,
    Link,
    device_word,
    ethernet_link,
    ethernet_name,
    find_link,
    known_links,
    soft_path_mtu,
    soft_roce_link,
    why_not_the_device,
    why_not_the_layer,
)
from fabricproof.physics.model import Fabric, Gpus, Shaper, Slot, find_slot
from fabricproof.physics.protocols import (
    Protocol,
    find_protocol,
)

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "stated": "a fabric as a person states it",
    "collective": "what a collective must move, and the least time it can print",
    "collective_models": "what a collective's well-known algorithms cost",
}

__all__ = [
    "CLOCK_TOLERANCE",
    "SOFT_ROCE",
    "SOFT_ROCE_NAME",
    "Ceiling",
    "Fabric",
    "Floor",
    "Gpus",
    "Link",
    "Protocol",
    "Shaper",
    "Slot",
    "binding",
    "bound",
    "ceilings",
    "device_word",
    "ethernet_link",
    "ethernet_name",
    "find_link",
    "find_protocol",
    "find_slot",
    "known_links",
    "latency_floor_us",
    "message_ceiling",
    "soft_path_mtu",
    "soft_roce_link",
    "through_host_mb_s",
    "why_not_the_device",
    "why_not_the_layer",
]
