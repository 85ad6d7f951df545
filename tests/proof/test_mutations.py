"""Every rule of the verdict has an entry, is really switched off, comes back, and is missed."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from operator import attrgetter

import pytest

from fabricproof import traffic
from proof.library import read_library
from proof.mutations import RULES, UNNOTICED, import_target, switched_off, who_notices
from proof.tries import attempt

#: the functions that decide: whatever they call is a rule, or stands in REASONS
DECIDING = {
    "traffic": ["prove_path"],
    "verdict.table": ["judge_table", "_numbers", "_bandwidths", "_times"],
    "verdict.value": ["judge_value", "impossible", "_against"],
    "job.outcome": [
        *(
            "judge_leg",
            "_judge_attempt",
            "_with_errors",
            "weighed",
            "_of_looks",
        ),
        *("needs_second_look", "_net_path"),
    ],
    "job.outcomes": ["judge_legs", "against_directions", "_beside"],
    "job.run.join": ["assemble", "_from_records"],
    "nightly.decide": ["decide_all", "decide"],
    "nightly.looks": ["look_at"],
    "job.evidence.error_rates": ["with_errors", "_of_kind"],
    "job.evidence.disturbance": ["disturbances_of"],
    "verdict.objections": ["apply", "_after"],
    "history.compare.comparison": ["compare_sides", "_rows", "_groups"],
    "history.compare.verdict": ["overall", "group_change", "looks_worse"],
    "history.stats.steps": ["find_changes", "_cuts", "_told", "_last_steps"],
    "history.trend.find": ["find_trend", "_asked"],
    "history.baseline.bounds": ["learn", "_bounds"],
    "history.baseline.freeze": ["_good_numbers"],
}

#: what they call that is no rule here, by the reason
REASONS = {
    "plumbing: it hands on, or holds rules that are here": (
        "_largest _check_name _ends evidence_of _is "
        "_names_of findings_of _meant _moved _nodes_of _part "
        "_number added measure_disturbances _concentration counters_set_back "
        "as_notes at_size by_key largest_of_each_kind error_rates gather is_of_errors "
        "megabytes missing no_number rules_of join_by_node smallest_message_us worst "
        "judge_table judge_value _numbers _size wire_bytes _bandwidths _times _judge_attempt "
        "_judged _beside _from_records _of_kind with_errors "
        "_after judge_retransmissions unless_limited "
        "_groups _quantities metric_of class_of numbered _part "
        "_asked find_changes _check _cuts _told _stretches scaled "
        "scatter_of_classes _around_levels _rounded events_of "
        "_refuse_overlap _rows table_of around_group around_quantity beside compare_rows "
        "group_rows group_values taken_from _place _leg fits "
    ),
    "words: it says why, and decides nothing": (
        "_noted last_words shell_name "
        "doubts not_compared nothing_fits _nothing_in_common _slight "
        "went_back _both_ends _failure "
        "_plain _sentence _who visible_rate _told _what_a_file_cannot_show "
        "describe_loss describe_shape explained inverted_latencies "
        "site_option read_reason "
        "site_word _complaint _said _warnings counted "
    ),
    "excuse by others: two sides switches off what it asks": "_beside_others",
    "not in the model: other programs, baselines, cut files of others, one node": (
        "_against_pair _in_decimal_megabytes _side_times _doubt _too_fast "
        "_unless_too_fast _due_sizes _not_in_the_table collective_of "
        "collective_floor describe_collective judge_busbw describe_busbw judge_rings "
        "describe_rings "
        "after_baseline errors_of_all judge_free_path prove_one_node read_refusal "
    ),
    "not in the model: admissions, and looks of a night as runs": "no_samples",
    "not in the model: buffers on GPUs": "_of_buffers buffers_of on_gpus",
    "not in the model: containers": "what_the_container_lacks",
    "not in the model: stacks that are built in a run": (
        "_of_others _of_build _build_reason _of_one_build rebuilt "
    ),
    "a rule that no fault of the library needs, yet; tests of its own module do": (
        "doubt_of possible_up_to _sends_the_other_way _worst limit_of "
    ),
    "statistics, which tests/history/stats and benchmarks hold against others": (
        "lag_of _robust prior in_time split_statistic fewer_nights _located _drift _drifts "
        "print_step alike_orders "
    ),
}
NO_RULES = {name for names in REASONS.values() for name in names.split()}

BY_NAME = {rule.name: rule for rule in RULES}
SWITCHED = {target.rpartition(":")[2] for rule in RULES for target in rule.targets}


def called_by(module, function):
    """Return the names of the library's functions that a function calls."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(module, function))))
    names = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    found = {name: getattr(module, name, None) for name in names}
    return {
        name
        for name, each in found.items()
        if inspect.isfunction(each) and each.__module__.startswith("fabricproof")
    }


@pytest.mark.parametrize("name", DECIDING)
def test_whatever_a_deciding_function_calls_is_a_rule_or_has_its_reason(name):
    module = importlib.import_module(f"fabricproof.{name}")
    for function in DECIDING[name]:
        new = called_by(module, function) - SWITCHED - NO_RULES
        assert not new, f"{name}.{function} calls {new}: a rule of mutations.py, or in REASONS"


def test_every_test_of_the_path_is_a_rule():
    assert {test.__name__ for test in traffic._TESTS} <= {*BY_NAME}


def test_what_has_a_reason_is_called_somewhere():
    called = {
        each
        for name, functions in DECIDING.items()
        for function in functions
        for each in called_by(importlib.import_module(f"fabricproof.{name}"), function)
    }
    decided = {function for functions in DECIDING.values() for function in functions}
    assert called | decided >= NO_RULES
    assert not NO_RULES & SWITCHED


def test_every_rule_that_a_fault_names_is_there_and_each_has_a_fault():
    named = {rule for entry in read_library() for rule in entry.rules}
    assert named <= {*BY_NAME}
    assert {*BY_NAME} - named == {*UNNOTICED}


@pytest.mark.parametrize("rule", RULES, ids=lambda each: each.name)
def test_a_rule_is_switched_off_and_comes_back(rule):
    def stands():
        found = []
        for target in rule.targets:
            module, _, path = target.partition(":")
            holder = import_target(module)
            found.append(attrgetter(path)(holder))
        return found

    before = stands()
    with switched_off(rule):
        assert all(now != was for now, was in zip(stands(), before, strict=True))
    assert stands() == before


@pytest.mark.parametrize(
    "name", ["ranks_are_apart", "both looks weighed", "required checks", "INVALID is not cleared"]
)
def test_a_rule_that_is_off_is_missed(name):
    assert who_notices(BY_NAME[name], everybody=False)


def test_nothing_is_noticed_where_nothing_is_off():
    idle = BY_NAME["ceiling"]
    same = type(idle)(name="ceiling", targets=idle.targets, off=lambda old: old)
    assert who_notices(same, everybody=False) == ()


def test_a_borderline_leg_is_blamed_by_the_other_legs_of_its_night():
    """Its time was 144 % where 143 % are allowed, and green with others: "only the way between"."""
    (entry,) = (each for each in read_library() if each.title == "slow node (memory)")
    (rule,) = (each for each in RULES if each.name == "one blame of all legs")
    assert attempt(entry, entry.must, 7).blamed
    with switched_off(rule):
        assert not attempt(entry, entry.must, 7).blamed
