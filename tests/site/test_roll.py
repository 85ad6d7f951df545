"""The list of required checks: what is due, what a command line made of it, and damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.site import load_site
from fabricproof.site.roll import (
    due_entries,
    make_roll,
    read_roll,
    selects_only,
    setting_options,
    values_of,
    with_whole_stacks,
    write_roll,
)

SITE = Path(__file__).parents[1] / "rfm" / "site"


def _entry(check: str, *tags: str) -> dict[str, object]:
    return {
        "check": check,
        "fabric": "eth0",
        "partition": "node",
        "stack": "fake",
        "tags": sorted(tags),
    }


ROLL = [
    _entry("OsuLatency", "pt2pt", "quick", "full", "ethernet"),
    _entry("OsuGetLatency", "pt2pt", "full", "ethernet"),
    _entry("OsuMultiRailBandwidth", "multirail", "quick", "infiniband", "roce"),
]


def _due(*arguments: str) -> list[object]:
    return [entry["check"] for entry in due_entries(ROLL, ["-r", *arguments])]


def test_without_a_selection_everything_is_due() -> None:
    assert _due() == ["OsuLatency", "OsuGetLatency", "OsuMultiRailBandwidth"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("-t", "quick"),
        ("-tquick",),
        ("--tag", "quick"),
        ("--tag=quick",),
        ("-t", "quic"),
        ("-rt", "quick"),
        ("-vvrt", "quick"),
        ("-rtquick",),
        ("--ta", "quick"),
        ("--ta=quick",),
    ],
)
def test_a_tag_in_any_spelling(arguments: tuple[str, ...]) -> None:
    assert _due(*arguments) == ["OsuLatency", "OsuMultiRailBandwidth"]


def test_several_tags_must_all_be_there() -> None:
    assert _due("-t", "quick", "-t", "ethernet") == ["OsuLatency"]


def test_a_tag_is_searched_for_as_reframe_does() -> None:
    assert _due("-t", "rail") == ["OsuMultiRailBandwidth"]
    assert _due("-t", "^rail") == []
    assert _due("-t", "quick|full", "-t", "ethernet") == ["OsuLatency", "OsuGetLatency"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-r", "-p", "openmpi"], ["--run", "--prgenv=^openmpi$"]),
        (["-popenmpi", "--reruns", "3"], ["--prgenv=^openmpi$", "--reruns", "3"]),
        (["--prg", "openmpi5"], ["--prgenv=^openmpi5$"]),
        (["-rp", "openmpi"], ["--run", "--prgenv=^openmpi$"]),
        (["-p", "openmpi.*"], ["-p", "openmpi.*"]),
        (["-p", "open"], ["-p", "open"]),
        (["-n", "openmpi", "-t", "openmpi"], ["-n", "openmpi", "-t", "openmpi"]),
        (["-p"], ["-p"]),
    ],
)
def test_the_name_of_a_stack_selects_that_stack_alone(
    given: list[str], expected: list[str]
) -> None:
    assert with_whole_stacks(given, ["openmpi", "openmpi5"]) == expected


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["-nOsuLatency%fabric=eth0", "--name=^Osu"], ["OsuLatency%fabric=eth0", "^Osu"]),
        (["-rn", "Nothing"], ["Nothing"]),
        (["-t", "quick", "-p", "Nothing"], []),
    ],
)
def test_what_a_name_is_given_as_is_read_as_reframe_reads_it(
    given: list[str], names: list[str]
) -> None:
    assert values_of(given, "--name") == names


def test_an_unknown_tag_makes_nothing_due() -> None:
    assert _due("-t", "nosuch") == []


@pytest.mark.parametrize(
    "option",
    [
        ("-n", "OsuLatency"),
        ("-nOsuLatency",),
        ("--name=OsuLatency",),
        ("-x", "Osu"),
        ("--exclude=Osu"),
        ("-T", "full"),
        ("--exclude-tag=full",),
        ("-p", "openmpi5"),
        ("--prgenv=openmpi5",),
        ("-E", "True"),
        ("-c", "checks/pt2pt"),
        ("-S", "program=osu_bw"),
        ("--restore-session",),
        ("-P", "fabric:eth0"),
        ("-rn", "OsuLatency"),
        ("-vxOsu",),
        ("--filter=True",),
    ],
)
def test_what_a_person_chose_by_another_option_is_not_held_against_the_roll(
    option: tuple[str, ...] | str,
) -> None:
    arguments = (option,) if isinstance(option, str) else option
    assert _due(*arguments) == []
    assert _due("-t", "quick", *arguments) == []


@pytest.mark.parametrize(
    "option",
    [
        ("--max-retries=2",),
        ("-v",),
        ("-vr",),
        ("--max", "2"),
        ("--",),
        ("-J", "reservation=x"),
        ("--exec-policy=serial",),
    ],
)
def test_options_that_select_nothing_change_nothing(option: tuple[str, ...]) -> None:
    assert len(_due(*option)) == 3


def test_the_roll_names_each_check_on_each_partition_and_stack_with_its_fabric() -> None:
    described = [
        {"name": "OsuLatency %fabric=eth0", "fabric": "eth0", "tags": ["quick", "pt2pt"]},
        {"name": "OsuLatency %fabric=ib0", "fabric": "ib0", "tags": ["quick"]},
        {"name": "OsuLatency %fabric=no-infiniband", "fabric": "no-infiniband", "tags": []},
    ]
    assert make_roll(load_site(str(SITE)), described) == [
        {
            "check": "OsuLatency",
            "fabric": "eth0",
            "partition": "node",
            "stack": "fake",
            "tags": ["pt2pt", "quick"],
        }
    ]


def test_a_roll_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write_roll(tmp_path, ROLL)
    assert read_roll(tmp_path) == ROLL


def test_a_roll_is_one_line_for_each_entry(tmp_path: Path) -> None:
    text = write_roll(tmp_path, ROLL).read_text()
    assert len(text.splitlines()) == len(ROLL) + 2
    json.loads(text)


def test_an_empty_roll_can_be_written_and_read(tmp_path: Path) -> None:
    write_roll(tmp_path, [])
    assert read_roll(tmp_path) == []


def test_a_site_without_a_roll_has_nothing_due(tmp_path: Path) -> None:
    assert read_roll(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 2, "due": []}',
        '{"version": 1, "due": 7}',
        '{"version": 1, "due": [{"check": "OsuLatency"}]}',
        '{"version": 1, "due": ["OsuLatency"]}',
        # Empty, and yet no list: nothing would be due, and what never ran would be no MISSING.
        '{"version": 1, "due": {}}',
        '{"version": 1, "due": ""}',
        json.dumps({"version": 1, "due": [{**_entry("OsuLatency"), "tags": ""}]}),
        json.dumps({"version": 1, "due": [{**_entry("OsuLatency"), "tags": {}}]}),
        json.dumps({"version": 1, "due": [{**_entry("OsuLatency"), "tags": None}]}),
        "\xff" * 4000,
    ],
)
def test_a_damaged_roll_is_one_error_that_says_how_to_mend_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "roll.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"roll\.json: .*roll") as raised:
        read_roll(tmp_path)
    assert len(str(raised.value)) < 800


def test_a_roll_that_points_nowhere_is_no_site_without_one(tmp_path: Path) -> None:
    (tmp_path / "roll.json").symlink_to("nowhere.json")
    with pytest.raises(ConfigError, match="damaged roll"):
        read_roll(tmp_path)


@pytest.mark.parametrize(
    ("given", "settings", "only"),
    [
        (["-r", "-t", "quick"], [], True),
        (["-c", "mine", "-R", "-n", "Osu"], ["--checkpath=mine", "--recursive"], True),
        (["-cmine", "-S", "A.b=1"], ["--checkpath=mine", "--setvar=A.b=1"], True),
        (["-c", "mine", "-x", "Osu"], ["--checkpath=mine"], False),
        (["-c", "mine", "--reruns", "3"], ["--checkpath=mine"], False),
        (["-c"], [], False),
        (["-rRcmine", "-t", "quick"], ["--recursive", "--checkpath=mine"], True),
        (["-Rc", "mine", "-qx", "Osu"], ["--recursive", "--checkpath=mine"], False),
        (["--checkp", "mine", "--rec"], ["--checkpath=mine", "--recursive"], True),
    ],
)  # fmt: skip
def test_what_looks_again_takes_along_where_checks_are_and_how_they_run(
    given: list[str], settings: list[str], only: bool
) -> None:
    assert setting_options(given) == settings
    assert selects_only(given) is only
