"""The kernel's program, and its schedule: nodes, steps and rounds as a plain file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.core.provenance import SHOWN_DIGITS
from fabricproof.job.commands import LARGE_MESSAGE_BYTES, plan_ping_pong, plan_windowed

KERNEL = Path(__file__).parent / "kernel.c"
#: builds the first where it runs, by the stack's own compiler; without one it leaves none
BUILD_SCRIPT = Path(__file__).parent / "build.sh"
BUILD = "bash build.sh >build.log 2>&1"

#: of the schedule and of the record
FORMAT = 1

#: the kernel's own limits (kernel.c: NAME, STEPS, MOST_WINDOW)
_MOST_STEPS, _MOST_WINDOW = 32, 1024
_NODE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,38}", re.ASCII)

#: Where nodes share cores a waiting rank sleeps this long at a time: ranks that spin would take
#: the core from those that measure.
NAP_US = 100

#: size of the ping-pong's message, in bytes: the smallest of osu_latency
LATENCY_BYTES = 1

#: A round that takes this many times what it should is ended, and the pair that hangs is named.
_PATIENCE, _LEAST_PATIENCE_SECONDS = 30, 60

#: what the kernel was built against (build.sh) -> in words
_BUILT_AGAINST = {
    "abi": "the standard MPI ABI",
    "own": "the stack's own MPI",
    "broken": "the stack's own MPI, as its standard ABI did not work (build.log)",
}


@dataclass(frozen=True, kw_only=True)
class Binary:
    """Which kernel ran with which MPI.

    Attributes:
        mpi: what MPI_Get_library_version says, with semicolons between its lines.
        build: ``abi``, ``own`` or ``broken`` (build.sh); empty if unknown.
        sha256: of the kernel's file, hexadecimal; empty if unknown.
        libraries: files of the MPI that the ranks had loaded.
    """

    mpi: str
    build: str = ""
    sha256: str = ""
    libraries: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """For a person; empty if the build is unknown."""
        if self.build not in _BUILT_AGAINST:
            return ""
        return (
            f"kernel {self.sha256[:SHOWN_DIGITS]} (SHA-256), built against "
            f"{_BUILT_AGAINST[self.build]}, ran with {name_of_mpi(self.mpi)} "
            f"({', '.join(self.libraries) or 'path unknown'})"
        )


def name_of_mpi(said: str) -> str:
    """Return name and version of what ``MPI_Get_library_version`` says: ``Open MPI v5.0.11``."""
    return " ".join(re.split(r"[;,]|MPICH Release", said)[0].split())[:80]


class Mode(StrEnum):
    """What two ranks do."""

    PINGPONG = "pingpong"
    """One message there and back; half of the time counts (osu_latency)."""
    UNI = "uni"
    """A window one way, then an answer (osu_bw); first one way, then the other."""
    BI = "bi"
    """A window both ways at once (osu_bibw)."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One measurement of every pair of a round.

    Attributes:
        repetitions: at most.
        seconds: budget of the measured repetitions, one way.
    """

    mode: Mode
    size: int
    window: int
    repetitions: int
    warmups: int
    seconds: float


def plan_steps(
    *, max_size: int, rate_mb_s: float, latency_us: float, seconds: float, both_ways: bool = False
) -> tuple[Step, ...]:
    """Return latency of a small message and bandwidth of a large one, by the rules of all legs.

    ``rate_mb_s``: what a pair is expected to carry, MB/s.
    ``latency_us``: expected time of a small message, us.
    ``seconds``: budget of each measurement of a pair, one way.
    """
    facts = {"rate_mb_s": rate_mb_s, "latency_us": latency_us, "seconds": seconds}
    small = plan_ping_pong(max_size=LATENCY_BYTES, sizes=(LATENCY_BYTES,), **facts)
    large = plan_windowed(max_size=max_size, sizes=(max_size,), **facts)
    is_large = max_size > LARGE_MESSAGE_BYTES
    latency = Step(
        mode=Mode.PINGPONG,
        size=LATENCY_BYTES,
        window=1,
        repetitions=small.iterations,
        warmups=min(small.warmups, 100),
        seconds=seconds / 2,
    )
    windowed = (
        Step(
            mode=mode,
            size=max_size,
            window=large.window_size if is_large else large.small_window_size,
            repetitions=large.large_iterations if is_large else large.iterations,
            warmups=large.large_warmups if is_large else large.warmups,
            seconds=seconds,
        )
        for mode in ((Mode.UNI, Mode.BI) if both_ways else (Mode.UNI,))
    )
    return (latency, *windowed)


def round_seconds(steps: Iterable[Step]) -> float:
    """Return what a round should take, in seconds: budgets, both ways, with their warm-up."""
    return sum(2 * (2 if step.mode is Mode.UNI else 1) * step.seconds for step in steps)


@dataclass(frozen=True, kw_only=True)
class KernelPlan:
    """All that one launch of the kernel does.

    Attributes:
        nodes: names, one rank on each.
        steps: of every round.
        rounds: number of each round, and its pairs as numbers of nodes; nobody twice in a round.
        share_cores: whether nodes share cores, so that a waiting rank has to sleep.
    """

    nodes: tuple[str, ...]
    steps: tuple[Step, ...]
    rounds: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    share_cores: bool = False

    @property
    def seconds_per_round(self) -> float:
        """What a round should take, in seconds."""
        return round_seconds(self.steps)

    @property
    def limit_seconds(self) -> int:
        """When a round is ended, in seconds."""
        return _LEAST_PATIENCE_SECONDS + int(_PATIENCE * self.seconds_per_round)


def render_schedule(plan: KernelPlan) -> str:
    """Return the file that the kernel reads.

    Raises:
        ConfigError: a name, a window or a pair that the kernel would refuse.
    """
    for name in plan.nodes:
        if not _NODE_NAME.fullmatch(name):
            raise ConfigError(
                "a node of this name cannot be told to the kernel",
                expected="letters, digits, dots and hyphens, 39 at most",
                got=repr(name),
            )
    if len(plan.steps) > _MOST_STEPS or any(each.window > _MOST_WINDOW for each in plan.steps):
        raise ConfigError("too many steps, or too large a window")
    lines = [
        f"fabricproof-pairs {FORMAT}",
        f"nap_us {NAP_US if plan.share_cores else 0}",
        f"round_seconds {plan.limit_seconds}",
        *(f"node {name}" for name in plan.nodes),
        *(
            f"step {each.mode} {each.size} {each.window} {each.repetitions} {each.warmups} "
            f"{each.seconds:.6f}"
            for each in plan.steps
        ),
        "rounds",
    ]
    for number, pairs in plan.rounds:
        named = [node for pair in pairs for node in pair]
        if len(set(named)) != len(named) or not all(0 <= at < len(plan.nodes) for at in named):
            raise ConfigError(
                f"round {number} is no round", expected="each node once at most", got=str(named)
            )
        lines.append(" ".join([f"round {number}", *map(str, named)]))
    return "\n".join([*lines, "end", ""])


def as_pairs(rounds: Iterable[Sequence[Sequence[int]]]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return rounds (arrays of shape (pairs, 2)) as plain numbers."""
    return tuple(tuple((int(one), int(other)) for one, other in pairs) for pairs in rounds)
