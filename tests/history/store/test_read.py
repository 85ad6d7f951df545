"""History: every number kept, like with like, whatever the files have been through."""

from __future__ import annotations

import errno
import gzip
import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from made_records import SITE, leg, quantity, run_id, write

from fabricproof.core.errors import InputMissingError, ParseError
from fabricproof.core.records import append_records
from fabricproof.history.store import FIELDS, Store, open_store
from fabricproof.history.store import ingest as ingest_module
from fabricproof.history.store import parse as parse_module
from fabricproof.history.store.model import FACTS
from fabricproof.nightly.log import log_file
from fabricproof.nodes.inventory.store import FOLDER as LOOKS
from fabricproof.nodes.inventory.store import keep_looks

FIRST, SECOND, THIRD = run_id(1), run_id(2), run_id(3)
RUNS = (FIRST, SECOND, THIRD)


def ids(store: Store) -> list[str]:
    return [each.run_id for each in store.runs]


def values(store: Store) -> list[list[float | None]]:
    table = store.matrix(ids(store)).values.tolist()
    return [[None if math.isnan(each) else each for each in row] for row in table]


def test_a_site_without_any_history_says_what_to_run(tmp_path: Path) -> None:
    """Nothing measured is an error with a next step, not an empty table."""
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


def test_records_of_a_time_before_some_keys_are_read_with_those_unknown(tmp_path: Path) -> None:
    """Format 1 without later keys: empty in the key, null in the facts; unknown keys ignored."""
    old = quantity(FIRST)
    for name in ("stack_identity", "inventory", "tool_version", "attributes", "nodes"):
        del old[name]
    write(tmp_path, [old, quantity(SECOND, future={"nested": [1, {"deep": None}]})])
    store = open_store(tmp_path, SITE)
    first, second = store.samples(RUNS).iter_rows(named=True)
    assert (first["build"], first["nodes"], first["settings"], first["inventory"]) == ("",) * 4
    assert second["build"] == "0123456789ab"
    assert len(store.matrix(RUNS).keys) == 2


def test_only_what_counted_makes_the_matrix_and_every_attempt_the_samples(tmp_path: Path) -> None:
    """A first attempt that was taken back stays visible, and out of the decision."""
    write(tmp_path, [quantity(FIRST, 10.0, counts=False), quantity(FIRST, 900.0, attempt=2)])
    store = open_store(tmp_path, SITE)
    assert store.samples([FIRST])["value"].to_list() == [10.0, 900.0]
    assert values(store) == [[900.0]]


@pytest.mark.parametrize("value", [0.0, -5.0, math.nan, math.inf])
def test_an_impossible_number_is_kept_and_never_compared(value: float, tmp_path: Path) -> None:
    """Zero, negative, NaN and infinite values are samples, set aside with a reason."""
    write(tmp_path, [quantity(FIRST, value, quantity_reason="odd")])
    store = open_store(tmp_path, SITE)
    kept = store.samples([FIRST])["value"].item()
    assert kept == value or (math.isnan(kept) and math.isnan(value))
    matrix = store.matrix([FIRST])
    assert math.isnan(matrix.values[0, 0])
    assert matrix.set_aside == ((0, 0, "PASS: odd"),)


def test_a_rate_of_errors_of_zero_is_a_good_one_and_not_set_aside(tmp_path: Path) -> None:
    lost = quantity(FIRST, 0.0, name="retransmitted_per_million_packets", quantity_unit="ppm")
    write(tmp_path, [lost])
    matrix = open_store(tmp_path, SITE).matrix([FIRST])
    assert matrix.set_aside == ()
    assert matrix.verdicts == (("PASS",),)


def test_an_invalid_number_is_set_aside_and_a_missing_one_is_not(tmp_path: Path) -> None:
    """INVALID was measured; MISSING was not."""
    write(tmp_path, [
        quantity(FIRST, 5000.0, quantity_verdict="INVALID", quantity_reason="above the link"),
        quantity(FIRST, None, name="latency", quantity_verdict="MISSING"),
    ])  # fmt: skip
    matrix = open_store(tmp_path, SITE).matrix([FIRST])
    assert [each[2] for each in matrix.set_aside] == ["INVALID: above the link"]
    assert matrix.verdicts == (("INVALID",), ("MISSING",))


def test_one_quantity_in_two_units_is_two_keys(tmp_path: Path) -> None:
    """Mixed units never meet."""
    write(tmp_path, [quantity(FIRST), quantity(SECOND, 950.0, quantity_unit="MiB/s")])
    matrix = open_store(tmp_path, SITE).matrix(RUNS)
    assert sorted(each.unit for each in matrix.keys) == ["MB/s", "MiB/s"]
    assert values(open_store(tmp_path, SITE)) == [[1000.0, None], [None, 950.0]]


def test_several_numbers_of_a_run_count_as_their_median(tmp_path: Path) -> None:
    """The run is what is replicated; that there were several is said, of later nights too."""
    write(tmp_path, [quantity(FIRST, each, job_id=str(each)) for each in (1.0, 2.0, 40.0)])
    told = "1 quantities have several counted numbers in one run: their median is used"
    for _ in range(2):
        store = open_store(tmp_path, SITE)
        assert (values(store), store.notes) == ([[2.0]], (f"run {FIRST}: {told}",))
    write(tmp_path, [quantity(SECOND, 1.0, counts=False), quantity(SECOND, 2.0, attempt=2)])
    assert open_store(tmp_path, SITE).notes == (f"run {FIRST}: {told}",)
    write(tmp_path, [quantity(SECOND, 3.0, attempt=3)])
    (note,) = open_store(tmp_path, SITE).notes
    assert note == f"run {FIRST} (and 1 more runs): 2{told[1:]}"


def test_fields_that_may_differ_join_rows(tmp_path: Path) -> None:
    """``across`` is the only way in which unlike keys meet."""
    other = {"stack_identity": {"digest": "ffff"}, "nodes": ["x2", "n1"]}
    write(tmp_path, [quantity(FIRST), quantity(SECOND, 900.0, **other)])
    store = open_store(tmp_path, SITE)
    assert len(store.matrix(RUNS).keys) == 2
    assert len(store.matrix(RUNS, across=["build"]).keys) == 2
    (key,) = store.matrix(RUNS, across=["build", "nodes"]).keys
    assert (key.build, key.nodes) == ("*", "*")


def test_runs_tell_what_they_were_made_on(tmp_path: Path) -> None:
    """A node that changed within a run, or that nobody saw, has no inventory."""
    write(tmp_path, [
        quantity(FIRST, inventory={"n1": "aa", "n2": None}),
        quantity(FIRST, name="b", inventory={"n1": "zz", "n2": None, "n3": "cc"}),
        leg(FIRST), leg(FIRST, "FAIL"), leg(FIRST),
    ])  # fmt: skip
    (run,) = open_store(tmp_path, SITE).runs
    assert run.inventory == {"n1": None, "n2": None, "n3": "cc"}
    assert (run.rows, run.legs) == (2, {"PASS": 2, "FAIL": 1})


def test_a_night_is_added_without_reading_the_rest_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy makes only the new end of a file dear."""
    path = write(tmp_path, [quantity(FIRST)])
    open_store(tmp_path, SITE)
    before = path.stat().st_size
    write(tmp_path, [quantity(SECOND)])
    parsed: list[int] = []
    real = ingest_module.parse_records

    def watched(data: bytes, file: str, first_line: int) -> Any:
        parsed.append(len(data))
        assert first_line == 2
        return real(data, file, first_line)

    monkeypatch.setattr(ingest_module, "parse_records", watched)
    store = open_store(tmp_path, SITE)
    assert ids(store) == [FIRST, SECOND]
    assert parsed == [path.stat().st_size - before - 1]
    assert store.samples(RUNS)["line"].to_list() == [1, 2]
    assert store.notes == ()


def cut_short(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))


def write_over(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"1000.0", b"1111.0"))


def put_another(path: Path) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(path.read_bytes())
    new.replace(path)


@pytest.mark.parametrize("change", [cut_short, write_over, put_another])
def test_a_file_that_is_not_the_same_any_more_is_read_anew(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    """Cut, written over or replaced: the copy follows the truth and says that it did."""
    path = write(tmp_path, [quantity(FIRST), quantity(SECOND)])
    open_store(tmp_path, SITE)
    change(path)
    store = open_store(tmp_path, SITE)
    expected = [json.loads(line)["quantity_value"] for line in path.read_text().splitlines()]
    assert store.samples(RUNS)["value"].to_list() == expected
    assert any("read anew" in each for each in store.notes)


def test_a_file_of_other_permissions_is_not_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was proven unchanged is not parsed again, whole lines and a last one without end."""
    path = write(tmp_path, [quantity(FIRST), quantity(SECOND)])
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    open_store(tmp_path, SITE)
    path.chmod(0o600)
    monkeypatch.setattr(ingest_module, "parse_records", None)
    store = open_store(tmp_path, SITE)
    assert (ids(store), store.notes) == ([FIRST, SECOND], ())


def test_a_rotated_file_is_known_by_its_new_name(tmp_path: Path) -> None:
    """records.jsonl becomes records-2026-10.jsonl, then .gz: nothing lost, nothing twice."""
    path = write(tmp_path, [quantity(FIRST)])
    open_store(tmp_path, SITE)
    old = path.rename(path.with_name("records-2026-10.jsonl"))
    write(tmp_path, [quantity(SECOND, 900.0)])
    store = open_store(tmp_path, SITE)
    assert (values(store), store.notes) == ([[1000.0, 900.0]], ())
    assert str(old) in store.samples([FIRST])["file"].to_list()
    with gzip.open(old.with_name(f"{old.name}.gz"), "wb") as packed:
        packed.write(old.read_bytes())
    both = open_store(tmp_path, SITE)
    assert values(both) == [[1000.0, 900.0]]
    assert any("counted once" in each for each in both.notes)
    old.unlink()
    after = open_store(tmp_path, SITE)
    assert (values(after), after.samples(RUNS).height) == ([[1000.0, 900.0]], 2)


def test_a_damaged_compressed_file_is_named(tmp_path: Path) -> None:
    """Half a gzip is an error, not half a history."""
    path = write(tmp_path, [quantity(FIRST)])
    packed = path.with_name("records-old.jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes())[:-12])
    with pytest.raises(ParseError, match=r"records-old\.jsonl\.gz: damaged compressed"):
        open_store(tmp_path, SITE)


def test_a_partition_that_cannot_be_read_is_no_shorter_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without permission is named; a glob would have passed over it."""
    path = write(tmp_path, [quantity(FIRST)])
    other = tmp_path / SITE / "gpu" / "records.jsonl"
    other.parent.mkdir()
    other.write_bytes(path.read_bytes().replace(FIRST.encode(), SECOND.encode()))
    assert ids(open_store(tmp_path, SITE)) == [FIRST, SECOND]
    real = Path.iterdir

    def refusing(path: Path) -> Any:
        if path.name == "gpu":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "iterdir", refusing)
    with pytest.raises(InputMissingError, match=r"gpu: cannot be read: Permission denied"):
        open_store(tmp_path, SITE)


def test_records_of_an_unknown_name_are_noted(tmp_path: Path) -> None:
    """What logrotate leaves is not read, and that is said."""
    path = write(tmp_path, [quantity(FIRST)])
    for name in ("records.jsonl.1", "records.jsonl.xz", "n1.jsonl.2", "README", "state.log"):
        path.with_name(name).write_bytes(b"")
    notes = [each for each in open_store(tmp_path, SITE).notes if "not read" in each]
    assert [each.partition(": ")[0] for each in notes] == [
        str(path.with_name(name)) for name in ("n1.jsonl.2", "records.jsonl.1", "records.jsonl.xz")
    ]


@pytest.mark.parametrize("partition", ["night", "tuning", "inventory", "ab", "all", "reports"])
def test_a_partition_may_have_any_name_that_slurm_takes(tmp_path: Path, partition: str) -> None:
    """What nights and inventories keep beside the partitions has names that none can have."""
    for run in RUNS[:2]:
        path = write(tmp_path, [quantity(run)])
    path.parent.rename(path.parent.with_name(partition))
    append_records(log_file(tmp_path, SITE), [{"kind": "notice"}])
    keep_looks(tmp_path / SITE / LOOKS, tmp_path, ["n1"], run_id=FIRST, time="2026-11-01")
    store = open_store(tmp_path, SITE)
    assert ids(store) == [FIRST, SECOND]
    assert store.notes == ()


def test_records_in_a_hidden_folder_are_noted(tmp_path: Path) -> None:
    write(tmp_path, [quantity(FIRST)])
    hidden = tmp_path / SITE / ".old" / "records.jsonl"
    append_records(hidden, [quantity(SECOND)])
    assert (
        f"{hidden}: not read, its folder begins with a dot" in open_store(tmp_path, SITE).notes[0]
    )


def test_files_of_several_nodes_are_one_history(tmp_path: Path) -> None:
    """Any name below a partition is read."""
    for node, run in (("n1", FIRST), ("n2", SECOND)):
        write(tmp_path, [quantity(run)], f"{node}.jsonl")
    assert ids(open_store(tmp_path, SITE)) == [FIRST, SECOND]


def test_a_file_that_was_copied_into_the_folder_counts_once(tmp_path: Path) -> None:
    """Identical lines are one measurement; when the first copy goes, the second still tells."""
    path = write(tmp_path, [quantity(FIRST), leg(FIRST), quantity(SECOND, 900.0)])
    twin = path.with_name("again.jsonl")
    shutil.copy(path, twin)
    store = open_store(tmp_path, SITE)
    assert store.samples(RUNS).height == 2
    assert store.runs[0].legs == {"PASS": 1}
    assert any("2 lines" in each and "counted once" in each for each in store.notes)
    twin.unlink()
    assert open_store(tmp_path, SITE).samples(RUNS).height == 2
    shutil.copy(path, twin)
    path.unlink()
    assert open_store(tmp_path, SITE).samples(RUNS).height == 2


def test_a_file_that_holds_itself_twice_counts_once(tmp_path: Path) -> None:
    """``cat a a``: within one piece of a file too."""
    path = write(tmp_path, [quantity(FIRST), quantity(SECOND)])
    path.write_bytes(path.read_bytes() * 2)
    store = open_store(tmp_path, SITE)
    assert store.samples(RUNS).height == 2
    assert any("counted once" in each for each in store.notes)


@pytest.mark.parametrize("kind", ["dangling link", "folder"])
def test_a_file_that_cannot_be_read_is_said_each_time_until_it_is_mended(
    kind: str, tmp_path: Path
) -> None:
    """The copy remembered it half and nothing of the history could be read any more."""
    path = write(tmp_path, [quantity(FIRST)])
    odd = path.with_name("second.jsonl")
    for is_known in (False, True):
        if kind == "folder":
            odd.mkdir()
        else:
            odd.symlink_to(tmp_path / "gone")
        for _ in range(2):
            with pytest.raises(InputMissingError, match=r"second\.jsonl: cannot be read"):
                open_store(tmp_path, SITE)
        odd.rmdir() if kind == "folder" else odd.unlink()
        assert ids(open_store(tmp_path, SITE)) == [FIRST]
        if not is_known:
            write(tmp_path, [quantity(SECOND)], odd.name)
            assert ids(open_store(tmp_path, SITE)) == [FIRST, SECOND]
            odd.unlink()


def test_a_torn_last_line_is_passed_over_with_a_note(tmp_path: Path) -> None:
    """What a crash left: noted while it stands there, and after the next writer marked it."""
    path = write(tmp_path, [quantity(FIRST)])
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:200])
    note = f"{path}:2: a record torn by a crash was passed over"
    for _ in range(2):
        store = open_store(tmp_path, SITE)
        assert (ids(store), store.notes) == ([FIRST], (note,))
    write(tmp_path, [quantity(SECOND)])
    for _ in range(2):
        store = open_store(tmp_path, SITE)
        assert (ids(store), store.notes) == ([FIRST, SECOND], (note,))


def test_a_whole_last_line_without_its_end_counts(tmp_path: Path) -> None:
    """A file that somebody wrote without a last newline loses nothing."""
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
        '{"kind": "quantity"}',
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
    path.write_text("".join(f"{each}\n" for each in path.read_text().splitlines() if each != line))
    assert ids(open_store(tmp_path, SITE)) == [FIRST, THIRD]


def test_lines_that_are_not_as_we_write_them_are_given_to_polars_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wrote the keys in another order: a call for each line took half of the time."""
    lines = [{"format": 1, **quantity(FIRST, job_id=str(job))} for job in range(40)]
    path = write(tmp_path, [leg(FIRST)])
    path.write_text(path.read_text() + "".join(f"{json.dumps(each)}\n" for each in lines))
    asked, plain = list[int](), parse_module._table

    def counted(several: Iterable[bytes], columns: Mapping[str, Any]) -> Any:
        asked.append(len(list(several)))
        return plain(several, columns)

    monkeypatch.setattr(parse_module, "_table", counted)
    store = open_store(tmp_path, SITE)
    assert [each.rows for each in store.runs] == [40]
    assert len(asked) < 10


@pytest.mark.parametrize("kind", ["legs", "a later one"])
def test_records_of_an_unknown_kind_are_noted_each_time(kind: str, tmp_path: Path) -> None:
    """A verdict is not hidden by a wrong letter, and what a later version adds stops nobody."""
    path = write(tmp_path, [quantity(FIRST), leg(FIRST), *2 * [leg(FIRST, kind=kind)]])
    for _ in range(2):
        store = open_store(tmp_path, SITE)
        said = f"{path}:3 (and 1 more): a record of an unknown kind, {kind!r}, was passed over"
        assert (ids(store), store.notes) == ([FIRST], (said,))
        assert store.runs[0].legs == {"PASS": 1}


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_half_a_character_in_a_reason_stops_nobody(
    separators: tuple[str, str], tmp_path: Path
) -> None:
    """Read fast or line by line, the number is there."""
    path = write(tmp_path, [quantity(FIRST)])
    record = {**quantity(SECOND), "format": 1, "quantity_reason": "\ud800"}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, sort_keys=True, separators=separators) + "\n")
    assert ids(open_store(tmp_path, SITE)) == [FIRST, SECOND]


def test_a_later_format_is_said_to_be_one(tmp_path: Path) -> None:
    """An old fabricproof must not guess what a new one wrote."""
    path = write(tmp_path, [quantity(FIRST)])
    path.write_text(path.read_text() + json.dumps({**quantity(SECOND), "format": 7}) + "\n")
    with pytest.raises(ParseError, match=r"jsonl:2: a record of a later format.*got format 7"):
        open_store(tmp_path, SITE)


def test_a_clock_that_jumped_does_not_turn_history_round(tmp_path: Path) -> None:
    """A run that was over before the one written earlier began stands behind it, with a note."""
    write(tmp_path, [
        quantity(run_id(5), completed=1793844600.0),
        quantity(run_id(2), completed=1793585400.0),
        quantity(run_id(6), completed=1793931000.0),
    ])  # fmt: skip
    store = open_store(tmp_path, SITE)
    assert ids(store) == [run_id(5), run_id(2), run_id(6)]
    assert [each for each in store.notes if run_id(2) in each and "a clock jumped" in each]


def test_runs_that_overlap_are_in_the_order_of_their_beginning(tmp_path: Path) -> None:
    """The second to begin may be the first to write: that is no jump."""
    write(tmp_path, [
        quantity("20261102T030000Z-bbbbbb", completed=1793589000.0),
        quantity("20261102T020000Z-aaaaaa", completed=1793592600.0),
    ])  # fmt: skip
    store = open_store(tmp_path, SITE)
    assert (ids(store), store.notes) == (["20261102T020000Z-aaaaaa", "20261102T030000Z-bbbbbb"], ())


def test_reframes_own_logs_are_no_history_and_that_is_said(tmp_path: Path) -> None:
    """Where only the perflog is left nothing stands in its place; beside records it is silent."""
    log = tmp_path / SITE / "lost" / "OsuBandwidth.log"
    log.parent.mkdir(parents=True)
    log.write_text("job_completion_time|run_id|system\n")
    with pytest.raises(InputMissingError, match=r"no run of made could.*perflogs are there and no"):
        open_store(tmp_path, SITE)
    path = write(tmp_path, [quantity(FIRST)])
    path.with_name("OsuBandwidth.log").write_text("job_completion_time|run_id|system\n")
    store = open_store(tmp_path, SITE)
    assert [each.run_id for each in store.runs] == [FIRST]
    (note,) = store.notes
    assert note.startswith(f"{log.parent}: ReFrame's perflogs are there and no records")
