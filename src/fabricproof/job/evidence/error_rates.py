"""Judge the errors of a leg against what its fabric may lose: rates in, judgements out.

The limit is a rate, the evidence a number of events.  A leg is red only if so many would come by
chance once in a thousand legs, or less, from a link that loses just as much as it may: the exact
lower limit of a Poisson rate (Garwood, Biometrika 28, 1936).  docs/errors.md has the reasons.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from fabricproof.core.findings import as_notes
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg
from fabricproof.physics import SOFT_ROCE
from fabricproof.traffic import PathState, is_device
from fabricproof.traffic.error_rates import Direction, ErrorKind, ErrorRate
from fabricproof.verdict.value import ERROR_UNIT, Judgement, Report, is_of_errors, no_number

#: A link that loses as much as it may is red by chance in one leg of so many.
ONE_IN = 1000

#: What a flow of TCP between two nodes loses by its own doing, per million packets: our choice.
#: Ethernet's own bit error rate of 1e-12 (IEEE 802.3) costs 0.012 of a million full frames.  Of
#: 7 million packets over clean virtual rails, on a busy machine, six were lost.
TCP_PAIR_LIMIT = 10.0

#: Several nodes that send to one overflow the buffer of its switch port, and TCP finds its rate by
#: that: our choice.
TCP_MANY_LIMIT = 1000.0

#: The kernel's software in place of an adapter gives up waiting where its core is busy, and RDMA
#: sends a whole window again (go-back-N).
SOFT_ROCE_LIMIT = 1000.0

#: A bridge changes the order of a flow's frames, or makes two of one, at a "negligible rate" (IEEE
#: 802.1Q-2018, 6.5.3 and 6.5.4); the queue pairs of InfiniBand and RoCE want all in order (IBA
#: specification vol. 1, 9.7).  How much is negligible is our choice: clean rails show none, and at
#: 0.1 % a sender that takes it for loss (three packets, Linux ip-sysctl: tcp_reordering) is slower.
ORDER_LIMIT = 1000.0

#: what is judged, as the names of quantities and of the site's own limits
NAMES = {
    ErrorKind.RETRANSMITTED: "retransmitted_per_million_packets",
    ErrorKind.DAMAGED: "damaged_per_million_packets",
    ErrorKind.DROPPED: "dropped_per_million_packets",
    ErrorKind.GAP: "reordered_per_million_packets",
    ErrorKind.DUPLICATED: "duplicated_per_million_packets",
}

_LOSS = ErrorKind.RETRANSMITTED

#: what a loss makes too, so that it is judged only where nothing was lost, and stands only if red
_OF_ORDER = frozenset({ErrorKind.GAP, ErrorKind.DUPLICATED})

#: the quantity that stands for those of which a node has no counter
UNCOUNTED = "lost_per_million_packets"


@dataclass(frozen=True, kw_only=True)
class ErrorLimit:
    """What may happen to so many packets: events per million of them, and who says so."""

    per_million_packets: float
    origin: str


def limit_of(leg: Leg, kind: ErrorKind) -> ErrorLimit | None:
    """Return what a leg may lose; None for what is told and not judged."""
    if kind in _OF_ORDER and NAMES[kind] not in leg.error_limits:
        return ErrorLimit(per_million_packets=ORDER_LIMIT, origin="a path keeps the order")
    return limit_between(
        kind,
        leg.rails,
        technology="" if leg.fabric is None else leg.fabric.link.technology,
        num_nodes=leg.num_nodes,
        stated=leg.error_limits,
        why=leg.error_limits_origin,
    )


def limit_between(
    kind: ErrorKind,
    rails: Sequence[str],
    *,
    technology: str,
    num_nodes: int,
    stated: Mapping[str, float],
    why: str,
) -> ErrorLimit | None:
    """Return what may be lost or damaged between nodes; None for what is told and not judged.

    What TCP's packets lost to a full buffer it sends again: retransmissions judge that already.

    ``stated`` is what the site says, by the names of :data:`NAMES`, ``why`` its reason.
    """
    over_tcp = not any(map(is_device, rails))
    limit, origin = 0.0, "lossless fabric"
    if NAMES[kind] in stated:
        limit, origin = stated[NAMES[kind]], f"site ({why})" if why else "site"
    elif kind in _OF_ORDER or (kind is ErrorKind.DROPPED and over_tcp):
        return None
    elif kind is ErrorKind.DAMAGED:
        origin = "a wire damages nothing"
    elif over_tcp and num_nodes > 2:
        limit, origin = TCP_MANY_LIMIT, "TCP among many nodes"
    elif over_tcp:
        limit, origin = TCP_PAIR_LIMIT, "TCP between two nodes"
    elif technology == SOFT_ROCE:
        limit, origin = SOFT_ROCE_LIMIT, "Soft-RoCE"
    return ErrorLimit(per_million_packets=limit, origin=origin)


def with_errors(
    report: Report, leg: Leg, rates: Sequence[ErrorRate], nodes: Iterable[str]
) -> Report:
    """Return the report with a judgement of each kind of error, what is red first.

    ``rates`` are of this attempt and those before it, added up.
    """
    of_kinds = [found for kind in NAMES if (found := _of_kind(leg, kind, rates)) is not None]
    judged = [judgement for judgement, _ in of_kinds]
    told = [rate for judgement, rate in of_kinds if judgement.verdict is not Verdict.PASS]
    red = [each for each in judged if each.verdict is not Verdict.PASS]
    quiet = [each for each in judged if each.verdict is Verdict.PASS]
    if report.net_path is None or report.net_path.state is PathState.UNKNOWN:
        quiet = []  # what rose is a fact; that nothing did is not known
    else:
        red += _uncounted(leg, rates, nodes)
    notes = [
        f"{each.way}: {each.events} of {each.most_packets} packets {each.kind.value} "
        f"({each.per_million_packets:.3g} per million)"
        for each in rates
        if each.events and each.kind is not ErrorKind.GAP and each not in told
    ]
    return report.with_quantities((*red, *report.quantities, *quiet), *as_notes(notes))


def _uncounted(leg: Leg, rates: Sequence[ErrorRate], nodes: Iterable[str]) -> list[Judgement]:
    due = due_kinds(leg.rails)
    blind = sorted({*nodes} - {each.node for each in rates if each.kind in due})
    reason = f"nobody counted what {', '.join(blind)} lost on {'+'.join(leg.rails)}"
    return [no_number(UNCOUNTED, Verdict.UNJUDGED, reason, ERROR_UNIT)] if blind else []


def errors_of_all(report: Report, last: Report) -> Report:
    """Return the report of several looks with the errors of all of them, which the last one has."""
    errors = [each for each in last.quantities if is_of_errors(each)]
    if all(each.verdict is Verdict.PASS for each in errors):
        return report
    kept = [each for each in report.quantities if not is_of_errors(each)]
    return report.with_quantities((*errors, *kept))


def _of_kind(
    leg: Leg, kind: ErrorKind, rates: Iterable[ErrorRate]
) -> tuple[Judgement, ErrorRate] | None:
    """Return the judgement on one kind of errors, and the direction that it is about."""
    limit = limit_of(leg, kind)
    mine = [each for each in rates if each.kind is kind]
    if kind in _OF_ORDER and any(each.events for each in rates if each.kind is _LOSS):
        return None
    if limit is None or not mine:
        return None
    allowed = limit.per_million_packets

    def excess(rate: ErrorRate) -> tuple[bool, float]:
        critical = red_from(rate.most_packets, allowed)
        return rate.events >= critical, rate.per_million_packets

    # What may be too much is no green.
    chosen = max(mine, key=excess)
    if not excess(chosen)[0]:
        chosen = next((each for each in map(ErrorRate.at_most, mine) if excess(each)[0]), chosen)
    packets, critical = chosen.most_packets, red_from(chosen.most_packets, allowed)
    reason = (
        f"{chosen.way}: {chosen.events} of {packets} packets {kind.value}, "
        f"{chosen.per_million_packets:.4g} per million ({chosen.per_gigabyte:.3g} per GB); "
        f"{allowed:.4g} per million are allowed ({limit.origin})"
    )
    verdict = Verdict.PASS
    if chosen.events >= critical:
        doubt = doubt_of(chosen)
        verdict = Verdict.UNJUDGED if doubt else Verdict.FAIL
        reason += f", {critical} or more are no chance"
        reason += f"; {doubt}" if doubt else _both_ends(chosen, rates)
    else:
        seen = visible_rate(packets, allowed)
        reason += f"; so few packets show no rate below {seen:.3g} per million" if packets else ""
        if names := counters_set_back(mine):
            verdict, reason = Verdict.UNJUDGED, f"{reason}; but {went_back(names)}"
        elif kind in _OF_ORDER:
            return None
    judged = Judgement(
        name=NAMES[kind],
        value=chosen.per_million_packets,
        unit=ERROR_UNIT,
        message_size=None,
        verdict=verdict,
        reason=reason,
        reference=allowed,
        upper=(critical - 1) / max(packets, 1) * 1e6,
        origin=limit.origin,
        named=verdict is not Verdict.PASS,
    )
    return judged, chosen


def counters_set_back(rates: Iterable[ErrorRate]) -> list[str]:
    """Return the counters that wrapped or were reset meanwhile, each with its node."""
    return [f"{name} of {each.node}" for each in rates for name in each.set_back]


def went_back(counters: Iterable[str]) -> str:
    """Return what is said of counters that do not tell what they counted before."""
    return f"{', '.join(counters)} went back while it ran: wrapped or reset"


def due_kinds(rails: Iterable[str]) -> frozenset[ErrorKind]:
    """Return of which kinds of error one must have been counted over these rails.

    Over sockets TCP's own count is due.  A port of verbs has several counters, and which of them a
    driver shows differs: one that tells of losses or damage is due.
    """
    over_tcp = not any(map(is_device, rails))
    return frozenset({_LOSS}) if over_tcp else frozenset(NAMES) - _OF_ORDER


def doubt_of(rate: ErrorRate) -> str:
    """Return why so many events need not be the rail's; empty if they are."""
    if rate.arrivals_unknown and any(name.startswith("TCPDSACK") for name in rate.counters):
        return (
            "the counters do not tell how many of them had arrived (TCPDSACKRecv rose by more than "
            "TCPDSACKRecvSegs): they were sent again in vain, or the network made two of some "
            "packets and hides as many losses"
        )
    if rate.arrivals_unknown:
        return "nobody counted which of them had arrived (TCPDSACKRecv in /proc/net/netstat)"
    if rate.beside > rate.packets:
        return f"but {rate.beside} packets of the node went over other interfaces"
    return ""


def _both_ends(rate: ErrorRate, rates: Iterable[ErrorRate]) -> str:
    """Return what the receiver saw of it, and that one pair cannot say which end it is."""
    gaps = [each.events for each in rates if each.kind is ErrorKind.GAP and each.node == rate.peer]
    seen = f"; {rate.peer} saw {gaps[0]} packets come before others" if any(gaps) else ""
    if rate.direction is Direction.OUT and rate.peer:
        return f"{seen}; the port of {rate.node}, that of {rate.peer} or what is between them"
    return seen


def most_rate(events: int, packets: int) -> float:
    """Return the largest rate, per million packets, that so many events leave credible at 95 %.

    The solution r of P(X > events) = 0.95 for X of Poisson with mean r x packets, the exact upper
    limit (Garwood 1936): nothing among n packets says less than 3.0 / n.
    """
    return _mean_with(events + 1, 0.95) / max(packets, 1) * 1e6


def visible_rate(packets: int, limit: float) -> float:
    """Return the rate, per million packets, that so many packets show in nineteen legs of twenty.

    The solution r of P(X >= n) = 0.95 for X of Poisson with mean r x packets, where n is the first
    number of events that is red.
    """
    return _mean_with(red_from(packets, limit), 0.95) / max(packets, 1) * 1e6


@cache
def red_from(packets: int, limit: float) -> int:
    """Return how many events among so many packets are too many for a limit per million.

    The first number n with P(X >= n) < 1 / ONE_IN for X of Poisson with mean limit x packets.
    """
    mean = limit * packets / 1e6
    end = int(2 * mean + 10 * math.sqrt(mean) + 20)
    numbers = range(1, end)
    return 1 + bisect_left(numbers, 1, key=lambda events: _at_least(events, mean) < 1 / ONE_IN)


@cache
def _mean_with(events: int, chance: float) -> float:
    """Return the mean at which so many events or more have this chance."""
    low, high = 0.0, 2.0 * events + 20
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _at_least(events, middle) >= chance else (middle, high)
    return high


def _at_least(events: int, mean: float) -> float:
    """Return P(X >= events) for X of Poisson with this mean."""
    if mean <= 0:
        return float(events <= 0)
    if events > 300:  # the cube root of a Poisson mean is normal to a thousandth (Wilson, Hilferty)
        root = (mean / events) ** (1 / 3) - 1 + 1 / (9 * events)
        return 0.5 * math.erfc(-root * 3 * math.sqrt(events) / math.sqrt(2))
    # Short sums only: what is farther above the mean than below is summed from there on.
    below = events <= mean
    terms = range(events) if below else range(events, events + 40 + int(10 * math.sqrt(mean)))
    logs = (n * math.log(mean) - mean - math.lgamma(n + 1) for n in terms)
    total = math.fsum(map(math.exp, logs))
    return max(0.0, 1.0 - total) if below else total
