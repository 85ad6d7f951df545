"""What the library answers about every program, as lines that a review can read.

After a change of the catalogue: ``python tests/benchmarks/catalogue_answers.py``, and read the
difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from fabricproof.benchmarks.catalogue import SUITES, collective_of, meaning
from fabricproof.benchmarks.program import Meaning, Messages, Program
from fabricproof.stacks.workload import Segment, expected_bytes, has_window

ANSWERS = Path(__file__).parents[1] / "data" / "catalogue" / "answers.txt"

#: one message of 1000 bytes, one repetition, a window of three
ONE = Segment(sizes=(1000,), iterations=1, warmups=0, window_size=3)


def answers() -> Iterator[str]:
    """Yield one line a program of each suite, and below it what each room is told."""
    for suite, rows in SUITES.items():
        for row in rows:
            if suite == "osu-mpi4py" and not row.has_port:
                continue
            yield f"{suite} {row.name}"
            yield from (f"    {line}" for line in _facts(suite, row) if line)


def both_at_once(messages: Messages) -> bool:
    """Whether both directions carry messages at the same time, whatever the output counts."""
    return bool(messages.forth and messages.back) and not messages.in_turn


def _facts(suite: str, row: Program) -> Iterator[str]:
    titles = (*row.titles, *(row.port_titles if suite == "osu-mpi4py" else ()))
    yield f"prints: {' | '.join(titles)}" if titles else ""
    yield f"binary: {row.binary}" if row.binary else ""
    yield f"read as: {_words(meaning(suite, row.name))}"
    if row.earlier is not None and suite == "osu":
        (major, minor), before = row.earlier
        yield f"read before {major}.{minor} as: {_words(before)}"
    known = collective_of(suite, row.name)
    if known is not None:
        flags = [name for name in _FLAGS if getattr(known, name)]
        yield f"collective: {', '.join([known.operation, known.statistic, *flags])}"
    if row.bus is not None:
        yield f"busbw: size / time x {row.bus.factor}, {row.bus.operation or 'each to the next'}"
    if row.messages is not None:
        yield from _moved(suite, row)


_FLAGS = ("non_blocking", "share_sized", "has_size", "times_root_alone")


def _moved(suite: str, row: Program) -> Iterator[str]:
    assert row.messages is not None
    for ranks in (2, 4) if row.meaning.pairs_share_rails else (2,):
        moved = expected_bytes(suite, row.name, (ONE,), num_ranks=ranks)
        assert moved is not None
        turns = moved.messages_by_first, moved.messages_by_second
        each = f", one by one {turns[0]} and {turns[1]}" if None not in turns else ""
        yield f"{ranks} ranks send: {moved.sent_by_first} B and {moved.sent_by_second} B{each}"
    window = ", a window" if has_window(suite, row.name) else ""
    both = ", both directions at once" if both_at_once(row.messages) else ""
    yield f"crossings in a row: {row.messages.crossings}{both}{window}"


def _words(reading: Meaning) -> str:
    """Return what differs from a plain latency."""
    plain = asdict(Meaning(kind=reading.kind))
    return ", ".join(
        [reading.kind.value, *(f"{k} {v}" for k, v in asdict(reading).items() if v != plain[k])]
    )


def text() -> str:
    """Return the whole table."""
    return "\n".join(answers()) + "\n"


if __name__ == "__main__":
    ANSWERS.write_text(text(), encoding="utf-8")
