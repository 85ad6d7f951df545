"""The line of a key: what an error message needs and tomllib does not give."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.site.toml_file import line_of, positions

TEXT = """\
# a comment with key = value
title = "x"
[site]
name = "y"
"quoted key" = 1
[[fabrics]]
name = "first"
rails = [
    { interface = "r0" },
    { interface = "r1", pcie = "2.0x8" },
]
[[fabrics]]
  name = "second"
[fabrics.extra]
depth = 2
[[fabrics.ports]]
number = 1
[[fabrics.ports]]
number = 2
[site.inner]
a.b = 3
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("site",), 3),
        (("site", "name"), 4),
        (("site", "quoted key"), None),
        (("fabrics", 0), 6),
        (("fabrics", 0, "name"), 7),
        (("fabrics", 1, "name"), 13),
        (("fabrics", 1, "extra", "depth"), 15),
        (("fabrics", 1, "ports", 0, "number"), 17),
        (("fabrics", 1, "ports", 1, "number"), 19),
        (("site", "inner", "a", "b"), 21),
    ],
)
def test_every_key_has_its_line(path: tuple[str | int, ...], line: int | None) -> None:
    assert positions(TEXT).get(path) == line


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("fabrics", 0, "rails", 1, "pcie"), 8),
        (("fabrics", 0, "missing"), 6),
        (("fabrics", 7), None),
        (("nothing", "here"), None),
        ((), None),
    ],
)
def test_what_has_no_line_gets_that_of_what_holds_it(
    path: tuple[str | int, ...], line: int | None
) -> None:
    assert line_of(path, positions(TEXT)) == line


def test_the_shipped_files_have_a_line_for_every_table() -> None:
    root = Path(__file__).resolve().parents[2] / "site-configs"
    for file in root.glob("*/*.toml"):
        text = file.read_text()
        headers = [
            number
            for number, line in enumerate(text.splitlines(), start=1)
            if line.lstrip().startswith("[")
        ]
        assert set(headers) <= set(positions(text).values())
