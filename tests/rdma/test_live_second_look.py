"""What CI does with live tests that are red once, and with what is left open (ci/live.sh)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from rdma_session import ROOT

from busy_machine import other_cause, run_of

#: as the scripts of ci/ call it; a new cluster lets pass what failed for once only
_SCRIPT = """
set -euo pipefail
new_cluster() { touch new_cluster; [ ! -e refuses ]; }
. {root}/ci/live.sh
live -m 'not slow' tests_that_live
echo "all of it ended"
"""

_SOUND = "def test_sound():\n    open('sound', 'a').write('x')\n"
_ONCE = "import os\ndef test_red_once():\n    assert os.path.exists('new_cluster')\n"
_TWICE = "def test_red_twice():\n    assert False\n"
_THEN_SKIPPED = """
import os, pytest
def test_then_skipped():
    if os.path.exists("new_cluster"):
        pytest.skip("it does not answer")
    assert False
"""


def _live(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run ``live`` on test files, each of one test."""
    program = folder / ".venv" / "bin" / "pytest"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest "$@"\n')
    program.chmod(0o755)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "tests_that_live").mkdir()
    for number, text in enumerate(tests):
        (folder / "tests_that_live" / f"test_{number}.py").write_text(text)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        ["bash", "-c", _SCRIPT.replace("{root}", str(ROOT))],
        cwd=folder,
        env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_is_red_once_runs_alone_on_a_new_cluster_and_both_outcomes_are_told(
    tmp_path: Path,
) -> None:
    done = _live(tmp_path, _SOUND, _ONCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "sound").read_text() == "x"  # not the one that was green
    assert "1 failed, 1 passed" in done.stdout
    assert "red once and green on a new cluster" in done.stdout


def test_red_twice_is_red_and_ends_the_script(tmp_path: Path) -> None:
    done = _live(tmp_path, _SOUND, _ONCE, _TWICE)
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "all of it ended" not in done.stdout


def test_green_at_once_needs_no_new_cluster(tmp_path: Path) -> None:
    done = _live(tmp_path, _SOUND)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all of it ended" in done.stdout
    assert not (tmp_path / "new_cluster").exists()


@pytest.mark.parametrize(("text", "status"), [("import nothing_of_that_name\n", 2), ("", 5)])
def test_what_is_no_failed_test_is_not_looked_at_again(
    text: str, status: int, tmp_path: Path
) -> None:
    done = _live(tmp_path, text)
    assert done.returncode == status
    assert not (tmp_path / "new_cluster").exists()


def test_a_new_cluster_that_does_not_come_up_is_red(tmp_path: Path) -> None:
    (tmp_path / "refuses").touch()
    done = _live(tmp_path, _ONCE)
    assert done.returncode == 1
    assert "all of it ended" not in done.stdout
    assert done.stdout.count("1 failed") == 1


def test_what_was_red_and_is_skipped_then_is_red(tmp_path: Path) -> None:
    done = _live(tmp_path, _ONCE, _THEN_SKIPPED)
    assert done.returncode == 1
    assert "1 passed, 1 skipped" in done.stdout
    assert "skipped on a new cluster: that is red" in done.stdout
    assert "all of it ended" not in done.stdout


def _report(
    verdict: str, *quantities: Mapping[str, object], num_pass: int = 1
) -> dict[str, object]:
    leg = {"verdict": verdict, "check": "OsuBandwidth", "stack": "openmpi5", "reason": "why"}
    return {"counts": {"PASS": num_pass}, "legs": [{**leg, "quantities": list(quantities)}]}


_OPEN = {"verdict": "UNJUDGED", "is_open": True}
_DISTURBED = {"verdict": "UNJUDGED", "disturbance": "starved"}
_NO_REFERENCE = {"verdict": "UNJUDGED", "disturbance": None, "is_open": False}


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (_report("UNJUDGED", _OPEN, _DISTURBED, {"verdict": "PASS"}), ""),
        (_report("SKIPPED"), ""),
        (_report("UNJUDGED", _OPEN, num_pass=0), "nothing is PASS"),
        (_report("UNJUDGED"), "UNJUDGED OsuBandwidth openmpi5: why"),
        (_report("UNJUDGED", _OPEN, _NO_REFERENCE), "UNJUDGED OsuBandwidth openmpi5: why"),
        (_report("FAIL", _OPEN), "FAIL OsuBandwidth openmpi5: why"),
        (_report("MISSING"), "MISSING OsuBandwidth openmpi5: why"),
    ],
)
def test_a_busy_machine_excuses_what_says_so_and_nothing_else(
    report: dict[str, object], expected: str
) -> None:
    assert other_cause(report) == expected


def test_the_run_is_meant_and_not_the_looks_at_it() -> None:
    looks = [{"run_id": name, "labels": ["night-look"]} for name in ("c", "d")]
    assert run_of([{"run_id": "a", "labels": []}, {"run_id": "b", "labels": ["x"]}, *looks]) == "b"


@pytest.mark.parametrize(
    ("status", "says", "expected"), [(0, 1, 0), (5, 0, 0), (5, 1, 5), (1, 0, 1), (4, 0, 4)]
)
def test_only_unjudged_is_excused_and_only_where_it_is_said_so(
    status: int, says: int, expected: int, tmp_path: Path
) -> None:
    program = tmp_path / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho "$@" >asked\nexit {says}\n')
    program.chmod(0o755)
    script = f"set -e; . {ROOT}/ci/live.sh; unless_busy site sh -c 'exit {status}'"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == expected
    asked = tmp_path / "asked"
    assert asked.exists() is (status == 5)
    assert not asked.exists() or asked.read_text() == "tests/busy_machine.py site\n"
