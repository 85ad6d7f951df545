"""Did devices stay what they were: their links, and in a soak PCIe and what they say of heat?

Each rank reads sysfs before and after each of its rounds.  A PCIe link that trained to fewer lanes
or a lower rate and stays there is red; one that came back, or that only the last look saw, is told
and no red.  A temperature is held against the limit that the device itself states, and nothing
else.  A link that went down twice is red in every campaign, however good its pairs are afterwards.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from fabricproof.core.errors import FabricproofError
from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key, first_few
from fabricproof.physics import Slot, find_slot

#: looks that must see the same before it is red: one alone may be a moment of training
LEAST_LOOKS = 2

#: sysfs states temperatures in thousandths (Linux Documentation/hwmon/sysfs-interface.rst:
#: "temp[1-*]_input: Unit: millidegree Celsius")
_MILLI = 1000


class DeviceQuantity(StrEnum):
    """What a device shows."""

    PCIE_LINK = "pcie_link"
    """The rate and the lanes that its link trained to."""
    TEMPERATURE = "temperature"
    """What a sensor of it reads."""
    OPTICS = "optics"
    """What its transceiver says: heat, light that arrives, alarms."""
    LINK = "link"
    """How often it went down, by its own counter; there only where it did so too often."""


@dataclass(frozen=True, kw_only=True)
class DeviceLook:
    """What the devices of a node showed at one time, in the words of sysfs.

    Attributes:
        round: before or after which it was.
        at: in s since 1970, by the node's clock.
        devices: interface or port -> file -> its first word.
    """

    round: int
    node: str
    at: float
    devices: Mapping[str, Mapping[str, str]] = field(repr=False)

    @property
    def when(self) -> str:
        """``14:31:05 UTC, round 12``."""
        return f"{datetime.fromtimestamp(self.at, UTC):%H:%M:%S} UTC, round {self.round}"

    def of(self, rail: str) -> Mapping[str, str]:
        """Return what the device of a rail showed; a device of one port may be named without it."""
        named = self.devices.get(rail)
        return named if named is not None else self.devices.get(f"{rail}:1", {})


@dataclass(frozen=True, kw_only=True)
class DeviceFinding:
    """What a soak says of one device of a node.

    Attributes:
        verdict: FAIL; UNJUDGED, where it is not sure; PASS, where it stayed as it was, or below the
            limit that it states; None, where there is nothing to hold it against.
        sensor: of a temperature, in the words of the device.
        looks: how often it was read.
        celsius: the highest temperature; None where none was read.
        limit_celsius: what the device states; None where it states none.
    """

    verdict: Verdict | None
    quantity: DeviceQuantity
    node: str
    rail: str
    sensor: str = ""
    looks: int
    celsius: float | None = None
    limit_celsius: float | None = None
    sentence: str


def judge_devices(looks: Iterable[DeviceLook], rails: Iterable[str]) -> tuple[DeviceFinding, ...]:
    """Judge the devices of rails on all nodes.

    Args:
        looks: of all rounds, in any order.
        rails: interfaces or ports that were soaked.
    """
    of_node = by_key((each.node, each) for each in sorted(looks, key=lambda look: look.at))
    return tuple(
        found
        for node, own in of_node.items()
        for rail in dict.fromkeys(rails)
        for found in (*_link(node, rail, own), *_temperatures(node, rail, own))
    )


def not_told(
    findings: Iterable[DeviceFinding], nodes: Sequence[str], rails: Sequence[str]
) -> Iterator[str]:
    """Yield for each quantity whose devices do not tell it; nothing where all do."""
    findings = tuple(findings)
    for quantity in DeviceQuantity:
        if quantity is DeviceQuantity.LINK:
            continue
        told = {(each.node, each.rail) for each in findings if each.quantity is quantity}
        silent = [f"{node} {rail}" for node in nodes for rail in rails if (node, rail) not in told]
        name = quantity.value.replace("_", " ").replace("pcie", "PCIe")
        if silent and not told:
            yield f"{name}: not told by any node"
        elif silent:
            yield f"{name}: not told of {first_few(silent)}"


#: a link that went down this often is no accident of one moment
LEAST_DOWNS = 2

#: what happened between two rounds counts where no more than this lies between them, in seconds: a
#: campaign may be resumed days later, after somebody changed a cable
MOST_GAP_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class LinkCounts:
    """What the counters of a node's links stood at before and after a round.

    Attributes:
        begin: of the round, in s since 1970.
        before: interface or port -> counter -> value.
    """

    node: str
    begin: float
    end: float
    before: Mapping[str, Mapping[str, int]] = field(repr=False)
    after: Mapping[str, Mapping[str, int]] = field(repr=False)


def judge_links(counts: Iterable[LinkCounts], rails: Iterable[str]) -> tuple[DeviceFinding, ...]:
    """Return the links that went down :data:`LEAST_DOWNS` times or more, in rounds or between them.

    By ``carrier_changes``, which counts each way (Linux, Documentation/ABI/testing/sysfs-class-net:
    "number of link transitions between UP and DOWN"), or ``link_downed`` of a port.  A counter that
    ran backwards counts nothing.

    Args:
        counts: of all rounds, in any order.
        rails: interfaces or ports, also those that another rail was measured beside.
    """
    of_node = by_key((each.node, each) for each in sorted(counts, key=lambda count: count.begin))
    return tuple(
        DeviceFinding(
            verdict=Verdict.FAIL,
            quantity=DeviceQuantity.LINK,
            node=node,
            rail=rail,
            looks=2 * len(own),
            sentence=f"{node} {rail}: its link went down {downs} times while the campaign ran",
        )
        for node, own in of_node.items()
        for rail in dict.fromkeys(rails)
        if (downs := sum(_downs(rail, own))) >= LEAST_DOWNS
    )


def _downs(rail: str, own: Sequence[LinkCounts]) -> Iterator[int]:
    for at, each in enumerate(own):
        yield _between(each.before.get(rail, {}), each.after.get(rail, {}))
        if at and each.begin - own[at - 1].end <= MOST_GAP_SECONDS:
            yield _between(own[at - 1].after.get(rail, {}), each.before.get(rail, {}))


def _between(before: Mapping[str, int], after: Mapping[str, int]) -> int:
    changes, downs = (
        after[name] - before[name] if name in before and name in after else 0
        for name in ("carrier_changes", "link_downed")
    )
    return max(0, (changes + 1) // 2, downs)


def _slot(words: Mapping[str, str]) -> Slot | None:
    speed, width = words.get("current_link_speed"), words.get("current_link_width")
    try:
        return find_slot(f"{speed} GT/s x{width}") if speed and width else None
    except FabricproofError:
        return None  # "Unknown", no lanes: a virtual function, or a machine that makes it up


def _link(node: str, rail: str, looks: Sequence[DeviceLook]) -> Iterator[DeviceFinding]:
    seen = [(look, _slot(look.of(rail))) for look in looks]
    known = [(look, slot) for look, slot in seen if slot is not None]
    if not known:
        return
    verdict, words = _course(known)
    if seen[-1][1] is None and verdict is Verdict.PASS:
        verdict = Verdict.UNJUDGED
        words = f"{known[-1][1].name} at {known[-1][0].when}, and not told afterwards"
    yield DeviceFinding(
        verdict=verdict,
        quantity=DeviceQuantity.PCIE_LINK,
        node=node,
        rail=rail,
        looks=len(known),
        sentence=f"{node} {rail}: PCIe link {words}",
    )


def _course(known: Sequence[tuple[DeviceLook, Slot]]) -> tuple[Verdict, str]:
    """Return the verdict on what a link was at each look, and why."""
    best = known[0][1]
    low: list[tuple[DeviceLook, Slot, Slot]] = []  # with the best that was seen before
    at_end: list[tuple[DeviceLook, Slot, Slot]] = []  # those behind the last that was as good
    for look, slot in known:
        if slot.raw_mb_s >= best.raw_mb_s:
            best, at_end = slot, []
        else:
            low.append((look, slot, best))
            at_end.append(low[-1])
    if not low:
        return Verdict.PASS, f"{best.name} at all {len(known)} looks"
    look, slot, was = (at_end or low)[0]
    words = f"trained down from {was.name} to {slot.name} (seen first at {look.when})"
    if len(at_end) >= LEAST_LOOKS:
        return Verdict.FAIL, f"{words} and is {at_end[-1][1].name} at the end"
    if at_end:
        return Verdict.UNJUDGED, f"{words}, which only the last look saw: look again"
    seen = f"lower at {len(low)} of {len(known)} looks"
    return Verdict.UNJUDGED, f"{words}, {seen}, and is {best.name} at the end"


def _temperatures(node: str, rail: str, looks: Sequence[DeviceLook]) -> Iterator[DeviceFinding]:
    sensors = {name for look in looks for name in look.of(rail) if name.endswith("_input")}
    for sensor in sorted(each.removesuffix("_input") for each in sensors):
        read = [
            (celsius, look)
            for look in looks
            if (celsius := _celsius(look.of(rail).get(f"{sensor}_input"))) is not None
        ]
        if read:
            yield _temperature(node, rail, sensor, read)


def _temperature(
    node: str, rail: str, sensor: str, read: Sequence[tuple[float, DeviceLook]]
) -> DeviceFinding:
    highest, look = max(read, key=lambda each: each[0])
    words = look.of(rail)
    label = words.get(f"{sensor}_label") or sensor.rpartition("/")[2]
    # The critical one is the higher of the two; of one that states both the lower is a warning.
    stated = (_celsius(words.get(f"{sensor}_{which}")) for which in ("crit", "max"))
    limit = next((each for each in stated if each is not None and each > 0), None)
    said = f"{node} {rail}: {label} {highest:.4g} C at most (at {look.when})"
    verdict: Verdict | None = None
    if limit is not None:
        over = sum(each >= limit for each, _ in read)
        said += f", the device states {limit:.4g} C as its limit"
        verdict = Verdict.PASS if not over else Verdict.UNJUDGED
        if over:
            said += f": reached at {over} of {len(read)} looks"
        if over >= LEAST_LOOKS:
            verdict = Verdict.FAIL
    return DeviceFinding(
        verdict=verdict,
        quantity=DeviceQuantity.TEMPERATURE,
        node=node,
        rail=rail,
        sensor=label,
        looks=len(read),
        celsius=highest,
        limit_celsius=limit,
        sentence=said,
    )


def judge_optics(said: Mapping[str, Sequence[str]]) -> Iterator[DeviceFinding]:
    """Yield what the optics of each rail say before and after a soak, where ``ethtool`` may ask.

    An alarm that came on meanwhile is UNJUDGED: a device says that it left its own limits, and
    nobody knows whether it stays there.  The rest is told.

    Args:
        said: node -> what ``optics.sh`` left there, launch after launch.
    """
    for node, texts in said.items():
        found = by_key((look.rail, look) for text in texts for look in _looks(text))
        yield from (_optics(node, rail, looks) for rail, looks in found.items())


@dataclass(kw_only=True)
class _Optics:
    """One look at the optics of a rail: C, the least light of a lane in dBm, alarms that are on."""

    rail: str
    celsius: float | None = None
    dbm: float | None = None
    alarms: set[str] = field(default_factory=set)


#: how ethtool prints them (ethtool 5.16 qsfp.c, sfpdiag.c, cmis.c)
_HEAT = re.compile(r"Module temperature +: (-?[\d.]+) degrees C")
_LIGHT = re.compile(r"(?:Rcvr signal avg|Receiver signal average) optical power.*: .* / (\S+) dBm")
_ALARM = re.compile(r"(.* alarm\b.*\S) +: On")


def _looks(text: str) -> Iterator[_Optics]:
    looks: dict[tuple[str, str], _Optics] = {}
    for line in text.splitlines():
        when, rail, words = [*line.split(" ", 2), "", ""][:3]
        look = looks.setdefault((when, rail), _Optics(rail=rail))
        if match := _HEAT.match(words):
            look.celsius = float(match[1])
        elif match := _LIGHT.match(words):
            look.dbm = min(float(match[1]), math.inf if look.dbm is None else look.dbm)
        elif match := _ALARM.match(words):
            look.alarms.add(" ".join(match[1].split()))
    yield from looks.values()


def _optics(node: str, rail: str, looks: Sequence[_Optics]) -> DeviceFinding:
    first, last = looks[0], looks[-1]
    came = sorted(last.alarms - first.alarms) if len(looks) > 1 else []
    heats = [each.celsius for each in looks if each.celsius is not None]
    words = f"{node} {rail}: optics {_span(first.celsius, last.celsius, 'C')}"
    words += f", the least light of a lane {_span(first.dbm, last.dbm, 'dBm')}"
    if came:
        words += f"; came on meanwhile: {', '.join(came)}"
    return DeviceFinding(
        verdict=Verdict.UNJUDGED if came else None,
        quantity=DeviceQuantity.OPTICS,
        node=node,
        rail=rail,
        looks=len(looks),
        celsius=max(heats, default=None),
        sentence=words,
    )


def _span(first: float | None, last: float | None, unit: str) -> str:
    shown = ["not told" if each is None else f"{each:.4g}" for each in (first, last)]
    return f"{shown[0]} to {shown[1]} {unit}"


def _celsius(word: str | None) -> float | None:
    try:
        found = float(word) / _MILLI if word else math.nan
    except ValueError:
        return None
    return found if math.isfinite(found) else None
