"""The dashboard and the alerts ask for what a run's Prometheus text has, a real Prometheus says."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from report_data import leg, quantity, report

from fabricproof.core.measure import Verdict
from fabricproof.report.formats.prometheus import NUMBERS, render_prometheus

FOLDER = Path(__file__).resolve().parents[2] / "ci" / "nightly"
DASHBOARD = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((FOLDER / "prometheus-rules.yml").read_text(encoding="utf-8"))
PANELS = {panel["title"]: panel["targets"][0]["expr"] for panel in DASHBOARD["panels"]}
ALERTS = {rule["alert"]: rule["expr"] for rule in RULES["groups"][0]["rules"]}

TEXT = render_prometheus(
    report(
        leg(stack="openmpi5", quantities=(quantity(), quantity(name="latency_0B", unit="us"))),
        leg(Verdict.FAIL, check="OsuLatency"),
    )
)


def asked(expr: str) -> str:
    """The expression as Grafana sends it with every site, fabric and stack chosen."""
    return re.sub(r"\$\w+", ".*", expr)


@pytest.mark.parametrize("expr", [*PANELS.values(), *ALERTS.values()])
def test_every_metric_and_label_that_is_asked_for_is_in_the_text(expr):
    (metric,) = set(re.findall(r"fabricproof_\w+", expr))
    lines = [line for line in TEXT.splitlines() if line.startswith(metric + "{")]
    assert lines
    wanted = set(re.findall(r"(\w+)=~", expr))
    assert all(f'{label}="' in line for line in lines for label in wanted)


def test_the_numbers_of_verdicts_are_those_of_the_text():
    words = {
        int(number): each["text"]
        for panel in DASHBOARD["panels"]
        for mapping in panel["fieldConfig"]["defaults"].get("mappings", ())
        for number, each in mapping["options"].items()
    }
    known = {number: verdict.value for verdict, number in NUMBERS.items()}
    assert words == {**known, 6: "nothing judged"}


class _Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(TEXT.encode())

    def log_message(self, *_: object) -> None:
        pass


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory) -> Iterator[str]:
    """The address of a real Prometheus that scraped the text."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus here (apt-get install prometheus)")
    folder = tmp_path_factory.mktemp("prometheus")
    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Metrics)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(FOLDER / "prometheus-rules.yml")],
        "scrape_configs": [
            {
                "job_name": "node",
                "static_configs": [{"targets": [f"127.0.0.1:{exporter.server_port}"]}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{_free_port()}"
    server = subprocess.Popen(
        [
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for_samples(address)
        yield address
    finally:
        server.terminate()
        server.wait(20)
        exporter.shutdown()
        exporter.server_close()


def _wait_for_samples(address: str) -> None:
    for _ in range(300):
        try:
            if query(address, "fabricproof_run_verdict"):
                return
        except OSError:
            pass
        time.sleep(0.2)
    pytest.fail("Prometheus scraped nothing")


def query(address: str, expr: str) -> list[dict]:
    words = urllib.parse.urlencode({"query": expr})
    with urllib.request.urlopen(f"http://{address}/api/v1/query?{words}", timeout=10) as answer:
        found = json.load(answer)
    assert found["status"] == "success"
    return found["data"]["result"]


def test_prometheus_answers_every_panel(prometheus):
    answers = {title: query(prometheus, asked(expr)) for title, expr in PANELS.items()}
    assert all(answers.values()), answers
    red = answers["What is not PASS"]
    assert [(each["metric"]["check"], each["value"][1]) for each in red] == [("OsuLatency", "1")]


def test_prometheus_raises_what_is_red_or_late_and_nothing_else(prometheus):
    raised = {name for name, expr in ALERTS.items() if query(prometheus, expr)}
    assert raised == {"FabricNotProven", "FabricNightDidNotCome"}
