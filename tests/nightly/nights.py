"""Made reds, looks, legs and runs for the tests of the night."""

from __future__ import annotations

import datetime
from dataclasses import replace

from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import LegKey
from fabricproof.core.records import QuantityRecord
from fabricproof.core.units import stamp
from fabricproof.job.run import LegResult, RunResult
from fabricproof.nightly.confirm import Look, LookColour, Red, Role
from fabricproof.nightly.log import LegColour, LegState, Night, NightEnd

QUANTITY = {
    "quantity_name": "bandwidth_1MiB",
    "quantity_value": 11.7,
    "quantity_unit": "MB/s",
    "quantity_message_size": 1048576,
    "quantity_reason": "half of it",
    "quantity_ceiling": 23.8,
    "quantity_reference": 23.5,
    "quantity_origin": "physics",
    "quantity_named": True,
}
RUN = "20261121T020000Z-00000a"


def key(leg="rail1", check="OsuBandwidth", stack="openmpi5"):
    return LegKey(partition="compute", fabric="eth0", stack=stack, check=check, leg=leg)


def red(verdict=Verdict.FAIL, nodes=("vc1", "vc2"), leg="rail1", **more):
    return Red(
        key=key(leg, **more),
        verdict=verdict,
        reason="half of it",
        nodes=nodes,
        run_id=RUN,
        rails=(leg,),
    )


def look(role, colour, nodes=("vc1", "vc2"), reason=""):
    return Look(role=Role(role), nodes=nodes, colour=LookColour(colour), run_id="r", reason=reason)


def leg(verdict, nodes=("vc1", "vc2"), name="rail1", job="1", check="OsuBandwidth", **more):
    return LegResult(
        verdict=Verdict(verdict),
        check=check,
        partition="compute",
        stack=more.get("stack", "openmpi5"),
        suite="osu",
        program="osu_bw",
        fabric="eth0",
        leg=name,
        nodes=tuple(nodes),
        quantities=(
            QuantityRecord.read(QUANTITY | {"rails": [name], "quantity_verdict": verdict}),
        ),
        reason="" if verdict == "PASS" else "half of it",
        job_id=job,
    )


def unjudged(*marks, **more):
    """Return an UNJUDGED leg with one quantity for each of ``marks``: what left that one so."""
    plain = leg("UNJUDGED", **more)
    (quantity,) = plain.quantities
    return replace(plain, quantities=tuple(replace(quantity, **each) for each in marks))


DISTURBED = {"disturbance": "foreign_traffic"}
OPEN = {"is_open": True}


def session(*legs, run_id=RUN):
    return RunResult(run_id=run_id, legs=legs)


def ran(*legs, run_id=RUN, jobs=None, **more):
    nodes = {each.job_id: tuple(sorted(each.nodes)) for each in legs if each.nodes}
    return replace(session(*legs, run_id=run_id), job_nodes=jobs or nodes, **more)


def night(number, legs=(), ended=NightEnd.WHOLE, run_id=None, **more):
    """Return the night of day ``number``; ``legs`` are (key, LegState)."""
    time = datetime.datetime(2026, 11, 1, 2, tzinfo=datetime.UTC)
    return Night(
        night=f"n{number}",
        time=stamp(time + datetime.timedelta(days=number)),
        ended=ended,
        run_id=f"r{number}" if run_id is None else run_id,
        legs={str(each): leg for each, leg in legs},
        **{"arguments": ("-r", "-t", "nightly")} | more,
    )


def state(colour="red", blamed=(), **more):
    return LegState(
        colour=LegColour(colour), blamed=blamed, verdict="FAIL", net_path="rail1", **more
    )
