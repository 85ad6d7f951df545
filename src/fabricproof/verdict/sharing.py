"""How an MPI shares its messages among rails: what curves and counters tell, noise allowed for.

The facts a reader wants (document 000 of the sources: two rails equal to one up to 8 KiB, then
more; document 002: ``MV2_RAIL_SHARING_LARGE_MSG_THRESHOLD``, ``ROUND_ROBIN``): from which message
size several rails help, whether small messages take turns or stay on one rail, and how large ones
are cut.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from fabricproof.core.units import size_label

#: message size in bytes -> MB/s
Curve = Mapping[int, float]

#: Several rails help where they carry this fraction of the gain that physics promises: a quarter
#: of the way from one rail to two is 1.25, beyond what two runs of one rail differ by.
HELPS = 0.25

#: and never less than this many times the disagreement between single rails of one kind
NOISE_FACTOR = 3.0

#: One rail has the small messages to itself with this share: start-up and acknowledgements are the
#: rest.
ALONE = 0.95

#: Rails take turns where the emptiest has this fraction of an even share.
IN_TURN = 0.5

#: Shares follow a rule where none is further from it than this (as a fraction of itself).
LIKE = 0.10

#: Fewer bytes than these on all rails say nothing: handshakes and ARP are of that order.
TELLING_BYTES = 256 * 1024


class Small(StrEnum):
    """What becomes of small messages."""

    ONE_RAIL = "one rail"
    IN_TURN = "in turn"
    """Round robin, or another rule under which every rail has its part."""
    UNEVEN = "uneven"
    UNSEEN = "not seen"


class Large(StrEnum):
    """How large messages are cut."""

    EVEN = "even"
    WEIGHTED = "by weight"
    """In proportion to what each rail carries alone."""
    ONE_RAIL = "one rail"
    UNEVEN = "uneven"
    UNSEEN = "not seen"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How messages are shared.

    Attributes:
        threshold_bytes: smallest message from which on, at every larger size measured, several
            rails carry more than one; None where they never do.
        steady: whether no smaller size gained as well, so that the threshold is sharp.
        gains: all rails over the best single one, by message size.
        small: what becomes of small messages.
        small_shares: each rail's part of them, 0 to 1; empty where not seen.
        large: how large messages are cut.
    """

    threshold_bytes: int | None
    steady: bool
    gains: Curve
    small: Small
    small_shares: Mapping[str, float]
    large: Large
    large_shares: Mapping[str, float]


def read_policy(
    singles: Mapping[str, Curve],
    together: Curve,
    *,
    expected_gain: float,
    small_bytes: Mapping[str, int] | None = None,
    large_bytes: Mapping[str, int] | None = None,
) -> Policy:
    """Tell the policy from each rail's own curve, the curve of all, and bytes per rail.

    Args:
        singles: rail -> its curve when it was alone.
        together: the curve over all rails at once.
        expected_gain: all rails over the best one, as physics allows; 1 where a slot binds.
        small_bytes: rail -> bytes it sent while only small messages ran; None where nobody looked.
        large_bytes: likewise for large messages.
    """
    gains = gain_by_size(singles, together)
    noise = disagreement(singles)
    threshold, steady = threshold_of(gains, least_gain(expected_gain, noise))
    small_shares, large_shares = shares_of(small_bytes or {}), shares_of(large_bytes or {})
    return Policy(
        threshold_bytes=threshold,
        steady=steady,
        gains=gains,
        small=small_rule(small_shares),
        small_shares=small_shares,
        large=large_rule(large_shares, _weights(singles, together)),
        large_shares=large_shares,
    )


def gain_by_size(singles: Mapping[str, Curve], together: Curve) -> dict[int, float]:
    """Return all rails over the best single one at each size that every curve has."""
    common = [size for size in sorted(together) if all(size in curve for curve in singles.values())]
    best = {size: max((curve[size] for curve in singles.values()), default=0.0) for size in common}
    return {size: together[size] / best[size] for size in common if best[size] > 0}


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


def threshold_of(gains: Curve, least: float) -> tuple[int | None, bool]:
    """Return the size from which every larger one gains, and whether no smaller one does."""
    threshold = None
    for size in sorted(gains, reverse=True):
        if gains[size] < least:
            break
        threshold = size
    below = [size for size in gains if threshold is not None and size < threshold]
    steady = all(gains[size] < least for size in (below if threshold is not None else gains))
    return threshold, steady


def shares_of(sent_bytes: Mapping[str, int]) -> dict[str, float]:
    """Return each rail's part of the bytes, 0 to 1; empty where too few moved to tell."""
    total = sum(sent_bytes.values())
    if total < TELLING_BYTES or min(sent_bytes.values()) < 0:
        return {}
    return {rail: moved / total for rail, moved in sent_bytes.items()}


def small_rule(shares: Mapping[str, float]) -> Small:
    """Return what became of small messages that were shared so."""
    if len(shares) < 2:
        return Small.UNSEEN
    if max(shares.values()) >= ALONE:
        return Small.ONE_RAIL
    return Small.IN_TURN if min(shares.values()) * len(shares) >= IN_TURN else Small.UNEVEN


def large_rule(shares: Mapping[str, float], weights: Mapping[str, float]) -> Large:
    """Return how large messages were cut; even comes before weighted where both fit."""
    if len(shares) < 2:
        return Large.UNSEEN
    if max(shares.values()) >= ALONE:
        return Large.ONE_RAIL
    even = {rail: 1 / len(shares) for rail in shares}
    for rule, name in ((even, Large.EVEN), (weights, Large.WEIGHTED)):
        if set(rule) == set(shares) and _follows(shares, rule):
            return name
    return Large.UNEVEN


def _follows(shares: Mapping[str, float], rule: Mapping[str, float]) -> bool:
    return all(abs(shares[rail] - rule[rail]) <= LIKE * rule[rail] for rail in shares)


def _weights(singles: Mapping[str, Curve], together: Curve) -> dict[str, float]:
    """Return each rail's part of what all of them carry one by one, at the largest size."""
    if not together or any(max(together) not in curve for curve in singles.values()):
        return {}
    alone = {rail: curve[max(together)] for rail, curve in singles.items()}
    total = sum(alone.values())
    return {rail: value / total for rail, value in alone.items()} if total > 0 else {}


def balance(shares: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return what part of the rails' summed rate these shares allow, 0 to 1.

    All rails must finish: the one with most to carry for its rate decides.  1 where each has just
    its weight; for two like rails at 62 and 38 % it is 0.81.

    Args:
        shares: part of the bytes that each rail carried; they add up to 1.
        weights: part of the summed rate that each rail has, positive; they add up to 1.
    """
    return 1 / max(shares[rail] / weights[rail] for rail in shares)


def sentences(policy: Policy) -> list[str]:
    """Return what the policy is, for a person."""
    return [
        _threshold_words(policy),
        f"small messages: {policy.small}{_share_words(policy.small_shares)}",
        f"large messages: {_LARGE_WORDS[policy.large]}{_share_words(policy.large_shares)}",
    ]


_LARGE_WORDS = {
    Large.EVEN: "striped evenly",
    Large.WEIGHTED: "striped by weight",
    Large.ONE_RAIL: "on one rail",
    Large.UNEVEN: "shared unevenly",
    Large.UNSEEN: "not seen",
}


def _threshold_words(policy: Policy) -> str:
    sizes: Sequence[int] = sorted(policy.gains)
    if not sizes:
        return "no message size was measured over one rail and over all"
    if policy.threshold_bytes is None:
        best = max(policy.gains.values())
        return f"several rails never help (at best x{best:.2f} at one size)"
    last = policy.gains[sizes[-1]]
    start = policy.threshold_bytes
    words = f"several rails help from {size_label(start)} on (x{policy.gains[start]:.2f}"
    words += f", x{last:.2f} at {size_label(sizes[-1])})" if sizes[-1] != start else ")"
    smaller = [size for size in sizes if size < start]
    if smaller and policy.steady:
        words += f"; up to {size_label(smaller[-1])} they equal one"
    elif smaller:
        words += "; some smaller sizes gain too, not all"
    return words


def _share_words(shares: Mapping[str, float]) -> str:
    said = ", ".join(f"{rail} {share:.0%}" for rail, share in shares.items())
    return f" ({said})" if said else ""
