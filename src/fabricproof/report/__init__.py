"""Renderers: one plain result in, text or data for one kind of reader out."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "contract": "a run judged by criteria that both sides sign",
    "formats": "JSON, JUnit, Prometheus text",
    "formats.bundle": "one archive of all evidence of a run",
    "formats.html": "the page, offline",
    "gather": "all that is shown of a run, gathered",
    "model": "a report as data",
    "red": "what is red, in groups",
    "text": "the table of verdicts, a report on one screen, lines that drain nodes",
}
