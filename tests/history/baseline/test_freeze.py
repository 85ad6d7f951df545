"""What becomes a baseline and what does not, from recorded runs and from bad ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.history.baseline import frozen_lines, show_lines
from fabricproof.core.errors import UnlikeError
from fabricproof.history.baseline.file import (
    as_text,
    keyed,
    path_of,
    why_not_valid,
    write_baseline,
)
from fabricproof.history.baseline.freeze import NotKnownGoodError, common_facts, freeze
from fabricproof.nodes.inventory.changed import Facts, lasting
from fabricproof.verdict.references import Baseline, BaselineRow, read_baseline
from history import FACTS, ask, make_history, make_record, recorded, run_id

GOOD = [100.0, 100.4, 99.6, 100.2, 99.8, 100.1]


def frozen_of(
    folder: Path, records: Sequence[dict[str, Any]], machines: Any = None, **asked: Any
) -> Baseline:
    store, nodes = make_history(folder, records, machines)
    return freeze(store, [each.run_id for each in store.runs], nodes, ask(**asked))


def good_records() -> list[dict[str, Any]]:
    return [make_record(number, value) for number, value in enumerate(GOOD)]


def only_row(frozen: Baseline) -> BaselineRow:
    ((_, row),) = frozen.rows()
    return row


def test_recorded_runs_become_a_baseline(tmp_path: Path) -> None:
    """Real runs: the sick leg is set aside with its reason, the bounds hold what was measured."""
    store, machines = recorded(tmp_path)
    ids = [each.run_id for each in store.runs]
    baseline = freeze(store, ids, machines, ask())
    rows = keyed(baseline)
    assert len(rows) >= 15
    matrix = store.matrix(ids)
    for key, numbers in zip(matrix.keys, matrix.values, strict=True):
        if row := rows.get(key):
            inside = [row.low <= each <= row.high for each in numbers.tolist()]
            assert sum(inside) >= row.num_runs
    named = {(key.leg, key.quantity): row for key, row in rows.items() if row.named}
    assert 22 < named["rail0", "bandwidth_1MiB"].median < 23.6
    sick = [each for each in baseline.set_aside if "20261121T200210Z" in each]
    assert any("rail1 on vc1 runs at 100 of 200 Mb/s" in each for each in sick)
    assert any("beside a FAIL: bandwidth_1MiB of the same leg" in each for each in sick)
    path = path_of(tmp_path, "spring")
    write_baseline(path, baseline)
    assert read_baseline(path) == baseline
    assert not why_not_valid(baseline, machines, store)


def test_a_shaped_rail_is_no_change_of_the_node(tmp_path: Path) -> None:
    """In one recorded run vc1's rail1 was shaped: that is the fault, not another node."""
    store, machines = recorded(tmp_path)
    ids = [each.run_id for each in store.runs]
    baseline = freeze(store, ids, machines, ask())
    assert len({each.inventory["vc1"] for each in store.runs}) > 1
    assert "shaped_to_mbit_s" not in str(baseline.facts_of("vc1"))


def test_too_few_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotKnownGoodError, match="at least 5, got 4"):
        frozen_of(tmp_path, good_records()[:4])


def test_fewer_are_taken_where_somebody_asks_and_never_two(tmp_path: Path) -> None:
    assert only_row(frozen_of(tmp_path / "a", good_records()[:3], at_least=3)).num_runs == 3
    with pytest.raises(NotKnownGoodError, match="at least 3, got 2"):
        frozen_of(tmp_path / "b", good_records()[:2], at_least=1)


def test_a_quantity_with_too_few_good_numbers_is_left_out_and_told(tmp_path: Path) -> None:
    records = [*good_records(), make_record(0, 50.0, quantity_name="bandwidth_1MiB")]
    frozen = frozen_of(tmp_path, records)
    assert only_row(frozen).quantity == "bandwidth_4MiB"
    assert "bandwidth_1MiB in 1" in frozen.not_judged[0]


def test_a_rail_without_a_good_run_is_named_as_not_judged(tmp_path: Path) -> None:
    """Whoever reads freeze, the file, list or show sees that ib1 is not judged; a curve is."""
    bad = {"leg": "ib1", "quantity_verdict": "FAIL", "quantity_reason": "errors rose"}
    red = [make_record(number, value, **bad) for number, value in enumerate(GOOD)]
    rare = [make_record(0, 50.0, leg="ib2")]
    more = [make_record(0, 50.0, quantity_name="bandwidth_1MiB")]
    frozen = frozen_of(tmp_path, [*good_records(), *red, *rare, *more])
    assert frozen.not_judged == (
        "openmpi5 osu_bw ib0 n1 - n2: fewer than 5 good runs of bandwidth_1MiB in 1",
        "openmpi5 osu_bw ib1 n1 - n2: no good number in any of 6 runs",
        "openmpi5 osu_bw ib2 n1 - n2: fewer than 5 good runs of bandwidth_4MiB in 1",
    )
    head = {"active": False, "holds": True, "why_not": []}
    told = f"  {frozen.not_judged[1]}"
    assert told in list(show_lines(frozen, head, whole=False))
    assert told in list(frozen_lines(frozen))
    assert '"openmpi5 osu_bw ib1 n1 - n2: no good' in as_text(frozen)


@pytest.mark.parametrize("verdict", ["FAIL", "INVALID"])
def test_what_is_red_is_not_known_good(tmp_path: Path, verdict: str) -> None:
    bad = {"quantity_verdict": verdict, "quantity_reason": "too slow by half"}
    records = [*good_records(), make_record(6, 99.0, **bad)]
    frozen = frozen_of(tmp_path, records)
    assert only_row(frozen).num_runs == 6
    (told,) = frozen.set_aside
    assert run_id(6) in told
    assert f"{verdict}: too slow by half" in told


#: a record that says that a leg was not well, and has no number of which it is known what is better
SPOILT = {
    "losses": {
        "quantity_unit": "ppm",
        "quantity_name": "retransmitted_per_million_packets",
        "quantity_message_size": None,
        "quantity_verdict": "FAIL",
    },
    "half a table": {
        "quantity_name": "bandwidth_8MiB",
        "quantity_message_size": 8 * 1024 * 1024,
        "quantity_value": None,
        "quantity_verdict": "MISSING",
    },
    "nothing printed": {
        "quantity_name": "bandwidth_8MiB",
        "quantity_message_size": None,
        "quantity_unit": "",
        "quantity_value": None,
        "quantity_verdict": "MISSING",
        "tool_version": None,
        "attributes": {},
    },
}


@pytest.mark.parametrize("bad", SPOILT.values(), ids=SPOILT.keys())
def test_a_leg_that_was_not_well_teaches_nothing(tmp_path: Path, bad: dict[str, Any]) -> None:
    """Its bandwidth may look good: it lost packets, or did not come to its end."""
    records = [*good_records(), make_record(6, 99.9), make_record(6, 300.0, **bad)]
    frozen = frozen_of(tmp_path, records)
    assert only_row(frozen).num_runs == 6
    (told,) = frozen.set_aside
    assert f"beside a {bad['quantity_verdict']}: {bad['quantity_name']} of the same leg" in told


def test_what_another_leg_lost_is_not_of_this_one(tmp_path: Path) -> None:
    bad = {**SPOILT["losses"], "leg": "ib1", "rails": ["ib1"]}
    frozen = frozen_of(
        tmp_path, [*good_records(), make_record(6, 99.9), make_record(6, 3.0, **bad)]
    )
    assert only_row(frozen).num_runs == 7


def test_an_unjudged_number_is_good_only_on_a_proven_path(tmp_path: Path) -> None:
    unjudged = {"quantity_verdict": "UNJUDGED", "quantity_reference": None}
    records = [make_record(number, value, **unjudged) for number, value in enumerate(GOOD)]
    assert only_row(frozen_of(tmp_path / "a", records)).num_runs == 6
    records = [{**each, "road_state": "unknown"} for each in records]
    with pytest.raises(NotKnownGoodError, match="nothing was measured often enough"):
        frozen_of(tmp_path / "b", records)


def test_an_outlier_is_set_aside_by_name(tmp_path: Path) -> None:
    values = [*GOOD, 100.3, 93.0]
    records = [make_record(number, value) for number, value in enumerate(values)]
    frozen = frozen_of(tmp_path, records)
    (told,) = frozen.set_aside
    assert told.startswith(f"{run_id(7)}: ")
    assert "bandwidth_4MiB = 93 MB/s: outlier: " in told
    assert only_row(frozen).num_runs == 7
    assert only_row(frozen).low > 93.0


def test_nodes_that_are_alike_stand_once(tmp_path: Path) -> None:
    """What all have alike is written once; each node's own serial stands with it."""
    records = [
        make_record(number, value, nodes=nodes)
        for number, value in enumerate(GOOD)
        for nodes in (["n1", "n2"], ["n3", "n4"])
    ]
    baseline = frozen_of(tmp_path, records)
    assert baseline.nodes == {f"n{number}": {} for number in range(1, 5)}
    assert as_text(baseline).count('"kernel"') == 1
    assert baseline.facts_of("n4") == lasting(FACTS)


def test_what_nodes_do_not_share_is_each_ones_own() -> None:
    nodes: dict[str, Facts] = {
        "n1": {"node": {"kernel": "6", "serial": "a"}, "interface ib1": {}},
        "n2": {"node": {"kernel": "6", "serial": "b"}},
    }
    common, own = common_facts(nodes)
    assert common == {"node": {"kernel": "6"}}
    assert own == {
        "n1": {"node": {"serial": "a"}, "interface ib1": {}},
        "n2": {"node": {"serial": "b"}},
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stack_identity": {"digest": "8ed94ed84df1aaaa"}}, "build"),
        ({"tool_version": "7.3"}, "tool version"),
    ],
)
def test_unlike_keys_are_not_pooled(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    records = [*good_records(), make_record(6, 100.0, **changes)]
    with pytest.raises(UnlikeError, match=rf"not pooled.*{said}.*{run_id(0)}.*{run_id(6)}"):
        frozen_of(tmp_path, records)


def test_a_node_that_was_changed_is_refused_by_its_field(tmp_path: Path) -> None:
    newer = {**FACTS, "interface ib0": {**FACTS["interface ib0"], "firmware": "28.41"}}
    with pytest.raises(UnlikeError, match=r"n1 is not the same.*firmware.*28\.39 -> 28\.41"):
        frozen_of(tmp_path, good_records(), {3: newer})


def test_a_run_in_which_nobody_saw_the_node_is_set_aside(tmp_path: Path) -> None:
    records = [*good_records(), make_record(6, 100.0, inventory={"n1": None, "n2": None})]
    frozen = frozen_of(tmp_path, records)
    assert only_row(frozen).num_runs == 6
    assert "nobody saw what n1 was made of" in frozen.set_aside[0]


def test_numbers_that_do_not_count_are_not_learnt(tmp_path: Path) -> None:
    """Of two attempts only the one that counted is the run's number."""
    records = [*good_records(), make_record(0, 55.0, counts=False, attempt=2)]
    assert only_row(frozen_of(tmp_path, records)).low > 90


def test_why_it_is_not_valid_names_the_changed_field_and_the_new_build(tmp_path: Path) -> None:
    newer = {**FACTS, "interface ib0": {**FACTS["interface ib0"], "firmware": "28.41"}}
    records = [make_record(number, value) for number, value in enumerate(GOOD)]
    records.append(make_record(6, 100.0, stack_identity={"digest": "8ed94ed84df1aaaa"}))
    store, machines = make_history(tmp_path, records, {6: newer})
    baseline = freeze(store, [each.run_id for each in store.runs[:6]], machines, ask())
    assert why_not_valid(baseline, machines, store) == [
        "n1: firmware of interface ib0 28.39 -> 28.41",
        "n2: firmware of interface ib0 28.39 -> 28.41",
        "openmpi5: build 51af25c1cd81 -> 8ed94ed84df1",
    ]
