"""One start of one leg on a machine of the model: what a fault may change, and the files it leaves.

The files are those of a real job: ``stdout``, ``stderr``, ``status`` and ``jobs`` as ``legs.sh``
leaves them, and a file of each rank and start as ``rank.sh`` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.job.leg import Leg, shell_name
from proof.machine.model import (
    IPOIB,
    MANAGEMENT,
    PLAYED,
    TIMES_SCATTER,
    ModelMachine,
    Moved,
)

#: messages above this many bytes are announced first: a rendezvous (UCX, Open MPI: 8 KiB and more)
EAGER_BYTES = 8192

#: what the announcement costs, in parts of a start
RENDEZVOUS = 0.8

#: part of a rate that TCP loses for each part of its packets that is lost: our choice, see the page
LOSS_COST = 200.0

#: the library that the model's stack was built with
LIBRARY = "/opt/openmpi/lib/libmpi.so.40"

#: PortXmitData counts octets divided by 4 (IBA specification vol. 1, 16.1.3.5)
IB_WORD_BYTES = 4

Place = tuple[str, str]
"""A node and its interface."""


def _unchanged(text: str) -> str:
    return text


def _unchanged_rank(_: int, text: str) -> str:
    return text


@dataclass(kw_only=True)
class Scene:
    """One start of a leg; a fault changes what it stands for before :meth:`play`.

    Attributes:
        machine: that it runs on.
        leg: what runs.
        nodes: of rank 0 and rank 1.
        attempt: of the leg, from 1.
        run: of the night, from 1: looks are runs of their own.
        out, into: what part of its rate a rail sends and receives at.
        start: by node, how many times its usual start a message costs.
        added_us: what every message takes more, us.
        by_size: message size -> how many times as long it takes.
        sent_over: interfaces that carry what is sent, with their parts; the leg's rails if empty.
        came_over: those that what is sent comes in by; as ``sent_over`` if empty.
        small_over: the interface that takes messages up to :data:`EAGER_BYTES`; empty: no other.
        lost: by node, which part of the packets that it sends is lost.
        foreign: traffic of others at a place: (place, ``tx`` or ``rx``) -> MB/s.
        taken: by node, which part of its core's time others take.
        rises: (place, counter) -> by how much it rises.
        told: what ranks say where they run; ``nodes`` if empty.
        library: that the ranks load.
        status: the launcher's exit status; None: the leg never ended.
        words: what stands on stderr.
        edit: changes what is printed.
        printed: how many times what was measured stands there, of rates.
        edit_ranks: changes what a rank writes.
        other_job: whether another job was on the nodes.
    """

    machine: ModelMachine
    leg: Leg
    nodes: tuple[str, str]
    attempt: int = 1
    run: int = 1
    out: dict[Place, float] = field(default_factory=dict)
    into: dict[Place, float] = field(default_factory=dict)
    start: dict[str, float] = field(default_factory=dict)
    added_us: float = 0.0
    by_size: list[Callable[[int], float]] = field(default_factory=list)
    sent_over: dict[str, float] = field(default_factory=dict)
    came_over: dict[str, float] = field(default_factory=dict)
    small_over: str = ""
    lost: dict[str, float] = field(default_factory=dict)
    foreign: dict[tuple[Place, str], float] = field(default_factory=dict)
    taken: dict[str, float] = field(default_factory=dict)
    rises: dict[tuple[Place, str], int] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    library: str = LIBRARY
    status: int | None = 0
    words: str = ""
    edit: Callable[[str], str] = _unchanged
    printed: float = 1.0
    edit_ranks: Callable[[int, str], str] = _unchanged_rank
    other_job: bool = False

    def ends(self) -> Iterator[tuple[str, str]]:
        """Yield both directions: from whom to whom."""
        yield self.nodes[0], self.nodes[1]
        yield self.nodes[1], self.nodes[0]

    def play(self, folder: Path) -> None:
        """Run it and leave its files below job folder ``folder``."""
        path = folder / "legs" / f"{shell_name(self.leg.name)}.{self.attempt}"
        path.mkdir(parents=True)
        begin = self.machine.clock_us // 1_000_000
        cost = self._cost()
        texts: list[str] = []
        for part, argv in enumerate(self.leg.commands):
            before = [self._reading("before", rank) for rank in (0, 1)]
            text, moved = PLAYED[self.leg.program](argv, cost)
            texts.append(text)
            self._count(moved)
            for rank in (0, 1):
                written = self.edit_ranks(rank, self._rank_text(rank, before[rank]))
                (path / f"rank.{rank}.{part}").write_text(written)
        (path / "stdout").write_text(self.edit("".join(texts)))
        (path / "stderr").write_text(self.words)
        if self.status is not None:
            (path / "status").write_text(f"{self.status}\n")
        (path / "jobs").write_text(self._jobs(begin))

    def _cost(self) -> Callable[[int], float]:
        machine, fabric = self.machine, self.machine.fabric
        drawn = machine.leg_cost(self.nodes)
        windowed = self.leg.program == "osu_bw"
        forth, back = (self._rate(*ends) for ends in self.ends())
        slow = sum(self.start.get(node, 1.0) for node in self.nodes) / 2
        waits = 1 / (1 - min(0.9, max(self.taken.values(), default=0.0)))

        def cost(size: int) -> float:
            start = (fabric.gap_us if windowed else fabric.start_us) * slow
            start *= 1 + RENDEZVOUS * (size > EAGER_BYTES)
            start += 0.0 if windowed else self.added_us
            wire = size / forth if windowed else size * (1 / forth + 1 / back) / 2
            noise = drawn + machine.number_cost()
            taken = start * math.exp(TIMES_SCATTER * noise) + wire * math.exp(noise)
            for factor in self.by_size:
                taken *= factor(size)
            return taken * waits / self.printed

        return cost

    def _rate(self, source: str, sink: str) -> float:
        """Return what all rails of the leg carry from one node to the other, MB/s."""
        rate = self.machine.fabric.rate_mb_s
        rails = []
        for rail in self.leg.rails:
            factor = self.out.get((source, rail), 1.0) * self.into.get((sink, rail), 1.0)
            foreign = self.foreign.get(((source, rail), "tx"), 0.0)
            foreign = max(foreign, self.foreign.get(((sink, rail), "rx"), 0.0))
            rails.append(max(rate * factor - foreign, rate * 0.02))
        # A message is cut in equal parts: the slowest rail has it last.
        return len(rails) * min(rails) / (1 + LOSS_COST * self.lost.get(source, 0.0))

    def _count(self, moved: Moved) -> None:
        """Advance counters and clocks by what one start moved."""
        machine = self.machine
        equal = {rail: 1 / len(self.leg.rails) for rail in self.leg.rails}
        over = self.sent_over or equal
        for (source, sink), messages in zip(
            self.ends(), (moved.messages, moved.answers), strict=True
        ):
            for name, part in over.items():
                large = [each for each in messages if not self._goes_aside(each[0])]
                self._send(source, sink, name, part, large)
            if self.small_over:
                small = [each for each in messages if self._goes_aside(each[0])]
                self._send(source, sink, self.small_over, 1.0, small)
        if not self.sent_over and not self.small_over:
            self._acknowledge(equal)
        for (place, way), rate in self.foreign.items():
            count = int(rate * 1e6 * moved.seconds)
            _add(machine.counters[place], way, count, count // machine.fabric.frame_bytes)
        for (place, counter), rise in self.rises.items():
            counters = machine.counters[place]
            counters[counter] = counters.get(counter, 0) + rise
        self._spend(moved.seconds)

    def _goes_aside(self, size: int) -> bool:
        return bool(self.small_over) and size <= EAGER_BYTES

    def _send(
        self, source: str, sink: str, name: str, part: float, messages: list[tuple[int, int]]
    ) -> None:
        fabric, machine = self.machine.fabric, self.machine
        frames = sum(math.ceil(max(size, 1) / fabric.frame_bytes) * num for size, num in messages)
        frames = int(frames * part)
        count = int(sum(size * num for size, num in messages) * part) + frames * fabric.header_bytes
        again = self._lost_of(source, frames)
        sent = count + again * (fabric.frame_bytes + fabric.header_bytes)
        self._last = {**getattr(self, "_last", {}), source: frames}
        if name:
            _add(machine.counters[source, name], "tx", sent, frames + again)
            at_sink = {**self.came_over}.get(name, 1.0) if self.came_over else 1.0
            _add(machine.counters[sink, name], "rx", int(count * at_sink), int(frames * at_sink))
            for other in self.came_over:
                if other not in (self.sent_over or self.leg.rails):
                    _add(machine.counters[sink, other], "rx", count, frames)
        if name == IPOIB:  # what goes over IPoIB the port below counts as well
            rail = self.leg.rails[0]
            _add(machine.counters[source, rail], "tx", sent, frames)
            _add(machine.counters[sink, rail], "rx", count, frames)
        if not fabric.is_verbs and name and name != "lo":
            machine.counters[source, "node/tcp"]["OutSegs"] += frames
            machine.counters[source, "node/tcp"]["RetransSegs"] += again

    def _lost_of(self, source: str, frames: int) -> int:
        """Draw how many of so many frames were lost: Poisson, by its normal limit from 50 on."""
        mean, chance = self.lost.get(source, 0.0) * frames, self.machine.chance
        if mean <= 0:
            return 0
        if mean > 50:
            return max(0, round(chance.gauss(mean, math.sqrt(mean))))
        number, left = 0, math.exp(-mean)
        at = chance.random()
        while at > left:
            at *= chance.random()
            number += 1
        return number

    def _acknowledge(self, over: dict[str, float]) -> None:
        fabric = self.machine.fabric
        for source, sink in self.ends():
            frames = getattr(self, "_last", {}).get(source, 0) // 2
            for name, part in over.items():
                size = int(frames * part) * fabric.header_bytes
                _add(self.machine.counters[sink, name], "tx", size, int(frames * part))
                _add(self.machine.counters[source, name], "rx", size, int(frames * part))

    def _spend(self, seconds: float) -> None:
        """Let the time pass: each rank spins on its core, but for what others take of it."""
        wall = max(seconds, 0.05)
        for node in self.machine.nodes:
            cores = self.machine.counters[node, "node/cores"]
            taken = self.taken.get(node, 0.0)
            cores["busy_ticks"] += round(wall * 100)
            cores["own_ticks"] += round(wall * (1 - taken) * 100)
            cores["waited_us"] += round(wall * taken * 1e6)
            cores["clock_us"] += round(wall * 1e6)
            _add(self.machine.counters[node, MANAGEMENT], "tx", 4000, 20)
            _add(self.machine.counters[node, MANAGEMENT], "rx", 4000, 20)
        self.machine.clock_us += round(wall * 1e6)

    def _reading(self, when: str, rank: int) -> str:
        node = self.nodes[rank]
        names = (*self.machine.interfaces, "node/tcp", "node/cores")
        lines = []
        for name in names:
            counters = self.machine.counters[node, name]
            lines.append(f"{when} {name} {_line(name, counters)}")
        return "\n".join(lines) + "\n"

    def _rank_text(self, rank: int, before: str) -> str:
        node = (self.told or self.nodes)[rank]
        lines = [
            f"rank {rank}",
            f"node {node}",
            "cpus 0",
            "kernel 6.8.0",
            f"machine {node}-boot",
            f"library {self.library}",
        ]
        for number, name in enumerate(self.machine.interfaces):
            lines.append(f"fact {name} {self._fact((self.nodes[rank], name), number)}")
        return "\n".join(lines) + "\n" + before + self._reading("after", rank) + "status 0\n"

    def _fact(self, place: Place, number: int) -> str:
        node, name = place
        if ":" in name:
            return "state=4:_ACTIVE rate=200_Gb/sec_(4X_HDR) link_layer=InfiniBand fw_ver=20.35"
        mine = f"{self.machine.nodes.index(node):02x}:{number:02x}"
        if name == IPOIB:
            gid = "fe:80:00:00:00:00:00:00:00:00:00:00:00:00"
            return f"mtu=2044 operstate=up address=20:00:00:01:{gid}:{mine}"
        return f"mtu={self.machine.fabric.facts.mtu} operstate=up address=02:00:00:00:{mine}"

    def _jobs(self, begin: int) -> str:
        now = self.machine.clock_us // 1_000_000 + 1
        nodes = ",".join(self.nodes)
        lines = [f"100 {begin} {now}", f"100|me|{begin - 5}|{now + 60}|{nodes}"]
        if self.other_job:
            lines.append(f"101|other|{begin - 60}|{now + 600}|{self.nodes[0]}")
        return "\n".join([*lines, "answered"]) + "\n"


def _add(counters: dict[str, int], way: str, count: int, packets: int) -> None:
    counters[f"{way}_bytes"] += count // IB_WORD_BYTES * IB_WORD_BYTES
    counters[f"{way}_packets"] += packets


_PORT_NAMES = {
    "tx_bytes": "port_xmit_data",
    "rx_bytes": "port_rcv_data",
    "tx_packets": "port_xmit_packets",
    "rx_packets": "port_rcv_packets",
}


def _line(interface: str, counters: dict[str, int]) -> str:
    """Return counters as ``rank.sh`` prints them: those of a port by the kernel's names."""
    if ":" not in interface:
        return " ".join(f"{name}={value}" for name, value in counters.items())
    words = {name: value // IB_WORD_BYTES for name, value in counters.items() if "bytes" in name}
    return " ".join(
        f"{_PORT_NAMES.get(name, name)}={words.get(name, value)}"
        for name, value in counters.items()
    )
