"""Which control groups share out the CPUs, and what is written there."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcluster.errors import UnavailableError
from vcluster.rails import starve

_V1 = """proc /proc proc rw 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
"""


def test_version_1_is_known_by_its_options() -> None:
    found = starve.controller(_V1)
    assert found == starve.Controller(root=Path("/sys/fs/cgroup/cpu,cpuacct"), unified=False)
    assert found.quota(5) == {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "5000"}


def test_version_2_counts_where_it_has_the_cpus(tmp_path: Path) -> None:
    mounts = f"cgroup2 {tmp_path} cgroup2 rw 0 0\n"
    assert starve.controller(mounts) is None
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    found = starve.controller(mounts)
    assert found == starve.Controller(root=tmp_path, unified=True)
    assert found.quota(1) == {"cpu.max": "1000 100000"}


def test_a_machine_without_them_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("proc /proc proc rw 0 0\n")
    monkeypatch.setattr(starve, "_MOUNTS", mounts)
    with pytest.raises(UnavailableError, match="no control groups"):
        starve.starve("tiny", "vc1", [], 5)


def test_a_group_holds_the_node_and_is_gone_when_it_is_fed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain files stand for the kernel's, but for the folder that it would let be removed."""
    root, mounts = tmp_path / "cpu", tmp_path / "mounts"
    root.mkdir()
    mounts.write_text(f"cgroup {root} cgroup rw,cpu 0 0\n")
    monkeypatch.setattr(starve, "_MOUNTS", mounts)
    starve.starve("tiny", "vc1", [4711], 5)
    group = root / "fabricproof.tiny.vc1"
    assert (group / "cpu.cfs_quota_us").read_text() == "5000"
    assert (group / "cgroup.procs").read_text() == "4711"
    monkeypatch.setattr(Path, "rmdir", lambda self: None)
    starve.feed("other")
    assert not (root / "cgroup.procs").exists()
    starve.feed("tiny")
    assert (root / "cgroup.procs").read_text() == "4711"
