"""Gather from the perflogs of a site all that a report shows of one run, and choose the run."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import FabricproofError, InputMissingError
from fabricproof.core.project import site_option
from fabricproof.core.records import may_exist, read_json, read_records
from fabricproof.history.baseline.file import find_baseline
from fabricproof.history.compare.model import NothingComparedError, SideError
from fabricproof.history.compare.sides import History, choose_side
from fabricproof.history.machines import Machines
from fabricproof.history.store import (
    NoHistoryError,
    Run,
    Store,
    labels,
    no_samples,
    open_store,
    start_of,
)
from fabricproof.job.run import Workplace, collect, left_a_note_only
from fabricproof.pairs import RECORD_KIND, Picture, read_picture
from fabricproof.report.model import ReportData
from fabricproof.report.sources import (
    SAME_INVENTORY,
    bands_of,
    bounds_of,
    comparison_of,
    inventory_changes,
    machines_of,
    matrix_of,
    raw_of,
    runs_alike,
    trend_of,
)
from fabricproof.site import Site

#: beside the records of a site: what became of each night (fabricproof.nightly.log writes it)
NIGHTS = Path(".night") / "events.jsonl"

#: words that mean the run of the last night, or the newest one
_LAST_NIGHT = {"", "night", "latest"}


def names_several(words: str, labels: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether ``words`` may name several runs: a label, a range, a value of the inventory."""
    return words in labels or any(mark in words for mark in ("..", "=", ":", ","))


def _picture(record: Mapping[str, Any], run_id: str) -> Picture:
    picture = read_picture(record, f"a record of run {run_id}")
    said = [picture.title, *(str(record[key]) for key in ("stack", "partition") if key in record)]
    return replace(picture, title=", ".join(said))


def night_without_run(words: str, run: Run, folder: Path) -> list[str]:
    """Say that the last night made no run, where ``run`` may be taken for it."""
    path = folder / NIGHTS
    if words not in _LAST_NIGHT or not may_exist(path):
        return []
    try:
        kinds = {"began", "night"}
        lines = {line["night"]: line for line in read_records(path) if line["kind"] in kinds}
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


def with_unrecorded(runs: Sequence[Run], site: Site, place: Workplace) -> list[Run]:
    """Return the runs with those after the newest that left no record, and a report or a log.

    Where nothing could be measured last night, the newest run is that one, and not a good one of
    the night before.  A report that cannot be read counts: it is somebody's run.
    """
    newest = runs[-1].run_id if runs else ""
    files = [
        *place.report_file("*").parent.glob("*Z-*.json"),
        *place.note_file("*").parent.glob("*Z-*.run"),
    ]
    late = sorted((path for path in files if path.stem > newest), key=lambda path: path.stem)
    return [
        *runs,
        *(
            Run(run_id=path.stem, start=start_of(path.stem, path.stat().st_mtime))
            for path in late
            if (
                _is_run_of(path, site.name)
                if path.suffix == ".json"
                else left_a_note_only(site, place, path.stem)
            )
        ),
    ]


def _is_run_of(path: Path, site: str) -> bool:
    """Tell whether a report is of checks that ran on ``site``, and no rehearsal."""
    try:
        report = read_json(path)
        line = report["session_info"].get("cmdline", "")
        systems = {case["system"] for run in report["runs"] for case in run["testcases"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return True
    return site in systems and "--dry-run" not in line.split()


def before(run: Run, runs: Iterable[Run]) -> list[Run]:
    """Return the runs before ``run``, oldest first."""
    return [each for each in runs if (each.start, each.run_id) < (run.start, run.run_id)]


if TYPE_CHECKING:
    from fabricproof.history.trend.model import Trend

#: runs that a report looks back on
LAST_RUNS = 30

#: a trend of fewer runs shows nothing that noise does not
TREND_RUNS = 6


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """A report's data, and the records of its run for what needs more than that."""

    data: ReportData
    records: tuple[Mapping[str, Any], ...]


def gather(
    site: Site,
    place: Workplace,
    words: str = "",
    *,
    against: str = "",
    last: int = LAST_RUNS,
    now: datetime.datetime | None = None,
    on_step: Callable[[str], object] = lambda _: None,
) -> Gathered:
    """Return the report of a run of ``site``.

    ``words`` name the run, as in every command; of several the newest is meant, and without any
    the newest that is no second look and no admission.  ``against`` is empty for no comparison;
    ``last`` (at least 1) are the runs to look back on, this one among them.
    """
    on_step("reading the history")
    store, known, doubts = _opened(site, place)
    runs = with_unrecorded(store.runs if store else (), site, place)
    run = _chosen(words, site, place, runs, known)
    on_step(f"reading run {run.run_id}")
    session, records = collect(site, place, run.run_id)
    earlier = before(run, runs)
    machines = Machines.of_site(place.perflogs, site.name)
    data = ReportData(
        site=site.name,
        made=now or datetime.datetime.now(tz=datetime.UTC),
        run=run,
        session=session,
        matrix=matrix_of(None, (), ()),
        machines=machines_of(machines, run, doubts.append),
        inventory_changes=inventory_changes(machines, run, earlier),
        notes=(*night_without_run(words, run, place.perflogs / site.name), *doubts),
        pairs=tuple(_picture(each, run.run_id) for each in records if each["kind"] == RECORD_KIND),
    )
    if store is None:
        return Gathered(data=data, records=tuple(records))
    on_step("joining it with the runs before")
    data = _with_history(data, site, place, store, [*earlier, run], last, on_step)
    if against:
        on_step("comparing")
        # "As they are now" is said of the one run that is reported, whatever else has its label.
        several = names_several(words, known) and against != SAME_INVENTORY
        side = words if several else run.run_id
        comparison = comparison_of(site, place, store, run, side, against)
        data = replace(data, comparison=comparison)
    return Gathered(data=data, records=tuple(records))


def run_meant(words: str, site: Site, place: Workplace) -> Run:
    """Return the run that ``words`` name to a report."""
    store, known, _ = _opened(site, place)
    runs = with_unrecorded(store.runs if store else (), site, place)
    return _chosen(words, site, place, runs, known)


def _chosen(
    words: str,
    site: Site,
    place: Workplace,
    runs: Sequence[Run],
    known: Mapping[str, Sequence[str]],
) -> Run:
    if not runs:
        raise InputMissingError(
            "nothing was run on this site yet",
            expected="records or a report of ReFrame below its perflogs",
            next_step=f"fabricproof run -t quick {site_option(site.name)}",
        )
    if not words:
        apart = no_samples(known)
        return ([each for each in runs if each.run_id not in apart] or runs)[-1]
    history = History(
        runs=runs,
        machines=Machines.of_site(place.perflogs, site.name),
        labels=known,
        baseline=lambda name: list(find_baseline(site.folder, name).runs),
        site=site.name,
    )
    found: Sequence[Run] = ()
    got = None
    try:
        found = choose_side(words, history).side.runs
    except SideError as error:
        if names_several(words, {}) or words.startswith("latest"):
            raise
        got = error.got
    except NothingComparedError as error:
        got = error.got
        if names_several(words, {}) or words.startswith("latest"):
            raise InputMissingError(
                f"no run {words!r}",
                expected=error.expected,
                got=got,
                next_step=error.next_step,
            ) from None
    if found:
        return found[-1]
    names = ", ".join([*known, *(run.run_id for run in runs[-5:])])
    raise InputMissingError(
        f"no run {words!r}",
        expected=f"a run's identity or its beginning, a date or a label, such as: {names}",
        got=got,
        next_step=f"fabricproof runs {site_option(site.name)}",
    )


def _opened(
    site: Site, place: Workplace
) -> tuple[Store | None, Mapping[str, Sequence[str]], list[str]]:
    """Return the store, None where nothing was recorded yet; its labels and its notes."""
    try:
        store = open_store(place.perflogs, site.name)
    except NoHistoryError:
        notes: list[str] = []
        return None, labels(place.perflogs, site.name, on_torn=notes.append), notes
    return store, store.labels, list(store.notes)


def _with_history(
    data: ReportData,
    site: Site,
    place: Workplace,
    store: Store,
    runs: Sequence[Run],
    last: int,
    on_step: Callable[[str], object],
) -> ReportData:
    alike, keys = runs_alike(store, data.run, runs, last)
    matrix = matrix_of(store, alike, keys)
    bands, notes = bands_of(site, place, store, keys)
    trend: Trend | None = None
    if len(alike) >= TREND_RUNS:
        on_step("looking for changes in the history")
        trend, more = trend_of(site, place, store, alike)
        notes = [*notes, *more]
    raw = raw_of(store, alike, keys)
    return replace(
        data,
        matrix=matrix,
        bounds=bounds_of(store, data.run, keys),
        raw=raw,
        bands=bands,
        trend=trend,
        notes=(*data.notes, *notes),
    )
