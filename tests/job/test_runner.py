"""Before and around ReFrame: its environment, the scheduler's answer, its words, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, ExitStatus, OutputError, UnavailableError
from fabricproof.job.run import (
    Workplace,
    check_scheduler,
    describe_checks,
    new_run_id,
    reframe_command,
    refuse_full_disk,
    refused_troubles,
    run_reframe,
    scheduler,
    scheduling_troubles,
    session_environment,
    unloadable,
    wants_run,
    workplace,
)
from fabricproof.job.run import start as runner
from fabricproof.site import Site, load_site

SITES = Path(__file__).parents[2] / "site-configs"
LOCAL_SITE = Path(__file__).parents[1] / "rfm" / "site"


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(project=tmp_path, root=tmp_path / "work", perflogs=tmp_path / "perflogs")


@pytest.fixture
def slurm_site() -> Site:
    return load_site(str(SITES / "vcluster"))


def _program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/bash\n{text}\n")
    (folder / name).chmod(0o755)


def test_run_ids_are_unlike_and_sort_by_time() -> None:
    ids = [new_run_id() for _ in range(20)]
    assert len(set(ids)) == 20
    stamps = [each.split("-")[0] for each in ids]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize(
    ("arguments", "is_run"),
    [
        *(
            (each.split(), True)
            for each in ("-r", "--run", "-vr", "-rv", "-t quick -r", "-rtquick")
        ),
        *((each.split(), False) for each in ("", "-l", "--dry-run", "-nOsuPutr")),
        (["--restore-session=r.json"], False),
        (["--report-file=r"], False),
    ],
)
def test_a_run_is_recognised(arguments: list[str], is_run: bool) -> None:
    assert wants_run(arguments) is is_run


# The environment of the session.


def test_the_guards_are_not_the_callers_to_switch_off(
    place: Workplace, slurm_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    guards = ("RFM_TRAP_JOB_ERRORS", "RFM_CLEAN_STAGEDIR", "RFM_GENERATE_FILE_REPORTS")
    wanted = {
        **dict.fromkeys(guards, "yes"),
        "RFM_CONFIG_FILES": f"/elsewhere:{place.project / 'reframe_settings.py'}",
        "RFM_REPORT_FILE": str(place.report_file("this-run")),
        "FABRICPROOF_RUN_ID": "this-run",
    }
    for name in wanted:
        monkeypatch.setenv(name, "no" if name in guards else "/elsewhere")
    assert wanted.items() <= session_environment(slurm_site, place, "this-run").items()


def test_the_sites_folders_come_first_on_the_path_with_variables_filled_in(
    place: Workplace, slurm_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_VCLUSTER", "mine")
    environment = session_environment(slurm_site, place, "id")
    first, second, *_ = environment["PATH"].split(os.pathsep)
    assert first == "/run/fabricproof/vcluster/mine/bin"
    assert second == str(Path(sys.executable).parent)
    assert environment["SLURM_CONF"] == "/run/fabricproof/vcluster/mine/etc/slurm.conf"


def test_the_workplace_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FABRICPROOF_WORK", raising=False)
    monkeypatch.delenv("FABRICPROOF_PERFLOGS", raising=False)
    assert workplace(tmp_path).root == tmp_path / "work"
    monkeypatch.setenv("FABRICPROOF_WORK", "/scratch/work")
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", "/scratch/logs")
    moved = workplace(tmp_path)
    assert (moved.root, moved.perflogs) == (Path("/scratch/work"), Path("/scratch/logs"))


# The scheduler.


def _check(site: Site, folder: Path) -> None:
    check_scheduler(site, {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"})


def test_a_scheduler_that_knows_the_partition_is_fine(tmp_path: Path, slurm_site: Site) -> None:
    _program(tmp_path, "sinfo", "echo 'debug up 1'; echo 'compute* up 4'")
    _check(slurm_site, tmp_path)


@pytest.mark.parametrize(
    ("sinfo", "config", "said"),
    [
        (None, None, "(?s)Slurm is not here.*fabricproof vcluster up"),
        (
            "#!/bin/bash\nprintf 'error: Unable to contact\\nslurm controller' >&2; exit 1\n",
            None,
            "Unable to contact slurm controller",
        ),
        ("\x7fELF, cut off", None, "sinfo cannot be run: Exec format error"),
        ("#!/bin/bash\nexec sleep 60\n", "none", "SLURM_CONF names no file"),
        ("#!/bin/bash\ntrue\n", None, r"no such partition.*got 'compute'"),
        ("#!/bin/bash\necho 'debug* up 2'\n", None, r"no such partition.*got 'compute'"),
    ],
)
def test_a_scheduler_that_will_not_do_is_said_in_one_line(
    tmp_path: Path, slurm_site: Site, sinfo: str | None, config: str | None, said: str
) -> None:
    environment = {"PATH": str(tmp_path)}
    if sinfo is not None:
        (tmp_path / "sinfo").write_text(sinfo)
        (tmp_path / "sinfo").chmod(0o755)
        environment["PATH"] += f"{os.pathsep}/usr/bin{os.pathsep}/bin"
    if config is not None:
        environment["SLURM_CONF"] = str(tmp_path / config)
    with pytest.raises(UnavailableError, match=said) as caught:
        check_scheduler(slurm_site, environment)
    assert caught.value.exit_status is ExitStatus.UNAVAILABLE
    assert "\n" not in str(caught.value)


def test_a_scheduler_that_hangs_is_not_waited_for(
    tmp_path: Path, slurm_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "SCHEDULER_PATIENCE_SECONDS", 0.2)
    _program(tmp_path, "sinfo", "exec sleep 60")
    start = time.monotonic()
    with pytest.raises(UnavailableError, match=r"did not answer within 0\.2 s"):
        _check(slurm_site, tmp_path)
    assert time.monotonic() - start < 30


# ReFrame itself.


def _pretend_reframe(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    _program(folder, "reframe", text)
    monkeypatch.setattr(runner, "reframe_command", lambda: str(folder / "reframe"))


def test_without_reframe_one_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="make install"):
        reframe_command()


def test_every_line_is_handed_on_and_the_status_returned(
    monkeypatch: pytest.MonkeyPatch, place: Workplace, slurm_site: Site, tmp_path: Path
) -> None:
    _pretend_reframe(monkeypatch, tmp_path / "bin", "echo $1; printf 'a\\xffb\\n' >&2; exit 7")
    lines: list[str] = []
    environment = session_environment(slurm_site, place, "id")
    assert run_reframe(["-r"], environment, lines.append) == 7
    assert lines == ["-r", "a\N{REPLACEMENT CHARACTER}b"]
    assert place.report_file("id").parent.is_dir()
    assert place.log_file("id").parent.is_dir()


def test_what_could_not_be_loaded_is_told() -> None:
    lines = [
        "[ReFrame Setup]",
        "WARNING: skipping test file 'checks/a.py': module not found error: No module named 'x'",
        "WARNING: skipping test 'B': 'valid_systems' not defined",
        "WARNING: checks/c.py: 'file' is not copyable; not copyable attributes are not allowed",
        "WARNING: skipping evaluation of performance variable 'x': y",
        "[       OK ] (1/1) OsuLatency",
    ]
    said = list(unloadable(lines))
    words = ("checks/a.py", "'B'", "c.py", "variable 'x'")  # a number that ReFrame cannot read
    assert all(word in each for word, each in zip(words, said, strict=True))


BROKEN = "echo \"WARNING: skipping test file 'a.py': broken\"; echo '['; echo ']'"


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (BROKEN, ConfigError, r"skipping test file 'a\.py': broken"),
        (
            "echo ERROR: no such system; exit 1",
            UnavailableError,
            r"ended with status 1.*ERROR: no such system",
        ),
    ],
)
def test_a_list_of_checks_is_whole_or_refused(
    monkeypatch: pytest.MonkeyPatch,
    place: Workplace,
    slurm_site: Site,
    tmp_path: Path,
    text: str,
    error: type[Exception],
    said: str,
) -> None:
    _pretend_reframe(monkeypatch, tmp_path / "bin", text)
    with pytest.raises(error, match=said):
        describe_checks(slurm_site, place)


# Ctrl-C: the terminal sends SIGINT to both; ReFrame cancels its jobs and is waited for.

_INTERRUPTED = """
import json, pathlib, sys
from fabricproof.job.run import start as runner
from fabricproof.cli import main
from fabricproof.cli.measure import run
folder = pathlib.Path(sys.argv[1])
runner.reframe_command = lambda: str(folder / "bin" / "reframe")
run.project_root = lambda: folder
sys.argv = ["fabricproof", "run", "--json", "--site", sys.argv[2]]
main()
"""

_CANCELS = """
cancel() {{
    echo cancelling
    sleep 0.5
    {write}
    echo cancelled >&2
    touch "{folder}/done"
    exit 1
}}
trap cancel INT TERM
echo started; touch "{folder}/started"
for _ in $(seq 200); do sleep 0.1; done
"""


def _interrupt(
    folder: Path,
    write: str,
    end: Callable[[int], None] = lambda pid: os.killpg(pid, signal.SIGINT),
    shell: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    _program(folder / "bin", "reframe", _CANCELS.format(folder=folder, write=write))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("FABRICPROOF")
    }
    with subprocess.Popen(
        [*shell, sys.executable, "-c", _INTERRUPTED, str(folder), str(LOCAL_SITE)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while not (folder / "started").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        time.sleep(0.3)  # the child may be up before its parent is back from starting it
        end(process.pid)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, out, err)


def test_ctrl_c_waits_for_reframe_and_ends_with_130(tmp_path: Path) -> None:
    ended = _interrupt(tmp_path, "true")
    assert (tmp_path / "done").exists()
    assert ended.returncode == ExitStatus.INTERRUPTED
    assert ended.stderr == "fabricproof: interrupted; what had finished is kept\n"
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("number", "shell"),
    [
        (signal.SIGTERM, ()),
        (signal.SIGHUP, ()),
        # as ``fabricproof run &`` in a script: SIGINT means nothing to ReFrame either
        (signal.SIGTERM, ("sh", "-c", 'trap "" INT; exec "$@"', "sh")),
    ],
)
def test_who_ends_us_alone_ends_reframe_too(
    tmp_path: Path, number: signal.Signals, shell: Sequence[str]
) -> None:
    """``timeout`` and ``kill`` know one process: ReFrame's jobs would go on without anybody."""
    ended = _interrupt(tmp_path, "true", lambda pid: os.kill(pid, number), shell)
    assert (tmp_path / "done").exists()
    assert ended.returncode == ExitStatus.INTERRUPTED


def test_ctrl_c_shows_what_had_finished(tmp_path: Path) -> None:
    report = '{"runs": [{"testcases": []}]}'
    ended = _interrupt(tmp_path, f"echo '{report}' >\"$RFM_REPORT_FILE\"")
    assert ended.returncode == ExitStatus.INTERRUPTED
    assert '"verdict": "MISSING"' in ended.stdout  # cut short, so never green nor merely skipped


# What this Slurm will not do.


def _slurm(folder: Path, accounting: str, sharing: str, sacct: str) -> dict[str, str]:
    config, partition = f"AccountingStorageType   = {accounting}", "PartitionName=compute"
    answer = f'case "$*" in *config) echo "{config}";; *) echo "{partition} {sharing}";; esac'
    _program(folder, "scontrol", answer)
    _program(folder, "sacct", sacct)
    return {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"}


@pytest.mark.parametrize(
    ("storage", "sacct", "said"),
    [
        (
            "none",
            "echo Slurm accounting storage is disabled >&2; exit 1",
            r"keeps no accounts.*next: set scheduler = \"squeue\"",
        ),
        ("slurmdbd", "echo sacct: error: Connection refused >&2; exit 1", "Connection refused"),
    ],
)
def test_without_accounts_no_run_begins_and_one_line_says_what_to_do(
    tmp_path: Path, slurm_site: Site, storage: str, sacct: str, said: str
) -> None:
    environment = _slurm(tmp_path, f"accounting_storage/{storage}", "OverSubscribe=NO", sacct)
    with pytest.raises(ConfigError, match=said) as caught:
        refused_troubles(slurm_site, scheduling_troubles(slurm_site, environment))
    assert "\n" not in str(caught.value)


def test_a_slurm_that_does_all_of_it_is_no_trouble(tmp_path: Path, slurm_site: Site) -> None:
    environment = _slurm(tmp_path, "accounting_storage/slurmdbd", "OverSubscribe=NO", "true")
    assert scheduling_troubles(slurm_site, environment) == []


def test_a_site_without_slurm_has_no_troubles_with_it(tmp_path: Path) -> None:
    assert scheduling_troubles(load_site(str(LOCAL_SITE)), {"PATH": str(tmp_path)}) == []


@pytest.mark.parametrize(
    "said",
    [
        "WARNING: failed to store results in the database: database or disk is full",
        "ERROR: could not save log file: [Errno 28] No space left on device",
        "  * Reason: OS error: [Errno 28] No space left on device: '/x/stage/job.sh'",
        "  * Reason: error: [('/a', '/x/stage/a', \"[Errno 28] No space left on device: '/a'\")]",
        "  * Reason: output error: r.jsonl: cannot keep the records: No space left on device; next",
    ],
)
def test_whatever_could_not_be_written_is_a_full_disk(said: str) -> None:
    with pytest.raises(OutputError, match="the disk is full"):
        refuse_full_disk([said])


@pytest.mark.parametrize(
    "said",
    [
        "  * Reason: sanity error: MISSING rail0 bandwidth_4MiB: mkdir: No space left on device",
        "mkdir: cannot create directory '/tmp/ompi.n2': No space left on device",
        "OSError: [Errno 28] No space left on device",
        "n2: the disk is full",
    ],
)
def test_the_full_disk_of_a_node_throws_nothing_away(said: str) -> None:
    """ReFrame repeats what the jobs printed; that pair is MISSING, and all others count."""
    refuse_full_disk(["--- rfm_job.err (last 10 lines) ---", said])


# The scheduler is watched while ReFrame waits: silence ends the run, a hiccup does not.


def _slept(
    monkeypatch: pytest.MonkeyPatch, place: Workplace, site: Site, text: str, *answers: bool
) -> int:
    monkeypatch.setattr(runner, "FAREWELL_SECONDS", 0.3)
    _pretend_reframe(monkeypatch, place.project / "bin", text)
    said = iter(answers)
    environment = session_environment(site, place, "id")
    return run_reframe(["-r"], environment, print, alive=lambda: next(said, answers[-1]))


@pytest.mark.parametrize(
    "text", ["exec sleep 60", "trap '' INT TERM; while true; do sleep 1; done"]
)
def test_silence_ends_reframe_even_one_that_will_not_stop(
    monkeypatch: pytest.MonkeyPatch, place: Workplace, slurm_site: Site, text: str
) -> None:
    monkeypatch.setenv(runner.PATIENCE_VARIABLE, "0.2")
    with pytest.raises(UnavailableError, match="stopped answering during the run"):
        _slept(monkeypatch, place, slurm_site, text, False)


def test_a_hiccup_is_no_death(
    monkeypatch: pytest.MonkeyPatch, place: Workplace, slurm_site: Site
) -> None:
    monkeypatch.setenv(runner.PATIENCE_VARIABLE, "0.6")
    assert _slept(monkeypatch, place, slurm_site, "sleep 1; exit 3", False, False, True) == 3


@pytest.mark.parametrize("nonsense", ["", "soon", "-1", "inf", "nan", "0"])
def test_nonsense_leaves_the_patience_as_it_is(
    nonsense: str, monkeypatch: pytest.MonkeyPatch, place: Workplace, slurm_site: Site
) -> None:
    monkeypatch.setenv(runner.PATIENCE_VARIABLE, nonsense)
    assert _slept(monkeypatch, place, slurm_site, "sleep 0.5", False) == 0
