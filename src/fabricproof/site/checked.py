"""What no schema can say of site files: names defined once, fabrics that physics knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, FabricproofError
from fabricproof.core.provenance import same_build
from fabricproof.site.complaint import Lines
from fabricproof.site.locate import line_of
from fabricproof.site.physics import build_fabric
from fabricproof.site.schema import FabricFile, FabricSpec, ReferenceSpec, SiteFile, StackSpec
from fabricproof.traffic.transports import VERBS

#: a port of an RDMA device as UCX, perftest's checks and the counters name it; ports begin with 1
_PORT = re.compile(r"[^:]+:[1-9][0-9]{0,2}")


def check_unlike(path: Path, references: Iterable[ReferenceSpec], lines: Lines) -> None:
    """Refuse two values for one thing: the later would silently replace the earlier."""
    seen: dict[tuple[Any, ...], list[str | None]] = {}
    for index, spec in enumerate(references):
        apart = {"value", "tolerance", "origin", "stack_digest"}
        builds = seen.setdefault(tuple(spec.model_dump(exclude=apart).values()), [])
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
    """Refuse a rail of a verbs fabric that is no port: no byte of it could ever be counted.

    UCX finds no device by the name of an interface or without a port, and a road without a colon
    is taken for sockets (``traffic.wrong_path.is_verbs``).

    Args:
        path: of ``fabric.toml``.
        fabrics: what it says; one without a link is judged by nothing and left alone.
        protocols: of each fabric, by its name.
        lines: where its keys stand.

    Raises:
        ConfigError: the first such rail, with its line.
    """
    for index, spec in enumerate(fabrics):
        if spec.link is None or protocols[spec.name] not in VERBS:
            continue
        for place, rail in enumerate(spec.rails):
            if not _PORT.fullmatch(rail.interface):
                raise ConfigError(
                    f"fabric {spec.name!r}: {protocols[spec.name]} goes over ports of RDMA devices",
                    source=str(path),
                    line=line_of(("fabrics", index, "rails", place, "interface"), lines),
                    expected="DEVICE:PORT as 'mlx5_0:1'",
                    got=repr(rail.interface),
                    next_step="ibv_devinfo on a node names its devices and their ports",
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
