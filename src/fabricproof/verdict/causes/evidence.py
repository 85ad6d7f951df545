"""What a number out of its bounds, its table and its fabric show of the cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import NCCL_SUITES, ProgramKind
from fabricproof.core.measure import Table
from fabricproof.physics import Ceiling, Fabric, through_host_mb_s
from fabricproof.verdict.value import Judgement

Words = Mapping[str, object]

#: A plateau is a link's if it has this part of the link's conservative ceiling or more.  Seen:
#: 0.991 (25GbE by TCP), 1.000 (25GbE by RoCE), 0.999 (1GbE by rxe).
AT_RATE = 0.97

#: a curve is flat at its end if its last row carries this part of its best or more
FLAT = 0.9

#: A figure between these parts of what copies through the host give without a pipeline is "about"
#: that: copies are slower than their slot allows, and a short pipeline hides a part of them.
THROUGH_HOST = (0.5, 1.25)

IPERF = frozenset({"iperf", "iperf3"})


@dataclass(frozen=True)
class DoubtfulNumber:
    """A number out of its bounds.

    Attributes:
        judgement: with value and unit.
        table: where it stands.
        fabric: as the program loads it.
    """

    judgement: Judgement
    table: Table
    fabric: Fabric

    @property
    def value(self) -> float:
        """The number, in MB/s or us."""
        return self.judgement.value or 0.0

    @property
    def is_latency(self) -> bool:
        """Whether it is a time in us."""
        return self.judgement.unit == "us"

    @property
    def is_bandwidth(self) -> bool:
        """Whether it is a bandwidth between two nodes, in MB/s."""
        return not self.is_latency and reading_of(self.table).kind is ProgramKind.BANDWIDTH

    @cached_property
    def curve(self) -> list[tuple[int, float]]:
        """Message size in bytes and bandwidth in MB/s of each row; empty if there are none."""
        name = self.table.first_of(("bandwidth_mb_s", "bus_bandwidth_mb_s"))
        if name is None or "message_size" not in self.table.columns:
            return []
        sizes = map(int, self.table.column("message_size"))
        return [*zip(sizes, self.table.column(name), strict=True)]

    @cached_property
    def best_mb_s(self) -> float:
        """The most that any row carried: a limit must allow it."""
        return max([self.value, *(each for _, each in self.curve)])

    @cached_property
    def is_plateau(self) -> bool:
        """Whether it is a bandwidth between two nodes, at the flat end of its curve."""
        is_last = not self.curve or self.judgement.message_size == self.curve[-1][0]
        return self.is_bandwidth and is_last and self.value >= FLAT * self.best_mb_s

    @property
    def is_tcp(self) -> bool:
        """Whether sockets over Ethernet are declared, and it is not NCCL that runs there."""
        is_declared = self.fabric.framing.name.startswith("tcp")
        is_ethernet = self.fabric.link.technology == "ethernet"
        return is_declared and is_ethernet and self.table.suite not in NCCL_SUITES

    @property
    def has_several_flows(self) -> bool:
        """Whether several connections ran at once: of several iperf may print the sum alone."""
        is_sum = self.table.suite in IPERF and "streams" not in self.table.attributes
        return self.fabric.num_flows > 1 or is_sum

    @property
    def is_verbs(self) -> bool:
        """Whether InfiniBand or RoCE of an adapter is declared."""
        return self.fabric.framing.name in {"ib", "rocev2"} and not self.fabric.link.is_soft

    def at(self, limit: Ceiling, part: float = AT_RATE) -> dict[str, float]:
        """Return where the best of the table stands if it is at this limit; else nothing."""
        low, best = limit.low_mb_s, self.best_mb_s
        if not part * low <= best <= limit.high_mb_s:
            return {}
        return {"low": part * low, "high": limit.high_mb_s, "limit": low, "share": best / low}


def prints(warning: str) -> Callable[[DoubtfulNumber], bool]:
    """Return what tells whether a warning of ``benchmarks.parsers.network`` was printed."""
    return lambda number: warning in str(number.table.attributes.get("warnings", "")).split(",")


def through_host(value_mb_s: float, fabric: Fabric) -> str | None:
    """Return what to say of a bandwidth, in MB/s, that copies through the host explain, or None."""
    copied = through_host_mb_s(fabric)
    if copied is None or not THROUGH_HOST[0] * copied <= value_mb_s <= THROUGH_HOST[1] * copied:
        return None
    return (
        f"as through the host: GPUDirect seems off (messages that wait for a copy at "
        f"{'each end' if fabric.gpus and fabric.gpus.ends == 2 else 'one end'} give about "
        f"{copied:.0f} MB/s)"
    )
