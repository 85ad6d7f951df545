"""The judge: records in, verdicts out; pure, so that a verdict can be repeated from its records.

A quantity passes only by being possible (within its physical ceiling or above its latency floor),
good enough (within the bounds of its reference), arithmetically sound (the columns of its row
agree) and measured on the right path.  Everything else has a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import Meaning, ProgramKind, buffers_of
from fabricproof.core.findings import Finding, as_notes
from fabricproof.core.measure import Table, Verdict, worst
from fabricproof.core.units import at_size, size_label, split_buffers
from fabricproof.traffic import PathProof, PathState
from fabricproof.verdict import busbw
from fabricproof.verdict.busbw import describe_busbw, judge_busbw
from fabricproof.verdict.collective_times import early_ends, judge_collective, overlaps
from fabricproof.verdict.curve import (
    TIMES,
    describe_shape,
    row_limit_us,
    smallest_message_us,
    too_small_for_plateau,
    without_switches,
)
from fabricproof.verdict.limits import Limits, describe_loss, networks_of, row_fault
from fabricproof.verdict.rings import describe_rings, judge_rings
from fabricproof.verdict.suspects import explained, on_gpus
from fabricproof.verdict.value import (
    Judgement,
    Reference,
    Report,
    Rules,
    at_least,
    at_most,
    judge_value,
    missing,
    no_number,
    unless_unsound,
)

#: Messages up to this size may print as 0.00 MB/s on a slow network (4 B in a millisecond).
SMALLEST_PRINTED_BYTES = 16

#: the columns of a time that this judge can judge, best first
_TIMES = (*TIMES, "overall_us")

#: OSU's own largest message of its point-to-point programs (util/osu_util.h MAX_MESSAGE_SIZE).
OSU_LARGEST_BYTES = 4 * 1024 * 1024


def judge_table(table: Table, rules: Rules, net_path: PathProof | None = None) -> Report:
    """Judge one parsed table.

    ``net_path`` is None where no counters were read.
    """
    table = _in_decimal_megabytes(table)
    buffers = buffers_of(table)
    rules = _of_buffers(rules, buffers)
    reading = reading_of(table)
    limits = Limits.of(table, reading, rules)
    many, told = _of_many(table, reading, limits, rules)
    judgements = many or _bandwidths(table, reading, limits) or _times(table, reading, limits)
    side, unjudged = _side_times(table, reading, limits)
    switches: list[Finding] = []
    judgements = [*side, *judgements]
    if not many:  # the law of a switch is one of point-to-point curves
        judgements, switches = without_switches(judgements)
    judgements += _due_sizes(table, rules.references, judgements)
    judgements = [
        unless_unsound(
            each,
            row_fault(table, reading, each.message_size)
            or limits.fault(table, reading, each.message_size),
        )
        for each in judgements
    ]
    judgements = [_with_path(judgement, net_path, rules) for judgement in judgements]
    judgements += _not_in_the_table(table, reading, rules, net_path)
    if buffers:
        judgements, seen = on_gpus(judgements, buffers, limits.fabric, rules.references)
        told += seen
    findings = [
        *([] if table.suite in busbw.SUITES else describe_shape(table)),
        *told,
        *describe_loss(table),
    ]
    findings += list(net_path.findings) if net_path else []
    if net_path is None and not rules.path_required:
        findings += _what_a_file_cannot_show(table, reading)
    return Report(
        verdict=worst([judgement.verdict for judgement in judgements]),
        quantities=tuple(judgements),
        findings=(*as_notes(unjudged), *switches, *as_notes(findings)),
        net_path=net_path,
    )


def _of_buffers(rules: Rules, buffers: str) -> Rules:
    """Return rules with the references of such buffers alone, under the names without them."""
    if not buffers:
        return rules
    mine = {
        split_buffers(name)[1]: each
        for name, each in rules.references.items()
        if split_buffers(name)[0] == buffers
    }
    return replace(rules, references=mine)


def _of_many(
    table: Table, reading: Meaning, limits: Limits, rules: Rules
) -> tuple[list[Judgement], list[str]]:
    """Judge what all ranks do at once, with what is worth reading: rings, collectives, GPUs'."""
    layout = rules.layout
    if table.suite in busbw.SUITES:
        return judge_busbw(table, rules), describe_busbw(table)
    if table.suite == "hpcc":
        return judge_rings(table, rules), describe_rings(table, layout)
    if reading.kind is not ProgramKind.COLLECTIVE:
        return [], []
    told = [*early_ends(table, limits, layout), *overlaps(table)]
    return judge_collective(table, limits, layout), told


def _in_decimal_megabytes(table: Table) -> Table:
    """Return ``table`` with MB of 10^6 bytes, also where IMB up to 4.x printed MiB of 2^20."""
    if "bandwidth_mib_s" not in table.columns:
        return table
    at = table.columns.index("bandwidth_mib_s")
    rows = tuple((*row[:at], row[at] * 1.048576, *row[at + 1 :]) for row in table.rows)
    columns = (*table.columns[:at], "bandwidth_mb_s", *table.columns[at + 1 :])
    return replace(table, columns=columns, rows=rows)


def _not_in_the_table(
    table: Table, reading: Meaning, rules: Rules, net_path: PathProof | None
) -> list[Judgement]:
    """Return what the tool gave up on, and the end that a cut latency table may lack, as MISSING.

    OSU prints no end mark.  A bandwidth table is judged by its last row, which carries its size in
    its name; a latency table is judged by its first, and would pass on that row alone.
    """
    kind = "bandwidth" if reading.kind is ProgramKind.BANDWIDTH else "latency"
    absent = [
        each
        for size, words in table.unmeasured.items()
        for each in missing([at_size(kind, size)], f"the tool gave up on it: {words}").quantities
    ]
    asked = [name for name in rules.references if name.partition("_")[0] == "latency"]
    from_file = net_path is None and not rules.path_required
    cut, last = _cut(table)
    if not (cut and from_file and asked and reading.kind is ProgramKind.LATENCY) or last in asked:
        return absent
    name = f"{buffers_of(table)}{last}"
    reason = f"{cut} If the run asked for no more, name its last size in a --reference ({name}=...)"
    return [*absent, *missing(["larger sizes"], reason).quantities]


def _cut(table: Table) -> tuple[str, str]:
    """Return why an OSU table may be cut, and its last latency's name; empty where it is whole."""
    last = next(reversed(_sizes(table)), None)
    if table.suite != "osu" or last is None or last >= OSU_LARGEST_BYTES:
        return "", ""
    return (
        f"the table ends at {size_label(last)}: OSU prints no end mark, and its own largest size "
        f"is {size_label(OSU_LARGEST_BYTES)}; was it cut?"
    ), at_size("latency", last)


def unanswered(references: Iterable[str], judgements: Iterable[Judgement]) -> list[str]:
    """Return the references that no judged quantity answers to.

    A reference that nothing was held against is a measurement that is missing, never a pass.
    """
    kinds = {"MB/s": "bandwidth", "us": "latency"}
    answered = set()
    for judgement in judgements:
        is_busbw = judgement.name.startswith(busbw.QUANTITY)
        kind = split_buffers(judgement.name)[0] + kinds.get(judgement.unit, "")
        kind = busbw.QUANTITY if is_busbw else kind
        answered |= {judgement.name, kind}
    return [name for name in references if name not in answered]


def _due_sizes(
    table: Table, references: Mapping[str, Reference], judgements: Iterable[Judgement]
) -> list[Judgement]:
    """Return the sizes that a reference asks for and this table should hold, as MISSING."""
    kinds = {each.name.partition("_")[0] for each in judgements}
    if table.first_of(_TIMES):
        kinds.add("latency")
    absent = [
        name
        for name in unanswered(references, judgements)
        if "_" in name and name.partition("_")[0] in kinds
    ]
    return list(
        missing(absent, "a reference asks for it, and the table has no such size").quantities
    )


def _what_a_file_cannot_show(table: Table, reading: Meaning) -> list[str]:
    _, used = networks_of(table)
    says = f"; the library says that it used {used}" if used else ""
    found = [f"path not shown: no counters were read around this run{says}"]
    cut, _ = _cut(table)
    is_told = cut and reading.kind in {ProgramKind.BANDWIDTH, ProgramKind.LATENCY}
    return [*found, cut] if is_told else found


def _bandwidths(table: Table, reading: Meaning, limits: Limits) -> list[Judgement]:
    if reading.kind is not ProgramKind.BANDWIDTH or "bandwidth_mb_s" not in table.columns:
        return []
    values = table.column("bandwidth_mb_s")
    smallest_us = smallest_message_us(table)
    last = len(values) - 1
    return [
        _bandwidth(size, value, limits, named=index == last, smallest_us=smallest_us)
        for index, (size, value) in enumerate(zip(_sizes(table), values, strict=True))
        if index == last
        or not _lost_in_rounding(size, value)
        or at_size("bandwidth", size) in limits.given
    ]


def _lost_in_rounding(size: int | None, value: float) -> bool:
    """Tell whether a small message's bandwidth is 0.00 only because two decimals are printed."""
    return value == 0 and size is not None and size <= SMALLEST_PRINTED_BYTES


def _sizes(table: Table) -> tuple[int | None, ...]:
    if "message_size" in table.columns:
        return tuple(int(size) for size in table.column("message_size"))
    return (None,) * len(table.rows)


def _bandwidth(
    size: int | None, value: float, limits: Limits, *, named: bool, smallest_us: float | None
) -> Judgement:
    name = at_size("bandwidth", size)
    given = limits.given.get(name)
    reference = given or (
        limits.reference if named else _curve_reference(size, smallest_us, limits)
    )
    judgement = judge_value(
        name=name,
        value=value,
        unit="MB/s",
        message_size=size,
        reference=reference,
        ceiling=limits.ceiling_of(size),
        named=named or given is not None,
    )
    judgement = _silenced(judgement, limits)
    if judgement.verdict is Verdict.PASS and limits.unknown_nodes and given is None:
        judgement = replace(judgement, verdict=Verdict.UNJUDGED, reason=limits.unknown_nodes)
    if judgement.verdict is Verdict.FAIL and given is None and named:
        judgement = _unless_too_small(judgement, limits)
    if judgement.verdict is Verdict.FAIL and not judgement.named:
        return judgement
    return explained(judgement, limits.fabric)


def _silenced(judgement: Judgement, limits: Limits) -> Judgement:
    if judgement.verdict is Verdict.UNJUDGED and judgement.reference is None and limits.silence:
        return replace(judgement, reason=f"{limits.silence}; give a --reference")
    return judgement


def _unless_too_small(judgement: Judgement, limits: Limits) -> Judgement:
    """Return a FAIL as UNJUDGED where no healthy fabric could have passed at this size."""
    size, value, reference = judgement.message_size, judgement.value, limits.reference
    if size is None or value is None or reference is None or limits.start_us is None:
        return judgement
    if not too_small_for_plateau(size, value, limits.start_us, reference.value):
        return judgement
    return replace(
        judgement,
        verdict=Verdict.UNJUDGED,
        reason=f"{judgement.reason}; but messages of {size_label(size)}, the largest in the table, "
        f"cannot show the plateau where each costs {limits.start_us:.3g} us to start: measure "
        "larger ones",
    )


def _curve_reference(
    size: int | None, smallest_us: float | None, limits: Limits
) -> Reference | None:
    """Return what a point inside the bandwidth curve is judged by: see ``verdict.curve``."""
    reference = limits.curve_reference
    if reference is None or size is None or smallest_us is None:
        return None
    limit_us = row_limit_us(size, smallest_us, reference.value)
    origin = f"curve law from {smallest_us:.3g} us for the smallest"
    slower = limits.curve_tolerance / (1 + limits.curve_tolerance)
    return at_least(max(size, 1) / limit_us, tolerance=slower, origin=origin)


def _times(table: Table, reading: Meaning, limits: Limits) -> list[Judgement]:
    column = table.first_of(_TIMES)
    if column is None:
        return [_nothing_to_judge(table)]
    sizes, values = _sizes(table), table.column(column)
    first_us = values[0] if reading.kind is ProgramKind.LATENCY else None
    return [
        _latency(size, value, reading, limits, named=index == 0, first_us=first_us)
        for index, (size, value) in enumerate(zip(sizes, values, strict=True))
    ]


def _nothing_to_judge(table: Table) -> Judgement:
    reason = "the table has no column this judge can judge"
    return no_number(table.program, Verdict.UNJUDGED, reason)


def _latency(
    size: int | None,
    value: float,
    reading: Meaning,
    limits: Limits,
    *,
    named: bool,
    first_us: float | None,
) -> Judgement:
    """Judge one time.

    Args:
        size: message size in bytes, None where the program has none.
        value: in us.
        reading: what the program times.
        limits: what applies.
        named: the table's smallest message, which a reference of ``latency`` means.
        first_us: time of that message, where the curve law holds; None where it does not.
    """
    name = at_size("latency", size)
    given = limits.given.get(name) or (limits.given.get("latency") if named else None)
    reference = given
    if reference is None and not named and first_us is not None:
        reference = _latency_curve_reference(size, first_us, limits)
    judgement = judge_value(
        name=name,
        value=value,
        unit="us",
        message_size=size,
        reference=reference,
        floor=limits.floor(reading, size),
        named=named or given is not None,
    )
    return judgement if named else _silenced(judgement, limits)


def _latency_curve_reference(size: int | None, first_us: float, limits: Limits) -> Reference | None:
    reference = limits.curve_reference
    if reference is None or size is None or first_us <= 0:
        return None
    limit_us = row_limit_us(size, first_us, reference.value / limits.num_pairs)
    return at_most(
        limit_us,
        tolerance=limits.curve_tolerance,
        origin=f"curve law from {first_us:.3g} us for the smallest",
    )


def _side_times(
    table: Table, reading: Meaning, limits: Limits
) -> tuple[list[Judgement], list[str]]:
    """Judge the times that a bandwidth table prints beside its bandwidths.

    They count where somebody said what they should be, or where they are impossible; the smallest
    message's is otherwise named as not judged, since the table was run for its bandwidth.
    """
    column = table.first_of(_TIMES)
    if reading.kind is not ProgramKind.BANDWIDTH or column is None or reading.pairs_share_rails:
        return [], []
    if "bandwidth_mb_s" not in table.columns:
        return [], []
    rows = [
        (size, value)
        for size, value in zip(_sizes(table), table.column(column), strict=True)
        if size != 0 or reading.empty_crosses
    ]
    judged = [
        _latency(size, value, reading, limits, named=index == 0, first_us=None)
        for index, (size, value) in enumerate(rows)
    ]
    if not judged:
        return [], []
    first = judged[0]
    kept = [each for each in judged if each.verdict is not Verdict.UNJUDGED]
    if first.verdict is not Verdict.UNJUDGED:
        return kept, []
    note = f"{first.name} = {first.value:g} us not judged: no reference says what it should be"
    return kept, [note]


def _with_path(judgement: Judgement, net_path: PathProof | None, rules: Rules) -> Judgement:
    """Return the judgement after the path had its say: a wrong path spoils every number."""
    if net_path is not None and net_path.state is PathState.WRONG:
        return replace(judgement, verdict=Verdict.INVALID, reason=net_path.reason)
    if judgement.verdict is not Verdict.PASS:
        return judgement
    if net_path is None and rules.path_required:
        reason = "the path is not shown: no counters were read around this run"
        return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)
    if net_path is not None and net_path.state is PathState.UNKNOWN:
        return replace(judgement, verdict=Verdict.UNJUDGED, reason=net_path.reason)
    if net_path is not None and net_path.state is PathState.DISTURBED:
        reason = f"fast, but errors rose while it ran: {net_path.reason}"
        return replace(judgement, verdict=Verdict.FAIL, reason=reason)
    return judgement
