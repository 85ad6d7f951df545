"""What differs between two machines, or between one machine then and now.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabricproof.nodes.inventory.facts import IDENTITIES, Machine, Value
from fabricproof.nodes.inventory.words import meaning_of, name_of, shown

Facts = Mapping[str, Value]

#: facts by which an interface that is called otherwise on another node is found again
_SAME_CARD = ("kind", "driver", "ids", "model")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One fact that is not the same.

    Attributes:
        part: ``interface ib0``, ``port mlx5_0:1``, ``node`` ...
        fact: its name in the record; empty where a whole part is on one side only.
        first: its value, None where that side does not say.
        sentence: the same for people, with what it may mean.
    """

    part: str
    fact: str
    first: Value | None
    second: Value | None
    sentence: str


def compare(
    first: Machine, second: Machine, sides: tuple[str, str] | None = None
) -> tuple[Difference, ...]:
    """Return what differs, parts in order.

    What tells one piece from another of its kind (serials, addresses) counts only where both are
    one node: there it is a part that was replaced.

    ``sides`` are what the two are called in the sentences; by default the nodes' names.
    """
    sides = sides or (first.node, second.node)
    same_node = first.node == second.node
    pairs = _pairs(first.facts, second.facts)
    return tuple(
        difference
        for here, there in pairs
        for difference in _part(
            here,
            there,
            first.facts.get(here or ""),
            second.facts.get(there or ""),
            sides,
            same_node=same_node,
        )
    )


def _pairs(
    first: Mapping[str, Facts], second: Mapping[str, Facts]
) -> Iterator[tuple[str | None, str | None]]:
    """Yield what belongs together: by name, then interfaces by what card they are."""
    only_second = [part for part in second if part not in first]
    for part in first:
        if part in second:
            yield part, part
            continue
        again = next(
            (each for each in only_second if is_like(part, first[part], each, second[each])), None
        )
        if again is not None:
            only_second.remove(again)
        yield part, again
    for part in only_second:
        yield None, part


def is_like(part: str, facts: Facts, other: str, others: Facts) -> bool:
    """Tell whether two parts of unlike names may be the same card: enp97s0 and enp182s0."""
    if part.partition(" ")[0] != other.partition(" ")[0] or not facts.get("driver"):
        return False
    return all(facts.get(fact) == others.get(fact) for fact in _SAME_CARD)


def _part(
    here: str | None,
    there: str | None,
    first: Facts | None,
    second: Facts | None,
    sides: tuple[str, str],
    *,
    same_node: bool,
) -> Iterator[Difference]:
    part = here or there or ""
    if first is None or second is None:
        side = sides[0] if first is not None else sides[1]
        other = sides[1] if first is not None else sides[0]
        sentence = f"{part} is on {side} only: missing, not seen, or called otherwise on {other}"
        yield Difference(part=part, fact="", first=here, second=there, sentence=sentence)
        return
    if here and there and here != there:
        sentence = f"{part} of {sides[0]} is called {there.split()[-1]} on {sides[1]}"
        yield Difference(part=part, fact="name", first=here, second=there, sentence=sentence)
    for fact in {**first, **second}:
        if first.get(fact) == second.get(fact) or (fact in IDENTITIES and not same_node):
            continue
        yield _difference(part, fact, first.get(fact), second.get(fact), sides)


def _unlike_items(first: Value | None, second: Value | None) -> tuple[Value | None, Value | None]:
    """Return of two lists only what the other has not: the rest is not worth reading."""
    if first is None or second is None:
        return first, second
    here, there = (str(value).split(", ") for value in (first, second))
    return (
        ", ".join(each for each in here if each not in there) or "no other",
        ", ".join(each for each in there if each not in here) or "no other",
    )


def _difference(
    part: str, fact: str, first: Value | None, second: Value | None, sides: tuple[str, str]
) -> Difference:
    values = _unlike_items(first, second) if fact == "offloads" else (first, second)
    said = [
        f"{'not known' if value is None else shown(fact, value)} on {side}"
        for value, side in zip(values, sides, strict=True)
    ]
    meaning = ""
    if first is not None and second is not None:
        meaning = meaning_of(fact, first, second, sides)
    sentence = f"{part}: {name_of(fact)} {said[0]}, {said[1]}" + f": {meaning}" * bool(meaning)
    return Difference(part=part, fact=fact, first=first, second=second, sentence=sentence)
