"""What history, baselines and inventories say, in the form in which a report wants it.

Of the nodes of a run: what they were made of, and what changed since they were seen before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from fabricproof.core.errors import FabricproofError, InputMissingError
from fabricproof.core.units import by_key
from fabricproof.history.baseline.file import find_baseline, keyed, why_not_valid
from fabricproof.history.compare.comparison import Asked, compare_sides
from fabricproof.history.compare.model import Comparison, FieldChange, Side
from fabricproof.history.compare.sides import ChosenSide, History, choose_side
from fabricproof.history.machines import Machines, changed_builds, last_known
from fabricproof.history.store import FIELDS, HOME, Key, Matrix, Run, Store
from fabricproof.history.trend.find import Question, find_trend
from fabricproof.history.trend.model import Trend
from fabricproof.job.run import Workplace
from fabricproof.nodes.inventory.store import read_index
from fabricproof.report.model import Band, JudgedBounds, RawNumber
from fabricproof.report.red import folded
from fabricproof.site import Site

#: what BEFORE takes beside the words of ``fabricproof compare``
SAME_INVENTORY = "same-inventory"


def bands_of(
    site: Site, place: Workplace, store: Store, keys: Iterable[Key]
) -> tuple[Mapping[Key, Band], list[str]]:
    """Return the bands of the active baseline, and why there are none, or some do not hold."""
    name = site.spec.baseline
    if name is None:
        return {}, []
    try:
        baseline = find_baseline(site.folder, name)
        machines = Machines.of_site(place.perflogs, site.name)
        reasons = why_not_valid(baseline, machines, store)
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
    looked_at = replace(store, runs=runs, notes=())
    try:
        found = find_trend(
            looked_at,
            Question(last=len(runs), num_looks=len(store.runs)),
            Machines.of_site(place.perflogs, site.name),
        )
    except FabricproofError as error:
        return None, [f"no history is told: {error.problem}"]
    return found, []


def comparison_of(
    site: Site, place: Workplace, store: Store, run: Run, words: str, against: str
) -> Comparison:
    """Return the comparison of what ``against`` names with what ``words`` names.

    ``words`` name the side after: the run, or the label or range whose newest it is; ``against``
    the side before, or :data:`SAME_INVENTORY`.
    """
    history = History.of(store, place.perflogs, site.folder)
    second = choose_side(words, history)
    first = (
        _same_inventory(run, history.of_samples.runs)
        if against == SAME_INVENTORY
        else choose_side(against, history)
    )
    return compare_sides(store, history, first, second, Asked())


def _same_inventory(run: Run, runs: Iterable[Run]) -> ChosenSide:
    """Return the runs before ``run`` that saw each of its nodes, where they did, as it is now."""
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
            next_step="name the side before: firmware=..., a date, a label, a run",
        )
    words = "the runs before with the same inventory"
    return ChosenSide(side=Side(words=words, runs=tuple(found)))


_RAW = ("run_id", "attempt", "counts", "value", "verdict", "reason", "file", "line")
_BOUNDS = ("ceiling", "ceiling_name", "reference", "lower", "upper", "origin")


def runs_alike(
    store: Store, run: Run, runs: Sequence[Run], last: int
) -> tuple[tuple[Run, ...], tuple[Key, ...]]:
    """Return the last runs that measured anything that ``run`` did, and the keys of ``run``.

    What printed nothing in ``run`` has the keys of the runs in which it printed something, too.
    """
    wanted = store.samples([run.run_id], ()).unique(maintain_order=True)
    if wanted.is_empty():
        return (), ()
    others = store.samples([each.run_id for each in runs], ("run_id",))
    wanted = pl.concat([wanted, _meant(wanted, others)]).unique(maintain_order=True)
    shared = others.join(wanted, on=FIELDS, how="semi", nulls_equal=True)
    ids = set(shared["run_id"].unique().to_list())
    keys = tuple(Key(**each) for each in wanted.iter_rows(named=True))
    return tuple(each for each in runs if each.run_id in ids)[-last:], keys


def _meant(wanted: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of numbers for which records without unit or bounds stand.

    A program that printed nothing left neither unit nor setting, and no node where nobody saw a
    rank; what holds between legs has no bounds without a number.
    """
    silent = wanted.filter(
        (pl.col("unit") == "") | ((pl.col("unit") == "x") & (pl.col("better") == 0))
    )
    known = others.filter(pl.col("better") != 0).select(FIELDS)
    somewhere = known.join(silent.filter(pl.col("nodes") != ""), on=[*HOME, "nodes"], how="semi")
    anywhere = known.join(silent.filter(pl.col("nodes") == ""), on=HOME, how="semi")
    return pl.concat([somewhere, anywhere]).unique(maintain_order=True)


def matrix_of(store: Store | None, runs: Sequence[Run], keys: Sequence[Key]) -> Matrix:
    """Return the matrix of ``keys`` by ``runs``; an empty one where there is neither."""
    if store is None or not runs:
        return Matrix(keys=(), runs=tuple(runs), values=np.empty((0, len(runs))))
    whole = store.matrix([each.run_id for each in runs])
    wanted = set(keys)
    return whole.take([row for row, key in enumerate(whole.keys) if key in wanted])


def _of_keys(store: Store, runs: Sequence[Run], keys: Sequence[Key], columns: Sequence[str]) -> Any:
    """Return the samples of ``keys``, each with its number in ``keys`` as ``key``."""
    rows = store.samples([each.run_id for each in runs], columns)
    schema = {name: rows.schema[name] for name in FIELDS}
    columns_of = {name: [getattr(key, name) for key in keys] for name in FIELDS}
    wanted = pl.DataFrame(columns_of, schema=schema).with_row_index("key")
    joined = rows.join(wanted, on=FIELDS, how="inner", nulls_equal=True)
    return joined.select("key", *columns)


def raw_of(
    store: Store, runs: Sequence[Run], keys: Sequence[Key]
) -> Mapping[Key, tuple[RawNumber, ...]]:
    """Return every raw number of every key in these runs, oldest first."""
    ids = [each.run_id for each in runs]
    rows = _of_keys(store, runs, keys, _RAW).with_columns(pl.col("reason").fill_null(""))
    oldest = pl.col("run_id").replace_strict(ids, range(len(ids)), return_dtype=pl.Int64)
    rows = rows.sort(oldest, "file", "line", maintain_order=True)
    found = by_key(
        (key, RawNumber(**dict(zip(_RAW, facts, strict=True)))) for key, *facts in rows.iter_rows()
    )
    return {key: tuple(found.get(number, ())) for number, key in enumerate(keys)}


def bounds_of(store: Store, run: Run, keys: Sequence[Key]) -> Mapping[Key, JudgedBounds]:
    """Return what each key was judged by in ``run``; the attempt that counts says it."""
    rows = _of_keys(store, [run], keys, ("counts", *_BOUNDS)).sort("counts", maintain_order=True)
    found = {}
    for key, _, *facts in rows.iter_rows():
        named = dict(zip(_BOUNDS, facts, strict=True))
        for word in ("ceiling_name", "origin"):
            named[word] = named[word] or ""
        found[keys[key]] = JudgedBounds(**named)
    return found


Facts = Mapping[str, Mapping[str, str | int]]


def machines_of(
    machines: Machines, run: Run, on_doubt: Callable[[str], object]
) -> dict[str, Facts]:
    """Return node -> part -> facts as ``run`` saw them."""
    found: dict[str, Facts] = {}
    unseen: list[str] = []
    lost: list[str] = []
    for node, digest in sorted(_digests(machines, run, on_doubt).items()):
        machine = machines.get(node, digest)
        if machine is not None:
            found[node] = machine.facts
        else:
            (lost if digest else unseen).append(node)
    if unseen:
        on_doubt(f"nobody saw what {folded(unseen)} was made of in this run, or it changed in it")
    if lost:
        on_doubt(f"the inventory of {folded(lost)} is lost, first {machines.notes[0]}")
    return found


def _digests(
    machines: Machines, run: Run, on_doubt: Callable[[str], object]
) -> Mapping[str, str | None]:
    if run.inventory:
        return run.inventory
    try:
        index = read_index(machines.folder)
    except FabricproofError as error:
        on_doubt(str(error))
        return {}
    return {each.node: each.digest for each in index if each.run_id == run.run_id}


def inventory_changes(
    machines: Machines, run: Run, earlier: Sequence[Run]
) -> tuple[FieldChange, ...]:
    """Return what differs from when each node, and each stack, was seen before.

    The inventories that cannot be read were told by :func:`machines_of`.
    """
    seen = last_known(each.inventory for each in earlier)
    built = last_known(each.builds for each in earlier)
    found, lost = machines.changed(seen, dict(sorted(run.inventory.items())))
    nodes = (
        FieldChange(
            part=each.part,
            fact=each.fact,
            nodes=tuple(where),
            first=_word(each.first),
            second=_word(each.second),
            sentence=f"{', '.join(where)}: {each.sentence}",
        )
        for each, where in found.items()
    )
    gone = (
        FieldChange(
            part="node",
            fact="inventory",
            nodes=(node,),
            first=seen[node],
            second=_word(run.inventory[node]),
            sentence=f"{node}: inventory {seen[node]} is now {run.inventory[node]}, and one of "
            "them cannot be read",
        )
        for node in lost
    )
    builds = (
        FieldChange(
            part=f"stack {stack}",
            fact="build",
            nodes=(),
            first=was,
            second=now,
            sentence=f"stack {stack}: build {was} before, {now} now: its numbers are not joined "
            "with those before",
        )
        for stack, was, now in changed_builds(built, run.builds)
    )
    return (*nodes, *gone, *builds)


def _word(value: str | int | None) -> str:
    return "" if value is None else str(value)
