"""Names that nothing answers to are refused when the site is loaded, not in the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.site import Site, load_site

SITE = """\
[site]
name = "s"
hostnames = ["login1"]

[[partitions]]
name = "p"
fabrics = ["f"]
stacks = ["one"]

[[stacks]]
name = "one"
family = "openmpi"
version = "4.1"
modules = ["openmpi"]
suites = { osu = "PATH" }
left_out = { osu_bibw = "why" }
"""
SOFT = 'link = "Soft-RoCE 100 Mb/s"\nprotocol = "rocev2"'
REFERENCE = """\
[[references]]
quantity = "latency"
value = "9 us"
fabric = "f"
program = "osu_latency"
origin = "here"
"""


def _site(folder: Path, facts: str = SOFT, rail: str = "rxe1:1", site: str = SITE) -> Site:
    (folder / "site.toml").write_text(site)
    fabric = f'[[fabrics]]\nname = "f"\nrails = [{{ interface = "{rail}" }}]\n{facts}\n'
    (folder / "fabric.toml").write_text(fabric)
    return load_site(str(folder))


def _refused(folder: Path, **said: str) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        _site(folder, **said)
    return refused.value


@pytest.mark.parametrize("rail", ["rxe1", "rail1", "rxe1:", ":1", "rxe1:0", "rxe1:1:1", "rxe1:one"])
@pytest.mark.parametrize(
    "facts", [SOFT, 'link = "rxe 1G"', 'link = "100GbE"\nprotocol = "roce"', 'link = "EDR 4x"']
)
def test_a_rail_of_a_verbs_fabric_is_a_port(tmp_path: Path, facts: str, rail: str) -> None:
    error = _refused(tmp_path, facts=facts, rail=rail)
    assert (error.source, error.line) == (str(tmp_path / "fabric.toml"), 3)
    assert (error.expected, error.got) == ("DEVICE:PORT as 'mlx5_0:1'", repr(rail))


@pytest.mark.parametrize(
    ("facts", "rail", "expected"),
    [
        ('link = "Slingshot 200"', "hsn0", "the device as 'cxi0', not its interface hsn0"),
        ('link = "Slingshot 200"', "cxi0:1", "the device as 'cxi0', not its interface hsn0"),
        ('link = "Omni-Path 100"', "hfi1_0", "hfi1_UNIT:PORT as 'hfi1_0:1'"),
        ('link = "CN5000"', "opap24s0:1", "hfi1_UNIT:PORT as 'hfi1_0:1'"),
        ('link = "Omni-Path 100"', "ib0", "hfi1_UNIT:PORT as 'hfi1_0:1'"),
    ],
)
def test_a_rail_has_the_name_that_libfabric_is_told(
    tmp_path: Path, facts: str, rail: str, expected: str
) -> None:
    error = _refused(tmp_path, facts=facts, rail=rail)
    assert (error.line, error.expected, error.got) == (3, expected, repr(rail))
    assert "devices by their own names" in str(error)


def test_a_rail_of_efa_is_a_port_as_its_counters_are(tmp_path: Path) -> None:
    """No counter is of ``rdmap0s6``, so that each leg over it was UNJUDGED."""
    error = _refused(tmp_path, facts='link = "EFA 100"', rail="rdmap0s6")
    assert (error.line, error.expected) == (3, "DEVICE:PORT as 'rdmap0s6:1'")


def test_the_line_is_that_of_the_rail_where_it_has_a_table(tmp_path: Path) -> None:
    rail = '[[fabrics.rails]]\ninterface = "rxe{}"\n'
    (tmp_path / "site.toml").write_text(SITE)
    head = f'[[fabrics]]\nname = "f"\n{SOFT}\n'
    (tmp_path / "fabric.toml").write_text(head + rail.format("0:1") + rail.format("1"))
    with pytest.raises(ConfigError, match="DEVICE:PORT") as refused:
        load_site(str(tmp_path))
    assert refused.value.line == 8


@pytest.mark.parametrize(
    ("facts", "rail"),
    [
        (SOFT, "rxe1:1"),
        ('link = "NDR"', "mlx5_bond_0:1"),
        ('link = "EDR 4x"\nprotocol = "ipoib"', "ib0"),
        ('link = "25GbE"', "bond0.100"),
        ('link = "Omni-Path 100"', "hfi1_0:1"),
        ('link = "Slingshot 200"', "cxi0"),
        ('link = "Slingshot 200"\nprotocol = "tcp"', "hsn0"),
        ('link = "EFA 100"', "rdmap0s6:1"),
        ('link = "EFA 100"\nprotocol = "tcp"', "eth0"),
        ('protocol = "rocev2"', "lo"),
    ],
)
def test_every_other_rail_is_named_as_its_library_does(
    tmp_path: Path, facts: str, rail: str
) -> None:
    assert _site(tmp_path, facts, rail).fabric_spec("f").rails[0].interface == rail


@pytest.mark.parametrize("rail", ["rxe1:1 ", " rxe1:1", "rxe1:1\\t", "", "rxe0:1,rxe1:1", "a b"])
@pytest.mark.parametrize("facts", [SOFT, 'link = "1GbE"'])
def test_a_rail_is_one_name_without_blanks(tmp_path: Path, facts: str, rail: str) -> None:
    error = _refused(tmp_path, facts=facts, rail=rail)
    assert error.line == 3
    assert "one interface or port by its name" in str(error)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"login1"', '"login1 "'),
        ('["openmpi"]', '[" openmpi"]'),
        ('{ osu = "PATH" }', '{ osu = "PATH " }'),
        ('{ osu = "PATH" }', '{ "osu " = "PATH" }'),
        ("{ osu_bibw =", '{ " osu_bibw" ='),
        ('"4.1"', '" 4.1"'),
        ('name = "one"', 'name = "one "'),
    ],
)
def test_blanks_around_a_name_are_refused(tmp_path: Path, good: str, bad: str) -> None:
    error = _refused(tmp_path, site=SITE.replace(good, bad))
    assert error.line is not None
    assert bad in (tmp_path / "site.toml").read_text().splitlines()[error.line - 1]
    assert "[key]" not in str(error)


def test_blanks_around_a_link_and_around_a_program_of_a_reference(tmp_path: Path) -> None:
    assert "without blanks" in str(_refused(tmp_path, facts=SOFT.replace("Mb/s", "Mb/s ")))
    (tmp_path / "references.toml").write_text(REFERENCE.replace("_latency", "_latency "))
    error = _refused(tmp_path)
    assert (error.line, error.got) == (5, "'osu_latency '")
    (tmp_path / "references.toml").write_text(REFERENCE)
    assert len(_site(tmp_path).references) == 1


@pytest.mark.parametrize("rate", ["0.0000000000001 Mb/s", "500 kb/s", "401 Gb/s"])
def test_a_rate_that_no_soft_device_has_is_refused(tmp_path: Path, rate: str) -> None:
    error = _refused(tmp_path, facts=f'link = "Soft-RoCE {rate}"')
    assert error.line == 4
    assert "1 Mb/s to 400 Gb/s" in str(error.expected)


def test_a_link_of_one_rail_is_refused_at_its_rail(tmp_path: Path) -> None:
    error = _refused(tmp_path, rail='rxe1:1", link = "Soft-RoCE 500 kb/s')
    assert (error.line, error.got) == (3, "'Soft-RoCE 500 kb/s'")
