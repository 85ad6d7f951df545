"""What several subcommands read and print the same way.

A benchmark's output in any usual encoding; the options that state a fabric and that choose what is
looked at; judgements as a table, as data, as a status.
"""

from __future__ import annotations

import codecs
import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
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
from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key, parse_quantity
from fabricproof.physics import Fabric, find_link, find_slot
from fabricproof.verdict.value import Judgement

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: key of ``--only`` -> the patterns that were given for it
Only = Mapping[str, tuple[str, ...]]


def only_option(*keys: str) -> Callable[[_Function], _Function]:
    """Return the option that chooses what of a run, a site or a file is looked at.

    The command gets ``only``, each of ``keys`` with its patterns, none where it was not given.
    """

    def split(
        context: click.Context, option: click.Parameter, texts: tuple[str, ...]
    ) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = dict.fromkeys(keys, ())
        for text in texts:
            key, _, pattern = text.partition("=")
            if key not in found or not pattern:
                expected = f"expected KEY=PATTERN, KEY one of {', '.join(keys)}; got {text!r}"
                raise click.BadParameter(expected, context, option)
            found[key] += (pattern,)
        return found

    return click.option(
        "--only",
        multiple=True,
        callback=split,
        metavar="KEY=PATTERN",
        help=f"Only what fits; KEY is {listed(keys)}, * and ? stand for any text.  Repeatable: "
        "every key must fit, by one of its patterns.",
    )


def fitting(patterns: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the names that fit, pattern by pattern.

    A pattern that none fits stays as it is: who looks it up says which names there are.
    """
    return [
        name
        for pattern in patterns
        for name in [each for each in names if fnmatchcase(each, pattern)] or [pattern]
    ]


def one_fitting(key: str, only: Only, names: Sequence[str]) -> str | None:
    """Return the one name that ``--only KEY=PATTERN`` chooses; None where it was not given.

    Raises:
        ConfigError: several fit.
    """
    found = fitting(only[key], names)
    if len(found) > 1:
        raise ConfigError(f"--only {key} fits several", expected="one", got=", ".join(found))
    return found[0] if found else None


def listed(words: Sequence[str]) -> str:
    """Return ``a, b or c``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


#: key after a link -> what its value is; None where it has none
_KEYS: dict[str, str | None] = {
    "pcie": "GENxLANES",
    "mps": "BYTES",
    "mtu": "BYTES",
    "rails": "N",
    "share-slot": None,
    "protocol": "NAME",
    "flow-limit": "RATE",
    "flows": "N",
    "capability": "RATE",
    "bidirectional": None,
}
_WHOLE_NUMBERS = frozenset({"mps", "mtu", "rails", "flows"})

#: what ``--help`` says of them
KEYS_HELP = """\b
What may stand after the link, with commas between; what is left out is unknown or the usual one:
  pcie=GENxLANES    slot of each HCA or NIC: 3.0x8, Gen4 x16; left out: only the link is computed
  mps=BYTES         PCIe MaxPayload in force (DevCtl in lspci -vv), 128 to 4096; else from 256 on
  mtu=BYTES         InfiniBand MTU 256 to 4096, IP MTU on Ethernet, path MTU with rocev2
  rails=N           rails used at once; 1 by default
  share-slot        the rails are ports of one HCA and share its slot
  protocol=NAME     ib, ipoib, tcp, tcp-bypass, udp, rocev2, iwarp, raw-ethernet, opa,
                    slingshot, efa, bxi
  flow-limit=RATE   what one flow may have, with its unit: 10 Gb/s
  flows=N           flows on each rail; 1 by default
  capability=RATE   what one process can drive: 25 Gb/s
  bidirectional     both directions at once, added up
"""


def fabric_option(*, required: bool) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a click command ``fabric``, None where none is stated.

    Args:
        required: refuse a command line without ``--link``.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def with_fabric(*args: Any, link: str | None, **named: Any) -> Any:
            return function(*args, fabric=None if link is None else _stated(link), **named)

        stating = click.option(
            "--link",
            required=required,
            metavar="NAME[,KEY=VALUE...]",
            help="Link of each rail, and what is known beside it: 'HDR100', 'FDR 4x,pcie=3.0x8', "
            "'40GbE,mtu=9000,rails=2'; also 'Omni-Path 100', 'Slingshot 200', 'EFA 100', 'BXI v2', "
            "'400MbE', 'Soft-RoCE 100 Mb/s'.  All keys: fabricproof ceiling --help",
        )
        return stating(with_fabric)  # type: ignore[return-value]

    return decorate


def _stated(text: str) -> Fabric:
    """Return the fabric that ``--link`` states."""
    link, *words = (each.strip() for each in text.split(","))
    settings: dict[str, Any] = {}
    for word in words:
        key, sign, value = (each.strip() for each in word.partition("="))
        if key not in _KEYS or key in settings or bool(value) is not bool(_KEYS[key]):
            keys = ", ".join(f"{each}={what}" if what else each for each, what in _KEYS.items())
            problem = f"expected {keys}, each once; got {key + sign + value!r}"
            raise click.BadParameter(problem, param_hint="--link")
        settings[key] = _number(key, value) if key in _WHOLE_NUMBERS else value or True
    return fabric_from_options(link=link, **{k.replace("-", "_"): v for k, v in settings.items()})


def _number(key: str, text: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,7}", text):
        return int(text)
    problem = f"{key} is a whole number of at most seven digits, got {text!r:.60}"
    raise click.BadParameter(problem, param_hint="--link")


def _rate(key: str, text: str, unit: str) -> float:
    try:
        return parse_quantity(text, unit)
    except UnitError as error:
        raise ConfigError(
            f"{key} is not a rate", expected="a number and a unit, as '10 Gb/s'", got=text
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
    capability: str | None = None,
    bidirectional: bool = False,
) -> Fabric:
    """Return the fabric that ``--link`` states.

    Raises:
        ConfigError: a value that cannot be; UnknownLinkError (one of them) for an unknown name.
    """
    for key, value in (("rails", rails), ("flows", flows)):
        if value < 1:
            raise ConfigError(
                f"{key} is out of range", expected="a whole number of at least 1", got=str(value)
            )
    fabric = Fabric(
        link=find_link(link),
        protocol=protocol,
        mtu=mtu,
        slot=None if pcie is None else find_slot(pcie),
        max_payload_bytes=mps,
        num_rails=rails,
        rails_share_slot=share_slot,
        flow_limit_gbit_s=None if flow_limit is None else _rate("flow-limit", flow_limit, "Gb/s"),
        num_flows=flows,
        bidirectional=bidirectional,
    )
    if capability is None:
        return fabric
    return replace(fabric, capability_mb_s=_rate("capability", capability, "MB/s"))


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
    points = by_key(
        ((each.verdict, each.unit), each.name) for each in judgements if each not in seen
    )
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
