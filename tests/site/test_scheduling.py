"""What a Slurm will not do is known before the first job, with its remedy in the same line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError
from fabricproof.core.measure import Verdict
from fabricproof.site import PartitionSpec
from fabricproof.site.scheduling import (
    SlurmTraits,
    asked_partitions,
    find_troubles,
    keeps_accounts,
    read_traits,
    shares_nodes,
)
from reported_cases import make_partition

DATA = Path(__file__).parents[1] / "data"
BARE = read_traits(
    (DATA / "slurm" / "config-without-accounts.txt").read_text(),
    (DATA / "slurm" / "partition-force.txt").read_text(),
)
WITH = (DATA / "doctor" / "slurm-22.05.config.txt").read_text()


def _asks(scheduler: str = "squeue", *access: str, max_jobs: int = 8) -> PartitionSpec:
    options = ["--partition=compute", *access]
    return make_partition(name="p", scheduler=scheduler, access=options, max_jobs=max_jobs)


def test_a_real_slurm_without_accounts_and_with_shared_nodes_is_read() -> None:
    assert BARE.accounting == "accounting_storage/none"
    assert dict(BARE.oversubscribe) == {"compute": "FORCE:4"}


def test_sacct_is_not_asked_for_what_nobody_keeps() -> None:
    first, *_ = find_troubles(_asks("slurm"), BARE)
    assert "asks sacct how a job ended" in first.text
    assert first.verdict is Verdict.FAIL
    assert 'scheduler = "squeue"' in first.next_step
    assert all("sacct" not in each.text for each in find_troubles(_asks("squeue"), BARE))


@pytest.mark.parametrize(
    ("accounting", "keeps"),
    [
        ("accounting_storage/slurmdbd", True),
        ("accounting_storage/none", False),
        ("(null)", False),
        ("", None),
    ],
)
def test_accounts_are_kept_by_what_the_configuration_says(
    accounting: str, keeps: bool | None
) -> None:
    assert keeps_accounts(accounting) is keeps


def test_a_database_that_is_away_is_told_with_sacct_s_own_words() -> None:
    traits = read_traits(WITH, "", "Problem talking to the database: Connection refused")
    (trouble,) = find_troubles(_asks("slurm"), traits)
    assert "Connection refused" in trouble.text
    assert trouble.verdict is Verdict.FAIL
    assert list(find_troubles(_asks("slurm"), read_traits(WITH, ""))) == []


@pytest.mark.parametrize(
    ("how", "shares"),
    [
        ("NO", False),
        ("EXCLUSIVE", False),
        ("YES:4", False),
        ("FORCE", True),
        ("FORCE:4", True),
        ("FORCE:1", False),
        ("", False),
    ],
)
def test_only_force_takes_a_node_from_who_asked_for_all_of_it(how: str, *, shares: bool) -> None:
    assert shares_nodes(how) is shares


@pytest.mark.parametrize(
    ("asks", "stops"),
    [
        (_asks("squeue", "--exclusive"), True),
        (_asks("squeue", "--exclusive", max_jobs=1), False),
        (_asks("squeue", "--licenses=fabric:1"), False),
        (_asks("squeue", "-L fabric"), False),
    ],
)
def test_our_own_jobs_beside_each_other_are_refused_and_others_are_told(
    asks: PartitionSpec, *, stops: bool
) -> None:
    (trouble,) = find_troubles(asks, BARE)
    assert "so --exclusive is not honoured" in trouble.text
    assert trouble.verdict is (Verdict.FAIL if stops else Verdict.UNJUDGED)
    assert ("max_jobs = 1" in trouble.next_step) is stops
    assert ("our own jobs" in trouble.means) is stops
    assert "\n" not in trouble.line


def test_another_partition_of_that_slurm_is_no_trouble() -> None:
    other = make_partition(name="p", scheduler="squeue", access=["-p other"])
    assert list(find_troubles(other, BARE)) == []


@pytest.mark.parametrize(
    ("access", "partitions"),
    [
        (["-p a"], "a"),
        (["-pa"], "a"),
        (["-p", "a"], "a"),
        (["--partition=a"], "a"),
        (["--partition a"], "a"),
        (["--partition", "a"], "a"),
        (["-A acct -p a"], "a"),
        (["-A", "acct", "-p", "a,b", "--exclusive"], "ab"),
        (["-p a", "--partition=b", "-pd", "--qos=x"], "d"),
        (["--comment='-p in a text'", "-p 'a'  # -p b"], "a"),
        (["-A acct", "--reservation=p"], ""),
        ([], ""),
    ],
)
def test_access_names_the_partition_that_sbatch_takes(access: list[str], partitions: str) -> None:
    assert asked_partitions(access) == list(partitions)


@pytest.mark.parametrize(
    ("access", "said"),
    [(["-A acct", "-p"], "expected one argument"), (["-p 'x"], "No closing quotation")],
)
def test_access_that_sbatch_cannot_read_is_an_error(access: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        asked_partitions(access)


def test_without_a_partition_the_default_of_slurm_is_the_one_that_shares_nodes() -> None:
    traits = read_traits("", "PartitionName=a Default=YES OverSubscribe=FORCE:4\n")
    (trouble,) = find_troubles(make_partition(name="p", scheduler="squeue", access=[]), traits)
    assert trouble.text.startswith("partition p: Slurm's a has OverSubscribe=FORCE:4")


@given(st.text(), st.text())
def test_texts_that_say_nothing_trouble_nobody(config: str, partitions: str) -> None:
    traits = read_traits(config, partitions)
    assert isinstance(traits, SlurmTraits)
    if not traits.accounting and not traits.oversubscribe:
        assert list(find_troubles(_asks("slurm"), traits)) == []
    assert list(find_troubles(_asks("local"), traits)) == []
