"""How many of our own files one question enters, from the command line to its last word.

    .venv/bin/python benchmarks/entered.py [ARGUMENTS OF FABRICPROOF]

A question is put twice in one process; the second time, when all is imported, each file of the
library whose functions are called counts.  Fewer files are fewer places to look at when a number is
wrong.  With arguments the files of that command are named; without, each question of
:data:`QUESTIONS` is counted, and one that enters more than it may is an error.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

import fabricproof
from fabricproof.cli.main import group
from fabricproof.cli.measure.run import result_record
from fabricproof.job.outcome import judge_leg
from fabricproof.job.recording import describe_outcome
from fabricproof.job.run import RunResult, assemble
from fabricproof.report.text.terminal import render

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / each) for each in ("", "history/compare", "report")]

from made import SITE, Made, nights, node_facts  # noqa: E402 - likewise
from report_data import NEWEST, recorded  # noqa: E402 - likewise

from leg_folders import PUT_BW, leave, make_leg, slower  # noqa: E402 - from the tests

_LIBRARY = str(Path(fabricproof.__file__).parent)
_REPLAYS = ROOT / "tests" / "replays"

_IDENTITY = {
    **dict.fromkeys(("partition", "stack", "fabric"), "here"),
    "run_id": "20261123T063937Z-da73d2",
    "check": "OsuPut",
    "unique_name": "OsuPut",
    "job_id": "42",
}


def judge(*arguments: str) -> None:
    """Run ``fabricproof ARGUMENTS`` to its end."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        group.main(list(arguments), standalone_mode=False)


def a_leg_that_ran() -> None:
    """Take a leg that was slow twice from its folder to the table and the JSON of ``run``."""
    folder = Path(tempfile.mkdtemp())
    leg = make_leg()
    for attempt in (1, 2):
        leave(folder, leg, slower(PUT_BW, 2), attempt=attempt)
    records = [
        {"format": 1, **each} for each in describe_outcome(judge_leg(folder, leg), _IDENTITY)
    ]
    case = {**_IDENTITY, "name": "OsuPut", "environ": "here", "jobid": "42", "result": "fail"}
    session = RunResult(run_id=_IDENTITY["run_id"], legs=assemble([case], records, ()))
    render(session, Console(file=io.StringIO(), width=200))
    result_record(session)
    shutil.rmtree(folder)


_SITE = """
[site]
name = "made"
[[partitions]]
name = "compute"
scheduler = "local"
fabrics = ["ib0"]
stacks = ["openmpi5"]
[[stacks]]
name = "openmpi5"
family = "openmpi"
version = "5.0"
"""

_FABRIC = """
[[fabrics]]
name = "ib0"
link = "HDR100"
rails = [{ interface = "mlx5_0:1" }, { interface = "mlx5_1:1" }]
"""


def compare(folder: Path) -> None:
    """Compare five runs with five since which a rail lost half; three nodes, other firmware."""
    site = folder / "sites" / SITE
    if not site.exists():
        site.mkdir(parents=True)
        (site / "site.toml").write_text(_SITE)
        (site / "fabric.toml").write_text(_FABRIC)
        made, lost = Made(folder / "made"), node_facts(firmware="28.41.1000")
        nights(made, range(1, 6))
        half = {True: 0.5, False: 1.0}
        nights(made, range(6, 11), facts=lost, factor=lambda where: half[where[0] == "rail1"])
        made.store()
    os.environ |= {
        "FABRICPROOF_SITES": str(site.parent),
        "FABRICPROOF_PERFLOGS": str(folder / "made"),
    }
    judge("compare", "--site", SITE, "2026-11-01..2026-11-05", "2026-11-06..")


def report(folder: Path) -> None:
    """Report the newest of four recorded runs on one screen, compared with the runs before."""
    if not (folder / "perflogs").exists():
        recorded(folder)
    os.environ.pop("FABRICPROOF_SITES", None)
    os.environ["FABRICPROOF_PERFLOGS"] = str(folder / "perflogs")
    judge("report", "--site", "vcluster", NEWEST, "same-inventory")


_FOLDER = tempfile.TemporaryDirectory(prefix="fabricproof-entered-")

#: what is asked, how, and how many files it may enter
QUESTIONS: tuple[tuple[str, Callable[[], None], int], ...] = (
    *(
        (f"judge {name} --link {link}", partial(judge, "judge", str(_REPLAYS / name), *more), 29)
        for name, link in (("40gbe_imb_p2p_pingpong.out", "40GbE"), ("c5n_osu_bw.out", "100GbE"))
        for more in [("--link", link)]
    ),
    ("run, from a leg's folder to the table and the JSON", a_leg_that_ran, 49),
    # core/project.py, since a package need not lie in a checkout, is one of each; cli/options.py of
    # compare, since one range that refuses nan serves five options.
    ("compare A B", partial(compare, Path(_FOLDER.name)), 51),
    ("report RUN BEFORE", partial(report, Path(_FOLDER.name)), 62),
)


def files_entered(ask: Callable[[], None]) -> list[str]:
    """Return the files of the library that ``ask`` enters, sorted."""
    ask()
    found: set[str] = set()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_LIBRARY):
            found.add(str(Path(frame.f_code.co_filename).relative_to(_LIBRARY)))

    sys.setprofile(enter)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return sorted(found)


def main() -> int:
    """Print the files of one command, or the count of each question; 1 where one is too high."""
    if asked := [each for each in sys.argv[1:] if each != "--full"]:
        print(*(found := files_entered(partial(judge, *asked))), f"{len(found)} files", sep="\n")
        return 0
    status = 0
    for words, ask, most in QUESTIONS:
        count = len(files_entered(ask))
        status |= count > most
        print(f"{count:3} files, at most {most}: {words}{' TOO MANY' * (count > most)}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
