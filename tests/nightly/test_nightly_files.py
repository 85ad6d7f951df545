"""What a site installs: each file is what its reader takes, and calls what there is."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from fabricproof.cli.main import group

ROOT = Path(__file__).parents[2]
NIGHTLY = ROOT / "ci" / "nightly"
#: what shows the Prometheus text of a night, and calls nothing
OF_PROMETHEUS = {"grafana.json", "prometheus-rules.yml"}
FILES = sorted(path for path in NIGHTLY.iterdir() if path.name != "README.md")


def calls(path):
    """Return the arguments of every call of fabricproof in a file."""
    found = []
    for line in path.read_text().splitlines():
        if line.lstrip().startswith("#"):
            continue
        match = re.search(r"/bin/fabricproof\"? +((?:nightly|report)\b.*)", line)
        if match:
            words = re.split(r" *(?:2?>|\|\||;)", match[1])[0]
            found.append(shlex.split(words.replace("%i", "mysite")))
    return found


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.suffix != ".timer" and path.name not in OF_PROMETHEUS],
    ids=lambda path: path.name,
)
def test_every_call_is_of_a_command_and_options_that_exist(path):
    """Click takes them, and passes none on as an option of ReFrame."""
    found = calls(path)
    assert found, "it calls nothing"
    for name, *arguments in found:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        context = command.make_context(name, list(arguments))
        assert context.params.get("arguments", ()) == ()
        assert context.params["site_name"]


def test_an_option_that_does_not_exist_would_be_noticed():
    """The deliberate bad case: night passes what it does not know on to ReFrame."""
    command = group.get_command(click.Context(group), "nightly")
    assert command is not None
    assert command.make_context("nightly", ["--keep-day=3"]).params["arguments"]


@pytest.mark.parametrize("name", ["fabricproof-night@", "fabricproof-alive@"])
def test_systemd_takes_the_units(name, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    units = []
    for kind in ("service", "timer"):
        text = (NIGHTLY / f"{name}.{kind}").read_text()
        units.append(tmp_path / f"{name}mysite.{kind}")
        units[-1].write_text(
            text.replace("/opt/fabricproof", str(ROOT)).replace("User=fabricproof\n", "")
        )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    mine = [line for line in done.stderr.splitlines() if "fabricproof" in line]
    assert mine == []


def test_the_night_may_write_where_its_locks_and_results_lie():
    """ProtectSystem=strict makes all else read-only, /tmp with it unless it is a private one."""
    lines = (NIGHTLY / "fabricproof-night@.service").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if "=" in line and line[0].isalpha())
    assert given["ProtectSystem"] == "strict"
    assert given["PrivateTmp"] == "no", "a person's night must see the lock"
    folders = {"/opt/fabricproof/perflogs", "/opt/fabricproof/work", "/tmp"}
    assert set(given["ReadWritePaths"].split()) == folders


def cron_lines():
    lines = (NIGHTLY / "fabricproof.cron").read_text().splitlines()
    return [line for line in lines if line and not re.match(r"#|[A-Z]+=", line)]


@pytest.fixture
def by_cron(tmp_path):
    """Call the command of a cron line where nothing but the program is installed."""
    program = tmp_path / "bin" / "fabricproof"
    program.parent.mkdir()

    def call(line, status):
        program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/called; echo words; exit {status}\n')
        program.chmod(0o755)
        command = line.split(" ", 6)[6].replace("/opt/fabricproof", str(tmp_path))
        return subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=20, check=False
        )

    call.folder = tmp_path
    return call


def test_the_night_of_cron_runs_without_any_folder_made_before(by_cron):
    """A shell starts nothing where the log cannot be opened."""
    done = by_cron(cron_lines()[0], 0)
    assert (by_cron.folder / "called").read_text() == "nightly --site mysite --keep-days 60\n"
    assert (by_cron.folder / "work" / "night.log").read_text() == "words\n"
    assert done.stdout + done.stderr == ""


def test_the_dead_mans_line_of_cron_speaks_only_of_silence(by_cron):
    """It needs no log: what it prints is mailed."""
    (by_cron.folder / "work").write_text("no folder")
    assert by_cron(cron_lines()[1], 0).stdout == ""
    assert by_cron(cron_lines()[1], 4).stdout == "words\n"


@pytest.mark.parametrize("name", ["gitlab-ci.yml", "github-workflow.yml"])
def test_pipelines_are_yaml_that_keeps_its_artifacts_when_red(name):
    found = yaml.safe_load((NIGHTLY / name).read_text())
    if name.startswith("gitlab"):
        job = found["fabric-night"]
        assert job["artifacts"]["when"] == "always"
        assert job["artifacts"]["reports"]["junit"] == "night.xml"
        assert all(isinstance(line, str) for line in job["script"])
        assert job["resource_group"]
        return
    steps = found["jobs"]["night"]["steps"]
    assert [each.get("if") for each in steps] == [None, "always()"]
    assert found["concurrency"]["cancel-in-progress"] is False
    # YAML 1.1 reads the key "on" as true.
    assert found[True]["schedule"]


def script_of(name):
    found = yaml.safe_load((NIGHTLY / name).read_text())
    if name.startswith("gitlab"):
        return "\n".join(found["fabric-night"]["script"])
    return found["jobs"]["night"]["steps"][0]["run"]


@pytest.mark.parametrize("name", ["gitlab-ci.yml", "github-workflow.yml"])
@pytest.mark.parametrize(
    ("status", "reported"),
    [
        (0, True),
        (1, True),
        (3, True),
        (6, True),
        (2, False),
        (69, False),
        (75, False),
        (130, False),
    ],
)
def test_a_pipeline_reports_its_own_night_or_none(name, status, reported, tmp_path):
    """Yesterday's green is in the folder, and the label night names it: it must not be shown."""
    program = tmp_path / "bin" / "fabricproof"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = nightly ] && exit {status}\n'
        "for file in night.html night.xml night.prom; do echo new >$file; done; exit 1\n"
    )
    program.chmod(0o755)
    files = [tmp_path / f"night.{kind}" for kind in ("html", "xml", "prom")]
    for file in files:
        file.write_text("yesterday's\n")
    done = subprocess.run(
        ["bash", "-e", "-c", script_of(name)],
        cwd=tmp_path,
        env={"FABRICPROOF_HOME": str(tmp_path), "FABRICPROOF_SITE": "s", "PATH": "/usr/bin:/bin"},
        check=False,
        timeout=20,
    )
    assert done.returncode == status
    assert [file.exists() and file.read_text() for file in files] == [reported and "new\n"] * 3


def test_the_script_of_slurm_is_bash_and_forgets_its_own_job():
    path = NIGHTLY / "night.sbatch"
    subprocess.run(["bash", "-n", path], check=True, timeout=20)
    text = path.read_text()
    body = text[text.index("for name in") : text.index("cd /")]
    done = subprocess.run(
        ["bash", "-euc", body + "\nenv"],
        env={"SLURM_JOB_ID": "1", "SLURM_CONF": "/c", "SBATCH_PARTITION": "x", "PATH": "/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert "SLURM_CONF=/c" in done.stdout
    assert "SLURM_JOB_ID" not in done.stdout
    assert "SBATCH_PARTITION" not in done.stdout


@pytest.mark.parametrize("path", [NIGHTLY / "night.sbatch", ROOT / "ci" / "night.sh"])
def test_shellcheck_has_nothing_to_say(path):
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here")
    subprocess.run(["shellcheck", path], check=True, timeout=60)
