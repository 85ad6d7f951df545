"""A stack in a container over verbs: proven inside, and red without the devices of the rails.

The classic failure: nobody binds ``/dev/infiniband`` into the container, and an MPI that was not
told its path falls back to TCP and prints a number.  Made with bubblewrap on guests.

Opt in: ``pytest -m rdma`` with a cluster of guests up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rdma_session import ROOT, SITE, TEST_SECONDS, Session, port_bytes

from contained_site import ENTER, write_site

pytestmark = [pytest.mark.rdma, pytest.mark.timeout(TEST_SECONDS)]

#: what PingPong sends each way within a second and more of 80 Mb/s, at the very least
MOVED_BYTES = 1e6

PAIRS = str(ROOT / "checks" / "pt2pt" / "pairs.py")

#: libibverbs looks for devices in /sys
_ENTER = f"{ENTER} --ro-bind /sys /sys"
_DEVICES = "--dev-bind /dev/infiniband /dev/infiniband"
_UNTOLD = "--unsetenv FI_PROVIDER --unsetenv I_MPI_OFI_PROVIDER --unsetenv FI_VERBS_DEVICE_NAME"


@pytest.fixture
def contained(copied_site: Path) -> str:
    """Give a site whose stacks are one container with the devices, and two without."""
    runtimes = {
        "boxed": f"{_ENTER} {_DEVICES}",
        "blind": _ENTER,
        "untold": f"{_ENTER} {_UNTOLD}",
    }
    write_site(copied_site, ROOT / "site-configs" / SITE, runtimes)
    small = copied_site / "site.toml"
    text = small.read_text()
    small.write_text(re.sub(r"(?m)^max_message_size = .*$", 'max_message_size = "512KiB"', text))
    return str(copied_site)


def test_a_container_without_the_devices_is_invalid_or_missing_and_says_what_it_lacks(
    session: Session, contained: str
) -> None:
    status, legs = session.run("ImbPingPong", PAIRS, site=contained)
    assert status == 3, legs
    by_stack: dict[str, list[dict[str, Any]]] = {}
    for leg in (each for each in legs if not each["relation"]):
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
