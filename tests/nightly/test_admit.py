"""``fabricproof admit``: partners are chosen and replaced, and a verdict comes with its lines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from nights import leg, session

from fabricproof.cli.measure import admit as command
from fabricproof.core import project
from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.core.measure import Verdict
from fabricproof.history.store import labels
from fabricproof.job.evidence.error_rates import UNCOUNTED
from fabricproof.job.run import OF_REFRAME, LegResult, RunResult
from fabricproof.nightly.admission import AdmissionMeans, admit, plan, planned
from fabricproof.pairs.campaign.nodes import Standing, standing_of
from fabricproof.pairs.check.partners import ALL_ALIKE
from fabricproof.site import load_site

LEAVES = {f"vc{number}": f"leaf{(number + 1) // 2}" for number in range(1, 13)}
FREE = dict.fromkeys(LEAVES, "idle")


class World:
    """Slurm and ReFrame: ``verdicts`` says of each run what a node's or partner's rows are."""

    def __init__(self, states: Mapping[str, str] = FREE) -> None:
        self.states = states
        self.verdicts: Mapping[str, str] = {}
        self.in_run: dict[int, Mapping[str, str]] = {}  # verdicts of one run alone
        self.counted: frozenset[str] = frozenset()  # nodes whose verdict is of what they lost
        self.after: list[Mapping[str, str]] = []  # states after the first run, one at each look
        self.whole = True
        self.runs: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.rows: Sequence[str] = ("rail0", "rail1", "rail0+rail1")
        self.refused = ""
        self.without = ""
        self.doubt: tuple[LegResult, ...] = ()

    def run(self, arguments: Sequence[str], nodes: tuple[str, ...]) -> RunResult:
        self.runs.append((tuple(arguments), nodes))
        admitted = next(each for each in arguments if "admitted=" in each).partition("=")[2]
        legs = [self._row(node, path, admitted) for node in nodes for path in self.rows]
        legs += self.doubt
        if self.refused:
            legs.append(leg("SKIPPED", nodes=(), name=self.refused, check="AllPairsAdmission"))
        made = session(*legs, run_id=f"r{len(self.runs)}")
        return made if self.whole else replace(made, stopped="interrupted", status=130)

    def _states(self) -> Mapping[str, str]:
        return self.after.pop(0) if self.runs and self.after else self.states

    def _row(self, node: str, path: str, admitted: str) -> LegResult:
        kind = "admit" if node in admitted.split(",") else "partner"
        verdicts = self.in_run.get(len(self.runs), self.verdicts)
        verdict = verdicts.get(node, "PASS") if path == "rail1" else "PASS"
        row = leg(verdict, nodes=(node,), name=f"{kind}.{node}.{path}", check="AllPairsAdmission")
        if node in self.counted:
            (quantity,) = row.quantities
            row = replace(row, quantities=(replace(quantity, name=UNCOUNTED),))
        return row

    def means(self, **more: Any) -> AdmissionMeans:
        site = load_site("vcluster")
        idle = {"maint": "idle", "resv": "idle"} if more.get("reservation") else {}
        partition = site.partition("compute").model_copy(update={"pairs_without": self.without})
        return AdmissionMeans(
            site=site, partition=partition, run=self.run,
            standing=lambda: standing_of(
                {node: idle.get(state, state) for node, state in self._states().items()}
            ),
            leaf_of=lambda nodes: {node: LEAVES[node] for node in nodes},
            say=lambda text: None,
            drain=lambda node, run_id, reason: f"drain {node} {run_id}: {reason}", **more,
        )  # fmt: skip


def test_a_node_is_measured_with_partners_on_other_leaves_and_gets_its_line() -> None:
    world = World()
    found = admit(["vc1"], world.means())
    ((arguments, nodes),) = world.runs
    assert nodes == ("vc1", "vc3", "vc5", "vc7", "vc2")
    assert "AllPairsAdmission.admitted=vc1" in arguments
    assert found.verdict is Verdict.PASS
    assert found.nodes[0].lines[0].startswith("# scontrol update NodeName=vc1 State=RESUME")


def test_a_reservation_is_told_to_slurm_and_released_on_pass() -> None:
    world = World({**FREE, "vc1": "maint"})
    found = admit(["vc1"], world.means(reservation="repair"))
    assert "scontrol delete ReservationName=repair" in found.nodes[0].lines[0]


@pytest.mark.parametrize("verdict", ["UNJUDGED", "MISSING", "FAIL"])
def test_a_reservation_is_not_deleted_while_one_of_its_nodes_is_not_pass(verdict: str) -> None:
    """The line stood under the node that was PASS, and gave users the other one too."""
    world = World({**FREE, "vc1": "maint", "vc2": "maint"})
    world.verdicts = {"vc2": verdict}
    good, other = admit(["vc1", "vc2"], world.means(reservation="repair")).nodes
    assert good.lines == ("# scontrol update ReservationName=repair Nodes-=vc1",)
    drain = "# drain vc2 r1: rail1: half of it  # before reservation repair ends"
    again = "fabricproof admit vc2 --site vcluster --reservation repair"
    assert other.lines == ((drain,) if verdict == "FAIL" else (drain, again))


@pytest.mark.parametrize(
    ("state", "said", "line"),
    [
        ("drain", "gives a drained node no job", "scontrol create reservation"),
        ("drng", "gives a drained node no job", "scontrol create reservation"),
        ("maint", "a reservation has it", "--reservation NAME"),
        ("down*", "must run slurmd", "fabricproof admit vc1"),
        ("alloc", "runs jobs", "fabricproof admit vc1"),
    ],
)
def test_a_node_that_gets_no_job_is_missing_with_what_to_do(
    state: str, said: str, line: str
) -> None:
    world = World({**FREE, "vc1": state})
    found = admit(["vc1"], world.means())
    assert not world.runs
    assert found.verdict is Verdict.MISSING
    assert said in found.nodes[0].reasons[0]
    assert line in found.nodes[0].lines[0]
    assert all(
        each.startswith(("# scontrol", "fabricproof admit")) for each in found.nodes[0].lines
    )
    assert said in plan(["vc1"], world.means())[0]


def test_the_command_to_copy_names_the_site_and_a_partition_that_is_not_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World({**FREE, "vc1": "down*"})
    means = world.means()
    other = means.partition.model_copy(update={"name": "gpu nodes"})
    monkeypatch.setattr(project, "_SITE_WORDS", {means.site.name: "/other/site"})
    (node,) = admit(["vc1"], replace(means, partition=other)).nodes
    assert node.lines == ("fabricproof admit vc1 --site /other/site --only 'partition=gpu nodes'",)
    (node,) = admit(["vc1"], means).nodes
    assert node.lines == ("fabricproof admit vc1 --site /other/site",)


def test_a_node_at_fault_is_refused_with_the_line_that_drains_it() -> None:
    world = World()
    world.verdicts = {"vc1": "FAIL"}
    found = admit(["vc1"], world.means())
    assert found.verdict is Verdict.FAIL
    assert found.nodes[0].reasons == ("rail1: half of it",)
    assert found.nodes[0].lines == ("# drain vc1 r1: rail1: half of it",)
    assert len(world.runs) == 1, "its partners were good: nothing is tried again"


def test_a_bad_partner_is_replaced_and_only_what_is_open_is_measured_again() -> None:
    world = World()
    world.verdicts = {"vc3": "FAIL", "vc1": "UNJUDGED"}
    found = admit(["vc1", "vc2"], world.means())
    assert len(world.runs) == 2
    assert "vc3" in world.runs[0][1]
    assert "vc3" not in world.runs[1][1]
    assert world.runs[1][1][0] == "vc1"
    assert "admitted=vc1" in world.runs[1][0][-1]
    assert found.bad_partners == {"vc3": "half of it"}
    assert [each.verdict for each in found.nodes] == [Verdict.UNJUDGED, Verdict.PASS]


@pytest.mark.parametrize("first", ["FAIL", "INVALID"])
def test_a_pass_with_other_partners_takes_back_no_fault(first: str) -> None:
    """The fault may come and go: it was a PASS, and the run before was forgotten."""
    world = World()
    world.in_run = {1: {"vc1": first, "vc3": "FAIL"}, 2: {}}
    found = admit(["vc1"], world.means())
    assert len(world.runs) == 2
    (node,) = found.nodes
    assert (found.verdict, node.verdict) == (Verdict.UNJUDGED, Verdict.UNJUDGED)
    assert node.reasons[0].startswith(f"{first} in run r1, PASS in run r2 with other partners")
    assert f"run r1: {first}: rail1: half of it" in node.reasons
    assert any(each.startswith("run r2: PASS: rail0") for each in node.reasons)
    assert node.lines == ("fabricproof admit vc1 --site vcluster",)


def test_what_a_nodes_own_counters_say_is_not_measured_again_until_it_is_gone() -> None:
    world = World()
    world.in_run = {1: {"vc1": "FAIL", "vc3": "FAIL"}, 2: {}}
    world.counted = frozenset({"vc1"})
    (node,) = admit(["vc1"], world.means()).nodes
    assert len(world.runs) == 1
    assert node.verdict is Verdict.FAIL
    assert node.lines == ("# drain vc1 r1: rail1: half of it",)


def test_a_fault_stays_where_the_second_run_measured_nothing() -> None:
    world = World()
    world.in_run = {1: {"vc1": "FAIL", "vc3": "FAIL"}, 2: {"vc1": "MISSING"}}
    (node,) = admit(["vc1"], world.means()).nodes
    assert (node.verdict, node.run_id) == (Verdict.FAIL, "r1")
    assert node.reasons == ("rail1: half of it", "run r2: MISSING: rail1: half of it")
    assert node.lines == ("# drain vc1 r1: rail1: half of it",)


def test_what_was_open_may_be_decided_by_other_partners_and_is_told() -> None:
    world = World()
    world.in_run = {1: {"vc1": "MISSING", "vc3": "FAIL"}, 2: {}}
    (node,) = admit(["vc1"], world.means()).nodes
    assert node.verdict is Verdict.PASS
    assert node.notes == ("before: run r1: MISSING: rail1: half of it",)


def test_a_partner_that_may_have_lost_a_nodes_packets_is_replaced() -> None:
    world = World()
    world.in_run = {1: {"vc1": "UNJUDGED", "vc3": "UNJUDGED"}, 2: {}}
    world.counted = frozenset({"vc1", "vc3"})
    found = admit(["vc1"], world.means())
    assert list(found.bad_partners) == ["vc3"]
    assert "vc3" not in world.runs[1][1]
    assert found.verdict is Verdict.PASS


def test_what_all_partners_show_as_well_drains_nobody() -> None:
    """With the wrong MPI every row is INVALID: the node was drained, and each partner was bad."""
    world = World()
    world.verdicts = dict.fromkeys(LEAVES, "INVALID")
    found = admit(["vc1"], world.means())
    assert len(world.runs) == 1
    assert found.bad_partners == {}
    (node,) = found.nodes
    assert (node.verdict, node.reasons) == (Verdict.INVALID, (ALL_ALIKE, "rail1: half of it"))
    assert node.lines == ("fabricproof admit vc1 --site vcluster",)


def test_partners_whose_job_has_just_ended_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were taken for busy ones, and no second run was made."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    some = dict.fromkeys(("vc1", "vc3", "vc5", "vc7"), "idle")
    world = World(some)
    world.in_run = {1: {"vc1": "MISSING", "vc3": "FAIL"}, 2: {}}
    world.after = [dict.fromkeys(some, "comp")] * 3
    found = admit(["vc1"], world.means())
    assert len(world.runs) == 2
    assert len(waited) == 3
    assert found.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({"vc1": "idle", "vc3": "idle", "vc5": "idle", "vc7": "alloc"}, "1 partner can be had now"),
        ({**FREE, "vc1": "alloc"}, "it runs jobs"),
        ({**FREE, "vc1": "plnd"}, "it runs jobs, its last one ends now, or Slurm keeps it"),
    ],
)
def test_why_there_was_no_second_run_is_told(states: Mapping[str, str], said: str) -> None:
    world = World()
    world.verdicts = {"vc1": "UNJUDGED", "vc3": "FAIL"}
    world.after = [states]
    (node,) = admit(["vc1"], world.means()).nodes
    assert len(world.runs) == 1
    assert node.verdict is Verdict.UNJUDGED
    assert node.reasons[0] == "rail1: half of it"
    assert node.reasons[1].startswith(f"not measured again: {said}")
    assert node.lines == ("fabricproof admit vc1 --site vcluster",)


def test_with_no_partners_left_a_node_is_not_admitted() -> None:
    world = World({"vc1": "idle", "vc3": "idle", "vc5": "idle"})
    world.verdicts = {"vc3": "FAIL", "vc1": "MISSING"}
    found = admit(["vc1"], world.means())
    assert len(world.runs) == 1
    assert found.verdict is Verdict.MISSING
    lonely = World({"vc1": "idle", "vc3": "idle"})
    found = admit(["vc1"], lonely.means())
    assert not lonely.runs
    assert "1 partner can be had now, 2 are needed" in found.nodes[0].reasons[0]


def test_a_job_that_measured_nothing_is_no_fault_of_its_partners() -> None:
    world = World()
    world.verdicts = dict.fromkeys(LEAVES, "MISSING")
    world.rows = ("rail1",)
    found = admit(["vc1"], world.means())
    assert len(world.runs) == 1
    assert found.bad_partners == {}
    assert found.verdict is Verdict.MISSING
    world.verdicts = {"vc1": "MISSING", "vc3": "MISSING"}
    assert list(admit(["vc1"], world.means()).bad_partners) == ["vc3"], "the others were measured"


def test_a_run_that_left_no_row_of_the_node_or_was_cut_is_missing() -> None:
    world = World()
    world.rows = ()
    assert admit(["vc1"], world.means()).verdict is Verdict.MISSING
    world = World()
    world.whole = False
    found = admit(["vc1"], world.means())
    assert (found.verdict, found.status) == (Verdict.MISSING, 130)
    assert "interrupted" in found.nodes[0].reasons[0]


def test_a_run_that_reframe_did_not_end_as_it_should_admits_no_node() -> None:
    """The run was UNJUDGED by itself, and its node got the line that gives it to users."""
    world = World()
    doubt = LegResult(verdict=Verdict.UNJUDGED, check=OF_REFRAME, reason="ended with status 1")
    world.doubt = (doubt,)
    (node,) = admit(["vc1"], world.means()).nodes
    assert (node.verdict, node.reasons) == (Verdict.UNJUDGED, ("ReFrame: ended with status 1",))
    assert not any("RESUME" in line for line in node.lines)
    world.verdicts = {"vc1": "FAIL"}
    assert admit(["vc1"], world.means()).verdict is Verdict.FAIL


def test_each_rail_is_due_and_all_together_where_the_stack_takes_them() -> None:
    world = World()
    for rows, lacking in (
        (("rail0", "rail0+rail1"), "eth0: rail1 not measured: the run left no row of it"),
        (("rail0", "rail1"), "eth0: rail0+rail1 not measured: the run left no row of it"),
    ):
        world.rows = rows
        (found,) = admit(["vc1"], world.means()).nodes
        assert (found.verdict, found.reasons[0]) == (Verdict.MISSING, lacking)
    world.refused = "rail0+rail1"
    assert admit(["vc1"], world.means()).verdict is Verdict.PASS
    world.rows, world.refused = ("rail0",), "rail1"
    (found,) = admit(["vc1"], world.means()).nodes
    assert found.verdict is Verdict.MISSING
    assert found.reasons[0] == "eth0: rail1, rail0+rail1 not measured: half of it"


def test_a_partner_that_a_person_chose_and_that_cannot_be_had_is_not_waited_for() -> None:
    world = World({**FREE, "vc5": "alloc"})
    (found,) = admit(["vc1"], world.means(partners=("vc3", "vc5"))).nodes
    assert not world.runs
    assert found.reasons == ("1 partner of vc3, vc5 (--with) can be had now, 2 are needed",)
    admit(["vc1"], world.means(partners=("vc3", "vc5", "vc7")))
    assert world.runs[0][1] == ("vc1", "vc3", "vc7")


def test_a_node_that_the_site_leaves_out_of_pairs_is_no_partner() -> None:
    """It was chosen, and the job did without it: with two of them nothing was measured."""
    world = World()
    world.without = "vc[3,5]"
    admit(["vc1"], world.means())
    assert world.runs[0][1] == ("vc1", "vc4", "vc6", "vc7", "vc2")
    (found,) = admit(["vc1"], world.means(partners=("vc3", "vc7"))).nodes
    (said,) = found.reasons
    assert said.startswith("1 partner of vc3, vc7 (--with) can be had now, 2 are needed")
    assert said.endswith("; the site leaves vc3 out (pairs_without)")
    (itself,) = admit(["vc3"], world.means()).nodes
    assert itself.verdict is Verdict.MISSING
    assert "the site leaves it out of all pairs" in itself.reasons[0]
    assert len(world.runs) == 1


def test_the_row_of_another_node_whose_name_begins_alike_is_none_of_it() -> None:
    world = World({**FREE, "vc10": "idle"})
    world.verdicts = {"vc10": "FAIL"}
    found = admit(["vc1", "vc10"], world.means())
    assert [each.verdict for each in found.nodes] == [Verdict.PASS, Verdict.FAIL]


def test_a_name_that_is_no_node_is_refused_before_anything_runs() -> None:
    world = World()
    for wrong in ("vc99", "vc1;x"):
        with pytest.raises(ConfigError, match="has no node of this name"):
            admit([wrong], world.means())
    with pytest.raises(ConfigError):
        admit(["vc1"], world.means(partners=("n9",)))
    assert not world.runs


def test_a_partition_whose_fabrics_have_no_link_is_refused_before_anything_runs() -> None:
    world = World()
    means = world.means()
    bare = means.site.fabric_spec("eth0").model_copy(update={"link": None})
    site = replace(means.site, fabrics=(bare,))
    partition = means.partition.model_copy(update={"fabrics": (bare.name,)})
    means = replace(means, site=site, partition=partition)
    for asked_for in (admit, plan):
        with pytest.raises(ConfigError, match="no fabric with a link"):
            asked_for(["vc1"], means)
    assert not world.runs


def test_the_plan_says_what_it_costs_and_runs_nothing() -> None:
    world = World()
    (line,) = plan(["vc1"], world.means())
    assert line.startswith("eth0: vc1 with vc3, vc5, vc7, vc2: 1 job, ")
    assert "node-seconds" in line
    assert not world.runs
    assert list(planned(["vc1"], ["vc3", "vc5", "vc7", "vc2"], world.means())) == [line]


def test_the_command_names_its_reservation_to_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    how: list[dict[str, object]] = []

    def standing(*_: object, **more: object) -> Standing:
        how.append(more)
        return standing_of(FREE)

    monkeypatch.setattr(command, "ask_standing", standing)
    monkeypatch.setattr(command, "ask_leaves", lambda *_: ())
    monkeypatch.setattr(command, "check_scheduler", lambda *_: None)
    words = ["vc1", "--site", "vcluster", "--plan"]
    for more in ([], ["--reservation", "mine"]):
        done = CliRunner().invoke(command.command, [*words, *more])
        assert done.exit_code == 0, done.output
    assert how == [{"reservation": ""}, {"reservation": "mine"}]


def test_a_run_of_an_admission_gets_its_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no sample of the site: trends, comparisons and the newest report leave it out.

    It has it also where Slurm goes away in the middle.
    """
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path))

    def away(*_: object) -> None:
        raise UnavailableError("Slurm does not answer")

    monkeypatch.setattr("fabricproof.cli.measure.run.ready_to_run", away)
    monkeypatch.setattr(command, "check_scheduler", lambda *_: None)
    monkeypatch.setattr(command, "admit", lambda names, means: means.run(["-r"], names))
    done = CliRunner().invoke(command.command, ["vc1", "--site", "vcluster"])
    assert isinstance(done.exception, UnavailableError)
    assert len(labels(tmp_path, "vcluster")["admit"]) == 1
