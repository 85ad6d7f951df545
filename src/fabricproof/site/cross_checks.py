"""What no schema can say of site files: names, fabrics, transports, references that would judge."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, FabricproofError
from fabricproof.core.provenance import same_build
from fabricproof.physics import find_slot
from fabricproof.site.complaint import Lines, line_of
from fabricproof.site.model import build_fabric, quantity_of
from fabricproof.site.schema import (
    RUNTIMES,
    FabricFile,
    FabricSpec,
    PartitionSpec,
    ReferenceSpec,
    SiteFile,
    StackSpec,
)
from fabricproof.traffic.transports import (
    DEVICE_NAMES,
    VERBS,
    transport_refusal,
    transports_of,
    transports_over,
)

#: a port of an RDMA device as UCX, perftest's checks and the counters name it; ports begin with 1
_PORT = re.compile(r"[^:]+:[1-9][0-9]{0,2}")
_PORT_OF = ("DEVICE:PORT as 'mlx5_0:1'", "ibv_devinfo on a node names its devices and their ports")

#: how rails are named by protocol: a pattern, the same in words, and where the names stand
_RAIL_NAMES: Mapping[str, tuple[re.Pattern[str], str, str]] = {
    **dict.fromkeys(VERBS, (_PORT, *_PORT_OF)),
    "efa": (
        _PORT,
        "DEVICE:PORT as 'rdmap0s6:1'",
        "ls /sys/class/infiniband on a node names its devices; each has port 1",
    ),
    "opa": (
        DEVICE_NAMES["opa"],
        "hfi1_UNIT:PORT as 'hfi1_0:1'",
        "ls /sys/class/infiniband on a node; a udev rule that renames hfi1_0 hides its unit",
    ),
    "slingshot": (
        DEVICE_NAMES["slingshot"],
        "the device as 'cxi0', not its interface hsn0",
        "ls /sys/class/net/hsn0/device/cxi on a node",
    ),
}


def check_unlike(path: Path, references: Iterable[ReferenceSpec], lines: Lines) -> None:
    """Refuse two values for one thing: the later would silently replace the earlier."""
    seen: dict[tuple[Any, ...], list[str | None]] = {}
    for index, spec in enumerate(references):
        apart = {"value", "tolerance", "origin", "stack_digest"}
        same = {**spec.model_dump(exclude=apart), "quantity": quantity_of(spec)}
        builds = seen.setdefault(tuple(same.values()), [])
        if any(same_build(spec.stack_digest, other) for other in builds):
            raise ConfigError(
                f"a second value of {spec.quantity!r} for the same runs",
                source=str(path),
                line=line_of(("references", index, "quantity"), lines),
                expected="one value",
                got=repr(spec.value),
            )
        builds.append(spec.stack_digest)


def check_unique(path: Path, lines: Lines, tables: dict[str, Any]) -> None:
    """Refuse two tables of one kind with one name: only the first would ever be found."""
    for table, items in tables.items():
        seen: set[str] = set()
        for index, item in enumerate(items):
            if item.name in seen:
                raise ConfigError(
                    f"two {table} share the name {item.name!r}",
                    source=str(path),
                    line=line_of((table, index, "name"), lines),
                    expected="unique names",
                )
            seen.add(item.name)


def check_names(path: Path, main: SiteFile, lines: Lines, fabrics: Iterable[FabricSpec]) -> None:
    """Refuse a partition with a stack or a fabric that no file defines."""
    known = {
        "stacks": {each.name for each in main.stacks},
        "fabrics": {each.name for each in fabrics},
    }
    for index, partition in enumerate(main.partitions):
        for key, names in known.items():
            for name in getattr(partition, key):
                if name not in names:
                    raise ConfigError(
                        f"partition {partition.name!r} names an unknown {key.rstrip('s')}",
                        source=str(path),
                        line=line_of(("partitions", index, key), lines),
                        expected=f"one of {', '.join(sorted(names))}",
                        got=repr(name),
                    )


def check_gpus(path: Path, partitions: Iterable[PartitionSpec], lines: Lines) -> None:
    """Refuse GPUs in no known slot, or for a stack that their partition has not."""
    for index, partition in enumerate(partitions):
        gpus = partition.gpus
        if gpus is None:
            continue
        for name in gpus.stacks:
            if name not in partition.stacks:
                raise ConfigError(
                    f"the gpus of partition {partition.name!r} name another stack",
                    source=str(path),
                    line=line_of(("partitions", index, "gpus", "stacks"), lines),
                    expected=f"one of {', '.join(partition.stacks)}",
                    got=repr(name),
                )
        try:
            find_slot(gpus.pcie or "3.0x16")
        except FabricproofError as error:
            raise ConfigError(
                f"the gpus of partition {partition.name!r}: {error.problem}",
                source=str(path),
                line=line_of(("partitions", index, "gpus", "pcie"), lines),
                expected=error.expected,
                got=error.got,
                next_step=error.next_step,
            ) from None


def check_recipes(path: Path, stacks: Iterable[StackSpec], lines: Lines) -> None:
    """Refuse what would silently be ignored: wishes for Spack on a stack that it does not build."""
    for index, stack in enumerate(stacks):
        wish = next((key for key in ("mpi_spec", "options") if getattr(stack, key)), None)
        if stack.spack is None and wish is not None:
            raise ConfigError(
                f"stack {stack.name!r} has {wish} and is not built by Spack",
                source=str(path),
                line=line_of(("stacks", index, wish), lines),
                expected='spack = "FOLDER" beside it',
            )


def check_containers(
    path: Path, stacks: Sequence[StackSpec], partitions: Sequence[PartitionSpec], lines: Lines
) -> None:
    """Refuse a container that cannot be started, or whose programs would not be those measured.

    Raises:
        ConfigError: the first such table, with its line.
    """
    for index, stack in enumerate(stacks):
        if stack.container is None:
            continue
        users = [each for each in partitions if stack.name in each.stacks]
        launchers = {stack.launcher or each.launcher for each in users}
        for key, (expected, got) in _container_faults(stack, launchers).items():
            raise ConfigError(
                f"the container of stack {stack.name!r} cannot be used so",
                source=str(path),
                line=line_of(("stacks", index, "container", key), lines),
                expected=expected,
                got=repr(got),
            )


def _container_faults(
    stack: StackSpec, launchers: Collection[str]
) -> Mapping[str, tuple[str, str]]:
    """Return key of the table -> what was expected of it, and what it says."""
    spec = stack.container
    assert spec is not None
    faults = {}
    known = RUNTIMES
    if spec.runtime not in known and "{image}" not in spec.runtime:
        expected = f"{', '.join(known)}, or a command with {{image}} and {{folder}} in it"
        faults["runtime"] = (expected, spec.runtime)
    elif spec.runtime == "pyxis" and {*launchers} - {"srun"}:
        faults["runtime"] = ('launcher = "srun" of the stack: Pyxis is a part of it', spec.runtime)
    if spec.binds and spec.runtime not in known:
        faults["binds"] = ("such folders in the command of runtime itself", spec.binds[0])
    if stack.spack or stack.provisioned:
        builder = "spack" if stack.spack else "provisioned"
        faults["image"] = (f"no {builder} beside it: the programs are in the image", spec.image)
    elif not stack.suites:
        faults["image"] = ('suites = { osu = "FOLDER IN THE IMAGE" } of the stack', spec.image)
    return faults


def check_baseline(path: Path, name: str | None, lines: Lines) -> None:
    """Refuse a baseline that is not there: nobody would miss its judgement."""
    folder = path.parent / "baselines"
    if name is not None and not (folder / f"{name}.json").is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.json"))) or "none"
        raise ConfigError(
            "no such baseline",
            source=str(path),
            line=line_of(("site", "baseline"), lines),
            expected=f"a file in {folder.name}/: {known}",
            got=repr(name),
            next_step=f"fabricproof baseline freeze {name} RUNS, or leave the line out",
        )


def check_physics(path: Path, file: FabricFile, lines: Lines) -> None:
    """Refuse a fabric without a ceiling, of its rails together and of each by itself."""
    for index, spec in enumerate(file.fabrics):
        if spec.link is None:
            continue
        names = tuple(rail.interface for rail in spec.rails)
        try:
            build_fabric(spec, names)
            for name in names:
                build_fabric(spec, (name,))
        except FabricproofError as error:
            raise ConfigError(
                f"fabric {spec.name!r}: {error.problem}",
                source=str(path),
                line=line_of(("fabrics", index, *_guilty_key(spec, error)), lines),
                expected=error.expected,
                got=error.got,
                next_step=error.next_step,
            ) from None


def check_rails(
    path: Path, fabrics: Iterable[FabricSpec], protocols: Mapping[str, str], lines: Lines
) -> None:
    """Refuse a rail that its protocol's library cannot find: no byte of it could ever be counted.

    UCX finds no device by the name of an interface or without a port, and a path without a colon
    is taken for sockets (``traffic.wrong_path.is_verbs``).

    A fabric without a link is judged by nothing and left alone.

    Raises:
        ConfigError: the first such rail, with its line.
    """
    for index, spec in enumerate(fabrics):
        protocol = protocols[spec.name]
        if spec.link is None or protocol not in _RAIL_NAMES:
            continue
        pattern, expected, next_step = _RAIL_NAMES[protocol]
        goes = "ports of RDMA devices" if pattern is _PORT else "devices by their own names"
        for place, rail in enumerate(spec.rails):
            if not pattern.fullmatch(rail.interface):
                raise ConfigError(
                    f"fabric {spec.name!r}: {protocol} goes over {goes}",
                    source=str(path),
                    line=line_of(("fabrics", index, "rails", place, "interface"), lines),
                    expected=expected,
                    got=repr(rail.interface),
                    next_step=next_step,
                )


def _guilty_key(spec: FabricSpec, error: FabricproofError) -> tuple[str | int, ...]:
    """Return which key of the fabric an error of the physics speaks of."""
    if error.problem == "a rail twice":
        return ("rails",)
    got = (error.got or "").strip("'\"")
    for key in ("link", "protocol", "mtu", "pcie", "max_payload_bytes"):
        if str(getattr(spec, key)) == got:
            return (key,)
    for place, rail in enumerate(spec.rails):
        for key in ("link", "pcie", "max_payload_bytes"):
            if str(getattr(rail, key)) == got:
                return ("rails", place, key)
    return ("link",)


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


def check_layouts(
    path: Path,
    references: Sequence[ReferenceSpec],
    fabrics: Sequence[FabricSpec],
    partitions: Sequence[PartitionSpec],
    lines: Lines,
) -> None:
    """Refuse rails, nodes and ranks that no check has: the reference would judge nothing.

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
