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
from types import MappingProxyType

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
from reframe.core.exceptions import PerformanceError
from reframe.core.schedulers import Job

from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import AFTERWARDS_KEY, IDENTITY_KEY, LegPlace, StackIdentity
from fabricproof.core.records import append_records
from fabricproof.core.units import first_few
from fabricproof.job.job_end import REACHED_END, RECORD_END, JobEnd, SchedulerSays
from fabricproof.job.judge import JobFacts, judge_job
from fabricproof.job.leg import PEER_SUITES, Leg, Plan, write_plan
from fabricproof.job.outcome import Outcome
from fabricproof.job.relation import Relation
from fabricproof.job.run import PLANS_VARIABLE, JobEvent, tell
from fabricproof.job.script import JOB_END_FILE, SCRIPT_FILE, render_script
from fabricproof.nodes.inventory.store import FOLDER
from fabricproof.rfm.build import StackBuild
from fabricproof.rfm.current import (
    NO_SITE,
    TAGGED_TECHNOLOGIES,
    asked_nodes,
    current_site,
    fabric_choices,
    is_roce,
    link_name,
    run_id,
    technology,
    why_no_site,
    why_one_rail,
)
from fabricproof.rfm.ending import ask_nodes_once, settle
from fabricproof.rfm.handover import bounds, complaints, handed_over
from fabricproof.rfm.legs.compare import with_twins
from fabricproof.rfm.legs.leg import LegPlanner, quantity_key, with_error_limits
from fabricproof.rfm.legs.programs import choose_suite
from fabricproof.rfm.settings import perflog_root
from fabricproof.rfm.slurm_nodes import lost_nodes
from fabricproof.rfm.staging import (
    KEPT_FILES,
    copy_scripts,
    digest_of_program,
    in_container,
    launch_command,
    leg_limit_seconds,
    with_baseline,
)
from fabricproof.site import PartitionSpec
from fabricproof.stacks.environment import shell_word
from fabricproof.stacks.launch import Layout, turned_command
from fabricproof.stacks.stack import ResolvedStack, resolve

ask_nodes_once()


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

    #: the MPI is told its path; False where there is none or nobody tells it
    tells_the_path: bool = True

    #: the MPI's own launcher starts the ranks, where the partition's could not do what is asked
    own_launcher: bool = False

    #: module that the job asks, again and again, which leg to run next
    asks_next: str = "fabricproof.job.second_look"

    legs: tuple[Leg, ...] = ()
    relations: tuple[Relation, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    job_end: JobEnd | None = None
    job_says: SchedulerSays = SchedulerSays()
    stack_identity: StackIdentity | None = None

    #: identity of the stack with the package of each suite that the legs take their program from
    suite_identities: Mapping[str, StackIdentity] = MappingProxyType({})

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        """Return what ReFrame puts into each log line, less the deprecated name of ``env_vars``.

        Each read of that name walks the whole stack for a warning that nobody sees: two thirds of a
        dry run's time (ReFrame 4.10.4, ``user_deprecation_warning``).
        """
        found = type(rfm.RunOnlyRegressionTest).loggable_attrs(cls)
        return [each for each in found if each[0] != "variables"]

    def plan(self, planner: LegPlanner) -> Plan:
        """Return what this check measures: legs and relations, or the reason for none.

        Args:
            planner: for the check's own suite and program; ``planner.of`` gives others.
        """
        raise NotImplementedError(f"{type(self).__name__} plans nothing")

    def why_not(self) -> str:
        """Return why this fabric has nothing for the check; empty where it has."""
        return ""

    @run_after("init")
    def choose_where(self) -> None:
        """Bind the check to the partitions that have its fabric; name its tags."""
        if not hasattr(self, "env_vars"):  # ReFrame's --setvar may have set it
            self.env_vars = {}
        self.run_id = run_id()
        if self.fabric == NO_SITE:
            self.tags = {*self.family_tags, *TAGGED_TECHNOLOGIES}
            self.valid_systems = self.valid_prog_environs = ["*"]
            return
        self.valid_prog_environs = self.environs()
        if self.fabric.startswith("no-"):
            self.tags = {*self.family_tags, self.fabric.removeprefix("no-")}
            self.valid_systems = ["*"]
            return
        spec = current_site().fabric_spec(self.fabric)
        self.tags = {*self.family_tags, technology(spec)}
        if is_roce(spec):
            self.tags |= {"roce"}
        self.valid_systems = [f"+fabric-{self.fabric}"]

    def environs(self) -> list[str]:
        """Return the stacks with which the check runs, as ReFrame selects environments."""
        return ["+mpi"]

    def depends_on(self, target: str, how: object = None, *args: object) -> None:
        """Depend on a fixture, unless there is nothing to measure: that needs no stack built."""
        if not self.fabric.startswith("no-"):
            super().depends_on(target, how, *args)

    @run_before("setup")
    def skip_what_this_site_does_not_have(self) -> None:
        """Skip, with a reason, a technology that this site does not have; fail without a site."""
        if error := why_no_site():
            raise error
        if self.fabric.startswith("no-"):
            self._skip(f"this site has no {self.fabric.removeprefix('no-')} fabric")

    @run_after("setup")
    def skip_what_is_not_there(self) -> None:
        """Skip, with a reason, what the fabric does not have or this stack was not given."""
        if reason := self.why_not():
            self._skip(reason)
        self.suite = self.choose_suite()
        self._identify()

    def resolved(self) -> ResolvedStack:
        """Return the stack on the partition, as it stands now."""
        site = current_site()
        return resolve(
            site,
            site.partition(self.current_partition.name),
            site.stack(self.current_environ.name),
            assumed=self.is_dry_run(),
        )

    def choose_suite(self) -> str:
        """Return the suite that has the program; skip, with a reason, where there is none."""
        suite, reason = choose_suite(self.resolved(), self.suite, self.program)
        if suite is None:
            self._skip(reason)
        return str(suite)

    def _identify(self) -> None:
        """Take down what the stack is; it must be the same when the legs have been run."""
        stack = self.resolved()
        self.stack_identity = stack.identity(self.suite)
        self.stack_version = f"{stack.family} {stack.version}"
        self.stack_digest = self.stack_identity.short
        for name in ("mpi", "program", "compiler", "target"):
            # A bar ends a column of the perflog.
            setattr(self, f"stack_{name}", getattr(self.stack_identity, name).replace("|", "/"))
        if stack.kind == "spack":
            self.modules = [shell_word(each) for each in stack.modules]
            self.env_vars.update(stack.exported)

    def _identities(self) -> Mapping[str, StackIdentity]:
        """Return what the stack is now, for every suite of the legs and relations."""
        stack = self.resolved()
        suites = {self.suite, *(leg.suite for leg in self.legs)}
        suites |= {relation.suite for relation in self.relations}
        return {suite: stack.identity(suite) for suite in sorted(suites)}

    def _skip(self, reason: str) -> None:
        self.skip_reason = reason
        self.skip(reason)

    def _create_job(self, *args: object, **options: object) -> Job:
        """Return a job that starts a script: the script starts the ranks, and ReFrame nothing.

        ReFrame's object for srun would run "srun --version" for each test case, and without a
        slurm.conf that answers after a minute.
        """
        partition = self.current_partition
        launcher, partition._launcher_type = partition._launcher_type, getlauncher("local")
        try:
            return super()._create_job(*args, **options)
        finally:
            partition._launcher_type = launcher

    @run_after("setup")
    def plan_legs(self) -> None:
        """Write ``plan.json``, ``legs.sh`` and ``rank.sh`` into the stage folder."""
        site = current_site()
        partition = site.partition(self.current_partition.name)
        planner = self._planner()
        plan = planner.told(self.plan) if self.tells_the_path else self.plan(planner)
        if not plan.legs:
            self._skip(plan.reason)
        self.num_tasks = plan.num_nodes * plan.ranks_per_node
        self.num_tasks_per_node = plan.ranks_per_node
        told = self._as_planned(partition)
        if os.environ.get(PLANS_VARIABLE):
            legs = [self._with_launch(leg, plan) for leg in plan.legs]
            names = [leg.name for leg in legs if not leg.in_turn]
            self._tell(JobEvent.PLANNED, **told, num_nodes=plan.num_nodes, legs=names)
            self._skip("planned, and nothing more was asked for")
        self._write_plan(plan)
        self.time_limit = f"{self.job_minutes(partition)}m"
        self.max_pending_time = f"{partition.queue_minutes}m"
        self.executable = "bash"
        self.executable_opts = [SCRIPT_FILE]
        if RECORD_END not in self.current_partition.prepare_cmds:
            self.prerun_cmds = [RECORD_END]
        self.postrun_cmds = [REACHED_END]
        self._tell(JobEvent.PLANNED, **told)

    def _as_planned(self, partition: PartitionSpec) -> Mapping[str, object]:
        """Return what is told of a job before it is submitted."""
        return {
            "name": type(self).__name__,
            "hashcode": self.hashcode,
            "fabric": self.fabric,
            "program": self.program,
            "tags": sorted(self.tags),
            "time_limit": 60 * self.job_minutes(partition),
            "stagedir": self.stagedir,
        }

    def _tell(self, event: JobEvent, **facts: object) -> None:
        """Tell whoever shows how far the run is what became of this job."""
        identity = {
            "unique_name": self.unique_name,
            "partition": self.current_partition.name,
            "environ": self.current_environ.name,
        }
        tell(event, {**identity, **facts})

    def _write_plan(self, plan: Plan) -> None:
        folder = Path(self.stagedir)
        # With --dont-restage an old attempt lies here still, and might clear a new one.
        shutil.rmtree(folder / "legs", ignore_errors=True)
        (folder / JOB_END_FILE).unlink(missing_ok=True)
        spec = current_site().fabric_spec(self.fabric)
        self.legs = with_error_limits((self._with_launch(leg, plan) for leg in plan.legs), spec)
        self.relations = plan.relations
        self.suite_identities = self._identities()
        builds = {suite: each.short for suite, each in self.suite_identities.items()}
        self.legs = with_baseline(self.legs, folder, current_site(), self._place(), builds)
        write_plan(folder, self.legs, self.relations)
        copy_scripts(folder)
        self.keep_files = list(KEPT_FILES)

    def _place(self) -> LegPlace:
        """Return what all legs have in common, for the baseline."""
        return LegPlace(
            partition=self.current_partition.name,
            fabric=self.fabric,
            stack=self.current_environ.name,
            check=type(self).__name__,
            **dict.fromkeys(("build", "suite", "program", "tool_version", "leg"), ""),
            **dict.fromkeys(("rails", "nodes", "settings"), ""),
        )

    def _with_launch(self, leg: Leg, plan: Plan) -> Leg:
        """Return ``leg`` with its own launcher line where its layout is not the whole job's."""
        leg = in_container(leg, current_site().stack(self.current_environ.name))
        if leg.backward and leg.suite not in PEER_SUITES:
            planner = self._planner()
            turned = turned_command(planner.stack.family, planner.launcher, self._launch())
            return replace(leg, launch=turned)
        layout = Layout(num_nodes=leg.num_nodes, ranks_per_node=leg.ranks_per_node, nodes=leg.nodes)
        if leg.launch or layout == Layout(
            num_nodes=plan.num_nodes, ranks_per_node=plan.ranks_per_node
        ):
            return leg
        return replace(leg, launch=tuple(self._launch(layout)))

    def _launch(self, layout: Layout | None = None) -> list[str]:
        """Return the launcher's command for ``layout``, or for all ranks of the job."""
        planner = self._planner()
        # ReFrame tells the job only later; mpirun and mpiexec write the number on their line.
        self.job.num_tasks = layout.num_ranks if layout else self.num_tasks
        self.job.num_tasks_per_node = layout.ranks_per_node if layout else self.num_tasks_per_node
        return launch_command(self.job, planner.stack, planner.launcher, layout)

    def _partition(self) -> PartitionSpec:
        """Return the partition as this job gets it, with ReFrame's -J behind its access."""
        spec = current_site().partition(self.current_partition.name)
        if not spec.uses_slurm or not self.job.cli_options:
            return spec
        return spec.model_copy(update={"access": [*spec.access, *self.job.cli_options]})

    def _planner(self) -> LegPlanner:
        site = current_site()
        assert self.stack_identity is not None, "taken before the legs are planned"
        return LegPlanner(
            site=site,
            partition=self._partition(),
            stack=self.resolved(),
            fabric=self.fabric,
            suite=self.suite,
            program=self.program,
            stack_digest=self.stack_identity.digest,
            own_launcher=self.own_launcher,
        )

    @run_before("run")
    def write_script(self) -> None:
        """Put the launcher inside the script: one launch for each leg, not one for the job."""
        partition = current_site().partition(self.current_partition.name)
        python = shell_word(partition.python or sys.executable)
        script = render_script(
            self.legs,
            launch=" ".join(self._launch()),
            judge=f'{python} -E -m {self.asks_next} "$here"',
            leg_seconds_limit=leg_limit_seconds(partition),
            look_seconds=partition.look_seconds if self.looks(partition) else None,
            job_seconds=60 * self.job_minutes(partition),
        )
        (Path(self.stagedir) / SCRIPT_FILE).write_text(script, encoding="utf-8")
        if partition.uses_slurm:
            # After a node's death Slurm would run the job again, behind the verdict's back.
            self.job.options.append("--no-requeue")
            pinned = Plan(legs=self.legs).nodes or asked_nodes()
            self.job.options += [f"--nodelist={','.join(pinned)}"] if pinned else []
        # What runs after ReFrame's "run" runs when the job is over.
        self._tell(JobEvent.SUBMITTED)

    @run_before("sanity")
    def judge_and_keep(self) -> None:
        """Judge every leg and keep the records before anything can fail this check."""
        if self.is_dry_run():
            return
        folder = Path(self.stagedir)
        partition = current_site().partition(self.current_partition.name)
        self.job_end, doubt, self.job_says = settle(self.job, folder, partition.scheduler)
        perflogs = perflog_root() / current_site().name
        facts = JobFacts(
            spec=current_site().fabric_spec(self.fabric),
            identity=self._job_identity(),
            builds=self._stack_identities(),
            end=self.job_end,
            doubt=doubt,
            declined=self._planner().declined,
            binary=digest_of_program,
            inventory=perflogs / FOLDER if self.looks(partition) else None,
        )
        done = judge_job(folder, Plan(legs=self.legs, relations=self.relations), facts, self.rows)
        self.outcomes = done.outcomes
        if all(each.report.verdict is Verdict.SKIPPED for each in self.outcomes):
            self._skip(self.outcomes[0].report.quantities[0].reason)
        self.environment_digest = done.environment_digest
        path = perflogs / self.current_partition.name / "records.jsonl"
        append_records(path, done.records)
        told = [[e["leg"], e["verdict"], "; ".join(e["reasons"][:1])] for e in done.leg_records]
        nodes = sorted({node for each in done.records for node in each.get("nodes", ())})
        self._tell(JobEvent.JUDGED, legs=told, nodes=nodes)
        # After what was measured is safe: what a check makes of it may go wrong.
        own = {**facts.builds[self.suite], **done.identity}
        append_records(path, [{**own, **each} for each in self.more_records()])

    #: what counts of the legs, if not they and the relations
    rows: Callable[[Sequence[Outcome]], Sequence[Outcome]] | None = None

    def job_minutes(self, partition: PartitionSpec) -> int:
        """Return what the job may take."""
        return partition.job_minutes

    def looks(self, partition: PartitionSpec) -> bool:
        """Tell whether the nodes are asked what they are made of; preflight always does."""
        return partition.look_each_job

    def more_records(self) -> Sequence[Mapping[str, object]]:
        """Return what a check keeps beside the records of its legs and relations, of own kinds."""
        return ()

    def _stack_identities(self) -> Mapping[str, Mapping[str, object]]:
        """Return what records say of the stack, by suite: before the legs, and after if unlike."""
        now = self._identities()
        return {
            suite: {
                IDENTITY_KEY: before.record(),
                **({} if now[suite] == before else {AFTERWARDS_KEY: now[suite].record()}),
            }
            for suite, before in self.suite_identities.items()
        }

    def _job_identity(self) -> Mapping[str, object]:
        state = self.job_says.state or "None"
        lost = lost_nodes(self.job_says.nodes) if "NODE_FAIL" in state else ()
        return {
            **({"lost_nodes": list(lost)} if lost else {}),
            "run_id": self.run_id,
            "check": type(self).__name__,
            "unique_name": self.unique_name,
            "site": current_site().name,
            "partition": self.current_partition.name,
            "stack": self.current_environ.name,
            "stack_version": self.stack_version,
            "fabric": self.fabric,
            "link": link_name(current_site().fabric_spec(self.fabric)),
            "job_id": str(self.job.jobid),
            "job_state": state,
            "stage_folder": self.stagedir,
            "completed": self.job.completion_time,
            "job_end": None if self.job_end is None else asdict(self.job_end),
        }

    @sanity_function
    @deferrable
    def every_leg_left_a_table(self) -> bool:
        """Fail where a leg left no readable table: nothing was measured there."""
        for outcome in self.outcomes:
            for judgement in outcome.report.quantities:
                if judgement.verdict is Verdict.MISSING:
                    sn.evaluate(
                        sn.assert_true(
                            False,
                            msg=f"MISSING {outcome.leg.name} {judgement.name}: {judgement.reason}",
                        )
                    )
        return bool(sn.evaluate(sn.assert_true(self.outcomes, msg="MISSING: no leg was judged")))

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
    #: its name in version 1: in a site's own check it must not be passed over
    roads = variable(alias=net_paths)

    #: its program sends one way: each rail is measured the other way as well
    one_way = variable(bool, value=False)

    def why_not(self) -> str:
        """Tell where several rails are asked for and there is one."""
        return why_one_rail(self.fabric) if self.net_paths == "all" else ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each path; like rails are held against each other."""
        plan = with_twins(planner, planner.plan(self.net_paths))
        if not plan.legs or not self.one_way:
            return plan
        return replace(plan, legs=(*plan.legs, *planner.backwards()))
