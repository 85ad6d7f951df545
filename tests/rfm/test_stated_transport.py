"""One installation, several stacks: each over the transport that the site states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.job.script import render_script
from fabricproof.rfm.legs.leg import LegPlanner, find_program
from fabricproof.rfm.settings import reframe_configuration
from fabricproof.rfm.staging import launch_command
from fabricproof.site import Site, load_site
from fabricproof.stacks.environment import ROOT_VARIABLE
from fabricproof.stacks.launch import Layout, layout_options, plan_launch
from fabricproof.stacks.stack import ResolvedStack, resolve
from fabricproof.stacks.wheels import ports_folder

SITE = """\
[site]
name = "soft"
modules_system = "nomod"

[[partitions]]
name = "p"
fabrics = ["roce0", "eth0"]
stacks = ["openmpi4", "openmpi4-ud", "openmpi4-ofi", "intelmpi", "mpich5"]
num_nodes = 2
ranks_per_node = [1, 2]

[[stacks]]
name = "openmpi4"
family = "openmpi"
version = "4.1"
provisioned = true
launcher = "mpirun"

[[stacks]]
name = "openmpi4-ud"
family = "openmpi"
version = "4.1"
provisioned = "openmpi4"
transport = "ucx-ud"

[[stacks]]
name = "openmpi4-ofi"
family = "openmpi"
version = "4.1"
provisioned = "openmpi4"
transport = "libfabric"
environment = { FI_UNIVERSE_SIZE = "8" }

[[stacks]]
name = "intelmpi"
family = "intelmpi"
version = "2021.18.1"
provisioned = true
launcher = "mpirun"

[[stacks]]
name = "mpich5"
family = "mpich"
version = "5.0.2"
provisioned = true
"""

FABRIC = """\
[[fabrics]]
name = "roce0"
link = "100GbE"
protocol = "rocev2"
mtu = 4096
rails = [{ interface = "rxe0:1" }, { interface = "rxe1:1" }]

[[fabrics]]
name = "eth0"
link = "100GbE"
mtu = 4200
rails = [{ interface = "rail0" }]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    root = tmp_path / "stacks"
    monkeypatch.setenv(ROOT_VARIABLE, str(root))
    for name in ("openmpi4", "intelmpi", "mpich5"):
        ports_folder(root / name).mkdir(parents=True)
        for program in ("osu_bw", "osu_latency"):
            (ports_folder(root / name) / f"{program}.py").touch()
    (tmp_path / "site.toml").write_text(SITE)
    (tmp_path / "fabric.toml").write_text(FABRIC)
    return load_site(str(tmp_path))


def changed(planner: LegPlanner, **update: object) -> ResolvedStack:
    """Return the planner's stack as the site would state it otherwise."""
    spec = planner.stack.spec.model_copy(update=update)
    return resolve(planner.site, planner.partition, spec)


def _planner(site: Site, stack: str, fabric: str = "roce0") -> LegPlanner:
    return LegPlanner(
        site=site,
        partition=site.partitions[0],
        stack=resolve(site, site.partitions[0], site.stack(stack)),
        fabric=fabric,
        suite="osu-mpi4py",
        program="osu_bw",
    )


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        ("openmpi4", {"OMPI_MCA_pml": "ucx", "UCX_TLS": "rc,ud,self"}),
        ("openmpi4-ud", {"OMPI_MCA_pml": "ucx", "UCX_TLS": "ud,self"}),
        (
            "openmpi4-ofi",
            {"OMPI_MCA_mtl": "ofi", "FI_VERBS_DEVICE_NAME": "rxe0", "OMPI_MCA_osc": "pt2pt"},
        ),
        ("intelmpi", {"FI_PROVIDER": "verbs", "FI_VERBS_DEVICE_NAME": "rxe0"}),
    ],
)
def test_each_stack_takes_its_own_path(site: Site, stack: str, told: dict[str, str]) -> None:
    first, second = _planner(site, stack).plan("each").legs
    assert told.items() <= first.environment.items()
    assert first.rails == ("rxe0:1",)
    assert "rxe1" in " ".join(second.environment.values())
    assert not any(word in str(first.environment) for word in ("tcp", "rail0", "mgmt0"))


def test_two_rails_are_for_ucx_alone(site: Site) -> None:
    (_, both), reason = _planner(site, "openmpi4-ud").plan("all").legs, ""
    assert (both.environment["UCX_NET_DEVICES"], reason) == ("rxe0:1,rxe1:1", "")
    assert "one device" in _planner(site, "openmpi4-ofi").plan("all").reason
    assert "one device" in _planner(site, "intelmpi").plan("all").reason


def test_a_transport_that_a_fabric_does_not_speak_is_a_reason(site: Site) -> None:
    plan = _planner(site, "openmpi4-ud", "eth0").plan("each")
    assert plan.legs == ()
    assert plan.reason == (
        "ucx-ud does not speak tcp: there openmpi has ucx or libfabric or native"
    )
    (leg,) = _planner(site, "openmpi4-ofi", "eth0").plan("each").legs
    assert leg.environment["FI_PROVIDER"] == "tcp"


def test_mpichs_wheel_under_srun_has_no_ucx_for_one_rail_either(site: Site) -> None:
    assert "PMI-1" in _planner(site, "mpich5").plan("each").reason


def test_one_installation_serves_the_stacks_that_name_it(site: Site) -> None:
    mine, others = (site.stack(name) for name in ("openmpi4", "openmpi4-ud"))
    found = [
        find_program(resolve(site, site.partitions[0], each), "osu-mpi4py", "osu_bw").argv
        for each in (mine, others)
    ]
    assert found[0] == found[1]
    assert "openmpi4/" in str(found[0])
    assert resolve(site, site.partitions[0], mine).identity("osu-mpi4py") == resolve(
        site, site.partitions[0], others
    ).identity("osu-mpi4py")
    environs = {each["name"]: each for each in reframe_configuration(site)["environments"]}
    plain = environs["openmpi4"]["env_vars"]
    assert environs["openmpi4-ud"]["env_vars"] == plain
    assert environs["openmpi4-ofi"]["env_vars"] == [*plain, ["FI_UNIVERSE_SIZE", "8"]]


def test_a_name_that_no_catalogue_has_is_refused_by_name(site: Site) -> None:
    lost = site.stack("openmpi4").model_copy(update={"provisioned": "openmpi9"})
    with pytest.raises(ConfigError, match=r"unknown stack.*openmpi5.*'openmpi9'"):
        find_program(resolve(site, site.partitions[0], lost), "osu-mpi4py", "osu_bw")


@pytest.mark.parametrize(
    ("stack", "line"),
    [
        ("openmpi4", ("mpirun", "--map-by", "ppr:2:node")),
        ("intelmpi", ("mpirun", "-ppn", "2")),
        ("mpich5", ("srun", "--nodes=2", "--ntasks=4", "--ntasks-per-node=2")),
    ],
)
def test_a_stacks_own_launcher_starts_the_wrapper_of_every_rank(
    site: Site, stack: str, line: tuple[str, ...]
) -> None:
    """Its own launcher finds the nodes of the allocation; the counters are read round each rank."""
    planner = _planner(site, stack)
    layout = Layout(num_nodes=2, ranks_per_node=2)
    options = layout_options(planner.stack.family, planner.launcher, layout)
    launch = (plan_launch(planner.stack.family, planner.launcher).launcher, *options)
    leg = replace(planner.leg(("rxe0:1",), layout=layout), launch=launch)
    text = render_script([leg], launch="unused", judge="true", leg_seconds_limit=30)
    (started,) = (each for each in text.splitlines() if '"$here/rank.sh"' in each)
    assert started.split()[: len(line)] == list(line)
    assert not any(word in text for word in ("rail0", "mgmt0", "oob_tcp"))


def test_mpis_own_launchers_measure_each_rail_the_other_way_too(site: Site) -> None:
    for stack in ("openmpi4", "intelmpi"):
        planner = replace(_planner(site, stack), program="osu_bw", own_launcher=True)
        legs = planner.backwards()
        assert [leg.name for leg in legs] == ["rxe0:1.back", "rxe1:1.back"]
        assert all(leg.backward for leg in legs)


def test_intel_mpis_launcher_does_not_hand_on_the_name_of_the_scripts_own_node(site: Site) -> None:
    """It would: then both ranks call themselves the first node's (seen with 2021.18)."""
    intel, open_mpi = (_planner(site, name).stack for name in ("intelmpi", "openmpi4"))
    started = launch_command(intel, "mpirun", Layout(), is_whole=True)
    assert started[:6] == ["env", "-u", "SLURMD_NODENAME", "-u", "HOSTNAME", "mpirun"]
    line = launch_command(open_mpi, "mpirun", Layout(), is_whole=True)
    assert line[:3] == ["mpirun", "-np", "2"]


def test_a_transport_that_does_not_go_over_the_fabric_is_refused(site: Site) -> None:
    reason = _planner(site, "openmpi4-ud", "eth0").transport_refusal()
    assert "ucx-ud does not speak tcp" in str(reason)
    assert _planner(site, "openmpi4-ud").transport_refusal() is None


def test_a_site_may_keep_a_stack_to_one_rail_and_says_why(site: Site) -> None:
    planner = _planner(site, "openmpi4-ud")
    alone = replace(planner, stack=changed(planner, one_rail="it drops"))
    assert alone.plan("all").reason == "left out by the site: it drops"
    assert [leg.rails for leg in alone.plan("each").legs] == [("rxe0:1",), ("rxe1:1",)]
