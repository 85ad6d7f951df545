"""The first hour of docs/tutorial.md, each command of it, in its order.

``STEPS`` is the page as a table: a command that is added to the page fails until it stands there.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT, commands, examples

from fabricproof.site import load_site

PAGE = "docs/tutorial.md"

CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"

#: a run measures one check of one stack here, and a later one only looks
SMALL = " -n OsuLatency -p openmpi5"
LOOKS = " -n LinkPreflight"
COMPARED = frozenset({0, 1, 5})
GREEN = frozenset({0})


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command of the page.

    ``how`` is ``target`` (make knows it), ``live`` (on the virtual cluster), ``long`` (the same, in
    minutes) or ``history`` (on recorded runs); ``more`` narrows it, ``said`` is a pattern.
    """

    line: str
    how: str = "live"
    more: str = ""
    ends: frozenset[int] = GREEN
    said: str = ""


LOOK = "fabricproof run -n LinkPreflight"
A_RUN = r"\(run \d{8}T\d{6}Z-\w+\)"

STEPS = (
    Step(line="make accept", how="target"),
    Step(line=". ./env.sh vcluster"),
    Step(line="fabricproof vcluster fault vc2 rail1 --rate 100mbit"),
    Step(line=LOOK, ends=frozenset({1}), said="rail1 on vc2 runs at 100 of 200 Mb/s"),
    Step(
        line="fabricproof run -n OsuBandwidth -p openmpi5",
        ends=frozenset({1, 5}),
        said="(FAIL|UNJUDGED) +openmpi5 .* rail1 ",
    ),
    Step(line="fabricproof vcluster fault vc2 rail1 --clear"),
    Step(line="make install", how="target"),
    Step(line=". ./env.sh mycluster"),
    Step(line="fabricproof stack install openmpi5 mpich5"),
    Step(line="fabricproof site init mycluster", said="guesses? for you to settle"),
    Step(line="fabricproof site check mycluster", said="mycluster: fine"),
    Step(line="fabricproof stack doctor openmpi5 --on-node", said="PASS +MPI"),
    Step(line=LOOK, said="PASS: "),
    Step(line="fabricproof preflight", said="^PASS: "),
    Step(line="fabricproof plan -t quick", said="^this selection"),
    Step(line="fabricproof run -t quick", more=SMALL, ends=frozenset({5}), said="no reference"),
    Step(line="fabricproof report -o first.html", ends=frozenset({5}), said="first.html"),
    Step(line="fabricproof site roll mycluster --write", said=" due$"),
    Step(line="fabricproof nightly --dry-run"),
    Step(line="fabricproof nightly", more=LOOKS, said="^night .*: whole"),
    Step(line="fabricproof runs", said="PASS"),
    Step(line="fabricproof baseline freeze first last:10", how="history", said="first.json"),
    Step(line="fabricproof baseline show first", how="history", said="holds today: yes"),
    Step(line="fabricproof runs label last:5 before-swap", how="history"),
    Step(line=LOOK, said="PASS: "),
    Step(line="fabricproof preflight", said="^PASS: "),
    Step(line="fabricproof run -t nightly --label after-swap", more=LOOKS, said=A_RUN),
    Step(line="fabricproof compare before-swap after-swap", how="history", ends=COMPARED),
    Step(line="fabricproof baseline freeze second last:5", how="history", said="second.json"),
)


def test_each_command_of_the_page_is_a_step() -> None:
    assert [each.line for each in commands(ROOT / PAGE)] == [each.line for each in STEPS]
    assert {each.how for each in STEPS} == {"target", "live", "history"}


@pytest.mark.parametrize("line", [each.line for each in STEPS if each.how == "target"])
def test_a_target_of_the_page_exists(line: str) -> None:
    subprocess.run(["make", "-n", line.split()[1]], cwd=ROOT, check=True, capture_output=True)


def test_the_files_of_the_page_are_a_site(tmp_path: Path) -> None:
    """The reference that it shows, in a site that has such a fabric."""
    (reference,) = examples(PAGE, "toml")
    site = tmp_path / "vcluster"
    shutil.copytree(ROOT / "site-configs" / "vcluster", site)
    (site / "references.toml").write_text(reference, encoding="utf-8")
    loaded = load_site(str(site))
    assert [each.quantity for each in loaded.references] == ["latency"]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a site with eight recorded runs."""
    history = ROOT / "tests" / "data" / "history" / "baseline"
    shutil.copytree(history, tmp_path / "perflogs")
    shutil.copytree(ROOT / "site-configs" / "vcluster", tmp_path / "sites" / "vcluster")
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    return tmp_path


def test_the_commands_over_runs_work_on_recorded_ones(
    recorded: Path, fabricproof: Callable[..., Any]
) -> None:
    """In their order; the runs since the swap are older recorded ones here."""
    assert fabricproof("runs", "label", "..2026-11-21T20:01", "after-swap").status == 0
    for step in (each for each in STEPS if each.how == "history"):
        ended = fabricproof(*shlex.split(step.line)[1:])
        assert ended.status in step.ends, (step.line, ended.err)
        assert re.search(step.said, ended.out), (step.line, ended.out)


@dataclass(kw_only=True)
class Reader:
    """Somebody who types what the page says, in a folder with sites of his own."""

    folder: Path
    environment: dict[str, str]
    chosen: str = field(default=":", init=False)

    def types(self, step: Step) -> None:
        """Type one command as a person would who has sourced ``env.sh`` before."""
        if step.line.startswith(". "):
            self.chosen = step.line
        line = step.line + step.more
        script = f'eval "$({ROOT}/bin/fabricproof vcluster env)"; {self.chosen}; {line}'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode in step.ends, (line, done.stdout)
        assert re.search(step.said, done.stdout, flags=re.MULTILINE), (line, done.stdout)


@pytest.fixture
def reader() -> Iterator[Reader]:
    if not BIN.is_dir():
        pytest.skip(f"no virtual cluster {CLUSTER!r} is up")
    # Not below /tmp: every node has its own.
    folder = ROOT / "work" / "tutorial"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "site-configs" / "vcluster", folder / "sites" / "vcluster")
    (folder / "env.sh").symlink_to(ROOT / "env.sh")
    environment = {
        **os.environ,
        "FABRICPROOF_VCLUSTER": CLUSTER,
        "FABRICPROOF_SITES": str(folder / "sites"),
        "FABRICPROOF_WORK": str(folder / "work"),
        "FABRICPROOF_PERFLOGS": str(folder / "perflogs"),
    }
    yield Reader(folder=folder, environment=environment)
    clear = [ROOT / "bin" / "vcluster", "fault", "--name", CLUSTER, "vc2", "rail1", "--clear"]
    subprocess.run(clear, check=False, timeout=60, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slurm
@pytest.mark.timeout(900)
def test_the_hour_on_a_cluster(reader: Reader, request: pytest.FixtureRequest) -> None:
    """From the first fault to the swap; with ``-m 'slurm or long'`` the switch in turn too."""
    of_today = {"live", "long"} if "long" in request.config.getoption("markexpr") else {"live"}
    for step in STEPS:
        if step.how in of_today:
            reader.types(step)
