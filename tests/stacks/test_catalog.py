"""The catalogue of stacks: what is shipped loads, what is damaged is refused."""

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.stacks.catalog import ROOT_VARIABLE, load_catalog, stacks_root
from fabricproof.stacks.family import FAMILIES


def test_shipped_catalogue_has_three_wheel_stacks_and_the_distribution_one():
    stacks = load_catalog().stacks
    assert list(stacks) == ["openmpi5", "mpich5", "intelmpi", "openmpi4"]
    assert [name for name, stack in stacks.items() if stack.is_system] == ["openmpi4"]
    assert {stack.family for stack in stacks.values()} <= set(FAMILIES)


def test_every_wheel_is_pinned_to_one_version():
    catalog = load_catalog()
    wheels = [wheel for stack in catalog.stacks.values() for wheel in stack.wheels]
    assert all("==" in wheel for wheel in [*wheels, catalog.mpi4py.wheel])


def test_ports_come_from_the_archive_of_the_same_mpi4py():
    mpi4py = load_catalog().mpi4py
    version = mpi4py.wheel.partition("==")[2]
    assert f"mpi4py-{version}-ports.zip" == mpi4py.ports


def test_no_names_select_every_stack_and_an_unknown_one_is_refused():
    catalog = load_catalog()
    assert list(catalog.stacks.values()) == catalog.select(())
    assert [stack.name for stack in catalog.select(("mpich5",))] == ["mpich5"]
    with pytest.raises(ConfigError, match=r"unknown stack.*openmpi5.*'mpi6'"):
        catalog.select(("mpi6",))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[mpi4py", "not a catalogue"),
        ("", "not a catalogue"),
        (
            '[mpi4py]\nwheel="a"\nports="b"\n[stacks.x]\nlabel="X"\n',
            "'x' lacks a key: expected family",
        ),
    ],
)
def test_a_damaged_catalogue_is_named_with_what_it_lacks(tmp_path: Path, text: str, complaint: str):
    path = tmp_path / "stacks.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as refusal:
        load_catalog(path)
    assert str(path) in str(refusal.value)


def test_the_environment_moves_the_stacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    assert tmp_path == stacks_root()
    monkeypatch.delenv(ROOT_VARIABLE)
    assert stacks_root().name == ".stacks"
