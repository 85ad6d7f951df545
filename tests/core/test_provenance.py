"""Identities of stacks: alike or not, and no comparison of what is not."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.provenance import (
    AFTERWARDS_KEY,
    IDENTITY_KEY,
    StackIdentity,
    differences,
    digest_of,
    identity_of,
    is_build,
    rebuilt,
    same_build,
)

ONE = StackIdentity(
    origin="spack",
    digest="a" * 64,
    mpi="openmpi@5.0.11 fabrics=ucx",
    program="osu-micro-benchmarks@7.2",
    compiler="gcc@12.2.0",
    target="x86_64_v3",
)
NAMES = [field.name for field in fields(StackIdentity)]

_texts = st.sampled_from(["a", "b", ""])
_identities = st.one_of(st.none(), st.builds(StackIdentity, **dict.fromkeys(NAMES, _texts)))


def _record(
    identity: StackIdentity | None = ONE, stack: str = "openmpi", suite: str = "osu", **more: Any
) -> dict[str, Any]:
    stated = {} if identity is None else {IDENTITY_KEY: identity.record()}
    return {"stack": stack, "suite": suite, **stated, **more}


@given(_identities)
def test_nothing_differs_from_itself(identity: StackIdentity | None) -> None:
    assert differences(identity, identity) == ()


@given(_identities, _identities)
def test_what_differs_differs_both_ways(
    first: StackIdentity | None, second: StackIdentity | None
) -> None:
    there, back = differences(first, second), differences(second, first)
    assert len(there) == len(back)
    assert bool(there) == (first != second)


@pytest.mark.parametrize("name", NAMES)
def test_each_field_that_differs_is_named_with_both_values(name: str) -> None:
    (said,) = differences(ONE, replace(ONE, **{name: "another"}))
    assert said.startswith(f"{name}: ")
    assert said.endswith("against another")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("openmpi@5.0+a~b x=1", "openmpi@5.0+a+b x=1", "mpi: ~b against +b"),
        ("openmpi@5.0 fabrics=ucx", "openmpi@5.1 fabrics=ofi", "@5.0 fabrics=ucx against @5.1 fab"),
        ("openmpi@5.0+a~b x=1", "mpich@4+c", "mpi: openmpi@5.0 against mpich@4"),
        ("openmpi@5.0+a~b", "not built", "mpi: openmpi@5.0 against not built"),
        ("openmpi@5.0+a", "", "mpi: openmpi@5.0 against nothing"),
        ("openmpi@5.0", "openmpi@5.0+a", "mpi: nothing against +a"),
    ],
)
def test_of_two_specs_what_differs_is_said(first: str, second: str, said: str) -> None:
    (found,) = differences(replace(ONE, mpi=first), replace(ONE, mpi=second))
    assert said in found


def test_a_long_value_is_cut() -> None:
    (found,) = differences(ONE, replace(ONE, mpi="x" * 500))
    assert found.endswith("...")
    assert len(found) < 200


def test_a_digest_is_shown_short() -> None:
    (said,) = differences(ONE, replace(ONE, digest="b" * 64))
    assert said == f"digest: {'a' * 12} against {'b' * 12}"


def test_an_identity_that_was_not_recorded_is_like_none_that_was() -> None:
    assert differences(None, ONE) == (f"build: not recorded against build {'a' * 12}",)
    assert differences(ONE, None) == (f"build: build {'a' * 12} against not recorded",)


def test_a_record_gives_its_identity_back() -> None:
    assert identity_of(_record()) == ONE


@pytest.mark.parametrize("stated", [None, "abc", 7, ["x"]])
def test_a_record_from_before_there_were_identities_has_none(stated: object) -> None:
    assert identity_of({"stack": "openmpi", IDENTITY_KEY: stated}) is None


def test_a_field_that_a_record_lacks_is_like_no_other() -> None:
    record = _record()
    del record[IDENTITY_KEY]["target"]
    (said,) = differences(ONE, identity_of(record))
    assert said == "target: x86_64_v3 against not recorded"


@pytest.mark.parametrize(
    ("stated", "fits"),
    [("aaaaaaa", True), ("AAAAAAA", True), ("a" * 64, True), ("aaaaaab", False), ("", False)],
)
def test_the_beginning_of_a_digest_names_a_build(stated: str, fits: bool) -> None:
    assert is_build(stated, ONE.digest) is fits


def test_no_name_fits_a_build_without_digest() -> None:
    assert not is_build("aaaaaaa", "")


@given(st.dictionaries(st.text(max_size=3), st.integers(), min_size=1))
def test_a_digest_does_not_depend_on_the_order_of_keys(facts: dict[str, int]) -> None:
    turned = dict(reversed(facts.items()))
    assert digest_of(facts) == digest_of(turned)
    assert digest_of(facts) != digest_of({**facts, "more": 1})


# One run.


def test_one_build_throughout_is_fine_whatever_the_suites() -> None:
    imb = replace(ONE, program="intel-mpi-benchmarks@2021.7")
    assert rebuilt([_record(), _record(imb, suite="imb"), _record()]) == {}


def test_records_from_before_there_were_identities_are_fine() -> None:
    assert rebuilt([_record(None), _record(None)]) == {}


def test_two_builds_under_one_name_are_found() -> None:
    found = rebuilt([_record(), _record(replace(ONE, digest="b" * 64)), _record(stack="mpich")])
    assert list(found) == ["openmpi"]
    assert found["openmpi"].startswith("not one build throughout the run: digest: aaaaaaaaaaaa")


def test_two_builds_are_found_across_suites() -> None:
    imb = replace(ONE, program="imb", digest="b" * 64)
    assert "openmpi" in rebuilt([_record(), _record(imb, suite="imb")])


def test_another_package_of_one_suite_is_found() -> None:
    assert "program" in rebuilt([_record(), _record(replace(ONE, program="osu@7.5"))])["openmpi"]


def test_a_build_while_a_job_ran_is_found() -> None:
    after = {AFTERWARDS_KEY: replace(ONE, compiler="gcc@13").record()}
    assert "compiler" in rebuilt([_record(**after)])["openmpi"]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("0a1b2c3d", "0a1b2c3d4e5f", True),
        ("0a1b2c3d", "0a1b2c3e", False),
        (None, "0a1b2c3d", False),
        (None, None, True),
    ],
)
def test_two_digests_of_one_build(first: str | None, second: str | None, same: bool) -> None:
    assert same_build(first, second) is same
    assert same_build(second, first) is same
