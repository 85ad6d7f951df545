"""IMB: units, modes, groups, and what a cut or failed run leaves behind."""

from __future__ import annotations

import pytest
from recordings import DATA

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError

PINGPONG = (DATA / "imb/mpi1-pingpong.txt").read_text("utf-8")
END = "# All processes entering MPI_Finalize"


def refuse(text: str, **options: list[int]) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_text(text, "job.out", **options)
    return caught.value


def pingpong(factor: float, *, version: str | None = None, newline: str = "\n") -> str:
    """A table whose megabyte is ``factor`` bytes, as PingPong computes it from the time."""
    head = f"#    Intel (R) MPI Benchmarks {version}, MPI-1 part\n" if version else ""
    rows = "".join(
        f"{size:>13}{10:>13}{time:>13.2f}{size / time * 1e6 / factor:>13.2f}\n"
        for size, time in ((0, 3.37), *((2**power, 3.4 + 2**power / 3900) for power in range(23)))
    )
    head += "# Benchmarking PingPong\n# #processes = 2\n"
    return head + "       #bytes #repetitions      t[usec]   Mbytes/sec\n" + rows.rstrip() + newline


@pytest.mark.parametrize(
    ("version", "factor"),
    [
        *((version, 2**20) for version in ("4.1 Update 1", "2017", None)),
        *((version, 1e6) for version in ("2018", "2019 Update 6", "2021.7", "2017", None)),
    ],
)
def test_megabytes_are_told_by_version_and_rows(version: str | None, factor: float) -> None:
    (table,) = parse_text(pingpong(factor, version=version) + "\nsrun: job 12 done\n")
    assert table.columns[-1] == ("bandwidth_mb_s" if factor == 1e6 else "bandwidth_mib_s")
    assert len(table.rows) == 24


def text_of(name: str) -> str:
    return (DATA / "imb" / f"{name}.txt").read_text("utf-8")


def without_row(text: str, *words: str) -> str:
    """Return a text less its first line that begins with these words."""
    lines = text.split("\n")
    del lines[next(at for at, each in enumerate(lines) if each.split()[: len(words)] == [*words])]
    return "\n".join(lines)


HEADER = "Intel(R) MPI Benchmarks 2021.11, MPI-1 part"
DAMAGE = {
    "no end": (PINGPONG.replace(END, ""), "the output is cut"),
    "a run that was cut before the next": (
        PINGPONG[: PINGPONG.index(END)] + PINGPONG, "the output is cut"),
    "shorter than its header": (without_row(PINGPONG, "16384"), "shorter than its header"),
    "a lost header": (PINGPONG.replace(HEADER, "oops"), "a line is missing"),
    "a row of one group": (without_row(text_of("mpi1-multi1"), "1", "16384"), "group"),
    "a whole number that may be cut": (text_of("document-004-p2p-1gbe").rstrip(), "cut row"),
    "columns without title": (
        "       #bytes #repetitions      t[usec]   Mbytes/sec\n 0 1 1.00 0.00\n", ""),
    "an unknown column": (PINGPONG.replace("t[usec]", "t[fortnight]"), "unknown column"),
    "a table that is not listed": (
        PINGPONG.replace("# Benchmarking PingPong", "# Benchmarking P"), "does not list"),
    "rows of 0 repetitions": (
        pingpong(1e6).replace("           10 ", "            0 "), "damaged row"),
    "before 4.1": (
        pingpong(2**20, version="4.1").replace("Benchmarks 4.1", "Benchmark Suite V3.2"),
        "a line is missing"),
    "0 processes": (pingpong(1e6).replace("= 2", "= 0"), "damaged line"),
    "one process and no partner": (pingpong(1e6).replace("= 2", "= 1"), "no pair"),
    **{f"a run without list that lost {lost}": (text_of("mt").replace(lost, "# oops"), "")
       for lost in ("# Benchmarking PingPongMT", "# Benchmarking BarrierMT", "#processes")},
    **{name: (text_of(f"damaged/{name}"), "the benchmark gave up")
       for name in ("mpi1-timeout", "mpi1-mem", "mpi1-uniband-timeout")},
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_an_error(name: str) -> None:
    text, problem = DAMAGE[name]
    error = refuse(text)
    assert problem in error.problem
    assert error.line is not None
    assert "16384" in (error.expected or "") or "shorter" not in name


def test_listed_benchmark_without_table_is_missing() -> None:
    start = PINGPONG.index(
        "#---------------------------------------------------\n# Benchmarking PingPing"
    )
    error = refuse(PINGPONG[:start] + END + "\n")
    assert "is missing" in error.problem
    assert error.line == PINGPONG[: PINGPONG.index("# PingPing\n")].count("\n") + 1


@pytest.mark.parametrize("ended", ["", "\n"])
def test_no_chatter_takes_the_number_of_ranks_away(ended: str) -> None:
    head = "# Benchmarking PingPong\n# #processes = 2\n"
    text = head + "       #bytes #repetitions      t[usec]   Mbytes/sec\n  0  1000  49.81  0.00\n"
    for at in range(len(head)):
        mixed = f"{text[:at]}[node1:4711] 1 more process has sent help{ended}{text[at:]}"
        try:
            (table,) = parse_text(mixed)
        except ParseError:
            continue
        assert table.attributes["num_processes"] == 2, mixed
