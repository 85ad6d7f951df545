"""A report as files: HTML, JSON, JUnit, Prometheus text, and the bundle."""

from __future__ import annotations

from fabricproof.report.formats.junit import render_junit
from fabricproof.report.formats.prometheus import render_prometheus
from fabricproof.report.formats.record import leg_record, report_record

__all__ = [
    "leg_record",
    "render_junit",
    "render_prometheus",
    "report_record",
]
