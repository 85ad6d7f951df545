"""Refuse a reference that nothing on the site is ever held against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.site.complaint import Lines
from fabricproof.site.locate import line_of
from fabricproof.site.schema import FabricSpec, PartitionSpec, ReferenceSpec


def check_layouts(
    path: Path,
    references: Sequence[ReferenceSpec],
    fabrics: Sequence[FabricSpec],
    partitions: Sequence[PartitionSpec],
    lines: Lines,
) -> None:
    """Refuse rails, nodes and ranks that no check has: the reference would judge nothing.

    Args:
        path: of ``references.toml``.
        references: what it says.
        fabrics: of the site.
        partitions: of the site.
        lines: where its keys stand.

    Raises:
        ConfigError: the first such reference, with its line and what there is.
    """
    for index, spec in enumerate(references):
        there = [each for each in partitions if spec.fabric in each.fabrics]
        (fabric,) = (each for each in fabrics if each.name == spec.fabric)
        for key, known in (
            ("num_rails", tuple(range(1, len(fabric.rails) + 1))),
            ("num_nodes", tuple(sorted({n for each in there for n in _node_counts(each)}))),
            ("ranks_per_node", tuple(sorted({n for each in there for n in each.ranks_per_node}))),
        ):
            said = getattr(spec, key)
            # A fabric that no partition has is for later.
            if said is not None and known and said not in known:
                raise ConfigError(
                    f"a reference for {key} = {said} would judge nothing",
                    source=str(path),
                    line=line_of(("references", index, key), lines),
                    expected=f"one of {', '.join(map(str, known))}, as site.toml and fabric.toml "
                    "have them",
                    got=str(said),
                )


def _node_counts(partition: PartitionSpec) -> Iterator[int]:
    """Yield the numbers of nodes that collectives are measured on: powers of two, and all."""
    count = 2
    while count <= partition.num_nodes:
        yield count
        count *= 2
    yield partition.num_nodes
