"""What cuts, losses and intrusions do to recorded outputs: the right table, or an error."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recordings import CHATTER, GOOD, ROWS, same_tables, sizes_of, texts

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

ALL = texts(GOOD)
#: iperf 2 prints no end: with -i, a cut after the first interval is a shorter run
CUTTABLE = [(name, text) for name, text in ALL if "[SUM] 0.0000-1.0000" not in text]
NUMBERED = texts(ROWS)


def parse_or_none(text: str, expected: list[int] | None = None) -> tuple[Table, ...] | None:
    """Read a text as a run of our own is read, of which the sizes that it asked for are known."""
    try:
        tables = parse_text(text)
    except ParseError:
        return None
    due = set(expected or ())
    sized = [table for table in tables if "message_size" in table.columns]
    return None if any(due - set(table.column("message_size")) for table in sized) else tables


def check_cut(text: str, end: int) -> None:
    whole = parse_text(text)
    cut = parse_or_none(text[:end], sizes_of(whole))
    if cut is None:
        return
    if len(cut) < len(whole):
        # Neither -T of OSU nor IMB-MT says how many tables come; those that came are whole.
        assert "datatype" in whole[0].attributes or "MT part" in text
        whole = whole[: len(cut)]
    if "varied" in text and len(cut[0].columns) == 2:
        # Before the message rates begin, -V looks as -V -R0 does; the bandwidths are whole.
        whole = tuple(
            replace(table, columns=table.columns[:2], rows=tuple(row[:2] for row in table.rows))
            for table in whole
        )
    assert same_tables(cut, whole)


@pytest.mark.parametrize(("name", "text"), CUTTABLE, ids=[name for name, _ in CUTTABLE])
def test_cut_at_a_line_end(name: str, text: str) -> None:
    ends = [at + 1 for at, letter in enumerate(text) if letter == "\n"]
    for end in random.Random(name).sample(ends, min(40, len(ends))):
        check_cut(text, end)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(CUTTABLE), st.floats(0, 1))
def test_cut_anywhere(recording: tuple[str, str], place: float) -> None:
    text = recording[1]
    check_cut(text, int(place * len(text)))


@pytest.mark.parametrize(("name", "text"), NUMBERED, ids=[name for name, _ in NUMBERED])
def test_lost_column(name: str, text: str) -> None:
    lines = text.split("\n")
    rows = [number for table in parse_text(text) for number in table.row_lines]
    if "hello" in name or "init" in name:
        return
    chance = random.Random(name)
    for number in chance.sample(rows, min(5, len(rows))):
        words = lines[number - 1].split()
        words.pop(chance.randrange(len(words)))
        broken = [*lines]
        broken[number - 1] = "   ".join(words)
        if words:
            assert parse_or_none("\n".join(broken)) is None


@pytest.mark.parametrize(("name", "text"), NUMBERED, ids=[name for name, _ in NUMBERED])
def test_lost_row(name: str, text: str) -> None:
    lines = text.split("\n")
    whole = parse_text(text)
    rows = [number for table in whole for number in table.row_lines]
    if len(rows) == 1:
        return
    for number in random.Random(name).sample(rows, min(5, len(rows))):
        broken = "\n".join(lines[: number - 1] + lines[number:])
        assert parse_or_none(broken, sizes_of(whole)) is None


@pytest.mark.parametrize(("name", "text"), NUMBERED, ids=[name for name, _ in NUMBERED])
def test_repeated_row(name: str, text: str) -> None:
    lines = text.split("\n")
    rows = [number for table in parse_text(text) for number in table.row_lines]
    number = random.Random(name).choice(rows)
    # Without a ruler, rows of one size are what --run_infinitely prints.
    assert parse_or_none("\n".join([*lines[:number], *lines[number - 1 :]])) is None or (
        "hello" in name or "init" in name or name == "ib_write_bw-no-end.txt"
    )


def joined(lines: list[str], one: int, _: int) -> None:
    lines[one - 1 : one + 1] = ["".join(lines[one - 1 : one + 1])]


def exchanged(lines: list[str], one: int, two: int) -> None:
    lines[one - 1], lines[two - 1] = lines[two - 1], lines[one - 1]


def moved(lines: list[str], one: int, two: int) -> None:
    lines.insert(two - 1, lines.pop(one - 1))


def columns_glued(lines: list[str], one: int, two: int) -> None:
    for number in range(min(one, two), max(one, two) + 1):
        lines[number - 1] = lines[number - 1].replace("  ", "", 8)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(NUMBERED),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([joined, exchanged, moved, columns_glued]),
)
def test_damage_shows_no_row_that_was_not_printed(
    recording: tuple[str, str],
    one: float,
    two: float,
    damage: Callable[[list[str], int, int], None],
) -> None:
    text = recording[1]
    whole = parse_text(text)
    rows = [number for table in whole for number in table.row_lines]
    lines = text.split("\n")
    damage(lines, rows[int(one * (len(rows) - 1))], rows[int(two * (len(rows) - 1))])
    result = parse_or_none("\n".join(lines), sizes_of(whole))
    printed = {row for table in whole for row in table.rows}
    assert all(row in printed for table in result or () for row in table.rows)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([entry for entry in ALL if "report" not in entry[0]]),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from(CHATTER)), min_size=1, max_size=8),
)
def test_chatter_between_lines_changes_nothing(
    recording: tuple[str, str], talk: list[tuple[float, str]]
) -> None:
    text = recording[1]
    lines = text.split("\n")
    for place, line in talk:
        lines.insert(int(place * (len(lines) - 1)), line)
    assert same_tables(parse_text("\n".join(lines)), parse_text(text))


@settings(max_examples=500, deadline=None)
@given(
    # The number of streams of the two left out stands in their command line alone.
    st.sampled_from([entry for entry in ALL if not entry[1].startswith("$")]),
    st.floats(0, 1),
    st.sampled_from([line for line in CHATTER if line]),
    st.booleans(),
)
def test_chatter_in_the_middle_of_a_line(
    recording: tuple[str, str], place: float, line: str, ended: bool
) -> None:
    text = recording[1]
    whole = parse_text(text)
    at = int(place * len(text))
    mixed = text[:at] + line + ("\n" if ended else "") + text[at:]
    result = parse_or_none(mixed, sizes_of(whole))
    assert result is None or same_tables(result, whole)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALL), st.floats(0, 1), st.binary(min_size=1, max_size=3))
@example(ALL[0], 0.5, b"\x00")
def test_other_bytes_in_place_of_some(
    recording: tuple[str, str], place: float, junk: bytes
) -> None:
    """A number may become another number; nothing but that may pass, and no row may vanish."""
    text = recording[1]
    whole = parse_text(text)
    at = int(place * len(text))
    mixed = text[:at] + junk.decode("latin-1") + text[at + len(junk) :]
    result = parse_or_none(mixed, sizes_of(whole))
    if result is not None and sizes_of(whole):
        assert sum(len(table.rows) for table in result) == sum(len(table.rows) for table in whole)


WORDS = st.sampled_from(
    sorted({line for _, text in ALL for line in random.Random(1).choices(text.split("\n"), k=3)})
    + list(CHATTER)
)


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(), st.lists(st.one_of(WORDS, st.text(max_size=8)), max_size=12)))
@example("{" + "[" * 100_000)
@example("{\n" + '"a": ' + "9" * 5000 + "}")
@example("# OSU MPI Latency Test v7.2\n# Size   Latency (us)\n" + "9" * 5000 + "   1.00\n")
@example("# OSU MPI Latency Test v7.2\n# Size   Latency (us)\n1   " + "9" * 500 + ".00\n")
@example('{"end": {"sum_received": {"bits_per_second": 1e999}}}')
@example('{"start": [], "end": 3}')
@example("{}")
@example("# OSU MPI Latency Test v7.2")
@example("OSU ")
@example("Benchmarking ")
@example("\ufeff")
def test_no_text_raises_anything_but_a_parse_error(text: str | list[str]) -> None:
    parse_or_none(text if isinstance(text, str) else "\n".join(text))
