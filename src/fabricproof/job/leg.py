"""What one job measures: legs, relations between them, and the plan that holds both.

A leg is one program over one path between the nodes of a job, with all it is judged by.  A relation
is a judgement across legs (:mod:`fabricproof.job.relation`).

The plan lies as ``plan.json`` beside the script of the job: the second look inside the job and the
judgement after it read the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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

    Empty where the rails are all of it; the whole name where it does not begin with them.
    """
    joined = "+".join(rails)
    if name.startswith(f"{joined}."):  # an interface may have a dot in its name: eth0.100
        return name.removeprefix(f"{joined}.")
    return "" if name == joined else name


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What a leg is to move, as far as that is known before it runs.

    Attributes:
        exact: payload bytes that the first and the second half of the ranks send; None if the
            output says how often each size ran, or if nobody can foretell them.
        messages: messages that each half sends one by one; None if they may share packets.
        per_repetition: messages of each half per repetition, if the output says the repetitions.
        at_least: payload bytes sent and received, and packets sent, that each node must show, in
            the order of its lowest rank, whatever the algorithm; then it stands for ``exact``.
        repetitions: how often the least repeated size runs; None if the output says it.
    """

    exact: tuple[int, int] | None = None
    messages: tuple[int, int] | None = None
    per_repetition: tuple[int, int] | None = None
    at_least: tuple[tuple[int, int, int], ...] = ()
    repetitions: int | None = None

    @property
    def turned(self) -> Traffic:
        """The same with the halves exchanged."""
        return replace(
            self,
            exact=self.exact and self.exact[::-1],
            messages=self.messages and self.messages[::-1],
        )


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One measurement to be made and judged.

    Attributes:
        name: the path in a word, with what else tells it from its neighbours: ``rail0``,
            ``rail0+rail1``, ``rail0.links4``; unique within a job.
        rails: the interfaces or ports of that path.
        suite: ``osu``, ``osu-mpi4py``, ``imb``.
        program: ``osu_bw``, ``PingPong``.
        environment: variables that make the MPI take this path.
        commands: the program with its arguments, once for each table it is to print.
        expected_sizes: message sizes the table must hold, in bytes.
        traffic: what it is to move.
        spread: every rail of several must carry a share.
        ranks_per_node: ranks to start on each of them; ranks follow each other on a node (block).
        nodes: their names; empty if any nodes of the job will do.
        launch: launcher and options that start this layout; empty: as the whole job's.
        required: quantities that are due: ``bandwidth_1MiB``, ``latency_8B``.
        fabric: the fabric of this path, None if the site declares none.
        references: the site's references that apply, by quantity.
        tolerance: allowed fraction below the physical reference.
        curve_tolerance: how much longer than the model a point inside the curve may take.
        same_node: both ranks run on one machine on purpose; no path is proven.
        ask: a question of ``ask.sh`` with its arguments, which every node answers before the leg;
            if one says no, the leg is SKIPPED with its reason.
        node_rails: if each node takes another interface, theirs, in the order of their lowest
            ranks; ``rails`` then holds one name for the path between them.
        channel_leg: name of the point-to-point leg of the same job whose times, put into a cost
            model, say what this collective should take; empty for all others.
        stated_alpha_us: what the site says that a message may cost; the model takes no less.
        model_factor: how many times the best algorithm's modelled time it may take.
        library: the MPI library that the program was proven to load when it was built, absolute;
            None if nobody proved one.
        free_path: the MPI is told no path on purpose, and all that is judged is which interfaces it
            took; what users should set if those are the wrong ones.  Empty for all other legs.
        limit_seconds: it may take this long if that is more than the job gives every leg.
        error_limits: what the site says may be lost or damaged, in events per million packets, by
            the names of :data:`fabricproof.job.evidence.error_rates.NAMES`.
        error_limits_origin: why, in the site's words.
        baseline: name of the baseline that judges it last; what that says of the leg lies beside
            the plan (``baseline.json``).  Empty if there is none.
        backward: it sends the other way: from the node that receives in the legs beside it.
        in_turn: it runs only when a relation asks for a round, as often as that asks.
        container: the image that its program runs in; None if it runs on the node itself.
    """

    name: str
    rails: tuple[str, ...]
    suite: str
    program: str
    environment: dict[str, str] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = ()
    expected_sizes: tuple[int, ...] = ()
    traffic: Traffic = field(default_factory=Traffic)
    spread: bool = False
    num_nodes: int = 2
    ranks_per_node: int = 1
    nodes: tuple[str, ...] = ()
    launch: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    fabric: Fabric | None = None
    references: dict[str, Reference] = field(default_factory=dict)
    tolerance: float = 0.0
    curve_tolerance: float = CURVE_TOLERANCE
    same_node: bool = False
    ask: tuple[str, ...] = ()
    node_rails: tuple[str, ...] = ()
    channel_leg: str = ""
    stated_alpha_us: float = 0.0
    model_factor: float = 1.0
    library: str | None = None
    free_path: str = ""
    limit_seconds: int = 0
    error_limits: dict[str, float] = field(default_factory=dict)
    error_limits_origin: str = ""
    baseline: str = ""
    backward: bool = False
    in_turn: bool = False
    container: Container | None = None

    @property
    def num_ranks(self) -> int:
        """Ranks to start in all."""
        return self.num_nodes * self.ranks_per_node

    def turn(self, **changes: Any) -> Leg:
        """Return the leg that measures this one's path again, for a relation and for it alone."""
        named = replace(self, name=f"{self.name}.turn", in_turn=True)
        return replace(named, **changes)

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

PLAN_FILE = "plan.json"
PLAN_VERSION = 6

#: attempts at a leg: a second look is the last
MOST_ATTEMPTS = 2

#: the quantity of a leg that tells its program no path: whether it took the rails all the same
DEFAULT_PATH = "default_road"


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
    (folder / PLAN_FILE).write_text(json.dumps(record), encoding="utf-8")


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
        record = json.loads(text_of(path))
        if record["version"] != PLAN_VERSION:
            raise ParseError(
                "plan of another version",
                source=str(path),
                expected=str(PLAN_VERSION),
                got=str(record["version"]),
            )
        return typed(Plan, {name: record[name] for name in ("legs", "relations")})
    except ParseError:
        raise
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"damaged plan: {error}", source=str(path)) from None
