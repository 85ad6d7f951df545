"""Is the device the software, or the adapter, that the site means; and what lets its bytes out?

A software device (Soft-RoCE) has no wire.  Its rate in sysfs is made up, so what can be seen is
judged instead: the interface below it, that interface's shaper, and the MTU that follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabricproof.core.findings import Finding, Where
from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key
from fabricproof.nodes.preflight.sight import Facts, Sight, as_stated, measured, not_known
from fabricproof.physics import SOFT_ROCE, SOFT_ROCE_NAME, soft_path_mtu, why_not_the_device

#: Drivers of interfaces without a wire: their speed is a constant of the driver's source (Linux
#: drivers/net/veth.c says 10000 Mb/s), whatever lets their bytes through.
WIRELESS_DRIVERS = frozenset(
    {"veth", "tun", "bridge", "dummy", "ipvlan", "macvlan", "vxlan", "openvswitch"}
)

#: the speed of a virtio_net is what its host's settings say (Virtual I/O Device specification,
#: Network Device: VIRTIO_NET_F_SPEED_DUPLEX), and no wire's
_SPEED_IS_A_WORD = WIRELESS_DRIVERS | {"virtio_net"}

#: A shaper's mean rate may lie this much below the wire that it stands for: below its peak rate
#: (tc-tbf(8)), and by what it does not count of each frame (24 of 1538 bytes: 1.6 %).
SHAPER_TOLERANCE = 0.03


def is_soft(facts: Facts) -> bool:
    """Tell whether a port is a software device."""
    return facts.get("kind") == SOFT_ROCE


def parent_of(facts: Facts) -> str:
    """Return the interface below a software device; empty where nobody says."""
    return str(facts.get("parent", ""))


def below(sight: Sight) -> Facts:
    """Return what was seen of the interface below a software device; empty where it was not."""
    return sight.machine.facts.get(f"interface {parent_of(sight.facts or {})}", {})


def device(sight: Sight) -> Finding | None:
    """Judge that a rail is a software device where the site declares one, and only there.

    None where neither speaks of one: all that is declared of an adapter is judged elsewhere.
    """
    facts, link = sight.facts or {}, sight.wanted.link
    if not link.is_soft and not is_soft(facts):
        return None
    parent = parent_of(facts) if is_soft(facts) else None
    card = ", ".join(str(facts[key]) for key in ("driver", "model", "type") if key in facts)
    kind = card if sight.wanted.is_port else f"an interface{f', {card}' if card else ''}"
    wrong = why_not_the_device(link, sight.words, parent, kind)
    right = (
        f"{sight.words} is {SOFT_ROCE_NAME} over {parent or 'an interface that it does not say'}"
    )
    brief = wrong.partition(", and the site")[0]
    origin = f"site: {link.name}"
    return as_stated(sight, "device", wrong or right, fits=not wrong, origin=origin, brief=brief)


def shared_wires(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield a red finding for each software rail of one node that shares its interface."""
    over = by_key(
        (parent, sight)
        for sight in sights
        if sight.facts is not None and is_soft(sight.facts) and (parent := parent_of(sight.facts))
    )
    for parent, those in over.items():
        for sight in those if len(those) > 1 else ():
            rails = " and ".join(each.wanted.rail for each in those)
            brief = f"{rails} on {sight.machine.node} are over one interface"
            reason = (
                f"{brief}: {parent} below them carries all their bytes, which are no number of "
                f"{len(those)} rails; make each device over an interface of its own"
            )
            origin = f"site: {len(sights)} rails"
            found = as_stated(sight, "wire", reason, fits=False, origin=origin, brief=brief)
            # It blames no card.
            where = Where(rail=sight.wanted.rail, nodes=(sight.machine.node,))
            yield replace(found, where=where)


def soft_rate(sight: Sight) -> Finding:
    """Judge the declared rate of a software device by what shapes the interface below it.

    A wire below that is faster than the declared rate proves nothing, for the software is slower;
    one that is slower proves the declaration wrong.
    """
    parent, facts = parent_of(sight.facts or {}), below(sight)
    expected = sight.wanted.link.data_rate_gbit_s * 1000
    shaped, wire = facts.get("shaped_to_mbit_s"), _wire(facts)
    least = (1 - SHAPER_TOLERANCE) * expected
    if isinstance(shaped, int) and (wire is None or shaped <= wire):
        lets, why = shaped, "is shaped so (tc qdisc)"
    elif wire is not None and wire < least:
        lets, why = wire, "says so (its driver)"
    else:
        reason, verdict = _why_unknown(sight, parent, facts)
        return not_known(sight, "rate", f"{sight.words}: {reason}", verdict)
    ending = f": {parent} below it {why}"
    if lets < least:
        ending = f" instead of {expected:.6g}: {parent} below it {why}, and no more passes"
    elif lets > (1 + SHAPER_TOLERANCE) * expected:
        ending = (
            f" instead of {expected:.6g}: {parent} below it {why}: more than the site declares, "
            "and true numbers will be called impossible"
        )
    return measured(
        sight.place,
        "rate",
        f"{sight.words} runs at {lets} Mb/s{ending}",
        value=lets,
        expected=expected,
        unit="Mb/s",
        origin=f"site: {sight.wanted.link.name}",
        tolerance=SHAPER_TOLERANCE,
    )


def _wire(facts: Facts) -> int | None:
    """Return what the wire of an interface carries, in Mb/s; None where it has none that tells."""
    speed = facts.get("speed_mbit_s")
    has_wire = str(facts.get("driver", "")) not in _SPEED_IS_A_WORD
    return speed if has_wire and isinstance(speed, int) and speed > 0 else None


def _why_unknown(sight: Sight, parent: str, facts: Facts) -> tuple[str, Verdict]:
    """Return why the rate of a software device cannot be told, and what that comes to."""
    if not parent:
        return "its rate is not known: it does not say over which interface it is", Verdict.UNJUDGED
    if not facts:
        return f"its rate is not known: {parent} below it was not seen", Verdict.UNJUDGED
    hindered = (each for each in sight.machine.troubles if each.is_of_all or each.tool == "tc")
    if trouble := next(hindered, None):
        reason = f"its rate is not known: whether {parent} is shaped: {trouble.text}"
        return reason, Verdict.UNJUDGED
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


def why_soft_is_down(sight: Sight) -> str:
    """Return why a software device is down, by the interface below it."""
    parent = parent_of(sight.facts or {})
    if not parent:
        return "its interface went away: make it anew (rdma link add NAME type rxe netdev ...)"
    state = below(sight).get("state")
    if str(state).lower() in {"up", "unknown"}:
        return f"{parent} below it is up: make the device anew (rdma link delete, rdma link add)"
    said = f"is {state}" if state else "was not seen"
    return f"{parent} below it {said}: ip link set {parent} up"


def soft_mtu(sight: Sight) -> tuple[int | None, str]:
    """Return the active MTU that follows from the interface below, and a clause that says so."""
    mtu = below(sight).get("mtu")
    if not isinstance(mtu, int):
        return None, ""
    follows = soft_path_mtu(mtu)
    taken = "nothing" if follows is None else str(follows)
    return (
        follows,
        f"{parent_of(sight.facts or {})} below it has MTU {mtu}, of which {taken} is left",
    )


def soft_notes(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield what sysfs says of a software device's rate, and that it is not judged."""
    said = {
        str(facts["rate_in_sysfs"]): sight.wanted.rail
        for sight in sights
        if (facts := sight.facts) and is_soft(facts) and "rate_in_sysfs" in facts
    }
    for rate, rail in said.items():
        yield Finding(
            where=Where(rail=rail),
            text=f"{rail} says {rate!r} in sysfs, which the kernel makes up for a software "
            "device: not judged",
        )
