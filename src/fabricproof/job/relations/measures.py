"""The number of one look at a relation, or why there is none: a ratio, a balance, a frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from fabricproof.core.hostlist import cpus_of
from fabricproof.core.measure import Verdict
from fabricproof.core.units import at_size, size_label
from fabricproof.job.evidence.leg_folder import gather, read_text
from fabricproof.job.outcome import Attempt, Outcome, first_reason
from fabricproof.job.relation import Balance, Bind, Frames, Pick, Ratio, RatioSide, Relation
from fabricproof.traffic import PathState
from fabricproof.verdict.value import Judgement

#: legs by name, each with one look at it
Looks = Mapping[str, Outcome]

#: message size in bytes -> MB/s
Curve = Mapping[int, float]

#: quantity -> the column of a table that has it
_COLUMNS = {"bandwidth": "bandwidth_mb_s", "latency": "latency_us"}

#: Several rails help if they carry this fraction of the gain that physics promises: a quarter
#: of the way from one rail to two is 1.25, beyond what two runs of one rail differ by.
HELPS = 0.25
#: and never less than this many times the disagreement between single rails of one kind
NOISE_FACTOR = 3.0
#: Fewer bytes than these on all rails say nothing: handshakes and ARP are of that order.
TELLING_BYTES = 256 * 1024
#: A node that sent less than this part of the busiest one's bytes only acknowledged.
SENDER = 0.25

#: IPv4's and TCP's headers, 20 bytes each, and TCP's time stamps, 12, which Linux sends (RFC 7323)
HEADERS_BYTES, STAMPS_BYTES = 40, 12


class NoNumberError(Exception):
    """A relation has no number, and its verdict is another's."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        """Keep the verdict beside the reason."""
        super().__init__(reason)
        self.verdict, self.reason = verdict, reason


def require_sound(legs: Iterable[str], looks: Looks) -> None:
    """Do nothing if every leg has numbers of its own path, good or bad.

    Raises:
        NoNumberError: one has none.
    """
    for name in legs:
        if name not in looks:
            raise NoNumberError(Verdict.MISSING, f"leg {name} was never planned")
        report = looks[name].report
        if report.verdict is Verdict.SKIPPED:
            raise NoNumberError(Verdict.SKIPPED, first_reason(report))
        if report.verdict in {Verdict.INVALID, Verdict.MISSING}:
            reason = next(e.reason for e in report.quantities if e.verdict is report.verdict)
            raise NoNumberError(report.verdict, f"leg {name} is {report.verdict}: {reason}")
        path = report.net_path
        doubt = next((each.foreign for each in looks[name].attempts if each.foreign), "")
        if not doubt and (path is None or path.state in {PathState.UNKNOWN, PathState.WRONG}):
            doubt = path.reason if path else "no path was shown"
        if doubt:
            raise NoNumberError(Verdict.UNJUDGED, f"leg {name}: {doubt}")


def ratio_of(ratio: Ratio, looks: Looks) -> float:
    """Return the ratio of one look at its legs, which are sound.

    Raises:
        NoNumberError: a side has no number, or the ranks did not run where they were bound.
    """
    for leg, bind in ratio.held.items():
        if reason := why_loose(looks[leg], bind):
            raise NoNumberError(Verdict.UNJUDGED, f"leg {leg}: {reason}")
    over, under = (_picked(side, looks) for side in (ratio.over, ratio.under))
    both = list(zip(over, under, strict=True))
    if not all(math.isfinite(above) and below > 0 for above, below in both):
        legs = " and ".join(dict.fromkeys((*ratio.over.legs, *ratio.under.legs)))
        sizes = [size_label(size) for size in ratio.over.sizes if size is not None]
        at = f" at {', '.join(sizes)}" if sizes else ""
        raise NoNumberError(Verdict.MISSING, f"{legs} do not all have {ratio.over.quantity}{at}")
    return ratio.scale * median(above / below for above, below in both)


def _picked(side: RatioSide, looks: Looks) -> list[float]:
    choose = max if side.pick is Pick.LARGEST else min
    found = (
        [value_at(looks[leg], side.quantity, size) for leg in side.legs] for size in side.sizes
    )
    return [math.nan if any(map(math.isnan, each)) else choose(each) for each in found]


def value_at(look: Outcome, quantity: str, size: int | None) -> float:
    """Return what a leg measured for one message size, NaN if it did not."""
    name = at_size(quantity, size)
    value = next((each.value for each in look.report.quantities if each.name == name), None)
    table = look.attempts[-1].table if look.attempts else None
    column = _COLUMNS.get(quantity, "")
    if value is None and table is not None and {"message_size", column} <= set(table.columns):
        # IMB's PingPong is judged by one of its two columns at each size, and has both.
        rows = zip(table.column("message_size"), table.column(column), strict=True)
        value = next((value for at, value in rows if at == size), None)
    return math.nan if value is None else value


def legs_in_words(ratio: Ratio, looks: Looks) -> str:
    """Return what each leg with a name measured, best first: ``near 6.3 GB/s, far 5.6 GB/s``."""
    sides = {leg: side for side in (ratio.under, ratio.over) for leg in side.legs}
    known: dict[str, float] = {}
    for leg, word in ratio.names.items():
        if leg in looks:
            side = sides.get(leg, ratio.over)
            value = median(value_at(looks[leg], side.quantity, each) for each in side.sizes)
            known |= {word: value} if math.isfinite(value) else {}
    is_time = ratio.over.quantity == "latency"

    def amount(value: float) -> str:
        if is_time:
            return f"{value:.4g} us"
        return f"{value / 1000:.3g} GB/s" if value >= 1000 else f"{value:.4g} MB/s"

    order = sorted(known, key=known.__getitem__, reverse=not is_time)
    return ", ".join(f"{word} {amount(known[word])}" for word in order)


def why_loose(look: Outcome, bind: Bind) -> str:
    """Return why it is unknown whether a leg's ranks ran where they were bound; empty if known.

    Read is ``bind.RANK.PART``, which ``bind.sh`` leaves: what it was told, the NUMA node of the
    rail's slot, the CPUs of each, and those on which the program could run after its MPI had its
    way.
    """
    files = [path for attempt in look.attempts for path in attempt.folder.glob("bind.*")]
    ranks = {path.name.split(".")[1] for path in files}
    due = look.leg.num_ranks * max(1, len(look.leg.commands)) * len(look.attempts)
    if len(ranks) != look.leg.num_ranks or len(files) != due:
        return f"{len(ranks)} ranks said {len(files)} times where they ran, {due} were due"
    for path in sorted(files):
        if reason := why_not_held(bind, read_text(path)):
            return f"rank {path.name.split('.')[1]} was not held {bind}: {reason}"
    return ""


def why_not_held(bind: Bind, text: str) -> str:
    """Return why a rank did not run where ``bind`` asks for, by what it left; empty if it did."""
    whole = text.rpartition("\n")[0].splitlines()  # a last line that is cut says nothing
    facts = {word: value for word, _, value in (line.rpartition(" ") for line in whole)}
    if facts.get("bind") != bind.value:
        return f"it was told {facts.get('bind', 'nothing')}"
    ran, own = facts.get("ran", "unknown"), facts.get(f"numa {facts.get('home')}")
    if own is None:
        return "the NUMA node of the rail is not known"
    mine, beside = cpus_of(ran), cpus_of(own)
    if mine is None or beside is None:
        return f"no list of CPUs: {ran!r}, {own!r}"
    if not mine:
        return "nobody saw on which CPUs the rank may run"
    wrong = mine - beside if bind is Bind.NEAR else mine & beside
    return f"it may run on CPUs {ran}, the rail's own are {own}" if wrong else ""


# How messages are shared among rails, and from which size on several rails help.


def balance_of(what: Balance, looks: Looks) -> float:
    """Return what part of the rails' summed rate one look's large messages could use, 0 to 1.

    All rails must finish: the one with most to carry for its rate decides.  For two like rails at
    62 and 38 % it is 0.81.

    Raises:
        NoNumberError: the counters show too few bytes.
    """
    shares = shares_of(what, looks)
    if not shares:
        least = size_label(TELLING_BYTES)
        reason = f"the rails' counters show less than {least} of large messages"
        raise NoNumberError(Verdict.UNJUDGED, reason)
    return 1 / max(shares[rail] / what.weights[rail] for rail in shares)


def shares_of(what: Balance, looks: Looks) -> dict[str, float]:
    """Return each rail's part of the bytes of large messages; empty if too few moved to tell.

    Counted are the nodes that sent data.
    """
    look, rails = looks[what.together], tuple(what.singles)
    # A leg that runs in turn has large messages alone, in one start.
    part = None if look.leg.in_turn else what.large_part
    evidence = gather(rank for rank in look.ranks if part in {None, rank.part})
    by_node: dict[str, dict[str, int]] = {}
    for each in evidence.samples:
        if each.interface in rails:
            by_node.setdefault(each.node, {})[each.interface] = each.moved("tx_bytes")
    most = max((sum(moved.values()) for moved in by_node.values()), default=0)
    senders = [moved for moved in by_node.values() if sum(moved.values()) >= SENDER * most]
    sent = {rail: sum(moved.get(rail, 0) for moved in senders) for rail in rails}
    total = sum(sent.values())
    if total < TELLING_BYTES or min(sent.values()) < 0:
        return {}
    return {rail: moved / total for rail, moved in sent.items()}


def judge_threshold(name: str, what: Balance, looks: Looks) -> tuple[Judgement | None, str]:
    """Return the judgement of the stated threshold, None if unstated, and what was seen."""
    singles = [_curve(looks[leg]) for leg in what.singles.values()]
    seen = threshold_bytes(singles, _curve(looks[what.together]), what.expected_gain)
    words = "never help" if seen is None else f"help from {size_label(seen)} on"
    stated, said = what.threshold_bytes, f"several rails {words}"
    if stated is None:
        return None, said
    judgement = Judgement(
        name=f"threshold_{name}",
        value=None if seen is None else float(seen),
        unit="B",
        message_size=None,
        verdict=Verdict.PASS if seen == stated else Verdict.FAIL,
        reason=f"several rails should help from {size_label(stated)} on: they {words}",
        reference=float(stated) if seen == stated else None,
        origin="the site says so",
    )
    return judgement, said


def _curve(look: Outcome) -> Curve:
    return {
        each.message_size: each.value
        for each in look.report.quantities
        if each.unit == "MB/s" and each.message_size and each.value is not None
    }


def threshold_bytes(singles: Sequence[Curve], together: Curve, expected_gain: float) -> int | None:
    """Return the smallest message from which on, at every larger size, several rails help.

    None if they never do.  Single rails that disagree, by the median over sizes, raise the bar:
    the threshold of rails that are unlike on purpose is found late, never too early.
    """
    alone = {size: [curve.get(size, 0.0) for curve in singles] for size in together}
    common = {size: rates for size, rates in alone.items() if rates and min(rates) > 0}
    noise = median(1 - min(rates) / max(rates) for rates in common.values()) if common else 0.0
    least = 1 + max(HELPS * max(expected_gain - 1, 0.0), NOISE_FACTOR * noise, HELPS / 2)
    threshold = None
    for size in sorted(common, reverse=True):
        if together[size] / max(common[size]) < least:
            break
        threshold = size
    return threshold


# Which frames pass between two nodes.


def judge_frames(relation: Relation, frames: Frames, looks: Looks) -> Judgement:
    """Judge the largest frame that passed between two nodes.

    Three things tell: what each node says of its interface; what TCP's ends agreed upon (its
    largest segment, and the path's MTU after a run at full speed, RFC 6691 and RFC 1191); and, if
    TCP never got through, pings of that size that may not be cut in pieces beside small ones.

    Raises:
        NoNumberError: nothing says what passed.
    """
    declared, rail, (leg,) = frames.mtu_bytes, relation.rails[0], relation.legs
    look = looks.get(leg)
    if look is None or not look.attempts:
        raise NoNumberError(Verdict.MISSING, f"leg {leg} never ran")
    ranks = look.attempts[-1].ranks
    mtus = {rank.node: rank.facts.get(rail, {}).get("mtu", "") for rank in ranks}
    unlike = {node: int(x) for node, x in mtus.items() if x.isdecimal() and int(x) != declared}
    pings = next((rank.facts["path"] for rank in ranks if "path" in rank.facts), {})
    small, large = pings.get("small", ""), pings.get("large", "")
    if unlike:
        words = ", ".join(f"{mtu} on {node}" for node, mtu in sorted(unlike.items()))
        frame = min(unlike.values())
        reason = f"{rail} has MTU {words}; fabric.toml declares {declared}"
    elif small.isdecimal() and large.isdecimal() and int(small) > 0 == int(large):
        nodes = " and ".join(sorted(mtus))
        frame = 0
        reason = f"frames of {declared} B do not pass between {nodes} over {rail}, small ones do: "
        reason += "a switch port on the way takes smaller ones"
    else:
        require_sound(relation.legs, looks)
        frame = _agreed(look.attempts[-1], declared)
        reason = f"TCP ran in frames of {declared} B, as fabric.toml says"
        if frame != declared:
            reason = (
                f"TCP sent frames of {frame} B over {rail}, fabric.toml declares {declared}: "
                f"the path takes no others, or a route says so (ip route show dev {rail})"
            )
    return Judgement(
        name="frame",
        value=float(frame),
        unit="B",
        message_size=None,
        verdict=Verdict.PASS if frame == declared else Verdict.FAIL,
        reason=reason,
        reference=float(declared),
        lower=float(declared),
        upper=float(declared),
        origin="declared: mtu in fabric.toml",
    )


def _agreed(attempt: Attempt, declared: int) -> int:
    """Return the frame that TCP's segments make, with or without time stamps."""
    table = attempt.table
    if table is None or "mss_bytes" not in table.attributes:
        reason = "iperf3 said nothing of its segments: it is older than 3.1"
        raise NoNumberError(Verdict.UNJUDGED, reason)
    segment = int(table.attributes["mss_bytes"]) + HEADERS_BYTES
    frame = segment if segment == declared else segment + STAMPS_BYTES
    return min(frame, int(table.attributes.get("path_mtu_bytes", frame)))
