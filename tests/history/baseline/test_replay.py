"""What a baseline would have said of the past, and whether one still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricproof.history.baseline.freezing import freeze
from fabricproof.history.baseline.review import (
    against_run,
    differences,
    replay,
    standing,
    without_baseline,
)
from fabricproof.history.store import Store
from history import FACTS, ask, make_history, make_record, recorded, run_id

GOOD = [100.0, 100.4, 99.6, 100.2, 99.8, 100.1]


def ids_of(store: Store) -> list[str]:
    return [each.run_id for each in store.runs]


def test_a_baseline_does_not_contradict_what_it_was_learnt_from(tmp_path: Path) -> None:
    """Recorded runs: no sample of its own is red, and nothing red becomes green."""
    store, machines = recorded(tmp_path)
    new = freeze(store, ids_of(store), machines, ask()).baseline
    past = replay(store, ids_of(store), machines, old=None, new=new)
    assert past.judged > 50
    assert all(each.after == "FAIL" for each in past.turned)
    rows = {(place, row.quantity): row for place, row in new.rows()}
    assert not [
        each for each in past.turned if each.run_id in rows[each.place, each.quantity].samples
    ]
    assert past.counts["new"]["FAIL"] == past.counts["none"]["FAIL"] + len(past.turned)


def test_a_loss_of_the_past_is_found_and_listed(tmp_path: Path) -> None:
    records = [make_record(number, value) for number, value in enumerate([*GOOD, 92.0])]
    store, machines = make_history(tmp_path, records)
    new = freeze(store, ids_of(store)[:6], machines, ask()).baseline
    past = replay(store, ids_of(store), machines, old=None, new=new)
    (turned,) = past.turned
    assert (turned.run_id, turned.before, turned.after) == (run_id(6), "PASS", "FAIL")
    assert not turned.learnt
    assert past.by_check() == {("OsuBandwidth", "PASS", "FAIL"): 1}
    assert past.counts == {"none": {"PASS": 7}, "new": {"FAIL": 1, "PASS": 6}}


def test_a_record_that_cannot_be_true_does_not_stop_a_replay(tmp_path: Path) -> None:
    """It is not learnt from, and long ago: the other verdicts are still told."""
    records = [make_record(number, value) for number, value in enumerate([*GOOD, 130.0])]
    store, machines = make_history(tmp_path, records)
    new = freeze(store, ids_of(store)[:6], machines, ask()).baseline
    past = replay(store, ids_of(store), machines, old=None, new=new)
    assert past.counts["new"] == {"PASS": 7}


def test_old_and_new_are_told_apart(tmp_path: Path) -> None:
    """Under a proposal learnt after a loss, what the old baseline called red is green again."""
    records = [make_record(number, value) for number, value in enumerate(GOOD)]
    records += [make_record(6 + number, value - 6) for number, value in enumerate(GOOD)]
    store, machines = make_history(tmp_path, records)
    ids = ids_of(store)
    old = freeze(store, ids[:6], machines, ask()).baseline
    new = freeze(store, ids[6:], machines, ask()).baseline
    past = replay(store, ids, machines, old=old, new=new)
    assert past.counts["old"] == {"FAIL": 6, "PASS": 6}
    assert past.counts["new"] == {"PASS": 12}
    assert {(each.before, each.after) for each in past.turned} == {("FAIL", "PASS")}


def test_a_baseline_says_nothing_of_nodes_that_were_others(tmp_path: Path) -> None:
    newer = {**FACTS, "interface ib0": {**FACTS["interface ib0"], "firmware": "28.41"}}
    records = [make_record(number, value) for number, value in enumerate([*GOOD, 92.0])]
    store, machines = make_history(tmp_path, records, {6: newer})
    new = freeze(store, ids_of(store)[:6], machines, ask()).baseline
    past = replay(store, ids_of(store), machines, old=None, new=new)
    assert past.turned == ()
    assert past.judged == 6


@pytest.mark.parametrize(
    ("origin", "source", "recorded_word", "plain"),
    [
        # records of before the kind of a source was recorded, and of when a stricter baseline was
        # called by what it is stricter than
        ("physics: the link binds", None, "FAIL", "FAIL"),
        ("baseline spring, 5 runs", None, "FAIL", "PASS"),
        ("baseline spring, 5 runs, and physics: the link binds", None, "PASS", "PASS"),
        ("baseline spring, 5 runs, and physics: the link binds", "other", "FAIL", "PASS"),
        ("baseline spring, 5 runs, and tree model", "pair", "PASS", "PASS"),
        ("baseline spring, 5 runs", None, "PASS", "UNJUDGED"),
        # what is recorded today: the text is for people, whatever it says
        ("in other words", "other", "FAIL", "FAIL"),
        ("in other words", "baseline", "FAIL", "PASS"),
        ("in other words", "baseline", "PASS", "UNJUDGED"),
        ("in other words", "baseline and other", "PASS", "PASS"),
        ("in other words", "baseline and pair", "FAIL", "PASS"),
    ],
)
def test_what_a_baseline_said_is_taken_off(
    tmp_path: Path, origin: str, source: str | None, recorded_word: str, plain: str
) -> None:
    """A history that was judged by a baseline is replayed as physics had it."""
    from fabricproof.history.baseline.past import numbers_in  # noqa: PLC0415 - beside what it serves

    changes: dict[str, Any] = {"quantity_origin": origin, "quantity_verdict": recorded_word}
    changes |= {} if source is None else {"quantity_source": source}
    store, _ = make_history(tmp_path, [make_record(0, 95.0, **changes)])
    (number,) = numbers_in(store.samples(ids_of(store)))
    assert without_baseline(number) == plain


def test_standing_names_the_changed_field_and_the_new_build(tmp_path: Path) -> None:
    newer = {**FACTS, "interface ib0": {**FACTS["interface ib0"], "firmware": "28.41"}}
    records = [make_record(number, value) for number, value in enumerate(GOOD)]
    records.append(make_record(6, 100.0, stack_identity={"digest": "8ed94ed84df1aaaa"}))
    store, machines = make_history(tmp_path, records, {6: newer})
    baseline = freeze(store, ids_of(store)[:6], machines, ask()).baseline
    state = standing(baseline, machines, store)
    assert not state.holds
    assert state.nodes["n1"] == "n1: firmware of interface ib0 28.39 -> 28.41"
    assert state.builds["openmpi5"] == "openmpi5: build 51af25c1cd81 -> 8ed94ed84df1"


def test_standing_holds_for_the_recorded_nodes(tmp_path: Path) -> None:
    store, machines = recorded(tmp_path)
    baseline = freeze(store, ids_of(store), machines, ask()).baseline
    assert standing(baseline, machines, store).holds


def test_differences_put_the_worst_first(tmp_path: Path) -> None:
    records = [make_record(number, value) for number, value in enumerate(GOOD)]
    small = {"quantity_name": "bandwidth_1MiB", "quantity_message_size": 1 << 20}
    records += [make_record(number, value, **small) for number, value in enumerate(GOOD)]
    records += [make_record(6, 100.0), make_record(6, 80.0, **small)]
    store, machines = make_history(tmp_path, records)
    baseline = freeze(store, ids_of(store)[:6], machines, ask()).baseline
    worst, other = against_run(baseline, store, run_id(6))
    assert (worst.quantity, worst.outside) == ("bandwidth_1MiB", True)
    assert not other.outside
    assert all(each.ratio == 1 for each in differences(baseline, baseline))


def disturbed_by(share: float | None, **changes: Any) -> dict[str, Any]:
    """What a job writes before the numbers of an attempt beside which others had the cores."""
    found = {"kind": "starved_cores", "share": share, "reason": "waited", "node": "n1"}
    return {
        **{key: make_record(6, 0)[key] for key in ("format", "run_id", "nodes", "leg", "stack")},
        "kind": "environment",
        "disturbances": [found],
        **changes,
    }


@pytest.mark.parametrize(
    ("before", "verdict"),
    [
        ([disturbed_by(0.1)], "UNJUDGED"),
        ([disturbed_by(None)], "UNJUDGED"),
        ([disturbed_by(0.001)], "FAIL"),
        ([disturbed_by(0.1), {**disturbed_by(0.1), "disturbances": []}], "FAIL"),
        ([disturbed_by(0.1, run_id=run_id(5))], "FAIL"),
        ([disturbed_by(0.1, disturbances=[{"kind": "no such kind"}])], "FAIL"),
        ([disturbed_by(0.1, disturbances=7)], "FAIL"),
    ],
    ids=[
        "explains",
        "unknown share",
        "too little",
        "of another attempt",
        "another run",
        "odd",
        "7",
    ],
)
def test_what_others_took_excuses_a_number_of_the_past_as_it_did_in_its_job(
    tmp_path: Path, before: list[dict[str, Any]], verdict: str
) -> None:
    good = [make_record(number, value) for number, value in enumerate(GOOD)]
    store, machines = make_history(tmp_path, [*good, *before, make_record(6, 92.0)])
    new = freeze(store, ids_of(store)[:6], machines, ask()).baseline
    (turned,) = replay(store, ids_of(store), machines, old=None, new=new).turned
    assert (turned.run_id, turned.after) == (run_id(6), verdict)


@pytest.mark.parametrize(
    "odd", [{"share": "much"}, {"share": [1]}, {"share": True}, {"share": 7}, {"burst_us": "1"}]
)
def test_a_disturbance_that_is_none_excuses_nothing_and_ends_nothing(
    tmp_path: Path, odd: dict[str, Any]
) -> None:
    found = {"kind": "foreign_traffic", "share": 0.3, "reason": "x", "node": "n1", "burst_us": 1.0}
    good = [make_record(number, value) for number, value in enumerate(GOOD)]
    before = disturbed_by(0.1, disturbances=[{**found, **odd}])
    store, machines = make_history(tmp_path, [*good, before, make_record(6, 92.0)])
    new = freeze(store, ids_of(store)[:6], machines, ask()).baseline
    (turned,) = replay(store, ids_of(store), machines, old=None, new=new).turned
    assert turned.after == "FAIL"
