"""Both directions beside one, over the same rail in one job: does the link carry both at once?"""

from __future__ import annotations

from dataclasses import asdict, replace

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.job.leg import Leg, Plan, Relation, in_turns
from fabricproof.physics import bound
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.verdict.value import at_least

#: the program that moves both directions at once
BOTH_WAYS = "osu_bibw"

#: The median of so many largest sizes counts: one alone may have met a stall.
LARGEST_SIZES = 3

#: LinkTest's healthy systems show "about twice", its unhealthy one "hardly more" than one
#: direction (document 003 of the sources); a fifth below twice is what a busy host bus costs.
TOLERANCE = 0.20

HINT = (
    "the link or the slot carries one direction at a time: a half-duplex port, one core for both "
    "directions, or one TCP connection that both share (btl_tcp_links)"
)


def duplex_plan(planner: LegPlanner) -> Plan:
    """Return a leg for each way of loading the first rail, and their ratio."""
    both, reason = planner.of("osu", BOTH_WAYS)
    if both is None:
        return Plan(reason=reason)
    rails = planner.rails[:1]
    forth = planner.leg(rails, variant="forth")
    together = both.leg(rails, variant="both")
    large = forth.expected_sizes[-LARGEST_SIZES:]
    turns = {
        forth.name: planner.leg(rails, variant="forth", sizes=large).turn(),
        together.name: both.leg(rails, variant="both", sizes=large).turn(),
    }
    relation = in_turns(duplex(planner, both, forth, together), turns)
    return Plan(legs=(forth, together, *turns.values()), relations=(relation,))


def duplex(planner: LegPlanner, both: LegPlanner, forth: Leg, together: Leg) -> Relation:
    """Return the relation of both directions to one.

    mpi4py's port of osu_bibw prints one direction of the two that it moves: it counts twice.
    """
    counts_both = meaning(both.suite, both.program).bidirectional
    fabric = planner.physics(forth.rails)
    most = reference = None
    if fabric is not None:
        loaded = bound(replace(fabric, bidirectional=True))
        single = bound(fabric)
        reference = at_least(
            loaded.nominal_mb_s / single.nominal_mb_s,
            unit="x",
            tolerance=TOLERANCE,
            origin="physics: both directions at once",
        )
        most = loaded.high_mb_s / (single.low_mb_s * (1 - planner.site.spec.tolerance))
    return Relation(
        name="duplex",
        kind="ratio",
        legs=(forth.name, together.name),
        suite=together.suite,
        program=together.program,
        rails=forth.rails,
        settings={
            "quantity": "bandwidth",
            "sizes": list(forth.expected_sizes[-LARGEST_SIZES:]),
            "over": [together.name],
            "under": [forth.name],
            "scale": 1.0 if counts_both else 2.0,
            "reference": asdict(reference) if reference else None,
            "most": most,
            "hint": HINT,
        },
    )
