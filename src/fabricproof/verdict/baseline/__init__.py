"""What known-good runs measured, kept in the site's folder, and what follows for a new number."""

from __future__ import annotations

from fabricproof.verdict.baseline.apply import (
    UNKNOWN,
    LegSeen,
    changes,
    outside,
    that_matter,
    why_not,
    with_baseline,
)
from fabricproof.verdict.baseline.file import names_in, path_of, read_baseline, write_baseline
from fabricproof.verdict.baseline.model import (
    PLACE,
    Baseline,
    BaselineLeg,
    BaselineNode,
    BaselineRow,
    Facts,
    LegPlace,
    Outlier,
)
from fabricproof.verdict.baseline.stage import of_leg, read_stage, write_stage

__all__ = [
    "PLACE",
    "UNKNOWN",
    "Baseline",
    "BaselineLeg",
    "BaselineNode",
    "BaselineRow",
    "Facts",
    "LegPlace",
    "LegSeen",
    "Outlier",
    "changes",
    "names_in",
    "of_leg",
    "outside",
    "path_of",
    "read_baseline",
    "read_stage",
    "that_matter",
    "why_not",
    "with_baseline",
    "write_baseline",
    "write_stage",
]
