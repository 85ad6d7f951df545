"""What other rooms make of the history, asked for in the form in which a report wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fabricproof.core.errors import FabricproofError, InputMissingError
from fabricproof.history.store import Key, Run, Store, labels
from fabricproof.history.trend.model import Trend
from fabricproof.job.run.start import Workplace
from fabricproof.nodes.inventory.store import FOLDER, read_kept
from fabricproof.report.model import Band
from fabricproof.site import Site

if TYPE_CHECKING:
    from fabricproof.history.compare.model import Comparison
    from fabricproof.history.compare.sides import Chosen, History

#: what ``--before`` takes beside the words of ``fabricproof compare``
SAME_INVENTORY = "same-inventory"


def bands_of(
    site: Site, place: Workplace, store: Store, keys: Iterable[Key]
) -> tuple[Mapping[Key, Band], list[str]]:
    """Return the bands of the active baseline, and why there are none, or some do not hold."""
    from fabricproof.history.baseline import keyed  # noqa: PLC0415
    from fabricproof.history.baseline.machines import Machines  # noqa: PLC0415
    from fabricproof.history.baseline.standing import standing  # noqa: PLC0415
    from fabricproof.verdict.baseline.file import path_of, read_baseline  # noqa: PLC0415 - start-up time

    name = site.spec.baseline
    if name is None:
        return {}, []
    try:
        baseline = read_baseline(path_of(site.folder, name))
        machines = Machines.of(place.perflogs, site.name)
        reasons = standing(baseline, machines, store).reasons
    except FabricproofError as error:
        return {}, [f"no bands: {error}"]
    rows = keyed(baseline)
    bands = {
        key: Band(
            low=rows[key].low,
            median=rows[key].median,
            high=rows[key].high,
            baseline=baseline.name,
        )
        for key in keys
        if key in rows
    }
    return bands, [f"baseline {name} does not hold everywhere: {each}" for each in reasons]


def trend_of(
    site: Site, place: Workplace, store: Store, runs: tuple[Run, ...]
) -> tuple[Trend | None, list[str]]:
    """Return what these runs show, None where it cannot be told, and why not."""
    from fabricproof.history.trend.find import Question, find_trend  # noqa: PLC0415 - start-up time

    folder = place.perflogs / site.name / FOLDER
    looked_at = replace(store, runs=runs, notes=())
    try:
        found = find_trend(
            looked_at,
            Question(last=len(runs)),
            lambda node, digest: read_kept(folder, node, digest),
        )
    except FabricproofError as error:
        return None, [f"no history is told: {error.problem}"]
    return found, []


def comparison_of(
    site: Site, place: Workplace, store: Store, run: Run, words: str, against: str
) -> Comparison:
    """Return the comparison of what ``against`` names with what ``words`` names.

    Args:
        site: whose runs.
        place: where they are.
        store: the history.
        run: the run that is reported.
        words: the side after: the run, or the label or range whose newest it is.
        against: the side before, or :data:`SAME_INVENTORY`.

    Raises:
        FabricproofError: a side is empty or means nothing, or both have nothing in common.
    """
    from fabricproof.history.compare.sides import choose_side  # noqa: PLC0415 - start-up time
    from fabricproof.history.compare.whole import Asked, compare_sides  # noqa: PLC0415

    history = history_of(site, place, store)
    second = choose_side(words, history)
    first = (
        _same_inventory(run, store.runs)
        if against == SAME_INVENTORY
        else choose_side(against, history)
    )
    return compare_sides(store, history, first, second, Asked())


def newest_of(words: str, site: Site, place: Workplace, store: Store) -> Run:
    """Return the newest run that ``words`` name, as ``fabricproof compare`` understands them.

    Raises:
        FabricproofError: they mean nothing, or no run.
    """
    from fabricproof.history.compare.sides import choose_side  # noqa: PLC0415 - start-up time

    return choose_side(words, history_of(site, place, store)).side.runs[-1]


def history_of(site: Site, place: Workplace, store: Store) -> History:
    """Return what sides are chosen from."""
    from fabricproof.history.baseline import samples_of  # noqa: PLC0415
    from fabricproof.history.compare.facts import Machines  # noqa: PLC0415 - start-up time
    from fabricproof.history.compare.sides import History  # noqa: PLC0415

    return History(
        site=site.name,
        runs=store.runs,
        labels=labels(place.perflogs, site.name),
        machines=Machines(folder=place.perflogs / site.name / FOLDER, notes=[]),
        baseline=lambda name: samples_of(site.folder, name),
    )


def _same_inventory(run: Run, runs: Iterable[Run]) -> Chosen:
    """Return the runs before ``run`` that saw each of its nodes, where they did, as it is now."""
    from fabricproof.history.compare.model import Side  # noqa: PLC0415 - start-up time
    from fabricproof.history.compare.sides import Chosen  # noqa: PLC0415

    found = []
    for each in runs:
        shared = [node for node in each.inventory if run.inventory.get(node)]
        alike = all(each.inventory[node] == run.inventory[node] for node in shared)
        if shared and alike and each.start < run.start:
            found.append(each)
    if not found:
        raise InputMissingError(
            f"no run before {run.run_id} saw its nodes as they are now",
            expected="an earlier run on one of its nodes with the same inventory",
            next_step="name the side before: --before firmware=..., a date, a label, a run",
        )
    words = "the runs before with the same inventory"
    return Chosen(side=Side(words=words, runs=tuple(found)))
