"""Laws: what is printed is read back; what is cut is refused; order is nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabricproof.core.errors import ParseError
from fabricproof.subnet import (
    Expected,
    Network,
    judge_look,
    read_iblinkinfo,
    read_ibnetdiscover,
    with_states,
)
from made_fabrics import GBPS, looked, make, show_discover, show_linkinfo

NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20).filter(
    lambda text: text == text.strip()
)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Draw a fabric: switches in a chain, hosts on any of them, any links and states."""
    num_switches = draw(st.integers(1, 4))
    num_hosts = draw(st.integers(1, 6))
    names = draw(
        st.lists(
            NAMES, min_size=num_switches + num_hosts, max_size=num_switches + num_hosts, unique=True
        )
    )
    switches, hosts = names[:num_switches], names[num_switches:]
    used = dict.fromkeys(switches, 0)

    def next_port(name: str) -> int:
        used[name] += 1
        return used[name]

    cables = []
    for number in range(1, num_switches):
        for _ in range(draw(st.integers(1, 2))):
            one, other = switches[number - 1], switches[number]
            cables.append((one, next_port(one), other, next_port(other)))
    for host in hosts:
        leaf = draw(st.sampled_from(switches))
        cables.append((host, 1, leaf, next_port(leaf)))
    made = make(
        [(name, used[name] + draw(st.integers(0, 2))) for name in switches if used[name]],
        [(name, 1) for name in hosts],
        cables,
    )
    ports = dict(made.ports)
    for cable in made.cables:
        facts: dict[str, Any] = {
            "lanes": draw(st.sampled_from([1, 2, 4, 8, 12, None])),
            "speed": draw(st.sampled_from([*GBPS, None])),
            "state": draw(st.sampled_from(["Active", "Armed", "Initialize"])),
            "could_lanes": draw(st.sampled_from([None, 4, 12])),
            "could_speed": draw(st.sampled_from([None, *GBPS])),
        }
        for end in (cable.one.end, cable.other.end):
            ports[end] = replace(ports[end], **facts)
    return replace(made, ports=ports)


@given(networks(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_is_printed_is_read_back(network: Network, lines: bool) -> None:
    discovered = read_ibnetdiscover(show_discover(network))
    again = with_states(discovered, read_iblinkinfo(show_linkinfo(network, lines=lines)))
    assert again.nodes == network.nodes
    assert again.ports == network.ports
    assert again.cables == network.cables


@given(networks(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_cut_look_at_cables_is_refused(network: Network, data: st.DataObject) -> None:
    text = show_discover(network)
    end = data.draw(st.integers(0, len(text) - 1))
    # The head of the node that looked, whole: that is an empty fabric, which no check passes.
    assume(not text[end:].lstrip("\n").startswith("[") or text[:end].count("guid=") != 2)
    with pytest.raises(ParseError) as refused:
        read_ibnetdiscover(text[:end])
    assert refused.value.expected


@given(networks(), st.booleans(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_cut_look_at_states_is_refused(
    network: Network, lines: bool, data: st.DataObject
) -> None:
    text = show_linkinfo(network, lines=lines)
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ParseError) as refused:
        with_states(network, read_iblinkinfo(text[:end]))
    assert refused.value.expected


@given(networks(), st.randoms(use_true_random=False), st.lists(st.sampled_from("abcdef")))
@settings(max_examples=60, deadline=None)
def test_order_is_nothing_to_the_verdict(
    network: Network, random: st.DataObject, hosts: list[str]
) -> None:
    nodes, ports = list(network.nodes.items()), list(network.ports.items())
    random.shuffle(nodes)  # type: ignore[attr-defined]
    random.shuffle(ports)  # type: ignore[attr-defined]
    mixed = replace(network, nodes=dict(nodes), ports=dict(ports))
    due = tuple(dict.fromkeys(hosts))
    one = judge_look(looked(network), Expected(hosts=due))
    other = judge_look(looked(mixed), Expected(hosts=due[::-1]))
    assert one.verdict is other.verdict
    assert {each.text for each in one.findings} == {each.text for each in other.findings}
