"""The relation that tells how messages are shared among rails, on looks at legs."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from looks import bandwidths, look_at, sent

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Relation
from fabricproof.job.outcome import Outcome
from fabricproof.job.relations.rails import judge_sharing, sent_bytes
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.value import at_least

SIZES = tuple(2**power for power in range(21))
ONE = {size: size / (10 + size / 23.5) for size in SIZES}
TWO = {size: value * (1.95 if size > 65536 else 1) for size, value in ONE.items()}

#: 10 MB of small messages on rail1 alone, then 200 MB in equal parts; rank 1 only acknowledges
RANKS = (
    sent(0, {"rail0": 2_000, "rail1": 10_000_000}, part=0),
    sent(0, {"rail0": 101_000_000, "rail1": 99_000_000}, part=2),
    sent(1, {"rail0": 900_000, "rail1": 100_000}, part=2),
)


def make_looks(ranks: tuple[Any, ...] = RANKS) -> dict[str, Outcome]:
    return {
        "rail0": look_at("rail0", bandwidths(ONE)),
        "rail1": look_at("rail1", bandwidths(ONE)),
        "rail0+rail1": look_at("rail0+rail1", bandwidths(TWO), ranks),
    }


def make_relation(**changes: Any) -> Relation:
    settings = {
        "singles": {"rail0": "rail0", "rail1": "rail1"}, "together": "rail0+rail1", "large_part": 2,
        "expected_gain": 2.0, "weights": {"rail0": 0.5, "rail1": 0.5},
        "reference": asdict(at_least(1.0, unit="x", tolerance=0.1, origin="physics")),
        "threshold": "", "hint": "the last rail decides",
    }  # fmt: skip
    return Relation(
        name="sharing", kind="sharing", legs=("rail0", "rail1", "rail0+rail1"), suite="osu",
        program="osu_bw", settings={**settings, **changes},
    )  # fmt: skip


def test_even_stripes_pass_and_the_threshold_is_told() -> None:
    report = judge_sharing(make_relation(), make_looks())
    (balance,) = report.quantities
    assert (report.verdict, balance.name) == (Verdict.PASS, "balance_sharing")
    assert balance.value == pytest.approx(0.99, abs=0.001)
    assert texts_of(report.findings) == ["several rails help from 128KiB on"]


LOPSIDED = (sent(0, {"rail0": 130_000_000, "rail1": 70_000_000}, part=2),)
AWAY = replace(
    bandwidths(TWO, Verdict.INVALID), net_path=PathProof(state=PathState.WRONG, reason="elsewhere")
)


@pytest.mark.parametrize(
    ("threshold", "together", "ranks", "verdict", "says"),
    [
        ("", TWO, LOPSIDED, Verdict.FAIL, "rail0 65.0%, rail1 35.0%; the last rail decides"),
        ("", TWO, (), Verdict.UNJUDGED, "less than 256KiB"),  # no counters of large messages
        ("", AWAY, (), Verdict.INVALID, ""),
        ("128KiB", TWO, RANKS, Verdict.PASS, "they help from 128KiB"),
        ("8KiB", TWO, RANKS, Verdict.FAIL, "from 8KiB on: they help from 128KiB"),
        ("8KiB", ONE, RANKS, Verdict.FAIL, "they never help"),  # red, not forgotten
    ],
)
def test_sharing_is_judged(
    threshold: str, together: Any, ranks: tuple[Any, ...], verdict: Verdict, says: str
) -> None:
    looks = make_looks()
    report = together if together is AWAY else bandwidths(together)
    looks["rail0+rail1"] = look_at("rail0+rail1", report, ranks)
    judged = judge_sharing(make_relation(threshold=threshold), looks)
    assert judged.verdict is verdict
    assert says in judged.quantities[bool(threshold)].reason


def test_acknowledgements_are_not_counted_as_messages() -> None:
    look = make_looks()["rail0+rail1"]
    assert sent_bytes(look, ("rail0", "rail1"), 2) == {"rail0": 101_000_000, "rail1": 99_000_000}


def test_both_ways_both_nodes_count() -> None:
    ranks = tuple(sent(rank, {"rail0": 5 * 10**6, "rail1": 4 * 10**6}) for rank in (0, 1))
    look = look_at("rail0+rail1", bandwidths(TWO), ranks)
    assert sent_bytes(look, ("rail0", "rail1"), None) == {"rail0": 10**7, "rail1": 8 * 10**6}
