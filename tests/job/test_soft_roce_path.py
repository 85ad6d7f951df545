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


@pytest.mark.parametrize("kernel", ["7.3", "hw_counters alone"])
def test_verbs_over_the_device_are_its_path_and_the_interface_below_no_other(
    tmp_path: Path, kernel: str
) -> None:
    found = proof(tmp_path, ONE, {"rxe0": SENT, "mgmt0": (MB, MB, 900)}, kernel=kernel)
    assert (found.state, found.findings) == (PathState.PROVEN, ())
    assert found.reason.startswith("over rxe0:1 vc1 sent 505.0 MB")


def test_small_messages_leave_more_headers_below_than_bytes_above(tmp_path: Path) -> None:
    """A byte in a packet of its own: headers of Ethernet are a fifth of what the device counts."""
    packets = 2_000_000
    small = Expectation(
        rails=("rxe0:1",),
        sent_bytes=(packets, packets),
        sent_messages=(packets, packets),
        num_ranks=2,
        spread=False,
    )
    moved = {"rxe0": (66 * packets, 66 * packets, packets)}
    assert proof(tmp_path, small, moved).state is PathState.PROVEN


def test_tcp_over_the_interface_below_is_named(tmp_path: Path) -> None:
    found = proof(tmp_path, ONE, {"rxe0": (MB, MB, 500), "rail0": SENT})
    assert found.state is PathState.WRONG
    assert found.reason == (
        "traffic went over TCP on rail0 (the interface under rxe0): UCX or libfabric fell back; "
        "the benchmark says vc1 sent 500.0 MB, rxe0:1 sent 1.0 MB, rail0 sent 505.0 MB"
    )


def test_tcp_over_the_management_network_is_named(tmp_path: Path) -> None:
    found = proof(tmp_path, ONE, {"rxe0": (MB, MB, 500), "mgmt0": SENT})
    assert found.state is PathState.WRONG
    assert found.reason.startswith(
        "traffic went over TCP on mgmt0: UCX or libfabric fell back; the benchmark says vc1 sent"
    )


def test_verbs_of_the_other_device_are_no_tcp(tmp_path: Path) -> None:
    found = proof(tmp_path, ONE, {"rxe1": SENT})
    assert found.state is PathState.WRONG
    assert found.reason.startswith("traffic took another path:")
    assert found.reason.endswith("rxe1:1 sent 505.0 MB")


def test_half_of_it_over_tcp_is_not_the_path(tmp_path: Path) -> None:
    found = proof(tmp_path, ONE, {"rxe0": HALF, "rail0": HALF})
    assert found.state is PathState.WRONG
    assert "TCP on rail0 (the interface under rxe0)" in found.reason


@pytest.mark.parametrize("times", [1, 20])
def test_a_strangers_verbs_hide_no_tcp_below_them(tmp_path: Path, times: int) -> None:
    """Ten per cent more on the interface are no same wire, once the device's own are taken off."""
    sent, received, packets = SENT
    stranger = (times * sent, times * received, times * packets)
    found = proof(tmp_path, ONE, {"rxe0": stranger, "rail0": SENT})
    assert found.state is PathState.UNKNOWN
    assert found.reason.startswith("two paths fit")
    assert "rail0" in found.reason


def test_one_of_two_rails_is_no_number_of_two(tmp_path: Path) -> None:
    assert proof(tmp_path / "a", TWO, {"rxe0": HALF, "rxe1": HALF}).state is PathState.PROVEN
    found = proof(tmp_path / "b", TWO, {"rxe0": SENT})
    assert found.state is PathState.WRONG
    assert "rxe1:1 carried 0.0% of vc1's traffic" in found.reason


def test_two_devices_over_one_interface_are_no_two_rails(tmp_path: Path) -> None:
    read = texts(tmp_path, {"rxe0": HALF, "rxe1": HALF})
    one = [text.replace("parent=rail1", "parent=rail0") for text in read]
    found = prove_path(gather(parse_rank(text, "x") for text in one), TWO)
    assert found.state is PathState.WRONG
    assert found.reason == (
        "2 rails, but rxe0:1 and rxe1:1 on vc1 are two devices over one interface (rail0)"
    )


def test_a_rail_that_went_down_under_the_run_is_an_error(tmp_path: Path) -> None:
    down = {f"{HARDWARE}/link_downed": 1, "class/net/rail0/carrier_changes": 2}
    found = proof(tmp_path, ONE, {"rxe0": SENT}, extra=down)
    assert found.state is PathState.DISTURBED
    assert "link_downed of rxe0:1 on vc1 rose by 1" in found.reason
    assert "carrier_changes of rail0 on vc1 rose by 2: the link went down" in found.reason
    other = {f"class/net/{name}/carrier_changes": 2 for name in ("rail1", "mgmt0")}
    assert proof(tmp_path / "b", ONE, {"rxe0": SENT}, extra=other).state is PathState.PROVEN


@pytest.mark.parametrize("counter", ["retry_exceeded_err", "retry_rnr_exceeded_err"])
def test_a_connection_that_was_given_up_is_an_error(tmp_path: Path, counter: str) -> None:
    found = proof(tmp_path, ONE, {"rxe0": SENT}, extra={f"{HARDWARE}/{counter}": 1})
    assert found.state is PathState.DISTURBED
    assert f"{counter} of rxe0:1 on vc1 rose by 1: the device gave" in found.reason


@pytest.mark.parametrize(("rise", "red"), [(9, False), (240, True)])
def test_packets_sent_again_are_noted_and_judged_as_a_rate(
    tmp_path: Path, rise: int, red: bool
) -> None:
    """With 1 % loss a guest counted out_of_seq_request 249, rcvd_seq_err 234."""
    lost = {f"{HARDWARE}/{name}": rise for name in ("out_of_seq_request", "rcvd_seq_err")}
    found = proof(tmp_path, ONE, {"rxe0": SENT}, extra=lost)
    assert found.state is PathState.PROVEN
    said = f"lost packets or their order: out_of_seq_request {rise}, rcvd_seq_err {rise}"
    assert said in " ".join(found.findings)
    read = texts(tmp_path / "again", {"rxe0": SENT}, extra=lost)
    rates = error_rates(gather(parse_rank(text, "x") for text in read), ["rxe0:1"])
    worst = max(each.events for each in rates if each.kind is ErrorKind.RETRANSMITTED)
    packets = max(each.packets for each in rates if each.kind is ErrorKind.RETRANSMITTED)
    assert worst == rise
    assert (worst >= red_from(packets, SOFT_ROCE_LIMIT)) is red


def test_a_slow_receiver_is_a_note(tmp_path: Path) -> None:
    found = proof(tmp_path, ONE, {"rxe0": SENT}, extra={f"{HARDWARE}/rcvd_rnr_err": 500})
    assert (found.state, len(found.findings)) == (PathState.PROVEN, 1)
    assert "rcvd_rnr_err of rxe0:1 on vc1 rose by 500" in found.findings[0]


def test_a_count_of_255_is_no_end_of_a_soft_counter(tmp_path: Path) -> None:
    """PortCounters' link_downed has eight bits; that of rdma_rxe has 64."""
    read = texts(tmp_path, {"rxe0": SENT})
    high = [text.replace("link_downed=0", "link_downed=255") for text in read]
    found = prove_path(gather(parse_rank(text, "x") for text in high), ONE)
    assert found.state is PathState.PROVEN


def test_a_kernel_that_counts_no_bytes_proves_nothing(tmp_path: Path) -> None:
    found = proof(tmp_path, ONE, {"rxe0": SENT}, kernel="6.1")
    assert found.state is PathState.UNKNOWN
    assert found.reason == (
        "counters of rxe0:1 on vc1 were not read (tx_bytes, rx_bytes): rdma_rxe of this kernel "
        "counts no bytes; take one with ports/1/counters (Linux 7.2 has them, 6.1 and 6.12 do "
        "not): the path is not shown"
    )


def test_verbs_over_a_rail_of_sockets_are_no_tcp_number(tmp_path: Path) -> None:
    sockets = Expectation(rails=("rail0",), sent_bytes=(DUE, 0), num_ranks=2, spread=False)
    assert proof(tmp_path / "a", sockets, {"rail0": SENT}).state is PathState.PROVEN
    found = proof(tmp_path / "b", sockets, {"rxe0": SENT})
    assert found.state is PathState.WRONG
    assert "rail0 sent 0.0 MB by sockets and 506.7 MB as verbs of rxe0" in found.reason


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


@pytest.mark.parametrize(
    ("parent", "reason"),
    [
        ("parent=eth9", "no counters of eth9 below rxe0:1 on vc1: the path is not shown"),
        ("parent=lo", "rxe0:1 on vc1 is over lo, which leaves no node: the path is not shown"),
        ("parent=", "rxe0:1 on vc1 does not say over which interface it is: the path is not shown"),
    ],
)
def test_without_a_wire_to_ask_the_path_is_not_shown(
    tmp_path: Path, parent: str, reason: str
) -> None:
    read = (each.replace("parent=rail0", parent) for each in texts(tmp_path, {"rxe0": SENT}))
    found = prove_path(gather(parse_rank(text, "x") for text in read), ONE)
    assert (found.state, found.reason) == (PathState.UNKNOWN, reason)


def test_a_wire_below_that_was_reset_is_no_witness(tmp_path: Path) -> None:
    high = "before rail0 tx_bytes=9000000000"
    read = texts(tmp_path, {"rxe0": SENT})
    records = (parse_rank(text.replace("before rail0 tx_bytes=1000", high), "x") for text in read)
    found = prove_path(gather(records), ONE)
    assert found.state is PathState.UNKNOWN
    assert "counters of rail0 below rxe0:1 on vc1 ran backwards" in found.reason


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
        assert "rail0-rail1 sent 0.0 MB by sockets and 506.7 MB as verbs of rxe0" in found.reason


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


def test_losses_that_one_node_does_not_count_are_a_note(tmp_path: Path) -> None:
    read = texts(tmp_path, {"rxe0": SENT})
    cut = read[1]
    for name in ("retry_exceeded_err", "completer_retry_err"):
        cut = cut.replace(f" {name}=0", "")
    found = prove_path(gather([parse_rank(read[0], "x"), parse_rank(cut, "x")]), ONE)
    assert found.state is PathState.PROVEN
    (note,) = found.findings
    assert note == (
        "completer_retry_err, retry_exceeded_err of rxe0:1 were read on another node and not on "
        "vc2: had they risen there, nobody would know"
    )


def test_tcp_below_the_device_is_invalid_and_named_in_the_verdict(tmp_path: Path) -> None:
    moved = {"rxe0": (1000, 1000, 10), "rail0": PUT}
    verdict, why, again = _outcome(tmp_path, _leg("Soft-RoCE 1 Gb/s"), moved)
    assert (verdict, again) == (Verdict.INVALID, False)
    assert "traffic went over TCP on rail0 (the interface under rxe0)" in why
