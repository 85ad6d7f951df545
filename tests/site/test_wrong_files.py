"""What a site may not say: one line with file, line and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edited_sites import edit

from fabricproof.core.errors import ConfigError, ExitStatus, InputMissingError
from fabricproof.job.run.start import session_environment, workplace
from fabricproof.rfm.settings import reframe_configuration
from fabricproof.site import load_site

SITE, FABRIC, REFERENCES = "site.toml", "fabric.toml", "references.toml"
STACK = 'version = "1.6"\n'
OSU = 'suites = { osu = "/opt/osu" }\n'
BOX = '[stacks.container]\nruntime = "%s"\nimage = "/i.sif"\n'
ROCE = 'link = "100GbE"\nprotocol = "rocev2"\nmtu = 4096\n'

#: file, the text of the full site, what stands there instead, where the line is, what is expected
WRONG = [
    (SITE, 'name = "compute"', 'name = "com pute"', "com pute", "as ReFrame takes it"),
    (SITE, 'name = "openmpi"', 'name = "openmpi-4.1"', "-4.1", "as ReFrame takes it"),
    (SITE, 'name = "compute"\n', "", "[[partitions]]", "missing key"),
    (SITE, "leg_seconds", "leg_second", "leg_second", "'leg_seconds' or"),
    (SITE, "leg_seconds = 1.5", "leg_seconds = 1.5.2", "1.5.2", "not valid TOML"),
    (SITE, "tolerance = 0.08", "tolerance = 1.0", "1.0", "less than 1"),
    (SITE, "max_jobs = 4", 'same_node = "yes"', "yes", "a valid boolean"),
    (SITE, "max_jobs = 4", 'max_jobs = "many"', "many", "a valid integer"),
    (SITE, "max_jobs = 4", "ranks_per_node = [2, 2]", "[2, 2]", "each number once"),
    (SITE, 'name = "openmpi"', 'name = "mvapich2"', 'name = "mvapich2"', "unique names"),
    (SITE, '"eth0"]', '"eth1"]', "eth1", "'eth0' perhaps"),
    (SITE, '"openmpi"]', '"openmpl"]', "openmpl", "'openmpi' perhaps"),
    (SITE, 'family = "openmpi"', 'family = "openmp"', "openmp", "'openmpi', 'mpich'"),
    (SITE, '"mpiexec"', '"mpirunn"', "mpirunn", "'srun', 'mpirun'"),
    (SITE, "[reframe]", "[refrain]", "refrain", "'reframe' perhaps"),
    (SITE, STACK, f'{STACK}mpi_spec = "openmpi@4.1"\n', "mpi_spec", 'spack = "FOLDER"'),
    (SITE, STACK, f'{STACK}provisioned = ""\n', "provisioned", ""),
    (SITE, STACK, f'{STACK}transport = "rdma"\n', "rdma", "'ucx', 'ucx-rc'"),
    (SITE, '"login1"', '"login["', "login[", "regular expression"),
    (SITE, '"login1"', '"login1 "', "login1 ", "without blanks"),
    (SITE, 'name = "gordon"', 'name = "gordon"\nbaseline = "b"', "baseline", "baselines/: none"),
    # Keys of ReFrame: its own, and not those that the site file states.
    (SITE, "max_jobs = 4", "reframe = { feature = [] }", "feature", "'features' perhaps"),
    (SITE, "max_jobs = 4", "reframe = { environs = [] }", "environs", "may not set environs"),
    (SITE, STACK, f"{STACK}reframe = {{ cx = 1 }}\n", "cx", "'cxx' perhaps"),
    # What a shell, a launcher or a header could not take as it stands.
    *(
        (SITE, STACK, f"{STACK}{text}\n", text, "")
        for text in (
            *('environment = { "A B" = "x" }', 'environment = { "1A" = "x" }'),
            *('environment = { "$(touch X)" = "x" }', 'environment = { A = "a\\ntouch X" }'),
            *('environment = { A = "a\\u0000" }', 'modules = ["gcc openmpi"]'),
            *('launcher_options = ["--a\\ntouch X"]', 'launcher_options = ["--a=\'b"]'),
            *('launcher_options = [" "]', 'left_out = { " osu_bibw" = "why" }'),
            *('suites = { "osu " = "PATH" }', 'suites = { osu = "PATH " }'),
        )
    ),
    (SITE, '"--partition=compute"', '"-p x\\ntouch X"', "access", "options on one line"),
    (SITE, '"/opt/modules"', '"/opt\\ntouch X"', "module_paths", "no control characters"),
    # Containers.
    (SITE, STACK, STACK + OSU + BOX % "ch-run -w", "ch-run", "{image}"),
    (SITE, STACK, STACK + BOX % "apptainer", "image", "FOLDER IN THE IMAGE"),
    (SITE, STACK, f"{STACK}provisioned = true\n" + BOX % "apptainer", "image", "no provisioned"),
    (SITE, STACK, f"{STACK}{OSU}launcher = 'mpirun'\n" + BOX % "pyxis", "pyxis", "srun"),
    (
        *(SITE, STACK, STACK + OSU + BOX % "ch-run {image} --" + 'binds = ["/opt"]\n'),
        *("binds", "in the command of runtime"),
    ),
    # Transports: that no family has, or that no fabric of the partition speaks.
    (SITE, 'family = "mvapich"', 'family = "intelmpi"\ntransport = "ucx"', "ucx", "libfabric"),
    (SITE, 'family = "mvapich"', 'family = "mpich"\ntransport = "native"', "native", "ucx"),
    # Families: MVAPICH 2 is another than 3 and 4, and Spack builds only those of its recipes.
    (SITE, 'version = "1.9"', 'version = "2.3.7"', "mvapich", "mvapich2"),
    # Fabrics.
    (FABRIC, "= 5.0", "= inf", "inf", "a finite number"),
    (FABRIC, "payload_bytes = 256", "payload_bytes = 100", "= 100", "128, 256"),
    (FABRIC, "mtu = 2048", "mtu = 1500", "1500", "2048"),
    (FABRIC, '"QDR 4x"', '"QDX 4x"', "QDX", "InfiniBand SDR"),
    (FABRIC, '"QDR 4x"', '"QDR 4x "', "QDR", "without blanks"),
    (FABRIC, '"ib"', '"token ring"', "token ring", "one of ib"),
    (FABRIC, '"3.0x8"', '"3.0x7"', "3.0x7", "a generation of"),
    (FABRIC, '[{ interface = "eth0" }]', "[]", "[]", "at least 1"),
    (FABRIC, '"mlx4_1:1", pcie', '"mlx4_1:1", pci', "rails", "'pcie' perhaps"),
    (FABRIC, '"mlx4_1:1"', '"mlx4_0:1"', "rails", "each name"),
    (FABRIC, '"mlx4_1:1"', '"mlx4_1:1", other_names = ["mlx4_0:1"]', "rails", "each name"),
    (FABRIC, '"mlx4_1:1"', '"mlx4_1:1", other_names = ["ib1"]', "rails", "DEVICE:PORT"),
    (FABRIC, '"mlx4_1:1"', '"mlx4_1:1", pci_address = "81:00"', "rails", "0000:81:00.0"),
    (FABRIC, '"mlx4_1:1"', '"mlx4_1:1", link = "SDR 3x"', "rails", "InfiniBand"),
    (FABRIC, '"mlx4_0:1"', '"mlx4_0:1,mlx4_2:1"', "rails", "one interface or port"),
    # References.
    (REFERENCES, '"3.8 GB/s"', '"3.8"', "3.8", "a number and a unit"),
    (REFERENCES, '"1.4 us"', '"1.4 GB/s"', "1.4 GB/s", "a time for latency"),
    (REFERENCES, "0.05", "1.5", "1.5", "below 1"),
    (REFERENCES, '"latency_8B"', '"latencies"', "latencies", "check = NAME"),
    (REFERENCES, 'fabric = "ib0"', "", "[[references]]", "missing key 'fabric'"),
    (REFERENCES, "num_rails = 2", 'better = "less"', "better", "of a fabric"),
    (REFERENCES, 'fabric = "ib0"', 'check = "Own"', "[[references]]", "missing key 'better'"),
    (REFERENCES, "fabric", 'check = "Own"\nbetter = "more"\nfabric', "fabric", "your own check"),
    (REFERENCES, 'origin = "acceptance of 2012"\n', "", "[[references]]", "missing key"),
    (REFERENCES, 'fabric = "ib0"', 'fabric = "ib1"', "ib1", "'ib0' perhaps"),
    (REFERENCES, '"mvapich2"', '"mvapich3"', "mvapich3", "'mvapich2' perhaps"),
    (REFERENCES, 'origin = "acc', 'stack_digest = "latest"\norigin = "acc', "latest", "[0-9a-f]"),
    (REFERENCES, 'program = "osu_put_bw"\n', "", None, "one value"),
    (REFERENCES, "num_rails = 2", "num_rails = 3", "num_rails", "one of 1, 2"),
    (REFERENCES, "num_rails = 2", "num_nodes = 3", "num_nodes", "one of 2"),
    (REFERENCES, "num_rails = 2", "ranks_per_node = 7", "ranks_per_node", "one of 1"),
]


@pytest.mark.parametrize(("file", "old", "new", "at", "expected"), WRONG)
def test_a_wrong_file_is_one_line_with_its_place(
    tmp_path: Path, file: str, old: str, new: str, at: str | None, expected: str
) -> None:
    folder = edit(tmp_path, file, old, new)
    with pytest.raises(ConfigError) as caught:
        load_site(str(folder))
    error, lines = caught.value, (folder / file).read_text().splitlines()
    assert error.source == str(folder / file)
    assert error.line is not None
    assert at is None or at in lines[error.line - 1]
    assert expected in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("facts", "rail", "expected"),
    [
        *(
            (facts, rail, "DEVICE:PORT as 'mlx5_0:1'")
            for facts in ('link = "rxe 1G"', ROCE, 'link = "EDR 4x"')
            for rail in ("rxe1", "rxe1:", ":1", "rxe1:0", "rxe1:1:1", "rxe1:one")
        ),
        ('link = "Slingshot 200"', "hsn0", "as 'cxi0'"),
        ('link = "Slingshot 200"', "cxi0:1", "as 'cxi0'"),
        ('link = "Omni-Path 100"', "hfi1_0", "hfi1_UNIT:PORT"),
        ('link = "CN5000"', "opap24s0:1", "hfi1_UNIT:PORT"),
        ('link = "EFA 100"', "rdmap0s6", "DEVICE:PORT as 'rdmap0s6:1'"),
        ('link = "rxe 1G"', "rxe1:1 ", "one interface or port"),
        ('link = "Soft-RoCE 500 kb/s"', "rxe1:1", "1 Mb/s to 400 Gb/s"),
        (ROCE, "mlx5_bond_0:1", None),
        ('link = "EDR 4x"\nprotocol = "ipoib"', "ib0", None),
        ('link = "25GbE"', "bond0.100", None),
        ('link = "Omni-Path 100"', "hfi1_0:1", None),
        ('link = "Slingshot 200"', "cxi0", None),
        ('link = "Slingshot 200"\nprotocol = "tcp"', "hsn0", None),
        ('link = "EFA 100"', "rdmap0s6:1", None),
        ('protocol = "rocev2"', "lo", None),
    ],
)
def test_a_rail_has_the_name_that_its_library_takes(
    tmp_path: Path, facts: str, rail: str, expected: str | None
) -> None:
    old = 'link = "10GbE"\nrails = [{ interface = "eth0" }]\nflow_limit_gbit_s = 5.0\n'
    folder = edit(tmp_path, FABRIC, old, f'{facts}\nrails = [{{ interface = "{rail}" }}]\n')
    if expected is None:
        assert load_site(str(folder)).fabric_spec("eth0").rails[0].interface == rail
        return
    with pytest.raises(ConfigError) as caught:
        load_site(str(folder))
    assert expected in str(caught.value.expected)


def test_one_build_by_two_digests_is_one_build(tmp_path: Path) -> None:
    folder = edit(tmp_path, REFERENCES, 'program = "osu_put_bw"', 'stack_digest = "0a1b2c3"')
    text = (folder / REFERENCES).read_text()
    first = text.replace('fabric = "ib0"', 'fabric = "ib0"\nstack_digest = "0a1b2c3d4e5f"', 1)
    (folder / REFERENCES).write_text(first)
    with pytest.raises(ConfigError, match="a second value of 'bandwidth'"):
        load_site(str(folder))


@pytest.mark.parametrize(
    "text", ["name = 1" + "0" * 5000, "name = " + "[" * 5000, "name = " + "{a=" * 2000]
)
def test_what_python_cannot_hold_is_no_toml(text: str, tmp_path: Path) -> None:
    (edit(tmp_path, SITE, "", "") / SITE).write_text(text)
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_site(str(tmp_path))


def test_text_in_another_encoding_has_its_line(tmp_path: Path) -> None:
    (edit(tmp_path, SITE, "", "") / FABRIC).write_bytes(b"# one\n" * 5000 + b'name = "\xe9"\n')
    with pytest.raises(ConfigError, match=r"fabric\.toml:5001: not UTF-8 text"):
        load_site(str(tmp_path))


@pytest.mark.parametrize("name", [SITE, FABRIC])
def test_a_file_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    (edit(tmp_path, SITE, "", "") / name).unlink()
    with pytest.raises(InputMissingError) as refused:
        load_site(str(tmp_path))
    assert refused.value.exit_status == ExitStatus.NO_INPUT


def test_a_stack_that_the_catalogue_lacks_is_refused_wherever_a_session_begins(
    tmp_path: Path, fabricproof: Callable[..., Any]
) -> None:
    site = load_site(str(edit(tmp_path, SITE, STACK, f'{STACK}provisioned = "nope"\n')))
    for ask in (
        reframe_configuration,
        lambda each: session_environment(each, workplace(tmp_path), "run"),
    ):
        with pytest.raises(ConfigError, match=r"site\.toml:40: stack 'openmpi'") as refused:
            ask(site)
        assert refused.value.got == "'nope'"
    answer = fabricproof("site", "check", tmp_path)
    assert answer.status == ExitStatus.CONFIG
