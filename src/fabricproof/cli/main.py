"""Dispatch to the subcommands, and the one place where errors become messages and statuses."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from fabricproof import __version__
from fabricproof.cli.clean_output import CleanOutput
from fabricproof.core.errors import ExitStatus, FabricproofError, without_control_characters

#: group -> subcommand -> (module, one line of help), as the README has them.  The help stands here
#: so that ``--help`` need not import every subcommand: start-up time is a feature (benchmarks/).
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "measure": {
        "run": ("measure.run", "Run the checks and print the verdict table."),
        "plan": ("measure.plan", "Show what a run would cost; submit nothing."),
        "nightly": ("measure.nightly", "Run unattended: confirm red, tell what changed."),
        "pairs": ("measure.pairs", "Every node with every node: who is slow."),
        "admit": ("measure.admit", "Say whether users may have a repaired node."),
        "reframe": ("measure.run", "Start ReFrame with this site's configuration."),
    },
    "judge": {
        "judge": ("judge.judge", "Judge an output or numbers that you already have."),
        "parse": ("judge.parse", "Show the tables in benchmark outputs."),
        "ceiling": ("judge.ceiling", "Show what a fabric can carry, and what binds."),
    },
    "history": {
        "report": ("history.report", "Show one run: screen, HTML, JUnit, Prometheus."),
        "compare": ("history.compare", "Say what changed between two sides, and where."),
        "trend": ("history.trend", "Say what changed over the nights, and since when."),
        "baseline": ("history.baseline", "Keep what known-good runs measured; judge by it."),
        "runs": ("history.runs", "List the runs so far, and name them."),
    },
    "site": {
        "init": ("init", "Lay out a site's own folder, beside an installed package."),
        "site": ("site.site", "Begin, check and show site files."),
        "preflight": ("site.preflight", "Judge links and cards of nodes as last seen."),
        "inventory": ("site.inventory", "Show what nodes are made of, and what differs."),
        "subnet": ("site.subnet", "Judge an InfiniBand fabric: cables, managers."),
        "stack": ("site.stack", "Build, install and explain MPI stacks."),
    },
    "tools": {
        "vcluster": ("vcluster", "Bring up a real Slurm on this machine."),
    },
}
SUBCOMMANDS = {
    name: (f"fabricproof.cli.{module}", text)
    for group in GROUPS.values()
    for name, (module, text) in group.items()
}


#: what a file system answers that will not take what we write
_UNWRITABLE = frozenset({
    errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EACCES, errno.EPERM,
    errno.ENOTDIR, errno.EEXIST,
})  # fmt: skip

#: what it answers if a file went away, or is of another kind than one that can be read
_GONE = frozenset({errno.ENOENT, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ESTALE})

#: what only a program that mixes its own files up is answered
_OUR_OWN = frozenset({errno.EBADF, errno.EFAULT, errno.ENOTSOCK})


class _NobodyReadsError(Exception):
    """Standard output was closed; no OSError, for which click would leave with 1, a FAIL."""


def _unescape(command: click.Command) -> None:
    r"""Turn the two characters ``\b`` of a raw docstring into click's mark against rewrapping."""
    command.help = command.help and command.help.replace("\\b\n", "\b\n")
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _unescape(inner)


def _refuse_nothing(command: click.Command) -> None:
    """Have every option and argument of a command refuse an empty text.

    ``fabricproof report "$RUN"`` with an empty RUN would report the newest run, and ``--site ""``
    the site of this host: another one than the script meant, and green perhaps.
    """
    for parameter in command.params:
        # Called again in one process it must not grow: each layer is a frame of the stack.
        done = isinstance(parameter.consume_value, partial)
        if parameter.type is not click.UNPROCESSED and not done:
            consume = partial(_consumed, parameter.consume_value, parameter)
            parameter.consume_value = consume  # type: ignore[method-assign]
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _refuse_nothing(inner)


def _consumed(
    consume: Callable[..., tuple[Any, click.core.ParameterSource]],
    parameter: click.Parameter,
    context: click.Context,
    given: Mapping[str, Any],
) -> tuple[Any, click.core.ParameterSource]:
    value, source = consume(context, given)
    if source is click.core.ParameterSource.COMMANDLINE:
        texts = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(each, str) and not each.strip() for each in texts):
            raise click.BadParameter("it is empty: say what is meant", context, parameter)
    return value, source


class LazyGroup(click.Group):
    """A click group that imports a subcommand's module when it is called."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; a reader that goes away is told apart from a verdict."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _NobodyReadsError from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the subcommands in the order a newcomer meets them."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return the subcommand."""
        entry = SUBCOMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(entry[0])
        found = getattr(module, cmd_name, None)
        command: click.Command = found if isinstance(found, click.Command) else module.command
        _unescape(command)
        _refuse_nothing(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the subcommands by groups, without importing them."""
        for title, commands in GROUPS.items():
            with formatter.section(title.capitalize()):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 only if something was judged and nothing is FAIL (1), INVALID (3), "
    "MISSING (4) or UNJUDGED (5); 6 nothing judged; 2 usage; 65 damaged data; 66 no such file; "
    "69 something needed is not there; 74 cannot write; 75 another one runs; 77 not permitted; "
    "78 wrong config; 130 interrupted.",
)
@click.version_option(__version__, prog_name="fabricproof")
def group() -> None:
    """Prove that a cluster's interconnect performs as it should."""


def _leave(message: str, status: ExitStatus) -> NoReturn:
    # Where standard error takes nothing (a full disk below a log), the status still speaks.
    with contextlib.suppress(OSError, ValueError):
        click.echo(f"fabricproof: {without_control_characters(message, kept=chr(10))}", err=True)
    sys.exit(int(status))


def _leave_with_bug() -> NoReturn:
    import traceback  # noqa: PLC0415 - needed here only

    with contextlib.suppress(OSError, ValueError):
        traceback.print_exc()
    _leave("this is a bug in fabricproof; the lines above say where", ExitStatus.SOFTWARE)


def _was_started() -> bool:
    """Tell whether the error at hand comes from starting a program and not from opening a file."""
    import traceback  # noqa: PLC0415 - needed here only

    frames = traceback.extract_tb(sys.exc_info()[2])
    return bool(frames) and Path(frames[-1].filename).name == "subprocess.py"


def _leave_with(error: OSError) -> NoReturn:
    """Leave with what the system refused: a file, a process, memory; a bug is none of them."""
    if error.errno in _OUR_OWN:
        _leave_with_bug()
    said = error.strerror or str(error) or type(error).__name__
    name = f"{error.filename}: " if error.filename else ""
    if error.errno in _UNWRITABLE:
        _leave(f"{error.filename or 'output'}: cannot write: {said}", ExitStatus.IO)
    if isinstance(error, FileNotFoundError) and _was_started():
        _leave(f"{name}no such program, or no interpreter of it", ExitStatus.UNAVAILABLE)
    if error.errno in _GONE:
        _leave(f"{name}cannot read: {said}", ExitStatus.NO_INPUT)
    _leave(f"{name}the system refuses: {said}", ExitStatus.UNAVAILABLE)


def _open_what_is_closed() -> None:
    """Stand in for a stream that the shell closed (``>&-``): Python has None for it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _print_what_is_no_text() -> None:
    """Print half a character of a record or of a file's name as its escape, and not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in {"strict", "surrogateescape"}:
            stream.reconfigure(errors="backslashreplace")


def main() -> NoReturn:
    """Run the command line; every way out has a documented status."""
    _open_what_is_closed()
    _print_what_is_no_text()
    if not isinstance(sys.stdout, CleanOutput):
        sys.stdout = CleanOutput(sys.stdout)
    try:
        status = group.main(prog_name="fabricproof", standalone_mode=False)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.ClickException as error:
        with contextlib.suppress(OSError, ValueError):
            error.show()
        sys.exit(error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _leave("interrupted", ExitStatus.INTERRUPTED)
    except FabricproofError as error:
        _leave(str(error), error.exit_status)
    except (_NobodyReadsError, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(int(ExitStatus.IO))
    except OSError as error:
        _leave_with(error)
    except MemoryError:
        _leave("the memory is not enough for this", ExitStatus.UNAVAILABLE)
    except subprocess.SubprocessError as error:
        _leave(f"a program that was started failed: {error}", ExitStatus.UNAVAILABLE)
    except Exception:
        # Python's own status for this is 1, which would say FAIL: a bug is no verdict.
        _leave_with_bug()
    sys.exit(status if isinstance(status, int) else 0)
