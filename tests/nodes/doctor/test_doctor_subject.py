"""What is examined, told from site files and manifests; nothing is run."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.nodes.doctor.examination import judge_world_output, launch_line, render_job
from fabricproof.nodes.doctor.probes import node_probes
from fabricproof.site import load_site
from fabricproof.site.schema import StackSpec
from fabricproof.stacks.launch import Launch
from fabricproof.stacks.spack.environment.lock import digest_of_lock
from fabricproof.stacks.spack.installation.record import Built, Package, write_built
from fabricproof.stacks.spack.layout import layout_for
from fabricproof.stacks.stack import resolve

LOCK = Path(__file__).resolve().parents[2] / "data" / "spack" / "openmpi.lock"
LOCKED = LOCK.read_bytes()


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
    return resolve(site, site.partitions[0], stack, root=tmp_path / "stacks")


def build(site, tmp_path, lock=LOCKED):
    layout = layout_for(site.name, site.folder, tmp_path / "stacks")
    layout.locks.mkdir(parents=True)
    (layout.locks / "mpich.lock").write_bytes(lock)
    program = tmp_path / "osu" / "libexec" / "mpi" / "startup" / "osu_init"
    program.parent.mkdir(parents=True)
    program.touch()
    (tmp_path / "mpi").mkdir()
    built = Built(
        stack="mpich", environment="mpich", mpi=package("mpich", tmp_path / "mpi"),
        programs={"osu": package("osu-micro-benchmarks", tmp_path / "osu")},
        module="stack-mpich/4.0.2", module_path="/modules", lock_digest=digest_of_lock(LOCK),
        compiler="gcc", target="x86_64", spack="1.1.1", library="/mpi/lib/libmpi.so.12",
        seconds={},
    )  # fmt: skip
    write_built(layout.built("mpich"), built)
    return program


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
    program = build(site, tmp_path)
    subject = subject_of(site, spack_stack, tmp_path)
    assert (subject.absent, subject.stale) == ("", "")
    assert subject.modules == ("stack-mpich/4.0.2",)
    assert subject.module_paths == ("/modules",)
    assert subject.programs == (str(program),)


def test_modules_are_found_and_loaded_as_in_a_job(site, spack_stack, tmp_path):
    build(site, tmp_path)
    spec = site.spec.model_copy(
        update={"module_paths": ["/site/modules"], "modules_init": "/opt/its own/init"}
    )
    stack = spack_stack.model_copy(update={"modules": ["gcc/13"]})
    subject = subject_of(replace(site, spec=spec), stack, tmp_path)
    assert subject.modules == ("gcc/13", "stack-mpich/4.0.2")
    assert subject.module_paths == ("/site/modules", "/modules")
    defined = "type module >/dev/null 2>&1 || . '/opt/its own/init'"
    assert defined in render_job(replace(subject, launch=Launch(launcher="srun")))


def test_a_changed_lock_makes_a_stack_stale(site, spack_stack, tmp_path):
    build(site, tmp_path, lock=b"another")
    assert "lock" in subject_of(site, spack_stack, tmp_path).stale


def test_a_prefix_that_went_away_makes_a_stack_absent(site, spack_stack, tmp_path):
    build(site, tmp_path)
    (tmp_path / "mpi").rmdir()
    assert "is gone" in subject_of(site, spack_stack, tmp_path).absent


def test_a_damaged_manifest_is_absent_and_no_traceback(site, spack_stack, tmp_path):
    build(site, tmp_path)
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
    build(site, tmp_path)
    names = [probe.name for probe in node_probes(subject_of(site, spack_stack, tmp_path))]
    assert len(set(names)) == len(names)


def test_two_ranks_are_started_as_the_checks_do_it(site, spack_stack, tmp_path):
    program = build(site, tmp_path)
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
    build(site, tmp_path)
    world = judge_world_output(subject_of(site, spack_stack, tmp_path), output)
    assert (world.fault is None) == (fault is None)
    assert fault is None or fault in world.fault
