"""The record of a build: what is written is read back, and damage is one message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError
from fabricproof.stacks.spack.environment.externals import load_yaml
from fabricproof.stacks.spack.installation.record import Built, Package, read_built, write_built
from pretended_spack import Lab

SPEC = (
    "openmpi@5.0.11+atomics+cuda~debug build_system=autotools fabrics:=ofi,ucx "
    "romio-filesystem:=none schedulers=slurm"
)


def package(name: str = "openmpi", **changed) -> Package:
    facts = {"version": "5.0.11", "spec": SPEC, "digest": "a" * 32, "prefix": "/opt/m"}
    return Package(name=name, **{**facts, **changed})


def built(**changed) -> Built:
    facts = {
        "stack": "openmpi",
        "environment": "openmpi",
        "mpi": package(external=True),
        "programs": {"osu": package("osu", prefix="/o"), "imb": package("imb", prefix="/i")},
        "module": "stack-openmpi/5.0.11",
        "module_path": "/modules",
        "lock_digest": "0" * 64,
        "compiler": "gcc@12.2.0",
        "target": "x86_64_v3",
        "spack": "1.1.1",
        "library": "/opt/m/lib/libmpi.so.40",
        "seconds": {"lock": 0.5},
        "reused": ("a@1",),
    }
    return Built(**{**facts, **changed})


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path):
    path = tmp_path / "built" / "openmpi.json"
    write_built(path, built())
    assert read_built(path) == built()
    assert [each.name for each in path.parent.iterdir()] == ["openmpi.json"]


def test_no_record_and_one_of_another_format_are_none(tmp_path: Path):
    path = tmp_path / "openmpi.json"
    assert read_built(path) is None
    write_built(path, built())
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    assert read_built(path) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.integers(min_value=0, max_value=900))
def test_a_record_cut_anywhere_is_one_message(tmp_path: Path, length: int):
    path = tmp_path / "openmpi.json"
    write_built(path, built())
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ConfigError, match="damaged record"):
        read_built(path)


@pytest.mark.parametrize("text", ["[]", "7", '{"format": 1}', '{"format": 1, "new": 2}', "\udc80"])
def test_what_is_no_record_is_one_message(tmp_path: Path, text: str):
    path = tmp_path / "openmpi.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=r"damaged record.*openmpi|openmpi.*damaged record"):
        read_built(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"library": None}, "library: expected a text, got None"),
        ({"mpi": {}}, "mpi: expected name, got no such key"),
        ({"reused": "a@1"}, "reused: expected a list, got 'a@1'"),
        ({"seconds": {"lock": "1"}}, "seconds: lock: expected a number, got '1'"),
    ],
)
def test_a_record_of_which_one_value_is_another_is_named(
    tmp_path: Path, changes: dict[str, object], said: str
):
    path = tmp_path / "openmpi.json"
    write_built(path, built())
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ConfigError, match=said):
        read_built(path)


def test_what_an_mpi_tells_is_network_launcher_and_device():
    assert package().telling == "openmpi@5.0.11 +cuda fabrics=ofi,ucx schedulers=slurm"


def test_the_folder_of_a_suite_is_where_its_package_puts_programs():
    assert package(prefix="/o").folder_of("osu") == Path("/o/libexec/osu-micro-benchmarks")
    assert package(prefix="/i").folder_of("imb") == Path("/i/bin")


def test_a_file_that_cannot_be_read_as_yaml_has_its_place(tmp_path: Path):
    path = tmp_path / "a.yaml"
    with pytest.raises(ConfigError, match="cannot read: No such file"):
        load_yaml(path)
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_yaml(path)
    path.write_text("a: 1\nb: [\n")
    with pytest.raises(ConfigError) as caught:
        load_yaml(path)
    assert caught.value.line == 3
    path.write_text("")
    assert load_yaml(path) == {}


def test_the_module_in_front_swaps_stacks_and_loads_all_of_one(lab: Lab):
    record, _ = lab.build()
    text = (lab.layout.modulefiles / f"{record.module}.lua").read_text()
    assert record.module == "stack-openmpi/5.0.11"
    assert text.splitlines()[4:] == [
        'family("fabricproof_stack")',
        'setenv("FABRICPROOF_STACK", "openmpi")',
        f'prepend_path("MODULEPATH", "{lab.layout.modules}/openmpi/Core")',
        'load("openmpi/5.0.11")',
        'load("osu-micro-benchmarks/7.2")',
        'load("intel-mpi-benchmarks/2021.7")',
    ]


def test_a_module_of_an_older_version_does_not_stay(lab: Lab):
    old = lab.layout.modulefiles / "stack-openmpi" / "4.1.lua"
    old.parent.mkdir(parents=True)
    old.touch()
    lab.build()
    assert not old.exists()
