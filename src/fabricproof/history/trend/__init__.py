"""What changed when, over many runs, and what else changed then."""

from __future__ import annotations

from fabricproof.history.trend.find import Question, find_trend
from fabricproof.history.trend.model import Event, Trend, trend_lines, trend_record

__all__ = [
    "Event",
    "Question",
    "Trend",
    "find_trend",
    "trend_lines",
    "trend_record",
]
