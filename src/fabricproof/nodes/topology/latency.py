"""What a switch costs: latencies by hop count, each distance by itself and never in one pot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HopCost:
    """The straight line t = start + switches x each through latencies by hop count.

    Attributes:
        start_us: what is left without any switch: software, adapters, slots.
        switch_us: what each switch adds; below 0 where the farther pair was the faster.
    """

    start_us: float
    switch_us: float


def hop_cost(latency_us: Mapping[int, float]) -> HopCost | None:
    """Return the least-squares line through ``latency_us``; None with fewer than two distances.

    Args:
        latency_us: switches between a pair -> its latency in us.
    """
    if len(latency_us) < 2:
        return None
    mean_hops = sum(latency_us) / len(latency_us)
    mean_us = sum(latency_us.values()) / len(latency_us)
    spread = sum((hops - mean_hops) ** 2 for hops in latency_us)
    slope = sum((hops - mean_hops) * (us - mean_us) for hops, us in latency_us.items()) / spread
    return HopCost(start_us=mean_us - slope * mean_hops, switch_us=slope)


def latency_words(latency_us: Mapping[int, float]) -> str:
    """Return the latencies by distance, for a person, with what a switch costs."""
    said = ", ".join(
        f"{hops} switch{'es' if hops > 1 else ''} {us:.3g} us"
        for hops, us in sorted(latency_us.items())
    )
    cost = hop_cost(latency_us)
    if cost is None:
        return said
    if cost.switch_us <= 0:
        return f"{said}: the farther pair is no slower, so noise or a wrong topology is larger"
    return f"{said}: {cost.switch_us:.2g} us for each switch"
