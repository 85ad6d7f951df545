"""Run one of mpi4py's ports of OSU programs with message sizes and repetitions of our choice.

A stand-alone script for the stack's own Python:

    python portrunner.py PORT.py SIZES:ITERATIONS:WARMUPS:WINDOW ...

The port's code stays as it was published.  It takes repetitions as arguments of its function but
computes its list of sizes itself; only that list is replaced, in memory.  Rows are printed at
once, so that what was measured before a job is killed is not lost, and the header only once.

``FABRICPROOF_LOADED`` names a file for the MPI libraries in its memory, one a line: mpi4py opens
one by its name, so that the loader's list of the program has none.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

_SIZES = "message_sizes"

#: the ports send their answer from a buffer of the largest size, 4 bytes of it.
_SMALLEST_BUFFER = 4


#: the last word of a line of /proc/PID/maps, as inside.sh looks for it
_LIBRARY = re.compile(r"(/.*/libmpi(?:ch|_abi)?\.so[.0-9]*)(?: \(deleted\))?$", re.MULTILINE)

#: Open MPI 5's MPI_Init ends with a fence and only then makes the world's communicator ready
#: (ompi_mpi_init.c, 5.0: add_comm after the fence): the first message of a rank that is ahead kills
#: one that is behind, 2 of 30 starts on a busy machine.  Nothing is timed yet at this point.
SETTLE_SECONDS = 0.1


def read_segment(text: str) -> tuple[list[int], int, int, int]:
    """Return (sizes, iterations, warmups, window) of one argument; ValueError if malformed."""
    sizes, iterations, warmups, window = text.split(":")
    return [int(size) for size in sizes.split(",")], int(iterations), int(warmups), int(window)


def compile_port(source: str, filename: str) -> CodeType:
    """Compile a port so that its ``message_sizes = [...]`` is the global ``_chosen_sizes``.

    Raises:
        ValueError: the port sets its sizes in another way than all known versions do.
    """
    tree = ast.parse(source, filename)
    makers = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id == _SIZES for each in node.targets)
    ]
    for node in makers:
        node.value = ast.copy_location(ast.Name("_chosen_sizes", ast.Load()), node.value)
    helper = any(isinstance(node, ast.FunctionDef) and node.name == _SIZES for node in tree.body)
    if len(makers) != 1 and not helper and _SIZES in source:
        raise ValueError(f"{filename}: no {_SIZES} to replace: an unknown version of this port")
    return compile(ast.fix_missing_locations(tree), filename, "exec")


def _arguments(function: Callable[..., None], segment: tuple[list[int], int, int, int]) -> Any:
    """Return the keyword arguments that this port understands."""
    sizes, iterations, warmups, window = segment
    offered = {
        "MAX_MSG_SIZE": max(_SMALLEST_BUFFER, *sizes),
        "large_message_size": max(sizes),
        **dict.fromkeys(("loop", "loop_small", "loop_large"), iterations),
        **dict.fromkeys(("skip", "skip_small", "skip_large"), warmups),
        **dict.fromkeys(("window_size", "window_size_large"), window),
    }
    known = inspect.signature(function).parameters
    return {name: value for name, value in offered.items() if name in known}


def loaded_libraries(maps: str) -> list[str]:
    """Return the MPI libraries of a text like /proc/self/maps, each once, in their order."""
    return list(dict.fromkeys(_LIBRARY.findall(maps)))


def run_port(path: Path, segments: list[tuple[list[int], int, int, int]]) -> None:
    """Run the port for each segment, as one table."""
    header_done = False

    def say(line: str) -> None:
        if not (header_done and line.startswith("#")):
            builtins.print(line, flush=True)  # noqa: T201 - a script's output

    source = path.read_text(encoding="utf-8")
    # osu_barrier has no message: one segment, whatever its sizes.
    has_sizes = _SIZES in source
    space: dict[str, Any] = {"__name__": path.stem, "print": say}
    exec(compile_port(source, str(path)), space)  # noqa: S102
    function = space[path.stem]
    if file := os.environ.get("FABRICPROOF_LOADED"):
        found = loaded_libraries(Path("/proc/self/maps").read_text(encoding="utf-8"))
        Path(file).write_text("".join(f"{each}\n" for each in found), encoding="utf-8")
    time.sleep(SETTLE_SECONDS)
    for segment in segments if has_sizes else segments[:1]:
        space["_chosen_sizes"] = segment[0]
        if callable(space.get(_SIZES)):
            space[_SIZES] = lambda _max_size, sizes=segment[0]: sizes
        function(**_arguments(function, segment))
        header_done = True


def main(arguments: list[str]) -> None:
    """Read the command line and run."""
    if len(arguments) < 2:
        sys.exit("usage: portrunner.py PORT.py SIZES:ITERATIONS:WARMUPS:WINDOW ...")
    try:
        segments = [read_segment(text) for text in arguments[1:]]
    except ValueError as error:
        sys.exit(f"portrunner.py: not SIZES:ITERATIONS:WARMUPS:WINDOW: {error}")
    run_port(Path(arguments[0]), segments)


if __name__ == "__main__":
    main(sys.argv[1:])
