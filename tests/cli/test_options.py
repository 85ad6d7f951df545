"""The options of all commands together: how many, and that a word means one thing everywhere."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from fabricproof.cli import options
from fabricproof.cli.main import group

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from report_data import recorded

ROOT = Path(__file__).parents[2]

Command = Callable[..., Any]

#: the module; the package exports its function of the same name
main_module = importlib.import_module("fabricproof.cli.main")

#: Those of a group count once, and so do Slurm's own.
MOST_OPTIONS = 122


def commands(
    command: click.Command, context: click.Context, path: str
) -> Iterator[tuple[str, click.Command]]:
    """Yield the command and all below it, each with how it is called."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            below = click.Context(inner, info_name=name, parent=context)
            yield from commands(inner, below, f"{path} {name}")


def all_options() -> list[tuple[str, click.Option]]:
    """Return each pair of a command and an option that its ``--help`` shows."""
    group = main_module.group
    context = click.Context(group, info_name="fabricproof")
    return [
        (path, each)
        for path, command in commands(group, context, "fabricproof")
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden
    ]


def test_there_are_not_too_many_options() -> None:
    names = [(path, each.opts[-1]) for path, each in all_options()]
    of_slurm = {f"--{name}" for name in options.SLURM}
    pairs = [f"{'' if name in of_slurm else path} {name}" for path, name in names]
    assert of_slurm <= {name for _, name in names}
    pairs = [*dict.fromkeys(pairs)]
    assert len(pairs) == len(set(pairs))
    assert len(pairs) <= MOST_OPTIONS, f"{len(pairs)} options: which one does nobody need?"


def test_every_option_is_explained_and_says_what_its_value_is() -> None:
    for path, each in all_options():
        assert each.help, f"{path} {each.opts[-1]} is not explained"
        # A number that goes without its unit is read as another one.
        needs_name = not each.is_flag and not isinstance(each.type, click.Choice)
        assert each.metavar or not needs_name, f"{path} {each.opts[-1]} names no metavar"


@pytest.mark.parametrize(
    "name", ["--site", "--json", "--all", "--reservation", "--margin", "--keep", "--leaves"]
)
def test_a_shared_option_is_explained_the_same_everywhere(name: str) -> None:
    texts = {
        (each.help or "").partition("  [default")[0]
        for _, each in all_options()
        if name in each.opts
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "latest~1", "latest", "--alpha"],
        ["pairs", "run", "--for"],
        ["pairs", "run", "--seconds"],
        ["subnet", "check", "--timeout"],
    ],
)
def test_nan_is_within_no_range(words: list[str], fabricproof: Command) -> None:
    """It is not below and not above: no plan would ever be off by more than nan."""
    ended = fabricproof(*words, "nan")
    assert ended.status == 2
    assert "'nan' is not a number" in " ".join(ended.err.split())


def test_the_readme_has_the_groups_of_the_help() -> None:
    """The same groups, in the same order, with the same commands."""
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| (.+) \|$", (ROOT / "README.md").read_text(), re.M)
    known = main_module.SUBCOMMANDS
    said = {
        group: [each for each in re.findall(r"`([a-z]+)`", text) if each in known]
        for group, text in rows
    }
    assert said == {group: list(inner) for group, inner in main_module.GROUPS.items()}


def test_the_help_is_in_groups(fabricproof: Command) -> None:
    lines = fabricproof("--help").out.splitlines()
    titles = [each[:-1].lower() for each in lines if re.fullmatch(r"[A-Z][a-z]+:", each)]
    assert titles == ["options", *main_module.GROUPS]


def test_options_of_a_group_stand_anywhere_and_in_the_help_of_its_commands() -> None:
    @click.group(cls=options.HelpGroup)
    @options.site
    @options.as_json
    def group(**_: object) -> None: ...

    seen: list[tuple[str | None, bool, tuple[str, ...]]] = []

    @group.command()
    @click.argument("words", nargs=-1)
    @options.of_group("site_name", "as_json")
    def show(words: tuple[str, ...], site_name: str | None, as_json: bool) -> None:
        """Show."""
        seen.append((site_name, as_json, words))

    for line in (
        ["--site", "x", "--json", "show", "a", "b"],
        ["show", "--json", "a", "--site=x", "b"],
        ["show", "a", "b", "--json", "--site", "x"],
    ):
        group.main(line, standalone_mode=False)
    assert seen == [("x", True, ("a", "b"))] * 3
    group.main(["show", "--", "--json"], standalone_mode=False)
    assert seen[-1] == (None, False, ("--json",))
    with pytest.raises(click.UsageError, match="requires an argument"):
        group.main(["show", "--json", "--site"], standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "rack=1"], "KEY one of check, stack"),
        (["--only", "rail"], "got 'rail'"),
        (["--only", "rail="], "got 'rail='"),
    ],
)
def test_only_refuses_what_is_no_key(words: list[str], said: str, fabricproof: Command) -> None:
    ended = fabricproof("compare", "latest~1", "latest", *words)
    assert ended.status == 2
    assert said in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("FDR 4x, pcie=3.0x8,mps=256 ,mtu=2048", "MTU 2048, PCIe 3.0 x8, MaxPayload 256, 1 rail"),
        ("FDR 4x,pcie=3.0x8,rails=2,share-slot", "2 rails, one slot for all"),
        ("FDR 4x,bidirectional", "both directions added"),
    ],
)
def test_a_key_after_the_link_says_what_is_known(
    link: str, said: str, fabricproof: Command
) -> None:
    assert said in fabricproof("ceiling", "--json", "--link", link).record["fabric"]
    assert said not in fabricproof("ceiling", "--json", "--link", "FDR 4x").record["fabric"]


@pytest.mark.parametrize(
    "link",
    ["QDR,rails=x", "QDR,lanes=4", "QDR,pcie", "QDR,share-slot=yes", "QDR,mtu=1,mtu=2", "QDR,"],
)
def test_a_key_that_means_nothing_is_refused(link: str, fabricproof: Command) -> None:
    ended = fabricproof("ceiling", "--link", link)
    assert ended.status == 78
    assert "expected" in ended.err


def test_tab_completes_commands_and_the_names_of_sites() -> None:
    """As click's line for bash asks: eval "$(_FABRICPROOF_COMPLETE=bash_source fabricproof)"."""
    asked = ShellComplete(group, {}, "fabricproof", "_FABRICPROOF_COMPLETE")
    assert [each.value for each in asked.get_completions([], "pa")] == ["pairs", "parse"]
    sites = [each.value for each in asked.get_completions(["run", "--site"], "vcluster-s")]
    assert sites == ["vcluster-spack"]


@pytest.mark.parametrize(
    "words",
    [
        ["admit", "n[1-"],
        ["admit", "n1", "--with", "n[4-2]"],
        ["pairs", "run", "--without", "n[1-"],
    ],
)
def test_a_list_of_nodes_that_is_none_is_a_wrong_option(
    words: list[str], fabricproof: Command
) -> None:
    ended = fabricproof(*words)
    assert ended.status == 78
    assert "no list of nodes: expected n1,n2 or n[1-4], got 'n[" in ended.err


HUGE = "9" * 40
MATRIX = ROOT / "tests" / "data" / "pairs" / "rail.csv"


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (["pairs", "judge", MATRIX, "--tolerance", "2"], 78, "impossible tolerance"),
        (["pairs", "judge", MATRIX, "--tolerance", "inf"], 78, "impossible tolerance"),
        (["ceiling", "--link", f"HDR 4x,rails={HUGE}"], 78, "at most seven digits"),
        (["ceiling", "--link", "HDR 4x,mtu=\u0664\u0660\u0669\u0666"], 78, "at most seven digits"),
        (["report", "--site", "vcluster", "\udced\udca0"], 66, "no run"),
        (["nightly", "\udced\udca0", "--site", "vcluster", "--no-notify"], 66, "no run"),
        (["nightly", "--keep-days", HUGE, "--dry-run", "--site", "vcluster"], 0, ""),
    ],
)
def test_a_number_or_a_name_beyond_all_is_no_traceback(
    command: list[object],
    status: int,
    words: str,
    fabricproof: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    recorded(tmp_path)
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    ended = fabricproof(*command)
    assert ended.status == status
    assert words in ended.err
