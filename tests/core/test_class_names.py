"""One class name, one meaning: who reads a name in an error or a signature need not ask whose."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import fabricproof

#: two rooms still share these; none may be added
_SHARED = {"Blame", "Confirmation", "Limits", "Matrix"}
_SHARED |= {
    "Outcome",
    "Quantity",
    "Step",
}


def test_a_public_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for path in sorted(Path(fabricproof.__file__).parent.rglob("*.py")):
        for each in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                places[each.name].append(path.name)
    assert {name: where for name, where in places.items() if len(where) > 1}.keys() == _SHARED
