"""What a campaign says in the records of a run: its rows, their verdicts, bounds and findings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_machine import NODES, Machine, healthy, planned

from fabricproof.cli.measure.pairs_display import campaign_record
from fabricproof.core.findings import Finding, FindingKind, findings_of
from fabricproof.core.measure import Verdict
from fabricproof.pairs.campaign.again import Confirmation, RedPair, confirm
from fabricproof.pairs.campaign.kernel import Binary
from fabricproof.pairs.check.rows import rows_of
from fabricproof.rfm.handover import bounds
from fabricproof.site import Site
from fabricproof.traffic.disturbance import DisturbanceKind

RAILS = (("rail0",), ("rail1",))
LEAVES = tuple(f"leaf{number // 4}" for number in range(len(NODES)))
BEHIND = ("vc5", "vc6")

#: MB/s of what one node sends another over a path, in a launch
Rates = Callable[[str, str, int, int], float]


class PerPath(Machine):
    """A machine whose rates are unlike over paths and in launches, both by number."""

    def __init__(self, rates: Rates) -> None:
        super().__init__(healthy)
        self.rates = rates

    def run_script(self, folder: Path, *_: Any) -> None:
        net_path = json.loads((folder / "launch.json").read_text())["net_path"]
        launch = int(folder.suffix[1:])
        self.rate = lambda a, b: healthy(a, b) * self.rates(a, b, net_path, launch)
        super().run_script(folder)


def made(rates: Rates = lambda *_: 1.0, *, is_even: bool = False, **more: Any) -> Machine:
    """Return a machine with these shares of a healthy rate; even: all pairs at 21.3 MB/s."""
    machine = PerPath(rates)
    if is_even:
        machine = Machine(lambda a, b: 21.3 * rates(a, b, 0, 0))  # type: ignore[assignment]
    for name, value in more.items():
        setattr(machine, name, value)
    return machine


def look(verdict: Verdict | None, **more: Any) -> Callable[[RedPair], Confirmation]:
    return lambda red: Confirmation(
        name=red.name, net_path=red.net_path, nodes=(red.source, red.destination),
        check="osu_bw", verdict=verdict, reason="6.9 MB/s", **more,
    )  # fmt: skip


def no_bytes_of_vc3(line: dict[str, Any]) -> dict[str, Any]:
    if line["record"] == "counters" and line["node"] == "vc3":
        line["after"]["rail0"]["tx_bytes"] = line["before"]["rail0"]["tx_bytes"]
    return line


def between(a: str, b: str) -> bool:
    return LEAVES[NODES.index(a)] != LEAVES[NODES.index(b)]


def into_vc3(_: str, b: str, net_path: int, __: int) -> float:
    return 0.3 if b == "vc3" and net_path == 0 else 1


P, F, V, M, U = Verdict.PASS, Verdict.FAIL, Verdict.INVALID, Verdict.MISSING, Verdict.UNJUDGED
TWO: dict[str, Any] = {"nodes": NODES[:2], "net_paths": RAILS}
THREE: dict[str, Any] = {"nodes": NODES[:3]}


@pytest.mark.parametrize(
    ("machine", "how", "verdicts", "words", "blamed"),
    [
        # Each is measured, and what is red is confirmed by a stock program.
        (made(), {"net_paths": RAILS}, [P, P], "lowest of 16 pairs", []),
        (made(into_vc3), {"net_paths": RAILS}, [F, P], "vc3 rail0 receives at 30 %", ["vc3"]),
        (
            made(lost=lambda source, _: 9 if source == "vc3" else 0),
            {}, [F], "of what vc3 sends over rail0", [],
        ),
        # Another path; whose it is is said, and not one pair of it.
        (made(rails=("rail1", "rail0")), {}, [V], "", []),
        (
            made(edit=no_bytes_of_vc3), {"is_full": True}, [V],
            "vc3: traffic over rail0 takes another path", ["vc3"],
        ),
        # Healthy pairs are just above the bound, one is just below it: not low by its population.
        (
            made(lambda a, b, *_: 0.985 if (a, b) == ("vc1", "vc2") else 1, is_even=True),
            {"is_full": True}, [U], "2 values miss the reference, at the second look too", [],
        ),
        # Nobody knows the uplinks.  That something else is low over rail1 makes rail0 no better.
        (
            made(
                lambda a, b, net_path, _: (0.5 if between(a, b) else 1)
                * (0.8 if net_path == 1 and {a, b} == {"vc1", "vc2"} else 1)
            ),
            {"is_full": True, "leaf_of": LEAVES, "net_paths": RAILS},
            [U, U], "pairs between leaves have", [],
        ),
        # Two nodes are one pair; slow at both looks it is red, and nobody is blamed.
        (made(), TWO, [P, P], "", []),
        (made(), TWO | {"is_full": True}, [P, P], "", []),
        (
            made(lambda a, _, net_path, __: 1 if net_path or a != "vc2" else 0.3),
            TWO, [F, P], "whose fault it is, 2 nodes do not tell", [],
        ),
        (
            made(lambda _, __, net_path, ___: 1 if net_path else 0.3),
            TWO | {"is_full": True}, [F, P], "whose fault it is, 2 nodes do not tell", [],
        ),
        (made(lambda _, __, ___, launch: 1 if launch else 0.3), {"nodes": NODES[:2]}, [P], "", []),
        (made(lambda *_: 0.5), THREE, [F], "3 nodes do not tell", []),
        (made(lambda *_: 0.5), THREE | {"is_full": True}, [F], "3 nodes do not tell", []),
    ],
)  # fmt: skip
def test_the_row_of_a_path(
    climb: Any, site: Site, machine: Machine, how: dict[str, Any], verdicts: list[Verdict],
    words: str, blamed: list[str],
) -> None:  # fmt: skip
    outcome, looks = confirm(climb(machine, planned(site, **how))[0], look(Verdict.FAIL))
    found = rows_of(outcome, looks)
    assert [each.leg.name for each in found] == ["rail0", "rail1"][: len(verdicts)]
    assert [each.report.verdict for each in found] == verdicts, found[0].report.quantities
    (judgement,) = found[0].report.quantities
    assert words in judgement.reason
    told = [each for each in found[0].report.findings if each.kind is FindingKind.BLAME]
    assert [each.where.node for each in told] == blamed
    if judgement.value is not None and judgement.verdict is not Verdict.INVALID:
        # ReFrame comes to the same by the bounds that it gets.
        value, low, high, unit = bounds(judgement)
        assert isinstance(value, float)
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert (judgement.name, unit) == ("bandwidth_64KiB", "MB/s")
        is_good = value * (1 + low) <= judgement.value + 1e-9 <= value * (1 + high)
        assert is_good or judgement.verdict is not Verdict.PASS


def test_a_row_keeps_the_digest_of_the_kernel_that_measured_it(climb: Any, site: Site) -> None:
    outcome, _ = climb(made(), planned(site))
    binary = Binary(mpi="MPICH Version: 5.0.2", build="abi", sha256="0a" * 32)
    (row,) = rows_of(replace(outcome, binaries=(binary,)), ())
    kept = Finding(text=binary.sentence, kind=FindingKind.KERNEL, fact=binary.sha256)
    assert kept in row.report.findings
    (row,) = rows_of(outcome, ())
    assert FindingKind.KERNEL not in {each.kind for each in row.report.findings}


@pytest.mark.parametrize(
    ("kind", "nodes", "is_slow"),
    [
        ("pair", ("vc2", "vc5"), lambda one, other: {one, other} == {"vc2", "vc5"}),
        ("uplink", BEHIND, lambda one, other: one not in BEHIND and other in BEHIND),
    ],
)
def test_a_blame_of_no_one_node_says_which_nodes_it_concerns(
    kind: str, nodes: tuple[str, ...], is_slow: Any, climb: Any, site: Site
) -> None:
    machine = made(lambda a, b, *_: 0.3 if is_slow(a, b) else 1, is_even=True)
    leaf_of = tuple(f"leaf{number // 2}" for number, _ in enumerate(NODES))
    campaign = replace(planned(site, is_full=True), leaf_of=leaf_of)
    outcome, looks = confirm(climb(machine, campaign)[0], look(Verdict.FAIL))
    (row,) = rows_of(outcome, looks)
    found = [each for each in row.report.findings if each.kind is FindingKind.BLAME]
    assert [(each.where.node, each.fact, each.where.nodes) for each in found] == [("", kind, nodes)]
    record = {"findings": [each.record() for each in found]}
    assert findings_of(record) == tuple(found)


@pytest.mark.parametrize(
    ("verdict", "disturbance"),
    [(Verdict.PASS, None), (None, None), (Verdict.UNJUDGED, DisturbanceKind.STARVED_CORES)],
)
def test_red_that_no_stock_program_saw_is_unjudged_with_what_it_said(
    climb: Any, site: Site, verdict: Verdict | None, disturbance: str | None
) -> None:
    outcome, looks = confirm(
        climb(made(into_vc3), planned(site, net_paths=RAILS))[0],
        look(verdict, disturbance=disturbance),
    )
    red, green = rows_of(outcome, looks)
    assert (red.report.verdict, green.report.verdict) == (Verdict.UNJUDGED, Verdict.PASS)
    (judgement,) = red.report.quantities
    assert "vc3 rail0 receives at 30 %" in judgement.reason
    assert "osu_bw on vc" in judgement.reason
    assert (judgement.disturbance, judgement.is_open) == (disturbance, True)
    assert not [each for each in red.report.findings if each.kind is FindingKind.BLAME]


def test_nodes_and_pairs_that_were_not_measured_are_told_by_name(climb: Any, site: Site) -> None:
    machine = made(free=set(NODES) - {"vc8"})
    campaign = replace(planned(site), out={"vc9": "drain"}, skipped={"vc10": "left out"})
    row, nodes = rows_of(climb(machine, campaign)[0], (), "rail0: it was killed")
    told = [(each.name, each.verdict) for each in nodes.report.quantities]
    assert told == [("node_vc9", Verdict.MISSING), ("node_vc10", Verdict.SKIPPED)]
    (judgement,) = row.report.quantities
    assert judgement.verdict is Verdict.MISSING
    assert judgement.reason.startswith("4 pairs not measured: ")
    said, later = judgement.reason.split("; ")[-2:]
    assert said == "the job said: rail0: it was killed"
    assert later == "later: fabricproof pairs run --resume test"
    (_, alone) = rows_of(climb(machine, replace(campaign, out={}))[0], ())
    assert alone.report.verdict is Verdict.SKIPPED


def test_what_others_disturbed_says_so_and_by_what(climb: Any, site: Site) -> None:
    machine = made(lambda *_: 0.5, taken=lambda node: 0.5)
    (row,) = rows_of(climb(machine, planned(site))[0], ())
    (judgement,) = row.report.quantities
    assert judgement.verdict is Verdict.UNJUDGED
    assert judgement.disturbance is DisturbanceKind.STARVED_CORES


@pytest.mark.parametrize(
    ("counter", "rounds", "verdict"),
    [
        ("link_error_recovery", {0}, Verdict.PASS),
        ("link_error_recovery", {0, 1}, Verdict.UNJUDGED),
        ("aer_nonfatal", {1, 2}, Verdict.UNJUDGED),
    ],
)
def test_an_error_that_rose_in_two_rounds_is_not_cleared_by_a_good_second_look(
    counter: str, rounds: set[int], verdict: Verdict, climb: Any, site: Site
) -> None:
    def edit(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "counters":
            rose = line["node"] == "vc1" and line["round"] in rounds
            line["before"].setdefault("rail0", {})[counter] = 4
            line["after"].setdefault("rail0", {})[counter] = 4 + rose
        return line

    machine = Machine(healthy)
    machine.edit = edit
    outcome, _ = climb(machine, planned(site))
    assert len(outcome.second_looks) == len(rounds) * (verdict is Verdict.PASS)
    (row,) = rows_of(outcome, ())
    assert outcome.verdict is row.report.verdict is verdict
    told = json.loads(json.dumps(campaign_record(outcome, ())))["troubles"]
    assert all(each["rose"] == [["vc1", "rail0", counter]] for each in told)
    if verdict is Verdict.UNJUDGED:
        assert told
        assert f"{counter} of rail0 on vc1 rose by 1" in row.report.quantities[0].reason


def test_whom_the_stock_program_cleared_is_blamed_no_longer(climb: Any, site: Site) -> None:
    machine = Machine(lambda a, b: healthy(a, b) * (0.5 if b in {"vc1", "vc4"} else 1))
    found, _ = climb(machine, planned(site, is_full=True))
    assert {each.where.node for each in found.results[0].said.blame} == {"vc1", "vc4"}

    def seen(red: RedPair) -> Confirmation:
        verdict = Verdict.PASS if red.blamed == "vc1" else Verdict.FAIL
        return look(verdict)(red)

    outcome, looks = confirm(found, seen)
    assert [each.where.node for each in outcome.results[0].said.blame] == ["vc4"]
    told = outcome.results[0].said.undecided[0]
    assert "vc1 rail0 receives at 5" in told.text
    assert "osu_bw did not see it" in told.text
    (row,) = rows_of(outcome, looks)
    assert row.report.verdict is Verdict.FAIL
    blamed = [each.where.node for each in row.report.findings if each.kind is FindingKind.BLAME]
    assert blamed == ["vc4"]
