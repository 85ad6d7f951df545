"""Whether a baseline still holds for a node: what the node was then against what it is now.  Pure.

What somebody changes (a card, firmware, a driver, the kernel, an MTU, tuning) makes other numbers
right: the baseline has expired.  What a link comes to by itself (its state, rate, width, a shaper
that was left on it) does not: a link that trained down is what a baseline is there to catch, and
must not be excused by it.  Addresses that a subnet manager or DHCP hands out say nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabricproof.verdict.baseline.model import Facts, Value

#: what a link or a slot came to: the fault itself, never an excuse for it
SYMPTOMS = frozenset(
    {
        *("state", "phys_state", "rate_gbit_s", "speed_mbit_s", "width"),
        *("lanes", "lane_speed", "link", "pcie", "fec"),
        *("shaped_to_mbit_s", "shaper_queue_bytes"),
    }
)

#: handed out anew without anything being another
HANDED_OUT = frozenset({"addresses", "lid", "sm_lid"})

#: shown for a fact that is not there
UNKNOWN = "not known"


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A fact of a node that is not what it was.

    Attributes:
        part: ``interface rail0``, ``node``.
        fact: ``firmware``; empty where the whole part came or went.
        then: its value in the baseline; None where it was not known.
        now: its value today; None where it is not known.
    """

    part: str
    fact: str
    then: Value | None
    now: Value | None

    @property
    def words(self) -> str:
        """``firmware of interface ib0 28.39 -> 28.41``."""
        if not self.fact:
            return f"{self.part} is {'new' if self.then is None else 'gone'}"
        then, now = (UNKNOWN if each is None else each for each in (self.then, self.now))
        where = "" if self.part in {"node", "tuning"} else f" of {self.part}"
        return f"{self.fact}{where} {then} -> {now}"


def that_matter(facts: Facts) -> dict[str, dict[str, Value]]:
    """Return the facts that a baseline holds for, parts and names sorted."""
    return {
        part: {
            name: value
            for name, value in sorted(facts[part].items())
            if name not in SYMPTOMS | HANDED_OUT
        }
        for part in sorted(facts)
    }


def changes(then: Facts, now: Facts) -> tuple[Changed, ...]:
    """Return what is not what it was, of the facts that matter.

    Args:
        then: what the node was in the baseline.
        now: what it is.
    """
    here, there = that_matter(then), that_matter(now)
    found = []
    for part in sorted({*here, *there}):
        if part not in here or part not in there:
            gone = part in here
            found.append(
                Changed(part=part, fact="", then=part if gone else None, now=None if gone else part)
            )
            continue
        found += [
            Changed(part=part, fact=fact, then=here[part].get(fact), now=there[part].get(fact))
            for fact in sorted({*here[part], *there[part]})
            if here[part].get(fact) != there[part].get(fact)
        ]
    return tuple(found)


def why_not(node: str, then: Facts | None, now: Facts | None, *, same_digest: bool = False) -> str:
    """Return why a baseline does not hold for ``node``; empty where it does.

    Args:
        node: its name.
        then: what it was in the baseline; None where the baseline does not know the node.
        now: what it is; None where nobody saw it.
        same_digest: it is one of the inventories that the baseline was learnt with.
    """
    if then is None:
        return f"{node} was not in it"
    if now is None:
        return f"nobody saw what {node} is made of"
    if same_digest:
        return ""
    found = changes(then, now)
    if not found:
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{node}: {', '.join(each.words for each in found[:3])}{more}"


def told(reasons: Mapping[str, str]) -> str:
    """Return the reasons of several nodes as one clause, those that hold left out."""
    return "; ".join(reason for _, reason in sorted(reasons.items()) if reason)
