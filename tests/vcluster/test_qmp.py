"""Cables of guests, pulled through a QEMU that a small server plays."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vcluster.errors import UnavailableError
from vcluster.guests import guest

#: as QEMU 7.2 greets
_GREETING = {"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}}}
_EVENT = {
    "timestamp": {"seconds": 1, "microseconds": 2},
    "event": "NIC_RX_FILTER_CHANGED",
    "data": {"name": "rail0"},
}
Answer = Callable[[dict[str, Any]], list[Any]]


class _Qemu:
    """Answers each command of one caller with the lines that a function gives."""

    def __init__(self, path: Path, answer: Answer, greeting: list[Any]) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answer, self._greeting = answer, greeting
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(1)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            line, _ = self._server.accept()
        except OSError:
            return
        with line, line.makefile("rw") as stream:
            for each in self._greeting:
                stream.write(each if isinstance(each, str) else json.dumps(each) + "\n")
            stream.flush()
            for text in stream:
                self.asked.append(json.loads(text))
                lines = self._answer(self.asked[-1])
                if lines == ["hang up"]:
                    return
                for each in lines:
                    stream.write(each if isinstance(each, str) else json.dumps(each) + "\n")
                stream.flush()

    def end(self) -> None:
        self._server.close()
        self._thread.join(timeout=5)


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., _Qemu]]:
    started: list[_Qemu] = []
    monkeypatch.setattr(guest, "_MONITOR_SECONDS", 0.3)

    def start(answer: Answer, greeting: list[Any] | None = None) -> _Qemu:
        greeted = [_GREETING] if greeting is None else greeting
        started.append(_Qemu(tmp_path / "qmp", answer, greeted))
        return started[-1]

    yield start
    for each in started:
        each.end()


def _willing(_: dict[str, Any]) -> list[Any]:
    return [{"return": {}}]


@pytest.mark.parametrize("up", [True, False])
def test_a_cable_is_pulled_in_qemus_words(
    qemu: Callable[..., _Qemu], tmp_path: Path, up: bool
) -> None:
    server = qemu(_willing)
    guest.set_link(tmp_path / "qmp", "rail1", up=up)
    assert [each["execute"] for each in server.asked] == ["qmp_capabilities", "set_link"]
    assert server.asked[1]["arguments"] == {"name": "rail1", "up": up}


def test_events_between_the_answers_are_none(qemu: Callable[..., _Qemu], tmp_path: Path) -> None:
    server = qemu(lambda _: [_EVENT, _EVENT, {"return": {}}], [_EVENT, _GREETING])
    guest.set_link(tmp_path / "qmp", "rail0", up=False)
    assert len(server.asked) == 2


def test_a_refusal_is_quoted(qemu: Callable[..., _Qemu], tmp_path: Path) -> None:
    def refuse(asked: dict[str, Any]) -> list[Any]:
        if asked["execute"] == "qmp_capabilities":
            return _willing(asked)
        desc = "Device 'rail7' not found"
        return [_EVENT, {"error": {"class": "DeviceNotFound", "desc": desc}}]

    qemu(refuse)
    with pytest.raises(UnavailableError, match=r"pull rail7.*set_link: Device 'rail7' not found"):
        guest.set_link(tmp_path / "qmp", "rail7", up=False)


@pytest.mark.parametrize(
    ("answer", "greeting", "words"),
    [
        (_willing, [], "timed out"),
        (lambda _: [], [_GREETING], "timed out"),
        (lambda _: ["hang up"], [_GREETING], "the connection ended"),
        (lambda _: ["no json\n"], [_GREETING], "Expecting value"),
    ],
)
def test_a_silent_or_broken_qemu_is_no_cable_pulled(
    qemu: Callable[..., _Qemu], tmp_path: Path, answer: Answer, greeting: list[Any], words: str
) -> None:
    qemu(answer, greeting)
    with pytest.raises(UnavailableError, match=f"plug in rail0.*{words}"):
        guest.set_link(tmp_path / "qmp", "rail0", up=True)


def test_a_monitor_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"none\.qmp: QEMU does not take"):
        guest.set_link(tmp_path / "none.qmp", "rail0", up=True)
