"""The plan of a job: its legs and what is to hold between them, as ``plan.json`` beside the script.

The second look inside the job and the judgement after it read the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.job.plan.leg import FabricFacts, Leg, Relation
from fabricproof.job.plan.script import shell_name
from fabricproof.verdict.value import Reference, Source

PLAN_FILE = "plan.json"
#: 2: layouts and relations
PLAN_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one job is to measure.

    Attributes:
        legs: in the order in which they run; empty where there is nothing to measure.
        relations: what is judged across them.
        reason: why there are no legs, empty where there are.
    """

    legs: tuple[Leg, ...] = ()
    relations: tuple[Relation, ...] = ()
    reason: str = ""

    @property
    def num_nodes(self) -> int:
        """Nodes that the job needs."""
        return max((len(self.nodes), *(leg.num_nodes for leg in self.legs)))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes that legs ask for by name, each once; empty where any will do."""
        return tuple(sorted({node for leg in self.legs for node in leg.nodes}))

    @property
    def ranks_per_node(self) -> int:
        """Ranks that the job needs on each node."""
        return max((leg.ranks_per_node for leg in self.legs), default=0)


def write_plan(folder: Path, legs: Sequence[Leg], relations: Sequence[Relation] = ()) -> None:
    """Write the legs and relations beside the job script.

    Raises:
        ConfigError: two of them share a name, or a folder: one would be judged by the other's run.
    """
    _check_apart([leg.name for leg in legs], shell_name)
    _check_apart([*(leg.name for leg in legs), *(each.name for each in relations)], str)
    record = {
        "version": PLAN_VERSION,
        "legs": [asdict(leg) for leg in legs],
        "relations": [asdict(relation) for relation in relations],
    }
    (folder / PLAN_FILE).write_text(json.dumps(record, indent=1), encoding="utf-8")


def _check_apart(names: Sequence[str], folder_of: Callable[[str], str]) -> None:
    folders: dict[str, str] = {}
    for name in names:
        other = folders.setdefault(folder_of(name), name)
        if names.count(name) > 1 or other != name:
            raise ConfigError(
                "two measurements of one job cannot be told apart",
                expected="names that differ in letters and digits",
                got=f"{other!r} and {name!r}",
            )


def read_plan(folder: Path) -> Plan:
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
        return Plan(
            legs=tuple(_leg(each) for each in record["legs"]),
            relations=tuple(_relation(each) for each in record["relations"]),
        )
    except ParseError:
        raise
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"damaged plan: {error}", source=str(path)) from None


def _leg(record: dict[str, Any]) -> Leg:
    least = record["least_bytes"]
    packets = record["least_packets"]
    return Leg(
        **{
            **record,
            "rails": tuple(record["rails"]),
            "commands": tuple(tuple(argv) for argv in record["commands"]),
            "expected_sizes": tuple(record["expected_sizes"]),
            "nodes": tuple(record["nodes"]),
            "launch": tuple(record["launch"]),
            "ask": tuple(record["ask"]),
            "node_rails": tuple(record["node_rails"]),
            "least_bytes": tuple((sent, got) for sent, got in least) if least else None,
            "least_packets": tuple(packets) if packets else None,
            **{
                name: tuple(record[name]) if record[name] else None
                for name in ("sent_bytes", "sent_per_message", "sent_messages")
            },
            "required": tuple(record["required"]),
            "fabric": FabricFacts(**record["fabric"]) if record["fabric"] else None,
            "references": {
                name: Reference(**{**each, "source": Source(each.get("source", Source.OTHER))})
                for name, each in record["references"].items()
            },
        }
    )


def _relation(record: dict[str, Any]) -> Relation:
    names = ("legs", "rails")
    return Relation(**{**record, **{name: tuple(record[name]) for name in names}})
