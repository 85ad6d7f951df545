"""What a tired administrator reads at seven: the verdict, what is red, what to run next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabricproof.core.measure import BADNESS, Quantity, Verdict
from fabricproof.core.units import counted
from fabricproof.history.store import Key
from fabricproof.job.run import LegResult
from fabricproof.report.formats.html.markup import (
    Markup,
    joined,
    number,
    section,
    table,
    tag,
    who,
    word,
)
from fabricproof.report.formats.html.payload import Place, place_of
from fabricproof.report.model import RawNumber, ReportData
from fabricproof.report.red import again, next_step, told_of_passes

#: legs in the first table; all others are in the section of every leg
SHOWN = 50

_FINE = frozenset({Verdict.PASS, Verdict.SKIPPED})

_SAID: dict[Verdict, str] = {
    Verdict.PASS: "Every leg that was due here was measured, took its path, and was good enough.",
    Verdict.FAIL: "At least one number is worse than it must be.",
    Verdict.INVALID: "At least one number is not what it claims to be.",
    Verdict.MISSING: "Something that was due was not measured.",
    Verdict.UNJUDGED: "Something was measured and there was nothing to judge it by.",
    Verdict.SKIPPED: "Nothing was judged in this run.",
}


def header(data: ReportData) -> Markup:
    """Return the banner: whose report of which run."""
    made = f"made {data.made:%Y-%m-%d %H:%M} UTC"
    about = f"run {data.run.run_id}, begun {data.run.night} UTC; {made}"
    helped = tag("button", "Keys: ?", type="button", id="help-button", class_="scripted")
    return tag("header", tag("h1", f"Fabric report of {data.site}"), tag("p", about), helped)


def verdict(data: ReportData, keys: Sequence[Key], known: Mapping[Place, int]) -> Markup:
    """Return the first section."""
    red = red_legs(data)
    return section(
        "verdict",
        "Verdict",
        tag("div", _of_run(data), _of_comparison(data), _of_trend(data), class_="cards"),
        _red_table(data, red, keys, known),
        _found_on_green(data),
        *([_notes(data)] if data.notes or data.session.notes else []),
    )


def red_legs(data: ReportData) -> list[LegResult]:
    """Return the legs that need a person, the worst first."""
    red = [leg for leg in data.session.legs if leg.verdict not in _FINE]
    return sorted(red, key=lambda leg: (BADNESS.index(leg.verdict), bool(leg.for_want_of)))


def _of_run(data: ReportData) -> Markup:
    session = data.session
    counts = session.counts()
    told = joined(
        (tag("li", f"{counts[each]} ", word(each.value)) for each in BADNESS if each in counts),
    )
    return tag(
        "article",
        tag("h3", "This run"),
        tag("p", word(session.verdict.value), class_=f"big b-{session.verdict.value}"),
        tag("p", _SAID[session.verdict]),
        tag("ul", told, class_="counts") if told else tag("p", "No leg at all."),
        tag("p", tag("strong", "Next: "), _next_step(data)),
        class_=f"card c-{session.verdict.value}",
    )


def _next_step(data: ReportData) -> Markup:
    step = next_step(data.session) or "nothing: look again after the next change"
    red = red_legs(data)
    return (
        joined([f"{step}: ", tag("code", again(red[0], data.site))]) if red else joined([step, "."])
    )


def _of_comparison(data: ReportData) -> Markup:
    made = data.comparison
    if made is None:
        return tag(
            "article",
            tag("h3", "Before and after"),
            tag("p", "Not compared."),
            tag("p", tag("strong", "Next: "), tag("code", "fabricproof compare A B")),
            class_="card",
        )
    return tag(
        "article",
        tag("h3", "Before and after"),
        tag("p", word(made.overall.value), class_=f"big b-{made.overall.value}"),
        tag("p", made.reason),
        tag("p", f"{made.first.words} ({counted(len(made.first.runs), 'run')}) against "
                 f"{made.second.words} ({counted(len(made.second.runs), 'run')})"),
        tag("p", tag("strong", "Next: "), _after_comparison(data)),
        class_=f"card c-{made.overall.value}",
    )  # fmt: skip


def _after_comparison(data: ReportData) -> str:
    assert data.comparison is not None
    made = data.comparison
    if made.overall.value == "WORSE":
        return "read which rail, pair and node below; then swap one thing back and compare again"
    if made.overall.value == "UNDECIDED":
        if made.more_runs:
            more = counted(made.more_runs, "more run")
            return f"more runs; {more} on each side would decide all that is open"
        return "more runs, or less noise: no number of runs tried would decide it as it is"
    return "nothing: keep the runs as a baseline if the change stays"


def _of_trend(data: ReportData) -> Markup:
    made = data.trend
    if made is None:
        said = tag("p", "Too few runs, or nobody looked.")
        return tag("article", tag("h3", "History"), said, class_="card")
    num = made.num_quantities
    looked = f"among {num} with enough runs; {made.num_short} have too few"
    found = "No lasting worsening found"
    if made.is_worse_now:
        found = "Something grew worse and still is"
    elif made.looks_worse_now:
        found = "Something looks worse, which is not sure yet"
    elif made.too_few_for_steps:
        found = "Too few runs to tell a lasting worsening"
    events = counted(len(made.events), "event")
    said = joined(
        [
            tag("p", tag("strong", found), f" ({looked})."),
            tag("p", f"{events} in {counted(len(made.runs), 'run')}."),
            *([tag("p", "Newest: ", made.events[0].sentence)] if made.events else []),
        ]
    )
    step = next((each.next_step for each in made.events if each.next_step), "")
    todo = tag("p", tag("strong", "Next: "), tag("code", step)) if step else ""
    kind = "card c-WORSE" if made.is_worse_now else "card"
    return tag("article", tag("h3", "History"), said, todo, class_=kind)


def _red_table(
    data: ReportData, red: list[LegResult], keys: Sequence[Key], known: Mapping[Place, int]
) -> Markup:
    if not red:
        return tag("p", "No leg is red.")
    rows = [_red_row(leg, data.site, _how_sure(leg, data, keys, known)) for leg in red[:SHOWN]]
    more = len(red) - SHOWN
    head = ("verdict", "nodes", "rail", "what", "reason", "how sure", "repeat")
    return joined(
        [
            table(head, rows, caption=f"Red legs, worst first ({len(red)})", class_="red"),
            tag("p", f"and {more} more, in the table of every leg") if more > 0 else "",
        ]
    )


def _red_row(leg: LegResult, site: str, sure: str) -> list[object]:
    what = f"{leg.stack} {leg.program or leg.check} {leg.path_name}".rstrip()
    return [
        word(leg.verdict.value),
        tag("strong", who(leg.nodes)),
        rails_of(leg),
        what,
        leg.reason or "-",
        sure,
        tag("code", again(leg, site)),
    ]


def rails_of(leg: LegResult) -> str:
    """Return the rails that a leg went over."""
    told = dict.fromkeys(rail for each in leg.quantities for rail in each.rails)
    rails = ", ".join(told or leg.rails) or leg.leg.partition(".")[0]
    return " ".join(filter(None, (rails, leg.device))) or "-"


def _how_sure(
    leg: LegResult, data: ReportData, keys: Sequence[Key], known: Mapping[Place, int]
) -> str:
    """Return in how many attempts of this run, and in how many runs, the first red number was."""
    green = {Verdict.PASS, Verdict.SKIPPED}
    guilty = next((each for each in leg.quantities if each.verdict not in green), None)
    if guilty is None:
        return "no number to be sure of"
    row = known.get(place_of(leg, guilty))
    numbers = [] if row is None else _of_home(data, keys[row])
    return sureness(numbers, data.run.run_id)


def _of_home(data: ReportData, key: Key) -> list[RawNumber]:
    """Return the raw numbers of a quantity, also those of it that lack unit, setting or nodes."""
    return [
        number
        for other, numbers in data.raw.items()
        if other.home == key.home and (key.nodes == other.nodes or not (key.nodes and other.nodes))
        for number in numbers
    ]


def sureness(numbers: Sequence[RawNumber], run_id: str) -> str:
    """Return what was seen how often: ``FAIL in 2 of 2 attempts, red in 1 of 4 runs``."""
    mine = [each for each in numbers if each.run_id == run_id]
    if not mine:
        return "its raw numbers are not in this report"
    words = [each.verdict for each in mine if each.verdict not in {"PASS", "SKIPPED"}]
    runs = {each.run_id for each in numbers if each.counts}
    bad = {
        each.run_id for each in numbers if each.counts and each.verdict not in {"PASS", "SKIPPED"}
    }
    said = " and ".join(dict.fromkeys(words)) or "nothing red"
    attempts = f"{said} in {len(words)} of {counted(len(mine), 'attempt')}"
    return f"{attempts}, red in {len(bad)} of {counted(len(runs), 'run')}"


def _found_on_green(data: ReportData) -> Markup | str:
    told = told_of_passes(data.session.legs)
    if not told:
        return ""
    more = [f"and {len(told) - SHOWN} more, in the table of every leg"] if told[SHOWN:] else []
    items = (tag("li", each) for each in (*told[:SHOWN], *more))
    return tag("div", tag("h3", "Found on green legs"), tag("ul", *items))


def _notes(data: ReportData) -> Markup:
    told = list(dict.fromkeys((*data.session.notes, *data.notes)))
    return tag("div", tag("h3", "Passed over"), tag("ul", *(tag("li", note) for note in told)))


def measured(quantity: Quantity) -> str:
    """Return a quantity of a leg for people: its number, and its share of the ceiling."""
    return f"{quantity.name} {number(quantity.value, quantity.unit)}"
