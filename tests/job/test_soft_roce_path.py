"""The path of Soft-RoCE devices, from what rank.sh writes on a guest that has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from soft_roce import PORT, Moved, make_sys, program, read_rank

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.error_rates import SOFT_ROCE_LIMIT, red_from
from fabricproof.job.evidence.leg_folder import as_one_path, gather, parse_rank
from fabricproof.job.leg import Leg
from fabricproof.job.outcome import judge_leg, needs_second_look
from fabricproof.physics import Fabric, find_link
from fabricproof.traffic import Expectation, PathProof, PathState, prove_path
from fabricproof.traffic.error_rates import ErrorKind, error_rates
from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg

MB = 1_000_000
DUE = 500 * MB
#: what the device counts for it, in packets of 4096 bytes; and the answers
SENT = (int(1.01 * DUE), int(0.01 * DUE), 124_000)
HEARD = (SENT[1], SENT[0], SENT[2])

ONE = Expectation(rails=("rxe0:1",), sent_bytes=(DUE, 0), num_ranks=2, spread=False)
TWO = Expectation(rails=("rxe0:1", "rxe1:1"), sent_bytes=(DUE, 0), num_ranks=2, spread=True)
HALF = (SENT[0] // 2, SENT[1] // 2, SENT[2] // 2)

HARDWARE = f"{PORT.format(device='rxe0')}/hw_counters"


def texts(
    folder: Path,
    moved: Moved,
    *,
    kernel: str = "7.3",
    extra: Mapping[str, int] | None = None,
    local_rank: int = 0,
) -> tuple[str, ...]:
    """Return the files of two ranks, of which the first one's node sent."""
    back = {name: (received, sent, packets) for name, (sent, received, packets) in moved.items()}
    found = []
    for rank, mine in enumerate((moved, back)):
        sys = make_sys(folder / f"guest{rank}", kernel)
        text = program(sys, mine, extra if rank == 0 else None)
        found.append(read_rank(folder, rank, text, sys=sys, local_rank=local_rank))
    return tuple(found)


def proof(folder: Path, expected: Expectation, moved: Moved, **options: object) -> PathProof:
    """Return the proof of the path from what rank.sh wrote."""
    read = texts(folder, moved, **options)  # type: ignore[arg-type]
    return prove_path(gather(parse_rank(text, "x") for text in read), expected)


def test_what_the_wrapper_says_of_a_soft_device(tmp_path: Path) -> None:
    first = parse_rank(texts(tmp_path, {"rxe0": SENT})[0], "x")
    assert first.facts["rxe0:1"]["parent"] == "rail0"
    assert first.facts["rail0"]["mtu"] == "4200"
    assert first.after["rxe0:1"]["tx_bytes"] == SENT[0]
    assert first.after["rxe0:1"]["tx_packets"] == SENT[2]
    assert first.after["rxe0:1"].keys() >= {"retry_exceeded_err", "out_of_seq_request", "send_err"}
    # Errors that rxe never counts are no assurance.
    assert "symbol_error" not in first.after["rxe0:1"]
    (sample,) = (each for each in gather([first]).samples if each.interface == "rxe0:1")
    assert sample.parent == "rail0"


def test_another_rank_of_the_node_reads_what_proves_the_path(tmp_path: Path) -> None:
    first = parse_rank(texts(tmp_path, {"rxe0": SENT}, local_rank=1)[0], "x")
    assert first.after["rxe0:1"].keys() == {"tx_bytes", "rx_bytes", "tx_packets", "rx_packets"}


def beside(interface: str, times: int) -> Moved:
    """Return SENT over an interface, beside a stranger's verbs of so many times as much."""
    return {"rxe0": (times * SENT[0], times * SENT[1], times * SENT[2]), interface: SENT}


PROVEN, WRONG, UNKNOWN, DISTURBED = PathState
FEW, USED = (MB, MB, 500), {"rxe0": SENT}
#: a byte in a packet of its own: Ethernet's headers are a fifth of what the device counts
PACKETS = 2_000_000
BYTES = replace(ONE, sent_bytes=(PACKETS,) * 2, sent_messages=(PACKETS,) * 2)
SOCKETS = replace(ONE, rails=("rail0",))
DOWN = {f"{HARDWARE}/link_downed": 1, "class/net/rail0/carrier_changes": 2}
ELSEWHERE_DOWN = {f"class/net/{name}/carrier_changes": 2 for name in ("rail1", "mgmt0")}
NO_WIRE = ": the path is not shown"

#: what is due and moved, how rank.sh's words are changed, the state, words of why or of a finding
PROOFS: dict[str, tuple[Expectation, Moved, dict[str, object], PathState, tuple[str, ...]]] = {
    **{f"verbs over the device, kernel {kernel}": (
        ONE, {**USED, "mgmt0": (MB, MB, 900)}, {"kernel": kernel}, PROVEN,
        ("over rxe0:1 vc1 sent 505.0 MB",)) for kernel in ("7.3", "hw_counters alone")},
    "small messages": (BYTES, {"rxe0": (66 * PACKETS, 66 * PACKETS, PACKETS)}, {}, PROVEN, ()),
    "TCP over the interface below": (
        ONE, {"rxe0": FEW, "rail0": SENT}, {}, WRONG,
        ("traffic went over TCP on rail0 (the interface under rxe0): UCX or libfabric fell back; ",
         "the benchmark says vc1 sent 500.0 MB, rxe0:1 sent 1.0 MB, rail0 sent 505.0 MB")),
    "TCP over the management network": (
        ONE, {"rxe0": FEW, "mgmt0": SENT}, {}, WRONG,
        ("traffic went over TCP on mgmt0: UCX or libfabric fell back; the benchmark says vc1",)),
    "verbs of the other device": (
        ONE, {"rxe1": SENT}, {}, WRONG, ("traffic took another path:", "rxe1:1 sent 505.0 MB")),
    "half of it over TCP": (
        ONE, {"rxe0": HALF, "rail0": HALF}, {}, WRONG,
        ("TCP on rail0 (the interface under rxe0)",)),
    **{f"TCP below a stranger's verbs, {times} times as much": (
        ONE, beside("rail0", times), {}, UNKNOWN, ("two paths fit", "rail0")) for times in (1, 20)},
    "two rails": (TWO, {"rxe0": HALF, "rxe1": HALF}, {}, PROVEN, ()),
    "one of two rails": (TWO, USED, {}, WRONG, ("rxe1:1 carried 0.0% of vc1's traffic",)),
    "two devices over one interface": (
        TWO, {"rxe0": HALF, "rxe1": HALF}, {"changed": ("parent=rail1", "parent=rail0")}, WRONG,
        ("2 rails, but rxe0:1 and rxe1:1 on vc1 are two devices over one interface (rail0)",)),
    "a rail that went down": (
        ONE, USED, {"extra": DOWN}, DISTURBED,
        ("link_downed of rxe0:1 on vc1 rose by 1",
         "carrier_changes of rail0 on vc1 rose by 2: the link went down")),
    "other rails that went down": (ONE, USED, {"extra": ELSEWHERE_DOWN}, PROVEN, ()),
    **{f"a connection given up: {counter}": (
        ONE, USED, {"extra": {f"{HARDWARE}/{counter}": 1}}, DISTURBED,
        (f"{counter} of rxe0:1 on vc1 rose by 1: the device gave",))
        for counter in ("retry_exceeded_err", "retry_rnr_exceeded_err")},
    "a slow receiver": (
        ONE, USED, {"extra": {f"{HARDWARE}/rcvd_rnr_err": 500}}, PROVEN,
        ("over rxe0:1 ", "rcvd_rnr_err of rxe0:1 on vc1 rose by 500")),
    "a count of 255 in 64 bits": (
        ONE, USED, {"changed": ("link_downed=0", "link_downed=255")}, PROVEN, ()),
    "a kernel that counts no bytes": (
        ONE, USED, {"kernel": "6.1"}, UNKNOWN,
        ("counters of rxe0:1 on vc1 were not read", "take one with ports/1/counters", NO_WIRE)),
    "sockets": (SOCKETS, {"rail0": SENT}, {}, PROVEN, ()),
    "verbs over a rail of sockets": (
        SOCKETS, USED, {}, WRONG, ("rail0 sent 0.0 MB, rxe0:1 sent 505.0 MB",)),
    "no counters below": (
        ONE, USED, {"changed": ("parent=rail0", "parent=eth9")}, UNKNOWN,
        (f"no counters of eth9 below rxe0:1 on vc1{NO_WIRE}",)),
    "over lo": (
        ONE, USED, {"changed": ("parent=rail0", "parent=lo")}, UNKNOWN,
        (f"rxe0:1 on vc1 is over lo, which leaves no node{NO_WIRE}",)),
    "over nothing known": (
        ONE, USED, {"changed": ("parent=rail0", "parent=")}, UNKNOWN,
        (f"rxe0:1 on vc1 does not say over which interface it is{NO_WIRE}",)),
    "a wire below that was reset": (
        ONE, USED, {"changed": ("before rail0 tx_bytes=1000", "before rail0 tx_bytes=9000000000")},
        UNKNOWN, ("counters of rail0 below rxe0:1 on vc1 ran backwards",)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROOFS)
def test_the_path_of_a_soft_device(name: str, tmp_path: Path) -> None:
    expected, moved, options, state, words = PROOFS[name]
    how = {key: value for key, value in options.items() if key not in {"changed", "of"}}
    read = list(texts(tmp_path, moved, **how))  # type: ignore[arg-type]
    for rank in (0, 1) if "of" not in options else (1,):
        read[rank] = read[rank].replace(*options.get("changed", ("", "")))  # type: ignore[misc]
    found = prove_path(gather(parse_rank(text, "x") for text in read), expected)
    assert found.state is state, found.reason
    assert all(any(each in said for said in (found.reason, *found.findings)) for each in words)
    if words and words[0].startswith("over rxe0:1 "):
        assert len(found.findings) == len(words) - 1


@pytest.mark.parametrize(("rise", "red"), [(9, False), (240, True)])
def test_packets_sent_again_are_noted_and_judged_as_a_rate(
    tmp_path: Path, rise: int, red: bool
) -> None:
    """With 1 % loss a guest counted out_of_seq_request 249, rcvd_seq_err 234."""
    lost = {f"{HARDWARE}/{name}": rise for name in ("out_of_seq_request", "rcvd_seq_err")}
    found = proof(tmp_path, ONE, {"rxe0": SENT}, extra=lost)
    assert found.state is PathState.PROVEN
    read = texts(tmp_path / "again", {"rxe0": SENT}, extra=lost)
    rates = error_rates(gather(parse_rank(text, "x") for text in read), ["rxe0:1"])
    worst = max(each.events for each in rates if each.kind is ErrorKind.RETRANSMITTED)
    packets = max(each.packets for each in rates if each.kind is ErrorKind.RETRANSMITTED)
    assert worst == rise
    assert (worst >= red_from(packets, SOFT_ROCE_LIMIT)) is red


def _with_below(folder: Path, share: float, *counters: str) -> PathProof:
    """Return the proof where counters of the first node's rail0 moved only a share of the truth."""
    seen = gather(parse_rank(text, "x") for text in texts(folder, {"rxe0": SENT}))
    samples = tuple(
        replace(
            each,
            after={
                name: each.before[name] + int(share * each.moved(name)) if name in counters else end
                for name, end in each.after.items()
            },
        )
        if (each.node, each.interface) == ("vc1", "rail0")
        else each
        for each in seen.samples
    )
    return prove_path(replace(seen, samples=samples), SMALL)


#: a flood of small messages in a leg of verbs; all packets are due
SMALL = replace(ONE, least_packets=(SENT[2], SENT[2]), least_bytes=((DUE, 0), (0, DUE)))


def test_the_interface_below_bears_witness(tmp_path: Path) -> None:
    """98 % of what is due, as for a rail; the device's headers make it 3 % more than that."""
    assert _with_below(tmp_path, 1.0).state is PathState.PROVEN
    names = ("tx_bytes", "rx_bytes")
    assert _with_below(tmp_path, 0.99, *names).state is PathState.PROVEN


@pytest.mark.parametrize(
    ("share", "counter"), [(0.0, "tx_bytes"), (0.5, "tx_bytes"), (0.5, "tx_packets")]
)
def test_a_device_that_talks_to_itself_is_no_wire(
    tmp_path: Path, share: float, counter: str
) -> None:
    """Two "nodes" on one kernel: rxe0 hands packets to itself and rail0 stands still."""
    found = _with_below(tmp_path, share, counter)
    assert found.state is PathState.WRONG
    assert found.reason.startswith(f"traffic took no wire: rxe0 on vc1 counts {counter}")
    assert "rail0 below it only" in found.reason


def test_what_the_wire_did_not_bring_did_not_come(tmp_path: Path) -> None:
    read = texts(tmp_path, {"rxe0": SENT})
    still = [
        line
        if not line.startswith("after rail0")
        else "after rail0 tx_bytes=800000000 rx_bytes=1000"
        for line in read[1].splitlines()
    ]
    records = (parse_rank(read[0], "x"), parse_rank("\n".join(still) + "\n", "x"))
    found = prove_path(gather(records), ONE)
    assert found.state is PathState.WRONG
    assert "rxe0 on vc2 counts rx_bytes 505000000, rail0 below it only 0" in found.reason


@pytest.mark.parametrize(("name", "state"), [("rail", "proven"), ("rxe", "wrong")])
def test_a_path_of_each_nodes_own_interface_tells_verbs_from_sockets(
    tmp_path: Path, name: str, state: str
) -> None:
    """The first rail of one node to the second of the other, under one name."""
    moved = ({f"{name}0": SENT}, {f"{name}1": HEARD})
    records = []
    for rank, mine in enumerate(moved):
        sys = make_sys(tmp_path / f"guest{rank}")
        text = read_rank(tmp_path, rank, program(sys, mine), sys=sys)
        records.append(parse_rank(text, "x"))
    seen = as_one_path(gather(records), "rail0-rail1", ("rail0", "rail1"))
    found = prove_path(seen, replace(ONE, rails=("rail0-rail1",)))
    assert found.state == state
    if state == "wrong":
        assert "rail0-rail1 sent 0.0 MB, rxe0:1 sent 505.0 MB" in found.reason


# --- the verdict: which device, and which link it is judged as


def _leg(link: str, **changes: object) -> Leg:
    facts = Fabric(link=find_link(link), protocol="rocev2" if link != "EDR 4x" else "ib", mtu=4096)
    return make_leg(name="rxe0_1", rails=("rxe0:1",), fabric=facts, **changes)


def _outcome(folder: Path, leg: Leg, moved: Moved) -> tuple[Verdict, str, bool]:
    leave(folder, leg, PUT_BW, ranks=texts(folder, moved))
    outcome = judge_leg(folder, leg)
    why = next(
        each.reason for each in outcome.report.quantities if each.verdict is outcome.report.verdict
    )
    return outcome.report.verdict, why, needs_second_look(outcome)


PUT = (int(1.01 * PUT_BW_SENT), int(0.01 * PUT_BW_SENT), PUT_BW_SENT // 4000)


def test_a_soft_device_judged_as_one_passes(tmp_path: Path) -> None:
    assert _outcome(tmp_path, _leg("Soft-RoCE 1 Gb/s"), {"rxe0": PUT})[0] is Verdict.PASS


@pytest.mark.parametrize("link", ["EDR 4x", "1GbE"])
def test_a_soft_device_judged_as_an_adapter_is_invalid(tmp_path: Path, link: str) -> None:
    verdict, why, again = _outcome(tmp_path, _leg(link), {"rxe0": PUT})
    assert (verdict, again) == (Verdict.INVALID, False)
    assert why.startswith(f"measured on Soft-RoCE, judged as {link}: rxe0:1 on vc1 is Soft-RoCE")


def test_an_adapter_judged_as_soft_is_invalid(tmp_path: Path) -> None:
    leg = _leg("Soft-RoCE 1 Gb/s")
    hard = tuple(text.replace(" parent=rail0", "") for text in texts(tmp_path, {"rxe0": PUT}))
    leave(tmp_path, leg, PUT_BW, ranks=hard)
    report = judge_leg(tmp_path, leg).report
    assert report.verdict is Verdict.INVALID
    assert "measured on an adapter, judged as Soft-RoCE" in report.quantities[-1].reason


@pytest.mark.parametrize("link", ["Soft-RoCE 1 Gb/s", "1GbE"])
@pytest.mark.parametrize("blind", [0, 1])
def test_a_device_that_one_node_does_not_describe_is_no_pass(
    tmp_path: Path, link: str, blind: int
) -> None:
    """Counted, and cut out of what the rank says of it: the other node answers for itself alone."""
    leg = _leg(link)
    read = list(texts(tmp_path, {"rxe0": PUT}))
    kept = [line for line in read[blind].splitlines() if not line.startswith("fact rxe0:1")]
    read[blind] = "\n".join(kept) + "\n"
    leave(tmp_path, leg, PUT_BW, ranks=tuple(read))
    report = judge_leg(tmp_path, leg).report
    if link == "1GbE":  # the other node says that it is none
        assert report.verdict is Verdict.INVALID
        return
    assert report.verdict is Verdict.UNJUDGED
    assert report.quantities[-1].reason == (
        f"rank {blind} on vc{blind + 1} counted rxe0:1 and does not say what it is"
    )


def test_a_rank_that_says_nothing_of_a_device_unsays_no_other(tmp_path: Path) -> None:
    first = parse_rank(texts(tmp_path, {"rxe0": SENT})[0], "x")
    silent = replace(first, rank=1, facts={})
    for order in ((first, silent), (silent, first)):
        found = {each.interface: each for each in gather(order).samples}
        assert found["rxe0:1"].parent == "rail0"
        assert found["rail0"].address == "52:54:00:00:00:01"


def test_tcp_below_the_device_is_invalid_and_named_in_the_verdict(tmp_path: Path) -> None:
    moved = {"rxe0": (1000, 1000, 10), "rail0": PUT}
    verdict, why, again = _outcome(tmp_path, _leg("Soft-RoCE 1 Gb/s"), moved)
    assert (verdict, again) == (Verdict.INVALID, False)
    assert "traffic went over TCP on rail0 (the interface under rxe0)" in why
