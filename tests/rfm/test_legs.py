"""What one check plans between two nodes: paths, programs, launcher, what is due."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from plans import due, plan_of
from pretended_build import make_built

from fabricproof.core.errors import UnavailableError
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg
from fabricproof.rfm.families.places import LocalityBenchmark
from fabricproof.rfm.families.rails import RailMatrix
from fabricproof.rfm.handover import quantity_key
from fabricproof.rfm.legs.leg import LegPlanner, choose_suite, find_program
from fabricproof.rfm.staging import digest_of_program
from fabricproof.site import Site, StackSpec, load_site
from fabricproof.stacks.environment import ROOT_VARIABLE, stacks_root
from fabricproof.stacks.spack.environment import layout_for
from fabricproof.stacks.spack.proof import Built, write_built
from fabricproof.stacks.stack import ResolvedStack, printed_name, resolve
from fabricproof.stacks.wheels import find_wheels, ports_folder
from fabricproof.verdict.value import Judgement

SITES = Path(__file__).parents[2] / "site-configs"


@pytest.fixture
def vcluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site of the virtual cluster, with stacks that are there only in name."""
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    for stack in ("openmpi5", "mpich5", "intelmpi"):
        folder = ports_folder(tmp_path / stack)
        folder.mkdir(parents=True)
        for program in ("osu_bw", "osu_latency"):
            (folder / f"{program}.py").touch()
    (tmp_path / "intelmpi" / "bin").mkdir()
    (tmp_path / "intelmpi" / "bin" / "IMB-MPI1").touch()
    return load_site(str(SITES / "vcluster"))


def _on(site: Site, stack: str | StackSpec, built: Built | None = None) -> ResolvedStack:
    """Return a stack on the first partition; ``built`` is recorded as what Spack built."""
    spec = site.stack(stack) if isinstance(stack, str) else stack
    if built is not None:
        write_built(layout_for(site.name, site.folder).built(spec.name), built)
    return resolve(site, site.partitions[0], spec)


def _plan(
    site: Site, stack: str, suite: str, program: str, net_paths: str = "each"
) -> tuple[tuple[Leg, ...], str]:
    plan = LegPlanner(
        site=site,
        partition=site.partitions[0],
        stack=resolve(site, site.partitions[0], site.stack(stack)),
        fabric="eth0",
        suite=suite,
        program=program,
    ).plan(net_paths)
    return plan.legs, plan.reason


def test_each_rail_is_a_leg_of_its_own(vcluster: Site) -> None:
    legs, reason = _plan(vcluster, "openmpi5", "osu-mpi4py", "osu_bw")
    assert reason == ""
    assert [leg.rails for leg in legs] == [("rail0",), ("rail1",)]
    for leg in legs:
        assert leg.environment["OMPI_MCA_btl_tcp_if_include"] == leg.name
        assert leg.traffic.exact is not None
        assert not leg.spread


def test_all_rails_come_beside_one_rail_and_must_share(vcluster: Site) -> None:
    legs, _ = _plan(vcluster, "openmpi5", "osu-mpi4py", "osu_bw", "all")
    assert [leg.name for leg in legs] == ["rail0", "rail0+rail1"]
    assert [leg.spread for leg in legs] == [False, True]
    assert legs[1].fabric is not None
    assert legs[1].fabric.num_rails == 2


def test_a_stack_that_cannot_use_several_rails_says_why(vcluster: Site) -> None:
    legs, reason = _plan(vcluster, "mpich5", "osu-mpi4py", "osu_bw", "all")
    assert legs == ()
    assert reason


def test_the_largest_message_of_a_bandwidth_is_due(vcluster: Site) -> None:
    legs, _ = _plan(vcluster, "openmpi5", "osu-mpi4py", "osu_bw")
    assert {leg.required for leg in legs} == {("bandwidth_1MiB",)}


def test_the_smallest_message_of_a_latency_is_due(vcluster: Site) -> None:
    legs, _ = _plan(vcluster, "openmpi5", "osu-mpi4py", "osu_latency")
    assert {leg.required for leg in legs} == {("latency_1B",)}
    assert all(leg.traffic.messages is not None for leg in legs)


def test_a_ping_pong_with_a_reference_for_its_latency_owes_both(vcluster: Site) -> None:
    legs, _ = _plan(vcluster, "mpich5", "imb", "PingPong")
    assert {leg.required for leg in legs} == {("bandwidth_1MiB", "latency_0B")}
    assert all(leg.traffic.exact is None and leg.traffic.per_repetition == (1, 1) for leg in legs)


def test_references_of_the_site_travel_with_the_leg(vcluster: Site) -> None:
    (leg, _), _ = _plan(vcluster, "openmpi5", "osu-mpi4py", "osu_latency")
    assert leg.references["latency"].unit == "us"
    assert leg.rules().references == leg.references
    assert leg.rules().path_required


def test_the_ports_stand_in_where_a_stack_has_no_c_programs(vcluster: Site) -> None:
    assert choose_suite(_on(vcluster, "openmpi5"), "osu", "osu_bw") == ("osu-mpi4py", "")


@pytest.mark.parametrize(
    ("stack", "suite", "program", "words"),
    [
        ("openmpi5", "osu", "osu_put_bw", "no port of osu_put_bw"),
        ("openmpi5", "imb", "PingPong", "another ABI"),
        ("intelmpi", "imb", "NoSuch", "no IMB binary has NoSuch"),
    ],
)
def test_what_a_stack_does_not_have_is_said(
    vcluster: Site, stack: str, suite: str, program: str, words: str
) -> None:
    chosen, reason = choose_suite(_on(vcluster, stack), suite, program)
    assert chosen is None
    assert words in reason


@pytest.mark.parametrize(
    ("stack", "suite", "program"),
    [("openmpi4", "osu", "osu_bw"), ("intelmpi", "imb", "P2P/PingPong")],
)
def test_a_stack_that_should_have_a_program_and_lost_it_is_nothing_to_skip(
    vcluster: Site, stack: str, suite: str, program: str
) -> None:
    with pytest.raises(UnavailableError, match=f"{stack} is not installed: fabricproof stack"):
        choose_suite(_on(vcluster, stack), suite, program)


def test_a_sites_own_programs_are_found_in_the_folders_of_an_osu_install(
    vcluster: Site, tmp_path: Path
) -> None:
    program = tmp_path / "osu" / "mpi" / "pt2pt" / "osu_bw"
    program.parent.mkdir(parents=True)
    program.touch()
    suites = {"osu": str(tmp_path / "osu"), "imb": "PATH"}
    spec = vcluster.stack("openmpi5")
    own = _on(vcluster, spec.model_copy(update={"provisioned": False, "suites": suites}))
    assert find_program(own, "osu", "osu_bw").argv == (str(program),)
    assert find_program(own, "imb", "P2P/PingPong").argv == ("IMB-P2P", "PingPong")
    assert find_program(own, "osu-mpi4py", "osu_bw").argv is None


def test_a_stack_may_have_a_launcher_of_its_own(vcluster: Site) -> None:
    partition, stack = vcluster.partitions[0], vcluster.stack("openmpi5")
    assert resolve(vcluster, partition, stack).launcher == "srun"
    own = stack.model_copy(update={"launcher": "mpirun"})
    assert resolve(vcluster, partition, own).launcher == "mpirun"


def test_the_local_site_is_not_started_by_slurm() -> None:
    site = load_site(str(SITES / "local"))
    for stack in site.stacks:
        assert resolve(site, site.partitions[0], stack).launcher == "mpirun"


@pytest.mark.parametrize(
    ("program", "name"), [("PingPong", "PingPong"), ("P2P/PingPong", "PingPong")]
)
def test_the_name_a_table_is_printed_under(program: str, name: str) -> None:
    assert printed_name(program) == name


def test_keys_of_the_perflog_have_no_colons(vcluster: Site) -> None:
    (leg, _), _ = _plan(vcluster, "openmpi5", "osu-mpi4py", "osu_bw")
    judgement = Judgement(
        name="bandwidth_1MiB",
        value=1.0,
        unit="MB/s",
        message_size=2**20,
        verdict=Verdict.PASS,
        reason="",
    )
    assert quantity_key(leg, judgement) == "rail0.bandwidth_1MiB"


def test_rails_in_unlike_slots_are_judged_by_the_slower_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "osu_bw").touch()
    gordon = load_site(str(Path(__file__).parents[1] / "site" / "data" / "full"))
    stack = gordon.stack("openmpi").model_copy(update={"suites": {"osu": str(tmp_path)}})
    planner = LegPlanner(
        site=gordon,
        partition=gordon.partition("compute"),
        stack=resolve(gordon, gordon.partition("compute"), stack),
        fabric="ib0",
        suite="osu",
        program="osu_bw",
    )
    plan = planner.plan("all")
    (leg, *others), reason = plan.legs, plan.reason
    assert (reason, len(others)) == ("", 1)
    slots = [each.fabric.slot.name for each in (leg, *others) if each.fabric and each.fabric.slot]
    assert slots == ["PCIe 3.0 x8", "PCIe 2.0 x8"]
    assert others[0].rules().fabric == gordon.fabric("ib0", ["mlx4_0:1", "mlx4_1:1"])


# What Spack built.


@pytest.fixture
def spack_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    return load_site(str(Path(__file__).parent / "spack_site"))


def test_the_programs_of_a_build_are_where_it_put_them(spack_site: Site, tmp_path: Path) -> None:
    stack = _on(spack_site, "good", make_built("good", tmp_path))
    assert choose_suite(stack, "osu", "osu_bw") == ("osu", "")
    found = find_program(stack, "osu", "osu_bw")
    assert found.argv is not None
    assert Path(found.argv[0]).is_file()
    assert found.argv[0].endswith("libexec/osu-micro-benchmarks/mpi/pt2pt/osu_bw")


def test_a_benchmark_of_imb_is_named_after_its_binary(spack_site: Site, tmp_path: Path) -> None:
    built = make_built("good", tmp_path)
    imb = replace(built.programs["osu"], name="imb", prefix=str(tmp_path / "imb"))
    (tmp_path / "imb" / "bin").mkdir(parents=True)
    (tmp_path / "imb" / "bin" / "IMB-P2P").touch()
    built = replace(built, programs={"imb": imb})
    argv = find_program(_on(spack_site, "good", built), "imb", "P2P/PingPong").argv
    assert argv == (str(tmp_path / "imb" / "bin" / "IMB-P2P"), "PingPong")


def test_a_stack_that_is_not_built_is_nothing_to_skip(spack_site: Site) -> None:
    with pytest.raises(UnavailableError, match="good is not built: fabricproof stack build good"):
        choose_suite(_on(spack_site, "good"), "osu", "osu_bw")


def test_a_dry_run_takes_the_suites_of_a_build_for_granted(spack_site: Site) -> None:
    stack = replace(_on(spack_site, "good"), assumed=True)
    assert choose_suite(stack, "osu", "osu_bw") == ("osu", "")
    assert find_program(stack, "imb", "PingPong").argv == ("IMB-MPI1", "PingPong")


def test_a_program_that_was_removed_from_a_build_is_nothing_to_skip(
    spack_site: Site, tmp_path: Path
) -> None:
    built = make_built("good", tmp_path)
    with pytest.raises(UnavailableError, match="osu_latency of good is gone"):
        choose_suite(_on(spack_site, "good", built), "osu", "osu_latency")


@pytest.mark.parametrize(
    ("suite", "program", "spec", "words"),
    [
        ("imb", "PingPong", "osu@7.2", "is built without imb"),
        ("osu", "osu_bw_persistent", "osu@7.0", "is built without osu_bw_persistent: osu@7.0"),
        ("imb", "Unidir_put", "imb@2021.7 ~rma", "is built without IMB-RMA: imb@2021.7 ~rma"),
        ("osu-mpi4py", "osu_bw", "osu@7.2", "is built without osu-mpi4py"),
    ],
)
def test_what_a_build_was_told_to_leave_out_is_skipped_with_that_reason(
    spack_site: Site, tmp_path: Path, suite: str, program: str, spec: str, words: str
) -> None:
    built = make_built("good", tmp_path)
    name = "imb" if "imb" in spec else "osu"
    package = replace(built.programs["osu"], spec=spec)
    built = replace(built, programs={name: package})
    chosen, reason = choose_suite(_on(spack_site, "good", built), suite, program)
    assert chosen is None
    assert words in reason


def test_a_site_may_have_programs_of_its_own_beside_a_build(
    spack_site: Site, tmp_path: Path
) -> None:
    stack = spack_site.stack("good").model_copy(update={"suites": {"imb": "PATH"}})
    stack = _on(spack_site, stack, make_built("good", tmp_path))
    assert find_program(stack, "imb", "PingPong").argv == ("IMB-MPI1", "PingPong")


def test_without_modules_a_build_is_used_as_spack_loads_it(
    spack_site: Site, tmp_path: Path
) -> None:
    spec = spack_site.stack("good").model_copy(update={"environment": {"OMPI_MCA_x": "1"}})
    stack = _on(spack_site, spec, make_built("good", tmp_path))
    assert stack.exported["PATH"] == f"{tmp_path}/mpi/bin${{PATH:+:$PATH}}"
    assert list(stack.exported)[-1] == "OMPI_MCA_x"
    assert stack.modules == ()


def test_with_modules_a_build_is_the_module_of_its_name(spack_site: Site) -> None:
    spec = spack_site.spec.model_copy(update={"modules_system": "lmod"})
    site = replace(spack_site, spec=spec)
    stack = site.stack("good").model_copy(update={"modules": ["gcc"]})
    assumed = resolve(site, site.partitions[0], stack, assumed=True)
    assert (assumed.modules, assumed.exported) == (("gcc", "stack-good"), {})


@pytest.mark.parametrize("suite", ["osu-mpi4py", "imb"])
def test_a_stack_of_wheels_has_to_load_its_own_library(vcluster: Site, suite: str) -> None:
    program = {"imb": "PingPong"}.get(suite, "osu_latency")
    legs, _ = _plan(vcluster, "intelmpi", suite, program)
    due = stacks_root() / "intelmpi" / find_wheels("intelmpi").library
    assert {leg.library for leg in legs} == {str(due)}


def test_nobody_says_which_library_is_the_systems_or_a_sites_own(vcluster: Site) -> None:
    own = vcluster.stack("mpich5").model_copy(
        update={"suites": {"osu-mpi4py": "/opt/osu"}, "provisioned": False}
    )
    system = vcluster.stack("openmpi4")
    for stack in (own, system):
        planner = replace(_planner(vcluster), stack=_on(vcluster, stack))
        assert planner.mpi_library() is None


def _planner(site: Site) -> LegPlanner:
    return LegPlanner(
        site=site,
        partition=site.partitions[0],
        stack=resolve(site, site.partitions[0], site.stack("mpich5")),
        fabric="eth0",
        suite="osu-mpi4py",
        program="osu_bw",
    )


def test_wheels_are_known_by_their_pins(vcluster: Site, tmp_path: Path) -> None:
    stack = vcluster.stack("mpich5")
    before = resolve(vcluster, vcluster.partitions[0], stack).identity("osu-mpi4py")
    pins = {"wheels": ["mpich==5.0.2", "mpi4py==4.1.2"]}
    (tmp_path / "mpich5" / "stamp.json").write_text(json.dumps({"pins": pins, "answer": "x"}))
    after = resolve(vcluster, vcluster.partitions[0], stack).identity("osu-mpi4py")
    assert (after.origin, after.mpi, after.program) == ("wheels", "mpich==5.0.2", "mpi4py==4.1.2")
    assert before.digest == ""
    assert len(after.digest) == 64
    intel = {"wheels": ["impi-rt==2021.18.1", "mpi4py==4.1.2"]}
    (tmp_path / "intelmpi" / "stamp.json").write_text(json.dumps({"pins": intel}))
    imb = resolve(vcluster, vcluster.partitions[0], stack).identity("imb")
    assert (imb.digest, imb.program) == (after.digest, "impi-rt==2021.18.1")


def test_what_the_site_declares_makes_the_identity(spack_site: Site) -> None:
    plain = spack_site.stack("plain")
    one = resolve(spack_site, spack_site.partitions[0], plain).identity("osu")
    other = resolve(
        spack_site, spack_site.partitions[0], plain.model_copy(update={"modules": ["openmpi/5"]})
    ).identity("osu")
    assert (one.origin, one.program) == ("declared", "PATH")
    assert one.digest != other.digest
    assert other.mpi == "openmpi@0 openmpi/5"


def _with_own_osu(site: Site, tmp_path: Path) -> Site:
    """The site, whose mpich5 and intelmpi run programs that the site built against the ABI."""
    (tmp_path / "abi" / "pt2pt").mkdir(parents=True)
    program = tmp_path / "abi" / "pt2pt" / "osu_bw"
    program.write_text("one build\n")
    program.chmod(0o755)
    copy = tmp_path / "site"
    shutil.copytree(site.folder, copy)
    text = (copy / "site.toml").read_text()
    for name in ("mpich5", "intelmpi"):
        line = f'modules = ["{name}"]\n'
        text = text.replace(line, f'{line}suites = {{ osu = "{program.parent}" }}\n')
    (copy / "site.toml").write_text(text)
    return load_site(str(copy))


def test_one_build_of_a_suite_serves_several_stacks_from_wheels(
    vcluster: Site, tmp_path: Path
) -> None:
    site = _with_own_osu(vcluster, tmp_path)
    digests = set()
    for name in ("mpich5", "intelmpi"):
        assert choose_suite(_on(site, name), "osu", "osu_bw") == ("osu", "")
        legs, reason = _plan(site, name, "osu", "osu_bw")
        assert reason == ""
        assert Path(legs[0].commands[0][0]).name == "osu_bw"
        digests |= {digest_of_program(leg) for leg in legs}
    assert digests == {sha256(b"one build\n").hexdigest()}


def test_one_build_of_a_suite_has_to_load_the_mpi_of_its_stack(
    vcluster: Site, tmp_path: Path
) -> None:
    site = _with_own_osu(vcluster, tmp_path)
    legs, _ = _plan(site, "intelmpi", "osu", "osu_bw")
    assert {leg.library for leg in legs} == {str(tmp_path / "intelmpi" / "lib" / "libmpi.so.12")}


def test_a_program_behind_a_script_of_ours_is_the_one_that_is_read(
    vcluster: Site, tmp_path: Path
) -> None:
    """What binds ranks, gives each node its rail or writes input is no program that measures."""
    site = _with_own_osu(vcluster, tmp_path)
    stack = site.stack("mpich5")
    planner = LegPlanner(
        site=site,
        partition=site.partitions[0],
        stack=_on(site, stack),
        fabric="eth0",
        suite="osu",
        program="osu_bw",
    )
    near = due(plan_of(LocalityBenchmark, planner))["rail0.near"]
    legs = (near, due(plan_of(RailMatrix, planner))["rail0-rail1"])
    assert {leg.commands[0][1] for leg in legs} == {"bind.sh", "each_node.sh"}
    built = sha256(b"one build\n").hexdigest()
    assert {digest_of_program(leg) for leg in legs} == {built}
    port = replace(planner, site=vcluster, suite="osu-mpi4py", stack=_on(vcluster, "openmpi5"))
    script = ports_folder(stacks_root() / "openmpi5") / "osu_bw.py"
    moved = due(plan_of(LocalityBenchmark, port))["rail0.near"]
    assert digest_of_program(moved) == sha256(script.read_bytes()).hexdigest()


def test_what_else_a_stack_from_wheels_runs_stays_its_own(vcluster: Site, tmp_path: Path) -> None:
    site = _with_own_osu(vcluster, tmp_path)
    here, there = (find_program(_on(each, "mpich5"), "imb", "PingPong")
                   for each in (site, vcluster))  # fmt: skip
    assert here == there
    (port, _), _ = _plan(vcluster, "openmpi5", "osu-mpi4py", "osu_bw")
    script = ports_folder(stacks_root() / "openmpi5") / "osu_bw.py"
    assert digest_of_program(port) == sha256(script.read_bytes()).hexdigest()


@pytest.mark.parametrize("words", [("osu_bw",), ("/nowhere/osu_bw",)])
def test_a_program_that_cannot_be_read_here_has_no_digest(
    vcluster: Site, words: tuple[str, ...]
) -> None:
    (leg, _), _ = _plan(vcluster, "openmpi5", "osu-mpi4py", "osu_bw")
    assert digest_of_program(replace(leg, commands=(words,))) == ""
    assert digest_of_program(replace(leg, commands=())) == ""


def test_programs_of_a_sites_own_are_another_identity(vcluster: Site, tmp_path: Path) -> None:
    pins = {"pins": {"wheels": ["mpich==5.0.2"]}}
    (tmp_path / "mpich5" / "stamp.json").write_text(json.dumps(pins))
    site = _with_own_osu(vcluster, tmp_path)
    own, usual = (
        resolve(each, each.partitions[0], each.stack("mpich5")).identity("osu")
        for each in (site, vcluster)
    )
    assert own.program == str(tmp_path / "abi" / "pt2pt")
    assert own.mpi == usual.mpi
    assert own.digest != usual.digest
