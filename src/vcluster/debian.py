"""Which Debian the machine outside is, and where it takes its packages from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from vcluster.errors import UnavailableError

#: where Debian's own machines are reached, if the machine's sources name no mirror
_MIRROR = "http://deb.debian.org/debian"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True, kw_only=True)
class Release:
    """The release that head and guests have in common: Slurm, Python and MPI must be the same.

    Attributes:
        suite: its code name, as ``bookworm``.
        mirror: where its packages come from.
    """

    suite: str
    mirror: str

    @property
    def sources(self) -> tuple[str, ...]:
        """The lines of sources.list(5) for its packages."""
        return (self.line(self.suite), self.line(f"{self.suite}-updates"))

    def line(self, suite: str) -> str:
        """Return the line of sources.list(5) for a suite of the same mirror."""
        return f"deb [signed-by={_KEYRING}] {self.mirror} {suite} main"


def host_release(etc: Path = Path("/etc")) -> Release:
    """Return the release of this machine.

    Raises:
        UnavailableError: it is not Debian.
    """
    try:
        text = (etc / "os-release").read_text()
    except OSError:
        text = ""
    told = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', text, re.MULTILINE))
    suite = told.get("VERSION_CODENAME", "")
    if told.get("ID") != "debian" or not suite:
        raise UnavailableError(
            "guests with Soft-RoCE are made of Debian's packages, of the machine's own release",
            source=str(etc / "os-release"),
            expected="Debian 12 or newer",
            got=told.get("PRETTY_NAME") or told.get("ID") or "nothing",
            next_step="a Debian machine or container; the kind 'namespaces' works here",
        )
    return Release(suite=suite, mirror=_mirror(etc / "apt"))


def _mirror(apt: Path) -> str:
    """Return the first mirror of Debian that the machine's own sources name."""
    more = sorted((apt / "sources.list.d").glob("*"))
    # apt reads no others (sources.list(5)): an administrator sets a source aside by its name.
    read = [path for path in more if path.suffix in {".list", ".sources"}]
    for path in [apt / "sources.list", *read]:
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError):
            continue
        lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        found = re.search(
            r"(?:^deb\s+(?:\[[^]]*\]\s*)?|^URIs:\s*)(https?://\S+/debian)/?(?:\s|$)", lines, re.M
        )
        if found:
            return found[1]
    return _MIRROR
