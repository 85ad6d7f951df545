"""A fabric as a person states it in one line: ``FDR 4x,pcie=3.0x8,mtu=2048,rails=2``."""

from __future__ import annotations

import re
from typing import Any

from fabricproof.core.errors import ConfigError, UnitError
from fabricproof.core.units import parse_quantity
from fabricproof.physics.links import find_link
from fabricproof.physics.model import Fabric, find_slot

#: key after the link -> its field of a fabric, what its value is (None: it has none), and in words
KEYS: dict[str, tuple[str, str | None, str]] = {
    "pcie": ("slot", "GENxLANES", "slot of each HCA or NIC, 3.0x8; else only the link is computed"),
    "mps": ("max_payload_bytes", "BYTES", "PCIe MaxPayload (DevCtl in lspci -vv), 128 to 4096"),
    "mtu": ("mtu", "BYTES", "MTU of InfiniBand (256 to 4096), of IP, or the path MTU of rocev2"),
    "rails": ("num_rails", "N", "rails used at once; 1 by default"),
    "share-slot": ("rails_share_slot", None, "the rails are ports of one HCA and share its slot"),
    "protocol": (
        "protocol",
        "NAME",
        "ib, ipoib, tcp, tcp-bypass, udp, rocev2, iwarp, raw-ethernet, opa, slingshot, efa, bxi",
    ),
    "flow-limit": ("flow_limit_gbit_s", "RATE", "what one flow may have, with its unit: 10 Gb/s"),
    "flows": ("num_flows", "N", "flows on each rail; 1 by default"),
    "capability": ("capability_mb_s", "RATE", "what one process can drive: 25 Gb/s"),
    "bidirectional": ("bidirectional", None, "both directions at once, added up"),
}


def fabric_from(text: str) -> Fabric:
    """Return the fabric that a line states: the link's name, then ``KEY=VALUE`` with commas.

    Raises:
        ConfigError: an unknown key, one that stands twice, or a value that cannot be
            (UnknownLinkError, one of them, for an unknown link).
    """
    link, *words = (each.strip() for each in text.split(","))
    fields: dict[str, Any] = {}
    for word in words:
        key, sign, value = (each.strip() for each in word.partition("="))
        field, kind, _ = KEYS.get(key, ("", None, ""))
        if not field or field in fields or bool(value) is not bool(kind):
            known = ((each, what) for each, (_, what, _) in KEYS.items())
            keys = ", ".join(f"{each}={what}" if what else each for each, what in known)
            got = repr(key + sign + value)
            raise ConfigError("not what is known of a link", expected=f"{keys}, each once", got=got)
        fields[field] = _value(key, kind, value)
    return Fabric(link=find_link(link), **fields)


def _value(key: str, kind: str | None, text: str) -> Any:
    if kind in {"BYTES", "N"}:
        least = 1 if kind == "N" else 0
        if not re.fullmatch(r"[0-9]{1,7}", text) or int(text) < least:
            expected = f"a whole number of at least {least}, at most seven digits"
            raise ConfigError(f"{key} is out of range", expected=expected, got=f"{text!r:.60}")
        return int(text)
    if kind == "RATE":
        try:
            return parse_quantity(text, "Gb/s" if key == "flow-limit" else "MB/s")
        except UnitError as error:
            expected = "a number and a unit, as '10 Gb/s'"
            raise ConfigError(f"{key} is not a rate", expected=expected, got=text) from error
    if key == "pcie":
        return find_slot(text)
    return text or True
