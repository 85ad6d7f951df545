"""The quantities of a baseline under the keys of history, as one side of a comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fabricproof.history.store import Key
from fabricproof.verdict.baseline import Baseline, BaselineRow, path_of, read_baseline


def samples_of(site_folder: Path, name: str) -> dict[Key, dict[str, float]]:
    """Return every quantity of a site's baseline with run to value, outliers left out.

    Raises:
        InputMissingError: there is no such baseline.
        ParseError: its file is damaged.
    """
    return samples_in(read_baseline(path_of(site_folder, name)))


def samples_in(baseline: Baseline) -> dict[Key, dict[str, float]]:
    """Return every quantity of a baseline with run to value, outliers left out."""
    return {key: dict(row.samples) for key, row in keyed(baseline).items()}


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
