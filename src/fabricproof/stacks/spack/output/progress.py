"""What ``spack concretize`` and ``spack install`` are doing, read from the lines they print.

Spack 1.1's default installer, not on a terminal (``lib/spack/spack/installer.py`` of v1.1.1:
``_print_installed_pkg``, ``_print_timer``, ``install_msg``, ``_log_prefix``).  What is not known
is passed over: another release may print more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

#: colours, cursor movements and window titles of a terminal.
_CONTROL = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n|$)")

#: ``name-version-hash``; a version starts with a digit wherever the benchmarks need it to.
_ID = re.compile(
    r"(?P<name>[a-z0-9_][\w.-]*?)-(?P<version>\d[^/]*|[^/-]+)-(?P<digest>[a-z0-9]{32})"
)
_PACKAGE_ID = r"(?P<id>\S+-[a-z0-9]{32})"

_CONCRETIZED = re.compile(r"==> Concretized (?P<specs>\d+) specs?")
_LISTED = re.compile(
    r"(?: - |\[[e+^-]\])\s+(?P<short>[a-z0-9]{7})\s+\^?(?P<name>[\w.-]+)@=?(?P<version>[\w.-]+)"
)
_INSTALLING = re.compile(rf"==> Installing {_PACKAGE_ID}(?: \[(?P<number>\d+)/(?P<total>\d+)\])?")
_EXTRACTING = re.compile(rf"==> Extracting {_PACKAGE_ID} from binary cache")
_FETCHING = re.compile(r"==> (?P<how>Fetching|Using cached archive:) (?P<source>\S+)")
_PHASE = re.compile(r"==> (?:\d+: )?(?P<name>[\w.-]+): Executing phase: '(?P<phase>[^']+)'")
_SUCCESS = re.compile(rf"==> (?:\d+: )?\S+: Successfully installed {_PACKAGE_ID}")
_SECONDS = re.compile(r"\bTotal: (?P<time>[\d.hms ]+?)\.?$")
_EXTERNAL = re.compile(rf"\[\+\] (?P<prefix>.+) \(external {_PACKAGE_ID}\)$")
_PREFIX = re.compile(r"\[\+\] (?P<prefix>/.+)$")
_SKIPPED = re.compile(r"==> Warning: Skipping build of (?P<id>\S+) since (?P<cause>\S+) failed")
_ERROR = re.compile(r"==> Error: (?:Failed to install (?P<name>[\w.-]+) due to )?(?P<reason>.*)")
#: said by Spack about itself, not about the package in hand.
_OF_SPACK = re.compile(r"Exception occurred in writer daemon|Keyboard interrupt")
_NEXT = re.compile(r"==> |\[\+\] ")


class Origin(StrEnum):
    """How an installed package came to be where it is."""

    BUILT = "built"
    BUILD_CACHE = "build cache"
    REUSED = "reused"


@dataclass(frozen=True, kw_only=True)
class Concretized:
    """The solver is done: ``specs`` roots are concrete now."""

    specs: int


@dataclass(frozen=True, kw_only=True)
class Started:
    """Work on a package began; it is the ``number``-th of ``total``, externals counted."""

    package: str
    version: str
    number: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class Fetching:
    """A source archive of ``package`` is on its way; ``cached``: from Spack's own downloads."""

    package: str | None
    source: str
    cached: bool = False


@dataclass(frozen=True, kw_only=True)
class Phase:
    """``package`` is in ``phase``: ``configure``, ``build``, ``install``, ..."""

    package: str
    phase: str


@dataclass(frozen=True, kw_only=True)
class PackageInstalled:
    """A package is in its prefix; ``seconds`` is None where nothing was done for it."""

    package: str
    version: str
    prefix: str
    origin: Origin
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class External:
    """The site's own package is used where it lies."""

    package: str
    version: str
    prefix: str


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A package could not be installed; ``log`` is its build log, where it came that far."""

    package: str
    reason: str
    log: str | None = None


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A package was left out because one that it needs failed."""

    package: str
    because: str


Event: TypeAlias = (
    Concretized | Started | Fetching | Phase | PackageInstalled | External | Failed | Skipped
)


@dataclass(frozen=True, kw_only=True)
class SpackProgress:
    """How far a call has come.

    Attributes:
        total: packages, externals counted; None until somebody knows.  With everything installed
            before, Spack visits fewer than it is told of: the end is the exit status, never
            ``done == total``.
        package: what is worked on, None between two.
        phase: of ``package``.
        built: names, in order; likewise the others.
    """

    total: int | None = None
    package: str | None = None
    phase: str | None = None
    built: tuple[str, ...] = ()
    from_cache: tuple[str, ...] = ()
    reused: tuple[str, ...] = ()
    externals: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def done(self) -> int:
        """Packages that need no more work, externals counted."""
        return sum(map(len, (self.built, self.from_cache, self.reused, self.externals)))


_COLUMNS: Mapping[object, str] = {
    Origin.BUILT: "built",
    Origin.BUILD_CACHE: "from_cache",
    Origin.REUSED: "reused",
    External: "externals",
    Failed: "failed",
    Skipped: "skipped",
}


def advance(state: SpackProgress, event: Event) -> SpackProgress:
    """Return the state after ``event``."""
    match event:
        case Started():
            return _started(state, event)
        case Fetching():
            return replace(state, phase="fetch")
        case Phase():
            return replace(state, package=event.package, phase=event.phase)
        case PackageInstalled() | Failed():
            return replace(_counted(state, event), package=None, phase=None)
        case External() | Skipped():
            return _counted(state, event)
    return state


def _started(state: SpackProgress, event: Started) -> SpackProgress:
    total = event.total if event.total is not None else state.total
    if event.package in state.from_cache:
        # Spack says "Installing" after it is done with what comes from a build cache.
        return replace(state, total=total)
    return replace(state, package=event.package, phase=None, total=total)


def _counted(
    state: SpackProgress, event: PackageInstalled | External | Failed | Skipped
) -> SpackProgress:
    kind = event.origin if isinstance(event, PackageInstalled) else type(event)
    column = _COLUMNS[kind]
    changed: dict[str, Any] = {column: (*getattr(state, column), event.package)}
    return replace(state, **changed)


def plain(line: str) -> str:
    """Return ``line`` without colours, window titles and its end."""
    return _CONTROL.sub("", line).rstrip("\r\n")


class Reader:
    """Turns the lines of one call into events, one line at a time.

    Args:
        names: Spack's full hash -> package name, out of the ``spack.lock``: names an id exactly.
            Without it a name ends where a digit follows a hyphen, as nearly all do.
        total: packages of the lock, externals counted, until Spack says its own.
    """

    def __init__(self, *, names: Mapping[str, str] | None = None, total: int | None = None) -> None:
        self.state = SpackProgress(total=total)
        self._names = dict(names or {})
        self._origin = Origin.REUSED
        self._seconds: float | None = None
        self._timing = False
        self._failing: Failed | None = None
        self._log_follows = False

    def feed(self, line: str) -> tuple[Event, ...]:
        """Return what ``line`` says, mostly nothing; :attr:`state` has moved on accordingly."""
        text = plain(line)
        ended = self._flush() if _NEXT.match(text) else ()
        return ended + self._kept(self._event(text))

    def close(self) -> tuple[Event, ...]:
        """Return what was still open at the end of the output."""
        return self._flush()

    def _kept(self, event: Event | None) -> tuple[Event, ...]:
        if event is None:
            return ()
        self.state = advance(self.state, event)
        return (event,)

    def _flush(self) -> tuple[Event, ...]:
        failing, self._failing, self._log_follows = self._failing, None, False
        return self._kept(failing)

    def _event(self, text: str) -> Event | None:
        if text.startswith("==> "):
            return self._message(text)
        if text.startswith("[+] "):
            return self._place(text)
        if listed := _LISTED.match(text):
            self._names.setdefault(listed["short"], listed["name"])
        elif self._timing and (total := _SECONDS.search(text)):
            self._seconds, self._timing = _seconds(total["time"]), False
        elif self._failing:
            self._log_line(text)
        return None

    def _message(self, text: str) -> Event | None:
        if found := _CONCRETIZED.match(text):
            return Concretized(specs=int(found["specs"]))
        # Of what failed before, it is the log again, which --show-log-on-error repeats.
        if (found := _PHASE.match(text)) and found["name"] not in self.state.failed:
            return Phase(package=found["name"], phase=found["phase"])
        if found := _FETCHING.match(text):
            cached = found["how"] != "Fetching"
            return Fetching(package=self.state.package, source=found["source"], cached=cached)
        if found := _SKIPPED.match(text):
            return Skipped(
                package=self._split(found["id"])[0], because=self._split(found["cause"])[0]
            )
        if found := _ERROR.match(text):
            self._fails(found["name"] or self.state.package, found["reason"])
            return None
        return self._work(text)

    def _work(self, text: str) -> Event | None:
        if _SUCCESS.match(text):
            self._timing = True
            if self._origin is Origin.REUSED:
                self._origin = Origin.BUILT
        elif found := _EXTRACTING.match(text):
            self._origin = Origin.BUILD_CACHE
            name, version = self._split(found["id"])
            return Started(package=name, version=version)
        elif found := _INSTALLING.match(text):
            number, total = (int(found[key]) if found[key] else None for key in ("number", "total"))
            name, version = self._split(found["id"])
            return Started(package=name, version=version, number=number, total=total)
        return None

    def _place(self, text: str) -> Event | None:
        if found := _EXTERNAL.match(text):
            name, version = self._split(found["id"])
            return External(package=name, version=version, prefix=found["prefix"])
        found = _PREFIX.match(text)
        if found is None:
            return None
        name, version = self._split(found["prefix"].rstrip("/").rpartition("/")[2])
        origin, seconds = self._origin, self._seconds
        self._origin, self._seconds, self._timing = Origin.REUSED, None, False
        return PackageInstalled(
            package=name, version=version, prefix=found["prefix"], origin=origin, seconds=seconds
        )

    def _fails(self, package: str | None, reason: str) -> None:
        """Open a failure of the package in hand; its log comes some lines further down."""
        if package is None or package in self.state.failed or _OF_SPACK.match(reason):
            return
        self._failing = Failed(package=package, reason=reason.strip())
        self._origin, self._seconds = Origin.REUSED, None

    def _log_line(self, text: str) -> None:
        assert self._failing is not None
        if self._log_follows and text.startswith("  /"):
            self._failing = replace(self._failing, log=text.strip())
        self._log_follows = text.startswith("See build log for details:")

    def _split(self, identity: str) -> tuple[str, str]:
        """Return name and version of an id; the whole id as the name where it is no id."""
        found = _ID.fullmatch(identity)
        if found is None:
            return identity, ""
        digest = found["digest"]
        name = self._names.get(digest) or self._names.get(digest[:7]) or found["name"]
        if not identity.startswith(f"{name}-"):
            return found["name"], found["version"]
        return name, identity[len(name) + 1 : -len(digest) - 1]


def _seconds(text: str) -> float:
    """Return the seconds of Spack's ``1h 2m 3.45s``."""
    worth = {"h": 3600.0, "m": 60.0, "s": 1.0}
    return sum(float(number) * worth[unit] for number, unit in re.findall(r"([\d.]+)([hms])", text))
