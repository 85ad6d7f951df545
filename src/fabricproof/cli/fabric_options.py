"""The options that state a fabric on the command line, shared by ``ceiling`` and ``judge``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fabricproof.core.errors import ConfigError, UnitError
from fabricproof.core.units import parse_quantity
from fabricproof.physics import Fabric, find_link, find_slot

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--pcie", "pcie"),
        {
            "metavar": "GENxLANES",
            "help": "PCIe slot of each HCA or NIC: '3.0x8', 'Gen4 x16'. Left out: the slot is "
            "unknown and only the link is computed.",
        },
    ),
    (
        ("--mps", "mps"),
        {
            "type": int,
            "metavar": "BYTES",
            "help": "PCIe MaxPayload in force (DevCtl in lspci -vv): 128 to 4096. Left out: "
            "anything from 256.",
        },
    ),
    (
        ("--mtu", "mtu"),
        {
            "type": int,
            "metavar": "BYTES",
            "help": "InfiniBand MTU 256 to 4096, IP MTU on Ethernet, path MTU with rocev2. Left "
            "out: the usual smallest to the usual largest.",
        },
    ),
    (
        ("--rails", "rails"),
        {"type": int, "default": 1, "show_default": True, "help": "Rails used at once."},
    ),
    (
        ("--share-slot", "share_slot"),
        {
            "is_flag": True,
            "help": "The rails are ports of one HCA and share its slot.",
        },
    ),
    (
        ("--protocol", "protocol"),
        {
            "metavar": "NAME",
            "help": "ib, ipoib, tcp, tcp-bypass, udp, rocev2, opa, slingshot, efa, bxi. Left "
            "out: the usual one of the link; tcp on Ethernet, rocev2 on Soft-RoCE.",
        },
    ),
    (
        ("--flow-limit", "flow_limit"),
        {"metavar": "RATE", "help": "What one flow may have, with its unit: '10 Gb/s'."},
    ),
    (
        ("--flows", "flows"),
        {"type": int, "default": 1, "show_default": True, "help": "Flows on each rail."},
    ),
    (
        ("--bidirectional", "bidirectional"),
        {"is_flag": True, "help": "Both directions at once, added up."},
    ),
)


def fabric_options(*, link_required: bool) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a click command the options of a fabric.

    The command gets the parameters that :func:`fabric_from_options` takes.

    Args:
        link_required: refuse a command line without ``--link``.
    """

    def decorate(function: _Function) -> _Function:
        for names, settings in reversed(_OPTIONS):
            function = click.option(*names, **settings)(function)
        return click.option(
            "--link",
            "link",
            required=link_required,
            metavar="NAME",
            help="Link of each rail: 'FDR 4x', 'HDR100', '40GbE', '400MbE', 'Omni-Path 100', "
            "'Slingshot 200', 'EFA 100', 'BXI v2', 'Soft-RoCE 100 Mb/s'.",
        )(function)

    return decorate


def _flow_limit_gbit_s(text: str) -> float:
    try:
        return parse_quantity(text, "Gb/s")
    except UnitError as error:
        raise ConfigError(
            "--flow-limit is not a rate", expected="a number and a unit, as '10 Gb/s'", got=text
        ) from error


def fabric_from_options(
    *,
    link: str,
    pcie: str | None = None,
    mps: int | None = None,
    mtu: int | None = None,
    rails: int = 1,
    share_slot: bool = False,
    protocol: str | None = None,
    flow_limit: str | None = None,
    flows: int = 1,
    bidirectional: bool = False,
) -> Fabric:
    """Return the fabric that the options of :func:`fabric_options` state.

    Raises:
        ConfigError: a value that cannot be; UnknownLinkError (one of them) for an unknown name.
    """
    return Fabric(
        link=find_link(link),
        protocol=protocol,
        mtu=mtu,
        slot=None if pcie is None else find_slot(pcie),
        max_payload_bytes=mps,
        num_rails=rails,
        rails_share_slot=share_slot,
        flow_limit_gbit_s=None if flow_limit is None else _flow_limit_gbit_s(flow_limit),
        num_flows=flows,
        bidirectional=bidirectional,
    )
