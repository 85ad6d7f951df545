"""Which build a number was measured with, and of which leg.

Numbers of two builds stand beside each other only where somebody asked for that; they are never
pooled, and a reference that one build was measured with does not judge another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from json import dumps
from typing import Any

from fabricproof.core.hostlist import fold

#: hexadecimal digits of a digest that are shown; 48 bits, no two builds of a site share them
SHOWN_DIGITS = 12

#: characters of a value that are shown where two differ
SHOWN_TEXT = 100

#: the parts of a Spack spec: name, @version, +variant, ~variant, key=value; words of other texts
_SPEC_PART = re.compile(r"[@+~]?[^\s@+~]+")

#: key of a record that holds the identity, and of one that holds what it was after the run
IDENTITY_KEY = "stack_identity"
AFTERWARDS_KEY = "stack_identity_afterwards"

#: key of a leg's record that holds the SHA-256 of the file of its program
BINARY_KEY = "binary"

#: stands for what a record does not say of its identity
UNRECORDED = "not recorded"


@dataclass(frozen=True, kw_only=True)
class StackIdentity:
    """What a program and its MPI were, exactly enough to tell two builds apart.

    Attributes:
        origin: who put the stack there: ``spack``, ``wheels`` (``fabricproof stack install``) or
            ``declared`` (the site's own, of which only the site file speaks).
        digest: SHA-256 in hexadecimal: of ``spack.lock``, of the wheels' pins, or of what the
            site file says.
        mpi: one line: name, version, variants.
        program: likewise, of the package that the measuring program belongs to.
        compiler: ``gcc@12.2.0``.
        target: ``x86_64_v3``.
        library: the beginning of the SHA-256 of the MPI library's file, where one was proven: it
            may be another while name, version and lock stay.
    """

    origin: str
    digest: str
    mpi: str
    program: str
    compiler: str
    target: str
    library: str = ""

    @property
    def short(self) -> str:
        """The digest as it is shown."""
        return self.digest[:SHOWN_DIGITS]

    def record(self) -> dict[str, str]:
        """Return the identity as it stands in records."""
        return asdict(self)


def identity_of(record: Mapping[str, Any], key: str = IDENTITY_KEY) -> StackIdentity | None:
    """Return the identity that a record carries; None if it has none."""
    stated = record.get(key)
    if not isinstance(stated, Mapping):
        return None
    return StackIdentity(
        **{each.name: str(stated.get(each.name, UNRECORDED)) for each in fields(StackIdentity)}
    )


def digest_of(facts: object) -> str:
    """Return the SHA-256 of plain data, the same whatever the order of its keys."""
    return sha256(dumps(facts, sort_keys=True).encode()).hexdigest()


def is_build(stated: str, digest: str) -> bool:
    """Tell whether ``stated``, the beginning of a digest, names the build with ``digest``."""
    return bool(stated) and digest.lower().startswith(stated.lower())


def same_build(first: str | None, second: str | None) -> bool:
    """Tell whether two stated digests name one build; None names none in particular."""
    if first is None or second is None:
        return first is second
    return is_build(first, second) or is_build(second, first)


def differences(first: StackIdentity | None, second: StackIdentity | None) -> tuple[str, ...]:
    """Return what tells two identities apart, one sentence for each field.

    A record without identity is like another without, and unlike every one that has it.
    """
    if first is None or second is None:
        if first is second:
            return ()
        here, there = (f"build {each.short}" if each else UNRECORDED for each in (first, second))
        return (f"build: {here} against {there}",)
    return tuple(
        f"{field.name}: {' against '.join(_shown(field.name, *values))}"
        for field in fields(StackIdentity)
        if len(set(values := (getattr(first, field.name), getattr(second, field.name)))) > 1
    )


def _shown(name: str, first: str, second: str) -> tuple[str, ...]:
    """Return two values of a field as a person can compare them.

    Of two specs of one package what differs, of two packages their names and versions.
    """
    if name == "digest":
        return tuple(digest[:SHOWN_DIGITS] or "nothing" for digest in (first, second))
    sides = [_SPEC_PART.findall(text) for text in (first, second)]
    common = {*sides[0]} & {*sides[1]}
    shown = []
    for parts in sides:
        if sides[0][:1] == sides[1][:1]:
            text = " ".join(part for part in parts if part not in common)
        elif any(part[0] in "@+~" for part in parts):  # the spec of another package
            text = "".join(part for part in parts if part == parts[0] or part[0] == "@")
        else:
            text = " ".join(parts)
        text = text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}..."
        shown.append(text or "nothing")
    return tuple(shown)


def rebuilt(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the stacks that were not one and the same throughout one run, each with the reason."""
    seen: dict[tuple[str, str], StackIdentity | None] = {}
    found: dict[str, str] = {}
    for record in records:
        if record.get("kind") == "confirmation":
            continue  # what a night says of the run afterwards was not measured with any build
        stack, suite = str(record.get("stack")), str(record.get("suite"))
        for key in (IDENTITY_KEY, *([AFTERWARDS_KEY] if AFTERWARDS_KEY in record else [])):
            identity = identity_of(record, key)
            # The package of the program differs from suite to suite, all else does not.
            common = replace(identity, program="") if identity else None
            unlike = differences(seen.setdefault((stack, ""), common), common) or differences(
                seen.setdefault((stack, suite), identity), identity
            )
            if unlike:
                found.setdefault(stack, f"not one build throughout the run: {'; '.join(unlike)}")
    return found


@dataclass(frozen=True, kw_only=True, order=True)
class LegKey:
    """What makes a leg of one run the leg of another, from its plan to its records and reports.

    Nodes and build are not part of it: Slurm chooses other nodes every time.

    Attributes:
        fabric: the network that is measured.
        leg: the path and the layout, ``rail0``, ``rail1.hops3``; empty for a check that left none.
    """

    partition: str
    fabric: str
    stack: str
    check: str
    leg: str

    def __str__(self) -> str:
        """``compute/eth0/openmpi5/OsuBandwidth/rail1``."""
        return "/".join((self.partition, self.fabric, self.stack, self.check, self.leg))

    @classmethod
    def of(cls, text: str) -> LegKey:
        """Return the key that :meth:`__str__` wrote; ValueError for any other text."""
        partition, fabric, stack, check, leg = text.split("/", 4)
        return LegKey(partition=partition, fabric=fabric, stack=stack, check=check, leg=leg)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> LegKey:
        """Return the key of the leg that a record is of."""
        return LegKey(**{each.name: str(record.get(each.name) or "") for each in fields(LegKey)})

    @property
    def label(self) -> str:
        """``openmpi5 OsuBandwidth rail1``, for a person."""
        return " ".join(filter(None, (self.stack, self.check, self.leg))) or "the run"


@dataclass(frozen=True, kw_only=True)
class LegPlace(LegKey):
    """Everything but the quantity in which two numbers must agree: a leg as one job measured it.

    Attributes:
        build: the beginning of the digest of the stack's identity.
        tool_version: of the suite as it printed it; empty if it prints none.
        rails: that the leg went over, joined by commas.
        nodes: that took part, sorted, joined by commas; of a pair its two ends.
        settings: what the tool said of its own setting: ``num_pairs=1 window_size=64``.
    """

    build: str
    suite: str
    program: str
    tool_version: str
    rails: str
    nodes: str
    settings: str

    @property
    def planned(self) -> tuple[str, ...]:
        """What a plan says of it, the same for every build and for any nodes."""
        where = (self.partition, self.fabric, self.stack, self.suite, self.program)
        return (*where, self.check, self.leg, self.rails)

    @property
    def pair(self) -> str:
        """``vc1 - vc3`` for a pair, ``vc[1-4]`` for more, the node for one."""
        nodes = self.nodes.split(",")
        return " - ".join(nodes) if len(nodes) <= 2 else fold(nodes)

    @property
    def label(self) -> str:
        """``openmpi4 osu_bw rail0 vc1 - vc2``."""
        return f"{self.stack} {self.program} {self.leg} {self.pair}"


#: the names of a place's fields, in order
PLACE: tuple[str, ...] = tuple(each.name for each in fields(LegPlace))
