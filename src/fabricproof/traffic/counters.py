"""What the counters of a run say beside its bytes: errors, losses, congestion, and doubts.

A counter that rises is an **error**, over which no number is a PASS, or a **note** without a
verdict.  One that went backwards or stands at its end leaves a **doubt**.  All names stand in
``counters.toml``, with their sources; what ``rank.sh`` adds has a prefix (``aer_``, ``ethtool.``).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fabricproof.core.units import by_key

#: the TCP of a whole node stands in the evidence as an interface of this name
TCP = "node/tcp"

_TABLES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("counters.toml").read_text())


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row of ``counters.toml``, where its fields are explained."""

    rise: str = ""
    rate: str = ""
    end: int = -1
    error_from: float = math.inf
    from_share: float = 0.0
    means: str = ""


_ROWS = {name: _Row(**row) for name, row in _TABLES["counters"].items()}

#: kind of error and direction (``damaged in``) -> counters of it
RATES: Mapping[str, frozenset[str]] = {
    rate: frozenset(name for name, row in _ROWS.items() if row.rate == rate)
    for rate in dict.fromkeys(row.rate for row in _ROWS.values() if row.rate)
}

#: counters whose rise during a run makes its number doubtful, whatever it is
ERROR_COUNTERS = frozenset(name for name, row in _ROWS.items() if row.rise in {"error", "event"})

#: those that tell of the link itself, which no quiet look afterwards makes undone
WIRE_EVENTS = frozenset(name for name, row in _ROWS.items() if row.rise == "event")

#: packets that RDMA sent again, waited for in vain, or got out of order
LOSS_COUNTERS = frozenset(name for name, row in _ROWS.items() if row.rise == "loss")

#: where counters of InfiniBand's PortCounters stop
ENDS = {name: row.end for name, row in _ROWS.items() if row.end >= 0}

#: of ``ethtool -S``, whose names are each driver's own
_ETHTOOL_ERRORS = re.compile(r"crc.*err|symbol_err|link_down_events")

#: A port that waited for credits this many times as long as it took to send its data is noted.  The
#: tick of PortXmitWait is the port's own (IBA specification vol. 1, 16.1.3.5), about the time of
#: one word of four bytes: our choice.
WAIT_SHARE = 0.5

#: an error counter that stood this high before a run is noted
HIGH = 1000

#: a device of libfabric's cxi provider (Slingshot), which has no ports (cxip_env.c: cxi0 to cxi99)
_CXI = re.compile(r"cxi[0-9]")


def is_device(rail: str) -> bool:
    """Tell whether a rail is a port of an RDMA device or a Slingshot device, and no interface."""
    return ":" in rail or _CXI.match(rail) is not None


def in_our_names(
    interface: str, counters: Mapping[str, int], *, is_omni_path: bool
) -> dict[str, int]:
    """Return the counters of an interface under our names and in bytes; :data:`TCP` as it is.

    ``counters`` have the names of kernel and driver; ``is_omni_path``: those of hfi1.
    """
    if interface == TCP:
        return dict(counters)
    renamed = _TABLES["renamed"] | (_TABLES["renamed_by_hfi1"] if is_omni_path else {})
    found = {}
    for key, value in counters.items():
        name, factor = renamed.get(key, (key, 1))
        found[name] = value * factor
    for sums in _TABLES["sums"]:
        if counters.keys() >= {*sums["due"]}:
            for name in sums.keys() - {"due"}:
                found[name] = sum(counters.get(part, 0) for part in sums[name])
    return found


@dataclass(frozen=True, kw_only=True)
class CounterSample:
    """One interface's counters on one node before and after a run, by counter name.

    Attributes:
        address: its MAC address; None if it has none or nobody read it.
        parent: the interface below the port of a Soft-RoCE device, empty if it does not say which;
            None for anything else.
        netdev: the interface of a Slingshot device, whose bytes its link counts too.
        set_back: counters that a later start of the leg found lower than an earlier one left them.
    """

    node: str
    interface: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    address: str | None = None
    parent: str | None = None
    netdev: str | None = None
    set_back: frozenset[str] = frozenset()

    def has(self, counter: str) -> bool:
        """Tell whether ``counter`` was read both before and after."""
        return counter in self.before and counter in self.after

    def moved(self, counter: str) -> int:
        """Return how far ``counter`` advanced; 0 if it was not read both before and after."""
        return self.after[counter] - self.before[counter] if self.has(counter) else 0

    def ran_backwards(self, counter: str) -> bool:
        """Tell whether ``counter`` wrapped or was reset during the run, or between its starts."""
        return self.moved(counter) < 0 or counter in self.set_back

    @property
    def is_hardware_port(self) -> bool:
        """Whether it is a port of an HCA, and none of a Soft-RoCE device."""
        return ":" in self.interface and self.parent is None

    def about(self, counter: str) -> str:
        """Return ``symbol_error of mlx5_0:1 on n1``, for a person."""
        return f"{counter} of {'TCP' if self.interface == TCP else self.interface} on {self.node}"

    @property
    def how_to_reset(self) -> str:
        """Where and how the counters of an InfiniBand port are reset."""
        device, _, port = self.interface.partition(":")  # else those of the node's first port are
        return f"on {self.node}: perfquery -R -C {device} -P {port}"


#: node, interface and name of a counter
Risen = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Rises:
    """What rose on the rails of a run, one sentence each; ``rose`` names each of ``errors``."""

    errors: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rose: tuple[Risen, ...] = ()


def read_rises(samples: Iterable[CounterSample], rails: Sequence[str]) -> Rises:
    """Return what the counters of the rails, the interfaces below them and TCP say beside bytes."""
    samples = tuple(samples)
    ours = [each for each in samples if each.interface in rails]
    watched = {(each.node, name) for each in ours for name in (each.interface, each.parent)}
    if not all(map(is_device, rails)):
        watched |= {(each.node, TCP) for each in samples}
    errors: dict[Risen, str] = {}
    doubts: list[str] = []
    notes: list[str] = []
    for sample in (each for each in samples if (each.node, each.interface) in watched):
        packets = sum(map(sample.moved, ("tx_packets", "rx_packets", "OutSegs")))
        for name in sorted({*sample.before, *sample.after}):
            row, rise, about = _row(name), sample.moved(name), sample.about(name)
            is_error = row.rise in {"error", "event"}
            said = f"{about} rose by {rise}" + (f": {row.means}" if row.means else "")
            if rise > 0 and (
                name in ERROR_COUNTERS or row.rise == "error" or rise >= row.error_from
            ):
                errors[sample.node, sample.interface, name] = said
            elif rise > 0 and row.rise == "note" and rise >= row.from_share * packets:
                notes.append(said)
            if is_error:
                doubts += _doubt_of(sample, name)
                if (stood := sample.before.get(name, 0)) >= HIGH:
                    notes.append(f"{about} stood at {stood} before the run")
        notes += _noted_wait(sample)
    return Rises(
        errors=tuple(errors.values()),
        doubts=tuple(doubts),
        notes=tuple(notes),
        rose=tuple(sorted(errors)),
    )


def wire_events(looks: Sequence[Sequence[CounterSample]], rails: Sequence[str]) -> tuple[str, ...]:
    """Return what happened to the links of the rails during several looks and between them.

    ``looks``: the counters of each, oldest first.  A counter that was reset meanwhile adds nothing.
    """
    samples = [each for look in looks for each in look]
    watched = {
        (each.node, name)
        for each in samples
        if each.interface in rails
        for name in (each.interface, each.parent)
    }
    seen = by_key(
        ((sample.about(name), _row(name).means), counters[name])
        for sample in samples
        if (sample.node, sample.interface) in watched
        for counters in (sample.before, sample.after)
        for name in sorted(WIRE_EVENTS & counters.keys())
    )
    rises = {key: sum(max(0, b - a) for a, b in pairwise(values)) for key, values in seen.items()}
    return tuple(f"{about} rose by {num}: {means}" for (about, means), num in rises.items() if num)


def _row(name: str) -> _Row:
    if name.startswith("ethtool."):
        return _Row(rise="error" if _ETHTOOL_ERRORS.search(name) else "note")
    return _ROWS.get(name, _Row())


def _doubt_of(sample: CounterSample, name: str) -> Iterator[str]:
    """Yield why a counter of errors may have hidden a rise."""
    if sample.ran_backwards(name):
        yield f"{sample.about(name)} ran backwards (wrapped or reset during the run)"
    elif name in sample.before and name not in sample.after:
        yield f"{sample.about(name)} was not read after the run"
    elif sample.is_hardware_port and name in ENDS and sample.before.get(name) == ENDS[name]:
        end = f"{sample.about(name)} stands at its end and shows no rise"
        yield f"{end} (reset it {sample.how_to_reset})"


def _noted_wait(sample: CounterSample) -> Iterator[str]:
    words, wait = sample.moved("tx_bytes") / 4, sample.moved("port_xmit_wait")
    if wait > WAIT_SHARE * words > 0:
        yield (
            f"{sample.about('port_xmit_wait')} rose by {wait} ticks for {words:.0f} words sent: it "
            "waited for credits of its peer: congestion, or a slow receiver"
        )
