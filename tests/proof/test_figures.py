"""Counts become rates with their bounds, and the least strength that is seen."""

from __future__ import annotations

from fabricproof.core.measure import Verdict
from fabricproof.history.stats.shifts import Change
from proof import campaign
from proof.campaign import ProofPlan, digest_of_code, prove
from proof.figures import of_clean, of_fault
from proof.library import read_library
from proof.live import LiveDraw, read_live
from proof.page import page
from proof.tries import CleanCampaign, Try

ENTRY = next(each for each in read_library() if each.title == "half-rate link")


def one(strength, *, caught, seed=0):
    return Try(
        fault=ENTRY.title,
        strength=strength,
        seed=seed,
        fabric="verbs",
        noise="lognormal",
        verdict="FAIL" if caught else "PASS",
        caught=caught,
        blamed=caught,
        worded=caught,
        said="" if caught else "nothing",
    )


def test_a_floor_is_the_strength_from_which_on_all_are_caught():
    tries = [one(s, caught=s != 0.04, seed=n) for s in ENTRY.strengths for n in range(4)]
    tries += [one(0.08, caught=False, seed=9)]
    found = of_fault(ENTRY, tries)
    assert found.all_but == 0.1
    assert str(found.by_strength[0.04]).startswith("0 of 4")


def test_a_proof_that_was_ended_goes_on_and_other_code_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "RULES", ())
    file = tmp_path / "kept.jsonl"
    plan = ProofPlan(clean=1, tries=0, weaker=0)
    first = prove(plan, file, lambda *_: None, jobs=1)
    lines = file.read_text()
    assert prove(plan, file, lambda *_: None, jobs=1) == first
    assert file.read_text() == lines
    file.write_text(lines.replace(digest_of_code(), "0" * 12) + '{"torn')
    assert prove(plan, file, lambda *_: None, jobs=1) == first
    assert len(file.read_text().splitlines()) == 2


def drawn(
    fault: str, verdict: str, *, caught: bool = True, blamed: bool | None = True, load: float = 1.0
) -> LiveDraw:
    return LiveDraw(
        fault=fault, by="pairs run", draw="vc1 rail0", verdict=verdict, caught=caught,
        blamed=caught if blamed else blamed, date="2026-01-01", load=load,
    )  # fmt: skip


def test_what_is_published_of_live_draws_is_of_faults_of_the_library():
    titles = {"", *(each.title for each in read_library() if each.is_live)}
    draws = read_live()
    assert {each.fault for each in draws} <= titles
    words = {key: {*Verdict} for key in ("pairs run", "pairs run --for", "admit", "nightly")}
    words["run"] = {*Verdict, "exit 69", "exit 74"}
    words["nights"] = {*Change, Verdict.PASS, Verdict.FAIL}
    assert all(each.verdict in words[each.by] for each in draws)
    assert draws


def test_the_page_says_what_was_missed():
    clean = CleanCampaign(
        seed=0, fabric="verbs", noise="stalls", nights=8, verdicts={"PASS": 7, "FAIL": 1},
        blamed=1, second_looks=2, confirmations=1, said="x",
    )  # fmt: skip
    text = page(
        date="2026-01-01", code="abc", seed=0, clean=of_clean([clean]),
        faults=[of_fault(ENTRY, [one(0.5, caught=False)])],
        noticed={"ceiling": (), "floor": ("x",)},
        live=[
            drawn("", "PASS", load=0.4), drawn("", "UNJUDGED", load=9.0),
            drawn("half-rate link", "FAIL"), drawn("half-rate link", "PASS", caught=False),
            drawn("truncated output", "MISSING", blamed=None),
        ],
    )  # fmt: skip
    assert "| any FAIL | 1 of 1 (2 to 100 %) |" in text
    assert "| half-rate link | 0.5 of the rate | - | 0 of 1 (0 to 98 %) |" in text
    assert "- half-rate link: blamed right 0 of 1, said right 0 of 1." in text
    assert "**half-rate link**: seed 0 (verbs): nothing" in text
    assert "Nobody notices:\n\n- ceiling: no fault needs it, yet\n" in text
    assert "\n- x: floor\n" in text
    assert "- `pairs run`, PASS or UNJUDGED: **no fault** (2)\n" in text
    assert "- `pairs run`, MISSING: truncated output (1)\n" in text
    assert ("| half-rate link | pairs run | 1 of 2 (1 to 99 %) | 1 of 2 | 1 FAIL, 1 PASS |") in text
    assert "5 draws at a load of 0.4 to 9, the last of 2026-01-01" in " ".join(text.split())
