"""What rates as the kernel prints them say of a link.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fabricproof.core.errors import FabricproofError
from fabricproof.physics import ethernet_name, find_link, known_links, soft_roce_link

#: how far a kernel's rounded rate may lie from lanes x line rate: '56 Gb/sec' is 56.25, '200' is
#: 212.5 with the FEC of HDR
_ROUNDING = 0.10

#: a wire carries 1538 bytes for a frame of which tc counts 1514 (preamble 8, FCS 4, gap 12)
_UNCOUNTED = 1538 / 1514
#: a shaper this much below a round rate stands for that rate: 199 Mbit/s for 200
_BELOW = 0.02
_ROUND = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 7.5, 8)
#: tc rounds buckets to ticks of its clock
_MARGIN = 1.1


def verbs_link(kind: str, rate: str) -> str | None:
    """Return the link of a verbs port by its rate in sysfs; None where the two do not agree.

    A kernel older than a speed prints another speed's name: '400 Gb/sec (4X HDR)' is NDR.

    Args:
        kind: ``ib``, ``roce``, ``efa`` or ``opa``.
        rate: ``200 Gb/sec (4X HDR)``.
    """
    found = re.match(r"(\d+(?:\.\d+)?) Gb/sec", rate)
    if found is None or float(found[1]) <= 0:
        return None
    stated = float(found[1])
    if kind == "roce":
        return ethernet_name(stated)
    if kind == "efa":
        return f"EFA {stated:g}" if f"EFA {stated:g}" in known_links() else None
    if kind == "opa":
        return {100: "Omni-Path 100", 400: "CN5000"}.get(int(stated))
    return _infiniband_link(rate, stated)


def _infiniband_link(rate: str, stated_gbit_s: float) -> str | None:
    try:
        link = find_link(rate)
    except FabricproofError:
        return None
    if _agrees(link.lanes * link.line_rate_gbit_s, stated_gbit_s):
        return link.name
    same_width = [
        each
        for each in known_links().values()
        if each.technology == "infiniband" and each.lanes == link.lanes
    ]
    fitting = [
        each for each in same_width if _agrees(each.lanes * each.line_rate_gbit_s, stated_gbit_s)
    ]
    return fitting[0].name if len(fitting) == 1 else None


def _agrees(line_rate_gbit_s: float, stated_gbit_s: float) -> bool:
    return abs(line_rate_gbit_s - stated_gbit_s) <= _ROUNDING * line_rate_gbit_s


def shaped_link(shaper: Mapping[str, str | int]) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Return the link that a token bucket stands for, and the keys of ``shaper`` in fabric.toml.

    ``shaper`` are the facts of an interface.  The peak rate is what passes after the bucket;
    without one the whole bucket passes at once.  The link is rounded up, so that no true number is
    called impossible.
    """
    bucket = int(shaper.get("shaper_peak_bytes") or shaper.get("shaper_burst_bytes", 0))
    burst = round(bucket * _MARGIN)
    keys = (("burst_bytes", burst), ("instant_bytes", burst))
    return ethernet_name(_shaped_gbit_s(shaper)), keys


def soft_link(shaper: Mapping[str, str | int]) -> str:
    """Return the link of a software device over an interface with that token bucket."""
    return soft_roce_link(_shaped_gbit_s(shaper)).name


def _shaped_gbit_s(shaper: Mapping[str, str | int]) -> float:
    """Return the wire's rate for a shaper: the next round one, if it is near."""
    rate_mbit_s = int(shaper.get("shaper_peak_mbit_s") or shaper["shaped_to_mbit_s"])
    power = 10.0 ** (len(str(rate_mbit_s)) - 1)
    for step in (*_ROUND, 10):
        if step * power * (1 - _BELOW) <= rate_mbit_s <= step * power:
            return step * power / 1e3
    return round(rate_mbit_s * _UNCOUNTED, 3) / 1e3
