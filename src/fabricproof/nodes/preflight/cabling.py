"""Do the rails of every node hang on the switches where most nodes have them?  LLDP says where.

The rule is that of ``subnet check`` (``nodes.topology.cabling``).  The nodes of a job are alike, so
that a rail in the wrong switch is a FAIL too; where few nodes say so it is a note.  Where the site
declares the switches of all rails, its word counts in place of the majority.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricproof.nodes.preflight.finding import PLAIN, Note, RailFinding, Sight, about, seen
from fabricproof.nodes.topology import Against, Hanging, astray, cabling_of


def cabling(sights: Sequence[Sight]) -> tuple[tuple[RailFinding, ...], tuple[Note, ...]]:
    """Return findings and notes on the switches that the nodes' rails hang on."""
    where = {
        (each.machine.node, each.wanted.rail): (each, str(each.facts["switch_id"]))
        for each in sights
        if each.facts is not None and each.facts.get("switch_id")
    }
    names = {switch: _name(sight, switch) for sight, switch in where.values()}
    hangings = [
        Hanging(node=node, rail=rail, switch=switch) for (node, rail), (_, switch) in where.items()
    ]
    declared = {each.wanted.rail: each.wanted.switches for each, _ in where.values()}
    if declared and all(declared.values()):
        # A switch that tells no name may be the declared one.
        plain = {
            switch: str(sight.facts["switch"])
            for sight, switch in where.values()
            if sight.facts is not None and sight.facts.get("switch")
        }
        stray = astray([each for each in hangings if each.switch in plain], declared, plain)
        return tuple(
            _red(
                where[each.hanging.node, each.hanging.rail][0],
                f"{each.hanging.rail} on {each.hanging.node} is in the wrong switch: it hangs on "
                f"{names[each.hanging.switch]}, which the site declares for "
                f"{' and '.join(each.rails) or 'no rail'} (LLDP)",
                "the site's rails",
            )
            for each in stray
        ), ()
    found = cabling_of(hangings)
    findings: list[RailFinding] = []
    notes: list[Note] = []
    for each in found.against:
        told = [
            (where[each.node, wrong.rail][0], sentence)
            for wrong, sentence in _sentences(each, names)
        ]
        if found.is_sure:
            findings += [_red(sight, sentence, "most nodes' rails") for sight, sentence in told]
        elif len(found.against) == 1:
            few = f"; {len(found.fitting)} nodes are cabled alike, too few to judge"
            notes += [
                Note(rail=sight.wanted.rail, node=each.node, sentence=sentence + few)
                for sight, sentence in told
            ]
    return tuple(findings), tuple(notes)


def _name(sight: Sight, switch: str) -> str:
    """Return what people call a switch; several may have the same name, none the same id."""
    assert sight.facts is not None
    name = sight.facts.get("switch")
    return f"{name} ({switch})" if name else switch


def _sentences(each: Against, names: dict[str, str]) -> Iterator[tuple[Hanging, str]]:
    for wrong in each.wrong:
        what = "crossed" if each.is_crossed else "in the wrong switch"
        others = " and ".join(each.others[wrong.switch])
        sentence = (
            f"{wrong.rail} on {each.node} is {what}: it hangs on {names[wrong.switch]}, where "
            f"other nodes have {others} (LLDP)"
        )
        yield wrong, sentence


def _red(sight: Sight, sentence: str, origin: str) -> RailFinding:
    judgement = seen(
        sight.name("cabling"),
        value=0.0,
        expected=1.0,
        unit=PLAIN,
        reason=sentence,
        origin=origin,
    )
    return about(sight, "cabling", judgement)
