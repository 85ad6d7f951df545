"""The kernel of a campaign beside a stock program: what a job is planned to measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.measure import FindingKind, Table, Verdict
from fabricproof.job.leg import Plan
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.job.relations.ratio import judge_against
from fabricproof.pairs.campaign.plan import Mode
from fabricproof.rfm.legs.kernel import agreement, kernel_plan, with_binaries
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import load_site
from fabricproof.verdict.value import Report

NOTHING = Report(verdict=Verdict.PASS, quantities=())
SITES = Path(__file__).parents[2] / "site-configs"


def planned(folder: Path, program: str, mode: Mode, **stack: object) -> Plan:
    """Return the plan of a C stack whose programs are those in ``folder``."""
    (folder / program).touch()
    site = load_site(str(SITES / "vcluster"))
    update = {"provisioned": False, "suites": {"osu": str(folder)}, **stack}
    planner = LegPlanner(
        site=site,
        partition=site.partitions[0],
        stack=site.stack("openmpi5").model_copy(update=update),
        fabric="eth0",
        suite="osu",
        program=program,
    )
    return kernel_plan(planner, mode)


def test_both_move_the_same_messages_as_often_and_the_kernel_each_way(tmp_path: Path) -> None:
    plan = planned(tmp_path, "osu_bw", Mode.UNI)
    ours, stock = (leg for leg in plan.legs if not leg.in_turn)
    (command,) = ours.commands
    assert command[:2] == ("bash", "kernel.sh")
    size, window, repetitions, warmups = map(int, command[-1].split()[1:5])
    assert command[-1].split()[0] == "uni"
    assert (size, len(command[2:])) == (stock.expected_sizes[-1], 3)
    options = dict(zip(stock.commands[-1][1::2], stock.commands[-1][2::2], strict=True))
    assert (options["-i"], options["-x"], options["-W"]) == tuple(
        map(str, (repetitions, warmups, window))
    )
    assert ours.expected_sizes == stock.expected_sizes
    assert ours.sent_bytes is not None
    assert stock.sent_bytes is not None
    assert ours.sent_bytes == (stock.sent_bytes[0], stock.sent_bytes[0])
    assert ours.environment["FABRICPROOF_NAP_US"] == "100"  # as in a campaign on shared cores


@pytest.mark.parametrize(
    ("program", "mode", "bounds", "slack"),
    [
        ("osu_bw", Mode.UNI, (0.98, 1.02), 0.0),
        ("osu_bibw", Mode.BI, (0.98, 1.02), 0.0),
        ("osu_latency", Mode.PINGPONG, (0.95, 1.05), 1.0),
    ],
)
def test_the_relation_is_judged_both_ways_and_names_both_programs(
    tmp_path: Path, program: str, mode: Mode, bounds: tuple[float, float], slack: float
) -> None:
    plan = planned(tmp_path, program, mode)
    (relation,) = plan.relations
    reference = relation.settings["reference"]
    assert (reference["lower"], reference["upper"]) == pytest.approx(bounds)
    assert relation.settings["slack"] == slack
    assert program in reference["origin"]
    assert "the kernel" in reference["origin"]
    assert relation.legs == ("rail0.kernel", f"rail0.{program}")
    assert relation.owns == relation.legs
    assert [leg.name for leg in plan.legs if leg.in_turn] == [*relation.turns.values()]


def test_beside_a_port_in_python_a_kernel_may_be_faster_and_not_slower(tmp_path: Path) -> None:
    plan = planned(tmp_path, "osu_latency", Mode.PINGPONG)
    (ours, stock), (relation,) = plan.legs[:2], plan.relations
    port = replace(stock, suite="osu-mpi4py")
    settings = agreement(ours, port, (1,), scale=1.0).settings
    for value, verdict in ((0.5, Verdict.PASS), (1.06, Verdict.FAIL)):
        assert judge_against("latency_agreement", value, settings).verdict is verdict
    assert judge_against("latency_agreement", 0.5, relation.settings).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(1.0, Verdict.PASS), (0.985, Verdict.PASS), (1.03, Verdict.FAIL), (0.97, Verdict.FAIL)],
)
def test_what_no_longer_agrees_is_red_and_says_of_which_programs(
    tmp_path: Path, value: float, verdict: Verdict
) -> None:
    (relation,) = planned(tmp_path, "osu_bw", Mode.UNI).relations
    judged = judge_against("bandwidth_agreement", value, relation.settings)
    assert judged.verdict is verdict
    assert "the kernel (uni) beside osu_bw (osu), same nodes" in judged.reason
    assert ("AllPairs" in judged.reason) == (verdict is Verdict.FAIL)


def test_a_relation_says_which_binary_of_the_kernel_its_leg_ran(tmp_path: Path) -> None:
    plan = planned(tmp_path, "osu_bw", Mode.UNI)
    attributes = {"mpi": "MPICH 5.0.2", "build": "abi", "sha256": "ab" * 32}
    blank = Table(
        suite="fabricproof", program="uni", version=None, columns=("message_size",), rows=(),
        source="", line=1, row_lines=(), attributes=attributes,
    )  # fmt: skip
    tables = [blank, replace(blank, attributes={})]
    of_legs = [
        Outcome(leg=leg, attempts=(attempt(table),), report=NOTHING)
        for leg, table in zip(plan.legs, tables, strict=False)
    ]
    (relation,) = plan.relations
    row = Outcome(leg=relation.as_leg(), attempts=(), report=NOTHING)
    (told,) = with_binaries([row], plan.relations, of_legs)
    (finding,) = told.report.findings
    assert (finding.kind, finding.fact) == (FindingKind.KERNEL, "ab" * 32)
    assert finding.text.startswith("kernel abababababab (SHA-256), built against the standard MPI")
    # What no kernel measured is as it was.
    (alone,) = with_binaries([replace(row, leg=plan.legs[1])], plan.relations, of_legs)
    assert alone.report.findings == ()


def attempt(table: Table) -> Attempt:
    return Attempt(number=1, folder=Path(), status=0, table=table, ranks=(), report=NOTHING)
