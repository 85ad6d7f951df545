"""What a person may call an inventory: a node, a node then, a date, a run."""

from __future__ import annotations

import pytest

from fabricproof.core.errors import InputMissingError
from fabricproof.nodes.inventory.store import StateSeen, choose

RUN1, RUN2, RUN3 = (f"2026111{day}T080000Z-a1b2c3" for day in (6, 7, 8))


def line(node: str, day: int, run: str, digest: str | None) -> StateSeen:
    return StateSeen(time=f"2026-11-{day}T08:00:00Z", node=node, run_id=run, digest=digest)


INDEX = [
    line("n1", 16, RUN1, "aaaa1"),
    line("n2", 16, RUN1, "bbbb1"),
    line("n1", 17, RUN2, "aaaa2"),
    line("n1", 18, RUN3, None),
]


@pytest.mark.parametrize(
    ("words", "digests"),
    [
        ("n1", {"n1": "aaaa2"}),
        ("n1@2026-11-16", {"n1": "aaaa1"}),
        ("n1@2026-11-17T07:59Z", {"n1": "aaaa1"}),
        ("n1@2026-11-17T08:00:00Z", {"n1": "aaaa2"}),
        (f"n1@{RUN1}", {"n1": "aaaa1"}),
        (f"n1@{RUN3}", {"n1": None}),
        ("n1@aaaa1", {"n1": "aaaa1"}),
        ("2026-11-16", {"n1": "aaaa1", "n2": "bbbb1"}),
        ("2026-12-01", {"n1": "aaaa2", "n2": "bbbb1"}),
        (RUN2, {"n1": "aaaa2"}),
        ("", {"n1": "aaaa2", "n2": "bbbb1"}),
    ],
)
def test_words_choose_lines(words: str, digests: dict[str, str | None]) -> None:
    chosen = choose(INDEX, words)
    assert {node: each.digest for node, each in chosen.seen.items()} == digests
    assert chosen.words == words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("n9", "a node that is known: n1, n2"),
        ("n1@2026-11-15", "a look that is known: 2026-11-16T08:00:00Z in run"),
        (f"n2@{RUN2}", "2026-11-16T08:00:00Z"),
        ("n1@zz", "2026-11-17T08:00:00Z"),
        ("n1@aaa", "2026-11-17T08:00:00Z"),
    ],
)
def test_what_nobody_saw_is_refused_with_what_there_is(words: str, expected: str) -> None:
    with pytest.raises(InputMissingError, match="no inventory of") as caught:
        choose(INDEX, words)
    assert expected in str(caught.value)


def test_a_look_that_saw_nothing_does_not_hide_what_is_known() -> None:
    assert choose(INDEX, "n1").seen["n1"].run_id == RUN2
    only = [line("n3", 16, RUN1, None)]
    assert choose(only, "n3").seen["n3"].digest is None
