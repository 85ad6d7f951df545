"""Matrices that would make a careless judge blame somebody, and headers as strangers write them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import made, of_node, written

from fabricproof.core.errors import FabricproofError, ParseError
from fabricproof.pairs import Judged, judge_matrix, read_matrices, say

Command = Callable[..., Any]


def judged_text(folder: Path, text: str) -> Judged:
    file = folder / "m.csv"
    file.write_text(text, encoding="utf-8")
    return judge_matrix(*read_matrices(str(file)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strange")


# --- nobody is blamed


@given(
    num=st.integers(2, 40),
    rails=st.integers(0, 3),
    triangle=st.booleans(),
    lower=st.booleans(),
    kept=st.floats(0.2, 1.0),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_three_percent_of_scatter_blames_nobody(
    folder: Path, num: int, rails: int, *, triangle: bool, lower: bool, kept: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    rows = made(num, rails=rails, triangle=triangle, lower_is_better=lower, seed=seed)
    some = [row for row in rows if random.random() < kept] or rows
    file = written(folder / "m.csv", some, unit="us" if lower else "GB/s")
    judged = judge_matrix(*read_matrices(str(file)))
    assert say(judged).blame == ()
    assert judged.verdict.value in {"UNJUDGED", "UNDECIDED", "MISSING"}
    assert (judged.verdict.value == "MISSING") is bool(judged.matrix.missing)


@given(
    num=st.integers(8, 40),
    part=st.floats(0.08, 0.3),
    share=st.floats(0.1, 0.8),
    alike=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_many_low_pairs_that_no_node_explains_blame_nobody(
    folder: Path, num: int, part: float, share: float, *, alike: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    low = random.random((num, num)) < part
    if alike:  # both directions of a pair
        low = np.triu(low, 1) | np.triu(low, 1).T
    rows = made(num, lambda a, b, _: share if low[a, b] else 1.0, seed=seed)
    judged = judge_matrix(*read_matrices(str(written(folder / "m.csv", rows))))
    # A node of which chance drew nearly all pairs is no longer told from one at fault.
    ends = np.maximum(np.mean(low, axis=0), np.mean(low, axis=1))
    if ends.max() < 0.55:
        assert [each.fact for each in say(judged).blame if each.where.node] == []
    # With half of all low, nobody can say which half is healthy: a reference can.
    if 0.1 < low.mean() < 0.35:
        assert say(judged).blame == () or ends.max() >= 0.55
        assert judged.verdict.value in {"UNDECIDED", "FAIL"}


@given(
    num=st.integers(6, 40),
    share=st.floats(0.0, 0.85),
    triangle=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_one_low_value_is_undecided_however_low(
    folder: Path, num: int, share: float, *, triangle: bool, seed: int
) -> None:
    first, second = np.sort(np.random.default_rng(seed).choice(num, 2, replace=False)).tolist()
    rows = made(
        num, lambda a, b, _: share if (a, b) == (first, second) else 1.0, triangle=triangle,
        noise=0.01, seed=seed,
    )  # fmt: skip
    said = say(judge_matrix(*read_matrices(str(written(folder / "m.csv", rows)))))
    assert said.blame == ()
    (entry,) = said.undecided
    assert entry.where.nodes == (f"n{first:04}", f"n{second:04}")


@given(
    num=st.integers(12, 32),
    share=st.floats(0.1, 0.7),
    rails=st.integers(1, 3),
    side=st.sampled_from(["both", "transmit", "receive"]),
    kept=st.floats(0.8, 1.0),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_one_slow_node_is_blamed_and_nobody_else(
    folder: Path, num: int, share: float, rails: int, *, side: str, kept: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    node = int(random.integers(num))
    rows = made(num, of_node(node, share, side=side), rails=rails, seed=seed)
    some = [row for row in rows if random.random() < kept]
    file = written(folder / "m.csv", some)
    judged = judge_matrix(*read_matrices(str(file)))
    assert [(each.where.node, each.where.direction) for each in say(judged).blame] == [
        (f"n{node:04}", side)
    ]


@given(data=st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_no_bytes_end_in_a_traceback(folder: Path, data: bytes) -> None:
    file = folder / "m.csv"
    for head in (b"", b"a,b,value,unit\n", b"a;b;value;round\n"):
        file.write_bytes(head + data)
        try:
            judged = judge_matrix(*read_matrices(str(file)))
        except FabricproofError:
            continue
        assert judged.verdict.value != "PASS"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(b"a,b,value\nx,y,1\n", mtime=0), "m.csv:1: no text: it has a byte 0"),
        (b"a,b,value\nx,y,1\nx,z,\x001\n", "m.csv:3: no text: it has a byte 0"),
        ("a,b,value\nx,y,1\n".encode("utf-16-le"), "m.csv:1: no text: it has a byte 0"),
        (b"a;b;value\nx;y;12036,5\n", "of at least 0 with a decimal point, no comma, or nothing"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_called_what_it_is(folder: Path, data: bytes, said: str) -> None:
    file = folder / "m.csv"
    file.write_bytes(data)
    with pytest.raises(ParseError, match=re.escape(said)):
        read_matrices(str(file))


def test_a_node_may_have_any_number_of_digits(folder: Path) -> None:
    long = "n" + "9" * 5000
    rows = [{"a": a, "b": b, "value": "1"} for a in ("n10", "n9", long) for b in ("n1", "n2")]
    (matrix,) = read_matrices(str(written(folder / "m.csv", rows)))
    assert [node for node in matrix.nodes if node != long] == ["n1", "n2", "n9", "n10"]
