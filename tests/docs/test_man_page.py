"""The manual page has every command and option of today, troff takes it, and a shell finds it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from documents import DOCUMENTS, ROOT

from fabricproof.cli.main import GROUPS, SUBCOMMANDS

PAGE = ROOT / "docs" / "fabricproof.1"
TEXT = PAGE.read_text(encoding="utf-8")

needs_man = pytest.mark.skipif(not shutil.which("man"), reason="no man on this machine")


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("man_page", ROOT / "ci" / "man_page.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_commands_of_today(writer: ModuleType) -> None:
    assert writer.page() == TEXT, "next: .venv/bin/python ci/man_page.py"


def test_every_command_has_its_part() -> None:
    parts = re.findall(r"^\.SS fabricproof (\w+)", TEXT, flags=re.MULTILINE)
    assert set(parts) == set(SUBCOMMANDS)
    assert ".SS fabricproof baseline freeze [OPTIONS] NAME RUNS...\n" in TEXT
    assert ".SS fabricproof vcluster up [OPTIONS]\n" in TEXT
    titles = re.findall(r"^\.SH (.+)$", TEXT, flags=re.MULTILINE)
    assert [title for title in titles if title.lower() in GROUPS] == [
        title.upper() for title in GROUPS
    ]


@pytest.mark.parametrize("page", [PAGE, *DOCUMENTS], ids=lambda page: page.name)
def test_what_an_example_does_is_a_comment(page: Path) -> None:
    """A line that is pasted as it stands runs."""
    pasted = re.compile(
        r"^ *(?:\$ )?(?:fabricproof|vcluster|ib\w+|perfquery) .*?\S {2,}[^#\s].*", re.MULTILINE
    )
    assert pasted.findall(page.read_text(encoding="utf-8")) == []


def test_what_troff_would_take_for_its_own_is_escaped(writer: ModuleType) -> None:
    assert writer.escaped(".SH\n'x\na\\b --c") == "\\&.SH\n\\&'x\na\\eb \\-\\-c"
    assert list(writer.paragraphs("One\ntwo.\n\n\b\na  b\n.c")) == [
        ".PP\nOne two.",
        ".PP\n.nf\n.RS 2\na  b\n\\&.c\n.RE\n.fi",
    ]


def shown(page: Path) -> tuple[str, str]:
    """Return what ``man`` shows of a page, and what it warns of."""
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", str(page)],
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "90", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout, done.stderr


@needs_man
def test_man_shows_it_without_a_warning() -> None:
    out, warnings = shown(PAGE)
    assert warnings == ""
    assert re.search(r"^ +fabricproof run \[OPTIONS\]", out, flags=re.MULTILINE)
    assert "--tolerance" in out


@needs_man
def test_a_page_with_a_mistake_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "wrong.1"
    page.write_text('.TH X 1\n.SH NAME\n.NOSUCHMACRO "x"\n')
    assert "NOSUCHMACRO" in shown(page)[1]


def in_a_bash(script: str) -> str:
    """Return what a bash that knows the system's folders alone prints, begun in the checkout."""
    return subprocess.run(
        ["bash", "-c", script],
        env={"PATH": "/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


@needs_man
def test_man_finds_it_after_env_sh_and_the_pages_of_the_system_too() -> None:
    script = ". ./env.sh local && man -w fabricproof && manpath"
    page, path = in_a_bash(script).splitlines()
    assert Path(page).name == "fabricproof.1"
    assert Path(page).is_relative_to(ROOT / ".venv")
    assert "/usr/share/man" in path.split(":")


def test_a_real_bash_completes_a_command() -> None:
    """The line of docs/README.md, and then what bash does when somebody presses Tab."""
    line = 'eval "$(_FABRICPROOF_COMPLETE=bash_source fabricproof)"'
    assert f"`{line}`" in (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    tab = "COMP_WORDS=(fabricproof base) COMP_CWORD=1; _fabricproof_completion fabricproof"
    script = f'. ./env.sh local; {line}; {tab}; echo "${{COMPREPLY[*]}}"'
    assert in_a_bash(script).split() == ["baseline"]
