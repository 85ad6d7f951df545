"""A stack in a container image: which legs enter it, where its programs are, who it is."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from fabricproof.rfm.legs.leg import find_program
from fabricproof.rfm.staging import in_container
from fabricproof.site import load_site
from fabricproof.site.schema import StackSpec
from fabricproof.stacks.stack import resolve
from leg_folders import make_leg


def _stack(image: str = "/images/osu.sif", **changes: object) -> StackSpec:
    container = {"runtime": "apptainer", "image": image, "library": "/opt/mpi/lib/libmpi.so.40"}
    facts = {"name": "boxed", "version": "5", "family": "openmpi", "suites": {"osu": "/opt/osu"}}
    return StackSpec.model_validate({**facts, "container": {**container, **changes}})


def test_a_leg_of_the_stacks_own_suite_enters_the_image() -> None:
    leg = in_container(make_leg(), _stack(options=["--nv --no-home"]))
    assert leg.library == "/opt/mpi/lib/libmpi.so.40"
    assert leg.container is not None
    assert leg.container.inner == (
        *("apptainer", "exec", "--bind", "{folder}", "--nv", "--no-home", "/images/osu.sif"),
    )


@pytest.mark.parametrize("suite", ["iperf3", "fabricproof", "preflight"])
def test_what_is_no_program_of_the_stack_stays_on_the_node(suite: str) -> None:
    leg = make_leg(suite=suite)
    assert in_container(leg, _stack()) == leg


def test_the_image_is_not_searched_from_outside(tmp_path: Path) -> None:
    below = tmp_path / "osu" / "pt2pt"
    below.mkdir(parents=True)
    (below / "osu_bw").touch()
    stack = _stack().model_copy(update={"suites": {"osu": str(tmp_path / "osu")}})
    site = load_site("vcluster")
    found = resolve(site, site.partitions[0], stack)
    assert find_program(found, "osu", "osu_bw").argv == (str(tmp_path / "osu" / "osu_bw"),)


def test_an_image_that_changes_in_its_place_is_another_build(tmp_path: Path) -> None:
    image = tmp_path / "osu.sif"
    image.write_bytes(b"one")
    site, stack = load_site("vcluster"), _stack(str(image))
    first = resolve(site, site.partitions[0], stack).identity("osu")
    assert first.mpi == f"openmpi@5 in {image} sha256:{sha256(b'one').hexdigest()}"
    image.write_bytes(b"other")
    assert resolve(site, site.partitions[0], stack).identity("osu").digest != first.digest


def test_an_image_that_is_not_to_be_read_here_is_known_by_its_name(tmp_path: Path) -> None:
    site = load_site("vcluster")
    for image in ("reg.example#osu@sha256:ab", str(tmp_path), str(tmp_path / "gone.sif")):
        found = resolve(site, site.partitions[0], _stack(image)).identity("osu")
        assert found.mpi == f"openmpi@5 in {image}"
    plain = _stack().model_copy(update={"container": None})
    assert " in " not in resolve(site, site.partitions[0], plain).identity("osu").mpi
