"""Two nights of a site never overlap, and a lock of the dead goes by itself."""

import errno
import json
import os
import subprocess
import sys
import time

import pytest

from fabricproof.core.errors import ExitStatus, OutputError
from fabricproof.nightly import lock
from fabricproof.nightly.lock import LOCK_FILE, NightRunsError, myself, night_lock


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "night"


def leave(folder, age=0.0, **changed):
    """Leave the lock of somebody else, made fresh ``age`` seconds ago."""
    folder.mkdir(exist_ok=True)
    path = folder / LOCK_FILE
    path.write_text(json.dumps(vars(myself()) | changed))
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def test_the_second_is_refused_with_its_own_status_and_the_first_named(folder):
    with night_lock(folder), pytest.raises(NightRunsError) as refused, night_lock(folder):
        pass
    assert refused.value.exit_status is ExitStatus.BUSY == 75
    assert f"process {os.getpid()}" in str(refused.value)


def test_a_lock_is_free_when_its_night_is_over(folder):
    for _ in range(2):
        with night_lock(folder) as notes:
            assert notes == ()
            assert (folder / LOCK_FILE).exists()
        assert not (folder / LOCK_FILE).exists()


def test_a_lock_is_free_after_an_error(folder):
    with pytest.raises(KeyboardInterrupt), night_lock(folder):
        raise KeyboardInterrupt
    assert not (folder / LOCK_FILE).exists()


def test_the_lock_of_a_dead_process_is_taken_over_and_said(folder):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    leave(folder, pid=done.pid)
    with night_lock(folder) as notes:
        assert json.loads((folder / LOCK_FILE).read_text())["pid"] == os.getpid()
    assert "there is no such process" in notes[0]


def test_a_pid_that_came_again_is_not_the_holder(folder):
    leave(folder, ticks="1")
    with night_lock(folder) as notes:
        assert "there is no such process" in notes[0]


def test_a_host_that_was_started_anew_holds_nothing(folder):
    leave(folder, boot="another pid:[1]")
    with night_lock(folder) as notes:
        assert "was started anew" in notes[0]


@pytest.mark.parametrize("age", [0, 500])
def test_another_host_that_gives_signs_of_life_holds_it(folder, age):
    leave(folder, age=age, host="admin2", boot="b pid:[1]", pid=1)
    with pytest.raises(NightRunsError, match="admin2, process 1"), night_lock(folder):
        pass


def test_another_host_that_gives_none_holds_nothing(folder):
    leave(folder, age=700, host="admin2", boot="b pid:[1]", pid=1)
    with night_lock(folder) as notes:
        assert "no sign of life for 12 minutes" in notes[0]


def test_another_container_of_this_host_is_judged_by_its_signs_of_life(folder):
    boot = myself().boot.split(" ")[0]
    leave(folder, boot=f"{boot} pid:[1]", pid=1)
    with pytest.raises(NightRunsError), night_lock(folder):
        pass


def test_a_damaged_lock_is_somebodys_until_it_is_old(folder):
    path = leave(folder)
    path.write_text("{")
    with pytest.raises(NightRunsError), night_lock(folder):
        pass
    then = time.time() - 700
    os.utime(path, (then, then))
    with night_lock(folder) as notes:
        assert "says nothing, and is old" in notes[0]


def test_it_is_kept_fresh(folder):
    with night_lock(folder, beat=0.01):
        path = folder / LOCK_FILE
        os.utime(path, (0, 0))
        deadline = time.monotonic() + 10
        while path.stat().st_mtime == 0:
            assert time.monotonic() < deadline, "nobody made it fresh"
            time.sleep(0.01)


def test_a_file_system_without_links_is_locked_by_exclusive_creation(folder, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(lock.os, "link", refuse)
    with night_lock(folder), pytest.raises(NightRunsError), night_lock(folder):
        pass


def test_a_folder_that_cannot_be_written_is_one_clear_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot take the lock"), night_lock(tmp_path / "file"):
        pass


CONTENDER = """
import os, sys, tempfile, time
from pathlib import Path
from fabricproof.nightly.lock import NightRunsError, night_lock
folder, machine = Path(sys.argv[1]), sys.argv[2]
tempfile.tempdir = machine  # each is a machine of its own: only the shared lock is common
taken = 0
deadline = time.monotonic() + 60
while taken < 15 and time.monotonic() < deadline:
    try:
        with night_lock(folder):
            os.close(os.open(folder / "inside", os.O_CREAT | os.O_EXCL))
            time.sleep(0.001)
            os.unlink(folder / "inside")
            taken += 1
            if taken % 3 == 0:  # dies: leaves a lock of a process that is not there
                (folder / "lock.json").write_text('{"host": "h", "boot": "b", "pid": 1, '
                    '"ticks": "1", "start": "s"}')
                os.utime(folder / "lock.json", (1, 1))
    except NightRunsError:
        time.sleep(0.001)
print(taken)
"""


def test_machines_that_find_a_dead_lock_at_once_never_hold_it_together(folder, tmp_path):
    """Four contenders, many dead locks: two inside at once would fail to create the same file."""
    leave(folder, age=700, host="admin2", boot="b pid:[1]", pid=1)
    contenders = []
    for number in range(4):
        machine = tmp_path / str(number)
        machine.mkdir()
        contenders.append(
            subprocess.Popen(
                [sys.executable, "-c", CONTENDER, folder, machine],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    ended = [each.communicate(timeout=90) for each in contenders]
    assert [err for _, err in ended] == [""] * 4
    assert [out.strip() for out, _ in ended] == ["15"] * 4


def test_a_takeover_that_died_halfway_is_forgotten(folder):
    leave(folder, age=700, host="admin2", boot="b pid:[1]", pid=1)
    half = folder / f"{LOCK_FILE}.takeover"
    half.write_text("")
    os.utime(half, (1, 1))
    with pytest.raises(NightRunsError), night_lock(folder):
        pass
    with night_lock(folder):
        pass


def test_a_lock_that_was_taken_over_by_another_is_not_removed(folder):
    with night_lock(folder):
        (folder / LOCK_FILE).write_text(json.dumps(vars(myself()) | {"pid": 1}))
    assert (folder / LOCK_FILE).exists()


@pytest.mark.parametrize(
    "text",
    [
        '{"host": "h", "boot": null, "pid": 1, "ticks": "", "start": ""}',
        '{"host": "h", "boot": "", "pid": "\\u0000", "ticks": "", "start": ""}',
        '{"host": "h", "boot": "", "pid": true, "ticks": "", "start": ""}',
        '{"host": [], "boot": "", "pid": 1, "ticks": "", "start": ""}',
        "1",
        "",
    ],
)
@pytest.mark.parametrize("age", [0, 10_000])
def test_a_damaged_shared_lock_is_held_until_it_is_old(folder, text, age):
    folder.mkdir()
    path = folder / LOCK_FILE
    path.write_text(text)
    then = time.time() - age
    os.utime(path, (then, then))
    if age:
        with night_lock(folder) as notes:
            assert "it says nothing, and is old" in notes[0]
    else:
        with pytest.raises(NightRunsError) as refused, night_lock(folder):
            pass
        assert refused.value.source == str(path)
