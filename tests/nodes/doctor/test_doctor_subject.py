"""What is examined, told from site files and manifests; nothing is run."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.nodes.doctor.examination import judge_world_output, launch_line, render_job
from fabricproof.nodes.doctor.probes import node_probes
from fabricproof.site import load_site
from fabricproof.site.schema import StackSpec
from fabricproof.stacks.environment import StackEnvironment
from fabricproof.stacks.launch import Launch
from fabricproof.stacks.spack.environment import compose, layout_for, read_lock
from fabricproof.stacks.spack.proof import Built, Package, programs_of, sha256_of, write_built
from fabricproof.stacks.stack import resolve, with_build_checked

LOCK = Path(__file__).resolve().parents[2] / "data" / "spack" / "openmpi.lock"


def package(name, prefix, *, external=False):
    return Package(
        name=name, version="1", spec=name, digest="d", prefix=str(prefix), external=external
    )


@pytest.fixture
def spack_stack():
    return StackSpec(name="mpich", family="mpich", version="4.0.2", spack="mpich")


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    return replace(load_site("vcluster"), folder=folder)


def subject_of(site, stack, tmp_path):
    found = resolve(site, site.partitions[0], stack, root=tmp_path / "stacks")
    return with_build_checked(found, site)


def build(site, stack, tmp_path):
    """Put what a build leaves there; return the programs."""
    layout = layout_for(site.name, site.folder, tmp_path / "stacks")
    inputs = compose(stack, layout).digest
    kept = layout.kept_lock("mpich")
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({**json.loads(LOCK.read_text()), "fabricproof": {"inputs": inputs}}))
    packages = {suite: package(suite, tmp_path / suite) for suite in ("osu", "imb")}
    library = tmp_path / "mpi" / "lib" / "libmpi.so.12"
    init = tmp_path / "osu" / "libexec" / "mpi" / "startup" / "osu_init"
    module = tmp_path / "modules" / "stack-mpich" / "4.0.2.lua"
    imb = programs_of(packages)[1]
    for path in (library, init, module, *programs_of(packages)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    built = Built(
        stack="mpich", inputs=inputs, lock_digest=read_lock(kept).digest,
        mpi=package("mpich", tmp_path / "mpi"), programs=packages, compiler="gcc",
        target="x86_64", spack="1.1.1", library=str(library), library_digest=sha256_of(library),
        environment=StackEnvironment(), module="stack-mpich/4.0.2",
        module_path=str(tmp_path / "modules"),
    )  # fmt: skip
    write_built(layout.built("mpich"), built)
    return str(init), str(imb)


def test_a_stack_that_was_not_built_is_absent(site, spack_stack, tmp_path):
    subject = subject_of(site, spack_stack, tmp_path)
    assert "not built" in subject.absent
    assert subject.mend == "fabricproof stack build mpich"


def test_an_external_is_looked_at_before_the_build(site, spack_stack, tmp_path):
    scope = site.folder / "spack"
    scope.mkdir()
    text = "packages:\n  mpich:\n    externals:\n    - {spec: mpich@4.0.2, prefix: /usr}\n"
    (scope / "packages.yaml").write_text(text)
    subject = subject_of(site, spack_stack, tmp_path)
    assert (subject.prefix, subject.prepend) == ("/usr", {"PATH": "/usr/bin"})
    (scope / "packages.yaml").write_text("packages: [")
    assert subject_of(site, spack_stack, tmp_path).prefix == ""


def test_a_built_stack_is_loaded_as_the_checks_load_it(site, spack_stack, tmp_path):
    programs = build(site, spack_stack, tmp_path)
    subject = subject_of(site, spack_stack, tmp_path)
    assert (subject.absent, subject.stale) == ("", "")
    assert subject.modules == ("stack-mpich/4.0.2",)
    assert subject.module_paths == (str(tmp_path / "modules"),)
    assert subject.programs == programs


def test_modules_are_found_and_loaded_as_in_a_job(site, spack_stack, tmp_path):
    build(site, spack_stack, tmp_path)
    spec = site.spec.model_copy(
        update={"module_paths": ["/site/modules"], "modules_init": "/opt/its own/init"}
    )
    stack = spack_stack.model_copy(update={"modules": ["gcc/13"]})
    subject = subject_of(replace(site, spec=spec), stack, tmp_path)
    assert subject.modules == ("gcc/13", "stack-mpich/4.0.2")
    assert subject.module_paths == ("/site/modules", str(tmp_path / "modules"))
    defined = "type module >/dev/null 2>&1 || . '/opt/its own/init'"
    assert defined in render_job(replace(subject, launch=Launch(launcher="srun")))


def test_a_changed_recipe_makes_a_stack_stale(site, spack_stack, tmp_path):
    build(site, spack_stack, tmp_path)
    changed = spack_stack.model_copy(update={"mpi_spec": "mpich@4.1"})
    subject = subject_of(site, changed, tmp_path)
    assert subject.stale.startswith("lock: ")
    assert subject.mend == "fabricproof stack build mpich"


def test_what_went_away_makes_a_stack_absent_and_a_command_that_works_mends_it(
    site, spack_stack, tmp_path
):
    build(site, spack_stack, tmp_path)
    shutil.rmtree(tmp_path / "osu")
    subject = subject_of(site, spack_stack, tmp_path)
    assert "is gone" in subject.absent
    assert subject.mend == "fabricproof stack remove mpich && fabricproof stack build mpich"


def test_an_external_that_went_away_is_the_sites_to_mend(site, spack_stack, tmp_path):
    build(site, spack_stack, tmp_path)
    packages = site.folder / "spack" / "packages.yaml"
    packages.write_text("packages: {mpich: {externals: [{spec: mpich@4, prefix: /nowhere}]}}\n")
    subject = subject_of(site, spack_stack, tmp_path)
    assert str(packages) in subject.absent
    assert "mpich@4" in subject.absent
    assert subject.mend.startswith("correct the prefix")


def test_a_damaged_manifest_is_absent_and_no_traceback(site, spack_stack, tmp_path):
    build(site, spack_stack, tmp_path)
    layout_for(site.name, site.folder, tmp_path / "stacks").built("mpich").write_text("{")
    assert "damaged" in subject_of(site, spack_stack, tmp_path).absent


def test_a_provisioned_stack_that_the_catalogue_lacks(site, tmp_path):
    stack = StackSpec(name="odd", family="mpich", version="1", provisioned=True)
    assert "can be provisioned" in subject_of(site, stack, tmp_path).absent


def test_the_sites_options_come_after_ours(site, tmp_path):
    stack = StackSpec(
        name="m", family="mpich", version="4", launcher_options=["--mpi=pmix"], modules=["m"]
    )
    subject = subject_of(site, stack, tmp_path)
    assert subject.options == ("--mpi=pmi2", "--mpi=pmix")
    assert [net_path.rails for net_path in subject.net_paths] == [
        ("rail0",),
        ("rail1",),
        ("rail0", "rail1"),
    ]


def test_every_probe_has_a_name_of_its_own(site, spack_stack, tmp_path):
    build(site, spack_stack, tmp_path)
    names = [probe.name for probe in node_probes(subject_of(site, spack_stack, tmp_path))]
    assert len(set(names)) == len(names)


def test_two_ranks_are_started_as_the_checks_do_it(site, spack_stack, tmp_path):
    program, _ = build(site, spack_stack, tmp_path)
    subject = subject_of(site, spack_stack, tmp_path)
    line = launch_line(subject)
    assert line.startswith("srun --ntasks=2 --nodes=2 --ntasks-per-node=1 --mpi=pmi2 ")
    assert line.endswith(str(program))
    job = render_job(subject)
    assert "module load stack-mpich/4.0.2" in job
    assert "export FI_TCP_IFACE=rail0" in job


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        ("# OSU MPI Init Test v7.2\nnprocs: 2, min: 4 ms, max: 5 ms", None),
        ("nprocs: 1, min: 4 ms\nnprocs: 1, min: 4 ms", "world of one"),
        ("This is a test with 2 processes", None),
        ("# #processes = 2", None),
        ("srun: error: boom", "no rank said anything"),
        ("nprocs: 2\nnprocs: 1", "not of 2"),
    ],
)
def test_the_world_that_c_programs_see(site, spack_stack, tmp_path, output, fault):
    build(site, spack_stack, tmp_path)
    world = judge_world_output(subject_of(site, spack_stack, tmp_path), output)
    assert (world.fault is None) == (fault is None)
    assert fault is None or fault in world.fault
