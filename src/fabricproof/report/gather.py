"""Gather from the perflogs of a site all that a report of one run shows."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import InputMissingError
from fabricproof.history.store import Run, Store, labels, open_store
from fabricproof.job.run.collect import collect_again, record_files
from fabricproof.job.run.start import Workplace
from fabricproof.report.choose import (
    before,
    choose_run,
    is_of_compare,
    looks_of_nights,
    names_several,
    night_without_run,
    with_unrecorded,
)
from fabricproof.report.history import bounds_of, matrix_of, raw_of, runs_alike
from fabricproof.report.machines import inventory_changes, machines_of
from fabricproof.report.model import ReportData
from fabricproof.report.rooms import SAME_INVENTORY, bands_of, comparison_of, newest_of, trend_of
from fabricproof.site import Site

if TYPE_CHECKING:
    from fabricproof.history.trend.model import Trend

#: runs that a report looks back on
LAST_RUNS = 30

#: a trend of fewer runs shows nothing that noise does not
TREND_RUNS = 6


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """A report's data, and the records of its run for what needs more than that.

    Attributes:
        data: what every renderer takes.
        records: all records of the run, of every kind, as they stand in the perflog.
    """

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

    Args:
        site: whose perflogs.
        place: where they are.
        words: which run, as :func:`fabricproof.report.choose.choose_run` takes it.
        against: the runs before, to compare with; empty for no comparison.
        last: how many runs to look back on, this one among them; at least 1.
        now: when the report is made; the clock by default.
        on_step: takes a word on what is done next, for what takes long.

    Raises:
        InputMissingError: there is no such run.
        ParseError: a damaged record that no crash explains.
    """
    on_step("reading the history")
    store, doubts = _opened(site, place)
    known = labels(place.perflogs, site.name, on_torn=doubts.append)
    runs = with_unrecorded(store.runs if store else (), place.perflogs / "reports", site.name)
    run = _chosen(words, site, place, store, runs)
    on_step(f"reading run {run.run_id}")
    session, records = collect_again(site, place, run.run_id)
    earlier = before(run, runs)
    data = ReportData(
        site=site.name,
        made=now or datetime.datetime.now(tz=datetime.UTC),
        run=run,
        session=session,
        matrix=matrix_of(None, (), ()),
        machines=machines_of(place.perflogs / site.name, run, doubts.append),
        inventory_changes=inventory_changes(place.perflogs / site.name, run, earlier),
        notes=(*night_without_run(words, run, place.perflogs / site.name), *doubts),
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
    """Return the run that ``words`` name to a report.

    Raises:
        InputMissingError: there is no such run.
        ParseError: a damaged record that no crash explains.
    """
    store, _ = _opened(site, place)
    runs = with_unrecorded(store.runs if store else (), place.perflogs / "reports", site.name)
    return _chosen(words, site, place, store, runs)


def _chosen(
    words: str, site: Site, place: Workplace, store: Store | None, runs: Sequence[Run]
) -> Run:
    if store and is_of_compare(words):
        return newest_of(words, site, place, store)
    looks = set() if words else looks_of_nights(record_files(site, place))
    known = labels(place.perflogs, site.name)
    return choose_run(words, [each for each in runs if each.run_id not in looks], known)


def _opened(site: Site, place: Workplace) -> tuple[Store | None, list[str]]:
    """Return the store, None where nothing was recorded yet; and its notes."""
    try:
        store = open_store(place.perflogs, site.name)
    except InputMissingError:
        return None, []
    return store, list(store.notes)


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
