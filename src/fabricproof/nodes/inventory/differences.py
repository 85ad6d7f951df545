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
        fact: its name in the record; empty if a whole part is on one side only.
        first: its value, None if that side does not say.
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

    What tells one piece from another of its kind (serials, addresses) counts only if both are one
    node: there it is a part that was replaced.

    ``sides`` are what the two are called in the sentences; by default the nodes' names.
    """
    sides = sides or (first.node, second.node)
    passed_over = frozenset() if first.node == second.node else IDENTITIES
    found: list[Difference] = []
    for here, there in _pairs(first.facts, second.facts):
        part = here or there
        if not here or not there:
            side, other = sides if here else sides[::-1]
            text = f"{part} is on {side} only: missing, not seen, or called otherwise on {other}"
            found.append(_difference(part, "", here or None, there or None, text))
            continue
        if here != there:
            text = f"{part} of {sides[0]} is called {there.split()[-1]} on {sides[1]}"
            found.append(_difference(part, "name", here, there, text))
        one, other_facts = first.facts[here], second.facts[there]
        for fact in {**one, **other_facts}:
            values = one.get(fact), other_facts.get(fact)
            if values[0] != values[1] and fact not in passed_over:
                text = f"{part}: {_sentence(fact, *values, sides)}"
                found.append(_difference(part, fact, *values, text))
    return tuple(found)


def _difference(
    part: str, fact: str, first: Value | None, second: Value | None, text: str
) -> Difference:
    return Difference(part=part, fact=fact, first=first, second=second, sentence=text)


def _pairs(first: Mapping[str, Facts], second: Mapping[str, Facts]) -> Iterator[tuple[str, str]]:
    """Yield what belongs together: by name, then interfaces by what card they are."""
    only_second = [part for part in second if part not in first]
    for part in first:
        like = (each for each in only_second if is_like(part, first[part], each, second[each]))
        again = part if part in second else next(like, "")
        if again in only_second:
            only_second.remove(again)
        yield part, again
    for part in only_second:
        yield "", part


def is_like(part: str, facts: Facts, other: str, others: Facts) -> bool:
    """Tell whether two parts of unlike names may be the same card: enp97s0 and enp182s0."""
    if part.partition(" ")[0] != other.partition(" ")[0] or not facts.get("driver"):
        return False
    return all(facts.get(fact) == others.get(fact) for fact in _SAME_CARD)


def _sentence(fact: str, first: Value | None, second: Value | None, sides: tuple[str, str]) -> str:
    meaning, values = "", [first, second]
    if first is not None and second is not None:
        meaning = meaning_of(fact, first, second, sides)
        if fact == "offloads":  # of two lists only what the other has not is worth reading
            lists = [str(value).split(", ") for value in (first, second)]
            unlike = [
                [each for each in mine if each not in other] for mine, other in (lists, lists[::-1])
            ]
            values = [", ".join(each) or "no other" for each in unlike]
    said = [
        f"{'not known' if value is None else shown(fact, value)} on {side}"
        for value, side in zip(values, sides, strict=True)
    ]
    return f"{name_of(fact)} {said[0]}, {said[1]}" + (f": {meaning}" if meaning else "")
