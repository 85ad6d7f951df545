"""Reports made by hand, and the recorded history that tests of reports begin with."""

from __future__ import annotations

import datetime
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fabricproof.core.findings import Finding, FindingKind, Where
from fabricproof.core.measure import QUANTITY_KEYS, Verdict
from fabricproof.core.records import QuantityRecord
from fabricproof.history.store import Matrix, Run
from fabricproof.job.run import LegResult, RunResult
from fabricproof.job.run.start import Workplace
from fabricproof.report.model import ReportData

DATA = Path(__file__).resolve().parents[1] / "data" / "history" / "report"

LINKS = "20261121T194845Z-9b26c1"
HEALTHY = "20261121T200152Z-b841bb"
SLOW = "20261121T200210Z-8f3a82"
DOWN = "20261121T200247Z-e0ec83"
NEWEST = "20261121T213348Z-e75415"

RUN = Run(
    run_id="20261101T020000Z-abc123",
    start=datetime.datetime(2026, 11, 1, 2, tzinfo=datetime.UTC),
    inventory={"n1": "1111", "n2": "2222"},
    builds={"openmpi5": "51af"},
)


def recorded(folder: Path) -> Workplace:
    """Return a workplace whose perflogs are a copy of the recorded ones."""
    # What the store keeps beside the records is made anew.
    shutil.copytree(DATA, folder / "perflogs", ignore=shutil.ignore_patterns(".index"))
    return Workplace(project=folder, root=folder / "work", perflogs=folder / "perflogs")


def quantity(verdict: str = "PASS", **changes: Any) -> QuantityRecord:
    """Return a quantity as it is read from the records."""
    facts = {
        "name": "bandwidth_4MiB",
        "value": 47.0,
        "unit": "MB/s",
        "message_size": 4 * 2**20,
        "verdict": verdict,
        "reason": "97 % of 48.5 MB/s (physics)",
        "named": True,
        "ceiling": 48.6,
        "ceiling_name": "link",
        "reference": 48.5,
        "lower": 43.0,
        "upper": None,
        "origin": "physics: the link binds",
        **changes,
    }
    rails = facts.pop("rails", ["rail1"])
    return quantity_of(facts, rails=rails)


def quantity_of(facts: Mapping[str, Any], **others: Any) -> QuantityRecord:
    """Return the quantity of a record with these facts, and with others that are not its own."""
    own = {QUANTITY_KEYS[name]: value for name, value in facts.items()}
    return QuantityRecord.read({**own, **others})


#: how findings begin that have a kind, the longer beginnings first
_KINDS = (
    ("second look: red again on the same nodes", FindingKind.SECOND_LOOK_RED),
    ("second look", FindingKind.SECOND_LOOK_PASSED),
    ("no second look was made", FindingKind.NO_SECOND_LOOK),
    ("preflight", FindingKind.PREFLIGHT),
    ("the site's reference", FindingKind.OTHER_BUILD),
    ("protocol switch", FindingKind.PROTOCOL_SWITCH),
)
_LINK = re.compile(r"preflight: (?P<rail>\S+) on (?P<node>[\w.-]+) (?P<fact>.+)")


def typed(*texts: str) -> tuple[Finding, ...]:
    """Return findings with the kinds that such texts have."""
    found = []
    for text in texts:
        kind = next((kind for mark, kind in _KINDS if text.startswith(mark)), FindingKind.NOTE)
        link = _LINK.match(text)
        where = Where(rail=link["rail"], node=link["node"]) if link else Where()
        fact, alone = link["fact"] if link else "", text.removeprefix("preflight: ")
        found.append(Finding(text=alone, kind=kind, fact=fact, where=where))
    return tuple(found)


def leg(verdict: Verdict = Verdict.PASS, **changes: Any) -> LegResult:
    """Return a leg over rail1 between n1 and n2."""
    rails = changes.pop("rails", ["rail1"])
    named = {"value": 25.0} if verdict is Verdict.FAIL else {}
    facts: dict[str, Any] = {
        "check": "OsuBandwidth",
        "partition": "compute",
        "stack": "openmpi5",
        "suite": "osu",
        "program": "osu_bw",
        "fabric": "eth0",
        "leg": "rail1",
        "nodes": ("n1", "n2"),
        "quantities": (quantity(verdict.value, rails=rails, **named),),
        "reason": "" if verdict is Verdict.PASS else "bandwidth_4MiB: 52 % of 48.5 MB/s",
        "job_id": "42",
        **changes,
    }
    return LegResult(verdict=verdict, **facts)


def report(*legs: LegResult, **changes: Any) -> ReportData:
    """Return a report of these legs."""
    facts: dict[str, Any] = {
        "site": "here",
        "made": datetime.datetime(2026, 11, 1, 7, tzinfo=datetime.UTC),
        "run": RUN,
        "session": RunResult(run_id=RUN.run_id, legs=legs),
        "matrix": Matrix(keys=(), runs=(), values=np.empty((0, 0))),
        **changes,
    }
    return ReportData(**facts)


def reds(pairs: Sequence[tuple[str, str]], goods: Sequence[tuple[str, str]]) -> ReportData:
    """Return a report in which these pairs were red, and these good."""
    return report(
        *(leg(Verdict.FAIL, nodes=pair) for pair in pairs),
        *(leg(Verdict.PASS, nodes=pair) for pair in goods),
    )
