"""A kernel that measures a machine which does not exist: schedule in, record out.

The first of its rails carries all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: MB/s of what one node sends to another
Rate = Callable[[str, str], float]

#: time of a small message there and back, in us
Delay = Callable[[str, str], float]

#: part of the time in which others had a node's cores
Taken = Callable[[str], float]

#: packets of one round that one node sends another again
Lost = Callable[[str, str], int]

#: changes a line of the record
Edit = Callable[[dict[str, Any]], dict[str, Any]]

#: of a round, in ticks of a hundredth of a second
_TICKS = 1000

MPI = "Open MPI v5.0.11, package: made"


def lines_of(
    schedule: str,
    rate: Rate,
    rails: tuple[str, ...],
    taken: Taken | None = None,
    delay: Delay = lambda *_: 20.0,
    lost: Lost | None = None,
) -> Iterator[str]:
    """Yield the record of a launch, line by line."""
    nodes = [line.split()[1] for line in schedule.splitlines() if line.startswith("node ")]
    steps = [line.split()[1:] for line in schedule.splitlines() if line.startswith("step ")]
    rounds = [line.split()[1:] for line in schedule.splitlines() if line.startswith("round ")]
    assert schedule.endswith("end\n")
    yield _line(record="campaign", format=1, ranks=len(nodes), mpi=MPI)
    for rank, node in enumerate(nodes):
        yield _line(record="rank", rank=rank, node=node, cpus="0", machine=node, facts={})
    stood: dict[str, dict[str, int]] = {node: {} for node in nodes}
    for number, *pairs in rounds:
        moved: dict[str, dict[str, int]] = {}
        partner: dict[str, str] = {}
        for one, other in zip(pairs[::2], pairs[1::2], strict=True):
            ends = (nodes[int(one)], nodes[int(other)])
            partner |= dict(zip(ends, ends[::-1], strict=True))
            for step in steps:
                yield from _values(int(number), step, ends, rate, delay, moved)
        for node, counts in moved.items():
            more = {"node/cores": _cores(taken(node))} if taken else {}
            more |= {"node/tcp": _tcp(lost(node, partner[node]))} if lost else {}
            yield _counters(int(number), node, counts, stood[node], rails, more)
        yield _line(record="end", round=int(number), begin=1000, end=1001)
    yield _line(record="done")


def _line(**fields: Any) -> str:
    return json.dumps(fields) + "\n"


def _values(
    number: int,
    step: list[str],
    ends: tuple[str, str],
    rate: Rate,
    delay: Delay,
    moved: dict[str, dict[str, int]],
) -> Iterator[str]:
    mode, size, window, _, warmups = step[0], *map(int, step[1:5])
    repetitions = 4
    for source, destination in (ends, ends[::-1]) if mode == "uni" else (ends,):
        payload = size * window * (repetitions + warmups)
        both = mode != "uni"
        for node, sent, received in (
            (source, payload, payload * both),
            (destination, payload * both, payload),
        ):
            counts = moved.setdefault(node, dict.fromkeys(("tx", "rx", "packets"), 0))
            counts["tx"] += sent + sent // 20
            counts["rx"] += received + received // 20
            counts["packets"] += repetitions + warmups
        is_small = mode == "pingpong"
        each = delay(*ends) if is_small else size * window / rate(source, destination)
        yield _line(
            record="value", round=number, mode=mode, size=size, window=window, warmups=warmups,
            **{"from": source, "to": destination}, repetitions=repetitions,
            total_us=repetitions * each, times_us=[each] * repetitions,
            least_us=each, median_us=each, most_us=each,
        )  # fmt: skip


def _counters(
    number: int,
    node: str,
    counts: dict[str, int],
    stood: dict[str, int],
    rails: tuple[str, ...],
    more: dict[str, dict[str, int]],
) -> str:
    still = _interface({})
    before = {rails[0]: _interface(stood), **dict.fromkeys((*rails[1:], "mgmt0"), still)}
    for name, count in counts.items():
        stood[name] = stood.get(name, 0) + count
    after = {rails[0]: _interface(stood), **more}
    before |= {name: dict.fromkeys(moved, 0) for name, moved in more.items()}
    return _line(record="counters", round=number, node=node, before=before, after=after, gone=[])


def _cores(taken: float) -> dict[str, int]:
    others = int(taken * _TICKS)
    own = _TICKS - others
    ticks = {"busy_ticks": _TICKS, "idle_ticks": 0, "steal_ticks": 0, "own_ticks": own}
    return ticks | {"clock_us": 10_000 * _TICKS, "waited_us": 10_000 * others}


def _tcp(again: int) -> dict[str, int]:
    return {"OutSegs": 3000, "RetransSegs": again, "TCPSynRetrans": 0, "TCPDSACKRecvSegs": 0}


def _interface(stood: dict[str, int]) -> dict[str, int]:
    return {
        "tx_bytes": stood.get("tx", 0),
        "rx_bytes": stood.get("rx", 0),
        "tx_packets": stood.get("packets", 0),
        "rx_packets": stood.get("packets", 0),
    }


def write_record(
    folder: Path,
    rate: Rate,
    rails: tuple[str, ...],
    *,
    rounds: int = 999,
    taken: Taken | None = None,
    delay: Delay = lambda *_: 20.0,
    lost: Lost | None = None,
    edit: Edit | None = None,
) -> None:
    """Write the record of the schedule in ``folder``; after so many rounds it is killed."""
    text = ""
    for made in lines_of((folder / "schedule").read_text(), rate, rails, taken, delay, lost):
        line = _line(**edit(json.loads(made))) if edit else made
        if rounds == 0 and '"end"' not in line:
            text += line[: len(line) // 2]
            break
        text += line
        rounds -= '"record": "end"' in line
    (folder / "record.jsonl").write_text(text)
