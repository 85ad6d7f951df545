"""What ``spack install`` is doing, read from the lines it prints.

Spack 1.1's default installer, not on a terminal (``lib/spack/spack/installer.py`` of v1.1.1:
``_print_installed_pkg``, ``install_msg``, ``_log_prefix``).  What is not known is passed over:
another release may print more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: colours, cursor movements and window titles of a terminal.
_CONTROL = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n|$)")

#: ``name-version-hash``; a version starts with a digit wherever the benchmarks need it to.
_ID = re.compile(r"(?P<name>[a-z0-9_][\w.-]*?)-(?:\d[^/]*|[^/-]+)-(?P<digest>[a-z0-9]{32})")
_PACKAGE_ID = r"(?P<id>\S+-[a-z0-9]{32})"

_LISTED = re.compile(
    r"(?: - |\[[e+^-]\])\s+(?P<short>[a-z0-9]{7})\s+\^?(?P<name>[\w.-]+)@=?[\w.-]+"
)
_INSTALLING = re.compile(rf"==> Installing {_PACKAGE_ID}(?: \[\d+/(?P<total>\d+)\])?")
_EXTRACTING = re.compile(rf"==> Extracting {_PACKAGE_ID} from binary cache")
_FETCHING = re.compile(r"==> (?:Fetching|Using cached archive:) \S+")
_PHASE = re.compile(r"==> (?:\d+: )?(?P<name>[\w.-]+): Executing phase: '(?P<phase>[^']+)'")
_EXTERNAL = re.compile(rf"\[\+\] .+ \(external {_PACKAGE_ID}\)$")
_PREFIX = re.compile(r"\[\+\] (?P<prefix>/.+)$")
_ERROR = re.compile(r"==> Error: (?:Failed to install (?P<name>[\w.-]+) due to )?(?P<reason>.*)")
#: said by Spack about itself, not about the package in hand.
_OF_SPACK = re.compile(r"Exception occurred in writer daemon|Keyboard interrupt")


@dataclass(kw_only=True)
class Failed:
    """A package could not be installed; ``log`` is its build log, where it came that far."""

    package: str
    log: str | None = None


def plain(line: str) -> str:
    """Return ``line`` without colours, window titles and its end."""
    return _CONTROL.sub("", line).rstrip("\r\n")


class Reader:
    """Follows one call, line by line.

    Attributes:
        total: packages, externals counted; None until Spack says.  With everything installed
            before, Spack visits fewer than it says: the end is the exit status, never
            ``done == total``.
        done: packages that need no more work, externals counted.
        package: what is worked on, None between two.
        phase: of ``package``: ``fetch``, ``configure``, ``build``; None before the first.
        from_cache: packages that came out of a build cache, in order.
        failed: packages that could not be installed, in order.
    """

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0
        self.package: str | None = None
        self.phase: str | None = None
        self.from_cache: tuple[str, ...] = ()
        self.failed: list[Failed] = []
        self._names: dict[str, str] = {}
        self._is_from_cache = False
        self._tells_failure = False
        self._log_follows = False

    def feed(self, line: str) -> bool:
        """Take ``line`` and tell whether a package or a phase began with it."""
        text = plain(line)
        if text.startswith("==> "):
            self._tells_failure = self._log_follows = False
            return self._message(text)
        if text.startswith("[+] "):
            self._tells_failure = self._log_follows = False
            self._place(text)
        elif listed := _LISTED.match(text):
            self._names.setdefault(listed["short"], listed["name"])
        elif self._tells_failure:
            self._log_line(text)
        return False

    def _message(self, text: str) -> bool:
        # Of what failed before, it is the log again, which --show-log-on-error repeats.
        if (found := _PHASE.match(text)) and not self._has_failed(found["name"]):
            self.package, self.phase = found["name"], found["phase"]
        elif _FETCHING.match(text):
            self.phase = "fetch"
        elif found := _ERROR.match(text):
            self._fails(found["name"] or self.package, found["reason"])
            return False
        elif found := _EXTRACTING.match(text):
            self._is_from_cache = True
            self._begin(found["id"])
        elif found := _INSTALLING.match(text):
            self.total = int(found["total"]) if found["total"] else self.total
            self._begin(found["id"])
        else:
            return False
        return True

    def _begin(self, identity: str) -> None:
        name = self._name(identity)
        # Spack says "Installing" after it is done with what comes from a build cache.
        if name not in self.from_cache:
            self.package, self.phase = name, None

    def _place(self, text: str) -> None:
        if _EXTERNAL.match(text):
            self.done += 1
        elif found := _PREFIX.match(text):
            if self._is_from_cache:
                name = self._name(found["prefix"].rstrip("/").rpartition("/")[2])
                self.from_cache = (*self.from_cache, name)
            self.done += 1
            self._end()

    def _end(self) -> None:
        self.package = self.phase = None
        self._is_from_cache = False

    def _has_failed(self, package: str) -> bool:
        return any(each.package == package for each in self.failed)

    def _fails(self, package: str | None, reason: str) -> None:
        """Note a failure of the package in hand; its log comes some lines further down."""
        if package is None or self._has_failed(package) or _OF_SPACK.match(reason):
            return
        self.failed.append(Failed(package=package))
        self._tells_failure = True
        self._end()

    def _log_line(self, text: str) -> None:
        if self._log_follows and text.startswith("  /"):
            self.failed[-1].log = text.strip()
        self._log_follows = text.startswith("See build log for details:")

    def _name(self, identity: str) -> str:
        """Return the name in an id; the whole id where it is no id."""
        found = _ID.fullmatch(identity)
        if found is None:
            return identity
        listed = self._names.get(found["digest"][:7])
        return listed if listed and identity.startswith(f"{listed}-") else found["name"]
