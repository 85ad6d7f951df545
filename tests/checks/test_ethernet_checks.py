"""The Ethernet checks and those of perftest: what they plan, and where they do not belong."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from checks_as_reframe_sees_them import SITES, dry_run

from fabricproof.job.leg import Plan, read_plan
from fabricproof.job.relation import Ratio, Relation
from fabricproof.site import load_site

GOLDEN = Path(__file__).parent / "golden" / "ethernet.sh"

#: with one rail each, so that the text stays short
KEPT = ("TcpManyFlows", "MtuPath", "TcpLinks", "DefaultInterfaces")

CHECKS = (
    *("TcpSingleFlow", "TcpManyFlows", "TcpManyThreads", "MpiOverTcpBandwidth", "TcpLinks"),
    *("OsuManyPairs", "ImbManyPairs", "MtuPath", "DefaultInterfaces", "PerftestWriteBandwidth"),
)


def tools(folder: Path) -> None:
    """Pretend that the tools of Debian are installed here."""
    for name in ("iperf3", "iperf", "ib_write_bw"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


@pytest.fixture(scope="module")
def cases(
    shared_stacks: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the cases of a dry run on the virtual cluster's site: check, then stack."""
    folder = tmp_path_factory.mktemp("ethernet")
    assert shared_stacks.is_dir()
    programs = folder / "tools"
    programs.mkdir()
    tools(programs)
    names = [part for check in CHECKS for part in ("-n", f"^{check}%")]
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([str(programs), os.environ["PATH"]]))
        ran = dry_run(load_site(str(SITES / "vcluster")), folder, *names)
    for case in ran:
        if case["fabric"] == "eth0":
            found[case["name"].split(" ")[0]][case["environ"]] = case
    return found


def plan_of(case: dict[str, Any]) -> Plan:
    return read_plan(Path(case["stagedir"]))


def of(relation: Relation) -> Ratio:
    assert isinstance(relation.what, Ratio)
    return relation.what


def test_what_needs_no_mpi_runs_once_and_says_so_elsewhere(cases: dict[str, Any]) -> None:
    for check in ("TcpSingleFlow", "TcpManyFlows", "TcpManyThreads", "MtuPath"):
        of = cases[check]
        assert of["openmpi5"]["result"] == "pass", of["openmpi5"]["fail_reason"]
        for stack in ("mpich5", "intelmpi", "openmpi4"):
            assert of[stack]["result"] == "skip"
            reason = "needs no MPI: it runs once on this partition, with openmpi5"
            assert of[stack]["skip_reason"].endswith(reason)


def test_verbs_are_skipped_on_ethernet_with_the_reason(cases: dict[str, Any]) -> None:
    case = cases["PerftestWriteBandwidth"]["openmpi5"]
    assert case["result"] == "skip"
    assert case["skip_reason"] == "it measures verbs, which fabric eth0 does not speak"


@pytest.mark.parametrize(
    ("link", "rail", "refused"),
    [
        ('"Slingshot 200"', "cxi0", True),
        ('"Omni-Path 100"', "hfi1_0:1", True),
        ('"Slingshot 200"\nprotocol = "tcp"', "hsn0", False),
    ],
)
def test_what_needs_an_address_is_not_run_where_rails_are_devices(
    link: str, rail: str, refused: bool, tmp_path: Path, shared_stacks: Path
) -> None:
    """TCP has no address at cxi0: each night of a machine with Slingshot was red."""
    assert shared_stacks.is_dir()
    folder, programs = tmp_path / "devices", tmp_path / "tools"
    for each in (folder, programs):
        each.mkdir()
    tools(programs)
    text = (SITES / "openhpc-ethernet" / "site.toml").read_text("utf-8")
    (folder / "site.toml").write_text(text.replace('["eth1g", "eth40g"]', '["eth0"]'))
    (folder / "fabric.toml").write_text(
        f'[[fabrics]]\nname = "eth0"\nlink = {link}\nrails = [{{ interface = "{rail}" }}]\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([str(programs), os.environ["PATH"]]))
        ran = dry_run(load_site(str(folder)), tmp_path, "-n", "^(TcpSingleFlow|MtuPath)%")
    reasons = [case["skip_reason"] or "" for case in ran if case.get("fabric") == "eth0"]
    assert any("over which TCP has no address" in each for each in reasons) is refused, reasons


def test_connections_are_open_mpis_own(cases: dict[str, Any]) -> None:
    links = cases["TcpLinks"]
    legs = [leg for leg in plan_of(links["openmpi4"]).legs if not leg.in_turn]
    flows = {leg.name: leg.fabric.num_flows for leg in legs if leg.fabric}
    assert flows == {"rail0.links2": 2, "rail0.links1": 1, "rail0.links4": 4}
    (best,) = plan_of(links["openmpi4"]).relations
    assert of(best).under.legs == ("rail0.links2",), "as the site's environment has it"
    assert "only Open MPI" in links["mpich5"]["skip_reason"]


def test_mpi_stands_beside_as_many_connections_as_it_has_itself(cases: dict[str, Any]) -> None:
    plan = plan_of(cases["MpiOverTcpBandwidth"]["openmpi5"])
    legs = [leg for leg in plan.legs if not leg.in_turn]
    assert [leg.name for leg in legs] == ["rail0.iperf3", "rail0", "rail1.iperf3", "rail1"]
    assert legs[0].commands[0][-2:] == ("-P", "2")
    share = plan.relations[0]
    assert (share.program, set(share.legs)) == ("osu_bw", {"rail0", "rail0.iperf3"})
    what = of(share)
    assert (what.over.sizes, what.under.sizes) == (legs[1].expected_sizes[-1:], (None,))
    assert what.reference is not None
    assert "document 001" in what.reference.origin


def test_several_pairs_need_ranks_beside_each_other(cases: dict[str, Any]) -> None:
    plan = plan_of(cases["ImbManyPairs"]["mpich5"])
    assert plan.ranks_per_node == 2
    assert plan.legs[0].num_ranks == 4
    (argv,) = plan.legs[0].commands
    window = int(argv[argv.index("-window_size") + 1])
    # two pairs, a window for each repetition, one way
    assert plan.legs[0].traffic.per_repetition == (2 * window, 0)
    assert cases["OsuManyPairs"]["openmpi5"]["skip_reason"]


def test_an_untold_leg_names_no_interface(cases: dict[str, Any]) -> None:
    for stack, case in cases["DefaultInterfaces"].items():
        if case["result"] == "skip":
            continue
        (leg,) = plan_of(case).legs
        assert "rail" not in " ".join(leg.environment.values()), stack
        assert "rail0" in leg.free_path
        assert leg.required == ("default_road",)


def test_scripts_are_what_they_were(cases: dict[str, Any], shared_stacks: Path) -> None:
    parts = []
    for check in KEPT:
        text = (Path(cases[check]["openmpi5"]["stagedir"]) / "legs.sh").read_text()
        legs = re.findall(r"^leg_.*?^}\n", text, flags=re.DOTALL | re.MULTILINE)
        parts.append(
            f"# {check}\n" + "".join(leg for leg in legs if not leg.startswith("leg_rail1"))
        )
    text = "\n".join(parts).replace(str(shared_stacks), "{STACKS}")
    text = re.sub(r"\S+/portrunner\.py", "portrunner.py", text)
    if os.environ.get("FABRICPROOF_WRITE_GOLDEN"):
        GOLDEN.write_text(text)
    assert GOLDEN.read_text() == text


def test_a_declared_limit_per_flow_makes_the_gain_that_is_due(
    stacks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source document 001: one flow 9.5 Gb/s, many 93; the site declares 10 for one."""
    programs = tmp_path / "tools"
    programs.mkdir()
    tools(programs)
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), os.environ["PATH"]]))
    cases = dry_run(load_site(str(SITES / "cloud-efa")), tmp_path, "-n", "^TcpManyFlows%")
    gains = {
        case["fabric"]: of(plan_of(case).relations[0]).reference
        for case in cases
        if case["result"] == "pass" and "fabric" in case and not case["fixture"]
    }
    assert gains["eth0"].value == pytest.approx(8.0, rel=0.02)
    assert gains["eth0"].origin == "fabric.toml declares a limit per flow"
    assert gains["eth0-many-flows"].value == 1.0
