"""Lists of hosts: expanded, folded, and any name shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ParseError
from fabricproof.core.hostlist import expand, fold


def test_hostlists_are_expanded_without_asking_any_group_service() -> None:
    assert expand("vc[1-2,4],x") == ("vc1", "vc2", "vc4", "x")
    assert expand("") == ()


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (["vc2", "vc1", "vc4"], "vc[1-2,4]"),
        ([], ""),
        (["@all"], "@all"),
        (["n1!", "m"], "n1!,m"),
        (["n[1-99999999]", "m"], "n[1-99999999],m"),
    ],
)
def test_names_are_folded_as_slurm_does_and_no_other_is_made_of_them(
    nodes: list[str], text: str
) -> None:
    assert fold(nodes) == text


@given(st.lists(st.text(min_size=1)))
def test_any_name_can_be_shown(nodes: list[str]) -> None:
    assert isinstance(fold(nodes), str)


def test_what_is_no_hostlist_is_told_with_its_place() -> None:
    with pytest.raises(ParseError, match="damaged hostlist") as error:
        expand("vc[1-", "nodes.txt", 7)
    assert "nodes.txt" in str(error.value)
