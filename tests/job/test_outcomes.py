"""All legs of a job: a collective is held against a pair only where the pair is to be believed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from test_collective_outcome import DATA, LEG, words

from fabricproof.core.measure import Verdict
from fabricproof.job import outcomes as all_legs
from fabricproof.job.leg import Leg, Traffic
from fabricproof.job.outcome import Outcome, judge_leg, needs_second_look
from fabricproof.job.outcomes import judge_legs
from fabricproof.verdict.value import at_most

#: what the recorded pair's own smallest message took is good here
GOOD = {"latency": at_most(40.0, unit="us", tolerance=0.1, origin="site (test)")}

SIZES = tuple(2**step for step in range(21))

PAIR = replace(
    LEG, name="rail0.pair", program="osu_latency", commands=(("osu_latency",), ("osu_latency",)),
    expected_sizes=SIZES, num_nodes=2, traffic=Traffic(exact=(1, 1)),
    required=("latency_1B",), channel_leg="", references=GOOD, curve_tolerance=100.0,
)  # fmt: skip


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for name in ("rail0_4x1.1", "rail0_pair.1"):
        shutil.copytree(DATA / name, tmp_path / "legs" / name)
    change(tmp_path, "rank.*", _as_if_all_had_arrived)
    return tmp_path


def _as_if_all_had_arrived(text: str) -> str:
    """The recording is older than our reading of what was sent again in vain."""
    return re.sub(r"RetransSegs=(\d+)", r"RetransSegs=\1 TCPDSACKRecvSegs=\1", text)


def change(job: Path, pattern: str, how: Callable[[str], str], leg: str = "rail0_pair.1") -> None:
    for path in (job / "legs" / leg).glob(pattern):
        path.write_text(how(path.read_text()))


def elsewhere(text: str) -> str:
    return text.replace("mgmt0", "\0").replace("rail0", "mgmt0").replace("\0", "rail0")


def collective(job: Path, pair: Leg = PAIR) -> Outcome:
    return judge_legs(job, (pair, LEG))[1]


def test_a_good_pair_changes_nothing(job: Path) -> None:
    pair, outcome = judge_legs(job, (PAIR, LEG))
    assert pair.report.verdict is Verdict.PASS
    assert outcome == judge_leg(job, LEG)
    assert set(words(outcome).values()) == {Verdict.PASS}


def test_a_pair_over_another_path_judges_no_collective(job: Path) -> None:
    change(job, "rank.*", elsewhere)
    outcome = collective(job, replace(PAIR, traffic=Traffic(exact=(10**6, 10**6))))
    assert set(words(outcome).values()) == {Verdict.UNJUDGED}
    assert "leg rail0.pair, which says what it should take" in outcome.report.quantities[0].reason
    assert "another path" in outcome.report.quantities[0].reason


def test_a_pair_that_is_slow_itself_judges_no_collective(job: Path) -> None:
    """Ten times the smallest message's time would let a ten times slower collective pass."""
    slow = replace(PAIR, references={"latency": at_most(3.0, unit="us", origin="site (test)")})
    outcome = collective(job, slow)
    assert set(words(outcome).values()) == {Verdict.UNJUDGED}
    assert needs_second_look(outcome)
    for each in outcome.attempts[0].report.quantities:
        assert outcome.takes(each)


def test_a_pair_of_which_nobody_says_what_it_should_be_still_says_what_a_message_costs(
    job: Path,
) -> None:
    outcome = collective(job, replace(PAIR, references={}))
    assert set(words(outcome).values()) == {Verdict.PASS}


def test_the_sound_attempt_of_a_pair_counts_not_its_latest(job: Path) -> None:
    """The second look at a pair, for a stall inside its curve, changes no collective's verdict."""
    legs = job / "legs"
    shutil.copytree(legs / "rail0_pair.1", legs / "rail0_pair.2")
    change(job, "stdout", lambda text: text.replace("32.64", "9999.99"), "rail0_pair.2")
    assert collective(job) == judge_leg(job, LEG, 1)
    shutil.move(legs / "rail0_pair.1", legs / "kept")
    shutil.move(legs / "rail0_pair.2", legs / "rail0_pair.1")
    shutil.move(legs / "kept", legs / "rail0_pair.2")
    assert collective(job) == judge_leg(job, LEG, 2)


def test_a_leg_whose_judge_fails_is_missing_and_the_others_are_judged(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path, leg: Leg, channel_attempt: int = 0) -> Outcome:
        if leg.name == "bad":
            raise KeyError("repetitions")
        return judge_leg(folder, leg, channel_attempt)

    monkeypatch.setattr(all_legs, "judge_leg", broken)
    bad, _, good = judge_legs(job, (replace(LEG, name="bad"), PAIR, LEG))
    assert bad.report.verdict is Verdict.MISSING
    assert "KeyError('repetitions')" in bad.report.quantities[0].reason
    assert good.report.verdict is Verdict.PASS


def test_the_judge_in_a_job_starts_without_the_schema_of_site_files() -> None:
    """It starts once after the legs and once for each round, while the nodes wait."""
    code = "import sys, fabricproof.job.second_look; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
