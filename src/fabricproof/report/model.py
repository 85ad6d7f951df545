"""Everything that a report of a site may show, gathered once for every renderer.

History knows a fabric by its name only; that its link is Soft-RoCE the run's legs or the site say.
Only what people read is changed (:func:`for_people`): machines match by the plain names.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from fabricproof.history.compare.model import Comparison, FieldChange, Group
from fabricproof.history.store import Key, Matrix, Run
from fabricproof.history.trend.model import Trend
from fabricproof.job.run import RunResult
from fabricproof.physics import device_word, find_link
from fabricproof.site import Site

if TYPE_CHECKING:
    from fabricproof.pairs import Picture


@dataclass(frozen=True, kw_only=True)
class JudgedBounds:
    """What one quantity of the reported run was judged by, in the unit of its key.

    Attributes:
        ceiling: physical limit (a floor for a latency), None where none is known.
        reference: None where there is none.
        lower: smallest accepted value.
        upper: largest accepted value.
        origin: where the reference comes from.
    """

    ceiling: float | None = None
    ceiling_name: str = ""
    reference: float | None = None
    lower: float | None = None
    upper: float | None = None
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class Band:
    """What the active baseline says of one quantity, in the unit of its key."""

    low: float
    median: float
    high: float
    baseline: str


@dataclass(frozen=True, kw_only=True)
class RawNumber:
    """One raw number as it stands in the records.

    Attributes:
        attempt: 1 for the first, 2 for the second look; 0 for a relation between legs.
        counts: whether the verdict rests on it.
        line: its line, from 1.
    """

    run_id: str
    attempt: int
    counts: bool
    value: float | None
    verdict: str
    reason: str
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """What there is to report.

    Attributes:
        made: when the report was made, UTC.
        matrix: the numbers of the last runs, this one among them.
        bounds: what each quantity of this run was judged by.
        raw: every raw number of every key of the matrix, oldest first.
        comparison: before and after, None where nobody asked.
        trend: None where there are too few runs.
        pairs: matrices of the run's pair campaigns.
    """

    site: str
    made: datetime.datetime
    run: Run
    session: RunResult
    matrix: Matrix
    bounds: Mapping[Key, JudgedBounds] = field(default_factory=dict)
    raw: Mapping[Key, tuple[RawNumber, ...]] = field(default_factory=dict)
    bands: Mapping[Key, Band] = field(default_factory=dict)
    comparison: Comparison | None = None
    trend: Trend | None = None
    machines: Mapping[str, Mapping[str, Mapping[str, str | int]]] = field(default_factory=dict)
    inventory_changes: tuple[FieldChange, ...] = ()
    notes: tuple[str, ...] = ()
    pairs: tuple[Picture, ...] = ()


_Thing = TypeVar("_Thing")


def devices_of(site: Site) -> dict[str, str]:
    """Return fabric and rail -> ``Soft-RoCE``, of the software devices that a site declares."""
    found: dict[str, str] = {}
    for spec in site.fabrics:
        word = device_word(find_link(spec.link).name) if spec.link is not None else ""
        if word:
            found |= {spec.name: word, **{rail.interface: word for rail in spec.rails}}
    return found


def for_people(data: ReportData) -> ReportData:
    """Return a report as people read it, by what its legs say of their links."""
    devices: dict[str, str] = {}
    for leg in data.session.legs:
        if leg.device:
            rails = {rail for each in leg.quantities for rail in each.rails}
            devices |= {leg.fabric: leg.device, **dict.fromkeys(rails, leg.device)}
    if not devices:
        return data
    parts = ("matrix", "bounds", "raw", "bands", "comparison", "trend")
    return replace(data, **{name: with_devices(getattr(data, name), devices) for name in parts})


def with_devices(thing: _Thing, devices: Mapping[str, str]) -> _Thing:
    """Return a comparison, a trend or what they are made of, with the word behind each path."""
    return _told(thing, devices, {}) if devices else thing


def _told(thing: Any, devices: Mapping[str, str], known: dict[Key, Key]) -> Any:
    if isinstance(thing, Key):
        if thing not in known:
            net_path = " ".join(filter(None, (thing.leg, devices.get(thing.fabric))))
            known[thing] = replace(thing, leg=net_path)
        return known[thing]
    if is_dataclass(thing) and not isinstance(thing, type):
        values = {each.name: getattr(thing, each.name) for each in fields(thing) if each.init}
        told = {name: _told(value, devices, known) for name, value in values.items()}
        if isinstance(thing, Group) and thing.kind == "rail":
            words = {devices.get(rail, "") for rail in thing.name.split("+")}
            told["name"] = (
                " ".join(filter(None, (thing.name, words.pop()))) if len(words) == 1 else thing.name
            )
        other = {name: value for name, value in told.items() if value is not values[name]}
        return replace(thing, **other) if other else thing
    if isinstance(thing, Mapping):
        return {
            _told(key, devices, known): _told(value, devices, known) for key, value in thing.items()
        }
    if type(thing) in {list, tuple}:
        return type(thing)(_told(each, devices, known) for each in thing)
    return thing
