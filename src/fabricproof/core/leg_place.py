"""What a number was measured of: the identity of a leg in a baseline and in history."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fabricproof.core.hostlist import fold


@dataclass(frozen=True, kw_only=True)
class LegPlace:
    """Everything but the quantity in which two numbers must agree: a leg of a check of a stack.

    Attributes:
        fabric: the network that was measured.
        build: the beginning of the digest of the stack's identity.
        tool_version: of the suite as it printed it; empty if it prints none.
        leg: the path and the layout, ``rail0``, ``rail1.hops3``.
        rails: that the leg went over, joined by commas.
        nodes: that took part, sorted, joined by commas; of a pair its two ends.
        settings: what the tool said of its own setting: ``num_pairs=1 window_size=64``.
    """

    partition: str
    fabric: str
    stack: str
    build: str
    suite: str
    program: str
    tool_version: str
    check: str
    leg: str
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
