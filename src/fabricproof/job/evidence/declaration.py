"""Hold what the ranks saw against what the leg declares: device, MPI library, interfaces.

A Soft-RoCE device speaks verbs like an HCA, and its rate says nothing: a number of it judged as EDR
would be a lie, and so would an adapter's number that only Soft-RoCE's ceiling lets pass.  Where
nobody told an MPI its path, all that is judged is which interfaces it took.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key
from fabricproof.job.evidence.hops import other_hops
from fabricproof.job.evidence.leg_folder import RankRecord, gather, layer_of
from fabricproof.job.leg import DEFAULT_PATH, Leg
from fabricproof.physics import (
    SOFT_ROCE_NAME,
    Link,
    why_not_the_device,
    why_not_the_layer,
)
from fabricproof.stacks.container import told_lacks
from fabricproof.traffic import (
    MIN_RAIL_SHARE,
    MIN_SHARE,
    SLACK_BYTES,
    Evidence,
    Expectation,
    PathProof,
    PathState,
    RunTraffic,
    doubt_of_counters,
    join_by_node,
    megabytes,
)
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Judgement, Report, at_least


def objections_of(leg: Leg, ranks: Sequence[RankRecord]) -> tuple[Objection, ...]:
    """Return what image, devices and MPI library of the ranks speak against the leg's numbers."""
    device = leg.fabric is not None and not leg.same_node
    rails = leg.node_rails or leg.rails
    hops = other_hops(ranks) if device else ()
    found = (
        (ObjectionKind.NOT_IN_IMAGE, _outside(leg, ranks)),
        # A rail that no rank saw says nothing here: then its counters are missing too.
        (
            ObjectionKind.OTHER_DEVICE,
            device_fault(leg.fabric.link, rails, ranks) if leg.fabric and device else "",
        ),
        (ObjectionKind.IMAGE_UNSEEN, _image_unseen(leg, ranks)),
        (ObjectionKind.DEVICE_UNSEEN, _device_unseen(rails, ranks) if device else ""),
        *_library(leg, ranks),
        (ObjectionKind.UNLIKE_LIBRARIES, unlike_libraries(ranks, leg.library)),
    )
    raised = (Objection(kind=kind, reason=reason) for kind, reason in found if reason)
    return (*raised, *hops)


def _outside(leg: Leg, ranks: Sequence[RankRecord]) -> str:
    """Return which rank did not run in the leg's image; empty where all did, or nobody saw."""
    if leg.container is None:
        return ""
    for each in ranks:
        if each.inside is not None and each.root and each.inside.root == each.root:
            who = f"rank {each.rank} on {each.node}"
            return f"{who} ran with the root of the node itself, not in {leg.container.image}"
    return ""


def _image_unseen(leg: Leg, ranks: Sequence[RankRecord]) -> str:
    """Return which rank nobody saw in the leg's image; empty where all were seen there."""
    if leg.container is None:
        return ""
    for each in ranks:
        if each.inside is None or not each.inside.root or not each.root:
            return f"nobody saw rank {each.rank} on {each.node} in {leg.container.image}"
    return ""


def what_the_container_lacks(leg: Leg, ranks: Sequence[RankRecord]) -> str:
    """Return what the leg's containers do not have of its rails, in words with what mends it.

    Empty where they have all, and where there is no container.
    """
    if leg.container is None:
        return ""
    return told_lacks((each.node, each.inside) for each in ranks if each.inside is not None)


def rails_down(leg: Leg, ranks: Sequence[RankRecord]) -> str:
    """Return which of the leg's rails were down when its ranks began; empty where none was.

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
    for each in ranks:
        if each.library != "unknown" and not _is_file(each.library, leg.library):
            loads = "no MPI library" if each.library == "none" else f"MPI library {each.library}"
            who = f"rank {each.rank} on {each.node}"
            built = f"the stack was built with {leg.library}"
            yield ObjectionKind.OTHER_LIBRARY, f"{who} loads {loads}, {built}"
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
        mine = ""
        if built_with and Path(built_with).name == name:
            with contextlib.suppress(OSError):
                mine = hashlib.sha256(Path(built_with).read_bytes()).hexdigest()
        groups = sorted(of_digests, key=lambda each: (each != mine, -len(of_digests[each])))
        said = "; ".join(
            f"{', '.join(dict.fromkeys(of_digests[each]))}: sha256 {each[:12]}" for each in groups
        )
        odd = ", ".join(node for each in groups[1:] for node in dict.fromkeys(of_digests[each]))
        known = mine in of_digests or len(of_digests[groups[0]]) > len(of_digests[groups[1]])
        who = f"{odd} loaded another" if known else "the nodes loaded unlike files of"
        return f"{who} {name} ({said})"
    return ""


def _is_file(path: str, other: str) -> bool:
    """Tell whether two paths are one file, by their names or by where links lead.

    A program of the standard MPI ABI loads its stack's libmpi_abi, which lies beside the other.
    """
    seen, built = Path(path).resolve(), Path(other).resolve()
    is_of_abi = seen.name.startswith("libmpi_abi.so")
    return seen == built or (is_of_abi and seen.parent == built.parent)


def device_fault(link: Link, rails: Iterable[str], ranks: Iterable[RankRecord]) -> str:
    """Return why rails, as ranks saw them, are not of the declared link; empty where they are."""
    rails = tuple(dict.fromkeys(rails))
    for record in ranks:
        for rail in rails:
            facts = record.facts.get(rail)
            if facts is None:
                continue
            parent = facts.get("parent")
            where, layer = f"{rail} on {record.node}", layer_of(rail, facts)
            why = why_not_the_device(link, where, parent)
            if why:
                kind = SOFT_ROCE_NAME if parent is not None else "an adapter"
                return f"measured on {kind}, judged as {link.name}: {why}"
            why = why_not_the_layer(link, where, layer)
            if why:
                return f"measured over {layer}, judged as {link.name}: {why}"
    return ""


def _device_unseen(rails: Iterable[str], ranks: Sequence[RankRecord]) -> str:
    """Return which rail was counted by a rank that does not say what it is; empty where none was.

    ``rank.sh`` writes a line of facts for all that it counts: without it the evidence is cut, and
    nobody knows whether the device is the declared one.
    """
    for record in ranks:
        for rail in dict.fromkeys(rails):
            if rail in record.before and rail not in record.facts:
                who = f"rank {record.rank} on {record.node}"
                return f"{who} counted {rail} and does not say what it is"
    return ""


def judge_free_path(leg: Leg, ranks: Sequence[RankRecord], sent_bytes: tuple[int, int]) -> Report:
    """Return PASS where the leg's rails carried all that the benchmark says it moved.

    ``sent_bytes`` is the payload that the first and the second half of the ranks sent.
    """
    evidence = gather(ranks)
    told = Expectation(
        rails=leg.rails, sent_bytes=sent_bytes, num_ranks=leg.num_ranks, spread=False
    )
    due = sum(sent_bytes)
    moved = _moved(join_by_node(evidence, told))
    on_rails = sum(moved.get(rail, 0) for rail in leg.rails)
    seen = ", ".join(
        f"{name} {megabytes(count)}"
        for name, count in sorted(moved.items(), key=lambda each: -each[1])
        if count >= max(1_000_000, due / 100) or name in leg.rails
    )
    if len(evidence.nodes) < 2 or not due:
        reason = "the ranks did not run on two nodes, or nothing was moved between them"
        return _report(None, Verdict.UNJUDGED, reason, evidence)
    if sum(moved.values()) < MIN_SHARE * due:
        reason = f"no interface carried the {megabytes(due)} that the benchmark moved: {seen}"
        return _report(None, Verdict.UNJUDGED, reason, evidence)
    twin = _other_that_fits(evidence, leg.rails, moved, due)
    if on_rails >= MIN_SHARE * due and twin:
        reason = f"two paths fit, the declared rails and {twin}: {seen}"
        return _report(None, Verdict.UNJUDGED, reason, evidence)
    share = min(1.0, on_rails / due)
    doubt = doubt_of_counters(evidence, told)
    if share >= MIN_SHARE and doubt is not None:
        return _report(None, Verdict.UNJUDGED, doubt.reason, evidence)
    if share >= MIN_SHARE:
        reason = f"left alone it took the declared fabric: {seen} of {megabytes(due)}"
        return _report(share, Verdict.PASS, reason, evidence)
    reason = (
        f"nobody told this MPI its path, and the declared rails carried {share:.0%} of "
        f"{megabytes(due)}: {seen}; users should set {leg.free_path}"
    )
    return _report(share, Verdict.FAIL, reason, evidence)


def _moved(run: RunTraffic) -> dict[str, int]:
    """Return the bytes that left all nodes, by interface; what stayed on a node is not counted."""
    moved: dict[str, int] = {}
    for node in run.nodes:
        for sample in (*node.rails, *node.others):
            if sample.interface != "lo":
                sent = max(0, sample.moved("tx_bytes"))
                moved[sample.interface] = moved.get(sample.interface, 0) + sent
    return moved


def _other_that_fits(
    evidence: Evidence, rails: Sequence[str], moved: Mapping[str, int], due: int
) -> str:
    """Return another interface that may have carried a part and is not the rails' own wire.

    The rails then show all of it only with somebody else's help.
    """
    rail_addresses = {each.address for each in evidence.samples if each.interface in rails} - {None}
    for each in evidence.samples:
        other = each.interface not in rails and each.address not in rail_addresses
        if other and moved.get(each.interface, 0) >= max(SLACK_BYTES, MIN_RAIL_SHARE * due):
            return each.interface
    return ""


def _report(
    share: float | None,
    verdict: Verdict,
    reason: str,
    evidence: Evidence,
) -> Report:
    wanted = at_least(
        1.0, unit="x", tolerance=1 - MIN_SHARE, origin="all bytes on the declared rails"
    )
    judgement = Judgement(
        name=DEFAULT_PATH,
        value=share,
        unit="x",
        message_size=None,
        verdict=verdict,
        reason=reason,
        reference=wanted.value if share is not None else None,
        lower=wanted.lower if share is not None else None,
        origin=wanted.origin if share is not None else None,
    )
    net_path = PathProof(
        state=PathState.PROVEN if verdict is Verdict.PASS else PathState.UNKNOWN,
        reason=reason,
        moved_bytes={
            f"{each.node}:{each.interface}": each.moved("tx_bytes") for each in evidence.samples
        },
    )
    return Report(verdict=verdict, quantities=(judgement,), net_path=net_path)
