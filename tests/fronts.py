"""The fronts of the rooms: what each lets others import, read from the room's own ``__init__``.

The contract in ``pyproject.toml`` (``lint-imports``) and the table of ``docs/architecture.md``
both come from here.  After a change of a front, run

    .venv/bin/python tests/fronts.py

which writes the table anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from importlinter import Contract, ContractCheck, output

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "fabricproof"
PAGE = ROOT / "docs" / "architecture.md"

#: The room that only ReFrame's files import.
CHECKS_ROOM = "rfm"
#: Whose imports are held against the fronts: rooms of each other, and the proof beside them.
HELD = ("fabricproof", "proof")


def rooms() -> dict[str, Path]:
    """Return the rooms of the library, by name, with their folders."""
    return {each.parent.name: each.parent for each in sorted(LIBRARY.glob("*/__init__.py"))}


def front_of(folder: Path) -> dict[str, str]:
    """Return what a room lets others import: module below the room -> what it gives.

    The room itself, which everybody may import, is not among them.

    Raises:
        ValueError: its ``__init__`` has no literal ``FRONT``.
    """
    for node in ast.parse((folder / "__init__.py").read_text()).body:
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "FRONT":
            return dict(ast.literal_eval(node.value))
    raise ValueError(f"{folder}/__init__.py: expected FRONT: dict[str, str] = {{...}}, got none")


def violations(
    imports: Mapping[tuple[str, str], str], fronts: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Say which imports reach behind a front, and which lines of a front nobody needs.

    Args:
        imports: (importing module, imported module) -> where it stands, for each import of the
            library.
        fronts: room -> its front.
    """
    said, used = [], set()
    for (importer, imported), place in sorted(imports.items()):
        package, _, below = importer.partition(".")
        here = below.partition(".")[0] if package == "fabricproof" else package
        room, _, module = imported.partition(".")[2].partition(".")
        if not room or room == here:
            continue
        used.add((room, module))
        if module and module not in fronts[room]:
            said.append(f"{place}: {imported} is behind the front of {room}")
    for room, front in fronts.items():
        idle = [each for each in front if room != CHECKS_ROOM and (room, each) not in used]
        said += [f"the front of {room} names {each}, which no other room imports" for each in idle]
    return said


def table() -> str:
    """Return the fronts as a table in Markdown."""
    lines = ["| room | module | gives |", "| --- | --- | --- |"]
    for room, folder in rooms().items():
        lines += [f"| `{room}` | `{each}` | {gives} |" for each, gives in front_of(folder).items()]
    return "\n".join(lines) + "\n"


class FrontContract(Contract):  # type: ignore[misc, unused-ignore]
    """No room imports what the front of another does not name."""

    type_name = "fronts"

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Hold every import between two rooms against the fronts."""
        imports = {}
        for importer in graph.modules:
            for imported in graph.find_modules_directly_imported_by(importer):
                if importer.startswith(HELD) and imported.startswith("fabricproof"):
                    details = graph.get_import_details(importer=importer, imported=imported)
                    line = details[0]["line_number"] if details else "?"
                    imports[importer, imported] = f"{importer}:{line}"
        fronts = {room: front_of(folder) for room, folder in rooms().items()}
        said = violations(imports, fronts)
        return ContractCheck(kept=not said, metadata={"said": said})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that is not allowed."""
        for line in check.metadata["said"]:
            output.print_error(line)


def written(page: str) -> str:
    """Return the page with the table of today between its two marks."""
    start, end = "<!-- fronts: tests/fronts.py -->\n", "<!-- end of fronts -->"
    return re.sub(f"{start}.*?{end}", lambda _: f"{start}{table()}{end}", page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
