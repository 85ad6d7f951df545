"""What earlier runs measured: store, comparison, trend, baselines, plan, statistics."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "baseline.file": "the file of a baseline, and whether it still holds",
    "baseline.freeze": "a baseline learnt from known-good runs",
    "compare.comparison": "the comparison itself",
    "compare.model": "a comparison as data, as a record and as CSV",
    "compare.sides": "words that choose runs",
    "compare.text": "a comparison as lines",
    "imported": "runs that ReFrame alone made",
    "machines": "what the nodes of runs were made of, and what changed",
    "plan": "what a run would start, and what it took last time",
    "stats.shifts": "the words BETTER, WORSE and what they rest on",
    "store": "all runs of a site in one table; labels of runs",
    "trend.find": "since when a quantity has another level",
    "trend.model": "a trend as data and as a record",
    "trend.text": "a trend as lines",
}
