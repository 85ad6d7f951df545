"""``fabricproof trend`` on made histories: nights copied from a recorded one, changes planted."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_history import SITE, Record, rail_slower, write_history

from fabricproof.history.store.label_file import ADMISSION_LABEL, LOOK_LABEL, set_label

Command = Callable[..., Any]


@pytest.fixture
def perflogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the command at an empty folder of perflogs."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path))
    return tmp_path


def test_a_change_on_night_six_of_ten_is_found(perflogs: Path, fabricproof: Command) -> None:
    """Rail and night are named, what changed with it, how sure, and what to run next."""
    write_history(
        perflogs,
        10,
        seed=1,
        factor=rail_slower(5),
        speed=lambda node, night: 100 if node == "vc2" and night >= 5 else 200,
    )
    ended = fabricproof("trend", "--site", SITE)
    said = " ".join(ended.out.split())
    assert ended.status == 1
    assert "WORSE since the run of 2026-11-06 22:00 UTC rail1: bandwidth 5" in said
    assert "24 of the 24 of rail1" in said
    assert "interface rail1 of vc2: shaped to 200 Mb/s -> 100 Mb/s" in said
    assert (
        "fabricproof compare 2026-11-01..2026-11-05 2026-11-06..2026-11-10 --site vcluster" in said
    )


@pytest.mark.parametrize("seed", range(8))
def test_nothing_planted_is_nothing_found(perflogs: Path, fabricproof: Command, seed: int) -> None:
    """Noise alone, a part of it common to all of a night, is no change."""
    write_history(perflogs, 10, seed=seed)
    ended = fabricproof("trend", "--site", SITE)
    assert ended.status == 0
    assert "no lasting change" in ended.out


def test_the_record_says_the_same(perflogs: Path, fabricproof: Command) -> None:
    """--json: events with keys, columns of the runs, and the inventory that changed."""
    write_history(
        perflogs,
        12,
        seed=2,
        factor=rail_slower(6),
        speed=lambda _, night: 100 if night >= 6 else 200,
        builds={0: "a" * 64, 6: "b" * 64},
    )
    ended = fabricproof("trend", "--site", SITE, "--json")
    record = ended.record
    (event,) = record["events"]
    assert ended.status == 1
    assert record["is_worse_now"] is True
    assert len(record["runs"]) == 12
    assert (event["where"], event["run"]["start"][:10]) == ("rail1", "2026-11-07")
    assert {each["step"]["at"] for each in event["steps"]} == {6}
    assert event["coincides"] == [
        "interface rail1 of vc1, vc2, vc3: shaped to 200 Mb/s -> 100 Mb/s",
        "stack openmpi5: build aaaaaaaaaaaa -> bbbbbbbbbbbb",
    ]


@pytest.mark.parametrize(("nights", "status"), [(1, 5), (2, 5), (3, 1)])
def test_three_nights_are_called(
    perflogs: Path, fabricproof: Command, nights: int, status: int
) -> None:
    """A rail at 80 % since one, two and three nights: what the next may take back is no call."""
    write_history(perflogs, 12 + nights, seed=4, factor=rail_slower(12, share=0.8))
    ended = fabricproof("trend", "--site", SITE, "--json")
    (event,) = ended.record["events"]
    assert (ended.status, event["sure"], event["worse"]) == (status, status == 1, True)
    assert ended.record["is_worse_now"] is (status == 1)
    assert ended.record["looks_worse_now"] is True
    assert ("not sure yet" in event["sentence"]) is (nights == 2)


@pytest.mark.parametrize("nights", [16, 60])
def test_a_window_counts_the_looks_before_it(
    perflogs: Path, fabricproof: Command, nights: int
) -> None:
    """What is called of a history of 16 nights only looks so in the newest 16 of an older one."""
    slow = rail_slower(nights - 8, share=0.965)
    write_history(perflogs, nights, seed=4, factor=slow, noise=0.01)
    record = fabricproof("trend", "--site", SITE, "last:16", "--json").record
    assert len(record["runs"]) == 16
    assert record["looks_worse_now"] is True
    assert record["is_worse_now"] is (nights == 16)


def test_one_bad_night_is_no_event(perflogs: Path, fabricproof: Command) -> None:
    """Night six of twelve at half, as if a job of others had been on the rail."""
    slow = rail_slower(5)
    write_history(
        perflogs, 12, seed=5, factor=lambda each, night: slow(each, night) if night == 5 else 1.0
    )
    assert fabricproof("trend", "--site", SITE).status == 0


def test_a_slow_loss_is_told_per_run(perflogs: Path, fabricproof: Command) -> None:
    """0.5 % a night: no step, but drifts with their slope and the night they began."""
    write_history(
        perflogs,
        30,
        seed=6,
        factor=lambda each, night: 0.995**night if "rail0" in each["rails"] else 1.0,
    )
    ended = fabricproof("trend", "--site", SITE, "--only", "check=OsuBandwidth")
    assert ended.status == 1
    assert "WORSE slowly: " in ended.out
    assert "a run, -1" in ended.out
    assert "since 2026-11-01" in ended.out


def test_one_node_of_many_is_named(perflogs: Path, fabricproof: Command) -> None:
    """What only legs with vc3 show is told of vc3."""

    def slow(record: Record, night: int) -> float:
        return 2.0 if night >= 6 and "vc3" in record["nodes"] else 1.0

    write_history(perflogs, 12, seed=7, factor=slow)
    record = fabricproof("trend", "--site", SITE, "--json").record
    assert [each["where"] for each in record["events"]] == ["vc3"]


@pytest.mark.parametrize("label", [LOOK_LABEL, ADMISSION_LABEL])
def test_looks_of_a_night_and_admissions_are_no_nights(
    perflogs: Path, fabricproof: Command, label: str
) -> None:
    """What was measured only because it was red is left out, unless somebody names it."""
    write_history(perflogs, 10, seed=4)
    everything = fabricproof("trend", "--site", SITE, "--json").record["runs"]
    looks = [run["run_id"] for run in everything[-2:]]
    set_label(perflogs, SITE, looks, label)
    assert fabricproof("trend", "--site", SITE, "--json").record["runs"] == everything[:-2]
    named = ",".join(run["run_id"] for run in everything[3:])
    asked = fabricproof("trend", "--site", SITE, "--json", named).record["runs"]
    assert asked == everything[3:]


#: what else a program that printed nothing leaves out of the record of what was due
UNPRINTED = {
    "attributes": {},
    "quantity_unit": "",
    "quantity_message_size": None,
    "quantity_lower_is_better": None,
    "tool_version": None,
}


def without_numbers(perflogs: Path, since: int, *, check: str, is_printed: bool = True) -> None:
    """Make every number of a check MISSING from a night on."""
    path = perflogs / SITE / "compute" / "records.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    nights = sorted({each["run_id"] for each in records})
    for each in records:
        if each["run_id"] in nights[since:] and each["check"] == check:
            each.update(quantity_value=None, quantity_verdict="MISSING")
            each.update({} if is_printed else UNPRINTED)
    path.write_text("".join(json.dumps(each) + "\n" for each in records))


@pytest.mark.parametrize("is_printed", [True, False])
@pytest.mark.parametrize("checks", [("OsuBandwidth",), ("OsuBandwidth", "OsuLatency")])
def test_newest_runs_that_were_tried_in_vain_are_no_green(
    perflogs: Path, fabricproof: Command, checks: tuple[str, ...], *, is_printed: bool
) -> None:
    """A run without a usable number is no column, and yet told: status 5, and which leg."""
    write_history(perflogs, 12, seed=5)
    for check in checks:
        without_numbers(perflogs, 9, check=check, is_printed=is_printed)
    ended = fabricproof("trend", "--site", SITE)
    assert ended.status == 5
    assert "something gives no number any more" in ended.out
    assert "openmpi5 osu_bw rail0 bandwidth_1MiB vc1 - vc2" in " ".join(ended.out.split())
    assert fabricproof("trend", "--site", SITE, "--json").record["looks_worse_now"]


def records_of(perflogs: Path) -> Path:
    """Return the file of records of the made history."""
    return perflogs / SITE / "compute" / "records.jsonl"


@pytest.mark.parametrize("of", ["partition", "fabric"])
def test_a_silent_partition_is_not_covered_by_another(
    perflogs: Path, fabricproof: Command, of: str
) -> None:
    """The same legs of two partitions: one goes on and the other prints nothing any more."""
    write_history(perflogs, 12, seed=5)
    first = records_of(perflogs).read_text().splitlines()
    without_numbers(perflogs, 9, check="OsuBandwidth", is_printed=False)
    silent = [
        {**json.loads(each), of: "gpu"} for each in records_of(perflogs).read_text().splitlines()
    ]
    lines = [*first, *map(json.dumps, silent)]
    records_of(perflogs).write_text("".join(f"{line}\n" for line in lines))
    ended = fabricproof("trend", "--site", SITE)
    assert ended.status == 5
    where = {"partition": "(gpu, eth0)", "fabric": "(compute, gpu)"}[of]
    assert f"vc1 - vc2 {where}: none since" in ended.out


def test_runs_of_one_evening_are_named_to_the_second(perflogs: Path, fabricproof: Command) -> None:
    """Ten runs within the hour: dates would name both sides alike."""
    write_history(perflogs, 10, seed=1, factor=rail_slower(5), every=datetime.timedelta(minutes=5))
    said = " ".join(fabricproof("trend", "--site", SITE).out.split())
    assert "2026-11-01T22:00:00..2026-11-01T22:20:00 2026-11-01T22:25:00.." in said


def test_too_few_runs_have_a_status_of_their_own(perflogs: Path, fabricproof: Command) -> None:
    """Five runs: nothing can be told, and that is not "nothing changed"."""
    write_history(perflogs, 5, seed=10)
    ended = fabricproof("trend", "--site", SITE)
    assert ended.status == 6
    assert "48 quantities in 5 runs" in ended.err
    assert not ended.out


def test_no_history_and_nothing_that_fits_are_refused(perflogs: Path, fabricproof: Command) -> None:
    """No run at all; then a check that there is none of, with those that there are."""
    assert fabricproof("trend", "--site", SITE).status == 66
    write_history(perflogs, 8, seed=11)
    ended = fabricproof("trend", "--site", SITE, "--only", "check=Osux")
    assert ended.status == 66
    assert "OsuBandwidth, OsuBidirectionalBandwidth" in ended.err


def test_a_wider_margin_silences_small_changes(perflogs: Path, fabricproof: Command) -> None:
    """A rail at 80 % is told, unless only half counts."""
    write_history(perflogs, 12, seed=12, factor=rail_slower(6, share=0.8))
    only = ("trend", "--site", SITE, "--only", "program=osu_bw")
    assert fabricproof(*only).status == 1
    assert fabricproof(*only, "--margin", "bandwidth=40%").status == 0


@pytest.mark.parametrize("nights", [14, 24])
def test_a_quantity_that_is_measured_no_more_is_named(
    perflogs: Path, fabricproof: Command, nights: int
) -> None:
    """A check whose rail1 leg stopped coming, soon and much later."""

    def stopped(record: Record, night: int) -> float | None:
        is_gone = record["check"] == "OsuBandwidth" and record["leg"] == "rail1"
        return None if night >= 10 and is_gone else 1.0

    write_history(perflogs, nights, seed=13, factor=stopped)
    for only in ((), ("--only", "rail=rail1", "--only", "check=OsuBandwidth")):
        said = " ".join(fabricproof("trend", "--site", SITE, *only).out.split())
        assert "4 quantities had numbers and have none now" in said
        assert f"since 2026-11-10 22:00 UTC, {nights - 10} runs of the check ago" in said


def test_an_inventory_that_is_gone_is_unknown(perflogs: Path, fabricproof: Command) -> None:
    """Nobody looked before the change: said, instead of "nothing else changed"."""
    write_history(
        perflogs,
        10,
        seed=15,
        factor=rail_slower(5),
        speed=lambda _, night: 200 if night >= 5 else None,
    )
    said = " ".join(fabricproof("trend", "--site", SITE).out.split())
    assert "whether anything else changed then is not known" in said


def test_one_rail_better_and_the_other_worse_are_two_events(
    perflogs: Path, fabricproof: Command
) -> None:
    """One night rail0 gains and rail1 loses: neither is told of what both have in common."""
    slow = rail_slower(6)
    fast = rail_slower(6, rail="rail0", share=1.5)
    write_history(
        perflogs, 12, seed=11, factor=lambda each, night: slow(each, night) * fast(each, night)
    )
    ended = fabricproof("trend", "--site", SITE, "--json")
    assert ended.status == 1
    events = [(each["where"], each["worse"]) for each in ended.record["events"]]
    assert events == [("rail1", True), ("rail0", False)]
    assert {each["run"]["start"][:10] for each in ended.record["events"]} == {"2026-11-07"}


def test_what_was_taken_back_is_over_though_it_came_again(
    perflogs: Path, fabricproof: Command
) -> None:
    """Slow, repaired, slow again: the first is over, the last is what is worse now."""

    def factor(record: Record, night: int) -> float:
        is_slow = 10 <= night < 20 or night >= 30
        return 0.5 if is_slow and record["quantity_unit"] == "MB/s" else 1.0

    write_history(perflogs, 40, seed=12, factor=factor)
    record = fabricproof("trend", "--site", SITE, "--only", "check=OsuBandwidth", "--json").record
    told = [(each["run"]["start"][:10], each["worse"], each["lasts"]) for each in record["events"]]
    assert told == [
        ("2026-12-01", True, True), ("2026-11-21", False, False), ("2026-11-11", True, False),
    ]  # fmt: skip
    assert record["is_worse_now"] is True


def test_too_few_runs_for_a_step_are_no_lack_of_change(
    perflogs: Path, fabricproof: Command
) -> None:
    """Rail 1 at half for three of six runs cannot be told: nobody says that nothing changed."""
    write_history(perflogs, 8, seed=15, factor=rail_slower(5))
    few = fabricproof("trend", "--site", SITE, "last:6")
    assert few.status == 6
    assert "no lasting change" not in few.out
    assert "too few runs to tell a lasting change" in few.out.splitlines()[0]
    record = fabricproof("trend", "--site", SITE, "last:6", "--json").record
    assert record["too_few_for_steps"] is True
    whole = fabricproof("trend", "--site", SITE, "--json")
    assert whole.record["too_few_for_steps"] is False


@pytest.mark.parametrize(("nights", "worse"), [(10, False), (11, True)])
def test_that_two_bad_nights_cannot_be_told_yet_is_said(
    perflogs: Path, fabricproof: Command, nights: int, worse: bool
) -> None:
    """Of 45 orders of ten runs two are as far apart: no p below 5 % whatever rail 1 lost."""
    write_history(perflogs, nights, seed=15, factor=rail_slower(nights - 2))
    said = fabricproof("trend", "--site", SITE)
    note = "a change that began two runs ago cannot be told yet"
    assert (said.status == 5, note in " ".join(said.out.split())) == (worse, not worse)
