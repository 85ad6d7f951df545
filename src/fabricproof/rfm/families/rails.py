"""Checks over several rails: alone and together, both ways at once, each against each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fabricproof.benchmarks.catalogue import meaning, program_of
from fabricproof.core.units import parse_size
from fabricproof.job.leg import Leg, Plan
from fabricproof.job.relation import Balance
from fabricproof.job.script import EACH_NODE_FILE
from fabricproof.physics import Fabric, bound
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.legs.compare import compare
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.verdict.value import at_least

#: Two rails that promise 2.0 are red below 1.9: both numbers were measured by one program on the
#: same nodes within seconds, so that what disturbs one by more than a twentieth deserves a look.
GAIN_TOLERANCE = 0.05

#: Both directions at once load the hosts twice as much; their gain may fall short by as much as a
#: bandwidth may of its own reference (value.DEFAULT_TOLERANCE).
GAIN_TOLERANCE_BOTH_WAYS = 0.10

#: Shares may leave this fraction of the summed rate unused before they are red.
BALANCE_TOLERANCE = 0.10

#: Messages up to the first size are small to every MPI; above the second they are large to OSU
#: (LARGE_MESSAGE_SIZE) and near the thresholds of the MPIs (document 000: 8 KiB).
STARTS_ABOVE = (1024, 8192)

#: LinkTest's healthy systems show "about twice", its unhealthy one "hardly more" than one
#: direction (document 003 of the sources); a fifth below twice is what a busy host bus costs.
DUPLEX_TOLERANCE = 0.20

#: protocols of IP addresses, which reach others in their own network only; sockets, and RoCE v2,
#: whose packets are UDP (IBTA, Annex A17)
ADDRESSED = frozenset({"tcp", "ipoib", "tcp-bypass", "rocev2"})


class RailsBenchmark(FabricBenchmark):
    """Each rail by itself and all rails together, on the same two nodes in one job."""

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where there is one rail only."""
        return planner.why_one_rail()

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the legs over each rail and over all, with their scaling and sharing."""
        refusal, own = planner.refusal(planner.rails), replace(planner, own_launcher=True)
        if refusal is not None and own.refusal(own.rails) is None:
            # srun may be what cannot start it: MPICH's wheel speaks PMI-1 to srun alone.
            self.own_launcher, refusal, planner = True, None, own
        if refusal is not None:
            return Plan(reason=refusal)
        row = program_of(planner.suite, planner.program)
        # The C program's meaning: mpi4py's port of osu_bibw moves both directions and counts one.
        both = row is not None and row.meaning.bidirectional
        tolerance = GAIN_TOLERANCE_BOTH_WAYS if both else GAIN_TOLERANCE
        gain, most = expected_gain(planner)
        origin = "physics: what slots and links allow"
        reference = at_least(gain, unit="x", tolerance=tolerance, origin=origin)

        def together(sizes: Sequence[int]) -> Leg:
            starts = () if sizes else STARTS_ABOVE
            return planner.leg(planner.rails, starts_above=starts, sizes=sizes)

        plan = compare(
            "scaling",
            over=[together],
            under=[
                lambda sizes, rail=rail: planner.leg((rail,), sizes=sizes)  # type: ignore[misc]
                for rail in planner.rails
            ],
            reference=None if most is None else reference,
            most=most,
            hint="one rail may be slow (see its own leg), on the wrong socket, or the MPI shares "
            "by weights that do not fit",
        )
        (scaling,) = plan.relations
        sharing = replace(scaling, name="sharing", what=_balance(planner, plan.legs, gain))
        return replace(plan, relations=(scaling, sharing))


def _loaded(planner: LegPlanner, rails: tuple[str, ...]) -> Fabric | None:
    fabric, both = planner.physics(rails), meaning(planner.suite, planner.program).bidirectional
    return fabric and replace(fabric, bidirectional=both)


def _rates(planner: LegPlanner) -> dict[str, float]:
    """Return what each rail carries alone by physics, in MB/s; 1 if no link is declared."""
    each = {rail: _loaded(planner, (rail,)) for rail in planner.rails}
    return {rail: bound(path).nominal_mb_s if path else 1.0 for rail, path in each.items()}


def expected_gain(planner: LegPlanner) -> tuple[float, float | None]:
    """Return all rails over the best one by physics, and what is impossible; None if unknown."""
    many, rates = _loaded(planner, planner.rails), _rates(planner)
    best = _loaded(planner, (max(rates, key=rates.__getitem__),))
    if many is None or best is None:
        return float(len(planner.rails)), None
    low = bound(best).low_mb_s * (1 - planner.site.spec.tolerance)
    return bound(many).nominal_mb_s / max(rates.values()), bound(many).high_mb_s / low


def _balance(planner: LegPlanner, legs: Sequence[Leg], gain: float) -> Balance:
    rates, stated = _rates(planner), planner.stack.spec.sharing_threshold
    weights = {rail: rate / sum(rates.values()) for rail, rate in rates.items()}
    together = next(leg for leg in legs if leg.rails == planner.rails)
    even = len(weights) * min(weights.values())
    origin = "physics: even shares of these rails"
    return Balance(
        singles={rail: rail for rail in planner.rails},
        together=together.name,
        large_part=len(together.commands) - 1 or None,
        expected_gain=gain,
        weights=weights,
        reference=at_least(even, unit="x", tolerance=BALANCE_TOLERANCE, origin=origin),
        threshold_bytes=parse_size(stated) if stated else None,
        hint="the rail with most to carry ends last",
    )


class DuplexBenchmark(FabricBenchmark):
    """Both directions at once beside one direction, over the first rail (osu_bw, osu_bibw)."""

    suite = "osu"
    program = "osu_bw"

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg each way of loading the rail, and their ratio."""
        both, reason = planner.of("osu", "osu_bibw")
        if both is None:
            return Plan(reason=reason)
        rails, most, reference = planner.rails[:1], None, None
        if (fabric := planner.physics(rails)) is not None:
            loaded, single = bound(replace(fabric, bidirectional=True)), bound(fabric)
            reference = at_least(
                loaded.nominal_mb_s / single.nominal_mb_s,
                unit="x",
                tolerance=DUPLEX_TOLERANCE,
                origin="physics: both directions at once",
            )
            most = loaded.high_mb_s / (single.low_mb_s * (1 - planner.site.spec.tolerance))
        return compare(
            "duplex",
            over=[lambda sizes: both.leg(rails, variant="both", sizes=sizes)],
            under=[lambda sizes: planner.leg(rails, variant="forth", sizes=sizes)],
            reference=reference,
            most=most,
            # mpi4py's port of osu_bibw prints one direction of the two that it moves.
            scale=1.0 if meaning(both.suite, both.program).bidirectional else 2.0,
            hint="the link or the slot carries one direction at a time: a half-duplex port, one "
            "core for both directions, or one TCP connection that both share (btl_tcp_links)",
        )


class RailMatrix(FabricBenchmark):
    """Each rail of one node against each rail of another, one leg for each pair of rails."""

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where there is one rail only."""
        return planner.why_one_rail()

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg for each pair of rails."""
        rails = planner.rails
        return Plan(legs=tuple(_cell(planner, one, other) for one in rails for other in rails))


def _cell(planner: LegPlanner, one: str, other: str) -> Leg:
    """Return the leg from rail ``one`` of the first node to rail ``other`` of the second.

    What is set differently for the two rails is set on each node by itself; the rest is common.
    """
    here, there = planner.leg((one,)), planner.leg((other,))
    if one == other:
        return here
    rates = _rates(planner)
    slower = here if rates[one] <= rates[other] else there
    common = dict(here.environment.items() & there.environment.items())
    settings = [
        " ".join(f"{name}={value}" for name, value in sorted(mine.items() - common.items()))
        for mine in (here.environment, there.environment)
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
