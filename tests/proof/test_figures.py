"""Counts become rates with their bounds, and the least strength that is seen."""

from __future__ import annotations

from fabricproof.core.measure import Verdict
from fabricproof.history.stats.shifts import Change
from proof import campaign
from proof.campaign import ProofPlan, digest_of_code, prove
from proof.figures import of_clean, of_fault
from proof.library import read_library
from proof.live import LiveDraw, read_live
from proof.page import page, picture
from proof.power import Least
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
    assert (found.half, found.all_but) == (0.06, 0.1)
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


def test_the_page_says_what_was_missed_and_what_is_neither():
    clean = CleanCampaign(
        seed=0, fabric="verbs", noise="stalls", nights=8, verdicts={"PASS": 7, "FAIL": 1},
        blamed=1, second_looks=2, confirmations=1, said="x",
    )  # fmt: skip
    faults = [of_fault(ENTRY, [one(0.5, caught=False)])]
    text = page(
        date="2026-01-01", code="abc", seed=0, clean=of_clean([clean]), faults=faults,
        every=read_library(), noticed={"ceiling": (), "floor": ("x",)},
        least=[Least(rule="compare: SAME", sample="3 runs", below="2 runs against 2 cannot")],
        live=[
            drawn("", "PASS", load=0.4), drawn("", "UNJUDGED", load=9.0),
            drawn("half-rate link", "FAIL"), drawn("half-rate link", "PASS", caught=False),
            drawn("truncated output", "MISSING", blamed=None),
        ],
    )  # fmt: skip
    assert "| any FAIL | 1 of 1 (2 to 100 %) |" in text
    assert "**half-rate link**: seed 0 (verbs): nothing" in text
    assert "| ceiling | **nobody**: no fault needs it, yet |" in text
    assert "| mixed firmware |" in text
    assert (
        "| **none**: nothing red, nobody blamed | pairs run | 2 of 2 (16 to 100 %) | 2 of 2 | "
        "1 PASS, 1 UNJUDGED | 0.4 to 9 | 2026-01-01 |"
    ) in text
    assert "| half-rate link | pairs run | 1 of 2 (1 to 99 %) | 1 of 2 | 1 FAIL, 1 PASS |" in text
    assert "| truncated output | pairs run | 1 of 1 (2 to 100 %) | - | 1 MISSING |" in text
    assert "| compare: SAME | 3 runs | 2 runs against 2 cannot |" in text


def test_the_picture_has_a_line_for_each_fault_that_is_drawn():
    tries = [one(s, caught=s > 0.1) for s in ENTRY.strengths]
    assert picture([of_fault(ENTRY, tries)]).count("<polyline") == 1
