"""What rises beside the bytes of a run: errors, doubts and notes, each told from the others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabricproof
from fabricproof.traffic import Evidence, Expectation, PathState, Rank, prove_path
from fabricproof.traffic.counters import ERROR_COUNTERS, TCP, CounterSample, Rises, read_rises

BYTES = {"tx_bytes": 10_000_000, "rx_bytes": 10_000_000, "tx_packets": 7000, "rx_packets": 7000}


def _sample(interface: str, before: dict[str, int], after: dict[str, int]) -> CounterSample:
    start = dict.fromkeys(BYTES, 0) if interface != TCP else {}
    end = BYTES if interface != TCP else {}
    return CounterSample(
        node="n1", interface=interface, before={**start, **before}, after={**end, **after}
    )


def _rises(interface: str, before: dict[str, int], after: dict[str, int]) -> Rises:
    rail = "p0" if interface == TCP else interface
    return read_rises([_sample(interface, before, after)], [rail])


def _of_one(interface: str, counter: str, rise: int = 1) -> Rises:
    return _rises(interface, {counter: 0}, {counter: rise})


@pytest.mark.parametrize(
    "counter", [*sorted(ERROR_COUNTERS), "ethtool.rx_crc_errors_phy", "ethtool.rx_symbol_err_phy"]
)
def test_one_more_error_is_an_error(counter: str) -> None:
    rises = _of_one("mlx5_0:1", counter)
    assert len(rises.errors) == 1
    assert f"{counter} of mlx5_0:1 on n1 rose by 1" in rises.errors[0]
    assert _rises("mlx5_0:1", {counter: 4}, {counter: 4}) == Rises()


WORDS = BYTES["tx_bytes"] // 4


@pytest.mark.parametrize(
    ("interface", "counter", "rise", "errors", "notes", "said"),
    [
        ("rail0", "carrier_changes", 2, 1, 0, "went down or came up"),
        *(
            ("mlx5_0:1", counter, 1, 0, 1, "")
            for counter in (
                "rx_dropped", "rx_missed_errors", "VL15_dropped", "aer_correctable",
                "ethtool.tx_prio3_pause", "ethtool.rx_discards_phy",
                "ethtool.bw_in_allowance_exceeded",
            )
        ),
        # a PCIe link may correct few packets and not many
        ("p0", "aer_correctable", 99, 0, 1, ""),
        ("p0", "aer_correctable", 100, 1, 0, "repeats packets"),
        # marks of congestion are noted from a thousandth
        *(
            ("mlx5_0:1", counter, rise, 0, notes, "")
            for counter in ("np_ecn_marked_roce_packets", "np_cnp_sent")
            for rise, notes in ((13, 0), (14, 1))
        ),
        # a port that waits longer than it sends
        ("mlx5_0:1", "port_xmit_wait", WORDS // 2, 0, 0, ""),
        ("mlx5_0:1", "port_xmit_wait", WORDS, 0, 1, "waited for credits"),
        (TCP, "ListenDrops", 4, 0, 1,
         "ListenDrops of TCP on n1 rose by 4: connections were refused at first"),
        # what RDMA loses is judged as a rate
        ("mlx5_0:1", "packet_seq_err", 5, 0, 0, ""),
    ],
)  # fmt: skip
def test_what_rose_is_an_error_or_a_note(
    interface: str, counter: str, rise: int, errors: int, notes: int, said: str
) -> None:
    rises = _of_one(interface, counter, rise)
    assert (len(rises.errors), len(rises.notes), rises.doubts) == (errors, notes, ())
    assert said in " ".join((*rises.errors, *rises.notes))


@pytest.mark.parametrize(("forwarded", "notes"), [(0, 0), (19_999, 0), (20_000, 1), (10**6, 1)])
def test_a_node_that_routes_for_others_is_noted(forwarded: int, notes: int) -> None:
    """Containers and daemons route a little on healthy nodes; a benchmark's packets are more."""
    before = {"OutSegs": 5, "ForwDatagrams": 5}
    after = {"OutSegs": 5 + 10**6, "ForwDatagrams": 5 + forwarded}
    rises = _rises(TCP, before, after)
    assert (len(rises.notes), rises.errors, rises.doubts) == (notes, (), ())


def test_what_is_read_on_the_nodes_are_rows_of_the_table_and_each_row_is_read() -> None:
    """Both readers, the script of each rank and the kernel of the pairs, read the same names."""
    room = Path(fabricproof.__file__).parent
    table = tomllib.loads((room / "traffic" / "counters.toml").read_text())
    parts = {part for sums in table["sums"] for parts in sums.values() for part in parts}
    # Slingshot's and hfi1's own names are others; ethtool's and PCIe's only the script reads.
    rows = {each for each in table["counters"] if not each.startswith("aer_")} - {"link_replays"}
    by_code = {"tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "port_xmit_wait"}
    by_code |= {"OutSegs", "RetransSegs", "TCPSynRetrans"}
    by_code |= {"TCPDSACKRecv", "TCPDSACKOfoRecv", "TCPDSACKRecvSegs"}
    due = rows | {*table["renamed"]} | parts | by_code
    kernel = (room / "pairs" / "campaign" / "kernel.c").read_text()
    lists = re.findall(r"static const char \*[A-Z_]+\[\] = \{(\"[^}]*), NULL\};", kernel)
    read = set(re.findall(r'"(\w+)"', " ".join(lists)))
    assert read == due
    script = (room / "job" / "rank.sh").read_text()
    assert due <= set(re.findall(r"\w+", script))


def test_tcp_says_nothing_of_a_path_over_verbs() -> None:
    tcp = _sample(TCP, {"ListenDrops": 0}, {"ListenDrops": 9})
    assert read_rises([tcp], ["mlx5_0:1"]) == Rises()
    assert read_rises([tcp], ["rail0"]).notes


# Doubts.


@pytest.mark.parametrize("counter", ["symbol_error", "rx_errors", "ethtool.rx_crc_errors_phy"])
def test_a_counter_that_ran_backwards_leaves_a_doubt(counter: str) -> None:
    rises = _rises("mlx5_0:1", {counter: 900}, {counter: 3})
    assert rises.errors == ()
    assert rises.doubts == (
        f"{counter} of mlx5_0:1 on n1 ran backwards (wrapped or reset during the run)",
    )


@pytest.mark.parametrize(("counter", "end"), [("link_downed", 255), ("symbol_error", 65535)])
def test_a_counter_at_its_end_hides_what_rises(counter: str, end: int) -> None:
    rises = _rises("mlx5_0:1", {counter: end}, {counter: end})
    assert "stands at its end" in rises.doubts[0]
    assert "(reset it on n1: perfquery -R -C mlx5_0 -P 1)" in rises.doubts[0]
    assert _rises("mlx5_0:1", {counter: end - 1}, {counter: end - 1}).doubts == ()
    assert _rises("eth0", {counter: end}, {counter: end}).doubts == ()


def test_a_counter_that_is_gone_afterwards_leaves_a_doubt() -> None:
    assert "was not read after" in _rises("p0", {"rx_errors": 0}, {}).doubts[0]


def test_an_error_counter_that_stood_high_is_noted() -> None:
    (note,) = _rises("mlx5_0:1", {"symbol_error": 5000}, {"symbol_error": 5000}).notes
    assert note == "symbol_error of mlx5_0:1 on n1 stood at 5000 before the run"


def test_another_interfaces_errors_are_its_own() -> None:
    sample = _sample("mgmt0", {"rx_errors": 0}, {"rx_errors": 9})
    assert read_rises([sample], ["rail0"]) == Rises()


@given(
    st.dictionaries(
        st.sampled_from(sorted(ERROR_COUNTERS)), st.tuples(st.integers(0, 999), st.integers(0, 999))
    )
)
def test_quiet_means_that_no_error_counter_moved(moves: dict[str, tuple[int, int]]) -> None:
    rises = _rises(
        "eth0",
        {name: before for name, (before, _) in moves.items()},
        {name: after for name, (_, after) in moves.items()},
    )
    quiet = all(before == after for before, after in moves.values())
    assert (not rises.errors and not rises.doubts) == quiet


# The path.


def _prove(before: dict[str, int], after: dict[str, int]) -> PathState:
    samples = [
        CounterSample(
            node=node,
            interface="mlx5_0:1",
            before={**dict.fromkeys(BYTES, 0), **before},
            after={**BYTES, **after},
        )
        for node in ("n1", "n2")
    ]
    ranks = tuple(Rank(rank=rank, node=node) for rank, node in enumerate(("n1", "n2")))
    expected = Expectation(
        rails=("mlx5_0:1",), sent_bytes=(9_000_000, 9_000_000), num_ranks=2, spread=False
    )
    return prove_path(Evidence(ranks=ranks, samples=tuple(samples)), expected).state


def test_a_doubt_leaves_the_path_unknown_and_an_error_disturbs_it() -> None:
    assert _prove({"link_downed": 3}, {"link_downed": 3}) is PathState.PROVEN
    assert _prove({"link_downed": 3}, {"link_downed": 0}) is PathState.UNKNOWN
    assert _prove({"link_downed": 3}, {"link_downed": 4}) is PathState.DISTURBED
    both = {"link_downed": 3, "symbol_error": 9}
    assert _prove(both, {"link_downed": 4, "symbol_error": 0}) is PathState.DISTURBED
