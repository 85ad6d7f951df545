"""Building and removing a stack with a Spack that only pretends: steps, failures, resuming."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError, FabricproofError, OutputError, UnavailableError
from fabricproof.stacks.spack.builder import building, remove, why_not_built
from fabricproof.stacks.spack.proof import Built, programs_of, read_built
from fabricproof.stacks.spack.tool import Spack
from pretended_spack import Lab

STEPS = ["concretize", "install", "find", "load"]
RECORDED = Path(__file__).resolve().parents[2] / "data" / "spack"


def why(lab: Lab) -> str | None:
    return why_not_built(lab.compose())


def never() -> Spack:
    raise AssertionError("Spack was asked for")


def other_mpi(lab: Lab) -> None:
    other = lab.folder / "elsewhere" / "libmpi.so.40"
    (lab.folder / "ldd-IMB-MPI1").write_text(f"\tlibmpi.so.40 => {other} (0x7f)\n")


def test_a_build_calls_spack_in_order_and_writes_the_record_last(lab: Lab):
    built, stood = lab.build(jobs=3)
    assert not stood
    assert lab.calls[1:] == [
        ["concretize", "--force"],
        ["install", "-j", "3"],
        ["find", "--format", "{name}\x1f{version}\x1f{hash}\x1f{prefix}\x1f{variants}"],
        ["load", "--sh", "openmpi", "osu-micro-benchmarks", "intel-mpi-benchmarks"],
    ]
    assert read_built(lab.manifest) == built
    assert why(lab) is None
    assert [step for step, _ in lab.heard][:2] == ["log", "lock"]
    assert (built.compiler, built.target) == ("gcc@12.2.0", "x86_64_v3")
    assert built.library == str(lab.folder / "openmpi5" / "lib" / "libmpi.so.40")
    assert built.mpi.external
    osu = built.programs["osu"]
    assert osu.folder_of("osu") == Path(osu.prefix) / "libexec" / "osu-micro-benchmarks"
    assert built.programs["imb"].folder_of("imb").name == "bin"


def test_the_module_swaps_stacks_and_sets_what_spack_sets(lab: Lab):
    old = lab.layout.modulefiles / "stack-openmpi" / "4.1.lua"
    old.parent.mkdir(parents=True)
    old.touch()
    built, _ = lab.build()
    text = (lab.layout.modulefiles / f"{built.module}.lua").read_text()
    assert built.module == "stack-openmpi/5.0.11"
    assert text.splitlines()[4:] == [
        'family("fabricproof_stack")',
        'setenv("FABRICPROOF_STACK", "openmpi")',
        'setenv("MPICC", "a b")',
        f'prepend_path("CMAKE_PREFIX_PATH", "{lab.folder}/openmpi5")',
        f'prepend_path("PATH", "{lab.folder}/openmpi5/bin:{lab.folder}/install/osu")',
    ]
    assert not old.exists()


def test_the_second_time_not_one_call_of_spack_is_made(lab: Lab):
    built, _ = lab.build()
    lab.forget()
    assert lab.build(open_tool=never) == (built, True)
    assert lab.calls == []


def test_force_solves_and_proves_again(lab: Lab):
    lab.build()
    lab.forget()
    assert lab.build(force=True)[1] is False
    assert lab.commands == STEPS


def test_a_stack_that_is_refused_has_no_module_not_even_an_earlier_ones(lab: Lab):
    lab.build()
    other_mpi(lab)
    with pytest.raises(UnavailableError, match="another MPI"):
        lab.build(force=True)
    assert not list(lab.layout.modulefiles.glob("**/*.lua"))
    assert not lab.manifest.exists()


def test_force_without_a_spack_keeps_what_was_built(lab: Lab):
    built, _ = lab.build()
    with pytest.raises(AssertionError):
        lab.build(force=True, open_tool=never)
    assert read_built(lab.manifest) == built


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_nothing_that_looks_built(lab: Lab, step: str):
    lab.order(**{step: {"status": 1, "output": "==> Error: something broke\n"}})
    with pytest.raises(FabricproofError, match="something broke"):
        lab.build()
    assert why(lab) is not None
    heard: list[str] = []
    with building(lab.layout, "next", lambda step, _: heard.append(step)):
        assert heard == ["log"], "the next one need not wait"


@pytest.mark.parametrize(
    ("recording", "command", "words"),
    [
        ("unsatisfiable", "concretize", "Cannot satisfy"),
        ("compile-error", "install", "nosuch.h"),
        ("disk-full-prefix", "install", "No space left on device"),
        ("no-sources", "install", "All fetchers failed"),
    ],
)
def test_a_recorded_failure_ends_the_build_with_its_own_words(
    lab: Lab, recording: str, command: str, words: str
):
    lab.order(**{command: {"status": 1, "output": (RECORDED / f"{recording}.out").read_text()}})
    with pytest.raises(FabricproofError) as caught:
        lab.build()
    assert words in str(caught.value)
    assert lab.commands[-1] == command


def test_a_concretize_that_says_well_and_writes_no_lock_is_a_failure(lab: Lab):
    lab.order(concretize={"status": 0, "output": "==> Concretized 3 specs:\n"})
    with pytest.raises(FabricproofError):
        lab.build()
    assert not lab.layout.kept_lock("openmpi").exists()


@pytest.mark.parametrize("how", ["install_stops_after", "install_is_killed_after"])
def test_an_interrupted_installation_goes_on_where_it_ended(lab: Lab, how: str):
    lab.order(**{how: "intel-mpi-benchmarks"})
    with pytest.raises(UnavailableError):
        lab.build()
    assert why(lab) == "it was never built to the end"
    lab.order()
    lab.forget()
    lab.build()
    assert "concretize" not in lab.commands


@pytest.mark.parametrize("orders", ["not_found", "empty"])
def test_less_than_was_asked_for_is_no_stack_and_names_a_command_that_mends_it(
    lab: Lab, orders: str
):
    lab.order(**{orders: ["intel-mpi-benchmarks"]})
    with pytest.raises(UnavailableError, match=r"(?i)imb-mpi1|intel-mpi-benchmarks") as caught:
        lab.build()
    assert caught.value.next_step == (
        "fabricproof stack remove openmpi && fabricproof stack build openmpi"
    )
    assert not lab.manifest.exists()
    lab.order()
    assert removed(lab)
    lab.build()
    assert why(lab) is None


LOSSES: dict[str, Callable[[Built], Path]] = {
    "program of OSU": lambda built: programs_of(built.programs)[0],
    "program of IMB": lambda built: programs_of(built.programs)[1],
    "library": lambda built: Path(built.library),
    "module": lambda built: Path(built.module_path) / f"{built.module}.lua",
}


@pytest.mark.parametrize("what", LOSSES)
def test_a_piece_that_is_gone_makes_a_stack_that_does_not_stand(lab: Lab, what: str):
    path = LOSSES[what](lab.build()[0])
    path.rename(path.with_name("elsewhere"))
    assert why(lab) == f"{path} is gone"


def test_a_library_that_was_replaced_in_place_is_proven_again(lab: Lab):
    built, _ = lab.build()
    Path(built.library).write_text("an upgrade of the site's")
    assert why(lab) == f"{built.library} is not the library that was proven"
    assert lab.build()[1] is False
    assert why(lab) is None
    Path(built.library).write_text("another")
    (lab.folder / "says").write_text("Open MPI v5.0.12, package: Open MPI\n")
    with pytest.raises(UnavailableError, match=r"another MPI.*openmpi 5\.0\.11.*v5\.0\.12"):
        lab.build()


def test_a_changed_packages_file_makes_a_stack_that_does_not_stand(lab: Lab):
    lab.build()
    lab.packages.write_text(lab.packages.read_text().replace("5.0.11", "5.0.10"))
    assert why(lab) == "lock: the recipe or the site's Spack configuration changed"


@pytest.mark.parametrize("key", ["inputs", "lock_digest"])
def test_a_record_of_another_lock_is_no_stack(lab: Lab, key: str):
    lab.build()
    built = json.loads(lab.manifest.read_text())
    lab.manifest.write_text(json.dumps({**built, key: "0" * 64}))
    assert why(lab) == "it was built from another lock"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.integers(min_value=0, max_value=900))
def test_a_record_cut_anywhere_is_one_message_and_is_mended(lab: Lab, length: int):
    lab.build()
    lab.manifest.write_bytes(lab.manifest.read_bytes()[:length])
    with pytest.raises(ConfigError, match=r"damaged record.*stack build openmpi"):
        read_built(lab.manifest)
    assert lab.build()[1] is False
    assert why(lab) is None


def test_a_record_of_another_format_counts_as_none(lab: Lab):
    lab.build()
    lab.manifest.write_text(json.dumps({**json.loads(lab.manifest.read_text()), "format": 1}))
    assert read_built(lab.manifest) is None


def test_two_builds_at_once_build_once_and_the_second_says_whom_it_waits_for(lab: Lab):
    lab.order(slow=0.15)
    results: list[bool] = []
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
    (wait,) = [line for step, line in lab.heard if step == "wait"]
    assert f"openmpi, pid {os.getpid()}" in wait


def test_a_root_that_cannot_be_written_or_has_a_blank_is_one_message(lab: Lab):
    (lab.folder / "blocked").touch()
    roots = {"blocked/spack": OutputError, "my stacks": ConfigError}
    for root, kind in roots.items():
        layout = replace(lab.layout, root=lab.folder / root)
        with pytest.raises(kind), building(layout, "openmpi", lambda *_: None):
            pass
        assert not layout.root.exists()


def test_asking_whether_a_stack_stands_writes_nothing(lab: Lab):
    lab.build()
    files = {path: path.stat().st_mtime_ns for path in lab.layout.root.rglob("*")}
    (lab.site / "spack" / "concretizer.yaml").write_text("concretizer: {reuse: true}")
    assert why(lab) is not None
    assert {path: path.stat().st_mtime_ns for path in lab.layout.root.rglob("*")} == files


# Removing.


def removed(lab: Lab, open_tool: Callable[[], Spack] | None = None) -> bool:
    return remove(lab.stack, lab.layout, open_tool or lab.open, lambda *_: None)


def installed(lab: Lab) -> list[str]:
    return sorted(path.name.rpartition("-")[0] for path in (lab.folder / "install").iterdir())


def test_a_removed_stack_leaves_its_lock_with_the_site_and_nothing_else(lab: Lab):
    first, _ = lab.build()
    assert removed(lab)
    assert installed(lab) == []
    assert not lab.manifest.exists()
    assert not lab.compose().folder.exists()
    assert not list(lab.layout.modulefiles.iterdir())
    assert (lab.folder / "openmpi5" / "lib").is_dir()
    assert not removed(lab, never), "nothing is there, and Spack is not asked"
    lab.forget()
    again, stood = lab.build()
    assert "concretize" not in lab.commands
    assert (again.lock_digest, stood) == (first.lock_digest, False)


def other_lock(lab: Lab, text: str) -> None:
    other = lab.layout.root / "sites" / "other" / "environments" / "mine" / "spack.lock"
    other.parent.mkdir(parents=True)
    other.write_text(text)


def test_what_another_site_needs_stays(lab: Lab):
    lab.build()
    specs = json.loads((lab.compose().folder / "spack.lock").read_text())["concrete_specs"]
    kept = {key: spec for key, spec in specs.items() if "runtime" in spec["name"]}
    other_lock(lab, json.dumps({"concrete_specs": kept, "roots": []}))
    removed(lab)
    assert installed(lab) == ["gcc-runtime-12.2.0"]


def test_where_another_lock_cannot_be_read_nothing_is_uninstalled(lab: Lab):
    lab.build()
    before = installed(lab)
    other_lock(lab, '{"concrete_specs"')
    with pytest.raises(ConfigError, match="other/environments/mine"):
        removed(lab)
    assert installed(lab) == before
    assert not lab.manifest.exists()


@pytest.mark.parametrize("step", ["find", "uninstall"])
def test_a_removal_that_fails_says_so_and_can_be_done_again(lab: Lab, step: str):
    lab.build()
    lab.order(**{step: {"status": 1, "output": "==> Error: no\n"}})
    with pytest.raises(FabricproofError):
        removed(lab)
    assert not lab.manifest.exists()
    lab.order()
    assert removed(lab)
    assert installed(lab) == []
