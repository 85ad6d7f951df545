"""The README has the figures of the proof's page, and stays short."""

from __future__ import annotations

import re
from pathlib import Path

from proof.figures import of_clean, of_fault
from proof.library import read_library
from proof.page import in_short
from proof.tries import CleanCampaign, Try

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

#: words, tables and examples included
MOST_WORDS = 1200


def test_the_figures_of_the_readme_are_those_of_the_page():
    page = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
    (figures,) = re.findall(r"^Simulated campaigns without a fault: .*$", page, re.M)
    assert figures in " ".join(README.split()), "take them over: docs/proof.md was made anew"


def test_the_readme_is_short():
    assert len(README.split()) <= MOST_WORDS


def test_what_a_reader_is_told_in_short():
    entries = [each for each in read_library() if each.must is not None]
    fault = next(each for each in entries if each.title == "half-rate link")
    steady = next(each for each in entries if each.is_steady)
    tries = [
        Try(
            fault=entry.title,
            strength=entry.must,
            seed=seed,
            fabric="verbs",
            noise="stalls",
            verdict="FAIL",
            caught=right,
            blamed=right and seed > 0,
            worded=right,
        )
        for entry in (fault, steady)
        for seed, right in enumerate([True, True, False])
    ]
    campaign = CleanCampaign(
        seed=0, fabric="verbs", noise="stalls", nights=8, verdicts={"PASS": 8}, blamed=0,
        second_looks=0, confirmations=0,
    )  # fmt: skip
    told = in_short(of_clean([campaign]), [of_fault(each, tries) for each in (fault, steady)])
    assert told == (
        "Simulated campaigns without a fault: 0 of 1 (0 to 98 %) had a false FAIL, 0 a false "
        "blame. 1 faults at their strength: of 3 tries 2 were caught, 1 blamed right. Histories "
        "without a change: 1 of 3 were told of one.\n"
    )
