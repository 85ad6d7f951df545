"""Any check of a site, judged by the site's references and kept in its history."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before
from reframe.core.exceptions import PerformanceError
from reframe.utility import ScopedDict, osext

from fabricproof.core.errors import UnitError
from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import IDENTITY_KEY
from fabricproof.core.records import append_records, record_file
from fabricproof.core.units import canonical_unit
from fabricproof.job.job_end import read_end
from fabricproof.job.recording import LEGS_KEY, SUITE_OF_OTHERS, describe_numbers
from fabricproof.rfm.current import current_site, run_id, took_part, why_no_site
from fabricproof.rfm.handover import bounds
from fabricproof.rfm.settings import perflog_root
from fabricproof.stacks.stack import resolve
from fabricproof.verdict.value import Judgement, Reference, Source, judge_value, no_number

#: ReFrame 4.9 renamed it
_Plugin: Any = getattr(rfm, "RegressionTestPlugin", None) or rfm.RegressionMixin


class Referenced(_Plugin):
    """A mixin: ``class Stream(rfm.RunOnlyRegressionTest, Referenced)``.

    Each performance variable is judged by the value that ``references.toml`` has for it in this
    check, else by the check's own ``reference``.  Numbers are to be positive.
    """

    judged: tuple[Judgement, ...] = ()
    reference: Any

    @run_before("setup")
    def take_part(self) -> None:
        """Fail without a site: its references judge, its history keeps."""
        if error := why_no_site():
            raise error
        took_part.add(type(self).__name__)

    @run_before("performance", always_last=True)
    def judge_and_keep_numbers(self) -> None:
        """Judge each number, keep the records, and give ReFrame the references that judged."""
        if self.is_dry_run():
            return
        check, _, parameters = self.name.partition(" ")
        site, stack, partition = current_site(), self.current_environ.name, self.current_partition
        theirs: dict[str, Any] = {}
        scoped = self.reference
        if not isinstance(scoped, ScopedDict):  # stated by the check's variables ($index)
            with contextlib.suppress(KeyError):
                scoped = ScopedDict({partition.fullname: scoped[self]})
        for name in self.perf_variables:
            with contextlib.suppress(KeyError):
                theirs[name] = scoped[f"{partition.fullname}:{name}"]
        ours = site.references_of_check(check, partition.name, stack)
        self.judged = tuple(self._judge(ours, theirs))
        if not self.judged:  # an MPI hello: it stands by ReFrame's own result
            return
        identity: dict[str, Any] = {
            "run_id": run_id(),
            "unique_name": self.unique_name,
            "site": site.name,
            "partition": partition.name,
            "stack": stack,
            "stack_version": "",
            "job_id": str(self.job.jobid),
            "job_state": str(self.job.state),
            "stage_folder": self.stagedir,
            "completed": self.job.completion_time,
            LEGS_KEY: 1,
        }
        for spec in site.stacks:
            if spec.name == stack:  # the identity of our legs: a stack is one build in a run
                found = resolve(site, site.partitions[0], spec).identity(SUITE_OF_OTHERS)
                identity["stack_version"] = f"{spec.family} {spec.version}"
                identity[IDENTITY_KEY] = found.record()
        leg, nodes = parameters.replace("%", ""), self.job.nodelist or ()
        records = describe_numbers(identity, self.judged, check=check, leg=leg, nodes=nodes)
        folder = perflog_root() / site.name / partition.name
        append_records(record_file(folder, run_id()), records)
        for each in self.judged:
            self.perf_variables.pop(each.name, None)  # it would only warn of what it cannot read
            if each.value is not None:
                number = sn.make_performance_function(sn.defer(each.value), each.unit)
                self.perf_variables[each.name] = number
            if each.reference is not None:
                theirs[each.name] = bounds(each)
        self.reference = {"*": theirs}

    def _judge(
        self, ours: Mapping[str, Reference], theirs: Mapping[str, Any]
    ) -> Iterator[Judgement]:
        for name in sorted(ours.keys() - self.perf_variables.keys()):
            yield no_number(name, Verdict.MISSING, "the check has no such performance variable")
        for name, variable in self.perf_variables.items():
            unit = str(variable.unit or "")
            with contextlib.suppress(UnitError):
                unit = canonical_unit(unit)
            try:
                with osext.change_dir(self.stagedir):
                    value = float(variable.evaluate())
            except Exception as error:
                yield no_number(name, Verdict.MISSING, f"not read: {error}", unit)
                continue
            if not math.isfinite(value):
                yield no_number(name, Verdict.INVALID, f"{value:g} is not a measurement", unit)
                continue
            reference = ours.get(name) or _as_reference(theirs.get(name, ()), unit)
            reference = reference and reference.in_unit(unit)
            found = judge_value(name=name, value=value, unit=unit, reference=reference)
            yield replace(found, reason=f"{found.reason}; no path is proven")

    @run_after("performance")
    def fail_without_sound_numbers(self) -> None:
        """Fail where a number is missing or is none: ReFrame warns of it, and passes the check."""
        sound = {Verdict.PASS, Verdict.FAIL, Verdict.UNJUDGED}
        bad = [f"{e.verdict} {e.name}: {e.reason}" for e in self.judged if e.verdict not in sound]
        if not self.is_dry_run() and self.job.exitcode is None:  # ReFrame's backend squeue
            end = read_end(Path(self.stagedir))
            if end is None or end.status:
                bad = [f"the job ended with status {end.status}" if end else "the job was cut off"]
        if bad:
            raise PerformanceError("; ".join(bad))


def _as_reference(stated: tuple[Any, ...], unit: str) -> Reference | None:
    """Return ReFrame's (value, lower, upper, unit) as a reference; an expected failure is none."""
    value, low, high = stated[:3] if len(stated) > 2 else (0, None, None)
    if not value > 0 or (low is None and high is None):
        return None
    return Reference(
        value=float(value),
        lower=None if low is None else value * (1 + low),
        upper=None if high is None else value * (1 + high),
        unit=(stated[3] if len(stated) > 3 else "") or unit,
        tolerance=max(abs(low or 0.0), abs(high or 0.0)),
        origin="the check's own reference",
        source=Source.SITE,
    )
