"""What a proof of the road says, and from which shares on a road counts as taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

#: Share of the benchmark's own bytes that must be seen on the intended rails, in each direction.
#: Counters count whole frames, so a true road shows more than the payload, never less; 2 % is
#: left for a last frame still under way when the counter was read.
MIN_SHARE = 0.98

#: Above this multiple of the payload the rail carried somebody else's traffic as well.  Headers
#: cost 6 % at MTU 1500 (78 of 1538 bytes), small messages far more, which the slack below takes.
MAX_SHARE = 1.25

#: Bytes of slack on either side: start-up, handshakes, acknowledgements, small messages' headers.
SLACK_BYTES = 4 * 1024 * 1024

#: With several rails each must carry at least this share of what all rails carried; less is a
#: rail that took no part (ucx#9520: multi-rail that silently used one rail).
MIN_RAIL_SHARE = 0.10


class RoadState(StrEnum):
    """Whether the road is proven."""

    PROVEN = "proven"
    WRONG = "wrong"
    """The traffic went elsewhere: the number is INVALID."""
    UNKNOWN = "unknown"
    """Evidence is missing: nothing is green."""
    DISTURBED = "disturbed"
    """The road is right, but errors rose while the traffic ran."""


@dataclass(frozen=True, kw_only=True)
class RoadProof:
    """The finding about one run's road, in words for a person, with bytes per interface."""

    state: RoadState
    reason: str
    findings: tuple[str, ...] = ()
    moved_bytes: Mapping[str, int] | None = None


def proof(state: RoadState, reason: str) -> RoadProof:
    """Return a finding that has nothing beside its reason."""
    return RoadProof(state=state, reason=reason)
