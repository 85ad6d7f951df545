"""Refuse a transport that a stack lacks, or that no fabric of its partition is spoken over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.site.complaint import Lines
from fabricproof.site.locate import line_of
from fabricproof.site.schema import PartitionSpec, StackSpec
from fabricproof.traffic.transports import transport_refusal, transports_of, transports_over


def check_transports(
    path: Path,
    stacks: Sequence[StackSpec],
    partitions: Sequence[PartitionSpec],
    protocols: Mapping[str, str],
    lines: Lines,
) -> None:
    """Refuse what could never be measured: the stack would be skipped everywhere.

    On a partition of several fabrics one that speaks the transport is enough; over the others the
    stack is SKIPPED with the reason.

    Args:
        path: of ``site.toml``.
        stacks: what it says.
        partitions: likewise.
        protocols: of each fabric, by its name.
        lines: where the keys of ``path`` stand.

    Raises:
        ConfigError: the first such transport, with its line and what there is.
    """
    for index, stack in enumerate(stacks):
        if stack.transport is None:
            continue
        line = line_of(("stacks", index, "transport"), lines)
        if stack.transport not in transports_of(stack.family):
            raise ConfigError(
                f"stack {stack.name!r}: {stack.family} has no such transport",
                source=str(path),
                line=line,
                expected=f"one of {', '.join(transports_of(stack.family))}",
                got=repr(stack.transport),
            )
        for partition in partitions:
            spoken = sorted({protocols[name] for name in partition.fabrics})
            if stack.name in partition.stacks and all(
                transport_refusal(stack.family, each, stack.transport) for each in spoken
            ):
                fitting = {each for one in spoken for each in transports_over(stack.family, one)}
                raise ConfigError(
                    f"stack {stack.name!r}: no fabric of partition {partition.name!r} is spoken "
                    "by its transport",
                    source=str(path),
                    line=line,
                    expected=f"one of {', '.join(sorted(fitting))} over {', '.join(spoken)}"
                    if fitting
                    else f"a fabric other than {', '.join(spoken)}",
                    got=repr(stack.transport),
                )
