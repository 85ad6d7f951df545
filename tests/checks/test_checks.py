"""The shipped checks: each loads, is named once, is due, and writes the job script we expect.

After a wanted change:  FABRICPROOF_WRITE_GOLDEN=1 pytest tests/checks   and read the difference.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from checks_as_reframe_sees_them import CHECKS, SITES, described, dry_run, reframe

import fabricproof
from fabricproof.benchmarks.catalogue import collective_of, meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.site import load_site
from fabricproof.site.roll import make_roll, read_roll
from fabricproof.stacks.launch import PMI2_LIBRARIES
from fabricproof.stacks.workload import Segment, expected_bytes

FILES = sorted(CHECKS.glob("**/*.py"))
#: has a check only where fabricproof is not installed
WITHOUT_US = CHECKS / "installed.py"
SHIPPED_SITES = sorted(path.parent.name for path in SITES.glob("*/site.toml"))
GOLDEN = Path(__file__).parent / "golden"

#: stack -> the check whose job script is kept; together they cover every kind of leg
KEPT = {
    "openmpi5": "OsuBandwidth",
    "openmpi4": "OsuMultiRailBandwidth",
    "mpich5": "ImbPingPong",
    "intelmpi": "OsuLatency",
}

LEVELS = {"quick", "nightly", "full"}

#: each measures all that the one before does, and more: a level needs one of them
OF_ONE_LEVEL = {
    "AllPairsRound": "quick",
    "AllPairsLadder": "nightly",
    "AllPairsMatrix": "full",
}

#: what a check may state beside suite and program
VALUES = ("net_paths", "one_way", "streams", "packed", "collective", "once", "mode")


def test_there_are_checks() -> None:
    assert len({check["@class"] for check in described("vcluster")}) >= 70


def test_a_check_is_named_after_what_it_measures() -> None:
    for check in described("vcluster"):
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]+", check["@class"])
        assert not check["@class"].endswith(("Test", "Check"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_and_each_of_its_classes_say_what_they_measure(path: Path) -> None:
    module = ast.parse(path.read_text())
    assert ast.get_docstring(module)
    assert all(ast.get_docstring(each) for each in module.body if isinstance(each, ast.ClassDef))


def test_file_names_are_unique() -> None:
    assert len({path.name for path in FILES}) == len(FILES)


def test_what_records_and_users_know_a_check_by_is_kept() -> None:
    rows = sorted(
        " | ".join(
            (
                check["unique_name"],
                check["name"],
                " ".join(sorted(check["tags"])),
                *(" ".join(check[each]) for each in ("valid_systems", "valid_prog_environs")),
                f"{check['suite']} {check['program']}",
                " ".join(f"{each}={check[each]}" for each in VALUES if each in check),
            )
        ).rstrip(" |")
        for check in described("vcluster")
    )
    path, text = GOLDEN / "checks.txt", "\n".join(rows) + "\n"
    if os.environ.get("FABRICPROOF_WRITE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text


def test_reframe_loads_every_file() -> None:
    loaded = {Path(check["@file"]).resolve() for check in described("vcluster")}
    assert loaded == {path.resolve() for path in FILES if path != WITHOUT_US}


@pytest.mark.parametrize("site", SHIPPED_SITES)
def test_every_check_has_its_folder_a_level_and_its_technology_as_tags(site: str) -> None:
    for check in described(site):
        tags = set(check["tags"])
        assert Path(check["@file"]).parent.name in tags
        assert tags & {"ethernet", "infiniband", "efa", "memory"}
        if check["@class"] in OF_ONE_LEVEL:
            assert tags & LEVELS == {OF_ONE_LEVEL[check["@class"]]}
            continue
        assert "full" in tags
        if "quick" in tags:
            assert tags >= LEVELS


def test_every_check_measures_what_the_judge_and_the_path_know() -> None:
    one = (Segment(sizes=(1,), iterations=1, warmups=0, window_size=1),)
    for check in described("vcluster"):
        suite, program = check["suite"], check["program"]
        if suite == "preflight":
            continue  # it only looks
        if collective_of(suite, program) is not None:
            continue  # its bytes are bounds: tests/physics/collective
        if suite == "hpcc":
            continue  # its least bytes come from its rings: tests/verdict/test_rings.py
        if suite == "nccl-tests":
            continue  # its least bytes: tests/rfm/test_gpu_plan.py
        if suite in {"iperf3", "iperf"}:
            continue  # their output says how many bytes they moved
        assert expected_bytes(suite, program, one) is not None, program
        reading = meaning(suite, program.rpartition("/")[2])
        assert reading.kind in {
            ProgramKind.BANDWIDTH,
            ProgramKind.LATENCY,
            ProgramKind.ROUND_TRIP_FREE,
        }, program


def test_every_check_requires_references_and_two_nodes() -> None:
    for check in described("vcluster"):
        assert check["require_reference"] is True
        assert (check["num_tasks"], check["num_tasks_per_node"]) == (2, 1)


@pytest.mark.parametrize("site", SHIPPED_SITES)
def test_the_roll_is_what_reframe_loads(site: str) -> None:
    loaded = make_roll(load_site(str(SITES / site)), described(site))
    assert read_roll(SITES / site) == loaded, f"make roll, or: fabricproof site roll {site} --write"
    assert loaded


def test_infiniband_checks_are_listed_where_there_is_no_infiniband(tmp_path: Path) -> None:
    site = load_site(str(SITES / "vcluster"))
    out = reframe(site, tmp_path, "-l", "-t", "infiniband", "-t", "quick")
    listed = re.findall(r"^- (\w+) %fabric=(\S+)", out, flags=re.MULTILINE)
    assert ("OsuLatency", "no-infiniband") in listed
    assert {fabric for _, fabric in listed} == {"no-infiniband"}


# Job scripts.


@pytest.fixture
def cases(stacks: Path, tmp_path: Path) -> list[dict[str, Any]]:
    names = [part for check in sorted(set(KEPT.values())) for part in ("-n", f"^{check}%")]
    return dry_run(load_site(str(SITES / "vcluster")), tmp_path, *names)


def _placeholders(text: str, stacks: Path) -> str:
    for real, name in (
        (str(stacks), "{STACKS}"),
        (str(Path(fabricproof.__file__).parent), "{FABRICPROOF}"),
    ):
        text = text.replace(real, name)
    text = re.sub(r"/\S+/python[0-9.]*(?= -E -m| \]| \()", "{PYTHON}", text)
    return re.sub(r"/\S+/libpmi2\.so\S*", "{LIBPMI2}", text)


def test_job_scripts_are_what_they_were_and_skips_have_a_reason(
    cases: list[dict[str, Any]], stacks: Path
) -> None:
    scripts: dict[str, str] = {}
    for case in cases:
        check = case["name"].split(" ")[0]
        if case["fabric"] == "no-infiniband":
            assert case["result"] == "skip"
            assert case["skip_reason"] == "this site has no infiniband fabric"
        elif case["result"] == "skip":
            assert case["skip_reason"], case["name"]
        elif KEPT[case["environ"]] == check:
            folder = Path(case["stagedir"])
            scripts[case["environ"]] = _placeholders(
                f"# {check} on {case['environ']}: the job, then its legs.\n"
                + (folder / "rfm_job.sh").read_text()
                + (folder / "legs.sh").read_text(),
                stacks,
            )
    due = set(KEPT)
    if not any(Path(each).exists() for each in PMI2_LIBRARIES):
        due.discard("intelmpi")  # Slurm's PMI-2 library is not on this machine
    assert set(scripts) == due
    for stack, text in scripts.items():
        path = GOLDEN / f"{stack}.sh"
        if os.environ.get("FABRICPROOF_WRITE_GOLDEN"):
            path.write_text(text)
        assert path.read_text() == text
        checked = subprocess.run(["bash", "-n"], input=text, text=True, check=False)
        assert checked.returncode == 0


def test_a_stack_that_is_still_to_be_built_is_loaded_by_its_checks_alone(
    stacks: Path, tmp_path: Path
) -> None:
    site = load_site(str(SITES / "vcluster-spack"))
    cases = dry_run(site, tmp_path, "-n", "^OsuBandwidth%", "-p", "openmpi$")
    folders = {
        case["name"].split(" ")[0]: Path(case["stagedir"]) for case in cases if case["stagedir"]
    }
    job = (folders["OsuBandwidth"] / "rfm_job.sh").read_text()
    modulefiles = stacks / "spack" / "sites" / "vcluster-spack" / "modulefiles"
    lines = [
        f"module use {modulefiles}",
        "module load stack-openmpi",
        "export OMPI_MCA_btl_tcp_links=2",
    ]
    places = [job.index(line) for line in lines]
    assert places == sorted(places), "the site's own variables come after the module's"
    assert "osu_bw -m 1:8192" in (folders["OsuBandwidth"] / "legs.sh").read_text()
    build = folders["StackBuild"]
    assert "module load" not in (build / "rfm_job.sh").read_text()
    assert (
        f"stack build openmpi --site {SITES / 'vcluster-spack'}" in (build / "build.sh").read_text()
    )


def test_no_name_that_somebody_types_stands_inside_another() -> None:
    """``-n OsuLatency`` would run both; what begins alike, as OSU names it, people know."""
    names = {check["@class"] for check in described("vcluster")}
    inside = [(a, b) for a in names for b in names if a in b and not b.startswith(a)]
    assert inside == []
