"""Whether users may have a node (back): what rounds with partners say of it, as rows of a run.

A row is a node over one path, and says PASS only where all of this was seen: bandwidth as good as
its partners have among themselves, with two of them at least that are good; packets enough to rule
out that it loses what it may not; a preflight without a fault.  A partner gets the same rows, so
that a bad one is found and replaced by another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fabricproof.core.findings import Finding, as_notes, texts_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.units import at_size, counted, natural
from fabricproof.job.evidence.error_rates import UNCOUNTED, due_kinds, most_rate
from fabricproof.job.leg import ADMITTED, PARTNER
from fabricproof.job.outcome import Outcome as Row
from fabricproof.nodes.inventory.differences import compare
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.preflight import FLEET, Preflight
from fabricproof.pairs.blame.judge import MatrixVerdict
from fabricproof.pairs.blame.losses import Loss, SideCarried
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.campaign.matrices import Quantity
from fabricproof.pairs.campaign.plan import Campaign, PlannedRound
from fabricproof.pairs.campaign.verdict import Outcome, Result
from fabricproof.pairs.check.partners import ALL_ALIKE, LEAST_PARTNERS, ruled_out_ppm
from fabricproof.pairs.check.rows import PROGRAM, row_of, worst_of
from fabricproof.pairs.matrix import Flags
from fabricproof.verdict.references import Baseline
from fabricproof.verdict.value import DEFAULT_TOLERANCE, ERROR_UNIT, Judgement, no_number

Said = tuple[Verdict, str]

#: under which a row has what was planned of its node and not measured
LEFT = "pairs_not_measured"

#: in which packets of a node may be lost
_WAYS = ("transmit", "receive")


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What a job saw of nodes that are to be admitted.

    Attributes:
        outcome: of the rounds, after what is red was looked at again.
        links_of: what preflight says of some nodes of the job.
        mtu: bytes of a full packet; 0 if unknown.
        baseline: what the pairs of known-good runs had; None if the site has none.
        job_said: last words of what measured the rounds; empty if it said nothing.
    """

    outcome: Outcome
    admitted: tuple[str, ...]
    links_of: Callable[[Sequence[str]], Preflight]
    machines: Mapping[str, Machine | None]
    mtu: int
    baseline: Baseline | None = None
    job_said: str = ""

    @property
    def campaign(self) -> Campaign:
        """What was planned."""
        return self.outcome.campaign

    @property
    def partners(self) -> tuple[str, ...]:
        """The others."""
        return tuple(each for each in self.campaign.nodes if each not in self.admitted)

    @cached_property
    def links(self) -> Preflight:
        """What preflight says of all nodes."""
        return self.links_of(self.campaign.nodes)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each node and path, those that are to be admitted first."""
        for node in (*self.admitted, *self.partners):
            for net_path, rails in enumerate(self.campaign.net_paths):
                kind = ADMITTED if node in self.admitted else PARTNER
                quantities = [*self._values(node, net_path), *self._left(node, net_path)]
                if len(rails) == 1:
                    quantities += [*self._losses(node, net_path), *self._link(node, rails[0])]
                yield row_of(
                    f"{kind}.{node}.{self.campaign.path_name(net_path)}",
                    rails,
                    quantities,
                    self._notes(node) if net_path == 0 else (),
                    (node,),
                )

    def _notes(self, node: str) -> tuple[Finding, ...]:
        notes = [each for each in self.links.notes if each.where.node == node]
        notes += [each for each in self.outcome.second_looks if node in each.where.nodes]
        if node in self.admitted:
            notes += as_notes(unlike(node, self.partners, self.machines))
        return tuple(dict.fromkeys(notes))

    def _link(self, node: str, rail: str) -> Iterator[Judgement]:
        """Yield what preflight says of a rail of the node.

        Whether it is like the others its partners alone tell: many new nodes are no majority.
        """
        like = self.links_of((node, *(each for each in self.partners if each != node)))
        found = [each for each in self.links.of_rail(rail) if each.fact != FLEET]
        found += [each for each in like.of_rail(rail) if each.fact == FLEET]
        for each in found:
            if node in each.where.hosts:
                named = each.verdict is not Verdict.PASS
                yield Judgement(**vars(each.quantity) | {"named": named})

    def _values(self, node: str, net_path: int) -> Iterator[Judgement]:
        name = self.campaign.path_name(net_path)
        counting = [
            each
            for each in self.outcome.results
            if name in each.net_paths and not each.why_told_only
        ]
        seen = [_Seen(self, each, node, name) for each in counting]
        seen = [each for each in seen if each.own.any()]
        burden = self._burden(node, net_path)
        # Errors that rose make no value of the node a PASS.  What others took is no error of it.
        doubts = {
            frozenset(each.pair): each.reason
            for each in self.outcome.troubles
            if each.net_path == name and each.disturbance is None
        }
        why = _of_most_pairs(node, doubts)
        doubt = (Verdict.UNJUDGED, why) if why else None
        if not any(each.result.quantity is Quantity.BANDWIDTH for each in seen):
            why = {**self.campaign.skipped, **self.campaign.out}.get(node, "")
            reason = f"{node} is {why}" if why else f"no pair of {node} stands over {name}"
            if not self.outcome.rounds and self.job_said:
                reason += f"; the job said: {self.job_said}"
            verdict, reason = burden or doubt or (Verdict.MISSING, reason)
            yield no_number(at_size("bandwidth", self.campaign.size), verdict, reason)
        for each in seen:
            verdict, reason = burden or each.said()
            if verdict is Verdict.PASS:
                verdict, reason = doubt or (verdict, reason)
            rows = each.good if each.good.any() and verdict is Verdict.PASS else each.own
            found = worst_of(each.result, rows, verdict, reason)
            yield self._by_baseline(found, name) if node in self.admitted else found

    def _left(self, node: str, net_path: int) -> Iterator[Judgement]:
        """Yield that pairs of the node were not measured, if that is not their other ends' doing.

        Of a pair that hangs nothing stands, and what the node's other pairs show is no proof of it.
        """
        path = self.campaign.path_name(net_path)
        left = {
            pair: f"{' - '.join(sorted(pair, key=natural))} not measured over {path} "
            f"in {counted(count, 'planned round')}"
            for pair, count in self._pairs(self.outcome.left.get(net_path, ())).items()
        }
        if why := _of_most_pairs(node, left):
            yield no_number(LEFT, Verdict.MISSING, why)

    def _by_baseline(self, found: Judgement, net_path: str) -> Judgement:
        """Return a PASS as UNJUDGED where known-good rounds of all pairs never had so little.

        The value is the lowest of the node's pairs, the baseline's that of all pairs of a run.
        """
        campaign = self.campaign
        place = (campaign.partition, campaign.fabric, campaign.stack, net_path)
        lows = [
            row.low
            for group in (self.baseline.groups if self.baseline else ())
            if group.place.program == PROGRAM
            and (group.place.partition, group.place.fabric, group.place.stack, group.place.leg)
            == place
            for row in group.rows
            if row.quantity == found.name and row.unit == found.unit and row.better > 0
        ]
        if found.verdict is not Verdict.PASS or not lows or found.value is None:
            return found
        assert self.baseline is not None
        said = f"baseline {self.baseline.name} has {min(lows):.4g} {found.unit} at least"
        if found.value >= min(lows):
            return replace(found, reason=f"{found.reason}; {said}")
        reason = f"{found.value:.4g} {found.unit} at worst, and {said}; {found.reason}"
        return replace(found, verdict=Verdict.UNJUDGED, reason=reason)

    def _burden(self, node: str, net_path: int) -> Said | None:
        """Return what makes values of the node INVALID, whatever they are.

        A partner is not at fault for what it showed with a node that is to be admitted and that
        showed it with others as well.  Where all pairs show it, no node is: each row says so.
        """
        name = self.campaign.path_name(net_path)
        wrong = {
            frozenset(each.pair): each.reason
            for each in self.outcome.troubles
            if each.verdict is Verdict.INVALID and each.net_path == name
        }
        due = self._pairs(each for each in self.campaign.rounds if net_path in each.net_paths)
        had = set(due - self._pairs(self.outcome.left.get(net_path, ())))
        if had <= set(wrong) and any(pair <= set(self.partners) for pair in had):
            why = f"{ALL_ALIKE}: {next(iter(wrong.values()))}"
        elif node in self.admitted:
            why = next((reason for pair, reason in wrong.items() if node in pair), "")
        else:
            why = _of_most_pairs(node, wrong)
        why = why or next(iter(self.outcome.strangers), "")
        return (Verdict.INVALID, why) if why else None

    def _pairs(self, rounds: Iterable[PlannedRound]) -> Counter[frozenset[str]]:
        """Return pairs by name, each with how many of these rounds have it."""
        return Counter(self.campaign.names(pair) for each in rounds for pair in each.pairs)

    def _losses(self, node: str, net_path: int) -> Iterator[Judgement]:
        """Yield what the node lost; of one to be admitted also that no more can be hidden.

        What a node lost with one partner alone is of either end, and of neither for sure.
        """
        name = self.campaign.path_name(net_path)
        of_path = [each for each in self.outcome.losses if each.net_path == name]
        shared: list[Loss] = []
        for one in self.admitted:
            mine = [each for each in of_path if each.node is None and one in each.ends]
            shared += mine if len({frozenset(each.ends) for each in mine}) == 1 else []

        def said_of(loss: Loss) -> Said:
            if loss not in shared:
                return loss.verdict, loss.sentence
            either = f"{' - '.join(loss.ends)}, either end or what is between"
            return Verdict.UNJUDGED, f"{either}: {loss.sentence}"

        mine = [each for each in of_path if node in each.ends]
        if node in self.admitted:
            rails = self.campaign.net_paths[net_path]
            red = [said_of(each) for each in mine]
            red += [
                (Verdict.FAIL, each.text)
                for each in self.outcome.down_links
                if each.where.node == node and each.where.rail in rails
            ]
            yield self._lost(node, net_path, red)
        elif of_node := [each for each in mine if each.node == node or each in shared]:
            yield no_number(UNCOUNTED, *said_of(of_node[0]))

    def _lost(self, node: str, net_path: int, red: Sequence[Said]) -> Judgement:
        counted_by = self.outcome.counted
        sides = list(counted_by.sides(net_path, node)) if counted_by else []
        sides.sort(key=self._most, reverse=True)  # the reason is of what is least sure
        said = [*red, *(self._hidden(each) for each in sides)]
        due = due_kinds(self.campaign.net_paths[net_path])
        if len({each.direction for each in sides if each.what in due}) < len(_WAYS):
            path = self.campaign.path_name(net_path)
            said.append((Verdict.UNJUDGED, f"nobody counted what {node} lost over {path}"))
        verdict = worst([each for each, _ in said])
        bar = max((ruled_out_ppm(each.limit.per_million_packets) for each in sides), default=None)
        return Judgement(
            name=UNCOUNTED,
            value=self._most(sides[0]) if sides else None,
            unit=ERROR_UNIT,
            message_size=None,
            verdict=verdict,
            reason=next(words for each, words in said if each is verdict),
            reference=bar,
            upper=bar,
            origin=sides[0].limit.origin if sides else "",
        )

    def _full(self, side: SideCarried) -> int:
        """Return how many full packets a side carried: acknowledgements tell of no loss."""
        return min(side.packets, side.bytes // self.mtu) if self.mtu else side.packets

    def _most(self, side: SideCarried) -> float:
        return most_rate(side.events, self._full(side))

    def _hidden(self, side: SideCarried) -> Said:
        """Say whether a side carried enough to rule out that it loses what it may not."""
        packets, most = self._full(side), self._most(side)
        bar = ruled_out_ppm(side.limit.per_million_packets)
        gigabytes = side.bytes / 1e9
        said = (
            f"{side.direction}s over {side.net_path}: {side.events} of {packets} full packets "
            f"{side.what.value} in {gigabytes:.3g} GB "
            f"({side.events / max(gigabytes, 1e-9):.3g} per GB): "
            f"at most {most:.3g} per million (95 %), and {bar:.4g} must be ruled out"
        )
        return (Verdict.PASS if most <= bar else Verdict.UNJUDGED), said


def _of_most_pairs(node: str, pairs: Mapping[frozenset[str], str]) -> str:
    """Return why one of these pairs is the node's; empty if all are of others.

    A pair is of that end which is in more of them; where both are in as many, of both.
    """
    left = dict(pairs)
    while left:
        having = Counter(end for pair in left for end in pair)
        most = {end for end, count in having.items() if count == max(having.values())}
        if node in most:
            return next(reason for pair, reason in left.items() if node in pair)
        left = {pair: reason for pair, reason in left.items() if not pair & most}
    return ""


def unlike(
    node: str, partners: Sequence[str], machines: Mapping[str, Machine | None]
) -> tuple[str, ...]:
    """Return in what a node is unlike its partners, who are alike in it; what is its own is not."""
    mine = machines.get(node)
    others = [there for each in partners if (there := machines.get(each)) is not None]
    if mine is None or len(others) < LEAST_PARTNERS:
        return ()

    def is_mine_alone(part: str, fact: str) -> bool:
        values = {each.facts.get(part, {}).get(fact) for each in others}
        return len(values) == 1 and None not in values

    said = f"its {len(others)} partners"
    return tuple(
        f"unlike its like: {each.sentence}"
        for each in compare(others[0], mine, (said, node))
        if each.fact and each.second is not None and is_mine_alone(each.part, each.fact)
    )


@dataclass(frozen=True)
class _Seen:
    """A quantity of a node over a path."""

    admission: Admission
    result: Result
    node: str
    net_path: str

    @cached_property
    def own(self) -> Flags:
        """Its rows over the path."""
        return self._of({self.node})

    @cached_property
    def bad(self) -> set[str]:
        """Nodes that are no yardstick: blamed, over any rail, impossible, or to be admitted."""
        judged = self.result.judged
        rows = judged.impossible
        ends = (*judged.matrix.source[rows], *judged.matrix.destination[rows])
        bad = {judged.matrix.nodes[at] for at in ends}
        if judged.verdict is MatrixVerdict.FAIL:
            bad |= {each.where.node for each in self.result.said.blame if each.where.node}
        return (bad - {self.node}) | set(self.admission.admitted)

    @cached_property
    def good(self) -> Flags:
        """Its rows with partners that nobody blames."""
        return self.own & ~self._of(self.bad - {self.node})

    def _of(self, names: Collection[str]) -> Flags:
        """Return the rows over the path of which an end is one of these nodes."""
        matrix = self.result.judged.matrix
        ends = np.array([name in names for name in matrix.nodes], dtype=bool)
        found: Flags = matrix.rail == matrix.rails.index(self.net_path)
        found &= ends[matrix.source] | ends[matrix.destination]
        return found

    def said(self) -> Said:
        """Return verdict and reason; what is worse is asked first."""
        judged, said = self.result.judged, self.result.said
        if (judged.impossible & self.own).any():
            return Verdict.INVALID, judged.reason
        if red := self._why_red():
            return Verdict.FAIL, red
        if ((judged.low | self.result.doubtful) & self.good).any():
            # Low values of the node are nobody's fault, or of what is between.
            words = texts_of((*said.blame, *said.undecided))[:2]
            words = words or [f"values of {self.node} are low: {judged.reason}"]
            return Verdict.UNJUDGED, "; ".join(words)
        is_bandwidth = self.result.quantity is Quantity.BANDWIDTH
        if is_bandwidth and self.node in self.admission.admitted:
            return self._beside_partners()
        return Verdict.PASS, f"lowest of {self._partners_of(self.own)} partners"

    def _why_red(self) -> str:
        judged = self.result.judged
        if judged.verdict is not MatrixVerdict.FAIL:
            return ""
        for each in self.result.said.blame:
            is_pair = each.fact == SuspectKind.PAIR and self.node in each.where.nodes
            is_mine = each.where.node == self.node
            is_mine |= is_pair and self.node in self.admission.admitted
            if is_mine and each.where.rail in {"", self.net_path}:
                return each.text
        rail = judged.matrix.rails.index(self.net_path)
        return judged.reason if rail in judged.below_rails else ""

    def _beside_partners(self) -> Said:
        """Compare the node with what its partners have among themselves."""
        matrix, name, good = self.result.judged.matrix, self.net_path, self.good
        count = self._partners_of(good, far=True)
        if count < LEAST_PARTNERS:
            where = "on other leaves " * bool(self.admission.campaign.leaf_of)
            had = f"{counted(count, 'partner')} {where}known good over {name}"
            return Verdict.MISSING, f"{had}; {LEAST_PARTNERS} are needed"
        among = self._of(matrix.nodes) & ~self._of(self.bad)
        if not among.any():
            return Verdict.MISSING, f"no partners were measured among themselves over {name}"
        level = float(np.median(matrix.value[among]))
        at = matrix.nodes.index(self.node)
        shares = [
            float(np.median(matrix.value[way])) / level
            for way in (good & (matrix.source == at), good & (matrix.destination == at))
            if way.any()
        ]
        least, partners = min(shares), counted(count, "partner")
        said = f"{least:.1%} of what partners have among themselves ({level:.4g}), with {partners}"
        if len(shares) < 2 or least < 1 - DEFAULT_TOLERANCE:
            return Verdict.UNJUDGED, f"{self.node} reaches {said}"
        if self._has_no_level:
            return Verdict.UNJUDGED, f"{said}; {self.result.judged.reason}"
        return Verdict.PASS, said

    @property
    def _has_no_level(self) -> bool:
        """Whether nobody knows how fast pairs should be; that a partner died is none of it."""
        judged, matrix = self.result.judged, self.result.judged.matrix
        if judged.verdict is not MatrixVerdict.MISSING:
            return judged.verdict is MatrixVerdict.UNJUDGED
        is_of_partners = set(matrix.unmeasured) <= set(self.admission.partners)
        return bool(matrix.missing) or not is_of_partners or self.result.limits.bound is None

    def _partners_of(self, rows: Flags, *, far: bool = False) -> int:
        """Return with how many other nodes these rows are; far: on other leaves, if known."""
        matrix, campaign = self.result.judged.matrix, self.admission.campaign
        ends = {*matrix.source[rows].tolist(), *matrix.destination[rows].tolist()}
        names = {matrix.nodes[at] for at in ends} - {self.node}
        leaf_of = dict(zip(campaign.nodes, campaign.leaf_of, strict=False))
        if far and len(set(leaf_of.values())) > 1:
            names = {each for each in names if leaf_of[each] != leaf_of[self.node]}
        return len(names)
