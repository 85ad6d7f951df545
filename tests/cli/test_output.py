"""What a person is shown of a long list of judgements."""

from __future__ import annotations

from fabricproof.cli.output import STATUSES
from fabricproof.core.measure import Verdict
from fabricproof.report.text.terminal import STYLES
from fabricproof.verdict.value import Judgement, curve_summary, shown


def point(size: int, verdict: Verdict, value: float = 50.0, *, named: bool = False) -> Judgement:
    return Judgement(
        name=f"bandwidth_{size}B",
        value=value,
        unit="MB/s",
        message_size=size,
        verdict=verdict,
        reason="because",
        ceiling=100.0,
        reference=90.0,
        named=named,
    )


def test_every_verdict_has_a_status_and_a_style() -> None:
    assert set(STATUSES) == set(STYLES) == set(Verdict)
    green = [verdict for verdict, status in STATUSES.items() if status == 0]
    assert green == [Verdict.PASS]


def test_the_worst_red_point_is_shown_and_the_rest_are_counted() -> None:
    points = [
        point(1, Verdict.FAIL, 60),
        point(2, Verdict.FAIL, 10),
        point(4, Verdict.INVALID, 101),
        point(8, Verdict.INVALID, 200),
        point(16, Verdict.PASS),
        point(32, Verdict.PASS, named=True),
    ]
    assert [each.message_size for each in shown(points)] == [2, 8, 32]
    assert curve_summary(points) == [
        "FAIL     1 more point of the curve, bandwidth_1B",
        "INVALID  1 more point of the curve, bandwidth_4B",
        "PASS     1 more point of the curve, bandwidth_16B",
    ]


def test_nothing_is_shown_twice_or_lost() -> None:
    points = [point(2**power, Verdict.FAIL, power) for power in range(1, 9)]
    counted = curve_summary(points)
    assert len(shown(points)) == 1
    assert counted == ["FAIL     7 more points of the curve, bandwidth_4B to bandwidth_256B"]
