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
    place,
)
from fabricproof.physics import Fabric, Slot, bound

#: MaxPayload that a slot is left at where firmware negotiated nothing (PCI Express Base
#: Specification, Device Control: the default of Max_Payload_Size is 128 bytes)
DEFAULT_PAYLOAD_BYTES = 128

_BEHIND = "more than the site declares: its file is behind the machine"


def judge_card(sight: Sight) -> Iterator[Finding]:
    """Yield a finding for each thing that the site states of the card and its slot."""
    physics, expect = sight.wanted.physics, sight.wanted.expect
    if physics.slot is not None:
        yield _slot(sight, physics.slot)
    if physics.max_payload_bytes is not None:
        yield _payload(sight, physics.max_payload_bytes)
    for fact in ("model", "psid", "firmware", "driver", "driver_version", "fec", "numa_node"):
        stated = getattr(expect, fact)
        if stated is not None:
            wanted = stated if isinstance(stated, list) else [str(stated)]
            yield _stated(sight, fact, wanted)
    for name, value in expect.tuning.items():
        yield _tuned(sight, name, str(value))


def _slot(sight: Sight, wanted: Slot) -> Finding:
    facts, declared = sight.facts or {}, sight.wanted.physics
    observed = slot_of(facts.get("pcie"))
    if observed is None:
        return not_known(sight, "pcie", f"its PCIe link is not known, expected {wanted.name}")
    words = f"{sight.words} sits at {observed.name}"
    if observed.name != wanted.name:
        why = (
            f"{_ceiling(declared, replace(declared, slot=observed))}; {_why_less(facts, observed)}"
        )
        why = _BEHIND if observed.raw_mb_s > wanted.raw_mb_s else why
        words += f" instead of {wanted.name}: {why}"
    values = (observed.raw_mb_s, wanted.raw_mb_s)
    return measured(place(sight), "pcie", words, *values, "MB/s", f"site: {wanted.name}")


def _ceiling(declared: Fabric, actual: Fabric) -> str:
    """Return what can pass now, and what should; both as the most generous reading."""
    now, due = bound(actual).high_mb_s, bound(declared).high_mb_s
    if now >= due:
        return f"the link still binds at {due:.0f} MB/s"
    return f"no more than {now:.0f} of {due:.0f} MB/s can pass"


def _why_less(facts: Facts, slot: Slot) -> str:
    above, able = slot_of(facts.get("pcie_best_of_slot")), slot_of(facts.get("pcie_best"))
    if able is not None and able.raw_mb_s <= slot.raw_mb_s:
        return f"the card is able to no more ({able.name})"
    if above is not None and above.raw_mb_s <= slot.raw_mb_s:
        return f"the slot or riser is able to no more ({above.name}): another slot, or the BIOS"
    return "card and slot are able to more: reseat the card, look at riser and BIOS"


def _payload(sight: Sight, wanted: int) -> Finding:
    facts, declared = sight.facts or {}, sight.wanted.physics
    observed = facts.get("max_payload_bytes")
    if not isinstance(observed, int):
        why = next((f": {e.text}" for e in sight.machine.troubles if e.tool == "lspci"), "")
        reason = f"its MaxPayload is not known, expected {wanted} bytes{why}"
        return not_known(sight, "max_payload", reason)
    words = f"{sight.words} has PCIe MaxPayload {observed}"
    if observed != wanted:
        try:
            why = _ceiling(declared, replace(declared, max_payload_bytes=observed))
        except FabricproofError:
            why = "no such size in the specification"
        if able := facts.get("max_payload_best_bytes"):
            why += f"; the card is able to {able}: BIOS setting"
        words += f" instead of {wanted}: {_BEHIND if observed > wanted else why}"
    origin = f"site: MaxPayload {wanted}"
    return measured(place(sight), "max_payload", words, observed, wanted, "B", origin)


def _stated(sight: Sight, fact: str, wanted: list[str]) -> Finding:
    """Judge a fact that the site's ``expect`` table states: one of several texts."""
    facts, called, words = sight.facts or {}, name_of(fact), " or ".join(wanted)
    # the spellings that a site may use
    keys = {"model": ("model", "type"), "psid": ("psid", "board")}.get(fact, (fact,))
    found = [str(facts[key]) for key in keys if facts.get(key) is not None]
    if not found:
        return not_known(sight, fact, f"its {called} is not known, expected {words}")
    spelled = [*found]
    if fact == "model":  # what lspci has in brackets is the name that people use
        spelled += [name for each in found for name in re.findall(r"\[([^]]+)\]", each)]
    if fact == "firmware":  # the version is first, the PSID or a package follows
        spelled += [re.split(r"[ /]", each)[0] for each in found]
    fits = any(one.casefold() == other.casefold() for one in wanted for other in spelled)
    reason = f"{sight.words} has {called} {found[0]}" + ("" if fits else f" instead of {words}")
    return as_stated(sight, fact, reason, fits=fits, origin="site: expect")


def _tuned(sight: Sight, fact: str, wanted: str) -> Finding:
    """Judge a fact of ``expect.tuning``; of a list each item must be there."""
    facts, called = sight.machine.facts, name_of(fact)
    parts: list[Facts] = [sight.facts or {}, facts.get("tuning", {}), facts.get("node", {})]
    value = next((part[fact] for part in parts if fact in part), None)
    if value is None:
        return not_known(sight, fact, f"{called} are not known, expected {wanted}")
    items = {each.strip().casefold() for each in str(value).split(",")}
    items |= {each.partition(" of ")[0] for each in items}  # ``RX 1024`` is in ``RX 1024 of 8192``
    lost = [each.strip() for each in wanted.split(",") if each.strip().casefold() not in items]
    words = f"{sight.words}: {called} {shown(fact, value)}"
    reason = f"{words}, expected {', '.join(lost)}" if lost else words
    return as_stated(sight, fact, reason, fits=not lost, origin="site: expect", brief=reason)


def card_notes(sight: Sight) -> Iterator[Finding]:
    """Yield what is worth knowing of a card of which the site states nothing."""
    facts, physics = sight.facts or {}, sight.wanted.physics
    now, able = slot_of(facts.get("pcie")), slot_of(facts.get("pcie_best"))
    if physics.slot is None and now and able and now.raw_mb_s < able.raw_mb_s:
        why = f"the card is able to {able.name}: {_why_less(facts, now)}"
        yield note(sight, f"{sight.words} sits at {now.name}, {why}")
    payload, best = facts.get("max_payload_bytes"), facts.get("max_payload_best_bytes")
    is_default = isinstance(best, int) and payload == DEFAULT_PAYLOAD_BYTES < best
    if physics.max_payload_bytes is None and is_default:
        why = "each packet of 128 bytes carries some 20 bytes of headers"
        able_to = f"{sight.words} has PCIe MaxPayload {payload}, the card is able to {best}"
        yield note(sight, f"{able_to}: {why}")


def far_ranks(sight: Sight, bound_cpus: Iterable[str]) -> Iterator[Finding]:
    """Yield a note for each set of CPUs that lies on another NUMA node than the rail's card."""
    for cpus in dict.fromkeys(bound_cpus):
        for each in distances(sight.machine, cpus):
            if each.part == sight.part and each.is_far:
                those = f"CPUs {cpus}, which its ranks are bound to"
                yield note(sight, f"{sight.words} is on {each.place} from {those}", FAR)
