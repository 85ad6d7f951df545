"""What speaks against a number that was judged: objections, and the one table that applies them.

The judge of a number knows the number, its limits and its reference.  Who saw something else (the
counters of the path, the device, the library, the neighbours, the end of the job) objects.  What an
objection makes of each verdict stands in :data:`TABLE`, and nowhere else.  Objections are applied
in the order of that table, so that it does not matter who came last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from fabricproof.core.measure import Quantity, Verdict
from fabricproof.traffic import PathProof, PathState

_Judged = TypeVar("_Judged", bound=Quantity)


class ObjectionKind(StrEnum):
    """What is objected; what each makes of a verdict is its row of :data:`TABLE`."""

    NOT_IN_IMAGE = "not_in_image"
    OTHER_DEVICE = "other_device"
    OTHER_LIBRARY = "other_library"
    UNLIKE_LIBRARIES = "unlike_libraries"
    OTHER_PATH = "other_path"
    OTHER_HOP = "other_hop"
    OTHER_OWNER = "other_owner"
    CONTRADICTION = "contradiction"
    SAME_DIRECTION = "same_direction"
    ERRORS_ROSE = "errors_rose"
    WIRE_EVENT = "wire_event"
    JOB_CUT_OFF = "job_cut_off"
    NEVER_STARTED = "never_started"
    PATH_UNKNOWN = "path_unknown"
    MORE_DEVICES = "more_devices"
    IMAGE_UNSEEN = "image_unseen"
    DEVICE_UNSEEN = "device_unseen"
    LIBRARY_UNSEEN = "library_unseen"
    RANK_LOST = "rank_lost"
    DIRECTION_UNKNOWN = "direction_unknown"
    STRANGE_NODES = "strange_nodes"
    REFERENCES_UNREADABLE = "references_unreadable"
    PAIR_UNSOUND = "pair_unsound"
    DISTURBED = "disturbed"
    OTHER_JOB = "other_job"
    RED_IN_TURN = "red_in_turn"
    OTHER_DIRECTION = "other_direction"
    LINK_NOT_AS_DECLARED = "link_not_as_declared"


@dataclass(frozen=True, kw_only=True)
class Consequence:
    """What one kind of objection does.

    Attributes:
        becomes: verdict -> verdict.  A verdict that is absent stays, and keeps its reason.
        adds: the reason of the judgement stays, behind that of the objection.
        means: when it is raised, for a person.
    """

    becomes: Mapping[Verdict, Verdict]
    means: str
    adds: bool = False


_P, _F, _I, _U, _M = (
    *(Verdict.PASS, Verdict.FAIL, Verdict.INVALID),
    *(Verdict.UNJUDGED, Verdict.MISSING),
)
#: the number is not of what was to be measured
_SPOILS = MappingProxyType(dict.fromkeys((_P, _F, _U, _I), _I))
#: the number may be of something else: it is no PASS
_UNPROVEN = MappingProxyType({_P: _U})
#: the number says the same, and why it may be so is said first
_EXPLAINS = MappingProxyType({each: each for each in (_F, _I, _U, _M)})

#: kind -> what it makes of each verdict.  Kinds are applied in this order; of two that spoil a
#: number, the first gives the reason.
TABLE: Mapping[ObjectionKind, Consequence] = MappingProxyType(
    {
        ObjectionKind.NOT_IN_IMAGE: Consequence(
            becomes=_SPOILS, means="a rank ran with the root of the node, not in the container"
        ),
        ObjectionKind.OTHER_DEVICE: Consequence(
            becomes=_SPOILS, means="a rail is not of the declared link, Soft-RoCE for an HCA"
        ),
        ObjectionKind.OTHER_LIBRARY: Consequence(
            becomes=_SPOILS, means="a rank loaded an MPI library of another stack"
        ),
        ObjectionKind.UNLIKE_LIBRARIES: Consequence(
            becomes=_SPOILS, means="the nodes loaded unlike files of one library"
        ),
        ObjectionKind.OTHER_PATH: Consequence(
            becomes=_SPOILS, means="the counters show that the bytes took another path"
        ),
        ObjectionKind.OTHER_HOP: Consequence(
            becomes=_SPOILS, means="the packets went through another node"
        ),
        ObjectionKind.OTHER_OWNER: Consequence(
            becomes=_SPOILS, means="another node answers for an address of the path"
        ),
        ObjectionKind.CONTRADICTION: Consequence(
            becomes=_SPOILS, means="the columns of a row contradict each other"
        ),
        ObjectionKind.SAME_DIRECTION: Consequence(
            becomes={_P: _I, _F: _I}, means="the leg the other way sent the same way"
        ),
        ObjectionKind.ERRORS_ROSE: Consequence(
            becomes={_P: _F}, means="counters of errors on the path rose while it ran"
        ),
        ObjectionKind.WIRE_EVENT: Consequence(
            becomes={_P: _F}, means="the link went down while it ran; a later look clears nothing"
        ),
        ObjectionKind.JOB_CUT_OFF: Consequence(
            becomes={_P: _M}, means="the job did not come to its end, and no leg tells of it"
        ),
        ObjectionKind.NEVER_STARTED: Consequence(
            becomes={_M: _M}, means="the job ended before the leg was started"
        ),
        ObjectionKind.PATH_UNKNOWN: Consequence(
            becomes=_UNPROVEN, means="the counters do not show which path the bytes took"
        ),
        ObjectionKind.MORE_DEVICES: Consequence(
            becomes=_UNPROVEN,
            adds=True,
            means="the output names more devices than rails are declared",
        ),
        ObjectionKind.IMAGE_UNSEEN: Consequence(
            becomes=_UNPROVEN, means="it is unknown whether a rank ran in the container"
        ),
        ObjectionKind.DEVICE_UNSEEN: Consequence(
            becomes=_UNPROVEN, means="a rank counted a rail and did not say what device it is"
        ),
        ObjectionKind.LIBRARY_UNSEEN: Consequence(
            becomes=_UNPROVEN, means="it is unknown which MPI library a rank loaded"
        ),
        ObjectionKind.RANK_LOST: Consequence(
            becomes=_UNPROVEN, means="a rank was lost before its MPI library was seen"
        ),
        ObjectionKind.DIRECTION_UNKNOWN: Consequence(
            becomes=_UNPROVEN, means="it is unknown which way the leg sent"
        ),
        ObjectionKind.STRANGE_NODES: Consequence(
            becomes=_UNPROVEN, means="ranks ran on nodes that the job did not have"
        ),
        ObjectionKind.REFERENCES_UNREADABLE: Consequence(
            becomes=_UNPROVEN, means="the baseline that was to judge could not be read"
        ),
        ObjectionKind.PAIR_UNSOUND: Consequence(
            becomes={_P: _U, _F: _U},
            means="the leg of a pair that gives the reference is no measure itself",
        ),
        ObjectionKind.DISTURBED: Consequence(
            becomes={_F: _U},
            adds=True,
            means="what others took of the wire or of the CPUs explains the shortfall",
        ),
        ObjectionKind.OTHER_JOB: Consequence(
            becomes={_F: _U, _U: _U, _M: _M},
            adds=True,
            means="another job was on the nodes while it ran",
        ),
        ObjectionKind.RED_IN_TURN: Consequence(
            becomes={_U: _F, _F: _F},
            means="measured again beside a good pair in turn, and red: no excuse holds",
        ),
        ObjectionKind.OTHER_DIRECTION: Consequence(
            becomes=_EXPLAINS, adds=True, means="what the same rail does the other way"
        ),
        ObjectionKind.LINK_NOT_AS_DECLARED: Consequence(
            becomes=_EXPLAINS, adds=True, means="preflight saw a link that is not as declared"
        ),
    }
)
_ORDER = {kind: index for index, kind in enumerate(TABLE)}

#: kinds that say that a number is not known to be of the leg's own device or library
FOREIGN = frozenset(
    {
        *(ObjectionKind.NOT_IN_IMAGE, ObjectionKind.OTHER_DEVICE, ObjectionKind.OTHER_LIBRARY),
        *(ObjectionKind.IMAGE_UNSEEN, ObjectionKind.DEVICE_UNSEEN, ObjectionKind.LIBRARY_UNSEEN),
        ObjectionKind.UNLIKE_LIBRARIES,
    }
)


@dataclass(frozen=True, kw_only=True)
class Objection:
    """One reason why a number does not stand as the judge left it.

    Attributes:
        reason: in one sentence.
        quantities: names of the quantities that it is about; None for all.
        disturbance: of DISTURBED and OTHER_JOB, who disturbed
            (:class:`fabricproof.traffic.disturbance.DisturbanceKind`).
    """

    kind: ObjectionKind
    reason: str
    quantities: frozenset[str] | None = None
    disturbance: str | None = None

    def concerns(self, judgement: Quantity) -> bool:
        """Return whether it is about this quantity, and changes what is said of it."""
        named = self.quantities is None or judgement.name in self.quantities
        return named and judgement.verdict in TABLE[self.kind].becomes


def apply(judgements: Iterable[_Judged], objections: Iterable[Objection]) -> tuple[_Judged, ...]:
    """Return the judgements after all objections, whatever order these come in."""
    ordered = sorted(objections, key=lambda each: _ORDER[each.kind])
    return tuple(_after(each, ordered) for each in judgements)


def _after(judgement: _Judged, ordered: Iterable[Objection]) -> _Judged:
    spoiled = False
    for each in ordered:
        if not each.concerns(judgement):
            continue
        row = TABLE[each.kind]
        verdict = row.becomes[judgement.verdict]
        if verdict is Verdict.INVALID and not row.adds:
            if spoiled:
                continue
            spoiled = True
        is_excused = (judgement.verdict, verdict) == (Verdict.FAIL, Verdict.UNJUDGED)
        excuse = each.disturbance if is_excused else judgement.disturbance
        judgement = replace(
            judgement,
            verdict=verdict,
            value=None if verdict is Verdict.MISSING else judgement.value,
            reason=f"{each.reason}; {judgement.reason}" if row.adds else each.reason,
            disturbance=excuse if verdict is Verdict.UNJUDGED else None,
            objections=(*judgement.objections, each.kind),
        )
    return judgement


_OF_PATH = {
    PathState.WRONG: ObjectionKind.OTHER_PATH,
    PathState.UNKNOWN: ObjectionKind.PATH_UNKNOWN,
    PathState.DISTURBED: ObjectionKind.ERRORS_ROSE,
}


def of_path(proof: PathProof | None, *, required: bool = False) -> tuple[Objection, ...]:
    """Return what a proof of the path speaks against.

    Args:
        proof: None if no counters were read.
        required: without counters nothing is green.
    """
    if proof is None:
        reason = "the path is not shown: no counters were read around this run"
        unknown = Objection(kind=ObjectionKind.PATH_UNKNOWN, reason=reason)
        return (unknown,) if required else ()
    kind = _OF_PATH.get(proof.state)
    words = "fast, but errors rose while it ran: " if kind is ObjectionKind.ERRORS_ROSE else ""
    return () if kind is None else (Objection(kind=kind, reason=f"{words}{proof.reason}"),)
