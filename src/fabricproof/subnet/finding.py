"""What is said of a fabric: one finding for each thing that was expected or could not be seen.

A verdict on less than all must say so; notes stand beside.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fabricproof.core.measure import Verdict, worst
from fabricproof.subnet.model import SubnetLook


@dataclass(frozen=True, kw_only=True)
class FabricFinding:
    """One thing that was expected of a fabric, and what was seen.

    Attributes:
        quantity: ``link``, ``state``, ``lid``, ``trunks``, ``hosts``, ``manager``, ``counters``,
            ``cables``, ``cabling``, ``look``.
        where: the port, cable, host or switch; empty where it is the whole fabric.
        sentence: for a person, with what was expected and what it means.
        number: how many things a PASS stands for.
    """

    verdict: Verdict
    quantity: str
    where: str
    sentence: str
    number: int = 1


@dataclass(frozen=True, kw_only=True)
class SubnetResult:
    """All findings of one look, or of the comparison of two, and what is only worth knowing."""

    findings: tuple[FabricFinding, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; SKIPPED where nothing was judged."""
        if not self.findings:
            return Verdict.SKIPPED
        return worst([each.verdict for each in self.findings])


def fail(quantity: str, where: str, sentence: str) -> FabricFinding:
    """Return a FAIL."""
    return FabricFinding(verdict=Verdict.FAIL, quantity=quantity, where=where, sentence=sentence)


def unjudged(quantity: str, where: str, sentence: str) -> FabricFinding:
    """Return what nobody can tell."""
    return FabricFinding(
        verdict=Verdict.UNJUDGED, quantity=quantity, where=where, sentence=sentence
    )


def passed(quantity: str, number: int, sentence: str) -> FabricFinding:
    """Return a PASS that stands for ``number`` things."""
    return FabricFinding(
        verdict=Verdict.PASS, quantity=quantity, where="", sentence=sentence, number=number
    )


def counted_in_part(look: SubnetLook, which: str = "") -> Iterator[FabricFinding]:
    """Yield one finding where fewer nodes or ports were asked for counters than there are.

    Who asks for counters gets those of every port of every node; an adapter inside a switch (SHARP)
    need not have any.  Ports alone do not tell: those of switches that nothing is linked to are
    among them, and make up for adapters that nobody asked.
    """
    if look.counters is None:
        return
    linked, nodes = len(look.network.outer_links), len(look.network.nodes)
    if look.counted_ports < linked:
        sentence = (
            f"the counters of {look.counted_ports} ports were read{which}, and {linked} have a link"
        )
    elif look.counted_nodes is not None and look.counted_nodes != nodes:
        sentence = (
            f"the counters of {look.counted_nodes} nodes were read{which}, and ibnetdiscover "
            f"showed {nodes}"
        )
    else:
        return
    told = f"{sentence}: nobody knows what the others counted (ibqueryerrors asks all)"
    yield unjudged("counters", "", told)


def stateless(look: SubnetLook, *, is_declared: bool) -> Iterator[FabricFinding]:
    """Yield what nobody knows of the links where ``iblinkinfo`` was not asked.

    Args:
        look: what was seen.
        is_declared: a link is declared that every cable was held against.
    """
    if look.has_states:
        return
    if not is_declared:
        sentence = (
            "what both ends of the links support was not read (iblinkinfo), and no link is "
            "declared: width and speed were held against nothing (--link 'EDR 4x')"
        )
        yield unjudged("link", "", sentence)
    sentence = "whether the links are Active was not read: iblinkinfo -l > iblinkinfo.txt"
    yield unjudged("state", "", sentence)


def complaints(look: SubnetLook) -> Iterator[FabricFinding]:
    """Yield one finding where a tool complained: it may have left part of the fabric out."""
    if look.complaints:
        more = f" (and {len(look.complaints) - 1} more)" if len(look.complaints) > 1 else ""
        first = look.complaints[0]
        yield unjudged("look", "", f"part of the fabric may not have been seen: {first}{more}")


def asked_less(before: SubnetLook, after: SubnetLook) -> Iterator[FabricFinding]:
    """Yield what the second look did not ask and the first did: what became of it is not known."""
    for what in after.not_seen:
        if what not in before.not_seen:
            told = f"not looked at the second time, and the first time it was: {what}"
            yield unjudged("look", "", told)
