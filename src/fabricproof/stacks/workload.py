"""What a benchmark is told to do, by which options, and how many payload bytes it then moves.

The bytes from the programs' own loops: OSU 7.4 (c/mpi/pt2pt/standard, c/mpi/one-sided), mpi4py's
demo/osu_* and IMB 2021.11 (src_c, src_cpp), and measured with interface counters: with 16 KiB to
1 MiB messages the counters showed 0.4 to 1.5 % more (headers and acknowledgements; see
docs/stacks.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.core.errors import ConfigError

#: runs one of mpi4py's ports with sizes, repetitions and windows of our choice.
PORT_RUNNER = Path(__file__).parent / "portrunner.py"

#: IMB's limit on the bytes of one size, in MB: so high that the repetitions always hold.
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
                "a segment needs at least one iteration and a window of one message",
                got=f"iterations {self.iterations}, warmups {self.warmups}, "
                f"window {self.window_size}",
            )


def imb_binary(program: str) -> str | None:
    """Return the IMB binary that has ``program``, None where none has."""
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

    The mpi4py ports measure any number of segments in one run; the C programs know one number of
    repetitions a run, so each segment is a run and a table of its own.

    Raises:
        ConfigError: unknown suite, or sizes that the program cannot be told.
    """
    if suite == "osu-mpi4py":
        return ((*argv, *(_port_option(segment) for segment in segments)),)
    if suite == "osu":
        return tuple((*argv, *_osu_options(program, segment)) for segment in segments)
    raise ConfigError("unknown suite", expected="osu or osu-mpi4py", got=repr(suite))


def _port_option(segment: Segment) -> str:
    sizes = ",".join(map(str, segment.sizes))
    return f"{sizes}:{segment.iterations}:{segment.warmups}:{segment.window_size}"


def _power_range(segment: Segment, *, zero: bool) -> tuple[int, int]:
    """Return the first and last size of a run of powers of two; 0 may come before 1."""
    sizes = segment.sizes
    due = [sizes[0]]
    while due[-1] < sizes[-1]:
        due.append(due[-1] * 2 or 1)
    power = sizes[0] & (sizes[0] - 1) == 0
    if tuple(due) != sizes or not power or (sizes[0] == 0 and not zero):
        raise ConfigError(
            "this program measures consecutive powers of two",
            expected=f"{due[0]}, {due[0] * 2 or 1} ... {sizes[-1]}",
            got=", ".join(map(str, sizes)),
        )
    return sizes[0], sizes[-1]


def _osu_options(program: str, segment: Segment) -> tuple[str, ...]:
    """Options of the C programs, the same from 5.6 to 7.5 (util/osu_util_options.h).

    ``-i`` and ``-x`` set the repetitions of small and large messages alike, therefore one run
    for each segment.
    """
    low, high = _power_range(segment, zero=not has_window("osu", program))
    options = ["-m", f"{low}:{high}", "-i", str(segment.iterations), "-x", str(segment.warmups)]
    if has_window("osu", program):
        options += ["-W", str(segment.window_size)]
    return tuple(options)


def collective_lines(
    suite: str,
    program: str,
    argv: Sequence[str],
    segments: Sequence[Segment],
    *,
    num_ranks: int,
) -> tuple[tuple[str, ...], ...]:
    """Return the commands that measure a collective.

    Raises:
        ConfigError: sizes that the program cannot be told.
    """
    if suite == "osu-mpi4py":
        return command_lines(suite, program, argv, segments)
    if suite == "imb":
        return tuple((*argv, *_imb_collective(segment, num_ranks)) for segment in segments)
    return tuple((*argv, *_osu_collective(segment)) for segment in segments)


def _osu_collective(segment: Segment) -> tuple[str, ...]:
    """Options of OSU's collectives, 6.0 and later; ``-f`` prints least and most beside the mean.

    Reductions of 5.x count ``-m``'s least size in floats: their tables begin later than asked, and
    are MISSING.
    """
    low, high = segment.sizes[0], segment.sizes[-1]
    sizes = ["-m", f"{low}:{high}"] if high else []
    return ("-f", *sizes, "-i", str(segment.iterations), "-x", str(segment.warmups))


def _imb_collective(segment: Segment, num_ranks: int) -> tuple[str, ...]:
    """Options of IMB's collectives: all ranks alone (``-npmin``), repetitions that hold."""
    low, high = segment.sizes[0], segment.sizes[-1]
    log = [] if high == 0 else ["-msglog", f"{low.bit_length() - 1}:{high.bit_length() - 1}"]
    repetitions = ["-iter", f"{segment.iterations},{_IMB_VOLUME_MB}", "-iter_policy", "off"]
    return ("-npmin", str(num_ranks), *log, *repetitions, "-zero_size", "off")


@dataclass(frozen=True, kw_only=True)
class BytesMoved:
    """Payload and messages of one run.

    Attributes:
        sent_by_first: bytes sent by the first half of the ranks.
        sent_by_second: bytes sent by the second half.
        messages_by_first: messages of the first half that wait for an answer each, None where
            messages follow each other and may share packets.
        messages_by_second: likewise of the second half.
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
    is told.

    Returns:
        None for a program whose traffic is not a fixed exchange between pairs (collectives,
        random partners): its bytes cannot be foretold here.
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
        messages = segment.window_size if body.windowed else 1
        payload = loops * messages * sum(segment.sizes)
        answers = loops * len(segment.sizes) * body.answer_bytes
        forth += body.forth * payload
        back += body.back * payload + answers
        rounds += loops * len(segment.sizes)
    turns = rounds if body.in_turn else None
    return BytesMoved(
        sent_by_first=forth,
        sent_by_second=back,
        messages_by_first=turns,
        messages_by_second=turns,
    )
