"""Is it the card that the site means, in the slot that it means, tuned as it means?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fabricproof.core.errors import FabricproofError
from fabricproof.core.findings import Finding
from fabricproof.nodes.inventory.facts import slot_of
from fabricproof.nodes.inventory.remarks import distances
from fabricproof.nodes.inventory.words import name_of, shown
from fabricproof.nodes.preflight.sight import (
    FAR,
    Facts,
    Sight,
    as_stated,
    measured,
    not_known,
    note,
)
from fabricproof.physics import Fabric, Slot, bound
from fabricproof.site import Stated

#: MaxPayload that a slot is left at where firmware negotiated nothing (PCI Express Base
#: Specification, Device Control: the default of Max_Payload_Size is 128 bytes)
DEFAULT_PAYLOAD_BYTES = 128

#: where a stated fact is found in an inventory, the rail's own part aside
_PARTS = ("tuning", "node")


def card(sight: Sight) -> Iterator[Finding]:
    """Yield a finding for each thing that the site states of the card and its slot."""
    assert sight.facts is not None
    yield from (each for each in (_slot(sight), _payload(sight)) if each is not None)
    expect = sight.wanted.expect
    for fact in ("model", "psid", "firmware", "driver", "driver_version", "fec"):
        stated = getattr(expect, fact)
        if stated is not None:
            yield _stated(sight, fact, stated)
    if expect.numa_node is not None:
        yield _stated(sight, "numa_node", str(expect.numa_node))
    for name, value in expect.tuning.items():
        yield _tuned(sight, name, str(value))


def _slot(sight: Sight) -> Finding | None:
    wanted = sight.wanted.slot
    if wanted is None or sight.facts is None:
        return None
    observed = slot_of(sight.facts.get("pcie"))
    if observed is None:
        reason = f"{sight.words}: its PCIe link is not known, expected {wanted.name}"
        return not_known(sight, "pcie", reason)
    words = f"{sight.words} sits at {observed.name}"
    if observed.name != wanted.name:
        words += f" instead of {wanted.name}: {_what_follows(sight, slot=observed)}"
    return measured(
        sight.place,
        "pcie",
        words,
        value=observed.raw_mb_s,
        expected=wanted.raw_mb_s,
        unit="MB/s",
        origin=f"site: {wanted.name}",
    )


def _what_follows(sight: Sight, *, slot: Slot) -> str:
    """Return what a slot other than the declared one means, in MB/s of payload."""
    declared = sight.wanted.physics
    if slot.raw_mb_s > (declared.slot or slot).raw_mb_s:
        return "more than the site declares: its file is behind the machine"
    why = _why_less(sight.facts or {}, slot)
    return f"{_ceiling(declared, replace(declared, slot=slot))}; {why}"


def _ceiling(declared: Fabric, actual: Fabric) -> str:
    """Return what can pass now, and what should; both as the most generous reading."""
    now, due = bound(actual).high_mb_s, bound(declared).high_mb_s
    if now >= due:
        return f"the link still binds at {due:.0f} MB/s"
    return f"no more than {now:.0f} of {due:.0f} MB/s can pass"


def _why_less(facts: Facts, slot: Slot) -> str:
    above = slot_of(facts.get("pcie_best_of_slot"))
    able = slot_of(facts.get("pcie_best"))
    if able is not None and able.raw_mb_s <= slot.raw_mb_s:
        return f"the card is able to no more ({able.name})"
    if above is not None and above.raw_mb_s <= slot.raw_mb_s:
        return f"the slot or riser is able to no more ({above.name}): another slot, or the BIOS"
    return "card and slot are able to more: reseat the card, look at riser and BIOS"


def _payload(sight: Sight) -> Finding | None:
    declared = sight.wanted.physics
    wanted, facts = declared.max_payload_bytes, sight.facts or {}
    if wanted is None:
        return None
    observed = facts.get("max_payload_bytes")
    if not isinstance(observed, int):
        why = next((each.text for each in sight.machine.troubles if each.tool == "lspci"), "")
        reason = f"{sight.words}: its MaxPayload is not known, expected {wanted} bytes" + (
            f": {why}" if why else ""
        )
        return not_known(sight, "max_payload", reason)
    words = f"{sight.words} has PCIe MaxPayload {observed}"
    if observed != wanted:
        words += f" instead of {wanted}: {_payload_means(sight, observed, wanted)}"
    return measured(
        sight.place,
        "max_payload",
        words,
        value=observed,
        expected=wanted,
        unit="B",
        origin=f"site: MaxPayload {wanted}",
    )


def _payload_means(sight: Sight, observed: int, wanted: int) -> str:
    if observed > wanted:
        return "more than the site declares: its file is behind the machine"
    declared = sight.wanted.physics
    able = (sight.facts or {}).get("max_payload_best_bytes")
    card_can = f"; the card is able to {able}: BIOS setting" if able else ""
    try:
        actual = replace(declared, max_payload_bytes=observed)
    except FabricproofError:
        return f"no such size in the specification{card_can}"
    return f"{_ceiling(declared, actual)}{card_can}"


def _stated(sight: Sight, fact: str, stated: Stated) -> Finding:
    """Judge a fact that the site's ``expect`` table states: one of several texts."""
    wanted = [stated] if isinstance(stated, str) else list(stated)
    words = " or ".join(wanted)
    observed = _observed(sight.facts or {}, fact)
    called = name_of(fact)
    if not observed:
        return not_known(sight, fact, f"{sight.words}: its {called} is not known, expected {words}")
    fits = any(_fits(each, value) for each in wanted for value in observed)
    reason = f"{sight.words} has {called} {observed[0]}" + ("" if fits else f" instead of {words}")
    return as_stated(sight, fact, reason, fits=fits, origin="site: expect")


def _observed(facts: Facts, fact: str) -> list[str]:
    """Return what a card says of itself, in the spellings that a site may use."""
    keys = {"model": ("model", "type"), "psid": ("psid", "board")}.get(fact, (fact,))
    found = [str(facts[key]) for key in keys if facts.get(key) is not None]
    if fact == "model":
        # what lspci has in brackets is the name that people use
        found += [name for each in found for name in re.findall(r"\[([^]]+)\]", each)]
    if fact == "firmware":
        # of ethtool's words the first is the version, the PSID or a package follows
        found += [re.split(r"[ /]", each)[0] for each in found]
    return found


def _fits(wanted: str, observed: str) -> bool:
    return wanted.casefold() == observed.casefold()


def _tuned(sight: Sight, fact: str, wanted: str) -> Finding:
    """Judge a fact of ``expect.tuning``; of a list each item must be there."""
    facts = sight.machine.facts
    parts: list[Facts] = [sight.facts or {}, *(facts.get(part, {}) for part in _PARTS)]
    value = next((part[fact] for part in parts if fact in part), None)
    called = name_of(fact)
    if value is None:
        return not_known(sight, fact, f"{sight.words}: {called} are not known, expected {wanted}")
    items = [each.strip() for each in str(value).split(",")]
    lost = [
        each.strip()
        for each in wanted.split(",")
        # ``RX 1024`` is in ``RX 1024 of 8192``.
        if not any(
            _fits(each.strip(), item) or _fits(each.strip(), item.partition(" of ")[0])
            for item in items
        )
    ]
    words = f"{sight.words}: {called} {shown(fact, value)}"
    reason = words if not lost else f"{words}, expected {', '.join(lost)}"
    return as_stated(sight, fact, reason, fits=not lost, origin="site: expect", brief=reason)


def card_notes(sight: Sight) -> Iterator[Finding]:
    """Yield what is worth knowing of a card of which the site states nothing."""
    facts = sight.facts or {}
    now, able = slot_of(facts.get("pcie")), slot_of(facts.get("pcie_best"))
    if sight.wanted.slot is None and now and able and now.raw_mb_s < able.raw_mb_s:
        yield note(
            sight,
            f"{sight.words} sits at {now.name}, the card is able to {able.name}: "
            f"{_why_less(facts, now)}",
        )
    payload, best = facts.get("max_payload_bytes"), facts.get("max_payload_best_bytes")
    if (
        sight.wanted.physics.max_payload_bytes is None
        and isinstance(best, int)
        and payload == DEFAULT_PAYLOAD_BYTES < best
    ):
        yield note(
            sight,
            f"{sight.words} has PCIe MaxPayload {payload}, the card is able to {best}: each packet "
            "of 128 bytes carries some 20 bytes of headers",
        )


def far_ranks(sight: Sight, bound_cpus: Iterable[str]) -> Iterator[Finding]:
    """Yield a note for each set of CPUs that lies on another NUMA node than the rail's card."""
    for cpus in dict.fromkeys(bound_cpus):
        for each in distances(sight.machine, cpus):
            if each.part == sight.part and each.is_far:
                those = f"CPUs {cpus}, which its ranks are bound to"
                yield note(sight, f"{sight.words} is on {each.place} from {those}", FAR)
