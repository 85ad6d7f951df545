"""ReFrame's perflogs and result store: for lost runs, and held together with the records."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_records import COLUMNS, SITE, perflog, perflog_row, quantity, results, run_id, write

from fabricproof.core.errors import InputMissingError
from fabricproof.history.store import open_store
from fabricproof.history.store import results as results_module
from fabricproof.history.store.copy import FOLDER
from fabricproof.history.store.model import FIELDS
from fabricproof.history.store.schema import schema, told_apart_by

FIRST, SECOND = run_id(1), run_id(2)


def test_a_run_without_records_is_filled_from_the_perflog(tmp_path: Path) -> None:
    """One value per quantity; what the perflog does not say stays unknown and joins nothing."""
    write(tmp_path, [quantity(FIRST)])
    path = perflog(tmp_path, [perflog_row(FIRST), perflog_row(SECOND, "900.0")])
    store = open_store(tmp_path, SITE)
    assert [each.run_id for each in store.runs] == [FIRST, SECOND]
    assert store.notes == ()
    row = store.samples([SECOND]).row(0, named=True)
    expected = {
        "value": 900.0, "verdict": "PASS", "leg": "rail0", "quantity": "bandwidth_4MiB",
        "unit": "MB/s", "message_size": 4 << 20, "build": "0123456789ab", "nodes": "n1,n2",
        "rails": "", "settings": "", "tool_version": "", "check": "OsuBandwidth", "better": 1,
        "reference": 1000.0, "lower": 900.0, "upper": None, "job_id": "7", "counts": True,
        "road_state": None, "stage_folder": None, "inventory": "", "file": str(path), "line": 3,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert len(store.matrix([FIRST, SECOND]).keys) == 2
    assert (
        len(store.matrix([FIRST, SECOND], across=["rails", "settings", "tool_version"]).keys) == 1
    )


def test_records_speak_for_a_run_that_both_know(tmp_path: Path) -> None:
    """Nothing counts twice; a value that differs is a note, and the record counts."""
    write(tmp_path, [quantity(FIRST), quantity(SECOND)])
    perflog(tmp_path, [perflog_row(FIRST), perflog_row(SECOND, "777.0")])
    for _ in range(2):
        store = open_store(tmp_path, SITE)
        assert store.samples([FIRST, SECOND])["value"].to_list() == [1000.0, 1000.0]
        (note,) = store.notes
        assert note == (
            f"run {SECOND}: 1 numbers differ between records and ReFrame's perflog; the records "
            "count: rail0.bandwidth_4MiB 1000.0 against 777.0"
        )


def test_what_only_the_perflog_has_of_a_run_is_counted(tmp_path: Path) -> None:
    """Records that were lost are no smaller run; one that did not count is not lost."""
    write(tmp_path, [quantity(FIRST), quantity(FIRST, counts=False, name="latency_1B")])
    rows = [perflog_row(FIRST, perf_var=f"rail0.{name}") for name in ("latency_1B", "bandwidth_1B")]
    perflog(tmp_path, [perflog_row(FIRST), *rows, perflog_row(SECOND)])
    for _ in range(2):
        (note,) = open_store(tmp_path, SITE).notes
        assert note.startswith(
            f"run {FIRST}: 1 quantities stand in ReFrame's perflog and not in the records"
        )


def test_a_run_that_lost_its_records_changes_to_the_perflog(tmp_path: Path) -> None:
    """Lost today, filled today; found again, the records speak again."""
    path = write(tmp_path, [quantity(FIRST, 999.0)])
    perflog(tmp_path, [perflog_row(FIRST, "999.0")])
    assert open_store(tmp_path, SITE).samples([FIRST])["road_state"].to_list() == ["PROVEN"]
    data = path.read_bytes()
    path.unlink()
    assert open_store(tmp_path, SITE).samples([FIRST])["road_state"].to_list() == [None]
    path.write_bytes(data)
    assert open_store(tmp_path, SITE).samples([FIRST])["road_state"].to_list() == ["PROVEN"]


def test_columns_are_found_by_the_heading_that_holds_where_they_stand(tmp_path: Path) -> None:
    """Several headings in one file, other columns, other orders."""
    path = perflog(tmp_path, [perflog_row(FIRST)])
    few = ["perf_value", "system", "run_id", "partition", "environ", "unique_name", "perf_var",
           "perf_unit", "result"]  # fmt: skip
    row = perflog_row(SECOND, "900.0")
    with path.open("a") as file:
        file.write("|".join(few) + "\n" + "|".join(row[each] for each in few) + "\n")
        file.write("|".join(COLUMNS) + "\n")
    perflog(tmp_path, [perflog_row(run_id(3), "800.0")])
    store = open_store(tmp_path, SITE)
    samples = store.samples(each.run_id for each in store.runs)
    assert dict(zip(samples["run_id"], samples["value"], strict=True)) == {
        FIRST: 1000.0, SECOND: 900.0, run_id(3): 800.0,
    }  # fmt: skip
    assert samples["line"].to_list() == [2, 4, 6]


def test_somebody_elses_perflog_in_reframes_own_form_is_read(tmp_path: Path) -> None:
    """One row per job, columns named after variables, no run: the day stands for the run."""
    path = tmp_path / SITE / "compute" / "Stream.log"
    path.parent.mkdir(parents=True)
    path.write_text(
        "job_completion_time|version|display_name|system|partition|environ|jobid|result|"
        "copy_bw_value|copy_bw_unit|copy_bw_ref|copy_bw_lower_thres|copy_bw_upper_thres|"
        "add_bw_value|add_bw_unit|add_bw_ref|add_bw_lower_thres|add_bw_upper_thres\n"
        f"2026-11-03T10:00:00+00:00|4.7.0|Stream %n=2|{SITE}|compute|gnu|9|fail|"
        "90.0|MB/s|100.0|-0.05|null|101.0|MB/s|100.0|-0.05|null\n"
    )
    store = open_store(tmp_path, SITE)
    (run,) = store.runs
    assert run.run_id == "20261103T000000Z-perflog"
    samples = store.samples([run.run_id])
    told = [tuple(each) for each in samples.select("check", "quantity", "value", "verdict").rows()]
    assert told == [("Stream", "copy_bw", 90.0, "FAIL"), ("Stream", "add_bw", 101.0, "UNJUDGED")]


def test_a_perflog_of_nothing_but_its_heading_is_no_history(tmp_path: Path) -> None:
    path = perflog(tmp_path, [perflog_row(FIRST)])
    path.write_text("|".join(COLUMNS) + "\n")
    with pytest.raises(InputMissingError, match="nothing was measured"):
        open_store(tmp_path, SITE)
    perflog(tmp_path, [perflog_row(SECOND, environ=name) for name in ("gnu", "null", "intel")])
    store = open_store(tmp_path, SITE)
    assert store.samples([SECOND])["stack"].to_list() == ["gnu", "", "intel"]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "site": st.just("s"),
            "stack": st.sampled_from(["gnu", "intel"]),
            "leg": st.sampled_from(["rail0", "rail1"]),
            "message_size": st.sampled_from([None, 1, 2]),
            "better": st.sampled_from([0, 1]),
        }
    ),
    max_size=6,
)


@given(ROWS, ROWS)
def test_keys_are_found_by_the_fields_that_differ_as_by_all(
    rows: list[dict[str, object]], known: list[dict[str, object]]
) -> None:
    kinds = schema(FIELDS)
    seen = pl.DataFrame([{**dict.fromkeys(FIELDS), **each} for each in rows], schema=kinds)
    keys = pl.DataFrame([{**dict.fromkeys(FIELDS), **each} for each in known], schema=kinds)
    keys = keys.unique(maintain_order=True).with_row_index("key")
    fields, alike = told_apart_by(seen, keys)
    by_all = seen.join(keys, on=FIELDS, how="left", nulls_equal=True, maintain_order="left")
    by_few = seen.join(
        alike.select("key", *fields), on=fields, how="left", nulls_equal=True, maintain_order="left"
    )
    assert by_few["key"].to_list() == by_all["key"].to_list()


@pytest.mark.parametrize(
    ("value", "result", "verdict"),
    [("1000.0", "pass", "PASS"), ("10.0", "fail", "FAIL"), ("1000.0", "fail", "UNJUDGED"),
     ("null", "pass", "MISSING")],
)  # fmt: skip
def test_a_perflog_says_no_more_than_it_knows(
    value: str, result: str, verdict: str, tmp_path: Path
) -> None:
    """The check's result is not the number's: only a passed check passes its numbers."""
    perflog(tmp_path, [perflog_row(FIRST, value, result=result)])
    assert open_store(tmp_path, SITE).samples([FIRST])["verdict"].item() == verdict


def test_a_line_of_a_perflog_that_is_not_whole_is_named(tmp_path: Path) -> None:
    """A torn line in the middle is passed over with a note; one at the end waits for its end."""
    path = perflog(tmp_path, [perflog_row(FIRST)])
    with path.open("a") as file:
        file.write("2026-11-01T02:10:00+00:00|2026\n")
    perflog(tmp_path, [perflog_row(SECOND)])
    with path.open("a") as file:
        file.write("2026-11-0")
    store = open_store(tmp_path, SITE)
    assert [each.run_id for each in store.runs] == [FIRST, SECOND]
    assert store.notes == (f"{path}:3: not 26 columns as its heading says, passed over",)


def test_a_run_that_only_the_result_store_has_is_taken_from_there(tmp_path: Path) -> None:
    """Third in order: records, perflog, result store; each for what the one before lacks."""
    write(tmp_path, [quantity(FIRST)])
    results(tmp_path, FIRST, 5.0)
    results(tmp_path, SECOND, 950.0)
    for _ in range(2):
        store = open_store(tmp_path, SITE)
        samples = store.samples([FIRST, SECOND])
        assert samples["value"].to_list() == [1000.0, 950.0]
        assert samples["file"][1].endswith("results.db")
        assert store.notes == ()
    with sqlite3.connect(tmp_path / "results.db") as base:
        base.execute("DELETE FROM sessions WHERE uuid LIKE ?", (f"%{SECOND}",))
    base.close()
    assert [each.run_id for each in open_store(tmp_path, SITE).runs] == [FIRST]


def test_result_store_and_perflog_of_one_run_are_the_same_keys(tmp_path: Path) -> None:
    """A run filled from either joins with one filled from the other."""
    perflog(tmp_path, [perflog_row(FIRST)])
    results(tmp_path, SECOND, 950.0)
    matrix = open_store(tmp_path, SITE).matrix([FIRST, SECOND])
    assert matrix.values.tolist() == [[1000.0, 950.0]]


def test_a_locked_result_store_is_a_note_and_no_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes to it: what it alone has is left out this time, and said so."""
    write(tmp_path, [quantity(FIRST)])
    path = results(tmp_path, SECOND)
    monkeypatch.setattr(results_module, "_PATIENCE", 0.05)
    with sqlite3.connect(path) as base:
        base.execute("BEGIN EXCLUSIVE")
        store = open_store(tmp_path, SITE)
        base.rollback()
    base.close()
    assert [each.run_id for each in store.runs] == [FIRST]
    assert any("database is locked" in each and "left out" in each for each in store.notes)
    assert len(open_store(tmp_path, SITE).runs) == 2


def test_a_locked_result_store_that_is_all_there_is_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing measured and nothing readable are two things; afterwards it is read and kept."""
    path = results(tmp_path, FIRST)
    monkeypatch.setattr(results_module, "_PATIENCE", 0.05)
    with sqlite3.connect(path) as base:
        base.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputMissingError, match=r"no run of made could.*database is locked"):
            open_store(tmp_path, SITE)
        base.rollback()
    base.close()
    with pytest.raises(InputMissingError, match=r"nothing was measured on other yet: expected"):
        open_store(tmp_path, "other")
    assert not (tmp_path / "other").exists()
    store = open_store(tmp_path, SITE)
    assert (len(store.runs), store.notes) == (1, ())
    assert (tmp_path / SITE / FOLDER / "manifest.json").exists()
    again = open_store(tmp_path, SITE)
    assert (again.runs, again.notes) == (store.runs, ())


def test_a_result_store_that_is_none_is_a_note(tmp_path: Path) -> None:
    """A damaged database does not take the records down with it."""
    write(tmp_path, [quantity(FIRST)])
    (tmp_path / "results.db").write_bytes(b"no database " * 100)
    store = open_store(tmp_path, SITE)
    assert [each.run_id for each in store.runs] == [FIRST]
    assert any("results.db: not read" in each for each in store.notes)
