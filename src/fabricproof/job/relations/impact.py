"""Judge what a load on other nodes costs a measurement: kind ``impact``.

An impact is how many times worse a number is beside the load than alone: a time over the time
alone, a bandwidth alone over the bandwidth beside it (GPCNeT's congestion impact factor).  A round
counts only where the load was there: each of its senders moved its bytes by the counters of its own
node, from before the leg beside it started until after it had ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean, median
from typing import Any

from fabricproof.core.measure import Verdict, as_notes, worst
from fabricproof.job.evidence.disturbance import counted_seconds
from fabricproof.job.evidence.leg_folder import RankRecord, gather, last_words, read_ranks
from fabricproof.job.leg import Leg, Relation
from fabricproof.job.outcome import BESIDE_FOLDER, Attempt, Outcome
from fabricproof.job.relations.ratio import (
    WEAK,
    Looks,
    Rounds,
    Values,
    each_round,
    judge_rounds,
    not_judged,
    report_of,
    rounds_of,
    spoiled_leg,
    unless_cut,
    value_at,
)
from fabricproof.job.rounds import LEAST, RoundBounds, decide_rounds
from fabricproof.verdict.value import Judgement, Report

#: A load below this part of what its links allow is no load, and a sender of it below this part of
#: its share is none: flows that meet share unevenly, so that one alone may have less.  Our choice.
LEAST_LOAD, LEAST_OF_ONE = 0.5, 0.25

#: impact -> why a leg of it left nothing, once for each such round
Cut = Mapping[str, tuple[str, ...]]

#: what is said where a leg has no such column (the kernel leaves out what too few are slower than)
NO_TAIL = "too few repetitions, alone or beside the load"


def judge_impact(relation: Relation, looks: Looks) -> Report:
    """Judge how many times worse each number of ``alone`` is beside its load.

    Settings:
        impacts: what a number is called -> ``alone`` and ``loaded``, names of legs; ``quantity``
            (``bandwidth``, ``latency``); ``sizes`` in bytes, the median of whose ratios counts;
            ``column``, of which it is instead in the table of the leg, where there is one;
            ``senders``, nodes of the load that send, ``due_mb_s``, what each of them should
            move at the least, and ``same_link``, whether it is by a link that both share.
        judged: which of them are judged, at least one, each with its ``reference`` and its
            ``hint``; the others are told.
        skipped: what was not planned -> why.
        words: what is told of the places.
    """
    rounds = rounds_of(relation, looks, impacts_of)
    cut = _cut(relation, looks)
    judged: Mapping[str, Mapping[str, Any]] = relation.settings["judged"]
    impacts: Mapping[str, Mapping[str, Any]] = relation.settings["impacts"]
    if isinstance(rounds, Judgement):
        return _with_missing(report_of(rounds), relation, cut, {})
    quantities = tuple(_judge_one(label, relation, looks, rounds, cut) for label in judged)
    quantities += tuple(
        not_judged(label, Verdict.SKIPPED, why)
        for label, why in relation.settings.get("skipped", {}).items()
    )
    told = [
        _told(label, values)
        for label, values in rounds.values.items()
        if label in impacts and label not in judged and values
    ]
    told += [
        f"{label}: {next(iter(_unloaded(relation, looks, wanted)), NO_TAIL)}"
        for label, wanted in impacts.items()
        if not rounds.values.get(label) and label not in judged and label not in cut
    ]
    told += [f"a leg that left nothing: {why}" for why in dict.fromkeys(chain(*cut.values()))]
    notes = (*relation.settings["words"], *told, *_loads(relation, looks))
    report = Report(
        verdict=worst([each.verdict for each in quantities]),
        quantities=quantities,
        findings=(*as_notes(notes), *rounds.findings()),
    )
    return _with_missing(report, relation, cut, rounds.values)


def _judge_one(label: str, relation: Relation, looks: Looks, rounds: Rounds, cut: Cut) -> Judgement:
    settings, why = relation.settings["judged"][label], cut.get(label, ())
    unloaded = _unloaded(relation, looks, relation.settings["impacts"][label])
    mine = replace(rounds, lost=(*unloaded, *why, *rounds.lost), broken=())
    values = _counted(label, settings, rounds)
    return _never_green(judge_rounds(label, values, mine, relation, settings), why)


def _with_missing(
    report: Report, relation: Relation, cut: Cut, values: Mapping[str, Sequence[float]]
) -> Report:
    """Add what no law judges and what too few rounds are left of, a leg once.

    A pair that an alltoall starves may not end within its time limit.
    """
    impacts: Mapping[str, Mapping[str, Any]] = relation.settings["impacts"]
    named = {each.name for each in report.quantities}
    lost: dict[str, Judgement] = {}
    for label, why in cut.items():
        is_told_only = label not in relation.settings["judged"]
        if is_told_only and label not in named and len(values.get(label, ())) < LEAST:
            first = not_judged(label, Verdict.MISSING, why[0])
            lost.setdefault(impacts[label]["loaded"], first)
    return report.with_quantities((*report.quantities, *lost.values()))


def _never_green(judgement: Judgement, why: Sequence[str]) -> Judgement:
    """Return a number whose pair left nothing beside its load in some rounds, and why."""
    if not why:
        return judgement
    if judgement.value is None:
        return replace(judgement, verdict=Verdict.MISSING, reason=why[0], is_open=False)
    return unless_cut(judgement, why, "more it left nothing")


def _counted(label: str, settings: Mapping[str, Any], rounds: Rounds) -> tuple[float, ...]:
    """Return the numbers of the rounds that count, also of those beside a starved load."""
    values, weak = (rounds.values.get(each, ()) for each in (label, label + WEAK))
    upper = settings["reference"]["upper"]
    return (*values, *weak) if upper and all(each > upper for each in weak) else values


def impacts_of(relation: Relation, looks: Looks) -> Values:
    """Return the impacts of one look at the legs, or why there are none.

    Beside a load that was not there a leg has no number in this look, nor has one that left none;
    the others have theirs.
    """
    impacts: Mapping[str, Mapping[str, Any]] = relation.settings["impacts"]
    label = next(iter(impacts))
    found, missed, cut = {}, [], []
    for name, wanted in impacts.items():
        spoiled = _spoiled(relation, wanted, looks)
        if spoiled is not None:
            if spoiled[0] is not Verdict.MISSING:
                return not_judged(label, *spoiled)
            cut.append(spoiled[1])
            continue
        ratios = [_impact(wanted, size, looks) for size in wanted["sizes"]]
        is_whole = all(math.isfinite(each) and each > 0 for each in ratios)
        look = looks[wanted["loaded"]]
        why = _why_no_load(look.attempts[0], look.leg, wanted, wanted["due_mb_s"])
        if why:
            missed.append(f"leg {wanted['loaded']}: {why}")
            if is_whole and _is_told_of(relation, name, look, median(ratios)):
                found[name + WEAK] = median(ratios)
        elif is_whole:
            found[name] = median(ratios)
        elif "column" not in wanted:
            reason = f"{wanted['alone']} and {wanted['loaded']} do not both have their numbers"
            return not_judged(label, Verdict.MISSING, reason)
    if found:
        return found
    if cut:
        return not_judged(label, Verdict.MISSING, cut[0])
    return not_judged(label, Verdict.UNJUDGED, missed[0])


def _spoiled(
    relation: Relation, wanted: Mapping[str, Any], looks: Looks
) -> tuple[Verdict, str] | None:
    return spoiled_leg(replace(relation, legs=(wanted["alone"], wanted["loaded"])), looks)


def _cut(relation: Relation, looks: Looks) -> Cut:
    """Return of each impact why a leg of it left nothing, once for each such round.

    A round whose legs have not all been started says nothing.
    """
    found: dict[str, tuple[str, ...]] = {}
    for mine, looked in each_round(relation, looks):
        for name, wanted in relation.settings["impacts"].items():
            if wanted["alone"] in looked and wanted["loaded"] in looked:
                spoiled = _spoiled(mine, wanted, looked)
                if spoiled is not None and spoiled[0] is Verdict.MISSING:
                    found[name] = (*found.get(name, ()), spoiled[1])
    return found


def _is_told_of(relation: Relation, name: str, look: Outcome, impact: float) -> bool:
    """Tell whether a number beside too little of a load says anything of the link they share.

    Within its bound it does: the link starves nobody.  Beyond it the load must have got its part.
    """
    wanted = relation.settings["impacts"][name]
    reference = relation.settings["judged"].get(name, {}).get("reference", {})
    if not wanted.get("same_link") or not reference.get("upper") or not wanted["due_mb_s"]:
        return False
    part = reference["value"] / impact if impact > reference["upper"] else 0.0
    return not _why_no_load(look.attempts[0], look.leg, wanted, wanted["due_mb_s"] * part)


def _unloaded(relation: Relation, looks: Looks, wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why each attempt of a loaded leg beside which there was no load does not count."""
    name = wanted["loaded"]
    return tuple(
        f"leg {name}: {why}"
        for each in (name, relation.turns.get(name, ""))
        if each in looks
        for attempt in looks[each].attempts
        if (why := _why_no_load(attempt, looks[each].leg, wanted, wanted["due_mb_s"]))
    )


def _impact(wanted: Mapping[str, Any], size: int, looks: Looks) -> float:
    alone, loaded = (_number(wanted, looks[wanted[side]], size) for side in ("alone", "loaded"))
    over, under = (alone, loaded) if wanted["quantity"] == "bandwidth" else (loaded, alone)
    return over / under if under > 0 else math.nan


def _number(wanted: Mapping[str, Any], look: Outcome, size: int) -> float:
    """Return a number of one look at a leg, NaN where it has none."""
    if "column" not in wanted:
        return value_at(look, wanted["quantity"], size)
    table = look.attempts[0].table if look.attempts else None
    rows = table.named_rows if table is not None else []
    return next(
        (row.get(wanted["column"], math.nan) for row in rows if row["message_size"] == size),
        math.nan,
    )


def _why_no_load(attempt: Attempt, leg: Leg, wanted: Mapping[str, Any], due: float) -> str:
    """Return why what ran beside an attempt was no load of ``due`` MB/s from each sender."""
    folder = attempt.folder / BESIDE_FOLDER
    ranks, trouble = read_ranks(folder)
    assert leg.load is not None, "it was planned so"
    if trouble is not None or len(ranks) < leg.load.num_ranks:
        return f"what ran beside it left no counters: {trouble or last_words(folder / 'stderr')}"
    nodes = tuple(each.node for each in sorted(ranks, key=lambda each: each.rank))
    if nodes != leg.load.nodes:
        return f"what ran beside it was to run on {_list(leg.load.nodes)}, it ran on {_list(nodes)}"
    ended = next((each for each in ranks if each.status != 0), None)
    if ended is not None:
        said = last_words(folder / "stderr")
        return f"what ran beside it ended before it did, on {ended.node}: {said}"
    sent = _rates(ranks, leg.load, wanted["senders"], "tx_bytes")
    aimed = [node for node in leg.load.nodes if node not in wanted["senders"]]
    got = _rates(ranks, leg.load, aimed, "rx_bytes")
    if wanted["due_mb_s"] <= 0:
        return "no link is declared: nobody says how much the load should have moved"
    return _why_too_little(sent, due) or _why_elsewhere(got, due * len(sent))


def _why_elsewhere(got: Mapping[str, float], due: float) -> str:
    """Return why what came to those that only receive, in MB/s, was no load on the way to them."""
    came = sum(got.values())
    if not got or came >= LEAST_LOAD * due:
        return ""
    return f"{came:.3g} MB/s of the load came to {_list([*got])}, {due:.3g} were due"


def _why_too_little(rates: Mapping[str, float], due: float) -> str:
    """Return why senders that moved so much, in MB/s, were no load; empty where they were one."""
    if not rates:
        return "nobody counted what the load moved"
    mean, slowest = fmean(rates.values()), min(rates, key=rates.__getitem__)
    if mean < LEAST_LOAD * due:
        return f"the load was {mean:.3g} MB/s from each of its senders, {due:.3g} were due"
    if rates[slowest] < LEAST_OF_ONE * due:
        return (
            f"the load was {rates[slowest]:.3g} MB/s from {slowest}, {due:.3g} were due from each "
            "of its senders"
        )
    return ""


def _rates(
    ranks: Sequence[RankRecord], load: Leg, nodes: Sequence[str], counter: str
) -> dict[str, float]:
    """Return what ``nodes`` of a load moved over its rails, in MB/s; empty where unknown."""
    seconds = counted_seconds(ranks)
    moved = dict.fromkeys(nodes, 0)
    for sample in gather(ranks).samples:
        if sample.node in moved and sample.interface in load.rails:
            moved[sample.node] += sample.moved(counter)
    if not all(seconds.get(node) for node in nodes):
        return {}
    return {node: moved[node] / seconds[node] / 1e6 for node in nodes}


def _loads(relation: Relation, looks: Looks) -> Sequence[str]:
    """Return what the loads of the first look moved."""
    senders = {each["loaded"]: each["senders"] for each in relation.settings["impacts"].values()}
    found = []
    for name in relation.owns:
        leg = looks[name].leg if name in looks and looks[name].attempts else None
        if leg is None or leg.load is None:
            continue
        ranks, _ = read_ranks(looks[name].attempts[0].folder / BESIDE_FOLDER)
        rates = _rates(ranks, leg.load, senders[name], "tx_bytes").values() or [0.0]
        found.append(f"beside {name}: {len(senders[name])} sent {fmean(rates):.3g} MB/s each")
    return found


def _told(label: str, values: Sequence[float]) -> str:
    decision = decide_rounds(values, RoundBounds())
    span = f"{decision.low:.3g} to {decision.high:.3g} x in {decision.rounds} rounds"
    scatter = "one round" if decision.rounds == 1 else span
    return f"{label}: {decision.centre:.3g} x ({scatter}); nobody says what it should be"


def _list(nodes: Sequence[str]) -> str:
    return ", ".join(nodes)
