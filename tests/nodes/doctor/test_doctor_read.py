"""What each tool printed, read."""

import json
import subprocess
from dataclasses import replace

import pytest
from doctor_facts import LOOKS, facts, looked, recorded, subject

from fabricproof.nodes.doctor.facts import (
    Answer,
    effective_type,
    family_of,
    read_asker,
    read_ldd,
    read_look,
    read_slurm,
    version_of,
)
from fabricproof.nodes.doctor.probes import Probe, node_probes, read_answers, render_script
from fabricproof.nodes.inventory.read import read_machine


def answer(output: str, status: int = 0) -> Answer:
    return Answer(command="x", output=output, status=status)


def test_slurm_lists_its_plugins_and_its_default():
    slurm = read_slurm(recorded("slurm-22.05.mpi-list.txt"), recorded("slurm-22.05.config.txt"))
    assert slurm.mpi_types == ("pmix", "none", "cray_shasta", "pmi2")
    assert (slurm.pmix_versions, slurm.mpi_default) == ((4,), "none")


def test_the_list_of_older_slurms():
    text = "srun: MPI types are...\nsrun: pmix_v3\nsrun: pmi2\nsrun: none\n"
    slurm = read_slurm(answer(text), answer("MpiDefault = pmi2"))
    assert (slurm.mpi_types, slurm.pmix_versions) == (("pmix_v3", "pmi2", "none"), (3,))


def test_a_silent_slurm_is_a_fault_and_not_a_slurm_without_plugins():
    slurm = read_slurm(answer("", 124), answer("", 124))
    assert slurm.mpi_types is None
    assert slurm.fault == "did not answer in time"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "none"),
        (("--mpi=pmi2",), "pmi2"),
        (("--mpi=pmi2", "--mpi=pmix"), "pmix"),
        (("--mpi", "pmix_v4", "-v"), "pmix_v4"),
    ],
)
def test_the_last_mpi_option_wins(options, expected):
    assert effective_type(options, "none") == expected


@pytest.mark.parametrize(
    ("stack", "family", "version", "ucx", "fabric"),
    [
        ("openmpi5", "openmpi", "5.0.11", "1.20.1", "2.5"),
        ("openmpi4", "openmpi", "4.1.4", "1.13.1", "1.17"),
        ("mpich5", "mpich", "5.0.2", "1.20.1", "2.5"),
        ("intelmpi", "intelmpi", "2021.18.1", "1.13.1", "2.4"),
    ],
)
def test_the_library_says_what_it_is(stack, family, version, ucx, fabric):
    library = facts(stack).library
    text = "\n".join(library.version)
    assert (family_of(text), version_of(text)) == (family, version)
    assert (library.ucx, library.libfabric) == (ucx, fabric)
    assert ("tcp", "rail0") in library.transports


def test_an_answer_that_was_cut_off_is_a_fault():
    library = read_asker(answer("version: Open MPI v5.0.11\n", 124))
    assert library.fault == "did not answer in time"
    assert library.transports is None
    assert library.providers is None


def test_ldd_tells_the_mpi_and_what_is_missing():
    text = (
        "\tlibmpi.so.40 => /opt/lib/libmpi.so.40 (0x7f)\n\tlibmpi_cxx.so.40 => not found\n"
        "\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n"
    )
    program = read_ldd("/p", answer(text))
    assert (program.mpi, program.missing) == ("/opt/lib/libmpi.so.40", ("libmpi_cxx.so.40",))
    assert read_ldd("/p", answer("not a dynamic executable", 1)).fault


RAILS = ("rail0", "rail1")


def test_the_machine_as_an_inventory_has_it():
    whole = (LOOKS / "virtual-cluster.json").read_text(encoding="utf-8")
    machine = read_look(looked("virtual-cluster"), "vc1", RAILS)
    assert machine == read_machine(whole, "vc1")
    assert machine.facts["interface rail0"]["shaped_to_mbit_s"] == 199


def test_the_look_goes_through_the_script_whole():
    (look,) = [each for each in node_probes(subject("mpich5")) if each.name == "look"]
    done = subprocess.run(
        ["bash", "-s"], input=render_script([look]), capture_output=True, text=True, check=True
    )
    said = read_answers(done.stdout, {})["look"]
    assert said.status == 0
    assert "node" in read_look(said, "here", ()).facts


@pytest.mark.parametrize("said", [None, answer("", 127), answer("sh: cannot fork", 2)])
def test_a_look_that_left_nothing_is_none(said):
    assert read_look(said, "vc1", RAILS) is None


def test_without_ip_the_rails_are_seen_all_the_same():
    whole = looked("virtual-cluster")
    raw = json.loads(whole.output)
    del raw["tools"]["ip -o -4 addr show"]
    said = replace(whole, output=json.dumps(raw | {"absent": ["ip"]}))
    machine = read_look(said, "vc1", RAILS)
    assert {"interface rail0", "interface rail1"} <= set(machine.facts)
    assert "interface mgmt0" not in machine.facts
    assert not [each for each in machine.troubles if each.tool == "ip"]


def test_a_script_asks_in_the_environment_and_its_answers_come_back():
    script = render_script(
        [
            Probe(name="one", command='echo "$A $B"'),
            Probe(name="two", command="exit 3"),
            Probe(name="three", command="sleep 30"),
        ],
        subject("openmpi5", settings={}, prepend={"B": "/front"}),
        settings={"A": "it's"},
        probe_seconds=1,
    )
    done = subprocess.run(
        ["bash", "-s"], input=script, env={"PATH": "/usr/bin:/bin", "B": "/back"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    answers = read_answers(done.stdout, {})
    assert answers["one"].output == "it's /front:/back"
    assert [answers[name].status for name in ("one", "two", "three")] == [0, 3, 124]


def test_an_answer_without_its_end_counts_as_timed_out():
    answers = read_answers("@@fabricproof begin asker\nversion: x\n", {})
    assert answers["asker"].status == 124
