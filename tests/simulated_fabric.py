"""An InfiniBand fabric that ibsim simulates in user space, with a real opensm on it; no root.

``libumad2sim`` (ibsim-utils) stands in for the kernel's umad devices, so that opensm and the tools
of infiniband-diags are the real ones.  Each fabric has a socket name of its own (IBSIM_SOCKNAME), a
folder of its own, and is ended by pid.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NEEDED = ("ibsim", "ibsim-run", "opensm", "ibnetdiscover", "iblinkinfo", "sminfo", "saquery")

#: seconds that a fabric has to come up, and a tool to end; two busy cores need some
PATIENCE = 40


def missing_tools() -> list[str]:
    """Return the programs that a simulated fabric needs and this machine has not."""
    return [name for name in NEEDED if shutil.which(name) is None]


needs_ibsim = pytest.mark.skipif(
    bool(missing_tools()),
    reason=f"not on this machine: {', '.join(missing_tools())} "
    "(apt-get install ibsim-utils libumad2sim0 opensm infiniband-diags)",
)


@dataclass(kw_only=True)
class SimulatedFabric:
    """One fabric: ibsim, and the managers started on it.

    Attributes:
        folder: for logs and caches.
        name: of the socket, which separates it from others.
        looks_from: the host on which the tools run.
    """

    folder: Path
    name: str = field(default_factory=lambda: f"fabricproof-{uuid.uuid4().hex[:12]}")
    looks_from: str = "host2"
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def environment(self, host: str) -> dict[str, str]:
        """Return the environment in which a program is on ``host``."""
        return os.environ | {
            "IBSIM_SOCKNAME": self.name,
            "SIM_HOST": host,
            "OSM_CACHE_DIR": str(self.folder),
            "OSM_TMP_DIR": str(self.folder),
        }

    def start(self, net: Path) -> None:
        """Start ibsim with the topology in ``net``; its console stays open."""
        self._start(["ibsim", "-s", str(net)], "ibsim.log", stdin=subprocess.PIPE)
        self._wait(lambda: "sim>" in self.said("ibsim.log"), "ibsim")

    def manage(self, host: str, priority: int = 0) -> None:
        """Start opensm on ``host`` and wait until it is master or stands by."""
        log = f"opensm-{host}.out"
        line = ["opensm", "-f", str(self.folder / f"opensm-{host}.log"), "-s", "1"]
        self._start(
            ["ibsim-run", *line, "-p", str(priority)], log, environment=self.environment(host)
        )
        self._wait(
            lambda: any(word in self.said(log) for word in ("SUBNET UP", "MASTER", "STANDBY")),
            "opensm",
        )

    def tell(self, command: str) -> None:
        """Give ``command`` to ibsim's console and wait until it has answered."""
        before = self.said("ibsim.log").count("sim>")
        console = self.processes[0].stdin
        assert console is not None
        console.write(f"{command}\n".encode())
        console.flush()
        self._wait(lambda: self.said("ibsim.log").count("sim>") > before, f"ibsim: {command}")

    def run(self, *command: str, host: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a tool on the fabric."""
        return subprocess.run(
            ["ibsim-run", *command],
            env=self.environment(host or self.looks_from),
            cwd=self.folder,  # libumad2sim writes its picture of /sys there
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until ``is_so``, no longer than :data:`PATIENCE`."""
        self._wait(is_so, what)

    def said(self, name: str) -> str:
        """Return what a program has printed so far."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def end(self) -> None:
        """End all that was started, each by its process group, the last first."""
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=PATIENCE)
            if process.stdin is not None:
                process.stdin.close()

    def _start(
        self,
        line: list[str],
        log: str,
        *,
        stdin: int = subprocess.DEVNULL,
        environment: dict[str, str] | None = None,
    ) -> None:
        with (self.folder / log).open("wb") as output:
            self.processes.append(
                subprocess.Popen(
                    line,
                    stdin=stdin,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment or self.environment(self.looks_from),
                    cwd=self.folder,
                    start_new_session=True,
                )
            )

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not is_so():
            ended = [each for each in self.processes if each.poll() is not None]
            assert not ended, f"{what}: {ended[0].args!r} ended with {ended[0].returncode}"
            assert time.monotonic() < end, f"{what} did not come up in {PATIENCE} s"
            time.sleep(0.1)
