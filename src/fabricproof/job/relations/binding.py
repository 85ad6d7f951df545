"""Where the ranks of a leg ran: ``bind.RANK.PART`` in its folder, which ``bind.sh`` leaves.

It holds the CPUs on which the program itself could run, after its MPI had its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricproof.core.errors import FabricproofError, ParseError
from fabricproof.core.hostlist import cpus_of
from fabricproof.core.records import text_of
from fabricproof.job.outcome import Outcome
from fabricproof.job.relation import Bind


@dataclass(frozen=True, kw_only=True)
class Binding:
    """What one rank was asked and where it ran.

    Attributes:
        bind: ``near``, ``far`` or ``as_launched``.
        home: NUMA node of the rail's slot, -1 if the node does not say.
        numa_cpus: NUMA node -> its CPUs.
        ran: the CPUs that the program could run on; ``unknown`` if it ended too soon.
    """

    bind: str
    home: int
    numa_cpus: dict[int, str] = field(default_factory=dict)
    ran: str = "unknown"


def parse_binding(text: str, source: str) -> Binding:
    """Read what ``bind.sh`` left.

    Raises:
        ParseError: a line of another form, or no ``bind`` or ``home``.
    """
    facts: dict[str, str] = {}
    numa: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        word, _, rest = line.partition(" ")
        node, _, cpus = rest.partition(" ")
        if word == "numa" and node.isdecimal() and cpus:
            numa[int(node)] = cpus
        elif word in {"bind", "rail", "home", "chosen", "ran"} and rest and word not in facts:
            facts[word] = rest
        else:
            raise ParseError("damaged binding", source=source, line=number, got=repr(line))
    if "bind" not in facts or not facts.get("home", "").removeprefix("-").isdecimal():
        raise ParseError("damaged binding", source=source, expected="bind and home")
    ran = facts.get("ran", "unknown")
    return Binding(bind=facts["bind"], home=int(facts["home"]), numa_cpus=numa, ran=ran)


def why_loose(look: Outcome, bind: Bind) -> str:
    """Return why it is unknown whether a leg's ranks ran where they were bound; empty if known."""
    files = [path for attempt in look.attempts for path in attempt.folder.glob("bind.*")]
    ranks = {path.name.split(".")[1] for path in files}
    due = look.leg.num_ranks * max(1, len(look.leg.commands)) * len(look.attempts)
    if len(ranks) != look.leg.num_ranks or len(files) != due:
        return f"{len(ranks)} ranks said {len(files)} times where they ran, {due} were due"
    for path in sorted(files):
        try:
            told = parse_binding(text_of(path), str(path))
        except (OSError, UnicodeDecodeError, FabricproofError) as error:
            reason = str(error)
        else:
            reason = f"it was told {told.bind}" if told.bind != bind.value else ""
            reason = reason or why_not_held(bind, told.ran, told.home, told.numa_cpus)
        if reason:
            return f"rank {path.name.split('.')[1]} was not held {bind}: {reason}"
    return ""


def why_not_held(bind: Bind, cpus: str, home: int | None, numa_cpus: Mapping[int, str]) -> str:
    """Return why a rank that may run on ``cpus`` is not bound as asked; empty if it is.

    ``home`` is the NUMA node of the rail's slot, None if unknown; CPUs are as the kernel lists
    them.
    """
    if home is None or home not in numa_cpus:
        return "the NUMA node of the rail is not known"
    mine, beside = cpus_of(cpus), cpus_of(numa_cpus[home])
    if mine is None or beside is None:
        return f"no list of CPUs: {cpus!r}, {numa_cpus[home]!r}"
    if not mine:
        return "nobody saw on which CPUs the rank may run"
    wrong = mine - beside if bind is Bind.NEAR else mine & beside
    return f"it may run on CPUs {cpus}, the rail's own are {numa_cpus[home]}" if wrong else ""
