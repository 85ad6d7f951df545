"""Looks at legs, made by hand: what relations are judged on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fabricproof.core.measure import Verdict
from fabricproof.core.units import size_label
from fabricproof.job.evidence.leg_folder import RankRecord
from fabricproof.job.leg import Leg
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict.value import Judgement, Report
from leg_folders import make_leg

PROVEN = PathProof(state=PathState.PROVEN, reason="over it")


def bandwidths(curve: Mapping[int, float], verdict: Verdict = Verdict.PASS) -> Report:
    """Return a report with a bandwidth for each message size."""
    quantities = tuple(
        Judgement(
            name=f"bandwidth_{size_label(size)}",
            value=value,
            unit="MB/s",
            message_size=size,
            verdict=verdict,
            reason="because",
        )
        for size, value in curve.items()
    )
    return Report(verdict=verdict, quantities=quantities, net_path=PROVEN)


def sent(rank: int, moved: Mapping[str, int], part: int = 0) -> RankRecord:
    """Return the record of a rank whose node sent so many bytes over each rail in one start."""
    start = part * 10**9
    return RankRecord(
        rank=rank,
        node=f"n{rank + 1}",
        part=part,
        status=0,
        before={rail: {"tx_bytes": start, "rx_bytes": 0} for rail in moved},
        after={rail: {"tx_bytes": start + count, "rx_bytes": 0} for rail, count in moved.items()},
    )


def look_at(
    name: str, report: Report, ranks: tuple[RankRecord, ...] = (), folder: Path = Path()
) -> Outcome:
    """Return one look at the leg called ``name``."""
    leg: Leg = make_leg(name=name, rails=tuple(name.split("+")))
    attempt = Attempt(number=1, folder=folder, status=0, table=None, ranks=ranks, report=report)
    return Outcome(leg=leg, attempts=(attempt,), report=report)
