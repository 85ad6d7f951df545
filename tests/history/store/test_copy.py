"""The columnar copy: never the truth, never in the way."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_records import SITE, leg, quantity, run_id, write

from fabricproof.core.records import append_records
from fabricproof.history.store import copy as copy_module
from fabricproof.history.store import ingest as ingest_module
from fabricproof.history.store import open_store
from fabricproof.history.store.copy import FOLDER

FIRST, SECOND = run_id(1), run_id(2)


def folder_of(perflogs: Path) -> Path:
    return perflogs / SITE / FOLDER


def numbers(perflogs: Path) -> list[float]:
    store = open_store(perflogs, SITE)
    return store.samples(each.run_id for each in store.runs)["value"].to_list()


def truncate_a_segment(folder: Path) -> None:
    path = next(folder.glob("rows-*.parquet"))
    path.write_bytes(path.read_bytes()[:-100])


def lose_the_keys(folder: Path) -> None:
    next(folder.glob("keys-*.parquet")).unlink()


def spoil_the_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format": 1, "sources"')


@pytest.mark.parametrize("damage", [truncate_a_segment, lose_the_keys, spoil_the_manifest])
def test_a_damaged_copy_is_made_again(damage: object, tmp_path: Path) -> None:
    """Whatever happened to it, the answer is that of the plain files, with a note."""
    write(tmp_path, [quantity(FIRST), quantity(SECOND, 900.0)])
    open_store(tmp_path, SITE)
    assert callable(damage)
    damage(folder_of(tmp_path))
    store = open_store(tmp_path, SITE)
    assert store.notes == (f"{folder_of(tmp_path)}: the copy was damaged and is made again",)
    assert numbers(tmp_path) == [1000.0, 900.0]
    assert open_store(tmp_path, SITE).notes == ()


def test_a_copy_of_another_format_is_made_again_without_a_word(tmp_path: Path) -> None:
    """After an update nobody needs to know."""
    write(tmp_path, [quantity(FIRST)])
    open_store(tmp_path, SITE)
    path = folder_of(tmp_path) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))
    assert open_store(tmp_path, SITE).notes == ()
    assert json.loads(path.read_text())["format"] == copy_module.FORMAT


def test_the_copy_may_be_thrown_away(tmp_path: Path) -> None:
    """Nothing is in it that is not in the plain files."""
    write(tmp_path, [leg(FIRST, "FAIL"), quantity(FIRST)])
    first = open_store(tmp_path, SITE)
    for path in folder_of(tmp_path).iterdir():
        path.unlink()
    again = open_store(tmp_path, SITE)
    assert (again.runs, again.notes) == (first.runs, ())


def test_a_full_disk_costs_the_speed_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that cannot be written stay in memory; the next start tries again."""

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    write(tmp_path, [quantity(FIRST), quantity(SECOND, 900.0)])
    with monkeypatch.context() as patch:
        patch.setattr(copy_module, "whole_file", full)
        store = open_store(tmp_path, SITE)
        assert store.samples([FIRST])["value"].to_list() == [1000.0]
        assert store.matrix([FIRST, SECOND]).values.tolist() == [[1000.0, 900.0]]
        (note,) = store.notes
        assert "cannot be kept (No space left on device); nothing is lost" in note
    assert not list(folder_of(tmp_path).glob("*.parquet"))
    assert numbers(tmp_path) == [1000.0, 900.0]
    assert (folder_of(tmp_path) / "manifest.json").exists()


def test_a_disk_that_fills_half_way_leaves_no_half_of_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some segments on disk, some in memory: one answer now, and a whole copy later."""
    monkeypatch.setattr(ingest_module, "SEGMENT_ROWS", 1)
    write(tmp_path, [quantity(FIRST)], "a.jsonl")
    write(tmp_path, [quantity(SECOND, 900.0)], "b.jsonl")
    real, written = copy_module.whole_file, []

    def filling(path: Path) -> AbstractContextManager[BinaryIO]:
        written.append(path)
        if len(written) > 2:
            raise OSError(28, "No space left on device")
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(copy_module, "whole_file", filling)
        assert numbers(tmp_path) == [1000.0, 900.0]
    assert not (folder_of(tmp_path) / "manifest.json").exists()
    assert numbers(tmp_path) == [1000.0, 900.0]


def test_perflogs_that_may_not_be_written_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's perflogs, read-only."""
    write(tmp_path, [quantity(FIRST)])

    def refuse(self: Path, *arguments: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    store = open_store(tmp_path, SITE)
    assert store.samples([FIRST])["value"].to_list() == [1000.0]
    assert "Permission denied" in store.notes[0]
    assert not folder_of(tmp_path).exists()


def test_a_copy_that_may_not_be_read_costs_the_speed_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's .index of mode 700: the plain files are read, with a note."""
    write(tmp_path, [quantity(FIRST)])
    open_store(tmp_path, SITE)
    before = sorted(folder_of(tmp_path).iterdir())

    def refusing(real: Callable[..., Any]) -> Callable[..., Any]:
        def asked(path: Any, *arguments: Any, **named: Any) -> Any:
            if folder_of(tmp_path) in Path(path).parents:
                raise PermissionError(13, "Permission denied")
            return real(path, *arguments, **named)

        return asked

    with monkeypatch.context() as patch:
        for name in ("stat", "open"):
            patch.setattr(Path, name, refusing(getattr(Path, name)))
        patch.setattr(os, "open", refusing(os.open))
        store = open_store(tmp_path, SITE)
    (note,) = store.notes
    assert "cannot be kept (Permission denied); nothing is lost" in note
    assert store.samples([FIRST])["value"].to_list() == [1000.0]
    assert sorted(folder_of(tmp_path).iterdir()) == before


def test_a_file_system_without_locks_does_not_stop_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock saves work; it is not what keeps the copy whole."""

    def none(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(copy_module.fcntl, "flock", none)
    folder_of(tmp_path).parent.mkdir(parents=True)
    records = [{"format": 1, **quantity(FIRST)}]
    text = "".join(json.dumps(each, sort_keys=True) + "\n" for each in records)
    (tmp_path / SITE / "compute").mkdir()
    (tmp_path / SITE / "compute" / "records.jsonl").write_text(text)
    assert numbers(tmp_path) == [1000.0]
    assert (folder_of(tmp_path) / "manifest.json").exists()


def test_another_that_holds_the_lock_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process must not stop everybody."""
    write(tmp_path, [quantity(FIRST)])
    folder_of(tmp_path).mkdir()
    monkeypatch.setattr(copy_module, "_PATIENCE", 0.1)
    with (folder_of(tmp_path) / "lock").open("w") as held:
        copy_module.fcntl.flock(held, copy_module.fcntl.LOCK_EX)
        assert numbers(tmp_path) == [1000.0]


def _read_in_another_process(perflogs: str) -> int:
    store = open_store(Path(perflogs), SITE)
    return store.samples(each.run_id for each in store.runs).height


def test_processes_that_read_while_another_writes_all_see_a_whole_history(tmp_path: Path) -> None:
    """Several at once, while records are appended: each sees some number of whole runs."""
    for day in range(1, 6):
        write(tmp_path, [quantity(run_id(day), name=f"q{each}") for each in range(20)])
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        asked = [pool.apply_async(_read_in_another_process, (str(tmp_path),)) for _ in range(6)]
        for day in range(6, 9):
            write(tmp_path, [quantity(run_id(day), name=f"q{each}") for each in range(20)])
        seen = [each.get(timeout=90) for each in asked]
    assert all(each % 20 == 0 and 100 <= each <= 160 for each in seen)
    assert len(numbers(tmp_path)) == 160


def test_small_segments_of_many_nights_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand nights are not a thousand files."""
    monkeypatch.setattr(ingest_module, "_SMALL_SEGMENTS", 3)
    for day in range(1, 8):
        write(tmp_path, [quantity(run_id(day), float(day))])
        open_store(tmp_path, SITE)
    manifest = json.loads((folder_of(tmp_path) / "manifest.json").read_text())
    (source,) = manifest["sources"].values()
    assert len(source["segments"]) <= 4
    assert numbers(tmp_path) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    nights=st.lists(
        st.lists(
            st.tuples(
                st.floats(1e-3, 1e12), st.sampled_from(["MB/s", "us", "x"]), st.booleans(),
                st.sampled_from(["q1", "q2", "q\u00e9\u2028\"|\\"]),
            ),
            min_size=1, max_size=5,
        ),
        min_size=1, max_size=4,
    ),
    looks=st.lists(st.booleans(), min_size=4, max_size=4),
)  # fmt: skip
def test_however_often_one_looks_in_between_the_history_is_the_same(
    nights: list[list[tuple[float, str, bool, str]]],
    looks: list[bool],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Law: reading by and by gives what reading at once gives, exactly the numbers written."""
    by_and_by, at_once = (tmp_path_factory.mktemp("perflogs") for _ in range(2))
    expected: list[float] = []
    for day, night in enumerate(nights, start=1):
        records = [
            quantity(
                run_id(day), value, quantity_unit=unit, counts=counts, name=name, job_id=str(at)
            )
            for at, (value, unit, counts, name) in enumerate(night)
        ]
        expected += [each["quantity_value"] for each in records]
        for place in (by_and_by, at_once):
            append_records(place / SITE / "compute" / "records.jsonl", records)
        if looks[day - 1]:
            open_store(by_and_by, SITE)
    first, second = open_store(by_and_by, SITE), open_store(at_once, SITE)
    assert numbers(by_and_by) == expected
    assert first.runs == second.runs
    ids = [each.run_id for each in first.runs]
    assert first.samples(ids).drop("file").equals(second.samples(ids).drop("file"))
    assert first.matrix(ids).keys == second.matrix(ids).keys
    assert first.matrix(ids).values.tobytes() == second.matrix(ids).values.tobytes()
