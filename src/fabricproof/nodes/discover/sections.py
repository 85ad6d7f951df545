"""The sections that ``look.sh`` and ``slurm.sh`` print, taken apart.  Text in, text out."""

from __future__ import annotations

_MARK = "#== "
_TROUBLE = "#!! "

#: the section of :func:`split_sections` that holds what ``look.sh`` complains of
TROUBLES = "troubles"


def split_sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section, by its name; lines before the first are chatter.

    The last section of a whole recording is ``end``; where it is absent the script was cut off.
    Complaints (a tool that did not answer) stand anywhere and are gathered in ``troubles``.
    """
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith(_MARK):
            current = sections.setdefault(line.removeprefix(_MARK).strip(), [])
        elif line.startswith(_TROUBLE):
            sections.setdefault(TROUBLES, []).append(line.removeprefix(_TROUBLE).strip())
        elif line.strip():
            current.append(line)
    return sections


def read_pairs(lines: list[str]) -> dict[str, str]:
    """Return the ``key=value`` lines of a section."""
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip() for key, mark, value in pairs if mark}


def read_rows(lines: list[str]) -> list[tuple[str, dict[str, str]]]:
    """Return the rows ``name<TAB>key=value<TAB>...`` of a section, in their order."""
    rows = []
    for line in lines:
        name, *fields = line.split("\t")
        rows.append((name.strip(), read_pairs(fields)))
    return rows


def whole_number(text: str | None) -> int | None:
    """Return ``text`` as a positive whole number; None for anything else (-1 means unknown)."""
    return int(text) if text is not None and text.isdecimal() and int(text) > 0 else None
