"""The quantities of a baseline under the keys of history, as one side of a comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fabricproof.history.baseline_file import find_baseline
from fabricproof.history.store import Key
from fabricproof.verdict.references import Baseline, BaselineRow


def samples_of(site_folder: Path, name: str) -> dict[Key, dict[str, float]]:
    """Return every quantity of a site's baseline with run to value, outliers left out.

    Raises:
        InputMissingError: there is no such baseline.
        ParseError: its file is damaged.
    """
    baseline = find_baseline(site_folder, name)
    return {key: baseline.samples_of(row) for key, row in keyed(baseline).items()}


def keyed(baseline: Baseline) -> dict[Key, BaselineRow]:
    """Return every quantity of a baseline under its key: median, bounds, samples."""
    return {
        Key(
            site=baseline.site,
            **asdict(place),
            quantity=row.quantity,
            unit=row.unit,
            message_size=row.message_size,
            better=row.better,
            named=row.named,
        ): row
        for place, row in baseline.rows()
    }
