"""What is gathered for a report is the run's own verdict again, and the history of its own keys."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from report_data import DOWN, HEALTHY, LINKS, NEWEST, SLOW, recorded

from fabricproof.core.errors import InputMissingError, ParseError
from fabricproof.core.measure import Verdict
from fabricproof.core.records import append_records
from fabricproof.history.store import ADMISSION_LABEL, set_label
from fabricproof.job.run import RunNote, Workplace
from fabricproof.report.formats.page import render_html
from fabricproof.report.gather import Gathered, gather
from fabricproof.site import Site, load_site


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return recorded(tmp_path)


@pytest.fixture
def site() -> Site:
    return load_site("vcluster")


def counts(found: Gathered) -> dict[Verdict, int]:
    return found.data.session.counts()


def records_file(place: Workplace) -> Path:
    return place.perflogs / "vcluster" / "compute" / "records.jsonl"


def test_the_newest_run_is_the_default(site: Site, place: Workplace) -> None:
    found = gather(site, place)
    assert found.data.run.run_id == NEWEST
    assert {record["run_id"] for record in found.records} == {NEWEST}


def test_an_admission_is_not_the_newest_run_unless_there_is_no_other(
    site: Site, place: Workplace
) -> None:
    """At seven in the morning the night is asked for, not what a colleague measured at six."""
    set_label(place.perflogs, "vcluster", [NEWEST], ADMISSION_LABEL)
    assert gather(site, place).data.run.run_id == DOWN
    assert gather(site, place, "admit").data.run.run_id == NEWEST
    every = [LINKS, HEALTHY, SLOW, DOWN]
    set_label(place.perflogs, "vcluster", every, ADMISSION_LABEL)
    assert gather(site, place).data.run.run_id == NEWEST


def test_runs_of_the_past_keep_their_verdicts(site: Site, place: Workplace) -> None:
    """The verdicts are those that the runs ended with when they were recorded."""
    assert counts(gather(site, place, HEALTHY)) == {Verdict.PASS: 5}
    assert counts(gather(site, place, SLOW)) == {Verdict.PASS: 2, Verdict.FAIL: 3}
    assert counts(gather(site, place, DOWN)) == {Verdict.PASS: 1, Verdict.MISSING: 4}
    links = counts(gather(site, place, LINKS))
    assert (links[Verdict.PASS], links[Verdict.SKIPPED]) == (2, 1)


def a_night(place: Workplace, name: str, **line: object) -> None:
    path = place.perflogs / "vcluster" / ".night" / "events.jsonl"
    path.parent.mkdir(exist_ok=True)
    append_records(path, [{"night": name, "time": "2026-11-30T02:00:00Z", **line}])


def test_a_last_night_without_a_run_is_said(site: Site, place: Workplace) -> None:
    """The run that carries the label is yesterday's, and its green is not last night's."""
    set_label(place.perflogs, "vcluster", [HEALTHY], "night")
    ended = {"kind": "night", "ended": "no scheduler", "reason": "Slurm is down", "run_id": ""}
    a_night(place, "20261130T020000Z-00000a", **ended, arguments=["-r"])
    # A run handed over afterwards is no night.
    a_night(place, "20261130T030000Z-00000b", kind="night", run_id=HEALTHY, arguments=[])
    (said,) = gather(site, place, "night").data.notes
    assert said == (
        "the last night (2026-11-30T02:00:00Z) is not this run, which is older: "
        "no scheduler: Slurm is down"
    )
    assert gather(site, place, HEALTHY).data.notes == ()


def test_a_night_that_has_not_ended_is_said(site: Site, place: Workplace) -> None:
    a_night(place, "20261130T020000Z-00000a", kind="began")
    assert "it has not ended" in gather(site, place).data.notes[0]


def test_a_run_is_found_by_beginning_date_and_label(site: Site, place: Workplace) -> None:
    set_label(place.perflogs, "vcluster", [SLOW], "half-rate")
    assert gather(site, place, SLOW[:15]).data.run.run_id == SLOW
    assert gather(site, place, "2026-11-21").data.run.run_id == NEWEST
    assert gather(site, place, "half-rate").data.run.run_id == SLOW
    assert gather(site, place, "latest~1").data.run.run_id == DOWN
    assert gather(site, place, "..2026-11-21T20:02:05").data.run.run_id == HEALTHY


@pytest.mark.parametrize("words", ["2026-11-20", "20251121T200210Z", "nowhere", "2026"])
def test_an_unknown_run_is_one_message(words: str, site: Site, place: Workplace) -> None:
    with pytest.raises(InputMissingError, match=f"no run '{words}'.*{NEWEST}"):
        gather(site, place, words)


@pytest.mark.parametrize("words", ["latest~99", "2025-01-01..2025-01-02", "mtu=7"])
def test_what_names_no_run_is_no_side(words: str, site: Site, place: Workplace) -> None:
    """A report has no sides: that there is none is the status of a run that is not there."""
    with pytest.raises(InputMissingError, match=f"no run '{words}'"):
        gather(site, place, words)


def test_no_run_at_all_is_one_message(site: Site, tmp_path: Path) -> None:
    place = Workplace(project=tmp_path, root=tmp_path / "work", perflogs=tmp_path / "perflogs")
    with pytest.raises(InputMissingError, match="run -t quick --site vcluster"):
        gather(site, place)


def test_without_reframes_report_the_records_speak_and_the_roll_is_due(
    site: Site, place: Workplace
) -> None:
    """Nobody knows what was selected then, so a required check that nobody saw is MISSING."""
    place.report_file(HEALTHY).unlink()
    found = gather(site, place, HEALTHY)
    assert counts(found)[Verdict.PASS] == 5
    assert counts(found)[Verdict.MISSING] > 10
    notes = "\n".join(found.data.session.notes)
    assert "no readable report of ReFrame" in notes
    assert "nobody knows what was selected, so all required checks count as due" in notes


def noted(place: Workplace, run_id: str, **changes: Any) -> None:
    note = {
        "site": "vcluster",
        "arguments": ["-r", "-n", "OsuMultiRail"],
        "perflogs": str(place.perflogs),
    }
    RunNote(**{**note, **changes}).write(place, run_id)


def test_the_note_of_a_run_says_what_was_selected(site: Site, place: Workplace) -> None:
    """A note without a report is of a run that was killed or still runs: what is lost is red."""
    place.report_file(HEALTHY).unlink()
    noted(place, HEALTHY)
    found = gather(site, place, HEALTHY)
    assert counts(found) == {Verdict.MISSING: 1, Verdict.PASS: 5}
    (lost,) = [leg for leg in found.data.session.legs if leg.verdict is Verdict.MISSING]
    assert (lost.check, "no readable report of ReFrame" in lost.reason) == ("ReFrame", True)


def test_a_note_that_says_why_there_is_no_report_loses_nothing(
    site: Site, place: Workplace
) -> None:
    place.report_file(HEALTHY).unlink()
    noted(place, HEALTHY, ended=True, ran_nothing=True)
    assert counts(gather(site, place, HEALTHY)) == {Verdict.PASS: 5}


@pytest.mark.parametrize("damage", ["", "{", '{"runs": 7}', "[]"])
def test_a_damaged_report_is_noted_and_is_no_green(
    damage: str, site: Site, place: Workplace
) -> None:
    place.report_file(SLOW).write_text(damage)
    found = gather(site, place, SLOW)
    assert found.data.session.verdict is Verdict.FAIL
    assert any("no readable report" in note for note in found.data.session.notes)


def test_a_check_file_that_could_not_be_loaded_is_missing(site: Site, place: Workplace) -> None:
    noted(place, HEALTHY, ended=True, missing=[["check file", "skipping test file '/x/osu_bw.py'"]])
    assert counts(gather(site, place, HEALTHY))[Verdict.MISSING] == 1


def test_the_history_is_that_of_this_runs_keys(site: Site, place: Workplace) -> None:
    """The run that only looked at links shares no quantity, and later runs are not shown."""
    data = gather(site, place, DOWN).data
    assert [run.run_id for run in data.matrix.runs] == [HEALTHY, SLOW, DOWN]
    assert len(data.matrix.keys) == len(data.matrix.values) == len(data.matrix.verdicts)
    assert [run.run_id for run in gather(site, place, DOWN, last=2).data.matrix.runs] == [
        SLOW,
        DOWN,
    ]


def test_a_leg_that_printed_nothing_has_the_history_of_its_good_nights(
    site: Site, place: Workplace
) -> None:
    """Its record has neither unit nor setting, and is of the same quantity all the same."""
    lines = map(json.loads, records_file(place).read_text().splitlines())
    kept = [each for each in lines if each["leg"] == "rail1"]
    nights = []
    for day in range(1, 10):
        run_id = f"202611{day:02}T200152Z-{day:06x}"
        named = {"run_id": run_id, "completed": 1793563200.0 + day * 86400}
        good = [each for each in kept if each["run_id"] == HEALTHY]
        for each in good:
            night = {**each, **named}
            if each["kind"] == "quantity":
                night["quantity_value"] = each["quantity_value"] * (1 + 0.01 * (day % 3))
            nights.append(night)
    nights += [each for each in kept if each["run_id"] == DOWN]
    records_file(place).write_text("".join(f"{json.dumps(each)}\n" for each in nights))
    data = gather(site, place, DOWN).data
    assert len(data.matrix.runs) == 10
    assert data.trend is not None
    assert "red in 1 of 10 runs" in render_html(data)


def test_every_raw_number_is_there_with_its_line(site: Site, place: Workplace) -> None:
    """All attempts, the one that counts and the other, each at its line of the file."""
    data = gather(site, place, SLOW).data
    lines = records_file(place).read_text().splitlines()
    told = [number for numbers in data.raw.values() for number in numbers]
    mine = [number for number in told if number.run_id == SLOW]
    kept = [each for each in map(json.loads, lines) if each["run_id"] == SLOW]
    assert len(mine) == sum(each["kind"] == "quantity" for each in kept)
    assert {number.attempt for number in mine} == {0, 1, 2}
    for number in told:
        record = json.loads(lines[number.line - 1])
        assert record["quantity_value"] == number.value
        assert record["run_id"] == number.run_id


def test_bounds_are_those_that_the_judge_used(site: Site, place: Workplace) -> None:
    data = gather(site, place, SLOW).data
    (key,) = (key for key in data.bounds if (key.leg, key.quantity) == ("rail1", "bandwidth_1MiB"))
    bounds = data.bounds[key]
    assert bounds.reference is not None
    assert bounds.lower is not None
    assert math.isclose(bounds.lower, 0.9 * bounds.reference)
    assert bounds.origin.startswith("physics")


def test_what_changed_on_a_node_since_the_run_before(site: Site, place: Workplace) -> None:
    data = gather(site, place, SLOW).data
    (change,) = data.inventory_changes
    assert (change.part, change.nodes) == ("interface rail1", ("vc1",))
    assert "199 Mb/s before, 100 Mb/s now" in change.sentence
    assert data.machines["vc1"]["interface rail1"]


def test_an_inventory_that_is_gone_is_said(site: Site, place: Workplace) -> None:
    for path in (place.perflogs / "vcluster" / ".inventory" / "vc1").iterdir():
        path.unlink()
    data = gather(site, place, SLOW).data
    assert "vc1" not in data.machines
    (note,) = (note for note in data.notes if "is lost" in note)
    assert "the inventory of vc1 is lost, first " in note
    assert "no readable inventory" in note
    assert "one of them cannot be read" in data.inventory_changes[0].sentence


@pytest.mark.parametrize("words", ["", "latest", "last:2", ".."])
def test_a_night_without_any_record_is_the_newest(words: str, site: Site, place: Workplace) -> None:
    """Where nothing could be measured, last week's green is not shown in its place."""
    late = "20261122T020000Z-ffffff"
    report = json.loads(place.report_file(NEWEST).read_text())
    for case in report["runs"][0]["testcases"]:
        case["result"], case["fail_reason"] = "fail", "sbatch: no"
    place.report_file(late).write_text(json.dumps(report))
    data = gather(site, place, words).data
    assert data.run.run_id == late
    assert data.session.verdict is Verdict.MISSING
    assert data.matrix.keys == ()


def test_a_rehearsal_and_another_sites_report_are_no_runs(site: Site, place: Workplace) -> None:
    report = json.loads(place.report_file(NEWEST).read_text())
    for number, change in enumerate(("cmdline", "system")):
        other = json.loads(json.dumps(report))
        if change == "cmdline":
            other["session_info"]["cmdline"] += " --dry-run"
        else:
            for case in other["runs"][0]["testcases"]:
                case["system"] = "elsewhere"
        late = place.report_file(f"20261122T02000{number}Z-ffffff")
        late.write_text(json.dumps(other))
    assert gather(site, place).data.run.run_id == NEWEST


LATE = "20261122T020000Z-ffffff"


@pytest.mark.parametrize("words", ["", "latest", "last:2", ".."])
def test_a_run_that_was_killed_before_its_first_record_is_the_newest(
    words: str, site: Site, place: Workplace
) -> None:
    """Only its note is there, and the green of the night before is not shown in its place."""
    noted(place, LATE)
    data = gather(site, place, words).data
    assert data.run.run_id == LATE
    assert data.session.verdict is Verdict.MISSING


def test_a_note_of_a_run_in_which_all_that_was_due_had_no_check_is_a_run(
    site: Site, place: Workplace
) -> None:
    """The list of required checks knows what was to run."""
    noted(place, LATE, arguments=["-r", "-t", "nightly"], ended=True, ran_nothing=True)
    data = gather(site, place).data
    assert (data.run.run_id, data.session.verdict) == (LATE, Verdict.MISSING)


@pytest.mark.parametrize("words", ["", "latest", "2026-11-21", "last:1", ".."])
def test_a_look_of_a_night_is_not_the_newest_run(words: str, site: Site, place: Workplace) -> None:
    """An old night gave its looks no label, and a label may not be written: the record tells."""
    line = {
        "kind": "confirmation",
        "run_id": DOWN,
        "unique_name": "",
        "job_id": "",
        "partition": "compute",
        "stack": "openmpi5",
        "looks": [{"run_id": NEWEST, "nodes": ["vc1", "vc2"], "verdict": "PASS"}],
    }
    append_records(records_file(place), [line])
    assert gather(site, place, words).data.run.run_id == DOWN
    assert gather(site, place, NEWEST).data.run.run_id == NEWEST


@pytest.mark.parametrize("has_report", [True, False])
def test_a_run_of_which_a_record_is_torn_is_no_pass(
    site: Site, place: Workplace, *, has_report: bool
) -> None:
    """Four numbers of thirteen were PASS by a file that was cut off."""
    path = records_file(place)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:117], lines[117][:400]]))
    if not has_report:
        place.report_file(NEWEST).unlink()
    session = gather(site, place, NEWEST).data.session
    assert session.verdict is Verdict.MISSING
    missing = [each.check for each in session.legs if each.verdict is Verdict.MISSING]
    assert "OsuMultiRailBandwidth" in missing
    assert gather(site, place, HEALTHY).data.session.verdict is Verdict.PASS


def test_a_torn_record_is_noted_and_a_damaged_one_refused(site: Site, place: Workplace) -> None:
    path = records_file(place)
    with path.open("a") as file:
        file.write('{"torn')
    assert any("torn by a crash" in note for note in gather(site, place).data.notes)
    with path.open("a") as file:
        file.write("\nrubbish\n")
    with pytest.raises(ParseError, match=r"records\.jsonl:\d+: damaged record"):
        gather(site, place)


def test_the_runs_before_with_the_same_inventory_are_compared(site: Site, place: Workplace) -> None:
    comparison = gather(site, place, NEWEST, against="same-inventory").data.comparison
    assert comparison is not None
    assert HEALTHY in [run.run_id for run in comparison.first.runs]
    assert {SLOW, DOWN}.isdisjoint(run.run_id for run in comparison.first.runs)
    with pytest.raises(InputMissingError, match="saw its nodes as they are now"):
        gather(site, place, SLOW, against="same-inventory")


def test_of_a_label_of_several_runs_the_reported_one_is_compared_with_its_own_nodes_before(
    site: Site, place: Workplace
) -> None:
    """Its own earlier runs are before it too; they were on both sides once."""
    alone = gather(site, place, NEWEST, against="same-inventory").data.comparison
    assert alone is not None
    earlier = [each.run_id for each in alone.first.runs]
    set_label(place.perflogs, "vcluster", [earlier[-1], NEWEST], "nights")
    both = gather(site, place, "nights", against="same-inventory").data.comparison
    assert both is not None
    assert [each.run_id for each in both.first.runs] == earlier
    assert [each.run_id for each in both.second.runs] == [NEWEST]


def test_the_matrix_of_a_pair_campaign_is_gathered(site: Site, place: Workplace) -> None:
    matrix = {
        "kind": "pair matrix", "run_id": NEWEST, "title": "bandwidth over rail0", "reason": "why",
        "verdict": "FAIL", "nodes": ["n1", "n2"], "leaves": [], "healthy": [], "blame": [],
        "undecided": [], "unique_name": "AllPairs", "partition": "compute", "stack": "openmpi5",
        "job_id": "1", "cells": "eNr7nyT3HwAGYQJ/",
    }  # fmt: skip
    assert gather(site, place).data.pairs == ()
    append_records(records_file(place), [matrix])
    (picture,) = gather(site, place).data.pairs
    assert picture.title == "bandwidth over rail0, openmpi5, compute"
    append_records(records_file(place), [{**matrix, "cells": "damaged"}])
    with pytest.raises(ParseError, match="pair matrix is damaged"):
        gather(site, place)
