"""The checks of all nodes: rounds of pairs over every path in one job, and whose fault red is."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reframe.core.builtins import run_after, variable

from fabricproof.core.errors import FabricproofError
from fabricproof.job.evidence.leg_folder import last_words
from fabricproof.job.leg import Leg, Plan
from fabricproof.job.links import judge_looks, read_looks
from fabricproof.job.outcome import Outcome
from fabricproof.job.script import INVENTORY_FOLDER, SECOND_LOOK_ERRORS
from fabricproof.nodes.preflight import Preflight
from fabricproof.pairs.campaign.ledger import save
from fabricproof.pairs.campaign.verdict import Outcome as CampaignOutcome
from fabricproof.pairs.campaign.verdict import pictures_of
from fabricproof.pairs.check.admission import Admission
from fabricproof.pairs.check.in_job import FOLDER, judged, seen_again
from fabricproof.pairs.check.rows import lost_row, refused_row, rows_of
from fabricproof.rfm.checks.preflight import OnceBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.campaign import Extent, PlannedCampaign, plan_campaign
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.staging import active
from fabricproof.site import PartitionSpec
from fabricproof.stacks.launch import Layout, layout_options, turned_command

__all__ = ["AdmissionBenchmark", "AllPairsBenchmark", "Extent"]


class AllPairsBenchmark(OnceBenchmark):
    """All usable nodes of a partition, each measured with others over each rail and over all.

    One job: the kernel's rounds, more where something is low, and ``osu_bw`` on the pair that
    shows best what is red.
    """

    suite = "osu"
    program = "osu_bw"
    asks_next = "fabricproof.pairs.check.in_job"

    extent: Extent = Extent.ROUND
    to_admit: tuple[str, ...] = ()
    planned: PlannedCampaign | None = None
    came_to: CampaignOutcome | None = None

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg on all nodes, and those that look at what is red."""
        self.planned = plan_campaign(
            planner, self.extent, dry_run=self.is_dry_run(), admitted=self.to_admit
        )
        return self.planned.plan

    def job_minutes(self, partition: PartitionSpec) -> int:
        """Return what all rounds may take."""
        return self.planned.minutes if self.planned else partition.job_minutes

    def _write_plan(self, plan: Plan) -> None:
        super()._write_plan(plan)
        folder = Path(self.stagedir) / FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        assert self.planned is not None
        assert self.planned.campaign is not None, "there are no legs without one"
        save(folder, replace(self.planned.campaign, id=str(folder)))
        self.keep_files = [*self.keep_files, FOLDER]

    def _with_launch(self, leg: Leg, plan: Plan) -> Leg:
        """Return a leg that looks at two nodes, in the order that the job writes down."""
        if not leg.backward:
            return super()._with_launch(leg, plan)
        planner = self._planner()
        num_tasks, self.num_tasks = self.num_tasks, Layout().num_ranks
        command = self._launch()
        self.num_tasks = num_tasks
        if planner.launcher == "srun":
            command += layout_options(planner.stack.family, planner.launcher, Layout())
        turned = turned_command(planner.stack.family, planner.launcher, command)
        return replace(leg, launch=turned)

    def rows(self, of_legs: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """Return a row for each path of the campaign, and the looks at what was red."""
        looked = [each for each in of_legs if each.leg.in_turn]
        assert self.planned is not None
        assert self.planned.campaign is not None, "a job without a campaign was skipped"
        try:
            self.came_to, looks = judged(current_site(), Path(self.stagedir), looked)
        except FabricproofError as error:
            rows: Sequence[Outcome] = [lost_row(self.planned.campaign, str(error))]
        else:
            said = last_words(Path(self.stagedir) / SECOND_LOOK_ERRORS)
            rows = (*rows_of(self.came_to, looks, said), *seen_again(looked, looks))
            rows = (*rows, *self.more_rows(self.came_to, of_legs))
        refused = [refused_row(rails, why) for rails, why in self.planned.refused.items()]
        return (*rows, *refused)

    def more_rows(self, came_to: CampaignOutcome, of_legs: Sequence[Outcome]) -> Sequence[Outcome]:  # noqa: ARG002
        """Return what else is judged of a campaign."""
        return ()

    def more_records(self) -> Sequence[Mapping[str, object]]:
        """Keep the matrices, for the report."""
        return [each.record() for each in pictures_of(self.came_to)] if self.came_to else []


class AdmissionBenchmark(AllPairsBenchmark):
    """Nodes that are new or repaired, each with partners known good, and a row for each of them.

    Only ``fabricproof admit`` starts it: without nodes to admit it has nothing to run on.
    """

    extent = Extent.ADMISSION

    #: nodes that are to be admitted, with commas; ``fabricproof admit`` sets it
    admitted = variable(str, value="")

    @run_after("init")
    def run_for_somebody(self) -> None:
        """Be no test of any partition where no node is to be admitted."""
        self.to_admit = tuple(filter(None, self.admitted.split(",")))
        if not self.to_admit:
            self.valid_systems = []

    def looks(self, partition: PartitionSpec) -> bool:  # noqa: ARG002
        """Tell that the nodes are asked what they are made of: that is judged, too."""
        return True

    def more_rows(self, came_to: CampaignOutcome, of_legs: Sequence[Outcome]) -> Sequence[Outcome]:
        """Return a row for each node and path, with what preflight says of it."""
        spec = current_site().fabric_spec(self.fabric)
        folder = Path(self.stagedir) / INVENTORY_FOLDER
        looks = read_looks(folder, of_legs, came_to.campaign.nodes)

        def links_of(nodes: Sequence[str]) -> Preflight:
            there = {node: seen for node, seen in looks.machines.items() if node in nodes}
            return judge_looks(spec, replace(looks, machines=there))

        admission = Admission(
            outcome=came_to,
            admitted=self.to_admit,
            links_of=links_of,
            machines=looks.machines,
            mtu=spec.full_packet_bytes,
            baseline=active(current_site()),
            job_said=last_words(Path(self.stagedir) / SECOND_LOOK_ERRORS),
        )
        return tuple(admission.rows())
