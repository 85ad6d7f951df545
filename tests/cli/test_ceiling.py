"""``fabricproof ceiling`` and the fabric options it shares."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from fabricproof.cli.judge.ceiling import command
from fabricproof.core.errors import ConfigError, UnknownLinkError
from fabricproof.physics import Fabric, bound, find_link, find_slot
from fabricproof.physics.stated import fabric_from


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def run_json(*arguments: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return record


FDR_TWO_RAILS = (
    "--link",
    "FDR 4x,pcie=3.0x8,mps=256,mtu=2048,rails=2",
)


def test_json_has_every_ceiling_with_its_units_and_sources() -> None:
    record = run_json(FDR_TWO_RAILS[0], f"{FDR_TWO_RAILS[1]},share-slot")
    assert [row["name"] for row in record["ceilings"]] == [
        "link",
        "protocol",
        "slot",
        "slot_packet",
    ]
    for row in record["ceilings"]:
        assert row["gbit_s"] == pytest.approx(row["mb_s"] * 8 / 1000)
        assert row["low_mb_s"] <= row["mb_s"] <= row["high_mb_s"]
        assert row["formula"]
        assert row["source"]
    assert record["ceilings"][0]["mb_s"] == pytest.approx(13636.36, abs=0.01)
    assert record["binds"] == "slot_packet"
    assert record["binding"] == record["ceilings"][3]
    assert record["latency_floor_us"] == 0.5


def test_json_and_library_agree() -> None:
    record = run_json("--link", "QDR,pcie=2.0x8,mps=128")
    fabric = Fabric(link=find_link("QDR"), slot=find_slot("2.0x8"), max_payload_bytes=128)
    assert record["bound"]["low_mb_s"] == bound(fabric).low_mb_s
    assert record["bound"]["high_mb_s"] == bound(fabric).high_mb_s


def test_text_shows_the_numbers_and_says_what_binds_and_why() -> None:
    text = run(FDR_TWO_RAILS[0], f"{FDR_TWO_RAILS[1]},share-slot")
    assert text.startswith("FDR 4x, ib (protocol not stated), MTU 2048, PCIe 3.0 x8, ")
    assert "MaxPayload 256, 2 rails, one slot for all" in text
    assert "4 x 14.0625 Gb/s x 64/66 / 8 x 2 rails" in text
    assert "The slot binds" in text
    assert "A value above 7306.1 MB/s is impossible." in text
    assert "Latency floor, one way, no payload: 0.5 us" in text


def test_soft_roce_has_its_stated_rate_and_no_slot() -> None:
    record = run_json("--link", "rxe 100M,mtu=4096")
    assert [row["name"] for row in record["ceilings"]] == ["link", "protocol"]
    assert record["binding"]["mb_s"] == pytest.approx(12.5 * 4096 / 4178)
    assert record["latency_floor_us"] == 1.0
    text = run("--link", "rxe 100M,mtu=4096")
    assert "Soft-RoCE 100 Mb/s, rocev2 (protocol not stated), MTU 4096, software: no slot" in text
    assert "pcie" not in text


def test_flow_limit_flows_protocol_and_direction_are_taken_over() -> None:
    limited = run_json("--link", "100GbE,flow-limit=10 Gb/s,mtu=9001")
    assert limited["binds"] == "flow"
    assert limited["binding"]["mb_s"] == pytest.approx(1250 * 8949 / 9039)
    more = run_json("--link", "100GbE,flow-limit=1250 MB/s,mtu=9001,flows=4")
    assert more["binding"]["mb_s"] == pytest.approx(5000 * 8949 / 9039)
    roce = run_json("--link", "100GbE,protocol=RoCE,mtu=1024,bidirectional")
    assert roce["binding"]["mb_s"] == pytest.approx(25000 * 1024 / 1106)
    assert "rocev2" in roce["fabric"]
    assert "both directions added" in roce["fabric"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--link", "QDR,pcie=3.0x8,mps=100"], "128, 256, 512, 1024, 2048, 4096"),
        (["--link", "QDR,mtu=1500"], "256, 512, 1024, 2048, 4096"),
        (["--link", "QDR,rails=0"], "at least 1"),
        (["--link", "QDR,flows=-1"], "at least 1"),
        (["--link", "foo"], "unknown link"),
        (["--link", "QDR,rails=x"], "at least 1"),
        (["--link", "QDR,mps=1.5"], "a whole number"),
        (["--link", "QDR,pcie=9x3"], "1.0 to 6.0"),
        (["--link", "QDR,protocol=tcp"], "does not run over infiniband"),
        (["--link", "1GbE,protocol=quic"], "unknown protocol"),
        (["--link", "1GbE,flow-limit=10"], "a number and a unit"),
        (["--link", "1GbE,flow-limit=10 KiB"], "a number and a unit"),
        (["--link", "1GbE,flow-limit=0 Gb/s"], "a positive number"),
        (["--link", "QDR,share-slot"], "without the slot"),
        (["--link", "QDR,mps=256"], "without the slot"),
    ],
)
def test_a_bad_value_is_one_message_with_what_is_accepted(arguments: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_options_and_fabric_mean_the_same() -> None:
    fabric = fabric_from(
        "HDR100,pcie=4x16,mps=512,mtu=4096,rails=2,share-slot,protocol=ib,flow-limit=50 Gb/s,"
        "flows=3,bidirectional"
    )
    assert fabric == Fabric(
        link=find_link("HDR 2x"),
        slot=find_slot("4.0x16"),
        max_payload_bytes=512,
        mtu=4096,
        num_rails=2,
        rails_share_slot=True,
        protocol="ib",
        flow_limit_gbit_s=50.0,
        num_flows=3,
        bidirectional=True,
    )
    with pytest.raises(UnknownLinkError):
        fabric_from("nothing")
