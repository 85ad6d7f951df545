"""One site as the rest of the house sees it: what its files declare, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.core.errors import ConfigError
from fabricproof.core.measure import Finding, FindingKind
from fabricproof.core.provenance import SHOWN_DIGITS, is_build
from fabricproof.physics import Fabric
from fabricproof.site.physics import build_fabric
from fabricproof.site.schema import (
    FabricSpec,
    NightSpec,
    PartitionSpec,
    ReferenceSpec,
    SiteSpec,
    StackSpec,
    SwitchSpec,
)
from fabricproof.verdict.reference import Reference, from_text

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
    ) -> tuple[Finding, ...]:
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
            Finding(
                text=f"the site's reference {spec.quantity} = {spec.value} was measured with build "
                f"{spec.stack_digest[:SHOWN_DIGITS]}, {this}: it does not apply",
                kind=FindingKind.OTHER_BUILD,
            )
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


def _named(items: Iterable[_Item], name: str, kind: str, source: Path) -> _Item:
    known = []
    for item in items:
        if item.name == name:
            return item
        known.append(item.name)
    raise ConfigError(
        f"unknown {kind}", source=str(source), expected=f"one of {', '.join(known)}", got=repr(name)
    )
