"""A recorded collective of four nodes, judged; and the same job with each thing gone wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg, Traffic
from fabricproof.job.outcome import Outcome, judge_leg
from fabricproof.physics import Fabric, Shaper, find_link
from fabricproof.traffic import PathState
from leg_folders import speeds

DATA = Path(__file__).parents[1] / "data" / "collectives" / "osu_allreduce-7.2"

#: 24 measured and 2 unmeasured rounds of 1 to 65536 bytes
LEAST = 26 * (2**17 - 1)

LEG = Leg(
    name="rail0.4x1",
    rails=("rail0",),
    suite="osu",
    program="osu_allreduce",
    environment={},
    commands=(("osu_allreduce", "-f", "-m", "65536", "-i", "24", "-x", "2"),),
    expected_sizes=tuple(2**step for step in range(17)),
    spread=False,
    num_nodes=4,
    traffic=Traffic(at_least=((LEAST, LEAST, 24 * 17),) * 4),
    required=("latency_4B", "latency_64KiB"),
    fabric=Fabric(
        link=find_link("200MbE"),
        protocol="tcp",
        mtu=1500,
        shaper=Shaper(burst_bytes=3200, instant_bytes=3200),
    ),
    tolerance=0.1,
    channel_leg="rail0.pair",
    stated_alpha_us=1000.0,
    model_factor=6.0,
)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for name in ("rail0_4x1.1", "rail0_pair.1"):
        shutil.copytree(DATA / name, tmp_path / "legs" / name)
    return tmp_path


def rewrite(job: Path, pattern: str, change: Callable[[str], str]) -> None:
    for path in (job / "legs" / "rail0_4x1.1").glob(pattern):
        path.write_text(change(path.read_text()))


def words(outcome: Outcome) -> dict[str, Verdict]:
    return {each.name: each.verdict for each in speeds(outcome.report)}


def test_the_recorded_job_is_green_by_the_model_of_its_own_pair(job: Path) -> None:
    outcome = judge_leg(job, LEG)
    assert set(words(outcome).values()) == {Verdict.PASS}
    assert outcome.report.net_path is not None
    assert outcome.report.net_path.state is PathState.PROVEN
    last = speeds(outcome.report)[-1]
    assert last.name == "latency_64KiB"
    assert last.value == 6663.94
    assert last.ceiling is not None
    assert 1500 < last.ceiling < last.value
    assert last.origin is not None
    assert "model" in last.origin


def _exchanged(text: str) -> str:
    """The same counters under exchanged names: rail0 stood still, mgmt0 carried it all."""
    return text.replace("mgmt0", "\0").replace("rail0", "mgmt0").replace("\0", "rail0")


def _least(*node: int) -> Leg:
    sent, received, packets = node
    return replace(LEG, traffic=Traffic(at_least=((sent, received, packets),) * 4))


@pytest.mark.parametrize(
    ("leg", "pattern", "change", "verdict", "said"),
    [
        (LEG, "rank.*", _exchanged, Verdict.INVALID, "another path"),
        # bytes that left by the rail and came by another
        (_least(LEAST, 3 * LEAST, 24 * 17), "", str, Verdict.INVALID,
            "must have received"),
        (_least(LEAST, LEAST, 10**6), "", str, Verdict.INVALID,
            "small messages took another path"),
        (LEG, "rank.1.0", lambda text: text.replace("node vc2", "node vc1"), Verdict.INVALID,
            "ranks on each node"),
        *(
            (
                LEG, "stdout", lambda text, rows=rows: "\n".join(text.splitlines()[:-rows]) + "\n",
                Verdict.MISSING, "",
            )
            for rows in (1, 5)
        ),
        (LEG, "stdout", lambda text: text[:-30], Verdict.MISSING, ""),
        (replace(LEG, channel_leg="rail0.none"), "", str, Verdict.UNJUDGED, ""),  # no pair
    ],
)  # fmt: skip
def test_the_same_job_gone_wrong(
    job: Path, leg: Leg, pattern: str, change: Callable[[str], str], verdict: Verdict, said: str
) -> None:
    if pattern:
        rewrite(job, pattern, change)
    outcome = judge_leg(job, leg)
    found = words(outcome)
    assert set(found.values()) == {verdict}
    assert verdict is not Verdict.MISSING or set(found) == {"latency_4B", "latency_64KiB"}
    assert said in outcome.report.quantities[0].reason


def test_faster_than_physics_is_invalid(job: Path) -> None:
    """A thousandth of the largest message's time: a number in milliseconds, say."""
    rewrite(
        job, "stdout", lambda text: text.replace("6663.94", "   6.66").replace("5830.80", "5.83")
    )
    found = words(judge_leg(job, LEG))
    assert found["latency_64KiB"] is Verdict.INVALID
    assert found["latency_32KiB"] is Verdict.PASS


def test_slower_than_the_model_allows_is_a_failure(job: Path) -> None:
    found = words(judge_leg(job, replace(LEG, model_factor=1.0, stated_alpha_us=0.0)))
    assert Verdict.FAIL in found.values()


def test_a_rank_that_never_reported_leaves_nothing_green(job: Path) -> None:
    (job / "legs" / "rail0_4x1.1" / "rank.3.0").unlink()
    assert Verdict.PASS not in words(judge_leg(job, LEG)).values()
