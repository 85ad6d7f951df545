"""What the doctor says: findings, the exit status that follows, and both as text and records."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from fabricproof.core.errors import ExitStatus
from fabricproof.core.findings import Finding, FindingKind
from fabricproof.core.measure import BADNESS, Verdict, worst
from fabricproof.core.plain import plain
from fabricproof.core.units import counted
from fabricproof.nodes.doctor.facts import Facts


def diagnosis(
    verdict: Verdict | None,
    fact: str,
    text: str,
    seen_by: str = "",
    means: str = "",
    mend: str = "",
) -> Finding:
    """Return one thing that was looked at.

    Args:
        verdict: FAIL: it will not run, or runs over something else.  MISSING: what is to be
            examined is not there.  UNJUDGED: it could not be seen; or it runs, and perhaps not as
            was meant, which ``means`` says.  None: worth knowing, and nothing is wrong.
        fact: ``MPI``, ``program``, ``PMI``, ``launcher``, ``path``, ``rail``, ``node``, ``world``.
        text: what was seen.
        seen_by: the command that showed it.
        means: what comes of it.
        mend: the line that mends it.
    """
    is_wrong = verdict in {Verdict.FAIL, Verdict.MISSING}
    assert not is_wrong or (means and mend), f"{text}: say what it means and mends"
    return Finding(
        kind=FindingKind.DOCTOR,
        verdict=verdict,
        fact=fact,
        text=text,
        seen_by=seen_by,
        means=means,
        next_step=mend,
    )


def wrong(fact: str, text: str, seen_by: str, means: str, mend: str) -> Finding:
    """Return what is a FAIL."""
    return diagnosis(Verdict.FAIL, fact, text, seen_by, means, mend)


def absent(fact: str, text: str, seen_by: str, means: str, mend: str) -> Finding:
    """Return what is MISSING."""
    return diagnosis(Verdict.MISSING, fact, text, seen_by, means, mend)


def fine(fact: str, text: str, seen_by: str = "") -> Finding:
    """Return what is as it should be."""
    return diagnosis(Verdict.PASS, fact, text, seen_by)


def unseen(fact: str, text: str, seen_by: str = "", means: str = "", mend: str = "") -> Finding:
    """Return what could not be seen, or is perhaps not as it was meant."""
    return diagnosis(Verdict.UNJUDGED, fact, text, seen_by, means, mend)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict; UNJUDGED if nothing was found at all."""
    return worst([each.verdict for each in findings if each.verdict])


def exit_status(findings: Sequence[Finding]) -> ExitStatus:
    """Return 0 unless something is FAIL or MISSING; 69 if anything is MISSING, else 78."""
    verdicts = {each.verdict for each in findings}
    if not findings or Verdict.MISSING in verdicts:
        return ExitStatus.UNAVAILABLE
    return ExitStatus.CONFIG if Verdict.FAIL in verdicts else ExitStatus.PASS


def heading(facts: Facts) -> str:
    """Return who was examined, where, in one line."""
    subject = facts.subject
    where = "node" if facts.node.is_node and subject.partition.uses_slurm else "machine"
    return (
        f"stack {subject.name} ({subject.family} {subject.version}, {subject.kind}) of site "
        f"{subject.site}, partition {subject.partition.name}, launcher {subject.launcher}; seen on "
        f"{where} {facts.node.host}"
    )


def summary(findings: Sequence[Finding], *, hidden: int = 0) -> str:
    """Return how many findings there are of each verdict, worst first; notes are last."""
    counts = Counter(each.verdict for each in findings)
    words = [f"{counts[verdict]} {verdict}" for verdict in BADNESS if counts[verdict]]
    words += [counted(counts[None], "note")] * bool(counts[None])
    left_out = f" ({hidden} of them not shown, --all shows them)" if hidden else ""
    status = int(exit_status(findings))
    return f"{', '.join(words) or 'nothing was examined'}{left_out}; status {status}"


def plain_lines(findings: Iterable[Finding], width: int = 100) -> list[str]:
    """Return the findings as lines of text, ``width`` characters wide at most where words allow."""
    lines = []
    for each in findings:
        rows = [(f"{each.verdict or 'note':<8} {each.fact:<9}", each.text)]
        for label, text in (
            ("seen by", each.seen_by),
            ("means", each.means),
            ("mend", each.next_step),
        ):
            # Where all is well, what saw it is noise.
            if text and not (label == "seen by" and each.verdict in {Verdict.PASS, None}):
                rows.append((f"{'':<18}  {label + ':':<8}", text))
        for begin, text in rows:
            wrapper = textwrap.TextWrapper(width, f"{begin} ", " " * (len(begin) + 1))
            wrapper.break_long_words = wrapper.break_on_hyphens = False
            lines += wrapper.wrap(text)
    return lines


def record(facts: Facts, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return everything for ``--json``."""
    subject = facts.subject
    return {
        "site": subject.site,
        "stack": subject.name,
        "family": subject.family,
        "version": subject.version,
        "kind": subject.kind,
        "partition": subject.partition.name,
        "launcher": subject.launcher,
        "host": facts.node.host,
        "on_node": facts.node.is_node,
        "verdict": verdict_of(findings).value,
        "status": int(exit_status(findings)),
        "findings": [each.record() for each in findings],
        "net_paths": [plain(each, "name") for each in subject.net_paths],
    }
