"""What a campaign came to: a matrix for each quantity, judged by physics, the site and itself.

Only what is proven to have taken its path goes into a matrix; what took another is INVALID, what
nobody can tell is UNJUDGED, what was planned and not measured is MISSING.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fabricproof.core.findings import Finding, Where
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.units import by_key, first_few
from fabricproof.job.evidence.error_rates import counters_set_back, due_kinds, went_back
from fabricproof.pairs.blame.judge import Judged, MatrixVerdict, judge_matrix
from fabricproof.pairs.blame.losses import Carried, Loss, Losses
from fabricproof.pairs.blame.say import Said
from fabricproof.pairs.blame.undecided import say
from fabricproof.pairs.campaign.kernel import Binary
from fabricproof.pairs.campaign.matrices import Quantity, Row, disturbed, doubtful_rows, matrix_of
from fabricproof.pairs.campaign.path import (
    PairProof,
    disturbances,
    down_links,
    errors_of,
    prove_pair,
    wrong_paths,
)
from fabricproof.pairs.campaign.plan import Campaign, PlannedRound, physics
from fabricproof.pairs.campaign.record import Measured, Pair, RoundRecord, left_over
from fabricproof.pairs.limits import NO_LIMITS, Limits, limits_of
from fabricproof.pairs.matrix import Flags, Matrix
from fabricproof.pairs.picture import Picture, picture_of
from fabricproof.pairs.population import Population, populations_of
from fabricproof.physics import Link
from fabricproof.site import Site
from fabricproof.traffic import PathProof, PathState, Risen
from fabricproof.traffic.disturbance import DisturbanceKind, share_taken
from fabricproof.traffic.error_rates import PORT_COUNTERS

#: words with which a library names itself (MPI_Get_library_version), by family, in small letters:
#: MPICH's "MPICH Version", Cray's "CRAY MPICH version"
_OWN_WORDS = {
    "openmpi": "open mpi",
    "mpich": "mpich version",
    "mvapich": "mvapich",
    "mvapich2": "mvapich2",
    "craympich": "cray mpich",
    "parastation": "parastation",
    "intelmpi": "intel(r) mpi",
}

#: rounds in which an error rose that no other rule judges, before a good second look clears no pair
LEAST_LASTING = 2

#: counters that all rounds are judged by: how often they rose, and how often a link went down
RATED = frozenset({"carrier_changes", "link_downed"}).union(*PORT_COUNTERS.values())


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A pair in a round whose values do not stand.

    Attributes:
        disturbance: what others did, if that is why.
        rose: node, interface and counter of each error that rose.
    """

    verdict: Verdict
    net_path: str
    round: int
    pair: tuple[str, str]
    reason: str
    disturbance: DisturbanceKind | None = None
    rose: tuple[Risen, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """One quantity over one or several paths.

    Attributes:
        populations: of each path, then of a latency of each distance.
        why_told_only: why its verdict does not count; empty if it does.
        doubtful: rows that are low or miss the reference, and that nobody explains.
        cleared: what was low once and good at the second look.
    """

    quantity: Quantity
    net_paths: tuple[str, ...]
    judged: Judged
    said: Said
    populations: tuple[Population, ...]
    why_told_only: str = ""
    doubtful: Flags = field(repr=False)
    cleared: tuple[Finding, ...] = ()
    limits: Limits = NO_LIMITS

    def doubtful_pairs(self, net_path: str) -> tuple[tuple[int, int], ...]:
        """Return the pairs of nodes over a path of which a value is doubtful, lowest first."""
        matrix = self.judged.matrix
        if net_path not in matrix.rails:
            return ()
        rows = np.flatnonzero(self.doubtful & (matrix.rail == matrix.rails.index(net_path)))
        rows = rows[np.argsort(self.judged.shortfall[rows], kind="stable")]
        ends = zip(matrix.source[rows].tolist(), matrix.destination[rows].tolist(), strict=True)
        return tuple(dict.fromkeys((min(pair), max(pair)) for pair in ends))

    @property
    def title(self) -> str:
        """What it is, in words: ``32 KiB bandwidth over rail0 and rail1``."""
        return f"{self.judged.matrix.kind.words} over {' and '.join(self.net_paths)}"

    @property
    def verdict(self) -> Verdict:
        """Its verdict, in the words of a run."""
        return self.judged.verdict.as_verdict


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What a campaign came to so far.

    Attributes:
        troubles: pairs whose values do not stand.
        wrong_paths: nodes because of which the path of pairs is wrong.
        losses: who lost or damaged more packets than may be.
        left: path -> what is planned and not measured.
        proven: pairs in rounds whose path is proven.
        strangers: libraries that are not of the family that was to be measured, in words.
        binaries: kernels and the MPIs that they ran with.
        carried: how much went over each path, and how much of it may have been lost at most.
        counted: the same for each node; None if nothing was judged.
        down_links: links that went down too often while it ran.
    """

    campaign: Campaign
    results: tuple[Result, ...]
    troubles: tuple[Trouble, ...]
    losses: tuple[Loss, ...]
    left: Mapping[int, tuple[PlannedRound, ...]]
    rounds: int
    proven: int
    notes: tuple[str, ...]
    strangers: tuple[str, ...] = ()
    binaries: tuple[Binary, ...] = ()
    second_looks: tuple[Finding, ...] = ()
    carried: tuple[Carried, ...] = ()
    counted: Losses | None = field(default=None, repr=False)
    down_links: tuple[Finding, ...] = ()
    wrong_paths: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all that counts."""
        counted = [each.verdict for each in self.results if not each.why_told_only]
        counted += [each.verdict for each in self.troubles]
        counted += [each.verdict for each in self.losses]
        counted += [Verdict.FAIL] * len(self.down_links)
        counted += [Verdict.MISSING] * bool(self.left or self.campaign.out or not self.rounds)
        counted += [Verdict.INVALID] * bool(self.strangers)
        return worst(counted)


def pictures_of(outcome: Outcome) -> list[Picture]:
    """Return a picture of each quantity; one whose verdict does not count blames nobody."""
    again = outcome.campaign.resume if outcome.left or outcome.campaign.out else ""
    found = []
    for each in outcome.results:
        drawn = picture_of(each.judged, each.said, each.title, again)
        if why := each.why_told_only:
            verdict, reason = MatrixVerdict.UNJUDGED, f"told only: {why}"
            drawn = replace(drawn, verdict=verdict, reason=reason, blame=(), undecided=())
        found.append(drawn)
    return found


def judge_campaign(site: Site, campaign: Campaign, done: Measured) -> Outcome:
    """Judge what a campaign has measured."""
    rows: list[Row] = []
    troubles: list[Trouble] = []
    losses = Losses(site, campaign.fabric, campaign.net_paths)
    proofs: list[tuple[int, PairProof]] = []
    links = [physics(site, campaign, at).link for at in range(len(campaign.net_paths))]
    for net_path, record in done.rounds:
        for pair in record.pairs:
            proof, wrong, own = _of_pair(campaign, record, pair, net_path, links[net_path], losses)
            proofs.append((net_path, (pair, proof)))
            troubles += wrong
            rows += own
    results = tuple(_results(site, campaign, rows, troubles))
    troubles, passing = _passing(campaign, rows, troubles)
    family = site.stack(campaign.stack).family
    strangers = tuple(
        f"the kernel ran with another MPI than {family}: {each.mpi[:80]}"
        for each in done.binaries
        if _OWN_WORDS[family] not in each.mpi.lower()
    )
    measured_over = dict.fromkeys(rail for rails in campaign.net_paths for rail in rails)
    return Outcome(
        campaign=campaign,
        results=results,
        troubles=tuple(troubles),
        losses=losses.found(),
        carried=losses.carried(),
        counted=losses,
        down_links=down_links((record for _, record in done.rounds), measured_over),
        wrong_paths=tuple(
            found
            for net_path, there in sorted(by_key(proofs).items())
            for found in wrong_paths(campaign.path_name(net_path), there)
        ),
        left=left_over(campaign, done),
        rounds=len(done.rounds),
        proven=sum(proof.state is PathState.PROVEN for _, (_, proof) in proofs),
        notes=(*strangers, *done.lost),
        binaries=done.binaries,
        strangers=strangers,
        second_looks=(*(said for each in results for said in each.cleared), *passing),
    )


def _of_pair(
    campaign: Campaign, record: RoundRecord, pair: Pair, net_path: int, link: Link, losses: Losses
) -> tuple[PathProof, list[Trouble], list[Row]]:
    """Return the proof of a pair's path in a round, what is wrong there, and what stands.

    What was lost is added to ``losses``.
    """
    rails, values = campaign.net_paths[net_path], record.pairs[pair]
    proof = prove_pair(record, pair, values, rails, link)
    trouble = Trouble(
        verdict=Verdict.INVALID if proof.state is PathState.WRONG else Verdict.UNJUDGED,
        net_path=campaign.path_name(net_path),
        round=record.number,
        pair=pair,
        reason=proof.reason,
        rose=proof.rose,
    )
    troubles = [trouble] * (proof.state is not PathState.PROVEN)
    # Errors make a value no PASS; it may still show whose fault they are.
    if proof.state not in {PathState.PROVEN, PathState.DISTURBED}:
        return proof, troubles, []
    errors = errors_of(record, pair, rails)
    losses.add(net_path, record.number, errors)
    due = due_kinds(rails)
    if back := counters_set_back(each for each in errors if each.kind in due):
        troubles.append(replace(trouble, reason=went_back(back), rose=()))
    near = disturbances(record, pair, values, rails, link.data_rate_mb_s)
    counting = [each for each in near if each.counts]
    rows = [
        Row(
            net_path=net_path,
            value=value,
            taken=share_taken(near),
            by="; ".join(each.reason for each in counting),
            kind=counting[0].kind if counting else None,
        )
        for value in values
    ]
    return proof, troubles, rows


def _passing(
    campaign: Campaign, rows: Iterable[Row], troubles: Sequence[Trouble]
) -> tuple[list[Trouble], list[Finding]]:
    """Return the troubles that stay, and those that a second look at the pair had not.

    An error that rose in two rounds stays, however good a pair was afterwards: unless all rounds
    are judged by how often it rose.
    """
    had = {(each.net_path, each.round, frozenset(each.pair)) for each in troubles}
    again = {
        (campaign.path_name(row.net_path), row.value.round, frozenset(row.ends))
        for row in rows
        if row.value.round in campaign.again
    }
    stands = {(net_path, pair) for net_path, _, pair in again - had}
    rounds = {(each.net_path, each.round, error) for each in troubles for error in each.rose}
    often = Counter(error for _, _, error in rounds)
    stay, passing = [], []
    for each in troubles:
        is_lasting = any(
            often[error] >= LEAST_LASTING and error[-1] not in RATED for error in each.rose
        )
        is_good_now = (each.net_path, frozenset(each.pair)) in stands
        if each.verdict is Verdict.UNJUDGED and is_good_now and not is_lasting:
            said = f"{' to '.join(each.pair)} over {each.net_path} did not count once"
            text = f"{said} ({each.reason}) and stands at the second look"
            where = Where(nodes=each.pair, rail=each.net_path)
            passing.append(Finding(where=where, text=text))
        else:
            stay.append(each)
    return stay, passing


def _results(
    site: Site, campaign: Campaign, rows: Sequence[Row], troubles: list[Trouble]
) -> Iterator[Result]:
    """Judge each quantity over the paths that may be held against each other.

    Values that others explain are left out, and added to ``troubles``.
    """
    groups = by_key(
        (repr(physics(site, campaign, net_path)), net_path)
        for net_path in range(len(campaign.net_paths))
    )
    for quantity in Quantity:
        for net_paths in groups.values():
            own = [row for row in rows if row.net_path in net_paths and row.quantity is quantity]
            if own and quantity is Quantity.BANDWIDTH:
                matrix = matrix_of(campaign, quantity, net_paths, own)
                lower = _limits(site, campaign, quantity, net_paths[0], matrix).bound
                are_disturbed = disturbed(own, lower or 0.0)
                troubles += [
                    Trouble(
                        verdict=Verdict.UNJUDGED,
                        net_path=campaign.path_name(row.net_path),
                        round=row.value.round,
                        pair=row.ends,
                        reason=f"{row.number:.4g} MB/s, disturbed: {row.by}",
                        disturbance=row.kind,
                    )
                    for row, is_one in zip(own, are_disturbed, strict=True)
                    if is_one
                ]
                own = [row for row, is_one in zip(own, are_disturbed, strict=True) if not is_one]
            if own:
                yield _result(site, campaign, quantity, own, troubles)


def _limits(
    site: Site, campaign: Campaign, quantity: Quantity, net_path: int, matrix: Matrix
) -> Limits:
    kind = matrix.kind
    found = site.references_for(
        fabric=campaign.fabric,
        suite="fabricproof",
        program="pairs",
        stack=campaign.stack,
        num_rails=len(campaign.net_paths[net_path]),
    )
    meant = {kind.quantity, f"{kind.quantity}_{kind.size}"}
    (limits,) = limits_of(
        [matrix],
        fabric=None if quantity is Quantity.BOTH_WAYS else physics(site, campaign, net_path),
        references={name: reference for name, reference in found.items() if name in meant},
        tolerance=None if kind.lower_is_better else site.spec.tolerance,
    )
    return limits


def _result(
    site: Site,
    campaign: Campaign,
    quantity: Quantity,
    rows: Sequence[Row],
    troubles: Sequence[Trouble],
) -> Result:
    # A path of which nothing stands gets no word of its own: it is among what is left.
    net_paths = sorted({row.net_path for row in rows})
    matrix = matrix_of(campaign, quantity, net_paths, rows)
    limits = _limits(site, campaign, quantity, net_paths[0], matrix)
    judged = judge_matrix(matrix, leaves=campaign.places, limits=limits)
    doubtful = doubtful_rows(judged, limits)
    # What was low once and is good when the pair was measured again is low no longer.
    good = {
        (row.net_path, row.ends)
        for row, is_low in zip(rows, doubtful.tolist(), strict=True)
        if row.value.round in campaign.again and not is_low
    }
    low_once = [
        is_low and (row.net_path, row.ends) in good
        for row, is_low in zip(rows, doubtful.tolist(), strict=True)
    ]
    cleared = tuple(
        _cleared(campaign, row) for row, is_one in zip(rows, low_once, strict=True) if is_one
    )
    if cleared:
        rows = [row for row, is_one in zip(rows, low_once, strict=True) if not is_one]
        matrix = matrix_of(campaign, quantity, net_paths, rows)
        judged = judge_matrix(matrix, leaves=campaign.places, limits=limits)
        doubtful = doubtful_rows(judged, limits)
    if judged.verdict is MatrixVerdict.PASS and doubtful.any():
        reason = f"{int(doubtful.sum())} values miss the reference, at the second look too"
        judged = replace(judged, verdict=MatrixVerdict.UNDECIDED, reason=reason)
    excused = {node for each in troubles for node in each.pair}
    if judged.verdict is MatrixVerdict.MISSING and set(matrix.unmeasured) <= excused:
        reason = f"no value of {first_few(matrix.unmeasured)} stands"
        judged = replace(judged, verdict=MatrixVerdict.UNJUDGED, reason=reason)
    why = ""
    if judged.verdict is not MatrixVerdict.INVALID:
        is_open = judged.verdict in {MatrixVerdict.UNJUDGED, MatrixVerdict.UNDECIDED}
        shared = site.partition(campaign.partition).oversubscribed
        if quantity is Quantity.LATENCY and shared:
            why = "nodes share cores: a latency is that of the scheduler"
        elif quantity is not Quantity.BANDWIDTH and limits.bound is None and is_open:
            why = f"the site has no reference of its {quantity}"
    return Result(
        quantity=quantity,
        net_paths=matrix.rails,
        judged=judged,
        said=say(judged),
        populations=populations_of(judged),
        why_told_only=why,
        doubtful=doubtful,
        cleared=cleared,
        limits=limits,
    )


def _cleared(campaign: Campaign, row: Row) -> Finding:
    name = campaign.path_name(row.net_path)
    text = (
        f"{' to '.join(row.ends)} over {name} was low once "
        f"({row.number:.4g} {row.quantity.unit}) and is good at the second look"
    )
    return Finding(where=Where(nodes=row.ends, rail=name), text=text)
