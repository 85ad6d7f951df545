"""Fetch one source archive through the package index that pip is configured for.

pip itself can download an archive only by also preparing its metadata, which for mpi4py takes
minutes (it builds an isolated environment with a compiler).  So the index is asked directly, by
the simple API (PEP 503, PEP 691), with pip's own settings: index, extra indexes, find-links,
proxy, certificate.
"""

from __future__ import annotations

import base64
import hashlib
import html.parser
import re
import shlex
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import UnavailableError
from fabricproof.core.whole_file import write_whole
from fabricproof.stacks.environment import answer_of

#: seconds without an answer after which the index counts as not answering.
TIMEOUT_S = 60.0

_SETTING = re.compile(r"(:env:|[\w-]+)\.([\w.-]+)='?(.*?)'?\Z")


@dataclass(frozen=True, kw_only=True)
class PipSettings:
    """Where pip looks, in the order it looks.

    Attributes:
        indexes: base addresses of simple indexes, without a final slash.
        find_links: folders (and pages) with archives.
        proxy: for http and https, or None for the environment's.
        cert: bundle of certificates, or None for the system's.
    """

    indexes: tuple[str, ...]
    find_links: tuple[str, ...]
    proxy: str | None
    cert: str | None


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", *arguments]
    done = answer_of(command, seconds=120)
    if done.returncode:
        raise UnavailableError(
            f"{shlex.join(command)} failed: {done.stderr.strip().splitlines()[-1:]}",
            next_step="python3 -m ensurepip, or install your distribution's python3-pip",
        )
    return done.stdout


def parse_settings(config_list: str, download_help: str) -> PipSettings:
    """Read pip's settings from ``pip config list`` and ``pip download --help``.

    The environment wins over ``[download]`` and ``[install]`` sections and these over
    ``[global]``, as in pip; pip's built-in index is what its own help names as the default.
    """
    found: dict[str, dict[str, str]] = {}
    for line in config_list.splitlines():
        if match := _SETTING.match(line.strip()):
            found.setdefault(match[2], {})[match[1]] = match[3].replace("\\n", " ")

    def setting(name: str) -> str:
        values = found.get(name, {})
        sections = (":env:", "download", "install", "global")
        return next((values[section] for section in sections if section in values), "")

    default = re.search(r"\(default\s+(https?://[^\s)]+)", re.sub(r"\s+", " ", download_help))
    index = setting("index-url") or (default[1] if default else "")
    indexes = [] if setting("no-index") in {"1", "true", "yes", "on"} else [index]
    indexes += setting("extra-index-url").split() if indexes else []
    return PipSettings(
        indexes=tuple(address.rstrip("/") for address in indexes if address),
        find_links=tuple(setting("find-links").split()),
        proxy=setting("proxy") or None,
        cert=setting("cert") or None,
    )


def read_settings() -> PipSettings:
    """Ask the pip of this Python for its settings."""
    return parse_settings(_pip("config", "list"), _pip("download", "--help"))


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hrefs += [value for key, value in attrs if tag == "a" and key == "href" and value]


def find_link(page: str, address: str, filename: str) -> str | None:
    """Return the absolute address of ``filename`` on a simple-index page (PEP 503), or None.

    The fragment (``#sha256=...``) stays on it.
    """
    parser = _Links()
    parser.feed(page)
    for href in parser.hrefs:
        target = urllib.parse.urljoin(address, href)
        if Path(urllib.parse.unquote(urllib.parse.urlsplit(target).path)).name == filename:
            return target
    return None


def _opener(settings: PipSettings) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context(cafile=settings.cert)
    proxies = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context)
    )


def _without_secret(address: str) -> tuple[str, str | None]:
    parts = urllib.parse.urlsplit(address)
    if parts.username is None:
        return address, None
    pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return urllib.parse.urlunsplit(bare), base64.b64encode(pair.encode()).decode()


def _get(opener: urllib.request.OpenerDirector, address: str, secret: str | None) -> bytes:
    if not address.startswith(("http://", "https://")):
        raise UnavailableError("not an address of a package index", got=address)
    request = urllib.request.Request(address, headers={"Accept": "text/html"})  # noqa: S310
    if secret:
        request.add_unredirected_header("Authorization", f"Basic {secret}")
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        content: bytes = answer.read()
    return content


def _from_index(settings: PipSettings, index: str, project: str, filename: str) -> bytes:
    opener = _opener(settings)
    base, secret = _without_secret(index)
    page_address = f"{base}/{project}/"
    page = _get(opener, page_address, secret).decode("utf-8", "replace")
    link = find_link(page, page_address, filename)
    if link is None:
        raise UnavailableError(f"the index has no {filename}", source=page_address)
    same_host = urllib.parse.urlsplit(link).netloc == urllib.parse.urlsplit(base).netloc
    bare, fragment = urllib.parse.urldefrag(link)
    content = _get(opener, bare, secret if same_host else None)
    _verify(content, urllib.parse.parse_qs(fragment).get("sha256", [None])[0], bare)
    return content


def _verify(content: bytes, sha256: str | None, source: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if sha256 and digest != sha256:
        raise UnavailableError(
            "the downloaded archive is not the one expected",
            source=source,
            expected=f"sha256 {sha256}",
            got=digest,
            next_step="try again; if it stays so, the index or a proxy alters files",
        )


def _from_folders(folders: Iterable[str], filename: str) -> bytes | None:
    for folder in folders:
        path = Path(folder.removeprefix("file://")) / filename
        if path.is_file():
            return path.read_bytes()
    return None


def fetch_sdist(filename: str, sha256: str, downloads: Path) -> Path:
    """Return the source archive ``filename``, downloaded into ``downloads`` unless it is there.

    Only what has this ``sha256`` is accepted, whatever the index says.

    Raises:
        UnavailableError: no configured index or folder has it, or it has another digest.
    """
    target = downloads / filename
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256:
        return target
    settings = read_settings()
    content = _from_folders(settings.find_links, filename)
    if content is None:
        content = _from_indexes(settings, filename)
    _verify(content, sha256, filename)
    write_whole(target, content)
    return target


def _from_indexes(settings: PipSettings, filename: str) -> bytes:
    project = filename.rpartition("-")[0].replace("_", "-").lower()
    reasons: list[str] = []
    for index in settings.indexes:
        try:
            return _from_index(settings, index, project, filename)
        except (urllib.error.URLError, OSError, UnavailableError) as error:
            reasons.append(f"{_without_secret(index)[0]}: {error}")
    raise UnavailableError(
        f"cannot download {filename}",
        got="; ".join(reasons) or "no package index configured",
        next_step="check pip's index settings (pip config list), or put the file into a folder "
        "named by PIP_FIND_LINKS",
    )
