"""Where a virtual cluster keeps its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: on every Linux machine, emptied at boot, and short enough for unix sockets (108 bytes).
BASE = Path("/run/fabricproof/vcluster")


@dataclass(frozen=True)
class Paths:
    """The run folder of the cluster ``name``; ``down`` removes all of it."""

    name: str

    @property
    def run(self) -> Path:
        """Everything of this cluster."""
        return BASE / self.name

    @property
    def lock(self) -> Path:
        """Held while the cluster is being changed."""
        return BASE / f"{self.name}.lock"

    @property
    def state(self) -> Path:
        """What runs, as JSON."""
        return self.run / "state.json"

    @property
    def etc(self) -> Path:
        """Configuration, the same on all nodes."""
        return self.run / "etc"

    @property
    def slurm_conf(self) -> Path:
        """Slurm's configuration file."""
        return self.etc / "slurm.conf"

    @property
    def log(self) -> Path:
        """Logs of all daemons of all nodes."""
        return self.run / "log"

    @property
    def bin(self) -> Path:
        """Slurm's commands, for use from the machine outside."""
        return self.run / "bin"

    @property
    def munge(self) -> Path:
        """The munge socket's folder; each node has its own behind this path."""
        return self.run / "munge"

    @property
    def munge_socket(self) -> Path:
        """The munge socket of whichever node looks."""
        return self.munge / "munge.socket.2"

    @property
    def head(self) -> Path:
        """The head's own file system in memory: database and the controller's state."""
        return self.run / "head"

    @property
    def mysql_socket(self) -> Path:
        """MariaDB's socket, seen by the head alone."""
        return self.head / "mysql.sock"


def project_root() -> Path:
    """Return the checkout this package runs from, else the working folder."""
    checkout = Path(__file__).resolve().parents[2]
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def failure_logs() -> Path:
    """Return where the logs of the last failed ``up`` are kept."""
    return project_root() / ".vcluster" / "logs"
