"""What there is to know of a benchmark program, apart from how its output is laid out."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from fabricproof.core.measure import Table
from fabricproof.physics.collective import Operation, Statistic

#: suites whose buffers are on GPUs, and whose ranks speak by NCCL or RCCL
NCCL_SUITES = frozenset({"nccl-tests", "rccl-tests"})

#: what a program is called whose output does not name it
UNNAMED = "unnamed"


class ProgramKind(StrEnum):
    """What a program is judged by first."""

    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    COLLECTIVE = "collective"
    ROUND_TRIP_FREE = "operation"
    """An accumulation or atomic operation: a time, part of which is arithmetic."""


class Consistency(StrEnum):
    """The law between the columns of one row."""

    NONE = "none"
    SIZE_OVER_TIME = "bandwidth = message size / latency"
    TWICE_SIZE_OVER_TIME = "bandwidth = 2 x message size / t_max"
    FOUR_TIMES_SIZE_OVER_TIME = "bandwidth = 4 x message size / t_max"
    RATE_TIMES_SIZE = "bandwidth = message rate x message size"


class BusFactor(StrEnum):
    """Bus bandwidth over size / time with n ranks (``*GetBw`` in src/*.cu of nccl-tests)."""

    ONE = "1"
    OTHERS = "(n - 1) / n"
    TWICE_OTHERS = "2 (n - 1) / n"

    def of(self, num_ranks: int) -> float:
        """Return the factor for so many ranks, 2 or more."""
        if self is BusFactor.ONE:
            return 1.0
        others = (num_ranks - 1) / num_ranks
        return others if self is BusFactor.OTHERS else 2 * others


@dataclass(frozen=True, kw_only=True)
class Bus:
    """The bus bandwidth of one of nccl-tests.

    Attributes:
        factor: what makes it out of size / time.
        operation: the collective; None where each rank sends to the next, and gets as much.
    """

    factor: BusFactor
    operation: Operation | None


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """How one program's table is to be read.

    Attributes:
        kind: what is judged first.
        bidirectional: the bandwidth adds up both directions, so both directions' ceilings apply.
        pairs_share_rails: several pairs load the rails at once.
        crosses: each printed time holds at least one crossing of the fabric, so that the latency
            floor binds.  Not so for collectives (the root of a broadcast is done when its buffer
            is free), for completion at the origin only, and for a stream's time over its messages.
        round_trip: the printed time is there and back: a request, and the answer with the bytes.
        empty_crosses: a message of 0 bytes crosses as well; a put or get of nothing does not.
        last_send_uncounted: the printed time is the mean of both ends, and the end that sends last
            stops its clock when its buffer is free, before the message has arrived.
        consistency: the law between the columns of a row.
    """

    kind: ProgramKind
    bidirectional: bool = False
    pairs_share_rails: bool = False
    crosses: bool = True
    round_trip: bool = False
    empty_crosses: bool = True
    last_send_uncounted: bool = False
    consistency: Consistency = Consistency.NONE


@dataclass(frozen=True, kw_only=True)
class Messages:
    """The messages of one iteration of a pair.

    Attributes:
        forth: from the first half of the ranks to the second; of a windowed program, windows.
        back: from the second half to the first.
        windowed: each of them is a window of messages that follow each other.
        in_turn: each waits for the one before.
        answer_bytes: with which the receiver of a window answers.
    """

    forth: int = 0
    back: int = 0
    windowed: bool = False
    in_turn: bool = False
    answer_bytes: int = 0

    @property
    def crossings(self) -> int:
        """Messages of one iteration that follow each other: both of a ping-pong wait in turn."""
        return self.forth + self.back if self.in_turn else max(self.forth, self.back)


@dataclass(frozen=True, kw_only=True)
class Collective:
    """What a collective program measures.

    OSU and IMB give every rank the same count in the variants of unlike counts (``v``) or types
    (``w``), so that bounds and models are those of the plain operation.

    Attributes:
        statistic: what it prints of the ranks' times.
        non_blocking: it prints overall, compute and pure communication times, and the overlap.
        share_sized: its size may be one rank's share where others print the whole vector.
    """

    operation: Operation
    statistic: Statistic
    non_blocking: bool = False
    share_sized: bool = False

    @property
    def has_size(self) -> bool:
        """Whether it has messages at all; a barrier has none."""
        return self.operation is not Operation.BARRIER

    @property
    def times_root_alone(self) -> bool:
        """Whether its times cannot compare algorithms: those of a root that waits for nobody.

        An algorithm that lets go of the root early would win, whatever the others wait: measured,
        a broadcast of 32 KiB on 25 MB/s in 12 us, which takes 1300.
        """
        is_root = self.statistic is Statistic.RANK_ZERO_STREAM
        return is_root and not self.operation.waits_for_all


#: times only, no ceiling and no floor: collectives, and what no row is known of
UNKNOWN = Meaning(kind=ProgramKind.COLLECTIVE, crosses=False)


@dataclass(frozen=True, kw_only=True)
class Program:
    """One row of the catalogue.

    Attributes:
        name: as it is called: ``osu_bw``, ``PingPong``, ``P2P/PingPong``, ``ib_write_bw``.
        titles: what its output may call it, in lower case; OSU's ``#define BENCHMARK`` without
            ``OSU`` and the accelerator.  Empty if the output bears the name.
        port_titles: what mpi4py's port alone calls it.
        binary: IMB's that has it; empty elsewhere.
        meaning: how its table is to be read.
        port_meaning: how the port's is, if it differs.
        earlier: the release that brought ``meaning``, and the meaning before it.
        messages: of one iteration; None if they are no fixed exchange between pairs.
        collective: the operation of a collective; None for all others.
        bus: its bus bandwidth; None if it prints none that says something.
        has_port: mpi4py ports it to Python (demo/osu_*.py, 4.1).
    """

    name: str
    titles: tuple[str, ...] = ()
    port_titles: tuple[str, ...] = ()
    binary: str = ""
    meaning: Meaning = UNKNOWN
    port_meaning: Meaning | None = None
    earlier: tuple[tuple[int, int], Meaning] | None = None
    messages: Messages | None = None
    collective: Collective | None = None
    bus: Bus | None = None
    has_port: bool = False

    def meaning_of(self, suite: str, version: str | None = None) -> Meaning:
        """Return how its table is to be read.

        Args:
            suite: ``osu-mpi4py`` for the port.
            version: of the suite, as printed; None for the newest.
        """
        if suite == "osu-mpi4py" and self.port_meaning is not None:
            return self.port_meaning
        release = _RELEASE.match(version or "")
        if self.earlier is None or release is None:
            return self.meaning
        since, before = self.earlier
        return before if (int(release[1]), int(release[2])) < since else self.meaning

    def collective_of(self, suite: str) -> Collective | None:
        """Return what it measures as a program of ``suite``.

        mpi4py's ports time all repetitions at once, at rank 0 (demo/osu_*.py).
        """
        if suite != "osu-mpi4py" or self.collective is None:
            return self.collective
        port = replace(self.collective, statistic=Statistic.RANK_ZERO_STREAM)
        return port if self.has_port else None


_RELEASE = re.compile(r"(\d+)\.(\d+)")


def buffers_of(table: Table) -> str:
    """Return how the names of the table's quantities begin; empty for buffers of hosts.

    What crosses a GPU's slot is another quantity than what does not: the names begin with one of
    :data:`fabricproof.core.units.BUFFERS`, and no reference of hosts speaks of them.

    OSU says of a pair where both buffers are (``Send Buffer on DEVICE (D) and Receive Buffer on
    HOST (H)``, util/osu_util.c; managed memory counts as the device's), of a collective on a GPU
    only the accelerator (``OSU MPI-CUDA Allreduce Latency Test``).
    """
    said = table.attributes
    if "send_buffer" not in said:
        return "device_" if "accelerator" in said else ""
    sender, receiver = (
        "host" if str(said[name]).startswith("HOST") else "device"
        for name in ("send_buffer", "receive_buffer")
    )
    both = "" if sender == "host" else "device_"
    return both if sender == receiver else f"{sender}_to_{receiver}_"


def ends_on_gpus(buffers: str) -> int:
    """Return how many of the two ends of a pair have their buffer on a GPU: 0, 1 or 2."""
    return 0 if not buffers else 1 if "host" in buffers else 2
