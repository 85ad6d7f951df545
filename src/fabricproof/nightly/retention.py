"""What old runs left on disk: stages and outputs removed.

Removed: stage folders, ReFrame's outputs, its logs, its JSON reports.  Never: records, ReFrame's
perflogs and result store, labels, inventories, baselines, the state of the nights; nor anything of
a run in which something that is still red was first seen, which is evidence.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import re
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.records import read_json
from fabricproof.job.run import Workplace

#: name of a run's folder, log or report; the first group is its beginning
_RUN = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{6}(?:\.log|\.run|\.json)?")


@dataclass(frozen=True, kw_only=True)
class Removed:
    """One file or folder that was removed, or would be.

    Attributes:
        what: ``stage``, ``output``, ``log``, ``report``.
        trouble: why it could not be removed; empty where it was.
    """

    what: str
    path: Path
    size: int
    trouble: str = ""


#: three hundred years: no file is older, and a date still knows them
_MOST_DAYS = 100_000


def prune(
    place: Workplace,
    site: str,
    *,
    keep_days: int,
    now: datetime.datetime,
    spare: Collection[str] = (),
    dry_run: bool = False,
) -> tuple[Removed, ...]:
    """Remove what runs of ``site`` older than ``keep_days`` left; return what was removed.

    What is not surely of this site is left alone.
    """
    before = now - datetime.timedelta(days=min(keep_days, _MOST_DAYS))

    def is_old(path: Path) -> bool:
        match = _RUN.fullmatch(path.name)
        if match is None or path.name.partition(".")[0] in spare or path.is_symlink():
            return False
        try:
            start = datetime.datetime.strptime(match[1], "%Y%m%dT%H%M%SZ")
        except ValueError:  # digits that are no date are no run of ours
            return False
        return start.replace(tzinfo=datetime.UTC) < before

    def of_runs(folder: Path) -> list[Path]:
        return [path for path in sorted(folder.glob("*Z-*")) if is_old(path)]

    def is_ours(folder: Path) -> bool:
        return folder.is_dir() and {each.name for each in folder.iterdir()} <= {site}

    checks = sorted((place.root / "output" / site).glob("*/*/*"))
    reports = [each for each in of_runs(place.perflogs / "reports") if each.suffix == ".json"]
    # Logs first: their reports say whose they are.
    logs = of_runs(place.root / "logs")
    found = {
        "stage": [each for each in of_runs(place.root / "stage") if is_ours(each)],
        "output": [
            *(each for each in of_runs(place.root / "output") if is_ours(each)),
            *(each for each in checks if _last_change(each) < before.timestamp()),
        ],
        "log": [each for each in logs if _system_of(place.report_file(each.stem)) == site],
        "report": [each for each in reports if _system_of(each) == site],
    }
    return tuple(
        _remove(what, path, dry_run=dry_run) for what, paths in found.items() for path in paths
    )


def _last_change(folder: Path) -> float:
    """Return when anything in a check's folder was written; never old if it is no folder."""
    if folder.is_symlink() or not folder.is_dir():
        return math.inf
    return max(each.lstat().st_mtime for each in (folder, *folder.rglob("*")))


def _system_of(report: Path) -> str | None:
    try:
        runs = read_json(report)["runs"]
        return next((str(case["system"]) for run in runs for case in run["testcases"]), None)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remove(what: str, path: Path, *, dry_run: bool) -> Removed:
    size, trouble = 0, ""
    for each in (path, *path.rglob("*")):
        with contextlib.suppress(OSError):  # what goes away meanwhile has no size
            size += each.lstat().st_size if not each.is_dir() else 0
    try:
        if not dry_run:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        trouble = error.strerror or str(error)
    return Removed(what=what, path=path, size=size, trouble=trouble)


def what_was_removed(removed: Collection[Removed], *, dry_run: bool) -> Iterator[str]:
    """Yield a sentence for each kind of thing that was removed, and one for each failure."""
    for what in ("stage", "output", "log", "report"):
        mine = [each for each in removed if each.what == what and not each.trouble]
        if mine:
            size = sum(each.size for each in mine) / 1e6
            word = "would remove" if dry_run else "removed"
            those = f"{mine[0].path} .. {mine[-1].path.name}" if len(mine) > 1 else mine[0].path
            yield f"{word} {len(mine)} of kind {what}, {size:.1f} MB: {those}"
    for each in removed:
        if each.trouble:
            yield f"could not remove {each.path}: {each.trouble}"
