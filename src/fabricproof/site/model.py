"""One site as the rest of the house sees it: what its files declare, by name and as physics."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.core.errors import ConfigError
from fabricproof.core.findings import Finding, FindingKind
from fabricproof.core.provenance import SHOWN_DIGITS, is_build
from fabricproof.physics import Fabric, Gpus, Shaper, bound, find_link, find_slot
from fabricproof.site.schema import (
    FabricSpec,
    GpuSpec,
    NightSpec,
    PartitionSpec,
    RailSpec,
    ReferenceSpec,
    SiteSpec,
    StackSpec,
)
from fabricproof.site.toml_file import did_you_mean
from fabricproof.verdict.references import from_text, open_reference
from fabricproof.verdict.value import Reference, Source


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
    link = min(
        (find_link(rail.link or spec.link) for rail in chosen), key=attrgetter("data_rate_gbit_s")
    )
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


def gpus_of(spec: GpuSpec, num_gpus: int) -> Gpus:
    """Return the physics of declared GPUs, of which ``num_gpus`` of a node send at once.

    Raises:
        ConfigError: an unknown slot.
    """
    slot = find_slot(spec.pcie) if spec.pcie else None
    return Gpus(slot=slot, num_gpus=num_gpus, direct=spec.direct)


def protocol_of(spec: FabricSpec) -> str:
    """Return the protocol of a declared fabric; sockets where it has no link at all."""
    return "tcp" if spec.link is None else build_fabric(spec, ()).framing.name


def _unlike_rails(spec: FabricSpec, chosen: list[RailSpec]) -> float | None:
    """Return the sum of the rails' own ceilings where they are not alike, None where they are."""
    if spec.rails_share_slot or len({(r.link, r.pcie, r.max_payload_bytes) for r in chosen}) < 2:
        return None
    return sum(bound(build_fabric(spec, (rail.interface,))).high_mb_s for rail in chosen)


#: what narrows a reference to some runs
_ASKED = ("suite", "program", "stack", "num_rails", "hops", "num_nodes", "ranks_per_node")
_SPECIFIC = (*_ASKED, "stack_digest")

_Item = TypeVar("_Item", PartitionSpec, StackSpec, FabricSpec)


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
    _fabrics: dict[tuple[str, tuple[str, ...], int], Fabric] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

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
        key = name, tuple(rails), num_flows
        if key not in self._fabrics:
            self._fabrics[key] = build_fabric(self.fabric_spec(name), key[1], num_flows=num_flows)
        return self._fabrics[key]

    def references_for(
        self, *, fabric: str, stack_digest: str = "", **asked: str | int | None
    ) -> dict[str, Reference]:
        """Return the site's references that apply, by quantity; the most specific one wins.

        What is expected of one layout applies to that layout only, and what names a build to that
        build: see :meth:`references_of_other_builds`.

        Args:
            fabric: the one that was measured.
            stack_digest: the build of the stack; empty if unknown.
            asked: suite, program, stack, num_rails, hops, num_nodes, ranks_per_node.
        """
        chosen: dict[str, tuple[int, ReferenceSpec]] = {}
        for spec in self._references_to(fabric, asked):
            if spec.stack_digest is not None and not is_build(spec.stack_digest, stack_digest):
                continue
            rank = sum(getattr(spec, key) is not None for key in _SPECIFIC)
            quantity = quantity_of(spec)
            if rank >= chosen.get(quantity, (-1, spec))[0]:
                chosen[quantity] = (rank, spec)
        return {quantity: to_reference(spec) for quantity, (_, spec) in chosen.items()}

    def references_of_check(self, check: str, partition: str, stack: str) -> dict[str, Reference]:
        """Return what is expected of a check of the site's own software, by quantity.

        The most specific one wins: one of a partition and a stack before one of a partition.
        """
        asked = {"check": check, "partition": partition, "stack": stack}
        ranked = sorted(
            (spec for spec in self.references if spec.check == check),
            key=lambda spec: (spec.partition is not None) + (spec.stack is not None),
        )
        return {
            spec.quantity: to_reference(spec)
            for spec in ranked
            if all(getattr(spec, key) in {None, value} for key, value in asked.items())
        }

    def references_of_other_builds(
        self, *, fabric: str, stack_digest: str, **asked: str | int | None
    ) -> tuple[Finding, ...]:
        """Return a sentence for each reference that would apply, were this the build it names."""
        this = f"this is {stack_digest[:SHOWN_DIGITS]}" if stack_digest else "this is not known"
        return tuple(
            Finding(
                text=f"the site's reference {spec.quantity} = {spec.value} was measured with build "
                f"{spec.stack_digest[:SHOWN_DIGITS]}, {this}: it does not apply",
                kind=FindingKind.OTHER_BUILD,
            )
            for spec in self._references_to(fabric, asked)
            if spec.stack_digest is not None and not is_build(spec.stack_digest, stack_digest)
        )

    def _references_to(
        self, fabric: str, asked: Mapping[str, str | int | None]
    ) -> Iterator[ReferenceSpec]:
        """Yield what is expected of a program.

        A collective must be named: a pair's latency is no expectation of what a hundred ranks do.
        """
        collective = collective_of(str(asked["suite"]), str(asked["program"])) is not None
        for spec in self.references:
            if spec.fabric != fabric or (collective and spec.program is None):
                continue
            stated = {key: getattr(spec, key) for key in _ASKED}
            if all(each is None or asked.get(key) == each for key, each in stated.items()):
                yield spec


def quantity_of(spec: ReferenceSpec) -> str:
    """Return the quantity as the judge spells it: ``bandwidth_1024KiB`` is ``bandwidth_1MiB``."""
    if spec.check is not None:
        return spec.quantity
    return _spelt(spec.quantity, spec.value)


@functools.cache
def _spelt(quantity: str, value: str) -> str:
    # A plan asks thousands of times.
    return from_text(f"{quantity}={value}", tolerance=None, origin="")[0]


def to_reference(spec: ReferenceSpec) -> Reference:
    """Return the reference record of one line of ``references.toml``."""
    origin = f"site ({spec.origin})"
    if spec.check is not None:
        reference = open_reference(
            spec.value,
            more_is_better=spec.better == "more",
            tolerance=spec.tolerance,
            origin=origin,
        )
    else:
        text = f"{spec.quantity}={spec.value}"
        _, reference = from_text(text, tolerance=spec.tolerance, origin=origin)
    return replace(reference, source=Source.SITE)


def _named(items: Iterable[_Item], name: str, kind: str, source: Path) -> _Item:
    known = {item.name: item for item in items}
    if name in known:
        return known[name]
    expected = did_you_mean(name, known)
    raise ConfigError(f"unknown {kind}", source=str(source), expected=expected, got=repr(name))
