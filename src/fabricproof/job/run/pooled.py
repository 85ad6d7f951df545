"""The errors of all legs of a run together: what each leg alone is too short to show.

Thirty packets of a million are below what a leg of 45,000 can tell from the ten that it may lose; a
run of a million tells.  The law is the legs' own: the exact lower limit of a Poisson rate, against
the events that the limits of all those legs allow together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabricproof.core.measure import Verdict
from fabricproof.core.records import QuantityRecord
from fabricproof.job.evidence.error_rates import NAMES, red_from
from fabricproof.job.run.join import LegResult
from fabricproof.traffic.error_rates import Direction, ErrorKind, way_between

#: what the row is called beside its rail
ALL_LEGS = "all_legs"

_NAME_OF = {kind.value: name for kind, name in NAMES.items()}


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One leg's share of a direction: its error rate and what judged it there."""

    leg: LegResult
    rate: Mapping[str, Any]
    judged: QuantityRecord
    limit_ppm: float

    @property
    def packets(self) -> int:
        return max(int(self.rate["packets"]), int(self.rate["events"]))

    @property
    def allowed(self) -> float:
        """Events that the leg's own limit allows on average."""
        return self.limit_ppm * self.packets / 1e6


def pooled_errors(legs: Sequence[LegResult]) -> tuple[LegResult, ...]:
    """Return a FAIL for each direction that lost too much in all its legs together.

    A direction is kind, rail, node and partner.  One whose errors are not PASS in a leg by itself
    is left to that leg.

    Args:
        legs: of one run, each with what was lost in all its attempts.
    """
    pools: dict[tuple[str, ...], list[_Part]] = {}
    for part in _parts(legs):
        rate = part.rate
        key = (part.leg.partition, part.leg.fabric, rate["kind"], rate["rail"])
        pools.setdefault((*key, rate["node"], rate["peer"], rate["direction"]), []).append(part)
    found = (_judged(pool) for pool in pools.values())
    return tuple(each for each in found if each is not None)


def _parts(legs: Iterable[LegResult]) -> Iterator[_Part]:
    for leg in legs:
        if leg.verdict in {Verdict.INVALID, Verdict.MISSING, Verdict.SKIPPED}:
            continue
        judged = {each.name: each for each in leg.quantities}
        for rate in leg.errors:
            mine = judged.get(_NAME_OF.get(rate["kind"], ""))
            # Among many nodes nobody knows the other end; what a leg may not judge, none may.
            if mine is None or mine.reference is None or not rate["peer"]:
                continue
            doubtful = rate.get("in_vain_unknown") or rate.get("set_back")
            if not doubtful and rate.get("beside", 0) <= rate["packets"]:
                yield _Part(leg=leg, rate=rate, judged=mine, limit_ppm=float(mine.reference))


def _judged(pool: Sequence[_Part]) -> LegResult | None:
    if len(pool) < 2 or any(each.judged.verdict is not Verdict.PASS for each in pool):
        return None
    events = sum(int(each.rate["events"]) for each in pool)
    packets = sum(each.packets for each in pool)
    if not events:
        return None
    limit = sum(each.allowed for each in pool) / packets * 1e6
    critical = red_from(packets, limit)
    if events < critical:
        return None
    most = max(pool, key=lambda each: int(each.rate["events"]))
    rail, node, peer = (most.rate[key] for key in ("rail", "node", "peer"))
    way = way_between(rail, node, peer, Direction(most.rate["direction"]))
    reason = (
        f"{way}: {events} of {packets} packets {ErrorKind(most.rate['kind']).value} in "
        f"{len(pool)} legs together, {events / packets * 1e6:.4g} per million; {limit:.4g} per "
        f"million are allowed ({most.judged.origin}), {critical} or more are no "
        f"chance; most of them ({most.rate['events']}) in {most.leg.check} {most.leg.leg} with "
        f"{most.leg.stack}"
    )
    return _row(most, reason, events / packets * 1e6, (critical - 1) / packets * 1e6)


def _row(most: _Part, reason: str, value: float, upper: float) -> LegResult:
    """Return the row of a direction, under the check of the leg that lost most: it repeats it."""
    leg, name = most.leg, f"{most.rate['rail']}.{ALL_LEGS}"
    quantity = replace(
        most.judged, value=value, upper=upper, reason=reason, verdict=Verdict.FAIL, named=True
    )
    return LegResult(
        verdict=Verdict.FAIL,
        check=leg.check,
        partition=leg.partition,
        stack=leg.stack,
        suite=leg.suite,
        program=leg.program,
        fabric=leg.fabric,
        leg=name,
        nodes=tuple(sorted((most.rate["node"], most.rate["peer"]))),
        quantities=(quantity,),
        reason=f"{quantity.name}: {reason}",
        job_id=leg.job_id,
        stage_folder=leg.stage_folder,
        net_path=leg.net_path,
        link=leg.link,
    )
