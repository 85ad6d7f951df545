"""Outputs in the shape that nccl-tests and rccl-tests give them; the numbers are made.

Written from the format strings of their sources (util.cu of 2.19.6, common.cu of v2.13.9 of
nccl-tests, common.cu of rccl-tests).  ``python tests/benchmarks/nccl_outputs.py`` writes the
files of tests/data/nccl.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n, "reduce_scatter": lambda n: (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n, "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0, "reduce": lambda n: 1.0, "sendrecv": lambda n: 1.0,
}  # fmt: skip
COMBINES = {"all_reduce", "reduce_scatter", "reduce"}
ROOTED = {"broadcast", "reduce"}


@dataclass(frozen=True, kw_only=True)
class Made:
    """A run: ``gb_s`` is the busbw of long messages, ``start_us`` what starting takes."""

    name: str = "all_reduce"
    nodes: int = 2
    here: int = 8
    gb_s: float = 370.0
    start_us: float = 40.0
    least: int = 8
    most: int = 8 * 2**30
    factor: int = 4
    version: str = "2.19.6"
    wrong: int = 0
    checked: bool = True
    groups: int = 1
    hosts: tuple[str, ...] = ()

    @property
    def sizes(self) -> list[int]:
        found = [self.least]
        while found[-1] * self.factor <= self.most:
            found.append(found[-1] * self.factor)
        return found

    @property
    def ranks(self) -> tuple[str, ...]:
        named = self.hosts or tuple(f"gpu{node:02d}" for node in range(self.nodes))
        return named if self.hosts else tuple(host for host in named for _ in range(self.here))


def shown(value: float, width: int) -> str:
    for digits in (2, 1, 0):
        text = f"{value:{width}.{digits}f}"
        if len(text) <= width:
            return text
    return f"{value:{width}.0e}"


def half(run: Made, size: int, scale: float) -> tuple[str, float]:
    n = len(run.ranks)
    factor = FACTORS[run.name](n)
    time_us = (run.start_us + size * factor / (run.gb_s * 1e3)) * scale
    rate = size / time_us / 1e3
    wrong = f"{run.wrong:6g}" if run.checked else "   N/A"
    bus = rate * factor
    return f"  {shown(time_us, 7)}  {shown(rate, 6)}  {shown(bus, 6)}  {wrong}", bus


def text_of(run: Made, *, rccl: bool = False, in_place_only: bool = False) -> str:
    unnamed = int(run.version.split(".")[1]) < 17
    lines = []
    if not (unnamed or rccl):
        lines += [f"# nccl-tests version {run.version} nccl-headers=22902 nccl-library=22902"]
        lines += [f"# Collective test starting: {run.name}_perf"]
    lines.append(
        f"# nThread 1 nGpus 1 minBytes {run.least} maxBytes {run.most} step: {run.factor}(factor) "
        f"warmup iters: 5 iters: 20 agg iters: 1 validation: {int(run.checked)} graph: 0"
    )
    lines.append("#")
    if rccl:
        lines.append("rccl-tests: Version develop:ae3e635")
    lines.append("# Using devices")
    for rank, host in enumerate(run.ranks):
        bus = f"[0x{(rank % 8) * 16:02x}]" if unnamed else f"[0000:{(rank % 8) * 16:02x}:00]"
        group = "" if rccl else f" Group {rank % run.groups:2d}"
        lines.append(
            f"#  Rank {rank:2d}{group} Pid {4711 + rank:6d} on {host:>10} device {rank % 8:2d} "
            f"{bus} Made GPU 80GB"
        )
    words = ["size", "count", "type", "redop", "root"]
    part = ["time", "algbw", "busbw", "#wrong"]
    parts = part if in_place_only else [*part, *part]
    lines += ["#", "#" + " " * 60 + "out-of-place                       in-place          "]
    lines.append("# " + "  ".join(f"{word:>9}" for word in [*words, *parts]))
    lines.append("# " + "  ".join(f"{unit:>9}" for unit in ["(B)", "(elements)"]))
    means = []
    for size in run.sizes:
        begin = [f"{size:12d}", f"{size // 4:12d}", f"{'float':>8}"]
        begin.append(f"{'sum' if run.name in COMBINES else 'none':>6}")
        begin.append(f"{0 if run.name in ROOTED else -1:6d}")
        row = "  ".join(begin)
        for scale in (1.01,) if in_place_only else (1.0, 1.01):
            cells, bus = half(run, size, scale)
            row += cells
            means.append(bus)
        lines.append(row)
    verdict = "FAILED" if run.wrong else "OK"
    wrong = run.wrong * len(means)
    lines += [f"# Out of bounds values : {wrong} {verdict}"]
    lines += [f"# Avg bus bandwidth    : {sum(means) / len(means):g} ", "#"]
    if not (unnamed or rccl):
        lines += [f"# Collective test concluded: {run.name}_perf", ""]
    return "\n".join([*lines, ""])


FILES = {
    "all_reduce-2x8": text_of(Made()),
    "alltoall-4x4-unchecked": text_of(
        Made(name="alltoall", nodes=4, here=4, gb_s=60.0, checked=False, most=2**30, factor=2)
    ),
    "sendrecv-2x8": text_of(Made(name="sendrecv", gb_s=46.0, most=2**30)),
    "all_gather-2x1-v2.13": text_of(
        Made(
            name="all_gather",
            here=1,
            gb_s=23.4,
            version="2.13.9",
            least=2**20,
            most=2**28,
            factor=2,
        )
    ),
    "rccl-all_reduce-2x8-in-place": text_of(
        Made(gb_s=360.0, version="2.13", most=2**33), rccl=True, in_place_only=True
    ),
}
DAMAGED = {
    "all_reduce-cut": text_of(Made()).partition("# Out of bounds")[0],
    "all_reduce-row-lost": "\n".join(
        line for line in text_of(Made()).split("\n") if not line.startswith("        8192")
    ),
}


def with_hosts(run: Made, hosts: Sequence[str]) -> Made:
    return replace(run, hosts=tuple(hosts))


if __name__ == "__main__":
    folder = Path(__file__).parents[1] / "data" / "nccl"
    for name, content in FILES.items():
        (folder / f"{name}.txt").write_text(content, encoding="utf-8")
    for name, content in DAMAGED.items():
        (folder / "damaged" / f"{name}.txt").write_text(content, encoding="utf-8")
