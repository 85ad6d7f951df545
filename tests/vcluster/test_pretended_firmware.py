"""The wrapper that tells another firmware: in a mount namespace of its own, as on a node."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from vcluster.errors import ConfigError
from vcluster.rails import apply


@pytest.mark.parametrize("text", ["", "a\nb", "x" * 41, "$(reboot)", "a;b", "`x`"])
def test_what_no_firmware_is_called_is_refused_before_anything_is_done(text: str) -> None:
    with pytest.raises(ConfigError, match="firmware"):
        apply.require_firmware(text)


STEPS = """
mount -t tmpfs none /run
real=$(ethtool -i "$4")
sh -c "$1" sh "$4" "9.9 (X)" "$3"
ethtool -i "$4" | grep firmware
[ "$(ethtool -i "$4" | grep -v firmware)" = "$(echo "$real" | grep -v firmware)" ] && echo rest same
ethtool --version >/dev/null && echo answers
sh -c "$2" sh other
ethtool -i "$4" | grep -c 9.9
sh -c "$2" sh "$4"
[ "$(ethtool -i "$4")" = "$real" ] && echo same again
mount | grep -c ethtool
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.skipif(shutil.which("ethtool") is None, reason="there is no ethtool")
def test_one_line_of_one_interface_is_changed_and_all_comes_back() -> None:
    names = sorted(path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo")
    told = [
        name
        for name in names
        if subprocess.run(["ethtool", "-i", name], capture_output=True, check=False).returncode == 0
    ]
    if not told:
        pytest.skip("no interface tells its driver")
    done = subprocess.run(
        [
            *("unshare", "--mount", "sh", "-c", STEPS, "sh"),
            *(apply._PUT_IN, apply._TAKE_OUT, apply._WRAPPER, told[0]),
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if "unshare" in done.stderr or "permission" in done.stderr.lower():
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert done.stdout.splitlines() == [
        "firmware-version: 9.9 (X)",
        "rest same",
        "answers",
        "1",
        "same again",
        "0",
    ]
