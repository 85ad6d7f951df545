"""What the legs of a run lost or damaged together, which no leg alone can tell.

Thirty packets of a million are below what a leg of 45,000 can tell from the ten that it may lose; a
run of a million tells.  The law is the legs' own: the exact lower limit of a Poisson rate, against
the events that the limits of all those legs allow together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fabricproof.core.measure import Verdict
from fabricproof.core.records import QuantityRecord
from fabricproof.core.units import by_key
from fabricproof.job.evidence.error_rates import NAMES, red_from
from fabricproof.job.run.result import LegResult
from fabricproof.traffic.error_rates import Direction, ErrorKind, way_between

#: what the row is called beside its rail
ALL_LEGS = "all_legs"

_NAME_OF = {kind.value: name for kind, name in NAMES.items()}

#: a leg's share of a direction: the leg, its error rate there, what judged it
_Part = tuple[LegResult, Mapping[str, Any], QuantityRecord]


def pooled_errors(legs: Sequence[LegResult]) -> tuple[LegResult, ...]:
    """Return a FAIL for each direction that lost too much in all its legs together.

    It is UNJUDGED if the counters do not tell whether that much was lost.  A direction is kind,
    rail, node and partner.  One whose errors are not PASS in a leg by itself is left to that leg.
    """
    keys = ("kind", "rail", "node", "peer", "direction")
    pools = by_key(
        ((part[0].partition, part[0].fabric, *(part[1][key] for key in keys)), part)
        for part in _parts(legs)
    )
    return tuple(found for pool in pools.values() if (found := _judged_pool(pool)) is not None)


def _parts(legs: Iterable[LegResult]) -> Iterator[_Part]:
    for leg in legs:
        if leg.verdict in {Verdict.INVALID, Verdict.MISSING, Verdict.SKIPPED}:
            continue
        judged = {each.name: each for each in leg.quantities}
        for rate in leg.errors:
            mine = judged.get(_NAME_OF.get(rate["kind"], ""))
            # Among many nodes the other end is unknown; what a leg may not judge, none may.
            doubtful = rate.get("arrivals_unknown") or rate.get("set_back") or not rate["peer"]
            if mine and not doubtful and rate.get("beside", 0) <= rate["packets"]:
                yield leg, rate, mine


def _judged_pool(pool: Sequence[_Part]) -> LegResult | None:
    if len(pool) < 2 or any(judged.verdict is not Verdict.PASS for _, _, judged in pool):
        return None
    sure = [int(rate["events"]) for _, rate, _ in pool]
    unsure = [int(rate.get("may_have_arrived", 0)) for _, rate, _ in pool]
    sizes = [max(int(part[1]["packets"]), lost) for part, lost in zip(pool, sure, strict=True)]
    packets = sum(sizes)
    if not sum(sure) + sum(unsure):
        return None
    allowed = (float(part[2].reference or 0) * size for part, size in zip(pool, sizes, strict=True))
    limit = sum(allowed) / packets
    critical = red_from(packets, limit)
    verdict, doubt, shares = Verdict.FAIL, "", sure
    if sum(sure) < critical:
        verdict, shares = (
            Verdict.UNJUDGED,
            [one + two for one, two in zip(sure, unsure, strict=True)],
        )
        doubt = f"; of {sum(unsure)} of them the counters do not tell whether they had arrived"
    events, most = sum(shares), max(shares)
    if events < critical:
        return None
    leg, rate, judged = pool[shares.index(most)]
    way = way_between(rate["rail"], rate["node"], rate["peer"], Direction(rate["direction"]))
    reason = (
        f"{way}: {events} of {packets} packets {ErrorKind(rate['kind']).value} in {len(pool)} legs "
        f"together, {events / packets * 1e6:.4g} per million; {limit:.4g} per million are allowed "
        f"({judged.origin}), {critical} or more are no chance; most of them ({most}) in "
        f"{leg.check} {leg.leg} with {leg.stack}{doubt}"
    )
    value, upper = (each / packets * 1e6 for each in (events, critical - 1))
    quantity = replace(judged, value=value, upper=upper, reason=reason, verdict=verdict, named=True)
    # The row stands under the check of the leg that lost most: it repeats it.
    return replace(
        leg,
        verdict=verdict,
        leg=f"{rate['rail']}.{ALL_LEGS}",
        nodes=tuple(sorted((rate["node"], rate["peer"]))),
        quantities=(quantity,),
        findings=(),
        reason=f"{quantity.name}: {reason}",
        errors=(),
        rails=(),
        relation="",
    )
