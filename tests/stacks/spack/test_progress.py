"""Progress is read off the recorded output of real calls, line by line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.stacks.spack.output.progress import (
    Concretized,
    Event,
    External,
    Failed,
    Fetching,
    Origin,
    PackageInstalled,
    Phase,
    Reader,
    Skipped,
    SpackProgress,
    Started,
    advance,
    plain,
)

DATA = Path(__file__).resolve().parents[2] / "data" / "spack"
RUNS: dict[str, dict[str, object]] = json.loads((DATA / "runs.json").read_text())


def lines_of(name: str) -> list[str]:
    return (DATA / f"{name}.out").read_text().splitlines(keepends=True)


def read(lines: list[str], reader: Reader | None = None) -> tuple[list[Event], SpackProgress]:
    reader = reader or Reader()
    events = [event for line in lines for event in reader.feed(line)]
    return [*events, *reader.close()], reader.state


def test_every_recording_has_its_status_and_every_status_its_recording() -> None:
    assert {path.stem for path in DATA.glob("*.out")} == set(RUNS)


def test_concretize() -> None:
    events, state = read(lines_of("concretize"))
    assert events == [Concretized(specs=2)]
    assert state.done == 0


def test_a_whole_install() -> None:
    events, state = read(lines_of("install"))
    assert state.built == (
        "compiler-wrapper",
        "gcc-runtime",
        "intel-mpi-benchmarks",
        "osu-micro-benchmarks",
    )
    assert state.externals == ("gcc", "glibc", "gmake", "openmpi")
    assert (state.total, state.done, state.package, state.failed) == (8, 8, None, ())
    phases = [each.phase for each in events if isinstance(each, Phase)]
    assert phases[-4:] == ["autoreconf", "configure", "build", "install"]
    osu = events[-1]
    assert isinstance(osu, PackageInstalled)
    assert (osu.package, osu.version, osu.origin) == ("osu-micro-benchmarks", "7.2", Origin.BUILT)
    assert osu.seconds == 28.5
    assert osu.prefix.startswith("/stacks/spack/install/")
    assert External(package="openmpi", version="5.0.11", prefix="/opt/openmpi5") in events


def test_in_the_middle_of_an_install_package_and_phase_are_known() -> None:
    lines = lines_of("install")
    until = next(number for number, line in enumerate(lines) if "phase: 'configure'" in line)
    _, state = read(lines[: until + 1])
    assert (state.package, state.phase) == ("osu-micro-benchmarks", "configure")
    assert (state.done, state.total) == (7, 8)


def test_what_was_there_before_is_reused_not_built() -> None:
    events, state = read(lines_of("install-again"))
    assert state.built == ()
    assert state.reused == ("gcc-runtime", "osu-micro-benchmarks", "intel-mpi-benchmarks")
    assert all(each.seconds is None for each in events if isinstance(each, PackageInstalled))


def test_colours_change_nothing() -> None:
    assert read(lines_of("install-again-colour")) == read(lines_of("install-again"))


def test_from_a_build_cache_and_nothing_in_hand_at_the_end() -> None:
    events, state = read(lines_of("install-build-cache"))
    assert len(state.from_cache) == 4
    assert state.built == ()
    assert (state.package, state.total, state.done) == (None, 8, 8)
    assert [each.seconds for each in events if isinstance(each, PackageInstalled)] == [
        0.15,
        0.44,
        0.4,
        0.23,
    ]


def test_what_another_spack_built_meanwhile_is_reused() -> None:
    _, state = read(lines_of("install-beside-another"))
    assert state.built == ("osu-micro-benchmarks",)
    assert "intel-mpi-benchmarks" in state.reused


def test_a_failure_with_its_log() -> None:
    events, state = read(lines_of("configure-error"))
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.package == "osu-micro-benchmarks"
    assert failed.reason == "ProcessError: Command exited with status 77:"
    assert failed.log is not None
    assert failed.log.endswith("/spack-build-out.txt")
    assert state.failed == ("osu-micro-benchmarks",)


def test_a_failure_without_a_log_and_what_was_skipped_for_it() -> None:
    events, state = read(lines_of("no-sources"))
    failed = [each for each in events if isinstance(each, Failed)]
    assert [(each.package, each.log) for each in failed] == [("compiler-wrapper", None)]
    assert Skipped(package="osu-micro-benchmarks", because="compiler-wrapper") in events
    assert state.skipped == ("intel-mpi-benchmarks", "osu-micro-benchmarks")
    assert state.built == ("gcc-runtime",)


def test_the_log_that_follows_a_failure_starts_nothing_again() -> None:
    events, state = read(lines_of("compile-error-whole-log"))
    assert (state.package, state.failed) == (None, ("intel-mpi-benchmarks",))
    assert isinstance(events[-1], Failed)


def test_two_failures_are_two() -> None:
    assert read(lines_of("disk-full-stage"))[1].failed == (
        "osu-micro-benchmarks",
        "intel-mpi-benchmarks",
    )


def test_an_interrupt_is_no_failure_of_the_package() -> None:
    _, state = read(lines_of("interrupted"))
    assert (state.failed, state.package) == ((), "intel-mpi-benchmarks")


@pytest.mark.parametrize(("marker", "cached"), [("Fetching", False), ("Using cached", True)])
def test_where_sources_come_from(marker: str, cached: bool) -> None:
    name = "configure-error" if cached else "install"
    found = [each for each in read(lines_of(name))[0] if isinstance(each, Fetching)]
    assert any(marker in line for line in lines_of(name))
    assert {each.cached for each in found} == {cached}
    assert found[-1].package == "osu-micro-benchmarks"


@pytest.mark.parametrize("name", sorted(RUNS))
def test_done_never_falls_nor_passes_the_total(name: str) -> None:
    reader, before = Reader(), 0
    for line in lines_of(name):
        reader.feed(line)
        state = reader.state
        assert state.done >= before
        assert state.total is None or state.done <= state.total
        before = state.done


@pytest.mark.parametrize("name", sorted(RUNS))
def test_the_state_is_the_sum_of_the_events(name: str) -> None:
    events, state = read(lines_of(name))
    total = SpackProgress()
    for event in events:
        total = advance(total, event)
    assert total == state


def test_a_name_with_a_digit_is_known_from_the_lock() -> None:
    digest = "a" * 32
    line = f"==> Installing font-75dpi-1.0-{digest} [1/2]\n"
    guessed, _ = read([line])
    known, _ = read([line], Reader(names={digest: "font-75dpi"}))
    assert guessed == [Started(package="font", version="75dpi-1.0", number=1, total=2)]
    assert known == [Started(package="font-75dpi", version="1.0", number=1, total=2)]


def test_a_name_is_known_from_the_list_of_the_solver() -> None:
    listed = " -   aaaaaaa      ^font-75dpi@1.0 platform=linux\n"
    events, _ = read([listed, f"==> Installing font-75dpi-1.0-{'a' * 32}\n"])
    assert events == [Started(package="font-75dpi", version="1.0")]


@pytest.mark.parametrize(
    ("identity", "package"),
    [
        ("ca-certificates-mozilla-2026-03-19", ("ca-certificates-mozilla", "2026-03-19")),
        ("py-pip-24.3.1", ("py-pip", "24.3.1")),
        ("some-tool-main", ("some-tool", "main")),
    ],
)
def test_names_and_versions_with_hyphens(identity: str, package: tuple[str, str]) -> None:
    (event,), _ = read([f"==> Installing {identity}-{'b' * 32} [1/1]\n"])
    assert isinstance(event, Started)
    assert (event.package, event.version) == package


def test_a_prefix_that_holds_no_name_is_its_own_name() -> None:
    (event,), _ = read(["[+] /somewhere/else\n"])
    assert event == PackageInstalled(
        package="else", version="", prefix="/somewhere/else", origin=Origin.REUSED
    )


def test_a_lock_that_names_it_otherwise_is_not_believed() -> None:
    digest = "a" * 32
    (event,), _ = read([f"==> Installing imb-1.0-{digest}\n"], Reader(names={digest: "osu"}))
    assert event == Started(package="imb", version="1.0")


def test_a_total_that_was_given_holds_until_spack_says_its_own() -> None:
    reader = Reader(total=5)
    assert reader.state.total == 5
    reader.feed(f"==> Installing imb-1.0-{'c' * 32} [1/7]\n")
    assert reader.state.total == 7


@pytest.mark.parametrize(
    ("time", "seconds"),
    [("28.50s", 28.5), ("2m 3.00s", 123.0), ("1h 1m 1.50s", 3661.5), ("1h 2.00s", 3602.0)],
)
def test_times(time: str, seconds: float) -> None:
    identity = f"imb-1.0-{'d' * 32}"
    events, _ = read(
        [
            f"==> imb: Successfully installed {identity}\n",
            f"  Stage: 0.01s.  Build: {time}.  Total: {time}\n",
            f"[+] /tree/{identity}\n",
        ]
    )
    assert isinstance(events[0], PackageInstalled)
    assert events[0].seconds == seconds


def test_a_window_title_and_a_bell_are_no_text() -> None:
    assert plain("\x1b]0;Processing osu [1/8]\x07\x1b[1;34m==>\x1b[0m Installing\r\n") == (
        "==> Installing"
    )


@given(st.lists(st.text(max_size=60), max_size=20))
def test_any_text_is_passed_over(lines: list[str]) -> None:
    _, state = read(lines)
    assert state.done >= 0


@given(st.sampled_from(["\x1b[1;32m", "\x1b[0m", "\x1b[K", "\x1b]0;title\x07"]), st.data())
def test_control_codes_anywhere_change_nothing(code: str, data: st.DataObject) -> None:
    lines = lines_of("install")
    at = data.draw(st.integers(0, len(lines) - 1))
    column = data.draw(st.integers(0, len(lines[at].rstrip("\n"))))
    painted = [*lines]
    painted[at] = lines[at][:column] + code + lines[at][column:]
    assert read(painted) == read(lines)


@given(st.data())
def test_lines_of_another_release_between_change_nothing(data: st.DataObject) -> None:
    lines = lines_of("install")
    at = data.draw(st.integers(0, len(lines)))
    words = data.draw(st.text("abc :'%@", max_size=30))
    assert not re.match(r"==>|\[", words)
    assert read([*lines[:at], f"==> A note: {words}\n", *lines[at:]]) == read(lines)
