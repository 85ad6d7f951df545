"""What a campaign came to: a matrix for each quantity, judged by physics, the site and itself.

Only what is proven to have taken its path goes into a matrix; what took another is INVALID, what
nobody can say of is UNJUDGED, what was planned and not measured is MISSING.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from fabricproof.pairs.campaign.matrices import (
    OF_MODE,
    Quantity,
    Row,
    disturbed,
    doubtful_rows,
    good_at_second_look,
    matrix_of,
    second_look,
)
from fabricproof.pairs.campaign.path import (
    PairProof,
    disturbances,
    down_links,
    errors_of,
    prove_pair,
    wrong_paths,
)
from fabricproof.pairs.campaign.plan import Campaign, PlannedRound, physics
from fabricproof.pairs.campaign.record import Measured, left_over
from fabricproof.pairs.limits import NO_LIMITS, Limits, limits_of
from fabricproof.pairs.matrix import Flags, Matrix
from fabricproof.pairs.picture import Picture, picture_of
from fabricproof.pairs.population import Population, populations_of
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

#: rounds in which an error rose that no other judges, before a good second look clears no pair
LEAST_LASTING = 2

#: counters that all rounds are judged by: how often they rose, and how often a link went down
RATED = frozenset({"carrier_changes", "link_downed"}).union(*PORT_COUNTERS.values())

#: what a path that is not proven makes of a value
_OF_PATH = {
    PathState.WRONG: Verdict.INVALID,
    PathState.UNKNOWN: Verdict.UNJUDGED,
    PathState.DISTURBED: Verdict.UNJUDGED,
}


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A pair in a round whose values do not stand.

    Attributes:
        disturbance: what others did, where that is why.
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
        why_told_only: why its verdict does not count; empty where it does.
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
        counted: the same for each node; None where nothing was judged.
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
    lacks = outcome.left or outcome.campaign.out
    again = outcome.campaign.resume if lacks else ""
    found = []
    for each in outcome.results:
        drawn = picture_of(each.judged, each.said, each.title, again)
        if why := each.why_told_only:
            told = f"told only: {why}"
            drawn = replace(
                drawn, verdict=MatrixVerdict.UNJUDGED, reason=told, blame=(), undecided=()
            )
        found.append(drawn)
    return found


def judge_campaign(site: Site, campaign: Campaign, done: Measured) -> Outcome:
    """Judge what a campaign has measured."""
    rows: list[Row] = []
    troubles: list[Trouble] = []
    losses = Losses(site, campaign.fabric, campaign.net_paths)
    proven = 0
    proofs: list[tuple[int, PairProof]] = []
    for net_path, record in done.rounds:
        link, rails = physics(site, campaign, net_path).link, campaign.net_paths[net_path]
        for pair, values in record.pairs.items():
            proof = prove_pair(record, pair, values, rails, link)
            proofs.append((net_path, (pair, proof)))
            if proof.state is PathState.PROVEN:
                proven += 1
            else:
                troubles.append(_trouble(campaign, net_path, record.number, pair, proof))
            # Errors make a value no PASS; it may still show whose fault they are.
            if proof.state in {PathState.PROVEN, PathState.DISTURBED}:
                errors = errors_of(record, pair, rails)
                losses.add(net_path, record.number, errors)
                due = due_kinds(rails)
                if back := counters_set_back(each for each in errors if each.kind in due):
                    doubt = PathProof(state=PathState.UNKNOWN, reason=went_back(back))
                    troubles.append(_trouble(campaign, net_path, record.number, pair, doubt))
                near = disturbances(record, pair, values, rails, link.data_rate_mb_s)
                by = "; ".join(each.reason for each in near if each.counts)
                kind = next((each.kind for each in near if each.counts), None)
                taken = share_taken(near)
                rows += [
                    Row(net_path=net_path, value=each, taken=taken, by=by, kind=kind)
                    for each in values
                ]
    results = tuple(_results(site, campaign, rows, troubles))
    troubles, passing = _passing(campaign, rows, troubles)
    strangers = _strangers(site, campaign, (each.mpi for each in done.binaries))
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
        proven=proven,
        notes=(*strangers, *done.lost),
        binaries=done.binaries,
        strangers=tuple(strangers),
        second_looks=(*(said for each in results for said in each.cleared), *passing),
    )


def _passing(
    campaign: Campaign, rows: Iterable[Row], troubles: Iterable[Trouble]
) -> tuple[list[Trouble], list[Finding]]:
    """Return the troubles that stay, and those that a second look at the pair had not.

    An error that rose in two rounds stays, however good a pair was afterwards: unless all rounds
    are judged by how often it rose.
    """
    again = campaign.again
    told = list(troubles)
    disturbed = {(each.net_path, each.round, frozenset(each.pair)) for each in told}
    stands = {
        (name, frozenset(_ends(row)))
        for row in rows
        if row.value.round in again
        and ((name := campaign.path_name(row.net_path)), row.value.round, frozenset(_ends(row)))
        not in disturbed
    }
    rounds = {(each.net_path, each.round, error) for each in told for error in each.rose}
    often = Counter(error for _, _, error in rounds)
    stay, passing = [], []
    for each in told:
        pair = frozenset(each.pair)
        is_lasting = any(
            often[error] >= LEAST_LASTING and error[-1] not in RATED for error in each.rose
        )
        if each.verdict is Verdict.UNJUDGED and (each.net_path, pair) in stands and not is_lasting:
            said = f"{' to '.join(each.pair)} over {each.net_path} did not count once"
            text = f"{said} ({each.reason}) and stands at the second look"
            where = Where(nodes=each.pair, rail=each.net_path)
            passing.append(Finding(where=where, text=text))
        else:
            stay.append(each)
    return stay, passing


def _ends(row: Row) -> tuple[str, str]:
    return row.value.source, row.value.destination


def _trouble(
    campaign: Campaign, net_path: int, number: int, pair: tuple[str, str], proof: PathProof
) -> Trouble:
    return Trouble(
        verdict=_OF_PATH[proof.state],
        net_path=campaign.path_name(net_path),
        round=number,
        pair=pair,
        reason=proof.reason,
        rose=proof.rose,
    )


def _strangers(site: Site, campaign: Campaign, mpis: Iterable[str]) -> list[str]:
    """Return what is said of a library that is not of the family that was to be measured."""
    family = site.stack(campaign.stack).family
    return [
        f"the kernel ran with another MPI than {family}: {mpi[:80]}"
        for mpi in mpis
        if _OWN_WORDS[family] not in mpi.lower()
    ]


def _results(
    site: Site, campaign: Campaign, rows: Sequence[Row], troubles: list[Trouble]
) -> Iterable[Result]:
    """Judge each quantity over the paths that may be held against each other.

    Values that others explain are left out, and added to ``troubles``.
    """
    groups = by_key(
        (repr(physics(site, campaign, net_path)), net_path)
        for net_path in range(len(campaign.net_paths))
    )
    for quantity in Quantity:
        for net_paths in groups.values():
            own = [
                row
                for row in rows
                if row.net_path in net_paths and OF_MODE[row.value.mode] is quantity
            ]
            if quantity is Quantity.BANDWIDTH:
                own = _undisturbed(site, campaign, net_paths, own, troubles)
            # A path of which nothing stands gets no word of its own: it is among what is left.
            seen = [
                net_path for net_path in net_paths if any(row.net_path == net_path for row in own)
            ]
            if own:
                yield _result(site, campaign, quantity, seen, own, troubles)


def _undisturbed(
    site: Site, campaign: Campaign, net_paths: list[int], rows: list[Row], troubles: list[Trouble]
) -> list[Row]:
    """Return the rows without those that are low for what others took."""
    if not rows:
        return rows
    matrix = matrix_of(campaign, Quantity.BANDWIDTH, net_paths, rows)
    lower = _limits(site, campaign, Quantity.BANDWIDTH, net_paths[0], matrix).bound or 0.0
    kept = []
    for row, is_disturbed in zip(rows, disturbed(rows, lower), strict=True):
        value = row.value
        if not is_disturbed:
            kept.append(row)
            continue
        troubles.append(
            Trouble(
                verdict=Verdict.UNJUDGED,
                net_path=campaign.path_name(row.net_path),
                round=value.round,
                pair=(value.source, value.destination),
                reason=f"{value.bandwidth_mb_s:.4g} MB/s, disturbed: {row.by}",
                disturbance=row.kind,
            )
        )
    return kept


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
    net_paths: list[int],
    rows: list[Row],
    troubles: Sequence[Trouble],
) -> Result:
    matrix = matrix_of(campaign, quantity, net_paths, rows)
    limits = _limits(site, campaign, quantity, net_paths[0], matrix)
    leaves = campaign.places
    judged = judge_matrix(matrix, leaves=leaves, limits=limits)
    doubtful = doubtful_rows(judged, limits)
    good_now = good_at_second_look(campaign, rows, doubtful)
    cleared = tuple(
        second_look(campaign, quantity, rows[at]) for at in np.flatnonzero(good_now).tolist()
    )
    if cleared:
        rows = [row for row, is_good in zip(rows, good_now.tolist(), strict=True) if not is_good]
        matrix = matrix_of(campaign, quantity, net_paths, rows)
        judged = judge_matrix(matrix, leaves=leaves, limits=limits)
        doubtful = doubtful_rows(judged, limits)
    if judged.verdict is MatrixVerdict.PASS and doubtful.any():
        reason = f"{int(doubtful.sum())} values miss the reference, at the second look too"
        judged = replace(judged, verdict=MatrixVerdict.UNDECIDED, reason=reason)
    excused = {node for each in troubles for node in each.pair}
    if judged.verdict is MatrixVerdict.MISSING and set(matrix.unmeasured) <= excused:
        named = first_few(matrix.unmeasured)
        judged = replace(
            judged, verdict=MatrixVerdict.UNJUDGED, reason=f"no value of {named} stands"
        )
    return Result(
        quantity=quantity,
        net_paths=matrix.rails,
        judged=judged,
        said=say(judged),
        populations=populations_of(judged),
        why_told_only=_why_told_only(site, campaign, quantity, judged, limits.bound is not None),
        doubtful=doubtful,
        cleared=cleared,
        limits=limits,
    )


def _why_told_only(
    site: Site, campaign: Campaign, quantity: Quantity, judged: Judged, has_bound: bool
) -> str:
    if judged.verdict is MatrixVerdict.INVALID:
        return ""
    if quantity is Quantity.LATENCY and site.partition(campaign.partition).oversubscribed:
        return "nodes share cores: a latency is that of the scheduler"
    if quantity is Quantity.BANDWIDTH or has_bound:
        return ""
    if judged.verdict in {MatrixVerdict.UNJUDGED, MatrixVerdict.UNDECIDED}:
        return f"the site has no reference of its {quantity}"
    return ""
