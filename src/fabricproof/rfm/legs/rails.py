"""What is planned over rails: alone and together, both ways at once, each against each."""

from __future__ import annotations

from dataclasses import asdict, replace

from fabricproof.benchmarks.catalogue import meaning, program_of
from fabricproof.job.leg import Leg, Plan, Relation, in_turns
from fabricproof.job.script import EACH_NODE_FILE
from fabricproof.physics import Fabric, bound
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.verdict.value import Reference, at_least

#: Two rails that promise 2.0 are red below 1.9: both numbers were measured by one program on the
#: same nodes within seconds, so that what disturbs one by more than a twentieth deserves a look.
GAIN_TOLERANCE = 0.05

#: Both directions at once load the hosts twice as much; their gain may fall short by as much as a
#: bandwidth may of its own reference (reference.DEFAULT_TOLERANCE).
GAIN_TOLERANCE_BOTH_WAYS = 0.10

#: Shares may leave this fraction of the summed rate unused before they are red.
BALANCE_TOLERANCE = 0.10

#: The largest sizes whose median makes scaling and duplex: one alone may have met a stall.
LARGEST_SIZES = 3

#: Messages up to the first size are small to every MPI; above the second they are large to OSU
#: (LARGE_MESSAGE_SIZE) and near the thresholds of the MPIs (document 000: 8 KiB).
STARTS_ABOVE = (1024, 8192)

GAIN_HINT = (
    "one rail may be slow (see its own leg), on the wrong socket, or the MPI shares by weights "
    "that do not fit"
)
BALANCE_HINT = "the rail with most to carry ends last"


def rails_plan(planner: LegPlanner) -> Plan:
    """Return what is measured over the planner's rails, of which there are several."""
    singles = {rail: planner.leg((rail,)) for rail in planner.rails}
    together = planner.leg(planner.rails, starts_above=STARTS_ABOVE)
    large = together.expected_sizes[-LARGEST_SIZES:]
    legs = (*singles.values(), together)
    turns = {leg.name: planner.leg(leg.rails, sizes=large).turn() for leg in legs}
    relations = (scaling(planner, singles, together), sharing(planner, singles, together))
    return Plan(
        legs=(*legs, *turns.values()),
        relations=tuple(in_turns(each, turns) for each in relations),
    )


def _loaded(planner: LegPlanner, rails: tuple[str, ...]) -> Fabric | None:
    fabric = planner.physics(rails)
    both = meaning(planner.suite, planner.program).bidirectional
    return replace(fabric, bidirectional=both) if fabric is not None else None


def _rates(planner: LegPlanner) -> dict[str, float]:
    """Return what each rail carries alone by physics, in MB/s; empty where no link is declared."""
    net_paths = {rail: _loaded(planner, (rail,)) for rail in planner.rails}
    return {
        rail: bound(net_path).nominal_mb_s
        for rail, net_path in net_paths.items()
        if net_path is not None
    }


def expected_gain(planner: LegPlanner) -> float:
    """Return all rails over the best one by physics; the number of rails where none is declared."""
    rates, many = _rates(planner), _loaded(planner, planner.rails)
    if many is None or not rates:
        return float(len(planner.rails))
    return bound(many).nominal_mb_s / max(rates.values())


def _impossible_gain(planner: LegPlanner, tolerance: float) -> float | None:
    """Return the gain that no healthy single rail leaves room for; None without physics."""
    many, rates = _loaded(planner, planner.rails), _rates(planner)
    if many is None or not rates:
        return None
    best = _loaded(planner, (max(rates, key=rates.__getitem__),))
    assert best is not None, "it has a rate"
    return bound(many).high_mb_s / (bound(best).low_mb_s * (1 - tolerance))


def scaling(planner: LegPlanner, singles: dict[str, Leg], together: Leg) -> Relation:
    """Return the relation of all rails to the best single one at the largest messages."""
    known = planner.physics(planner.rails) is not None
    gain = expected_gain(planner)
    row = program_of(planner.suite, planner.program)
    # The C program's meaning: mpi4py's port of osu_bibw moves both directions and counts one.
    both = row is not None and row.meaning.bidirectional
    reference = at_least(
        gain,
        unit="x",
        tolerance=GAIN_TOLERANCE_BOTH_WAYS if both else GAIN_TOLERANCE,
        origin="physics: what slots and links allow",
    )
    return together.relation(
        "scaling",
        "ratio",
        [*singles.values(), together],
        {
            "quantity": "bandwidth",
            "sizes": list(together.expected_sizes[-LARGEST_SIZES:]),
            "over": [together.name],
            "under": [leg.name for leg in singles.values()],
            "combine": "max",
            "reference": asdict(reference) if known else None,
            "most": _impossible_gain(planner, planner.site.spec.tolerance),
            "hint": GAIN_HINT,
        },
    )


def sharing(planner: LegPlanner, singles: dict[str, Leg], together: Leg) -> Relation:
    """Return the relation that tells how large messages are shared among the rails."""
    rates = _rates(planner) or dict.fromkeys(planner.rails, 1.0)
    weights = {rail: rate / sum(rates.values()) for rail, rate in rates.items()}
    starts = len(together.commands)
    return together.relation(
        "sharing",
        "sharing",
        [*singles.values(), together],
        {
            "singles": {rail: leg.name for rail, leg in singles.items()},
            "together": together.name,
            "large_part": starts - 1 if starts > 1 else None,
            "expected_gain": expected_gain(planner),
            "weights": weights,
            "reference": asdict(_even(weights)),
            "threshold": planner.stack.spec.sharing_threshold or "",
            "hint": BALANCE_HINT,
        },
    )


def _even(weights: dict[str, float]) -> Reference:
    """Return the balance of rails that get even shares: 1 where they are alike."""
    return at_least(
        len(weights) * min(weights.values()),
        unit="x",
        tolerance=BALANCE_TOLERANCE,
        origin="physics: even shares of these rails",
    )


#: the program that moves both directions at once
BOTH_WAYS = "osu_bibw"

#: LinkTest's healthy systems show "about twice", its unhealthy one "hardly more" than one
#: direction (document 003 of the sources); a fifth below twice is what a busy host bus costs.
DUPLEX_TOLERANCE = 0.20

DUPLEX_HINT = (
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
            tolerance=DUPLEX_TOLERANCE,
            origin="physics: both directions at once",
        )
        most = loaded.high_mb_s / (single.low_mb_s * (1 - planner.site.spec.tolerance))
    return together.relation(
        "duplex",
        "ratio",
        [forth, together],
        {
            "quantity": "bandwidth",
            "sizes": list(forth.expected_sizes[-LARGEST_SIZES:]),
            "over": [together.name],
            "under": [forth.name],
            "scale": 1.0 if counts_both else 2.0,
            "reference": asdict(reference) if reference else None,
            "most": most,
            "hint": DUPLEX_HINT,
        },
    )


#: protocols of IP addresses, which reach others in their own network only; sockets, and RoCE v2,
#: whose packets are UDP (IBTA, Annex A17)
ADDRESSED = frozenset({"tcp", "ipoib", "tcp-bypass", "rocev2"})


def matrix_plan(planner: LegPlanner) -> Plan:
    """Return a leg for each pair of rails."""
    rails = planner.rails
    return Plan(legs=tuple(cell(planner, one, other) for one in rails for other in rails))


def cell(planner: LegPlanner, one: str, other: str) -> Leg:
    """Return the leg from rail ``one`` of the first node to rail ``other`` of the second.

    What is set differently for the two rails is set on each node by itself; the rest is common.
    """
    if one == other:
        return planner.leg((one,))
    here, there = planner.leg((one,)), planner.leg((other,))
    slower = min(here, there, key=lambda leg: _rate(planner, leg.rails))
    apart = [
        {name: value for name, value in mine.environment.items() if yours.get(name) != value}
        for mine, yours in ((here, there.environment), (there, here.environment))
    ]
    common = {name: value for name, value in here.environment.items() if name not in apart[0]}
    settings = [
        " ".join(f"{name}={value}" for name, value in sorted(mine.items())) for mine in apart
    ]
    return replace(
        slower,
        name=f"{one}-{other}",
        rails=(f"{one}-{other}",),
        node_rails=(one, other),
        environment={**common, "FABRICPROOF_PROGRAM": here.commands[0][0]},
        commands=tuple(
            ("bash", EACH_NODE_FILE, *settings, "--", *argv) for argv in slower.commands
        ),
        ask=("reach", one, other) if planner.protocol in ADDRESSED else (),
    )


def _rate(planner: LegPlanner, rails: tuple[str, ...]) -> float:
    fabric = planner.physics(rails)
    return bound(fabric).nominal_mb_s if fabric is not None else 0.0
