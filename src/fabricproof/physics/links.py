"""Links: what a port and its cable can carry before any protocol.

A link is lanes x line rate x encoding.  InfiniBand, the named links and the lane layouts of
Ethernet are data (``data/links.json``, each row with its source); any other positive Ethernet
rate is taken as the MAC rate of a virtual or provider-limited link.

Soft-RoCE: an rdma_rxe device speaks verbs like an HCA, and every program takes it for one.  Only
the kernel says that it is none: such a device names its interface in the sysfs file ``parent``,
which no adapter has (Linux drivers/infiniband/sw/rxe/rxe_verbs.c, parent_show).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NoReturn

from fabricproof.core.errors import UnknownLinkError
from fabricproof.physics._data import load_data, nearest_names

#: technology of the kernel's software RDMA devices (rdma_rxe)
SOFT_ROCE = "soft-roce"

#: what people call it; stands on every line that shows a number measured over one
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
        """Return the data rate in MB/s (10^6 bytes per second)."""
        return self.data_rate_gbit_s * 1000 / 8

    @property
    def is_soft(self) -> bool:
        """Whether the kernel's software stands for the HCA (Soft-RoCE)."""
        return self.technology == SOFT_ROCE

    @property
    def formula(self) -> str:
        """Return how the data rate comes about, in numbers."""
        code = load_data("links")["encodings"].get(self.encoding)
        if code is None or code["data"] == code["line"]:
            return f"{self.data_rate_gbit_s:g} Gb/s / 8"
        share = f"{code['data']}/{code['line']}"
        return f"{self.lanes} x {self.line_rate_gbit_s:.9g} Gb/s x {share} / 8"


#: what people write between the parts of a name
_SEPARATORS = re.compile(r"[\s_]+")
_NUMBER = r"(?P<number>\d+(?:\.\d+)?|\.\d+)"
_BITS = r"(?P<prefix>[mgt])(?:b(?:it)?)?(?:(?:/|p)s(?:ec)?)?"
#: '1GbE', '40 GbE', '10GE', '100G', '1 gige', '400MbE', '100 Gb/s Ethernet', '10G Ethernet'
_ETHERNET_RATE_FIRST = re.compile(rf"{_NUMBER} ?{_BITS} ?(?:e|ige|eth|ethernet)")
_ETHERNET_BARE_RATE = re.compile(rf"{_NUMBER}(?P<prefix>[gt])")
#: 'Ethernet 100', 'eth 100G', 'Ethernet 400 Mb/s'
_ETHERNET_RATE_LAST = re.compile(rf"(?:ethernet|eth) ?{_NUMBER} ?(?:{_BITS})?e?")
#: '10GBASE-T', '100GBASE-SR4', '1000BASE-T': the MAC rate as IEEE 802.3 writes it, in Mb/s or Gb/s
_ETHERNET_IEEE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<prefix>g?)base-\w+")
#: what stands for the device before or behind a rate: 'soft roce', 'Soft-RoCEv2', 'rxe'
_SOFT_DEVICE = re.compile(r"\b(?:soft[ -]?roce(?:[ -]?v2)?|(?:rdma )?rxe)\b")
#: 'Soft-RoCE 100 Mb/s', 'rxe 100M': a bare number has no unit, and is refused
_SOFT_RATE = re.compile(
    rf"{_NUMBER} ?(?P<prefix>[kmgt])(?:b(?:it)?)?(?:(?:/|p)s(?:ec)?)?(?:e|ethernet)?"
)
#: 'EFA 50', 'efa150', 'EFA 25G', 'EFA 50 Gb/s'
_EFA_RATE = re.compile(rf"efa ?{_NUMBER} ?(?:g(?:b(?:it)?)?(?:(?:/|p)s(?:ec)?)?)?")
_ETHERNET_WORDS = {"fast ethernet": 0.1, "gigabit ethernet": 1.0, "gige": 1.0}
_PREFIX_GBIT_S = {"k": 1e-6, "m": 1e-3, "g": 1.0, "t": 1e3}
#: '56 Gb/sec (4X FDR)', as /sys/class/infiniband/*/ports/*/rate prints
_SYSFS_RATE = re.compile(r"(?P<rate>[\d.]+) gb/sec \((?P<name>[^)]*)\)")


def _plain(text: str) -> str:
    return _SEPARATORS.sub(" ", text.strip().lower())


def _encoding_share(encoding: str) -> float:
    code = load_data("links")["encodings"][encoding]
    return float(code["data"] / code["line"])


def _link_from_row(row: Mapping[str, Any], name: str, technology: str, lanes: int) -> Link:
    data_rate = lanes * row["line_rate_gbit_s"] * _encoding_share(row["encoding"])
    return Link(
        name=name,
        technology=technology,
        lanes=lanes,
        line_rate_gbit_s=row["line_rate_gbit_s"],
        data_rate_gbit_s=row.get("data_rate_gbit_s", data_rate),
        encoding=row["encoding"],
        source=row["source"],
    )


@cache
def known_links() -> Mapping[str, Link]:
    """Return every link the data names, under its name; Ethernet and EFA take any other rate."""
    data = load_data("links")
    infiniband = data["infiniband"]
    links = [
        _link_from_row(speed, f"{speed['name']} {lanes}x", "infiniband", lanes)
        for speed in infiniband["speeds"]
        for lanes in infiniband["widths"]
    ]
    links += [
        _link_from_row(row, ethernet_name(row["data_rate_gbit_s"]), "ethernet", row["lanes"])
        for row in data["ethernet"]["rates"]
    ]
    links += [
        _link_from_row(row, row["name"], row["technology"], row["lanes"]) for row in data["others"]
    ]
    return {link.name: link for link in links}


def ethernet_name(rate_gbit_s: float) -> str:
    """Return the name of an Ethernet link: ``40GbE``; under 1 Gb/s ``400MbE``."""
    if rate_gbit_s >= 1:
        return f"{rate_gbit_s:.12g}GbE"
    return f"{rate_gbit_s * 1000:.12g}MbE"


def ethernet_link(rate_gbit_s: float) -> Link:
    """Return the Ethernet link of that MAC rate; any positive rate is one.

    Raises:
        UnknownLinkError: the rate is not a positive finite number.
    """
    if not 0 < rate_gbit_s < float("inf"):
        _refuse(f"{rate_gbit_s}GbE")
    return _of_rate(ethernet_name(rate_gbit_s), "ethernet", rate_gbit_s)


def _of_rate(name: str, technology: str, rate_gbit_s: float) -> Link:
    """Return the link of that name as the data has it, else one of the stated rate."""
    return known_links().get(name) or Link(
        name=name,
        technology=technology,
        lanes=1,
        line_rate_gbit_s=rate_gbit_s,
        data_rate_gbit_s=rate_gbit_s,
        encoding="private",
        source=load_data("links")[technology]["source_of_other_rates"],
    )


def soft_roce_link(rate_gbit_s: float) -> Link:
    """Return the Soft-RoCE link of that rate, which is the shaped or measured one of its interface.

    Raises:
        UnknownLinkError: the rate is not a positive finite number.
    """
    if not 0 < rate_gbit_s < float("inf"):
        _refuse_soft(f"{SOFT_ROCE_NAME} {rate_gbit_s} Gb/s")
    sources = load_data("links")["soft_roce"]
    return Link(
        name=f"{SOFT_ROCE_NAME} {_rate_name(rate_gbit_s)}",
        technology=SOFT_ROCE,
        lanes=1,
        line_rate_gbit_s=rate_gbit_s,
        data_rate_gbit_s=rate_gbit_s,
        encoding="private",
        source=f"{sources['device_source']}; {sources['rate_source']}",
    )


def _rate_name(rate_gbit_s: float) -> str:
    """Return ``100 Mb/s``, ``2.5 Gb/s``."""
    if rate_gbit_s >= 1:
        return f"{rate_gbit_s:.12g} Gb/s"
    return f"{rate_gbit_s * 1000:.12g} Mb/s"


def _refuse_soft(text: str) -> NoReturn:
    raise UnknownLinkError(
        "Soft-RoCE has no rate of its own: the kernel's software is as fast as its interface and "
        "its CPU let it be",
        expected="a positive rate with its unit behind it, such as 'Soft-RoCE 100 Mb/s'",
        got=repr(text),
        next_step="state what the interface is shaped to (tc qdisc show), or what ib_write_bw "
        "measured between two idle nodes",
    )


#: "100 MB/s": bytes, eight times what case-blind reading would make of it
_IN_BYTES = re.compile(r"\d *[KkMGT]B(?:$|[ /p])")


#: what may be stated of Soft-RoCE, in Gb/s, and why no more: a unit mistaken is likelier
_SOFT_GBIT_S = (0.001, 400.0)
_SOFT_SLOWEST = "below 1 Mb/s one message of 4 MiB takes more than half a minute"
_SOFT_FASTEST = "a CPU makes and copies every packet, and none comes near 400 Gb/s so"


def _check_soft_rate(rate_gbit_s: float, text: str) -> None:
    """Refuse a stated rate that would make each healthy node red, or each sick one green."""
    slowest, fastest = _SOFT_GBIT_S
    if slowest <= rate_gbit_s <= fastest:
        return
    raise UnknownLinkError(
        f"no {SOFT_ROCE_NAME} has that rate: "
        f"{_SOFT_SLOWEST if rate_gbit_s < slowest else _SOFT_FASTEST}",
        expected="1 Mb/s to 400 Gb/s",
        got=repr(text),
        next_step="look at the unit; tc qdisc show says what the interface is shaped to, "
        "ib_write_bw what two idle nodes do",
    )


def _soft(plain: str, text: str) -> Link | None:
    """Return the Soft-RoCE link of that name; None where no such device is named."""
    parts = _SOFT_DEVICE.split(plain)
    if len(parts) == 1:
        return None
    words = " ".join(part.strip() for part in parts if part.strip())
    match = _SOFT_RATE.fullmatch(words)
    # What is all in capitals says nothing by them.
    in_bytes = _IN_BYTES.search(text) and not text.isupper()
    if match is None or float(match["number"]) <= 0 or in_bytes:
        _refuse_soft(text)
    rate = float(f"{float(match['number']) * _PREFIX_GBIT_S[match['prefix']]:.12g}")
    _check_soft_rate(rate, text)
    return soft_roce_link(rate)


def _known_phrase() -> str:
    infiniband = load_data("links")["infiniband"]
    speeds = ", ".join(speed["name"] for speed in infiniband["speeds"])
    widths = ", ".join(f"{lanes}x" for lanes in infiniband["widths"])
    others = (name for name, link in known_links().items() if link.technology != "infiniband")
    return (
        f"InfiniBand {speeds} with {widths} (4x where left out), {', '.join(others)}, "
        "Ethernet and EFA of any other rate such as '400MbE' and 'EFA 50', or 'Soft-RoCE 100 Mb/s' "
        "of 1 Mb/s to 400 Gb/s"
    )


def _refuse(text: str) -> NoReturn:
    speeds = [speed["name"] for speed in load_data("links")["infiniband"]["speeds"]]
    near = nearest_names(text, [*known_links(), *speeds])
    raise UnknownLinkError(
        f"unknown link (nearest known: {near})" if near else "unknown link",
        expected=_known_phrase(),
        got=repr(text),
        next_step="write the link as one of these, for example 'FDR 4x' or '40GbE'",
    )


def _ethernet(plain: str) -> Link | None:
    if plain in _ETHERNET_WORDS:
        return ethernet_link(_ETHERNET_WORDS[plain])
    ieee = _ETHERNET_IEEE.fullmatch(plain)
    if ieee is not None and float(ieee["number"]) > 0:
        return ethernet_link(float(ieee["number"]) * _PREFIX_GBIT_S[ieee["prefix"] or "m"])
    for pattern in (_ETHERNET_RATE_FIRST, _ETHERNET_BARE_RATE, _ETHERNET_RATE_LAST):
        match = pattern.fullmatch(plain)
        if match is not None and float(match["number"]) > 0:
            rate = float(match["number"]) * _PREFIX_GBIT_S[match["prefix"] or "g"]
            return ethernet_link(float(f"{rate:.12g}"))
    return None


def _efa(plain: str, text: str) -> Link | None:
    match = _EFA_RATE.fullmatch(plain)
    in_bytes = _IN_BYTES.search(text) and not text.isupper()
    if match is None or float(match["number"]) <= 0 or in_bytes:
        return None
    rate = float(match["number"])
    return _of_rate(f"EFA {rate:.12g}", "efa", rate)


def _width(plain: str, speed: Mapping[str, Any]) -> int | None:
    """Return the lanes that what stands beside a speed's name means: '', '4x', 'x4', '100'."""
    infiniband = load_data("links")["infiniband"]
    if not plain:
        return int(infiniband["default_width"])
    lanes = re.fullmatch(r"(?:(\d{1,4}) ?x|x ?(\d{1,4}))", plain)
    for width in infiniband["widths"]:
        if lanes and int(lanes[1] or lanes[2]) == width:
            return int(width)
        if not lanes and plain == f"{width * speed['label_gbit_s']:g}":
            return int(width)
    return None


def _infiniband(plain: str) -> Link | None:
    words = re.sub(r"^(?:infiniband|ib) | (?:infiniband|ib)$", "", plain)
    words = re.sub(r"\bfdr[ -]10\b", "fdr10", words)
    # longest first: 'fdr10' is a speed of its own, not FDR with a number
    speeds = load_data("links")["infiniband"]["speeds"]
    for speed in sorted(speeds, key=lambda row: -len(row["name"])):
        name = speed["name"].lower()
        match = re.fullmatch(rf"(?P<before>.*?)[ -]?{name}[ -]?(?P<after>.*?)", words)
        if match is None or (match["before"] and match["after"]):
            continue
        lanes = _width(match["before"] or match["after"], speed)
        if lanes is not None:
            return known_links()[f"{speed['name']} {lanes}x"]
    return None


@cache
def _names() -> Mapping[str, Link]:
    names = {name.lower(): link for name, link in known_links().items()}
    for row in load_data("links")["others"]:
        for alias in row["aliases"]:
            names[alias] = known_links()[row["name"]]
    return names


@lru_cache(maxsize=256)
def find_link(text: str) -> Link:
    """Return the link that ``text`` names, in any of the ways people write it, any case.

    Examples: ``FDR 4x``, ``4X FDR``, ``FDR`` (4x), ``HDR100`` (2x), ``NDR400``, ``1GbE``,
    ``100 Gb/s Ethernet``, ``400MbE``, ``Omni-Path 100``, ``Slingshot 200``, ``EFA 50``,
    ``BXI v2``, ``Soft-RoCE 100 Mb/s``, ``rxe 1G``, and ``56 Gb/sec (4X FDR)`` as the kernel
    prints it.

    Raises:
        UnknownLinkError: nothing known has that name; the message lists what is known, or says
            that Soft-RoCE needs a rate, or which.
    """
    plain = _plain(text)
    kernel = _SYSFS_RATE.fullmatch(plain)
    if kernel is not None:
        plain = kernel["name"]
    link = _names().get(plain) or _soft(plain, text) or _infiniband(plain)
    link = link or _ethernet(plain) or _efa(plain, text)
    if link is None:
        _refuse(text)
    return link


#: what rdma_rxe keeps of its interface's MTU for headers (Linux drivers/infiniband/sw/rxe/
#: rxe_hdr.h, RXE_MAX_HDR_LENGTH)
_HEADER_ROOM_BYTES = 80

#: path MTUs of InfiniBand and RoCE, in bytes (IBA specification vol. 1, PortInfo: MTU)
_PATH_MTUS = (4096, 2048, 1024, 512, 256)


def soft_path_mtu(interface_mtu: int) -> int | None:
    """Return the active MTU that rdma_rxe takes over an interface; None where none fits.

    Linux drivers/infiniband/sw/rxe/rxe_param.h, eth_mtu_int_to_enum: the largest path MTU within
    the interface's MTU less the room for headers.
    """
    room = interface_mtu - _HEADER_ROOM_BYTES
    return next((mtu for mtu in _PATH_MTUS if mtu <= room), None)


def device_word(link: str) -> str:
    """Return ``Soft-RoCE`` for the name of a software device's link, nothing for any other.

    It stands beside every path whose numbers people read, so that nobody takes them for an HCA's.

    Args:
        link: as :attr:`Link.name` has it; empty where nobody recorded one.
    """
    return SOFT_ROCE_NAME if link.startswith(SOFT_ROCE_NAME) else ""


def why_not_the_device(link: Link, port: str, parent: str | None, card: str = "") -> str:
    """Return in which way a port is not the device that its declared link needs; empty: it is.

    ``parent`` is empty where the port is soft and does not say over what; None for an adapter.
    """
    if parent is not None and not link.is_soft:
        below = f" over {parent}" if parent else ""
        return (
            f"{port} is {SOFT_ROCE_NAME}{below}: the kernel's software, no HCA, and the site "
            f'declares {link.name}: state link = "{SOFT_ROCE_NAME} ..." with the rate that '
            f"{parent or 'its interface'} is shaped to, or name the HCA's port"
        )
    if parent is None and link.is_soft:
        named = f" ({card})" if card else ""
        return (
            f"{port} is no {SOFT_ROCE_NAME} device{named}, and the site declares {link.name}: "
            "state the link of the adapter, or name the port of the software device (rdma link)"
        )
    return ""


#: the layer of a port by the technology of its link
_LAYERS = {"infiniband": "InfiniBand", "omni-path": "Omni-Path", "ethernet": "Ethernet"}


def why_not_the_layer(link: Link, port: str, layer: str) -> str:
    """Return in which way a port's link layer contradicts its declared link; empty: it does not.

    ``layer`` is what sysfs says (Linux drivers/infiniband/core/sysfs.c, link_layer_show), or
    ``Omni-Path`` by the driver, or both where nobody read that; a word that is none of these
    contradicts nothing (EFA: ``Unknown``).
    """
    wanted = _LAYERS.get(link.technology)
    if wanted is None or wanted in layer or not any(each in layer for each in _LAYERS.values()):
        return ""
    return (
        f"{port} is a port of {layer} by its sysfs, and the site declares {link.name}, which is "
        f"{wanted}: state the link of the adapter, or name another port"
    )
