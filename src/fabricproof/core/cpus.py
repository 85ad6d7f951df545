"""Lists of CPUs as the kernel prints them."""

from __future__ import annotations

import re

#: no machine has a million CPUs
_SPAN = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


def cpus_of(text: str) -> frozenset[int] | None:
    """Return the CPUs of ``0-3,8``: 0, 1, 2, 3 and 8; none for ``""``, None for what is no list."""
    spans = [_SPAN.fullmatch(part) for part in text.split(",")] if text else []
    if None in spans:
        return None
    ends = [(int(span[1]), int(span[2] or span[1])) for span in spans if span]
    return frozenset(cpu for first, last in ends for cpu in range(first, last + 1))
