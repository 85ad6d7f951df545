"""Is the rail there, is it up, at which rate, with which MTU?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fabricproof.core.errors import FabricproofError
from fabricproof.core.findings import Finding
from fabricproof.nodes.inventory.differences import is_like
from fabricproof.nodes.inventory.facts import Machine, ReadTroubleKind
from fabricproof.nodes.preflight.sight import Facts, Sight, as_stated, measured, not_known
from fabricproof.nodes.preflight.soft import (
    SHAPER_TOLERANCE,
    WIRELESS_DRIVERS,
    below,
    is_soft,
    soft_mtu,
    why_soft_is_down,
)
from fabricproof.physics import Link, find_link

#: The kernel rounds rates ('56 Gb/sec' for FDR's 54.5 data and 56.25 line Gb/s); links of one
#: width lie farther apart than this.
RATE_TOLERANCE = 0.05

#: sections of a look after which a cut leaves open whether an interface exists
_BEFORE_INTERFACES = ("host", "numa", "net", "infiniband")

#: sections after which a cut leaves open whether a virtual interface (veth, VLAN, IPoIB child)
#: exists: it is listed where it has an address
_BEFORE_ADDRESSES = ("tuning", "addresses")

_PORT_STATES = {
    "INIT": "no subnet manager has given it an address: does opensm run?",
    "ARMED": "the subnet manager has not finished with it",
}

#: of ``phys_state`` (IBA specification vol. 1, PortInfo:PortPhysicalState)
_PHYSICAL_STATES = {
    "Polling": "it looks for a peer: cable, transceiver or the switch's port",
    "Disabled": "it was switched off (ibportstate, mlxlink)",
    "PortConfigurationTraining": "it trains and does not come up: cable or transceiver",
}


_ORIGIN = "site: a rail of the fabric"


def presence(sight: Sight, others: Sequence[Machine]) -> Finding:
    """Judge that the rail exists on the node and that its link is up."""
    if sight.facts is None:
        return _absent(sight, others)
    state = str(sight.facts.get("state", ""))
    if not state or state.lower() == "unknown":
        reason = f"{sight.words}: its driver does not say whether its link is up"
        return not_known(sight, "state", reason)
    is_up = state.upper() == ("ACTIVE" if sight.wanted.is_port else "UP")
    if is_soft(sight.facts) and is_up:
        is_up = str(below(sight).get("state", "")).lower() != "down"
    words = "is up" if is_up else f"is down ({state}): {_why_down(sight, state)}"
    return as_stated(sight, "state", f"{sight.words} {words}", fits=is_up, origin=_ORIGIN)


def _why_down(sight: Sight, state: str) -> str:
    facts = sight.facts or {}
    if is_soft(facts):
        return why_soft_is_down(sight)
    physical = _PHYSICAL_STATES.get(str(facts.get("phys_state", "")))
    if "phys_state" in facts or state.upper() in _PORT_STATES:
        return _PORT_STATES.get(state.upper()) or physical or "nobody at the cable's other end"
    return "no carrier (cable, transceiver, the switch's port), or set down"


def _absent(sight: Sight, others: Sequence[Machine]) -> Finding:
    doubt = _doubt(sight)
    if doubt is not None:
        reason = f"{sight.words}: whether it exists is not known: {doubt}"
        return not_known(sight, "state", reason)
    there = [
        part.split(" ", 1)[1]
        for part in sight.machine.facts
        if re.match(r"(interface|port) .", part)
    ]
    known = ", ".join(there) or "neither an interface with an address nor a port"
    again = _other_name(sight, others)
    why = again or f"the node has {known}"
    if sight.wanted.link.is_soft and not again:
        why += "; a software device is made with rdma link add NAME type rxe netdev INTERFACE"
    reason = f"{sight.words} does not exist: {why}"
    return as_stated(sight, "state", reason, fits=False, origin=_ORIGIN)


def _doubt(sight: Sight) -> str | None:
    """Return why the look at this node cannot tell that an interface is absent; None if it can."""
    for trouble in sight.machine.troubles:
        if trouble.kind is ReadTroubleKind.NO_LOOK:
            return trouble.text
        if trouble.section in _BEFORE_INTERFACES:
            return "the look at the node was cut off"
        is_blind = trouble.tool == "ip" or trouble.section in _BEFORE_ADDRESSES
        if not sight.wanted.is_port and is_blind:
            return f"an interface without a device is told by its address, and {trouble.text}"
    return None


def _other_name(sight: Sight, others: Sequence[Machine]) -> str:
    """Return under which name another node's card of this rail is found here; empty if it is not.

    An interface that both nodes have by one name is no card under another.
    """
    part, here = sight.part, sight.machine.facts
    for other in others:
        model = other.facts.get(part)
        if model is None:
            continue
        for name, facts in here.items():
            if name not in other.facts and is_like(part, model, name, facts):
                return (
                    f"the card that {other.node} calls {sight.wanted.rail} is called "
                    f"{name.split()[-1]} here"
                )
    return ""


@dataclass(frozen=True, kw_only=True)
class _Rate:
    """What a rail runs at: its rate in Mb/s, its link where one is named, why it is what it is."""

    mbit_s: float
    link: Link | None = None
    shaped: bool = False


def rate(sight: Sight) -> Finding:
    """Judge the rate of the rail's link, or of the shaper on a rail that has no wire."""
    assert sight.facts is not None
    wanted = sight.wanted.link
    observed = _port_rate(sight.facts) if sight.wanted.is_port else _interface_rate(sight)
    if isinstance(observed, str):
        reason = f"{sight.words}: its rate is not known: {observed}"
        return not_known(sight, "rate", reason)
    expected = wanted.data_rate_gbit_s * 1000
    runs = f"{sight.words} runs at {_of(observed.mbit_s, expected)}"
    reason = runs + _why_rate(sight, observed, expected)
    is_other = observed.link is not None and observed.link.technology != wanted.technology
    if observed.link is not None and is_other:
        reason = (
            f"{sight.words} is {observed.link.technology} ({observed.link.name}), the site "
            f"declares {wanted.name}: another personality of the port (LINK_TYPE of mlxconfig), or "
            "another card"
        )
    return measured(
        sight.place,
        "rate",
        reason,
        value=observed.mbit_s,
        expected=expected,
        unit="Mb/s",
        origin=f"site: {wanted.name}",
        tolerance=SHAPER_TOLERANCE if observed.shaped else RATE_TOLERANCE,
        is_other=is_other,
    )


def _of(mbit_s: float, expected_mbit_s: float) -> str:
    """Return ``100 of 200 Mb/s``, ``10 of 40 Gb/s``, or one number where they are alike."""
    factor, unit = (1000, "Gb/s") if min(mbit_s, expected_mbit_s) >= 1000 else (1, "Mb/s")
    one, other = f"{mbit_s / factor:.4g}", f"{expected_mbit_s / factor:.4g}"
    return f"{one} {unit}" if one == other else f"{one} of {other} {unit}"


def _port_rate(facts: Facts) -> _Rate | str:
    """Return what a port runs at; a reason where it cannot be told."""
    name = facts.get("link")
    try:
        link = find_link(str(name)) if name else None
    except FabricproofError:
        link = None
    if link is not None:
        return _Rate(mbit_s=link.data_rate_gbit_s * 1000, link=link)
    stated = str(facts.get("rate_gbit_s", ""))
    if re.fullmatch(r"\d+(\.\d+)?", stated) and float(stated) > 0:
        return _Rate(mbit_s=float(stated) * 1000)
    return "the kernel does not say it"


def _interface_rate(sight: Sight) -> _Rate | str:
    assert sight.facts is not None
    shaped, speed = sight.facts.get("shaped_to_mbit_s"), sight.facts.get("speed_mbit_s")
    driver = str(sight.facts.get("driver", ""))
    has_wire = driver not in WIRELESS_DRIVERS
    if isinstance(shaped, int) and not (has_wire and isinstance(speed, int) and speed < shaped):
        return _Rate(mbit_s=float(shaped), shaped=True)
    if not has_wire:
        return f"a {driver} says {speed} Mb/s whatever it lets through, and no shaper was seen"
    if not isinstance(speed, int) or speed <= 0:
        return "its driver does not say it"
    if sight.wanted.shaped and shaped is None:
        before = (*_BEFORE_INTERFACES, *_BEFORE_ADDRESSES, "qdisc")
        for trouble in sight.machine.troubles:
            hides_shapers = trouble.tool == "tc" or trouble.section in before
            if hides_shapers and speed >= sight.wanted.link.data_rate_gbit_s * 1000:
                return f"whether it is shaped: {trouble.text}"
    return _Rate(mbit_s=float(speed))


def _why_rate(sight: Sight, observed: _Rate, expected_mbit_s: float) -> str:
    """Return what makes the rate other than expected; empty where it is as expected."""
    tolerance = SHAPER_TOLERANCE if observed.shaped else RATE_TOLERANCE
    if abs(observed.mbit_s - expected_mbit_s) <= tolerance * expected_mbit_s:
        return ""
    if observed.mbit_s > expected_mbit_s:
        return (
            ": more than the site declares: its file is behind the machine, and true numbers "
            "will be called impossible"
        )
    if observed.shaped:
        return ": its shaper (tc qdisc) lets no more out"
    link, wanted = observed.link, sight.wanted.link
    if link is not None:
        trained = f": it trained to {link.name} instead of {wanted.name}"
        if link.lanes < wanted.lanes:
            lanes = f"{link.lanes} of {wanted.lanes} lanes"
            return (
                f"{trained}, {lanes}: a lane lost in cable or connector, or a split cable or port"
            )
        return f"{trained}: a cable or transceiver for less, or the switch's port"
    return _why_ethernet(sight, observed.mbit_s)


def _why_ethernet(sight: Sight, mbit_s: float) -> str:
    wanted, facts = sight.wanted.link, sight.facts or {}
    split = _split_port(sight)
    if wanted.lanes >= 4 and split:
        return (
            f": the card shows {len(split)} interfaces of {mbit_s / 1000:g} Gb/s "
            f"({', '.join(split)}): its port is in {len(split)}x{mbit_s / 1000:g} mode instead of "
            f"1x{wanted.data_rate_gbit_s:g}"
        )
    best = facts.get("speed_best_mbit_s")
    if isinstance(best, int) and best < wanted.data_rate_gbit_s * 1000:
        return f": card and transceiver can do no more than {best / 1000:g} Gb/s"
    lanes = facts.get("lanes")
    if isinstance(lanes, int) and lanes < wanted.lanes:
        return f": {lanes} of {wanted.lanes} lanes: a split cable, or a lane lost"
    return ": cable, transceiver or the switch's port made it train down"


def _split_port(sight: Sight) -> list[str]:
    """Return the interfaces of this rail's card that run at its rate, where they are several."""
    facts = sight.facts or {}
    address, speed = str(facts.get("pci", "")), facts.get("speed_mbit_s")
    card = address.rpartition(".")[0]
    names = [
        part.split()[-1]
        for part, each in sight.machine.facts.items()
        if card
        and str(each.get("pci", "")).rpartition(".")[0] == card
        and part.startswith("interface ")
        and (part == sight.part or each.get("speed_mbit_s") in {speed, None})
    ]
    return names if len(names) >= sight.wanted.link.lanes >= 2 else []


def mtu(sight: Sight) -> Finding | None:
    """Judge the MTU where the site states one; None where it does not."""
    assert sight.facts is not None
    wanted, observed = sight.wanted.mtu, sight.facts.get("mtu")
    if wanted is None:
        return None
    follows, why = soft_mtu(sight) if is_soft(sight.facts) else (None, "")
    observed = follows if observed is None else observed
    if not isinstance(observed, int):
        reason = f"{sight.words}: its MTU is not known, expected {wanted} bytes"
        return not_known(sight, "mtu", reason)
    words = f"{sight.words} has MTU {observed}"
    if observed != wanted:
        less = "each packet carries less, and larger ones of its peers are lost"
        more = "its peers and switches may lose its larger packets"
        words += f" instead of {wanted}: {why or (less if observed < wanted else more)}"
    return measured(
        sight.place,
        "mtu",
        words,
        value=observed,
        expected=wanted,
        unit="B",
        origin=f"site: MTU {wanted}",
    )
