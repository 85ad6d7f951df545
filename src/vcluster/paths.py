"""Where a virtual cluster keeps its files, and how it may be called."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vcluster.errors import ConfigError

#: on every Linux machine, emptied at boot, and short enough for unix sockets (108 bytes).
BASE = Path("/run/fabricproof/vcluster")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,23}\Z")


class Paths:
    """The files of a cluster.

    Attributes:
        run: everything of it; ``down`` removes this folder.
        lock: held while the cluster is being changed.
        state: what runs, as JSON.
        etc: configuration, the same on all nodes.
        slurm_conf: Slurm's configuration file.
        log: logs of all daemons of all nodes.
        bin: Slurm's commands, for use from the machine outside.
        munge: the munge socket's folder; each node has its own behind this path.
        munge_socket: the munge socket of whichever node looks.
        head: the head's own file system in memory: database and the controller's state.
        mysql_socket: MariaDB's socket, seen by the head alone.

    Raises:
        ConfigError: no cluster may be called so, ``..`` for instance: its folder would be another.
    """

    def __init__(self, name: str) -> None:
        if not _NAME.match(name):
            raise ConfigError(
                "not a name for a virtual cluster",
                expected="1 to 24 of a-z, 0-9 and -, starting with a letter",
                got=repr(name),
            )
        self.name = name
        self.run = BASE / name
        self.lock = BASE / f"{name}.lock"
        self.state = self.run / "state.json"
        self.etc = self.run / "etc"
        self.slurm_conf = self.etc / "slurm.conf"
        self.log = self.run / "log"
        self.bin = self.run / "bin"
        self.munge = self.run / "munge"
        self.munge_socket = self.munge / "munge.socket.2"
        self.head = self.run / "head"
        self.mysql_socket = self.head / "mysql.sock"


def project_root() -> Path:
    """Return the checkout this runs from, else $FABRICPROOF_ROOT, else the working folder."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file():
        return checkout
    return Path(os.environ.get("FABRICPROOF_ROOT") or Path.cwd())


def failure_logs() -> Path:
    """Return where the logs of the last failed ``up`` are kept."""
    return project_root() / ".vcluster" / "logs"
