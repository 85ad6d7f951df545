"""Read a site folder into one frozen object, or say in one line what is wrong with it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fabricproof.collective import collective_of
from fabricproof.errors import ConfigError, FabricproofError, InputMissingError
from fabricproof.fabric import Fabric, Shaper, bound, find_link, find_slot
from fabricproof.provenance import SHOWN_DIGITS, is_build, same_build
from fabricproof.reference import Reference, from_text
from fabricproof.site.carried import check_transports
from fabricproof.site.complaint import Lines, first_complaint
from fabricproof.site.holds import check_layouts
from fabricproof.site.locate import line_of, positions
from fabricproof.site.schema import (
    FabricFile,
    FabricSpec,
    NightSpec,
    PartitionSpec,
    RailSpec,
    ReferenceFile,
    ReferenceSpec,
    SiteFile,
    SiteSpec,
    StackSpec,
    SwitchSpec,
)

_File = TypeVar("_File", bound=BaseModel)

#: overrides the folder that holds one folder per site
SITES_VARIABLE = "FABRICPROOF_SITES"


@dataclass(frozen=True, kw_only=True)
class Site:
    """One site, validated: every name that one file mentions is defined in another."""

    folder: Path
    spec: SiteSpec
    partitions: tuple[PartitionSpec, ...]
    stacks: tuple[StackSpec, ...]
    fabrics: tuple[FabricSpec, ...]
    references: tuple[ReferenceSpec, ...]
    reframe: dict[str, Any]
    night: NightSpec = field(default_factory=NightSpec)
    switches: dict[str, SwitchSpec] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The site's name, which is ReFrame's system name."""
        return self.spec.name

    def partition(self, name: str) -> PartitionSpec:
        """Return partition ``name`` or say which there are."""
        return _named(self.partitions, name, "partition", self.folder / "site.toml")

    def stack(self, name: str) -> StackSpec:
        """Return stack ``name`` or say which there are."""
        return _named(self.stacks, name, "stack", self.folder / "site.toml")

    def fabric_spec(self, name: str) -> FabricSpec:
        """Return the declaration of fabric ``name`` or say which there are."""
        return _named(self.fabrics, name, "fabric", self.folder / "fabric.toml")

    def fabric(self, name: str, rails: Iterable[str] = (), *, num_flows: int = 1) -> Fabric:
        """Return the physics of fabric ``name`` over ``rails`` (interfaces; none: the first).

        The rails' own links and slots count: over unlike rails the slowest one is taken for each,
        which is what striping in equal shares delivers.
        """
        return build_fabric(self.fabric_spec(name), tuple(rails), num_flows=num_flows)

    def references_for(
        self,
        *,
        fabric: str,
        suite: str,
        program: str,
        stack: str,
        num_rails: int,
        hops: int | None = None,
        num_nodes: int | None = None,
        ranks_per_node: int | None = None,
        stack_digest: str = "",
    ) -> dict[str, Reference]:
        """Return the site's references that apply, by quantity; the most specific one wins.

        What is expected of one layout applies to that layout only.
        One that names another build than ``stack_digest`` does not apply: see
        :meth:`references_of_other_builds`.
        """
        asked = {
            "suite": suite,
            "program": program,
            "stack": stack,
            "num_rails": num_rails,
            "hops": hops,
            "num_nodes": num_nodes,
            "ranks_per_node": ranks_per_node,
        }
        chosen: dict[str, tuple[int, ReferenceSpec]] = {}
        for spec in self._references_to(fabric, asked):
            rank = sum(getattr(spec, key) is not None for key in (*asked, "stack_digest"))
            if spec.stack_digest is not None and not is_build(spec.stack_digest, stack_digest):
                continue
            if rank >= chosen.get(spec.quantity, (-1, spec))[0]:
                chosen[spec.quantity] = (rank, spec)
        return {quantity: to_reference(spec) for quantity, (_, spec) in chosen.items()}

    def references_of_other_builds(
        self,
        *,
        fabric: str,
        suite: str,
        program: str,
        stack: str,
        num_rails: int,
        stack_digest: str,
        hops: int | None = None,
    ) -> tuple[str, ...]:
        """Return a sentence for each reference that would apply, were this the build it names."""
        asked = {
            "suite": suite,
            "program": program,
            "stack": stack,
            "num_rails": num_rails,
            "hops": hops,
        }
        this = f"this is {stack_digest[:SHOWN_DIGITS]}" if stack_digest else "this is not known"
        return tuple(
            f"the site's reference {spec.quantity} = {spec.value} was measured with build "
            f"{spec.stack_digest[:SHOWN_DIGITS]}, {this}: it does not apply"
            for spec in self._references_to(fabric, asked)
            if spec.stack_digest is not None and not is_build(spec.stack_digest, stack_digest)
        )

    def _references_to(self, fabric: str, asked: dict[str, Any]) -> Iterator[ReferenceSpec]:
        """Yield what is expected of a program; a collective must be named, what is not is a pair's.

        A pair's latency is no expectation of what a hundred ranks do together.
        """
        collective = collective_of(asked["suite"], asked["program"]) is not None
        for spec in self.references:
            if collective and spec.program is None:
                continue
            stated = {key: getattr(spec, key) for key in asked if getattr(spec, key) is not None}
            if spec.fabric == fabric and all(asked[key] == value for key, value in stated.items()):
                yield spec


def to_reference(spec: ReferenceSpec) -> Reference:
    """Return the reference record of one line of ``references.toml``."""
    return from_text(
        f"{spec.quantity}={spec.value}", tolerance=spec.tolerance, origin=f"site ({spec.origin})"
    )[1]


_Item = TypeVar("_Item", PartitionSpec, StackSpec, FabricSpec)


def _named(items: Iterable[_Item], name: str, kind: str, source: Path) -> _Item:
    known = []
    for item in items:
        if item.name == name:
            return item
        known.append(item.name)
    raise ConfigError(
        f"unknown {kind}", source=str(source), expected=f"one of {', '.join(known)}", got=repr(name)
    )


def build_fabric(spec: FabricSpec, rails: tuple[str, ...], *, num_flows: int = 1) -> Fabric:
    """Return the physics of a declared fabric over the named rails, ``num_flows`` flows on each.

    Raises:
        ConfigError: an unknown rail, link, slot, protocol, MTU or MaxPayload.
    """
    by_name = {rail.interface: rail for rail in spec.rails}
    unknown = [rail for rail in rails if rail not in by_name]
    if unknown:
        raise ConfigError(
            f"fabric {spec.name!r} has no such rail",
            expected=f"one of {', '.join(by_name)}",
            got=repr(unknown[0]),
        )
    if len(set(rails)) != len(rails):
        raise ConfigError("a rail twice", expected=f"each rail of {spec.name!r} once")
    chosen = [by_name[name] for name in rails] or [spec.rails[0]]
    if spec.link is None:
        raise ConfigError(
            f"fabric {spec.name!r} has no link", expected="a fabric with a link, to judge by"
        )
    link = min((find_link(rail.link or spec.link) for rail in chosen), key=_rate)
    slots = [find_slot(text) for rail in chosen if (text := rail.pcie or spec.pcie)]
    payloads = [
        each for rail in chosen if (each := rail.max_payload_bytes or spec.max_payload_bytes)
    ]
    return Fabric(
        link=link,
        protocol=spec.protocol,
        mtu=spec.mtu,
        slot=min(slots, key=lambda slot: slot.raw_mb_s) if slots else None,
        max_payload_bytes=min(payloads) if payloads else None,
        num_rails=len(chosen),
        num_flows=num_flows,
        rails_share_slot=spec.rails_share_slot,
        flow_limit_gbit_s=spec.flow_limit_gbit_s,
        shaper=Shaper(**spec.shaper.model_dump()) if spec.shaper else None,
        capability_mb_s=spec.capability_gbit_s * 125 if spec.capability_gbit_s else None,
        unlike_rails_high_mb_s=_unlike_rails(spec, chosen),
    )


def protocol_of(spec: FabricSpec) -> str:
    """Return the protocol of a declared fabric; sockets where it has no link at all."""
    return "tcp" if spec.link is None else build_fabric(spec, ()).framing.name


def _unlike_rails(spec: FabricSpec, chosen: list[RailSpec]) -> float | None:
    """Return the sum of the rails' own ceilings where they are not alike, None where they are."""
    if spec.rails_share_slot or len({(r.link, r.pcie, r.max_payload_bytes) for r in chosen}) < 2:
        return None
    return sum(bound(build_fabric(spec, (rail.interface,))).high_mb_s for rail in chosen)


def _rate(link: Any) -> float:
    return float(link.data_rate_gbit_s)


def sites_root() -> Path:
    """Return the folder that holds one folder per site."""
    chosen = os.environ.get(SITES_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(__file__).resolve().parents[3] / "site-configs"


def site_folders() -> list[Path]:
    """Return the site folders there are, sorted by name."""
    root = sites_root()
    if not root.is_dir():
        return []
    return sorted(path.parent for path in root.glob("*/site.toml"))


def load_site(name_or_folder: str) -> Site:
    """Load and validate a site by name or folder.

    Raises:
        InputMissingError: no such site; the message lists those there are.
        ConfigError: a file is wrong; the message has file, line, expected and found.
    """
    folder = Path(name_or_folder)
    if not (folder / "site.toml").is_file():
        folder = sites_root() / name_or_folder
    if not (folder / "site.toml").is_file():
        known = ", ".join(path.name for path in site_folders()) or "none"
        raise InputMissingError(
            "no such site",
            expected=f"a folder with a site.toml, or one of: {known}",
            got=repr(name_or_folder),
        )
    main, main_lines = _load(folder / "site.toml", SiteFile)
    fabric, fabric_lines = _load(folder / "fabric.toml", FabricFile)
    references: list[ReferenceSpec] = []
    if (folder / "references.toml").is_file():
        references = _load_references(folder / "references.toml", fabric, main)
    site = Site(
        folder=folder,
        spec=main.site,
        partitions=tuple(main.partitions),
        stacks=tuple(main.stacks),
        fabrics=tuple(fabric.fabrics),
        references=tuple(references),
        reframe=dict(main.reframe),
        night=main.night,
        switches=dict(main.switches),
    )
    _check_unique(folder / "site.toml", main_lines, {"partitions": main.partitions})
    _check_unique(folder / "site.toml", main_lines, {"stacks": main.stacks})
    _check_unique(folder / "fabric.toml", fabric_lines, {"fabrics": fabric.fabrics})
    _check_names(folder / "site.toml", main, main_lines, site)
    _check_recipes(folder / "site.toml", main.stacks, main_lines)
    _check_baseline(folder / "site.toml", main.site.baseline, main_lines)
    _check_physics(folder / "fabric.toml", fabric, fabric_lines)
    protocols = {each.name: protocol_of(each) for each in fabric.fabrics}
    check_transports(folder / "site.toml", main.stacks, main.partitions, protocols, main_lines)
    return site


def _load(path: Path, model: type[_File]) -> tuple[_File, Lines]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}", source=str(path), expected="a site file"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8 text", source=str(path), got=error.reason) from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # tomllib says the place in its sentence only: "... (at line 3, column 5)".
        place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = int(place[1]) if place and place[1] else None
        problem = str(error).replace(place[0], "") if line and place else str(error)
        raise ConfigError(f"not valid TOML: {problem}", source=str(path), line=line) from None
    lines = positions(text)
    try:
        return model.model_validate(data), lines
    except ValidationError as error:
        raise first_complaint(path, error, lines, model) from None


def _load_references(path: Path, fabric: FabricFile, main: SiteFile) -> list[ReferenceSpec]:
    loaded, lines = _load(path, ReferenceFile)
    known = {
        "fabric": {each.name for each in fabric.fabrics},
        "stack": {each.name for each in main.stacks},
    }
    for index, spec in enumerate(loaded.references):
        for key, names in known.items():
            value = getattr(spec, key)
            if value is not None and value not in names:
                raise ConfigError(
                    f"unknown {key}",
                    source=str(path),
                    line=line_of(("references", index, key), lines),
                    expected=f"one of {', '.join(sorted(names))}",
                    got=repr(value),
                )
        try:
            to_reference(spec)
        except FabricproofError as error:
            raise ConfigError(
                error.problem,
                source=str(path),
                line=line_of(("references", index, _guilty_fact(error)), lines),
                expected=error.expected,
                got=error.got,
            ) from None
    _check_unlike(path, loaded.references, lines)
    check_layouts(path, loaded.references, fabric.fabrics, main.partitions, lines)
    return list(loaded.references)


def _guilty_fact(error: FabricproofError) -> str:
    return "tolerance" if "tolerance" in error.problem else "value"


def _check_unlike(path: Path, references: Iterable[ReferenceSpec], lines: Lines) -> None:
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


def _check_unique(path: Path, lines: Lines, tables: dict[str, Any]) -> None:
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


def _check_names(path: Path, main: SiteFile, lines: Lines, site: Site) -> None:
    known = {
        "stacks": {each.name for each in main.stacks},
        "fabrics": {each.name for each in site.fabrics},
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


def _check_recipes(path: Path, stacks: Iterable[StackSpec], lines: Lines) -> None:
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


def _check_baseline(path: Path, name: str | None, lines: Lines) -> None:
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


def _check_physics(path: Path, file: FabricFile, lines: Lines) -> None:
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
                line=line_of(("fabrics", index, _guilty_key(spec, error)), lines),
                expected=error.expected,
                got=error.got,
                next_step=error.next_step,
            ) from None


def _guilty_key(spec: FabricSpec, error: FabricproofError) -> str:
    """Return which key of the fabric an error of the physics speaks of."""
    if error.problem == "a rail twice":
        return "rails"
    got = (error.got or "").strip("'\"")
    for key in ("link", "protocol", "mtu", "pcie", "max_payload_bytes"):
        if str(getattr(spec, key)) == got:
            return key
    return "link"
