"""The judge: records in, verdicts out; pure, so that a verdict can be repeated from its records.

A quantity passes only by being possible (within its physical ceiling or above its latency floor),
good enough (within the bounds of its reference), arithmetically sound (the columns of its row
agree) and measured on the right path.  Everything else has a name of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.benchmarks.program import NCCL_SUITES, ProgramKind, buffers_of
from fabricproof.core.findings import Finding, as_notes
from fabricproof.core.measure import Table, Verdict, worst
from fabricproof.core.units import at_size, size_label, split_buffers
from fabricproof.traffic import PathProof
from fabricproof.verdict.busbw import QUANTITY, describe_busbw, judge_busbw, on_gpus
from fabricproof.verdict.causes.suspects import explained
from fabricproof.verdict.collective import (
    COLLECTIVE_TIMES,
    collective_floor,
    describe_collective,
    describe_rings,
    judge_rings,
)
from fabricproof.verdict.curve import (
    TIMES,
    describe_shape,
    inverted_latencies,
    row_limit_us,
    smallest_message_us,
    too_fast,
    too_small_for_plateau,
    without_switches,
)
from fabricproof.verdict.laws import Row, wire_bytes
from fabricproof.verdict.limits import Limits, num_pairs
from fabricproof.verdict.network import (
    describe_loss,
    judge_retransmissions,
    network_of,
    objections_of,
    unless_limited,
)
from fabricproof.verdict.objections import of_path
from fabricproof.verdict.value import (
    Judgement,
    Reference,
    Report,
    Rules,
    at_least,
    at_most,
    judge_value,
    no_number,
)

#: Messages up to this size may print as 0.00 MB/s on a slow network (4 B in a millisecond).
SMALLEST_PRINTED_BYTES = 16

#: OSU's own largest message of its point-to-point programs (util/osu_util.h MAX_MESSAGE_SIZE).
OSU_LARGEST_BYTES = 4 * 1024 * 1024

#: the columns of a time that this judge can judge, best first
_TIMES = (*TIMES, "overall_us")


def judge_table(table: Table, rules: Rules, net_path: PathProof | None = None) -> Report:
    """Judge one parsed table; ``net_path`` is None if no counters were read."""
    table, buffers = _in_decimal_megabytes(table), buffers_of(table)
    if buffers:
        rules = replace(rules, references=_of_buffers(rules.references, buffers))
    limits, notes = Limits(table, rules), list[str]()
    from_file = net_path is None and not rules.path_required
    judged, findings = _numbers(limits)
    judged = [unless_limited(each, table) for each in judged]
    judged += _due_sizes(limits, judged)
    judged += _not_in_the_table(limits, from_file=from_file)
    if from_file:  # a run of our own counts them on the nodes
        lost, told = judge_retransmissions(table)
        judged, notes = [*judged, *lost], [*notes, *told]
    if buffers:
        judged, told = on_gpus(judged, buffers, limits.fabric, rules.references)
        notes += told
    judged = explained(judged, table, limits.fabric)
    notes += describe_shape(table) if table.suite not in NCCL_SUITES else ()
    notes += [*inverted_latencies(table), *describe_loss(table)]
    notes += net_path.findings if net_path else ()
    notes += _what_a_file_cannot_show(limits) if from_file else ()
    report = Report(
        verdict=worst([each.verdict for each in judged]),
        quantities=tuple(judged),
        findings=(*findings, *as_notes(notes)),
        net_path=net_path,
    )
    own_word = objections_of(table, limits.fabric, rules.devices)
    return report.objected((*own_word, *of_path(net_path, required=rules.path_required)))


def _in_decimal_megabytes(table: Table) -> Table:
    """Return ``table`` with MB of 10^6 bytes, also where IMB up to 4.x printed MiB of 2^20."""
    if "bandwidth_mib_s" not in table.columns:
        return table
    at = table.columns.index("bandwidth_mib_s")
    rows = tuple((*row[:at], row[at] * 1.048576, *row[at + 1 :]) for row in table.rows)
    columns = (*table.columns[:at], "bandwidth_mb_s", *table.columns[at + 1 :])
    return replace(table, columns=columns, rows=rows)


def _of_buffers(references: Mapping[str, Reference], buffers: str) -> dict[str, Reference]:
    """Return the references of such buffers alone, under the names without them."""
    named = [(split_buffers(name), each) for name, each in references.items()]
    return {name: each for (whose, name), each in named if whose == buffers}


def _numbers(limits: Limits) -> tuple[list[Judgement], list[Finding]]:
    """Judge the numbers of a table, with what is worth reading beside them."""
    table = limits.table
    if table.suite in NCCL_SUITES:
        return judge_busbw(limits), list(as_notes(describe_busbw(table)))
    if table.suite == "hpcc":
        return judge_rings(limits), list(as_notes(describe_rings(limits)))
    if collective_of(table.suite, table.program) is not None:
        return _times(limits), list(as_notes(describe_collective(limits)))
    if limits.reading.kind is not ProgramKind.BANDWIDTH or "bandwidth_mb_s" not in table.columns:
        return without_switches(_times(limits))
    side, told = _side_times(limits)
    judged, switches = without_switches([*side, *_bandwidths(limits)])
    return judged, [*as_notes(told), *switches]


def _bandwidths(limits: Limits) -> list[Judgement]:
    """Judge every rate of a curve: the last by the plateau's reference, the others by its law."""
    table, references = limits.table, limits.rules.references
    rows = table.named_rows
    smallest_us = smallest_message_us(table)
    fast = _too_fast(limits, "bandwidth_mb_s")
    found = []
    for row in rows:
        is_last, num_bytes = row is rows[-1], wire_bytes(row)
        name = at_size("bandwidth", _size(row))
        given = references.get(name)
        is_small = row.get("message_size", math.inf) <= SMALLEST_PRINTED_BYTES
        if is_small and not (is_last or given or row["bandwidth_mb_s"]):
            continue  # lost in rounding
        law = None if is_last else _curve_reference(num_bytes, smallest_us, limits, "MB/s")
        judged = judge_value(
            name=name,
            value=row["bandwidth_mb_s"],
            unit="MB/s",
            message_size=_size(row),
            reference=given or (limits.reference if is_last else law),
            ceiling=limits.ceiling_of(num_bytes),
            fault=limits.fault(row),
            silence=limits.silence,
            named=is_last or given is not None,
        )
        if given is None and (doubt := _doubt(judged, num_bytes, limits)):
            judged = replace(judged, verdict=Verdict.UNJUDGED, reason=doubt)
        found.append(_unless_too_fast(judged, fast.get(wire_bytes(row) or 0)))
    return found


def _size(row: Row) -> int | None:
    return int(row["message_size"]) if "message_size" in row else None


def _doubt(judged: Judgement, num_bytes: int | None, limits: Limits) -> str | None:
    """Return why a rate that no reference names is neither good nor bad; None if it is.

    A sum over pairs on an unknown number of nodes is not good.  The largest message is not bad if
    no healthy fabric could have shown its plateau with it.
    """
    if judged.verdict is Verdict.PASS:
        return limits.unknown_nodes
    start_us, reference, value = limits.start_us, limits.reference, judged.value
    if judged.verdict is not Verdict.FAIL or not judged.named:
        return None
    if num_bytes is None or value is None or reference is None or start_us is None:
        return None
    if not too_small_for_plateau(num_bytes, value, start_us, reference.value):
        return None
    return (
        f"{judged.reason}; but messages of {size_label(num_bytes)}, the largest in the table, "
        f"cannot show the plateau where each costs {start_us:.3g} us to start: measure larger ones"
    )


def _too_fast(limits: Limits, column: str) -> Mapping[int, str]:
    """Return what is too fast beside its neighbours, by bytes; a ceiling would tell, if stated."""
    is_told = limits.fabric is not None or limits.reading.pairs_share_rails
    return {} if is_told else too_fast(limits.table, column)


def _unless_too_fast(judged: Judgement, why: str | None) -> Judgement:
    if why is None or judged.verdict not in {Verdict.PASS, Verdict.UNJUDGED}:
        return judged
    return replace(judged, verdict=Verdict.UNJUDGED, reason=f"{judged.name} is {why}")


def _curve_reference(
    num_bytes: int | None, first_us: float | None, limits: Limits, unit: str
) -> Reference | None:
    """Return what a point inside the curve is judged by: see ``verdict.curve``.

    It is a rate in MB/s of all pairs, or a time in us of one, which shares the rate of the plateau.
    """
    plateau_mb_s, longer = limits.curve_mb_s, limits.rules.curve_tolerance
    if plateau_mb_s is None or num_bytes is None or not first_us or first_us < 0:
        return None
    origin = f"curve law from {first_us:.3g} us for the smallest"
    if unit == "us":
        limit_us = row_limit_us(num_bytes, first_us, plateau_mb_s / num_pairs(limits.table))
        return at_most(limit_us, tolerance=longer, origin=origin)
    limit_us = row_limit_us(num_bytes, first_us, plateau_mb_s)
    return at_least(max(num_bytes, 1) / limit_us, tolerance=longer / (1 + longer), origin=origin)


def _times(limits: Limits, *, beside_rates: bool = False) -> list[Judgement]:
    """Judge every time of a table; a reference of ``latency`` means its smallest message.

    Of a collective the smallest and the largest are named.  Of times ``beside_rates`` the rates
    tell what is wrong with a row.
    """
    table, references = limits.table, limits.rules.references
    program = collective_of(table.suite, table.program)
    column = table.first_of(COLLECTIVE_TIMES if program else _TIMES)
    rows = table.named_rows if column else []
    if program is not None and program.has_size:
        rows = [row for row in rows if row.get("message_size")]  # MPICH returns at once from 0 B
    elif beside_rates:
        rows = [row for row in rows if _size(row) != 0 or limits.reading.empty_crosses]
    if column is None or not (rows or beside_rates):
        if fault := limits.fault({}):
            return [no_number(table.program, Verdict.INVALID, fault)]
        reason = "the table has no column this judge can judge"
        return [no_number(table.program, Verdict.UNJUDGED, reason)]
    is_curve = limits.reading.kind is ProgramKind.LATENCY
    fast = _too_fast(limits, column) if is_curve else {}
    found = []
    for row in rows:
        is_first, is_last = row is rows[0], row is rows[-1]
        size = None if program and not program.has_size else _size(row)
        name = at_size("latency", size)
        given = references.get(name) or (references.get("latency") if is_first else None)
        law = None
        if is_curve and not is_first:
            law = _curve_reference(wire_bytes(row), rows[0][column], limits, "us")
        judged = judge_value(
            name=name,
            value=row[column],
            unit="us",
            message_size=size,
            reference=given or law,
            floor=collective_floor(limits, row) if program else limits.floor(row),
            fault=limits.fault(row) if given or not beside_rates else None,
            silence=None if is_first else limits.silence,
            named=is_first or (is_last if program else given is not None),
        )
        found.append(_unless_too_fast(judged, fast.get(wire_bytes(row) or 0)))
    return found


def _side_times(limits: Limits) -> tuple[list[Judgement], list[str]]:
    """Judge the times that a bandwidth table prints beside its bandwidths.

    They count if a reference says what they should be, or if they are impossible; that of the
    smallest message is otherwise noted as not judged.
    """
    if limits.reading.pairs_share_rails or limits.table.first_of(_TIMES) is None:
        return [], []
    judged = _times(limits, beside_rates=True)
    kept = [each for each in judged if each.verdict is not Verdict.UNJUDGED]
    if not judged or judged[0].verdict is not Verdict.UNJUDGED:
        return kept, []
    first = judged[0]
    note = f"{first.name} = {first.value:g} us not judged: no reference says what it should be"
    return kept, [note]


def unanswered(references: Iterable[str], judgements: Iterable[Judgement]) -> list[str]:
    """Return the references that no judged quantity answers to.

    A reference that nothing was held against is a measurement that is missing, never a pass.
    """
    kinds = {"MB/s": "bandwidth", "us": "latency"}
    answered = set()
    for judgement in judgements:
        is_busbw = judgement.name.startswith(QUANTITY)
        kind = split_buffers(judgement.name)[0] + kinds.get(judgement.unit, "")
        answered |= {judgement.name, QUANTITY if is_busbw else kind}
    return [name for name in references if name not in answered]


def _due_sizes(limits: Limits, judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return the sizes that a reference asks for and this table should hold, as MISSING."""
    kinds = {each.name.partition("_")[0] for each in judgements}
    kinds |= {"latency"} if limits.table.first_of(_TIMES) else set()
    reason = "a reference asks for it, and the table has no such size"
    return [
        no_number(name, Verdict.MISSING, reason)
        for name in unanswered(limits.rules.references, judgements)
        if "_" in name and name.partition("_")[0] in kinds
    ]


def _not_in_the_table(limits: Limits, *, from_file: bool) -> list[Judgement]:
    """Return what the tool gave up on, and the end that a cut latency table may lack, as MISSING.

    A latency table is judged by its first row, and would pass on that row alone.
    """
    table, kind = limits.table, limits.reading.kind
    quantity = "bandwidth" if kind is ProgramKind.BANDWIDTH else "latency"
    absent = [
        no_number(at_size(quantity, size), Verdict.MISSING, f"the tool gave up on it: {words}")
        for size, words in table.unmeasured.items()
    ]
    asked = [name for name in limits.rules.references if name.partition("_")[0] == "latency"]
    cut, last = _cut(table)
    cut = "" if table.suite == "perftest" and len(table.rows) == 1 else cut  # its default
    if from_file and cut and asked and kind is ProgramKind.LATENCY and last not in asked:
        name = f"{buffers_of(table)}{last}"
        reason = (
            f"{cut} If the run asked for no more, name its last size in a --reference ({name}=...)"
        )
        absent.append(no_number("larger sizes", Verdict.MISSING, reason))
    return absent


def _cut(table: Table) -> tuple[str, str]:
    """Return why a table may be cut, and its last latency's name; empty if it is whole."""
    if "message_size" not in table.columns or not table.rows:
        return "", ""
    last, why = int(table.column("message_size")[-1]), ""
    if table.attributes.get("end_not_seen"):
        why = "the end of the output was not seen: larger sizes may be missing"
    elif table.suite == "osu" and last < OSU_LARGEST_BYTES:
        why = (
            f"the table ends at {size_label(last)}: OSU prints no end mark, and its own largest "
            f"size is {size_label(OSU_LARGEST_BYTES)}; was it cut?"
        )
    return why, at_size("latency", last)


def _what_a_file_cannot_show(limits: Limits) -> list[str]:
    used = network_of(limits.table)
    says = f"; the library says that it used {used}" if used else ""
    found = [f"path not shown: no counters were read around this run{says}"]
    cut, _ = _cut(limits.table)
    is_told = cut and limits.reading.kind in {ProgramKind.BANDWIDTH, ProgramKind.LATENCY}
    return [*found, cut] if is_told else found
