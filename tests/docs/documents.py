"""The documents of the repository, and what tests ask of them: commands, examples, links."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "checks/*/*.md",
        "perflogs/README.md",
        "spack-envs/*.md",
    )
    for path in ROOT.glob(pattern)
)

_FENCE = re.compile(r"^( *)```([\w-]*)\n(.*?)^\1```$", flags=re.MULTILINE | re.DOTALL)

#: in a block without a language, a line that begins with one of these is a command too
_OURS = re.compile(r"(fabricproof|vcluster|reframe|make|ci/\w+\.sh|\.venv/bin/\w+)( |$)")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: its language (empty where none is said) and its text, indentation removed."""

    language: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that a document shows, with the output shown below it."""

    document: str
    line: str
    shown: str = ""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(text: str) -> Iterator[Block]:
    for indent, language, body in _FENCE.findall(text):
        yield Block(language=language, text=textwrap.dedent(body) if indent else body)


def commands(path: Path) -> Iterator[Command]:
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                yield Command(document=name_of(path), line=line, shown=shown)
        elif block.language == "":
            for line in block.text.splitlines():
                if _OURS.match(line):
                    yield Command(document=name_of(path), line=re.sub(r"\s+#.*", "", line))


def examples(document: str, language: str) -> list[str]:
    """Return the blocks of ``document`` in ``language``."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [block.text for block in blocks(text) if block.language == language]
