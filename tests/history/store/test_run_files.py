"""History: every number kept, like with like, whatever the files have been through."""

from __future__ import annotations

import errno
import gzip
import json
import math
import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_records import SITE, leg, quantity, run_id, write

from fabricproof.core.errors import InputMissingError, ParseError
from fabricproof.core.records import append_records
from fabricproof.history.store import FIELDS, Store, open_store, run_file
from fabricproof.history.store.model import FACTS
from fabricproof.nightly.log import log_file
from fabricproof.nodes.inventory.store import FOLDER as LOOKS
from fabricproof.nodes.inventory.store import keep_looks

FIRST, SECOND, THIRD = run_id(1), run_id(2), run_id(3)
RUNS = (FIRST, SECOND, THIRD)


def ids(store: Store) -> list[str]:
    return [each.run_id for each in store.runs]


def numbers(perflogs: Path) -> list[float]:
    store = open_store(perflogs, SITE)
    return store.samples(ids(store))["value"].to_list()


def values(store: Store) -> list[list[float | None]]:
    table = store.matrix(ids(store)).values.tolist()
    return [[None if math.isnan(each) else each for each in row] for row in table]


def test_a_site_without_any_history_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InputMissingError, match=r"nothing was measured on made yet.*next: fabric"):
        open_store(tmp_path, SITE)


def test_a_row_keeps_every_field_of_its_record(tmp_path: Path) -> None:
    """The columns are FIELDS and FACTS; what the tool measured beside its setting is no key."""
    path = write(tmp_path, [leg(FIRST), quantity(FIRST)])
    row = open_store(tmp_path, SITE).samples([FIRST]).row(0, named=True)
    assert tuple(row) == (*FIELDS, *FACTS)
    expected = {
        "site": SITE, "build": "0123456789ab", "nodes": "n1,n2", "rails": "rail0",
        "settings": "window_size=64", "quantity": "bandwidth_4MiB", "unit": "MB/s", "better": 1,
        "message_size": 4194304, "named": True, "run_id": FIRST, "attempt": 1, "counts": True,
        "value": 1000.0, "verdict": "PASS", "ceiling": 1200.0, "upper": None, "lower": 900.0,
        "inventory": "n1=aa,n2=bb", "file": str(path), "line": 2, "road_state": "PROVEN",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_a_record_without_some_keys_is_read_with_those_unknown(tmp_path: Path) -> None:
    old = quantity(FIRST)
    for name in ("stack_identity", "inventory", "tool_version", "attributes", "nodes"):
        del old[name]
    write(tmp_path, [old, quantity(SECOND, future={"nested": [1, {"deep": None}]})])
    first, second = open_store(tmp_path, SITE).samples(RUNS).iter_rows(named=True)
    assert (first["build"], first["nodes"], first["settings"], first["inventory"]) == ("",) * 4
    assert second["build"] == "0123456789ab"


def test_only_what_counted_makes_the_matrix_and_every_attempt_the_samples(tmp_path: Path) -> None:
    write(tmp_path, [quantity(FIRST, 10.0, counts=False), quantity(FIRST, 900.0, attempt=2)])
    store = open_store(tmp_path, SITE)
    assert store.samples([FIRST])["value"].to_list() == [10.0, 900.0]
    assert values(store) == [[900.0]]


@pytest.mark.parametrize("value", [0.0, -5.0, math.nan, math.inf])
def test_an_impossible_number_is_never_compared(value: float, tmp_path: Path) -> None:
    write(tmp_path, [quantity(FIRST, value, quantity_reason="odd")])
    matrix = open_store(tmp_path, SITE).matrix([FIRST])
    assert math.isnan(matrix.values[0, 0])
    assert matrix.set_aside == (((0, 0, "PASS: odd"),) if math.isfinite(value) else ())


def test_a_rate_of_errors_of_zero_is_a_good_one_and_not_set_aside(tmp_path: Path) -> None:
    lost = quantity(FIRST, 0.0, name="retransmitted_per_million_packets", quantity_unit="ppm")
    write(tmp_path, [lost])
    matrix = open_store(tmp_path, SITE).matrix([FIRST])
    assert (matrix.set_aside, matrix.verdicts) == ((), (("PASS",),))


def test_an_invalid_number_is_set_aside_and_a_missing_one_is_not(tmp_path: Path) -> None:
    write(tmp_path, [
        quantity(FIRST, 5000.0, quantity_verdict="INVALID", quantity_reason="above the link"),
        quantity(FIRST, None, name="latency", quantity_verdict="MISSING"),
    ])  # fmt: skip
    matrix = open_store(tmp_path, SITE).matrix([FIRST])
    assert [each[2] for each in matrix.set_aside] == ["INVALID: above the link"]
    assert matrix.verdicts == (("INVALID",), ("MISSING",))


def test_one_quantity_in_two_units_is_two_keys(tmp_path: Path) -> None:
    write(tmp_path, [quantity(FIRST), quantity(SECOND, 950.0, quantity_unit="MiB/s")])
    store = open_store(tmp_path, SITE)
    assert sorted(each.unit for each in store.matrix(RUNS).keys) == ["MB/s", "MiB/s"]
    assert values(store) == [[1000.0, None], [None, 950.0]]


def test_several_numbers_of_a_run_count_as_their_median_and_that_is_noted(tmp_path: Path) -> None:
    write(tmp_path, [quantity(FIRST, each, job_id=str(each)) for each in (1.0, 2.0, 40.0)])
    write(tmp_path, [quantity(SECOND, 1.0, counts=False), quantity(SECOND, 2.0, attempt=2)])
    store = open_store(tmp_path, SITE)
    assert values(store) == [[2.0, 2.0]]
    (note,) = store.notes
    assert note.startswith(f"run {FIRST}: 1 quantities have several")


def test_fields_that_may_differ_join_rows(tmp_path: Path) -> None:
    other = {"stack_identity": {"digest": "ffff"}, "nodes": ["x2", "n1"]}
    write(tmp_path, [quantity(FIRST), quantity(SECOND, 900.0, **other)])
    store = open_store(tmp_path, SITE)
    assert len(store.matrix(RUNS).keys) == 2
    assert len(store.matrix(RUNS, across=["build"]).keys) == 2
    (key,) = store.matrix(RUNS, across=["build", "nodes"]).keys
    assert (key.build, key.nodes) == ("*", "*")


def test_runs_tell_what_they_were_made_on_also_from_two_partitions(tmp_path: Path) -> None:
    """A node that changed within a run, or that nobody saw, has no inventory."""
    write(tmp_path, [quantity(FIRST, inventory={"n1": "aa", "n2": None}), leg(FIRST)])
    more = [quantity(FIRST, name="b", inventory={"n1": "zz", "n3": "cc"}), leg(FIRST, "FAIL")]
    append_records(tmp_path / SITE / "gpu" / f"{FIRST}.jsonl", more)
    (run,) = open_store(tmp_path, SITE).runs
    assert run.inventory == {"n1": None, "n2": None, "n3": "cc"}
    assert (run.rows, run.legs) == (2, {"PASS": 1, "FAIL": 1})


def test_a_file_that_cannot_be_read_is_no_shorter_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without permission, a link to nowhere, half a gzip: each is named."""
    path = write(tmp_path, [quantity(FIRST)])
    odd = path.with_name("second.jsonl")
    odd.symlink_to(tmp_path / "gone")
    for _ in range(2):
        with pytest.raises(InputMissingError, match=r"second\.jsonl: cannot be read"):
            open_store(tmp_path, SITE)
    odd.unlink()
    packed = path.with_name("old.jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes())[:-12])
    with pytest.raises(ParseError, match=r"old\.jsonl\.gz: damaged compressed"):
        open_store(tmp_path, SITE)
    packed.write_bytes(gzip.compress(path.read_bytes().replace(FIRST.encode(), SECOND.encode())))
    assert ids(open_store(tmp_path, SITE)) == [FIRST, SECOND]
    real = Path.iterdir

    def refusing(path: Path) -> Any:
        if path.name == "compute":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "iterdir", refusing)
    with pytest.raises(InputMissingError, match=r"compute: cannot be read: Permission denied"):
        open_store(tmp_path, SITE)


def test_what_is_not_read_is_noted(tmp_path: Path) -> None:
    """Records by another name or in a hidden folder, and perflogs of ReFrame without records."""
    path = write(tmp_path, [quantity(FIRST)])
    for name in ("records.jsonl.1", f"{SECOND}.jsonl.xz", "README", "state.log"):
        path.with_name(name).write_bytes(b"")
    append_records(tmp_path / SITE / ".old" / f"{SECOND}.jsonl", [quantity(SECOND)])
    log = tmp_path / SITE / "lost" / "OsuBandwidth.log"
    log.parent.mkdir()
    log.write_text("job_completion_time|run_id|system\n")
    notes = " ".join(open_store(tmp_path, SITE).notes)
    for name in ("records.jsonl.1", f"{SECOND}.jsonl.xz", f".old/{SECOND}.jsonl", "lost"):
        assert f"{name}: " in notes
    assert "README" not in notes


@pytest.mark.parametrize("partition", ["night", "tuning", "inventory", "all", "reports"])
def test_a_partition_may_have_any_name_that_slurm_takes(tmp_path: Path, partition: str) -> None:
    """What nights and inventories keep beside the partitions has names that none can have."""
    path = write(tmp_path, [quantity(FIRST)])
    path.parent.rename(path.parent.with_name(partition))
    append_records(log_file(tmp_path, SITE), [{"kind": "notice"}])
    keep_looks(tmp_path / SITE / LOOKS, tmp_path, ["n1"], run_id=FIRST, time="2026-11-01")
    store = open_store(tmp_path, SITE)
    assert (ids(store), store.notes) == ([FIRST], ())


def test_what_stands_twice_counts_once(tmp_path: Path) -> None:
    """``cat a a``, and a file that was copied into the folder or packed beside itself."""
    path = write(tmp_path, [quantity(FIRST), leg(FIRST), quantity(SECOND, 900.0)])
    path.write_bytes(path.read_bytes() * 2)
    shutil.copy(path, path.with_name("again.jsonl"))
    (path.parent / "packed.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    store = open_store(tmp_path, SITE)
    assert store.samples(RUNS).height == 2
    assert store.runs[0].legs == {"PASS": 1}
    assert sum("count once" in each or "counted once" in each for each in store.notes) == 3
    path.unlink()
    assert open_store(tmp_path, SITE).samples(RUNS).height == 2


def test_a_torn_last_line_is_passed_over_with_a_note(tmp_path: Path) -> None:
    """What a crash left: noted while it stands there, and after the next writer marked it."""
    path = write(tmp_path, [quantity(FIRST)])
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:200])
    note = f"{path}:2: a record torn by a crash was passed over"
    store = open_store(tmp_path, SITE)
    assert (ids(store), store.notes) == ([FIRST], (note,))
    write(tmp_path, [quantity(SECOND)])
    for _ in range(2):
        store = open_store(tmp_path, SITE)
        assert (ids(store), store.notes) == ([FIRST, SECOND], (note,))


def test_a_whole_last_line_without_its_end_counts(tmp_path: Path) -> None:
    path = write(tmp_path, [quantity(FIRST)])
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert open_store(tmp_path, SITE).notes == ()
    write(tmp_path, [quantity(SECOND)])
    store = open_store(tmp_path, SITE)
    assert (ids(store), store.notes) == ([FIRST, SECOND], ())
    assert store.samples(RUNS)["line"].to_list() == [1, 2]


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "quantity", "format": 1',
        "null",
        "[1]",
        "\0\0\0\0",
        '{"kind": "quantity"}',
        json.dumps({**quantity(SECOND), "format": 7}),
        json.dumps({**quantity(SECOND), "format": 1, "quantity_value": "fast"}),
        json.dumps({**quantity(SECOND), "format": 1, "quantity_verdict": None}),
        json.dumps({**quantity(SECOND), "format": 1, "run_id": None}),
        json.dumps({**quantity(SECOND), "format": 1, "nodes": 7}),
        json.dumps({**quantity(SECOND), "format": 1, "attempt": 10**30}),
    ],
    ids=lambda line: line[:20],
)
def test_a_damaged_line_is_named_each_time(line: str, tmp_path: Path) -> None:
    """No crash explains it: file and line, every time, and never a shorter result."""
    path = write(tmp_path, [quantity(FIRST)])
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    write(tmp_path, [quantity(THIRD)])
    for _ in range(2):
        with pytest.raises(ParseError, match=r"records\.jsonl:2: damaged record"):
            open_store(tmp_path, SITE)


def test_records_of_an_unknown_kind_are_noted_each_time(tmp_path: Path) -> None:
    """A verdict is not hidden by a wrong letter, and what a later version adds stops nobody."""
    path = write(tmp_path, [quantity(FIRST), leg(FIRST), leg(FIRST, kind="legs")])
    for _ in range(2):
        store = open_store(tmp_path, SITE)
        said = f"{path}:3: a record of an unknown kind, 'legs', was passed over"
        assert (ids(store), store.notes, store.runs[0].legs) == ([FIRST], (said,), {"PASS": 1})


def cut_short(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))


def write_over(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"1000.0", b"1111.0"))


def damage_the_table(path: Path) -> None:
    table = path.with_suffix(".parquet")
    table.write_bytes(table.read_bytes()[:-100])


def lose_the_table(path: Path) -> None:
    path.with_suffix(".parquet").unlink()


@pytest.mark.parametrize("change", [cut_short, write_over, damage_the_table, lose_the_table])
def test_the_answer_is_that_of_the_records_whatever_happens_beside_them(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    path = write(tmp_path, [quantity(FIRST), quantity(SECOND)])
    open_store(tmp_path, SITE)
    change(path)
    expected = [json.loads(line)["quantity_value"] for line in path.read_text().splitlines()]
    assert numbers(tmp_path) == expected


def test_a_run_that_has_ended_is_parsed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [quantity(FIRST)], f"{FIRST}.jsonl")
    open_store(tmp_path, SITE)
    write(tmp_path, [quantity(SECOND, 900.0)], f"{SECOND}.jsonl")
    parsed: list[str] = []
    real = run_file.read_table
    monkeypatch.setattr(
        run_file, "read_table", lambda data, path: parsed.append(path.stem) or real(data, path)
    )
    for _ in range(2):
        assert numbers(tmp_path) == [1000.0, 900.0]
    assert parsed == [SECOND]


def test_a_full_disk_costs_the_speed_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written stays in memory, beside what could; the next start tries again."""

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    write(tmp_path, [quantity(FIRST)], "a.jsonl")
    open_store(tmp_path, SITE)
    write(tmp_path, [quantity(SECOND, 900.0)], "b.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(run_file, "whole_file", full)
        store = open_store(tmp_path, SITE)
        assert store.matrix(RUNS).values.tolist() == [[1000.0, 900.0]]
        (note,) = store.notes
        assert "No space left on device" in note
    assert numbers(tmp_path) == [1000.0, 900.0]
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


def _read_in_another_process(perflogs: str) -> int:
    return len(numbers(Path(perflogs)))


def test_processes_that_read_while_another_writes_all_see_a_whole_history(tmp_path: Path) -> None:
    """Several at once, while records are appended: each sees some number of whole runs."""
    night = [quantity(run_id(1), name=f"q{each}") for each in range(20)]
    write(tmp_path, night)
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        asked = [pool.apply_async(_read_in_another_process, (str(tmp_path),)) for _ in range(6)]
        for day in range(2, 5):
            write(tmp_path, [{**each, "run_id": run_id(day)} for each in night])
        seen = [each.get(timeout=90) for each in asked]
    assert all(each % 20 == 0 and 20 <= each <= 80 for each in seen)
    assert len(numbers(tmp_path)) == 80


def test_the_parquet_files_of_all_runs_and_sites_are_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key has one number in all files; the page's query gives what it says, with DuckDB."""
    for site in ("made", "other"):
        for run in RUNS[:2]:
            path = tmp_path / site / "compute" / f"{run}.jsonl"
            append_records(path, [quantity(run, site=site)])
        open_store(tmp_path, site)
    table = pl.read_parquet(tmp_path / "*" / "*" / "*.parquet")
    assert table.height == 4
    assert table.group_by("site", "key").len()["len"].to_list() == [2, 2]
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "perflogs").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs" / "history.md").read_text("utf-8")
    query = page.partition("```sql")[2].partition("```")[0]
    assert duckdb.sql(query).fetchall() == [("openmpi5", "n1,n2", "rail0", 1000.0, 2)]


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
            append_records(place / SITE / "compute" / f"{run_id(day)}.jsonl", records)
        if looks[day - 1]:
            open_store(by_and_by, SITE)
    first, second = open_store(by_and_by, SITE), open_store(at_once, SITE)
    assert numbers(by_and_by) == expected
    assert first.runs == second.runs
    assert first.samples(ids(first)).drop("file").equals(second.samples(ids(second)).drop("file"))
    assert first.matrix(ids(first)).keys == second.matrix(ids(second)).keys
    assert first.matrix(ids(first)).values.tobytes() == second.matrix(ids(second)).values.tobytes()
