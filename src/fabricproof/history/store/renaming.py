"""Nodes under other names: joined only where two names can be one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from fabricproof.core.errors import ExitStatus, FabricproofError, InputMissingError

if TYPE_CHECKING:
    from fabricproof.history.store.history import History

_NEXT = "give --renamed OLD=NEW with the name that the records have and that of today"


class RenamingError(FabricproofError, ValueError):
    """Two names that cannot be one machine, or a renaming that says nothing."""

    exit_status = ExitStatus.USAGE


def rename(nodes: str, renamed: Mapping[str, str]) -> str:
    """Return the nodes of a key by their names of today."""
    return ",".join(sorted(renamed.get(node, node) for node in nodes.split(",")))


def require_renaming(renamed: Mapping[str, str], history: History, rows: pl.DataFrame) -> None:
    """Refuse a renaming that would make one machine of two.

    Args:
        renamed: old name -> name of today.
        history: in which the old names must stand.
        rows: ``key`` and ``run`` of the numbers that are joined.

    Raises:
        RenamingError: a name becomes itself or is renamed in its turn; two names that become one
            both took part in one run.
        InputMissingError: no record has the old name.
    """
    for old, new in renamed.items():
        if old == new or new in renamed:
            raise RenamingError(
                f"--renamed {old}={new}: {new} is an old name itself",
                expected="the name of today, which is renamed no further",
                next_step=_NEXT,
            )
    keys = _nodes_of(history.copy.keys())
    known = set(keys["node"].unique())
    for old, new in renamed.items():
        if old not in known:
            raise InputMissingError(
                f"--renamed {old}={new}: no record has a node {old}",
                expected=f"one of: {', '.join(sorted(known - {''})[:20])}",
                next_step=_NEXT,
            )
    _refuse_together(renamed, history.copy.manifest["runs"], keys, rows)


def _nodes_of(keys: pl.DataFrame) -> pl.DataFrame:
    """Return ``key`` and ``node``, one row for each node of a key."""
    texts = keys["nodes"].unique()
    pairs = [(text, node) for text in texts for node in text.split(",")]
    nodes = pl.DataFrame(pairs, schema={"nodes": pl.String, "node": pl.String}, orient="row")
    return keys.select("key", "nodes").join(nodes, on="nodes").select("key", "node")


def _refuse_together(
    renamed: Mapping[str, str], runs: Sequence[str], keys: pl.DataFrame, rows: pl.DataFrame
) -> None:
    """Refuse names that become one and took part in one run: these are two machines."""
    names = {**{new: new for new in renamed.values()}, **renamed}
    named = keys.filter(pl.col("node").is_in(list(names)))
    together = (
        rows.select("key", "run")
        .unique()
        .join(named, on="key")
        .with_columns(machine=pl.col("node").replace_strict(names, return_dtype=pl.String))
        .group_by("run", "machine")
        .agg(pl.col("node").unique().sort())
        .filter(pl.col("node").list.len() > 1)
        .sort("run", "machine")
    )
    for run, machine, both in together.iter_rows():
        raise RenamingError(
            f"--renamed: {' and '.join(both)} cannot both be {machine}: both took part in run "
            f"{runs[run]}",
            expected="names that one machine had one after the other",
            next_step=_NEXT,
        )
