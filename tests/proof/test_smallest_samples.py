"""Every rule can fire with the sample that the tool asks for, and says so where it cannot."""

from __future__ import annotations

import pytest

from fabricproof.history.stats.steps import least_runs
from fabricproof.job import rounds
from fabricproof.proof.power import _least, _newest_step, least_samples

#: rule -> what it takes, and what a user is told with one fewer
DUE = {
    "a number against its bounds: FAIL": ("2 looks in a job", "second look: passed"),
    "path of a number: INVALID": ("1 looks in a job", "nothing is below it"),
    "night: a node is blamed": ("3 usable nodes", "no node of compute that could be a partner"),
    "pairs run: a node is blamed": ("4 nodes", "nothing is below it"),
    "relation between legs: FAIL": (f"{rounds.LEAST_RED} rounds", "some 6 rounds would tell"),
    "relation between legs: PASS": (f"{rounds.LEAST} rounds", "some 3 rounds would tell"),
    "losses on a lossless fabric: FAIL": ("1 packets", "nothing is below it"),
    "losses of TCP at ten times its limit: seen": ("118424 packets", "show no rate below 100"),
    "compare: BETTER or WORSE": ("4 runs on each side", "3 runs against 3 cannot be BETTER"),
    "compare: SAME": ("3 runs on each side", "nor SAME"),
    "compare: one run against several": ("19 runs of the other side", "18 runs against 1 cannot"),
    "trend: a step": ("8 runs", "with fewer than 8 only a last run"),
    "trend: a step three runs ago, for sure": ("8 runs", "with fewer than 8 only a last run"),
    "trend: a step two runs ago": ("11 runs", "with fewer than 11 a change that began two runs"),
    "trend: a last run that is far off": ("6 runs", "too few runs of model"),
    "trend: a drift": ("7 runs", "or a drift, can be told"),
    "baseline: any bound": ("5 runs", "expected at least 5, got 4"),
}


def test_every_rule_fires_and_is_not_silent_where_it_cannot():
    found = {each.rule: each for each in least_samples()}
    assert {rule: each.sample for rule, each in found.items()} == {
        rule: sample for rule, (sample, _) in DUE.items()
    }
    silent = {
        rule: found[rule].below
        for rule, (_, words) in DUE.items()
        if words not in found[rule].below
    }
    assert not silent


def test_a_rule_that_never_fires_is_an_error():
    with pytest.raises(AssertionError, match="never fires"):
        _least("idle", "runs", lambda _: (False, ""), 1)


def test_what_a_step_takes_is_what_the_search_finds():
    assert (least_runs(2), least_runs(3), least_runs(4)) == (11, 8, 8)
    assert [_newest_step(num)[0] for num in (10, 11)] == [False, True]
