"""Renderers: one plain result in, text or data for one kind of reader out."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "formats.bundle": "one archive of all evidence of a run",
    "formats.page": "the page, offline",
    "formats.junit": "JUnit",
    "formats.plot": "a comparison or a trend as SVG",
    "formats.prometheus": "Prometheus text",
    "formats.record": "JSON",
    "gather": "all that is shown of a run, gathered",
    "model": "a report as data",
    "red": "what is red, in groups",
    "text.drain": "lines that drain nodes",
    "text.screen": "a report on one screen",
    "text.terminal": "the table of verdicts",
}
