"""The ports run unchanged, with sizes and repetitions of ours."""

import subprocess
import sys
from pathlib import Path

import pytest

from fabricproof.stacks.portrunner import compile_port, loaded_libraries, read_segment, run_port
from fabricproof.stacks.workload import PORT_RUNNER

#: written like mpi4py's point-to-point ports: the list of sizes is made inside the function.
INNER = """
def osu_fake(BENCHMARH="x", skip=10, loop=100, window_size=64, skip_large=2, loop_large=20,
             window_size_large=64, large_message_size=8192, MAX_MSG_SIZE=1 << 22):
    print("# title")
    message_sizes = [2**i for i in range(30)]
    for size in message_sizes:
        if size > MAX_MSG_SIZE:
            break
        if size > large_message_size:
            skip, loop = skip_large, loop_large
        print(f"{size} {loop} {skip} {window_size}")
"""

#: written like the collectives' ports: a function makes the list.
HELPER = """
def osu_fake(skip=1000, loop=10000, MAX_MSG_SIZE=1 << 20):
    print("# title")
    for size in message_sizes(MAX_MSG_SIZE):
        print(f"{size} {loop} {skip}")


def message_sizes(max_size):
    return [0] + [(1 << i) for i in range(30) if (1 << i) <= max_size]
"""


def _port(folder: Path, source: str) -> Path:
    path = folder / "osu_fake.py"
    path.write_text(source)
    return path


def test_each_segment_has_its_own_repetitions_under_one_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run_port(_port(tmp_path, INNER), [([1, 2], 50, 5, 64), ([16384], 3, 1, 16)])
    assert (capsys.readouterr().out.splitlines()) == [
        "# title",
        "1 50 5 64",
        "2 50 5 64",
        "16384 3 1 16",
    ]


def test_sizes_of_collectives_come_from_outside_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run_port(_port(tmp_path, HELPER), [([0, 4], 7, 2, 1), ([8], 3, 1, 1)])
    assert capsys.readouterr().out.splitlines() == ["# title", "0 7 2", "4 7 2", "8 3 1"]


def test_a_port_without_messages_runs_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source = 'def osu_fake(skip_large=1, loop_large=2):\n    print(f"0 {loop_large}")\n'
    run_port(_port(tmp_path, source), [([0], 9, 1, 1), ([8], 3, 1, 1)])
    assert capsys.readouterr().out == "0 9\n"


def test_an_unknown_kind_of_port_is_refused():
    with pytest.raises(ValueError, match="unknown version of this port"):
        compile_port("def osu_x():\n    for size in message_sizes: pass\n", "osu_x.py")


@pytest.mark.parametrize("text", ["1,2", "1:2:3", "a:1:1:1", "1:2:3:4:5"])
def test_a_malformed_segment_is_refused(text: str):
    with pytest.raises(ValueError, match=r"unpack|literal"):
        read_segment(text)


@pytest.mark.parametrize("arguments", [[], ["x.py"], ["x.py", "1:2"]])
def test_wrong_usage_is_one_line(arguments: list[str]):
    done = subprocess.run(
        [sys.executable, str(PORT_RUNNER), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


MAPS = """\
55d0-55d1 r--p 00000000 fe:01 131 /usr/bin/python3.11
7f10-7f11 r--p 00000000 fe:01 132 /opt/my mpi/lib/libmpi.so.40.40.11
7f11-7f12 r-xp 00001000 fe:01 132 /opt/my mpi/lib/libmpi.so.40.40.11
7f12-7f13 r-xp 00001000 fe:01 133 /opt/mpi/lib/libmpi_cxx.so.40.30.1
7f13-7f14 r-xp 00001000 fe:01 134 /opt/abi/libmpi_abi.so.1.0.0 (deleted)
7f14-7f15 rw-p 00000000 00:00 0
"""


def test_the_mpi_libraries_in_memory_are_told_once_each():
    assert loaded_libraries(MAPS) == [
        "/opt/my mpi/lib/libmpi.so.40.40.11",
        "/opt/abi/libmpi_abi.so.1.0.0",
    ]


def test_they_are_written_where_the_job_wants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "loaded"
    monkeypatch.setenv("FABRICPROOF_LOADED", str(file))
    run_port(_port(tmp_path, "def osu_fake():\n    print('0 1')\n"), [([1], 1, 1, 1)])
    assert file.read_text() == ""  # no MPI in this process
    assert capsys.readouterr().out == "0 1\n"
