"""Asking tools: pretended ones that are absent, hang, fail or are forbidden; one message each."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core import group
from fabricproof.subnet import live
from made_fabrics import make, show_discover, show_linkinfo

DATA = Path(__file__).resolve().parents[1] / "data" / "subnet"

#: tool -> file of a recorded look; saquery and sminfo answer for the fabric of one manager
PRINTED = {
    "ibnetdiscover": "ibnetdiscover.txt", "iblinkinfo": "iblinkinfo.txt", "sminfo": "sminfo.txt",
    "saquery": "issm.txt", "ibqueryerrors": "ibqueryerrors.txt",
}  # fmt: skip


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put pretended tools, which print a recorded look, first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool, name in PRINTED.items():
        pretend(folder, tool, f"cat '{DATA}/tree/{name}'")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def pretend(folder: Path, tool: str, script: str) -> None:
    path = folder / tool
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


Call = Callable[..., Any]

#: as version 44.0 says it on a machine without InfiniBand, and on a fabric without manager
NO_PORT = """\
echo "ibwarn: [1] get_abi_version: can't read ABI version: is ib_umad module loaded?" >&2
echo "ibwarn: [1] mad_rpc_open_port: can't open UMAD port ((null):0)" >&2
exit 255"""
NO_MANAGER = """\
echo "ibwarn: [1] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0)" >&2
echo "sminfo: iberror: failed: query"
exit 255"""


def test_a_look_is_taken_kept_and_judged_again(
    fabricproof: Call, tools: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "looks" / "monday"
    first = fabricproof("subnet", "check", "--link", "EDR 4x", "--keep", folder)
    assert (first.status, first.err) == (0, "")
    assert sorted(each.name for each in folder.iterdir()) == sorted(PRINTED.values())
    again = fabricproof("subnet", "check", "--link", "EDR 4x", "--from", folder)
    assert (again.status, again.out) == (0, first.out)
    full = fabricproof("subnet", "check", "--keep", folder)
    assert full.status == 74
    assert "not empty" in full.err


def test_device_and_port_are_passed_on(fabricproof: Call, tools: Path, tmp_path: Path) -> None:
    said = tmp_path / "said"
    for tool in ("ibnetdiscover", "sminfo"):
        pretend(tools, tool, f"echo {tool} $* >> {said}; cat '{DATA}/tree/{PRINTED[tool]}'")
    options = ("--device", "mlx5_1:2", "--link", "EDR 4x", "--via", "env A=1")
    assert fabricproof("subnet", "check", *options).status == 0
    assert said.read_text() == "ibnetdiscover -C mlx5_1 -P 2\nsminfo -C mlx5_1 -P 2\n"


def test_every_other_manager_is_asked(fabricproof: Call, tools: Path) -> None:
    faults = DATA / "tree-faults"
    pretend(tools, "saquery", f"cat '{faults}/issm.txt'")
    pretend(
        tools,
        "sminfo",
        f"[ -n \"$1\" ] && tail -n 1 '{faults}/sminfo.txt' || head -n 1 '{faults}/sminfo.txt'",
    )
    ended = fabricproof("subnet", "check", "--link", "EDR 4x")
    assert ended.status == 0
    assert "LID 13 (0x000000000010000d) standby" in ended.out


@pytest.mark.parametrize(
    ("tool", "script", "status", "words"),
    [
        ("ibnetdiscover", "sleep 60", 69, "did not end in 0.5 s"),
        ("ibnetdiscover", NO_PORT, 69, "no InfiniBand port"),
        ("iblinkinfo", "echo 'Permission denied' >&2; exit 1", 77,
         "may not open the fabric's management device"),
        ("sminfo", NO_MANAGER, 69, "no subnet manager answers"),
        ("ibqueryerrors", "exit 3", 69, "failed with status 3"),
        ("iblinkinfo", "head -n 5 'DATA/tree/iblinkinfo.txt'", 65, "iblinkinfo.txt:6"),
        ("iblinkinfo", "cat 'DATA/torus/iblinkinfo.txt'", 65, "ibnetdiscover"),
        ("ibnetdiscover", "true", 65, "empty"),
    ],
)  # fmt: skip
def test_one_clear_message_for_each_way_to_fail(
    fabricproof: Call, tools: Path, tool: str, script: str, status: int, words: str
) -> None:
    pretend(tools, tool, script.replace("DATA", str(DATA)))
    begun = time.monotonic()
    ended = fabricproof("subnet", "check", "--timeout", "0.5" if "sleep" in script else "20")
    assert ended.status == status, ended.err
    assert words in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert time.monotonic() - begun < 20


def is_running(file: Path) -> bool:
    """Tell whether the process whose number ``file`` has is there, and no zombie."""
    try:
        words = (
            Path(f"/proc/{file.read_text().strip()}/stat").read_text().rpartition(")")[2].split()
        )
    except FileNotFoundError:
        return False
    return words[0] != "Z"


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("script", "status", "ends"),
    [
        # quiet, and left behind by a tool that ended well
        ("sleep 300 >/dev/null 2>&1 & echo $! > PID; cat 'LOOK'", 0, True),
        # it holds the pipe, so that the output has no end
        ("sleep 300 & echo $! > PID; cat 'LOOK'", 69, True),
        # in a session of its own, where our signal does not reach it, with the pipe
        ("setsid sleep 25 & echo $! > PID; sleep 300", 69, False),
    ],
)
def test_nothing_outlives_the_look_nor_holds_it(
    fabricproof: Call, tools: Path, tmp_path: Path, script: str, status: int, ends: bool
) -> None:
    number = tmp_path / "pid"
    script = script.replace("PID", str(number)).replace("LOOK", f"{DATA}/tree/ibnetdiscover.txt")
    pretend(tools, "ibnetdiscover", script)
    begun = time.monotonic()
    ended = fabricproof("subnet", "check", "--link", "EDR 4x", "--timeout", "3")
    assert ended.status == status, ended.err
    assert time.monotonic() - begun < 20
    if ends:
        until(lambda: not is_running(number), "what the tool left behind still runs")


def test_a_tool_of_somebody_else_does_not_hold_us(
    fabricproof: Call, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As below sudo: the signal is refused, and the tool stays as long as it likes."""

    def refused(*_: object) -> None:
        raise PermissionError

    def noted(process: subprocess.Popen[bytes], first: int | None) -> None:
        begun.append(process)
        end(process, first)

    begun: list[subprocess.Popen[bytes]] = []
    end = group.end_group
    monkeypatch.setattr(group, "end_group", noted)
    monkeypatch.setattr(os, "killpg", refused)
    monkeypatch.setattr(group, "_END_SECONDS", 0.2)
    pretend(tools, "ibnetdiscover", "exec sleep 100")
    start = time.monotonic()
    try:
        ended = fabricproof("subnet", "check", "--timeout", "0.5")
    finally:
        for process in begun:
            process.kill()
            process.wait(timeout=20)
    assert ended.status == 69
    assert "did not end in 0.5 s" in ended.err
    assert time.monotonic() - start < 15


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_ended_ends_its_tools(tools: Path, tmp_path: Path, number: int) -> None:
    pid = tmp_path / "pid"
    pretend(tools, "ibnetdiscover", f"trap '' INT TERM HUP; echo $$ > {pid}; sleep 100; sleep 100")
    command = subprocess.Popen(
        [sys.executable, "-m", "fabricproof.cli", "subnet", "check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: pid.exists() and bool(pid.read_text().strip()), "the tool began")
        command.send_signal(number)
        _, said = command.communicate(timeout=20)
    finally:
        command.kill()
        command.wait(timeout=20)
    assert (command.returncode, said.lstrip("\n")) == (130, "fabricproof: interrupted\n")
    until(lambda: not is_running(pid), "the tool still runs")


def test_forbidden_device_files(
    fabricproof: Call, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "infiniband" / "umad0"
    device.parent.mkdir()
    device.touch()
    monkeypatch.setattr(live, "_UMAD", device.parent)
    monkeypatch.setattr(os, "access", lambda *_: False)
    pretend(tools, "ibnetdiscover", 'echo "can\'t open UMAD port" >&2; exit 255')
    ended = fabricproof("subnet", "check")
    assert ended.status == 77
    assert "--via 'sudo -n'" in ended.err


def test_no_tool_at_all(fabricproof: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = fabricproof("subnet", "check")
    assert ended.status == 69
    assert "no ibnetdiscover on this machine" in ended.err
    assert "infiniband-diags" in ended.err


@pytest.mark.parametrize(
    ("via", "words"), [("{0}", "Exec format error"), ("{0}/foo", "Not a directory")]
)
def test_what_is_no_program_is_told(
    fabricproof: Call, tmp_path: Path, via: str, words: str
) -> None:
    script = tmp_path / "script"
    script.write_text("exit 0\n")
    script.chmod(0o755)
    ended = fabricproof("subnet", "check", "--via", via.format(script))
    assert ended.status == 69
    assert f"cannot be run: {words}" in ended.err
    assert ended.err.count("\n") == 1


def test_an_empty_fabric(fabricproof: Call, tmp_path: Path) -> None:
    network = make([("leaf", 4)], [], [])
    (tmp_path / "ibnetdiscover.txt").write_text(show_discover(network))
    (tmp_path / "iblinkinfo.txt").write_text(show_linkinfo(network))
    ended = fabricproof("subnet", "check", "--from", tmp_path)
    assert ended.status == 69
    assert "the fabric is empty" in ended.err


def test_a_complaint_is_no_pass(fabricproof: Call, tools: Path) -> None:
    pretend(
        tools, "ibnetdiscover", f"echo 'bad status 110' >&2; cat '{DATA}/tree/ibnetdiscover.txt'"
    )
    ended = fabricproof("subnet", "check", "--link", "EDR 4x")
    assert ended.status == 5
    assert "part of the fabric may not have been seen: ibnetdiscover: bad status 110" in ended.out


def test_wrong_options(fabricproof: Call, tmp_path: Path) -> None:
    for options in (
        ("--from", tmp_path, "--via", "true"),
        ("--only", "fabric=ib0"),
        ("--via", "'"),
        ("--device", "mlx5_0:0"),
        ("--timeout", "inf"),
        ("--timeout", "nan"),
        ("--timeout", "-inf"),
        ("--timeout", "1e300"),
        ("--from", DATA / "tree", "--link", "EDR 4x", "--hosts", ""),
        ("--from", DATA / "tree", "--link", "EDR 4x", "--hosts", " "),
        ("--from", DATA / "tree", "--link", "EDR 4x", "--hosts", "n1!n1"),
    ):
        assert fabricproof("subnet", "check", *options).status == 2
    assert fabricproof("subnet", "check", "--link", "40GbE").status == 78
    assert fabricproof("subnet", "check", "--link", "ZDR 4x").status == 78
    assert fabricproof("subnet", "check", "--site", "vcluster").status == 78
    assert fabricproof("subnet", "check", "--from", tmp_path / "none").status == 66
    assert fabricproof("subnet", "check", "--from", tmp_path).status == 66
    assert fabricproof("subnet", "check", "--hosts", "n[1-").status == 78


@pytest.mark.parametrize("forbidden", ["looks/monday", "looks"])
def test_a_folder_that_may_not_be_read(
    fabricproof: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forbidden: str
) -> None:
    """Whoever runs this may be root, whom nothing is forbidden: the system's answer is pretended.

    What may not be searched answers so for all below it, not for itself.
    """
    folder = tmp_path / "looks" / "monday"
    folder.mkdir(parents=True)

    def refusing(real: Call) -> Call:
        def asked(path: Path, *args: Any, **options: Any) -> Any:
            if tmp_path / forbidden in Path(path).parents:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return real(path, *args, **options)

        return asked

    for name in ("stat", "open"):
        monkeypatch.setattr(Path, name, refusing(getattr(Path, name)))
    ended = fabricproof("subnet", "check", "--from", folder)
    assert ended.status == 66
    assert "cannot read: Permission denied" in ended.err
    assert ended.err.count("\n") == 1


def test_json_says_the_same(fabricproof: Call) -> None:
    folder = DATA / "tree-narrow"
    ended = fabricproof("subnet", "check", "--from", folder, "--link", "EDR 4x", "--json")
    assert ended.status == 1
    record = json.loads(ended.out)
    assert record["verdict"] == "FAIL"
    assert record["fabric"]["links"] == {"EDR 1x": 1, "EDR 4x": 22, "FDR 4x": 1}
    assert [each["where"] for each in record["findings"] if each["verdict"] == "FAIL"] == [
        {"node": "host3", "rail": "HCA-1 port 1", "peer": "leaf1 port 3"},
        {"node": "leaf1", "rail": "port 10", "peer": "spine1 port 2"},
    ]


def test_hosts_on_the_command_line(fabricproof: Call) -> None:
    look = ("subnet", "check", "--from", DATA / "tree", "--link", "EDR 4x")
    assert fabricproof(*look, "--hosts", "host[1-8]").status == 0
    assert fabricproof(*look, "--hosts", "host[1-9]").status == 4


@pytest.mark.parametrize("hosts", ["n[1-1000000000]", "n[1-1000001]", "a,n[ 1 - 2000000 ],b"])
def test_a_hostlist_without_end_is_refused_at_once(fabricproof: Call, hosts: str) -> None:
    begun = time.monotonic()
    ended = fabricproof("subnet", "check", "--from", DATA / "tree", "--hosts", hosts)
    assert ended.status == 78, ended.err
    assert "a hostlist of too many names" in ended.err
    assert ended.err.count("\n") == 1
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("hosts", ["n[1-2-3-4-5]", "n[--1]", "n[5-1]", "n[1-5/0]", "n[]"])
def test_a_wrong_range_is_no_crash(fabricproof: Call, hosts: str) -> None:
    ended = fabricproof("subnet", "check", "--from", DATA / "tree", "--hosts", hosts)
    assert ended.status == 78
    assert "no list of nodes" in ended.err


def test_the_sites_link_is_taken(fabricproof: Call) -> None:
    look = ("subnet", "check", "--from", DATA / "tree")
    assert "EDR 4x" in fabricproof(*look, "--link", "EDR 4x").out
    assert "24 of 24 links are at FDR 4x or better" in fabricproof(*look, "--site", "fdr-lab").out
    two = fabricproof(*look, "--site", "infiniband-ndr")
    assert two.status == 78
    assert "--only fabric=NAME" in two.err


def test_the_links_of_unlike_rails_are_taken(fabricproof: Call, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(
        '[site]\nname = "unlike"\n'
        '[[partitions]]\nname = "all"\nfabrics = ["ib"]\nstacks = ["mpi"]\n'
        '[[stacks]]\nname = "mpi"\nfamily = "openmpi"\nversion = "5"\n'
    )
    (tmp_path / "fabric.toml").write_text(
        '[[fabrics]]\nname = "ib"\nlink = "EDR 4x"\n'
        'rails = [{ interface = "HCA-1:1" }, { interface = "HCA-1:2", link = "HDR 4x" }]\n'
    )
    ended = fabricproof("subnet", "check", "--from", DATA / "tree", "--site", tmp_path)
    assert ended.status == 1
    assert ended.out.count("below HDR 4x") == 8
    assert "16 of 24 links are at what the site declares, or better" in ended.out
    assert "the site's rails are unlike (HCA-1:1 EDR 4x, HCA-1:2 HDR 4x)" in ended.out
