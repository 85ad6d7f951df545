"""From an effort to command lines, and to what they are going to move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fabricproof.core.errors import ConfigError
from fabricproof.job.plan.effort import LARGE_MESSAGE_BYTES, Effort
from fabricproof.stacks.workload import (
    BytesMoved,
    Segment,
    command_lines,
    expected_bytes,
    has_window,
    imb_binary,
    split_sizes,
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is run for one leg and what is known of it beforehand.

    Attributes:
        commands: argument lists, to be run one after the other; each prints one table.
        sizes: message sizes that the tables hold together, in bytes, ascending.
        sent_bytes: payload of the first and the second half of the ranks; None where the output
            itself says how often each size ran (IMB's ``#repetitions``).
        sent_per_message: with such an output, messages of each half per repetition.
        sent_messages: messages of each half that wait for an answer, None where they may share
            packets or where the output says how many there were.
        least_repetitions: how often the least repeated size runs; None where the output says it.
    """

    commands: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]
    sent_bytes: tuple[int, int] | None
    sent_per_message: tuple[int, int] | None = None
    sent_messages: tuple[int, int] | None = None
    least_repetitions: int | None = None


def make_job(
    suite: str,
    program: str,
    argv: Sequence[str],
    effort: Effort,
    *,
    num_ranks: int = 2,
    starts_above: Sequence[int] = (),
) -> Job:
    """Return the job that gives ``program`` on ``num_ranks`` ranks this effort.

    Args:
        suite: of the program.
        program: what runs.
        argv: how it is called.
        effort: how hard.
        num_ranks: ranks in all.
        starts_above: message sizes in bytes, ascending, above each of which the program is started
            anew, so that the counters tell small messages from large; IMB-MPI1 alone of IMB.

    Raises:
        ConfigError: a program whose traffic cannot be foretold; its path could not be proven.
    """
    if suite == "imb":
        return _imb_job(program, argv, effort, num_ranks, starts_above)
    segments = split_sizes(
        effort.sizes,
        small=Segment(
            sizes=(1,),
            iterations=effort.iterations,
            warmups=effort.warmups,
            window_size=effort.small_window_size,
        ),
        large=Segment(
            sizes=(1,),
            iterations=effort.large_iterations,
            warmups=effort.large_warmups,
            window_size=effort.window_size,
        ),
        large_above=LARGE_MESSAGE_BYTES,
    )
    segments = _cut(segments, starts_above)
    moved = _foretold(suite, program, segments, num_ranks)
    messages = None
    if moved.messages_by_first is not None and moved.messages_by_second is not None:
        messages = (moved.messages_by_first, moved.messages_by_second)
    return Job(
        commands=tuple(
            argv_of_part
            for part in _parts(segments, starts_above)
            for argv_of_part in command_lines(suite, program, argv, part)
        ),
        sizes=effort.sizes,
        sent_bytes=(moved.sent_by_first, moved.sent_by_second),
        sent_messages=messages,
        least_repetitions=min(segment.iterations for segment in segments),
    )


def _cut(segments: Sequence[Segment], above: Sequence[int]) -> tuple[Segment, ...]:
    """Return the same measurement in segments none of which crosses a size of ``above``."""
    pieces = list(segments)
    for size in above:
        halves = [
            (segment, tuple(each for each in segment.sizes if (each <= size) == low))
            for segment in pieces
            for low in (True, False)
        ]
        pieces = [replace(segment, sizes=sizes) for segment, sizes in halves if sizes]
    return tuple(pieces)


def _parts(segments: Sequence[Segment], above: Sequence[int]) -> list[tuple[Segment, ...]]:
    """Return the segments start by start."""
    edges = (0, *above, segments[-1].sizes[-1])
    parts = [
        tuple(segment for segment in segments if low < segment.sizes[-1] <= high)
        for low, high in pairwise(edges)
    ]
    return [part for part in parts if part]


def _foretold(suite: str, program: str, segments: Sequence[Segment], num_ranks: int) -> BytesMoved:
    moved = expected_bytes(suite, program, segments, num_ranks=num_ranks)
    if moved is None:
        raise ConfigError(
            f"nobody can say how many bytes {program} of {suite} moves",
            expected="a program with a fixed exchange between pairs",
            next_step="its path cannot be proven, so its numbers could never be green",
        )
    return moved


def _imb_job(
    program: str, argv: Sequence[str], effort: Effort, num_ranks: int, starts_above: Sequence[int]
) -> Job:
    """Return IMB's run: repetitions fall with the size, and the table says how many ran.

    ``-iter N,MB``: N repetitions, fewer where they would move more than MB megabytes (IMB user
    guide, "-iter").  ``-time`` is set so high that IMB never cuts a size off by its own estimate.
    """
    windowed = has_window("imb", program)
    window = effort.window_size if windowed else 1
    one = Segment(sizes=(1,), iterations=1, warmups=0, window_size=window)
    moved = _foretold("imb", program, (one,), num_ranks)
    rounds = max(moved.sent_by_first, moved.sent_by_second)
    per_message = (moved.sent_by_first // min(2, rounds), moved.sent_by_second // min(2, rounds))
    volume_mb = max(MIN_VOLUME_MB, effort.large_iterations * effort.sizes[-1] // 1_000_000)
    options = ["-iter", f"{max(effort.iterations, 10)},{1 if windowed else volume_mb}"]
    if windowed:  # the volume counts one message of each window, of one pair
        options += ["-window_size", str(window)]
    binary = imb_binary(program)
    if binary != "IMB-P2P":
        options += ["-time", IMB_SECONDS_PER_SIZE]
        # Otherwise it measures 2, 4 ... ranks one after the other.
        options += ["-npmin", str(num_ranks)] if num_ranks > 2 else []
    if binary == "IMB-RMA":
        options += ["-aggregate_mode", "non_aggregate"]
    with_zero = binary != "IMB-P2P" and effort.sizes[0] == 1
    edges = (0, *(starts_above if binary == "IMB-MPI1" else ()), effort.sizes[-1])
    parts = [[size for size in effort.sizes if low < size <= high] for low, high in pairwise(edges)]
    return Job(
        commands=tuple((*argv, *_imb_sizes(part), *options) for part in parts if part),
        sizes=(0, *effort.sizes) if with_zero else effort.sizes,
        sent_bytes=None,
        sent_per_message=per_message,
    )


def _imb_sizes(sizes: Sequence[int]) -> tuple[str, ...]:
    """Return the option for powers of two; IMB puts an empty message first, wanted once a leg."""
    log = ("-msglog", f"{sizes[0].bit_length() - 1}:{sizes[-1].bit_length() - 1}")
    return log if sizes[0] == 1 else (*log, "-zero_size", "off")


#: far above what a size may take; the leg's own limit ends a hang
IMB_SECONDS_PER_SIZE = "30"

#: IMB moves at least this much of each size, so that its large rows are more than one message.
MIN_VOLUME_MB = 8
