"""The relation of a far pair to a near one."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from looks import bandwidths, look_at

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Relation
from fabricproof.job.outcome import Outcome
from fabricproof.job.relations.judge import JUDGES
from fabricproof.verdict.value import Report, at_most

#: document 002: over one switch and over five, as the placement check would plan them
RELATION = Relation(
    name="rail0.far_over_near",
    kind="hops",
    legs=("near", "far"),
    suite="osu",
    program="osu_latency",
    settings={
        "quantity": "latency",
        "sizes": [1, 2],
        "over": ["far"],
        "under": ["near"],
        "reference": asdict(at_most(1.8, unit="x", tolerance=0.25, origin="4 switches more")),
        "hops": {"near": 1, "far": 5},
    },
)


def _latency(us: float) -> Report:
    report = bandwidths({1: us, 2: us})
    names = ("latency_1B", "latency_2B")
    return replace(
        report,
        quantities=tuple(
            replace(each, name=name, unit="us")
            for each, name in zip(report.quantities, names, strict=True)
        ),
    )


def _looks(near_us: float, far_us: float) -> dict[str, Outcome]:
    return {"near": look_at("near", _latency(near_us)), "far": look_at("far", _latency(far_us))}


@pytest.mark.parametrize(
    ("near_us", "far_us", "verdict"),
    [(1.03, 1.85, Verdict.PASS), (1.67, 2.57, Verdict.PASS), (1.03, 2.57, Verdict.FAIL)],
)
def test_document_002_is_judged_by_distance(
    near_us: float, far_us: float, verdict: Verdict
) -> None:
    report = JUDGES["hops"](RELATION, _looks(near_us, far_us))
    assert report.verdict is verdict
    assert texts_of(report.findings)[0].startswith(f"1 switch {near_us} us, 5 switches {far_us} us")


def test_a_leg_without_numbers_leaves_nothing_to_judge() -> None:
    looks = _looks(1.0, 1.5)
    looks["far"] = look_at("far", Report(verdict=Verdict.PASS, quantities=(), net_path=None))
    assert JUDGES["hops"](RELATION, looks).verdict is Verdict.UNJUDGED
