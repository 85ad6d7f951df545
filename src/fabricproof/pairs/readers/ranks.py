"""Values between ranks, one on each node, as LinkTest and mpiGraph print them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import polars as pl

from fabricproof.core.errors import ParseError
from fabricproof.core.units import size_label


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Values between ranks.

    Attributes:
        values: columns ``from``, ``to`` and ``value``.
        hosts: where each rank ran.
        size: of a message, bytes; 0: not known.
    """

    values: pl.DataFrame
    hosts: dict[int, str]
    num: int
    lower_is_better: bool
    unit: str
    size: int

    def missing(self) -> tuple[str, ...]:
        """Return how many of all ordered pairs of ranks have no value, and the first of them."""
        seen = set(self.values.select("from", "to").iter_rows())
        total = self.num * (self.num - 1)
        if len(seen) >= total:
            return ()
        every = ((a, b) for a in range(self.num) for b in range(self.num) if a != b)
        first = islice((pair for pair in every if pair not in seen), 3)
        words = [" to ".join(self.hosts.get(each, f"rank {each}") for each in one) for one in first]
        more = " ..." if total - len(seen) > len(words) else ""
        return (f"{total - len(seen)} of {total} values: {', '.join(words)}{more}",)

    def table(self, direction: str) -> pl.DataFrame:
        """Return the rows as a CSV has them; of repeated ones the median, of two the better."""
        goodness = pl.col("value").sort(descending=self.lower_is_better)
        one_each = self.values.group_by("from", "to").agg(goodness.get(pl.len() // 2))
        return (
            one_each.with_columns(
                pl.col(end).replace_strict(self.hosts, default=None, return_dtype=pl.String)
                .alias(name)
                for end, name in (("from", "a"), ("to", "b"))
            )
            .filter(pl.col("a").is_not_null() & pl.col("b").is_not_null())  # placed by nobody
            .sort("from", "to")
            .select(
                "a",
                "b",
                pl.col("value").cast(pl.String),
                pl.lit(self.unit).alias("unit"),
                pl.lit(size_label(self.size) if self.size else "").alias("size"),
                pl.lit(direction).alias("direction"),
            )
        )  # fmt: skip


def checked(ranks: Ranks, source: str) -> Ranks:
    """Refuse ranks beyond their number, and several on a node, which share its rails."""
    highest = max(
        *(int(ranks.values[end].max() or 0) for end in ("from", "to")),  # type: ignore[arg-type]
        *ranks.hosts,
    )
    if highest >= ranks.num:
        raise ParseError(
            "a rank beyond the number of ranks",
            source=source,
            expected=f"at most {ranks.num - 1}",
            got=str(highest),
        )
    if len(set(ranks.hosts.values())) < len(ranks.hosts):
        raise ParseError(
            "several ranks ran on one node, which shared its rails",
            source=source,
            expected="one rank on each node",
            next_step="run it with one task on each node (srun --ntasks-per-node=1)",
        )
    return ranks


def without_labels(text: str, words: str) -> str:
    """Return a text without the ranks that ``srun --label`` puts before its lines.

    Args:
        text: as the program and its launcher printed it.
        words: what a line of the program begins with; a label stands before it, or nowhere.
    """
    if re.search(rf"^ *\d+: {words}", text, re.MULTILINE) is None:
        return text
    return re.sub(r"^ *\d+: ?", "", text, flags=re.MULTILINE)


def only(pattern: re.Pattern[str], text: str, source: str, what: str) -> int:
    """Return the number of a line of the header; 0 where there is none."""
    found = {int(each) for each in pattern.findall(text)}
    if len(found) > 1:
        raise ParseError(f"two runs in one output, with unlike {what}", source=source)
    return found.pop() if found else 0


def values_of(rows: Iterable[tuple[int, int, float]]) -> pl.DataFrame:
    """Return rows of two ranks and a value as the columns of :class:`Ranks`."""
    schema = {"from": pl.Int64, "to": pl.Int64, "value": pl.Float64}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def unplaced(ranks: Ranks) -> tuple[str, ...]:
    """Return how many ranks nobody placed on a node."""
    count = ranks.num - len(ranks.hosts)
    return (f"where {count} of {ranks.num} ranks ran",) if count > 0 else ()
