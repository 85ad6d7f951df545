"""What can be said to an MPI about its algorithms, from the data alone."""

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.tuning.knobs import COLLECTIVES, DATA, Knobs, Need, find_knobs, load_family

KNOWN = [
    *(("openmpi", each) for each in ("4.1", "5.0.11")),
    ("mpich", "5.0.2"),
    *(("intelmpi", each) for each in ("2021.18.1", "2021.19.0")),
]


def _knobs(family: str, version: str, collective: str) -> Knobs:
    knobs, reason = find_knobs(family, version, collective)
    assert knobs is not None, reason
    return knobs


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(("family", "version"), KNOWN)
def test_every_known_mpi_has_a_choice_for_every_collective(family, version, collective):
    knobs = _knobs(family, version, collective)
    usable, left_out = knobs.usable(8)
    assert len(usable) >= 2
    assert all(each.reason.startswith("needs ") for each in left_out)


@pytest.mark.parametrize(("family", "version"), KNOWN)
def test_forcing_names_the_collective_and_the_algorithm_and_leaves_no_placeholder(family, version):
    knobs = _knobs(family, version, "alltoall")
    forced = knobs.forcing(knobs.algorithms[1])
    assert knobs.algorithms[1].id in forced.values()
    assert not any("{" in text for pair in forced.items() for text in pair)
    assert knobs.touched(forced)
    chosen = dict(pair.split("=") for pair in knobs.choosing(knobs.algorithms[1]).split())
    assert {**chosen, **knobs.strict} == forced


@pytest.mark.parametrize(("family", "version"), KNOWN)
def test_the_neutral_environment_takes_back_what_a_forced_one_set(family, version):
    knobs = _knobs(family, version, "bcast")
    after = {**knobs.forcing(knobs.algorithms[0]), **knobs.neutral}
    left = {after[name] for name in knobs.touched(after)}
    assert knobs.algorithms[0].id not in left or (
        after["OMPI_MCA_coll_tuned_use_dynamic_rules"] == "0"
    )


def test_an_algorithm_for_a_power_of_two_is_left_out_elsewhere():
    knobs = _knobs("openmpi", "5.0.11", "allgather")
    for ranks, unmet in ((8, {"6"}), (6, {"3", "6"}), (5, {"3", "5", "6"}), (2, set())):
        assert {each.algorithm.id for each in knobs.usable(ranks)[1]} == {"7", *unmet}, ranks
    reasons = {each.algorithm.id: each.reason for each in knobs.usable(5)[1]}
    assert reasons["3"] == f"needs {Need.POWER_OF_TWO}"


def test_a_newer_algorithm_is_not_offered_to_an_older_library():
    assert "7" in [each.id for each in _knobs("openmpi", "5.0.11", "allgather").algorithms]
    assert "7" not in [each.id for each in _knobs("openmpi", "4.1.4", "allgather").algorithms]


def test_an_environment_without_a_say_touches_nothing():
    knobs = _knobs("openmpi", "5.0.11", "bcast")
    assert knobs.touched({"OMPI_MCA_btl_tcp_links": "2"}) == ()


@pytest.mark.parametrize(
    ("family", "version", "words"),
    [
        ("mvapich", "4.0", "nobody has recorded"),
        ("intelmpi", "2021.11", "not recorded"),
        ("openmpi", "50.1", "not recorded"),
        ("openmpi", "", "not recorded"),
    ],
)
def test_an_unknown_mpi_is_a_reason_and_no_guess(family, version, words):
    knobs, reason = find_knobs(family, version, "bcast")
    assert knobs is None
    assert words in reason


@pytest.mark.parametrize(
    "spoil",
    [
        ('id = "2", name = "chain"', 'id = "1", name = "chain"'),
        ('needs = ["two ranks"]', 'needs = ["luck"]'),
        ("[collectives.bcast]", "[collectives.broadcast]"),
        ('family = "openmpi"', 'fmaily = "openmpi"'),
        ("[force]", "[force"),
    ],
)
def test_damaged_data_is_refused_when_it_is_read(tmp_path: Path, spoil):
    text = (DATA / "openmpi.toml").read_text(encoding="utf-8")
    assert spoil[0] in text
    path = tmp_path / "openmpi.toml"
    path.write_text(text.replace(spoil[0], spoil[1], 1), encoding="utf-8")
    with pytest.raises(ConfigError, match="not a file of algorithms"):
        load_family(path)
