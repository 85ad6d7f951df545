"""``fabricproof pairs run``: what is planned of its options, and what ends it before any job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.measure import pairs_run
from fabricproof.cli.measure.pairs_run import _chosen, _net_paths, _Wishes, _with_nodes
from fabricproof.core.errors import ConfigError, ExitStatus
from fabricproof.job.run import RunResult
from fabricproof.pairs.campaign.nodes import Standing
from fabricproof.pairs.campaign.plan import Campaign, save, seconds_over_paths, with_rounds
from fabricproof.site import load_site
from fabricproof.stacks.stack import ResolvedStack, resolve

BLANK = Campaign(
    id="test", site="vcluster", site_name="vcluster", partition="compute", fabric="eth0",
    stack="openmpi5", out={}, skipped={}, size=65536, seconds=0.5, is_full=False,
)  # fmt: skip
COMPUTE = load_site("vcluster").partition("compute")
WISHES = _Wishes(only=dict.fromkeys(("partition", "stack", "fabric"), ()))
STANDING = Standing(free=("vc1", "vc2", "vc10"), busy=("vc3",), out={"vc4": "drain", "vc5": "down"})


def subject(stack: str = "openmpi5") -> ResolvedStack:
    site = load_site("vcluster")
    return resolve(site, site.partition("compute"), site.stack(stack))


@pytest.mark.parametrize(
    ("over", "net_paths"),
    [
        ((), (("rail0",), ("rail1",), ("rail0", "rail1"))),
        (("each",), (("rail0",), ("rail1",))),
        (("all",), (("rail0", "rail1"),)),
        (("rail1",), (("rail1",),)),
        (("rail1", "each"), (("rail1",), ("rail0",))),
        (("rail0+rail1",), (("rail0", "rail1"),)),
    ],
)
def test_over_names_paths_each_once(over: tuple[str, ...], net_paths: Any) -> None:
    assert _net_paths(BLANK, subject(), over) == net_paths


def test_a_path_that_is_not_there_or_cannot_be_taken_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is none"):
        _net_paths(BLANK, subject(), ("rail9",))
    # libfabric's tcp gives an MPI one device: unasked that path is left out, asked for it is said
    one_rail = replace(BLANK, stack="intelmpi")
    assert _net_paths(one_rail, subject("intelmpi"), ()) == (("rail0",), ("rail1",))
    with pytest.raises(ConfigError, match="cannot measure over rail0\\+rail1"):
        _net_paths(one_rail, subject("intelmpi"), ("all",))


def test_only_names_partition_stack_and_fabric() -> None:
    site = load_site("infiniband-ndr")
    keys = dict.fromkeys(("partition", "stack", "fabric"), ())
    where, *rest = _chosen(site, keys)
    assert (where.name, *rest) == ("cpu", "openmpi", "hdr")
    where, *rest = _chosen(site, {**keys, "partition": ("g*",), "stack": ("*-cuda",)})
    assert (where.name, *rest) == ("gpu", "openmpi-cuda", "ndr")
    with pytest.raises(ConfigError, match="--only stack fits several"):
        _chosen(site, {**keys, "stack": ("m*",)})
    with pytest.raises(ConfigError, match="none"):
        _chosen(site, {**keys, "fabric": ("none",)})


def test_busy_nodes_take_part_and_those_out_are_named() -> None:
    campaign = _with_nodes(BLANK, COMPUTE, STANDING, WISHES)
    assert campaign.nodes == ("vc1", "vc2", "vc3", "vc10")
    assert campaign.out == {"vc4": "drain", "vc5": "down"}
    assert campaign.skipped == {}


def test_what_the_site_leaves_out_is_skipped_and_named() -> None:
    campaign = _with_nodes(BLANK, COMPUTE, STANDING, replace(WISHES, without=("vc2", "vc4")))
    assert campaign.nodes == ("vc1", "vc3", "vc10")
    assert campaign.out == {"vc5": "down"}
    assert set(campaign.skipped) == {"vc2", "vc4"}
    campaign = _with_nodes(BLANK, COMPUTE, STANDING, replace(WISHES, skip_out=True))
    assert campaign.out == {}
    assert set(campaign.skipped) == {"vc4", "vc5"}


@pytest.mark.parametrize("without", [("vc9",), ("vc1", "vc2", "vc3")])
def test_unknown_nodes_and_too_few_are_refused(without: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        _with_nodes(BLANK, COMPUTE, STANDING, replace(WISHES, without=without))


def test_a_campaign_that_is_not_there_ends_with_66(
    fabricproof: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path))
    ended = fabricproof("pairs", "run", "--site", "vcluster", "--resume", "nothing")
    assert ended.status == ExitStatus.NO_INPUT
    assert "no campaign" in ended.err


def test_a_campaign_is_not_judged_by_the_links_of_another_site(
    fabricproof: Callable[..., Any], tmp_path: Path
) -> None:
    save(tmp_path, BLANK)
    ended = fabricproof("pairs", "run", "--site", "local", "--resume", tmp_path)
    assert ended.status == 78
    assert "of another site, whose links judge it: expected vcluster, got local" in ended.err


def test_without_slurm_it_ends_with_69_and_leaves_nothing(
    fabricproof: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path))
    monkeypatch.setenv("FABRICPROOF_VCLUSTER", "no-such-cluster")
    ended = fabricproof("pairs", "run", "--site", "vcluster")
    assert ended.status == ExitStatus.UNAVAILABLE
    assert not (tmp_path / "pairs").exists()


@pytest.mark.parametrize("at_once", [0, 1])
def test_for_so_long_reaches_every_node_and_then_goes_on(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("fabricproof.pairs.campaign.plan.pairs_at_once", lambda *_: at_once)
    site = load_site("vcluster")
    nodes = tuple(f"vc{number}" for number in range(1, 6))
    blank = replace(BLANK, nodes=nodes, net_paths=(("rail0",), ("rail1",)), at_once=at_once)
    usual = with_rounds(site, blank).rounds
    assert with_rounds(site, blank, minutes=0.001).rounds == usual
    assert {node for each in usual for pair in each.pairs for node in pair} == set(range(5))
    minutes = 50.5 * sum(seconds_over_paths(site, blank)) / 60
    long = with_rounds(site, blank, minutes=minutes).rounds
    assert long[: len(usual)] == usual
    assert [each.number for each in long] == list(range(50))


@pytest.mark.parametrize(
    ("free", "starts"), [(("vc1", "vc2"), 1), (("vc1",), 0), ((), 0), (("vc3", "vc9"), 0)]
)
def test_a_job_is_started_only_where_a_pair_can_be_had_and_not_again_without_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: tuple[str, ...], starts: int
) -> None:
    site = load_site("vcluster")
    campaign = with_rounds(site, replace(BLANK, nodes=("vc1", "vc2"), net_paths=(("rail0",),)))
    save(tmp_path, campaign)
    asked = []

    def run(*_: Any, nodes: tuple[str, ...], **__: Any) -> RunResult:
        asked.append(nodes)
        return RunResult(run_id="r", stopped="the scheduler is away")

    monkeypatch.setattr(pairs_run, "perform", run)
    standing = Standing(free=free, busy=(), out={})
    notes = pairs_run._measure(site, tmp_path, lambda: standing, (), confirms=True)
    assert asked == [free] * starts
    assert notes == ("the scheduler is away",) * starts


def test_an_interrupted_job_is_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = load_site("vcluster")
    save(tmp_path, with_rounds(site, replace(BLANK, nodes=("vc1", "vc2"), net_paths=(("rail0",),))))
    stopped = RunResult(run_id="r", stopped="interrupted", status=130)
    monkeypatch.setattr(pairs_run, "perform", lambda *_, **__: stopped)
    standing = Standing(free=("vc1", "vc2"), busy=(), out={})
    with pytest.raises(SystemExit) as ended:
        pairs_run._measure(site, tmp_path, lambda: standing, (), confirms=True)
    assert ended.value.code == 130
