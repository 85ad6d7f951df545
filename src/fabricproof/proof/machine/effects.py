"""What a fault does to a machine of the model: to a leg's start, to files, to what is declared.

Strengths mean what the library says of each fault.  A fault is at one node and rail unless it is
of the site: then it is everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabricproof.physics import find_link
from fabricproof.proof.machine.model import (
    IPOIB,
    LOOPBACK,
    MANAGEMENT,
    ModelFabric,
    ModelMachine,
)
from fabricproof.proof.machine.scene import LOSS_COST, Scene


@dataclass(frozen=True, kw_only=True)
class Injection:
    """A fault as drawn: how strong, and where.

    Attributes:
        strength: in the fault's own unit.
        node: at fault.
        peer: that it is measured with.
        rail: at fault.
    """

    strength: float
    node: str
    peer: str
    rail: str
    machine: ModelMachine

    @property
    def other_rail(self) -> str:
        """The rail that is not at fault."""
        return next(each for each in self.machine.fabric.rails if each != self.rail)

    def is_here(self, scene: Scene) -> bool:
        """Tell whether node and rail at fault take part."""
        return self.has_node(scene) and self.rail in scene.leg.rails

    def has_node(self, scene: Scene) -> bool:
        """Tell whether the node at fault takes part."""
        return self.node in scene.nodes


def port_rate(scene: Scene, drawn: Injection) -> None:
    """Both directions of a rail carry a part less."""
    scene.out[drawn.node, drawn.rail] = scene.into[drawn.node, drawn.rail] = 1 - drawn.strength


def port_out(scene: Scene, drawn: Injection) -> None:
    """A rail sends a part less."""
    scene.out[drawn.node, drawn.rail] = 1 - drawn.strength


def port_in(scene: Scene, drawn: Injection) -> None:
    """A rail receives a part less."""
    scene.into[drawn.node, drawn.rail] = 1 - drawn.strength


def node_rate(scene: Scene, drawn: Injection) -> None:
    """All rails of a node carry a part less: its memory, or a switch that they share."""
    for rail in scene.leg.rails:
        scene.out[drawn.node, rail] = scene.into[drawn.node, rail] = 1 - drawn.strength


def under_load(scene: Scene, drawn: Injection) -> None:
    """Large messages take longer through a slot that trains down."""
    if drawn.is_here(scene):
        scene.by_size.append(lambda size: 1 / (1 - drawn.strength) if size >= 2**20 else 1.0)


def size_range(scene: Scene, drawn: Injection) -> None:
    """Messages of 2 KiB to 32 KiB take longer."""
    if drawn.has_node(scene):
        scene.by_size.append(
            lambda size: 1 / (1 - drawn.strength) if 2**11 <= size <= 2**15 else 1.0
        )


def start_cost(scene: Scene, drawn: Injection) -> None:
    """Each message costs a slow core more before its bytes count."""
    scene.start[drawn.node] = 1 + drawn.strength


def far_socket(scene: Scene, drawn: Injection) -> None:
    """A rank on the far socket: dearer starts, and a rate that crosses between sockets."""
    start_cost(scene, drawn)
    node_rate(scene, replace(drawn, strength=drawn.strength / 2))


def loss_out(scene: Scene, drawn: Injection) -> None:
    """Of what the node sends over the rail a part is lost."""
    if drawn.is_here(scene):
        scene.lost[drawn.node] = drawn.strength


def loss_in(scene: Scene, drawn: Injection) -> None:
    """Of what is sent to the node over the rail a part is lost."""
    if drawn.is_here(scene):
        scene.lost[next(each for each in scene.nodes if each != drawn.node)] = drawn.strength


def loss_quiet(scene: Scene, drawn: Injection) -> None:
    """A part is lost, and bandwidth does not suffer."""
    loss_out(scene, drawn)
    scene.out[drawn.node, drawn.rail] = 1 + LOSS_COST * drawn.strength


def reordering(scene: Scene, drawn: Injection) -> None:
    """Packets overtake each other: gaps, and RDMA sends again; a part of the rate is lost."""
    if not drawn.is_here(scene):
        return
    port_out(scene, drawn)
    place = drawn.node, drawn.rail
    peer = next(each for each in scene.nodes if each != drawn.node)
    scene.rises[place, "packet_seq_err"] = int(10_000 * drawn.strength)
    scene.rises[(peer, drawn.rail), "out_of_sequence"] = int(10_000 * drawn.strength)


def added_part(scene: Scene, drawn: Injection) -> None:
    """Every message takes a part of the usual more."""
    if drawn.is_here(scene):
        scene.added_us += drawn.strength * scene.machine.fabric.start_us


def added_us(scene: Scene, drawn: Injection) -> None:
    """Every message takes so many us more."""
    if drawn.is_here(scene):
        scene.added_us += drawn.strength


def jitter(scene: Scene, drawn: Injection) -> None:
    """Every message waits a random while, so many us in the mean."""
    if drawn.is_here(scene):
        scene.added_us += scene.machine.chance.uniform(0.5, 1.5) * drawn.strength


def flap(scene: Scene, drawn: Injection) -> None:
    """In a part of all starts the link goes down and comes up again."""
    if drawn.is_here(scene) and scene.machine.chance.random() < drawn.strength:
        name = "link_downed" if scene.machine.fabric.is_verbs else "carrier_changes"
        scene.rises[(drawn.node, drawn.rail), name] = 1
        scene.by_size.append(lambda size: 1.3 if size > 2**16 else 1.0)


def dead_link(scene: Scene, drawn: Injection) -> None:
    """Nothing passes, and the MPI says so."""
    if drawn.is_here(scene):
        scene.status, scene.edit = 1, lambda _: ""
        scene.words = "transport retry counter exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81)\n"


def black_hole(scene: Scene, drawn: Injection) -> None:
    """Frames larger than a switch's MTU vanish: small messages pass, the rest hangs."""
    if drawn.is_here(scene):
        _hang(scene, {0, 1}, rows=10)


def wrong_rail(scene: Scene, drawn: Injection) -> None:
    """The MPI takes the other rail."""
    if scene.leg.rails == (drawn.rail,):
        scene.sent_over = {drawn.other_rail: 1.0}


def one_of_two(scene: Scene, drawn: Injection) -> None:
    """Of two rails one takes a part below its share."""
    if len(scene.leg.rails) == 2:
        scene.sent_over = {drawn.other_rail: drawn.strength, drawn.rail: 1 - drawn.strength}


def crosswise(scene: Scene, drawn: Injection) -> None:
    """What leaves by one rail comes in by the other."""
    if drawn.has_node(scene) and len(scene.leg.rails) == 1:
        (rail,) = scene.leg.rails
        other = next(each for each in scene.machine.fabric.rails if each != rail)
        scene.came_over = {rail: 0.0, other: 1.0}


def sent_aside(scene: Scene, drawn: Injection) -> None:
    """What the node sends leaves by the other rail, and comes in by the right one."""
    if drawn.has_node(scene) and len(scene.leg.rails) == 1:
        (rail,) = scene.leg.rails
        other = next(each for each in scene.machine.fabric.rails if each != rail)
        scene.sent_over, scene.came_over = {other: 1.0}, {other: 0.0, rail: 1.0}


def small_aside(scene: Scene, _: Injection) -> None:
    """Small messages go over management, large ones over the rail."""
    if len(scene.leg.rails) == 1:
        scene.small_over = MANAGEMENT


def management(scene: Scene, drawn: Injection) -> None:
    """All goes over management, at a part of the rate."""
    scene.sent_over = {MANAGEMENT: 1.0}
    for node in scene.nodes:
        node_rate(scene, replace(drawn, node=node))


def tcp_below(scene: Scene, drawn: Injection) -> None:
    """Verbs fell back to TCP over IPoIB: the port counts it all the same."""
    if len(scene.leg.rails) == 1:
        scene.sent_over = {IPOIB: 1.0}
        for node in scene.nodes:
            node_rate(scene, replace(drawn, node=node))


def shared_memory(scene: Scene, drawn: Injection) -> None:
    """Both ranks are on one node."""
    scene.told = (scene.nodes[0],) * 2
    scene.sent_over = {LOOPBACK: 1.0}
    scene.start = dict.fromkeys(scene.nodes, 1 - drawn.strength)


def wrong_node(scene: Scene, _: Injection) -> None:
    """Rank 1 is on a node that it was not sent to."""
    other = next(each for each in scene.machine.nodes if each not in scene.nodes)
    scene.told = (scene.nodes[0], other)


def foreign(scene: Scene, drawn: Injection) -> None:
    """Others send to the node over the rail: a part of its rate, and all of that is missing."""
    if drawn.is_here(scene):
        rate = drawn.strength * scene.machine.fabric.rate_mb_s
        scene.foreign[(drawn.node, drawn.rail), "rx"] = rate


def busy_core(scene: Scene, drawn: Injection) -> None:
    """Others run on the rank's core for a part of the time."""
    if drawn.has_node(scene):
        scene.taken[drawn.node] = drawn.strength


def other_job(scene: Scene, drawn: Injection) -> None:
    """Another job is on the node and takes a part of all its rails have."""
    if drawn.has_node(scene):
        scene.other_job = True
        node_rate(scene, drawn)


def pair_only(scene: Scene, drawn: Injection) -> None:
    """Between two nodes, and nowhere else, a rail carries a part less."""
    if {*scene.nodes} == {drawn.node, drawn.peer}:
        port_rate(scene, drawn)


def library(scene: Scene, _: Injection) -> None:
    """The loader finds another MPI."""
    scene.library = "/usr/lib/libmpich.so.12"


def nothing_moved(scene: Scene, _: Injection) -> None:
    """Numbers are printed, and no byte left the node."""
    scene.sent_over = {"": 1.0}


def protocol_switch(scene: Scene, drawn: Injection) -> None:
    """Messages of 16 KiB take so many times as long, and all others as long as they should."""
    scene.by_size.append(lambda size: drawn.strength if size == 2**14 else 1.0)


def one_look(scene: Scene, drawn: Injection) -> None:
    """At the first start of a leg, in the first job, a rail carries a part less."""
    if (scene.run, scene.attempt) == (1, 1):
        port_rate(scene, drawn)


def one_job(scene: Scene, drawn: Injection) -> None:
    """In the first job a rail carries a part less."""
    if scene.run == 1:
        port_rate(scene, drawn)


def two_looks(scene: Scene, drawn: Injection) -> None:
    """In the first job one size takes longer at the first look, another at the second."""
    if drawn.is_here(scene) and scene.run == 1:
        slow = 2**22 if scene.attempt == 1 else 2**20
        scene.by_size.append(lambda size: drawn.strength if size == slow else 1.0)


def two_jobs(scene: Scene, drawn: Injection) -> None:
    """In the first job one size takes longer at each look, in the second job another."""
    if drawn.is_here(scene) and scene.run in {1, 2}:
        slow = 2**22 if scene.run == 1 else 2**20
        scene.by_size.append(lambda size: drawn.strength if size == slow else 1.0)


def blind_then_stall(scene: Scene, drawn: Injection) -> None:
    """In each job a rank is not counted at the first look, and a rail stalls at the second."""
    if scene.attempt == 1:
        uncounted_rank(scene, drawn)
    elif scene.attempt == 2:
        port_rate(scene, drawn)


def one_wrong_path(scene: Scene, drawn: Injection) -> None:
    """In the first job the MPI takes the other rail."""
    if scene.run == 1:
        wrong_rail(scene, drawn)


def truncated(scene: Scene, drawn: Injection) -> None:
    """The last rows are missing, and the exit status is 0."""
    if drawn.has_node(scene):
        scene.edit = lambda text: "\n".join(text.splitlines()[: -int(drawn.strength)]) + "\n"


def interleaved(scene: Scene, drawn: Injection) -> None:
    """A line of another process stands in the middle of a row."""
    if drawn.has_node(scene):
        scene.edit = _interleave


def _interleave(text: str) -> str:
    lines = text.splitlines()
    at = len(lines) * 2 // 3
    lines[at] = lines[at][:14] + "[n01:4711] pml ucx: progress" + lines[at][14:]
    return "\n".join(lines) + "\n"


def unit(scene: Scene, drawn: Injection) -> None:
    """A rate is printed so many times as large as it is."""
    if scene.leg.program == "osu_bw":
        scene.printed = drawn.strength


def clock_fast(scene: Scene, drawn: Injection) -> None:
    """A clock runs slow, and so every time is short."""
    if drawn.has_node(scene):
        scene.printed = 1 + drawn.strength


def clock_slow(scene: Scene, drawn: Injection) -> None:
    """A clock runs fast, and so every time is long."""
    if drawn.has_node(scene):
        scene.printed = 1 - drawn.strength


def hung_rank(scene: Scene, drawn: Injection) -> None:
    """A rank never ends: the limit of the leg does."""
    if drawn.has_node(scene):
        _hang(scene, {scene.nodes.index(drawn.node)}, rows=15)


def dead_node(scene: Scene, drawn: Injection) -> None:
    """A node dies while the leg runs."""
    if drawn.has_node(scene):
        _hang(scene, {scene.nodes.index(drawn.node)}, rows=12)
        scene.status, scene.words = 137, "srun: error: Node failure on n01\n"


def job_killed(scene: Scene, drawn: Injection) -> None:
    """The job is killed: no rank comes back, and the leg never ends."""
    if drawn.has_node(scene):
        _hang(scene, {0, 1}, rows=12)
        scene.status = None


def counters_reset(scene: Scene, drawn: Injection) -> None:
    """The rail's counters stand lower after a leg than before it."""
    if drawn.is_here(scene):
        place = drawn.node, drawn.rail
        scene.rises[place, "tx_bytes"] = -scene.machine.counters[place]["tx_bytes"] // 2


def as_many_beside(scene: Scene, drawn: Injection) -> None:
    """Management carries at a part of the rail's rate what is none of the leg's."""
    for node in scene.nodes:
        rate = drawn.strength * scene.machine.fabric.rate_mb_s
        scene.foreign[(node, MANAGEMENT), "tx"] = rate


def hidden_failure(scene: Scene, drawn: Injection) -> None:
    """A rank ends with 1, the launcher with 0."""
    if drawn.has_node(scene):
        mine = scene.nodes.index(drawn.node)
        scene.edit_ranks = lambda rank, text: (
            text.replace("status 0", "status 1") if rank == mine else text
        )


def uncounted_rank(scene: Scene, drawn: Injection) -> None:
    """A rank's file ends before its second reading, and all else is whole."""
    if drawn.has_node(scene):
        mine = scene.nodes.index(drawn.node)
        scene.edit_ranks = lambda rank, text: text.split("after ")[0] if rank == mine else text


def contradiction(scene: Scene, drawn: Injection) -> None:
    """In one row of IMB's table the rate is not what size and time make of it."""
    if scene.leg.program == "PingPong":
        scene.edit = lambda text: _contradict(text, drawn.strength)


def _contradict(text: str, factor: float) -> str:
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == ["65536"])
    size, count, time, rate = lines[at].split()
    lines[at] = f"{size:>13}{count:>13}{time:>13}{float(rate) * factor:13.2f}"
    return "\n".join(lines) + "\n"


def losses_uncounted(scene: Scene, drawn: Injection) -> None:
    """No rank can read what TCP counts."""
    if drawn.has_node(scene):
        scene.edit_ranks = lambda _, text: "".join(
            line for line in text.splitlines(keepends=True) if "node/tcp" not in line
        )


def full_disk(scene: Scene, drawn: Injection) -> None:
    """A rank's file is cut where the disk was full, the output is whole."""
    if drawn.has_node(scene):
        scene.edit_ranks = lambda rank, text: text[: len(text) * 2 // 3] if rank else text


def _hang(scene: Scene, ranks: set[int], rows: int) -> None:
    scene.status = 124
    scene.edit = lambda text: "\n".join(text.splitlines()[:rows]) + "\n"
    scene.edit_ranks = lambda rank, text: text.split("after ")[0] if rank in ranks else text


# --- what is done to the files of a run


def controller_away(file: Path, cases: list[dict[str, Any]], _: Injection) -> None:
    """The scheduler answers no more: the checks fail without a record."""
    file.write_text("")
    for case in cases:
        case.update(result="fail", fail_reason="squeue: Unable to contact slurm controller")


def record_damaged(file: Path, _cases: list[dict[str, Any]], _: Injection) -> None:
    """The last line, a leg's verdict, is torn: a crash while it was written."""
    text = file.read_text()
    file.write_text(text[: text.rindex("\n", 0, -1) + 200])


def failed_by_reframe(_file: Path, cases: list[dict[str, Any]], _: Injection) -> None:
    """ReFrame fails every check, whatever the records say."""
    for case in cases:
        case.update(result="fail", fail_reason="a hook of the site raised")


def check_vanished(file: Path, cases: list[dict[str, Any]], _: Injection) -> None:
    """A check that was due was never loaded, and left nothing."""
    gone = str(cases.pop()["jobid"])
    lines = [line for line in file.read_text().splitlines() if f'"{gone}"' not in line]
    file.write_text("\n".join(lines) + "\n")


# --- what the site declares


def declared_link(fabric: ModelFabric, strength: float) -> ModelFabric:
    """The site declares a link of so many times the rate."""
    names = {
        ("HDR 4x", 0.5): "HDR100",
        ("HDR 4x", 2.0): "NDR 4x",
        ("25GbE", 0.4): "10GbE",
        ("25GbE", 2.0): "50GbE",
    }
    key = fabric.facts.link.name, strength
    return replace(fabric, facts=replace(fabric.facts, link=find_link(names[key])))


def reference(fabric: ModelFabric, strength: float) -> ModelFabric:
    """The site's reference of latency is so many times what it should be."""
    return replace(fabric, reference_factor=strength)


#: by the names that the library has for them
SCENES: dict[str, Callable[[Scene, Injection], None]] = {
    each.__name__: each
    for each in (
        port_rate, port_out, port_in, node_rate, under_load, size_range, start_cost, far_socket,
        loss_out, loss_in, loss_quiet, reordering, added_part, added_us, jitter, flap, dead_link,
        black_hole, wrong_rail, one_of_two, crosswise, sent_aside, small_aside, management,
        tcp_below,
        shared_memory, wrong_node, foreign, busy_core, other_job, pair_only, library,
        nothing_moved, protocol_switch, one_look, one_job, two_looks, two_jobs, blind_then_stall,
        one_wrong_path, truncated,
        interleaved, unit, clock_fast, clock_slow, hung_rank, dead_node, job_killed, full_disk,
        counters_reset, as_many_beside, hidden_failure, uncounted_rank, contradiction,
        losses_uncounted,
    )
}  # fmt: skip
FILES: dict[str, Callable[[Path, list[dict[str, Any]], Injection], None]] = {
    each.__name__: each
    for each in (
        controller_away,
        record_damaged,
        failed_by_reframe,
        check_vanished,
    )
}
DECLARED: dict[str, Callable[[ModelFabric, float], ModelFabric]] = {
    each.__name__: each for each in (declared_link, reference)
}
