"""Checks of a family: those of one file alone, and those that users keep elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

from checks_as_reframe_sees_them import CHECKS, ROOT, SITES, dry_run, reframe

from fabricproof.job.leg import read_plan
from fabricproof.job.relation import Ratio
from fabricproof.site import load_site

#: A file as docs/how-to-add-a-check.md has it, of the name of one of ours.
OWN = '''"""A site's own."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark
from fabricproof.rfm.checks.family import family

osu = family(rfm.simple_test, __name__, PairBenchmark, "pt2pt", "ours", suite="osu")
osu("OwnPersistent", "osu_bw_persistent", "{level}", "What it measures", net_paths="each")


@rfm.simple_test
class OwnLatency(PairBenchmark):
    """What it measures."""

    suite = "osu"
    program = "osu_latency"
    family_tags = ["pt2pt", "full"]
    net_paths = "all"
'''


def listed(folder: Path, *arguments: str) -> set[str]:
    out = reframe(load_site(str(SITES / "vcluster")), folder, "-l", *arguments)
    return set(re.findall(r"^- (\w+)", out, flags=re.MULTILINE))


def test_one_file_is_loaded_alone_and_one_folder_with_all_its_files(tmp_path: Path) -> None:
    verbs = listed(tmp_path, "-c", str(CHECKS / "pt2pt" / "verbs.py"))
    assert len(verbs) == 6
    assert all(name.startswith("Perftest") for name in verbs)
    pt2pt = listed(tmp_path, "-c", str(CHECKS / "pt2pt"))
    assert pt2pt > verbs | {"OsuBandwidth", "LinkPreflight", "OsuDuplex", "PlacementLatency"}
    assert "OsuBcast" not in pt2pt


def test_a_file_kept_elsewhere_is_loaded_beside_ours_of_the_same_name(tmp_path: Path) -> None:
    own = tmp_path / "pairs.py"
    own.write_text(OWN.format(level="nightly"))
    names = listed(tmp_path, "-c", str(own), "-c", str(CHECKS / "pt2pt"))
    assert names > {"OwnPersistent", "OwnLatency", "OsuBandwidth"}
    assert listed(tmp_path, "-c", str(own), "-t", "ours") == {"OwnPersistent"}
    assert listed(tmp_path, "-c", str(own), "-t", "nightly") == {"OwnPersistent"}


def test_a_level_that_there_is_not_loses_its_file_and_reframe_says_so(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN.format(level="daily"))
    out = reframe(load_site(str(SITES / "vcluster")), tmp_path, "-l", "-c", str(own))
    assert re.search(r"skipping test file '\S*own.py': .*daily", out)


def test_the_page_s_check_of_two_legs_and_a_ratio_plans_them(tmp_path: Path, stacks: Path) -> None:
    page = (ROOT / "docs" / "how-to-add-a-check.md").read_text("utf-8")
    _, text, _ = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    own = tmp_path / "puts.py"
    own.write_text(text)
    cases = dry_run(load_site(str(SITES / "vcluster")), tmp_path, "-c", str(own))
    plans = [read_plan(Path(case["stagedir"])) for case in cases if case["result"] == "pass"]
    assert plans, [case["fail_reason"] or case["skip_reason"] for case in cases]
    for plan in plans:
        names = [leg.name for leg in plan.legs if not leg.in_turn and leg.rails == ("rail0",)]
        assert names == ["rail0", "rail0.puts"]
        assert all(isinstance(each.what, Ratio) and each.turns for each in plan.relations)
    assert all(case["result"] in {"pass", "skip"} for case in cases)
