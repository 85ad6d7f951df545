"""Which nodes a campaign of a run measures, and which it names as missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fabricproof.core.errors import UnavailableError
from fabricproof.pairs.campaign.nodes import Standing
from fabricproof.rfm.current import NODES_VARIABLE
from fabricproof.rfm.families import all_pairs as campaign
from fabricproof.site import load_site

BUSY = "busy with another user's job (later: fabricproof admit vc5 --site vcluster)"


@pytest.mark.parametrize(
    ("asked", "measured", "missing"),
    [
        ("", ["vc1", "vc2", "vc3"], {"vc4": "drained", "vc5": BUSY}),
        ("vc1,vc2", ["vc1", "vc2"], {}),
        # Asked for by name, and not to be had: it is missing, not left out.
        ("vc1,vc4", ["vc1"], {"vc4": "drained"}),
        ("vc1,vc9", ["vc1"], {"vc9": "no node of partition compute"}),
    ],
)
def test_nodes_that_were_asked_for_and_cannot_be_had_are_named(
    monkeypatch: pytest.MonkeyPatch, asked: str, measured: list[str], missing: dict[str, str]
) -> None:
    found = Standing(free=("vc1", "vc2"), busy=("vc3", "vc5"), out={"vc4": "drained"})
    monkeypatch.setattr(campaign, "ask_standing", lambda *_, **__: found)
    monkeypatch.setattr(campaign, "ask_others", lambda *_: frozenset({"vc5"}))
    monkeypatch.setenv(NODES_VARIABLE, asked)
    site = load_site("vcluster")
    standing = campaign._standing(site, site.partition("compute"), dry_run=False)
    assert (sorted(standing.free), dict(standing.out)) == (measured, missing)


def test_too_few_nodes_are_missing_where_there_would_be_more_and_else_skipped() -> None:
    lone: Any = SimpleNamespace(nodes=("vc1",), out={}, partition="compute")
    assert campaign._why_no_pair(lone) == "no pair can be made: 1 node of compute can be had"
    lone.out = {"vc4": "drained"}
    with pytest.raises(UnavailableError, match="no pair of nodes can be measured") as error:
        campaign._why_no_pair(lone)
    assert "vc4 is drained" in str(error.value)
