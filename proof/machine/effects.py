"""What a fault does to a machine of the model: to a leg's start, to files, to what is declared.

Three tables, by the names that ``faults.toml`` has.  Strengths mean what the library says of each
fault.  A fault is at one node and rail unless it is of the site: then it is everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabricproof.physics import find_link
from proof.machine.model import (
    IPOIB,
    LOOPBACK,
    MANAGEMENT,
    ModelFabric,
    ModelMachine,
)
from proof.machine.scene import LOSS_COST, Scene


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


SceneEffect = Callable[[Scene, Injection], None]
FileEffect = Callable[[Path, list[dict[str, Any]], Injection], None]
Where = Callable[[Scene, Injection], bool]


# --- where an effect takes place


def _everywhere(_scene: Scene, _drawn: Injection) -> bool:
    return True


def _at_node(scene: Scene, drawn: Injection) -> bool:
    return drawn.node in scene.nodes


def _here(scene: Scene, drawn: Injection) -> bool:
    """Tell whether node and rail at fault take part."""
    return drawn.node in scene.nodes and drawn.rail in scene.leg.rails


def _one_rail(scene: Scene, _drawn: Injection) -> bool:
    return len(scene.leg.rails) == 1


def _program(name: str) -> Where:
    return lambda scene, _: scene.leg.program == name


def _first_job(scene: Scene, _drawn: Injection) -> bool:
    return scene.run == 1


def _only(where: Where, effect: SceneEffect) -> SceneEffect:
    def done(scene: Scene, drawn: Injection) -> None:
        if where(scene, drawn):
            effect(scene, drawn)

    return done


def _sets(where: Where = _everywhere, **fields: Any) -> SceneEffect:
    """Set fields of the scene; a function makes a value of the injection."""

    def done(scene: Scene, drawn: Injection) -> None:
        for name, value in fields.items():
            setattr(scene, name, value(drawn) if callable(value) else value)

    return _only(where, done)


def _edits(where: Where, edit: Callable[[str, Injection], str]) -> SceneEffect:
    """Change what is printed."""

    def done(scene: Scene, drawn: Injection) -> None:
        scene.edit = lambda text: edit(text, drawn)

    return _only(where, done)


# --- rates and times


def _rate(*ways: str, rails: str = "its own") -> SceneEffect:
    """What a rail of the node, or all of them, sends (``out``) or receives (``into``) is less."""

    def done(scene: Scene, drawn: Injection) -> None:
        for way in ways:
            for rail in (drawn.rail,) if rails == "its own" else scene.leg.rails:
                getattr(scene, way)[drawn.node, rail] = 1 - drawn.strength

    return done


def _longer(
    where: Where, is_slow: Callable[[int], bool], times: Callable[[float], float] = float
) -> SceneEffect:
    """Messages of some sizes take so many times as long."""

    def done(scene: Scene, drawn: Injection) -> None:
        scene.by_size.append(lambda size: times(drawn.strength) if is_slow(size) else 1.0)

    return _only(where, done)


def _at_rate(rate: float) -> float:
    """Return how many times as long what is carried at a part less takes."""
    return 1 / (1 - rate)


port_rate, node_rate = _rate("out", "into"), _rate("out", "into", rails="all")


def start_cost(scene: Scene, drawn: Injection) -> None:
    """Each message costs a slow core more before its bytes count."""
    scene.start[drawn.node] = 1 + drawn.strength


def far_socket(scene: Scene, drawn: Injection) -> None:
    """A rank on the far socket: dearer starts, and a rate that crosses between sockets."""
    start_cost(scene, drawn)
    node_rate(scene, replace(drawn, strength=drawn.strength / 2))


def _added(us: Callable[[Scene], float]) -> SceneEffect:
    def done(scene: Scene, drawn: Injection) -> None:
        scene.added_us += drawn.strength * us(scene)

    return _only(_here, done)


def _lost(at: str) -> SceneEffect:
    """Of what the node sends over the rail, or is sent to it, a part is lost."""

    def done(scene: Scene, drawn: Injection) -> None:
        peer = next(each for each in scene.nodes if each != drawn.node)
        scene.lost[drawn.node if at == "node" else peer] = drawn.strength

    return _only(_here, done)


def loss_quiet(scene: Scene, drawn: Injection) -> None:
    """A part is lost, and bandwidth does not suffer."""
    _lost("node")(scene, drawn)
    scene.out[drawn.node, drawn.rail] = 1 + LOSS_COST * drawn.strength


def reordering(scene: Scene, drawn: Injection) -> None:
    """Packets overtake each other: gaps, and RDMA sends again; a part of the rate is lost."""
    _rate("out")(scene, drawn)
    peer = next(each for each in scene.nodes if each != drawn.node)
    scene.rises[(drawn.node, drawn.rail), "packet_seq_err"] = int(10_000 * drawn.strength)
    scene.rises[(peer, drawn.rail), "out_of_sequence"] = int(10_000 * drawn.strength)


def flap(scene: Scene, drawn: Injection) -> None:
    """In a part of all starts the link goes down and comes up again."""
    if scene.machine.chance.random() < drawn.strength:
        name = "link_downed" if scene.machine.fabric.is_verbs else "carrier_changes"
        scene.rises[(drawn.node, drawn.rail), name] = 1
        scene.by_size.append(lambda size: 1.3 if size > 2**16 else 1.0)


def _slow_at(first: int, second: int, *, looks: bool) -> SceneEffect:
    """One size takes longer at the first look (or job), another at the second."""

    def done(scene: Scene, drawn: Injection) -> None:
        slow = first if (scene.attempt if looks else scene.run) == 1 else second
        if scene.run == 1 or (scene.run == 2 and not looks):
            scene.by_size.append(lambda size: drawn.strength if size == slow else 1.0)

    return _only(_here, done)


# --- paths


def _around(*, sent: bool) -> SceneEffect:
    """What leaves by one rail comes in by the other, or the reverse."""

    def done(scene: Scene, _: Injection) -> None:
        (rail,) = scene.leg.rails
        other = next(each for each in scene.machine.fabric.rails if each != rail)
        if sent:
            scene.sent_over, scene.came_over = {other: 1.0}, {other: 0.0, rail: 1.0}
        else:
            scene.came_over = {rail: 0.0, other: 1.0}

    return _only(lambda scene, drawn: _at_node(scene, drawn) and _one_rail(scene, drawn), done)


def _all_over(name: str) -> SceneEffect:
    """All goes over another interface, at a part of the rate."""

    def done(scene: Scene, drawn: Injection) -> None:
        scene.sent_over = {name: 1.0}
        for node in scene.nodes:
            node_rate(scene, replace(drawn, node=node))

    return done


wrong_rail = _sets(
    lambda scene, drawn: scene.leg.rails == (drawn.rail,),
    sent_over=lambda drawn: {drawn.other_rail: 1.0},
)


def shared_memory(scene: Scene, drawn: Injection) -> None:
    """Both ranks are on one node."""
    scene.told = (scene.nodes[0],) * 2
    scene.sent_over = {LOOPBACK: 1.0}
    scene.start = dict.fromkeys(scene.nodes, 1 - drawn.strength)


def wrong_node(scene: Scene, _: Injection) -> None:
    """Rank 1 is on a node that it was not sent to."""
    other = next(each for each in scene.machine.nodes if each not in scene.nodes)
    scene.told = (scene.nodes[0], other)


# --- others on the node


def foreign(scene: Scene, drawn: Injection) -> None:
    """Others send to the node over the rail: a part of its rate, and all of that is missing."""
    rate = drawn.strength * scene.machine.fabric.rate_mb_s
    scene.foreign[(drawn.node, drawn.rail), "rx"] = rate


def as_many_beside(scene: Scene, drawn: Injection) -> None:
    """Management carries at a part of the rail's rate what is none of the leg's."""
    for node in scene.nodes:
        rate = drawn.strength * scene.machine.fabric.rate_mb_s
        scene.foreign[(node, MANAGEMENT), "tx"] = rate


def busy_core(scene: Scene, drawn: Injection) -> None:
    """Others run on the rank's core for a part of the time."""
    scene.taken[drawn.node] = drawn.strength


def other_job(scene: Scene, drawn: Injection) -> None:
    """Another job is on the node and takes a part of all its rails have."""
    scene.other_job = True
    node_rate(scene, drawn)


# --- what ranks and programs leave


def _interleave(text: str, _: Injection) -> str:
    """Put a line of another process into the middle of a row."""
    lines = text.splitlines()
    at = len(lines) * 2 // 3
    lines[at] = lines[at][:14] + "[n01:4711] pml ucx: progress" + lines[at][14:]
    return "\n".join(lines) + "\n"


def _contradict(text: str, drawn: Injection) -> str:
    """Print in one row of IMB's table a rate that size and time do not make."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == ["65536"])
    size, count, time, rate = lines[at].split()
    lines[at] = f"{size:>13}{count:>13}{time:>13}{float(rate) * drawn.strength:13.2f}"
    return "\n".join(lines) + "\n"


def _ranks(
    edit: Callable[[str], str], mine: Callable[[Scene, Injection], set[int]] | None = None
) -> SceneEffect:
    """Change what the rank of the node at fault writes, or some ranks."""

    def done(scene: Scene, drawn: Injection) -> None:
        ranks = mine(scene, drawn) if mine else {scene.nodes.index(drawn.node)}
        scene.edit_ranks = lambda rank, text: edit(text) if rank in ranks else text

    return _only(_at_node, done)


def _both(_scene: Scene, _drawn: Injection) -> set[int]:
    return {0, 1}


def _until_after(text: str) -> str:
    """Cut what a rank wrote before its second reading."""
    return text.split("after ", maxsplit=1)[0]


def _without_tcp(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "node/tcp" not in line)


uncounted_rank = _ranks(_until_after)


def _hangs(
    rows: int, *, status: int | None = 124, words: str = "", both: bool = False, where: Where
) -> SceneEffect:
    """A rank, or both, never ends: the output stops after so many lines."""

    def done(scene: Scene, drawn: Injection) -> None:
        _ranks(_until_after, _both if both else None)(scene, drawn)
        scene.edit = lambda text: "\n".join(text.splitlines()[:rows]) + "\n"
        scene.status, scene.words = status, words

    return _only(where, done)


def blind_then_stall(scene: Scene, drawn: Injection) -> None:
    """In each job a rank is not counted at the first look, and a rail stalls at the second."""
    if scene.attempt == 1:
        uncounted_rank(scene, drawn)
    elif scene.attempt == 2:
        port_rate(scene, drawn)


def counters_reset(scene: Scene, drawn: Injection) -> None:
    """The rail's counters stand lower after a leg than before it."""
    place = drawn.node, drawn.rail
    scene.rises[place, "tx_bytes"] = -scene.machine.counters[place]["tx_bytes"] // 2


SCENES: dict[str, SceneEffect] = {
    # rates and times
    "port_rate": port_rate,
    "port_out": _rate("out"),
    "port_in": _rate("into"),
    "node_rate": node_rate,
    "pair_only": _only(lambda scene, d: {*scene.nodes} == {d.node, d.peer}, port_rate),
    "under_load": _longer(_here, lambda size: size >= 2**20, _at_rate),
    "size_range": _longer(_at_node, lambda size: 2**11 <= size <= 2**15, _at_rate),
    "protocol_switch": _longer(_everywhere, lambda size: size == 2**14),
    "start_cost": start_cost,
    "far_socket": far_socket,
    "added_part": _added(lambda scene: scene.machine.fabric.start_us),
    "added_us": _added(lambda _: 1.0),
    "jitter": _added(lambda scene: scene.machine.chance.uniform(0.5, 1.5)),
    "loss_out": _lost("node"),
    "loss_in": _lost("peer"),
    "loss_quiet": _only(_here, loss_quiet),
    "reordering": _only(_here, reordering),
    "flap": _only(_here, flap),
    # looks and jobs
    "one_look": _only(lambda scene, _: (scene.run, scene.attempt) == (1, 1), port_rate),
    "one_job": _only(_first_job, port_rate),
    "two_looks": _slow_at(2**22, 2**20, looks=True),
    "two_jobs": _slow_at(2**22, 2**20, looks=False),
    "blind_then_stall": blind_then_stall,
    "one_wrong_path": _only(_first_job, wrong_rail),
    # paths
    "wrong_rail": wrong_rail,
    "one_of_two": _sets(
        lambda scene, _: len(scene.leg.rails) == 2,
        sent_over=lambda d: {d.other_rail: d.strength, d.rail: 1 - d.strength},
    ),
    "crosswise": _around(sent=False),
    "sent_aside": _around(sent=True),
    "small_aside": _sets(_one_rail, small_over=MANAGEMENT),
    "management": _all_over(MANAGEMENT),
    "tcp_below": _only(_one_rail, _all_over(IPOIB)),
    "shared_memory": shared_memory,
    "wrong_node": wrong_node,
    "nothing_moved": _sets(sent_over=lambda _: {"": 1.0}),
    # others on the node
    "foreign": _only(_here, foreign),
    "as_many_beside": as_many_beside,
    "busy_core": _only(_at_node, busy_core),
    "other_job": _only(_at_node, other_job),
    # what is printed and left
    "library": _sets(library="/usr/lib/libmpich.so.12"),
    "truncated": _edits(
        _at_node, lambda text, d: "\n".join(text.splitlines()[: -int(d.strength)]) + "\n"
    ),
    "interleaved": _edits(_at_node, _interleave),
    "contradiction": _edits(_program("PingPong"), _contradict),
    "unit": _sets(_program("osu_bw"), printed=lambda d: d.strength),
    "clock_fast": _sets(_at_node, printed=lambda d: 1 + d.strength),
    "clock_slow": _sets(_at_node, printed=lambda d: 1 - d.strength),
    "dead_link": _sets(
        _here,
        status=1,
        edit=lambda _: lambda _text: "",
        words="transport retry counter exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81)\n",
    ),
    "black_hole": _hangs(10, both=True, where=_here),
    "hung_rank": _hangs(15, where=_at_node),
    "dead_node": _hangs(12, status=137, words="srun: error: Node failure on n01\n", where=_at_node),
    "job_killed": _hangs(12, status=None, both=True, where=_at_node),
    "full_disk": _ranks(lambda text: text[: len(text) * 2 // 3], lambda *_: {1}),
    "hidden_failure": _ranks(lambda text: text.replace("status 0", "status 1")),
    "uncounted_rank": uncounted_rank,
    "losses_uncounted": _ranks(_without_tcp, _both),
    "counters_reset": _only(_here, counters_reset),
}


# --- what is done to the files of a run


def _all_cases(result: str, reason: str | None) -> FileEffect:
    def done(_file: Path, cases: list[dict[str, Any]], _drawn: Injection) -> None:
        for case in cases:
            case.update(result=result, fail_reason=reason)

    return done


def controller_away(file: Path, cases: list[dict[str, Any]], drawn: Injection) -> None:
    """The scheduler answers no more: the checks fail without a record."""
    file.write_text("")
    _all_cases("fail", "squeue: Unable to contact slurm controller")(file, cases, drawn)


def record_damaged(file: Path, _cases: list[dict[str, Any]], _: Injection) -> None:
    """The last line, a leg's verdict, is torn: a crash while it was written."""
    text = file.read_text()
    file.write_text(text[: text.rindex("\n", 0, -1) + 200])


def check_vanished(file: Path, cases: list[dict[str, Any]], _: Injection) -> None:
    """A check that was due was never loaded, and left nothing."""
    gone = str(cases.pop()["jobid"])
    lines = [line for line in file.read_text().splitlines() if f'"{gone}"' not in line]
    file.write_text("\n".join(lines) + "\n")


FILES: dict[str, FileEffect] = {
    "controller_away": controller_away,
    "record_damaged": record_damaged,
    "failed_by_reframe": _all_cases("fail", "a hook of the site raised"),
    "check_vanished": check_vanished,
}


# --- what the site declares

#: (link of the machine, times its rate) -> link that is declared instead
_LINKS = {
    ("HDR 4x", 0.5): "HDR100",
    ("HDR 4x", 2.0): "NDR 4x",
    ("25GbE", 0.4): "10GbE",
    ("25GbE", 2.0): "50GbE",
}


def declared_link(fabric: ModelFabric, strength: float) -> ModelFabric:
    """The site declares a link of so many times the rate."""
    link = find_link(_LINKS[fabric.facts.link.name, strength])
    return replace(fabric, facts=replace(fabric.facts, link=link))


DECLARED: dict[str, Callable[[ModelFabric, float], ModelFabric]] = {
    "declared_link": declared_link,
    # the site's reference of latency is so many times what it should be
    "reference": lambda fabric, strength: replace(fabric, reference_factor=strength),
}
