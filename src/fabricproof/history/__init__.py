"""What earlier runs measured: store, comparison, trend, baselines, plan, statistics."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "baseline.freezing": "a baseline learnt from known-good runs",
    "baseline.past": "the numbers that a baseline may be learnt from",
    "baseline.review": "whether a baseline still holds",
    "baseline_file": "the file of a baseline",
    "compare.comparison": "the comparison itself",
    "compare.facts": "what differed in machines and builds between two sides",
    "compare.join": "which rows a comparison is asked for",
    "compare.model": "a comparison as data and as a record",
    "compare.sides": "words that choose runs",
    "compare.text": "a comparison as lines",
    "imported": "runs that ReFrame alone made",
    "known_good": "the quantities of a baseline under the keys of history",
    "plan": "what a run would start, and what it took last time",
    "stats.shifts": "the words BETTER, WORSE and what they rest on",
    "store": "all runs of a site in one table; labels of runs",
    "trend.find": "since when a quantity has another level",
    "trend.model": "a trend as data, lines and a record",
}
