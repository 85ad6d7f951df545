"""Keeping inventories: once per change, an index that only grows, never at the run's expense."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_nodes import NAMES, machine, text

from fabricproof.core.errors import OutputError, ParseError
from fabricproof.nodes.inventory.facts import ReadTrouble, ReadTroubleKind
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.nodes.inventory.store import (
    INDEX_FILE,
    choose,
    inventory_of_job,
    keep_looks,
    read_index,
    read_kept,
    write_machine,
)

HEALTHY, NEW_CABLE = "mlx5-healthy", "mlx5-new-cable"
MONDAY, TUESDAY = "2026-11-16T08:00:00Z", "2026-11-17T08:00:00Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "perflogs" / "inventory"


def looks(folder: Path, **recordings: str) -> Path:
    """Return a folder as ``inventory.sh`` fills it: node to the recording it shows."""
    place = folder.parents[1] / "stage" / "inventory"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.txt"):
        old.unlink()
    for node, name in recordings.items():
        (place / f"{node}.txt").write_text(text(name) if name else "", encoding="utf-8")
    return place


def files(folder: Path, node: str) -> list[str]:
    return sorted(path.name for path in (folder / node).iterdir())


def test_a_job_keeps_each_node_and_names_its_digest(folder: Path) -> None:
    place = looks(folder, n1=HEALTHY, n2="mlx5-degraded")
    kept = keep_looks(folder, place, ["n1", "n2"], run_id="r1", time=MONDAY)
    assert kept == {
        "n1": machine(HEALTHY, "n1").digest,
        "n2": machine("mlx5-degraded", "n2").digest,
    }
    assert read_kept(folder, "n1", kept["n1"] or "") == machine(HEALTHY, "n1")


def test_what_did_not_change_is_written_once_and_its_index_grows_with_runs(folder: Path) -> None:
    place = looks(folder, n1=HEALTHY)
    for run, time in (("r1", MONDAY), ("r1", MONDAY), ("r2", TUESDAY)):
        keep_looks(folder, place, ["n1"], run_id=run, time=time)
    assert files(folder, "n1") == [f"{machine(HEALTHY, 'n1').digest}.json"]
    assert [(each.run_id, each.time) for each in read_index(folder)] == [
        ("r1", MONDAY),
        ("r2", TUESDAY),
    ]


def test_a_change_is_a_second_file_and_the_first_stays(folder: Path) -> None:
    keep_looks(folder, looks(folder, n1=HEALTHY), ["n1"], run_id="r1", time=MONDAY)
    first = (folder / "n1" / files(folder, "n1")[0]).read_bytes()
    keep_looks(folder, looks(folder, n1=NEW_CABLE), ["n1"], run_id="r2", time=TUESDAY)
    assert len(files(folder, "n1")) == 2
    assert (folder / "n1" / f"{machine(HEALTHY, 'n1').digest}.json").read_bytes() == first


def test_a_state_that_comes_back_within_a_run_is_the_last_that_the_index_tells(
    folder: Path,
) -> None:
    """A rail that is down, up, and down again in one run is down."""
    for name in (HEALTHY, NEW_CABLE, HEALTHY):
        keep_looks(folder, looks(folder, n1=name), ["n1"], run_id="r1", time=MONDAY)
    digests = [machine(name, "n1").digest for name in (HEALTHY, NEW_CABLE, HEALTHY)]
    assert [each.digest for each in read_index(folder)] == digests


def test_one_look_that_failed_hides_no_later_one_of_its_run(folder: Path) -> None:
    run = "20261116T080000Z-a1b2c3"
    for name in (HEALTHY, "", HEALTHY):
        keep_looks(folder, looks(folder, n1=name), ["n1"], run_id=run, time=MONDAY)
    assert choose(read_index(folder), run).seen["n1"].digest == machine(HEALTHY, "n1").digest


@pytest.mark.parametrize(
    ("recordings", "words"),
    [({}, "left nothing"), ({"n1": ""}, "everything: the look left nothing")],
)
def test_a_node_that_left_nothing_has_no_digest_and_a_reason(
    recordings: dict[str, str], words: str, folder: Path
) -> None:
    kept = keep_looks(folder, looks(folder, **recordings), ["n1"], run_id="r1", time=MONDAY)
    (line,) = read_index(folder)
    assert (kept, line.digest) == ({"n1": None}, None)
    assert words in line.reason


def test_a_name_that_would_leave_the_folder_is_kept_nowhere(folder: Path) -> None:
    kept = keep_looks(folder, looks(folder), ["../n1"], run_id="r1", time=MONDAY)
    assert kept == {"../n1": None}
    assert [path.name for path in folder.iterdir()] == [INDEX_FILE]


def test_the_measurement_goes_on_where_nothing_can_be_kept(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("a file where the folder should be")
    place = looks(folder, n1=HEALTHY)
    kept, trouble = inventory_of_job(folder, place, ["n1"], run_id="r", time=MONDAY)
    assert kept == {"n1": None}
    assert trouble.startswith("inventory not kept: ")
    with pytest.raises(OutputError, match="cannot keep the inventory"):
        write_machine(folder, machine(HEALTHY))


def test_a_damaged_index_costs_the_inventory_alone(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / INDEX_FILE).write_text("no record\n")
    kept, trouble = inventory_of_job(
        folder, looks(folder, n1=HEALTHY), ["n1"], run_id="r", time=MONDAY
    )
    assert kept == {"n1": None}
    assert "damaged record" in trouble


def test_an_index_line_without_a_node_is_damage(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / INDEX_FILE).write_text('{"format": 1, "time": "x"}\n')
    with pytest.raises(ParseError, match="damaged index"):
        read_index(folder)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_is_what_was_seen_with_what_hindered_the_look(name: str, folder: Path) -> None:
    for seen in (
        machine(name),
        read_machine(text(name).replace('"reached": "end"', '"reached": "tools"'), "n1"),
    ):
        write_machine(folder, seen)
        assert read_kept(folder, seen.node, seen.digest) == seen
    assert seen.troubles[0].section == "tools"


def test_a_tool_that_said_nothing_is_kept_as_such(folder: Path) -> None:
    trouble = ReadTrouble(
        text="no answer: tc qdisc show",
        kind=ReadTroubleKind.NO_ANSWER,
        command=("tc", "qdisc", "show"),
    )
    one = replace(machine(HEALTHY), troubles=(trouble,))
    write_machine(folder, one)
    assert read_kept(folder, one.node, one.digest).troubles[0].tool == "tc"


def spoil(record: dict[str, object], **changes: object) -> str:
    return json.dumps({**record, **changes})


@pytest.mark.parametrize("change", [{"format": 9}, None])
def test_a_file_that_is_torn_or_of_another_format_is_refused(
    change: dict[str, object] | None, folder: Path
) -> None:
    one = machine(HEALTHY)
    path = write_machine(folder, one)
    assert read_kept(folder, one.node, one.digest) == one
    record = json.loads(path.read_text())
    path.write_text("torn" if change is None else spoil(record, **change))
    with pytest.raises(ParseError, match="no readable inventory"):
        read_kept(folder, one.node, one.digest)


def test_a_file_that_is_gone_is_one_message(folder: Path) -> None:
    with pytest.raises(ParseError, match="No such file"):
        read_kept(folder, "n1", "0" * 16)
