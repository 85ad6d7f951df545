"""What a run came to: its legs, its verdict over all that was due, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.provenance import LegKey
from fabricproof.core.records import QuantityRecord
from fabricproof.job.leg import ADMISSION_CHECK, own_name
from fabricproof.physics import device_word

#: what stands for a program where a stack could not be built
BUILD_PROGRAM = "stack build"

#: check of a leg that says why ReFrame's whole run is doubtful
OF_REFRAME = "ReFrame"


@dataclass(frozen=True, kw_only=True)
class LegResult:
    """What one leg of one test case came to.

    What came to no leg has a check alone, in words: ``check file``, ``ReFrame``.
    """

    verdict: Verdict
    check: str
    partition: str = ""
    stack: str = ""
    suite: str = ""
    program: str = ""
    fabric: str = ""
    leg: str = ""
    nodes: tuple[str, ...] = ()
    quantities: tuple[QuantityRecord, ...] = ()  # of the attempt that counts
    findings: tuple[Finding, ...] = ()
    reason: str = ""  # why the verdict is what it is; empty for a plain PASS
    job_id: str | None = None
    stage_folder: str | None = None
    net_path: Mapping[str, Any] | None = None  # its proof: state, reason, bytes moved
    for_want_of: str = ""  # the stack whose failed build kept it from running
    fail_phase: str = ""  # if it left no record: the phase of ReFrame that failed its test case
    link: str = ""  # of its path, as the site declared it when it ran; empty if unknown
    errors: tuple[Mapping[str, Any], ...] = ()  # for each rail, node and direction, in all attempts
    rails: tuple[str, ...] = ()  # that it was to go over; empty if it left no record
    relation: str = ""  # what is judged across legs, ``scaling``; empty for a leg
    check_file: str = ""  # of a check that is none of ours

    @property
    def key(self) -> LegKey:
        """Its identity, the same in every run."""
        return LegKey(
            partition=self.partition,
            fabric=self.fabric,
            stack=self.stack,
            check=self.check,
            leg=self.leg,
        )

    @property
    def layout(self) -> str:
        """What tells a leg from others over the same rails: ``4x2`` nodes and ranks, ``back``."""
        return own_name(self.leg, self.rails) if self.rails and not self.relation else ""

    @property
    def device(self) -> str:
        """``Soft-RoCE`` where software stood for the HCA; empty for all else."""
        return device_word(self.link)

    @property
    def doubts_run(self) -> bool:
        """Whether it says that the whole run is doubtful: its end is unknown."""
        return self.check == OF_REFRAME and not self.partition

    @property
    def path_name(self) -> str:
        """The path as every line for people shows it: ``rxe0:1 Soft-RoCE``, ``rail0``."""
        return " ".join(filter(None, (self.leg, self.device)))

    def row_of(self, *kinds: str) -> str:
        """Return the node of which an admission says whether users may have it; else empty.

        ``kinds``: ``admit``, ``partner`` or both (``job.leg``).
        """
        begins = tuple(f"{kind}.{node}." for kind in kinds for node in self.nodes)
        alone = self.check == ADMISSION_CHECK and len(self.nodes) == 1
        return self.nodes[0] if alone and self.leg.startswith(begins) else ""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A whole run, as ``run``, ``nightly``, ``admit``, ``pairs run`` and ``report`` take it."""

    run_id: str
    legs: tuple[LegResult, ...] = ()
    notes: tuple[str, ...] = ()
    job_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by the job's number
    stopped: str = ""  # why the run did not come to its end; empty if it did
    status: int = 0  # exit status of a run that was stopped; 0 for all others
    refused: bool = False  # the system gave no process, memory or file: no fault of a scheduler

    @property
    def left_nothing(self) -> bool:
        """Whether it was stopped before it left anything to judge."""
        return bool(self.stopped) and not self.legs

    @property
    def verdict(self) -> Verdict:
        """The worst verdict; SKIPPED if nothing was judged, MISSING if it was stopped before."""
        if not self.legs:
            return Verdict.MISSING if self.stopped else Verdict.SKIPPED
        return worst([leg.verdict for leg in self.legs])

    def counts(self) -> dict[Verdict, int]:
        """Return how many legs have each verdict, worst first, zeros left out."""
        found = {verdict: sum(leg.verdict is verdict for leg in self.legs) for verdict in Verdict}
        return {verdict: count for verdict, count in found.items() if count}
