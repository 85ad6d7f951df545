"""What old runs left on disk: stages and outputs removed.

Removed: stage folders, ReFrame's outputs, its logs, its JSON reports.  Never: records, ReFrame's
perflogs and result store, labels, inventories, baselines, the state of the nights; nor anything of
a run in which something that is still red was first seen, which is evidence.
"""

from __future__ import annotations

import datetime
import os
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
    """Remove what runs of ``site`` older than ``keep_days`` left; return what was removed."""
    before = now - datetime.timedelta(days=min(keep_days, _MOST_DAYS))
    found = [
        *(("stage", path) for path in _stages(place.root / "stage", site, before, spare)),
        *(("output", path) for path in _stages(place.root / "output", site, before, spare)),
        *(("output", path) for path in _outputs(place.root / "output" / site, before)),
        *(("report", path) for path in _reports(place.perflogs / "reports", site, before, spare)),
        *(("log", path) for path in _logs(place, site, before, spare)),
    ]
    return tuple(_remove(what, path, dry_run=dry_run) for what, path in found)


def _old(path: Path, before: datetime.datetime, spare: Collection[str]) -> bool:
    match = _RUN.fullmatch(path.name)
    if match is None or path.name.partition(".")[0] in spare or path.is_symlink():
        return False
    try:
        start = datetime.datetime.strptime(match[1], "%Y%m%dT%H%M%SZ")
    except ValueError:  # digits that are no date are no run of ours
        return False
    return start.replace(tzinfo=datetime.UTC) < before


def _stages(
    folder: Path, site: str, before: datetime.datetime, spare: Collection[str]
) -> Iterator[Path]:
    for path in sorted(folder.glob("*Z-*")):
        if (
            path.is_dir()
            and _old(path, before, spare)
            and ({each.name for each in path.iterdir()} <= {site})
        ):
            yield path


def _reports(
    folder: Path, site: str, before: datetime.datetime, spare: Collection[str]
) -> Iterator[Path]:
    for path in sorted(folder.glob("*Z-*.json")):
        if _old(path, before, spare) and _system_of(path) == site:
            yield path


def _system_of(report: Path) -> str | None:
    try:
        runs = read_json(report)["runs"]
        return next((str(case["system"]) for run in runs for case in run["testcases"]), None)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _logs(
    place: Workplace, site: str, before: datetime.datetime, spare: Collection[str]
) -> Iterator[Path]:
    """Yield the logs of runs whose report is this site's; of others nobody knows whose they are."""
    for path in sorted((place.root / "logs").glob("*Z-*")):
        if _old(path, before, spare) and _system_of(place.report_file(path.stem)) == site:
            yield path


def _outputs(folder: Path, before: datetime.datetime) -> Iterator[Path]:
    """Yield the folders of checks, ``<partition>/<stack>/<check>``, that nobody wrote to since."""
    for path in sorted(folder.glob("*/*/*")):
        if path.is_dir() and not path.is_symlink():
            times = [each.lstat().st_mtime for each in (path, *path.rglob("*"))]
            if max(times) < before.timestamp():
                yield path


def _remove(what: str, path: Path, *, dry_run: bool) -> Removed:
    size = _size(path)
    if dry_run:
        return Removed(what=what, path=path, size=size)
    try:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        return Removed(what=what, path=path, size=size, trouble=error.strerror or str(error))
    return Removed(what=what, path=path, size=size)


def _size(path: Path) -> int:
    """Return the bytes of a file or of all files in a folder; what goes away meanwhile is none."""
    if not path.is_dir():
        return path.lstat().st_size
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += (Path(folder) / name).lstat().st_size
            except OSError:
                continue
    return total


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
