"""Runs and nights of the model: everything behind the files of a job is the product itself.

A job's legs are judged, looked at a second time, recorded, joined into a run, and what is red is
confirmed on the same nodes and with others: by the code that does so on a cluster.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.measure import Verdict
from fabricproof.core.records import append_records
from fabricproof.core.units import at_size
from fabricproof.job.commands import make_job, plan_ping_pong, plan_windowed
from fabricproof.job.leg import Leg, Plan, shell_name, write_plan
from fabricproof.job.outcome import Outcome
from fabricproof.job.outcomes import BACK, LARGEST_SIZES, against_directions, backward, judge_legs
from fabricproof.job.recording import describe_outcome
from fabricproof.job.relations.judge import legs_to_repeat
from fabricproof.job.run import LegResult, RunResult, assemble, read_run
from fabricproof.job.script import MOST_LOOKS
from fabricproof.nightly import Budget, Confirmation, Confirmer, settled
from fabricproof.verdict.value import Reference, at_most
from proof.machine.model import ModelFabric, ModelMachine
from proof.machine.scene import LIBRARY, Scene

#: check -> its suite and program
CHECKS = {
    "OsuBandwidth": ("osu", "osu_bw"),
    "OsuLatency": ("osu", "osu_latency"),
    "ImbPingPong": ("imb", "PingPong"),
    "OsuMultirail": ("osu", "osu_bw"),
}

#: budget of a leg, s, and largest message, as of a quick suite
LEG_SECONDS, LARGEST_BYTES = 3.0, 4 * 1024 * 1024

#: how much more than the usual a small message may take, by the model's site file
LATENCY_TOLERANCE = 0.15


def legs_of(check: str, fabric: ModelFabric, nodes: tuple[str, ...]) -> tuple[Leg, ...]:
    """Return the legs of ``check`` on a pair of nodes.

    Args:
        check: a key of :data:`CHECKS`.
        fabric: of the model.
        nodes: the pair, in the order of the ranks.
    """
    return tuple(replace(leg, nodes=nodes) for leg in _planned(check, fabric))


@lru_cache
def _planned(check: str, fabric: ModelFabric) -> tuple[Leg, ...]:
    if check == "OsuMultirail":
        return (_leg(check, fabric, fabric.rails),)
    each = tuple(_leg(check, fabric, (rail,)) for rail in fabric.rails)
    if check != "OsuBandwidth":
        return each
    return (*each, *(_backward(leg, fabric) for leg in each))


def _backward(leg: Leg, fabric: ModelFabric) -> Leg:
    short = _leg("OsuBandwidth", fabric, leg.rails, sizes=leg.expected_sizes[-LARGEST_SIZES:])
    return backward(replace(short, name=f"{leg.name}.{BACK}"))


def _leg(
    check: str, fabric: ModelFabric, rails: tuple[str, ...], sizes: tuple[int, ...] = ()
) -> Leg:
    suite, program = CHECKS[check]
    is_rate = meaning(suite, program).kind is ProgramKind.BANDWIDTH
    plan = plan_windowed if is_rate else plan_ping_pong
    effort = plan(
        max_size=LARGEST_BYTES,
        rate_mb_s=fabric.rate_mb_s * len(rails),
        latency_us=fabric.start_us,
        seconds=LEG_SECONDS,
        sizes=sizes,
    )
    job = make_job(suite, program, (program,), effort)
    return Leg(
        name="+".join(rails),
        rails=rails,
        suite=suite,
        program=program,
        environment={},
        commands=job.commands,
        expected_sizes=job.sizes,
        traffic=replace(job.traffic, messages=None) if is_rate or len(rails) > 1 else job.traffic,
        spread=len(rails) > 1,
        required=_required(program, job.sizes, is_rate=is_rate),
        references={} if program == "osu_bw" else {"latency": _usual(fabric)},
        tolerance=0.10,
        fabric=replace(fabric.facts, num_rails=len(rails)),
        library=LIBRARY,
    )


def _required(program: str, sizes: tuple[int, ...], *, is_rate: bool) -> tuple[str, ...]:
    plateau, smallest = at_size("bandwidth", sizes[-1]), at_size("latency", sizes[0])
    if program == "osu_bw":
        return (plateau,)
    return (plateau, smallest) if is_rate else (smallest,)


def _usual(fabric: ModelFabric) -> Reference:
    """Return the site's own word on small messages: 5 % above what the model's best node has."""
    return at_most(
        1.05 * fabric.start_us * fabric.reference_factor,
        tolerance=LATENCY_TOLERANCE,
        origin="the site's own measurement",
    )


SITE, PARTITION, STACK = "model", "compute", "openmpi5"

#: changes a scene before it is played
Change = Callable[[Scene], None]

#: changes what a run has left, before it is joined: records file, test cases
Damage = Callable[[Path, list[dict[str, Any]]], None]


@dataclass(frozen=True, kw_only=True)
class ModelNight:
    """What one night came to.

    Attributes:
        result: of the run, after confirmation.
        confirmations: of what was red or left open.
    """

    result: RunResult
    confirmations: tuple[Confirmation, ...] = ()

    @property
    def said(self) -> str:
        """All that a person is told of what is not green, on lines."""
        red = [leg for leg in self.result.legs if leg.verdict is not Verdict.PASS]
        sentences = [each.sentence for each in self.confirmations]
        return "\n".join([*map(_line, red), *sentences, *self.result.notes])

    @property
    def everything(self) -> str:
        """The same of all legs."""
        return "\n".join(map(_line, self.result.legs))


def _line(leg: LegResult) -> str:
    findings = "; ".join(map(str, leg.findings))
    return f"{leg.verdict.value} {leg.check} {leg.leg}: {leg.reason} {findings}"


def make_folder() -> Path:
    """Make a folder for the files of a night, in memory where the system has such a place."""
    memory = Path("/dev/shm")  # noqa: S108 - a file system in memory, the folder's name is drawn
    return Path(
        tempfile.mkdtemp(prefix="fabricproof-proof-", dir=memory if memory.is_dir() else None)
    )


@dataclass(kw_only=True)
class Conductor:
    """Runs nights on one machine.

    Attributes:
        changes: what is at fault.
        damages: what is done to the files of a run.
        checks: that run, keys of :data:`~proof.machine.night.CHECKS`.
        folder: for all files; made anew, in memory where there is such.
    """

    machine: ModelMachine
    changes: Sequence[Change] = ()
    damages: Sequence[Damage] = ()
    checks: Sequence[str] = tuple(CHECKS)
    folder: Path = field(default_factory=make_folder)
    num_runs: int = 0

    def night(self, nodes: Sequence[str]) -> ModelNight:
        """Run all checks on a pair of nodes and confirm what is not green."""
        ran = self.run(self.checks, tuple(nodes))
        confirmer = Confirmer(
            SITE,
            self._again,
            lambda _: self.machine.nodes,
            Budget(checks=60, until=1.0, clock=lambda: 0.0),
            lambda _: None,
        )
        found = confirmer.confirm(ran).confirmations
        return ModelNight(result=settled(ran, found), confirmations=found)

    def end(self) -> None:
        """Delete all files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _again(self, arguments: Sequence[str], nodes: tuple[str, ...]) -> RunResult:
        asked = [re.match(r"\^(\w+)%", each) for each in arguments]
        return self.run([each.group(1) for each in asked if each], nodes)

    def run(self, checks: Iterable[str], nodes: tuple[str, ...]) -> RunResult:
        """Run ``checks`` on ``nodes``, as one start of ReFrame would."""
        self.num_runs += 1
        number = self.num_runs
        run_id = f"20260101T000000Z-{number:06x}"
        file = self.folder / f"{number}.jsonl"
        cases: list[dict[str, Any]] = []
        due = []
        for place, check in enumerate(checks):
            outcomes = self._job(check, nodes)
            job_id = f"{number}{place:02d}"
            identity = self._identity(check, run_id, job_id)
            records = [
                record for outcome in outcomes for record in describe_outcome(outcome, identity)
            ]
            append_records(file, records)
            passed = all(each.report.verdict is Verdict.PASS for each in outcomes)
            cases.append(self._case(check, job_id, nodes, passed=passed))
            due.append({**_WHERE, "check": check, "fabric": self.machine.fabric.name})
        for damage in self.damages:
            damage(file, cases)
        records, torn = read_run([file], run_id)
        return RunResult(
            run_id=run_id,
            legs=assemble(cases, records, due),
            notes=tuple(torn),
            job_nodes={str(each["jobid"]): nodes for each in cases},
        )

    def _job(self, check: str, nodes: tuple[str, ...]) -> tuple[Outcome, ...]:
        """Run the job of one check, second looks included, and judge it."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        plan = Plan(legs=legs_of(check, self.machine.fabric, nodes))
        write_plan(folder, plan.legs)
        for leg in plan.legs:
            self._attempt(folder, leg, nodes, 1)
        outcomes = judge_legs(folder, plan.legs)
        # What ``second_look`` asks, without judging what has not changed once more.
        for _ in range(MOST_LOOKS):
            again = legs_to_repeat(plan.relations, outcomes)
            if not again:
                break
            for leg in plan.legs:
                if leg.name in again:
                    self._attempt(folder, leg, nodes, self._next_number(folder, leg))
            outcomes = judge_legs(folder, plan.legs)
        beside = against_directions(outcomes)
        outcomes = tuple(
            each.objected(beside[each.leg.name]) if each.leg.name in beside else each
            for each in outcomes
        )
        shutil.rmtree(folder)
        return outcomes

    def _next_number(self, folder: Path, leg: Leg) -> int:
        path = folder / "legs" / shell_name(leg.name)
        return next(i for i in count(1) if not path.with_name(f"{path.name}.{i}").is_dir())

    def _attempt(self, folder: Path, leg: Leg, nodes: tuple[str, ...], number: int) -> None:
        first, second = nodes
        ends = (second, first) if leg.backward else (first, second)
        scene = Scene(machine=self.machine, leg=leg, nodes=ends, attempt=number, run=self.num_runs)
        for change in self.changes:
            change(scene)
        scene.play(folder)

    def _identity(self, check: str, run_id: str, job_id: str) -> Mapping[str, object]:
        return {
            **_WHERE,
            "run_id": run_id,
            "check": check,
            "unique_name": check,
            "site": SITE,
            "fabric": self.machine.fabric.name,
            "link": self.machine.fabric.facts.link.name,
            "job_id": job_id,
            "job_state": "COMPLETED",
            "stage_folder": str(self.folder),
            "completed": "2026-01-01T00:00:00",
        }

    def _case(
        self, check: str, job_id: str, nodes: tuple[str, ...], *, passed: bool
    ) -> dict[str, Any]:
        return {
            "name": f"{check} %fabric={self.machine.fabric.name}",
            "unique_name": check,
            "environ": STACK,
            "partition": PARTITION,
            "system": SITE,
            "fabric": self.machine.fabric.name,
            "result": "pass" if passed else "fail",
            "fail_reason": None if passed else "performance error",
            "skip_reason": "",
            "fixture": False,
            "jobid": job_id,
            "job_nodelist": list(nodes),
            "suite": CHECKS[check][0],
            "program": CHECKS[check][1],
        }


_WHERE = {"partition": PARTITION, "stack": STACK}
