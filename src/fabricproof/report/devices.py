"""Say ``Soft-RoCE`` on every line about a quantity of history that was measured over one.

History knows a fabric by its name only; what its link is, the run's legs or the site say.  Only
what people read is changed: machines match by the plain names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from fabricproof.history.compare.model import Group
from fabricproof.history.store import Key
from fabricproof.physics import device_word, find_link
from fabricproof.report.model import ReportData
from fabricproof.site import Site

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
            rails = {rail for each in leg.quantities for rail in each.get("rails", ())}
            devices |= {leg.fabric: leg.device, **dict.fromkeys(rails, leg.device)}
    if not devices:
        return data
    parts = ("matrix", "bounds", "raw", "bands", "comparison", "trend")
    return replace(data, **{name: with_devices(getattr(data, name), devices) for name in parts})


def with_devices(thing: _Thing, devices: Mapping[str, str]) -> _Thing:
    """Return a comparison, a trend or what they are made of, with the word behind each road.

    Args:
        thing: any of them.
        devices: as :func:`devices_of` returns them; without any, ``thing`` is returned as it is.
    """
    return _told(thing, devices, {}) if devices else thing


def _told(thing: Any, devices: Mapping[str, str], known: dict[Key, Key]) -> Any:
    if isinstance(thing, Key):
        if thing not in known:
            road = " ".join(filter(None, (thing.leg, devices.get(thing.fabric))))
            known[thing] = replace(thing, leg=road)
        return known[thing]
    if is_dataclass(thing) and not isinstance(thing, type):
        values = {each.name: getattr(thing, each.name) for each in fields(thing) if each.init}
        told = {name: _told(value, devices, known) for name, value in values.items()}
        if isinstance(thing, Group) and thing.kind == "rail":
            told["name"] = _of_rail(thing.name, devices)
        other = {name: value for name, value in told.items() if value is not values[name]}
        return replace(thing, **other) if other else thing
    if isinstance(thing, Mapping):
        return {
            _told(key, devices, known): _told(value, devices, known) for key, value in thing.items()
        }
    if type(thing) in {list, tuple}:
        return type(thing)(_told(each, devices, known) for each in thing)
    return thing


def _of_rail(name: str, devices: Mapping[str, str]) -> str:
    words = {devices.get(rail, "") for rail in name.split("+")}
    return " ".join(filter(None, (name, words.pop()))) if len(words) == 1 else name
