"""Whether users get a node back after a repair: partners, a run with them, a verdict, a line.

Nothing is changed in Slurm: what is to be done stands in lines for a person.  A partner that turns
out bad is replaced by another, and a node is never held against itself (``pairs.check.admission``).
How ReFrame is started and Slurm is asked is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabricproof.core.errors import ConfigError
from fabricproof.core.hostlist import SAFE_NAME, expand, fold
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.plain import plain
from fabricproof.core.units import by_key, counted, natural
from fabricproof.job.evidence.error_rates import UNCOUNTED
from fabricproof.job.leg import ADMISSION_CHECK, ADMITTED, PARTNER
from fabricproof.job.run import LegResult, RunResult
from fabricproof.nightly.conduct import Runner
from fabricproof.nodes.slurm import RESERVED
from fabricproof.pairs.campaign.nodes import Standing, admit_command, once_ended
from fabricproof.pairs.campaign.plan import blank_campaign, seconds_of_all
from fabricproof.pairs.check.in_job import PART_OF_LEG
from fabricproof.pairs.check.partners import (
    ALL_ALIKE,
    LEAST_PARTNERS,
    choose_partners,
    plan_admission,
)
from fabricproof.site import FabricSpec, PartitionSpec, Site

#: sets of partners that are tried where one of them turns out bad
TRIES = 3

#: has Slurm give a node jobs again
_RESUME = "scontrol update NodeName={} State=RESUME"

#: what no later run takes back
_RED = frozenset({Verdict.FAIL, Verdict.INVALID})

#: verdicts of a partner's rows that make another one take its place
_NO_PARTNER = frozenset({Verdict.FAIL, Verdict.INVALID, Verdict.MISSING})


@dataclass(frozen=True, kw_only=True)
class AdmissionMeans:
    """All that an admission needs of the world.

    Attributes:
        leaf_of: asks for the leaf of nodes; empty where nobody knows.
        drain: makes the line that drains a node, of node, run and reason.
        reservation: in which the job runs; empty for none.
        partners: that a person chose; empty: this chooses.
    """

    site: Site
    partition: PartitionSpec
    run: Runner
    standing: Callable[[], Standing]
    leaf_of: Callable[[Sequence[str]], Mapping[str, str]]
    say: Callable[[str], object]
    drain: Callable[[str, str, str], str]
    reservation: str = ""
    partners: tuple[str, ...] = ()

    @property
    def fabrics(self) -> tuple[str, ...]:
        """Fabrics over which a node must be good: those of the partition that have a link."""
        specs = (self.site.fabric_spec(name) for name in self.partition.fabrics)
        return tuple(each.name for each in specs if each.link is not None)

    @property
    def left_out(self) -> frozenset[str]:
        """Nodes that the site leaves out of pairs: the job has none of them either."""
        without = self.partition.pairs_without
        return frozenset(expand(without)) if without else frozenset()


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """What became of one node.

    Attributes:
        reasons: why not, worst first; where it is PASS what was shown.
        notes: what else was seen of it.
        run_id: the run that says so; empty where there was none.
        lines: for a person to run, to have it measured or to put the verdict into effect.
        is_of_all: it is INVALID only where all its partners are: no fault of the node.
    """

    node: str
    verdict: Verdict
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    run_id: str = ""
    lines: tuple[str, ...] = ()
    is_of_all: bool = False


@dataclass(frozen=True, kw_only=True)
class Admittance:
    """What an admission came to.

    Attributes:
        nodes: each of them.
        runs: with which partners it was tried, in order: run and partners.
        bad_partners: partner -> why it was none.
        status: exit status of a run that did not come to its end; 0 where all did.
    """

    nodes: tuple[Admitted, ...]
    runs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    bad_partners: Mapping[str, str]
    status: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst of the nodes."""
        return worst([each.verdict for each in self.nodes])

    def record(self) -> dict[str, Any]:
        """Return it as plain data, the form of ``--json``."""
        runs = [{"run_id": run, "partners": used} for run, used in self.runs]
        return plain(self, "verdict", without={"status"}, runs=runs)


def admit(nodes: Sequence[str], means: AdmissionMeans) -> Admittance:
    """Measure nodes with partners, and say of each whether users may have it."""
    standing = _standing((*nodes, *means.partners), means)
    said: dict[str, list[Admitted]] = {node: [] for node in nodes}
    bad: dict[str, str] = {}
    runs: list[tuple[str, tuple[str, ...]]] = []
    status, left = 0, list(nodes)
    while left := _to_be_had(left, said, standing, means):
        partners = _partners(left, standing, means, bad)
        why = _too_few(partners, bad, means)
        if len(runs) == TRIES:
            why = f"{TRIES} runs had a bad partner each"
        if why:
            for node in left:
                said[node].append(_missing(node, why))
            break
        for line in planned(left, partners, means):
            means.say(line)
        ran = means.run(arguments(left, means), (*left, *partners))
        runs.append(("" if ran.left_nothing else ran.run_id, partners))
        for node in left:
            said[node].append(_of_run(node, ran, means))
        status = ran.status
        new = bad_partners(ran, partners)
        bad |= new
        for partner, reason in new.items():
            means.say(f"{partner} is no partner: {reason}")
        left = [node for node in left if new and not ran.stopped and _is_open(said[node][-1], ran)]
        if left:
            standing = once_ended((*left, *partners), means.standing)
    found = [_of_tries(tries) for tries in said.values()]
    return Admittance(
        nodes=tuple(_with_lines(found, means)),
        runs=tuple(runs),
        bad_partners=bad,
        status=status,
    )


def plan(nodes: Sequence[str], means: AdmissionMeans) -> tuple[str, ...]:
    """Return what :func:`admit` would do first, in lines; start nothing."""
    standing = _standing((*nodes, *means.partners), means)
    said: dict[str, list[Admitted]] = {node: [] for node in nodes}
    left = _to_be_had(nodes, said, standing, means)
    lines: list[str] = []
    for each in (each for tries in said.values() for each in tries):
        lines += [f"{each.node}: {each.reasons[0]}", *(f"  {line}" for line in each.lines)]
    if left:
        partners = _partners(left, standing, means, {})
        why = _too_few(partners, {}, means)
        lines += [why] if why else planned(left, partners, means)
    return tuple(lines)


def _standing(names: Sequence[str], means: AdmissionMeans) -> Standing:
    """Return how the nodes stand; ConfigError if a node is unknown, or no link judges one."""
    partition = means.partition
    if not means.fabrics:
        raise ConfigError(
            f"partition {partition.name!r} has no fabric with a link to judge a node by",
            source=str(means.site.folder / "fabric.toml"),
            expected=f"a link in one of: {', '.join(partition.fabrics) or 'none'}",
        )
    standing = means.standing()
    known = {*standing.free, *standing.busy, *standing.out}
    for each in names:
        if each not in known or SAFE_NAME.fullmatch(each) is None:
            raise ConfigError(
                f"partition {partition.name!r} has no node of this name",
                expected=fold(tuple(sorted(known, key=natural))),
                got=repr(each),
            )
    return standing


def arguments(nodes: Sequence[str], means: AdmissionMeans) -> list[str]:
    """Return ReFrame's options that measure ``nodes`` with partners, and nothing else."""
    return [
        *("-r", f"--system={means.site.name}:{means.partition.name}"),
        *("-n", f"^{ADMISSION_CHECK}%"),
        *("-S", f"{ADMISSION_CHECK}.admitted={','.join(nodes)}"),
    ]


def planned(nodes: Sequence[str], partners: Sequence[str], means: AdmissionMeans) -> Iterator[str]:
    """Yield what it costs to measure nodes with partners, fabric by fabric: a job of each."""
    site, everybody = means.site, tuple(sorted((*nodes, *partners), key=natural))
    for name in means.fabrics:
        spec = site.fabric_spec(name)
        rails = [(each.interface,) for each in spec.rails]
        wide = tuple(rail for each in rails for rail in each)
        blank = blank_campaign(site, means.partition, name, means.partition.stacks[0], name="plan")
        campaign = replace(
            blank,
            nodes=everybody,
            net_paths=(*rails, *([wide] if len(rails) > 1 else [])),
            seconds=blank.seconds / PART_OF_LEG,
        )
        campaign = plan_admission(site, campaign, nodes)
        seconds = seconds_of_all(site, campaign)
        yield (
            f"{name}: {', '.join(nodes)} with {', '.join(partners)}: 1 job, "
            f"{len(campaign.rounds)} rounds of {campaign.seconds:.3g} s one way, "
            f"{seconds / 60:.3g} minutes and {seconds * len(everybody):.0f} node-seconds at most"
        )


def _partners(
    nodes: Sequence[str], standing: Standing, means: AdmissionMeans, bad: Mapping[str, str]
) -> tuple[str, ...]:
    chosen = set(means.partners or standing.free) - means.left_out
    free = tuple(each for each in standing.free if each in chosen)
    return choose_partners(nodes, free, means.leaf_of((*nodes, *free)), tuple(bad))


def _to_be_had(
    nodes: Sequence[str],
    said: Mapping[str, list[Admitted]],
    standing: Standing,
    means: AdmissionMeans,
) -> list[str]:
    """Return the nodes that can be measured now; why others cannot is added to what is said."""
    why_not = {node: _not_to_be_had(node, standing, means) for node in nodes}
    for node, why in why_not.items():
        if why is not None:
            said[node].append(replace(why, lines=()) if said[node] else why)
    return [node for node in nodes if why_not[node] is None]


def _too_few(partners: Sequence[str], bad: Mapping[str, str], means: AdmissionMeans) -> str:
    if len(partners) >= LEAST_PARTNERS:
        return ""
    chosen = f" of {', '.join(means.partners)} (--with)" if means.partners else ""
    had = f"{counted(len(partners), 'partner')}{chosen} can be had now, {LEAST_PARTNERS} are needed"
    had += f"; no partner: {', '.join(bad)}" if bad else ""
    left_out = sorted(means.left_out & set(means.partners or means.left_out), key=natural)
    return f"{had}; the site leaves {fold(left_out)} out (pairs_without)" if left_out else had


def _missing(node: str, reason: str, lines: Sequence[str] = ()) -> Admitted:
    return Admitted(node=node, verdict=Verdict.MISSING, reasons=(reason,), lines=tuple(lines))


def _is_open(admitted: Admitted, ran: RunResult) -> bool:
    """Return whether other partners may change what a run says of a node.

    What its own counters say they do not: a fault that comes and goes may stay away then.
    """
    is_its_own = any(
        each.name == UNCOUNTED and each.verdict is Verdict.FAIL
        for leg in ran.legs
        if leg.row_of(ADMITTED) == admitted.node
        for each in leg.quantities
    )
    return admitted.verdict is not Verdict.PASS and not is_its_own


def _of_tries(tries: Sequence[Admitted]) -> Admitted:
    """Return what all runs say of a node; the later ones were with other partners.

    A try without a run says why none was made, and changes nothing.  The others may decide what
    was open.  They take back no FAIL and no INVALID: whether a partner was the reason or the fault
    stayed away is unknown, so PASS is UNJUDGED after it.
    """
    if not tries[-1].run_id and len(tries) > 1:
        kept, why = _of_tries(tries[:-1]), tries[-1].reasons[0]
        return replace(kept, reasons=(*kept.reasons, f"not measured again: {why}"))
    *before, last = tries
    red = [each for each in before if each.verdict in _RED]

    def told(of: Sequence[Admitted]) -> list[str]:
        return [
            f"run {each.run_id or '(none)'}: {each.verdict.value}: {reason}"
            for each in reversed(of)
            for reason in each.reasons
        ]

    if not red:
        earlier = (f"before: {words}" for words in told(before))
        return replace(last, notes=(*last.notes, *earlier))
    notes = tuple(dict.fromkeys(note for each in tries for note in each.notes))
    if last.verdict in {Verdict.PASS, Verdict.UNJUDGED}:
        why = (
            f"{red[-1].verdict.value} in run {red[-1].run_id}, {last.verdict.value} in run "
            f"{last.run_id} with other partners: nobody knows whether the fault went with these"
        )
        reasons = (why, *told(tries))
        return replace(last, verdict=Verdict.UNJUDGED, reasons=reasons, notes=notes)
    sure = [each for each in (*red, last) if not each.is_of_all] or [last]
    verdict = worst([each.verdict for each in sure])
    shown = next(each for each in reversed(sure) if each.verdict is verdict)
    others = told([each for each in tries if each.run_id != shown.run_id])
    return replace(shown, reasons=(*shown.reasons, *others), notes=notes)


def _not_to_be_had(node: str, standing: Standing, means: AdmissionMeans) -> Admitted | None:
    """Return why a node cannot be measured now and what would help; None where it can."""
    if node in means.left_out:
        return _missing(
            node, "the site leaves it out of all pairs (pairs_without in its site file)"
        )
    if node in standing.free:
        return None
    again = admit_command(means.site, means.partition, node)
    if node in standing.busy:
        why = "it runs jobs, its last one ends now, or Slurm keeps it for one that waits (plnd)"
        return _missing(node, why, [again])
    state = standing.out[node]
    name = means.reservation or f"admit-{node}"
    inside = f"{again} --reservation {name}"
    if state in RESERVED:
        why = f"it is {state}: a reservation has it (scontrol show reservation), name it"
        return _missing(node, why, [f"{again} --reservation NAME"])
    if not state.startswith(("drain", "drng")):
        return _missing(node, f"it is {state}: it must run slurmd and answer first", [again])
    make = (
        f"scontrol create reservation ReservationName={name} Nodes={node} StartTime=now "
        "Duration=02:00:00 Users=$USER Flags=MAINT,FLEX,IGNORE_JOBS"
    )
    keep = [] if means.reservation else [f"# {make}"]
    why = (
        f"it is {state}: Slurm gives a drained node no job; a reservation keeps users away instead"
    )
    return _missing(node, why, [*keep, f"# {_RESUME.format(node)}", inside])


def bad_partners(result: RunResult, partners: Sequence[str]) -> dict[str, str]:
    """Return the partners that are none -> why, as the rows of a run say.

    If nothing of any of them was measured that is the run's doing, and nobody's fault.  So is a
    path over which each of them is INVALID: of the stack or the site, whoever the partners are.
    """
    rows = [leg for leg in result.legs if leg.row_of(PARTNER) in partners]
    of_all = _paths_invalid(result)
    found: dict[str, str] = {}
    for leg in rows if any(leg.verdict is not Verdict.MISSING for leg in rows) else ():
        node = leg.row_of(PARTNER)
        may_have_lost = any(
            each.name == UNCOUNTED and each.verdict is Verdict.UNJUDGED for each in leg.quantities
        )
        is_bad = leg.verdict in _NO_PARTNER or may_have_lost
        if is_bad and (leg.fabric, _path(leg, node)) not in of_all:
            found.setdefault(node, leg.reason)
    return found


def _paths_invalid(result: RunResult) -> set[tuple[str, str]]:
    """Return the paths over which all partners are INVALID, each behind its fabric."""
    verdicts = by_key(
        ((leg.fabric, _path(leg, partner)), leg.verdict)
        for leg in result.legs
        if (partner := leg.row_of(PARTNER))
    )
    return {path for path, found in verdicts.items() if {*found} == {Verdict.INVALID}}


def _of_run(node: str, ran: RunResult, means: AdmissionMeans) -> Admitted:
    """Return what a run says of a node: the worst over all fabrics.

    What makes the whole run doubtful is said of each node.
    """
    if ran.left_nothing:
        return _missing(node, f"the run came to nothing: {ran.stopped}")
    rows = [leg for leg in ran.legs if leg.row_of(ADMITTED) == node]
    mine = [leg for leg in rows if leg.verdict is not Verdict.SKIPPED]
    specs = [means.site.fabric_spec(name) for name in means.fabrics]
    absent = list(filter(None, (_why_absent(ran, spec, node, mine) for spec in specs)))
    absent += [f"the run did not come to its end: {ran.stopped}"] if ran.stopped else []
    said = [*mine, *(leg for leg in ran.legs if leg.doubts_run)]
    verdict = worst([*(leg.verdict for leg in said), *(Verdict.MISSING for _ in absent)])
    if verdict is Verdict.PASS:
        reasons = [_shown(leg, node) for leg in rows]
    else:
        reasons = absent if verdict is Verdict.MISSING else []
        worst_ones = (leg for leg in said if leg.verdict is verdict)
        reasons = [
            *reasons,
            *(f"{_path(leg, node) or leg.check}: {leg.reason}" for leg in worst_ones),
        ]
    invalid = {(leg.fabric, _path(leg, node)) for leg in said if leg.verdict is Verdict.INVALID}
    is_of_all = bool(invalid) and invalid <= _paths_invalid(ran)
    if is_of_all and ALL_ALIKE not in reasons[0]:
        reasons = [ALL_ALIKE, *reasons]
    return Admitted(
        node=node,
        verdict=verdict,
        reasons=tuple(dict.fromkeys(reasons)),
        notes=tuple(dict.fromkeys(str(each) for leg in rows for each in leg.findings)),
        run_id=ran.run_id,
        is_of_all=is_of_all,
    )


def _path(leg: LegResult, node: str) -> str:
    return leg.leg.removeprefix(f"{ADMITTED}.{node}.").removeprefix(f"{PARTNER}.{node}.")


def _shown(leg: LegResult, node: str) -> str:
    said = (each.reason for each in leg.quantities if each.reason)
    return f"{_path(leg, node)}: {'; '.join(said)}"


def _why_absent(result: RunResult, fabric: FabricSpec, node: str, rows: Sequence[LegResult]) -> str:
    """Return of which path of a fabric a node has no row and why; empty where it has all.

    All rails together are not due where the stack cannot take them.
    """
    of_fabric = [
        leg
        for leg in result.legs
        if leg.check == ADMISSION_CHECK and leg.fabric in {fabric.name, ""}
    ]
    there = {_path(leg, node) for leg in rows if leg.fabric == fabric.name}
    skipped = {leg.leg: leg.reason for leg in of_fabric if leg.verdict is Verdict.SKIPPED}
    rails = [each.interface for each in fabric.rails]
    due = [*rails, *({"+".join(rails)} - {*rails, *skipped})]
    absent = [each for each in due if each not in there]
    if not absent:
        return ""
    said = skipped.get(absent[0]) or "the run left no row of it"
    if there:
        return f"{fabric.name}: {', '.join(absent)} not measured: {said}"
    return f"{fabric.name}: {next((leg.reason for leg in of_fabric if leg.reason), said)}"


def _with_lines(nodes: Sequence[Admitted], means: AdmissionMeans) -> Iterator[Admitted]:
    """Yield the nodes with what a person may run now, commented out; nothing is run here.

    A reservation is deleted only where that gives users no node that is not PASS.
    """
    are_all_good = all(each.verdict is Verdict.PASS for each in nodes)
    for each in nodes:
        lines = _lines(each, means, are_all_good=are_all_good) if each.run_id else ()
        yield replace(each, lines=(*each.lines, *lines))


def _lines(found: Admitted, means: AdmissionMeans, *, are_all_good: bool) -> Iterator[str]:
    inside = means.reservation
    if found.verdict is Verdict.PASS:
        if not inside:
            yield f"# {_RESUME.format(found.node)}  # where it is drained again by now"
        elif are_all_good:
            yield f"# scontrol delete ReservationName={inside}  # gives all its nodes to users"
        else:
            yield f"# scontrol update ReservationName={inside} Nodes-={found.node}"
        return
    is_its_own = found.verdict in _RED and not found.is_of_all
    if is_its_own or (inside and not found.is_of_all):
        before = f"  # before reservation {inside} ends" if inside else ""
        yield f"# {means.drain(found.node, found.run_id, found.reasons[0])}{before}"
    if not is_its_own:
        again = f" --reservation {inside}" if inside else ""
        yield f"{admit_command(means.site, means.partition, found.node)}{again}"
