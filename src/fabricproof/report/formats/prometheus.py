"""A run as Prometheus text (exposition format 0.0.4), for node_exporter's textfile collector.

Only what changes slowly is a label: the identity of a run is a metric of its own, and legs that
were skipped are counted, not listed.  There are at most :data:`SERIES_LIMIT` series of legs and
quantities, red ones first; how many were left out is a metric too.
Units are Prometheus' base units: bytes per second, seconds, ratios.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key, size_label
from fabricproof.job.run import LegResult
from fabricproof.report.model import ReportData
from fabricproof.report.red import RED, folded, rails_of

#: series of legs and quantities in one file; a Prometheus server has millions, a site hundreds
SERIES_LIMIT = 10_000

#: verdict -> number, the exit status of a run with it; the help of the metric says so
NUMBERS: Mapping[Verdict, int] = {
    Verdict.PASS: 0,
    Verdict.FAIL: 1,
    Verdict.INVALID: 3,
    Verdict.MISSING: 4,
    Verdict.UNJUDGED: 5,
    Verdict.SKIPPED: 6,
}

_ENUM = ", ".join(f"{number} {verdict}" for verdict, number in NUMBERS.items())


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A family of series.

    Attributes:
        name: with its unit.
        factor: from the unit of the records to the metric's.
    """

    name: str
    help: str
    factor: float = 1.0


_BANDWIDTH = "bandwidth over the rails of the leg, as the verdict rests on it"

#: unit of a record -> its metric
METRICS: Mapping[str, Metric] = {
    "MB/s": Metric(name="fabricproof_bandwidth_bytes_per_second", help=_BANDWIDTH, factor=1e6),
    "MiB/s": Metric(name="fabricproof_bandwidth_bytes_per_second", help=_BANDWIDTH, factor=2.0**20),
    "us": Metric(name="fabricproof_time_seconds", help="latency, or time of a call", factor=1e-6),
    "ms": Metric(name="fabricproof_time_seconds", help="latency, or time of a call", factor=1e-3),
    "1/s": Metric(name="fabricproof_rate_per_second", help="messages or calls per second"),
    "x": Metric(name="fabricproof_ratio", help="one number over another, as its name says"),
    "%": Metric(name="fabricproof_ratio", help="one number over another", factor=1e-2),
    "1": Metric(name="fabricproof_count", help="a count, or 1 where a fact is as declared"),
}

_OTHER = Metric(name="fabricproof_value", help="a quantity in the unit of its label")
_OF_REFERENCE = Metric(
    name="fabricproof_of_reference_ratio", help="a quantity over its reference; 1 is as expected"
)
_LEG = Metric(name="fabricproof_leg_verdict", help=f"verdict of a leg: {_ENUM}")

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One series and its number."""

    metric: Metric
    labels: Labels
    value: float


def render_prometheus(data: ReportData, limit: int = SERIES_LIMIT) -> str:
    """Return the text of a run.

    It has ``limit`` series of legs and quantities at most; what is left out is counted.
    """
    kept: dict[tuple[str, Labels], Sample] = {}
    left_out = 0
    legs = [leg for leg in data.session.legs if leg.verdict is not Verdict.SKIPPED]
    for leg in sorted(legs, key=lambda leg: leg.verdict not in RED):
        for sample in _samples(data.site, leg):
            identity = sample.metric.name, sample.labels
            if identity in kept or len(kept) >= limit:
                left_out += 1
            else:
                kept[identity] = sample
    families = by_key(
        (sample.metric.name, sample) for sample in (*_of_run(data, left_out), *kept.values())
    )
    return "".join(line + "\n" for all_ in families.values() for line in _family(all_))


def _of_run(data: ReportData, left_out: int) -> Iterator[Sample]:
    site: Labels = (("site", data.site),)

    def gauge(name: str, words: str, value: float, more: Labels = ()) -> Sample:
        metric = Metric(name=f"fabricproof_{name}", help=words)
        return Sample(metric=metric, labels=(*site, *more), value=value)

    yield gauge("run_verdict", f"verdict of the run: {_ENUM}", NUMBERS[data.session.verdict])
    yield gauge(
        "run_start_timestamp_seconds", "when the run began, Unix time", data.run.start.timestamp()
    )
    yield gauge(
        "report_timestamp_seconds", "when this file was made, Unix time", data.made.timestamp()
    )
    yield gauge("run_info", "identity of the run", 1, (("run_id", data.run.run_id),))
    counts = data.session.counts()
    for verdict in Verdict:
        yield gauge(
            "run_legs",
            "legs of the run by verdict",
            counts.get(verdict, 0),
            (("verdict", verdict.value),),
        )
    yield gauge("series_left_out", "series over the limit, or told twice", left_out)


def _samples(site: str, leg: LegResult) -> Iterator[Sample]:
    labels: Labels = (
        ("site", site),
        ("partition", leg.partition),
        ("fabric", leg.fabric),
        ("stack", leg.stack),
        ("suite", leg.suite),
        ("program", leg.program),
        ("check", leg.check),
        ("leg", leg.leg),
        ("rail", "+".join(rails_of(leg))),
        ("nodes", folded(leg.nodes)),
        # An empty label is none to Prometheus: the series of adapters stay what they were.
        *((("device", leg.device),) if leg.device else ()),
    )
    yield Sample(metric=_LEG, labels=labels, value=NUMBERS[leg.verdict])
    for each in leg.quantities:
        value, unit = each.value, each.unit
        # A number that is not there is no sample: 0 would be a measurement.
        if value is None or not each.named:
            continue
        more = (
            *labels,
            ("quantity", each.name),
            ("size", "" if each.message_size is None else size_label(each.message_size)),
        )
        metric = METRICS.get(unit, _OTHER)
        named = (*more, ("unit", unit)) if metric is _OTHER else more
        yield Sample(metric=metric, labels=named, value=value * metric.factor)
        if each.reference:
            ratio = value / each.reference
            yield Sample(metric=_OF_REFERENCE, labels=more, value=ratio)


def _family(samples: Iterable[Sample]) -> Iterator[str]:
    samples = list(samples)
    metric = samples[0].metric
    yield f"# HELP {metric.name} {metric.help.translate(_HELP_ESCAPES)}"
    yield f"# TYPE {metric.name} gauge"
    for each in samples:
        inner = ",".join(f'{name}="{label_value(value)}"' for name, value in each.labels)
        yield f"{metric.name}{{{inner}}} {_shown(each.value)}"


_HELP_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n"})
_LABEL_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def label_value(words: str) -> str:
    """Return a label's value as it stands between quotes; what no UTF-8 can hold is replaced."""
    held = words.encode("utf-8", errors="replace").decode("utf-8")
    return held.translate(_LABEL_ESCAPES)


def _shown(value: float) -> str:
    """Return a number as Go reads it: whole ones whole, ``NaN``, ``+Inf``."""
    if value != value:  # noqa: PLR0124 - the one number that is not itself
        return "NaN"
    if abs(value) == float("inf"):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
