"""The checks of all nodes: rounds of pairs over every path in one job, and whose fault red is."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from reframe.core.builtins import run_after, variable

from fabricproof.core.errors import FabricproofError, UnavailableError
from fabricproof.core.units import counted
from fabricproof.job.evidence.leg_folder import last_words
from fabricproof.job.leg import Leg, Plan
from fabricproof.job.links import judge_looks, read_looks
from fabricproof.job.outcome import Outcome
from fabricproof.job.script import INVENTORY_FOLDER, SECOND_LOOK_ERRORS
from fabricproof.nodes.preflight import Preflight
from fabricproof.pairs import FIRST_ROUNDS
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.nodes import (
    Standing,
    admit_command,
    ask_leaves,
    ask_others,
    ask_standing,
    left_out_by_site,
    with_nodes,
)
from fabricproof.pairs.campaign.plan import (
    Campaign,
    blank_campaign,
    load,
    save,
    seconds_of_all,
    seconds_over_paths,
    with_rounds,
)
from fabricproof.pairs.campaign.record import left_over, measured
from fabricproof.pairs.campaign.verdict import Outcome as CampaignOutcome
from fabricproof.pairs.campaign.verdict import pictures_of
from fabricproof.pairs.check.admission import Admission
from fabricproof.pairs.check.in_job import (
    FOLDER,
    PART_OF_LEG,
    PROGRAMS,
    LegRole,
    judged,
    leg_name,
    seen_again,
)
from fabricproof.pairs.check.partners import plan_admission
from fabricproof.pairs.check.rows import PROGRAM, SUITE, lost_row, refused_row, rows_of
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.checks.preflight import OnceBenchmark
from fabricproof.rfm.current import asked_nodes, current_site
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.staging import active, launch_command
from fabricproof.site import PartitionSpec
from fabricproof.stacks.launch import Layout, turned_command

#: launches beside the planned ones that a job has time for: suspects, second looks
_MORE_LAUNCHES = 12

#: modules, compiler, start of the ranks: at most, and as a rule; s
_START_SECONDS = 10


class Extent(StrEnum):
    """How many rounds of a campaign are planned."""

    ROUND = "first round"
    LADDER = "ladder"
    FULL = "full matrix"
    ADMISSION = "nodes with partners"


def standing_nodes(planner: LegPlanner) -> Standing:
    """Return which nodes are measured: all that are free, or that jobs of this user have.

    What other users have may take days: it is named, and not waited for.

    Raises:
        UnavailableError: Slurm does not answer, and this is no dry run.
    """
    site, partition, only = planner.site, planner.partition, asked_nodes()
    try:
        found = ask_standing(partition, os.environ)
        others = ask_others(os.environ)
    except FabricproofError:
        if not planner.dry_run:
            raise
        named = tuple(f"node{number}" for number in range(1, partition.num_nodes + 1))
        return Standing(free=named, busy=(), out={})
    free, out = [*found.free], dict(found.out)
    for node in found.busy:
        if node in others:
            later = admit_command(site, partition, node)
            out[node] = f"busy with another user's job (later: {later})"
        else:
            free.append(node)
    if only:
        free = [node for node in free if node in only]
        unknown = f"no node of partition {partition.name}"
        out = {node: out.get(node, unknown) for node in only if node not in free}
    return Standing(free=tuple(free), busy=(), out=out)


def plan_rounds(
    planner: LegPlanner,
    extent: Extent,
    net_paths: tuple[tuple[str, ...], ...],
    admitted: Sequence[str] = (),
) -> Campaign:
    """Return the campaign over all usable nodes of the planner's partition, over every path.

    ``admitted``: nodes that are measured with all others.

    Raises:
        UnavailableError: Slurm does not answer, or fewer than two nodes can be had now and there
            would be more, were all to be had: what is due is missing then.
    """
    site, partition = planner.site, planner.partition
    name = f"{planner.stack.name}-{planner.fabric}"
    blank = replace(
        blank_campaign(site, partition, planner.fabric, planner.stack.name, name=name),
        net_paths=net_paths,
        seconds=partition.leg_seconds / PART_OF_LEG,
        is_full=extent in {Extent.FULL, Extent.ADMISSION},
    )
    blank = with_nodes(blank, standing_nodes(planner), left_out_by_site(partition))
    blank = replace(blank, leaf_of=ask_leaves(blank.nodes, os.environ))
    if len(blank.nodes) < 2:
        if blank.out:
            had = f"{counted(len(blank.nodes), 'node')} of {partition.name} can be had"
            out = "; ".join(f"{node} is {state}" for node, state in blank.out.items())
            problem = f"no pair of nodes can be measured: {had}"
            raise UnavailableError(problem, expected="two nodes", got=out)
        return blank
    if extent is Extent.ADMISSION:
        return plan_admission(site, blank, admitted)
    return with_rounds(site, blank, first_rounds=1 if extent is Extent.ROUND else FIRST_ROUNDS)


def _looks(planner: LegPlanner, campaign: Campaign) -> tuple[Leg, ...]:
    """Return legs over each path that look at a red pair and at a good one, whichever they be."""
    found: list[Leg] = []
    for quantity, (program, _) in PROGRAMS.items():
        own, _ = planner.of("osu", program) if quantity is not Quantity.BANDWIDTH else (planner, "")
        if own is None or (quantity is Quantity.BOTH_WAYS and not campaign.both_ways):
            continue
        for rails in campaign.net_paths:
            sizes = own.leg(rails).expected_sizes
            leg = own.leg(rails, sizes=sizes[:1] if quantity is Quantity.LATENCY else sizes[-1:])
            names = (leg_name("+".join(rails), role, quantity) for role in LegRole)
            found += [replace(leg, name=name, in_turn=True, backward=True) for name in names]
    return tuple(found)


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
    campaign: Campaign
    minutes: int = 0
    refused: Mapping[tuple[str, ...], str] = MappingProxyType({})
    came_to: CampaignOutcome | None = None

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where Slurm gives no nodes, and where the site leaves pairs out."""
        partition = planner.partition
        if reason := super().why_not(planner):
            return reason
        if not partition.uses_slurm:
            return f"all pairs are of nodes that Slurm gives, and {partition.name} has none"
        return f"left out by the site: {partition.no_pairs}" if partition.no_pairs else ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg on all nodes, and those that look at what is red."""
        partition = planner.partition
        paths = [*((rail,) for rail in planner.rails), planner.rails]
        refusals = {rails: planner.refusal(rails) or "" for rails in dict.fromkeys(paths)}
        net_paths = tuple(rails for rails, why in refusals.items() if not why)
        if not net_paths:
            return Plan(reason=next(iter(refusals.values())))
        campaign = plan_rounds(planner, self.extent, net_paths, self.to_admit)
        if len(campaign.nodes) < 2:
            had = f"{counted(len(campaign.nodes), 'node')} of {partition.name} can be had"
            return Plan(reason=f"no pair can be made: {had}")
        self.refused = {rails: why for rails, why in refusals.items() if why}
        return self.with_legs(planner, campaign, campaign.nodes)

    def with_legs(
        self, planner: LegPlanner, campaign: Campaign, nodes: tuple[str, ...], *, looks: bool = True
    ) -> Plan:
        """Return the legs of a campaign's job on ``nodes``; note what the job may take."""
        seconds = 2 * seconds_of_all(planner.site, campaign)
        longest = max(seconds_over_paths(planner.site, campaign))
        seconds += len(campaign.net_paths) * _START_SECONDS
        seconds += _MORE_LAUNCHES * (longest + _START_SECONDS)
        self.campaign, self.minutes = campaign, math.ceil(seconds / 60)
        there = planner.idle_leg("there", SUITE, PROGRAM, len(nodes))
        there = replace(there, nodes=nodes)
        return Plan(legs=(there, *(_looks(planner, campaign) if looks else ())))

    def job_minutes(self, partition: PartitionSpec) -> int:
        """Return what all rounds may take."""
        return max(partition.job_minutes, self.minutes)

    def write_legs(self, plan: Plan) -> None:
        """Write the campaign beside the plan."""
        super().write_legs(plan)
        self.lay_campaign(Path(self.stagedir) / FOLDER)

    def lay_campaign(self, folder: Path) -> None:
        """Write the campaign into ``folder``, which is kept."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        save(folder, replace(self.campaign, id=str(folder)))
        self.keep_files = [*self.keep_files, FOLDER]

    def launched(self, leg: Leg, plan: Plan) -> Leg:
        """Return a leg that looks at two nodes, in the order that the job writes down."""
        if not leg.backward:
            return super().launched(leg, plan)
        stack, launcher = self.planner.stack, self.planner.launcher
        command = launch_command(stack, launcher, Layout(), is_whole=launcher != "srun")
        return replace(leg, launch=turned_command(stack.family, launcher, command))

    def rows(self, of_legs: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """Return a row for each path of the campaign, and the looks at what was red."""
        looked = [each for each in of_legs if each.leg.in_turn]
        try:
            self.came_to, looks = judged(current_site(), Path(self.stagedir), looked)
        except FabricproofError as error:
            rows: Sequence[Outcome] = [lost_row(self.campaign, str(error))]
        else:
            said = last_words(Path(self.stagedir) / SECOND_LOOK_ERRORS)
            rows = (*rows_of(self.came_to, looks, said), *seen_again(looked, looks))
            rows = (*rows, *self.more_rows(self.came_to, of_legs))
        refused = [refused_row(rails, why) for rails, why in self.refused.items()]
        return (*rows, *refused)

    def more_rows(self, came_to: CampaignOutcome, of_legs: Sequence[Outcome]) -> Sequence[Outcome]:  # noqa: ARG002
        """Return what else is judged of a campaign."""
        return ()

    def more_records(self) -> Sequence[Mapping[str, object]]:
        """Keep the matrices, for the report."""
        return [each.record() for each in pictures_of(self.came_to)] if self.came_to else []


class CampaignBenchmark(AllPairsBenchmark):
    """A campaign of ``fabricproof pairs run``, or what is left of it.

    Only that command starts it: without the campaign's folder it has nothing to run on.
    """

    #: folder of the campaign; ``fabricproof pairs run`` sets it
    campaign_folder = variable(str, value="")

    #: whether a stock program looks at what is red
    confirms = variable(bool, value=True)

    @run_after("init")
    def run_for_somebody(self) -> None:
        """Be no test of any partition where there is no campaign."""
        if not self.campaign_folder:
            self.valid_systems = []

    def environs(self) -> list[str]:
        """Return all stacks: the campaign has one of them, and ``-p`` names it."""
        return FabricBenchmark.environs(self)

    def why_not(self, planner: LegPlanner) -> str:  # noqa: ARG002
        """Tell that its fabric is measured: ``-n`` names it."""
        return ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the legs that measure what is left, on those of its nodes that were asked for."""
        place = Path(self.campaign_folder)
        campaign = load(place)
        left = left_over(campaign, measured(place, campaign))
        rounds = (replace(each, net_paths=(at,)) for at, own in left.items() for each in own)
        due = replace(campaign, rounds=tuple(rounds))
        nodes = tuple(node for node in campaign.nodes if node in asked_nodes())
        return self.with_legs(planner, due, nodes, looks=self.confirms)

    def lay_campaign(self, folder: Path) -> None:
        """Link the campaign, which stays where it is, below the job's folder."""
        folder.unlink(missing_ok=True)
        folder.symlink_to(Path(self.campaign_folder).resolve())


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
