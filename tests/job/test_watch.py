"""The scheduler is watched while ReFrame waits: silence ends the run, a hiccup does not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from fabricproof.core.errors import UnavailableError
from fabricproof.job.run.start import run_reframe
from fabricproof.job.run.watch import PATIENCE_SECONDS, PATIENCE_VARIABLE, Watch, patience_seconds


def _sleeper(seconds: float, *, stubborn: bool = False) -> subprocess.Popen[str]:
    deaf = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); " if stubborn else ""
    code = f"{deaf}print('up', flush=True); import time; time.sleep({seconds})"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize("stubborn", [False, True])
def test_silence_ends_the_process_even_one_that_will_not_stop(stubborn: bool) -> None:
    process = _sleeper(60, stubborn=stubborn)
    with process, Watch(process, lambda: False, patience=0.2, farewell=0.3) as watch:
        assert process.wait(20) != 0
    assert watch.gave_up


def test_a_hiccup_is_no_death() -> None:
    def answers() -> Iterator[bool]:
        yield from (False, False)
        while True:
            yield True

    said = answers()
    process = _sleeper(1)
    with process, Watch(process, lambda: next(said), patience=0.6) as watch:
        assert process.wait(20) == 0
    assert not watch.gave_up


@pytest.mark.parametrize("nonsense", ["", "soon", "-1", "inf", "nan", "0"])
def test_nonsense_leaves_the_patience_as_it_is(
    nonsense: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATIENCE_VARIABLE, nonsense)
    assert patience_seconds() == PATIENCE_SECONDS


def test_reframe_is_not_waited_for_when_slurm_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv(PATIENCE_VARIABLE, "0.2")
    monkeypatch.setattr("fabricproof.job.run.start.reframe_command", lambda: "/bin/sleep")
    environment = {
        "RFM_REPORT_FILE": f"{tmp_path}/report.json",
        "FABRICPROOF_REFRAME_LOG": f"{tmp_path}/log",
    }
    with pytest.raises(UnavailableError, match="stopped answering during the run"):
        run_reframe(["60"], environment, print, alive=lambda: False)
