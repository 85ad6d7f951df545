"""Is the rail there, is it up, at which rate, with which MTU; is it an adapter or software?

A software device (Soft-RoCE) has no wire.  Its rate in sysfs is made up, so what can be seen is
judged instead: the interface below it, that interface's shaper, and the MTU that follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fabricproof.core.errors import FabricproofError
from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.inventory.differences import is_like
from fabricproof.nodes.inventory.facts import Machine, ReadTroubleKind
from fabricproof.nodes.preflight.sight import Sight, as_stated, measured, not_known, place
from fabricproof.physics import (
    SOFT_ROCE_NAME,
    Link,
    find_link,
    soft_path_mtu,
    why_not_the_device,
)

#: The kernel rounds rates ('56 Gb/sec' for FDR's 54.5 data and 56.25 line Gb/s); links of one
#: width lie farther apart than this.
RATE_TOLERANCE = 0.05

#: A shaper's mean rate may lie this much below the wire that it stands for: below its peak rate
#: (tc-tbf(8)), and by what it does not count of each frame (24 of 1538 bytes: 1.6 %).
SHAPER_TOLERANCE = 0.03

#: Drivers of interfaces without a wire: their speed is a constant of the driver's source (Linux
#: drivers/net/veth.c says 10000 Mb/s), whatever lets their bytes through.
WIRELESS_DRIVERS = frozenset(
    {"veth", "tun", "bridge", "dummy", "ipvlan", "macvlan", "vxlan", "openvswitch"}
)

#: the speed of a virtio_net is what its host's settings say (Virtual I/O Device specification,
#: Network Device: VIRTIO_NET_F_SPEED_DUPLEX), and no wire's
_SPEED_IS_A_WORD = WIRELESS_DRIVERS | {"virtio_net"}

#: stages of a look after which a cut leaves open whether an interface exists; then those of a
#: virtual one (veth, VLAN, IPoIB child), which is listed if it has an address; then of its shaper
_BEFORE_INTERFACES = ("host", "numa", "net", "infiniband")
_BEFORE_ADDRESSES = (*_BEFORE_INTERFACES, "tuning", "addresses")
_BEFORE_SHAPERS = (*_BEFORE_ADDRESSES, "qdisc")

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
_BEHIND = (
    ": more than the site declares: its file is behind the machine, and true numbers will be "
    "called impossible"
)


def judge_rail(sight: Sight, others: Sequence[Machine]) -> Iterator[Finding]:
    """Yield what is to be said of one rail on one node, its card aside."""
    yield presence(sight, others)
    if sight.facts is None:
        return
    device = _device(sight)
    if device is not None:
        yield device
    if device is None or device.verdict is Verdict.PASS:
        yield _soft_rate(sight) if device else _rate(sight)
    if sight.wanted.mtu is not None:
        yield _mtu(sight, sight.wanted.mtu)


def presence(sight: Sight, others: Sequence[Machine]) -> Finding:
    """Judge that the rail exists on the node and that its link is up."""
    if sight.facts is None:
        return _absent(sight, others)
    state = str(sight.facts.get("state", ""))
    if not state or state.lower() == "unknown":
        return not_known(sight, "state", "its driver does not say whether its link is up")
    is_up = state.upper() == ("ACTIVE" if sight.wanted.is_port else "UP")
    if sight.is_soft and is_up:
        is_up = str(sight.below.get("state", "")).lower() != "down"
    words = "is up" if is_up else f"is down ({state}): {_why_down(sight, state.upper())}"
    return as_stated(sight, "state", f"{sight.words} {words}", fits=is_up, origin=_ORIGIN)


def _why_down(sight: Sight, state: str) -> str:
    facts, parent = sight.facts or {}, sight.parent
    if sight.is_soft and not parent:
        return "its interface went away: make it anew (rdma link add NAME type rxe netdev ...)"
    if sight.is_soft:
        said = sight.below.get("state")
        if str(said).lower() in {"up", "unknown"}:
            again = "make the device anew (rdma link delete, rdma link add)"
            return f"{parent} below it is up: {again}"
        known = f"is {said}" if said else "was not seen"
        return f"{parent} below it {known}: ip link set {parent} up"
    if "phys_state" in facts or state in _PORT_STATES:
        physical = _PHYSICAL_STATES.get(str(facts.get("phys_state", "")))
        return _PORT_STATES.get(state) or physical or "nobody at the cable's other end"
    return "no carrier (cable, transceiver, the switch's port), or set down"


def _absent(sight: Sight, others: Sequence[Machine]) -> Finding:
    here, wanted = sight.machine.facts, sight.wanted
    for trouble in sight.machine.troubles:
        if trouble.kind is ReadTroubleKind.NO_LOOK or trouble.section in _BEFORE_INTERFACES:
            return not_known(sight, "state", f"whether it exists is not known: {trouble.text}")
        is_blind = trouble.tool == "ip" or trouble.section in _BEFORE_ADDRESSES
        if not wanted.is_port and is_blind:
            why = "an interface without a device is told by its address, and"
            reason = f"whether it exists is not known: {why} {trouble.text}"
            return not_known(sight, "state", reason)
    kinds = ("interface ", "port ")
    known = ", ".join(part.partition(" ")[2] for part in here if part.startswith(kinds))
    why = f"the node has {known or 'neither an interface with an address nor a port'}"
    if wanted.link.is_soft:
        why += "; a software device is made with rdma link add NAME type rxe netdev INTERFACE"
    # An interface that both nodes have by one name is no card under another.
    for other in others:
        model = other.facts.get(sight.part)
        for name, facts in here.items():
            if model and name not in other.facts and is_like(sight.part, model, name, facts):
                called = f"is called {name.split()[-1]} here"
                why = f"the card that {other.node} calls {wanted.rail} {called}"
    reason = f"{sight.words} does not exist: {why}"
    return as_stated(sight, "state", reason, fits=False, origin=_ORIGIN)


def _device(sight: Sight) -> Finding | None:
    """Judge that a rail is a software device if the site declares one, and only then.

    None if neither speaks of one: all that is declared of an adapter is judged elsewhere.
    """
    facts, link = sight.facts or {}, sight.wanted.link
    if not link.is_soft and not sight.is_soft:
        return None
    parent = sight.parent if sight.is_soft else None
    card = ", ".join(str(facts[key]) for key in ("driver", "model", "type") if key in facts)
    kind = card if sight.wanted.is_port else f"an interface{f', {card}' if card else ''}"
    wrong = why_not_the_device(link, sight.words, parent, kind)
    over = parent or "an interface that it does not say"
    right = f"{sight.words} is {SOFT_ROCE_NAME} over {over}"
    brief = wrong.partition(", and the site")[0]
    origin = f"site: {link.name}"
    return as_stated(sight, "device", wrong or right, fits=not wrong, origin=origin, brief=brief)


def _rate(sight: Sight) -> Finding:
    """Judge the rate of the rail's link, or of the shaper on a rail that has no wire."""
    wanted = sight.wanted.link
    link, shaped, mbit_s, unknown = _observed_rate(sight)
    if unknown:
        return not_known(sight, "rate", f"its rate is not known: {unknown}")
    expected = wanted.data_rate_gbit_s * 1000
    tolerance = SHAPER_TOLERANCE if shaped else RATE_TOLERANCE
    factor, unit = (1000, "Gb/s") if min(mbit_s, expected) >= 1000 else (1, "Mb/s")
    one, other = f"{mbit_s / factor:.4g}", f"{expected / factor:.4g}"
    reason = f"{sight.words} runs at {one if one == other else f'{one} of {other}'} {unit}"
    is_other = link is not None and link.technology != wanted.technology
    if link is not None and is_other:
        reason = (
            f"{sight.words} is {link.technology} ({link.name}), the site declares {wanted.name}: "
            "another personality of the port (LINK_TYPE of mlxconfig), or another card"
        )
    elif mbit_s > expected * (1 + tolerance):
        reason += _BEHIND
    elif mbit_s < expected * (1 - tolerance):
        if shaped:
            reason += ": its shaper (tc qdisc) lets no more out"
        elif link is not None and link.lanes < wanted.lanes:
            reason += (
                f": it trained to {link.name} instead of {wanted.name}, {link.lanes} of "
                f"{wanted.lanes} lanes: a lane lost in cable or connector, or a split cable or port"
            )
        elif link is not None:
            reason += (
                f": it trained to {link.name} instead of {wanted.name}: a cable or transceiver for "
                "less, or the switch's port"
            )
        else:
            reason += _why_ethernet(sight, mbit_s)
    origin = f"site: {wanted.name}"
    least, most = expected * (1 - tolerance), expected * (1 + tolerance)
    known = (place(sight), "rate", reason, mbit_s, expected, "Mb/s", origin)
    return measured(*known, least=least, most=most, is_other=is_other)


def _observed_rate(sight: Sight) -> tuple[Link | None, bool, float, str]:
    """Return link if named, whether it is a shaper's, rate in Mb/s, and why it is unknown."""
    facts = sight.facts or {}
    if sight.wanted.is_port:
        try:
            link = find_link(str(facts["link"]))
        except (KeyError, FabricproofError):
            stated = re.fullmatch(r"\d+(\.\d+)?", str(facts.get("rate_gbit_s", "")))
            rate = float(stated[0]) * 1000 if stated else 0.0
            return None, False, rate, "" if rate else "the kernel does not say it"
        return link, False, link.data_rate_gbit_s * 1000, ""
    shaped, speed = facts.get("shaped_to_mbit_s"), facts.get("speed_mbit_s")
    driver, why = str(facts.get("driver", "")), ""
    has_wire = driver not in WIRELESS_DRIVERS
    if isinstance(shaped, int) and not (has_wire and isinstance(speed, int) and speed < shaped):
        return None, True, float(shaped), ""
    if not has_wire:
        why = f"a {driver} says {speed} Mb/s whatever it lets through, and no shaper was seen"
    elif not isinstance(speed, int) or speed <= 0:
        why = "its driver does not say it"
    elif sight.wanted.shaped and speed >= sight.wanted.link.data_rate_gbit_s * 1000:
        for trouble in sight.machine.troubles if shaped is None else ():
            if trouble.tool == "tc" or trouble.section in _BEFORE_SHAPERS:
                why = f"whether it is shaped: {trouble.text}"
    return None, False, float(speed or 0), why


def _why_ethernet(sight: Sight, mbit_s: float) -> str:
    wanted, seen = sight.wanted.link, sight.facts or {}
    card, speed = str(seen.get("pci", "")).rpartition(".")[0], seen.get("speed_mbit_s")
    split = [
        part.split()[-1]
        for part, each in sight.machine.facts.items()
        if card
        and str(each.get("pci", "")).rpartition(".")[0] == card
        and part.startswith("interface ")
        and (part == sight.part or each.get("speed_mbit_s") in {speed, None})
    ]
    if wanted.lanes >= 4 and len(split) >= wanted.lanes:
        mode = f"{len(split)}x{mbit_s / 1000:g} mode instead of 1x{wanted.data_rate_gbit_s:g}"
        return (
            f": the card shows {len(split)} interfaces of {mbit_s / 1000:g} Gb/s "
            f"({', '.join(split)}): its port is in {mode}"
        )
    best, lanes = seen.get("speed_best_mbit_s"), seen.get("lanes")
    if isinstance(best, int) and best < wanted.data_rate_gbit_s * 1000:
        return f": card and transceiver can do no more than {best / 1000:g} Gb/s"
    if isinstance(lanes, int) and lanes < wanted.lanes:
        return f": {lanes} of {wanted.lanes} lanes: a split cable, or a lane lost"
    return ": cable, transceiver or the switch's port made it train down"


def _soft_rate(sight: Sight) -> Finding:
    """Judge the declared rate of a software device by what shapes the interface below it.

    A wire below that is faster than the declared rate proves nothing, for the software is slower;
    one that is slower proves the declaration wrong.
    """
    parent, facts = sight.parent, sight.below
    expected = sight.wanted.link.data_rate_gbit_s * 1000
    shaped, speed = facts.get("shaped_to_mbit_s"), facts.get("speed_mbit_s")
    has_wire = str(facts.get("driver", "")) not in _SPEED_IS_A_WORD
    wire = speed if has_wire and isinstance(speed, int) and speed > 0 else None
    if isinstance(shaped, int) and (wire is None or shaped <= wire):
        lets, why = shaped, "is shaped so (tc qdisc)"
    elif wire is not None and wire < (1 - SHAPER_TOLERANCE) * expected:
        lets, why = wire, "says so (its driver)"
    else:
        reason, verdict = _why_unknown(sight, parent, known=bool(facts))
        return not_known(sight, "rate", reason, verdict)
    least, most = expected * (1 - SHAPER_TOLERANCE), expected * (1 + SHAPER_TOLERANCE)
    ending = f": {parent} below it {why}"
    if lets < least:
        ending = f" instead of {expected:.6g}{ending}, and no more passes"
    elif lets > most:
        ending = f" instead of {expected:.6g}{ending}{_BEHIND}"
    reason, origin = f"{sight.words} runs at {lets} Mb/s{ending}", f"site: {sight.wanted.link.name}"
    known = (place(sight), "rate", reason, lets, expected, "Mb/s", origin)
    return measured(*known, least=least, most=most)


def _why_unknown(sight: Sight, parent: str, *, known: bool) -> tuple[str, Verdict]:
    """Return why the rate of a software device cannot be told, and what that comes to."""
    begin = "its rate is not known:"
    if not parent:
        return f"{begin} it does not say over which interface it is", Verdict.UNJUDGED
    if not known:
        return f"{begin} {parent} below it was not seen", Verdict.UNJUDGED
    hindered = (each for each in sight.machine.troubles if each.is_of_all or each.tool == "tc")
    if trouble := next(hindered, None):
        return f"{begin} whether {parent} is shaped: {trouble.text}", Verdict.UNJUDGED
    if sight.wanted.shaped:
        return (
            f"the site declares a shaper, and {parent} below it has none (tc qdisc show): more "
            "passes than the site declares"
        ), Verdict.FAIL
    return (
        f"nothing shapes {parent} below it, so that its rate is what the software manages, which "
        'only a measurement tells; not_told = ["rate"] in the fabric\'s expect says that the '
        "declared one was measured"
    ), Verdict.UNJUDGED


def _mtu(sight: Sight, wanted: int) -> Finding:
    """Judge the MTU; that of a software device follows from the interface below if it is silent."""
    observed, below, why = (sight.facts or {}).get("mtu"), sight.below.get("mtu"), ""
    if sight.is_soft and isinstance(below, int):
        follows = soft_path_mtu(below)
        left = follows or "nothing"
        why = f"{sight.parent} below it has MTU {below}, of which {left} is left"
        observed = follows if observed is None else observed
    if not isinstance(observed, int):
        return not_known(sight, "mtu", f"its MTU is not known, expected {wanted} bytes")
    words = f"{sight.words} has MTU {observed}"
    if observed != wanted:
        less = "each packet carries less, and larger ones of its peers are lost"
        more = "its peers and switches may lose its larger packets"
        words += f" instead of {wanted}: {why or (less if observed < wanted else more)}"
    return measured(place(sight), "mtu", words, observed, wanted, "B", f"site: MTU {wanted}")
