"""``fabricproof prove`` on made histories: nights called as they were planted, and no others."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "trend"))
from made_history import SITE, rail_slower, write_history

from fabricproof.core.records import append_records
from fabricproof.history.baseline import past
from fabricproof.history.prove import clean

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def perflogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the command at an empty folder of perflogs, and have trend tried a few times only."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path))
    monkeypatch.setattr(clean, "MOST_TRIES", 2)
    monkeypatch.setattr(clean, "FEWEST_TRIES", 2)
    return tmp_path


def records(perflogs: Path) -> Path:
    return perflogs / SITE / "compute" / "records.jsonl"


def test_a_rail_that_got_slow_is_called_in_that_night_and_once(perflogs, fabricproof):
    """The baseline is of the nights before that were not red themselves: it takes no loss in."""
    write_history(perflogs, 16, seed=1, factor=rail_slower(11, share=0.8))
    ended = fabricproof("prove", "--site", SITE, "--json")
    calls = ended.record["calls"]
    assert ended.status == 0
    assert calls[0]["run"]["run_id"].startswith("20261112T")
    assert "rail1" in calls[0]["said"]["baseline"]
    assert [each for each in calls if "baseline" in each["said"]] == calls[:1]
    assert calls[0]["lasts"] == 5
    assert ended.record["stretch"]["is_newest"] is False
    assert len(ended.record["stretch"]["runs"]) == 11
    assert ended.record["seed"] == clean.SEED


def test_the_text_says_what_was_called_how_falsely_and_what_is_noticed(perflogs, fabricproof):
    write_history(perflogs, 14, seed=2, factor=rail_slower(13, share=0.5))
    said = " ".join(fabricproof("prove", "--site", SITE).out.split())
    assert "by the rules of today you would have been called 1 time" in said
    assert "2026-11-14 22:00 1 night, baseline:" in said
    assert "baseline 1 of 9" in said
    assert "a replay cannot: this is the most" in said
    assert "of no rail of a node that was red by it" in said
    assert "clean nights: 13 from 2026-11-01 22:00 to 2026-11-13 22:00" in said
    assert "promised 1 %" in said
    assert "says little" in said
    assert "eth0, less bandwidth: in one night from" in said
    assert "eth0, longer latency: in one night from" in said


def test_quiet_nights_are_never_called(perflogs, fabricproof):
    write_history(perflogs, 12, seed=3, noise=0.01)
    ended = fabricproof("prove", "--site", SITE)
    assert ended.status == 0
    assert "you would have been called never" in " ".join(ended.out.split())


def test_more_noise_has_no_lower_floor(tmp_path, monkeypatch, fabricproof):
    found = []
    for noise in (0.01, 0.06):
        place = tmp_path / str(noise)
        monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(place))
        write_history(place, 12, seed=4, noise=noise)
        record = fabricproof("prove", "--site", SITE, "--json").record
        floors = [each for kind in record["floors"] for each in kind["floors"]]
        assert all(each["half"] is None or each["half"]["caught"]["bounds"] for each in floors)
        found.append([each["half"] for each in floors if each["rule"] == "baseline"])
    assert all(
        loud is None or quiet["loss"] < loud["loss"] for quiet, loud in zip(*found, strict=True)
    )


def test_numbers_that_physics_made_red_are_a_call_and_no_noise(perflogs, fabricproof):
    write_history(perflogs, 12, seed=5)
    lines = [json.loads(line) for line in records(perflogs).read_text().splitlines()]
    bad = next(
        each
        for each in lines
        if each["run_id"].startswith("20261104T") and each["quantity_unit"] == "MB/s"
    )
    bad["quantity_verdict" if "quantity_verdict" in bad else "verdict"] = "FAIL"
    bad["quantity_value"] *= 0.1
    records(perflogs).write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    record = fabricproof("prove", "--site", SITE, "--json").record
    assert record["nights"][3]["said"]["limits"].startswith("1 FAIL: ")
    assert record["calls"][0]["run"]["run_id"].startswith("20261104T")
    assert record["num_red"] == 1
    told = record["shuffled"]["told"]
    assert told["baseline"]["hits"] == 0
    assert 0 == told["baseline"]["bounds"][0] < told["baseline"]["bounds"][1] < 1
    assert {*told, *record["shuffled"]["promised"]} == {"baseline", "trend"}


def test_nights_of_which_every_number_is_red_prove_nothing(perflogs, fabricproof):
    """Nothing that could be called falsely is left: no rate of false calls stands there."""
    write_history(perflogs, 12, seed=5)
    lines = [json.loads(line) for line in records(perflogs).read_text().splitlines()]
    for each in lines:
        each["verdict"] = each["quantity_verdict"] = "FAIL"
    records(perflogs).write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    ended = fabricproof("prove", "--site", SITE, "--json")
    assert ended.status == 6
    assert ended.record["shuffled"] is None
    assert ended.record["num_red"] == len(lines)


def test_nights_that_are_red_too_often_break_the_promise(perflogs, fabricproof):
    """One night in five has one quantity at half: each a red night of a fabric that is as ever."""
    chance = random.Random(6)
    spoilt = {night: chance.randrange(48) for night in range(2, 24, 5)}
    count = iter(range(10**6))
    write_history(
        perflogs,
        24,
        seed=6,
        noise=0.005,
        factor=lambda each, night: (
            (0.5 if each["quantity_unit"] == "MB/s" else 2.0)
            if next(count) % 48 == spoilt.get(night)
            else 1.0
        ),
    )
    ended = fabricproof("prove", "--site", SITE)
    assert ended.status == 1
    assert "BROKEN: baseline" in ended.out
    assert "red, falsely unless the night was bad by itself: 2026-11-03 22:00" in ended.out


def test_a_night_whose_legs_left_no_number_is_a_call(perflogs, fabricproof):
    write_history(perflogs, 8, seed=12, noise=0.01)
    lines = [json.loads(line) for line in records(perflogs).read_text().splitlines()]
    run_id = lines[-1]["run_id"]
    append_records(records(perflogs), [{"kind": "leg", "run_id": run_id, "verdict": "MISSING"}])
    record = fabricproof("prove", "--site", SITE, "--json").record
    assert record["calls"][-1]["said"]["limits"] == "1 leg MISSING"


def test_losses_that_were_red_are_a_call(perflogs, fabricproof):
    """Of a rate of losses less is no speed: it has no direction, and was FAIL all the same."""
    write_history(perflogs, 8, seed=12, noise=0.01)
    lines = [json.loads(line) for line in records(perflogs).read_text().splitlines()]
    night = next(each for each in lines if each["run_id"].startswith("20261104T"))
    lost = {
        "quantity_name": "retransmitted_per_million_packets",
        "quantity_unit": "ppm",
        "quantity_message_size": None,
        "quantity_value": 300.0,
        "quantity_verdict": "FAIL",
    }
    append_records(records(perflogs), [{**night, **lost}])
    record = fabricproof("prove", "--site", SITE, "--json").record
    said = record["nights"][3]["said"]["limits"]
    assert said.startswith("1 FAIL: ")
    assert said.endswith("retransmitted_per_million_packets")
    assert record["calls"][0]["run"]["run_id"].startswith("20261104T")


def test_nights_that_hang_together_are_said_to(perflogs, fabricproof):
    chance = random.Random(7)
    level = [0.0]
    for _ in range(39):
        level.append(0.9 * level[-1] + chance.gauss(0, 0.02))
    write_history(
        perflogs, 40, seed=7, noise=0.004, factor=lambda _, night: 2.718281828 ** level[night]
    )
    said = " ".join(fabricproof("prove", "--site", SITE).out.split())
    assert "hangs together with the next" in said


@pytest.mark.parametrize(
    ("nights", "status", "words"),
    [
        (0, 66, "nothing was measured on vcluster yet"),
        (5, 6, "too few runs of vcluster to prove anything"),
        (7, 6, "too few to say what is called falsely"),
    ],
)
def test_too_few_nights_are_told_with_their_status(perflogs, fabricproof, nights, status, words):
    if nights:
        write_history(perflogs, nights, seed=8)
    ended = fabricproof("prove", "--site", SITE)
    assert ended.status == status
    assert words in ended.out + ended.err


def test_a_damaged_record_ends_with_65(perflogs, fabricproof):
    write_history(perflogs, 8, seed=9)
    text = records(perflogs).read_text()
    records(perflogs).write_text("{damaged\n" + text)
    ended = fabricproof("prove", "--site", SITE)
    assert ended.status == 65
    assert "Traceback" not in ended.err


def test_only_the_nights_that_are_named_are_looked_at(perflogs, fabricproof):
    write_history(perflogs, 14, seed=10)
    record = fabricproof("prove", "last:9", "--site", SITE, "--json").record
    assert len(record["nights"]) == 9


def test_each_night_is_read_once_however_many_baselines_are_learnt_from_it(
    perflogs, fabricproof, monkeypatch
):
    """Thirty nights stand behind each: read for each of them, a year took ten minutes and more."""
    nights, read = 14, []
    plain = past.numbers_in

    def counted(samples, **asked):
        read.append(samples["run_id"].unique().to_list())
        return plain(samples, **asked)

    monkeypatch.setattr(past, "numbers_in", counted)
    write_history(perflogs, nights, seed=2)
    assert fabricproof("prove", "--site", SITE).status == 0
    assert [len(each) for each in read] == [1] * nights
    assert len({run for each in read for run in each}) == nights
