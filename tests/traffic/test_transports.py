"""Which transports a family has and what they speak: against the variables that force them."""

from __future__ import annotations

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.stacks.family import path_environment
from fabricproof.traffic.transports import (
    FAMILIES,
    TRANSPORTS,
    stated_transport,
    transport_refusal,
    transports_of,
)

PROTOCOLS = ("tcp", "ipoib", "ib", "rocev2", "opa", "slingshot", "efa", "bxi")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_not_refused_has_its_variables(family: str, transport: str, protocol: str) -> None:
    refusal = transport_refusal(family, protocol, transport)
    if refusal is None:
        assert path_environment(family, protocol, ["hfi1_0:1"], transport=transport)
        return
    assert transport in refusal
    with pytest.raises(ConfigError):
        path_environment(family, protocol, ["hfi1_0:1"], transport=transport)


def test_a_refusal_says_what_there_is() -> None:
    assert transport_refusal("intelmpi", "ib", "ucx") == (
        "intelmpi has no transport 'ucx', it has libfabric"
    )
    assert transport_refusal("openmpi", "tcp", "ucx-ud") == (
        "ucx-ud does not speak tcp: there openmpi has ucx or libfabric or native"
    )
    assert transport_refusal("openmpi", "bxi", "ucx") == "ucx does not speak bxi"
    assert transports_of("lam") == ()


def test_a_stacks_word_stands_before_its_fabrics() -> None:
    assert stated_transport("openmpi", "ucx-ud", "libfabric") == "ucx-ud"
    assert stated_transport("openmpi", None, "libfabric") == "libfabric"
    # What is said of the stack is refused elsewhere, never silently left out.
    assert stated_transport("intelmpi", "ucx", "ucx") == "ucx"
    assert stated_transport("intelmpi", None, "ucx") is None
