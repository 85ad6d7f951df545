"""A run judged by a contract: only what the run itself judged fulfils anything."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_data import DOWN, HEALTHY, SLOW, leg, quantity, recorded

from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.core.measure import Verdict
from fabricproof.job.run import LegResult, SessionResult
from fabricproof.report.contract import Contract, Criterion, accepted, fulfilled

Command = Callable[..., Any]

DOCUMENT = Path(__file__).parents[2] / "docs" / "contract.md"

SIGNED = """
title = "Interconnect of the new cluster"
parties = ["Site", "Vendor"]

[[criteria]]
name = "4.2"
says = "each rail has 20 MB/s"
check = "OsuMultiRailBandwidth"
quantity = "bandwidth_1MiB"
fabric = "eth0"
at_least = "20 MB/s"

[[criteria]]
name = "4.3"
says = "two rails are twice one"
check = "OsuMultiRailBandwidth"
path = "scaling"
"""


def clause(**facts: Any) -> Criterion:
    return Criterion.model_validate(
        {"name": "1", "check": "OsuBandwidth", "quantity": "bandwidth_4MiB", **facts}
    )


def said(criterion: Criterion, *legs: LegResult) -> tuple[Verdict, str]:
    found = fulfilled(criterion, SessionResult(run_id="r", legs=legs))
    return found.verdict, found.reason


def of(verdict: str, **facts: Any) -> LegResult:
    return leg(Verdict(verdict), quantities=(quantity(verdict, **facts),), reason="see below")


def odd(verdict: str, reason: str) -> LegResult:
    """Return a leg whose numbers are good."""
    return leg(Verdict(verdict), quantities=(quantity(),), reason=reason)


def bare(verdict: str, reason: str) -> LegResult:
    return leg(Verdict(verdict), quantities=(), reason=reason)


NO_RECORD = LegResult(
    verdict=Verdict.MISSING, check="OsuBandwidth", stack="mpich", reason="not built"
)


@pytest.mark.parametrize(
    ("limits", "legs", "verdict", "words"),
    [
        ({"at_least": "46 MB/s"}, [of("PASS")], "PASS", "least of 1 value: 47 MB/s"),
        ({"at_least": "0.048 GB/s"}, [of("PASS")], "FAIL", "at least 0.048 GB/s was agreed"),
        ({"at_most": "46 MB/s"}, [of("PASS")], "FAIL", "at most 46 MB/s was agreed"),
        # The site asks for more than was agreed.
        ({"at_least": "20 MB/s"}, [of("FAIL", value=25.0)], "PASS", "25 MB/s"),
        # It is FAIL for another reason than its level.
        ({"at_least": "20 MB/s"}, [of("FAIL", reason="packets lost")], "FAIL", "packets lost"),
        # One of two misses it.
        ({"at_least": "46 MB/s"}, [of("PASS"), of("PASS", value=45.0)], "FAIL", "45 MB/s"),
        # A good number that the run did not take for one.
        ({"at_least": "20 MB/s"}, [of("INVALID", reason="above it")], "INVALID", "see below"),
        ({"at_least": "20 MB/s"}, [of("UNJUDGED", reason="disturbed")], "UNJUDGED", "disturbed"),
        ({"at_least": "20 MB/s"}, [of("PASS", value=None)], "UNJUDGED", ""),
        ({"at_least": "20 us"}, [of("PASS")], "UNJUDGED", "in MB/s, and the contract says 20 us"),
        # The leg took another road: its values count for nothing.
        ({"at_least": "20 MB/s"}, [leg(Verdict.INVALID, quantities=(quantity(),), reason="eth0")],
         "INVALID", "eth0"),
        ({"at_least": "20 MB/s"}, [of("PASS"), bare("MISSING", "killed")],
         "MISSING", "killed"),
        ({"at_least": "20 MB/s"}, [of("PASS"), bare("SKIPPED", "no HCA")],
         "MISSING", "SKIPPED: no HCA"),
        # Its numbers are good, and it is not: nobody saw which road they took, or its job failed.
        ({"at_least": "20 MB/s"}, [odd("UNJUDGED", "no path")],
         "UNJUDGED", "no path"),
        ({"at_least": "20 MB/s"}, [odd("FAIL", "exit 1")],
         "FAIL", "exit 1"),
        ({"at_least": "20 MB/s"}, [of("PASS", value=math.nan)], "FAIL", "nan MB/s"),
        ({"at_least": "20 MB/s"}, [of("FAIL", value=math.inf, upper=9.0)], "FAIL", "bandwidth"),
        ({"at_most": "20 MB/s"}, [of("PASS", value=math.nan)], "FAIL", "nan MB/s"),
        ({"at_least": "20 MB/s"}, [], "MISSING", "no leg of OsuBandwidth"),
        ({"at_least": "20 MB/s", "stack": "mpich*"}, [of("PASS")], "MISSING", "no leg"),
        ({"at_least": "20 MB/s", "quantity": "bandwidth_8MiB"}, [of("PASS")], "MISSING",
         "there is bandwidth_4MiB"),
        ({"nodes": 2}, [of("PASS")], "PASS", "1 value, all PASS"),
        ({"nodes": 3}, [of("PASS")], "MISSING", "2 of 3 nodes measured"),
        # A job that left no record: nobody knows that it had not this path.
        ({"at_least": "20 MB/s", "path": "rail1"}, [of("PASS"), NO_RECORD], "MISSING", "not built"),
        ({"at_least": "20 MB/s", "path": "rail1"}, [NO_RECORD], "MISSING", "not built"),
        ({"at_least": "20 MB/s", "path": "rail1", "stack": "openmpi5"}, [of("PASS"), NO_RECORD],
         "PASS", "47 MB/s"),
        ({}, [of("FAIL", value=25.0)], "FAIL", "97 %"),
    ],
)  # fmt: skip
def test_only_what_was_judged_fulfils_a_criterion(
    limits: dict[str, Any], legs: list[LegResult], verdict: str, words: str
) -> None:
    found, reason = said(clause(**limits), *legs)
    assert found == verdict, reason
    assert words in reason


@pytest.mark.parametrize("verdict", ["MISSING", "UNJUDGED"])
def test_a_run_of_which_reframe_did_not_end_as_it_should_fulfils_nothing(verdict: str) -> None:
    doubt = LegResult(verdict=Verdict(verdict), check="ReFrame", reason="it was killed")
    found, reason = said(clause(at_least="20 MB/s"), of("PASS"), doubt)
    assert (found, reason) == (verdict, "ReFrame: it was killed")
    assert said(clause(at_least="48 MB/s"), of("PASS"), doubt)[0] is Verdict.FAIL


#: a contract with both limits
LIMITS = """title = "x"
[[criteria]]
name = "1"
check = "C"
quantity = "q"
at_least = "{}"
at_most = "{}"
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 1", "title"),
        ('title = "x"\n[[criteria]]\nname = "1"\ncheck = "C"\nat_leats = "1 us"', "at_leats"),
        ('title = "x"\n[[criteria]]\nname = "1"\ncheck = "C"\nat_least = "1 us"', "a limit goes"),
        ('title = "x"\n[[criteria]]\nname = "1"\ncheck = "C"\nquantity = "q"\nat_least = "9"',
         r"expected a number and a unit, as '3.4 GB/s', got '9'$"),
        ('title = "x"\ncriteria = []', r"expected a list to have at least 1 item, got \[\]$"),
        (LIMITS.format("20 MB/s", "1 MB/s"), "expected at_least to be no more than at_most"),
        (LIMITS.format("1 us", "20 MB/s"), "expected at_least and at_most of one kind of unit"),
        ('title = "x"\n' + '[[criteria]]\nname = "1"\ncheck = "C"\n' * 2,
         "do not fit: expected each"),
        ("title", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_wrong_contract_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "contract.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as found:
        accepted(path, SessionResult(run_id="r", legs=()))
    assert str(path) in str(found.value)


def test_a_contract_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputMissingError, match="No such file"):
        accepted(tmp_path / "none.toml", SessionResult(run_id="r", legs=()))


@pytest.mark.parametrize(
    ("run_id", "status", "verdicts"),
    [(HEALTHY, 0, ["PASS", "PASS"]), (SLOW, 1, ["FAIL", "FAIL"]), (DOWN, 4, ["MISSING"] * 2)],
)
def test_a_recorded_run_is_held_against_a_contract(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fabricproof: Command,
    run_id: str,
    status: int,
    verdicts: list[str],
) -> None:
    recorded(tmp_path)
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    path = tmp_path / "contract.toml"
    path.write_text(SIGNED)
    ended = fabricproof("report", run_id, "--contract", str(path), "--json")
    record = json.loads(ended.out)
    assert (ended.status, [each["verdict"] for each in record["criteria"]]) == (status, verdicts)
    assert record["sha256"] == hashlib.sha256(SIGNED.encode()).hexdigest()
    lines = fabricproof("report", run_id, "--contract", str(path)).out.splitlines()
    assert lines[0].endswith(f": Interconnect of the new cluster, by run {run_id}")
    assert lines[1] == f"contract: SHA-256 {record['sha256']}"


def test_a_contract_drains_no_node(fabricproof: Command) -> None:
    ended = fabricproof("report", "--contract", "c.toml", "--drain")
    assert ended.status == 2
    assert "leave --drain out" in ended.err


def test_the_documents_example_is_a_contract() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    assert len(Contract.model_validate(tomllib.loads(text)).criteria) >= 3


@pytest.mark.parametrize(("limit", "verdict"), [("30 ppm", "PASS"), ("20 ppm", "FAIL")])
def test_what_may_be_lost_is_agreed_in_packets_per_million(limit: str, verdict: str) -> None:
    """The unit that the records have; only the rows of the node that is bought count."""
    lost = clause(
        check="AllPairsAdmission", path="admit.*", quantity="lost_per_million_packets",
        at_most=limit,
    )  # fmt: skip
    rows = [
        leg(
            check="AllPairsAdmission", leg=f"{kind}.{node}.rail0", nodes=(node,), relation="rail0",
            quantities=(
                quantity(name="lost_per_million_packets", unit="ppm", value=value, upper=50.0),
            ),
        )
        for kind, node, value in (("admit", "n17", 25.0), ("partner", "n2", 40.0))
    ]  # fmt: skip
    assert said(lost, *rows)[0] is Verdict(verdict)
