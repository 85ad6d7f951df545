"""Read the report that a tool writes as JSON beside its text, or in place of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fabricproof.benchmarks.parsers.sections import TextSection, first_death
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table


def is_report(section: TextSection) -> bool:
    """Tell whether the section is a JSON object."""
    return section.lines[0].lstrip().startswith("{")


def read_report(
    section: TextSection, tables_of: Callable[[dict[str, Any]], tuple[Table, ...]]
) -> tuple[Table, ...]:
    """Return the tables of the JSON object that a section begins with.

    Raises:
        ParseError: the JSON is broken, lacks something or contradicts itself, or the text below it
            says that the job died.
    """
    text = "\n".join(section.lines)
    try:
        report, end = json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1) - 1
        raise section.error(line, "broken JSON", expected="the whole report") from None
    below = text.count("\n", 0, end) + 1
    if (died := first_death(section.lines[below:])) is not None:
        raise section.error(below + died, "the job ended badly", expected="a run that ended well")
    try:
        return tables_of(report)
    except ParseError as error:
        raise section.error(0, error.problem, expected=str(error.expected), got=error.got) from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = "all that the tool writes"
        raise section.error(0, "not a whole report", expected=what, got=repr(error)) from None


def read_as_text(
    section: TextSection,
    text_of: Callable[[dict[str, Any]], list[str]],
    parse: Callable[[TextSection], tuple[Table, ...]],
) -> tuple[Table, ...]:
    """Read a report by way of the text that the tool prints of the same run.

    Raises:
        ParseError: see :func:`read_report`.
    """
    tables = read_report(section, lambda report: parse(replace(section, lines=text_of(report))))
    return tuple(
        replace(table, line=section.first, row_lines=(section.first,) * len(table.rows))
        for table in tables
    )
