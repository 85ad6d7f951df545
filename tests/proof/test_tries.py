"""A try is right, or it says what was not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricproof.core.measure import Verdict
from proof.library import BlameDue, read_library
from proof.tries import attempt, clean

BY_TITLE = {each.title: each for each in read_library()}


@pytest.mark.parametrize("fabric", ["verbs", "sockets"])
def test_a_clean_campaign_is_green_and_blames_nobody(fabric):
    came = clean(fabric, seed=5)
    assert came.verdicts == {"PASS": 8}, came.said
    assert came.blamed == 0


@pytest.mark.parametrize(
    "title",
    ["half-rate link", "wrong rail used", "full disk", "stall at one look", "slow leaf"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_fault_is_caught_blamed_and_said_right(title, seed):
    entry = BY_TITLE[title]
    came = attempt(entry, entry.must, seed)
    assert (came.caught, came.blamed, came.worded, came.said) == (True, True, True, "")


def test_a_seed_draws_the_same_again():
    entry = BY_TITLE["jitter"]
    assert attempt(entry, 0.5, 3) == attempt(entry, 0.5, 3)


def test_a_fault_too_weak_to_see_is_not_caught():
    came = attempt(BY_TITLE["half-rate link"], 0.02, 0)
    assert (came.verdict, came.caught) == ("PASS", False)


@pytest.mark.parametrize(
    "unlike",
    [
        {"verdicts": frozenset({Verdict.INVALID})},
        {"blame": BlameDue.PAIR},
        {"words": ("nobody says this",)},
    ],
    ids=["verdict", "blame", "words"],
)
def test_what_is_not_right_is_told(unlike):
    came = attempt(replace(BY_TITLE["half-rate link"], **unlike), 0.5, 0)
    assert not (came.caught and came.blamed and came.worded)
    assert "below the lower bound" in came.said
