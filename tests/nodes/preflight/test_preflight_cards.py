"""Slots, payloads, cards and tuning against what the site states of them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from seen_nodes import changed, fabric, nodes, of, recorded

from fabricproof.core.measure import Verdict
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.words import WORDS
from fabricproof.nodes.preflight.judge import preflight
from fabricproof.site.schema import TUNED, ExpectSpec, FabricSpec

PORT = "port mlx5_0:1"


def _hdr(**keys: Any) -> FabricSpec:
    return fabric(link="HDR 4x", rails=[{"interface": "mlx5_0:1"}], **keys)


def _healthy() -> Machine:
    return recorded("mlx5-healthy", "n1")


def _found(spec: FabricSpec, machine: Machine, quantity: str) -> Any:
    return of(preflight(spec, nodes(machine)), f"n1.{quantity}")


EVERYTHING = {
    "model": "ConnectX-6", "psid": "MT_0000000222", "firmware": ["20.41.1000", "20.40.1000"],
    "driver": "mlx5_core", "driver_version": "24.04-0.6.6", "numa_node": 0, "fec": "rs",
    "tuning": {"governor": "performance", "rings": "RX 512", "offloads": "TSO, GRO"},
}  # fmt: skip


def test_a_card_that_is_all_that_the_site_states_passes() -> None:
    spec = _hdr(mtu=4096, pcie="4.0x16", max_payload_bytes=512, expect=EVERYTHING)
    result = preflight(spec, nodes(_healthy()))
    assert result.verdict is Verdict.PASS
    assert len(result.findings) == 5 + 7 + 3


@pytest.mark.parametrize(
    ("quantity", "stated", "words"),
    [
        ("model", "ConnectX-6 Dx", "instead of ConnectX-6 Dx"),
        ("psid", "MT_0000000223", "has PSID MT_0000000222 instead of MT_0000000223"),
        ("firmware", "20.42.1000", "has firmware 20.41.1000 instead of 20.42.1000"),
        ("firmware", ["20.4", "20.41"], "instead of 20.4 or 20.41"),
        ("driver", "mlx4_core", "has driver mlx5_core instead of mlx4_core"),
        ("driver_version", "5.9-0.5.6", "instead of 5.9-0.5.6"),
        ("numa_node", 1, "has NUMA node 0 instead of 1"),
        ("fec", "BaseR", "has FEC RS instead of BaseR"),
    ],
)
def test_a_card_that_is_another_fails(quantity: str, stated: object, words: str) -> None:
    found = _found(_hdr(expect={quantity: stated}), _healthy(), quantity)
    assert (found.verdict, found.quantity.value) == (Verdict.FAIL, 0.0)
    assert words in found.reason


@pytest.mark.parametrize(
    ("fact", "stated", "verdict"),
    [
        ("governor", "performance", Verdict.PASS),
        ("governor", "powersave", Verdict.FAIL),
        ("rings", "RX 512, TX 512", Verdict.PASS),
        ("rings", "RX 8192", Verdict.FAIL),
        ("offloads", "LRO", Verdict.FAIL),
        ("queue_pairs_best", 131072, Verdict.PASS),
        ("tcp_mtu_probing", 0, Verdict.PASS),
        ("turbo", "off", Verdict.FAIL),
    ],
)
def test_tuning_that_the_site_states_is_judged(fact: str, stated: object, verdict: Verdict) -> None:
    found = _found(_hdr(expect={"tuning": {fact: stated}}), _healthy(), fact)
    assert found.verdict is verdict


@pytest.mark.parametrize("quantity", ["firmware", "psid", "numa_node", "driver_version"])
def test_what_is_stated_and_cannot_be_read_is_unjudged(quantity: str) -> None:
    blind = changed(_healthy(), PORT, **{quantity: None})
    stated = 0 if quantity == "numa_node" else "x"
    found = _found(_hdr(expect={quantity: stated}), blind, quantity)
    assert found.verdict is Verdict.UNJUDGED
    assert "is not known" in found.reason
    assert preflight(_hdr(), nodes(blind)).verdict is Verdict.PASS


def test_tuning_that_nobody_read_is_unjudged() -> None:
    found = _found(
        _hdr(expect={"tuning": {"tcp_rmem": "1 2 3"}}),
        Machine(node="n1", facts={PORT: dict(_healthy().facts[PORT])}),
        "tcp_rmem",
    )
    assert found.verdict is Verdict.UNJUDGED


def test_half_the_lanes_of_a_slot_say_what_can_still_pass() -> None:
    found = _found(_hdr(pcie="4.0x16"), recorded("mlx5-degraded", "n1"), "pcie")
    assert found.text == "mlx5_0:1 on n1 sits at PCIe 4.0 x8 instead of PCIe 4.0 x16"
    assert "no more than 15677 of 24842 MB/s can pass" in found.reason
    assert "reseat the card" in found.reason


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"pcie": "3.0x16"}, "PCIe 3.0 x16 instead of PCIe 4.0 x16"),
        ({"pcie": "3.0x16", "pcie_best": "3.0x16"}, "the card is able to no more"),
        ({"pcie": "4.0x8", "pcie_best_of_slot": "4.0x8"}, "the slot or riser is able to no more"),
        ({"pcie": "5.0x16"}, "its file is behind the machine"),
    ],
)
def test_a_slot_that_is_another_says_why(facts: dict[str, str], words: str) -> None:
    found = _found(_hdr(pcie="4.0x16"), changed(_healthy(), PORT, **facts), "pcie")
    assert found.verdict is Verdict.FAIL
    assert words in found.reason


def test_a_narrow_slot_that_the_site_does_not_state_is_a_note() -> None:
    result = preflight(_hdr(), nodes(recorded("mlx5-degraded", "n1")))
    assert "sits at PCIe 4.0 x8, the card is able to PCIe 4.0 x16" in result.notes[0].text


def test_a_small_payload_is_judged_where_stated_and_else_noted() -> None:
    small = changed(_healthy(), PORT, max_payload_bytes=128)
    found = _found(_hdr(pcie="4.0x16", max_payload_bytes=256), small, "max_payload")
    assert found.text == "mlx5_0:1 on n1 has PCIe MaxPayload 128 instead of 256"
    assert "the card is able to 512: BIOS setting" in found.reason
    (note,) = preflight(_hdr(), nodes(small)).notes
    assert "MaxPayload 128, the card is able to 512" in note.text
    assert preflight(_hdr(), nodes(_healthy())).notes == ()


def test_a_payload_that_only_root_may_read_is_a_note_with_the_reason() -> None:
    spec = _hdr(pcie="4.0x16", max_payload_bytes=512)
    result = preflight(spec, nodes(recorded("mlx5-user", "n1")))
    assert result.verdict is Verdict.PASS
    (note,) = result.notes
    assert note.text.startswith("not judged: mlx5_0:1 on n1: its MaxPayload is not known")
    assert "only root may read it" in note.text


def test_a_slot_that_a_virtual_machine_hides_is_a_note() -> None:
    hidden = changed(_healthy(), PORT, pcie=None)
    result = preflight(_hdr(pcie="4.0x16"), nodes(hidden))
    assert result.verdict is Verdict.PASS
    assert "its PCIe link is not known" in result.notes[0].text


def test_ranks_far_from_the_card_are_noted() -> None:
    far = preflight(_hdr(), nodes(_healthy()), bound_cpus={"n1": ["32-63", "32-63", "0-3"]})
    (note,) = far.notes
    assert note.text == (
        "mlx5_0:1 on n1 is on NUMA node 0: distance 21 (far) from CPUs 32-63, which its ranks "
        "are bound to"
    )
    assert preflight(_hdr(), nodes(_healthy()), bound_cpus={"n1": ["unknown"]}).notes == ()


@pytest.mark.parametrize(
    "table",
    [
        {"firmwar": "1"},
        {"tuning": {"ringz": "RX 1"}},
        {"mixed": ["colour"]},
        {"not_told": ["firmware"]},
        {"numa_node": -1},
        {"firmware": []},
        {"firmware": 20},
    ],
)
def test_an_expectation_that_means_nothing_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExpectSpec.model_validate(table)


def test_every_fact_that_a_site_may_state_has_a_word() -> None:
    # Facts without a word of their own are called as they are spelled.
    plain = {"netdev_max_backlog", "busy_poll", "tcp_rmem", "tcp_wmem", "tcp_mtu_probing"}
    plain |= {"autonegotiation", "type"}
    assert set(TUNED.split()) - plain <= set(WORDS)
