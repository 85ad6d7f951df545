"""What is due, as the checks themselves plan it, and how long its legs measure.

One case is one check on one stack and fabric.  The repetitions stand in the commands that were
planned; what one of them takes follows from the fabric as :mod:`fabricproof.job.commands`
assumed it.  Starting the programs is not in it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.benchmarks.catalogue import collective_of, program_of
from fabricproof.benchmarks.program import Collective
from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.job.collective_commands import HPCC_SUITE as HPCC
from fabricproof.job.collective_commands import hpcc_seconds
from fabricproof.job.commands import PEER_SUITES, peer_seconds
from fabricproof.job.leg import PLAN_FILE, Leg, read_plan
from fabricproof.job.rounds import LEAST
from fabricproof.job.run import (
    Workplace,
    new_run_id,
    read_report,
    run_reframe,
    session_environment,
    unloadable,
)
from fabricproof.physics import bound, latency_floor_us
from fabricproof.physics.collective import Channel, RankLayout, best_model
from fabricproof.site import Site
from fabricproof.site.roll import with_whole_stacks

#: A non-blocking program runs the operation by itself, then the same again beside a computation of
#: the same length (OSU: osu_iallreduce.c; IMB: IMB_iallreduce.c measures the three in turn).
NON_BLOCKING_RUNS = 3.0

#: IMB spends this on each message size beside its repetitions, in seconds; a non-blocking benchmark
#: also finds out how long its computation must be (48 legs of 15 sizes on the virtual cluster)
IMB_SIZE_SECONDS, IMB_NON_BLOCKING_SIZE_SECONDS = 0.13, 0.5


def operations_us(
    known: Collective, counts: Iterable[tuple[int, int]], layout: RankLayout, channel: Channel
) -> float:
    """Return what the operations of a run take together, in us.

    ``counts``: message sizes in bytes, and how often each is sent.
    """
    runs = NON_BLOCKING_RUNS if known.non_blocking else 1.0
    return runs * sum(
        count * best_model(known.operation, size, layout, channel)[1] for size, count in counts
    )


#: What a small message is thought to take where the site does not say, as a multiple of the
#: physical floor.  The legs are sized by 20 times it (``rfm.legs.leg``), on the safe side for a
#: time limit; four MPIs on the virtual cluster took 12 to 15.
LATENCY_GUESS_FACTOR = 12

#: the memory of one machine in MB/s and its latency in us, where there is no fabric
MEMORY_MB_S, MEMORY_US = 3000.0, 10.0

#: IMB runs the whole benchmark once unseen before it measures (IMB_init_buffers_iter,
#: src_c/IMB_mem_manager.c); interface counters say 2.2 times the bytes of its tables, the clock
#: 2.4 times.  IMB-P2P has warm-ups of its own instead, a fifth more by the same counters.
IMB_RUNS, IMB_P2P_RUNS = 2.4, 1.2

#: the least message of a reduction
FLOAT_BYTES = 4

#: IMB's ``-iter N,MB`` counts 2**20 bytes a MB (IMB user guide, "-iter")
_IMB_MB = 2**20

_PORT_SEGMENT = re.compile(r"(?P<sizes>\d+(?:,\d+)*):(?P<i>\d+):(?P<x>\d+):(?P<w>\d+)")


@dataclass(frozen=True, kw_only=True)
class MessageRounds:
    """How often one message size is sent: ``rounds`` times a window of ``window`` messages."""

    size: int
    rounds: int
    window: int = 1


def planned_rounds(leg: Leg) -> list[MessageRounds]:
    """Return what the leg's commands say; empty where they are of a kind that is not known."""
    read = _imb if leg.suite == "imb" else _ports if leg.suite == "osu-mpi4py" else _osu
    return [each for argv in leg.commands for each in read(argv)]


def _powers(first: int, last: int) -> Iterator[int]:
    size = first
    while size <= last:
        yield size
        size = size * 2 or 1


def _option(argv: Sequence[str], name: str) -> tuple[int, ...]:
    """Return the whole numbers after option ``name``; none where it is absent or no number."""
    at = argv.index(name) + 1 if name in argv else len(argv)
    value = argv[at] if at < len(argv) else ""
    parts = re.split("[:,]", value)
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def _osu(argv: Sequence[str]) -> Iterator[MessageRounds]:
    sizes, measured = _option(argv, "-m"), _option(argv, "-i")
    if not measured or ("-m" in argv and not sizes):
        return
    # A reduction is told its largest message alone, a barrier none.
    sizes = (FLOAT_BYTES, *sizes) if len(sizes) == 1 else sizes or (0, 0)
    warmups, window = _option(argv, "-x") or (0,), _option(argv, "-W") or (1,)
    for size in _powers(*sizes):
        yield MessageRounds(size=size, rounds=measured[0] + warmups[0], window=window[0])


def _ports(argv: Sequence[str]) -> Iterator[MessageRounds]:
    for word in argv:
        match = _PORT_SEGMENT.fullmatch(word)
        if match is not None:
            rounds = int(match["i"]) + int(match["x"])
            for size in map(int, match["sizes"].split(",")):
                yield MessageRounds(size=size, rounds=rounds, window=int(match["w"]))


def _imb(argv: Sequence[str]) -> Iterator[MessageRounds]:
    powers, repetitions = _option(argv, "-msglog"), _option(argv, "-iter")
    if len(powers) != 2 or len(repetitions) != 2:
        if not powers and repetitions:
            yield MessageRounds(size=0, rounds=repetitions[0])
        return
    for size in _powers(2 ** powers[0], 2 ** powers[1]):
        yield MessageRounds(
            size=size, rounds=max(1, min(repetitions[0], repetitions[1] * _IMB_MB // size))
        )


def assumed_path(leg: Leg) -> tuple[float, float]:
    """Return the rate in MB/s and the latency in us that the leg's effort was made for."""
    fabric = leg.rules().fabric
    if fabric is None:
        return MEMORY_MB_S, MEMORY_US
    guess = LATENCY_GUESS_FACTOR * latency_floor_us(fabric, 0).us
    known = leg.references.get("latency")
    return bound(fabric).low_mb_s, min(guess, known.value) if known else guess


def model_seconds(leg: Leg) -> float:
    """Return how long the leg measures, in seconds, 0 where its commands say nothing."""
    if leg.planned_seconds:
        return leg.planned_seconds
    if leg.suite in PEER_SUITES:
        return sum(map(peer_seconds, leg.commands))
    if leg.suite == HPCC:
        ranks = RankLayout(num_ranks=leg.num_ranks, ranks_per_node=leg.ranks_per_node)
        return hpcc_seconds(leg.rules().fabric, ranks)
    rate_mb_s, latency_us = assumed_path(leg)
    known = collective_of(leg.suite, leg.program)
    if known is not None:
        return _collective_seconds(leg, known, rate_mb_s, latency_us)
    row = program_of(leg.suite, leg.program)
    crossings = float(row.messages.crossings) if row is not None and row.messages else 1.0
    if leg.suite == "imb":
        crossings *= IMB_P2P_RUNS if "IMB-P2P" in leg.commands[0][0] else IMB_RUNS
    # MB/s are bytes per us.
    return sum(
        each.rounds * (latency_us + each.window * each.size / rate_mb_s) * crossings / 1e6
        for each in planned_rounds(leg)
    )


def _collective_seconds(leg: Leg, known: Collective, rate_mb_s: float, latency_us: float) -> float:
    alpha_us = min(latency_us, leg.stated_alpha_us or latency_us)
    channel = Channel(alpha_us=alpha_us, beta_us_per_byte=1 / rate_mb_s)
    layout = RankLayout(num_ranks=leg.num_ranks, ranks_per_node=leg.ranks_per_node)
    counts = [(each.size, each.rounds) for each in planned_rounds(leg)]
    seconds = operations_us(known, counts, layout, channel) / 1e6
    if leg.suite != "imb":
        return seconds
    each = IMB_NON_BLOCKING_SIZE_SECONDS if known.non_blocking else IMB_SIZE_SECONDS
    return IMB_RUNS * seconds + each * len(counts)


#: what identifies a case from run to run: check, fabric, partition, stack
Key = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class PlannedPath:
    """One leg of a case.

    Attributes:
        name: the path in a word: ``rail0+rail1``.
        sizes: the message sizes that are measured, in bytes.
        starts: how often the launcher is started for it, rounds of a relation included.
        seconds: what the effort model says that all of them measure, without any start.
    """

    name: str
    sizes: tuple[int, ...]
    starts: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Case:
    """One job that ReFrame would submit, or why it would not.

    Attributes:
        check: name of the class.
        fabric: of the site, or ``no-<technology>``.
        suite: the suite that would run.
        tags: all tags of the check.
        nodes: nodes that the job takes.
        net_paths: its legs, in their order.
        skipped: why it would be SKIPPED; empty where it is due.
        lost: why it would be MISSING although it is due; empty where it can run.
    """

    check: str
    fabric: str
    partition: str
    stack: str
    suite: str
    tags: tuple[str, ...]
    nodes: int
    limit_seconds: float
    net_paths: tuple[PlannedPath, ...] = ()
    skipped: str = ""
    lost: str = ""

    @property
    def key(self) -> Key:
        """What this case is called in every run."""
        return self.check, self.fabric, self.partition, self.stack

    @property
    def is_due(self) -> bool:
        """Whether a job would be submitted."""
        return not self.skipped and not self.lost

    @property
    def technology(self) -> str:
        """The tag of the fabric's technology; ``other`` where the check has none."""
        known = ("infiniband", "ethernet", "memory")
        return next((name for name in known if name in self.tags), "other")


def key_of(record: Mapping[str, Any]) -> Key:
    """Return the key of a test case of ReFrame's report."""
    check = str(record["name"]).split(" ", maxsplit=1)[0]
    return (
        check,
        str(record.get("fabric", "")),
        str(record["partition"]),
        str(record["environ"]),
    )


def read_cases(records: Sequence[Mapping[str, Any]], one_node: Collection[str] = ()) -> list[Case]:
    """Return the cases of a dry run's report; builds and other fixtures are none.

    Raises:
        ParseError: a plan that a check left is damaged.
    """
    ours = [record for record in records if "fabric" in record and not record["fixture"]]
    return [_case(record, one_node) for record in ours]


def _case(record: Mapping[str, Any], one_node: Collection[str]) -> Case:
    check, fabric, partition, stack = key_of(record)
    folder = Path(record["stagedir"] or "")
    is_whole = record["result"] == "pass" and (folder / PLAN_FILE).is_file()
    tasks, per_node = int(record["num_tasks"] or 1), int(record["num_tasks_per_node"] or 1)
    return Case(
        check=check,
        fabric=fabric,
        partition=partition,
        stack=stack,
        suite=str(record["suite"]),
        tags=tuple(sorted(record["tags"])),
        nodes=1 if partition in one_node else -(-tasks // per_node),
        limit_seconds=float(record["time_limit"] or 0),
        net_paths=_net_paths(folder) if is_whole else (),
        skipped=_skipped(record),
        lost="" if is_whole or record["result"] == "skip" else _lost(record),
    )


def _skipped(record: Mapping[str, Any]) -> str:
    if record["result"] != "skip":
        return ""
    return str(record.get("skip_reason") or record.get("fail_reason") or "the check says no more")


def _lost(record: Mapping[str, Any]) -> str:
    # After its first line ReFrame shows where in the source the error was raised.
    words, _, _ = str(record.get("fail_reason") or "").strip().partition("\n")
    return words.rstrip(": ") or "its legs were not planned"


def _net_paths(folder: Path) -> tuple[PlannedPath, ...]:
    """Return the legs, each with the rounds that a relation measures of it at the least."""
    plan = read_plan(folder)
    legs = {leg.name: leg for leg in plan.legs}
    turns = {leg: turn for each in plan.relations for leg, turn in each.turns.items()}
    net_paths = []
    for leg in plan.legs:
        if leg.in_turn:
            continue
        again = [legs[turns[leg.name]]] * (LEAST - 1) if leg.name in turns else []
        net_paths.append(
            PlannedPath(
                name=leg.name,
                sizes=leg.expected_sizes,
                starts=sum(len(each.commands) for each in (leg, *again)),
                seconds=sum(model_seconds(each) for each in (leg, *again)),
            )
        )
    return tuple(net_paths)


def ask_reframe(site: Site, project: Path, stacks: str | None = None) -> list[Case]:
    """Return every case of the site as the checks plan it, due or not.

    ``stacks`` is a name, or a pattern as ReFrame's ``-p`` takes it; None for all.

    Raises:
        ConfigError: a check file cannot be loaded; a plan of the others would be too cheap.
        UnavailableError: ReFrame ended without saying what it would run.
        ParseError: its report or a plan is damaged.
    """
    with tempfile.TemporaryDirectory(prefix="fabricproof-plan-") as name:
        root = Path(name)
        place = Workplace(project=project, root=root, perflogs=root / "perflogs")
        run_id = new_run_id()
        environment = session_environment(site, place, run_id)
        chosen = with_whole_stacks(["-p", stacks] if stacks else [], [s.name for s in site.stacks])
        arguments = ["--dry-run", "--keep-stage-files", *chosen]
        lines: list[str] = []
        status = run_reframe(arguments, environment, lines.append)
        return _answer(site, place, run_id, lines, status)


def _answer(
    site: Site, place: Workplace, run_id: str, lines: Sequence[str], status: int
) -> list[Case]:
    report = place.report_file(run_id)
    broken = list(unloadable(lines))
    if broken:
        raise ConfigError(broken[0], source=str(place.project / "checks"), next_step="mend it")
    if report.exists():
        one_node = [each.name for each in site.partitions if each.same_node]
        return read_cases(read_report(report), one_node)
    if any("Running 0 check(s)" in line for line in lines):
        return []
    raise UnavailableError(
        f"ReFrame did not say what it would run, it ended with status {status}",
        expected="the report of a dry run",
        got=" ".join(" ".join(lines[-3:]).split())[:300] or "nothing",
    )
