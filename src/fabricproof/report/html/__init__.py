"""The report as one HTML file that opens offline and asks nothing of any network."""

from __future__ import annotations

from fabricproof.report.html.page import render_html

__all__ = ["render_html"]
