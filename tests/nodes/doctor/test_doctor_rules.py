"""One deliberately wrong set-up for each rule, and the healthy ones in which nothing is found."""

from dataclasses import replace

import pytest
from doctor_facts import (
    PORT,
    STACKS,
    WRONG,
    at,
    declared,
    facts,
    infiniband_node,
    machine,
    net_path,
)

from fabricproof.core.errors import ExitStatus
from fabricproof.core.measure import Verdict
from fabricproof.nodes.doctor.examination import diagnose, node_launcher
from fabricproof.nodes.doctor.facts import (
    Answer,
    LibraryFacts,
    NodeFacts,
    ProgramFacts,
    SlurmFacts,
    World,
)
from fabricproof.nodes.doctor.findings import (
    diagnosis,
    exit_status,
    heading,
    plain_lines,
    record,
    summary,
    verdict_of,
)
from fabricproof.physics import SOFT_ROCE
from fabricproof.site import FabricSpec
from fabricproof.site.scheduling import SlurmTraits
from reported_cases import make_partition


def only(findings, level, topic):
    found = at(findings, level, topic)
    assert len(found) == 1, [each.text for each in findings]
    return found[0]


@pytest.mark.parametrize("stack", STACKS)
def test_the_healthy_stacks_have_nothing_wrong(stack):
    findings = diagnose(facts(stack))
    assert at(findings, WRONG) == []
    assert [each.fact for each in at(findings, Verdict.UNJUDGED)] == ["world"]
    assert exit_status(findings) is ExitStatus.PASS
    assert at(findings, Verdict.PASS, "PMI")


def test_what_was_not_seen_is_unknown_and_never_ok():
    seen = replace(facts("mpich5"), library=LibraryFacts(), node=NodeFacts(), slurm=SlurmFacts())
    findings = diagnose(seen)
    assert at(findings, Verdict.PASS, "MPI") == []
    assert at(findings, Verdict.PASS, "rail") == []
    assert at(findings, Verdict.PASS, "path") == []
    assert len(at(findings, Verdict.UNJUDGED, "rail")) == 2


def test_a_silent_slurm_is_missing():
    seen = replace(facts("openmpi5"), slurm=SlurmFacts(fault="did not answer in time"))
    findings = diagnose(seen)
    assert at(findings, Verdict.MISSING, "PMI")
    assert exit_status(findings) is ExitStatus.UNAVAILABLE


def test_a_stack_that_is_not_there():
    findings = diagnose(facts("openmpi5", absent="it is not installed"))
    assert only(findings, WRONG, "stack").next_step == "fabricproof stack install openmpi5"
    assert exit_status(findings) is ExitStatus.UNAVAILABLE


def test_a_program_below_a_prefix_that_is_a_link_loads_the_right_mpi(tmp_path):
    library = tmp_path / "mpi-5.0.11" / "lib" / "libmpi.so.40"
    library.parent.mkdir(parents=True)
    library.touch()
    (tmp_path / "mpi").symlink_to(tmp_path / "mpi-5.0.11")
    program = ProgramFacts(path="/p/osu_bw", mpi=str(library))
    seen = replace(facts("openmpi5", prefix=str(tmp_path / "mpi")), programs=(program,))
    assert "osu_bw" in only(diagnose(seen), Verdict.PASS, "program").text


HDR = declared("mlx5_0:1", link="HDR 4x")


def infiniband(stack, library, node=None, **changes):
    family = STACKS[stack][0]
    net_paths = (net_path(family, "ib", ("mlx5_0:1",), **changes),)
    seen = facts(stack, net_paths=net_paths, fabrics=(HDR,))
    return replace(seen, library=replace(seen.library, **library), node=node or infiniband_node())


def seen_of(stack, part="", /, *, subject=None, **changes):
    """Return what is seen of a stack, with one part of it changed, or one of a part's fields."""
    seen = facts(stack, **(subject or {}))
    return replace(seen, **({part: replace(getattr(seen, part), **changes)} if part else changes))


def answered(command, output, status=0):
    return Answer(command=command, output=output, status=status)


def mpirun(stack, output, status=0):
    said = answered("mpirun --version", output, status)
    return seen_of(stack, subject={"launcher": "mpirun"}, launcher=said)


STUB = "use spack to install 'openmpi+legacylaunchers' to restore the executables.\""
OMPI = "mpirun (Open MPI) "
OVER_UCX = {"net_paths": (net_path("mpich", rails=("rail0", "rail1"), transport="ucx"),)}
RC = {"transports": (("rc_mlx5", "mlx5_0:1"),)}


def without_pml_ucx():
    seen = infiniband("openmpi5", RC, transport="ucx")
    return replace(seen, mpi=replace(seen.mpi, components=frozenset({"pml:ob1"})))


def of_program(**found):
    return seen_of("openmpi5", programs=(ProgramFacts(path="/p/osu_bw", **found),))


def in_a_world(fault):
    world = World(command="srun x", num_ranks=2, fault=fault, output="a\nb")
    return seen_of("openmpi5", world=world)


def with_pmix(version):
    seen = seen_of("openmpi5", "library", pmix=version)
    return replace(seen, mpi=replace(seen.mpi, pmix=version))


RULES = [
    (facts("openmpi5", options=("--mpi=pmix", "--mpi=pmi2")), "PMI", "its own world of one"),
    (facts("openmpi5", options=("--mpi=pmi2",)), "PMI", "remove --mpi from launcher_options of op"),
    (facts("intelmpi", options=("--mpi=pmi2", "--mpi=pmix")), "PMI", "PMI2_Job_GetId returned 14"),
    (facts("mpich5", options=("--mpi=pmix",)), "PMI", "unsupported PMI version"),
    (facts("openmpi5", options=()), "PMI", "--mpi=none"),
    (seen_of("openmpi5", "slurm", mpi_types=("none", "pmi2")), "PMI", "none, pmi2"),
    (facts("intelmpi", launch=None, launch_fault="no libpmi2.so.0"), "launch", "libpmi2-0"),
    (seen_of("intelmpi", "node", pmi_libraries=()), "PMI", "is not on vc1"),
    (mpirun("openmpi4", STUB, 2), "launcher", "stub that exits 2"),
    (mpirun("mpich5", f"{OMPI}4.1.4"), "launcher", "of openmpi, not mpich"),
    (replace(mpirun("openmpi5", f"{OMPI}5.0.11"), node=replace(facts("openmpi5").node,
             environment={})), "launcher", "root"),
    (seen_of("openmpi5", module=answered("module load x", "Lmod has detected", 1)), "module",
     "Lmod has detected"),
    (seen_of("openmpi5", module=answered("module load x", "ERROR: Unable to locate")), "module",
     "ERROR: Unable to locate"),
    (facts("openmpi5", family="mpich"), "MPI", "declared is mpich"),
    (seen_of("mpich5", library=LibraryFacts(fault="libfabric.so.1: cannot open")), "MPI",
     "libfabric.so.1"),
    (of_program(missing=("libmpi.so.40",)), "program", "osu_bw"),
    (of_program(mpi="/usr/lib/libmpi.so.40"), "program", "osu_bw"),
    (infiniband("openmpi5", {"ucx_modules": ("cma",), "verbs_in": ()}, transport="ucx"), "path",
     "fall back to TCP in silence"),
    (infiniband("mpich5", {"providers": ("tcp", "shm"), "verbs_in": ()}), "path",
     "InfiniBand would go over TCP"),
    (infiniband("mpich5", {"providers": ("tcp", "verbs")}), "path", "ulimit -l"),
    (without_pml_ucx(), "path", "no pml:ucx"),
    (seen_of("mpich5", "library", subject={"net_paths": (net_path("mpich"),)},
             version=("MPICH Version: 5.0.2", "MPICH Device: ch4:ucx")), "path", "without ofi"),
    (in_a_world("alone"), "world", ""),
]  # fmt: skip


@pytest.mark.parametrize(("seen", "topic", "words"), RULES, ids=[each[2] for each in RULES])
def test_a_wrong_set_up_is_one_error_with_its_reason(seen, topic, words):
    found = only(diagnose(seen), WRONG, topic)
    assert words in " ".join((found.text, found.means, found.next_step))


@pytest.mark.parametrize(
    ("seen", "level", "topic", "words"),
    [
        (with_pmix("4.2.2"), Verdict.PASS, "PMIx", ""),
        (with_pmix("5.0.1"), None, "PMIx", ""),
        (with_pmix("6.1.0"), Verdict.UNJUDGED, "PMIx", ""),
        (with_pmix(None), Verdict.UNJUDGED, "PMIx", ""),
        (facts("mpich5", **OVER_UCX), Verdict.UNJUDGED, "PMI", "1024"),
        (facts("openmpi5", stale="the lock is another"), Verdict.UNJUDGED, "stack", "stale"),
        (facts("openmpi5", version="5.0.3"), Verdict.UNJUDGED, "MPI", 'version = "5.0.11"'),
        (of_program(fault="no such command"), Verdict.UNJUDGED, "program", ""),
        (infiniband("mpich5", {}, infiniband_node(memlock_kib=64)),
         Verdict.UNJUDGED, "memlock", ""),
        (infiniband("mpich5", {}, infiniband_node(memlock_kib=-1)), Verdict.PASS, "memlock", ""),
        (infiniband("mpich5", {}, infiniband_node(memlock_kib=None)),
         Verdict.UNJUDGED, "memlock", ""),
        (seen_of("openmpi5", "node", environment={"UCX_TLS": "tcp", "OMPI_X": "1"}),
         Verdict.UNJUDGED, "variable", "unset UCX_TLS"),
        (in_a_world(None), Verdict.PASS, "world", ""),
    ],
)  # fmt: skip
def test_what_is_less_than_an_error_has_its_level(seen, level, topic, words):
    found = only(diagnose(seen), level, topic)
    assert words in " ".join((found.text, found.means, found.next_step))


def test_ucx_with_verbs_and_a_port():
    seen = infiniband("openmpi5", {"transports": (("rc_mlx5", "mlx5_0:1"),)}, transport="ucx")
    findings = diagnose(seen)
    assert at(findings, WRONG) == []
    assert "rc_mlx5" in only(findings, Verdict.PASS, "path").text


def test_verbs_that_no_hca_proves_are_unknown():
    bare = infiniband_node(machine=machine())
    seen = infiniband("mpich5", {"providers": ("tcp", "verbs")}, bare)
    findings = diagnose(seen)
    assert only(findings, Verdict.UNJUDGED, "path")
    assert at(findings, Verdict.PASS, "path") == []


@pytest.mark.parametrize(
    ("domains", "level"),
    [
        (("mlx5_10", "mlx5_10-rdm"), Verdict.FAIL),
        (("mlx5_11-xrc", "xmlx5_1"), Verdict.FAIL),
        (("mlx5_10", "mlx5_1"), Verdict.PASS),
        (("mlx5_1-rdm",), Verdict.PASS),
    ],
)
def test_a_device_is_offered_under_its_own_name_alone(domains, level):
    seen = facts("mpich5", net_paths=(net_path("mpich", "ib", ("mlx5_1:1",)),))
    offers = tuple(("verbs", domain) for domain in domains)
    library = replace(seen.library, providers=("tcp", "verbs"), domains=offers)
    findings = diagnose(replace(seen, library=library, node=infiniband_node()))
    assert "mlx5_1" in only(findings, level, "path").text


@pytest.mark.parametrize(
    ("domain", "level"), [("ib0", Verdict.PASS), ("hfi1_0", Verdict.PASS), ("ib1", Verdict.FAIL)]
)
def test_opx_offers_an_adapter_by_its_unit(domain, level):
    net_path_of_opa = net_path("mpich", "opa", ("hfi1_0:1",))
    seen = facts("mpich5", net_paths=(net_path_of_opa,))
    library = replace(seen.library, providers=("tcp", "opx"), domains=(("opx", domain),))
    findings = diagnose(replace(seen, library=library, node=infiniband_node()))
    assert "has opx" in only(findings, level, "path").text


def test_a_rail_that_does_not_exist():
    seen = facts("mpich5", fabrics=(declared("ib1"),))
    finding = only(diagnose(seen), WRONG, "rail")
    assert finding.text == "ib1 on vc1 does not exist: the node has mgmt0, rail0, rail1"
    assert finding.next_step == "name one of these as rail of eth0 in fabric.toml"
    elsewhere = replace(seen, node=replace(seen.node, is_node=False))
    assert "--on-node" in only(diagnose(elsewhere), Verdict.UNJUDGED, "rail").next_step


def test_a_rail_of_a_fabric_without_a_link_must_be_there():
    bare = FabricSpec.model_validate(
        {"name": "memory", "rails": [{"interface": each} for each in ("lo", "rail0", "ib1")]}
    )
    findings = diagnose(facts("mpich5", fabrics=(bare,)))
    assert "ib1 on vc1 does not exist" in only(findings, WRONG, "rail").text
    assert only(findings, Verdict.PASS, "rail").text == "rail0 on vc1 is up"
    assert len([each for each in findings if each.fact == "rail"]) == 2


@pytest.mark.parametrize(
    ("changes", "level", "words", "elsewhere"),
    [
        ({}, Verdict.PASS, "mlx5_0:1 on n1 runs at 200 Gb/s", Verdict.PASS),
        ({"link": "EDR 4x", "rate_gbit_s": 100}, Verdict.FAIL,
         "runs at 100 of 200 Gb/s: it trained to EDR 4x instead of HDR 4x", Verdict.UNJUDGED),
        ({"link": "NDR 4x", "rate_gbit_s": 400}, Verdict.FAIL, "more than the site",
         Verdict.UNJUDGED),
        ({"state": "DOWN"}, Verdict.FAIL, "is down (DOWN)", Verdict.UNJUDGED),
        ({"link": "", "rate_gbit_s": ""}, Verdict.UNJUDGED, "its rate is not known",
         Verdict.UNJUDGED),
    ],
)  # fmt: skip
def test_the_port_against_fabric_toml(changes, level, words, elsewhere):
    node = infiniband_node(machine=machine(mlx5_0=PORT | changes))
    for is_node, expected in ((True, level), (False, elsewhere)):
        findings = diagnose(infiniband("mpich5", {}, replace(node, is_node=is_node)))
        (found,) = [each for each in findings if each.fact == "rail" and words in each.text]
        assert found.verdict is expected
        assert (found.next_step == "") is (
            expected is Verdict.PASS or (expected is Verdict.UNJUDGED and is_node)
        )


@pytest.mark.parametrize(
    ("part", "spec", "mend"),
    [
        ("port mlx5_0:1", HDR, "ibstat mlx5_0; or correct rails of eth0 in fabric.toml"),
        ("interface rail0", declared("rail0", link="100GbE"),
         "ip link set rail0 up; or correct rails of eth0 in fabric.toml"),
    ],
)  # fmt: skip
def test_a_rail_that_is_down(part, spec, mend):
    node = machine(mlx5_0=PORT)
    down = replace(node, facts={**node.facts, part: {**node.facts[part], "state": "down"}})
    seen = facts("mpich5", fabrics=(spec,))
    findings = diagnose(replace(seen, node=infiniband_node(machine=down)))
    found = only(findings, WRONG, "rail")
    assert "is down (down)" in found.text
    assert found.next_step == mend


def test_what_only_preflight_judges_is_an_error_too():
    jumbo = declared("rail0", link="200MbE", protocol="tcp", mtu=9000, shaper={"burst_bytes": 3200})
    found = only(diagnose(facts("mpich5", fabrics=(jumbo,))), WRONG, "rail")
    assert found.text.startswith("rail0 on vc1 has MTU 1500 instead of 9000")
    assert found.next_step == "put the node right; or what is true of eth0 in fabric.toml"


def test_what_preflight_notes_is_a_note():
    told = declared("mlx5_0:1", link="HDR 4x", expect={"not_told": ["rate"]})
    node = infiniband_node(machine=machine(mlx5_0=PORT | {"link": "", "rate_gbit_s": ""}))
    seen = replace(facts("mpich5", fabrics=(told,)), node=node)
    assert "not judged: mlx5_0:1 on n1" in only(diagnose(seen), None, "rail").text


def rxe(**changes):
    """Return a software device as an inventory has it; its rate in sysfs is made up."""
    made_up = "2.5 Gb/sec (1X SDR)"
    plain = {"state": "ACTIVE", "kind": SOFT_ROCE, "parent": "rail0", "rate_in_sysfs": made_up}
    return {**plain, **changes}


def over(device, link: str, **changes):
    """Return what is seen of a stack over UCX, its path declared with ``link``."""
    (name,) = device
    rail = f"{name}:1"
    one = net_path("openmpi", protocol="rocev2", rails=(rail,), transport="ucx")
    seen = facts("openmpi4", net_paths=(one,), fabrics=(declared(rail, link=link),), **changes)
    offered = LibraryFacts(ucx="1.13.1", transports=(("rc_verbs", rail), ("ud_verbs", rail)))
    return replace(seen, library=offered, node=infiniband_node(machine=machine(**device)))


def device_of(findings, level):
    (found,) = [each for each in at(findings, level, "rail") if "Soft-RoCE" in each.text]
    return found


def test_a_software_device_as_it_is_declared_is_judged_by_no_rate_of_sysfs():
    for rate in ("2.5 Gb/sec (1X SDR)", "100 Gb/sec (4X EDR)"):
        findings = diagnose(over({"rxe0": rxe(rate_in_sysfs=rate)}, "Soft-RoCE 100 Mb/s"))
        assert at(findings, WRONG, "rail") == []
        found = device_of(findings, Verdict.PASS)
        assert found.text == "rxe0:1 on n1 is Soft-RoCE over rail0"
        assert "no LIDs" in found.means
        assert rate in only(findings, None, "rail").text
    # its interface went away: soft all the same
    lost = diagnose(over({"rxe0": rxe(parent="")}, "Soft-RoCE 100 Mb/s"))
    assert "over an interface that it does not say" in device_of(lost, Verdict.PASS).text


@pytest.mark.parametrize("is_node", [True, False])
@pytest.mark.parametrize("link", ["EDR 4x", "SDR 1x", "2.5GbE"])
def test_a_software_device_stands_for_no_adapter(link: str, is_node):
    seen = over({"rxe0": rxe()}, link)
    seen = replace(seen, node=replace(seen.node, is_node=is_node))
    found = only(diagnose(seen), WRONG, "rail")
    assert "rxe0:1 on n1 is Soft-RoCE over rail0" in found.text
    assert found.next_step.startswith('state link = "Soft-RoCE ..."')


def test_an_adapter_stands_for_no_software_device():
    found = only(diagnose(over({"mlx5_0": PORT}, "Soft-RoCE 100 Mb/s")), WRONG, "rail")
    assert "mlx5_0:1 on n1 is no Soft-RoCE device" in found.text
    assert found.next_step.startswith("state the link of the adapter")


def test_ucx_1_13_on_a_software_device_needs_its_gid_check_off():
    check = {"UCX_UD_VERBS_ETH_DGID_CHECK": "n"}
    bad = over({"rxe0": rxe()}, "Soft-RoCE 100 Mb/s")
    if "UCX_UD_VERBS_ETH_DGID_CHECK" in bad.subject.net_paths[0].environment:
        bare = replace(bad.subject.net_paths[0], environment={})
        bad = replace(bad, subject=replace(bad.subject, net_paths=(bare,)))
    found = [each for each in at(diagnose(bad), WRONG, "path") if "GID" in each.text]
    assert len(found) == 1
    assert 'UCX_UD_VERBS_ETH_DGID_CHECK = "n"' in found[0].next_step
    told = replace(bad, subject=replace(bad.subject, settings=check))
    newer = replace(bad, library=replace(bad.library, ucx="1.17.0"))
    hard = over({"mlx5_0": PORT}, "HDR 4x")
    for fine in (told, newer, hard):
        assert not [each for each in diagnose(fine) if "checks the GID" in each.text]


def test_a_finding_of_something_wrong_says_what_it_means_and_mends():
    with pytest.raises(AssertionError):
        diagnosis(Verdict.FAIL, "x", "y")


def test_nothing_found_is_no_success():
    assert verdict_of([]) is Verdict.UNJUDGED
    assert exit_status([]) is ExitStatus.UNAVAILABLE


def test_what_is_shown_holds_every_error_and_its_mend():
    seen = facts("openmpi5", options=("--mpi=pmi2",))
    findings = diagnose(seen)
    text = " ".join(" ".join(plain_lines(findings)).split())
    error = only(findings, WRONG, "PMI")
    assert error.text in text
    assert error.next_step in text
    assert "vc1" in heading(seen)
    assert "1 FAIL" in summary(findings)
    assert record(seen, findings)["status"] == 78


@pytest.mark.parametrize("words", [["--export=NONE"], ["--export", "NONE"], ["--export NONE"]])
def test_a_probe_keeps_its_variables_where_the_site_exports_none(words):
    """EESSI's configurations submit with --export=NONE: a step started so has no module loaded."""
    declared = make_partition(
        name="compute", scheduler="slurm", access=["--partition=compute", *words, "--exclusive"]
    )
    command = node_launcher(facts("openmpi5", partition=declared).subject, 5)
    assert command[:4] == ["srun", "--partition=compute", "--exclusive", "-N1"]


def _bare(scheduler, max_jobs):
    """Facts of a Slurm that keeps no accounts and whose jobs share nodes."""
    declared = make_partition(
        name="compute",
        scheduler=scheduler,
        access=["--partition=compute", "--exclusive"],
        max_jobs=max_jobs,
    )
    seen = facts("openmpi5", partition=declared)
    traits = SlurmTraits(accounting="(null)", oversubscribe={"compute": "FORCE:4"})
    return diagnose(replace(seen, slurm=replace(seen.slurm, traits=traits)))


def test_a_slurm_that_cannot_be_measured_on_is_told_before_any_job():
    accounts, shared = at(_bare("slurm", 8), WRONG, "scheduler")
    assert accounts.next_step == 'set scheduler = "squeue" in site.toml'
    assert "max_jobs = 1" in shared.next_step
    assert "our own jobs" in shared.means


def test_what_only_others_can_do_to_us_is_a_warning():
    findings = _bare("squeue", 1)
    assert at(findings, WRONG, "scheduler") == []
    assert "jobs of others" in only(findings, Verdict.UNJUDGED, "scheduler").means
