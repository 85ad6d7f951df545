"""What no schema of one table can say: names, rails, transports and references that fit together.

Each check yields what does not fit with the key it stands at; the loader turns the first into an
error with its file and line.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import FabricproofError
from fabricproof.core.provenance import same_build
from fabricproof.physics import find_slot
from fabricproof.site.model import Site, build_fabric, protocol_of, quantity_of, to_reference
from fabricproof.site.schema import OF_FABRICS, RUNTIMES, FabricSpec, PartitionSpec, StackSpec
from fabricproof.site.toml_file import Key, did_you_mean
from fabricproof.traffic.transports import (
    DEVICE_NAMES,
    VERBS,
    transport_refusal,
    transports_of,
    transports_over,
)


@dataclass(frozen=True)
class Misfit:
    """What does not fit, and the key it stands at; the rest as in a ConfigError."""

    key: Key
    problem: str
    expected: str | None
    got: str | None = None
    next_step: str | None = None


def misfits(site: Site) -> Iterator[Misfit]:
    """Yield what in a site's files does not fit together; later checks rely on earlier ones."""
    for table in ("partitions", "stacks", "fabrics"):
        names = [each.name for each in getattr(site, table)]
        for index, name in enumerate(names):
            if name in names[:index]:
                problem = f"two {table} share the name {name!r}"
                yield Misfit((table, index, "name"), problem, "unique names")
    yield from _names(site)
    for index, fabric in enumerate(site.fabrics):
        yield from _fabric(index, fabric)
    for index, partition in enumerate(site.partitions):
        yield from _partition(index, partition)
    for index, stack in enumerate(site.stacks):
        yield from _stack(index, stack, site)
    yield from _references(site)
    baselines = site.folder / "baselines"
    name = site.spec.baseline
    if name is not None and not (baselines / f"{name}.json").is_file():
        there = ", ".join(sorted(each.stem for each in baselines.glob("*.json"))) or "none"
        mend = f"fabricproof baseline freeze {name} RUNS, or leave the line out"
        expected = f"a file in baselines/: {there}"
        yield Misfit(("site", "baseline"), "no such baseline", expected, repr(name), mend)


def _names(site: Site) -> Iterator[Misfit]:
    """Yield names of stacks and fabrics that no file defines."""
    known = {
        "stack": [each.name for each in site.stacks],
        "fabric": [each.name for each in site.fabrics],
    }
    for index, partition in enumerate(site.partitions):
        named: list[tuple[Key, str, str, list[str]]] = [
            *((("fabrics",), "fabric", name, known["fabric"]) for name in partition.fabrics),
            *((("stacks",), "stack", name, known["stack"]) for name in partition.stacks),
        ]
        if partition.gpus:
            stacks = partition.stacks
            named += [(("gpus", "stacks"), "stack", name, stacks) for name in partition.gpus.stacks]
        for key, kind, name, names in named:
            if name not in names:
                problem = f"partition {partition.name!r} names an unknown {kind}"
                where = ("partitions", index, *key)
                yield Misfit(where, problem, did_you_mean(name, names), repr(name))
    for index, spec in enumerate(site.references):
        if spec.check is not None:
            continue  # it may run where ours do not
        for kind, names in known.items():
            stated = getattr(spec, kind)
            if stated is not None and stated not in names:
                where = ("references", index, kind)
                yield Misfit(where, f"unknown {kind}", did_you_mean(stated, names), repr(stated))


#: a port of an RDMA device as UCX, perftest and the counters name it; ports begin with 1
_PORT = re.compile(r"[^:]+:[1-9][0-9]{0,2}")

#: how rails are named, by protocol: a pattern, the same in words, and where the names stand
_RAIL_NAMES: Mapping[str, tuple[re.Pattern[str], str, str]] = {
    **dict.fromkeys(VERBS, (_PORT, "DEVICE:PORT as 'mlx5_0:1'", "ibv_devinfo on a node")),
    "efa": (_PORT, "DEVICE:PORT as 'rdmap0s6:1'", "ls /sys/class/infiniband on a node"),
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


def _fabric(index: int, spec: FabricSpec) -> Iterator[Misfit]:
    """Yield why a fabric has no ceiling, or rails that its protocol's library cannot find."""
    rails = [rail.interface for rail in spec.rails]
    names = [name for rail in spec.rails for name in (rail.interface, *rail.other_names)]
    if len(set(names)) != len(names):
        expected = f"each name of {spec.name!r} once"
        yield Misfit(("fabrics", index, "rails"), f"fabric {spec.name!r}: a rail twice", expected)
    if spec.link is None:
        return
    try:
        for chosen in (rails, *([name] for name in rails)):
            build_fabric(spec, tuple(chosen))
    except FabricproofError as error:
        key = ("fabrics", index, *_guilty_key(spec, error))
        problem = f"fabric {spec.name!r}: {error.problem}"
        yield Misfit(key, problem, error.expected, error.got, error.next_step)
        return
    if (protocol := protocol_of(spec)) not in _RAIL_NAMES:
        return
    pattern, expected, where = _RAIL_NAMES[protocol]
    for place, rail in enumerate(spec.rails):
        for name in (rail.interface, *rail.other_names):
            if not pattern.fullmatch(name):
                field = "interface" if name == rail.interface else "other_names"
                key = ("fabrics", index, "rails", place, field)
                problem = f"fabric {spec.name!r}: no name of a device of {protocol}"
                yield Misfit(key, problem, expected, repr(name), f"see: {where}")


def _guilty_key(spec: FabricSpec, error: FabricproofError) -> Key:
    """Return which key of the fabric an error of the physics is about."""
    got = (error.got or "").strip("'\"")
    for key in ("link", "protocol", "mtu", "pcie", "max_payload_bytes"):
        if str(getattr(spec, key)) == got:
            return (key,)
        for place, rail in enumerate(spec.rails):
            if str(getattr(rail, key, None)) == got:
                return ("rails", place, key)
    return ("link",)


def _partition(index: int, partition: PartitionSpec) -> Iterator[Misfit]:
    where: Key = ("partitions", index)
    if partition.gpus and partition.gpus.pcie:
        try:
            find_slot(partition.gpus.pcie)
        except FabricproofError as error:
            problem = f"the gpus of partition {partition.name!r}: {error.problem}"
            yield Misfit((*where, "gpus", "pcie"), problem, error.expected, error.got)
    yield from _reframe((*where, "reframe"), partition.reframe, "partitions")


def _stack(index: int, stack: StackSpec, site: Site) -> Iterator[Misfit]:
    """Yield what would be ignored, cannot be started, or could never be measured."""
    where: Key = ("stacks", index)
    for wish in ("mpi_spec", "options"):
        if stack.spack is None and getattr(stack, wish):
            problem = f"stack {stack.name!r} has {wish} and is not built by Spack"
            yield Misfit((*where, wish), problem, 'spack = "FOLDER" beside it')
    if stack.family == "mvapich" and stack.version.startswith("2"):
        problem = f"stack {stack.name!r}: MVAPICH 2 takes other variables than MVAPICH 3 and 4"
        yield Misfit((*where, "family"), problem, 'family = "mvapich2"', repr(stack.family))
    if stack.spack is not None and stack.family in {"mvapich2", "craympich", "parastation"}:
        problem = f"stack {stack.name!r}: no recipe of spack-envs builds {stack.family}"
        yield Misfit((*where, "spack"), problem, "its modules", repr(stack.spack))
    yield from _reframe((*where, "reframe"), stack.reframe, "environments")
    users = [each for each in site.partitions if stack.name in each.stacks]
    for key, expected, got in _container(stack, {stack.launcher or p.launcher for p in users}):
        problem = f"the container of stack {stack.name!r} cannot be used so"
        yield Misfit((*where, "container", key), problem, expected, repr(got))
    if stack.transport is None:
        return
    at, known = (*where, "transport"), transports_of(stack.family)
    if stack.transport not in known:
        problem = f"stack {stack.name!r}: {stack.family} has no such transport"
        yield Misfit(at, problem, f"one of {', '.join(known)}", repr(stack.transport))
        return
    for partition in users:
        # One fabric that has the transport is enough; over the others the stack is SKIPPED.
        spoken = sorted({protocol_of(site.fabric_spec(name)) for name in partition.fabrics})
        if all(transport_refusal(stack.family, each, stack.transport) for each in spoken):
            fitting = sorted({t for each in spoken for t in transports_over(stack.family, each)})
            problem = f"stack {stack.name!r}: no fabric of partition {partition.name!r} has its "
            expected = f"one of {', '.join(fitting) or 'none'} over {', '.join(spoken)}"
            yield Misfit(at, f"{problem}transport", expected, repr(stack.transport))


def _container(stack: StackSpec, launchers: set[str]) -> Iterator[tuple[str, str, str]]:
    spec = stack.container
    if spec is None:
        return
    if spec.runtime not in RUNTIMES and "{image}" not in spec.runtime:
        expected = f"{', '.join(RUNTIMES)}, or a command with {{image}} and {{folder}} in it"
        yield "runtime", expected, spec.runtime
    elif spec.runtime == "pyxis" and launchers - {"srun"}:
        yield "runtime", 'launcher = "srun" of the stack: Pyxis is a part of it', spec.runtime
    if spec.binds and spec.runtime not in RUNTIMES:
        yield "binds", "such folders in the command of runtime itself", spec.binds[0]
    if stack.spack or stack.provisioned:
        builder = "spack" if stack.spack else "provisioned"
        yield "image", f"no {builder} beside it: the programs are in the image", spec.image
    elif not stack.suites:
        yield "image", 'suites = { osu = "FOLDER IN THE IMAGE" } of the stack', spec.image


#: keys that the site file itself states, or that are guards
_OURS = {
    "partitions": "name scheduler launcher access environs max_jobs",
    "environments": "name target_systems",
}


def _reframe(where: Key, stated: Mapping[str, Any], table: str) -> Iterator[Misfit]:
    """Yield keys that ReFrame's own schema has not, or that stand elsewhere in the site file."""
    ours = _OURS[table].split()
    for key in stated:
        if key in ours:
            problem = f"[{where[0]}.reframe] may not set {key}"
            yield Misfit((*where, key), problem, "the key of the site file itself")
        elif (known := _reframe_keys(table)) and key not in known:
            problem = f"[{where[0]}.reframe] has a key that ReFrame does not know"
            yield Misfit((*where, key), problem, did_you_mean(key, known - {*ours}), repr(key))


@functools.cache
def _reframe_keys(table: str) -> set[str]:
    """Return the keys of ReFrame's partition or environment by its schema; none if not found."""
    package = importlib.util.find_spec("reframe")
    for folder in (package and package.submodule_search_locations) or ():
        path = Path(folder, "schemas", "config.json")
        if path.is_file():
            top = json.loads(path.read_text(encoding="utf-8"))["properties"]
            inside = top["systems"]["items"]["properties"] if table == "partitions" else top
            return {*inside[table]["items"]["properties"]}
    return set()


#: keys of a reference for a fabric alone, and of one for a check of the site's own alone
_NOT_OF_CHECKS = (
    *("fabric", "suite", "program", "num_rails", "hops", "num_nodes", "ranks_per_node"),
    "stack_digest",
)
_OF_CHECKS = ("partition", "better")


def _references(site: Site) -> Iterator[Misfit]:
    """Yield references that are no quantity, stand twice, or would judge nothing."""
    seen: dict[tuple[Any, ...], list[str | None]] = {}
    for index, spec in enumerate(site.references):
        where: Key = ("references", index)
        if spec.check is None and not re.fullmatch(OF_FABRICS, spec.quantity):
            expected = "bandwidth, latency, device_busbw, mpi_share, one size of it as latency_8B; "
            expected += "a quantity of your own check with check = NAME"
            yield Misfit((*where, "quantity"), "unknown quantity", expected, repr(spec.quantity))
            continue
        own = spec.check is not None
        needed, refused = ("better", _NOT_OF_CHECKS) if own else ("fabric", _OF_CHECKS)
        kind = "your own check" if own else "a fabric"
        if getattr(spec, needed) is None:
            yield Misfit(where, f"missing key {needed!r}", f"it in a reference of {kind}")
        for key in refused:
            if getattr(spec, key) is not None:
                problem = f"unknown key {key!r} in a reference of {kind}"
                yield Misfit((*where, key), problem, "another reference, or none", repr(key))
        try:
            to_reference(spec)
        except FabricproofError as error:
            key = "tolerance" if "tolerance" in error.problem else "value"
            yield Misfit((*where, key), error.problem, error.expected, error.got)
            continue
        besides = {"value", "tolerance", "origin", "stack_digest"}
        same = {**spec.model_dump(exclude=besides), "quantity": quantity_of(spec)}
        builds = seen.setdefault(tuple(same.values()), [])
        if any(same_build(spec.stack_digest, other) for other in builds):
            problem = f"a second value of {spec.quantity!r} for the same runs"
            yield Misfit((*where, "quantity"), problem, "one value", repr(spec.value))
        builds.append(spec.stack_digest)
        if spec.fabric is None:
            continue
        users = [each for each in site.partitions if spec.fabric in each.fabrics]
        rails = len(site.fabric_spec(spec.fabric).rails)
        for key, known in (
            ("num_rails", {*range(1, rails + 1)}),
            ("num_nodes", {count for each in users for count in _node_counts(each)}),
            ("ranks_per_node", {count for each in users for count in each.ranks_per_node}),
        ):
            stated = getattr(spec, key)
            # A fabric that no partition has is for later.
            if stated is not None and known and stated not in known:
                problem = f"a reference for {key} = {stated} would judge nothing"
                there = f"one of {', '.join(map(str, sorted(known)))}, as site.toml and fabric.toml"
                yield Misfit((*where, key), problem, there, str(stated))


def _node_counts(partition: PartitionSpec) -> set[int]:
    """Return the numbers of nodes that collectives are measured on: powers of two, and all."""
    counts = {1 << power for power in range(1, partition.num_nodes.bit_length())}
    return {*counts, partition.num_nodes}
