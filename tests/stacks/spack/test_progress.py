"""Progress is read off the recorded output of real calls, line by line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.stacks.spack.output.progress import Reader, plain

DATA = Path(__file__).resolve().parents[2] / "data" / "spack"
RUNS: dict[str, dict[str, object]] = json.loads((DATA / "runs.json").read_text())


def lines_of(name: str) -> list[str]:
    return (DATA / f"{name}.out").read_text().splitlines(keepends=True)


def read(lines: list[str]) -> Reader:
    reader = Reader()
    for line in lines:
        reader.feed(line)
    return reader


def seen(lines: list[str]) -> dict[str, object]:
    """Return all that is told of a call at its end."""
    return {name: value for name, value in vars(read(lines)).items() if not name.startswith("_")}


def failed(reader: Reader) -> list[str]:
    return [each.package for each in reader.failed]


def test_every_recording_has_its_status_and_every_status_its_recording() -> None:
    assert {path.stem for path in DATA.glob("*.out")} == set(RUNS)


def test_concretizing_installs_nothing() -> None:
    reader = read(lines_of("concretize"))
    assert (reader.done, reader.package, reader.failed) == (0, None, [])


def test_a_whole_install() -> None:
    phases, reader = [], Reader()
    for line in lines_of("install"):
        if reader.feed(line) and reader.phase:
            phases.append(reader.phase)
    assert (reader.total, reader.done, reader.package) == (8, 8, None)
    assert (reader.failed, reader.from_cache) == ([], ())
    assert phases[-5:] == ["fetch", "autoreconf", "configure", "build", "install"]


def test_in_the_middle_of_an_install_package_and_phase_are_known() -> None:
    lines = lines_of("install")
    until = next(number for number, line in enumerate(lines) if "phase: 'configure'" in line)
    reader = read(lines[: until + 1])
    assert (reader.package, reader.phase) == ("osu-micro-benchmarks", "configure")
    assert (reader.done, reader.total) == (7, 8)


def test_what_was_there_before_is_done_and_not_out_of_a_cache() -> None:
    reader = read(lines_of("install-again"))
    assert (reader.done, reader.from_cache) == (5, ())


def test_colours_change_nothing() -> None:
    assert seen(lines_of("install-again-colour")) == seen(lines_of("install-again"))


def test_from_a_build_cache_and_nothing_in_hand_at_the_end() -> None:
    reader = read(lines_of("install-build-cache"))
    assert len(reader.from_cache) == 4
    assert (reader.package, reader.total, reader.done) == (None, 8, 8)


def test_a_failure_with_its_log() -> None:
    (found,) = read(lines_of("configure-error")).failed
    assert found.package == "osu-micro-benchmarks"
    assert found.log is not None
    assert found.log.endswith("/spack-build-out.txt")


def test_a_failure_without_a_log_and_what_was_skipped_for_it() -> None:
    reader = read(lines_of("no-sources"))
    assert [(each.package, each.log) for each in reader.failed] == [("compiler-wrapper", None)]


def test_the_log_that_follows_a_failure_starts_nothing_again() -> None:
    reader = read(lines_of("compile-error-whole-log"))
    assert (reader.package, failed(reader)) == (None, ["intel-mpi-benchmarks"])


def test_two_failures_are_two() -> None:
    reader = read(lines_of("disk-full-stage"))
    assert failed(reader) == ["osu-micro-benchmarks", "intel-mpi-benchmarks"]


def test_an_interrupt_is_no_failure_of_the_package() -> None:
    reader = read(lines_of("interrupted"))
    assert (reader.failed, reader.package) == ([], "intel-mpi-benchmarks")


@pytest.mark.parametrize("name", sorted(RUNS))
def test_done_never_falls_nor_passes_the_total(name: str) -> None:
    reader, before = Reader(), 0
    for line in lines_of(name):
        reader.feed(line)
        assert reader.done >= before
        assert reader.total is None or reader.done <= reader.total
        before = reader.done


def test_a_name_is_known_from_the_list_of_the_solver() -> None:
    installing = f"==> Installing font-75dpi-1.0-{'a' * 32} [1/2]\n"
    listed = " -   aaaaaaa      ^font-75dpi@1.0 platform=linux\n"
    assert read([installing]).package == "font"
    assert read([listed, installing]).package == "font-75dpi"
    otherwise = listed.replace("font-75dpi", "osu")
    assert read([otherwise, installing]).package == "font"


@pytest.mark.parametrize(
    ("identity", "package"),
    [
        ("ca-certificates-mozilla-2026-03-19", "ca-certificates-mozilla"),
        ("py-pip-24.3.1", "py-pip"),
        ("some-tool-main", "some-tool"),
    ],
)
def test_names_and_versions_with_hyphens(identity: str, package: str) -> None:
    assert read([f"==> Installing {identity}-{'b' * 32} [1/1]\n"]).package == package


def test_a_prefix_that_holds_no_name_counts_too() -> None:
    assert read(["[+] /somewhere/else\n"]).done == 1


def test_a_window_title_and_a_bell_are_no_text() -> None:
    assert plain("\x1b]0;Processing osu [1/8]\x07\x1b[1;34m==>\x1b[0m Installing\r\n") == (
        "==> Installing"
    )


@given(st.lists(st.text(max_size=60), max_size=20))
def test_any_text_is_passed_over(lines: list[str]) -> None:
    assert read(lines).done >= 0


@given(st.sampled_from(["\x1b[1;32m", "\x1b[0m", "\x1b[K", "\x1b]0;title\x07"]), st.data())
def test_control_codes_anywhere_change_nothing(code: str, data: st.DataObject) -> None:
    lines = lines_of("install")
    at = data.draw(st.integers(0, len(lines) - 1))
    column = data.draw(st.integers(0, len(lines[at].rstrip("\n"))))
    painted = [*lines]
    painted[at] = lines[at][:column] + code + lines[at][column:]
    assert seen(painted) == seen(lines)


@given(st.data())
def test_lines_of_another_release_between_change_nothing(data: st.DataObject) -> None:
    lines = lines_of("install")
    at = data.draw(st.integers(0, len(lines)))
    words = data.draw(st.text("abc :'%@", max_size=30))
    assert not re.match(r"==>|\[", words)
    assert seen([*lines[:at], f"==> A note: {words}\n", *lines[at:]]) == seen(lines)
