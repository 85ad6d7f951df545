"""``fabricproof pairs run``: what is planned of its options, and what ends it before any job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.measure.pairs_run import (
    _chosen,
    _looked,
    _net_paths,
    _Wishes,
    _with_nodes,
    _with_rounds,
)
from fabricproof.core.errors import ConfigError, ExitStatus, UnavailableError
from fabricproof.history.store import labels
from fabricproof.job.run import RunResult
from fabricproof.pairs.campaign.conduct import seconds_of_round
from fabricproof.pairs.campaign.further import all_on_one
from fabricproof.pairs.campaign.ledger import Campaign, save
from fabricproof.pairs.campaign.nodes import Standing
from fabricproof.site import load_site
from fabricproof.stacks.stack import ResolvedStack, resolve

BLANK = Campaign(
    id="test", site="vcluster", site_name="vcluster", partition="compute", fabric="eth0",
    stack="openmpi5", nodes=(), leaf_of=(), out={}, skipped={}, net_paths=(), rounds=(),
    size=65536, seconds=0.5, both_ways=False, is_full=False,
)  # fmt: skip
WISHES = _Wishes(
    only=dict.fromkeys(("partition", "stack", "fabric"), ()), over=(), full=False,
    minutes=None, order="leafwise", seed=0, size=None, seconds=None, both_ways=False, without=(),
    skip_out=False,
)  # fmt: skip
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
    campaign = _with_nodes(BLANK, STANDING, WISHES)
    assert campaign.nodes == ("vc1", "vc2", "vc3", "vc10")
    assert campaign.out == {"vc4": "drain", "vc5": "down"}
    assert campaign.skipped == {}


def test_what_the_site_leaves_out_is_skipped_and_named() -> None:
    campaign = _with_nodes(BLANK, STANDING, replace(WISHES, without=("vc2", "vc4")))
    assert campaign.nodes == ("vc1", "vc3", "vc10")
    assert campaign.out == {"vc5": "down"}
    assert set(campaign.skipped) == {"vc2", "vc4"}
    campaign = _with_nodes(BLANK, STANDING, replace(WISHES, skip_out=True))
    assert campaign.out == {}
    assert set(campaign.skipped) == {"vc4", "vc5"}


@pytest.mark.parametrize("without", [("vc9",), ("vc1", "vc2", "vc3")])
def test_unknown_nodes_and_too_few_are_refused(without: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        _with_nodes(BLANK, STANDING, replace(WISHES, without=without))


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


def test_a_second_look_is_no_sample_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is of a pair that was chosen for being slow, and is not the newest run of a report."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    made: list[str] = []

    def run(_: object, environment: dict[str, str], *__: object, **___: object) -> int:
        made.append(environment["FABRICPROOF_RUN_ID"])
        raise UnavailableError("away")

    monkeypatch.setattr("fabricproof.cli.measure.run.run_reframe", run)
    monkeypatch.setattr("fabricproof.cli.measure.run.ready_to_run", lambda *_: [])
    assert _looked(load_site("vcluster"), ["-r"], ("vc1", "vc2")) is None
    assert len(made) == 1
    assert labels(tmp_path, "vcluster") == {"night-look": tuple(made)}


def test_an_interrupt_during_a_second_look_is_one_of_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look began, and had to be interrupted too."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    result = RunResult(run_id="r", stopped="interrupted", status=130)
    monkeypatch.setattr("fabricproof.cli.measure.pairs_run.perform", lambda *_, **__: result)
    with pytest.raises(KeyboardInterrupt):
        _looked(load_site("vcluster"), ["-r"], ("vc1", "vc2"))


@pytest.mark.parametrize("at_once", [0, 1])
def test_for_so_long_reaches_every_node_and_then_goes_on(at_once: int) -> None:
    site, leaves = load_site("vcluster"), all_on_one(5)
    nodes = tuple(f"vc{number}" for number in range(1, 6))
    blank = replace(BLANK, nodes=nodes, net_paths=(("rail0",), ("rail1",)), at_once=at_once)
    usual = _with_rounds(site, blank, leaves, WISHES).rounds
    short = _with_rounds(site, blank, leaves, replace(WISHES, minutes=0.001)).rounds
    assert short == usual
    assert {node for each in short for pair in each.pairs for node in pair} == set(range(5))
    minutes = 50.5 * seconds_of_round(site, blank) / 60
    long = _with_rounds(site, blank, leaves, replace(WISHES, minutes=minutes)).rounds
    assert long[: len(usual)] == usual
    assert [each.number for each in long] == list(range(50))
