"""Outputs in the shape that LinkTest 1.2p1, its analysis program and mpiGraph 1.5 give them.

Written from the format strings of their sources (mpilinktest.c, pingponganalysis.c, mpiGraph.c);
the numbers are made.  Nothing is copied from a run or from the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

#: sender, receiver (ranks) -> factor of the healthy bandwidth
Fault = Callable[[int, int], float]
SIZE = 1048576
RATE_MIB_S = 2800.0


def healthy(_a: int, _b: int) -> float:
    return 1.0


def slow(rank: int, factor: float = 0.3) -> Fault:
    return lambda a, b: factor if rank in {a, b} else 1.0


def rates(num: int, fault: Fault = healthy, seed: int = 1) -> dict[tuple[int, int], float]:
    """MiB/s of every ordered pair of ranks, with 1 % of noise."""
    random = np.random.default_rng(seed)
    return {
        (a, b): RATE_MIB_S * fault(a, b) * (1 + 0.01 * float(np.clip(random.normal(), -3, 3)))
        for a in range(num)
        for b in range(num)
        if a != b
    }


def microseconds(rate: float, size: int = SIZE) -> float:
    return size / 1048576 / rate * 1e6


def one_each(num: int) -> list[str]:
    return [f"n{rank}" for rank in range(num)]


def tasks(hosts: Sequence[str]) -> str:
    return "".join(
        f"task[{rank:06d}] on {host} ({rank},0,0,0) mem={0.03:10.4f} MB \n"
        for rank, host in enumerate(hosts)
    )


def header(num: int, *, size: int = SIZE, serial: bool = True) -> str:
    rule = "-" * 58
    return (
        f"\n\n{rule}\nlinktest: Number of MPI-Task:        {num:10d}\n"
        f"linktest: Current Rank MPI-Task:     {0:10d}\n"
        f"linktest: Message length:            {size:10d} Bytes\n"
        f"linktest: Message length:            {size / 1024:10.4f} KBytes\n"
        f"linktest: Number of Iteration:       {3:10d}\n"
        f"linktest: serial test:               {int(serial)}\n{rule}\n"
    )


def results(times: Sequence[float], size: int = SIZE) -> str:
    words = (("Min", min(times)), ("Max", max(times)), ("Avg", sum(times) / len(times)))
    return "\n\n" + "".join(
        f"RESULT: {word} Time:            {us:20.8f}us ({size / 1.048576 / us:7.2f} MB/s) "
        f"[iter {1:2d} ]\n"
        for word, us in words
    )


def again(number: int, a: int, b: int, first_us: float, second_us: float) -> str:
    first, second = SIZE / 1.048576 / first_us, SIZE / 1.048576 / second_us
    return (
        f" {number:6d}: PINGPONG {a:6d}  <->  {b:6d}:  1st: {first_us:10.4f}us ({first:7.2f} MB/s)"
        f"    2nd: {second_us:10.4f}us ({second:7.2f} MB/s)\n"
    )


def linktest_serial(
    hosts: Sequence[str], fault: Fault = healthy, *, size: int = SIZE, seed: int = 1
) -> str:
    """``mpilinktest -S 1`` with both outputs together; every rank prints its own values."""
    values = {
        pair: microseconds(rate, size) for pair, rate in rates(len(hosts), fault, seed).items()
    }
    lines = [
        f" {a:6d}->{b:6d}:{us:12.5f}us ({size / 1.048576 / us:7.2f} MB/s) (l={a})\n"
        for (a, b), us in sorted(values.items(), key=lambda item: (sum(item[0]), item[0]))
    ]
    steps = " Serial   PingPong for step     1: \n"
    return (
        header(len(hosts), size=size)
        + tasks(hosts)
        + steps
        + "".join(lines)
        + results(list(values.values()), size)
    )


def linktest_parallel(hosts: Sequence[str], fault: Fault = healthy) -> str:
    """``mpilinktest``: the slowest values alone, each measured twice."""
    values = {pair: microseconds(rate) for pair, rate in rates(len(hosts), fault).items()}
    slowest = sorted(values, key=lambda pair: -values[pair])[: len(hosts)]
    steps = (
        f" Parallel PingPong for step {1:5d}:   avg={360.0:10.3f}us (2777.78 MB/s) "
        f"min={355.0:10.3f}us (2816.90 MB/s) max={365.0:10.3f}us (2739.73 MB/s)\n"
    )
    lines = [
        again(number, *pair, values[pair] * 1.2, values[pair])
        for number, pair in enumerate(slowest)
    ]
    times = [us * 1.2 for us in values.values()]
    head = header(len(hosts), serial=False) + tasks(hosts)
    return head + steps + results(times) + "".join(lines)


def mapping(hosts: Sequence[str]) -> str:
    return "".join(
        f"{rank:6d} {rank:4d} {0:4d} {0:4d} {0:4d} {host}\n" for rank, host in enumerate(hosts)
    )


def gnuplot(num: int, fault: Fault = healthy, *, size: int = SIZE) -> str:
    """``pingponganalysis -g``: gnuplotinput.dat."""
    values = rates(num, fault)
    rows = []
    for a in range(num):
        for b in range(num):
            seconds = microseconds(values[a, b], size) / 1e6 if a != b else 0.0
            rate = values.get((a, b), 0.0)
            rows.append(f"{a:10d} {b:10d} {seconds:18.8f} {rate:18.8f}\n")
    return "".join(rows)


def mpigraph(hosts: Sequence[str], fault: Fault = healthy) -> str:
    num = len(hosts)
    values = rates(num, fault)
    names = [f"{host}:{rank}" for rank, host in enumerate(hosts)]
    parts = [
        f"START mpiGraph v1.5\nMsgSize\t{SIZE}\nTimes\t10\nWindow\t10\nProcs\t{num}\n\n",
        *(f"{step} of {num} ({step / num * 100:.1f}%)\n" for step in range(1, num)),
        "Gathering results\n",
    ]
    for table, way in (("Send", "to"), ("Recv", "from")):
        most, mean = max(values.values()), sum(values.values()) / len(values)
        parts.append(f"\n{table} max\t{most:.6f}\n{table} avg\t{mean:.6f}\n\n")
        parts.append(f"{table}\t" + "".join(f"{name}\t" for name in names) + "\n")
        for a, name in enumerate(names):
            own = [
                values.get((a, b) if way == "to" else (b, a), 0.0) * (1.0 if way == "to" else 0.999)
                for b in range(num)
            ]
            parts.append(f"{name} {way}\t" + "".join(f"{each:.3f}\t" for each in own) + "\n")
    return "".join(parts) + "END mpiGraph\n"
