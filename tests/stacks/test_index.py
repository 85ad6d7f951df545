"""Fetching a source archive: pip's settings are honoured, and only the right bytes are kept."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from fabricproof.core.errors import UnavailableError
from fabricproof.stacks import index
from fabricproof.stacks.index import PipSettings, fetch_sdist, find_link, parse_settings

HELP = (
    "  -i, --index-url <url>  Base URL of the Python Package Index (default\n"
    "                         https://b.example/simple). This should point to a"
)
ARCHIVE = b"an archive"
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
NAME = "mpi4py-4.1.2.tar.gz"


def test_pips_own_default_is_used_where_nothing_is_configured():
    settings = parse_settings("", HELP)
    assert settings.indexes == ("https://b.example/simple",)
    assert settings.proxy is None


def test_environment_beats_command_section_beats_global():
    lines = [
        "global.index-url='https://g.example/simple/'",
        "download.index-url='https://d.example/simple/'",
    ]
    assert parse_settings("\n".join(lines), HELP).indexes == ("https://d.example/simple",)
    lines.append(":env:.index-url='https://e.example/simple/'")
    assert parse_settings("\n".join(lines), HELP).indexes == ("https://e.example/simple",)


def test_extra_indexes_folders_proxy_and_certificate_are_read():
    settings = parse_settings(
        "global.extra-index-url='https://x.example/s\\nhttps://y.example/s'\n"
        "global.proxy='http://proxy.example:3128'\n:env:.cert='/c.pem'\n"
        ":env:.find-links='/a /b'",
        HELP,
    )
    assert (settings.indexes) == (
        "https://b.example/simple",
        "https://x.example/s",
        "https://y.example/s",
    )
    assert settings.find_links == ("/a", "/b")
    assert (settings.proxy, settings.cert) == ("http://proxy.example:3128", "/c.pem")


def test_no_index_leaves_only_folders():
    settings = parse_settings(":env:.no-index='1'\n:env:.find-links='/a'", HELP)
    assert (settings.indexes, settings.find_links) == ((), ("/a",))


def test_a_link_is_found_by_its_file_name_alone():
    page = f'<a href="../../f/{NAME}.asc">x</a><a href="../../f/{NAME}#sha256={SHA256}">x</a>'
    found = find_link(page, "https://b.example/simple/mpi4py/", NAME)
    assert f"https://b.example/f/{NAME}#sha256={SHA256}" == found
    assert find_link(page, "https://b.example/simple/mpi4py/", "mpi4py-4.1.1.tar.gz") is None


class _Index(http.server.BaseHTTPRequestHandler):
    seen: ClassVar[list[tuple[str, str | None]]] = []
    archive = ARCHIVE

    def do_GET(self) -> None:
        type(self).seen.append((self.path, self.headers.get("Authorization")))
        page = f'<a href="/f/{NAME}#sha256={SHA256}">{NAME}</a>'.encode()
        known = {"/simple/mpi4py/": page, f"/f/{NAME}": type(self).archive}
        self.send_response(200 if self.path in known else 404)
        self.end_headers()
        self.wfile.write(known.get(self.path, b""))

    def log_message(self, *_arguments: object) -> None:
        """Be quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    _Index.seen, _Index.archive = [], ARCHIVE
    with http.server.HTTPServer(("127.0.0.1", 0), _Index) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def _configure(monkeypatch: pytest.MonkeyPatch, *indexes: str, links: tuple[str, ...] = ()) -> None:
    settings = PipSettings(indexes=indexes, find_links=links, proxy=None, cert=None)
    monkeypatch.setattr(index, "read_settings", lambda: settings)


def test_the_archive_is_downloaded_once(
    monkeypatch: pytest.MonkeyPatch, server: str, tmp_path: Path
):
    _configure(monkeypatch, f"http://{server}/simple")
    assert fetch_sdist(NAME, SHA256, tmp_path).read_bytes() == ARCHIVE
    requests = len(_Index.seen)
    fetch_sdist(NAME, SHA256, tmp_path)
    assert (2, requests) == (requests, len(_Index.seen))
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_credentials_go_in_the_header_and_into_no_message(
    monkeypatch: pytest.MonkeyPatch, server: str, tmp_path: Path
):
    _configure(monkeypatch, f"http://me:secret@{server}/simple")
    fetch_sdist(NAME, SHA256, tmp_path)
    assert all((header or "").startswith("Basic ") for _, header in _Index.seen)
    with pytest.raises(UnavailableError) as refusal:
        fetch_sdist("other-1.tar.gz", SHA256, tmp_path)
    assert "secret" not in str(refusal.value)


def test_an_altered_archive_is_refused_and_not_kept(
    monkeypatch: pytest.MonkeyPatch, server: str, tmp_path: Path
):
    _configure(monkeypatch, f"http://{server}/simple")
    _Index.archive = b"something else"
    with pytest.raises(UnavailableError, match="not the one expected"):
        fetch_sdist(NAME, SHA256, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_archives_needs_no_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    folder, downloads = tmp_path / "links", tmp_path / "downloads"
    folder.mkdir()
    downloads.mkdir()
    (folder / NAME).write_bytes(ARCHIVE)
    _configure(monkeypatch, links=(folder.as_uri(),))
    assert fetch_sdist(NAME, SHA256, downloads).read_bytes() == ARCHIVE


def test_a_damaged_download_is_fetched_again(
    monkeypatch: pytest.MonkeyPatch, server: str, tmp_path: Path
):
    (tmp_path / NAME).write_bytes(ARCHIVE[:3])
    _configure(monkeypatch, f"http://{server}/simple")
    assert fetch_sdist(NAME, SHA256, tmp_path).read_bytes() == ARCHIVE


def test_a_dead_index_is_one_message_with_a_next_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    _configure(monkeypatch, "http://127.0.0.1:1/simple")
    with pytest.raises(UnavailableError, match=f"cannot download {NAME}.*next: check pip's"):
        fetch_sdist(NAME, SHA256, tmp_path)
    _configure(monkeypatch)
    with pytest.raises(UnavailableError, match="no package index configured"):
        fetch_sdist(NAME, SHA256, tmp_path)
