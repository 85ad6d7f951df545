"""Interleaved plans: orders by lot, nothing lost by an interruption, always switched back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import InputMissingError, ParseError, UnavailableError
from fabricproof.history.compare.model import SideError
from fabricproof.history.compare.plan import (
    UNKNOWN,
    InterleavedMeans,
    InterleavedPlan,
    RunOutcome,
    SwitchedError,
    conduct,
    fewest_rounds,
    make_plan,
    plan_lines,
    read_plan,
    state_file,
    write_plan,
)


@dataclass
class FakeSite:
    """A site that notes what was done to it, and in which state it was measured."""

    path: Path
    state: str = "a"
    did: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    measured_in: dict[str, str] = field(default_factory=dict)
    on_measure: Callable[[int], RunOutcome | None] = lambda _: None
    fails: str = ""

    def means(self) -> InterleavedMeans:
        return InterleavedMeans(
            switch=self.switch,
            measure=self.measure,
            label=self.labels.__setitem__,
            keep=lambda plan: write_plan(self.path, plan),
            tell=lambda _: None,
        )

    def switch(self, side: str) -> None:
        self.did.append(side)
        if side == self.fails:
            raise SwitchedError(f"cannot switch to {side}")
        self.state = "a" if side == "back" else side

    def measure(self, arguments: tuple[str, ...]) -> RunOutcome:
        assert arguments == ("-t", "quick")
        number = len(self.measured_in)
        other = self.on_measure(number)
        run_id = f"run{number}"
        self.measured_in[run_id] = self.state
        return other or RunOutcome(run_id=run_id, whole=True)


def begun(folder: Path, rounds: int = 3, seed: int = 7) -> tuple[FakeSite, InterleavedPlan]:
    """Return a fake site and a plan for it."""
    plan = replace(make_plan("swap", rounds, seed), arguments=("-t", "quick"))
    return FakeSite(path=state_file(folder, "made", "swap")), plan


@given(st.integers(1, 40), st.integers(0, 2**31))
def test_every_round_has_both_sides_in_an_order_by_lot(rounds: int, seed: int) -> None:
    """Blocks are whole, the seed alone decides, rounds follow each other."""
    plan = make_plan("swap", rounds, seed)
    assert Counter((each.round, each.side) for each in plan.steps) == Counter(
        (number, side) for number in range(1, rounds + 1) for side in "ab"
    )
    assert [each.round for each in plan.steps] == sorted(each.round for each in plan.steps)
    assert plan == make_plan("swap", rounds, seed)


def test_both_orders_come_up() -> None:
    """An order that is always a first would be no lot."""
    first = Counter(each.side for each in make_plan("swap", 200, 1).steps[::2])
    assert min(first.values()) > 60


def test_each_run_is_measured_in_the_state_that_its_label_says(tmp_path: Path) -> None:
    """The label, the state of the site and the round of a run belong together."""
    site, plan = begun(tmp_path)
    done = conduct(plan, site.means())
    assert done.next_step is None
    assert {run: label.removeprefix("swap-") for run, label in site.labels.items()} == (
        site.measured_in
    )
    assert Counter(done.blocks.values()) == {1: 2, 2: 2, 3: 2}
    assert read_plan(site.path) == done


def test_the_site_is_switched_back_at_the_end(tmp_path: Path) -> None:
    """The last thing done is the switch back, once, and the plan says so."""
    site, plan = begun(tmp_path)
    done = conduct(plan, site.means())
    assert site.did[-1] == "back"
    assert site.did.count("back") == 1
    assert done.switched == ""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interrupted_plan_switches_back_and_goes_on(
    tmp_path: Path, error: type[BaseException]
) -> None:
    """Ctrl-C in the fourth run costs that run alone; the fifth begins where the fourth did."""
    site, plan = begun(tmp_path)

    def stop(number: int) -> None:
        if number == 3:
            raise error

    site.on_measure = stop  # type: ignore[assignment]
    with pytest.raises(error):
        conduct(plan, site.means())
    assert site.did[-1] == "back"
    kept = read_plan(site.path)
    assert [bool(each.run_id) for each in kept.steps] == [True] * 3 + [False] * 3
    assert kept.switched == ""
    assert len(kept.blocks) == 2

    site.on_measure = lambda _: None
    done = conduct(kept, site.means())
    assert [each.run_id for each in done.steps[:3]] == [each.run_id for each in kept.steps[:3]]
    assert done.next_step is None


def test_a_run_that_came_to_no_end_does_not_count(tmp_path: Path) -> None:
    """Half a run gets no label and is measured again."""
    site, plan = begun(tmp_path)
    site.on_measure = lambda number: (
        RunOutcome(run_id="half", whole=False, reason="no Slurm") if number == 1 else None
    )
    with pytest.raises(UnavailableError, match=r"half of round 1.*no Slurm.*ab run swap"):
        conduct(plan, site.means())
    assert "half" not in site.labels
    assert site.did[-1] == "back"
    assert sum(bool(each.run_id) for each in read_plan(site.path).steps) == 1


def test_a_switch_that_fails_is_answered_by_the_switch_back(tmp_path: Path) -> None:
    """A switch may have done half of its work: nothing is measured, and back it goes."""
    site, plan = begun(tmp_path)
    site.fails = "b"
    with pytest.raises(SwitchedError, match="cannot switch to b"):
        conduct(plan, site.means())
    assert site.did[-1] == "back"
    assert "b" not in site.measured_in.values()


def test_a_switch_back_that_fails_is_the_loudest(tmp_path: Path) -> None:
    """Then nobody knows the state: the plan keeps that, and the message says both faults."""
    site, plan = begun(tmp_path)
    site.fails = "back"
    site.on_measure = lambda number: RunOutcome(run_id="half", whole=False) if number == 1 else None
    with pytest.raises(SwitchedError, match=r"cannot switch to back, after: run half"):
        conduct(plan, site.means())
    kept = read_plan(site.path)
    assert kept.switched == UNKNOWN
    assert any("WARNING" in each for each in plan_lines(kept, {}))


def test_a_plan_that_is_done_touches_nothing(tmp_path: Path) -> None:
    """Run again, a finished plan neither switches nor measures."""
    site, plan = begun(tmp_path)
    done = conduct(plan, site.means())
    site.did.clear()
    assert conduct(done, site.means()) == done
    assert site.did == []


def test_fewest_rounds() -> None:
    """Six rounds are the first whose smallest p, 2 of 64 orders, is below 5 %."""
    assert fewest_rounds(0.05) == 6
    assert fewest_rounds(0.5) == 2


@pytest.mark.parametrize("name", ["", "2026", "a/b", "../x", "a b"])
def test_names_that_cannot_be_files_and_labels_are_refused(name: str) -> None:
    """A name becomes a file's and a label's."""
    with pytest.raises(SideError, match="no name for a plan"):
        make_plan(name, 2, 1)


def test_no_plan_and_a_damaged_one_are_said(tmp_path: Path) -> None:
    """One sentence with the file, no traceback."""
    path = state_file(tmp_path, "made", "swap")
    with pytest.raises(InputMissingError, match="ab plan swap"):
        read_plan(path)
    for text in ("{", "[]", '{"format": 2}', '{"format": 1, "name": "swap"}'):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        with pytest.raises(ParseError, match="no readable plan"):
            read_plan(path)
    write_plan(path, make_plan("swap", 2, 1))
    path.write_text(path.read_text().replace('"round": 1', '"round": "1"', 1))
    with pytest.raises(ParseError, match="steps: 0: round: expected a whole number, got '1'"):
        read_plan(path)
