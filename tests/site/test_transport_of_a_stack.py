"""A stack's own transport, and its name in the catalogue: what a site may say, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.site import Site, load_site

SITE = """\
[site]
name = "s"

[[partitions]]
name = "p"
fabrics = [{fabrics}]
stacks = ["one"]

[[stacks]]
name = "one"
version = "4.1"
{stack}
"""

FABRIC = """\
[[fabrics]]
name = "roce0"
link = "100GbE"
protocol = "rocev2"
mtu = 4096
rails = [{ interface = "mlx5_0:1" }]

[[fabrics]]
name = "eth0"
link = "100GbE"
mtu = 1500
rails = [{ interface = "eth0" }]

[[fabrics]]
name = "memory"
rails = [{ interface = "lo" }]
"""


def _site(folder: Path, stack: str, *fabrics: str) -> Site:
    named = ", ".join(f'"{name}"' for name in fabrics or ("roce0",))
    (folder / "site.toml").write_text(SITE.format(stack=stack, fabrics=named))
    (folder / "fabric.toml").write_text(FABRIC)
    return load_site(str(folder))


@pytest.mark.parametrize("transport", ["ucx", "ucx-rc", "ucx-ud", "libfabric"])
def test_one_mpi_over_each_of_its_transports(tmp_path: Path, transport: str) -> None:
    site = _site(tmp_path, f'family = "openmpi"\ntransport = "{transport}"')
    assert site.stack("one").transport == transport


def test_one_fabric_of_several_is_enough(tmp_path: Path) -> None:
    facts = 'family = "openmpi"\ntransport = "ucx-ud"'
    assert _site(tmp_path, facts, "eth0", "roce0").stack("one").transport == "ucx-ud"


@pytest.mark.parametrize(
    ("facts", "fabrics", "said"),
    [
        (
            'family = "intelmpi"\ntransport = "ucx"',
            ("roce0",),
            "site.toml:13: stack 'one': intelmpi has no such transport: expected one of libfabric",
        ),
        (
            'family = "openmpi"\ntransport = "ucx-ud"',
            ("eth0", "memory"),
            "by its transport: expected one of libfabric, native, ucx over tcp, got 'ucx-ud'",
        ),
        (
            'family = "openmpi"\ntransport = "native"',
            ("roce0",),
            "expected one of libfabric, ucx, ucx-rc, ucx-ud over rocev2, got 'native'",
        ),
        ('family = "openmpi"\ntransport = "rdma"', ("roce0",), "wrong value of"),
    ],
)
def test_what_could_never_be_measured_is_refused(
    tmp_path: Path, facts: str, fabrics: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        _site(tmp_path, facts, *fabrics)
    assert said in str(refused.value)
    assert refused.value.line == 13


def test_a_fabrics_transport_is_one_of_them_too(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(SITE.format(stack='family = "openmpi"', fabrics='"roce0"'))
    (tmp_path / "fabric.toml").write_text(FABRIC.replace("mtu = 4096", 'transport = "UCX"'))
    with pytest.raises(ConfigError, match="transport"):
        load_site(str(tmp_path))


@pytest.mark.parametrize(
    ("said", "name"), [("true", "one"), ('"openmpi4"', "openmpi4"), ("false", "one")]
)
def test_the_catalogues_name_of_a_stack(tmp_path: Path, said: str, name: str) -> None:
    stack = _site(tmp_path, f'family = "openmpi"\nprovisioned = {said}').stack("one")
    assert stack.installed_as == name
    assert bool(stack.provisioned) is (said != "false")


def test_a_catalogues_name_is_a_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="provisioned"):
        _site(tmp_path, 'family = "openmpi"\nprovisioned = ""')


def test_mpichs_wheel_speaks_pmi1_by_whatever_name(tmp_path: Path) -> None:
    stack = _site(tmp_path, 'family = "mpich"\nprovisioned = "mpich5"').stack("one")
    assert stack.speaks_pmi1 is True
