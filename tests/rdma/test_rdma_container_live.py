"""A stack in a container over verbs: proven inside, and red without the devices of the rails.

The classic failure: nobody binds ``/dev/infiniband`` into the container, and an MPI that was not
told its path falls back to TCP and prints a number.  Made with bubblewrap on guests.

Opt in: ``pytest -m rdma`` with a cluster of guests up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from rdma_session import ROOT, SITE, TEST_SECONDS, Session, port_bytes

from fabricproof.stacks.catalog import stacks_root

pytestmark = [pytest.mark.rdma, pytest.mark.timeout(TEST_SECONDS)]

#: what PingPong sends each way within a second and more of 80 Mb/s, at the very least
MOVED_BYTES = 1e6

PAIRS = str(ROOT / "checks" / "pt2pt" / "pairs.py")

#: a root of its own with the guest's /usr for its image; libibverbs looks for devices in /sys
_ENTER = (
    "bwrap --tmpfs / --ro-bind {{image}} /usr --ro-bind /etc /etc --symlink usr/bin /bin "
    "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --ro-bind /sys /sys "
    "--ro-bind {stack} {stack} --bind {{folder}} {{folder}}"
)
_DEVICES = "--dev-bind /dev/infiniband /dev/infiniband"
_UNTOLD = "--unsetenv FI_PROVIDER --unsetenv I_MPI_OFI_PROVIDER --unsetenv FI_VERBS_DEVICE_NAME"

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
def contained(copied_site: Path) -> str:
    """Give a site whose stacks are one container with the devices, and two without."""
    stack = stacks_root() / "intelmpi"
    enter = _ENTER.format(stack=stack)
    runtimes = {
        "boxed": f"{enter} {_DEVICES}",
        "blind": enter,
        "untold": f"{enter} {_UNTOLD}",
    }
    given = ROOT / "site-configs" / SITE
    head = (given / "site.toml").read_text().partition("[[stacks]]")[0]
    head = re.sub(r"(?m)^stacks = .*$", f"stacks = {[*runtimes]}", head)
    head = re.sub(r"(?m)^max_message_size = .*$", 'max_message_size = "512KiB"', head)
    stacks = (
        _STACK.format(name=name, stack=stack, lib=stack / "lib", runtime=runtime)
        for name, runtime in runtimes.items()
    )
    (copied_site / "site.toml").write_text(head + "".join(stacks))
    shutil.copy(given / "fabric.toml", copied_site)
    return str(copied_site)


def test_a_container_without_the_devices_is_invalid_or_missing_and_says_what_it_lacks(
    session: Session, contained: str
) -> None:
    status, legs = session.run("ImbPingPong", PAIRS, site=contained)
    assert status == 3, legs
    by_stack: dict[str, list[dict[str, Any]]] = {}
    for leg in legs:
        by_stack.setdefault(leg["stack"], []).append(leg)
    assert {name: len(each) for name, each in by_stack.items()} == dict.fromkeys(
        ("boxed", "blind", "untold"), 2
    )
    for leg in by_stack["boxed"]:
        # Emulated cores may leave a number open; the path is proven all the same.
        assert leg["verdict"] in {"PASS", "UNJUDGED"}, leg["reason"]
        assert min(port_bytes(leg, leg["rails"][0]).values()) > MOVED_BYTES
    lacks = re.compile(r"the container on vc\d.* has no /dev/infiniband/uverbs\d that it may open")
    for name, verdict in (("blind", "MISSING"), ("untold", "INVALID")):
        for leg in by_stack[name]:
            assert leg["verdict"] == verdict, (name, leg["reason"])
            assert lacks.search(leg["reason"]), leg["reason"]
    assert all("traffic went over TCP on" in leg["reason"] for leg in by_stack["untold"])
