"""What a benchmark is told to do, by which options, and how many payload bytes it then moves.

The bytes from the programs' own loops: OSU 7.4 (c/mpi/pt2pt/standard, c/mpi/one-sided), mpi4py's
demo/osu_* and IMB 2021.11 (src_c, src_cpp), and measured with interface counters: with 16 KiB to
1 MiB messages these showed 0.4 to 1.5 % more (headers and acknowledgements; docs/stacks.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.core.errors import ConfigError

#: runs one of mpi4py's ports with sizes, repetitions and windows of our choice
PORT_RUNNER = Path(__file__).parent / "portrunner.py"

#: IMB's limit on the bytes of one size, in MB: so high that the repetitions always hold
_IMB_VOLUME_MB = "1000000"


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Message sizes that are measured with the same repetitions.

    Attributes:
        sizes: in bytes, ascending; powers of two (and 0) for the C programs.
        iterations: measured rounds of each size.
        warmups: unmeasured rounds before them; IMB chooses its own.
        window_size: messages in flight, for programs that have a window.
    """

    sizes: tuple[int, ...]
    iterations: int
    warmups: int
    window_size: int = 64

    def __post_init__(self) -> None:
        if not self.sizes or list(self.sizes) != sorted(set(self.sizes)) or self.sizes[0] < 0:
            raise ConfigError("message sizes must ascend from 0 or more", got=str(self.sizes))
        if self.iterations < 1 or self.warmups < 0 or self.window_size < 1:
            raise ConfigError(
                "a segment needs at least one iteration and a window of one message", got=str(self)
            )


def imb_binary(program: str) -> str | None:
    """Return the IMB binary that has ``program``, None if none has."""
    row = program_of("imb", program)
    return row.binary if row is not None else None


def has_window(suite: str, program: str) -> bool:
    """Tell whether a program keeps a window of messages in flight (``-W``, ``-window_size``)."""
    row = program_of(suite, program)
    return row is not None and row.messages is not None and row.messages.windowed


def command_lines(
    suite: str, program: str, argv: Sequence[str], segments: Sequence[Segment]
) -> tuple[tuple[str, ...], ...]:
    """Return the commands that measure ``segments``, to be started one after the other.

    The mpi4py ports measure any number of segments in one run; the C programs (options of 5.6 to
    7.5, util/osu_util_options.h) know one number of repetitions a run: a run for each segment.

    Raises:
        ConfigError: unknown suite, or sizes that the program cannot be told.
    """
    if suite == "osu-mpi4py":
        told = (
            f"{','.join(map(str, each.sizes))}:{each.iterations}:{each.warmups}:{each.window_size}"
            for each in segments
        )
        return ((*argv, *told),)
    if suite != "osu":
        raise ConfigError("unknown suite", expected="osu or osu-mpi4py", got=repr(suite))
    windowed = has_window("osu", program)
    lines = []
    for each in segments:
        _check_powers(each.sizes, zero=not windowed)
        window = ("-W", str(each.window_size)) if windowed else ()
        rounds = ("-i", str(each.iterations), "-x", str(each.warmups))
        lines.append((*argv, "-m", f"{each.sizes[0]}:{each.sizes[-1]}", *rounds, *window))
    return tuple(lines)


def _check_powers(sizes: tuple[int, ...], *, zero: bool) -> None:
    """Refuse what is no run of powers of two; 0 may come before 1."""
    due = [sizes[0]]
    while due[-1] < sizes[-1]:
        due.append(due[-1] * 2 or 1)
    power = sizes[0] & (sizes[0] - 1) == 0
    if tuple(due) != sizes or not power or (sizes[0] == 0 and not zero):
        raise ConfigError("this program measures consecutive powers of two", got=str(sizes))


def collective_lines(
    suite: str,
    program: str,
    argv: Sequence[str],
    segments: Sequence[Segment],
    *,
    num_ranks: int,
) -> tuple[tuple[str, ...], ...]:
    """Return the commands that measure a collective.

    OSU 6.0 and later: ``-f`` prints least and most beside the mean; reductions of 5.x count
    ``-m``'s least size in floats, so that their tables begin later than asked and are MISSING.
    IMB: all ranks alone (``-npmin``), repetitions that hold.

    Raises:
        ConfigError: sizes that the program cannot be told.
    """
    if suite == "osu-mpi4py":
        return command_lines(suite, program, argv, segments)
    lines = []
    for each in segments:
        low, high = each.sizes[0], each.sizes[-1]
        if suite == "imb":
            log = (
                [] if high == 0 else ["-msglog", f"{low.bit_length() - 1}:{high.bit_length() - 1}"]
            )
            rounds = ["-iter", f"{each.iterations},{_IMB_VOLUME_MB}", "-iter_policy", "off"]
            lines.append((*argv, "-npmin", str(num_ranks), *log, *rounds, "-zero_size", "off"))
        else:
            sizes = ["-m", f"{low}:{high}"] if high else []
            rounds = ["-i", str(each.iterations), "-x", str(each.warmups)]
            lines.append((*argv, "-f", *sizes, *rounds))
    return tuple(lines)


@dataclass(frozen=True, kw_only=True)
class BytesMoved:
    """Payload in bytes and messages of one run, by halves of the ranks.

    The messages are those that wait for an answer each, None if messages follow each other and may
    share packets.
    """

    sent_by_first: int
    sent_by_second: int
    messages_by_first: int | None = None
    messages_by_second: int | None = None


def expected_bytes(
    suite: str, program: str, segments: Sequence[Segment], *, num_ranks: int = 2
) -> BytesMoved | None:
    """Return what the ranks send in the rounds of ``segments``.

    ``num_ranks`` is even; pairs move their bytes each.  IMB adds rounds that it neither prints nor
    is told.  None for a program whose traffic is not a fixed exchange between pairs (collectives,
    random partners).
    """
    row = program_of(suite, program)
    if row is None or row.messages is None:
        return None
    body = row.messages
    # IMB's PingPong and one-sided pairs leave further ranks idle.
    pairs = max(1, num_ranks // 2) if row.meaning.pairs_share_rails else 1
    forth = back = rounds = 0
    for segment in segments:
        loops = (segment.iterations + segment.warmups) * pairs
        payload = loops * (segment.window_size if body.windowed else 1) * sum(segment.sizes)
        forth += body.forth * payload
        back += body.back * payload + loops * len(segment.sizes) * body.answer_bytes
        rounds += loops * len(segment.sizes)
    turns = rounds if body.in_turn else None
    return BytesMoved(
        sent_by_first=forth,
        sent_by_second=back,
        messages_by_first=turns,
        messages_by_second=turns,
    )
