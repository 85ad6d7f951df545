"""A stack in a container, made with bubblewrap: proven inside, and cut off from what it is told.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from slurm_session import ROOT, Session, is_green

from fabricproof.stacks.catalog import stacks_root

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

SITE = ROOT / "site-configs" / "vcluster"

#: a root of its own with the machine's /usr for its image
_ENTER = (
    "bwrap --tmpfs / --ro-bind {{image}} /usr --ro-bind /etc /etc --symlink usr/bin /bin "
    "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev "
    "--ro-bind {stack} {stack} --bind {{folder}} {{folder}}"
)

_STACK = """
[[stacks]]
name = "{name}"
family = "intelmpi"
version = "2021.18.1"
suites = {{ imb = "{stack}/bin" }}
environment = {{ I_MPI_ROOT = "{stack}", LD_LIBRARY_PATH = "{lib}", FI_PROVIDER_PATH = "{lib}" }}

[stacks.container]
runtime = "{runtime}"
image = "/usr"
library = "{lib}/libmpi.so.12"
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    stack = stacks_root() / "intelmpi"
    enter = _ENTER.format(stack=stack)
    runtimes = {
        "boxed": enter,
        "cut": f"{enter} --unsetenv FI_TCP_IFACE --unsetenv FI_PROVIDER",
        "bare": "env IMAGE={image}",
    }
    head = (SITE / "site.toml").read_text().partition("[[stacks]]")[0]
    head = re.sub(r"(?m)^stacks = .*$", f"stacks = {[*runtimes]}", head)
    stacks = (
        _STACK.format(name=name, stack=stack, lib=stack / "lib", runtime=runtime)
        for name, runtime in runtimes.items()
    )
    (tmp_path / "site.toml").write_text(head + "".join(stacks))
    shutil.copy(SITE / "fabric.toml", tmp_path)
    return tmp_path


def test_a_container_is_proven_and_one_that_is_cut_off_is_invalid_with_the_reason(
    session: Session, site: Path
) -> None:
    _, record = session.run(
        *("--site", str(site), "-c", str(ROOT / "checks" / "pt2pt" / "pairs.py")),
        *("-n", "^ImbPingPong%", "-p", "boxed", "-p", "cut", "-p", "bare"),
    )
    legs = [leg for leg in record["legs"] if leg["verdict"] != "SKIPPED"]
    by_stack = {
        name: [leg for leg in legs if leg["stack"] == name] for name in ("boxed", "cut", "bare")
    }
    assert {name: len(each) for name, each in by_stack.items()} == dict.fromkeys(by_stack, 2), legs
    assert all(map(is_green, by_stack["boxed"])), by_stack["boxed"]
    # One of the two rails is the one that it takes by itself.
    red = [leg for leg in by_stack["cut"] if leg["verdict"] == "INVALID"]
    assert red, by_stack["cut"]
    reasons = [each["reason"] for leg in red for each in leg["quantities"]]
    assert any("has no FI_PROVIDER=tcp in its environment" in each for each in reasons), reasons
    for leg in by_stack["bare"]:
        assert leg["verdict"] == "INVALID", leg
        reasons = [each["reason"] for each in leg["quantities"]]
        assert any("ran with the root of the node itself, not in /usr" in each for each in reasons)
