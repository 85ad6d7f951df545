"""A full, valid site folder, and copies of it with one text changed."""

from __future__ import annotations

import shutil
from pathlib import Path

FULL = Path(__file__).parent / "data" / "full"


def edit(folder: Path, file: str, old: str, new: str) -> Path:
    """Copy the full site to ``folder`` with the first ``old`` of a file as ``new``."""
    shutil.copytree(FULL, folder, dirs_exist_ok=True)
    text = (folder / file).read_text()
    assert old in text, old
    (folder / file).write_text(text.replace(old, new, 1))
    return folder
