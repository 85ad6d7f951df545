"""The verdict table: nothing green that is not, the reason of what is red, the next step."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from report_data import quantity_of, typed
from rich.console import Console

from fabricproof.core.findings import as_notes
from fabricproof.core.measure import Verdict
from fabricproof.core.records import QuantityRecord
from fabricproof.job.run import BUILD_PROGRAM, LegResult, RunResult
from fabricproof.report.text.terminal import render


def _quantity(verdict: str = "PASS", **changes: Any) -> QuantityRecord:
    facts = {
        "name": "bandwidth_4MiB",
        "value": 47.0,
        "unit": "MB/s",
        "message_size": 4194304,
        "verdict": verdict,
        "reason": "97.0% of 48.5 MB/s (physics)",
        "named": True,
        "ceiling": 48.6,
        "reference": 48.5,
        "origin": "physics: the link binds",
        **changes,
    }
    return quantity_of(facts)


LEG = LegResult(
    verdict=Verdict.PASS,
    check="OsuBandwidth",
    partition="compute",
    stack="openmpi5",
    suite="osu",
    program="osu_bw",
    fabric="eth0",
    leg="rail0",
    nodes=("n1", "n2"),
    quantities=(_quantity(),),
    job_id="42",
)


def _shown(
    *legs: LegResult, notes: tuple[str, ...] = (), every_leg: bool = True, width: int = 200
) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, soft_wrap=width > 80, color_system=None)
    result = RunResult(run_id="run-1", legs=legs, notes=notes)
    render(result, console, every_leg=every_leg)
    return out.getvalue()


def _rows(text: str) -> list[str]:
    """Return the lines of the table below its head."""
    lines = text.splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("verdict"))
    return [line for line in lines[head + 1 :] if "osu_bw" in line and "rail0" in line]


def test_a_pass_shows_its_value_ceiling_and_what_it_was_judged_by() -> None:
    (row,) = _rows(_shown(LEG))
    for part in ("PASS", "openmpi5", "osu_bw", "rail0", "n[1-2]", "bandwidth_4MiB", "47.00 MB/s"):
        assert part in row
    assert "<= 48.6" in row
    assert "96.9% of 48.5 (physics)" in row


def test_a_green_run_of_ninety_legs_is_a_line_for_each_program_and_rail() -> None:
    """The number nearest its bound stands for all of them, and 80 columns hold it."""
    low = _quantity(value=44.0, lower=43.65)
    legs = [
        replace(LEG, stack=f"stack{at}", leg=rail, rails=(rail,), program=program)
        for at in range(15)
        for rail in ("rail0", "rail1")
        for program in ("osu_bw", "osu_latency", "osu_bibw")
    ]
    legs[7] = replace(legs[7], quantities=(_quantity(lower=43.65), low))
    text = _shown(*legs, every_leg=False, width=80)
    assert "PASS: 90 PASS of 90 legs" in text
    assert len(text.splitlines()) <= 16
    assert max(map(len, text.splitlines())) <= 80
    (row,) = [line for line in text.splitlines() if "osu_latency" in line and "rail0" in line]
    assert row.split()[:4] == ["PASS", "osu_latency", "rail0", "15"]
    assert " 44.00 MB/s, 90.7% of 48.5" in row


def test_what_is_red_stands_before_what_is_green() -> None:
    red = replace(LEG, verdict=Verdict.FAIL, quantities=(_quantity("FAIL"),), reason="slow")
    text = _shown(LEG, red, every_leg=False)
    assert text.startswith("FAIL     openmpi5 osu_bw rail0 on n[1-2] (job 42): slow")
    assert text.index("FAIL ") < text.index("\nPASS ")
    assert text.count("\nPASS ") == 1


@pytest.mark.parametrize("verdict", ["FAIL", "INVALID", "MISSING", "UNJUDGED"])
def test_red_is_told_in_a_sentence_with_job_reason_and_next_step(verdict: str) -> None:
    red = replace(
        LEG,
        verdict=Verdict(verdict),
        quantities=(_quantity(verdict),),
        reason="bandwidth_4MiB: 45% of 48.5 MB/s",
    )
    text = _shown(LEG, red)
    assert "(job 42): bandwidth_4MiB: 45% of 48.5 MB/s" in text
    assert f"{verdict}: 1 PASS, 1 {verdict} of 2 legs (run run-1)" in text
    assert "next: " in text


@pytest.mark.parametrize(
    ("took", "step"),
    [("starved_cores", "end what runs beside it"), ("", "give a reference in the site's")],
)
def test_what_others_disturbed_wants_quiet_and_no_reference(took: str, step: str) -> None:
    quantity = _quantity("UNJUDGED", disturbance=took)
    leg = replace(LEG, verdict=Verdict.UNJUDGED, quantities=(quantity,), reason="r")
    assert f"next: {step}" in _shown(LEG, leg)


@pytest.mark.parametrize("verdict", ["FAIL", "INVALID", "MISSING", "UNJUDGED"])
def test_no_row_of_a_red_leg_is_green_where_none_says_why(verdict: str) -> None:
    curve = _quantity(verdict, name="bandwidth_1KiB", named=False)
    red = replace(LEG, verdict=Verdict(verdict), quantities=(_quantity(), curve), reason="r")
    (row,) = _rows(_shown(red))[:1]
    assert row.startswith(verdict)


def test_beside_the_quantity_that_is_red_a_good_one_stays_green() -> None:
    slow = _quantity("FAIL", name="latency_1B", unit="us")
    red = replace(LEG, verdict=Verdict.FAIL, quantities=(_quantity(), slow), reason="r")
    verdicts = [row.split()[0] for row in _rows(_shown(red))[:2]]
    assert verdicts == ["PASS", "FAIL"]


def test_a_reason_in_brackets_is_shown_as_it_is() -> None:
    reason = "[Errno 28] no space in [/scratch/x] [red]"
    red = replace(LEG, verdict=Verdict.MISSING, quantities=(), reason=reason)
    assert _shown(red).count(reason) == 2


def test_skips_are_told_with_their_reason_and_are_no_rows() -> None:
    skipped = replace(LEG, verdict=Verdict.SKIPPED, quantities=(), reason="one rail only")
    text = _shown(LEG, skipped)
    assert "one rail only" in text
    assert len(_rows(text)) == 1


def test_what_waits_for_a_build_is_folded_into_one_line_and_the_build_shows_its_log() -> None:
    log = tuple(f"==> line {number}" for number in range(8))
    build = replace(
        LEG,
        verdict=Verdict.MISSING,
        program=BUILD_PROGRAM,
        leg="",
        nodes=(),
        quantities=(),
        job_id=None,
        findings=log,
        reason="no compiler",
        stage_folder="/stage/build",
    )
    reason = "stack openmpi5 was not built: no compiler"
    waiting = replace(build, program="osu_bw", reason=reason, findings=(), for_want_of="openmpi5")
    text = _shown(build, waiting, replace(waiting, program="osu_latency"), LEG)
    assert text.count(reason) == 1
    assert "MISSING  2 x osu_bw, osu_latency (openmpi5): stack openmpi5 was not built" in text
    assert "MISSING  openmpi5 stack build: no compiler" in text
    assert all(line in text for line in log)
    assert "fabricproof stack build openmpi5; it said: /stage/build" in text
    assert "MISSING: 1 PASS, 3 MISSING" in text


def test_a_stack_that_is_gone_is_one_line_and_a_few_lost_checks_are_lines_of_their_own() -> None:
    lost = [
        replace(LEG, verdict=Verdict.MISSING, leg="", nodes=(), quantities=(), job_id=None)
        for _ in range(40)
    ]
    gone = [
        replace(
            each,
            check=f"Check{index}",
            program="",
            stack="mpich5",
            reason="a required check",
        )
        for index, each in enumerate(lost)
    ]
    text = _shown(LEG, *gone)
    assert text.count("a required check") == 1
    assert "MISSING  40 x Check0, Check1, " in text
    assert "MISSING: 1 PASS, 40 MISSING" in text
    few = _shown(LEG, *gone[:5])
    assert few.count("MISSING  mpich5 Check") == 5


def test_lost_legs_that_have_more_to_say_are_never_folded() -> None:
    lost = replace(LEG, verdict=Verdict.MISSING, quantities=(), job_id=None, reason="no compiler")
    assert _shown(*[replace(lost, findings=as_notes(["error: cc"]))] * 9).count("error: cc") == 9
    assert _shown(*[replace(lost, job_id="7")] * 9).count("(job 7): no compiler") == 9


def test_a_link_that_is_not_as_declared_is_told_once_though_all_legs_pass() -> None:
    said = "preflight: rail0 on n1 has MTU 576 instead of 1500"
    slow = "dip: 1KiB carries 18.13 MB/s, 18% less than 512B (22.1)"
    text = _shown(
        *(replace(LEG, stack=stack, findings=typed(said, slow)) for stack in ("a", "b", "c"))
    )
    assert text.count(said) == 1
    assert f"note     {said} (a osu_bw rail0 on n1 - n2 and 2 more PASS)" in text
    assert slow not in text
    assert "PASS: 3 PASS" in text


def test_a_reason_does_not_steer_the_terminal() -> None:
    steering = "\x1b]0;mine\x07\x1b[2J\x00\x9b"
    red = replace(
        LEG,
        verdict=Verdict.FAIL,
        quantities=(),
        reason=f"slow{steering}",
        findings=as_notes([f"dip{steering}"]),
        stage_folder=f"/stage{steering}",
    )
    text = _shown(red, replace(LEG, verdict=Verdict.SKIPPED, reason=steering), notes=(steering,))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert "slow\ufffd]0;mine" in text


def test_the_command_to_repeat_can_be_copied() -> None:
    red = replace(LEG, verdict=Verdict.FAIL, stack="my mpi", reason="r", stage_folder="/stage")
    assert "fabricproof run -n OsuBandwidth -p 'my mpi'; its raw output: /stage/legs/" in _shown(
        red
    )
    out = io.StringIO()
    render(RunResult(run_id="r", legs=(red,)), Console(file=out, width=200), "here")
    assert "fabricproof run --site here -n OsuBandwidth -p 'my mpi';" in out.getvalue()
