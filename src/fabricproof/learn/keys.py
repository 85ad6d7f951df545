"""A baseline's samples under the keys that comparing and reports use."""

from __future__ import annotations

from dataclasses import asdict

from fabricproof.baseline.model import Baseline
from fabricproof.store import Key


def samples_of(baseline: Baseline) -> dict[Key, dict[str, float]]:
    """Return every quantity of a baseline with run to value, outliers left out."""
    return {
        Key(
            site=baseline.site,
            **asdict(place),
            quantity=row.quantity,
            unit=row.unit,
            message_size=row.message_size,
            better=row.better,
            named=row.named,
        ): dict(row.samples)
        for place, row in baseline.rows()
    }
