"""Two nights of a site never overlap, and a lock of the dead goes with them."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from fabricproof.core.errors import ExitStatus, OutputError
from fabricproof.nightly.lock import LOCK_FILE, NightRunsError, night_lock

HOLDER = """
import sys, time
from pathlib import Path
from fabricproof.nightly.lock import night_lock
with night_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""

CONTENDER = """
import os, sys, time
from pathlib import Path
from fabricproof.nightly.lock import NightRunsError, night_lock
folder, taken = Path(sys.argv[1]), 0
deadline = time.monotonic() + 60
while taken < 15 and time.monotonic() < deadline:
    try:
        with night_lock(folder):
            os.close(os.open(folder / "inside", os.O_CREAT | os.O_EXCL))
            time.sleep(0.001)
            os.unlink(folder / "inside")
            taken += 1
    except NightRunsError:
        time.sleep(0.001)
print(taken)
"""


def started(code, folder):
    command = [sys.executable, "-c", textwrap.dedent(code), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "night"


@pytest.fixture
def other(folder):
    """Another process that holds the lock."""
    process = started(HOLDER, folder)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_is_refused_with_its_own_status_and_the_first_named(folder, other):
    with pytest.raises(NightRunsError) as refused, night_lock(folder):
        pass
    assert refused.value.exit_status is ExitStatus.BUSY == 75
    assert f"process {other.pid}, since " in str(refused.value)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_lock_of_a_dead_process_is_free(folder, other, how):
    other.send_signal(how)
    other.wait()
    with night_lock(folder):
        assert f"process {os.getpid()}" in (folder / LOCK_FILE).read_text()


def test_a_lock_is_free_after_an_error(folder):
    with pytest.raises(KeyboardInterrupt), night_lock(folder):
        raise KeyboardInterrupt
    assert started(HOLDER.replace("time.sleep(600)", ""), folder).communicate()[0] == "held\n"


def test_a_lock_is_held_to_its_end(folder):
    """Nothing that a night does with the folder's files drops it."""
    with night_lock(folder):
        refused = started(
            CONTENDER.replace("taken < 15", "taken == 0").replace("60", "0.3"), folder
        )
        assert refused.communicate()[0] == "0\n"


def test_four_that_contend_are_never_inside_together(folder):
    """Two inside at once would fail to create the same file."""
    contenders = [started(CONTENDER, folder) for _ in range(4)]
    assert [each.communicate(timeout=90)[0] for each in contenders] == ["15\n"] * 4


def test_a_folder_that_cannot_be_written_is_one_clear_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot take the lock"), night_lock(tmp_path / "file"):
        pass
