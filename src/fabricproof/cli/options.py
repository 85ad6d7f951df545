"""The options that several commands have: each is declared, and explained, here and once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from fabricproof.cli.output import listed

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _sites_that_begin(
    _context: click.Context, _parameter: click.Parameter, begin: str
) -> list[CompletionItem]:
    from fabricproof.site import site_folders  # noqa: PLC0415 - a sixth of a second, for one key

    names = (folder.name for folder in site_folders())
    return [CompletionItem(name) for name in names if name.startswith(begin)]


site = click.option(
    "--site",
    "site_name",
    metavar="NAME",
    shell_complete=_sites_that_begin,
    help="Site in site-configs, or its folder.  [default: $FABRICPROOF_SITE, else the one that "
    "knows this host]",
)
stated_site = click.option(
    "--site",
    "site_name",
    metavar="NAME",
    shell_complete=_sites_that_begin,
    help="Site in site-configs, or its folder.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
as_csv = click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one line a quantity.")
plot = click.option("--plot", metavar="FILE.svg", help="Write a picture of it too.")
everything = click.option(
    "--all", "whole", is_flag=True, help="Show all: no row, point or reason is left out."
)
replace = click.option("--replace", is_flag=True, help="Replace what has that name.")
margins = click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="METRIC=PERCENT",
    help="Smallest change that matters.  Repeatable.  [default: bandwidth=3%, latency=5%]",
)
leaves = click.option(
    "--leaves",
    metavar="FILE",
    help="Which switch each node hangs on: what `scontrol show topology` printed, topology.conf, "
    "or rows of node,leaf.",
)
order = click.option(
    "--order",
    type=click.Choice(["leafwise", "circle", "random"]),
    default="leafwise",
    show_default=True,
    help="Order of the rounds of a full matrix.",
)
keep = click.option(
    "--keep", metavar="FOLDER", help="Keep what the tools print, as text, in this new folder."
)
kept = click.option(
    "--from", "folder", metavar="FOLDER", help="Read what --keep kept there, and ask no machine."
)


#: Slurm's own options that a command which starts jobs hands on
SLURM = {
    "reservation": ("NAME", "Slurm's reservation that has the nodes."),
    "account": ("NAME", "Slurm's account that pays."),
    "qos": ("NAME", "Slurm's quality of service."),
    "nodelist": ("LIST", "Measure on these nodes and no others."),
}


def slurm(*names: str) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a command ``slurm``: what was given of Slurm's options.

    ``names``: of those that the command has.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def with_given(*args: Any, **named: Any) -> Any:
            given = {name: value for name in names if (value := named.pop(name))}
            return function(*args, slurm=given, **named)

        for name in reversed(names):
            metavar, text = SLURM[name]
            with_given = click.option(f"--{name}", metavar=metavar, help=text)(with_given)
        return with_given  # type: ignore[return-value]

    return decorate


def of_slurm(given: Mapping[str, str]) -> list[str]:
    """Return the words with which ReFrame hands options on to Slurm."""
    return [word for name, value in given.items() for word in ("-J", f"{name}={value}")]


def arguments(metavar: str = "[REFRAME OPTION...]") -> Callable[[_Function], _Function]:
    """Return the argument that takes ReFrame's options; it refuses an empty one.

    ``-t ""`` would mean every check to ReFrame, where a script's variable was empty.
    """

    def refuse_empty(
        context: click.Context, argument: click.Parameter, words: tuple[str, ...]
    ) -> tuple[str, ...]:
        if not all(each.strip() for each in words):
            raise click.BadParameter("it is empty: say what is meant", context, argument)
        return words

    return click.argument(
        "arguments", nargs=-1, type=click.UNPROCESSED, metavar=metavar, callback=refuse_empty
    )


#: settings of a command that takes ReFrame's options beside its own
PASSED_ON = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}


def count(
    name: str, default: int, text: str, least: int = 0, most: int | None = None
) -> Callable[[_Function], _Function]:
    """Return an option that takes a whole number from ``least`` to ``most``."""
    return click.option(
        name,
        type=click.IntRange(least, most),
        default=default,
        show_default=True,
        metavar="N",
        help=text,
    )


def output(kinds: Mapping[str, str]) -> Callable[[_Function], _Function]:
    """Return the option that writes files; the end of a name decides what is written.

    The command gets ``files``: each end of a name that was given, to its file.

    Args:
        kinds: the end of a name, as ``.html``, to what such a file has.
    """

    def split(
        context: click.Context, option: click.Parameter, paths: tuple[Path, ...]
    ) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for path in paths:
            end = next((each for each in kinds if path.name.endswith(each)), "")
            if not end or end in found:
                problem = f"two files of {end}" if end else f"no such kind of file: {path}"
                expected = f"{problem}; expected one name each that ends in {listed([*kinds])}"
                raise click.BadParameter(expected, context, option)
            found[end] = path
        return found

    told = "; ".join(f"{end} {what}" for end, what in kinds.items())
    return click.option(
        "-o",
        "--output",
        "files",
        multiple=True,
        callback=split,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Write a file; the end of its name says which: {told}."
        + "  Repeatable." * (len(kinds) > 1),
    )


class RealNumber(click.FloatRange):
    """A number within a range, and not nan, which click finds within every one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class OfGroup(click.Command):
    """A command of a :class:`HelpGroup`, whose help names the group's options too."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command, then those of the group."""
        super().format_options(ctx, formatter)
        group = ctx.parent
        if group is not None:
            records = [each.get_help_record(group) for each in group.command.params]
            with formatter.section(f"Options of every `{group.command_path}` command"):
                formatter.write_dl([each for each in records if each is not None])


class HelpGroup(click.Group):
    """A group whose own options are those of all its commands, and may stand after their names."""

    command_class = OfGroup

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the group's options from wherever they stand before ``--``."""
        end = args.index("--") if "--" in args else len(args)
        mine, others, words = [], [], iter(args[:end])
        takes = {
            name: not each.is_flag
            for each in self.params
            if isinstance(each, click.Option)
            for name in each.opts
        }
        for word in words:
            name, sign, _ = word.partition("=")
            if name not in takes:
                others.append(word)
                continue
            mine.append(word)
            if takes[name] and not sign:
                value = next(words, None)
                if value is None:
                    raise click.BadOptionUsage(name, f"Option {name!r} requires an argument.", ctx)
                mine.append(value)
        return super().parse_args(ctx, [*mine, *others, *args[end:]])


def of_group(*names: str) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a command the values of its group's options."""

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def with_values(*args: Any, **named: Any) -> Any:
            parent = click.get_current_context().parent
            assert parent is not None, "a command of a group"
            return function(*args, **{name: parent.params[name] for name in names}, **named)

        return with_values  # type: ignore[return-value]

    return decorate
