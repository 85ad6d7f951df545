"""How the live tests wait for a server in a guest: by asking it, never by an absolute time."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
import test_live_rdma


@pytest.fixture
def serving() -> Iterator[subprocess.Popen[str]]:
    """A server that runs."""
    with subprocess.Popen(["sleep", "60"], text=True) as process:
        yield process
        process.kill()


def _answers(monkeypatch: pytest.MonkeyPatch, *statuses: int) -> list[int]:
    """Let clients end with these; return what is left of them."""
    left = list(statuses)

    def client(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, left.pop(0))

    monkeypatch.setattr(test_live_rdma, "_vcluster", client)
    monkeypatch.setattr(test_live_rdma, "_PAUSE_SECONDS", 0.01)
    return left


def test_a_client_is_repeated_until_its_server_listens(
    serving: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _answers(monkeypatch, 1, 1, 0, 0)
    assert test_live_rdma._first_that_connects("", serving).returncode == 0
    assert left == [0]


def test_no_client_is_repeated_once_the_server_has_ended(
    serving: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving.kill()
    serving.wait()
    left = _answers(monkeypatch, 3, 0)
    assert test_live_rdma._first_that_connects("", serving).returncode == 3
    assert left == [0]


def test_a_server_that_never_listens_is_red_in_the_end(
    serving: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _answers(monkeypatch, *[1] * 1000)
    monkeypatch.setattr(test_live_rdma, "_LISTEN_SECONDS", 0.1)
    assert test_live_rdma._first_that_connects("", serving).returncode == 1
