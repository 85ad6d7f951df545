"""What ``lldpctl -f keyvalue`` says of the switch at each interface."""

from __future__ import annotations

from fabricproof.nodes.inventory.nic import read_neighbours
from fabricproof.nodes.inventory.read import read_machine

#: after lldpd's tests (tests/integration/test_lldpcli.py: show neighbors), and public samples
SAID = """\
lldp.eth0.via=LLDP
lldp.eth0.rid=1
lldp.eth0.age=17 days, 09:36:51
lldp.eth0.chassis.mac=00:00:00:00:00:02
lldp.eth0.chassis.name=leaf1.example.com
lldp.eth0.chassis.descr=Spectacular GNU/Linux 2016
lldp.eth0.chassis.mgmt-ip=fe80::200:ff:fe00:2
lldp.eth0.chassis.Bridge.enabled=on
lldp.eth0.port.ifname=swp1
lldp.eth0.port.descr=eth1
lldp.eth1.5.rid=2
lldp.eth1.5.chassis.local=spine=7
"""


def test_name_and_id_of_the_switch() -> None:
    assert read_neighbours(SAID.splitlines()) == {
        "eth0": {"switch_id": "00:00:00:00:00:02", "switch": "leaf1.example.com"},
        "eth1.5": {"switch_id": "spine=7"},
    }


def test_an_interface_with_two_neighbours_has_none() -> None:
    other = ["lldp.eth0.rid=3", "lldp.eth0.chassis.mac=00:00:00:00:00:03"]
    assert set(read_neighbours([*SAID.splitlines(), *other])) == {"eth1.5"}


def test_a_neighbour_without_an_id_is_none() -> None:
    assert read_neighbours(["lldp.eth0.rid=1", "lldp.eth0.chassis.name=leaf1", "garbage"]) == {}


def test_it_is_a_fact_of_the_interface_where_the_look_was_not_cut_there() -> None:
    text = (
        "#== host\nname=n1\n#== net\neth0\toperstate=up\tmtu=9000\tdriver=mlx5_core\n"
        f"#== lldp\n{SAID}"
    )
    assert "switch" not in read_machine(text, "n1").facts["interface eth0"]
    facts = read_machine(f"{text}#== end\n", "n1").facts["interface eth0"]
    assert (facts["switch"], facts["switch_id"]) == ("leaf1.example.com", "00:00:00:00:00:02")
