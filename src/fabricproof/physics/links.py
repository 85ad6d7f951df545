"""Links: what a port and its cable can carry before any protocol.

A link is lanes x line rate x encoding: rows of ``data/links.json``, each with its source.
Ethernet, EFA and Soft-RoCE take any other rate.

Soft-RoCE: an rdma_rxe device speaks verbs like an HCA.  Only the kernel says that it is none: it
names its interface in the sysfs file ``parent``, which no adapter has (Linux
drivers/infiniband/sw/rxe/rxe_verbs.c, parent_show).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NoReturn

from fabricproof.core.errors import UnknownLinkError
from fabricproof.physics._data import load_data, nearest_names

#: technology of the kernel's software RDMA devices (rdma_rxe), and what people call it
SOFT_ROCE = "soft-roce"
SOFT_ROCE_NAME = "Soft-RoCE"


@dataclass(frozen=True, kw_only=True)
class Link:
    """One port's link in one direction.

    Attributes:
        name: the project's spelling, for example ``FDR 4x``, ``40GbE``, ``Omni-Path 100``.
        technology: ``infiniband``, ``ethernet``, ``soft-roce``, ``omni-path``, ``slingshot``,
            ``efa``, ``bxi``.
        lanes: number of lanes, 1 where the layout is not known.
        line_rate_gbit_s: signalled bits per lane in Gb/s, coding included.
        data_rate_gbit_s: bits left after coding, all lanes together, in Gb/s.
        encoding: name of the line code.
        source: the document that says so.
    """

    name: str
    technology: str
    lanes: int
    line_rate_gbit_s: float
    data_rate_gbit_s: float
    encoding: str
    source: str

    @property
    def data_rate_mb_s(self) -> float:
        """The data rate in MB/s (10^6 bytes per second)."""
        return self.data_rate_gbit_s * 1000 / 8

    @property
    def is_soft(self) -> bool:
        """Whether the kernel's software stands for the HCA (Soft-RoCE)."""
        return self.technology == SOFT_ROCE

    @property
    def formula(self) -> str:
        """Return how the data rate comes about, in numbers."""
        code = load_data("links")["encodings"][self.encoding]
        if code["data"] == code["line"]:
            return f"{self.data_rate_gbit_s:g} Gb/s / 8"
        share = f"{code['data']}/{code['line']}"
        return f"{self.lanes} x {self.line_rate_gbit_s:.9g} Gb/s x {share} / 8"


def _link_from_row(row: Mapping[str, Any], name: str, technology: str, lanes: int) -> Link:
    code = load_data("links")["encodings"][row["encoding"]]
    data_rate_gbit_s = lanes * row["line_rate_gbit_s"] * code["data"] / code["line"]
    return Link(
        name=name,
        technology=technology,
        lanes=lanes,
        line_rate_gbit_s=row["line_rate_gbit_s"],
        data_rate_gbit_s=row.get("data_rate_gbit_s", data_rate_gbit_s),
        encoding=row["encoding"],
        source=row["source"],
    )


@cache
def known_links() -> Mapping[str, Link]:
    """Return every link the data names, under its name; Ethernet and EFA take any other rate."""
    data = load_data("links")
    rows = [
        (speed, f"{speed['name']} {lanes}x", "infiniband", lanes)
        for speed in data["infiniband"]["speeds"]
        for lanes in data["infiniband"]["widths"]
    ]
    rows += [
        (row, ethernet_name(row["data_rate_gbit_s"]), "ethernet", row["lanes"])
        for row in data["ethernet"]["rates"]
    ]
    rows += [(row, row["name"], row["technology"], row["lanes"]) for row in data["others"]]
    return {row[1]: _link_from_row(*row) for row in rows}


def _link_of_rate(name: str, technology: str, rate_gbit_s: float, source: str) -> Link:
    """Return the link of that name as the data has it, else one of the stated rate."""
    if not 0 < rate_gbit_s < float("inf"):
        _refuse(name)
    return known_links().get(name) or Link(
        name=name,
        technology=technology,
        lanes=1,
        line_rate_gbit_s=rate_gbit_s,
        data_rate_gbit_s=rate_gbit_s,
        encoding="private",
        source=source,
    )


def ethernet_name(rate_gbit_s: float) -> str:
    """Return the name of an Ethernet link: ``40GbE``; under 1 Gb/s ``400MbE``."""
    return f"{rate_gbit_s:.12g}GbE" if rate_gbit_s >= 1 else f"{rate_gbit_s * 1000:.12g}MbE"


def ethernet_link(rate_gbit_s: float) -> Link:
    """Return the Ethernet link of that MAC rate; UnknownLinkError unless positive and finite."""
    source = load_data("links")["ethernet"]["source_of_other_rates"]
    return _link_of_rate(ethernet_name(rate_gbit_s), "ethernet", rate_gbit_s, source)


#: What may be stated of Soft-RoCE, in Gb/s; beyond, a unit is mistaken: below 1 Mb/s one message of
#: 4 MiB takes more than half a minute, and a CPU that makes every packet comes nowhere near 400.
_SOFT_GBIT_S = (0.001, 400.0)


def soft_roce_link(rate_gbit_s: float) -> Link:
    """Return the Soft-RoCE link of that rate: the shaped or measured one of its interface.

    Raises:
        UnknownLinkError: the rate is not a positive finite number.
    """
    if not 0 < rate_gbit_s < float("inf"):
        _refuse_soft(f"{rate_gbit_s} Gb/s")
    is_fast = rate_gbit_s >= 1
    rate = f"{rate_gbit_s:.12g} Gb/s" if is_fast else f"{rate_gbit_s * 1000:.12g} Mb/s"
    sources = load_data("links")["soft_roce"]
    source = f"{sources['device_source']}; {sources['rate_source']}"
    return _link_of_rate(f"{SOFT_ROCE_NAME} {rate}", SOFT_ROCE, rate_gbit_s, source)


def _refuse_soft(text: str) -> NoReturn:
    raise UnknownLinkError(
        "Soft-RoCE has no rate of its own: the kernel's software is as fast as its interface and "
        "its CPU let it be",
        expected="a rate of 1 Mb/s to 400 Gb/s with its unit behind it, such as "
        "'Soft-RoCE 100 Mb/s'",
        got=repr(text),
        next_step="state what the interface is shaped to (tc qdisc show), or what ib_write_bw "
        "measured between two idle nodes",
    )


def _refuse(text: str) -> NoReturn:
    infiniband = load_data("links")["infiniband"]
    speeds = [speed["name"] for speed in infiniband["speeds"]]
    widths = ", ".join(f"{lanes}x" for lanes in infiniband["widths"])
    others = [name for name, link in known_links().items() if link.technology != "infiniband"]
    near = nearest_names(text, [*known_links(), *speeds])
    raise UnknownLinkError(
        f"unknown link (nearest known: {near})" if near else "unknown link",
        expected=f"InfiniBand {', '.join(speeds)} with {widths} (4x where left out), "
        f"{', '.join(others)}, Ethernet and EFA of any other rate such as '400MbE' and 'EFA 50', "
        "or 'Soft-RoCE 100 Mb/s' of 1 Mb/s to 400 Gb/s",
        got=repr(text),
        next_step="write the link as one of these, for example 'FDR 4x' or '40GbE'",
    )


#: '100 Gb/s', '2.5G', '400 Mbit/s', a bare '100'
_RATE = r"(?P<number>\d+(?:\.\d+)?|\.\d+) ?(?:(?P<prefix>[kmgt])(?:b(?:it)?)?(?:(?:/|p)s(?:ec)?)?)?"
_PREFIX_GBIT_S = {"k": 1e-6, "m": 1e-3, "g": 1.0, "t": 1e3, None: 1.0}

#: '40GbE', '100 Gb/s Ethernet', '1 gige', '400MbE', 'Ethernet 100G', 'Ethernet 100', '100G'
_ETHERNET = re.compile(rf"(?P<before>eth(?:ernet)? )?{_RATE}(?P<after> ?(?:e|ige|eth|ethernet))?")
_BARE_RATE = re.compile(r"[\d.]+[gt]")
#: 'EFA 50', 'efa150', 'EFA 25G', 'EFA 50 Gb/s'
_EFA = re.compile(rf"efa ?{_RATE}")
#: what stands for the device before or behind a rate: 'soft roce', 'Soft-RoCEv2', 'rxe'
_SOFT_DEVICE = re.compile(r"\b(?:soft[ -]?roce(?:[ -]?v2)?|(?:rdma )?rxe)\b")
#: 'Soft-RoCE 100 Mb/s', 'rxe 100M', '100GbE rxe'
_SOFT = re.compile(rf"{_RATE}(?: ?e(?:thernet)?)?")
#: 'FDR', 'FDR 4x', '4X FDR', 'HDR100', 'InfiniBand EDR'; fdr10 is a speed of its own
_INFINIBAND = re.compile(
    r"(?:(?:infiniband|ib) )?(?:(?P<before>\d{1,2})x )?(?P<speed>fdr10|[a-z]dr)"
    r"(?:[ -]?(?:(?P<after>\d{1,2})x|(?P<label>\d{1,4})))?(?: (?:infiniband|ib))?"
)
#: '56 Gb/sec (4X FDR)', as /sys/class/infiniband/*/ports/*/rate prints
_SYSFS_RATE = re.compile(r"[\d.]+ gb/sec \((?P<name>[^)]*)\)")
#: "100 MB/s": bytes, eight times what reading without regard to case would make of it
_IN_BYTES = re.compile(r"\d *[KkMGT]B(?:$|[ /p])")


def _gbit_s(match: re.Match[str]) -> float:
    return float(f"{float(match['number']) * _PREFIX_GBIT_S[match['prefix']]:.12g}")


def _find_infiniband(plain: str) -> Link | None:
    match = _INFINIBAND.fullmatch(plain)
    if match is None or (match["before"] and (match["after"] or match["label"])):
        return None
    infiniband = load_data("links")["infiniband"]
    name, lanes = match["speed"].upper(), match["before"] or match["after"]
    for speed in infiniband["speeds"]:
        if match["label"] and speed["name"] == name:
            lanes = f"{float(match['label']) / speed['label_gbit_s']:g}"
    return known_links().get(f"{name} {lanes or infiniband['default_width']}x")


@cache
def _links_by_name() -> Mapping[str, Link]:
    names = {name.lower(): link for name, link in known_links().items()}
    for row in load_data("links")["others"]:
        names |= dict.fromkeys(row["aliases"], known_links()[row["name"]])
    return names


@lru_cache(maxsize=256)
def find_link(text: str) -> Link:
    """Return the link that ``text`` names, in any case.

    Examples: ``FDR 4x``, ``4X FDR``, ``FDR`` (4x), ``HDR100`` (2x), ``100 Gb/s Ethernet``,
    ``Omni-Path 100``, ``EFA 50``, ``Soft-RoCE 100 Mb/s``, ``56 Gb/sec (4X FDR)`` of the kernel.

    Raises:
        UnknownLinkError: nothing known has that name; the message lists what is known.
    """
    plain = " ".join(text.lower().replace("_", " ").split())
    if kernel := _SYSFS_RATE.fullmatch(plain):
        plain = kernel["name"]
    if link := _links_by_name().get(plain) or _find_infiniband(plain):
        return link
    # What is all in capitals does not tell bytes from bits.
    in_bytes = _IN_BYTES.search(text) is not None and not text.isupper()
    before, *behind = _SOFT_DEVICE.split(plain, maxsplit=1)
    if behind:
        match = _SOFT.fullmatch(f"{before}{behind[0]}".strip())
        least, most = _SOFT_GBIT_S
        if match is None or in_bytes or not match["prefix"] or not least <= _gbit_s(match) <= most:
            _refuse_soft(text)
        return soft_roce_link(_gbit_s(match))
    efa, ethernet = _EFA.fullmatch(plain), _ETHERNET.fullmatch(plain)
    if efa and efa["prefix"] in {None, "g"} and not in_bytes and _gbit_s(efa) > 0:
        source = load_data("links")["efa"]["source_of_other_rates"]
        return _link_of_rate(f"EFA {_gbit_s(efa):.12g}", "efa", _gbit_s(efa), source)
    if plain in {"gige", "gigabit ethernet"}:
        return ethernet_link(1.0)
    if ethernet and not in_bytes and _gbit_s(ethernet) > 0:
        has_unit = ethernet["prefix"] and ethernet["after"]
        if ethernet["before"] or has_unit or _BARE_RATE.fullmatch(plain):
            return ethernet_link(_gbit_s(ethernet))
    _refuse(text)


#: what rdma_rxe keeps of its interface's MTU for headers (Linux drivers/infiniband/sw/rxe/
#: rxe_hdr.h, RXE_MAX_HDR_LENGTH)
_HEADER_ROOM_BYTES = 80

#: path MTUs of InfiniBand and RoCE, in bytes (IBA specification vol. 1, PortInfo: MTU)
_PATH_MTUS = (4096, 2048, 1024, 512, 256)


def soft_path_mtu(interface_mtu: int) -> int | None:
    """Return the active MTU that rdma_rxe takes over an interface; None where none fits.

    The largest within the interface's MTU less the headers (rxe_param.h, eth_mtu_int_to_enum).
    """
    room = interface_mtu - _HEADER_ROOM_BYTES
    return next((mtu for mtu in _PATH_MTUS if mtu <= room), None)


def device_word(link: str) -> str:
    """Return ``Soft-RoCE``, shown beside every number, for such a link's name; else nothing."""
    return SOFT_ROCE_NAME if link.startswith(SOFT_ROCE_NAME) else ""


def why_not_the_device(link: Link, port: str, parent: str | None, card: str = "") -> str:
    """Return why a port is not the device that its declared link needs; empty if it is.

    ``parent`` is empty where the port is soft and does not say over what; None for an adapter.
    """
    if link.is_soft == (parent is not None):
        return ""
    if link.is_soft:
        named = f" ({card})" if card else ""
        return (
            f"{port} is no {SOFT_ROCE_NAME} device{named}, and the site declares {link.name}: "
            "state the link of the adapter, or name the port of the software device (rdma link)"
        )
    return (
        f"{port} is {SOFT_ROCE_NAME}{f' over {parent}' if parent else ''}: the kernel's software, "
        f'no HCA, and the site declares {link.name}: state link = "{SOFT_ROCE_NAME} ..." with the '
        f"rate that {parent or 'its interface'} is shaped to, or name the HCA's port"
    )


#: the layer of a port by the technology of its link
_LAYERS = {"infiniband": "InfiniBand", "omni-path": "Omni-Path", "ethernet": "Ethernet"}


def why_not_the_layer(link: Link, port: str, layer: str) -> str:
    """Return why a port's link layer contradicts its declared link; empty if it does not.

    ``layer`` is what sysfs says (Linux drivers/infiniband/core/sysfs.c, link_layer_show), or
    ``Omni-Path`` by the driver; any other word contradicts nothing (EFA: ``Unknown``).
    """
    wanted = _LAYERS.get(link.technology)
    if wanted is None or wanted in layer or not any(each in layer for each in _LAYERS.values()):
        return ""
    return (
        f"{port} is a port of {layer} by its sysfs, and the site declares {link.name}, which is "
        f"{wanted}: state the link of the adapter, or name another port"
    )
