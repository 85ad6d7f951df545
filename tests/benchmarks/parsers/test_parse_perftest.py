"""perftest: units as its sources have them, what stands around the table, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from recordings import DATA

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, find_link, find_slot
from fabricproof.verdict.limits import Limits, loaded_fabric
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules

FOLDER = DATA / "perftest"


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text("utf-8")


def one(name: str) -> Table:
    (table,) = parse_text(text_of(name), name)
    return table


def rules_of(link: str) -> Rules:
    return Rules(fabric=Fabric(link=find_link(link)))


def verdict_on(table: Table, link: str) -> Verdict:
    return judge_table(table, rules_of(link)).quantities[-1].verdict


def test_mb_per_second_are_mebibytes() -> None:
    table = one("ib_read_bw-mlx4-all")
    last = dict(zip(table.columns, table.rows[-1], strict=True))
    assert last["message_size"] == 8 * 1024 * 1024
    assert last["bandwidth_mb_s"] == pytest.approx(3666.47 * 1.048576)
    # the message rate, which has no such prefix, agrees
    assert last["message_rate_per_s"] * 8.388608 == pytest.approx(last["bandwidth_mb_s"], rel=1e-2)


def test_both_ways_are_held_to_both_ceilings() -> None:
    assert reading_of(one("ib_write_bw-both-ways-gbits")).bidirectional
    assert not reading_of(one("ib_write_bw-ndr-gbits")).bidirectional


@pytest.mark.parametrize(
    ("name", "link", "smaller"),
    [
        ("ib_send_bw-mlx4-all", "QDR 4x", "DDR 4x"),
        ("ib_read_bw-mlx4-all", "QDR 4x", "DDR 4x"),
        ("ib_write_bw-ndr-gbits", "NDR 4x", "HDR 4x"),
        ("ib_send_bw-ndr", "NDR 4x", "HDR 4x"),
    ],
)
def test_published_runs_pass_on_their_links_alone(name: str, link: str, smaller: str) -> None:
    assert verdict_on(one(name), link) is Verdict.PASS
    assert judge_table(one(name), rules_of(smaller)).verdict is Verdict.INVALID


def test_a_row_that_contradicts_itself_is_invalid() -> None:
    text = text_of("ib_send_bw-ndr").replace("46557.03", "36557.03")
    (table,) = parse_text(text)
    report = judge_table(table, Rules(fabric=None))
    assert report.verdict is Verdict.INVALID
    assert "contradicts itself" in report.quantities[-1].reason


def test_no_published_row_contradicts_itself() -> None:
    for path in sorted(FOLDER.glob("*_bw-*.txt")):
        (table,) = parse_text(path.read_text("utf-8"))
        for judgement in judge_table(table, Rules(fabric=None)).quantities:
            assert judgement.verdict is Verdict.UNJUDGED, (path.name, judgement)


def test_a_read_must_cross_twice() -> None:
    fabric = Fabric(link=find_link("QDR 4x"))
    write, read = (
        judge_table(one(f"ib_{verb}_lat-mlx4-all"), Rules(fabric=fabric)).quantities[0]
        for verb in ("write", "read")
    )
    assert write.ceiling is not None
    assert read.ceiling is not None
    assert read.ceiling == pytest.approx(2 * write.ceiling, rel=0.1)


NDR = text_of("ib_send_bw-ndr")
ALL = text_of("ib_write_lat-mlx4-all")
RULE = "-" * 87


def without_last_rule(text: str) -> str:
    return text.rstrip("\n").removesuffix(RULE)


#: ``ib_write_bw --report_gbits``, in the form of a public guide to two GB10 machines; numbers ours
ENDLESS = text_of("ib_write_bw-ndr-gbits").replace(": IB\n", ": Ethernet\n")
ENDLESS = ENDLESS[: ENDLESS.index("\n", ENDLESS.index(" #bytes")) + 1] + "".join(
    f" 65536      {count}           0.00               {rate}         {rate / 524.288:.6f}\n"
    for count, rate in ((880000, 92.27), (440000, 46.14), (880000, 92.27))
)
#: printf of src/cuda_memory.c and rocm_memory.c; the devices are invented
CUDA = """initializing CUDA
Listing all CUDA devices in system:
CUDA device 0: PCIe address is 0F:00

Picking device No. 0
[pid = 1234, dev = 0] device name = [NVIDIA A100]
creating CUDA Ctx
making it the current CUDA Ctx
cuMemAlloc() of a 131072 bytes GPU buffer
allocated GPU buffer address at 00007f2fb4600000 pointer=0x7f2fb4600000
"""
DAMAGE = {
    "cut in its last row": (without_last_rule(NDR).rstrip()[:-1], "damaged row"),
    "cut before its last number": (NDR[: NDR.index("0.744912")], "damaged row"),
    "no iterations": (
        NDR.replace("65536      1000 ", "65536      0    "),
        "a run without a message",
    ),
    "no queue pair": (NDR.replace("Number of qps   : 1", "Number of qps   : 0"), "a run without"),
    "no title": (NDR.replace("Send BW Test", ""), "a table without title"),
    "another title": (NDR.replace("Send BW Test", "Send Multicast BW Test"), ""),
    "no table": (NDR[: NDR.index(" #bytes")], "a run without table"),
    "no rows": (NDR[: NDR.index(" 65536")] + RULE + "\n", "a table without rows"),
    "cut number": (NDR.replace("0.744912", "0.7449"), "damaged row"),
    "a column lost": (NDR.replace("46567.34", ""), "damaged row"),
    "columns run together": (NDR.replace("46567.34            ", "46567.34"), "damaged row"),
    "a row lost": (ALL.replace(" 64      20000", "# 64      20000"), "damaged row"),
    "first row lost": ("".join(_ for _ in ALL.splitlines(True) if " 2  " not in _[:5]), "a row"),
    "unknown unit": (NDR.replace("MiB/sec", "furlongs"), "unknown columns"),
    "a column twice": (NDR.replace("MsgRate[Mpps]\n", "MsgRate[Mpps] MsgRate[Mpps]\n"), "unknown"),
    "failed": (NDR.replace(" 65536 ", "Failed to complete run_iter_bw function\n 65536 "), "the"),
    "completion": (ALL.replace(" 64 ", " Completion with error at client\n 64 ", 1), "the test"),
    "died": (NDR + "Killed\n", "the job ended badly"),
    "a row after the end": (NDR + " 65536      1000   46567.34   46557.03   0.744912\n", "damaged"),
    "two tables, one title": (ALL + ALL[ALL.index(" #bytes") :], "damaged row"),
    "a ruler after repeats": (ENDLESS + RULE + "\n", "message sizes out of order"),
    "another size": (ENDLESS.replace(" 65536      440000", " 32768      440000"), "message sizes"),
    "a cut repeat": (ENDLESS.rstrip("\n")[:-1], "damaged row"),
    "an end before the title": (CUDA + "\n", ""),
    "an error before the title": (CUDA + "Couldn't init GPU context: 1\n\n", ""),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_an_error(name: str) -> None:
    text, problem = DAMAGE[name]
    with pytest.raises(ParseError) as caught:
        parse_text(text, "job.out")
    assert caught.value.problem.startswith(problem)
    assert caught.value.line is not None


def test_several_runs_in_one_text() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.txt"))
    tables = parse_text("\n".join(text_of(name) for name in names))
    assert [table.program for table in tables] == [one(name).program for name in names]


def test_beside_imb_whose_header_begins_alike(tmp_path: Path) -> None:
    imb = (DATA / "imb/mpi1-pingpong.txt").read_text("utf-8")
    suites = [table.suite for table in parse_text(NDR + imb + ALL)]
    assert suites[0] == suites[-1] == "perftest"
    assert set(suites[1:-1]) == {"imb"}


def test_run_infinitely_is_one_measurement_over_all_its_time() -> None:
    (table,) = parse_text(ENDLESS)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert len(table.rows) == 1
    assert row["iterations"] == 2_200_000
    # each row took as long as the others: the mean over time is that of the rates
    assert row["bandwidth_mb_s"] == pytest.approx((92.27 + 46.14 + 92.27) / 3 * 125, rel=1e-3)
    assert table.attributes["intervals"] == 3
    assert table.attributes["bandwidth_least_mb_s"] == pytest.approx(46.14 * 125)
    assert verdict_on(table, "100GbE") is Verdict.FAIL
    (table,) = parse_text(ENDLESS.replace("46.14 ", "0.00 "))  # without a byte there is no mean
    assert table.column("bandwidth_mb_s") == (0.0,)
    assert verdict_on(table, "100GbE") is Verdict.INVALID


@pytest.mark.parametrize("text", [without_last_rule(NDR), without_last_rule(ALL), NDR])
def test_rows_without_their_ruler_are_read_and_say_so(text: str) -> None:
    (table,) = parse_text(text)
    assert table.rows == one("ib_send_bw-ndr" if "Send" in text else "ib_write_lat-mlx4-all").rows
    assert table.attributes.get("end_not_seen") == (None if text is NDR else 1)


def with_columns(headings: str, row: str) -> str:
    text = NDR.replace("MsgRate[Mpps]\n", f"MsgRate[Mpps]   {headings}\n")
    return text.replace("0.744912", f"0.744912        {row}")


def test_columns_of_each_port_belong_to_two_ports() -> None:
    """Headings of RESULT_FMT_PER_PORT and RESULT_LINE_PER_PORT; the numbers are ours."""
    heads = "   ".join(f"BW Port{n}[MiB/sec]   MsgRate Port{n}[Mpps]" for n in (1, 2))
    text = with_columns(heads, "23278.51   0.372456   23278.52   0.372456")
    (table,) = parse_text(text.replace(RULE, "-" * 163))
    assert (table.columns, table.rows) == (
        one("ib_send_bw-ndr").columns,
        one("ib_send_bw-ndr").rows,
    )
    assert table.attributes["num_ports"] == 2
    (table,) = parse_text(NDR.replace("Dual-port       : OFF", "Dual-port       : ON"))
    assert verdict_on(table, "NDR 4x") is Verdict.FAIL  # what one port carries is half of two


def test_the_service_level_is_no_number_of_the_row() -> None:
    """RESULT_FMT_QOS of raw_ethernet_send_bw; ours but for the heading."""
    text = NDR.replace("#bytes     #iterations", "#bytes    #sl      #iterations")
    (table,) = parse_text(text.replace("65536      1000", "65536    3    1000"))
    assert table.rows == one("ib_send_bw-ndr").rows
    assert table.attributes["service_level"] == 3


REPORT = text_of("ib_write_bw-report")


def test_a_report_does_not_name_its_unit_and_its_message_rate_tells() -> None:
    in_mib = one("ib_write_bw-report").column("bandwidth_mb_s")
    assert in_mib[0] == pytest.approx(2229.27 * 1.048576)
    (in_gbit,) = parse_text(REPORT.replace("2229.27", "18.70").replace("5293.52", "44.41"))
    assert in_gbit.column("bandwidth_mb_s") == pytest.approx(in_mib, rel=1e-3)
    assert in_gbit.attributes["bandwidth_rounding_mb_s"] == 0.625
    for wrong in ("229.27", "0.00"):
        with pytest.raises(ParseError, match="not a whole report"):
            parse_text(REPORT.replace("2229.27", wrong))


def test_a_report_of_latencies_reads_as_its_text() -> None:
    """Members of REPORT_FMT_LAT_JSON, with the numbers of a recorded text."""
    whole = one("ib_send_lat-ndr")
    (row,) = whole.named_rows
    names = {"t_min": "min", "t_max": "max", "t_typical": "p50", "t_avg": "avg", "t_stdev": "stdev"}
    names |= {"percentile_99": "p99", "percentile_99.9": "p999"}
    results = {"MsgSize": row["message_size"], "n_iterations": row["iterations"]}
    results |= {key: row[f"latency_{name}_us"] for key, name in names.items()}
    report = {"test_info": {"test": "Send_Latency_Test", "Device": "mlx5_0"}, "results": results}
    (table,) = parse_text(json.dumps(report))
    assert (table.program, table.columns, table.rows) == (whole.program, whole.columns, whole.rows)


def test_a_report_beside_its_text_is_a_table_of_its_own() -> None:
    suites = [table.program for table in parse_text(NDR + REPORT + REPORT + ALL)]
    assert suites == ["ib_send_bw", "ib_write_bw", "ib_write_bw", "ib_write_lat"]
    with pytest.raises(ParseError, match="broken JSON"):
        parse_text(REPORT.rstrip().removesuffix("}"))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ('"cuda_device": 0', "CUDA"),
        ('"musa_device": 0', "MUSA"),
        ('"Use_ROCm_memory": "ON"', "ROCM"),
    ],
)
def test_a_report_says_whose_memory_was_used(key: str, name: str) -> None:
    (table,) = parse_text(REPORT.replace('"Use_ROCm_memory": "OFF"', key))
    assert table.attributes["accelerator"] == name


def test_load_of_the_cpu_is_a_column() -> None:
    (table,) = parse_text(with_columns("CPU_Util[%]", "5.07"))
    assert table.column("cpu_util_percent") == (5.07,)
    assert table.column("bandwidth_mb_s") == one("ib_send_bw-ndr").column("bandwidth_mb_s")


def default_write(gbit_s: float, *, tx_depth: int = 128, ethernet: bool = False) -> Table:
    """What ``ib_write_bw --report_gbits`` prints with its defaults: one row, of 64 KiB."""
    depth = ("TX depth        : 128", f"TX depth : {tx_depth}")
    text = text_of("ib_write_bw-ndr-gbits").replace(*depth)
    assert depth[1] in text
    if ethernet:
        text = text.replace("Link type       : IB", "Link type       : Ethernet")
    (table,) = parse_text(text)
    return with_row(table, gbit_s, 65536)


def with_row(table: Table, gbit_s: float, size: int) -> Table:
    rate = gbit_s * 125
    return replace(table, rows=((size, 5000, rate, rate, rate / size * 1e6),))


def spoken(gbit_s: float, size: int = 65536, **facts: str) -> Table:
    """Invented: a row of ``ib_write_bw --report_gbits`` with other lines in its head."""
    table = with_row(default_write(gbit_s, ethernet=True), gbit_s, size)
    return replace(table, attributes={**table.attributes, **facts})


@pytest.mark.parametrize("link", ["HDR 4x", "NDR 4x", "200GbE", "400GbE"])
def test_half_a_fast_link_is_red_by_perftests_own_largest_message(link: str) -> None:
    half, ethernet = find_link(link).data_rate_gbit_s / 2, link.endswith("E")
    assert verdict_on(default_write(half, ethernet=ethernet), link) is Verdict.FAIL
    assert verdict_on(default_write(1.88 * half, ethernet=ethernet), link) is Verdict.PASS


def test_one_message_at_a_time_shows_no_plateau() -> None:
    assert verdict_on(default_write(100, tx_depth=1), "HDR 4x") is Verdict.UNJUDGED


def test_reads_under_way_are_those_that_the_adapter_has() -> None:
    found = Fabric(link=find_link("NDR 4x"))
    read = one("ib_read_bw-ndr-gbits")
    few = replace(read, attributes={**read.attributes, "outstanding_reads": 1})
    one_read, many = (Limits(each, Rules(fabric=found)) for each in (few, read))
    assert one_read.start_us == pytest.approx(16 * (many.start_us or 0))


def test_verbs_over_ethernet_are_held_to_roce_and_their_own_path_mtu() -> None:
    table = one("ib_write_bw-both-ways-gbits")
    fabric = loaded_fabric(table, Fabric(link=find_link("100GbE")))
    assert (fabric.framing.name, fabric.mtu) == ("rocev2", 4096)
    # an MTU of IP's beside it is no path MTU; what is stated of the protocol is kept
    assert loaded_fabric(table, Fabric(link=find_link("100GbE"), mtu=9000)).mtu == 4096
    stated = Fabric(link=find_link("100GbE"), protocol="rocev2", mtu=1024)
    assert loaded_fabric(table, stated).mtu == 1024
    tcp = Fabric(link=find_link("100GbE"), protocol="tcp")
    assert (loaded_fabric(table, tcp).framing.name, loaded_fabric(table, tcp).mtu) == ("tcp", None)


def test_no_tcp_is_suspected_of_what_verbs_carried() -> None:
    table = default_write(50, ethernet=True)
    reason = judge_table(table, rules_of("100GbE")).quantities[-1].reason
    assert "TCP" not in reason
    assert "out_of_sequence" in reason


@pytest.mark.parametrize(
    ("table", "mtu", "verdict"),
    [
        # 1428 of 1538 bytes are 92.8 %: a path MTU of 1024, which is none of iWARP's, has 92.6
        (spoken(92.80, transport="IW", mtu="1024"), 1500, Verdict.PASS),
        (spoken(98.80, transport="IW", mtu="4096"), 9000, Verdict.PASS),
        (spoken(95.50, transport="IW", mtu="4096"), 1500, Verdict.INVALID),
        (spoken(92.80, transport="IB", mtu="1024"), None, Verdict.INVALID),
        (spoken(99.70, size=9000, connection="RawEth", mtu="9000"), None, Verdict.PASS),
        (spoken(98.60, size=1518, connection="RawEth", mtu="1518"), None, Verdict.PASS),
        (spoken(99.70, size=1518, connection="RawEth", mtu="1518"), None, Verdict.INVALID),
    ],
)
def test_iwarp_and_frames_of_ethernet_are_no_roce(
    table: Table, mtu: int | None, verdict: Verdict
) -> None:
    table = replace(table, attributes={**table.attributes, "mtu": int(table.attributes["mtu"])})
    fabric = Fabric(link=find_link("100GbE"), mtu=mtu)
    assert judge_table(table, Rules(fabric=fabric)).verdict is verdict


def test_transport_and_connection_are_read() -> None:
    text = text_of("ib_write_bw-ndr-gbits").replace("Transport type : IB", "Transport type : IW")
    (table,) = parse_text(text)
    assert (table.attributes["transport"], table.attributes["connection"]) == ("IW", "RC")


@pytest.mark.parametrize(
    ("printed", "transport", "link", "other"),
    [
        ("Ethernet", "IB", "HDR 4x", True),
        ("Ethernet", "IB", "200GbE", False),
        ("Ethernet", "IB", "Soft-RoCE 200 Gb/s", False),
        ("IB", "IB", "200GbE", True),
        ("IB", "IB", "HDR 4x", False),
        ("IB", "Unknown", "200GbE", False),
        ("Unknown", "Unknown", "EFA 200", False),
    ],
)
def test_a_link_of_another_technology_than_the_declared_is_invalid(
    printed: str, transport: str, link: str, other: bool
) -> None:
    table = spoken(184, link_layer=printed, transport=transport)
    (judged,) = judge_table(table, Rules(fabric=Fabric(link=find_link(link)))).quantities
    assert (judged.verdict is Verdict.INVALID) is other, judged.reason
    if other:
        assert f"Link type {printed} of mlx5_0" in judged.reason
        assert find_link(link).name in judged.reason


GIDS = "\n GID: 254:128:00:01\n", "\n GID: 254:128:00:02\n"


@pytest.mark.parametrize(
    ("local", "remote", "gids", "own"),
    [
        ("0x01", "0x02", ("\n", "\n"), ""),
        ("0x02", "0x02", ("\n", "\n"), "LID 0x02"),
        ("0000", "0000", GIDS, ""),
        ("0000", "0000", GIDS[:1] * 2, "GID 254:128:00:01"),
        ("0x02", "0x02", GIDS, ""),  # virtual functions of one port, or two subnets
        ("0000", "0000", ("\n", "\n"), ""),
    ],
)
def test_a_port_that_sends_to_itself_measures_no_link(
    local: str, remote: str, gids: tuple[str, str], own: str
) -> None:
    text = text_of("ib_write_bw-ndr-gbits")
    for end, lid, gid in (("local", local, gids[0]), ("remote", remote, gids[1])):
        said = rf"(?m)^( {end} address: LID )\w+(.*)\n"
        text = re.sub(said, rf"\g<1>{lid}\g<2>{gid}", text)
    (table,) = parse_text(text)
    (judged,) = judge_table(table, Rules(fabric=Fabric(link=find_link("NDR 4x")))).quantities
    assert judged.verdict is (Verdict.INVALID if own else Verdict.PASS)
    assert not own or f"both ends have the address {own}:" in judged.reason


@pytest.mark.parametrize(
    ("title", "program"),
    [("RDMA_Write_imm BW Test", "ib_write_bw"), ("Send_imm Bidirectional BW Test", "ib_send_bw")],
)
def test_messages_with_an_immediate_value_are_the_same_program(title: str, program: str) -> None:
    """By testsStr in src/perftest_parameters.c; ours but for the title."""
    (table,) = parse_text(NDR.replace("Send BW Test", title))
    assert (table.program, table.attributes["immediate"]) == (program, 1)
    assert table.rows == one("ib_send_bw-ndr").rows


ROCM = "Using ROCm Device with ID: 0, Name: MI250, PCI Bus ID: 0xc1, GCN Arch: gfx90a\n"
MALLOC = (
    "Host allocation selected, calling memalign allocator for 131072 bytes with 4096 page size\n"
)
FREED = "deallocating GPU buffer 00007f2fb4600000\ndestroying current CUDA Ctx\n"


@pytest.mark.parametrize(
    ("above", "name"),
    [
        ("", None),
        (CUDA, "CUDA"),
        (CUDA[CUDA.index("cuMemAlloc") :], "CUDA"),
        (ROCM, "ROCM"),
        (CUDA + MALLOC, None),
    ],
)
def test_buffers_on_gpus_are_no_host_memory(above: str, name: str | None) -> None:
    text = text_of("ib_write_bw-ndr-gbits")
    rules = Rules(fabric=Fabric(link=find_link("NDR 4x")))
    tables = parse_text(text + above + text + FREED + text)
    assert [each.attributes.get("accelerator") for each in tables] == [None, name, None]
    quantities = judge_table(tables[1], rules).quantities
    assert quantities[-1].name == ("device_" if name else "") + "bandwidth_64KiB"


def test_half_the_rate_of_gpus_may_be_their_way_to_the_adapter() -> None:
    """As for OSU: physics does not say whether the adapter reaches the memory by itself."""
    table = default_write(200)
    rules = Rules(fabric=Fabric(link=find_link("NDR 4x"), slot=find_slot("5.0x16")))
    assert judge_table(table, rules).verdict is Verdict.FAIL
    on_gpu = replace(table, attributes={**table.attributes, "accelerator": "CUDA"})
    assert judge_table(on_gpu, rules).verdict is Verdict.UNJUDGED
