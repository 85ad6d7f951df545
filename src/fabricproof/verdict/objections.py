"""What speaks against a number that was judged: objections, and the one table that applies them.

The judge of a number knows the number, its limits and its reference.  Who saw something else (the
counters of the path, the device, the library, the neighbours, the end of the job) objects.  What an
objection makes of each verdict is a row of :class:`ObjectionKind`, and nowhere else.  They are
applied in the order of its rows, so that it does not matter who came last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self, TypeVar

from fabricproof.core.measure import Quantity, Verdict
from fabricproof.traffic import PathProof, PathState

_Judged = TypeVar("_Judged", bound=Quantity)

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


class ObjectionKind(StrEnum):
    """What is objected, in the order in which objections are applied; one row each.

    Of two that spoil a number the first gives the reason.

    Attributes:
        becomes: verdict -> verdict.  A verdict that is absent stays, and keeps its reason.
        means: when it is raised, for a person.
        adds: the reason of the judgement stays, behind that of the objection.
    """

    becomes: Mapping[Verdict, Verdict]
    means: str
    adds: bool

    def __new__(
        cls, value: str, becomes: Mapping[Verdict, Verdict], means: str, adds: bool = False
    ) -> Self:
        """Return the kind of this name with its row."""
        kind = str.__new__(cls, value)
        kind._value_, kind.becomes, kind.means, kind.adds = value, becomes, means, adds
        return kind

    # fmt: off
    NOT_IN_IMAGE = ("not_in_image", _SPOILS,
        "a rank ran with the root of the node, not in the container")
    OTHER_DEVICE = ("other_device", _SPOILS,
        "a rail is not of the declared link, Soft-RoCE for an HCA")
    OTHER_LIBRARY = "other_library", _SPOILS, "a rank loaded an MPI library of another stack"
    UNLIKE_LIBRARIES = "unlike_libraries", _SPOILS, "the nodes loaded unlike files of one library"
    OTHER_PATH = "other_path", _SPOILS, "the counters show that the bytes took another path"
    OTHER_HOP = "other_hop", _SPOILS, "the packets went through another node"
    OTHER_OWNER = "other_owner", _SPOILS, "another node answers for an address of the path"
    SAME_DIRECTION = "same_direction", {_P: _I, _F: _I}, "the leg the other way sent the same way"
    ERRORS_ROSE = "errors_rose", {_P: _F}, "counters of errors on the path rose while it ran"
    WIRE_EVENT = ("wire_event", {_P: _F},
        "the link went down while it ran; a later look clears nothing")
    JOB_CUT_OFF = "job_cut_off", {_P: _M}, "the job did not come to its end, and no leg tells of it"
    NEVER_STARTED = "never_started", {_M: _M}, "the job ended before the leg was started"
    PATH_UNKNOWN = "path_unknown", _UNPROVEN, "the counters do not show which path the bytes took"
    MORE_DEVICES = ("more_devices", _UNPROVEN,
        "the output names more devices than rails are declared", True)
    IMAGE_UNSEEN = "image_unseen", _UNPROVEN, "it is unknown whether a rank ran in the container"
    DEVICE_UNSEEN = ("device_unseen", _UNPROVEN,
        "a rank counted a rail and did not say what device it is")
    LIBRARY_UNSEEN = "library_unseen", _UNPROVEN, "it is unknown which MPI library a rank loaded"
    RANK_LOST = "rank_lost", _UNPROVEN, "a rank was lost before its MPI library was seen"
    DIRECTION_UNKNOWN = "direction_unknown", _UNPROVEN, "it is unknown which way the leg sent"
    STRANGE_NODES = "strange_nodes", _UNPROVEN, "ranks ran on nodes that the job did not have"
    REFERENCES_UNREADABLE = ("references_unreadable", _UNPROVEN,
        "the baseline that was to judge could not be read")
    PAIR_UNSOUND = ("pair_unsound", {_P: _U, _F: _U},
        "the leg of a pair that gives the reference is no measure itself")
    DISTURBED = ("disturbed", {_F: _U},
        "what others took of the wire or of the CPUs explains the shortfall", True)
    OTHER_JOB = ("other_job", {_F: _U, _U: _U, _M: _M},
        "another job was on the nodes while it ran", True)
    RED_IN_TURN = ("red_in_turn", {_U: _F},
        "measured again beside a good pair in turn, and red: no excuse holds")
    SLOW_LINK = "slow_link", {_U: _F}, "preflight saw the link too slow: no load excuses that"
    OTHER_DIRECTION = "other_direction", _EXPLAINS, "what the same rail does the other way", True
    LINK_NOT_AS_DECLARED = ("link_not_as_declared", _EXPLAINS,
        "preflight saw a link that is not as declared", True)
    # fmt: on


_ORDER = {kind: index for index, kind in enumerate(ObjectionKind)}

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
        return named and judgement.verdict in self.kind.becomes


def apply(judgements: Iterable[_Judged], objections: Iterable[Objection]) -> tuple[_Judged, ...]:
    """Return the judgements after all objections, whatever order these come in."""
    ordered = sorted(objections, key=lambda each: _ORDER[each.kind])
    return tuple(_after(each, ordered) for each in judgements)


def _after(judgement: _Judged, ordered: Iterable[Objection]) -> _Judged:
    spoiled = False
    for each in ordered:
        if not each.concerns(judgement):
            continue
        verdict = each.kind.becomes[judgement.verdict]
        if verdict is Verdict.INVALID and not each.kind.adds:
            if spoiled:
                continue
            spoiled = True
        is_excused = (judgement.verdict, verdict) == (Verdict.FAIL, Verdict.UNJUDGED)
        excuse = each.disturbance if is_excused else judgement.disturbance
        judgement = replace(
            judgement,
            verdict=verdict,
            value=None if verdict is Verdict.MISSING else judgement.value,
            reason=f"{each.reason}; {judgement.reason}" if each.kind.adds else each.reason,
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
