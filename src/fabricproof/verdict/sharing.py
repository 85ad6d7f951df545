"""How an MPI shares its messages among rails: from which size several help, and how evenly.

Document 000 of the sources: two rails equal to one up to 8 KiB, then more; document 002 names
MVAPICH2's ``MV2_RAIL_SHARING_LARGE_MSG_THRESHOLD``.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

#: message size in bytes -> MB/s
Curve = Mapping[int, float]

#: Several rails help where they carry this fraction of the gain that physics promises: a quarter
#: of the way from one rail to two is 1.25, beyond what two runs of one rail differ by.
HELPS = 0.25

#: and never less than this many times the disagreement between single rails of one kind
NOISE_FACTOR = 3.0

#: Fewer bytes than these on all rails say nothing: handshakes and ARP are of that order.
TELLING_BYTES = 256 * 1024


def threshold_bytes(
    singles: Mapping[str, Curve], together: Curve, *, expected_gain: float
) -> int | None:
    """Return the smallest message from which on, at every larger size, several rails help.

    None where they never do.

    Args:
        singles: rail -> its curve when it was alone.
        together: the curve over all rails at once.
        expected_gain: all rails over the best one, as physics allows; 1 where a slot binds.
    """
    common = [size for size in together if all(size in curve for curve in singles.values())]
    best = {size: max((curve[size] for curve in singles.values()), default=0.0) for size in common}
    gains = {size: together[size] / best[size] for size in common if best[size] > 0}
    return threshold_of(gains, least_gain(expected_gain, disagreement(singles)))


def disagreement(singles: Mapping[str, Curve]) -> float:
    """Return by how much single rails differ at one size, as a fraction: the median over sizes.

    Rails that are unlike on purpose differ by more than noise; the threshold is then found later,
    never too early.  0 with one rail.
    """
    curves = list(singles.values())
    common = set.intersection(*(set(curve) for curve in curves)) if curves else set()
    spans = [
        (max(values) - min(values)) / max(values)
        for values in ([curve[size] for curve in curves] for size in common)
        if max(values) > 0
    ]
    return median(spans) if spans else 0.0


def least_gain(expected_gain: float, noise: float) -> float:
    """Return the gain from which on several rails count as helping, above 1."""
    return 1 + max(HELPS * max(expected_gain - 1, 0.0), NOISE_FACTOR * noise, HELPS / 2)


def threshold_of(gains: Curve, least: float) -> int | None:
    """Return the size from which every larger one gains ``least``; None where there is none."""
    threshold = None
    for size in sorted(gains, reverse=True):
        if gains[size] < least:
            break
        threshold = size
    return threshold


def shares_of(sent_bytes: Mapping[str, int]) -> dict[str, float]:
    """Return each rail's part of the bytes, 0 to 1; empty where too few moved to tell."""
    total = sum(sent_bytes.values())
    if total < TELLING_BYTES or min(sent_bytes.values()) < 0:
        return {}
    return {rail: moved / total for rail, moved in sent_bytes.items()}


def balance(shares: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return what part of the rails' summed rate these shares allow, 0 to 1.

    All rails must finish: the one with most to carry for its rate decides.  1 where each has just
    its weight; for two like rails at 62 and 38 % it is 0.81.

    Args:
        shares: part of the bytes that each rail carried; they add up to 1.
        weights: part of the summed rate that each rail has, positive; they add up to 1.
    """
    return 1 / max(shares[rail] / weights[rail] for rail in shares)
