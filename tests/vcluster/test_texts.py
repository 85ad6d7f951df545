"""Files and command lists, against golden copies in tests/vcluster/golden.

After a change that is meant: FABRICPROOF_REWRITE_GOLDEN=1 pytest tests/vcluster/test_texts.py,
then read the difference.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from vcluster import outside, slurm
from vcluster.errors import ConfigError
from vcluster.node import Space
from vcluster.paths import Paths
from vcluster.plan import Plan
from vcluster.processes import Process, process
from vcluster.rails import network

_GOLDEN = Path(__file__).parent / "golden"
_PATHS = Paths("tiny")


def _head(pid: int = 4242, start: int = 777) -> Space:
    init = Process(pid=pid, start=start)
    return Space(name="head", init=init, net="net:[1]", pid_space="pid:[2]")


def _texts(plan: Plan) -> dict[str, str]:
    node = plan.nodes[2]
    return {
        "slurm.conf": slurm.render_slurm_conf(plan, _PATHS),
        "topology.conf": slurm.render_topology_conf(plan),
        "slurmdbd.conf": slurm.render_slurmdbd_conf(_PATHS),
        "hosts": network.render_hosts(plan),
        "env.sh": outside.render_environment(_PATHS),
        "sbatch": outside.render_wrapper("/usr/bin/sbatch", _PATHS, _head()),
        "switches.ip": "\n".join(network.switch_commands(plan)) + "\n",
        "node.ip": "\n".join(
            network.node_cable_commands(plan, node, 99)
            + network.node_interface_commands(plan, node)
        )
        + "\n",
    }


@pytest.mark.parametrize(
    "name",
    [
        "slurm.conf", "topology.conf", "slurmdbd.conf", "hosts", "env.sh", "sbatch",
        "switches.ip", "node.ip",
    ],
)  # fmt: skip
def test_text_is_as_reviewed(plan: Plan, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VCLUSTER_PROGRAM", "fabricproof vcluster")
    text, golden = _texts(plan)[name], _GOLDEN / name
    if os.environ.get("FABRICPROOF_REWRITE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_slurm_is_told_of_every_leaf(plan: Plan) -> None:
    wide = replace(plan, node_count=5, leaf_count=3)
    assert slurm.render_topology_conf(wide).splitlines() == [
        "SwitchName=leaf1 Nodes=vc[1-2]",
        "SwitchName=leaf2 Nodes=vc[3-4]",
        "SwitchName=leaf3 Nodes=vc5",
        "SwitchName=spine Switches=leaf[1-3]",
    ]


def test_each_leaf_has_a_link_to_the_spine_that_is_shaped_at_both_ends(plan: Plan) -> None:
    wide = replace(plan, leaf_count=3, uplink_bit_s=25_000_000)
    cables = [line for line in network.switch_commands(wide) if "type veth" in line]
    ends = [(line.split()[2], line.split()[9]) for line in cables]
    assert ends == [(f"r{rail}l{leaf}", f"r{rail}s{leaf}") for rail in (0, 1) for leaf in (1, 2, 3)]
    shaped = [line for line in network.uplink_rate_commands(wide) if " classid 1:1 " in line]
    assert [line.split()[3] for line in shaped] == [port for pair in ends for port in pair]
    assert all("rate 24875kbit ceil 24875kbit" in line for line in shaped)
    assert network.uplink_rate_commands(plan) == []


def test_slurm_as_another_site_has_it(plan: Plan) -> None:
    theirs = ("SlurmdTimeout=99", "PartitionName=DEFAULT OverSubscribe=FORCE:4")
    bare = replace(plan, accounting=False, slurm=theirs)
    text = slurm.render_slurm_conf(bare, _PATHS)
    assert "AccountingStorageType=accounting_storage/none\n" in text
    assert "slurmdbd" not in text
    lines = text.splitlines()
    first, default = (lines.index(line) for line in theirs)
    assert lines.index("SlurmdTimeout=10") < first, "Slurm takes the last of two"
    assert default < min(at for at, line in enumerate(lines) if line.startswith("NodeName="))


@pytest.mark.parametrize("line", ["PrivateData", "=jobs", "A=b\nSlurmUser=x", ""])
def test_what_is_no_line_of_slurm_conf_is_refused(plan: Plan, line: str) -> None:
    with pytest.raises(ConfigError, match="not a line of slurm"):
        replace(plan, slurm=(line,))


@pytest.mark.parametrize(
    ("version", "plugin"), [((22, 5), "cgroup/v1"), ((23, 11), "cgroup/v1"), ((24, 5), "disabled")]
)
def test_cgroups_are_not_used_whatever_the_release(version: tuple[int, int], plugin: str) -> None:
    assert slurm.render_cgroup_conf(version) == f"CgroupPlugin={plugin}\n"


def _run_wrapper(tmp_path: Path, head: Space) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "wrapper"
    script.write_text(outside.render_wrapper("/bin/true", _PATHS, head))
    command = ["sh", str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)


def test_a_wrapper_of_a_dead_cluster_says_so(tmp_path: Path) -> None:
    done = _run_wrapper(tmp_path, _head(pid=2**22 + 5))
    assert done.returncode == 69
    assert "vcluster up" in done.stderr


def test_a_wrapper_does_not_take_another_process_for_the_head(tmp_path: Path) -> None:
    own = process(os.getpid())
    assert own is not None
    done = _run_wrapper(tmp_path, _head(pid=own.pid, start=own.start + 1))
    assert done.returncode == 69


def test_no_socket_path_is_too_long_for_the_kernel() -> None:
    paths = Paths("a" * 24)
    assert len(str(paths.munge_socket)) < 108
    assert len(str(paths.mysql_socket)) < 108
