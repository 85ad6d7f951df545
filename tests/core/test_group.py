"""Commands in groups of their own: what is ended at the time limit, at Ctrl-C, and at the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from fabricproof.core.group import run_group
from process_groups import is_gone

#: leads its group, says so, and leaves a child in it that cares for no signal but the last
CHILD = "trap '' INT TERM; echo $$ >pid; echo begun; sleep 60 {} &"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def leader(place: Path) -> int:
    return int((place / "pid").read_text())


def test_status_and_both_streams() -> None:
    script = ["sh", "-c", "cat; echo $WORD >&2; exit 3"]
    words = {"WORD": "two", "PATH": os.environ["PATH"]}
    assert run_group(script, 20, environment=words, text="one\n") == (3, "one\ntwo\n", "")
    assert run_group(script, 20, environment=words, apart=True) == (3, "", "two\n")
    assert run_group(["printf", "\\344"], 20) == (0, "\N{REPLACEMENT CHARACTER}", "")


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("script", ["", "wait"])
def test_at_the_time_limit_all_of_it_ends_and_what_it_said_is_kept(
    place: Path, script: str, stays: bool
) -> None:
    # Where the leader has ended, the child holds the pipe.
    command = ["sh", "-c", CHILD.format("") + script]
    assert run_group(command, 0.7, stays=stays) == (None, "begun\n", "")
    assert is_gone(leader(place))


@pytest.mark.parametrize("stays", [False, True])
def test_at_an_interrupt_all_of_it_ends(place: Path, stays: bool) -> None:
    def interrupt() -> None:
        while not (place / "pid").exists():
            time.sleep(0.02)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_group(["sh", "-c", CHILD.format("") + "wait"], 60, stays=stays)
    assert is_gone(leader(place))


def test_what_it_leaves_behind_ends_with_it_or_stays(place: Path) -> None:
    command = ["sh", "-c", CHILD.format(">/dev/null 2>&1")]
    assert run_group(command, 20)[0] == 0
    assert is_gone(leader(place))
    assert run_group(command, 20, stays=True)[0] == 0
    os.killpg(leader(place), signal.SIGKILL)  # there is somebody to end
    assert is_gone(leader(place))


def test_who_is_asked_first_may_clean_up(place: Path) -> None:
    script = "trap 'touch asked; exit' TERM; echo $$ >pid; sleep 60 & wait"
    assert run_group(["sh", "-c", script], 0.7, first=signal.SIGTERM)[0] is None
    assert (place / "asked").exists()
    assert is_gone(leader(place))
