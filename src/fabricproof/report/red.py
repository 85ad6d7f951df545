"""What is red in a run, grouped as an administrator goes after it, and how sure it is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabricproof.core.findings import FindingKind
from fabricproof.core.hostlist import fold
from fabricproof.core.measure import BADNESS, Quantity, Verdict, worst
from fabricproof.core.project import site_option
from fabricproof.core.provenance import LegKey
from fabricproof.core.units import by_key
from fabricproof.job.leg import ADMISSION_CHECK, ADMITTED, CAMPAIGN_CHECK, CAMPAIGN_SUITE, PARTNER
from fabricproof.job.run import BUILD_PROGRAM, LegResult, RunResult

#: verdicts that are told one by one; PASS and SKIPPED are counted
RED = frozenset({Verdict.FAIL, Verdict.INVALID, Verdict.MISSING, Verdict.UNJUDGED})

#: control characters of C0, DEL and C1, but for tab and line feed
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

#: findings that are told of a green leg too
TOLD_OF_A_PASS = frozenset(
    {
        FindingKind.PREFLIGHT,
        FindingKind.SECOND_LOOK_RED,
        FindingKind.SECOND_LOOK_PASSED,
        FindingKind.OTHER_BUILD,
        FindingKind.PROTOCOL_SWITCH,
        FindingKind.BLAME,
    }
)


_NEXT: dict[Verdict, str] = {
    Verdict.FAIL: "look at the nodes, rail and slot named above; then repeat it",
    Verdict.INVALID: "the number is not what it claims: mend the path or the site file, run again",
    Verdict.MISSING: "nothing was measured there: read the reason, then the job's stage folder",
    Verdict.UNJUDGED: "give a reference in the site's references.toml, or prove the path",
    Verdict.SKIPPED: "nothing was judged: choose other tags, or a site that has the fabric",
}
_NEXT_DISTURBED = "end what runs beside it, as named above, or wait; then repeat it"


def next_step(result: RunResult) -> str:
    """Return what a person does after a run with this verdict; empty after a PASS."""
    unjudged = [leg for leg in result.legs if leg.verdict is Verdict.UNJUDGED]
    if result.verdict is Verdict.UNJUDGED and all(
        any(each.disturbance for each in leg.quantities) for leg in unjudged
    ):
        return _NEXT_DISTURBED
    return _NEXT.get(result.verdict, "")


@dataclass(frozen=True, kw_only=True)
class RedGroup:
    """Red legs with one verdict at one place.

    Attributes:
        rails: ``rail1``; ``rail0+rail1``; empty where a leg names none.
        legs: the worst first.
        worst: the number that misses its limit by most, in words.
        sure: how sure it is, in words.
        confirmed: what the looks of a night found, ``CONFIRMED``, ``NOT REPEATED`` ...; empty
            where nobody looked again.
    """

    verdict: Verdict
    rails: str
    nodes: tuple[str, ...]
    legs: tuple[LegResult, ...]
    worst: str
    sure: str
    confirmed: str = ""

    @property
    def device(self) -> str:
        """``Soft-RoCE`` where software stood for the HCA; empty for all else."""
        return self.legs[0].device

    @property
    def net_path(self) -> str:
        """The rails as people read them: ``rxe0:1 Soft-RoCE``, ``rail1``."""
        return with_device(self.rails, self.device)

    @property
    def programs(self) -> str:
        """``osu_bw (openmpi5, mpich5), Sendrecv (intelmpi)``."""
        stacks: dict[str, dict[str, None]] = {}
        for leg in self.legs:
            stacks.setdefault(leg.program or leg.check, {})[leg.stack] = None
        return ", ".join(
            f"{program} ({', '.join(names)})" if any(names) else program
            for program, names in stacks.items()
        )


def with_device(rails: str, device: str) -> str:
    """Return rails as every line for people shows them: ``rxe0:1 Soft-RoCE``."""
    return " ".join(filter(None, (rails, device)))


def red_groups(
    session: RunResult, confirmations: Sequence[Mapping[str, Any]] = ()
) -> list[RedGroup]:
    """Return what is red: the worst verdict first, single rails first, then where most is red."""
    places = by_key((_place(leg), leg) for leg in session.legs if leg.verdict in RED)
    groups = [_group(legs, confirmations) for legs in places.values()]
    # One rail by itself says more than several together.
    return sorted(
        groups,
        key=lambda each: (BADNESS.index(each.verdict), "+" in each.rails, -len(each.legs)),
    )


def rails_of(leg: LegResult) -> tuple[str, ...]:
    """Return the rails that a leg went over, as its records say; none where it left none."""
    return tuple(dict.fromkeys(rail for each in leg.quantities for rail in each.rails))


def _place(leg: LegResult) -> tuple[Any, ...]:
    kind, rails = (leg.verdict, leg.device), "+".join(rails_of(leg))
    if leg.for_want_of:
        return *kind, "", (), leg.for_want_of
    if not leg.quantities:
        return *kind, "", (), leg.reason
    if not leg.nodes:
        return *kind, rails, (), leg.reason
    return *kind, rails, tuple(sorted(leg.nodes)), ""


def _group(legs: Sequence[LegResult], confirmations: Sequence[Mapping[str, Any]]) -> RedGroup:
    ordered = sorted(legs, key=miss, reverse=True)
    first = ordered[0]
    confirmed, words = _confirmed(legs, confirmations)
    return RedGroup(
        verdict=first.verdict,
        rails="+".join(rails_of(first)),
        nodes=tuple(sorted(first.nodes)),
        legs=tuple(ordered),
        worst=first.reason or "ReFrame failed its check",
        sure="; ".join(each for each in (_sure(legs), words) if each),
        confirmed=confirmed,
    )


def miss(leg: LegResult) -> float:
    """Return by which factor a leg's worst named number misses its bound; 1 where none does."""
    return max((_miss(each) for each in leg.quantities if each.named), default=1.0)


def _miss(quantity: Quantity) -> float:
    value, lower, upper = quantity.value, quantity.lower, quantity.upper
    if not value or value <= 0:
        return 1.0
    if lower and value < lower:
        return float(lower) / float(value)
    return float(value) / float(upper) if upper and value > upper else 1.0


def _sure(legs: Iterable[LegResult]) -> str:
    legs = list(legs)
    if all(leg.suite == CAMPAIGN_SUITE for leg in legs):
        return "in several rounds of one job"
    if legs[0].verdict is Verdict.MISSING and not any(leg.quantities for leg in legs):
        return ""
    twice = sum(_has(leg, FindingKind.SECOND_LOOK_RED) for leg in legs)
    without = sum(_has(leg, FindingKind.NO_SECOND_LOOK) for leg in legs)
    if twice == len(legs):
        return "red twice on the same nodes"
    words = [f"{twice} of {len(legs)} red twice on the same nodes"] * bool(twice)
    words += [f"{without} without a second look"] * bool(without)
    return ", ".join(words) or "seen once"


def _has(leg: LegResult, kind: FindingKind) -> bool:
    return any(each.kind is kind for each in leg.findings)


def _confirmed(
    legs: Sequence[LegResult], confirmations: Sequence[Mapping[str, Any]]
) -> tuple[str, str]:
    keys = {leg.key for leg in legs}
    mine = [each for each in confirmations if LegKey.of_record(each) in keys]
    if not mine:
        return "", ""
    words = dict.fromkeys(str(each["finding"]) for each in mine)
    sentences = dict.fromkeys(f"{each['finding']}: {each['sentence']}" for each in mine)
    return ", ".join(words), "; ".join(sentences)


def told_of_passes(legs: Iterable[LegResult]) -> list[str]:
    """Return what was found on legs that PASS and must be told, each finding once with its legs.

    A link that is not as declared passes a benchmark that does not need it; that link is still
    wrong.
    """
    found = by_key(
        (finding, leg)
        for leg in legs
        if leg.verdict is Verdict.PASS
        for finding in dict.fromkeys(leg.findings)
        if finding.kind in TOLD_OF_A_PASS
    )
    # Preflight first: it names a link, which one leg after the other goes over.
    order = sorted(found, key=lambda each: each.kind is not FindingKind.PREFLIGHT)
    return [f"{each} ({_legs(found[each])})" for each in order]


def _legs(legs: Sequence[LegResult]) -> str:
    first = legs[0]
    nodes = f" on {folded(first.nodes)}" if first.nodes else ""
    words = (
        " ".join(filter(None, (first.stack, first.program or first.check, first.path_name))) + nodes
    )
    return f"{words}, which is PASS" if len(legs) == 1 else f"{words} and {len(legs) - 1} more PASS"


def told_of_admission(legs: Iterable[LegResult]) -> list[str]:
    """Return what an admission says of its nodes, those to be admitted first, alike ones in a line.

    The verdict is that of the rows that are there; ``fabricproof admit`` also says what is not.
    """
    found = by_key(
        ((kind, node), leg)
        for kind in (ADMITTED, PARTNER)
        for leg in legs
        if (node := leg.row_of(kind))
    )
    alike: dict[tuple[str, Verdict, str], list[str]] = {}
    for (kind, node), rows in found.items():
        verdict = worst([row.verdict for row in rows])
        mine = [row.leg.removeprefix(f"{kind}.{node}.") for row in rows if row.verdict is verdict]
        alike.setdefault((kind, verdict, ", ".join(dict.fromkeys(mine))), []).append(node)
    return [
        f"{verdict} {'partner ' * (kind == PARTNER)}{fold(nodes)} over {paths}"
        for (kind, verdict, paths), nodes in alike.items()
    ]


def is_build(leg: LegResult) -> bool:
    """Tell whether a leg stands for a stack that could not be built."""
    return leg.program == BUILD_PROGRAM


def what_next(groups: Sequence[RedGroup], site: str, run_id: str) -> list[str]:
    """Return exact commands, the most telling first, each once.

    Where more than two nodes were red together, none of them is named by that: a campaign over the
    pairs of the partition tells whose fault it is.
    """
    # The worst leg of each group first: who runs one command only has seen the most.
    legs = [group.legs[0] for group in groups]
    legs += [leg for group in groups for leg in group.legs[1:]]
    # Of an admission the rows of its nodes say what its rounds say, and of whom.
    legs = [leg for leg in legs if leg.check != ADMISSION_CHECK or _of_node(leg)] or legs
    repeated = list(dict.fromkeys(filter(None, (again(leg, site) for leg in legs))))
    of_many = [leg for leg in legs if leg.verdict is Verdict.FAIL and len(leg.nodes) > 2]
    blames = [_all_pairs(site, name) for name in dict.fromkeys(leg.partition for leg in of_many)]
    commands = list(dict.fromkeys((*repeated[:1], *blames, *repeated[1:])))
    if any(len(group.nodes) for group in groups):
        drain = f"fabricproof report {site_option(site)} {shlex.quote(run_id)} --drain"
        return [*commands[:1], drain, *commands[1:]]
    return commands


def again(leg: LegResult, site: str = "") -> str:
    """Return the command that repeats a leg's check, to be copied; empty where nothing would.

    ``site`` is empty where nobody says, then that of the host.
    """
    if is_build(leg):
        return shlex.join(["fabricproof", "stack", "build", *_of_site(site), leg.stack])
    if not leg.stack:
        return ""
    if node := _of_node(leg):
        only = f"partition={leg.partition}"
        return shlex.join(["fabricproof", "admit", *_of_site(site), "--only", only, node])
    if leg.check in {ADMISSION_CHECK, CAMPAIGN_CHECK}:  # alone they have nothing to run on
        return _all_pairs(site, leg.partition)
    where = ["-c", leg.check_file] if leg.check_file else []
    run = ["fabricproof", "run", *_of_site(site), *where, "-n", leg.check, "-p", leg.stack]
    return shlex.join(run)


def _of_node(leg: LegResult) -> str:
    """Return the node of which an admission says whether it is good; empty for all other legs."""
    return leg.row_of(ADMITTED, PARTNER)


def _all_pairs(site: str, partition: str) -> str:
    words = ["fabricproof", "pairs", "run", *_of_site(site), "--only", f"partition={partition}"]
    return shlex.join(words)


def _of_site(site: str) -> list[str]:
    return shlex.split(site_option(site))


def held(words: str) -> str:
    """Return words for a terminal: what would steer it is shown as a replacement character."""
    return _CONTROL.sub("\ufffd", words)


def folded(nodes: Sequence[str]) -> str:
    """Return node names as Slurm folds them: ``n[17-20]``; a pair as ``n1 - n3``."""
    if len(nodes) == 2:
        return " - ".join(sorted(nodes))
    return fold(nodes)
