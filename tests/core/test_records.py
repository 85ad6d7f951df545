"""Records: all or none, whatever crashes or fills up; what is damaged is named with its line."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fabricproof
from fabricproof.core.errors import ExitStatus, InputMissingError, OutputError, ParseError
from fabricproof.core.records import (
    QuantityRecord,
    append_records,
    may_exist,
    read_records,
    record_files,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**53), max_value=2**53)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
RECORDS = st.lists(
    st.dictionaries(st.text().filter(lambda key: key != "format"), JSON, max_size=4), max_size=4
)


def _read(path: Path) -> list[dict[str, object]]:
    return [
        {key: value for key, value in record.items() if key != "format"}
        for record in read_records(path)
    ]


@settings(max_examples=30)  # each writes to the disk and waits for it
@given(first=RECORDS, second=RECORDS)
def test_what_was_appended_is_read_in_its_order(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[dict[str, object]],
    second: list[dict[str, object]],
) -> None:
    path = tmp_path_factory.mktemp("records") / "records.jsonl"
    append_records(path, first)
    append_records(path, second)
    assert (_read(path) if path.exists() else []) == first + second


def test_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "site" / "partition" / "records.jsonl"
    append_records(path, [{"a": 1}])
    assert _read(path) == [{"a": 1}]


def test_no_records_leave_no_file(tmp_path: Path) -> None:
    append_records(tmp_path / "records.jsonl", [])
    assert not (tmp_path / "records.jsonl").exists()


# A crash in the middle of a line.


def _tear(path: Path, kept: int) -> bytes:
    """Append a record of which only the first ``kept`` bytes arrived; return the whole line."""
    line = json.dumps({"format": 1, "value": {"deep": {"er": [1, 2.5]}}}).encode()
    with path.open("ab") as file:
        file.write(line[:kept])
    return line


LENGTH = len(json.dumps({"format": 1, "value": {"deep": {"er": [1, 2.5]}}}))


@pytest.mark.parametrize("kept", range(1, LENGTH))
def test_a_torn_last_line_is_passed_over_and_named(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "records.jsonl"
    append_records(path, [{"a": 1}])
    _tear(path, kept)
    notes: list[str] = []
    assert [each["a"] for each in read_records(path, on_torn=notes.append)] == [1]
    assert notes == [f"{path}:2: a record torn by a crash was passed over"]


@pytest.mark.parametrize("kept", range(1, LENGTH))
def test_a_torn_line_spoils_nothing_that_comes_after(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "records.jsonl"
    append_records(path, [{"a": 1}])
    _tear(path, kept)
    append_records(path, [{"a": 2}, {"a": 3}])
    notes: list[str] = []
    assert [each["a"] for each in read_records(path, on_torn=notes.append)] == [1, 2, 3]
    assert len(notes) == 1


def test_a_record_that_lost_only_its_newline_is_still_one(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    _tear(path, LENGTH)
    assert len(_read(path)) == 1
    append_records(path, [{"a": 2}])
    assert len(_read(path)) == 2


def test_a_writer_killed_with_9_loses_only_what_it_was_writing(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    program = (
        "import sys, pathlib\n"
        "from fabricproof.core.records import append_records\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "for number in range(10**9):\n"
        "    append_records(path, [{'number': number, 'filling': 'x' * 2000}] * 20)\n"
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(5)]
        writer.send_signal(signal.SIGKILL)
        told += [int(line) for line in writer.stdout if line.endswith("\n")]
    append_records(path, [{"number": -1}])
    counts: dict[object, int] = {}
    for record in read_records(path):
        counts[record["number"]] = counts.get(record["number"], 0) + 1
    assert all(counts[number] == 20 for number in told)
    assert counts[-1] == 1


# No room.


def _limited(path: Path, limit: int) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys, pathlib\n"
        "from fabricproof.cli.main import group, main\n"
        "from fabricproof.core.records import append_records\n"
        "group.main = lambda **_: append_records(\n"
        "    pathlib.Path(sys.argv[1]), [{'a': 'x' * 100, 'n': n} for n in range(50)])\n"
        "main()\n"
    )

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-B", "-c", program, str(path)],
        preexec_fn=limit_files,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("room", [0, 1, 100, 3000])
def test_without_room_earlier_records_stay_and_none_of_the_new_ones(
    tmp_path: Path, room: int
) -> None:
    path = tmp_path / "records.jsonl"
    append_records(path, [{"a": 1}, {"a": 2}])
    before = path.read_bytes()
    ended = _limited(path, len(before) + room)
    assert ended.returncode == ExitStatus.IO
    assert len(ended.stderr.splitlines()) == 1
    assert "cannot keep the records: File too large" in ended.stderr
    assert path.read_bytes() == before


def test_a_full_device_is_one_error(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    path = tmp_path / "records.jsonl"
    path.symlink_to("/dev/full")
    with pytest.raises(OutputError, match="cannot keep the records: No space left on device"):
        append_records(path, [{"a": 1}])


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot keep the records"):
        append_records(tmp_path / "file" / "records.jsonl", [{"a": 1}])


# Several writers.


def _write_many(path: Path, writer: int) -> None:
    for number in range(25):
        append_records(path, [{"writer": writer, "n": number, "x": "x" * 5000}] * 2)


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    context = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
    writers = [context.Process(target=_write_many, args=(path, each)) for each in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 4
    seen = [(record["writer"], record["n"]) for record in read_records(path)]
    assert sorted(seen) == sorted((w, n) for w in range(4) for n in range(25) for _ in range(2))
    for one in range(4):
        mine = [n for writer, n in seen if writer == one]
        assert mine == sorted(mine)


def test_a_writer_waits_for_the_one_before_it(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    append_records(path, [{"a": 1}])
    before = path.read_bytes()
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer = threading.Thread(target=append_records, args=(path, [{"a": 2}]))
        writer.start()
        writer.join(0.2)
        assert writer.is_alive()
        assert path.read_bytes() == before
    writer.join(60)
    assert [each["a"] for each in read_records(path)] == [1, 2]


# Damage.


@pytest.mark.parametrize(
    "line",
    [
        b'{"format": 1, "a": }',
        b"[1, 2]",
        b'{"format": 2}',
        b'{"a": 1}',
        b"\xff\xfe",
        b"no json",
        b'{"format": 1, "a": 1} {"format": 1}',
    ],
    ids=lambda line: repr(line[:20]),
)
def test_a_damaged_line_is_an_error_with_its_line(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "records.jsonl"
    append_records(path, [{"a": 1}])
    with path.open("ab") as file:
        file.write(line + b"\n")
    append_records(path, [{"a": 2}])
    with pytest.raises(ParseError, match=r"records\.jsonl:2: damaged record"):
        list(read_records(path))


def test_a_partition_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One folder without permission must not make a shorter list: a glob passes over it."""
    append_records(tmp_path / "compute" / "records.jsonl", [{"kind": "leg"}])
    append_records(tmp_path / "gpu" / "records.jsonl", [{"kind": "leg"}])
    append_records(tmp_path / ".night" / "state.jsonl", [{"kind": "notice"}])
    assert [path.parent.name for path in record_files(tmp_path)] == ["compute", "gpu"]
    assert record_files(tmp_path / "nowhere") == []
    real = Path.iterdir

    def refusing(path: Path) -> Any:
        if path.name == "gpu":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "iterdir", refusing)
    with pytest.raises(InputMissingError, match=r"gpu: cannot be read: Permission denied"):
        record_files(tmp_path)


def test_what_a_record_lacks_is_no_pass_and_nothing_that_a_summary_names() -> None:
    bare = QuantityRecord.read({"quantity_verdict": "UNJUDGED"})
    assert (bare.value, bare.named, bare.is_open, bare.nodes) == (None, False, False, ())
    with pytest.raises(ValueError, match="None is not a valid Verdict"):
        QuantityRecord.read({"quantity_name": "latency_8B"})


def test_keys_of_quantities_are_spelled_in_one_module() -> None:
    """All others take them from QUANTITY_KEYS, or have the fields of a record."""
    source = Path(fabricproof.__file__).parent
    spelled = re.compile(r"""["']quantity_""")
    found = {path for path in source.rglob("*.py") if spelled.search(path.read_text())}
    assert found == {source / "core" / "measure.py"}


def test_what_may_be_there_is_not_taken_for_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that may not be searched nobody knows; root may search all, so it is refused."""
    file = tmp_path / "references.toml"
    assert not may_exist(file)
    file.symlink_to(tmp_path / "unmounted" / "references.toml")
    assert may_exist(file)
    assert not may_exist(file / "below")

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "lstat", refuse)
    assert may_exist(tmp_path / "state.jsonl")
