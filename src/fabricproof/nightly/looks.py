"""Which legs are measured again after a run, and on which nodes; pure.

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


def reds_of(result: RunResult) -> tuple[Red, ...]:
    """Return what was red in a run."""
    return tuple(
        _with_campaign(_to_look_at(leg, result), leg, result)
        for leg in result.legs
        if leg.verdict in RED
    )


def _with_campaign(red: Red, leg: LegResult, result: RunResult) -> Red:
    """Return ``red`` with what rounds over all nodes say of it, where the run had some.

    A row over one rail says something of several rails of which it is one, not the reverse.
    """
    rows = [
        each
        for each in result.legs
        if each.suite == CAMPAIGN_SUITE and each.partition == red.key.partition
    ]
    mine = [row for row in rows if _rails(row) and set(_rails(row)) <= set(red.rails)]
    blamed = [
        each
        for row in mine
        if row.verdict is Verdict.FAIL
        for each in row.findings
        if each.kind is FindingKind.BLAME and _explains(each, red.nodes)
    ]
    found = {each.text: each for each in blamed}
    clearing = (row for row in mine if _rails(row) == red.rails and _clears(row, leg, red.nodes))
    return replace(
        red,
        of_campaign=(red.key.check, red.key.fabric) in {(row.check, row.fabric) for row in rows},
        faults=tuple(found.values()),
        cleared_by=next((f"{row.check} with {row.stack}" for row in clearing), ""),
    )


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


def _clears(row: LegResult, leg: LegResult, nodes: Sequence[str]) -> bool:
    """Tell whether rounds over all nodes measured what is red in ``leg``, and blame none of it."""
    blamed = [each for each in row.findings if each.kind is FindingKind.BLAME]
    is_elsewhere = bool(blamed) and not any(
        _explains(each, nodes) or not each.where.hosts for each in blamed
    )
    is_good = row.verdict is Verdict.PASS or (row.verdict is Verdict.FAIL and is_elsewhere)
    return is_good and set(nodes) <= set(row.nodes) and bool(_kinds(row) & _kinds(leg))


def _kinds(leg: LegResult) -> set[str]:
    """Return what is judged there: ``bandwidth``, ``latency``; of a red leg, what is too low."""
    of_all = leg.suite == CAMPAIGN_SUITE
    return {
        each.name.partition("_")[0]
        for each in leg.quantities
        if each.value is not None and (of_all or each.verdict is Verdict.FAIL)
    }


def open_of(result: RunResult) -> tuple[Red, ...]:
    """Return what was UNJUDGED in a run for a cause that another look can change."""
    return tuple(
        _with_campaign(_to_look_at(leg, result, cause), leg, result)
        for leg in result.legs
        if (cause := _open_cause(leg))
    )


def _open_cause(leg: LegResult) -> str:
    """Return what left a leg UNJUDGED where that passes; empty where anything else did as well.

    Where there is no reference, or no proof of the path, another look says the same.
    """
    unjudged = [each for each in leg.quantities if each.verdict is Verdict.UNJUDGED]
    if leg.verdict is not Verdict.UNJUDGED or not unjudged:
        return ""
    if not all(each.disturbance or each.is_open is True for each in unjudged):
        return ""
    disturbed = any(each.disturbance for each in unjudged)
    return "was disturbed" if disturbed else "was left open by its rounds"


def _to_look_at(leg: LegResult, result: RunResult, cause: str = "") -> Red:
    return Red(
        key=leg.key,
        verdict=leg.verdict,
        reason=leg.reason,
        nodes=_nodes_of(leg, result),
        run_id=result.run_id,
        rails=_rails(leg),
        device=leg.device,
        cause=cause,
        leg=leg,
    )


def _nodes_of(leg: LegResult, result: RunResult) -> tuple[str, ...]:
    """Return the nodes of a leg's job: a leg of two may belong to a job of four."""
    return tuple(sorted(result.job_nodes.get(leg.job_id or "") or leg.nodes))


def _rails(leg: LegResult) -> tuple[str, ...]:
    return tuple(rail for each in leg.quantities[:1] for rail in each.rails)


def first_looks(reds: Iterable[Red]) -> tuple[Batch, ...]:
    """Return the looks at the same nodes; each set of nodes comes once before any comes twice."""
    groups: dict[tuple[str, str, tuple[str, ...]], dict[tuple[str, str], None]] = {}
    for red in reds:
        if why_no_look(red):
            continue
        group = groups.setdefault((red.key.partition, red.key.stack, red.nodes), {})
        group[red.key.check, red.key.fabric] = None
    batches = [
        Batch(partition=partition, stack=stack, nodes=nodes, checks=tuple(checks))
        for (partition, stack, nodes), checks in groups.items()
    ]
    return tuple(_each_nodes_first(batches))


def _each_nodes_first(batches: Sequence[Batch]) -> Iterator[Batch]:
    seen: set[tuple[str, ...]] = set()
    later = []
    for batch in batches:
        if batch.nodes in seen:
            later.append(batch)
        else:
            seen.add(batch.nodes)
            yield batch
    yield from later


def why_no_look(red: Red) -> str:
    """Return why a red leg cannot be looked at again; empty where it can."""
    if not red.key.leg and not red.nodes:
        return "it ran nowhere, so there are no nodes to look at again"
    if not red.nodes:
        return "nobody saw on which nodes it was red"
    if red.of_campaign and red.verdict in RED:
        return f"all nodes were measured in several rounds of one job: {red.reason}"
    return ""


@dataclass(frozen=True, kw_only=True)
class Partners:
    """Nodes that may stand in for the other side of a red pair.

    Attributes:
        usable: nodes of each partition that may run a job now, by partition.
        suspects: nodes of jobs that were red on two nodes, and nodes that rounds over all nodes
            blame, by partition.
        red: nodes of any red job, by partition.
        passed: nodes of legs that passed this night.
    """

    usable: Mapping[str, tuple[str, ...]]
    suspects: frozenset[tuple[str, str]]
    red: frozenset[tuple[str, str]]
    passed: frozenset[str]

    def of(self, red: Red) -> tuple[str, ...]:
        """Return partners for ``red``, those that passed this night first.

        A job of many nodes is red whenever one of them is; only what was red as a pair is under
        suspicion when a pair looks for partners.
        """
        partition = red.key.partition
        doubted = self.suspects if len(red.nodes) == 2 else self.red
        free = [
            node
            for node in self.usable.get(partition, ())
            if node not in red.nodes and (partition, node) not in doubted
        ]
        return tuple(sorted(free, key=lambda node: (node not in self.passed, node)))


def partners(
    reds: Iterable[Red], result: RunResult, usable: Mapping[str, tuple[str, ...]]
) -> Partners:
    """Return who may be a partner after the run ``result``."""
    reds = tuple(reds)
    return Partners(
        usable=usable,
        suspects=frozenset(
            (red.key.partition, node)
            for red in reds
            for node in (*(red.nodes if len(red.nodes) <= 2 else ()), *red.at_fault)
        ),
        red=frozenset((red.key.partition, node) for red in reds for node in red.nodes),
        passed=frozenset(
            node for leg in result.legs if leg.verdict is Verdict.PASS for node in leg.nodes
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Swap:
    """A side of a red leg beside other nodes."""

    red: Red
    role: Role
    nodes: tuple[str, ...]
    why_not: str = ""
    """Why it cannot be tried; empty where it can."""


def swaps(reds: Iterable[Red], free: Partners) -> tuple[Swap, ...]:
    """Return both sides of each red leg beside partners, unlike ones where there are enough.

    Of equally good partners those come first with which a side keeps its place: the first node has
    rank 0, and a program may send one way only.
    """
    found: list[Swap] = []
    for red in reds:
        if red.halves is None:
            continue
        others, count = free.of(red), len(red.halves[0])
        ranked = [
            _in_place(side, beside, others, free.passed)
            for side, beside in (red.halves, red.halves[::-1])
        ]
        first = ranked[0][:count]
        second = tuple(node for node in ranked[1] if node not in first)[:count]
        chosen = (first, second if len(second) == count else ranked[1][:count])
        why = "" if len(chosen[0]) == count else _too_few(red, len(others))
        for role, side, with_whom in zip(
            (Role.FIRST, Role.SECOND), red.halves, chosen, strict=True
        ):
            nodes = tuple(sorted((*side, *with_whom))) if not why else ()
            found.append(Swap(red=red, role=role, nodes=nodes, why_not=why))
    return tuple(found)


def _in_place(
    side: Sequence[str], beside: Sequence[str], others: Sequence[str], passed: frozenset[str]
) -> tuple[str, ...]:
    """Return partners for a side, first those that passed, of these those that keep its place."""
    is_first = _comes_first(side, beside)

    def is_worse(node: str) -> tuple[bool, bool]:
        return node not in passed, _comes_first(side, (node,)) is not is_first

    return tuple(sorted(others, key=is_worse))


def _comes_first(side: Iterable[str], others: Iterable[str]) -> bool:
    """Tell whether Slurm gives the ranks of ``side`` the lower numbers."""
    return max(map(natural, side)) < min(map(natural, others))


def _too_few(red: Red, count: int) -> str:
    need = len(red.nodes) // 2
    what = "no node" if not count else f"{count} of the {need} nodes"
    return f"{what} of {red.key.partition} that could be a partner is usable and not red itself"


def batches_of(swapped: Iterable[Swap]) -> tuple[Batch, ...]:
    """Return the looks that answer ``swapped``, one for each stack and set of nodes."""
    return first_looks(replace(each.red, nodes=each.nodes) for each in swapped if not each.why_not)


def look_at(
    red: Red,
    role: Role,
    asked: tuple[str, ...],
    result: RunResult,
) -> Look:
    """Return what the run ``result`` saw of ``red`` on the nodes ``asked``.

    Another verdict than PASS or a red one, and any verdict from other nodes, is nothing seen.  A
    FAIL by other numbers alone than those that were red is green for these, and so is one beside
    others that is by far less beyond its bounds.
    Beside others a node may send where it received: there the leg the other way answers too, and
    where there is none and the program sends one way, its PASS is nothing seen.

    A run that is doubtful as a whole, as ReFrame did not end as it should, saw nothing.
    """
    base = Look(role=role, nodes=asked, colour=LookColour.NONE, run_id=result.run_id)
    keys = _answering(red.key) if role is not Role.SAME else (red.key,)
    mine = [leg for leg in result.legs if any(_is(key, leg.key) for key in keys)]
    doubt = next((leg for leg in result.legs if leg.doubts_run), None)
    if doubt or not mine:
        said = f"{doubt.check} {doubt.reason}" if doubt else "it was not run when looked at again"
        return replace(base, reason=said)
    leg = min(mine, key=lambda each: (each.verdict not in RED, each.verdict is Verdict.PASS))
    there = _nodes_of(leg, result)
    seen = replace(base, verdict=leg.verdict, reason=leg.reason, leg=leg)
    if there != asked:
        # No verdict is kept beside nodes that it is not of: others read looks as evidence.
        ran = f"it ran on {','.join(there)}" if there else "it ran nowhere"
        said = f"asked for {','.join(asked)}, {ran}: {leg.verdict.value}"
        return replace(base, reason=f"{said} {leg.reason}".rstrip())
    if leg.verdict in RED:
        is_other = red.is_by_other_numbers(leg) or (
            role is not Role.SAME and red.is_far_worse_than(leg)
        )
        return replace(seen, colour=LookColour.GREEN if is_other else LookColour.RED)
    if leg.verdict is Verdict.PASS:
        if len(mine) == 1 and _other_way_alone(red, role, asked, leg):
            return replace(base, reason=f"{leg.leg} sends the other way on {','.join(asked)}")
        return replace(seen, colour=LookColour.GREEN)
    return replace(seen, reason=f"{leg.verdict.value}: {leg.reason}")


def _answering(key: LegKey) -> tuple[LegKey, LegKey]:
    back = f".{BACK}"
    name = key.leg.removesuffix(back) if key.leg.endswith(back) else f"{key.leg}{back}"
    return key, replace(key, leg=name)


def _other_way_alone(red: Red, role: Role, asked: tuple[str, ...], leg: LegResult) -> bool:
    """Tell whether a pair's one-way program sends from the side here that received before."""
    row = program_of(leg.suite, leg.program)
    if len(red.nodes) != 2 or row is None or row.messages is None or row.messages.back:
        return False
    mine = red.nodes[0] if role is Role.FIRST else red.nodes[1]
    (before,) = (node for node in red.nodes if node != mine)
    (now,) = (node for node in asked if node != mine)
    return _comes_first((mine,), (before,)) is not _comes_first((mine,), (now,))


def _is(red: LegKey, seen: LegKey) -> bool:
    """Tell whether a leg answers for a red one; a check that left no leg answers for all of its."""
    return red == seen or ("" in {red.leg, seen.leg} and replace(red, leg=seen.leg) == seen)


def unseen(red: Red, role: Role, nodes: tuple[str, ...], reason: str) -> Look:
    """Return a look that came to nothing."""
    return Look(role=role, nodes=nodes or red.nodes, colour=LookColour.NONE, reason=reason)


#: So many flutters of one leg within the nights that count are red.  A leg that stalls by chance in
#: one night of a hundred does so three times in ten nights with a chance of 1.1e-4 (binomial); a
#: loose connector does so within weeks.
FLUTTERS_RED = 3


def with_flutters(
    confirmations: Sequence[Confirmation], before: Mapping[LegKey, int], nights: int
) -> tuple[Confirmation, ...]:
    """Return the confirmations with their flutters counted; too many make one red again."""
    return tuple(_counted(each, before.get(each.red.key, 0), nights) for each in confirmations)


def _counted(confirmation: Confirmation, before: int, nights: int) -> Confirmation:
    if confirmation.finding is not LookResult.NOT_REPEATED:
        return replace(confirmation, flutters=before)
    count = before + 1
    said = f"{confirmation.sentence}, {count} in the last {nights} nights"
    if count < FLUTTERS_RED:
        return replace(confirmation, flutters=count, sentence=said)
    return replace(
        confirmation,
        flutters=count,
        finding=LookResult.FLUTTERS,
        sentence=f"{said}: {FLUTTERS_RED} are red",
    )


def settled(result: RunResult, confirmations: Sequence[Confirmation]) -> RunResult:
    """Return the run's result with what was not repeated as the PASS that the look saw.

    What was UNJUDGED and is judged now is what its look measured.  Everything else keeps its
    verdict; each leg that was looked at says what became of it.
    """
    found = {(each.red.key, each.red.verdict): each for each in mildest_first(confirmations)}
    return replace(result, legs=tuple(_settled(leg, found) for leg in result.legs))


def _settled(leg: LegResult, found: Mapping[tuple[LegKey, Verdict], Confirmation]) -> LegResult:
    mine = found.get((leg.key, leg.verdict))
    if mine is None:
        return leg
    if mine.counting is not None:
        return _measured_again(leg, mine)
    told = Finding(text=f"confirmation: {mine.finding.value}: {mine.sentence}")
    findings = (told, *leg.findings)
    if mine.verdict is leg.verdict:
        return replace(leg, findings=findings)
    words = f"second look: it was {leg.verdict.value}: {leg.reason}"
    said = Finding(text=words, kind=FindingKind.SECOND_LOOK_PASSED)
    return replace(leg, verdict=Verdict.PASS, reason="", findings=(*findings, said))


def _measured_again(leg: LegResult, mine: Confirmation) -> LegResult:
    """Return what the look measured in place of what was UNJUDGED, with both outcomes said."""
    look = mine.counting
    assert look is not None, "the caller asked"
    passed = mine.verdict is Verdict.PASS
    kind = FindingKind.SECOND_LOOK_PASSED if passed else FindingKind.NOTE
    told = Finding(text=f"confirmation: {mine.finding.value}: {mine.sentence}", kind=kind)
    if look.leg is not None and look.leg.key == mine.red.key:
        return replace(look.leg, findings=(told, *look.leg.findings))
    # A look whose check left no leg at all: the leg keeps its name.
    return replace(leg, verdict=mine.verdict, reason=look.reason, findings=(told, *leg.findings))
