"""What is planned rail against rail: every adapter of one node to every adapter of the other."""

from __future__ import annotations

from dataclasses import replace

from fabricproof.job.leg import Leg, Plan
from fabricproof.job.script import EACH_NODE_FILE
from fabricproof.physics import bound
from fabricproof.rfm.legs.leg import LegPlanner

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
