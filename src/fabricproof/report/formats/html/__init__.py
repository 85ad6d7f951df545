"""The report as one HTML file that opens offline and asks nothing of any network."""

from __future__ import annotations

from fabricproof.report.formats.html.page import render_html, render_pairs

__all__ = ["render_html", "render_pairs"]
