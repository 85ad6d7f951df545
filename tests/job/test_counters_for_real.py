"""A link that flaps, made for real in a network namespace of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import fabricproof.job
from fabricproof.job.evidence.leg_folder import gather, parse_rank
from fabricproof.traffic.counters import Rises, read_rises

RANK_SH = Path(fabricproof.job.__file__).parent / "rank.sh"

#: sysfs shows the interfaces of the namespace that it was mounted in
NAMESPACE = ("unshare", "--net", "--mount", "bash", "-c")
READY = "mount -t sysfs sysfs /sys && ip link set lo up && "


def _rises(folder: Path, prepare: str, program: str, rail: str) -> Rises:
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    ended = subprocess.run(
        [*NAMESPACE, f"{READY}{prepare} && exec bash {RANK_SH} {program}"],
        env={"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "FABRICPROOF_LEG": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    record = folder / "rank.0.0"
    if not record.exists():
        pytest.skip(f"this kernel does not let us: {ended.stderr.strip()}")
    assert (ended.returncode, ended.stderr) == (0, "")
    return read_rises(gather([parse_rank(record.read_text(), "x")]).samples, [rail])


CABLE = "ip link add rail0 type veth peer name far && ip link set rail0 up && ip link set far up"


def test_a_link_that_flaps_under_the_program_is_an_error(tmp_path: Path) -> None:
    flap = "sh -c 'ip link set far down; sleep 0.2; ip link set far up; sleep 0.2'"
    (error,) = _rises(tmp_path, CABLE, flap, "rail0").errors
    assert error.startswith("carrier_changes of rail0 on ")
    assert error.endswith("the link went down or came up during the run")


def test_a_link_that_stays_up_is_quiet(tmp_path: Path) -> None:
    assert _rises(tmp_path, CABLE, "sleep 0.1", "rail0") == Rises()
