"""Which program of a stack measures: the C program before its port, and where it lies."""

from __future__ import annotations

from fabricproof.core.errors import UnavailableError
from fabricproof.job.commands import find_tool
from fabricproof.job.leg import PEER_SUITES
from fabricproof.stacks.stack import ResolvedStack, printed_name
from fabricproof.stacks.wheels import Located


def find_program(stack: ResolvedStack, suite: str, program: str) -> Located:
    """Return how ``program`` is called: a tool of the machine, else as the stack has it."""
    if suite in PEER_SUITES:
        return find_tool(suite, program)
    return stack.find(suite, program)


def choose_suite(stack: ResolvedStack, suite: str, program: str) -> tuple[str | None, str]:
    """Return the suite of ``stack`` that has ``program``, the C programs before the ports.

    Returns:
        The suite and an empty reason, or None and why there is none.

    Raises:
        UnavailableError: the stack should have the program and is not installed: that is a check
            that was due and is MISSING, none to skip.
    """
    left_out = stack.spec.left_out.get(printed_name(program))
    if left_out is not None:
        return None, f"left out by the site: {left_out}"
    reasons = []
    for candidate in (suite, f"{suite}-mpi4py") if suite == "osu" else (suite,):
        found = find_program(stack, candidate, program)
        if found.argv is not None:
            return candidate, ""
        if found.lost:
            raise UnavailableError(found.reason)
        reasons.append(found.reason)
    # Only the stacks of wheels have ports: elsewhere the C programs are what is not there.
    return None, reasons[-1 if stack.kind == "provisioned" else 0]
