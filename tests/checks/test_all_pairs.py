"""The checks of all nodes as ReFrame plans them: one job, every path, one stack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from checks_as_reframe_sees_them import dry_run

from fabricproof.cli.measure.pairs_run import arguments
from fabricproof.job.leg import read_plan
from fabricproof.pairs.campaign.plan import blank_campaign, load, save, with_rounds
from fabricproof.pairs.check.in_job import FOLDER
from fabricproof.rfm.current import NODES_VARIABLE
from fabricproof.site import load_site

NET_PATHS = (("rail0",), ("rail1",), ("rail0", "rail1"))


def test_one_job_measures_all_nodes_over_every_path_with_one_stack(
    stacks: Path, tmp_path: Path
) -> None:
    del stacks
    cases = dry_run(load_site("vcluster"), tmp_path, "-n", "^AllPairs")
    skipped = [each for each in cases if each["result"] == "skip"]
    assert {each["fabric"] for each in skipped} == {"no-infiniband"}
    planned = {each["name"].split(" ")[0]: each for each in cases if each["result"] == "pass"}
    assert len(planned) == len(cases) - len(skipped) == 3
    campaigns = {}
    for name, case in planned.items():
        folder = Path(case["stagedir"])
        campaigns[name] = campaign = load(folder / FOLDER)
        assert (case["num_tasks"], case["num_tasks_per_node"], case["environ"]) == (
            4,
            1,
            "openmpi5",
        )
        assert campaign.net_paths == NET_PATHS
        there, *looks = read_plan(folder).legs
        assert there.nodes == campaign.nodes
        assert [leg.name for leg in looks] == [
            f"{'+'.join(rails)}.{role}{quantity}"
            for quantity in ("", "_latency")
            for rails in NET_PATHS
            for role in ("confirm", "control")
        ]
        of_latency = [leg for leg in looks if leg.name.endswith("_latency")]
        assert {(leg.program, leg.expected_sizes) for leg in of_latency} == {("osu_latency", (1,))}
        assert all(leg.in_turn and leg.num_nodes == 2 for leg in looks)
        script = (folder / "legs.sh").read_text()
        assert "fabricproof.pairs.check.in_job" in script
        assert "for leg in there; do" in script
        assert f"--nodelist={','.join(campaign.nodes)}" in (folder / "rfm_job.sh").read_text()
    assert {name: campaign.is_full for name, campaign in campaigns.items()} == {
        "AllPairsRound": False,
        "AllPairsLadder": False,
        "AllPairsMatrix": True,
    }
    # Two cores or many: pairs of four nodes, each once, a part of a round at a time.
    rounds = {
        name: sum(len(each.pairs) for each in found.rounds) for name, found in campaigns.items()
    }
    assert rounds == {"AllPairsRound": 2, "AllPairsLadder": 6, "AllPairsMatrix": 6}
    assert all(each["time_limit"] >= 300 for each in planned.values())


def test_a_campaign_of_pairs_run_measures_what_is_left_on_the_nodes_that_are_free(
    stacks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del stacks
    site = load_site("vcluster")
    place = tmp_path / "pairs" / "ID"
    place.mkdir(parents=True)
    partition = site.partition("compute")
    blank = replace(
        blank_campaign(site, partition, "eth0", "mpich5", name="ID"),
        nodes=("vc1", "vc2", "vc3", "vc4"), net_paths=(("rail1",),), both_ways=True,
    )  # fmt: skip
    save(place, with_rounds(site, blank))
    monkeypatch.setenv(NODES_VARIABLE, "vc1,vc2,vc4,vc9")
    (case,) = dry_run(site, tmp_path, *arguments(blank, place)[1:])
    assert (case["result"], case["environ"], case["num_tasks"]) == ("pass", "mpich5", 3)
    folder = Path(case["stagedir"])
    assert (folder / FOLDER).resolve() == place.resolve()
    there, *looks = read_plan(folder).legs
    assert there.nodes == ("vc1", "vc2", "vc4")
    assert [(leg.name, leg.program) for leg in looks if leg.name.startswith("rail1.confirm")] == [
        ("rail1.confirm", "osu_bw"),
        ("rail1.confirm_both_ways", "osu_bibw"),
        ("rail1.confirm_latency", "osu_latency"),
    ]
