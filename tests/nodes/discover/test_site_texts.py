"""The texts of a first site: always valid, every guess marked, nothing that no one said."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from seen_clusters import NAMES, cluster

from fabricproof.nodes.discover.cluster import Cluster, Host, Partition, Slurm
from fabricproof.nodes.discover.draft import find_guesses, toml_value
from fabricproof.nodes.discover.write import (
    FABRIC,
    REFERENCES,
    SITE,
    write_site,
)
from fabricproof.nodes.inventory.facts import Value
from fabricproof.physics import bound
from fabricproof.site import Site, load_site
from fabricproof.site.scheduling import SlurmTraits
from fabricproof.stacks.wheels import wheel_stacks


def written(seen: Cluster, folder: Path, **around: Any) -> tuple[Site, dict[str, str]]:
    texts = write_site("mine", seen, **around)
    for name, text in texts.items():
        path = folder / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return load_site(str(folder / "mine")), texts


def line_of(text: str, begins: str) -> str:
    (found,) = (line for line in text.splitlines() if line.strip().startswith(begins))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_cluster_gives_a_valid_site(name: str, tmp_path: Path) -> None:
    site, texts = written(cluster(name), tmp_path)
    assert site.partitions
    assert tomllib.loads(texts[REFERENCES]) == {}
    guesses = [each for file, text in texts.items() for each in find_guesses(file, text)]
    assert len(guesses) >= 4
    assert all("; check with: " in each.text for each in guesses)


def test_the_virtual_cluster_becomes_what_its_own_site_says(tmp_path: Path) -> None:
    ours = wheel_stacks()["openmpi5"]
    site, _ = written(cluster("virtual-cluster"), tmp_path, provisioned=(ours,))
    shipped = load_site("vcluster")
    mine, theirs = (bound(each.fabric("eth0", ["rail0"])) for each in (site, shipped))
    assert (mine.low_mb_s, mine.high_mb_s) == (theirs.low_mb_s, theirs.high_mb_s)
    (partition,) = site.partitions
    assert partition.access == shipped.partitions[0].access
    assert (partition.oversubscribed, partition.stacks) == (True, ["openmpi5"])


def test_software_devices_become_soft_roce_and_no_adapter(tmp_path: Path) -> None:
    shaper: dict[str, Value] = {"shaped_to_mbit_s": 100, "shaper_burst_bytes": 9216}
    rail: dict[str, Value] = {
        "state": "up", "kind": "ethernet", "mtu": 4200, "addresses": "198.19.0.11/24"
    }  # fmt: skip
    port: dict[str, Value] = {
        "kind": "soft-roce", "state": "ACTIVE", "rate_in_sysfs": "2.5 Gb/sec (1X SDR)",
        "layer": "Ethernet", "driver": "rdma_rxe", "parent": "rail0", "mtu": 4096,
    }  # fmt: skip
    parts = {"interface rail0": rail | shaper, "port rxe0:1": port}
    head = Host(name="vc1", facts=parts)
    site, texts = written(Cluster(head=head), tmp_path)
    assert site.fabric("softroce0", ["rxe0:1"]).link.name == "Soft-RoCE 100 Mb/s"
    assert site.fabric("softroce0").framing.name == "rocev2"
    assert "guess: what rail0 is shaped to" in line_of(texts[FABRIC], 'link = "Soft-RoCE')
    bare = dataclasses.replace(head, facts=parts | {"interface rail0": rail})
    site, texts = written(Cluster(head=bare), tmp_path)
    assert site.fabric_spec("softroce0").link is None
    assert "ib_write_bw" in texts[FABRIC]


def test_partitions_differ_by_what_their_nodes_have(tmp_path: Path) -> None:
    site, texts = written(cluster("infiniband-two-rails"), tmp_path)
    assert {each.name: each.fabrics for each in site.partitions} == {
        "cpu": ["ib0", "eth0"],
        "gpu": ["ib1", "eth0"],
        "short-q": ["eth0"],
    }
    assert [each.link for each in site.fabrics] == ["HDR 4x", "25GbE", "NDR 4x"]
    assert site.partition("short-q").access[0] == "--partition=short.q"
    assert site.partition("short-q").job_minutes == 5
    assert "seen on the head node login1 only" in texts[SITE]
    assert "# Left out: partition debug: 1 node, and a fabric has two ends" in texts[SITE]
    assert "Requested nodes are busy" in texts[SITE]


def test_a_rail_that_trained_low_has_its_own_slot_and_says_so(tmp_path: Path) -> None:
    site, texts = written(cluster("infiniband-two-rails"), tmp_path)
    assert bound(site.fabric("ib0", ["mlx5_1:1"])).name == "slot_packet"
    assert bound(site.fabric("ib0", ["mlx5_0:1"])).name == "protocol"
    line = line_of(texts[FABRIC], '{ interface = "mlx5_1:1", pcie')
    assert "# guess: seen on cn048; " in line
    assert "trained to 4.0x8, its card could do 4.0x16: which is right?" in line


def test_two_ports_of_one_card_are_declared_so(tmp_path: Path) -> None:
    site, _ = written(cluster("two-ports-one-card"), tmp_path)
    spec = site.fabric_spec("ib0")
    assert (spec.rails_share_slot, spec.pcie, spec.max_payload_bytes) == (True, "3.0x8", 256)
    assert site.spec.path == ["/opt/slurm/bin"]
    assert site.spec.environment == {"SLURM_CONF": "/opt/slurm/etc/slurm.conf"}


def test_rails_of_which_some_share_a_card_are_declared_apart_and_said(tmp_path: Path) -> None:
    seen = cluster("two-ports-one-card")
    node = seen.nodes["compute"]
    ports = node.parts("port")
    slot = {"pci": "0000:82:00.0", "pcie": "3.0x8", "max_payload_bytes": 128}
    third = {"port mlx4_1:1": {**ports["mlx4_0:1"], **slot}}
    node = dataclasses.replace(node, facts={**node.facts, **third})
    site, texts = written(dataclasses.replace(seen, nodes={"compute": node}), tmp_path)
    spec = site.fabric_spec("ib0")
    assert not spec.rails_share_slot
    assert [rail.max_payload_bytes for rail in spec.rails] == [256, 256, 128]
    assert "some rails are ports of one card and some are not" in texts[FABRIC]


def test_an_unknown_rate_is_left_out_and_never_invented(tmp_path: Path) -> None:
    site, texts = written(cluster("cloud-efa"), tmp_path)
    assert site.fabric_spec("eth0").link is None
    assert "# guess: link left out, the driver says no rate" in texts[FABRIC]


def test_without_slurm_two_ranks_on_one_machine_prove_no_fabric(tmp_path: Path) -> None:
    site, texts = written(cluster("one-machine"), tmp_path)
    (partition,) = site.partitions
    assert (partition.scheduler, partition.same_node, partition.fabrics) == (
        "local",
        True,
        ["memory"],
    )
    assert "guess: no Slurm answered here" in texts[SITE]


def test_a_host_that_another_site_claims_is_not_claimed_again(tmp_path: Path) -> None:
    seen = cluster("virtual-cluster")
    assert written(seen, tmp_path)[0].spec.hostnames == ["head"]
    site, texts = written(seen, tmp_path, claims={"head": "vcluster"})
    assert site.spec.hostnames == []
    assert "head is site vcluster's already" in texts[SITE]


@pytest.mark.parametrize("name", [".", " ", ".example", "a\x17b"])
def test_a_machine_without_a_name_is_claimed_by_no_site(tmp_path: Path, name: str) -> None:
    seen = cluster("virtual-cluster")
    odd = dataclasses.replace(seen, head=dataclasses.replace(seen.head, name=name))
    assert written(odd, tmp_path)[0].spec.hostnames == []


def test_a_machine_with_nothing_still_gives_a_site(tmp_path: Path) -> None:
    site, _ = written(Cluster(head=Host(name="bare")), tmp_path)
    assert [each.name for each in site.fabrics] == ["memory"]


def test_slurm_that_gives_away_more_cpus_than_there_are_is_noticed(tmp_path: Path) -> None:
    seen = cluster("cloud-efa")
    node = seen.nodes["compute"]
    node = dataclasses.replace(node, facts={**node.facts, "node": {"cpus": 36}})
    site, texts = written(dataclasses.replace(seen, nodes={"compute": node}), tmp_path)
    assert site.partitions[0].oversubscribed
    assert "Slurm gives away 72 CPUs" in texts[SITE]


@pytest.mark.parametrize(
    "text", ['a "b"', "back\\slash", "tab\there", "\x7f", "größer", "# no", "\n"]
)
def test_any_text_is_written_as_toml(text: str) -> None:
    assert tomllib.loads(f"key = {toml_value(text)}")["key"] == text


words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)
#: what a host or device may be called: the kernel has no interface with a blank, "/" or ":" in its
#: name (net/core/dev.c, dev_valid_name), a comma ends a name where an MPI is told its devices, and
#: no site file holds control characters
names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/:,").filter(
        lambda mark: not mark.isspace()
    ),
    min_size=1,
    max_size=12,
)


def facts(**values: st.SearchStrategy[Value | None]) -> st.SearchStrategy[dict[str, Value]]:
    return st.fixed_dictionaries(values).map(
        lambda said: {key: value for key, value in said.items() if value is not None}
    )


slots = {
    "pci": st.sampled_from([None, "0000:81:00.0", "0000:81:00.1", "0000:c1:00.0"]),
    "pcie": st.sampled_from([None, "3.0x8", "4.0x16"]),
    "max_payload_bytes": st.sampled_from([None, 128, 256]),
}
interfaces = facts(
    state=st.sampled_from(["up", "down"]), kind=st.just("ethernet"),
    speed_mbit_s=st.one_of(st.none(), st.integers(1, 10**6)),
    mtu=st.sampled_from([None, 1500, 9000]), virtual=st.sampled_from([None, "yes", "bond"]),
    driver=st.one_of(st.none(), words), addresses=st.sampled_from([None, "192.0.2.1/24"]), **slots,
)  # fmt: skip
ports = facts(
    state=st.sampled_from(["ACTIVE", "DOWN"]), kind=st.sampled_from([None, None, "soft-roce"]),
    layer=st.sampled_from(["InfiniBand", "Ethernet", "Unspecified"]),
    driver=st.sampled_from([None, "mlx5_core", "efa", "hfi1"]),
    parent=st.sampled_from([None, "a"]), firmware=st.one_of(st.none(), words),
    mtu=st.sampled_from([None, 1024, 4096]), **slots,
)  # fmt: skip
parts = st.builds(
    dict.__or__,
    st.dictionaries(names.map("interface {}".format), interfaces, max_size=3),
    st.dictionaries(names.map("port {}:1".format), ports, max_size=3),
)
hosts = st.builds(
    Host,
    name=names,
    facts=parts,
    boot=st.sampled_from(["", "one"]),
    system=words,
    modules=st.lists(
        st.sampled_from(["openmpi/5.0", "impi/2021", "mpich/4.1", "osu/7.2", "odd"]), max_size=4
    ).map(tuple),
    programs=st.dictionaries(
        st.sampled_from(["mpirun", "osu_bw"]),
        st.tuples(st.just("/usr/bin/x"), st.sampled_from(["", "1.2.3"])),
    ),
)
partitions = st.builds(
    Partition, name=st.sampled_from(["a", "b.c", "_d"]), num_nodes=st.integers(0, 3),
    num_usable=st.integers(0, 3), cpus=st.one_of(st.none(), st.integers(1, 512)),
    is_up=st.booleans(), limit_minutes=st.one_of(st.none(), st.integers(0, 100)), nodes=words,
)  # fmt: skip
slurms = st.builds(
    Slurm,
    version=words,
    sinfo=st.sampled_from(["/usr/bin/sinfo", "/opt/slurm/bin/sinfo"]),
    conf=st.one_of(st.just(""), words),
    settings=st.dictionaries(st.sampled_from(["ClusterName", "MpiDefault"]), words),
    partitions=st.lists(partitions, max_size=3, unique_by=lambda each: each.name).map(tuple),
    mpi_types=st.sampled_from([(), ("pmi2",), ("pmix",)]),
)
clusters = st.builds(
    Cluster,
    head=hosts,
    slurm=st.one_of(st.none(), slurms),
    nodes=st.dictionaries(st.sampled_from(["a", "b.c", "_d"]), hosts),
    troubles=st.lists(words, max_size=2).map(tuple),
)


@settings(
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(clusters)
def test_whatever_was_seen_the_site_is_valid(tmp_path: Path, seen: Cluster) -> None:
    site, _ = written(seen, tmp_path)
    named = {name for partition in site.partitions for name in partition.fabrics}
    assert named <= {each.name for each in site.fabrics}


def _bare(tmp_path: Path, licenses: tuple[str, ...]) -> str:
    """Return the site.toml of a cluster that keeps no accounts and whose jobs share nodes."""
    seen = cluster("virtual-cluster")
    assert seen.slurm is not None
    traits = SlurmTraits(accounting="(null)", oversubscribe={"compute": "FORCE:4"})
    slurm = dataclasses.replace(seen.slurm, traits=traits, licenses=licenses)
    return written(dataclasses.replace(seen, slurm=slurm), tmp_path)[1][SITE]


def test_without_accounts_squeue_is_asked(tmp_path: Path) -> None:
    assert 'scheduler = "slurm"' in written(cluster("virtual-cluster"), tmp_path)[1][SITE]
    line = line_of(_bare(tmp_path, ()), "scheduler")
    assert line == 'scheduler = "squeue"  # no accounts: AccountingStorageType = (null)'


def test_where_jobs_share_nodes_ours_run_one_at_a_time(tmp_path: Path) -> None:
    text = _bare(tmp_path, ())
    assert "max_jobs = 1  # guess: OverSubscribe=FORCE:4" in line_of(text, "max_jobs")
    assert "does not honour it" in line_of(text, "access")
    assert "max_jobs" not in _bare(tmp_path, ("fabric",))  # the license keeps ours apart
