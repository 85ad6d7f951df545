"""What several subcommands read and print the same way.

A benchmark's output in any usual encoding and the options that state a fabric; judgements as a
table, as data, as a status.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from fabricproof.core.errors import (
    ConfigError,
    ExitStatus,
    InputMissingError,
    ParseError,
    UnitError,
)
from fabricproof.core.measure import Verdict, texts_of
from fabricproof.core.units import parse_quantity
from fabricproof.physics import Fabric, find_link, find_slot
from fabricproof.verdict.value import Judgement, Report

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


#: A larger output is refused: reading rows takes some 50 times their bytes of memory.
MOST_BYTES = 32 * 1024 * 1024


def read_output(name: str) -> str:
    """Return the text of file ``name``, or of standard input where it is ``-``.

    UTF-8, or UTF-16 with its byte order mark, as some shells redirect; bytes that are no text are
    kept as replacement marks.

    Raises:
        InputMissingError: it cannot be read.
        ParseError: it is larger than :data:`MOST_BYTES`, or has no end.
    """
    data = _stdin() if name == "-" else _file(name)
    if len(data) > MOST_BYTES:
        raise ParseError(
            "larger than what is read",
            source="<stdin>" if name == "-" else name,
            expected=f"at most {MOST_BYTES // 1024**2} MiB",
            next_step="cut the log to what the benchmarks printed",
        )
    is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_utf_16 else "utf-8", errors="replace")


def _stdin() -> bytes:
    # The shell's <&- leaves no standard input at all.
    if sys.stdin is None:
        raise InputMissingError(
            "cannot read: it is closed", source="<stdin>", expected="a benchmark output"
        )
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def _file(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}", source=name, expected="a benchmark output"
        ) from None


#: verdict -> exit status of a command whose worst verdict it is
STATUSES: dict[Verdict, ExitStatus] = {
    Verdict.PASS: ExitStatus.PASS,
    Verdict.FAIL: ExitStatus.FAIL,
    Verdict.INVALID: ExitStatus.INVALID,
    Verdict.MISSING: ExitStatus.MISSING,
    Verdict.UNJUDGED: ExitStatus.UNJUDGED,
    Verdict.SKIPPED: ExitStatus.NOTHING_JUDGED,
}


def judgement_record(judgement: Judgement) -> dict[str, Any]:
    """Return ``judgement`` as plain data, the form of ``--json``."""
    return {
        "name": judgement.name,
        "value": judgement.value,
        "unit": judgement.unit,
        "message_size": judgement.message_size,
        "verdict": judgement.verdict.value,
        "reason": judgement.reason,
        "ceiling": judgement.ceiling,
        "ceiling_name": judgement.ceiling_name,
        "reference": judgement.reference,
        "bounds": {"lower": judgement.lower, "upper": judgement.upper},
        "origin": judgement.origin,
        "named": judgement.named,
    }


def report_record(report: Report) -> dict[str, Any]:
    """Return ``report`` as plain data: verdict, quantities, findings and the path."""
    net_path = report.net_path
    return {
        "verdict": report.verdict.value,
        "quantities": [judgement_record(each) for each in report.quantities],
        "findings": texts_of(report.findings),
        "road": None
        if net_path is None
        else {
            "state": net_path.state.value,
            "reason": net_path.reason,
            "moved_bytes": dict(net_path.moved_bytes or {}),
        },
    }


def shown(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return the judgements that a person should read one by one, in their order.

    Those a summary names, and of the other points of the curve the worst INVALID and the worst
    FAIL of each quantity; :func:`curve_summary` counts the rest.
    """
    judgements = list(judgements)
    worst: dict[tuple[Verdict, str], Judgement] = {}
    for each in judgements:
        if each.named or each.verdict not in {Verdict.INVALID, Verdict.FAIL}:
            continue
        key = (each.verdict, each.unit)
        if key not in worst or _misses_by(each) > _misses_by(worst[key]):
            worst[key] = each
    chosen = set(worst.values())
    return [each for each in judgements if each.named or each in chosen]


def _misses_by(judgement: Judgement) -> float:
    """Return how far off a number is, as the larger of value over limit and limit over value."""
    is_invalid = judgement.verdict is Verdict.INVALID
    limit = judgement.ceiling if is_invalid else judgement.reference
    if limit is None or judgement.value is None or judgement.value <= 0:
        return float("inf")
    return max(judgement.value / limit, limit / judgement.value)


def curve_summary(judgements: Iterable[Judgement]) -> list[str]:
    """Return one line per verdict and quantity for the points that :func:`shown` leaves out."""
    judgements = list(judgements)
    seen = set(shown(judgements))
    points: dict[tuple[Verdict, str], list[str]] = {}
    for each in judgements:
        if each not in seen:
            points.setdefault((each.verdict, each.unit), []).append(each.name)
    return [
        f"{verdict:<9}{len(names)} more points of the curve, {names[0]} to {names[-1]}"
        if len(names) > 1
        else f"{verdict:<9}1 more point of the curve, {names[0]}"
        for (verdict, _), names in points.items()
    ]


def format_value(value: float | None, unit: str) -> str:
    """Return a number with its unit for a person; a dash where there is none."""
    if value is None:
        return "-"
    digits = f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{digits} {unit}".strip() if unit != "1" else f"{value:.3f}"
