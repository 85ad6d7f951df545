"""One screen for a tired administrator: it fits, and what it leaves out it counts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import RUN, leg, quantity, report, typed

from fabricproof.core.measure import Verdict
from fabricproof.history.compare.model import Comparison, FieldChange, Side
from fabricproof.history.stats.shifts import Change
from fabricproof.job.leg import ADMISSION_CHECK, CAMPAIGN_SUITE
from fabricproof.job.run import BUILD_PROGRAM, LegResult
from fabricproof.report.red import again
from fabricproof.report.text.screen import LINES, WIDTH, summary


def screen(*arguments: Any, **options: Any) -> str:
    return "\n".join(line.text for line in summary(*arguments, **options))


def test_the_first_line_is_the_verdict_and_the_last_a_command() -> None:
    text = screen(report(leg(), leg(Verdict.FAIL)))
    first, second, *_, last = text.splitlines()
    assert first == f"FAIL  here, run {RUN.run_id}, begun 2026-11-01 02:00 UTC"
    assert second == "  1 FAIL, 1 PASS"
    assert last == f"  fabricproof report --site here {RUN.run_id} --drain"


def test_nothing_judged_is_no_pass() -> None:
    assert screen(report()).splitlines()[0].startswith("SKIPPED  here")
    assert "nothing was due, nothing was measured" in screen(report())


def test_red_says_rail_nodes_number_and_how_sure() -> None:
    twice = ("second look: red again on the same nodes; the first said FAIL",)
    text = screen(report(leg(Verdict.FAIL, findings=typed(*twice))), whole=True)
    told = (
        "FAIL rail1, n1 - n2: osu_bw (openmpi5) (red twice on the same nodes): bandwidth_4MiB: 52 %"
    )
    assert told in " ".join(text.split())


def test_what_a_night_found_is_how_sure_it_is() -> None:
    confirmation = {
        "kind": "confirmation",
        "partition": "compute",
        "fabric": "eth0",
        "stack": "openmpi5",
        "check": "OsuBandwidth",
        "leg": "rail1",
        "looks": [],
        "finding": "CONFIRMED",
        "sentence": "n1 on rail1 is red with others too",
    }
    data = report(leg(Verdict.FAIL))
    assert "CONFIRMED: n1 on rail1 is red" in " ".join(screen(data, [confirmation]).split())
    other = {**confirmation, "leg": "rail0"}
    assert "CONFIRMED" not in screen(data, [other])


def test_next_has_every_red_check_of_a_place_the_worst_first_each_once() -> None:
    """Names are quoted as a shell needs them; a stack that is not built is built."""
    slowest = leg(Verdict.FAIL, check="Osu%x", quantities=(quantity("FAIL", value=1.0),))
    legs = [leg(Verdict.FAIL), slowest, leg(Verdict.FAIL), leg(Verdict.FAIL, stack="my mpi")]
    lines = screen(report(*legs), whole=True).splitlines()
    assert lines[lines.index("next") + 1 :] == [
        "  fabricproof run --site here -n Osu%x -p openmpi5",
        f"  fabricproof report --site here {RUN.run_id} --drain",
        "  fabricproof run --site here -n OsuBandwidth -p openmpi5",
        "  fabricproof run --site here -n OsuBandwidth -p 'my mpi'",
    ]


def test_red_among_many_nodes_names_none_so_a_campaign_is_next() -> None:
    red = leg(Verdict.FAIL, nodes=("n1", "n2", "n3"))
    text = screen(report(red, leg(Verdict.FAIL), leg(Verdict.MISSING, nodes=("n1", "n2", "n4"))))
    campaign = "  fabricproof pairs run --site here --only partition=compute"
    assert text.splitlines().count(campaign) == 1
    assert "pairs run --site" not in screen(report(leg(Verdict.FAIL)))


@given(words=st.text(alphabet="a\x00\x07\x1b\x7f\x9b[2J \r\n", min_size=1))
def test_no_word_of_a_run_steers_the_terminal(words: str) -> None:
    mine = leg(Verdict.FAIL, reason=words, stack=words, nodes=(words, "n2"))
    text = screen(report(mine, notes=(words,)), whole=True)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def test_what_was_found_on_a_green_leg_is_told() -> None:
    """A preflight that FAILED hides in no PASS; a red leg's findings are with the red ones."""
    said = "preflight: rail1 on n1 has MTU 576 instead of 1500"
    text = screen(report(leg(findings=typed(said, "dip: 1KiB carries less")), leg(Verdict.FAIL)))
    part = f"found on green legs\n  {said} (openmpi5 osu_bw rail1 on n1 - n2, which is PASS)\n"
    assert part in text.replace("\n      ", " ")
    assert "dip:" not in text
    assert "found on green legs" not in screen(
        report(leg(), leg(Verdict.FAIL, findings=typed(said)))
    )


def test_a_build_that_failed_is_mended_by_a_build() -> None:
    failed = leg(Verdict.MISSING, program=BUILD_PROGRAM, quantities=(), reason="gcc: no", nodes=())
    assert screen(report(failed)).endswith("next\n  fabricproof stack build --site here openmpi5")


def test_a_comparison_and_a_change_are_told() -> None:
    comparison = Comparison(
        site="here",
        first=Side(words="firmware=28.39", runs=()),
        second=Side(words="firmware=28.41", runs=()),
        overall=Change.WORSE,
        reason="3 of 20 quantities are WORSE",
        quantities=(),
        groups=(),
        changes=(),
        warnings=("two fields changed at once",),
        not_compared=(),
        alpha=0.05,
        margins={},
    )
    change = FieldChange(
        part="interface rail1",
        fact="firmware",
        nodes=("n1",),
        first="28.39",
        second="28.41",
        sentence="n1: firmware 28.39 before, 28.41 now",
    )
    text = screen(report(leg(), comparison=comparison, inventory_changes=(change,)))
    assert "  WORSE firmware=28.41 against firmware=28.39: 3 of 20 quantities are WORSE" in text
    assert "  two fields changed at once" in text
    assert "  n1: firmware 28.39 before, 28.41 now" in text


@settings(deadline=None)
@given(
    reds=st.integers(0, 60),
    skips=st.integers(0, 60),
    notes=st.lists(st.text(max_size=400), max_size=60),
    reason=st.text(max_size=600),
)
def test_it_fits_one_screen_and_counts_what_it_leaves_out(
    reds: int, skips: int, notes: list[str], reason: str
) -> None:
    """40 lines of 100 columns whatever there is; the red that is not shown is in a count."""
    nodes = [(f"n{number}", f"m{number}") for number in range(reds)]
    legs = [leg(Verdict.FAIL, nodes=pair, reason=reason, stack=f"s{pair[0]}") for pair in nodes]
    legs += [leg(Verdict.SKIPPED, reason=f"reason {number}") for number in range(skips)]
    data = replace(report(*legs), notes=tuple(notes))
    lines = [line.text for line in summary(data)]
    assert len(lines) <= LINES
    assert all(len(line) <= WIDTH for line in lines)
    if reds:
        part = lines[lines.index("red") + 1 :]
        part = part[: next(i for i, line in enumerate(part) if not line.startswith(" "))]
        shown = sum(line.startswith("  FAIL rail1") for line in part)
        (more,) = re.findall(r"(\d+)(?: more)?: --all", part[-1]) or ["0"]
        assert shown + int(more) == reds


def admission(verdict: Verdict, name: str, node: str) -> LegResult:
    rail = name.rpartition(".")[2]
    return leg(
        verdict, check=ADMISSION_CHECK, suite=CAMPAIGN_SUITE, program="pairs", leg=name,
        nodes=(node,), rails=[rail],
    )  # fmt: skip


def test_an_admission_says_who_may_come_back_and_how_to_measure_it_again() -> None:
    """``run -n AllPairsAdmission`` measures nothing: without nodes to admit it runs nowhere."""
    five = ("n1", "n17", "n2", "n3", "n4")
    rows = leg(
        Verdict.FAIL, check=ADMISSION_CHECK, suite=CAMPAIGN_SUITE, program="pairs", nodes=five
    )
    data = report(
        rows,
        admission(Verdict.PASS, "admit.n17.rail0", "n17"),
        admission(Verdict.FAIL, "admit.n17.rail1", "n17"),
        admission(Verdict.PASS, "partner.n2.rail0", "n2"),
        admission(Verdict.PASS, "partner.n2.rail1", "n2"),
    )
    lines = screen(data, whole=True).splitlines()
    at = lines.index("admission")
    assert lines[at + 1 : at + 3] == [
        "  FAIL n17 over rail1",
        "  PASS partner n2 over rail0, rail1",
    ]
    assert lines[lines.index("next") + 1 :] == [
        "  fabricproof admit --site here --only partition=compute n17",
        f"  fabricproof report --site here {RUN.run_id} --drain",
    ]
    assert "(in several rounds of one job)" in " ".join(lines)
    assert again(rows, "here") == "fabricproof pairs run --site here --only partition=compute"
    assert "admission" not in screen(report(leg(nodes=("n17",), leg="admit.n17.rail1")))
