"""Base classes of every check that measures a fabric, with the guards of ReFrame's traps.

A check names a suite, a program and its tags, and plans its legs.  The base class asks the site for
fabric and stack, writes the legs, lets the launcher run them, and hands what they leave to the
judge.  It decides nothing by itself.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.backends import getlauncher
from reframe.core.builtins import (
    deferrable,
    fixture,
    parameter,
    required,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import PerformanceError, SanityError
from reframe.core.schedulers import Job

from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import AFTERWARDS_KEY, IDENTITY_KEY
from fabricproof.core.records import append_records, record_file
from fabricproof.core.units import first_few
from fabricproof.job.job_end import REACHED_END, RECORD_END, SchedulerSays
from fabricproof.job.judge import JobFacts, judge_job
from fabricproof.job.leg import PEER_SUITES, Leg, Plan, write_plan
from fabricproof.job.outcome import Outcome
from fabricproof.job.relation import Relation
from fabricproof.job.run import PLANS_VARIABLE, JobEvent, tell
from fabricproof.job.script import JOB_END_FILE, SCRIPT_FILE, render_script
from fabricproof.nodes.inventory.store import FOLDER
from fabricproof.physics import find_link
from fabricproof.rfm.build import StackBuild
from fabricproof.rfm.current import (
    NO_SITE,
    TAGGED_TECHNOLOGIES,
    asked_nodes,
    current_site,
    fabric_choices,
    is_roce,
    resolved,
    run_id,
    technology,
    took_part,
    why_no_site,
)
from fabricproof.rfm.ending import settle
from fabricproof.rfm.handover import bounds, complaints, handed_over, quantity_key
from fabricproof.rfm.legs.compare import with_twins
from fabricproof.rfm.legs.leg import LegPlanner, choose_suite
from fabricproof.rfm.settings import perflog_root
from fabricproof.rfm.slurm_nodes import lost_nodes
from fabricproof.rfm.staging import (
    KEPT_FILES,
    copy_scripts,
    digest_of_program,
    in_container,
    launch_command,
    leg_limit_seconds,
    python_on_node,
    with_baseline,
)
from fabricproof.site import PartitionSpec
from fabricproof.stacks.environment import shell_word
from fabricproof.stacks.launch import Layout, turned_command


class FabricBenchmark(rfm.RunOnlyRegressionTest):
    """Legs over the paths between some nodes, and what is to hold between them.

    Subclasses must set before setup: :attr:`suite`, :attr:`program`, :attr:`family_tags`; and say
    in :meth:`plan` what is measured.
    """

    #: Empty from :meth:`choose_where` on, and without a default before that: where it has one,
    #: ReFrame asks for its deprecated name too whenever a check is made, and walks the whole stack
    #: for a warning that it holds back (4.10.4, ``VarSpace.inject``): a quarter of ``reframe -l``.
    env_vars = required

    #: fabric of the site that is measured, or ``no-<technology>``
    fabric = parameter(fabric_choices(), loggable=True)

    #: the suite asked for (``osu``, ``imb``); after setup the one that runs (``osu-mpi4py``)
    suite = variable(str, loggable=True)

    #: program of the suite (``osu_bw``, ``PingPong``)
    program = variable(str, loggable=True)

    #: folder and level tags, for example ``{'pt2pt', 'quick'}``
    family_tags = variable(list, value=[])

    #: why the check was skipped, for the report
    skip_reason = variable(str, value="", loggable=True)

    #: identity of the session, version of the stack, digest of what the run happened in
    run_id = variable(str, value="", loggable=True)
    stack_version = variable(str, value="", loggable=True)
    environment_digest = variable(str, value="", loggable=True)

    #: identity of the stack and of the suite's package, taken when the legs are planned
    stack_digest = variable(str, value="", loggable=True)
    stack_mpi = variable(str, value="", loggable=True)
    stack_program = variable(str, value="", loggable=True)
    stack_compiler = variable(str, value="", loggable=True)
    stack_target = variable(str, value="", loggable=True)

    if not why_no_site() and any(stack.spack for stack in current_site().stacks):
        #: what builds the stack first; sites without a stack of Spack have no such fixture
        stack_build = fixture(StackBuild, scope="environment", action="join")

    num_tasks = 2
    num_tasks_per_node = 1
    require_reference = True
    sourcesdir = None
    executable = "bash"
    executable_opts = [SCRIPT_FILE]  # noqa: RUF012 - ReFrame reads class attributes as variables

    #: the MPI is told its path; False where there is none or nobody tells it
    tells_the_path: bool = True

    #: the MPI's own launcher starts the ranks, where the partition's could not do what is asked
    own_launcher: bool = False

    #: module that the job asks, again and again, which leg to run next
    asks_next: str = "fabricproof.job.second_look"

    #: what counts of the legs, if not they and the plan's relations
    rows: Callable[[Sequence[Outcome]], Sequence[Outcome]] | None = None

    #: site, partition, stack and program, from setup on
    planner: LegPlanner
    legs: tuple[Leg, ...] = ()
    relations: tuple[Relation, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    job_says = SchedulerSays()
    job_nodes: Sequence[str] = ()

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        """Return what ReFrame puts into each log line, less what costs more than it tells.

        Each read of the deprecated name of ``env_vars`` walks the whole stack for a warning that
        nobody sees, two thirds of a dry run's time; each read of ``job_nodelist`` starts
        ``scontrol`` (ReFrame 4.10.4), beside the measurement of the next job.
        """
        ours = {"variables": (), "job_nodelist": (("job_nodes", "job_nodelist"),)}
        found = type(rfm.RunOnlyRegressionTest).loggable_attrs(cls)
        return [one for each in found for one in ours.get(each[0], (each,))]

    # What a check may say differently.

    def plan(self, planner: LegPlanner) -> Plan:
        """Return what this check measures: legs and relations, or the reason for none.

        Args:
            planner: for the check's own suite and program; ``planner.of`` gives others.
        """
        raise NotImplementedError(f"{type(self).__name__} plans nothing")

    def why_not(self, planner: LegPlanner) -> str:  # noqa: ARG002
        """Return why there is nothing to measure, whatever the stack has; empty where there is.

        It may choose another :attr:`suite` or :attr:`program`.
        """
        return ""

    def environs(self) -> list[str]:
        """Return the stacks with which the check runs, as ReFrame selects environments."""
        return [stack.name for stack in current_site().stacks]

    def choose_suite(self, planner: LegPlanner) -> tuple[str | None, str]:
        """Return the suite that has the program, or None and why none has it."""
        return choose_suite(planner.stack, self.suite, self.program)

    def job_minutes(self, partition: PartitionSpec) -> int:
        """Return what the job may take."""
        return partition.job_minutes

    def looks(self, partition: PartitionSpec) -> bool:
        """Tell whether the nodes are asked what they are made of; preflight always does."""
        return partition.look_each_job

    def launched(self, leg: Leg, plan: Plan) -> Leg:
        """Return ``leg`` with its own launcher line where its layout is not the whole job's."""
        stack, launcher = self.planner.stack, self.planner.launcher
        whole = Layout(num_nodes=plan.num_nodes, ranks_per_node=plan.ranks_per_node)
        if leg.backward and leg.suite not in PEER_SUITES:
            command = launch_command(stack, launcher, whole, is_whole=True)
            return replace(leg, launch=turned_command(stack.family, launcher, command))
        layout = Layout(num_nodes=leg.num_nodes, ranks_per_node=leg.ranks_per_node, nodes=leg.nodes)
        if leg.launch or layout == whole:
            return leg
        return replace(leg, launch=tuple(launch_command(stack, launcher, layout)))

    def more_records(self) -> Sequence[Mapping[str, object]]:
        """Return what a check keeps beside the records of its legs and relations, of own kinds."""
        return ()

    # The stages of ReFrame's pipeline.

    @run_after("init")
    def choose_where(self) -> None:
        """Bind the check to the partitions that have its fabric; name its tags."""
        if not hasattr(self, "env_vars"):  # ReFrame's --setvar may have set it
            self.env_vars = {}
        self.run_id = run_id()
        self.valid_systems = self.valid_prog_environs = ["*"]
        self.tags = {*self.family_tags}
        if self.fabric == NO_SITE:
            self.tags.update(TAGGED_TECHNOLOGIES)
            return
        self.valid_prog_environs = self.environs()
        if self.fabric.startswith("no-"):
            self.tags.add(self.fabric.removeprefix("no-"))
            return
        spec = current_site().fabric_spec(self.fabric)
        self.tags.update({technology(spec), *(["roce"] if is_roce(spec) else [])})
        self.valid_systems = [f"+fabric-{self.fabric}"]

    def depends_on(self, target: str, how: object = None, *args: object) -> None:
        """Depend on a fixture, unless there is nothing to measure: that needs no stack built."""
        if not self.fabric.startswith("no-"):
            super().depends_on(target, how, *args)

    def _skip(self, reason: str) -> None:
        self.skip_reason = reason
        self.skip(reason)

    @run_before("setup")
    def skip_what_this_site_does_not_have(self) -> None:
        """Skip, with a reason, a technology that this site does not have; fail without a site."""
        if error := why_no_site():
            raise error
        took_part.add(type(self).__name__)
        if self.fabric.startswith("no-"):
            self._skip(f"this site has no {self.fabric.removeprefix('no-')} fabric")

    def _create_job(self, job_type: str, *_: object, **options: object) -> Job:
        """Return a job that starts a script: the script starts the ranks, and ReFrame nothing.

        ReFrame's object for srun, which it would make here and a hook could replace, runs
        ``srun --version``: for each test case, and without a slurm.conf that answers after a
        minute.
        """
        partition = self.current_partition
        return Job.create(
            partition.scheduler,
            getlauncher("local")(),
            name=f"rfm_{self.short_name}",
            script_filename="rfm_job.sh" if job_type == "run" else "rfm_build.sh",
            workdir=self.stagedir,
            sched_access=partition.access,
            **options,
        )

    @run_after("setup")
    def plan_the_job(self) -> None:
        """Plan the legs, or skip with a reason; write what the job needs into its folder."""
        plan = self._planned()
        if not plan.legs:
            self._skip(plan.reason)
        partition = self.planner.partition
        self.num_tasks = plan.num_nodes * plan.ranks_per_node
        self.num_tasks_per_node = plan.ranks_per_node
        facts: dict[str, object] = {
            "name": type(self).__name__,
            "hashcode": self.hashcode,
            "fabric": self.fabric,
            "program": self.program,
            "tags": sorted(self.tags),
            "time_limit": 60 * self.job_minutes(partition),
            "stagedir": self.stagedir,
        }
        if os.environ.get(PLANS_VARIABLE):
            names = [self.launched(leg, plan).name for leg in plan.legs if not leg.in_turn]
            self._tell(JobEvent.PLANNED, **facts, num_nodes=plan.num_nodes, legs=names)
            self._skip("planned, and nothing more was asked for")
        self.write_legs(plan)
        self.time_limit = f"{self.job_minutes(partition)}m"
        self.max_pending_time = f"{partition.queue_minutes}m"
        has_it = RECORD_END in self.current_partition.prepare_cmds
        self.prerun_cmds = [*([] if has_it else [RECORD_END]), python_on_node(partition)]
        self.postrun_cmds = [REACHED_END]
        self._tell(JobEvent.PLANNED, **facts)

    def _planned(self) -> Plan:
        """Return what the check plans for its stack, and note what that stack is."""
        stack = resolved(self)
        planner = LegPlanner(
            site=current_site(),
            partition=stack.partition,
            stack=stack,
            fabric=self.fabric,
            suite=self.suite,
            program=self.program,
            own_launcher=self.own_launcher,
            dry_run=self.is_dry_run(),
        )
        reason, suite = self.why_not(planner), None
        if not reason:
            suite, reason = self.choose_suite(planner)
        if suite is None:
            return Plan(reason=reason)
        self.suite = suite
        identity = stack.identity(suite)
        self.stack_digest = identity.short
        for name in ("mpi", "program", "compiler", "target"):
            # A bar ends a column of the perflog.
            setattr(self, f"stack_{name}", getattr(identity, name).replace("|", "/"))
        self.stack_version = f"{stack.family} {stack.version}"
        if stack.kind == "spack":
            self.modules = [shell_word(each) for each in stack.modules]
            self.env_vars.update(stack.exported)
        self.planner = replace(
            planner, suite=suite, program=self.program, stack_digest=identity.digest
        )
        refusal = self.planner.transport_refusal() if self.tells_the_path else None
        plan = Plan(reason=refusal) if refusal else self.plan(self.planner)
        self.planner = replace(self.planner, own_launcher=self.own_launcher)
        return plan

    def _tell(self, event: JobEvent, **facts: object) -> None:
        """Tell whoever shows how far the run is what became of this job."""
        names = {
            "unique_name": self.unique_name,
            "partition": self.current_partition.name,
            "environ": self.current_environ.name,
        }
        tell(event, {**names, **facts})

    def write_legs(self, plan: Plan) -> None:
        """Write the plan, and lay what the job may start beside it."""
        folder, spec, stack = Path(self.stagedir), self.planner.spec, self.planner.stack.spec
        # With --dont-restage an old attempt lies here still, and might clear a new one.
        shutil.rmtree(folder / "legs", ignore_errors=True)
        (folder / JOB_END_FILE).unlink(missing_ok=True)
        legs = [self.launched(in_container(leg, stack), plan) for leg in plan.legs]
        if spec.errors is not None:
            limits, origin = spec.error_limits, spec.errors.origin
            legs = [replace(e, error_limits=limits, error_limits_origin=origin) for e in legs]
        self.relations = plan.relations
        suites = {self.suite, *(leg.suite for leg in legs), *(r.suite for r in self.relations)}
        self.builds = {suite: resolved(self).identity(suite) for suite in sorted(suites)}
        self.legs = with_baseline(legs, folder, self.planner, type(self).__name__, self.builds)
        write_plan(folder, self.legs, self.relations)
        copy_scripts(folder)
        self.keep_files = list(KEPT_FILES)

    @run_before("run")
    def write_script(self) -> None:
        """Put the launcher inside the script: one launch for each leg, not one for the job."""
        partition, plan = self.planner.partition, Plan(legs=self.legs)
        whole = Layout(num_nodes=plan.num_nodes, ranks_per_node=plan.ranks_per_node)
        launch = launch_command(self.planner.stack, self.planner.launcher, whole, is_whole=True)
        python = shell_word(partition.python or sys.executable)
        script = render_script(
            self.legs,
            launch=" ".join(launch),
            judge=f'{python} -E -m {self.asks_next} "$here"',
            leg_seconds_limit=leg_limit_seconds(partition),
            look_seconds=partition.look_seconds if self.looks(partition) else None,
            job_seconds=60 * self.job_minutes(partition),
        )
        (Path(self.stagedir) / SCRIPT_FILE).write_text(script, encoding="utf-8")
        if partition.uses_slurm:
            # After a node's death Slurm would run the job again, behind the verdict's back.
            self.job.options.append("--no-requeue")
            pinned = plan.nodes or asked_nodes()
            self.job.options += [f"--nodelist={','.join(pinned)}"] if pinned else []
        # What runs after ReFrame's "run" runs when the job is over.
        self._tell(JobEvent.SUBMITTED)

    @run_before("sanity")
    def judge_and_keep(self) -> None:
        """Judge every leg and keep the records before anything can fail this check."""
        if self.is_dry_run():
            return
        folder, site, partition = Path(self.stagedir), current_site(), self.planner.partition
        end, doubt, self.job_says = settle(self.job, folder, partition.scheduler)
        state, spec = self.job_says.state or "None", self.planner.spec
        self.job_nodes = self.job_says.nodes
        perflogs = perflog_root() / site.name
        lost = lost_nodes(self.job_nodes) if "NODE_FAIL" in state else ()
        job = {
            **({"lost_nodes": list(lost)} if lost else {}),
            "run_id": self.run_id,
            "check": type(self).__name__,
            "unique_name": self.unique_name,
            "site": site.name,
            "partition": partition.name,
            "stack": self.current_environ.name,
            "stack_version": self.stack_version,
            "fabric": self.fabric,
            "link": find_link(spec.link).name if spec.link is not None else "",
            "job_id": str(self.job.jobid),
            "job_state": state,
            "stage_folder": self.stagedir,
            "completed": self.job.completion_time,
            "job_end": None if end is None else asdict(end),
        }
        builds: dict[str, dict[str, Any]] = {}
        for suite, before in self.builds.items():
            now = resolved(self).identity(suite)
            builds[suite] = {IDENTITY_KEY: before.record()}
            if now != before:
                builds[suite][AFTERWARDS_KEY] = now.record()
        facts = JobFacts(
            spec=spec,
            identity=job,
            builds=builds,
            end=end,
            doubt=doubt,
            declined=self.planner.declined,
            binary=digest_of_program,
            inventory=perflogs / FOLDER if self.looks(partition) else None,
        )
        plan = Plan(legs=self.legs, relations=self.relations)
        done = judge_job(folder, plan, facts, self.rows)
        self.outcomes = done.outcomes
        if all(each.report.verdict is Verdict.SKIPPED for each in self.outcomes):
            self._skip(self.outcomes[0].report.quantities[0].reason)
        self.environment_digest = done.environment_digest
        path = record_file(perflogs / partition.name, self.run_id)
        append_records(path, done.records)
        told = [[e["leg"], e["verdict"], "; ".join(e["reasons"][:1])] for e in done.leg_records]
        nodes = sorted({node for each in done.records for node in each.get("nodes", ())})
        self._tell(JobEvent.JUDGED, legs=told, nodes=nodes)
        # After what was measured is safe: what a check makes of it may go wrong.
        own = {**builds[self.suite], **done.identity}
        append_records(path, [{**own, **each} for each in self.more_records()])

    @sanity_function
    @deferrable
    def every_leg_left_a_table(self) -> bool:
        """Fail where a leg left no readable table: nothing was measured there."""
        missing = [
            f"MISSING {outcome.leg.name} {each.name}: {each.reason}"
            for outcome in self.outcomes
            for each in outcome.report.quantities
            if each.verdict is Verdict.MISSING
        ]
        if missing or not self.outcomes:
            raise SanityError(next(iter(missing), "MISSING: no leg was judged"))
        return True

    @run_before("performance")
    def hand_quantities_to_reframe(self) -> None:
        """Give ReFrame every quantity with its value and the bounds the judge used."""
        if self.is_dry_run():
            return
        references: dict[str, tuple[object, ...]] = {}
        for leg, judgement in handed_over(self.outcomes):
            key = quantity_key(leg, judgement)
            self.perf_variables[key] = sn.make_performance_function(
                sn.defer(judgement.value), judgement.unit
            )
            references[key] = bounds(judgement)
        self.reference = {"*": references}

    @run_after("performance")
    def everything_declared_was_judged(self) -> None:
        """Fail unless every quantity of every leg was measured, is finite and has a PASS."""
        if self.is_dry_run():
            return
        measured = {key.split(":")[-1]: value[0] for key, value in self.perfvalues.items()}
        bad = complaints(self.outcomes, self.perf_variables, measured)
        if bad:
            raise PerformanceError(first_few(bad, 3, between="; "))


class PairBenchmark(FabricBenchmark):
    """Two nodes, one program, one leg for each path between them."""

    #: ``each``: every rail by itself; ``all``: the first rail, then all rails together
    net_paths = variable(str, value="each")

    #: its program sends one way: each rail is measured the other way as well
    one_way = variable(bool, value=False)

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where several rails are asked for and there is one."""
        return planner.why_one_rail() if self.net_paths == "all" else ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each path; like rails are held against each other."""
        plan = with_twins(planner, planner.plan(self.net_paths))
        if not plan.legs or not self.one_way:
            return plan
        return replace(plan, legs=(*plan.legs, *planner.backwards()))
