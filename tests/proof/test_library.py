"""The fault library names what the design names, and no entry is half said."""

from __future__ import annotations

import pytest

from fabricproof.core.measure import Verdict
from proof.library import NOT, PAIRS, read_library
from proof.machine import effects

#: the names of the design (issue 16)
DESIGN = """
slow node (CPU), slow node (memory), half-rate link, link trained to fewer lanes, slow PCIe slot,
PCIe that trains down under load, one-way loss (transmit), one-way loss (receive), loss of 1e-4
with bandwidth intact, reordering, jitter, added latency of 20 %, added latency of 2 us, flapping
link, dead link, wrong MTU on a node, wrong MTU in the switch, wrong rail used, one rail of two
used, rails cabled crosswise, traffic over management, TCP below a verbs device, shared memory
instead of the fabric, ranks on the wrong node, rank on the far socket, other traffic on the rail,
other job on the node, oversubscribed uplink beyond what is declared, slow uplink, slow leaf, a bad
pair only, mixed firmware, firmware that slows one size range, firmware that changes nothing, other
MPI library loaded than named, benchmark that prints without sending, truncated output, interleaved
output, stale output of an older run, wrong unit, clock that drifts or steps, hung rank, dead node,
job killed, full disk, controller away, record file damaged, check that silently vanished, baseline
frozen on a sick night, reference that is wrong by two, fabric declared wrong (both ways)
"""

#: what is in the library beside them: what must stay green, and what no repeating clears
MORE = {
    "protocol switch of a healthy stack",
    "stall at one look",
    "flutter of one job",
    "wrong path in one job",
    "stalls at both looks, each of another number",
    "stalls in both jobs, each of another number",
    "stall beside a look that nobody counted",
    "counters reset during a run",
    "as many bytes beside as on the rail",
    "launcher that hides a rank's failure",
    "rank that never came back to be counted",
    "columns that contradict each other",
    "losses that nobody counts",
    "latency below what physics allows",
    "check that ReFrame failed for a reason of its own",
    "nothing changed",
    "step of a history whose nights are shuffled",
    "one bad night",
    "change below the margin",
    "rail slower than it was",
    "rail that is no longer measured",
}

LIBRARY = read_library()


def test_every_fault_of_the_design_is_there_and_nothing_that_nobody_named():
    named = {" ".join(each.split()) for each in DESIGN.split(",")}
    assert {each.name for each in LIBRARY} == named | MORE


def test_titles_are_apart():
    titles = [each.title for each in LIBRARY]
    assert len({*titles}) == len(titles)


@pytest.mark.parametrize("entry", LIBRARY, ids=lambda each: each.title)
def test_an_entry_is_whole(entry):
    assert entry.real
    assert entry.live.removeprefix(NOT).strip()
    assert entry.effect.removeprefix(NOT).strip()
    if entry.is_simulated:
        assert entry.strengths
        assert entry.unit
        assert entry.verdicts
        assert entry.must is None or entry.must in entry.strengths


def test_what_is_due_to_stay_green_is_not_called_a_fault():
    green = {each.name for each in LIBRARY if Verdict.PASS in each.verdicts or each.is_steady}
    assert green < MORE | {"firmware that changes nothing"}
    passed = [each for each in LIBRARY if Verdict.PASS in each.verdicts]
    assert all(len(each.verdicts) == 1 for each in passed)


def test_every_effect_is_some_fault_s():
    used = {name for each in LIBRARY for name in (each.effect, each.beside)}
    there = {*effects.SCENES, *effects.FILES, *effects.DECLARED}
    assert there <= used
    assert PAIRS in used
