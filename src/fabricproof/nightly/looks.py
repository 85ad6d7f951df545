"""Which legs are measured again after a run, on which nodes, and what a look saw of them; pure.

A red leg on the same nodes, then each of its nodes with other partners; an UNJUDGED one that others
disturbed, or that too few rounds left open, once on the same nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.core.findings import Finding, FindingKind
from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import LegKey
from fabricproof.core.units import natural
from fabricproof.job.leg import CAMPAIGN_SUITE
from fabricproof.job.outcomes import BACK
from fabricproof.job.run import LegResult, RunResult
from fabricproof.nightly.confirm import (
    RED,
    Confirmation,
    Look,
    LookColour,
    LookResult,
    Red,
    Role,
    mildest_first,
)


def reds_of(result: RunResult) -> tuple[Red, ...]:
    """Return what was red in a run."""
    return tuple(_to_look_at(leg, result) for leg in result.legs if leg.verdict in RED)


def open_of(result: RunResult) -> tuple[Red, ...]:
    """Return what was UNJUDGED in a run for a cause that another look can change."""
    return tuple(
        _to_look_at(leg, result, cause) for leg in result.legs if (cause := _open_cause(leg))
    )


def _open_cause(leg: LegResult) -> str:
    """Return what left a leg UNJUDGED if that passes; empty if anything else did as well.

    If there is no reference, or no proof of the path, another look says the same.
    """
    unjudged = [each for each in leg.quantities if each.verdict is Verdict.UNJUDGED]
    passes = all(each.disturbance or each.is_open is True for each in unjudged)
    if leg.verdict is not Verdict.UNJUDGED or not unjudged or not passes:
        return ""
    disturbed = any(each.disturbance for each in unjudged)
    return "was disturbed" if disturbed else "was left open by its rounds"


def _to_look_at(leg: LegResult, result: RunResult, cause: str = "") -> Red:
    """Return a leg of a run with what rounds over all nodes say of it, if the run had some.

    A row over one rail says something of several rails of which it is one, not the reverse.
    """
    nodes, rails = _nodes_of(leg, result), _rails(leg)
    rows = [
        row for row in result.legs if row.suite == CAMPAIGN_SUITE and row.partition == leg.partition
    ]
    mine = [row for row in rows if _rails(row) and set(_rails(row)) <= set(rails)]
    failed = [
        each
        for row in mine
        if row.verdict is Verdict.FAIL
        for each in row.findings
        if each.kind is FindingKind.BLAME
    ]
    return Red(
        key=leg.key,
        verdict=leg.verdict,
        reason=leg.reason,
        nodes=nodes,
        run_id=result.run_id,
        rails=rails,
        device=leg.device,
        cause=cause,
        of_campaign=(leg.check, leg.fabric) in {(row.check, row.fabric) for row in rows},
        faults=tuple({each.text: each for each in failed if _explains(each, nodes)}.values()),
        leg=leg,
    )


def _nodes_of(leg: LegResult, result: RunResult) -> tuple[str, ...]:
    """Return the nodes of a leg's job: a leg of two may belong to a job of four."""
    return tuple(sorted(result.job_nodes.get(leg.job_id or "") or leg.nodes))


def _rails(leg: LegResult) -> tuple[str, ...]:
    return tuple(rail for each in leg.quantities[:1] for rail in each.rails)


def _explains(blame: Finding, nodes: Sequence[str]) -> bool:
    """Tell whether what rounds over all nodes blame lies on the way of ``nodes``."""
    if blame.where.node:
        return blame.where.node in nodes
    inside = set(blame.where.nodes) & set(nodes)
    match blame.fact:
        case "pair":
            return set(blame.where.nodes) == set(nodes)
        case "uplink":
            return bool(inside) and bool(set(nodes) - inside)
    return bool(inside)


def why_no_look(red: Red) -> str:
    """Return why a leg cannot be looked at again; empty if it can."""
    if not red.nodes:
        return "no node is known on which it was red"
    if red.of_campaign and red.verdict in RED:
        return f"all nodes were measured in several rounds of one job: {red.reason}"
    return ""


@dataclass(frozen=True, kw_only=True)
class LookAsked:
    """One question to a look: a leg, by its number, in a role, on nodes."""

    at: int
    red: Red
    role: Role
    nodes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Checks to run again together: one start of ReFrame."""

    partition: str
    stack: str
    nodes: tuple[str, ...]
    checks: tuple[tuple[str, str], ...]

    def arguments(self, site: str) -> list[str]:
        """Return ReFrame's options that select this and nothing else."""
        # ReFrame searches the expression in "OsuBandwidth%fabric=eth0", blanks taken out.
        names = [f"^{check}%fabric={fabric}($|[%~])" for check, fabric in self.checks]
        named = [part for name in names for part in ("-n", name)]
        return ["-r", f"--system={site}:{self.partition}", "-p", f"^{self.stack}$", *named]

    def answers(self, ask: LookAsked) -> bool:
        """Tell whether this measures what is asked."""
        key = ask.red.key
        is_there = (key.partition, key.stack, ask.nodes) == (self.partition, self.stack, self.nodes)
        return is_there and (key.check, key.fabric) in self.checks


def batches_of(asks: Iterable[LookAsked]) -> list[Batch]:
    """Return the runs that answer; each set of nodes comes once before any comes twice."""
    groups: dict[tuple[str, str, tuple[str, ...]], dict[tuple[str, str], None]] = {}
    for ask in asks:
        key = ask.red.key
        group = groups.setdefault((key.partition, key.stack, ask.nodes), {})
        group[key.check, key.fabric] = None
    seen: dict[tuple[str, ...], int] = {}
    ranked = []
    for (partition, stack, nodes), checks in groups.items():
        seen[nodes] = seen.get(nodes, 0) + 1
        batch = Batch(partition=partition, stack=stack, nodes=nodes, checks=tuple(checks))
        ranked.append((seen[nodes] > 1, batch))
    return [batch for _, batch in sorted(ranked, key=lambda each: each[0])]


@dataclass(frozen=True, kw_only=True)
class Partners:
    """Nodes that may stand in for the other side of what is red.

    Attributes:
        usable: nodes of each partition that may run a job now, by partition.
        suspects: by partition, nodes of jobs that were red on two nodes, and nodes that rounds over
            all nodes blame.
        red: by partition, nodes of any red job.
        passed: nodes of legs that passed this night.
    """

    usable: Mapping[str, tuple[str, ...]]
    suspects: frozenset[tuple[str, str]]
    red: frozenset[tuple[str, str]]
    passed: frozenset[str]

    @classmethod
    def after(
        cls, result: RunResult, reds: Sequence[Red], usable: Mapping[str, tuple[str, ...]]
    ) -> Partners:
        """Return who may be a partner after a run."""
        passed = [each.nodes for each in result.legs if each.verdict is Verdict.PASS]
        return cls(
            usable=usable,
            suspects=frozenset(
                (red.key.partition, node)
                for red in reds
                for node in (*(red.nodes if len(red.nodes) <= 2 else ()), *red.at_fault)
            ),
            red=frozenset((red.key.partition, node) for red in reds for node in red.nodes),
            passed=frozenset(node for nodes in passed for node in nodes),
        )

    def sides_of(self, red: Red) -> tuple[list[tuple[Role, tuple[str, ...]]], str]:
        """Return both sides of a red leg, each beside partners, or why there are none.

        A job of many nodes is red whenever one of them is: only what was red as a pair is under
        suspicion when a pair looks for partners.  Both sides get unlike partners if there are
        enough; first those that passed, of these those with which a side keeps its place: the
        first node has rank 0, and a program may send one way only.
        """
        if red.halves is None:
            return [], ""
        partition, count = red.key.partition, len(red.nodes) // 2
        doubted = self.suspects if len(red.nodes) == 2 else self.red
        others = sorted(
            node
            for node in self.usable.get(partition, ())
            if node not in red.nodes and (partition, node) not in doubted
        )
        if len(others) < count:
            have = f"{len(others)} of the {count} nodes" if others else "no node"
            return [], f"{have} of {partition} that could be a partner is usable and not red itself"
        found: list[tuple[Role, tuple[str, ...]]] = []
        taken: tuple[str, ...] = ()
        sides = zip((Role.FIRST, Role.SECOND), red.halves, red.halves[::-1], strict=True)
        for role, side, other in sides:
            is_first = _comes_first(side, other)
            in_place = [node for node in others if _comes_first(side, (node,)) is is_first]
            kept = [*in_place, *(node for node in others if node not in in_place)]
            ranked = sorted(kept, key=lambda node: node not in self.passed)
            fresh = [node for node in ranked if node not in taken]
            taken = tuple((fresh if len(fresh) >= count else ranked)[:count])
            found.append((role, tuple(sorted((*side, *taken)))))
        return found, ""


def _comes_first(side: Iterable[str], others: Iterable[str]) -> bool:
    """Tell whether Slurm gives the ranks of ``side`` the lower numbers."""
    return max(map(natural, side)) < min(map(natural, others))


def unseen(ask: LookAsked, reason: str) -> Look:
    """Return a look that came to nothing."""
    return Look(
        role=ask.role, nodes=ask.nodes or ask.red.nodes, colour=LookColour.NONE, reason=reason
    )


def look_at(ask: LookAsked, result: RunResult) -> Look:
    """Return what a run saw of what was asked.

    Another verdict than PASS or a red one, and any verdict from other nodes, is nothing seen; so is
    all of a run that is doubtful as a whole.  A FAIL that does not explain what was red is green.
    Beside others a node may send where it received: there the leg the other way answers too, and
    if there is none and the program sends one way, its PASS is nothing seen.
    """
    red, is_same = ask.red, ask.role is Role.SAME
    base = Look(role=ask.role, nodes=ask.nodes, colour=LookColour.NONE, run_id=result.run_id)
    keys = (red.key,) if is_same else _answering(red.key)
    mine = [leg for leg in result.legs if any(_is(key, leg.key) for key in keys)]
    doubt = next((leg for leg in result.legs if leg.doubts_run), None)
    if doubt or not mine:
        said = f"{doubt.check} {doubt.reason}" if doubt else "it was not run when looked at again"
        return replace(base, reason=said)
    leg = min(mine, key=lambda each: (each.verdict not in RED, each.verdict is Verdict.PASS))
    there = _nodes_of(leg, result)
    if there != ask.nodes:
        # No verdict is kept beside nodes that it is not of: others read looks as evidence.
        ran = f"it ran on {','.join(there)}" if there else "it ran nowhere"
        said = f"asked for {','.join(ask.nodes)}, {ran}: {leg.verdict.value}"
        return replace(base, reason=f"{said} {leg.reason}".rstrip())
    seen = replace(base, verdict=leg.verdict, reason=leg.reason, leg=leg)
    if leg.verdict in RED:
        is_red = red.is_explained_by(leg, beside_others=not is_same)
        return replace(seen, colour=LookColour.RED if is_red else LookColour.GREEN)
    if leg.verdict is not Verdict.PASS:
        return replace(seen, reason=f"{leg.verdict.value}: {leg.reason}")
    if not is_same and len(mine) == 1 and _sends_the_other_way(ask, leg):
        return replace(base, reason=f"{leg.leg} sends the other way on {','.join(ask.nodes)}")
    return replace(seen, colour=LookColour.GREEN)


def _answering(key: LegKey) -> tuple[LegKey, LegKey]:
    back = f".{BACK}"
    name = key.leg.removesuffix(back) if key.leg.endswith(back) else f"{key.leg}{back}"
    return key, replace(key, leg=name)


def _sends_the_other_way(ask: LookAsked, leg: LegResult) -> bool:
    """Tell whether a pair's one-way program sends from the side here that received before."""
    nodes, row = ask.red.nodes, program_of(leg.suite, leg.program)
    if len(nodes) != 2 or row is None or row.messages is None or row.messages.back:
        return False
    mine, before = nodes if ask.role is Role.FIRST else nodes[::-1]
    (now,) = (node for node in ask.nodes if node != mine)
    return _comes_first((mine,), (before,)) is not _comes_first((mine,), (now,))


def _is(red: LegKey, seen: LegKey) -> bool:
    """Tell whether a leg answers for a red one; a check that left no leg answers for all of its."""
    return red == seen or ("" in {red.leg, seen.leg} and replace(red, leg=seen.leg) == seen)


#: So many flutters of one leg within the nights that count are red.  A leg that stalls by chance in
#: one night of a hundred does so three times in ten nights with a chance of 1.1e-4 (binomial); a
#: loose connector does so within weeks.
FLUTTERS_RED = 3


def with_flutters(
    confirmations: Sequence[Confirmation], before: Mapping[str, int], nights: int
) -> Iterator[Confirmation]:
    """Yield the confirmations with their flutters counted; too many make one red again."""
    for each in confirmations:
        count = before.get(str(each.red.key), 0)
        if each.finding is not LookResult.NOT_REPEATED:
            yield replace(each, flutters=count)
            continue
        said = f"{each.sentence}, {count + 1} in the last {nights} nights"
        if count + 1 < FLUTTERS_RED:
            yield replace(each, flutters=count + 1, sentence=said)
        else:
            said += f": {FLUTTERS_RED} are red"
            flutters = LookResult.FLUTTERS
            yield replace(each, flutters=count + 1, sentence=said, finding=flutters)


def settled(result: RunResult, confirmations: Sequence[Confirmation]) -> RunResult:
    """Return the run's result with what was not repeated as the PASS that the look saw.

    What was UNJUDGED and is judged now is what its look measured.  Everything else keeps its
    verdict; each leg that was looked at says what became of it.
    """
    found = {(each.red.key, each.red.verdict): each for each in mildest_first(confirmations)}
    legs = (_settled(leg, found.get((leg.key, leg.verdict))) for leg in result.legs)
    return replace(result, legs=tuple(legs))


def _settled(leg: LegResult, mine: Confirmation | None) -> LegResult:
    if mine is None:
        return leg
    told = Finding(text=f"confirmation: {mine.finding.value}: {mine.sentence}")
    passed = FindingKind.SECOND_LOOK_PASSED
    if look := mine.counting:
        if mine.verdict is Verdict.PASS:
            told = replace(told, kind=passed)
        if look.leg is not None and look.leg.key == leg.key:
            return replace(look.leg, findings=(told, *look.leg.findings))
        # A look whose check left no leg at all: the leg keeps its name.
        leg = replace(leg, verdict=mine.verdict, reason=look.reason)
    if mine.verdict is leg.verdict:
        return replace(leg, findings=(told, *leg.findings))
    was = Finding(text=f"second look: it was {leg.verdict.value}: {leg.reason}", kind=passed)
    return replace(leg, verdict=Verdict.PASS, reason="", findings=(told, *leg.findings, was))
