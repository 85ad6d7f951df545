"""Plan two sides in turn and their ratio; and hold like rails against each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from fabricproof.job.leg import Leg, Plan
from fabricproof.job.relation import Bind, Pick, Ratio, RatioSide, Relation
from fabricproof.physics import Fabric
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.verdict.value import Reference, at_least, at_most

#: makes a leg with these message sizes alone, in bytes; with all its sizes if there are none
MakeLeg = Callable[[Sequence[int]], Leg]

#: Sizes whose median ratio counts: one alone may have met a stall.
LARGEST, LAST, SMALLEST = slice(-3, None), slice(-1, None), slice(0, 11)


def relation(name: str, what: Ratio, legs: Sequence[Leg], row: Leg, **values: object) -> Relation:
    """Return what is to hold between legs; its row has suite, program and rails of ``row``."""
    found = Relation(
        name=name,
        what=what,
        legs=tuple(leg.name for leg in legs),
        suite=row.suite,
        program=row.program,
        rails=row.rails,
    )
    return replace(found, **values)  # type: ignore[arg-type]


def compare(
    name: str,
    *,
    over: Sequence[MakeLeg],
    under: Sequence[MakeLeg],
    reference: Reference | None,
    quantity: str = "bandwidth",
    sizes: slice | None = LARGEST,
    beside: Sequence[MakeLeg] = (),
    most: float | None = None,
    scale: float = 1.0,
    hint: str = "",
    held: Mapping[str, Bind] | None = None,
    names: Mapping[str, str] | None = None,
) -> Plan:
    """Return the legs of both sides, those that measure them again in turn, and their ratio.

    Args:
        name: of the relation's row.
        over: make the legs above the line; of several the largest number counts.
        under: make those below it, likewise.
        reference: in unit ``x``; None if unknown.
        quantity: of both sides.
        sizes: which of a leg's message sizes count; None if the quantity has none.
        beside: make legs that are measured once, and shown with the others.
        most: above this the ratio is impossible.
        scale: what the ratio is multiplied by.
        hint: what is usually wrong where it is red.
        held: leg -> where its ranks must have run.
        names: leg -> what a person calls it.
    """
    below, above, rest = ([make(()) for make in each] for each in (under, over, beside))
    legs = (*below, *above, *rest)
    wanted = above[0].expected_sizes[sizes] if sizes is not None else ()

    def side(mine: Sequence[Leg]) -> RatioSide:
        # What has no message sizes, such as iperf3, has one number.
        counts = wanted if mine[0].expected_sizes and wanted else (None,)
        return RatioSide(legs=tuple(leg.name for leg in mine), quantity=quantity, sizes=counts)

    makes = zip((*below, *above), (*under, *over), strict=True)
    turns = {leg.name: make(wanted).turn() for leg, make in makes}
    ratio = Ratio(
        over=side(above),
        under=side(below),
        reference=reference,
        most=most,
        scale=scale,
        hint=hint,
        held=dict(held or {}),
        names=dict(names or {leg.name: leg.name for leg in legs}),
    )
    in_turn = {leg: turn.name for leg, turn in turns.items()}
    row = relation(name, ratio, legs, above[0], turns=in_turn)
    return Plan(legs=(*legs, *turns.values()), relations=(row,))


def joined(plans: Iterable[Plan]) -> Plan:
    """Return one plan of several: first looks, then what runs in turn."""
    plans = list(plans)
    legs = chain.from_iterable(each.legs for each in plans)
    return Plan(
        legs=tuple(sorted(legs, key=lambda leg: leg.in_turn)),
        relations=tuple(chain.from_iterable(each.relations for each in plans)),
    )


#: How many times a rail's latency may be that of its twin on the same nodes.  Across the socket it
#: is 1.3 times (document 000); load comes and goes between two legs, and adds to one of them.
TWIN_LATENCY = 3.0

#: The same where ranks take turns on cores: 2.8 was seen of healthy Soft-RoCE on guests that share
#: two cores.
TWIN_LATENCY_OVERSUBSCRIBED = 12.0

#: What a rail may fall behind its twin: 18 % from the far socket (document 000), and 10 % of noise.
TWIN_BANDWIDTH_TOLERANCE = 0.3


def with_twins(planner: LegPlanner, plan: Plan) -> Plan:
    """Return the plan with the worst rail held against the best one of its kind.

    Both are measured anyway: no leg is added.  Whatever a site's bounds allow, like rails between
    the same nodes are alike.
    """
    alike: dict[Fabric, list[Leg]] = defaultdict(list)
    for leg in plan.legs:
        if len(leg.rails) == 1 and not leg.backward and leg.fabric and leg.expected_sizes:
            alike[leg.fabric].append(leg)
    twins = [_twins(planner, legs) for legs in alike.values() if len(legs) > 1]
    return replace(plan, relations=(*plan.relations, *twins))


def _twins(planner: LegPlanner, legs: Sequence[Leg]) -> Relation:
    origin = "rails of one kind between the same nodes"
    quantity, sizes = "bandwidth", legs[0].expected_sizes[LARGEST]
    worst, best = Pick.SMALLEST, Pick.LARGEST
    reference = at_least(1.0, unit="x", tolerance=TWIN_BANDWIDTH_TOLERANCE, origin=origin)
    if planner.of_time:
        quantity, sizes, worst, best = "latency", legs[0].expected_sizes[SMALLEST], best, worst
        crowded = planner.partition.oversubscribed
        most = TWIN_LATENCY_OVERSUBSCRIBED if crowded else TWIN_LATENCY
        reference = at_most(1.0, unit="x", tolerance=most - 1, origin=origin)
    names = tuple(leg.name for leg in legs)
    ratio = Ratio(
        over=RatioSide(legs=names, quantity=quantity, sizes=sizes, pick=worst),
        under=RatioSide(legs=names, quantity=quantity, sizes=sizes, pick=best),
        reference=reference,
        hint="the rail at the end of the list: its cable, its port, the path behind it",
        names={name: name for name in names},
    )
    rails = tuple(rail for leg in legs for rail in leg.rails)
    return relation(f"{'+'.join(rails)}.twins", ratio, legs, legs[0], rails=rails)
