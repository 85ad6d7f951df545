"""A pretended firmware: what ``ethtool -i`` of one node tells of a rail.

A veth has no firmware to flash.  A wrapper is bind-mounted over ethtool in that node's mount
namespace only; it asks the real one and changes a line of its answer.  Taking the last pretended
firmware out takes the wrapper away.
"""

from __future__ import annotations

import re

from vcluster.errors import ConfigError
from vcluster.node import Space
from vcluster.processes import run

#: on the node's own file system: gone with the node
_FOLDER = "/run/fabricproof-ethtool"

#: what vendors write: "16.35.4030 (MT_0000000008)", "229.1.123.0/pkg 229.1.123.0"
_FIRMWARE = re.compile(r"[A-Za-z0-9_.()/ -]{1,40}")

_WRAPPER = rf"""#!/bin/sh
if [ "$1" = -i ] && [ -r "{_FOLDER}/firmware/$2" ]; then
    {_FOLDER}/real "$@" | while IFS= read -r line; do
        case $line in
        firmware-version:*) echo "firmware-version: $(cat "{_FOLDER}/firmware/$2")" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
    exit
fi
exec {_FOLDER}/real "$@"
"""

_PUT_IN = rf"""set -eu
tool=$(command -v ethtool)
mkdir -p {_FOLDER}/firmware
printf '%s\n' "$2" >"{_FOLDER}/firmware/$1"
if [ ! -x {_FOLDER}/real ]; then
    cp "$tool" {_FOLDER}/real
    printf '%s' "$3" >{_FOLDER}/wrapper
    chmod 755 {_FOLDER}/wrapper
    mount --bind {_FOLDER}/wrapper "$tool"
fi
"""

_TAKE_OUT = rf"""
rm -f "{_FOLDER}/firmware/$1"
[ -d {_FOLDER}/firmware ] || exit 0
rmdir {_FOLDER}/firmware 2>/dev/null || exit 0
umount "$(command -v ethtool)" && rm -rf {_FOLDER}
"""


def pretend(space: Space, interface: str, firmware: str | None) -> None:
    """Let a node's ethtool tell ``firmware`` of an interface; None: the truth again.

    Raises:
        UnavailableError: ethtool is not there, or the node refuses.
    """
    if firmware is None:
        run([*space.enter(), "sh", "-c", _TAKE_OUT, "sh", interface])
        return
    run([*space.enter(), "sh", "-c", _PUT_IN, "sh", interface, firmware, _WRAPPER])


def require_firmware(firmware: str | None) -> None:
    """Refuse what no firmware is called.

    Raises:
        ConfigError: no words that a firmware could be called.
    """
    if firmware is not None and not _FIRMWARE.fullmatch(firmware):
        raise ConfigError(
            "not a firmware version",
            expected="up to 40 letters, digits and . _ - ( ) /",
            got=repr(firmware),
        )
