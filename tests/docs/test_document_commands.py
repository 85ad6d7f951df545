"""Every command that a document shows is run here, or stands in NOT_RUN_HERE with the reason."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from documents import DOCUMENTS, ROOT, Command, commands

from fabricproof.cli.main import group
from vcluster.command.cli import whole_group

#: What the unit tests cannot do, and what is done instead: ``parsed`` (its options are read, and
#: nothing more), ``target`` (make knows it), ``cluster`` (run by the test marked slurm below),
#: ``elsewhere`` (a test of the library does what it does).
NOT_RUN_HERE: tuple[tuple[str, str, str], ...] = (
    (r"make (accept|install|bench|down|integration)", "target", "installs, or starts a cluster"),
    (r"make (test|check)", "target", "runs this test"),
    (r"(fabricproof )?vcluster ", "parsed", "needs root; tests/vcluster runs them"),
    (r"fabricproof stack (install|remove)", "parsed", "downloads; tests/stacks runs them"),
    (r"fabricproof stack (build|lock) ", "parsed", "runs Spack; tests/stacks/spack"),
    (r"fabricproof stack list --site", "parsed", "this machine's; tests/stacks/spack"),
    (
        r"(\. /usr/share/lmod|module|mpirun) ?",
        "elsewhere",
        "of a stack that Spack built: tests/stacks/spack",
    ),
    (r'(eval "\$\(vcluster env\)"|srun -N4 )', "elsewhere", "of a cluster: tests/vcluster"),
    (r"fabricproof stack doctor ", "parsed", "looks at this machine; tests/nodes/doctor runs it"),
    (r"fabricproof inventory ", "parsed", "needs runs; tests/cli/test_inventory_command.py"),
    (r"fabricproof preflight\b", "parsed", "needs runs; tests/cli/test_preflight_command.py"),
    (r"fabricproof subnet (?!.*tests/data)", "parsed", "needs a fabric; tests/subnet runs them"),
    (r"fabricproof site roll ", "parsed", "writes into the checkout, or starts ReFrame"),
    (r"fabricproof site init ", "parsed", "looks at the machine; tests/cli/test_site_init.py"),
    (r"fabricproof site check mycluster", "parsed", "test_document_examples checks that site"),
    (r"fabricproof baseline ", "parsed", "needs runs; tests/cli/test_baseline_command.py"),
    (r"fabricproof (compare|runs) ?", "parsed", "tests/cli and tests/history/compare"),
    (r"fabricproof pairs run\b", "parsed", "needs the virtual cluster; tests/slurm"),
    (r"fabricproof admit\b", "parsed", "needs the virtual cluster; tests/slurm"),
    (r"fabricproof trend\b", "parsed", "needs runs; tests/history/trend/test_trend.py"),
    (r"fabricproof report\b", "parsed", "needs runs; tests/report/test_report_command.py"),
    (r"fabricproof nightly\b", "parsed", "needs a cluster; tests/slurm/test_night_live.py"),
    (r"\.venv/bin/python benchmarks/", "target", "takes minutes; make bench"),
    (r"fabricproof plan\b", "parsed", "asks ReFrame; tests/cli/test_plan_command.py"),
    (r"fabricproof run ", "cluster", "needs the virtual cluster"),
    (r"reframe -C settings.py ", "elsewhere", "own settings: tests/slurm/test_any_site_live.py"),
    (r"reframe .*-r\b", "cluster", "needs the virtual cluster"),
    (r"(\.venv/bin/)?(pytest|ruff|mypy|lint-imports)\b", "target", "make check runs them all"),
    (r"\.venv/bin/python tests/benchmarks/parsers/recordings.py", "target", "writes tests/data"),
    (r"ci/bootstrap\.sh ", "target", "installs packages"),
    (
        r"ci/rootless\.sh ",
        "target",
        "takes an ordinary user with ids of his own: tests/vcluster/test_rootless.py",
    ),
)

#: a page whose commands are run and compared by a test of its own
ELSEWHERE = {"docs/how-to-read-a-verdict.md", "docs/tutorial.md"}

ALL = [each for path in DOCUMENTS for each in commands(path) if each.document not in ELSEWHERE]


def way(command: Command) -> str:
    for pattern, how, _ in NOT_RUN_HERE:
        if re.match(pattern, command.line):
            return how
    return "run"


def ids(chosen: list[Command]) -> list[str]:
    return [f"{each.document}: {each.line}" for each in chosen]


def chosen(how: str, *programs: str) -> list[Command]:
    return [
        each
        for each in ALL
        if way(each) == how and (not programs or each.line.split()[0] in programs)
    ]


PROGRAMS = ("fabricproof ", "vcluster ")
OURS = chosen("run", "fabricproof")
SHELL = [each for each in chosen("run") if each not in OURS]
PARSED = [each for each in ALL if way(each) != "run" and each.line.startswith(PROGRAMS)]
TARGETS = chosen("target")
ON_A_CLUSTER = chosen("cluster")


def test_documents_show_commands() -> None:
    shown = {each.document for each in ALL}
    assert {"README.md", "CONTRIBUTING.md", "docs/physics.md"} <= shown
    assert len(OURS) >= 6


@pytest.mark.parametrize("row", NOT_RUN_HERE, ids=[pattern for pattern, _, _ in NOT_RUN_HERE])
def test_every_exception_has_a_reason(row: tuple[str, str, str]) -> None:
    _, how, reason = row
    assert how in {"parsed", "target", "cluster", "elsewhere"}
    assert reason


@pytest.mark.parametrize("command", OURS, ids=ids(OURS))
def test_a_command_prints_what_its_document_shows(
    command: Command, fabricproof: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    ended = fabricproof(*shlex.split(command.line)[1:])
    assert ended.err == ""
    assert ended.status <= 5
    if command.shown:
        assert not_shown(ended.out, command.shown) == ""


def not_shown(printed: str, shown: str) -> str:
    """Return the first part of ``shown`` that was not printed; a line "..." leaves lines out."""
    first, *others = (part.strip("\n") for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE))
    rest = f"{printed.rstrip()}\n"
    if not rest.startswith(f"{first}\n"):
        return first
    rest = rest[len(first) :]
    for part in filter(None, others):
        _, found, rest = rest.partition(f"\n{part}\n")
        if not found:
            return part
        rest = f"\n{rest}"
    ends = not others or not others[-1] or not rest.strip()
    return "" if ends and (others or not rest.strip()) else f"more than {shown}"


@pytest.mark.parametrize(
    ("shown", "missed"),
    [
        ("a\nb\nc\n", ""),
        ("a\n...\nc\n", ""),
        ("a\n...\n", ""),
        ("a\n...\nx\n", "x"),
        ("b\n...\nc\n", "b"),
        ("a\n", "more than a\n"),
        ("a\n...\nb\n", "more than a\n...\nb\n"),
    ],
)
def test_what_a_document_shows_and_was_not_printed_would_be_noticed(
    shown: str, missed: str
) -> None:
    assert not_shown("a\nb\nc\n", shown) == missed


def parse(arguments: list[str]) -> None:
    """Read ``arguments`` as click would, down to the last subcommand, and call nothing.

    Args:
        arguments: what follows ``fabricproof``, so first ``vcluster`` where it is that command.
    """
    parent: click.Command = group
    if arguments[0] == "vcluster":
        parent, arguments = whole_group(), arguments[1:]
    context = None
    while True:
        context = parent.make_context(parent.name or "", list(arguments), parent=context)
        if not isinstance(parent, click.Group):
            return
        # The arguments that a group leaves for its subcommand: name first.
        name, *arguments = [*context._protected_args, *context.args]
        found = parent.get_command(context, name)
        if found is None:
            raise click.UsageError(f"no such command {name!r}")
        parent = found


@pytest.mark.parametrize("command", PARSED, ids=ids(PARSED))
def test_the_options_of_a_command_exist(command: Command) -> None:
    parse(shlex.split(command.line.removeprefix("fabricproof "), comments=True))


@pytest.mark.parametrize("line", ["vcluster up --speed=1gbit", "vcluster fly", "stack install -x"])
def test_options_that_do_not_exist_would_be_noticed(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse(shlex.split(line))


@pytest.mark.parametrize("command", TARGETS, ids=ids(TARGETS))
def test_a_target_or_program_exists(command: Command) -> None:
    program, *arguments = shlex.split(command.line)
    if program == "make":
        subprocess.run(["make", "-n", *arguments], cwd=ROOT, check=True, capture_output=True)
        return
    name = program if "/" in program else f".venv/bin/{program}"
    assert os.access(ROOT / name, os.X_OK)
    files = [each for each in arguments if each.startswith(("tests/", "ci/"))]
    assert all((ROOT / each).exists() for each in files)


def in_a_shell(line: str, environment: dict[str, str], seconds: int) -> tuple[int, str]:
    """Return exit status and output of ``line``, called where a person would."""
    path = f"{ROOT / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        env={**os.environ, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    return done.returncode, done.stdout


def aside(folder: Path) -> dict[str, str]:
    """Return variables that keep what a run writes out of the checkout."""
    return {
        "FABRICPROOF_WORK": str(folder / "work"),
        "FABRICPROOF_PERFLOGS": str(folder / "perflogs"),
    }


def pretended_stacks(root: Path) -> Path:
    """Return stacks that are installed as far as a dry run looks: no stack is needed for one."""
    for stack in ("openmpi5", "mpich5"):
        ports = root / stack / "share" / "osu-mpi4py"
        ports.mkdir(parents=True)
        (ports / "osu_bw.py").touch()
    return root


@pytest.mark.parametrize("command", SHELL, ids=ids(SHELL))
def test_a_line_for_the_shell_works(command: Command, tmp_path: Path) -> None:
    """``. ./env.sh`` and what plain ReFrame can do without a scheduler."""
    local = {"FABRICPROOF_SITE": "local", **aside(tmp_path)}
    local["FABRICPROOF_STACKS"] = str(pretended_stacks(tmp_path / "stacks"))
    status, out = in_a_shell(f"{command.line} && command -v reframe", local, 60)
    assert status == 0, out
    assert out.splitlines()[-1] == str(ROOT / "bin" / "reframe")
    if " -l" in command.line:
        assert re.search(r"^Found [1-9]\d* check", out, flags=re.MULTILINE)


CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"


#: of each family one check that takes seconds; where a command names no family, the latency
CHEAP = {
    "collectives": "OsuBarrier",
    "multirail": "OsuMultiRailBandwidth",
    "placement": "Placement",
}


def narrowed(line: str) -> str:
    """Return a command for one check and one stack of the virtual cluster."""
    family = re.search(r" -t (\w+)", line)
    check = CHEAP.get(family[1] if family else "", "OsuLatency")
    line = line.replace("--site NAME", "--site vcluster")
    line += "" if " -n " in line else f" -n {check}"
    return line + ("" if " -p " in line else " -p openmpi5")


#: run in CI: those that somebody new types first, and the one that has nothing to measure.  Of the
#: others CI asks what they would run; their checks are those of tests/slurm and of the acceptance.
TYPED_FIRST = [each for each in ON_A_CLUSTER if each.document == "README.md"]
TYPED_FIRST += [each for each in ON_A_CLUSTER if "infiniband" in each.line]
TYPED_LATER = [each for each in ON_A_CLUSTER if each not in TYPED_FIRST]


@pytest.mark.slurm
@pytest.mark.parametrize("command", TYPED_LATER, ids=ids(TYPED_LATER))
def test_a_command_for_a_cluster_selects_checks_and_stacks(command: Command) -> None:
    """ReFrame's own list of what the command would run: it names tags, checks and stacks."""
    if not BIN.is_dir():
        pytest.skip(f"no virtual cluster {CLUSTER!r} is up")
    # These two are ours and not ReFrame's.
    _, _, options = re.sub(r" --(site|label) \w+", "", command.line).partition(" run")
    on = {"FABRICPROOF_VCLUSTER": CLUSTER, "FABRICPROOF_SITE": "vcluster"}
    status, out = in_a_shell(f"fabricproof reframe -l {options}", on, 60)
    assert status == 0, out
    assert re.search(r"^Found [1-9]\d* check", out, flags=re.MULTILINE), out


@pytest.mark.slurm
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "command",
    [*TYPED_FIRST, *(pytest.param(each, marks=pytest.mark.long) for each in TYPED_LATER)],
    ids=ids([*TYPED_FIRST, *TYPED_LATER]),
)
def test_a_command_for_a_cluster_ends_with_a_verdict(
    command: Command, request: pytest.FixtureRequest
) -> None:
    """Narrowed to one check and one stack: the whole path from the command to a verdict."""
    if "slurm" not in request.config.getoption("markexpr"):
        pytest.skip("opt in: pytest -m slurm")
    if not BIN.is_dir():
        pytest.skip(f"no virtual cluster {CLUSTER!r} is up")
    line = narrowed(command.line)
    if "AlgorithmSweep" in line:
        pytest.skip("minutes, and noise may leave it open: tests/slurm/test_sweep_live.py")
    # Stage folders must lie where the nodes see them, so only the choice of the site is ours.
    on = {"FABRICPROOF_VCLUSTER": CLUSTER, "FABRICPROOF_SITE": "vcluster"}
    status, out = in_a_shell(line, on, 580)
    assert re.search(r"\(run \d{8}T\d{6}Z-\w+\)", out), out
    if "faults.py" in line:
        if status == 4 and "it was ended at its time limit" in out:
            # Its MPI chooses all by itself there, and hung three times in one CI run.  That is
            # MISSING, as it should be; tests/slurm/test_faults_live.py has it INVALID.
            pytest.skip("MPICH left to itself hung")
        assert status == 3, out
        assert "traffic took another path" in out, out
    elif "infiniband" in line:
        assert status == 6, out
        assert "this site has no infiniband fabric" in out
    else:
        # A busy machine may be slow, and a cluster at another rate than declared is INVALID.
        assert status in {0, 1, 3}, out
