"""PCIe links and temperatures of a soak: read by both kernels, judged, and never red by guess."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels_alone import HAS_COMPILER, said_by_c
from made_machine import Machine, healthy, planned

import fabricproof.pairs.campaign
from fabricproof.cli.measure.pairs_display import campaign_record, campaign_text
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Verdict
from fabricproof.pairs.blame.devices import (
    DeviceFinding,
    DeviceLook,
    DeviceQuantity,
    LinkCounts,
    judge_devices,
    judge_links,
    judge_optics,
    not_told,
)
from fabricproof.pairs.campaign.ledger import measured
from fabricproof.pairs.campaign.record import read_record
from fabricproof.pairs.campaign.verdict import judge_campaign
from fabricproof.site import Site

OPTICS_SCRIPT = Path(fabricproof.pairs.campaign.__file__).parent / "optics.sh"
DATA = Path(__file__).parents[1] / "data" / "pairs"
TEXT = (DATA / "kernel" / "four_nodes.jsonl").read_text()


def lay_out(root: Path) -> Path:
    """Make the tree of a recording: lines ``PATH: WORDS``, or ``PATH -> TARGET`` of a link."""
    for line in (DATA / "devices" / "sysfs.txt").read_text().splitlines():
        path, link, target = line.partition(" -> ")
        if line.startswith("#") or not line:
            continue
        if not link:
            path, _, words = line.partition(": ")
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if link:
            place.symlink_to(target)
        else:
            place.write_text(f"{words}\n")
    return root


HCA = {
    "current_link_width": "16",
    "current_link_speed": "16.0",
    "hwmon4/temp1_input": "61000",
    "hwmon4/temp1_crit": "105000",
    "hwmon4/temp1_label": "asic",
    "hwmon4/temp2_input": "57000",
    "hwmon4/temp2_crit": "70000",
    "hwmon4/temp2_label": "Module0",
}

SEEN = {
    "bnxt0": {
        "current_link_width": "8",
        "current_link_speed": "8.0",
        "hwmon5/temp1_input": "54000",
        "hwmon5/temp1_max": "105000",
        "hwmon5/temp1_crit": "110000",
    },
    "eth0": {},  # virtio: its PCI function tells of no link
    "ib0": HCA,
    "vf0": {"current_link_width": "0", "current_link_speed": "Unknown"},
    "mlx5_0:1": HCA,
}


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler")
def test_the_kernel_in_c_reads_the_same(tmp_path: Path) -> None:
    body = 'say("%s", ""); say_devices(3); fwrite(out, 1, out_used, stdout);'
    said = json.loads(said_by_c(tmp_path, body, lay_out(tmp_path / "sys")))
    assert (said["record"], said["round"]) == ("devices", 3)
    assert said["devices"] == SEEN


# ---- the record


def _with_looks(count: int, **changed: Any) -> str:
    lines = TEXT.splitlines()
    at = next(n for n, line in enumerate(lines) if json.loads(line)["record"] == "counters")
    fields = json.loads(lines[at])
    look = {"record": "devices", "round": fields["round"], "node": fields["node"], "at": 1000,
            "devices": {"rail0": HCA}}  # fmt: skip
    added = [json.dumps({**look, **changed})] * count
    return "\n".join([*lines[:at], *added, *lines[at:], ""])


def test_looks_at_devices_stand_in_their_round() -> None:
    first, second = read_record(_with_looks(2), "r").rounds
    assert [each.of("rail0") for each in first.devices] == [HCA, HCA]
    assert second.devices == ()


@pytest.mark.parametrize(
    ("count", "changed"),
    [(3, {}), (1, {"node": "vc9"}), (1, {"round": 7}), (1, {"at": "noon"}), (1, {"devices": 3})],
)
def test_a_look_that_cannot_be_is_refused(count: int, changed: dict[str, Any]) -> None:
    with pytest.raises(ParseError):
        read_record(_with_looks(count, **changed), "r")


# ---- the verdict


def look(at: int, words: dict[str, str], rail: str = "rail0") -> DeviceLook:
    return DeviceLook(round=at // 2, node="vc1", at=at, devices={rail: words})


def slot(width: int, speed: str = "16.0") -> dict[str, str]:
    return {"current_link_width": str(width), "current_link_speed": speed}


def link(*seen: dict[str, str]) -> DeviceFinding:
    (found,) = judge_devices([look(at, words) for at, words in enumerate(seen)], ["rail0"])
    assert found.quantity is DeviceQuantity.PCIE_LINK
    return found


def test_a_link_that_stays_is_good() -> None:
    found = link(*[slot(16)] * 6)
    assert found.verdict is Verdict.PASS
    assert found.sentence == "vc1 rail0: PCIe link PCIe 4.0 x16 at all 6 looks"


@pytest.mark.parametrize("less", [slot(8), slot(16, "2.5")])
def test_a_link_that_trained_down_and_stays_there_is_red_with_what_and_when(
    less: dict[str, str],
) -> None:
    found = link(slot(16), slot(16), slot(16), less, less)
    assert found.verdict is Verdict.FAIL
    assert "vc1 rail0: PCIe link trained down from PCIe 4.0 x16 to PCIe " in found.sentence
    assert "00:00:03 UTC, round 1" in found.sentence


@pytest.mark.parametrize(
    "seen",
    [
        [slot(16), slot(16), slot(8)],  # one look may be a moment of training
        [slot(16), slot(8), slot(8), slot(16)],  # it came back
        [slot(8), slot(4), slot(16)],
        [slot(16), slot(16), {}],  # a device that is gone
        [slot(16), slot(16), slot(63)],
    ],
)
def test_what_one_more_look_may_take_back_is_not_red(seen: list[dict[str, str]]) -> None:
    assert link(*seen).verdict is Verdict.UNJUDGED


def test_a_link_that_woke_up_is_good() -> None:
    assert link(slot(16, "2.5"), slot(16), slot(16)).verdict is Verdict.PASS


def test_the_last_of_several_declines_counts() -> None:
    found = link(slot(8), slot(4), slot(16), slot(8), slot(8))
    assert found.verdict is Verdict.FAIL
    assert "from PCIe 4.0 x16 to PCIe 4.0 x8" in found.sentence


WIDTHS = st.lists(st.sampled_from([0, 1, 4, 8, 16]), min_size=1, max_size=12)


@given(WIDTHS)
def test_it_is_red_only_where_two_last_looks_are_below_an_earlier_one(widths: list[int]) -> None:
    found = judge_devices([look(at, slot(each)) for at, each in enumerate(widths)], ["rail0"])
    known = [each for each in widths if each]
    is_red = bool(found) and found[0].verdict is Verdict.FAIL
    assert is_red == (len(known) > 2 and max(known[-2:]) < max(known[:-2], default=0))
    assert bool(found) == bool(known)


def heat(*read: int, **stated: str) -> DeviceFinding:
    (found,) = judge_devices(
        [
            look(at, {"hwmon1/temp1_input": str(each)} | {
                f"hwmon1/temp1_{name}": word for name, word in stated.items()})
            for at, each in enumerate(read)
        ],
        ["rail0"],
    )  # fmt: skip
    assert found.quantity is DeviceQuantity.TEMPERATURE
    return found


def test_a_temperature_is_told_with_its_highest_value_and_judged_by_the_device() -> None:
    found = heat(50_000, 71_000, 60_000, crit="105000", max="70000", label="asic")
    assert (found.celsius, found.limit_celsius, found.verdict) == (71, 105, Verdict.PASS)
    assert "vc1 rail0: asic 71 C at most (at 00:00:01 UTC, round 0)" in found.sentence
    assert heat(50_000, 71_000, 72_000, max="70000").verdict is Verdict.FAIL
    assert heat(50_000, 71_000, 60_000, max="70000").verdict is Verdict.UNJUDGED  # one look


@pytest.mark.parametrize("stated", [{}, {"crit": "0"}, {"crit": "-273150"}, {"max": "none"}])
def test_without_a_limit_of_its_own_no_temperature_is_judged(stated: dict[str, str]) -> None:
    assert heat(250_000, 250_000, **stated).verdict is None


def test_what_no_device_tells_is_said_once() -> None:
    found = judge_devices([look(0, slot(16)), look(1, slot(16))], ["rail0", "rail1"])
    assert list(not_told(found, ["vc1"], ["rail0"])) == [
        "temperature: not told by any node",
        "optics: not told by any node",
    ]
    said = list(not_told(found, [f"vc{at}" for at in range(1, 9)], ["rail0"]))
    assert said[0] == "PCIe link: not told of vc2 rail0, vc3 rail0, vc4 rail0, vc5 rail0 and 3 more"


# ---- optics

OPTICS = (DATA / "devices" / "ethtool-m.txt").read_text()


def around(folder: Path, *, fails: bool = False) -> str:
    """Return what optics.sh leaves around a command after which an alarm is on."""
    (folder / "optics.txt").write_text(OPTICS)
    tool = folder / "ethtool"
    tool.write_text(f'#!/bin/bash\n[ "$2" != rail0 ] || cat {folder}/optics.txt\n')
    tool.chmod(0o755)
    sed = "s/47.11/63.5/; s/-0.60 dBm/-4.25 dBm/; s/(Channel 1)    : Off/(Channel 1)    : On/"
    command = f"sed -i '{sed}' {folder}/optics.txt; exit {75 * fails}"
    ended = subprocess.run(
        ["bash", OPTICS_SCRIPT, "rail0", "rail1", "--", "bash", "-c", command],
        cwd=folder, check=False,
        env={"PATH": f"{folder}:/usr/bin:/bin", "SLURMD_NODENAME": "vc1.cluster"},
    )  # fmt: skip
    assert ended.returncode == 75 * fails
    return (folder / "seen.vc1.cluster").read_text()


def test_optics_are_read_before_and_after_the_kernel(tmp_path: Path) -> None:
    text = around(tmp_path)
    (found,) = judge_optics({"vc1": [text]})
    assert (found.rail, found.looks, found.celsius) == ("rail0", 2, 63.5)
    assert found.verdict is Verdict.UNJUDGED
    assert found.sentence == (
        "vc1 rail0: optics 47.11 to 63.5 C, the least light of a lane -0.6 to -4.25 dBm; came on "
        "meanwhile: Laser rx power low alarm (Channel 1)"
    )


def test_the_kernels_own_end_is_the_scripts(tmp_path: Path) -> None:
    assert "after rail0 Module temperature" in around(tmp_path, fails=True)


@pytest.mark.parametrize("texts", [["after"], ["before"], ["after", "after"]])
def test_an_alarm_that_was_on_before_is_told_and_judges_nothing(
    tmp_path: Path, texts: list[str]
) -> None:
    lines = around(tmp_path).splitlines()
    kept = ["\n".join(each for each in lines if each.startswith(when)) for when in texts]
    (found,) = judge_optics({"vc1": kept})
    assert (found.verdict, found.looks) == (None, len(texts))


def test_optics_that_nobody_may_read_say_nothing() -> None:
    assert list(judge_optics({"vc1": [""], "vc2": []})) == []


# ---- a campaign


def _told(folder: Path, looks: Sequence[dict[str, str]]) -> None:
    """Let vc3 tell of its device before and after each of its rounds."""
    (record,) = folder.glob("launch.*/record.jsonl")
    lines, left = [], list(looks)
    for number, line in enumerate(record.read_text().splitlines()):
        fields = json.loads(line)
        for _ in range(2 * (fields["record"] == "counters" and fields["node"] == "vc3")):
            words = left.pop(0) if len(left) > 1 else left[0]
            said = {"record": "devices", "round": fields["round"], "node": "vc3"}
            lines.append(json.dumps({**said, "at": number, "devices": {"rail0": words}}))
        lines.append(line)
    record.write_text("\n".join([*lines, ""]))


def test_only_a_soak_judges_devices_and_a_bad_one_makes_it_red(climb: Any, site: Site) -> None:
    campaign = planned(site)
    outcome, folder = climb(Machine(healthy), campaign)
    assert outcome.devices == ()
    _told(folder, [slot(16), slot(16), slot(16), slot(8) | {"hwmon1/temp1_input": "77000"}])
    usual = judge_campaign(site, campaign, measured(folder, campaign))
    assert (usual.devices, usual.verdict) == ((), outcome.verdict)
    soaked = replace(campaign, minutes=5)
    soak = judge_campaign(site, soaked, measured(folder, soaked))
    (bad,) = soak.bad_devices
    assert (bad.verdict, bad.node, bad.rail) == (Verdict.FAIL, "vc3", "rail0")
    assert soak.verdict is Verdict.FAIL
    text = campaign_text(soak, ())
    assert "FAIL: vc3 rail0: PCIe link trained down from PCIe 4.0 x16 to PCIe 4.0 x8" in text
    assert "hottest: vc3 rail0: temp1 77 C at most" in text
    assert "note: temperature: not told of vc1 rail0" in text
    assert len(campaign_record(soak, ())["devices"]) == 2
    (place,) = folder.glob("launch.*")
    (place / "seen.vc3").write_text("before rail0 Module temperature  : 40.50 degrees C / 1 F\n")
    optics = judge_campaign(site, soaked, measured(folder, soaked)).devices[-1]
    assert optics.sentence.startswith("vc3 rail0: optics 40.5 to 40.5 C")


def test_a_good_device_is_no_proof_of_anything_else(climb: Any, site: Site) -> None:
    campaign = planned(site)
    outcome, folder = climb(Machine(healthy), campaign)
    _told(folder, [slot(16)])
    soak = judge_campaign(site, replace(campaign, minutes=5), measured(folder, campaign))
    assert soak.devices[0].verdict is Verdict.PASS
    assert soak.verdict is outcome.verdict


def counts(
    begin: float, before: dict[str, int], after: dict[str, int], rail: str = "rail0"
) -> LinkCounts:
    return LinkCounts(
        node="vc3", begin=begin, end=begin + 2, before={rail: before}, after={rail: after}
    )


def carrier(begin: float, before: int, after: int) -> LinkCounts:
    return counts(begin, {"carrier_changes": before}, {"carrier_changes": after})


@pytest.mark.parametrize(
    ("seen", "downs"),
    [
        ([carrier(0, 2, 2), carrier(3, 2, 2)], 0),
        ([carrier(0, 2, 4), carrier(3, 4, 4)], 0),  # once: the second look at the pair decides
        ([carrier(0, 2, 3)], 0),  # it is still down
        ([carrier(0, 2, 4), carrier(3, 4, 6)], 2),
        ([carrier(0, 2, 8)], 3),
        ([carrier(0, 2, 2), carrier(3, 6, 6)], 2),  # while another rail was measured
        ([carrier(0, 2, 2), carrier(63, 8, 8)], 0),  # resumed after somebody changed a cable
        ([carrier(0, 9, 1), carrier(3, 1, 1)], 0),  # the node was started again
        ([carrier(3, 4, 6), carrier(0, 2, 4)], 2),
        ([counts(0, {"link_downed": 7}, {"link_downed": 9})], 2),
        ([counts(0, {"link_downed": 255}, {"link_downed": 0})], 0),
        ([counts(0, {}, {"carrier_changes": 9})], 0),
        ([counts(0, {"carrier_changes": 2}, {"carrier_changes": 9}, "mgmt0")], 0),
    ],
)
def test_a_link_that_went_down_twice_is_red_by_name(seen: list[LinkCounts], downs: int) -> None:
    found = judge_links(seen, ["rail0", "rail1"])
    said = f"vc3 rail0: its link went down {downs} times while the campaign ran"
    assert [each.sentence for each in found] == [said] * bool(downs)
    assert all(each.verdict is Verdict.FAIL for each in found)


def test_links_are_not_told_as_silent_devices() -> None:
    assert not [each for each in not_told([], ["vc1"], ["rail0"]) if each.startswith("link")]
