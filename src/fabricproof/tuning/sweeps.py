"""Sweeps as they stand in the records, and what is decided anew from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fabricproof.core.errors import ParseError
from fabricproof.tuning.decision import Bar, Choice, Times, decide
from fabricproof.tuning.knobs import Knobs, find_knobs

#: series that are no algorithm
OWN, UNTUNED, AUTO = "own", "untuned", "auto"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One sweep of one collective with one stack on one layout.

    Attributes:
        run_id: the run it belongs to.
        stack_version: family and version, for people.
        suite, program: what was measured.
        knobs: what can be said to this MPI about the collective.
        own_environment: what the site's environment already says about the collective.
        tuning: variables of a tuning that was on trial.
        choices: the decision for each message size.
        labels: algorithm id -> what a table calls it.
        left_out: sentences on algorithms that were not tried.
    """

    run_id: str
    site: str
    partition: str
    fabric: str
    stack: str
    stack_version: str
    suite: str
    program: str
    knobs: Knobs
    num_nodes: int
    ranks_per_node: int
    nodes: tuple[str, ...]
    rails: tuple[str, ...]
    own_environment: Mapping[str, str]
    tuning: Mapping[str, str]
    choices: tuple[Choice, ...]
    tables: tuple[Times, ...]
    labels: Mapping[str, str]
    left_out: tuple[str, ...]
    bar: Bar

    @property
    def num_ranks(self) -> int:
        """Ranks that took part."""
        return self.num_nodes * self.ranks_per_node

    def label(self, algorithm: str) -> str:
        """Return what a table calls an algorithm."""
        return self.labels.get(algorithm, algorithm)


def sweeps_of(records: Iterable[Mapping[str, Any]], source: str) -> list[Sweep]:
    """Return the sweeps among ``records``, decided anew.

    Raises:
        ParseError: a record of a sweep is damaged.
    """
    return [_sweep(record, source) for record in records if record.get("kind") == "sweep"]


def _sweep(record: Mapping[str, Any], source: str) -> Sweep:
    try:
        knobs, reason = find_knobs(record["family"], record["mpi_version"], record["collective"])
        if knobs is None:
            raise ParseError(f"a sweep that nobody knows the knobs of: {reason}", source=source)
        bar = Bar(**record["bar"])
        tables = tuple(_tables(record["series"]))
        return Sweep(
            **{
                name: str(record[name])
                for name in (
                    "run_id",
                    "site",
                    "partition",
                    "fabric",
                    "stack",
                    "stack_version",
                    "suite",
                    "program",
                )
            },
            knobs=knobs,
            num_nodes=int(record["num_nodes"]),
            ranks_per_node=int(record["ranks_per_node"]),
            nodes=tuple(record["nodes"]),
            rails=tuple(record["rails"]),
            own_environment=dict(record["own_environment"]),
            tuning=dict(record["tuning"]),
            choices=decide(tables, bar),
            tables=tables,
            labels={each["algorithm"]: each["label"] for each in record["series"]},
            left_out=tuple(record["left_out"]),
            bar=bar,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ParseError):
            raise
        raise ParseError(f"damaged record of a sweep: {error!r}", source=source) from None


def _tables(series: Iterable[Mapping[str, Any]]) -> Iterable[Times]:
    """Yield the times of each message size; sizes without a time of the own choice are none."""
    by_size: dict[int | None, dict[str, tuple[float, ...]]] = {}
    for each in series:
        for row in each["times_us"]:
            times = tuple(float(time) for time in row["us"] if time > 0)
            if times:
                by_size.setdefault(row["size"], {})[each["algorithm"]] = times
    for size, found in by_size.items():
        others = {name: each for name, each in found.items() if name not in {OWN, UNTUNED}}
        if OWN in found:
            yield Times(size=size, own_us=found[OWN], others_us=others)
