"""A leg: one program over one road between the nodes of one job, and all it is judged by.

Legs are written to ``plan.json`` beside the job script, so that the second look inside the job
and the judgement after it read the same thing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fabricproof.errors import ParseError
from fabricproof.reference import CURVE_TOLERANCE, Reference
from fabricproof.verdict import Rules

PLAN_FILE = "plan.json"
PLAN_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class FabricFacts:
    """What :class:`fabricproof.fabric.Fabric` is made of, as names and numbers."""

    link: str
    protocol: str | None = None
    mtu: int | None = None
    slot: str | None = None
    max_payload_bytes: int | None = None
    num_rails: int = 1
    num_flows: int = 1
    rails_share_slot: bool = False
    flow_limit_gbit_s: float | None = None
    capability_mb_s: float | None = None
    shaper: dict[str, float] | None = None
    unlike_rails_high_mb_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One measurement to be made and judged.

    Attributes:
        name: the road in a word: ``rail0``, ``rail0+rail1``; unique within a job.
        rails: the interfaces or ports of that road.
        suite: ``osu``, ``osu-mpi4py``, ``imb``.
        program: ``osu_bw``, ``PingPong``.
        environment: variables that make the MPI take this road.
        commands: the program with its arguments, once for each table it is to print.
        num_ranks: ranks to start.
        expected_sizes: message sizes the table must hold, in bytes.
        sent_bytes: payload bytes the first and the second half of the ranks must have sent; None
            where the output says how often each size ran.
        sent_per_message: with such an output, messages of each half per repetition.
        sent_messages: messages each half sends one by one, None where they may share packets.
        spread: every rail of several must carry a share.
        required: quantities that are due: ``bandwidth_1MiB``, ``latency_8B``.
        references: the site's references that apply, by quantity.
        tolerance: allowed fraction below the physical reference.
        curve_tolerance: how much longer than the model a point inside the curve may take.
        fabric: the fabric of this road, None where the site declares none.
        same_node: both ranks run on one machine on purpose; no road is proven.
        library: the MPI library that the program was proven to load when it was built, absolute;
            None where nobody proved one.
    """

    name: str
    rails: tuple[str, ...]
    suite: str
    program: str
    environment: dict[str, str]
    commands: tuple[tuple[str, ...], ...]
    num_ranks: int
    expected_sizes: tuple[int, ...]
    sent_bytes: tuple[int, int] | None
    sent_per_message: tuple[int, int] | None
    sent_messages: tuple[int, int] | None
    spread: bool
    required: tuple[str, ...]
    fabric: FabricFacts | None
    references: dict[str, Reference] = field(default_factory=dict)
    tolerance: float
    curve_tolerance: float = CURVE_TOLERANCE
    same_node: bool = False
    library: str | None = None

    def rules(self) -> Rules:
        """Return what this leg's table is judged by."""
        from fabricproof.fabric import Fabric, Shaper, find_link, find_slot  # noqa: PLC0415 - one caller

        if self.fabric is None:
            return Rules(fabric=None, references=self.references, road_required=True)
        facts = asdict(self.fabric)
        slot, shaper = facts.pop("slot"), facts.pop("shaper")
        return Rules(
            fabric=Fabric(
                **{**facts, "link": find_link(self.fabric.link)},
                slot=find_slot(slot) if slot else None,
                shaper=Shaper(**shaper) if shaper else None,
            ),
            references=self.references,
            tolerance=self.tolerance,
            curve_tolerance=self.curve_tolerance,
            road_required=True,
        )


def write_plan(folder: Path, legs: Sequence[Leg]) -> None:
    """Write the legs beside the job script."""
    record = {"version": PLAN_VERSION, "legs": [asdict(leg) for leg in legs]}
    (folder / PLAN_FILE).write_text(json.dumps(record, indent=1), encoding="utf-8")


def read_plan(folder: Path) -> tuple[Leg, ...]:
    """Read what :func:`write_plan` wrote.

    Raises:
        ParseError: the file is damaged or of another version.
    """
    path = folder / PLAN_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["version"] != PLAN_VERSION:
            raise ParseError(
                "plan of another version",
                source=str(path),
                expected=str(PLAN_VERSION),
                got=str(record["version"]),
            )
        return tuple(_leg(each) for each in record["legs"])
    except ParseError:
        raise
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"damaged plan: {error}", source=str(path)) from None


def _leg(record: dict[str, Any]) -> Leg:
    return Leg(
        **{
            **record,
            "rails": tuple(record["rails"]),
            "commands": tuple(tuple(argv) for argv in record["commands"]),
            "expected_sizes": tuple(record["expected_sizes"]),
            **{
                name: tuple(record[name]) if record[name] else None
                for name in ("sent_bytes", "sent_per_message", "sent_messages")
            },
            "required": tuple(record["required"]),
            "fabric": FabricFacts(**record["fabric"]) if record["fabric"] else None,
            "references": {name: Reference(**each) for name, each in record["references"].items()},
        }
    )
