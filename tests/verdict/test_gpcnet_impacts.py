"""What GPCNeT says a load costs: judged by references, else told."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ConfigError
from fabricproof.core.measure import Verdict, texts_of
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Report, Rules, from_texts

DATA = Path(__file__).parents[1] / "data" / "gpcnet"
LOADED = (DATA / "network_load_test-1.3-64-nodes.txt").read_text("utf-8")
ALONE = (DATA / "network_test-1.3-64-nodes.txt").read_text("utf-8")


def judged(text: str, *references: str) -> dict[str, Report]:
    rules = Rules(fabric=None, references=from_texts(references, origin="--reference"))
    return {table.program: judge_table(table, rules) for table in parse_text(text)}


def starved() -> str:
    """Return the run with its allreduce three times slower at 99 % beside the congestors."""
    row = "|        Multiple Allreduce (8 B) |         20.3 |         {} |         usec |"
    key = "|        Multiple Allreduce (8 B) |                 1.0X |                {}X |"
    return LOADED.replace(row.format("22.2"), row.format("66.6")).replace(
        key.format("1.0"), key.format("3.0")
    )


def test_without_a_reference_nothing_is_red_and_nothing_green() -> None:
    for text in (LOADED, starved(), ALONE):
        assert {each.verdict for each in judged(text).values()} == {Verdict.UNJUDGED}


def test_a_reference_judges_the_impact_of_its_test_and_of_no_other() -> None:
    for text, verdict in ((LOADED, Verdict.PASS), (starved(), Verdict.FAIL)):
        found = judged(text, "allreduce_impact_p99=1.2 x")
        by_name = {each.name: each for each in found["Multiple Allreduce"].quantities}
        assert by_name["allreduce_impact_p99"].verdict is verdict
        assert by_name["allreduce_impact_avg"].verdict is Verdict.UNJUDGED
        assert found["RR Two-sided Lat"].verdict is Verdict.UNJUDGED
    assert by_name["allreduce_impact_p99"].value == pytest.approx(3.0)


def test_of_a_bandwidth_less_is_worse() -> None:
    text = LOADED.replace("4057.7", "2030.7").replace(
        "BW+Sync (131072 B) |                 1.0X", "BW+Sync (131072 B) |                 2.0X"
    )
    found = judged(text, "bandwidth_impact_avg=1.5 x")["RR Two-sided BW+Sync"]
    assert found.quantities[0].value == pytest.approx(2.0)
    assert found.quantities[0].verdict is Verdict.FAIL


def test_a_pairs_reference_judges_no_ring() -> None:
    found = judged(ALONE, "latency=1 us", "bandwidth=20 GB/s")
    assert {each.verdict for each in found.values()} == {Verdict.UNJUDGED}
    said = texts_of(found["RR Get Lat"].findings)
    assert said[0] == "2048 ranks on 64 nodes: mean 4.4, 99 % no worse than 5.4"


def test_an_impact_is_a_fraction() -> None:
    with pytest.raises(ConfigError):
        from_texts(["latency_impact_p99=3 us"], origin="--reference")
