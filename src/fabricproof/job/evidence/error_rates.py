"""Judge the errors of a leg against what its fabric may lose: records in, judgements out.

The limit is a rate, the evidence a number of events.  A leg is red only where so many would come by
chance once in a thousand legs, or less, from a link that loses just as much as it may: the exact
lower limit of a Poisson rate (Garwood, Biometrika 28, 1936).  docs/errors.md has the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
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

#: what is judged, as the names of quantities and of the site's own limits
NAMES = {
    ErrorKind.RETRANSMITTED: "retransmitted_per_million_packets",
    ErrorKind.DAMAGED: "damaged_per_million_packets",
    ErrorKind.DROPPED: "dropped_per_million_packets",
}

#: the quantity that stands for those of which a node has no counter
UNCOUNTED = "lost_per_million_packets"


class LimitSource(StrEnum):
    """Where a limit comes from."""

    SITE = "site"
    LOSSLESS = "lossless fabric"
    NO_DAMAGE = "a wire damages nothing"
    TCP_PAIR = "TCP between two nodes"
    TCP_MANY = "TCP among many nodes"
    SOFT_ROCE = "Soft-RoCE"


@dataclass(frozen=True, kw_only=True)
class ErrorLimit:
    """What may happen to so many packets: events per million of them, and who says so."""

    per_million_packets: float
    source: LimitSource
    why: str = ""

    @property
    def origin(self) -> str:
        """Return who says so, for a person."""
        return f"{self.source.value} ({self.why})" if self.why else self.source.value


def limit_of(leg: Leg, kind: ErrorKind) -> ErrorLimit | None:
    """Return what a leg may lose; None for what is told and not judged."""
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
    """Return what may happen to packets between nodes; None for what is told and not judged.

    What TCP's packets lost to a full buffer it sends again: retransmissions judge that already.

    ``stated`` is what the site says, by the names of :data:`NAMES`, ``why`` its reason.
    """
    over_tcp = not any(map(is_device, rails))
    own = stated.get(NAMES.get(kind, ""))
    if own is not None:
        return ErrorLimit(per_million_packets=own, source=LimitSource.SITE, why=why)
    if kind is ErrorKind.GAP or (kind is ErrorKind.DROPPED and over_tcp):
        return None
    if kind is ErrorKind.DAMAGED:
        return ErrorLimit(per_million_packets=0.0, source=LimitSource.NO_DAMAGE)
    return _of_tcp(num_nodes) if over_tcp else _of_verbs(technology)


def _of_tcp(num_nodes: int) -> ErrorLimit:
    if num_nodes > 2:
        return ErrorLimit(per_million_packets=TCP_MANY_LIMIT, source=LimitSource.TCP_MANY)
    return ErrorLimit(per_million_packets=TCP_PAIR_LIMIT, source=LimitSource.TCP_PAIR)


def _of_verbs(technology: str) -> ErrorLimit:
    if technology == SOFT_ROCE:
        return ErrorLimit(per_million_packets=SOFT_ROCE_LIMIT, source=LimitSource.SOFT_ROCE)
    return ErrorLimit(per_million_packets=0.0, source=LimitSource.LOSSLESS)


def with_errors(
    report: Report, leg: Leg, rates: Sequence[ErrorRate], nodes: Iterable[str]
) -> Report:
    """Return the report with a judgement of each kind of error, what is red first.

    ``rates`` are of this attempt and those before it, added up.
    """
    of_kinds = [found for kind in NAMES if (found := _of_kind(leg, kind, rates)) is not None]
    judged = [judgement for judgement, _ in of_kinds]
    said = [rate for judgement, rate in of_kinds if judgement.verdict is not Verdict.PASS]
    red = [each for each in judged if each.verdict is not Verdict.PASS]
    quiet = [each for each in judged if each.verdict is Verdict.PASS]
    if report.net_path is None or report.net_path.state is PathState.UNKNOWN:
        quiet = []  # what rose is a fact; that nothing did is not known
    else:
        red += _uncounted(leg, rates, nodes)
    quantities = (*red, *report.quantities, *quiet)
    return report.with_quantities(quantities, *as_notes(_told(rates, said)))


def errors_of_all(report: Report, last: Report) -> Report:
    """Return the report of several looks with the errors of all of them, which the last one has."""
    errors = [each for each in last.quantities if is_of_errors(each)]
    if all(each.verdict is Verdict.PASS for each in errors):
        return report
    kept = [each for each in report.quantities if not is_of_errors(each)]
    return report.with_quantities((*errors, *kept))


def least_rate(events: int, packets: int) -> float:
    """Return the smallest rate, per million packets, that so many events leave credible.

    Of links with a smaller one, fewer than one in :data:`ONE_IN` would show so many: the solution r
    of P(X >= events) = 1 / ONE_IN for X of Poisson with mean r x packets.
    """
    return _least_mean(events) / max(packets, 1) * 1e6


def most_rate(events: int, packets: int) -> float:
    """Return the largest rate, per million packets, that so many events leave credible at 95 %.

    The solution r of P(X > events) = 0.95 for X of Poisson with mean r x packets, the exact upper
    limit (Garwood 1936): nothing among n packets says less than 3.0 / n.
    """
    mean = _solve(lambda guess: _at_least(events + 1, guess), 0.95, events)
    return mean / max(packets, 1) * 1e6


def visible_rate(packets: int, limit: float) -> float:
    """Return the rate, per million packets, that so many packets show in nineteen legs of twenty.

    The solution r of P(X >= n) = 0.95 for X of Poisson with mean r x packets, where n is the first
    number of events that is red.
    """
    return _visible_mean(red_from(packets, limit)) / max(packets, 1) * 1e6


@cache
def _visible_mean(events: int) -> float:
    return _solve(lambda mean: _at_least(events, mean), 0.95, events)


def red_from(packets: int, limit: float) -> int:
    """Return how many events among so many packets are too many for a limit per million.

    The first number whose :func:`least_rate` is above the limit.
    """
    mean = limit * packets / 1e6
    low, high = 0, 1
    while _at_least(high, mean) >= 1 / ONE_IN:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _at_least(middle, mean) >= 1 / ONE_IN else (low, middle)
    return high


@cache
def _least_mean(events: int) -> float:
    if events <= 0:
        return 0.0
    return _solve(lambda mean: _at_least(events, mean), 1 / ONE_IN, events)


#: from here on the sum is long, and the cube root of a Poisson mean is normal to a thousandth
_EXACT = 300


def _at_least(events: int, mean: float) -> float:
    """Return P(X >= events) for X of Poisson with this mean."""
    if mean <= 0:
        return 0.0
    if events > _EXACT:  # Wilson and Hilferty 1931
        root = (mean / events) ** (1 / 3) - 1 + 1 / (9 * events)
        return 0.5 * math.erfc(-root * 3 * math.sqrt(events) / math.sqrt(2))
    # Short sums only: what is farther above the mean than below is summed from there on.
    if events <= mean:
        return max(0.0, 1.0 - math.fsum(_chances(0, events, mean)))
    return math.fsum(_chances(events, events + 40 + int(10 * math.sqrt(mean)), mean))


def _chances(first: int, end: int, mean: float) -> Iterator[float]:
    """Yield P(X = n) for X of Poisson with this mean, from ``first`` to before ``end``."""
    chance = math.exp(first * math.log(mean) - mean - math.lgamma(first + 1))
    for number in range(first, end):
        yield chance
        chance *= mean / (number + 1)


def _solve(chance: Callable[[float], float], wanted: float, events: int) -> float:
    """Return the mean at which a chance that rises with it is as wanted."""
    low, high = 0.0, float(events + 10)
    while chance(high) < wanted:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return high


def _of_kind(
    leg: Leg, kind: ErrorKind, rates: Iterable[ErrorRate]
) -> tuple[Judgement, ErrorRate] | None:
    """Return the judgement on one kind of errors, and the direction that it is about."""
    limit = limit_of(leg, kind)
    if limit is None:
        return None
    mine = [each for each in rates if each.kind is kind]
    if not mine:
        return None
    allowed = limit.per_million_packets
    worst_one = max(mine, key=lambda each: (_excess(each, allowed), each.per_million_packets))
    if not _is_red(worst_one, allowed):
        # What may be too much is no green.
        most = (each.at_most() for each in mine)
        worst_one = next((each for each in most if _is_red(each, allowed)), worst_one)
    packets = max(worst_one.packets, worst_one.events)
    critical = red_from(packets, allowed)
    judged = Judgement(
        name=NAMES[kind],
        value=worst_one.per_million_packets,
        unit=ERROR_UNIT,
        message_size=None,
        verdict=Verdict.PASS,
        reason=_reason(worst_one, limit, critical),
        reference=allowed,
        upper=(critical - 1) / max(packets, 1) * 1e6,
        origin=limit.origin,
        named=False,
    )
    if worst_one.events < critical:
        return _unless_set_back(judged, mine), worst_one
    doubt = doubt_of(worst_one)
    if doubt:
        why = f"{judged.reason}; {doubt}"
        return replace(judged, verdict=Verdict.UNJUDGED, reason=why, named=True), worst_one
    reason = judged.reason + _both_ends(worst_one, rates)
    return replace(judged, verdict=Verdict.FAIL, reason=reason, named=True), worst_one


def _unless_set_back(quiet: Judgement, rates: Iterable[ErrorRate]) -> Judgement:
    """Return a PASS as UNJUDGED where a counter went back: what it counted before is gone."""
    names = counters_set_back(rates)
    if not names:
        return quiet
    why = f"{quiet.reason}; but {went_back(names)}"
    return replace(quiet, verdict=Verdict.UNJUDGED, reason=why, named=True)


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
    return frozenset({ErrorKind.RETRANSMITTED} if over_tcp else NAMES)


def doubt_of(rate: ErrorRate) -> str:
    """Return why so many events need not be the rail's; empty where they are."""
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


def _is_red(rate: ErrorRate, allowed: float) -> bool:
    return rate.events >= red_from(max(rate.packets, rate.events), allowed)


def _excess(rate: ErrorRate, allowed: float) -> float:
    return least_rate(rate.events, max(rate.packets, rate.events)) - allowed


def _uncounted(leg: Leg, rates: Sequence[ErrorRate], nodes: Iterable[str]) -> list[Judgement]:
    """Return what says that a node's losses were not counted; nothing where all were."""
    told = due_kinds(leg.rails)
    blind = sorted(set(nodes) - {each.node for each in rates if each.kind in told})
    if not blind:
        return []
    reason = f"nobody counted what {', '.join(blind)} lost on {'+'.join(leg.rails)}"
    return [no_number(UNCOUNTED, Verdict.UNJUDGED, reason, ERROR_UNIT)]


def _reason(rate: ErrorRate, limit: ErrorLimit, critical: int) -> str:
    packets = max(rate.packets, rate.events)
    allowed = limit.per_million_packets
    said = (
        f"{rate.way}: {rate.events} of {packets} packets {rate.kind.value}, "
        f"{rate.per_million_packets:.4g} per million ({rate.per_gigabyte:.3g} per GB); "
        f"{allowed:.4g} per million are allowed ({limit.origin})"
    )
    if rate.events >= critical:
        return f"{said}, {critical} or more are no chance"
    seen = visible_rate(packets, allowed)
    return f"{said}; so few packets show no rate below {seen:.3g} per million" if packets else said


def _both_ends(rate: ErrorRate, rates: Iterable[ErrorRate]) -> str:
    """Return what the receiver saw of it, and that one pair cannot say which end it is."""
    gaps = [
        each
        for each in rates
        if each.kind is ErrorKind.GAP and each.node == rate.peer and each.events
    ]
    seen = f"; {rate.peer} saw {gaps[0].events} packets come before others" if gaps else ""
    if rate.direction is Direction.OUT and rate.peer:
        return f"{seen}; the port of {rate.node}, that of {rate.peer} or what is between them"
    return seen


def _told(rates: Iterable[ErrorRate], said: Sequence[ErrorRate]) -> list[str]:
    """Return a line of each direction in which something happened and no judgement says so."""
    return [
        f"{each.way}: {each.events} of {max(each.packets, each.events)} packets "
        f"{each.kind.value} ({each.per_million_packets:.3g} per million)"
        for each in rates
        if each.events and each.kind is not ErrorKind.GAP and each not in said
    ]
