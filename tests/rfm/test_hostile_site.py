"""Values of a site file are data to every shell that reads them: nothing of them is ever run.

A site whose every value is an attack is expanded by ReFrame's dry run, and the job script that
comes of it is run with a ``module`` and an ``srun`` that only say what they were given.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.nodes.doctor.probes import render_script
from fabricproof.site import load_site
from fabricproof.stacks.environment import shell_values, shell_word
from fabricproof.stacks.stack import resolve

ROOT = Path(__file__).parents[2]
BAD = "a b;touch MARK \"d\" 'q' $(touch MARK) `touch MARK` \\n $HOME ${X:-y} é * ~ #! & | < > %s {}"
MODULE = "m1;touch$(MARK)`touch`'x"
OPTIONS = ["--a --b=c", f"--d={shlex.quote(BAD)}"]
FABRIC = '[[fabrics]]\nname = "f"\nlink = "10GbE"\nrails = [{{ interface = {rail} }}]\n'
SITE = """\
[site]
name = "hostile"
modules_init = {bad}
module_paths = [{bad}]

[[partitions]]
name = "p"
access = ["--partition=p", {access}]
fabrics = ["f"]
stacks = ["one"]

[[stacks]]
name = "one"
family = "openmpi"
version = "4.1"
modules = [{module}]
launcher_options = {options}
suites = {{ osu = {folder} }}

[stacks.environment]
BAD = {bad}
EMPTY = ""
ORDER = "1:0-1024;2:1025-4096"
"""
SRUN = """\
#!{python}
import json, os, sys
with open({said!r}, "a") as file:
    file.write(json.dumps([sys.argv[1:], dict(os.environ)]) + "\\n")
"""


#: of each way in which legs are started one: pairs, many nodes, sockets, no MPI at all
CHECKS = "(OsuBandwidth|OsuAllreduce|LocalityBandwidth|TcpSingleFlow)%fabric=f$"


@dataclass(frozen=True, kw_only=True)
class Job:
    folder: Path
    script: str
    launches: list[tuple[list[str], dict[str, str]]]
    modules: list[list[str]]


def _write_site(folder: Path) -> None:
    folder.mkdir(parents=True)
    text = SITE.format(
        bad=json.dumps(BAD),
        access=json.dumps(f"--comment={shlex.quote('x;touch MARK')} --hint=nomultithread"),
        module=json.dumps(MODULE),
        options=json.dumps(OPTIONS),
        folder=json.dumps(f"/opt/{BAD}"),
    )
    (folder / "site.toml").write_text(text)
    (folder / "fabric.toml").write_text(FABRIC.format(rail=json.dumps(MODULE)))


def _environment(tmp_path: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FABRICPROOF", "RFM_"))
    }
    return {
        **kept,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{Path(__file__).parent / 'slurm_bin'}"
        f"{os.pathsep}{os.environ['PATH']}",
        "FABRICPROOF_SITES": str(tmp_path / "sites"),
        "FABRICPROOF_SITE": "hostile",
        "FABRICPROOF_WORK": str(tmp_path / "work"),
        "FABRICPROOF_PERFLOGS": str(tmp_path / "perflogs"),
        # A coding in which the script could not be written as it is.
        "LC_ALL": "C",
    }


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    tmp_path = tmp_path_factory.mktemp("hostile")
    _write_site(tmp_path / "sites" / "hostile")
    environment = _environment(tmp_path)
    program = Path(sys.executable).with_name("fabricproof")
    done = subprocess.run(
        [program, "reframe", "--dry-run", "-n", CHECKS],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "[  PASSED  ]" in done.stdout, done.stdout + done.stderr
    scripts = sorted((tmp_path / "work").rglob("rfm_job.sh"))
    assert len(scripts) == CHECKS.count("|") + 1
    assert not [*tmp_path.rglob("MARK")], "the dry run ran something"
    said = tmp_path / "said"
    (tmp_path / "bin").mkdir()
    for launcher in ("srun", "mpirun"):
        program = tmp_path / "bin" / launcher
        program.write_text(SRUN.format(python=sys.executable, said=str(said)))
        program.chmod(0o755)
    asked = tmp_path / "modules"
    module = f'module() {{ printf "%s\\0" "$@" >>{asked}; echo >>{asked}; }}\nexport -f module\n'
    for script in scripts:
        subprocess.run(
            ["bash", "-c", f"{module}exec bash rfm_job.sh"],
            env=environment,
            cwd=script.parent,
            stdout=subprocess.DEVNULL,
            timeout=100,
            check=True,
        )
    return Job(
        folder=tmp_path,
        script=next(each for each in scripts if "OsuBandwidth" in str(each)).read_text(),
        launches=[tuple(json.loads(line)) for line in said.read_text().splitlines()],
        modules=[line.split("\0")[:-1] for line in asked.read_text().splitlines()],
    )


def test_no_command_of_a_site_file_runs(job: Job) -> None:
    assert job.launches
    assert not [*job.folder.rglob("MARK")]


def test_variables_arrive_to_the_byte(job: Job) -> None:
    for _, environment in job.launches:
        assert environment["BAD"] == BAD
        assert environment["EMPTY"] == ""
        assert environment["ORDER"] == "1:0-1024;2:1025-4096"
    net_paths = {each.get("OMPI_MCA_btl_tcp_if_include") for _, each in job.launches}
    # Two iperf3 are started without an MPI, which nobody tells its path.
    assert net_paths == {MODULE, None}


def test_options_of_several_words_arrive_as_such(job: Job) -> None:
    for words, _ in job.launches:
        at = words.index("--a")
        assert words[at : at + 3] == ["--a", "--b=c", f"--d={BAD}"]


def test_programs_arrive_to_the_byte(job: Job) -> None:
    assert any(f"/opt/{BAD}/osu_bw" in words for words, _ in job.launches)


def test_modules_and_their_folders_arrive_to_the_byte(job: Job) -> None:
    assert ["use", BAD] in job.modules
    assert job.modules[-1] == ["load", MODULE]


def test_access_is_for_sbatch_and_stays_on_its_lines(job: Job) -> None:
    lines = [line for line in job.script.splitlines() if line.startswith("#SBATCH")]
    assert "#SBATCH --partition=p" in lines
    assert "#SBATCH --comment='x;touch MARK' --hint=nomultithread" in lines


def test_the_doctor_asks_in_the_environment_of_the_job(job: Job) -> None:
    site = load_site(str(job.folder / "sites" / "hostile"))
    subject = resolve(site, site.partitions[0], site.stacks[0])
    script = render_script((), subject)
    exports = [line for line in script.splitlines() if line.startswith("export ")]
    assert exports
    of_job = [line for line in job.script.splitlines() if line.startswith("export ")]
    assert exports == [line for line in of_job if "SLURM_EXPORT_ENV" not in line]
    # Modules first, as in a job: a site's variable overrules what a module sets.
    assert script.index("module load") < script.index("export ")
    assert f"module load {shell_word(MODULE)}" in script
    assert f"module load {shell_word(MODULE)}" in job.script
    assert subject.access == ("--partition=p", "--comment=x;touch MARK", "--hint=nomultithread")
    assert subject.options[-3:] == ("--a", "--b=c", f"--d={BAD}")


#: modules that quote for people who copy a command, and those that take one apart
FOR_PEOPLE = (
    "cli/*", "core/project.py", "history/compare/*", "history/trend/events.py", "job/run/*",
    "pairs/campaign/*", "report/*", "site/texts.py", "subnet/live.py",
)  # fmt: skip


def test_nothing_else_quotes_for_a_shell() -> None:
    """The deliberate bad case would be a second way, which ReFrame's own expansion undoes."""
    others = re.compile(r"shlex\.(quote|join)|\bquote\(|shell=True")
    source = ROOT / "src" / "fabricproof"
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if others.search(path.read_text())
    }
    left = {name for name in found if not any(fnmatch.fnmatch(name, each) for each in FOR_PEOPLE)}
    assert left == {"stacks/environment.py"}


#: what shows that a text of ours with gaps is read by a shell
SHELL = re.compile(
    r"(?:^|[\n;&|({ ])(?:export|module (?:use|load)|exec|eval|cd|srun|mpirun|bash|sh -c|timeout) "
    r"|&& |\|\| |#!/bin|#SBATCH"
)

#: What may fill a gap without shell_word or shell_line standing right there, by module.
FILLED = {
    # Words for people, which nobody hands to a shell.
    "cli/site/building.py": {"built.module_path", "built.module"},
    "cli/site/stack.py": {"root / MODULEFILES"},
    "nodes/discover/stacks.py": {"' '.join(modules)"},
    "nodes/discover/stacks.py:srun": {"pmi", "', '.join(slurm.mpi_types)", "host.name"},
    "nodes/doctor/rules/stack.py": {"container.image"},
    "stacks/stack.py": {"build", "found.name", "found.mend"},
    "nodes/doctor/rules/launch.py": {"chosen", "subject.family", "how"},
    "nodes/doctor/rules/launch.py:types": {"', '.join(slurm.mpi_types)"},
    "site/load.py": {"SITE_VARIABLE"},
    # Words that shell_word quoted.
    "rfm/staging.py": {"words", "python"},
    "verdict/causes/suspects.py": {"who if ranks_ended else 'MPI_Finalize had not returned'"},
    # Numbers, and names that are constants of ours or of one of a few families.
    "job/script.py": {"ASK_SECONDS", "ASK_FILE", "BACKWARDS_FILE", "number"},
    "job/script.py:limits": {"limit", "seconds", "look_seconds", "folder", "INVENTORY_FILE"},
    "job/script.py:quoted": {"rails"},
    "job/job_end.py": {"JOB_END_FILE"},
    "job/script.py:names": {"chosen_file(leg.name)"},
    "nodes/doctor/examination.py": {"_RANKS_SECONDS"},
    "nodes/doctor/probes.py": {"name", "probe_seconds"},
    "stacks/environment.py": {"' '.join(MODULE_INITS)"},
    # Lines that shell_word, shell_line or shell_values made before.
    "job/script.py:made": {"_settings(leg)", "' '.join(leg.launch) or launch", "launch"},
    "job/script.py:container": {"_image(leg)", "_launch(leg, launch)"},
    "nodes/doctor/examination.py:made": {"head", "line"},
    "nodes/doctor/probes.py:made": {"value", "command"},
}  # fmt: skip


def gaps(source: str) -> set[str]:
    """Return what fills the gaps of the shell's texts in ``source``, but for what quotes."""
    return {
        ast.unparse(part.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.JoinedStr)
        and SHELL.search("".join(str(each.value) for each in node.values if _is_plain(each)))
        for part in node.values
        if isinstance(part, ast.FormattedValue) and not _is_quoted(part.value)
    }


def _is_plain(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant)


def _is_quoted(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"shell_word", "shell_line"}


def test_every_gap_of_a_text_for_a_shell_is_quoted_or_named_here() -> None:
    source = ROOT / "src" / "fabricproof"
    known: dict[str, set[str]] = {}
    for name, filled in FILLED.items():
        known.setdefault(name.partition(":")[0], set()).update(filled)
    found = {
        str(path.relative_to(source)): left
        for path in source.rglob("*.py")
        if (left := gaps(path.read_text()))
    }
    assert found == known


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("f'module load {stack.module}'", {"stack.module"}),
        ("f'cd {folder} && ls'", {"folder"}),
        ("f'#!/bin/bash\\n{line}'", {"line"}),
        ("f'export A={shell_word(value)}'", set()),
        ("f'srun {shell_line(words)} {more}'", {"more"}),
        ("f'{value} MB/s of {limit}'", set()),
    ],
)
def test_a_gap_that_nobody_quotes_is_seen(source: str, left: set[str]) -> None:
    """The deliberate bad cases."""
    assert gaps(source) == left


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_shell_word_is_the_text_and_holds_nothing_that_reframe_expands(text: str) -> None:
    word = shell_word(text)
    assert "`" not in word
    assert "$(" not in word
    assert os.path.expandvars(word) == word
    assert word.isascii()


@pytest.mark.parametrize("text", [BAD, "", "\n\t\x01\x7f", "é", "-n", "a=b", "\udc80", "$'\\x24'"])
def test_bash_reads_the_bytes_back(text: str) -> None:
    values = shell_values({"V": text}, {"P": text})
    script = f"export V={values['V']}\nexport P=old\nexport P={values['P']}\nenv -0"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={})
    found = dict(each.split(b"=", 1) for each in done.stdout.split(b"\0") if each)
    assert found[b"V"] == os.fsencode(text)
    assert found[b"P"] == os.fsencode(text) + b":old"
