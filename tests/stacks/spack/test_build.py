"""Building a stack from end to end, with a Spack that only pretends: steps, failures, resuming."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, FabricproofError, OutputError, UnavailableError
from fabricproof.stacks.spack.builder import building, explain, programs_of, why_not_whole
from fabricproof.stacks.spack.installation.record import read_built, write_built
from fabricproof.stacks.spack.tool import Spack
from pretended_spack import Lab, executable
from process_groups import is_gone

STEPS = ["compiler", "compiler", "concretize", "find", "install", "find", "load", "load", "module"]
RECORDED = Path(__file__).resolve().parents[2] / "data" / "spack"


def why(lab: Lab) -> str | None:
    return why_not_whole(lab.layout, lab.compose())


def test_a_build_calls_spack_in_order_and_writes_the_manifest_last(lab: Lab):
    built, stood = lab.build(smoke=True)
    assert lab.commands == STEPS
    assert not stood
    assert read_built(lab.manifest) == built
    assert why(lab) is None
    assert [step for step, _ in lab.heard][:2] == ["log", "lock"]
    assert built.installed == (
        "compiler-wrapper@1.1.0",
        "gcc-runtime@12.2.0",
        "intel-mpi-benchmarks@2021.7",
        "osu-micro-benchmarks@7.2",
    )
    assert (built.compiler, built.target) == ("gcc@12.2.0", "x86_64_v3")
    assert built.library == str(lab.folder / "openmpi5" / "lib" / "libmpi.so.40")
    assert built.mpi.external
    assert built.smoke.startswith("two ranks: osu_latency")


def test_the_arguments_of_each_call_are_what_spack_takes(lab: Lab):
    lab.build(smoke=True)
    environment = str(lab.layout.environments / "openmpi")
    lines = (lab.folder / "calls").read_text().splitlines()
    folders = [json.loads(line)[:2] for line in lines if json.loads(line) != ["--version"]]
    assert folders[2:] == [["-e", environment]] * (len(STEPS) - 2)
    assert lab.calls[3:] == [
        ["concretize", "--force"],
        ["find", "--format", "{hash}"],
        ["install"],
        ["find", "--format", "{name}\x1f{version}\x1f{hash}\x1f{prefix}\x1f{variants}"],
        *[["load", "--sh", "openmpi", "osu-micro-benchmarks", "intel-mpi-benchmarks"]] * 2,
        ["module", "lmod", "refresh", "--delete-tree", "-y"],
    ]


def test_a_stack_that_is_refused_has_no_module_not_even_an_earlier_ones(lab: Lab):
    """Modules come after the proofs, and those of an earlier build go before a new one."""
    built, _ = lab.build()
    front = lab.layout.modulefiles / f"{built.module}.lua"
    assert front.is_file()

    other = lab.folder / "elsewhere" / "libmpi.so.40"
    (lab.folder / "ldd-IMB-MPI1").write_text(f"\tlibmpi.so.40 => {other} (0x7f)\n")
    with pytest.raises(UnavailableError):
        lab.build(force=True)
    assert not front.exists()
    assert not list(lab.layout.modulefiles.glob("**/*.lua"))


def test_the_second_time_not_one_call_of_spack_is_made(lab: Lab):
    built, _ = lab.build()
    lab.forget()

    def never() -> Spack:
        raise AssertionError("Spack was asked for")

    assert lab.build(open_tool=never) == (built, True)
    assert lab.calls == []


def test_force_solves_and_proves_again_and_compiles_nothing(lab: Lab):
    first, _ = lab.build()
    lab.forget()
    again, stood = lab.build(force=True)
    assert not stood
    assert lab.commands[:1] == ["concretize"]
    assert again.installed == ()
    assert again.reused == first.installed


@pytest.mark.parametrize("step", ["concretize", "install", "module", "load", "find", "compiler"])
def test_a_step_that_fails_leaves_nothing_that_looks_built(lab: Lab, step: str):
    lab.order(**{step: {"status": 1, "output": "==> Error: something broke\n"}})
    with pytest.raises(FabricproofError):
        lab.build(smoke=True)
    assert not lab.manifest.exists()


@pytest.mark.parametrize(
    ("recording", "command", "words"),
    [
        ("unsatisfiable", "concretize", "Cannot satisfy"),
        ("disk-full-environment", "concretize", "No space left on device"),
        ("compile-error", "install", "nosuch.h"),
        ("disk-full-prefix", "install", "No space left on device"),
        ("no-sources", "install", "All fetchers failed"),
    ],
)
def test_a_recorded_failure_ends_the_build_with_its_own_words(
    lab: Lab, recording: str, command: str, words: str
):
    output = (RECORDED / f"{recording}.out").read_text()
    lab.order(**{command: {"status": 1, "output": output}})
    with pytest.raises(FabricproofError) as caught:
        lab.build()
    assert words in str(caught.value)
    assert not lab.manifest.exists()
    assert lab.commands[-1] == command


def test_a_concretize_that_says_well_and_writes_no_lock_is_a_failure(lab: Lab):
    lab.order(concretize={"status": 0, "output": "==> Concretized 3 specs:\n"})
    with pytest.raises(FabricproofError):
        lab.build()
    assert not (lab.layout.locks / "openmpi.lock").exists()


def test_an_interrupted_installation_goes_on_where_it_ended(lab: Lab):
    lab.order(install_stops_after="intel-mpi-benchmarks")
    with pytest.raises(UnavailableError):
        lab.build()
    assert why(lab) == "it was never built to the end"
    lab.order()
    lab.forget()
    built, _ = lab.build()
    assert "concretize" not in lab.commands
    assert "intel-mpi-benchmarks@2021.7" in built.reused
    assert "osu-micro-benchmarks@7.2" in built.installed


def test_a_spack_that_is_killed_leaves_no_stack(lab: Lab):
    lab.order(install_is_killed_after="osu-micro-benchmarks")
    with pytest.raises(FabricproofError, match=r"signal 9|killed"):
        lab.build()
    assert why(lab) == "it was never built to the end"


def test_a_good_end_with_less_than_was_asked_for_is_no_stack(lab: Lab):
    lab.order(not_found=["intel-mpi-benchmarks"])
    with pytest.raises(UnavailableError, match="without intel-mpi-benchmarks"):
        lab.build()
    assert not lab.manifest.exists()


def test_a_program_that_is_not_in_its_folder_is_said_with_a_way_out(lab: Lab):
    lab.order(empty=["intel-mpi-benchmarks"])
    with pytest.raises(UnavailableError, match=r"IMB-MPI1.*stack remove"):
        lab.build()
    assert not lab.manifest.exists()


@pytest.mark.parametrize("package", ["openmpi", "osu-micro-benchmarks"])
def test_a_module_that_spack_did_not_write_is_no_stack(lab: Lab, package: str):
    lab.order(no_module_of=[package])
    with pytest.raises(UnavailableError, match=f"wrote no module.*{package}"):
        lab.build()
    assert not lab.manifest.exists()


def test_another_mpi_in_one_of_the_programs_is_no_stack(lab: Lab):
    other = lab.folder / "elsewhere" / "libmpi.so.40"
    (lab.folder / "ldd-IMB-MPI1").write_text(f"\tlibmpi.so.40 => {other} (0x7f)\n")
    with pytest.raises(UnavailableError, match="another MPI"):
        lab.build()
    assert not lab.manifest.exists()


def test_two_ranks_that_print_no_table_are_no_stack(lab: Lab):
    (lab.folder / "osu.txt").write_text("This test requires exactly two processes\n" * 2)
    with pytest.raises(UnavailableError, match=r"do not run on two ranks.*exactly two processes"):
        lab.build(smoke=True)
    assert not lab.manifest.exists()


def test_two_ranks_that_print_a_table_and_end_badly_are_no_stack(lab: Lab):
    lab.order(program_status=139)
    with pytest.raises(UnavailableError, match="do not run on two ranks"):
        lab.build(smoke=True)
    assert not lab.manifest.exists()


def test_two_ranks_that_never_end_are_ended(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fabricproof.stacks.spack.installation.proof.PATIENCE_S", 2)
    line = f"echo $$ >{lab.folder}/rank; sleep 60 & wait"
    executable(lab.folder / "openmpi5" / "bin" / "mpiexec", f"#!/bin/sh\n{line}\n")
    with pytest.raises(UnavailableError, match=r"no end after 2 s"):
        lab.build(smoke=True)
    group = int((lab.folder / "rank").read_text())
    assert is_gone(group)


def test_without_a_launcher_no_rank_is_started_and_it_says_so(lab: Lab):
    (lab.folder / "openmpi5" / "bin" / "mpiexec").unlink()
    built, _ = lab.build(smoke=True)
    assert built.smoke.startswith("not run: this MPI has no launcher")


def test_no_smoke_is_written_down_as_such(lab: Lab):
    assert lab.build(smoke=False)[0].smoke == "not asked for"


def test_force_without_a_spack_keeps_what_was_built(lab: Lab):
    built, _ = lab.build()

    def none() -> Spack:
        raise UnavailableError("there is no Spack")

    with pytest.raises(UnavailableError):
        lab.build(force=True, open_tool=none)
    assert read_built(lab.manifest) == built


def test_jobs_reach_the_configuration_of_spack(lab: Lab):
    lab.build(jobs=3)
    text = (lab.layout.environments / "openmpi" / "own" / "config.yaml").read_text()
    assert "build_jobs: 3" in text


def _built(lab: Lab):
    built = read_built(lab.manifest)
    assert built is not None
    return built


LOSSES = {
    "program of OSU": lambda lab: programs_of(_built(lab).programs)["osu"],
    "program of IMB": lambda lab: programs_of(_built(lab).programs)["imb"],
    "library": lambda lab: Path(_built(lab).library),
    "module": lambda lab: lab.layout.modulefiles / f"{_built(lab).module}.lua",
    "Spack's modules": lambda lab: lab.layout.modules / "openmpi" / "Core",
}


@pytest.mark.parametrize("what", LOSSES)
def test_a_piece_that_is_gone_makes_a_stack_that_does_not_stand(lab: Lab, what: str):
    lab.build()
    path = LOSSES[what](lab)
    path.rename(path.with_name("elsewhere"))
    assert why(lab) == f"{path} is gone"


def test_a_library_that_was_replaced_in_place_makes_a_stack_that_does_not_stand(lab: Lab):
    built, _ = lab.build()
    Path(built.library).write_text("an upgrade of the site's")
    assert why(lab) == f"{built.library} is not the library that was proven"
    lab.forget()
    again, stood = lab.build()
    assert (stood, again.installed) == (False, ())
    assert why(lab) is None


def test_an_upgrade_in_place_to_another_version_is_no_stack(lab: Lab):
    built, _ = lab.build()
    Path(built.library).write_text("an upgrade of the site's")
    (lab.folder / "says").write_text("Open MPI v5.0.12, package: Open MPI\n")
    with pytest.raises(UnavailableError, match=r"another MPI.*openmpi 5\.0\.11.*v5\.0\.12"):
        lab.build()
    assert not lab.manifest.exists()


def test_a_full_disk_is_one_message_with_its_place(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    def full(path: Path, built: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("fabricproof.stacks.spack.builder.write_built", full)
    with pytest.raises(OutputError, match=r"openmpi\.json: cannot write: No space left.*make room"):
        lab.build()
    assert why(lab) == "it was never built to the end"


def test_a_changed_packages_file_makes_a_stack_that_does_not_stand(lab: Lab):
    lab.build()
    lab.packages.write_text(lab.packages.read_text().replace("5.0.11", "5.0.10"))
    assert why(lab) == "lock: the recipe or the site's Spack configuration changed"


def test_a_lock_of_another_build_makes_a_stack_that_does_not_stand(lab: Lab):
    lab.build()
    built = json.loads(lab.manifest.read_text())
    lab.manifest.write_text(json.dumps({**built, "lock_digest": "0" * 64}))
    assert why(lab) == "it was built from another lock"


def test_a_damaged_manifest_makes_a_stack_that_does_not_stand_and_is_mended(lab: Lab):
    lab.build()
    lab.manifest.write_text(lab.manifest.read_text()[:200])
    assert why(lab) == "damaged record of a build"
    assert lab.build()[1] is False
    assert why(lab) is None


def test_a_manifest_without_benchmarks_is_no_stack(lab: Lab):
    lab.build()
    built = json.loads(lab.manifest.read_text())
    del built["programs"]["imb"]
    lab.manifest.write_text(json.dumps(built))
    assert why(lab) == "the record of the build names no benchmarks"


def test_a_removed_mpi_is_a_wrong_site_before_anything_is_built(lab: Lab):
    lab.build()
    lab.forget()
    (lab.folder / "openmpi5").rename(lab.folder / "moved")
    with pytest.raises(ConfigError, match="is not where the site says"):
        lab.build()
    assert lab.calls == []


def test_two_builds_at_once_build_once_and_the_second_says_whom_it_waits_for(lab: Lab):
    lab.order(slow=0.15)
    results = []
    first, second = (
        threading.Thread(target=lambda: results.append(lab.build()[1])) for _ in range(2)
    )
    first.start()
    while not lab.heard:
        time.sleep(0.01)
    second.start()
    first.join()
    second.join()
    assert sorted(results) == [False, True]
    assert lab.commands.count("install") == 1
    waits = [line for step, line in lab.heard if step == "wait"]
    assert len(waits) == 1
    assert f"openmpi, pid {os.getpid()}" in waits[0]


def test_a_root_that_cannot_be_written_is_one_message(lab: Lab):
    (lab.folder / "blocked").touch()
    from dataclasses import replace  # noqa: PLC0415

    layout = replace(lab.layout, root=lab.folder / "blocked" / "spack")
    with (
        pytest.raises(OutputError, match="stacks cannot be built here"),
        building(layout, "openmpi", lambda step, line: None),
    ):
        pass


def test_a_build_that_fails_lets_the_next_one_in(lab: Lab):
    lab.order(install={"status": 1})
    with pytest.raises(FabricproofError):
        lab.build()
    with building(lab.layout, "next", lambda step, line: pytest.fail(line)):
        pass


def test_asking_whether_a_stack_stands_writes_nothing(lab: Lab):
    lab.build()
    files = {path: path.stat().st_mtime_ns for path in lab.layout.root.rglob("*")}
    (lab.site / "spack" / "concretizer.yaml").write_text("concretizer: {reuse: true}")
    assert why_not_whole(lab.layout, lab.compose()) is not None
    assert {path: path.stat().st_mtime_ns for path in lab.layout.root.rglob("*")} == files


def test_the_wall_time_names_the_steps_that_took_any():
    assert explain({"lock": 33.2, "modules": 0.1, "install": 61.0}) == "lock 33 s, install 61 s"
    assert explain({"lock": 0.0}) == "under a second"


def test_a_record_of_packages_that_the_lock_does_not_have_is_no_stack(lab: Lab):
    record, _ = lab.build()
    other = replace(record, mpi=replace(record.mpi, digest="x" * 32))
    write_built(lab.layout.built(record.stack), other)
    reason = why_not_whole(lab.layout, lab.compose())
    assert reason == "the record of the build names packages that the lock does not have"
    assert lab.build()[1] is False, "it is built again, not believed"


def test_a_record_without_the_librarys_digest_is_no_stack(lab: Lab):
    record, _ = lab.build()
    write_built(lab.layout.built(record.stack), replace(record, library_digest=""))
    reason = why_not_whole(lab.layout, lab.compose())
    assert reason is not None
    assert "not the library that was proven" in reason
