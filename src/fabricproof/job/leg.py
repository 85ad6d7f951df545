"""What one job measures: legs, relations between them, and the plan that holds both.

A leg is one program over one path between the nodes of a job, with all it is judged by.  The plan
lies as ``plan.json`` beside the script of the job: the second look inside the job and the judgement
after it read the same file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.core.plain import typed
from fabricproof.core.records import text_of
from fabricproof.job.relation import Relation
from fabricproof.physics import Fabric
from fabricproof.physics.collective import RankLayout
from fabricproof.stacks.container import Container
from fabricproof.verdict.value import CURVE_TOLERANCE, Reference, Rules


def shell_name(leg_name: str) -> str:
    """Return the leg's name as a shell function may be called: other characters become ``_``."""
    return "".join(char if char.isalnum() else "_" for char in leg_name)


def own_name(name: str, rails: Sequence[str]) -> str:
    """Return the name of a leg or relation without its rails: ``4x2`` of ``rail0.4x2``.

    Empty if the rails are all of it; the whole name if it does not begin with them.
    """
    joined = "+".join(rails)
    if name.startswith(f"{joined}."):  # an interface may have a dot in its name: eth0.100
        return name.removeprefix(f"{joined}.")
    return "" if name == joined else name


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What a leg is to move, as far as that is known before it runs."""

    exact: tuple[int, int] | None = None  # payload bytes sent by the two halves of the ranks
    messages: tuple[int, int] | None = None  # sent one by one; None if they may share packets
    per_repetition: tuple[int, int] | None = None  # messages; the output says the repetitions
    #: Bytes sent, bytes received and packets sent that each node must show, in the order of its
    #: lowest rank, whatever the algorithm; then it stands for ``exact``.
    at_least: tuple[tuple[int, int, int], ...] = ()
    repetitions: int | None = None  # of the least repeated size; None if the output says it

    @property
    def turned(self) -> Traffic:
        """The same with the halves exchanged."""
        exact, messages = (each and each[::-1] for each in (self.exact, self.messages))
        return replace(self, exact=exact, messages=messages)


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One measurement to be made and judged."""

    name: str  # unique within a job: ``rail0``, ``rail0+rail1``, ``rail0.links4``
    rails: tuple[str, ...]  # interfaces or ports of its path
    suite: str  # ``osu``, ``osu-mpi4py``, ``imb``
    program: str  # ``osu_bw``, ``PingPong``
    environment: dict[str, str] = field(default_factory=dict)  # makes the MPI take this path
    commands: tuple[tuple[str, ...], ...] = ()  # each prints one table
    expected_sizes: tuple[int, ...] = ()  # message sizes that the table must hold, in bytes
    traffic: Traffic = field(default_factory=Traffic)
    spread: bool = False  # every rail of several must carry a share
    num_nodes: int = 2
    ranks_per_node: int = 1  # ranks follow each other on a node (block)
    nodes: tuple[str, ...] = ()  # by name; empty if any nodes of the job will do
    launch: tuple[str, ...] = ()  # launcher of this layout; empty for the whole job's
    required: tuple[str, ...] = ()  # quantities that are due: ``bandwidth_1MiB``
    fabric: Fabric | None = None  # of this path; None if the site declares none
    references: dict[str, Reference] = field(default_factory=dict)  # the site's, by quantity
    tolerance: float = 0.0  # allowed fraction below the physical reference
    curve_tolerance: float = CURVE_TOLERANCE
    same_node: bool = False  # all ranks on one machine on purpose; no path is proven
    ask: tuple[str, ...] = ()  # question of ``ask.sh``; a node that says no makes it SKIPPED
    #: If each node takes another interface, theirs in the order of their lowest ranks; ``rails``
    #: then holds one name for the path between them.
    node_rails: tuple[str, ...] = ()
    #: The leg of a pair in the same job whose times say, by a cost model, what this collective
    #: should take: ``stated_alpha_us`` a message at least, times ``model_factor``.
    channel_leg: str = ""
    stated_alpha_us: float = 0.0
    model_factor: float = 1.0
    library: str | None = None  # the MPI library that the stack was built with; None if unknown
    #: The MPI is told no path, and only which interfaces it took is judged: what users should set
    #: if those are the wrong ones.
    free_path: str = ""
    limit_seconds: int = 0  # if that is more than the job gives every leg
    #: what the site lets be lost, per million packets (``evidence.error_rates.NAMES``), and why
    error_limits: dict[str, float] = field(default_factory=dict)
    error_limits_origin: str = ""
    baseline: str = ""  # name of the baseline that judges it last (``baseline.json``)
    backward: bool = False  # it sends from the node that receives in the legs beside it
    in_turn: bool = False  # it runs only in the rounds of a relation
    container: Container | None = None

    @property
    def num_ranks(self) -> int:
        """Ranks to start in all."""
        return self.num_nodes * self.ranks_per_node

    def turn(self, **changes: Any) -> Leg:
        """Return the leg that measures this one's path again, for a relation and for it alone."""
        return replace(replace(self, name=f"{self.name}.turn", in_turn=True), **changes)

    def rules(self) -> Rules:
        """Return what this leg's table is judged by."""
        layout = None
        if self.num_ranks > 1:
            layout = RankLayout(num_ranks=self.num_ranks, ranks_per_node=self.ranks_per_node)
        rules = Rules(
            fabric=self.fabric, references=self.references, path_required=True, layout=layout
        )
        if self.fabric is None:
            return rules
        return replace(rules, tolerance=self.tolerance, curve_tolerance=self.curve_tolerance)


def row_leg(name: str, suite: str, program: str, rails: tuple[str, ...]) -> Leg:
    """Return a leg that runs nothing: under its name a row stands in records and reports."""
    return Leg(name=name, rails=rails, suite=suite, program=program)


#: suites without MPI -> Debian's package of each
PEER_SUITES = {"iperf3": "iperf3", "iperf": "iperf", "perftest": "perftest"}

#: suite of the rows of a campaign over all nodes: our own kernel measured them
CAMPAIGN_SUITE = "fabricproof"

#: the check of nodes that are new or repaired; what its row of a node is called: this, node, path
ADMISSION_CHECK = "AllPairsAdmission"
ADMITTED, PARTNER = "admit", "partner"

#: the check of a campaign of ``fabricproof pairs run``
CAMPAIGN_CHECK = "AllPairsCampaign"

PLAN_FILE = "plan.json"
PLAN_VERSION = 6

#: attempts at a leg: a second look is the last
MOST_ATTEMPTS = 2

#: the quantity of a leg that tells its program no path: whether it took the rails all the same
DEFAULT_PATH = "default_road"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one job is to measure: legs in the order in which they run, and relations.

    ``reason`` says why there are no legs; it is empty if there are.
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
        """Nodes that legs ask for by name, each once; empty if any will do."""
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
    names = [leg.name for leg in legs]
    rows = [*names, *(each.name for each in relations)]
    for taken in ([*map(shell_name, names)], rows):
        if twice := next((each for each in taken if taken.count(each) > 1), ""):
            alike = [name for name in rows if twice in {name, shell_name(name)}]
            raise ConfigError(
                "two measurements of one job cannot be told apart",
                expected="names that differ in letters and digits",
                got=" and ".join(map(repr, alike[:2])),
            )
    record = {
        "version": PLAN_VERSION,
        "legs": [asdict(leg) for leg in legs],
        "relations": [asdict(relation) for relation in relations],
    }
    (folder / PLAN_FILE).write_text(json.dumps(record), encoding="utf-8")


def read_plan(folder: Path) -> Plan:
    """Read what :func:`write_plan` wrote.

    Raises:
        ParseError: the file is damaged or of another version.
    """
    path = folder / PLAN_FILE
    try:
        record = json.loads(text_of(path))
        version = record["version"]
        if version == PLAN_VERSION:
            return typed(Plan, {name: record[name] for name in ("legs", "relations")})
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"damaged plan: {error}", source=str(path)) from None
    raise ParseError(
        "plan of another version", source=str(path), expected=str(PLAN_VERSION), got=str(version)
    )
