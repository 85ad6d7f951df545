"""The shape of a curve over message size: a bound for every row, and the oddities worth naming.

The bound is the affine cost model of Hockney (R. W. Hockney, "The communication challenge for
MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994) 389-398), t(n) = t0 + n / r_inf,
with t0 from the smallest message and r_inf from the reference of the plateau.  The eager protocol
needs one crossing; above its limit a rendezvous adds a request and an answer before the data
(MPICH, Open MPI and UCX all do), so a healthy row may cost up to three times t0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.findings import Finding, FindingKind
from fabricproof.core.measure import Table, Verdict
from fabricproof.core.units import size_label
from fabricproof.verdict.laws import wire_bytes
from fabricproof.verdict.value import CURVE_TOLERANCE, Judgement

#: the columns that may carry a message's time, best first
TIMES = ("latency_us", "latency_avg_us", "latency_max_us")

#: crossings before the last byte of a rendezvous message: request, answer, data.
RENDEZVOUS_CROSSINGS = 3

#: Only a message up to this size tells what one message costs before its bytes count: at 1 KiB
#: the bytes take 0.15 us at FDR and 8.7 us at 1 GbE, less than any stack's own time.
SMALL_MESSAGE_BYTES = 1024

#: A size whose healthy row, by the model, stays this fraction below the plateau cannot show it.
PLATEAU_FRACTION = 0.10

#: A bandwidth this fraction below the best of the smaller sizes is a dip worth naming.
DIP_FRACTION = 0.10

#: A flat stretch that then rises by this factor between neighbouring sizes is a step.
STEP_FACTOR = 1.5
FLAT_FACTOR = 1.15

#: Below this many MB/s the two printed decimals are too coarse to divide by (5 % at 0.10).
COARSE_MB_S = 0.10


def row_limit_us(message_size: int, smallest_us: float, plateau_mb_s: float) -> float:
    """Return the longest healthy time of one message of so many bytes, in us.

    The smallest takes ``smallest_us``; a MB/s of the plateau's reference is a byte per us.
    """
    return RENDEZVOUS_CROSSINGS * smallest_us + message_size / plateau_mb_s


def smallest_message_us(table: Table) -> float | None:
    """Return the time per message at the small end of a bandwidth table, in us; None if unknown.

    A table that prints times says so by its first row, or the next one if an empty message crosses
    nothing; else by the first row whose bandwidth is not lost in the rounding.
    """
    if column := table.first_of(TIMES):
        rows = table.named_rows
        if rows and rows[0].get("message_size") == 0 and not reading_of(table).empty_crosses:
            rows = rows[1:]
        return rows[0][column] or None if rows else None
    rates = _points(table, "bandwidth_mb_s")
    return next((n / rate for n, rate in rates if rate >= COARSE_MB_S and n > 0), None)


def start_up_us(table: Table) -> float | None:
    """Return what a message costs before its bytes count, in us; None if no row is small."""
    first = next((wire_bytes(row) for row in table.named_rows), None)
    return None if first is None or first > SMALL_MESSAGE_BYTES else smallest_message_us(table)


def _points(table: Table, column: str) -> list[tuple[int, float]]:
    """Return bytes on the wire and the number of each row; none if a column is not there."""
    if not {"message_size", column} <= set(table.columns):
        return []
    return [(wire_bytes(row) or 0, row[column]) for row in table.named_rows]


def too_small_for_plateau(
    message_size: int, value_mb_s: float, start_us: float, plateau_mb_s: float
) -> bool:
    """Tell whether a healthy fabric, too, would show only about ``value_mb_s`` at this size.

    The model itself stays below the plateau there, and the value is not worse than it allows.
    """
    healthy = max(message_size, 1) / row_limit_us(message_size, start_us, plateau_mb_s)
    shows_plateau = healthy >= plateau_mb_s * (1 - PLATEAU_FRACTION)
    return not shows_plateau and value_mb_s >= healthy / (1 + CURVE_TOLERANCE)


#: The law of a protocol switch.  MPI libraries change from eager to rendezvous, and from copying
#: to registering, somewhere between these sizes (UCX, Open MPI and MPICH: 256 B to 256 KiB by
#: transport and tuning); at the switch one or two neighbouring sizes may cost up to this many times
#: what the curve law gives them.
SWITCH_SIZES_BYTES = (256, 256 * 1024)
SWITCH_POINTS = 2
SWITCH_FACTOR = 2.0
#: rows above the switch that must be healthy: the curve is back on its law, and stays there
SWITCH_HEALTHY_AFTER = 3


def without_switches(judgements: Sequence[Judgement]) -> tuple[list[Judgement], list[Finding]]:
    """Return the judgements with a protocol switch as PASS, and a finding that names it.

    A switch is the only red of its curve: one run of at most :data:`SWITCH_POINTS` neighbouring
    sizes within :data:`SWITCH_SIZES_BYTES`, each off by at most :data:`SWITCH_FACTOR`, with a
    healthy row below, at least :data:`SWITCH_HEALTHY_AFTER` above, and none that a reference names.
    Anything else stays red: a wrong MTU, or a slot short of credits, costs every size from some on.
    """
    judged = list(judgements)
    findings: list[Finding] = []
    for unit in ("MB/s", "us"):
        places = [at for at, each in enumerate(judged) if each.unit == unit]
        for place in _switch([judged[at] for at in places]):
            each = judged[places[place]]
            judged[places[place]] = _as_switch(each)
            words = (
                f"protocol switch: {each.name} = {each.value:g} {unit} is off the curve law "
                f"({each.reason}) in an otherwise healthy curve; a --reference that names the "
                "size judges it"
            )
            findings.append(Finding(text=words, kind=FindingKind.PROTOCOL_SWITCH))
    return judged, findings


def _as_switch(judgement: Judgement) -> Judgement:
    """Return the judgement as PASS, with the bounds of a switch."""
    due, value = judgement.reference or 0.0, judgement.value or 0.0
    lower, upper = judgement.lower, judgement.upper
    if lower is not None:
        lower = min(due / SWITCH_FACTOR, value)  # the rounding of a division moves no verdict
    if judgement.unit == "us" and upper is not None:
        upper = max(due * SWITCH_FACTOR, value)
    reason = f"{judgement.reason}; taken for a protocol switch"
    return replace(judgement, verdict=Verdict.PASS, lower=lower, upper=upper, reason=reason)


def _switch(curve: Sequence[Judgement]) -> list[int]:
    """Return the places of the one protocol switch of ``curve``; none if there is none."""
    bad = [at for at, each in enumerate(curve) if each.verdict is not Verdict.PASS]
    if bad and bad[0] == 0 and curve[0].verdict is Verdict.UNJUDGED:
        bad = bad[1:]  # the smallest latency is a quantity of its own
    if not bad or len(bad) > SWITCH_POINTS or bad != [*range(bad[0], bad[-1] + 1)]:
        return []
    is_inside = bad[0] > 0 and len(curve) - 1 - bad[-1] >= SWITCH_HEALTHY_AFTER
    return bad if is_inside and all(_may_be_switch(curve[at]) for at in bad) else []


def _may_be_switch(judgement: Judgement) -> bool:
    size, value, due = judgement.message_size, judgement.value, judgement.reference
    if judgement.verdict is not Verdict.FAIL or judgement.named or not (size and value and due):
        return False
    least, most = SWITCH_SIZES_BYTES
    return least <= size <= most and max(value / due, due / value) <= SWITCH_FACTOR


#: Neighbouring messages of a healthy curve: a larger one takes at least this part of the time of
#: the smaller one, and at most :data:`RENDEZVOUS_CROSSINGS` x that time x the ratio of their bytes,
#: those below :data:`SMALL_MESSAGE_BYTES` not counted.
EVEN_FRACTION = 0.5

#: In an otherwise even curve so many times faster than the smaller neighbour is another path, or
#: another unit.  Recorded and published: a factor of 3 (256 B against 1 B, a host's idle states).
TOO_FAST_FACTOR = 4.0
TOO_FAST_POINTS = 2
FEWEST_EVEN_POINTS = 4


def too_fast(table: Table, column: str) -> dict[int, str]:
    """Return the messages that are far faster than their neighbours: bytes on the wire -> words.

    At most :data:`TOO_FAST_POINTS` sizes side by side, without which the curve of one pair is even;
    of an uneven one nothing is said.  Messages of 0 bytes need not take the way of the others
    (buffers on GPUs).  ``column`` has rates in MB/s, or times in us.
    """
    points = [(size, each) for size, each in _points(table, column) if size and each > 0]
    if column.endswith("_mb_s"):
        points = [(size, size / rate) for size, rate in points]
    breaks = _breaks(points)
    if not breaks:
        return {}
    for many in range(1, TOO_FAST_POINTS + 1):
        for at in range(max(0, breaks[0] + 1 - many), breaks[0] + 2):
            rest, fast = points[:at] + points[at + many :], points[at : at + many]
            if len(rest) < FEWEST_EVEN_POINTS or _breaks(rest):
                continue
            beside = rest[max(at - 1, 0)]
            is_known = at > 0 or beside[0] <= SMALL_MESSAGE_BYTES
            if is_known and all(time * TOO_FAST_FACTOR < beside[1] for _, time in fast):
                words = (
                    f"{TOO_FAST_FACTOR:g} times faster than its neighbours allow, and no fabric is "
                    "stated: shared memory or a wrong unit is likely"
                )
                return {size: words for size, _ in fast}
    return {}


def _breaks(points: Sequence[tuple[int, float]]) -> list[int]:
    """Return the places of a curve after which it is not even."""
    return [
        at
        for at, ((smaller, before), (size, time)) in enumerate(pairwise(points))
        if not EVEN_FRACTION * before
        <= time
        <= RENDEZVOUS_CROSSINGS * before * max(1, size / max(smaller, SMALL_MESSAGE_BYTES))
    ]


def describe_shape(table: Table) -> Iterator[str]:
    """Yield a sentence for each dip and step of a bandwidth curve; a healthy one may have both."""
    rates = _points(table, "bandwidth_mb_s")
    best_size, best = 0, 0.0
    for at, (size, rate) in enumerate(rates):
        if best > 0 and rate < best * (1 - DIP_FRACTION):
            yield (
                f"dip: {size_label(size)} carries {rate:g} MB/s, "
                f"{1 - rate / best:.0%} less than {size_label(best_size)} ({best:g})"
            )
        if rate > best:
            best_size, best = size, rate
        (_, before), (before_size, last) = rates[at - 2 : at] if at >= 2 else ((0, 0.0), (0, 0.0))
        if before > 0 and 0 < last <= before * FLAT_FACTOR and rate >= last * STEP_FACTOR:
            yield (
                f"step: {size_label(before_size)} carries {last:g} MB/s, "
                f"{size_label(size)} {rate:g} (x{rate / last:.2f})"
            )


#: a message that takes less than this part of a shorter one's time goes another way
INVERTED = 0.5


def inverted_latencies(table: Table) -> list[str]:
    """Return the messages that take far less time than shorter ones, in words."""
    name = table.first_of(("latency_us", "latency_avg_us"))
    is_latency = reading_of(table).kind is ProgramKind.LATENCY
    if name is None or not is_latency or "message_size" not in table.columns:
        return []
    rows = [*zip(map(int, table.column("message_size")), table.column(name), strict=True)]
    return [
        f"{size_label(size)} takes {time:g} us, {size_label(shorter)} {longer:g} us: short "
        "messages go another way, and a slower one"
        for (shorter, longer), (size, time) in pairwise(rows)
        if time < INVERTED * longer
    ]
