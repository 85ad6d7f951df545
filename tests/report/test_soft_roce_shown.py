"""No line about a leg over Soft-RoCE without the word: nobody takes its numbers for an HCA's."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report_data import leg, quantity_of, report
from rich.console import Console

from fabricproof.cli.measure.run import result_record
from fabricproof.core.measure import Verdict
from fabricproof.history.compare.model import Group
from fabricproof.history.stats.shifts import Change
from fabricproof.history.store import Key, Matrix
from fabricproof.job.run import LegResult
from fabricproof.report.formats.junit import render_junit
from fabricproof.report.formats.page import render_html
from fabricproof.report.formats.prometheus import render_prometheus
from fabricproof.report.formats.record import report_record
from fabricproof.report.model import ReportData, with_devices
from fabricproof.report.text.drain import render_drain
from fabricproof.report.text.screen import summary
from fabricproof.report.text.terminal import render

WORD = "Soft-RoCE"


def soft(verdict: Verdict = Verdict.PASS, **changes: Any) -> LegResult:
    facts = {
        "fabric": "roce0",
        "link": "Soft-RoCE 100 Mb/s",
        "leg": "rxe0:1",
        "rails": ["rxe0:1"],
        **changes,
    }
    return leg(verdict, **facts)


def looked(verdict: Verdict, node: str, nodes: tuple[str, ...], reason: str) -> LegResult:
    """Return the preflight of the port on one node."""
    quantities = tuple(
        quantity_of(facts, rails=["rxe0:1"])
        for facts in (
            {
                "name": f"{each}.rate",
                "value": 80.0 if each == node else 100.0,
                "unit": "Mb/s",
                "verdict": verdict.value if each == node else "PASS",
                "reason": reason,
                "named": True,
                "ceiling": None,
                "reference": 100.0,
                "origin": "site",
                "message_size": None,
            }
            for each in nodes
        )
    )
    return soft(
        verdict,
        suite="preflight",
        program="links",
        nodes=nodes,
        quantities=quantities,
        reason=reason,
    )


LEGS = (
    soft(),
    soft(Verdict.FAIL),
    soft(Verdict.INVALID, leg="rxe0:1+rxe1:1", rails=["rxe0:1", "rxe1:1"]),
    soft(Verdict.MISSING, leg="", quantities=(), nodes=(), reason="the job never started"),
    soft(Verdict.SKIPPED, leg="", quantities=(), nodes=(), reason="no such program"),
)


def every_rendering(data: ReportData) -> dict[str, str]:
    out = io.StringIO()
    render(data.session, Console(file=out, width=250, soft_wrap=True, color_system=None))
    return {
        "terminal": out.getvalue(),
        "screen": "\n".join(line.text for line in summary(data, whole=True)),
        "junit": render_junit(data),
        "prometheus": render_prometheus(data),
        "drain": render_drain(data),
        "html": render_html(data),
        "json": json.dumps(report_record(data), indent=1),
        "run --json": json.dumps(result_record(data.session), indent=1),
    }


#: what begins or stands in each line about a leg, by rendering
_OF_A_LEG = {
    "terminal": ("osu_bw",),
    "screen": ("osu_bw", "not measured"),
    "junit": ("<testcase", "rxe0:1 bandwidth"),
    "prometheus": ('program="osu_bw"',),
}


@pytest.mark.parametrize("name", _OF_A_LEG)
def test_every_line_about_a_leg_says_it(name: str) -> None:
    text = every_rendering(report(*LEGS))[name]
    lines = [line for line in text.splitlines() if any(each in line for each in _OF_A_LEG[name])]
    told = [line for line in lines if "repeat the first" not in line]
    assert len(told) >= 3
    assert [line for line in told if WORD not in line] == []


@pytest.mark.parametrize("name", every_rendering(report(*LEGS)))
def test_every_rendering_says_it_and_none_says_it_of_an_adapter(name: str) -> None:
    reds = [soft(Verdict.FAIL, nodes=pair) for pair in (("n1", "n2"), ("n1", "n3"))]
    assert WORD in every_rendering(report(*reds, soft(nodes=("n2", "n3"))))[name]
    hard = [
        leg(verdict, link=link)
        for verdict in (Verdict.PASS, Verdict.FAIL)
        for link in ("EDR 4x", "100GbE", "")
    ]
    assert WORD not in every_rendering(report(*hard))[name]


def test_a_node_that_is_blamed_is_blamed_over_soft_roce() -> None:
    reds = [soft(Verdict.FAIL, nodes=pair) for pair in (("n1", "n2"), ("n1", "n3"))]
    text = render_drain(report(*reds, soft(nodes=("n2", "n3"))))
    line = next(each for each in text.splitlines() if "scontrol update NodeName=n1" in each)
    assert "rxe0:1 Soft-RoCE bandwidth_4MiB" in line
    bad = looked(Verdict.FAIL, "n1", ("n1", "n2", "n3"), "rxe0:1 on n1 runs at 80 Mb/s")
    text = render_drain(report(bad))
    line = next(each for each in text.splitlines() if "scontrol update NodeName=n1" in each)
    assert "Soft-RoCE: rxe0:1 on n1 runs at 80 Mb/s" in line


def test_history_says_it_too_and_only_of_the_soft_fabric() -> None:
    devices = {"roce0": WORD, "rxe0:1": WORD}
    soft_key, hard_key = key(fabric="roce0", leg="rxe0:1", rails="rxe0:1"), key()
    told = with_devices(
        Matrix(keys=(soft_key, hard_key), runs=(), values=np.empty((2, 0))), devices
    )
    assert [each.leg for each in told.keys] == ["rxe0:1 Soft-RoCE", "rail1"]
    assert WORD in told.keys[0].label
    group = Group(
        kind="rail",
        name="rxe0:1",
        metric="bandwidth",
        change=Change.WORSE,
        shift=None,
        counts={},
        sentence="",
    )
    assert with_devices(group, devices).where == "rail rxe0:1 Soft-RoCE"
    assert with_devices(replace(group, name="rail1"), devices).name == "rail1"
    assert with_devices(group, {}) is group


def key(**changes: Any) -> Key:
    """Return the key of the number that :func:`report_data.leg` has."""
    plain = {
        "site": "here",
        "partition": "compute",
        "fabric": "eth0",
        "stack": "openmpi5",
        "build": "51af",
        "suite": "osu",
        "program": "osu_bw",
        "tool_version": "",
        "check": "OsuBandwidth",
        "leg": "rail1",
        "rails": "rail1",
        "nodes": "n1,n2",
        "settings": "",
        "quantity": "bandwidth_4MiB",
        "unit": "MB/s",
    }
    return Key(**{**plain, **changes})
