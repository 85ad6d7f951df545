"""Values between ranks, as LinkTest and mpiGraph print them, become values of pairs of nodes.

Several ranks on a node: of two measurements of two ranks the better one counts, of more the median;
of the pairs of ranks that two nodes have, the slowest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from fabricproof.core.errors import ParseError
from fabricproof.core.units import size_label
from fabricproof.pairs.matrix import Flags

#: of so many ranks each missing value is looked for; beyond they are counted
_MOST_NAMED = 8192


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Values between ranks.

    Attributes:
        values: columns ``from``, ``to`` and ``value``.
        hosts: where each rank ran.
        num: how many ranks there were.
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
        seen = self.values.select("from", "to").unique()
        total = self.num * (self.num - 1)
        count = total - len(seen)
        if count <= 0:
            return ()
        text = f"{count} of {total} values"
        if self.num > _MOST_NAMED:
            return (text,)
        absent = ~np.eye(self.num, dtype=bool)
        absent[seen["from"].to_numpy(), seen["to"].to_numpy()] = False
        return (f"{text}: {_first_of(absent, self.hosts)}",)

    def of_nodes(self) -> pl.DataFrame:
        """Return one row for each ordered pair of nodes, its slowest pair of ranks."""
        goodness = pl.col("value").sort(descending=self.lower_is_better)
        one_each = self.values.group_by("from", "to").agg(goodness.get(pl.len() // 2))
        named = one_each.with_columns(
            pl.col(end).replace_strict(self.hosts, default=None, return_dtype=pl.String).alias(name)
            for end, name in (("from", "a"), ("to", "b"))
        ).filter(pl.col("a") != pl.col("b"))  # null, of a rank nobody placed, is filtered as well
        worst = pl.col("value").max() if self.lower_is_better else pl.col("value").min()
        return named.group_by("a", "b").agg(worst, pl.col("from").first(), pl.col("to").first())

    def table(self, direction: str) -> pl.DataFrame:
        """Return the rows as a CSV has them, in the order of the ranks."""
        return (
            self.of_nodes()
            .sort("from", "to")
            .select(
                "a",
                "b",
                pl.col("value").cast(pl.String),
                pl.lit(self.unit).alias("unit"),
                pl.lit(size_label(self.size) if self.size else "").alias("size"),
                pl.lit(direction).alias("direction"),
            )
        )

    @property
    def share_nodes(self) -> bool:
        """Tell whether several ranks ran on one node."""
        return len(self.hosts) > len(set(self.hosts.values()))

    def fold_notes(self) -> tuple[str, ...]:
        """Return what is said of ranks that share a node."""
        nodes = len(set(self.hosts.values()))
        if not self.share_nodes:
            return ()
        words = (
            f"{len(self.hosts)} ranks ran on {nodes} nodes: two nodes have the value of their "
            "slowest pair of ranks"
        )
        return (words,)


def _first_of(absent: Flags, hosts: dict[int, str]) -> str:
    """Return the first of the pairs of ranks that are absent, by the names of their nodes."""
    first = [(int(a), int(b)) for a, b in np.argwhere(absent)[:3]]
    words = [f"{hosts.get(a, f'rank {a}')} to {hosts.get(b, f'rank {b}')}" for a, b in first]
    return ", ".join(words) + (" ..." if int(absent.sum()) > len(words) else "")


def checked(ranks: Ranks, source: str) -> Ranks:
    """Refuse ranks beyond their number, ranks of unknown nodes, and one node alone."""
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
    if len(set(ranks.hosts.values())) < 2:
        raise ParseError("all ranks ran on one node", source=source, expected="two nodes or more")
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
