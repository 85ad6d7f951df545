"""Which run a person means: the newest, by identity, by its beginning, by date, by label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fabricproof.core.errors import FabricproofError, InputMissingError
from fabricproof.core.records import parse_json, read_records
from fabricproof.history.store import Run
from fabricproof.history.store.read import start_of

#: beside the records of a site: what became of each night (fabricproof.nightly.state writes it)
NIGHTS = Path("night") / "state.jsonl"

#: words that mean the run of the last night, or the newest one
_LAST_NIGHT = {"", "night", "latest"}

#: as many runs are named where one is not found
NAMED = 5


def choose_run(words: str, runs: Sequence[Run], labels: Mapping[str, Sequence[str]]) -> Run:
    """Return the run that ``words`` name; of several the newest.

    Args:
        words: empty for the newest; the identity of a run or its beginning; a date
            (``2026-11-21``, the newest run of that day); a label.
        runs: all that are known, oldest first.
        labels: name to the identities of runs that people gave it.

    Raises:
        InputMissingError: there is no run, or none of that name.
    """
    if not runs:
        raise InputMissingError(
            "nothing was run on this site yet",
            expected="records or a report of ReFrame below its perflogs",
            next_step="fabricproof run -t quick",
        )
    if not words:
        return runs[-1]
    labelled = set(labels.get(words, ()))
    stamp = words.replace("-", "") if _is_date(words) else words
    found = [run for run in runs if run.run_id in labelled]
    found = found or [run for run in runs if run.run_id == words]
    found = found or [run for run in runs if len(stamp) >= 8 and run.run_id.startswith(stamp)]
    if found:
        return found[-1]
    known = ", ".join([*labels, *(run.run_id for run in runs[-NAMED:])])
    raise InputMissingError(
        f"no run {words!r}",
        expected=f"a run's identity or its beginning, a date or a label, such as: {known}",
        next_step="leave it out for the newest run",
    )


def names_several(words: str, labels: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether ``words`` may name several runs: a label, a range, a value of the inventory."""
    return words in labels or any(mark in words for mark in ("..", "=", ":", ","))


def is_of_compare(words: str) -> bool:
    """Tell whether only ``fabricproof compare`` understands ``words``."""
    return names_several(words, {}) or words.startswith("latest")


def looks_of_nights(files: Iterable[Path]) -> set[str]:
    """Return the runs that only looked again at what was red in another.

    Args:
        files: of records.
    """
    return {
        str(look["run_id"])
        for path in files
        for record in read_records(path, holding='"kind": "confirmation"')
        if record.get("kind") == "confirmation"
        for look in record.get("looks", ())
        if look.get("run_id")
    }


def night_without_run(words: str, run: Run, folder: Path) -> list[str]:
    """Say that the last night made no run, where ``run`` may be taken for it.

    Args:
        words: that a person named the run with.
        run: that was chosen.
        folder: the perflogs of the site.
    """
    path = folder / NIGHTS
    if words not in _LAST_NIGHT or not path.exists():
        return []
    try:
        lines = {line["night"]: line for line in read_records(path) if line["kind"] != "notice"}
        # What a run was handed over to has an end without arguments: it is no night.
        own = [line for line in lines.values() if line.get("arguments", True)]
        # The run of a night has its name.
        if not own or own[-1]["night"] <= run.run_id:
            return []
        last = own[-1]
        how = f"{last['ended']}: {last['reason']}" if "ended" in last else "it has not ended"
        return [f"the last night ({last['time']}) is not this run, which is older: {how}"]
    except (OSError, KeyError, FabricproofError) as error:
        return [f"what became of the last night cannot be read: {error}"]


def _is_date(words: str) -> bool:
    parts = words.split("-")
    return [len(part) for part in parts] == [4, 2, 2] and all(part.isdigit() for part in parts)


def with_unrecorded(runs: Sequence[Run], reports: Path, site: str) -> list[Run]:
    """Return the runs with those after the newest that left a report of ReFrame and no record.

    Where nothing could be measured last night, the newest run is that one, and not a good one of
    the night before.  A report that cannot be read counts: it is somebody's run.

    Args:
        runs: those with records, oldest first.
        reports: the folder of ReFrame's JSON reports.
        site: name of the site; reports of others do not count.
    """
    newest = runs[-1].run_id if runs else ""
    late = sorted(path for path in reports.glob("*Z-*.json") if path.stem > newest)
    return [*runs, *(_run(path) for path in late if _is_run_of(path, site))]


def _run(report: Path) -> Run:
    return Run(run_id=report.stem, start=start_of(report.stem, report.stat().st_mtime))


def _is_run_of(path: Path, site: str) -> bool:
    """Tell whether a report is of checks that ran on ``site``, and no rehearsal."""
    try:
        report = parse_json(path.read_text(encoding="utf-8"))
        line = report["session_info"].get("cmdline", "")
        systems = {case["system"] for run in report["runs"] for case in run["testcases"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return True
    return site in systems and "--dry-run" not in line.split()


def before(run: Run, runs: Iterable[Run]) -> list[Run]:
    """Return the runs before ``run``, oldest first."""
    return [each for each in runs if (each.start, each.run_id) < (run.start, run.run_id)]
