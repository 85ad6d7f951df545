"""What is planned over several rails, by socket, rail against rail, and by distance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.errors import ParseError, UnavailableError
from fabricproof.job.evidence.leg_folder import as_one_path
from fabricproof.job.leg import Leg, Plan, read_plan, write_plan
from fabricproof.job.relation import Balance, Bind, Pick, Ratio, Relation
from fabricproof.job.script import render_script
from fabricproof.nodes.slurm import slurm_partition
from fabricproof.nodes.topology.model import Pair, Shape
from fabricproof.rfm import slurm_nodes
from fabricproof.rfm.families.places import (
    AS_LAUNCHED,
    MAP_BY_DIST,
    bound_leg,
    locality_plan,
    placement_plan,
    policies,
)
from fabricproof.rfm.families.rails import cell, expected_gain, rails_plan
from fabricproof.rfm.legs.compare import with_twins
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import load_site
from fabricproof.site.schema import PartitionSpec, ReferenceSpec
from fabricproof.stacks.environment import ROOT_VARIABLE
from fabricproof.stacks.stack import ResolvedStack, resolve
from fabricproof.stacks.wheels import ports_folder
from fabricproof.traffic import CounterSample, Evidence, Rank
from fabricproof.verdict.value import Reference

SITES = Path(__file__).parents[2] / "site-configs"
DATA = Path(__file__).parents[1] / "data" / "slurm"


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LegPlanner:
    """The virtual cluster's Open MPI, there only in name."""
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    folder = ports_folder(tmp_path / "openmpi5")
    folder.mkdir(parents=True)
    for program in ("osu_bw", "osu_bibw", "osu_latency"):
        (folder / f"{program}.py").touch()
    site = load_site(str(SITES / "vcluster"))
    return LegPlanner(
        site=site,
        partition=site.partitions[0],
        stack=resolve(site, site.partitions[0], site.stack("openmpi5")),
        fabric="eth0",
        suite="osu-mpi4py",
        program="osu_bw",
    )


def changed(planner: LegPlanner, **update: object) -> ResolvedStack:
    """Return the planner's stack as the site would state it otherwise."""
    spec = planner.stack.spec.model_copy(update=update)
    return resolve(planner.site, planner.partition, spec)


def of(relation: Relation) -> tuple[Ratio, Reference]:
    """Return what is to hold, and by what it is judged."""
    assert isinstance(relation.what, Ratio)
    assert relation.what.reference is not None
    return relation.what, relation.what.reference


def test_each_rail_and_all_rails_are_legs_of_one_job(planner: LegPlanner) -> None:
    plan = rails_plan(planner)
    due = [leg for leg in plan.legs if not leg.in_turn]
    assert [leg.name for leg in due] == ["rail0", "rail1", "rail0+rail1"]
    assert [len(leg.commands) for leg in due] == [1, 1, 3]
    assert [relation.name for relation in plan.relations] == ["scaling", "sharing"]


def test_two_rails_are_red_below_one_point_nine_and_impossible_above_their_links(
    planner: LegPlanner,
) -> None:
    what, reference = of(rails_plan(planner).relations[0])
    assert (reference.value, reference.lower) == (pytest.approx(2.0), pytest.approx(1.9))
    assert what.most is not None
    assert 2.0 < what.most < 2.4
    assert what.over.legs == ("rail0+rail1",)
    assert what.under.legs == ("rail0", "rail1")


def test_both_ways_expect_the_same_gain(planner: LegPlanner) -> None:
    assert expected_gain(replace(planner, program="osu_bibw"))[0] == pytest.approx(2.0)


def test_rails_that_share_a_slot_are_expected_to_gain_less(planner: LegPlanner) -> None:
    fabric = planner.site.fabric_spec("eth0").model_copy(
        update={"link": "FDR 4x", "protocol": "ib", "mtu": 4096, "pcie": "3.0x8", "shaper": None,
                "rails_share_slot": True}
    )  # fmt: skip
    site = replace(planner.site, fabrics=(fabric,))
    # Document 000: near the socket two rails gave 6.5 against 6.3.
    assert 1.0 < expected_gain(replace(planner, site=site))[0] < 1.2


def test_a_leg_for_each_rail_and_distance(planner: LegPlanner) -> None:
    pairs = (Pair(nodes=("vc1", "vc2"), hops=1), Pair(nodes=("vc1", "vc3"), hops=3))
    plan = placement_plan(replace(planner, program="osu_latency"), pairs)
    assert [leg.name for leg in plan.legs if not leg.in_turn] == [
        "rail0.hops1", "rail0.hops3", "rail1.hops1", "rail1.hops3",
    ]  # fmt: skip
    assert (plan.nodes, plan.num_nodes) == (("vc1", "vc2", "vc3"), 3)
    relation = plan.relations[0]
    what, reference = of(relation)
    assert (relation.name, what.over.quantity) == ("rail0.far_over_near", "latency")
    assert (what.over.legs, what.under.legs) == (("rail0.hops3",), ("rail0.hops1",))
    assert reference.value == pytest.approx(1.4)


def test_a_far_pair_is_to_carry_what_a_near_one_carries(planner: LegPlanner) -> None:
    pairs = (Pair(nodes=("a", "b"), hops=1), Pair(nodes=("a", "c"), hops=5))
    what, reference = of(placement_plan(planner, pairs).relations[0])
    assert (what.over.quantity, reference.lower) == ("bandwidth", 0.9)


def test_a_reference_may_be_for_one_distance(planner: LegPlanner) -> None:
    spec = ReferenceSpec(
        quantity="latency", value="1.1 us", fabric="eth0", hops=1, origin="measured in March"
    )
    far = spec.model_copy(update={"hops": 3, "value": "1.9 us"})
    site = replace(planner.site, references=(*planner.site.references, spec, far))
    pairs = (Pair(nodes=("a", "b"), hops=1), Pair(nodes=("a", "c"), hops=3))
    placed = replace(planner, site=site, program="osu_latency")
    near, farther = placement_plan(placed, pairs).legs[:2]
    assert near.references["latency"].value == pytest.approx(1.1)
    assert farther.references["latency"].value == pytest.approx(1.9)
    assert placed.leg(("rail0",)).references["latency"].value == pytest.approx(1000.0)


def test_the_far_socket_is_a_witness_and_the_near_one_is_judged(planner: LegPlanner) -> None:
    near, far = (bound_leg(planner, "rail0", bind) for bind in Bind)
    assert near.commands[0][:4] == ("bash", "bind.sh", "near", "rail0")
    assert near.ask == far.ask == ("two_sockets", "rail0")
    assert near.tolerance == planner.site.spec.tolerance
    assert far.tolerance == 0.9
    assert near.environment["SLURM_CPU_BIND"] == "none"
    launched = bound_leg(planner, "rail0", AS_LAUNCHED)
    assert "SLURM_CPU_BIND" not in launched.environment
    what, _ = of(locality_plan(planner).relations[0])
    assert what.held == {"rail0.near": "near", "rail0.far": "far"}
    assert list(what.names) == ["rail0.near", "rail0.far", "rail0.as_launched"]


def test_open_mpi_4_under_its_own_launcher_is_also_tried_by_distance(planner: LegPlanner) -> None:
    assert policies(planner) == ("near", "far", AS_LAUNCHED)
    stack = changed(planner, version="4.1", launcher="mpirun")
    own = replace(planner, stack=stack)
    assert policies(own)[-1] == MAP_BY_DIST
    leg = bound_leg(own, "rail0", MAP_BY_DIST)
    assert leg.environment["OMPI_MCA_rmaps_base_mapping_policy"] == "dist:span"
    assert leg.environment["OMPI_MCA_rmaps_dist_device"] == "rail0"
    assert leg.environment["OMPI_MCA_hwloc_base_binding_policy"] == "core"
    assert leg.commands[0][2] == AS_LAUNCHED, "we do not move its ranks"


def test_a_cell_gives_each_node_its_own_interface(planner: LegPlanner) -> None:
    leg = cell(planner, "rail0", "rail1")
    assert (leg.name, leg.rails, leg.node_rails) == (
        "rail0-rail1", ("rail0-rail1",), ("rail0", "rail1"),
    )  # fmt: skip
    assert leg.commands[0][1:5] == (
        "each_node.sh",
        "OMPI_MCA_btl_tcp_if_include=rail0",
        "OMPI_MCA_btl_tcp_if_include=rail1",
        "--",
    )
    assert "OMPI_MCA_btl_tcp_if_include" not in leg.environment
    assert leg.ask == ("reach", "rail0", "rail1")
    assert cell(planner, "rail1", "rail1").node_rails == ()


def _script(leg: Leg) -> str:
    return render_script([leg], launch="srun -n 2", judge="true", leg_seconds_limit=30)


def test_a_question_comes_before_the_leg_and_others_are_asked_nothing(planner: LegPlanner) -> None:
    asked = _script(cell(planner, "rail0", "rail1"))
    function = asked[asked.index("leg_rail0_rail1()") :]
    assert function.index('ask.sh" reach rail0 rail1 || return') < function.index("means_nothing")
    assert function.index("means_nothing") < function.index("rank.sh")
    plain = _script(planner.leg(("rail0",)))
    assert "ask.sh" not in plain[plain.index("leg_rail0()") :]


def test_what_a_leg_asks_and_where_it_goes_survives_the_plan_file(
    planner: LegPlanner, tmp_path: Path
) -> None:
    legs = (cell(planner, "rail0", "rail1"), bound_leg(planner, "rail0", "near"))
    write_plan(tmp_path, legs)
    assert read_plan(tmp_path).legs == legs


def test_interfaces_of_two_names_are_one_path() -> None:
    samples = [
        CounterSample(node=node, interface=rail, before={}, after={})
        for node in ("a", "b")
        for rail in ("rail0", "rail1")
    ]
    ranks = (Rank(rank=0, node="b"), Rank(rank=1, node="a"))
    evidence = as_one_path(Evidence(ranks=ranks, samples=tuple(samples)), "x", ("rail0", "rail1"))
    named = {(each.node, each.interface) for each in evidence.samples}
    assert named == {("b", "x"), ("b", "rail1"), ("a", "x"), ("a", "rail0")}


def test_a_plan_without_names_takes_any_nodes(planner: LegPlanner) -> None:
    assert Plan(legs=(planner.leg(("rail0",)),)).nodes == ()


COMPUTE = PartitionSpec(
    name="compute", access=["-p compute"], fabrics=["eth0"], stacks=["openmpi5"]
)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of PATH for pretended Slurm commands; answers are not remembered."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    slurm_nodes._answers.clear()
    return tmp_path


def _pretend(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{body}\n")
    (folder / name).chmod(0o755)


def test_slurm_is_asked_for_its_tree_and_its_nodes(slurm: Path) -> None:
    _pretend(slurm, "scontrol", f"cat {DATA / 'topology-tree.txt'}")
    _pretend(slurm, "sinfo", "printf 'a alloc\\nb idle\\nc down*\\nd idle*\\ne drain\\nf mix\\n'")
    assert slurm_nodes.ask_topology().shape is Shape.TREE
    assert slurm_nodes.usable_nodes(COMPUTE) == ("b", "f", "a"), "idle first, broken never"


def test_a_flat_slurm_is_flat(slurm: Path) -> None:
    _pretend(slurm, "scontrol", f"cat {DATA / 'topology-none.txt'} >&2")
    assert slurm_nodes.ask_topology().shape is Shape.FLAT


def test_a_slurm_that_does_not_answer_is_one_clear_line(slurm: Path) -> None:
    _pretend(slurm, "scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(UnavailableError, match="Unable to contact"):
        slurm_nodes.ask_topology()
    _pretend(slurm, "sinfo", "echo vc1")
    with pytest.raises(ParseError, match="a node and its state"):
        slurm_nodes.usable_nodes(COMPUTE)


def test_a_slurm_that_is_away_is_asked_once_for_all_checks(slurm: Path) -> None:
    _pretend(slurm, "scontrol", f"echo asked >> {slurm}/asked; exit 1")
    for _ in range(3):
        with pytest.raises(UnavailableError):
            slurm_nodes.ask_topology()
    assert (slurm / "asked").read_text().split() == ["asked"]


_TREE = """SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=vc[1-4]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=vc[5-8]
SwitchName=spine Level=1 LinkSpeed=1 Nodes=vc[1-8] Switches=leaf[1-2]
"""

#: plans the checks that choose their own nodes, each as a session of ReFrame would
_PLAN = """
import json, sys
from types import SimpleNamespace
from reframe.core import runtime
from fabricproof.site import load_site
site = load_site("vcluster")
compute = SimpleNamespace(name="compute", extras={"fabricproof_site": str(site.folder)})
system = SimpleNamespace(name="vcluster", partitions=[compute])
runtime.runtime = lambda: SimpleNamespace(system=system)
from fabricproof.core.errors import UnavailableError
from fabricproof.rfm.families.collectives import RingPlacement
from fabricproof.rfm.families.places import PlacementBenchmark
planner = SimpleNamespace(partition=site.partition("compute"), spec=site.fabric_spec("eth0"))
test = SimpleNamespace(is_dry_run=lambda: "dry" in sys.argv, seed=1, packed=False)
test.ranks = lambda planner: 1
said = []
for check in (PlacementBenchmark, RingPlacement):
    try:
        said.append(["SKIPPED", check.plan(test, planner).reason])
    except UnavailableError as error:
        said.append(["MISSING", error.got])
print(json.dumps(said))
"""


@pytest.mark.parametrize(
    ("others", "word", "outcome"),
    [
        ("drain", "", "MISSING"),
        ("drain", "dry", "SKIPPED"),
        # A partition that has one leaf has nothing to miss.
        ("", "", "SKIPPED"),
    ],
)
def test_what_all_nodes_would_allow_is_missing_where_those_of_a_leaf_are_out(
    slurm: Path, monkeypatch: pytest.MonkeyPatch, others: str, word: str, outcome: str
) -> None:
    """It was SKIPPED, as where there is one leaf only."""
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    (slurm / "tree").write_text(_TREE)
    _pretend(slurm, "scontrol", f"cat {slurm}/tree")
    states = {f"vc{number}": "idle" for number in range(1, 5)}
    states |= {f"vc{number}": others for number in range(5, 9) if others}
    (slurm / "states").write_text("".join(f"{node} {state}\n" for node, state in states.items()))
    _pretend(slurm, "sinfo", f"cat {slurm}/states")
    ended = subprocess.run(
        [sys.executable, "-c", _PLAN, word], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    assert [each for each, _ in said] == [outcome] * 2
    told = "vc[5-8] drain" if outcome == "MISSING" else "usable nodes"
    assert all(told in reason for _, reason in said)


def test_slurm_is_not_asked_where_its_configuration_is_no_file(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands look for the file for a minute (slurm 22.05: 60 s, then an error)."""
    _pretend(slurm, "scontrol", f"touch {slurm}/asked")
    monkeypatch.setenv("SLURM_CONF", str(slurm / "slurm.conf"))
    with pytest.raises(UnavailableError, match="SLURM_CONF names no file"):
        slurm_nodes.ask_topology()
    assert not (slurm / "asked").exists()


@pytest.mark.parametrize(("access", "name"), [(["-p normal"], "normal"), ([], "batch")])
def test_a_job_goes_where_access_says_or_to_slurm_s_default(
    slurm: Path, access: list[str], name: str
) -> None:
    _pretend(slurm, "sinfo", "printf 'compute\\nbatch*\\n'")
    spec = PartitionSpec(name="compute", access=access, fabrics=["eth0"], stacks=["openmpi5"])
    assert slurm_partition(spec, os.environ) == name


def test_a_slurm_without_a_default_and_a_partition_without_nodes_are_missing(slurm: Path) -> None:
    """Sinfo ends well where there is no such partition: no node is no reason to skip a check."""
    _pretend(slurm, "sinfo", "[[ $* == *-N* ]] || echo compute")
    spec = PartitionSpec(name="compute", fabrics=["eth0"], stacks=["openmpi5"])
    with pytest.raises(UnavailableError, match="Slurm has no default"):
        slurm_partition(spec, os.environ)
    with pytest.raises(UnavailableError, match="partition compute has no node"):
        slurm_nodes.usable_nodes(COMPUTE)


def test_the_threshold_that_the_site_states_is_planned(planner: LegPlanner) -> None:
    def threshold(planner: LegPlanner) -> int | None:
        what = rails_plan(planner).relations[1].what
        assert isinstance(what, Balance)
        return what.threshold_bytes

    assert threshold(planner) is None
    stack = changed(planner, sharing_threshold="128KiB")
    assert threshold(replace(planner, stack=stack)) == 128 << 10


@pytest.mark.parametrize(
    ("program", "quantity", "over", "bound"),
    [("osu_latency", "latency", Pick.LARGEST, 3.0), ("osu_bw", "bandwidth", Pick.SMALLEST, 0.7)],
)
def test_like_rails_are_held_against_each_other_without_another_leg(
    planner: LegPlanner, program: str, quantity: str, over: Pick, bound: float
) -> None:
    """A rail 50 times slower than its twin passed: the site's bound was 2 ms."""
    partition = planner.partition.model_copy(update={"oversubscribed": False})
    own = replace(planner, program=program, partition=partition)
    before = own.plan("each")
    plan = with_twins(own, replace(before, legs=(*before.legs, *own.backwards())))
    assert plan.legs[: len(before.legs)] == before.legs
    (twins,) = plan.relations
    what, reference = of(twins)
    assert (twins.legs, twins.rails, twins.turns) == (("rail0", "rail1"), ("rail0", "rail1"), {})
    assert (what.over.quantity, what.over.pick) == (quantity, over)
    assert (reference.upper or reference.lower) == pytest.approx(bound)


def test_ranks_that_share_cores_may_wait_longer_for_one_rail(planner: LegPlanner) -> None:
    assert planner.partition.oversubscribed
    own = replace(planner, program="osu_latency")
    (twins,) = with_twins(own, own.plan("each")).relations
    assert of(twins)[1].upper == pytest.approx(12.0)


def test_rails_of_two_kinds_are_no_twins(planner: LegPlanner) -> None:
    spec = planner.site.fabric_spec("eth0")
    unlike = [spec.rails[0], spec.rails[1].model_copy(update={"link": "10GbE"})]
    fabric = spec.model_copy(update={"rails": unlike, "shaper": None})
    own = replace(planner, site=replace(planner.site, fabrics=(fabric,)))
    assert with_twins(own, own.plan("each")).relations == ()
