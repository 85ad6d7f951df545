"""What a site may say of a stack, beside where it is: left out, connections, PMI, modules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fabricproof.physics import bound
from fabricproof.rfm.legs.leg import choose_suite
from fabricproof.rfm.settings import reframe_configuration
from fabricproof.site import load_site
from fabricproof.site.schema import StackSpec
from fabricproof.stacks.stack import ResolvedStack, resolve

SITES = Path(__file__).parents[2] / "site-configs"


def _stack(**facts: object) -> StackSpec:
    return StackSpec.model_validate({"name": "one", "version": "5", "family": "openmpi", **facts})


def _resolved(**facts: object) -> ResolvedStack:
    site = load_site(str(SITES / "vcluster"))
    return resolve(site, site.partitions[0], _stack(**facts))


def test_a_program_that_says_nothing_is_skipped_with_the_sites_reason() -> None:
    stack = _resolved(suites={"osu": "PATH"}, left_out={"osu_put_latency": "no wire in it"})
    assert choose_suite(stack, "osu", "osu_put_latency") == (
        None,
        "left out by the site: no wire in it",
    )
    assert choose_suite(stack, "osu", "osu_bw") == ("osu", "")


def test_a_stack_without_a_suite_says_how_to_come_to_one_that_has_it() -> None:
    reason = choose_suite(_resolved(), "osu", "osu_bw")[1]
    ways = "stacks that have it: fabricproof stack install (wheels), stack build (Spack)"
    assert reason == f"stack one has no suite osu; {ways}"


def test_a_benchmark_of_imb_is_left_out_by_the_name_it_prints() -> None:
    stack = _resolved(suites={"imb": "PATH"}, left_out={"PingPong": "why"})
    assert choose_suite(stack, "imb", "P2P/PingPong")[1] == "left out by the site: why"


@pytest.mark.parametrize(
    ("family", "links", "connections"),
    [("openmpi", "4", 4), ("openmpi", "many", 1), ("mpich", "4", 1)],
)
def test_connections_are_open_mpis_links(family: str, links: str, connections: int) -> None:
    stack = _stack(family=family, environment={"OMPI_MCA_btl_tcp_links": links})
    assert stack.connections == connections
    assert _stack().connections == 1


def test_a_limit_of_one_flow_counts_for_each_connection() -> None:
    site = load_site(str(SITES / "cloud-efa"))
    limited = next(spec.name for spec in site.fabrics if spec.flow_limit_gbit_s)
    one, two = (bound(site.fabric(limited, num_flows=number)) for number in (1, 2))
    assert two.high_mb_s == pytest.approx(2 * one.high_mb_s)


@pytest.mark.parametrize(
    ("facts", "speaks"),
    [
        ({"family": "mpich", "provisioned": True}, True),
        ({"family": "mpich", "pmi": "pmi1"}, True),
        ({"family": "mpich"}, False),
        ({"family": "openmpi", "provisioned": True}, False),
    ],
)
def test_who_speaks_pmi1_alone(facts: dict[str, object], speaks: bool) -> None:
    assert _stack(**facts).speaks_pmi1 is speaks


def test_the_sites_word_on_pmi_reaches_the_ranks() -> None:
    library = {"I_MPI_PMI_LIBRARY": "/slurm/lib/libpmi.so"}
    intel = _resolved(family="intelmpi", environment=library)
    assert intel.launch is not None
    assert (intel.launch.environment, intel.settings) == ({}, library)
    assert _resolved(family="mpich", pmi="pmix").options == ("--mpi=pmix",)
    assert _resolved(pmi="default").options == ()
    last = _resolved(family="mpich", launcher_options=["--mpi=pmi2 --label"])
    assert last.options[-2:] == ("--mpi=pmi2", "--label")


def _defining_line(tmp_path: Path, init: Path | None) -> str:
    site = load_site(str(SITES / "vcluster"))
    if init is not None:
        object.__setattr__(site.spec, "modules_init", str(init))
    (system,) = reframe_configuration(site)["systems"]
    return str(system["partitions"][0]["prepare_cmds"][1])


def test_module_is_defined_by_the_file_that_the_site_names(tmp_path: Path) -> None:
    init = tmp_path / "a b" / "init.bash"
    init.parent.mkdir()
    init.write_text("module() { echo ours; }\n")
    line = _defining_line(tmp_path, init)
    done = subprocess.run(
        ["bash", "--norc", "-euc", f"{line}; module"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == "ours\n", done.stderr


def test_a_module_that_is_defined_already_stays(tmp_path: Path) -> None:
    line = _defining_line(tmp_path, None)
    script = f"module() {{ echo mine; }}; {line}; module"
    done = subprocess.run(
        ["bash", "--norc", "-euc", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "mine\n"


def test_a_machine_without_modules_ends_where_one_is_loaded_not_before(tmp_path: Path) -> None:
    line = _defining_line(tmp_path, None).replace("/usr/", "/no/").replace("/etc/", "/no/")
    done = subprocess.run(
        ["bash", "--norc", "-euc", f"{line}; echo on"], capture_output=True, check=True
    )
    assert done.stdout == b"on\n"
