"""A long search for texts that break a parser: mutations of the recordings, seed printed.

Opt in with ``make check-long``.  FABRICPROOF_FUZZ_SEED repeats a run, FABRICPROOF_FUZZ_INPUTS says
how many inputs are tried.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time

import pytest
from recordings import CHATTER, DAMAGED, GOOD, texts

from fabricproof.benchmarks.parsers import read_tables

pytestmark = pytest.mark.long

TEXTS = [text for _, text in texts([*GOOD, *DAMAGED])]
#: No mutation makes a text much longer than the recordings, so that this is a stall and no load.
STALL_S = 20.0
LARGEST = 20_000
JUNK = (
    "\x00",
    "²",
    "9" * 5000,
    " " * 3000,
    "#",
    "[",
    "{",
    "\r",
    "\n",
    "\u2028",
    "-1",
    "nan",
    "1e999",
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def mutated(chance: random.Random) -> str:
    """Cut, move, double, join and overwrite pieces of the recordings."""
    text = chance.choice(TEXTS)
    if len(text) > LARGEST:
        start = chance.randrange(len(text) - LARGEST)
        text = text[start : start + LARGEST]
    for _ in range(chance.randint(1, 4)):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        match chance.randrange(7):
            case 0:
                del lines[at : at + chance.randint(1, 5)]
            case 1:
                lines.insert(at, chance.choice(lines))
            case 2:
                lines.insert(at, chance.choice(CHATTER))
            case 3:
                other = chance.choice(TEXTS)[:LARGEST].split("\n")
                lines[at:at] = other[chance.randrange(len(other)) :][: chance.randint(1, 40)]
            case 4:
                place = chance.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:place] + chance.choice(JUNK) + lines[at][place:]
            case 5:
                mark = chance.choice(["0: ", "12: ", "node01: ", "> ", "10:00:00 "])
                lines[at:] = [mark + line for line in lines[at:]]
            case _:
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
        text = "\n".join(lines)
    return text[: 3 * LARGEST]


def test_no_input_breaks_a_parser() -> None:
    seed = int(os.environ.get("FABRICPROOF_FUZZ_SEED", random.SystemRandom().randrange(10**9)))
    inputs = int(os.environ.get("FABRICPROOF_FUZZ_INPUTS", "100000"))
    sys.stdout.write(f"FABRICPROOF_FUZZ_SEED={seed}, {inputs} inputs\n")
    chance = random.Random(seed)
    for number in range(inputs):
        text = mutated(chance)
        where = f"seed {seed}, input {number}"
        before = time.process_time()
        try:
            reading = read_tables(text)
        except Exception as error:
            raise AssertionError(f"{where}: {error!r}") from error
        assert time.process_time() - before < STALL_S, where
        assert reading.tables or reading.damages, where
        lines = text.split("\n")
        for table in reading.tables:
            if table.suite not in {"osu", "osu-mpi4py", "imb"}:
                continue
            for row, line in zip(table.rows, table.row_lines, strict=True):
                # The varied matrix of osu_mbw_mr holds its rates in a second block.
                numbers = {float(word) for word in _NUMBER.findall(lines[line - 1])}
                assert set(row[:2]) <= numbers, f"{where}: {row} is not in line {line}"
