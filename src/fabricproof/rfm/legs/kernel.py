"""What is planned of the kernel of a campaign beside a stock program on the same two nodes.

What the kernel says of a pair is a verdict's ground only where others would have measured it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.core.measure import Finding, FindingKind
from fabricproof.job.leg import CAMPAIGN_SUITE, Leg, Plan, Relation, in_turns
from fabricproof.job.outcome import Outcome
from fabricproof.pairs.campaign.plan import NAP_US, Binary, Build, Mode
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.rails import LARGEST_SIZES
from fabricproof.verdict.value import around, at_most

#: What the two may differ by, of a bandwidth and of a latency; a latency also by so many us.  Both
#: are means of the same loop: by hand they were 0.1 % of a bandwidth apart and 0.3 us of 18.4.
BANDWIDTH_TOLERANCE, LATENCY_TOLERANCE, LATENCY_SLACK_US = 0.02, 0.05, 1.0

#: message sizes in bytes at which latencies are held against each other; a campaign takes the first
SMALL_SIZES = (1, 2, 4)

HINT = (
    "campaigns over all nodes (AllPairs..., pairs run) measure with that kernel: their values of "
    "this stack are not those of stock programs"
)


def kernel_plan(planner: LegPlanner, mode: Mode) -> Plan:
    """Return a leg of the kernel and one of the planner's program, and their ratio."""
    kernel, reason = planner.of(CAMPAIGN_SUITE, mode)
    if kernel is None:
        return Plan(reason=reason)
    rails = planner.rails[:1]
    reading = meaning(planner.suite, planner.program)
    sizes: Sequence[int] = SMALL_SIZES
    if mode is not Mode.PINGPONG:
        sizes = planner.leg(rails).expected_sizes[-LARGEST_SIZES:]
    stock = planner.leg(rails, variant=planner.program, sizes=sizes)
    ours = kernel.leg(rails, variant="kernel", sizes=sizes, environment=kernel_settings(planner))
    turns = {leg.name: leg.turn() for leg in (ours, stock)}
    # mpi4py's port of osu_bibw moves both directions and counts one.
    counts_one = mode is Mode.BI and not reading.bidirectional
    relation = agreement(ours, stock, sizes, scale=0.5 if counts_one else 1.0)
    return Plan(legs=(ours, stock, *turns.values()), relations=(in_turns(relation, turns),))


def kernel_settings(planner: LegPlanner) -> dict[str, str]:
    """Return the environment of a leg of the kernel."""
    nap_us = NAP_US if planner.partition.oversubscribed else 0
    return {"FABRICPROOF_PROGRAM": "./kernel", "FABRICPROOF_NAP_US": str(nap_us)}


def with_binaries(
    outcomes: Iterable[Outcome], relations: Iterable[Relation], of_legs: Iterable[Outcome]
) -> tuple[Outcome, ...]:
    """Return outcomes with the binary of the kernel that measured the legs which a relation owns.

    Those legs leave no records of their own.

    Args:
        outcomes: of legs by themselves and of relations.
        relations: of the job.
        of_legs: all legs of the job, judged.
    """
    said = {each.leg.name: _binary(each) for each in of_legs}
    by_relation = {each.name: [said.get(name) for name in each.legs] for each in relations}
    found = []
    for outcome in outcomes:
        own = tuple(dict.fromkeys(filter(None, by_relation.get(outcome.leg.name, ()))))
        findings = (*outcome.report.findings, *own)
        found.append(replace(outcome, report=replace(outcome.report, findings=findings)))
    return tuple(found)


def _binary(leg: Outcome) -> Finding | None:
    tables = [each.table for each in leg.attempts if each.table is not None]
    told = tables[-1].attributes if tables else {}
    # A kernel of another version may call its build otherwise.
    if not told.get("sha256") or told.get("build") not in {each.value for each in Build}:
        return None
    binary = Binary(
        mpi=str(told["mpi"]),
        build=Build(str(told["build"])),
        sha256=str(told["sha256"]),
        libraries=tuple(filter(None, [str(told.get("library", ""))])),
    )
    return Finding(text=binary.sentence, kind=FindingKind.KERNEL, fact=binary.sha256)


def agreement(ours: Leg, stock: Leg, sizes: Sequence[int], *, scale: float) -> Relation:
    """Return what is to hold between the kernel's leg and that of a stock program.

    The median of the ratios at ``sizes`` (bytes) counts, times ``scale``, for a program that prints
    a part of what it moves.
    """
    is_latency = ours.program == Mode.PINGPONG
    # The interpreter's time is in the latency of a port: the kernel may be faster, not slower.
    bounds = at_most if is_latency and stock.suite == "osu-mpi4py" else around
    reference = bounds(
        1.0,
        unit="x",
        tolerance=LATENCY_TOLERANCE if is_latency else BANDWIDTH_TOLERANCE,
        origin=f"the kernel ({ours.program}) beside {stock.program} ({stock.suite}), same nodes",
    )
    return stock.relation(
        "agreement",
        "ratio",
        (ours, stock),
        {
            "quantity": "latency" if is_latency else "bandwidth",
            "sizes": list(sizes),
            "over": [ours.name],
            "under": [stock.name],
            "scale": scale,
            "slack": LATENCY_SLACK_US if is_latency else 0.0,
            "reference": asdict(reference),
            "hint": HINT,
        },
        owns=(ours, stock),
    )
