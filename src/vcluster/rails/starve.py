"""A node whose processes get little of a core: a control group with a quota, made for the fault.

Nothing else of the cluster needs control groups.  Version 1 and 2 are both understood.  When the
fault is taken out the processes go to the root group, and the node's own is gone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vcluster.errors import UnavailableError

_MOUNTS = Path("/proc/mounts")
#: long enough that the least quota, 1 % of a core, is the least that a kernel takes: 1 ms
_PERIOD_US = 100_000
_PREFIX = "fabricproof"


@dataclass(frozen=True, kw_only=True)
class Controller:
    """The control groups of the machine that share out its CPUs.

    Attributes:
        unified: version 2.
    """

    root: Path
    unified: bool

    def quota(self, percent: float) -> dict[str, str]:
        """Return what to write into which file of a group, for a share of one core."""
        quota_us = round(percent / 100 * _PERIOD_US)
        if self.unified:
            return {"cpu.max": f"{quota_us} {_PERIOD_US}"}
        return {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(quota_us)}


def controller(mounts: str) -> Controller | None:
    """Return the groups that share out CPUs, from the text of /proc/mounts; None without any."""
    for line in mounts.splitlines():
        _, where, kind, options, *_ = line.split()
        root = Path(where)
        if kind == "cgroup" and "cpu" in options.split(","):
            return Controller(root=root, unified=False)
        if kind == "cgroup2" and "cpu" in _words(root / "cgroup.controllers"):
            return Controller(root=root, unified=True)
    return None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def starve(cluster: str, host: str, pids: Iterable[int], percent: float) -> None:
    """Give a node's processes a share of one core, all together.

    Args:
        cluster: name of it.
        host: the node.
        pids: its processes; what they start later is in the group as well.
        percent: of one core.

    Raises:
        UnavailableError: this machine has no such control groups, or refuses.
    """
    found = controller(_MOUNTS.read_text())
    if found is None:
        raise UnavailableError(
            "no control groups that share out CPUs",
            expected="the controller cpu of cgroup version 1 or 2",
            got="none in /proc/mounts",
        )
    group = found.root / f"{_PREFIX}.{cluster}.{host}"
    try:
        if found.unified:
            (found.root / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir(exist_ok=True)
        for name, text in found.quota(percent).items():
            (group / name).write_text(text)
        _move(group, pids)
    except OSError as error:
        feed(cluster, host)
        raise UnavailableError(
            f"the processes of {host} cannot be given a share of a core",
            source=str(group),
            got=error.strerror or str(error),
        ) from error


def feed(cluster: str, host: str = "*") -> None:
    """Give a node its cores back, or all nodes of a cluster; the groups are gone then.

    Args:
        cluster: name of it.
        host: the node; all nodes where left out.
    """
    found = controller(_MOUNTS.read_text())
    if found is None:
        return
    for group in found.root.glob(f"{_PREFIX}.{cluster}.{host}"):
        for _ in range(50):
            _move(found.root, (int(pid) for pid in _words(group / "cgroup.procs")))
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.02)  # a process that was killed is in it until it has been waited for


def _move(group: Path, pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))
