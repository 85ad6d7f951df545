"""Nights on a real Slurm: a cut rail, a flutter, two nights at once, a night that is ended.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).  Rails that
a test makes worse are mended again.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from busy_machine import others_hold_the_cores
from fabricproof.nightly.lock import LOCK_FILE, night_lock

ROOT = Path(__file__).parents[2]
FABRICPROOF = Path(sys.executable).with_name("fabricproof")
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"
ONE_CHECK = ("-t", "nightly", "-n", "^OsuBandwidth%fabric=eth0", "-p", "^openmpi5$")
KEY = "compute/eth0/openmpi5/OsuBandwidth/rail1"

#: the rail is measured one way and the other, and held against its twin: all may be red
TURNED_RED = r"(1 leg|[23] legs) turned RED \(vc2 rail"

#: of one leg, or of both
VC2_IS_TO_BLAME = r"vc2 on rail1 is red with others (too|in \d+ of \d+ legs), vc1 is green"

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(500),
    pytest.mark.skipif(not BIN.is_dir(), reason=f"no virtual cluster {CLUSTER!r} is up"),
]


class Chat(http.server.ThreadingHTTPServer):
    """Keeps what is posted to it."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Posts)
        self.texts = []


class Posts(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.texts.append(json.loads(self.rfile.read(length))["text"])
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def chat():
    server = Chat()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Nights:
    """Calls ``fabricproof`` for a site of its own name, with perflogs and mail of its own."""

    def __init__(self, folder, chat):
        self.perflogs = folder / "perflogs"
        self.site = folder / "site"
        shutil.copytree(ROOT / "site-configs" / "vcluster", self.site)
        mailer = folder / "bin" / "sendmail"
        mailer.parent.mkdir()
        self.mails = folder / "mails"
        mailer.write_text(f"#!/bin/sh\ncat >> {self.mails}\n")
        mailer.chmod(0o755)
        with (self.site / "site.toml").open("a") as file:
            file.write('\n[night]\nmail_to = ["root"]\nwebhook = "NIGHT_URL"\n')
        self.environment = {
            **os.environ,
            "PATH": f"{mailer.parent}{os.pathsep}{os.environ['PATH']}",
            "FABRICPROOF_VCLUSTER": CLUSTER,
            "NIGHT_URL": f"http://127.0.0.1:{chat.server_port}/",
            # Not below /tmp: every node has its own.
            "FABRICPROOF_WORK": str(ROOT / "work" / "slurm-tests"),
            "FABRICPROOF_PERFLOGS": str(self.perflogs),
        }

    def start(self, *arguments, command="nightly"):
        return subprocess.Popen(
            [FABRICPROOF, command, "--site", str(self.site), "--json", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments, command="nightly"):
        process = self.start(*arguments, command=command)
        out, err = process.communicate(timeout=450)
        assert out, err
        return process.returncode, json.loads(out)


@pytest.fixture
def nights(tmp_path, chat):
    return Nights(tmp_path, chat)


def fault(node, rail, *what):
    command = [FABRICPROOF, "vcluster", "fault", "--name", CLUSTER, node, rail, *what]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


@pytest.fixture
def slow_vc2():
    """The second rail of vc2 at half its rate, until the test is over or says so."""
    fault("vc2", "rail1", "--rate", "100mbit")
    yield lambda: fault("vc2", "rail1", "--clear")
    fault("vc2", "rail1", "--clear")


@pytest.fixture
def cut_vc1():
    """The second rail of vc1 without a carrier."""
    fault("vc1", "rail1", "--down")
    yield
    fault("vc1", "rail1", "--clear")


def of_rail1(night):
    """Return what the night confirmed of the leg over the second rail, there and not back."""
    (found,) = (each for each in night["confirmations"] if each["leg"] == "rail1")
    return found


def confirmed_and_told(nights, chat):
    """A night on a slow rail; return what it says once it was checked."""
    status, night = nights.call(*ONE_CHECK)
    assert night["verdict"] in {"FAIL", "UNJUDGED"}
    confirmation = of_rail1(night)
    unseen = "not seen" in {each["outcome"] for each in confirmation["looks"]}
    if (unseen or night["verdict"] == "UNJUDGED") and others_hold_the_cores():
        pytest.skip(f"others hold the cores, so that looks are open: {confirmation['sentence']}")
    assert (status, night["verdict"]) == (1, "FAIL")
    assert confirmation["finding"] == "CONFIRMED"
    assert confirmation["blamed"] == ["vc2"]
    assert confirmation["rails"] == ["rail1"]
    looks = {each["role"]: each["outcome"] for each in confirmation["looks"]}
    assert looks["same nodes"] == "red"
    assert sorted(looks.values()) == ["green", "red", "red"]
    assert re.search(VC2_IS_TO_BLAME, confirmation["sentence"]), confirmation["sentence"]
    assert len(chat.texts) == 1
    assert re.search(TURNED_RED, chat.texts[0])
    assert re.search(TURNED_RED, nights.mails.read_text())
    return night


def test_a_slow_rail_is_confirmed_and_the_node_blamed_and_told(nights, chat, slow_vc2):
    confirmed_and_told(nights, chat)


@pytest.mark.long
def test_what_stays_red_is_told_once_and_what_is_mended_is_told(nights, chat, slow_vc2):
    """Three nights: red, still red, mended.  Told after the first and the third only."""
    first = confirmed_and_told(nights, chat)
    status, second = nights.call(*ONE_CHECK)
    assert status == 1
    assert second["changes"] == []
    assert len(chat.texts) == 1

    slow_vc2()
    status, third = nights.call(*ONE_CHECK)
    assert (status, third["confirmations"]) == (0, [])
    assert ("GREEN", KEY) in [(each["kind"], each["leg"]) for each in third["changes"]]
    assert len(chat.texts) == 2
    files = nights.perflogs.glob("vcluster/compute/*.jsonl")
    lines = [line for file in files for line in file.read_text().splitlines()]
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds.count("confirmation") == len(first["confirmations"]) + len(second["confirmations"])


@pytest.fixture
def lossy_vc2():
    """The second rail of vc2 loses three of a thousand packets that come in."""
    fault("vc2", "rail1", "--loss", "0.3", "--direction", "in")
    yield
    fault("vc2", "rail1", "--clear")


@pytest.mark.long
def test_a_lossy_rail_is_confirmed_and_its_end_blamed(nights, lossy_vc2):
    """A ping-pong sends both ways, so that a look sees the loss whichever end is the first."""
    status, night = nights.call(
        "-t", "nightly", "-n", "^OsuLatency%fabric=eth0", "-p", "^openmpi5$"
    )
    assert (status, night["verdict"]) == (1, "FAIL")
    (confirmation,) = (each for each in night["confirmations"] if each["leg"] == "rail1")
    assert confirmation["finding"] == "CONFIRMED"
    assert "rail1 from vc1 to vc2" in confirmation["first_reason"]
    assert confirmation["blamed"] == ["vc2"]
    assert re.search(VC2_IS_TO_BLAME, confirmation["sentence"]), confirmation["sentence"]


@pytest.mark.long
def test_a_cut_rail_is_red_with_every_partner(nights, cut_vc1):
    status, night = nights.call(*ONE_CHECK)
    assert status in {1, 3, 4}
    confirmation = of_rail1(night)
    assert confirmation["finding"] == "CONFIRMED"
    assert confirmation["blamed"] == ["vc1"]
    assert confirmation["leg"] == "rail1"


@pytest.mark.long
def test_a_fault_that_is_gone_when_looked_at_again_is_a_flutter(nights, chat, slow_vc2):
    """The run is made first, as ci/night.sh does, and handed over by its identity."""
    status, run = nights.call(*ONE_CHECK, command="run")
    assert (status, run["verdict"]) == (1, "FAIL")
    slow_vc2()
    status, night = nights.call(run["run_id"])
    assert (status, night["verdict"], night["first_verdict"]) == (0, "PASS", "FAIL")
    confirmation = of_rail1(night)
    assert (confirmation["finding"], confirmation["flutters"]) == ("NOT REPEATED", 1)
    assert confirmation["looks"][0]["outcome"] == "green"
    assert chat.texts == []
    _, again = nights.call(run["run_id"])
    assert again["first_verdict"] == "FAIL", "what a night adds to a run must not change the run"
    assert of_rail1(again)["flutters"] == 1, "one run flutters once"


def queue(states):
    command = [BIN / "squeue", "-h", "-t", states, "-o", "%40j"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def wait_until(there, process):
    deadline = time.monotonic() + 120
    while not there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.2)


def test_two_nights_at_once_and_one_that_is_ended(nights):
    """The second leaves with 75; SIGTERM ends the first in order, and the lock is free again."""
    first = nights.start(*ONE_CHECK)
    folder = nights.perflogs / "vcluster" / ".night"
    lock = folder / LOCK_FILE
    try:
        wait_until(lambda: lock.exists() and f"process {first.pid}" in lock.read_text(), first)
        second = nights.start(*ONE_CHECK)
        _, err = second.communicate(timeout=60)
        assert second.returncode == 75
        assert f"process {first.pid}" in err
        wait_until(lambda: "rfm_OsuBandw" in queue("R"), first)
        first.send_signal(signal.SIGTERM)
        _, err = first.communicate(timeout=120)
    finally:
        first.kill()
    assert first.returncode == 130
    assert "Traceback" not in err
    with night_lock(folder):
        pass
    assert "rfm_OsuBandw" not in queue("R,PD"), "its job was left running"
    state = (nights.perflogs / "vcluster" / ".night" / "events.jsonl").read_text().splitlines()
    assert "ended early" in [json.loads(line).get("ended") for line in state]


def test_a_scheduler_that_is_not_there_is_a_state_of_its_own(nights, chat):
    nights.environment["FABRICPROOF_VCLUSTER"] = "nosuchcluster"
    process = nights.start(*ONE_CHECK)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 69
    night = json.loads(out)
    assert (night["ended"], night["red_now"]) == ("no scheduler", [])
    assert len(chat.texts) == 1


def test_the_sbatch_script_is_taken_by_slurm():
    """Slurm itself says that it would start the script of ci/nightly."""
    done = subprocess.run(
        [BIN / "sbatch", "--test-only", ROOT / "ci" / "nightly" / "night.sbatch"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "to start at" in done.stderr
