"""A program in a container: how it is started there, what is seen of it, and what that says."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import fabricproof.job
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg, read_plan, write_plan
from fabricproof.job.outcome import judge_leg
from fabricproof.job.script import RANK_FILE, render_script
from fabricproof.site.schema import RUNTIMES
from fabricproof.stacks.container import EXEC_RUNTIMES, INSIDE, PYXIS, enter, parse_inside
from leg_folders import PUT_BW_SENT, leave, make_leg, rank_text

RANK_SH = Path(fabricproof.job.__file__).parent / RANK_FILE
IMAGE = "/images/osu.sif"
LIBRARY = "/opt/mpi/lib/libmpi.so.40"
LEG = make_leg(container=enter("apptainer", IMAGE), library=LIBRARY)

#: of inside.sh in a rank whose container is whole
WHOLE = f"root 7:1\nlibrary {LIBRARY}\n"
#: likewise without devices
BARE = f"""root 7:1
lacks /sys/class/infiniband/mlx5_0
lacks /dev/infiniband/uverbs* that it may open
library {LIBRARY}
"""


def _leave(
    folder: Path, leg: Leg = LEG, inside: str | None = WHOLE, *, took: str = "rail0", **more: str
) -> Path:
    ranks = (
        rank_text(0, sent=PUT_BW_SENT, received=0, interface=took),
        rank_text(1, sent=0, received=PUT_BW_SENT, interface=took),
    )
    path = leave(folder, leg, ranks=tuple(f"root 254:2\n{each}" for each in ranks), **more)
    for rank in (0, 1) if inside is not None else ():
        (path / f"inside.{rank}.0").write_text(str(inside))
    return path


def _told(folder: Path, leg: Leg) -> tuple[Verdict, str]:
    report = judge_leg(folder, leg).report
    return report.verdict, report.quantities[0].reason


def test_a_program_seen_in_its_image_passes(tmp_path: Path) -> None:
    _leave(tmp_path)
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.PASS
    assert {each.library for each in outcome.ranks} == {LIBRARY}


BLIND = replace(LEG, library=None)
FAILED = {"status": "1\n", "stderr": "UCX ERROR no device\n"}


@pytest.mark.parametrize(
    ("leg", "inside", "left", "verdict", "words"),
    [
        (
            LEG, BARE, {"took": "mgmt0"}, Verdict.INVALID,
            ("the container on n1, n2 has no /sys/class/infiniband/mlx5_0, no /dev/infiniband/"
             "uverbs* that it may open (bind /dev/infiniband and /sys into it, or let the runtime "
             "show the node's devices); .*mgmt0"),
        ),
        (LEG, BARE, {}, Verdict.PASS, ""),  # the path is proven
        (
            LEG, BARE, FAILED, Verdict.MISSING,
            ("the container on n1, n2 has no /sys/class/infiniband/mlx5_0.*"
             "the benchmark failed, exit status 1: UCX ERROR no device"),
        ),
        (LEG, WHOLE.replace("7:1", "254:2"), {}, Verdict.INVALID,
            f"rank 0 on n1 ran with the root of the node itself, not in {IMAGE}"),
        *(
            (BLIND, inside, {}, Verdict.UNJUDGED, f"nobody saw rank 0 on n1 in {IMAGE}")
            for inside in (None, "", f"library {LIBRARY}\n")
        ),
        (LEG, "root 7:1\n", {}, Verdict.UNJUDGED,
            ".*MPI library rank 0, 1 loads: none was in its memory in time"),
        (LEG, WHOLE.replace("/opt/mpi", "/host/mpi"), {}, Verdict.INVALID,
            ".*rank 0 on n1 loads MPI library /host/mpi/lib/libmpi.so.40"),
    ],
)  # fmt: skip
def test_what_was_seen_of_a_container_is_judged(
    leg: Leg, inside: str | None, left: dict[str, str], verdict: Verdict, words: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    _leave(tmp_path, inside=inside, **left)
    found, reason = _told(tmp_path, leg)
    assert found is verdict
    begin, _, end = words.partition(".*")
    assert reason.startswith(begin)
    assert end in reason


@pytest.mark.parametrize("text", ["root 7:1\nroot 7:1\n", "sees nothing\n", "lacks\n"])
def test_damage_in_what_the_container_showed_is_told(text: str) -> None:
    with pytest.raises(ParseError, match="damaged evidence"):
        parse_inside(text, "inside.0.0")


def test_a_plan_keeps_the_container(tmp_path: Path) -> None:
    write_plan(tmp_path, [LEG, make_leg(name="other")])
    assert [each.container for each in read_plan(tmp_path).legs] == [LEG.container, None]


def test_the_program_alone_is_started_in_an_image_of_apptainer() -> None:
    assert (
        "    FABRICPROOF_CONTAINER=/images/osu.sif \\\n"
        "    timeout -k 5 60 \\\n"
        '    srun -n 2 "$here/rank.sh" apptainer exec --bind "$here" /images/osu.sif '
        f'sh "$here/inside.sh" @inside@ {LIBRARY} rail0 -- OMPI_MCA_btl_tcp_if_include=rail0 -- '
        "osu_put_bw -m 1:4194304\n"
    ) in _render(LEG)


def test_all_of_a_rank_is_started_in_an_image_of_pyxis() -> None:
    text = _render(make_leg(container=enter("pyxis", "reg#osu:7", binds=["/opt/a b"])))
    assert (
        "    FABRICPROOF_CONTAINER='reg#osu:7' \\\n"
        '    FABRICPROOF_OUTSIDE="$(stat -c %d:%i /)" \\\n'
    ) in text
    assert (
        "    srun -n 2 '--container-image=reg#osu:7' "
        '--container-mounts="$here":"$here"\',/opt/a b:/opt/a b\' '
        '"$here/rank.sh" sh "$here/inside.sh" @inside@'
    ) in text


def test_a_sites_own_command_is_taken_word_by_word() -> None:
    container = enter("ch-run --bind={folder} '{image}' --", "/img/a b", options=("-w",))
    assert container.inner == ("ch-run", "--bind={folder}", "/img/a b", "--", "-w")
    assert not container.outer


def test_no_shell_expands_what_a_site_says_of_its_container() -> None:
    for runtime in ("apptainer", "pyxis", "run {image}"):
        text = _render(make_leg(container=enter(runtime, "/i/$(touch X)")))
        assert "$(touch X)" not in text
        assert "\\x24(touch X)" in text


def test_a_site_may_name_what_can_be_entered() -> None:
    assert {*RUNTIMES} == {PYXIS, *EXEC_RUNTIMES}


def _render(leg: Leg) -> str:
    return render_script([leg], launch="srun -n 2", judge="true", leg_seconds_limit=60)


def _run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run rank.sh on this machine; FOLDER is the job's."""
    for script in (RANK_SH, INSIDE):
        (folder / script.name).write_bytes(script.read_bytes())
    leg = folder / "legs" / "rail0.1"
    leg.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "FABRICPROOF_LEG": str(leg), "FABRICPROOF_CONTAINER": "image"}
    return subprocess.run(
        ["bash", str(folder / RANK_FILE), *words], env={**environment, **variables},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_what_a_container_lacks_is_seen_from_inside(tmp_path: Path) -> None:
    inside = ["sh", str(tmp_path / INSIDE.name), "@inside@", ""]
    rails = ["mlx5_9:1", "none0", "lo"]
    done = _run(
        tmp_path, "env", "-u", "CUT",
        *inside, *rails, "--", "CUT=a b", "KEPT=1", "--", "echo", "hi",
        CUT="a b", KEPT="1", FABRICPROOF_SYS=str(tmp_path), FABRICPROOF_DEV=str(tmp_path),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr
    seen = parse_inside((tmp_path / "legs" / "rail0.1" / "inside.0.0").read_text(), "it")
    assert seen.lacks == (
        f"{tmp_path}/class/infiniband/mlx5_9",
        f"{tmp_path}/infiniband/uverbs* that it may open",
        "interface none0",
        "CUT=a b in its environment",
    )
    record = (tmp_path / "legs" / "rail0.1" / "rank.0.0").read_text()
    assert f"\nroot {seen.root}\n" in record, "this test has no image: the two are alike"


def test_a_device_of_a_rail_is_the_one_that_is_looked_for(tmp_path: Path) -> None:
    for number, device in enumerate(("mlx5_0", "mlx5_1")):
        verbs = tmp_path / "class" / "infiniband_verbs" / f"uverbs{number}"
        verbs.mkdir(parents=True)
        (verbs / "ibdev").write_text(f"{device}\n")
        (tmp_path / "class" / "infiniband" / device).mkdir(parents=True)
    (tmp_path / "infiniband").mkdir()
    (tmp_path / "infiniband" / "uverbs0").touch()
    inside = ["sh", str(tmp_path / INSIDE.name), "@inside@", "", "mlx5_0:1", "mlx5_1:1"]
    places = {"FABRICPROOF_SYS": str(tmp_path), "FABRICPROOF_DEV": str(tmp_path)}
    done = _run(tmp_path, *inside, "--", "--", "true", **places)
    assert done.returncode == 0, done.stderr
    seen = parse_inside((tmp_path / "legs" / "rail0.1" / "inside.0.0").read_text(), "it")
    assert seen.lacks == (f"{tmp_path}/infiniband/uverbs1 that it may open",)


def test_a_node_without_the_runtime_says_so(tmp_path: Path) -> None:
    done = _run(tmp_path, "no-such-runtime", "exec", "x")
    assert done.returncode == 74
    told = (tmp_path / "legs" / "rail0.1" / "reason.0").read_text()
    assert "has no no-such-runtime, which starts this stack's container: install it" in told


def test_a_node_without_the_image_says_so(tmp_path: Path) -> None:
    done = _run(tmp_path, "env", "true", FABRICPROOF_CONTAINER=str(tmp_path / "gone.sif"))
    assert done.returncode == 74
    assert f"cannot read the image {tmp_path}/gone.sif" in done.stderr


def test_a_program_in_a_folder_below_is_found(tmp_path: Path) -> None:
    program = tmp_path / "osu" / "mpi" / "pt2pt" / "osu_bw"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho found $1\n")
    program.chmod(0o755)
    inside = ["sh", str(tmp_path / INSIDE.name), "@inside@", "", "--", "--"]
    done = _run(tmp_path, *inside, str(tmp_path / "osu" / "osu_bw"), "x")
    assert done.stdout == "found x\n"
