"""Protocols: payload shares, MTUs, names."""

from __future__ import annotations

import pytest

from fabricproof.core.errors import ConfigError, UnknownLinkError
from fabricproof.physics import Protocol, find_protocol
from fabricproof.physics.protocols import default_protocol, known_protocols


@pytest.mark.parametrize(
    ("name", "mtu", "payload", "wire"),
    [
        ("ib", 256, 256, 282),
        ("ib", 2048, 2048, 2074),
        ("ib", 4096, 4096, 4122),
        ("tcp", 1500, 1448, 1538),
        ("tcp", 9000, 8948, 9038),
        ("tcp", 9001, 8949, 9039),
        ("udp", 1500, 1472, 1538),
        ("rocev2", 1024, 1024, 1106),
        ("rocev2", 4096, 4096, 4178),
        ("iwarp", 1500, 1428, 1538),
        ("raw-ethernet", 1518, 1518, 1538),
        ("ipoib", 2048, 1992, 2082),
        ("opa", 8192, 8192, 8252),
    ],
)
def test_nominal_payload_share(name: str, mtu: int, payload: int, wire: int) -> None:
    reading = find_protocol(name).nominal
    assert reading.payload_share(mtu) == pytest.approx(payload / wire)
    assert reading.formula(mtu) == f"{payload}/{wire}"


@pytest.mark.parametrize("protocol", known_protocols().values(), ids=lambda row: row.name)
def test_readings_are_ordered_and_shares(protocol: Protocol) -> None:
    shares = [reading.payload_share(None) for reading in protocol.readings]
    assert shares == sorted(shares)
    assert 0.8 < shares[0] <= shares[2] <= 1
    assert protocol.low.payload_share(None, 100) < shares[0]
    assert protocol.floor_us > 0.44
    assert find_protocol(protocol.name.upper()) is protocol


@pytest.mark.parametrize(
    ("text", "name"),
    [("RoCE", "rocev2"), ("Onload", "tcp-bypass"), ("bxi/portals", "bxi"), ("psm2", "opa"),
     ("verbs", "ib"), ("SRD", "efa"), ("cxi", "slingshot"), (" TCP ", "tcp")],
)  # fmt: skip
def test_other_names(text: str, name: str) -> None:
    assert find_protocol(text).name == name


@pytest.mark.parametrize(
    ("technology", "name"),
    [("ethernet", "tcp"), ("infiniband", "ib"), ("omni-path", "opa"), ("slingshot", "slingshot"),
     ("efa", "efa"), ("bxi", "bxi")],
)  # fmt: skip
def test_what_a_link_speaks_unless_told(technology: str, name: str) -> None:
    assert default_protocol(technology).name == name
    assert technology in default_protocol(technology).technologies


def test_unknown_names_are_refused_with_the_list() -> None:
    with pytest.raises(UnknownLinkError, match=r"expected one of ib, ipoib, tcp.*got 'quic'"):
        find_protocol("quic")
    with pytest.raises(UnknownLinkError, match="myrinet"):
        default_protocol("myrinet")


@pytest.mark.parametrize(
    ("name", "mtu", "accepted"),
    [
        ("ib", 1500, "256, 512, 1024, 2048, 4096"),
        ("rocev2", 9000, "256, 512, 1024, 2048, 4096"),
        ("tcp", 100, "576 to 65535"),
        ("tcp", 65536, "576 to 65535"),
        ("tcp", 0, "576 to 65535"),
        ("opa", 1500, "2048, 4096, 8192, 10240"),
        ("bxi", 4096, "no MTU at all"),
    ],
)
def test_an_mtu_that_cannot_be_is_refused_with_what_can(name: str, mtu: int, accepted: str) -> None:
    with pytest.raises(ConfigError, match=accepted):
        find_protocol(name).check_mtu(mtu)


@pytest.mark.parametrize(
    ("name", "mtu"), [("ib", 2048), ("tcp", 576), ("tcp", 65535), ("bxi", None)]
)
def test_an_mtu_that_can_be_is_accepted(name: str, mtu: int | None) -> None:
    find_protocol(name).check_mtu(mtu)
