"""What ReFrame lets pass, and the guard against each: with the guard it is red, without it green.

The tests called ``..._by_itself`` pin ReFrame's own behaviour, so that a bump which changes it is
seen; where one fails after a bump, a guard may have become needless, never wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from reframe.frontend.filters import have_tag
from reframe_sessions import HouseRun, StockRun

from fabricproof.core.errors import ConfigError
from fabricproof.core.measure import Verdict
from fabricproof.core.records import read_records
from fabricproof.job.run import Workplace, new_run_id, session_environment
from fabricproof.nodes.inventory.store import read_kept
from fabricproof.rfm.handover import bounds
from fabricproof.site import load_site
from fabricproof.site.roll import due_entries
from fabricproof.verdict.value import Judgement

SITE = Path(__file__).parent / "site"
ROOT = Path(__file__).resolve().parents[2]

#: each of them measured nothing, or something else
PASSED_BY_ITSELF = (
    "PerformanceRaises",
    "WithoutReference",
    "MisspeltReference",
    "OtherUnit",
    "Infinite",
    "CrashesAfterItsText",
    "CrashesInAQueueWithoutAccounting",
    "OneSizeOfACutTable",
    "PrefixOfAnotherSize",
)


@pytest.mark.parametrize("check", PASSED_BY_ITSELF)
def test_reframe_by_itself_passes_it(stock: StockRun, check: str) -> None:
    assert stock.cases[check]["result"] == "pass"


def test_reframe_by_itself_ends_with_zero_after_all_of_this(stock: StockRun) -> None:
    assert stock.status == 0
    assert "[  PASSED  ] Ran 12/12 test case(s) from 12 check(s) (0 failure(s)" in stock.out


def test_the_house_is_green_where_nothing_is_wrong(house: HouseRun) -> None:
    leg = house.leg("Well")
    assert leg["verdict"] == "PASS"
    assert len(leg["quantities"]) == 16
    assert {each["verdict"] for each in leg["quantities"]} == {"PASS"}
    assert leg["net_path"]["state"] == "proven"
    assert house.case("Well")["result"] == "pass"


# A performance function raises.


def test_a_raising_performance_function_fails_the_check(house: HouseRun) -> None:
    case = house.case("PerformanceRaises")
    assert case["result"] == "fail"
    assert "MISSING broken: its performance function gave no value" in case["fail_reason"]
    assert house.leg("PerformanceRaises")["verdict"] == "UNJUDGED"


def test_reframe_by_itself_has_no_value_of_a_raising_performance_function(stock: StockRun) -> None:
    assert stock.cases["PerformanceRaises"]["perfvalues"] == {}


# No reference, or one under another name.


def test_a_performance_variable_without_reference_fails_the_check(house: HouseRun) -> None:
    case = house.case("PerformanceWithoutReference")
    assert case["result"] == "fail"
    assert "no reference value found" in case["fail_reason"]
    assert house.leg("PerformanceWithoutReference")["verdict"] == "UNJUDGED"


def test_a_misspelt_quantity_in_the_references_is_refused(tmp_path: Path) -> None:
    _copy_site(tmp_path, references=_reference("band_width", "1.1 GB/s"))
    with pytest.raises(ConfigError, match=r"references\.toml:2.*quantity"):
        load_site(str(tmp_path))


# The reference in another unit than the value.


def test_a_reference_in_another_unit_is_converted(house: HouseRun) -> None:
    values = house.case("Well")["perfvalues"]["traps:node:lo.bandwidth_32KiB"]
    assert values[0] == 1100.0
    assert values[1] == pytest.approx(1100.0)
    assert values[4] == "MB/s"


def test_bounds_survive_the_way_to_reframe() -> None:
    judgement = Judgement(
        name="bandwidth", value=23000.0, unit="MB/s", message_size=None, verdict=Verdict.PASS,
        reason="", reference=24000.0, lower=21600.0, ceiling=25000.0,
    )  # fmt: skip
    value, lower, upper, unit = bounds(judgement)
    assert (value, unit) == (24000.0, "MB/s")
    assert lower == pytest.approx(-0.1)
    # A clock may be 300 ppm fast, and the last digit is rounded.
    assert upper == pytest.approx((25000 * 1.0003 + 0.005) / 24000 - 1)


def test_reframe_by_itself_compares_the_bare_numbers(stock: StockRun) -> None:
    assert "reference unit ('stock:node:bandwidth')" in stock.out
    value, reference, *_ = stock.cases["OtherUnit"]["perfvalues"]["stock:node:bandwidth"]
    assert (value, reference) == (2400.0, 24)


# Infinity.


def test_infinity_is_no_measurement(house: HouseRun) -> None:
    leg = house.leg("Infinite")
    assert leg["verdict"] == "MISSING"
    assert "damaged row" in leg["reason"]
    assert house.case("Infinite")["result"] == "fail"


# The program fails, its text matches.


def test_a_crash_after_the_whole_table_is_missing(house: HouseRun) -> None:
    leg = house.leg("CrashesAfterItsTable")
    assert leg["verdict"] == "MISSING"
    assert "exit status 3" in leg["reason"]
    assert house.case("CrashesAfterItsTable")["result"] == "fail"


def test_the_job_script_traps_errors_whatever_the_environment_says(house: HouseRun) -> None:
    (script,) = house.project.glob("work/output/**/Well_*/rfm_job.sh")
    assert "trap _onerror ERR" in script.read_text()


def test_the_raw_outputs_of_a_job_that_passed_are_kept_by_run(house: HouseRun) -> None:
    """What a vendor asks for is there for green legs too: tables, commands, plan, inventory."""
    (folder,) = house.project.glob("work/output/*Z-*/*/*/*/Well_*")
    assert (folder / "plan.json").is_file()
    assert (folder / "legs.sh").is_file()
    assert any(path.read_text() for path in folder.glob("legs/*.1/stdout"))


def test_reframe_by_itself_knows_no_exit_code_without_accounting(stock: StockRun) -> None:
    case = stock.cases["CrashesInAQueueWithoutAccounting"]
    assert case["seen_exit_code"] == "None"
    assert case["scheduler"] == "squeue"


# A check that is not there.


def test_a_check_file_that_cannot_be_imported_is_missing(house: HouseRun) -> None:
    assert house.leg("CannotLoad")["verdict"] == "MISSING"
    said = [leg["reason"] for leg in house.legs("check file")]
    assert any("cannot_load.py" in each and "no_such_module_anywhere" in each for each in said)
    assert house.status != 0


def test_reframe_by_itself_goes_on_without_the_file(stock: StockRun) -> None:
    assert "WARNING: skipping test file" in stock.out
    assert "CannotLoad" not in stock.cases


def test_a_second_check_of_the_same_name_is_missing(house: HouseRun) -> None:
    said = [leg for leg in house.legs("check file") if "is already defined in" in leg["reason"]]
    assert [leg["verdict"] for leg in said] == ["MISSING"]
    assert house.leg("Namesake")["verdict"] == "PASS"


def test_reframe_by_itself_runs_one_of_two_namesakes(stock: StockRun) -> None:
    assert "test 'Namesake' from" in stock.out
    assert stock.cases["Namesake"]["result"] == "pass"


def test_a_due_check_that_no_partition_fits_is_missing(house: HouseRun) -> None:
    leg = house.leg("Elsewhere")
    assert leg["verdict"] == "MISSING"
    assert "a required check" in leg["reason"]


def test_reframe_by_itself_is_silent_of_what_no_partition_fits(stock: StockRun) -> None:
    assert "Elsewhere" not in stock.cases
    assert "Elsewhere" not in stock.out


def test_a_skip_without_a_reason_is_missing(house: HouseRun) -> None:
    assert house.leg("SkipsWithoutReason")["verdict"] == "MISSING"


# The perflog.


def test_the_perflog_keeps_its_name_and_columns_when_quantities_change(
    house: HouseRun, house_again: HouseRun
) -> None:
    folder = house_again.project / "perflogs" / "traps" / "node"
    assert [path.name for path in folder.glob("Columns*")] == ["Columns.log"]
    header, *rows = (folder / "Columns.log").read_text().splitlines()
    columns = header.split("|")
    assert {len(row.split("|")) for row in rows} == {len(columns)}
    assert {"one", "two"} <= {row.split("|")[columns.index("perf_var")] for row in rows}


def test_reframe_by_itself_renames_the_perflog_when_quantities_change(
    stock_again: StockRun,
) -> None:
    logs = {path.name for path in stock_again.folder.glob("perflogs/**/Columns.log*")}
    assert logs == {"Columns.log", "Columns.log.h0"}


def test_each_record_names_what_its_node_is_made_of(house: HouseRun) -> None:
    perflogs = house.project / "perflogs" / "traps"
    (named,) = {
        tuple(each["inventory"].items())
        for path in perflogs.glob("node/*.jsonl")
        for each in read_records(path)
        if each["check"] == "Slow"
    }
    ((node, digest),) = named
    machine = read_kept(perflogs / ".inventory", node, digest)
    assert machine.facts["node"]["kernel"] == os.uname().release


def test_each_quantity_has_its_own_verdict_in_our_records(house: HouseRun) -> None:
    records = [
        each
        for path in house.project.glob("perflogs/traps/node/*.jsonl")
        for each in read_records(path)
        if each["check"] == "Slow" and each["kind"] == "quantity" and each["counts"]
    ]
    verdicts = {each["quantity_name"]: each["quantity_verdict"] for each in records}
    assert verdicts["bandwidth_8KiB"] == "PASS"
    assert verdicts["bandwidth_32KiB"] == "FAIL"


def test_reframes_perflog_has_one_result_for_all_quantities(house: HouseRun) -> None:
    path = house.project / "perflogs" / "traps" / "node" / "Slow.log"
    header, *rows = path.read_text().splitlines()
    column = header.split("|").index("result")
    assert len(rows) == 16
    assert {row.split("|")[column] for row in rows} == {"fail"}


# What the site does not have.


def test_what_the_site_does_not_have_is_skipped_with_its_reason(house: HouseRun) -> None:
    absent = [leg for leg in house.record["legs"] if leg["fabric"] == "no-infiniband"]
    assert absent
    assert {leg["verdict"] for leg in absent} == {"SKIPPED"}
    assert {leg["reason"] for leg in absent} == {"this site has no infiniband fabric"}


# Parts of a table.


def test_a_table_without_its_last_sizes_is_missing(house: HouseRun) -> None:
    leg = house.leg("Truncated")
    assert leg["verdict"] == "MISSING"
    assert "1B to 32KiB (16) were asked for, got 1B to 16KiB (15)" in leg["reason"]
    assert house.case("Truncated")["fail_phase"] == "sanity"


# Retries and second looks.


def test_a_retry_of_reframe_does_not_hide_what_failed_first(house_again: HouseRun) -> None:
    verdicts = [leg["verdict"] for leg in house_again.legs("FailsAtFirst")]
    assert sorted(set(verdicts) - {"SKIPPED"}) == ["FAIL", "PASS"]
    assert house_again.status == 1


def test_reframe_by_itself_passes_what_a_retry_passes(stock: StockRun) -> None:
    assert "FailsAtFirst @stock:node+plain was retried 1 time(s) and  passed" in stock.out


def test_a_second_look_in_the_same_job_clears_and_says_so(house: HouseRun) -> None:
    leg = house.leg("SlowOnce")
    assert leg["verdict"] == "PASS"
    assert any("second look" in finding["text"] for finding in leg["findings"])
    records = [
        each
        for path in house.project.glob("perflogs/traps/node/*.jsonl")
        for each in read_records(path)
        if each["check"] == "SlowOnce" and each["kind"] == "quantity"
    ]
    assert {(each["attempt"], each["counts"]) for each in records} == {(1, False), (2, True)}
    first = [each["quantity_value"] for each in records if each["attempt"] == 1]
    assert max(first) == 500.0


# Messages.


def test_red_names_the_quantity_that_failed(house: HouseRun) -> None:
    leg = house.leg("Slow")
    assert leg["verdict"] == "FAIL"
    assert leg["reason"].startswith("bandwidth_32KiB")
    assert "45.5% of 1100 MB/s" in leg["reason"]
    (record,) = [
        each
        for path in house.project.glob("perflogs/traps/node/*.jsonl")
        for each in read_records(path)
        if each["check"] == "Slow" and each["kind"] == "leg"
    ]
    assert all("below the lower bound" in reason for reason in record["reasons"])


def test_what_no_fabric_can_carry_is_invalid(house: HouseRun) -> None:
    leg = house.leg("Fast")
    assert leg["verdict"] == "INVALID"
    assert "of the ceiling" in leg["reason"]


# A site's own check, which leaves no record of ours.


@pytest.mark.parametrize(
    ("check", "verdict", "reason"),
    [
        ("OwnTriad", "PASS", ""),
        ("OwnTooSlow", "FAIL", "failed to meet reference"),
        ("OwnEndless", "INVALID", "triad: no finite number"),
        ("OwnUnread", "SKIPPED", "no number judged"),
        ("OwnUnjudged", "UNJUDGED", "triad: no reference; ReFrame's sanity passed"),
        ("OwnSanity", "SKIPPED", "ReFrame's sanity passed; no number judged"),
        ("OwnInsane", "FAIL", "sanity"),
        ("OwnDead", "FAIL", "exit code 3"),
        ("OwnSkipped", "SKIPPED", "skipped by the check"),
    ],
)
def test_a_check_that_is_none_of_ours_has_reframe_s_result(
    house: HouseRun, check: str, verdict: str, reason: str
) -> None:
    leg = house.leg(check)
    assert (leg["verdict"], leg["suite"]) == (verdict, "ReFrame")
    assert reason in leg["reason"]


def test_it_has_its_number_and_reference_and_the_partition_s_launcher(house: HouseRun) -> None:
    leg = house.leg("OwnTooSlow")
    (triad,) = leg["quantities"]
    facts = ("value", "unit", "reference", "lower", "origin", "verdict")
    expected = [100.0, "GB/s", 200, 180.0, "ReFrame's reference", "FAIL"]
    assert [triad[name] for name in facts] == expected
    assert "mpirun -np 2 echo" in (Path(leg["stage_folder"]) / "rfm_job.sh").read_text()


def test_a_number_that_reframe_cannot_read_is_missing(house: HouseRun) -> None:
    """ReFrame warns and passes the check: nothing in its report says that there was one."""
    reasons = [leg["reason"] for leg in house.legs("check file")]
    assert sum("performance variable 'triad'" in each for each in reasons) == 1


def test_the_worst_verdict_is_the_exit_status(house: HouseRun) -> None:
    assert house.record["verdict"] == "INVALID"
    assert house.status == 3


def test_every_case_that_reframe_ran_is_in_the_result(house: HouseRun) -> None:
    cases = {
        case["name"].split(" ")[0]
        for report in house.reports
        for run in report["runs"]
        for case in run["testcases"]
    }
    assert cases <= {leg["check"] for leg in house.record["legs"]}


def test_json_of_a_run_is_plain_json(house: HouseRun) -> None:
    text = json.dumps(house.record, allow_nan=False)
    assert json.loads(text) == house.record


@pytest.mark.parametrize(
    "pattern", ["quick", "^quick$", "rail", "^rail", "quick|full", "", "nosuch", "q.*k"]
)
def test_the_roll_reads_a_tag_as_reframe_does(pattern: str) -> None:
    class _Case:
        class check:  # noqa: N801 - ReFrame's own name
            tags = frozenset({"quick", "multirail"})

    entry = {"check": "A", "tags": sorted(_Case.check.tags)}
    assert bool(due_entries([entry], ["-t", pattern])) == have_tag(pattern)(_Case)


def _reference(quantity: str, value: str) -> str:
    return (
        f'[[references]]\nquantity = "{quantity}"\nvalue = "{value}"\n'
        'fabric = "eth0"\norigin = "test"\n'
    )


def _copy_site(folder: Path, *, references: str) -> None:
    for name in ("site.toml", "fabric.toml"):
        (folder / name).write_text((SITE / name).read_text())
    (folder / "references.toml").write_text(references)


#: ends where anything walks the stack for a warning, which cost a quarter of ``reframe -l``
LISTED = """\
import sys
from reframe.core import variables
variables.user_deprecation_warning = lambda *_: sys.exit("asked for a deprecated name")
from reframe.frontend.cli import main
sys.argv = ["reframe", "-l", "-n", "OsuBandwidth"]
main()
"""


def test_making_a_check_asks_for_no_deprecated_name(tmp_path: Path) -> None:
    place = Workplace(project=ROOT, root=tmp_path, perflogs=tmp_path / "perflogs")
    environment = session_environment(load_site("vcluster"), place, new_run_id())
    for key in ("RFM_REPORT_FILE", "FABRICPROOF_REFRAME_LOG"):
        Path(environment[key]).parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", LISTED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-600:] + done.stderr[-600:]
    assert "OsuBandwidth" in done.stdout
