"""Hold what the ranks saw against what the leg declares: image, device, MPI library, path.

A Soft-RoCE device speaks verbs like an HCA, and its rate says nothing: a number of it judged as EDR
would be a lie.  If nobody told an MPI its path, all that is judged is which interfaces it took.

Whether packets went through a third node, the counters of a leg's own nodes cannot tell.  Three
facts can: whom a node takes for its neighbours (``/proc/net/arp``), the peer's own hardware
addresses, and the time to live of a packet that came from the peer, of which each node that
forwards takes one off (RFC 1812, 5.3.1).  If a node does not take the peer for its neighbour the
network routes, and nothing is said.  InfiniBand's and Slingshot's routes and IPv6 are not seen.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from pathlib import Path

from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key
from fabricproof.job.evidence.leg_folder import RankRecord, gather, layer_of
from fabricproof.job.leg import DEFAULT_PATH, Leg
from fabricproof.physics import SOFT_ROCE_NAME, Link, why_not_the_device, why_not_the_layer
from fabricproof.stacks.container import told_lacks
from fabricproof.traffic import (
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    PathProof,
    PathState,
    doubt_of_counters,
    join_by_node,
    megabytes,
)
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Judgement, Report, at_least

#: what systems begin with: Linux and BSD, Windows, routers (RFC 1700's 64 and what became of it)
_FIRST_TTLS = (64, 128, 255)
#: no path within a cluster is as long: a smaller number began elsewhere
_MOST_HOPS = 30

#: of the flags in ``/proc/net/arp``: complete, and stated by a person (Linux if_arp.h: ATF_COM,
#: ATF_PERM)
_COMPLETE, _STATED = 0x2, 0x4


def objections_of(leg: Leg, ranks: Sequence[RankRecord]) -> tuple[Objection, ...]:
    """Return what image, devices and MPI library of the ranks speak against the leg's numbers."""
    found = [*_image(leg, ranks)]
    if leg.fabric is not None and not leg.same_node:
        rails = dict.fromkeys(leg.node_rails or leg.rails)
        # A rail that no rank saw says nothing here: then its counters are missing too.
        found.append((ObjectionKind.OTHER_DEVICE, device_fault(leg.fabric.link, rails, ranks)))
        unseen = (
            f"{each.place} counted {rail} and does not say what it is"
            for each in ranks
            for rail in rails
            if rail in each.before and rail not in each.facts
        )
        found.append((ObjectionKind.DEVICE_UNSEEN, next(unseen, "")))
        found += _other_hops(ranks)
    found += [*_library(leg, ranks)]
    found.append((ObjectionKind.UNLIKE_LIBRARIES, unlike_libraries(ranks, leg.library)))
    return tuple(Objection(kind=kind, reason=reason) for kind, reason in found if reason)


def _image(leg: Leg, ranks: Sequence[RankRecord]) -> Iterator[tuple[ObjectionKind, str]]:
    """Yield which rank did not run in the leg's image, or which nobody saw there."""
    if leg.container is None:
        return
    image, unseen = leg.container.image, False
    for each in ranks:
        if each.inside is None or not each.inside.root or not each.root:
            if not unseen:
                yield ObjectionKind.IMAGE_UNSEEN, f"nobody saw {each.place} in {image}"
            unseen = True
        elif each.inside.root == each.root:
            reason = f"{each.place} ran with the root of the node itself, not in {image}"
            yield ObjectionKind.NOT_IN_IMAGE, reason
            return


def what_the_container_lacks(leg: Leg, ranks: Sequence[RankRecord]) -> str:
    """Return what the leg's containers do not have of its rails, with what mends it; or nothing."""
    if leg.container is None:
        return ""
    return told_lacks((each.node, each.inside) for each in ranks if each.inside is not None)


def rails_down(leg: Leg, ranks: Sequence[RankRecord]) -> str:
    """Return which of the leg's rails were down when its ranks began; empty if none was.

    An MPI that finds no device says so somewhere above its last words, and of one node alone.
    """
    down: dict[str, None] = {}
    order = list(dict.fromkeys(each.node for each in sorted(ranks, key=lambda each: each.rank)))
    for record in ranks:
        # In a leg between unlike rails each node has its own.
        own = leg.node_rails[order.index(record.node) :][:1] if leg.node_rails else leg.rails
        for rail in own:
            facts = record.facts.get(rail, {})
            # "1:_DOWN" of a port (rank.sh joins its words), "down" of an interface.
            state = facts.get("state" if ":" in rail else "operstate", "").rpartition("_")[2]
            if state.upper() not in {"", "ACTIVE", "UP", "UNKNOWN"}:
                down[f"{rail} on {record.node} was {state} when it began"] = None
    return ", ".join(down)


def _library(leg: Leg, ranks: Sequence[RankRecord]) -> Iterator[tuple[ObjectionKind, str]]:
    """Yield which rank loaded another MPI library than the leg's, or was not seen to load any."""
    if leg.library is None:
        return
    built = Path(leg.library).resolve()
    for each in ranks:
        seen = Path(each.library).resolve()
        # A program of the standard MPI ABI loads its stack's libmpi_abi, which lies beside it.
        of_abi = seen.name.startswith("libmpi_abi.so") and seen.parent == built.parent
        if each.library != "unknown" and seen != built and not of_abi:
            loads = "no MPI library" if each.library == "none" else f"MPI library {each.library}"
            reason = f"{each.place} loads {loads}, the stack was built with {leg.library}"
            yield ObjectionKind.OTHER_LIBRARY, reason
            return
    unseen = [each for each in ranks if each.library == "unknown"]
    if not unseen:
        return
    said = f"nobody saw which MPI library rank {', '.join(str(each.rank) for each in unseen)} loads"
    # A Python program says it when it ends: what never came back may do so at a second look.
    if all(each.status is None for each in unseen):
        yield ObjectionKind.RANK_LOST, f"{said}: it was lost"
        return
    why = "no ldd on the node" if leg.container is None else "none was in its memory in time"
    yield ObjectionKind.LIBRARY_UNSEEN, f"{said}: {why}"


def unlike_libraries(ranks: Iterable[RankRecord], built_with: str | None = None) -> str:
    """Return which node loaded another file of a library than the others; empty if none did.

    By the SHA-256 of what the loader finds there, of the MPI library and of UCX and libfabric.  Of
    two nodes the odd one is whose file is not the one that the judge has at ``built_with``.
    """
    files = by_key(
        (name, (each.node, digest)) for each in ranks for name, digest in each.digests.items()
    )
    for name, seen in files.items():
        of_digests = by_key((digest, node) for node, digest in dict.fromkeys(seen))
        if len(of_digests) < 2:
            continue
        here, mine = Path(built_with or "/"), ""
        if here.name == name and here.is_file():
            mine = hashlib.sha256(here.read_bytes()).hexdigest()
        groups = sorted(of_digests, key=lambda each: (each != mine, -len(of_digests[each])))
        said = "; ".join(
            f"{', '.join(dict.fromkeys(of_digests[each]))}: sha256 {each[:12]}" for each in groups
        )
        odd = ", ".join(node for each in groups[1:] for node in dict.fromkeys(of_digests[each]))
        known = mine in of_digests or len(of_digests[groups[0]]) > len(of_digests[groups[1]])
        who = f"{odd} loaded another" if known else "the nodes loaded unlike files of"
        return f"{who} {name} ({said})"
    return ""


def device_fault(link: Link, rails: Iterable[str], ranks: Iterable[RankRecord]) -> str:
    """Return why rails, as ranks saw them, are not of the declared link; empty if they are."""
    rails = tuple(dict.fromkeys(rails))
    for record in ranks:
        for rail in filter(record.facts.__contains__, rails):
            facts = record.facts[rail]
            parent, layer = facts.get("parent"), layer_of(rail, facts)
            where = f"{rail} on {record.node}"
            if why := why_not_the_device(link, where, parent):
                kind = SOFT_ROCE_NAME if parent is not None else "an adapter"
                return f"measured on {kind}, judged as {link.name}: {why}"
            if why := why_not_the_layer(link, where, layer):
                return f"measured over {layer}, judged as {link.name}: {why}"
    return ""


class _Node:
    """What the ranks of one node say of it."""

    def __init__(self, name: str, records: Sequence[RankRecord]) -> None:
        self.name = name
        self.addresses = {each for record in records for each in record.addresses}
        facts = [each for record in records for each in record.facts.values()]
        self.hardware = {each["address"].lower() for each in facts if each.get("address")}
        self.neighbours = {at: what for each in records for at, what in each.neighbours.items()}
        self.ttl = {at: int(what) for each in records for at, what in each.ttl.items()}

    def has(self, hardware: str) -> bool:
        """Tell whether it is its own; ``/proc/net/arp`` shows half of an IPoIB address."""
        return any(each.startswith(hardware) for each in self.hardware)

    def hops_from(self, peer: _Node) -> int | None:
        """Return how many nodes forwarded what came from a neighbour, at most; None if unknown."""
        numbers = [
            min(first for first in _FIRST_TTLS if first >= ttl) - ttl
            for at, ttl in self.ttl.items()
            if at.partition("/")[2] in peer.addresses and ttl <= max(_FIRST_TTLS)
        ]
        return max((each for each in numbers if each <= _MOST_HOPS), default=None)


def _other_hops(records: Sequence[RankRecord]) -> Iterator[tuple[ObjectionKind, str]]:
    """Yield what says that packets between nodes of a leg went through another node."""
    of_nodes = by_key((each.node, each) for each in records)
    nodes = [_Node(name, own) for name, own in of_nodes.items()]
    for sender, receiver in permutations(nodes, 2):
        hops = receiver.hops_from(sender)
        wrong = owner = ""
        for at, what in sender.neighbours.items():
            device, _, address = at.partition("/")
            flags, _, hardware = what.lower().partition("/")
            is_complete = int(flags, 16) & _COMPLETE
            if address not in receiver.addresses or not is_complete or receiver.has(hardware):
                continue
            owner = next((each.name for each in nodes if each.has(hardware)), "")
            whose = f"that is {owner}'s" if owner else "which no node of this leg has"
            wrong = f": for {address} on {device} {sender.name} takes {hardware}, {whose}"
            if hops is None and (owner or int(flags, 16) & _STATED):
                hops = 1
        if hops or (wrong and hops is None):
            kind = ObjectionKind.OTHER_HOP if hops else ObjectionKind.PATH_UNKNOWN
            verb, way = (
                "went" if hops else "may have gone",
                f"from {sender.name} to {receiver.name}",
            )
            yield kind, f"packets {way} {verb} through {owner or 'another node'}{wrong}"


def judge_free_path(leg: Leg, ranks: Sequence[RankRecord], sent_bytes: tuple[int, int]) -> Report:
    """Return PASS if the leg's rails carried all that the benchmark says it moved.

    ``sent_bytes`` is the payload that the first and the second half of the ranks sent.
    """
    evidence = gather(ranks)
    expected = Expectation(
        rails=leg.rails, sent_bytes=sent_bytes, num_ranks=leg.num_ranks, spread=False
    )
    due, moved = sum(sent_bytes), Counter[str]()
    for node in join_by_node(evidence, expected).nodes:
        for each in (*node.rails, *node.others):
            moved[each.interface] += max(0, each.moved("tx_bytes"))
    del moved["lo"]  # what stays on a node is not counted
    # Another interface may have carried a part, and is not the rails' own wire.
    addresses = {each.address for each in evidence.samples if each.interface in leg.rails} - {None}
    least = max(SLACK_BYTES, MIN_RAIL_SHARE * due)
    twins = [
        each.interface
        for each in evidence.samples
        if each.interface not in leg.rails and each.address not in addresses
        if moved[each.interface] >= least
    ]
    share = min(1.0, sum(moved[rail] for rail in leg.rails) / max(due, 1))
    doubt = doubt_of_counters(evidence, expected)
    seen = ", ".join(
        f"{name} {megabytes(count)}"
        for name, count in moved.most_common()
        if count >= max(1_000_000, due / 100) or name in leg.rails
    )
    verdict, value = Verdict.UNJUDGED, None
    if len(evidence.nodes) < 2 or not due:
        reason = "the ranks did not run on two nodes, or nothing was moved between them"
    elif sum(moved.values()) < MIN_SHARE * due:
        reason = f"no interface carried the {megabytes(due)} that the benchmark moved: {seen}"
    elif share >= MIN_SHARE and twins:
        reason = f"two paths fit, the declared rails and {twins[0]}: {seen}"
    elif share >= MIN_SHARE and doubt is not None:
        reason = doubt.reason
    elif share >= MIN_SHARE:
        verdict, value = Verdict.PASS, share
        reason = f"left alone it took the declared fabric: {seen} of {megabytes(due)}"
    else:
        verdict, value = Verdict.FAIL, share
        reason = (
            f"nobody told this MPI its path, and the declared rails carried {share:.0%} of "
            f"{megabytes(due)}: {seen}; users should set {leg.free_path}"
        )
    return _of_free_path(value, verdict, reason, evidence)


def _of_free_path(value: float | None, verdict: Verdict, reason: str, evidence: Evidence) -> Report:
    wanted = at_least(
        1.0, unit="x", tolerance=1 - MIN_SHARE, origin="all bytes on the declared rails"
    )
    judgement = Judgement(
        name=DEFAULT_PATH,
        value=value,
        unit="x",
        message_size=None,
        verdict=verdict,
        reason=reason,
        reference=None if value is None else wanted.value,
        lower=None if value is None else wanted.lower,
        origin=None if value is None else wanted.origin,
    )
    proof = PathProof(
        state=PathState.PROVEN if verdict is Verdict.PASS else PathState.UNKNOWN,
        reason=reason,
        moved_bytes={
            f"{each.node}:{each.interface}": each.moved("tx_bytes") for each in evidence.samples
        },
    )
    return Report(verdict=verdict, quantities=(judgement,), net_path=proof)
