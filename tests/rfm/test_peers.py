"""Legs without MPI as they are planned for a site: ports, streams, physics, references."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.rfm.families.sockets import peer_leg, with_links
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import Site, load_site
from fabricproof.stacks.stack import resolve
from fabricproof.verdict.value import Reference, at_most

SITES = Path(__file__).parents[2] / "site-configs"


def planner(site_name: str, suite: str, program: str, stack: str | None = None) -> LegPlanner:
    site = load_site(str(SITES / site_name))
    partition = site.partitions[0]
    return LegPlanner(
        site=site,
        partition=partition,
        stack=resolve(site, partition, site.stack(stack or partition.stacks[0])),
        fabric=partition.fabrics[0],
        suite=suite,
        program=program,
    )


def test_a_port_is_measured_at_all_sizes_and_its_bytes_are_foretold() -> None:
    leg = peer_leg(planner("fdr-lab", "perftest", "ib_write_bw"), "mlx4_0:1")
    assert leg.commands[0][:6] == ("bash", "peer.sh", "10", "mlx4_0:1", "ib_write_bw", "-a")
    assert leg.required == ("bandwidth_8MiB",)
    assert leg.traffic.exact is not None
    assert leg.traffic.exact[1] == 0
    assert leg.fabric is not None
    assert (leg.fabric.link.name, leg.fabric.num_rails) == ("FDR 4x", 1)


def test_a_latency_is_due_at_the_smallest_size() -> None:
    leg = peer_leg(planner("fdr-lab", "perftest", "ib_write_lat"), "mlx4_0:2")
    assert leg.required == ("latency_2B",)


def test_what_a_site_says_of_osu_does_not_judge_perftest() -> None:
    assert peer_leg(planner("fdr-lab", "perftest", "ib_write_bw"), "mlx4_0:1").references == {}


def with_latency(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let the site say 1.2 us of every program, and 1.9 us of ``program``."""

    def references_for(self: Site, **where: object) -> dict[str, Reference]:
        value = 1.9 if where["program"] == program else 1.2
        return {"latency": at_most(value, origin="site (measured)")}

    monkeypatch.setattr(Site, "references_for", references_for)


@pytest.mark.parametrize(
    ("named", "measured", "expected_us"),
    [
        ("none", "ib_write_lat", 1.2),
        ("none", "ib_read_lat", 2.4),
        ("ib_read_lat", "ib_read_lat", 1.9),
    ],
)
def test_a_latency_of_the_site_is_one_way_unless_it_names_the_read(
    monkeypatch: pytest.MonkeyPatch, named: str, measured: str, expected_us: float
) -> None:
    with_latency(monkeypatch, named)
    leg = peer_leg(planner("fdr-lab", "perftest", measured), "mlx4_0:1")
    assert leg.references["latency"].value == pytest.approx(expected_us)
    assert leg.references["latency"].upper == pytest.approx(1.2 * expected_us)


def test_one_flow_is_not_granted_the_connections_of_an_mpi() -> None:
    """Open MPI's two connections may take twice a limit per flow, iperf3's one may not."""
    two = planner("vcluster", "iperf3", "iperf3", "openmpi5")
    assert two.stack.spec.connections == 2
    leg = peer_leg(two, "rail0")
    assert leg.fabric is not None
    assert leg.fabric.num_flows == 1
    assert leg.traffic.exact is None
    assert leg.required == ("bandwidth",)


def test_several_streams_and_a_variant_stand_in_name_and_command() -> None:
    leg = peer_leg(planner("vcluster", "iperf3", "iperf3"), "rail1", variant="flows8", streams=8)
    assert leg.name == "rail1.flows8"
    assert leg.commands[0][-2:] == ("-P", "8")


def test_an_mpi_path_is_not_told_to_what_has_no_mpi() -> None:
    leg = peer_leg(planner("vcluster", "iperf3", "iperf3", "openmpi5"), "rail0")
    assert leg.environment == {}
    more = peer_leg(
        planner("vcluster", "iperf3", "iperf3"), "rail0", environment={"FABRICPROOF_FRAME": "1500"}
    )
    assert more.environment["FABRICPROOF_FRAME"] == "1500"


def test_links_change_nothing_but_the_connections() -> None:
    before = planner("vcluster", "osu", "osu_bw", "openmpi5")
    after = with_links(before, 4)
    assert after.stack.spec.connections == 4
    assert replace(after, stack=before.stack) == before
