"""An alarm is told, whatever the network answers and wherever the night is killed."""

import dataclasses
import os
import socketserver
import threading
import time

import pytest
from nights import leg, ran

from fabricproof.nightly import notify
from fabricproof.nightly.log import Notice
from fabricproof.nightly.night import NightMeans, spend
from fabricproof.nightly.notify import deliver
from fabricproof.site import load_site
from fabricproof.site.schema import NightSpec

SECRET = "T0SECRET"
WEBHOOK = NightSpec(webhook="NIGHT_URL")
NOTICE = Notice(name="n1", subject="rail1 turned RED", text="vc2")
ANSWERS = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "nothing": b"",
    "half a header": b"HTTP/1.1 20",
    "a long line": b"HTTP/1.1 200 " + b"x" * 70_000 + b"\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    "a status of words": b"HTTP/1.1 abc OK\r\n\r\n",
    "Latin": b"HTTP/1.1 500 \xff\xfe\r\n\r\n",
}
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Raw(socketserver.ThreadingTCPServer):
    """Answers any request with the bytes it was given."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, answer=GOOD):
        super().__init__(("127.0.0.1", 0), Talk)
        self.answer = answer
        self.drips = threading.Event()
        self.got = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/{SECRET}"


class Talk(socketserver.StreamRequestHandler):
    def handle(self):
        request = self.rfile.readline()
        length = 0
        while line := self.rfile.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        self.server.got.append(request + self.rfile.read(length))
        if callable(self.server.answer):
            self.server.answer(self.wfile)
        else:
            self.wfile.write(self.server.answer)


@pytest.fixture
def server(monkeypatch):
    made = Raw()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("NIGHT_URL", made.url)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield made
    made.drips.set()
    made.shutdown()
    thread.join()
    made.server_close()


def send(spec, notice=NOTICE):
    waiting = {(channel, notice.name): (notice, 0) for channel in ("mail", "webhook")}
    return tuple(deliver(spec, waiting, pauses=(0.0,)))


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_is_no_http_is_a_failed_delivery(server, answer):
    server.answer = answer
    (done,) = send(WEBHOOK)
    assert not done.sent
    assert done.reason.startswith("webhook: ")
    assert SECRET not in done.reason


@pytest.mark.parametrize(
    "url",
    [
        f"http://example.org/services/{SECRET} TOKEN",
        f"http://example.org:port/{SECRET}",
        f"http://user:{SECRET}@example.org/",
        f"http://[{SECRET}/",
        f"http:///{SECRET}",
        f"http://example.org/{SECRET}\n",
        f"http://example.org/{SECRET}\u00e9",
        f"http://example.org/{SECRET}\udcff",
        f"http://mail..example.org/{SECRET}",
        f"http://127.0.0.1:1/{SECRET}",
        f"{SECRET}",
    ],
)
def test_a_url_stands_in_no_message_whatever_is_wrong_with_it(monkeypatch, capfd, url):
    monkeypatch.setitem(os.environ, "NIGHT_URL", url)
    (done,) = send(WEBHOOK)
    assert not done.sent
    assert SECRET not in str(done) + "".join(capfd.readouterr())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failed_delivery(server, status):
    """The other place would be asked without the text, and its 200 taken for "told"."""
    place = server.url.replace(SECRET, "elsewhere")
    server.answer = f"HTTP/1.1 {status} Moved\r\nLocation: {place}\r\n\r\n".encode()
    (done,) = send(WEBHOOK)
    assert not done.sent
    assert f"answered {status}, a redirect" in done.reason
    assert len(server.got) == 1


def test_a_server_that_drips_is_given_up_in_time(server, monkeypatch):
    def drip(out):
        out.write(b"HTTP/1.1 200 OK\r\n")
        while not server.drips.wait(0.02):
            out.write(b"a")
            out.flush()

    server.answer = drip
    monkeypatch.setattr(notify, "DEADLINE_SECONDS", 0.3)
    begun = time.monotonic()
    (done,) = deliver(WEBHOOK, {("webhook", "n1"): (NOTICE, 0)}, pauses=())
    assert time.monotonic() - begun < 10
    assert (done.sent, done.reason) == (False, "webhook: not done in 0.3 seconds")


def test_bytes_that_are_no_text_are_told_all_the_same(server):
    (done,) = send(WEBHOOK, Notice(name="n", subject="rail\udcff RED", text="driver \ud800\x00"))
    assert done.sent
    assert b"RED" in server.got[0]


@pytest.mark.parametrize("error", [RecursionError, MemoryError, LookupError, AssertionError])
def test_what_no_library_should_raise_is_a_failed_delivery_too(server, monkeypatch, error):
    def broken(*_, **__):
        raise error(SECRET)

    monkeypatch.setattr("requests.post", broken)
    (done,) = send(WEBHOOK)
    assert (done.sent, done.reason) == (False, f"webhook: {error.__name__}")


def test_a_channel_that_is_down_holds_the_night_once(server):
    """A week of old notices must not cost a week of pauses."""
    server.answer = b"HTTP/1.1 503 Later\r\n\r\n"
    waiting = {("webhook", f"old{number}"): (NOTICE, 1) for number in range(4)}
    done = list(deliver(WEBHOOK, waiting, pauses=(0.0, 0.0)))
    assert [each.sent for each in done] == [False] * 4
    assert len(server.got) == 3 + 1 + 1 + 1


class Killed(BaseException):
    """What kill -9 is to a test: nothing of ours catches it."""


@pytest.fixture
def nights(tmp_path, server):
    site = dataclasses.replace(load_site("vcluster"), night=WEBHOOK)

    def spend_one(number, verdict):
        run_id = f"202611{number + 1:02}T020000Z-00000a"
        means = NightMeans(
            site=site,
            perflogs=tmp_path,
            night=run_id,
            arguments=("-r", "-t", "nightly"),
            run=lambda *_: ran(leg(verdict), run_id=f"{run_id}look"),
            first=lambda: ran(leg(verdict), run_id=run_id),
            usable=lambda _: (),
            say=lambda _: None,
        )
        return spend(means)

    spend_one.path = tmp_path / "vcluster" / ".night" / "events.jsonl"
    return spend_one


def told(server):
    return [each for each in server.got if b"turned RED" in each]


@pytest.mark.parametrize("torn", [0.0, 0.5, 0.9, 1.0], ids=["before", "half", "most", "behind"])
@pytest.mark.parametrize("write", range(7))
def test_a_night_killed_at_any_write_tells_its_alarm_once(nights, server, monkeypatch, write, torn):
    """Every line that is written, in turn: nothing of it, a part of it or all of it."""
    nights(0, "PASS")
    real, count, lost = os.write, [], []

    def killed(descriptor, data):
        count.append(1)
        if len(count) - 1 != write:
            return real(descriptor, data)
        lost.append(bytes(data))
        real(descriptor, bytes(data)[: int(len(data) * torn)])
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("fabricproof.core.records.os.write", killed)
        try:
            nights(1, "FAIL")
        except Killed:
            pass
        else:
            assert write >= len(count), "it was to be killed"
    nights(2, "FAIL")
    # What was sent and not yet kept as told is the one thing that is told twice.
    was_sent = any(b'"kind": "told"' in each for each in lost) and torn < 1
    assert len(told(server)) == 1 + was_sent


def test_a_night_killed_while_it_tells_tells_the_next_time(nights, server, monkeypatch):
    nights(0, "PASS")

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("fabricproof.nightly.night.deliver", killed)
        with pytest.raises(Killed):
            nights(1, "FAIL")
    assert not told(server)
    done = nights(2, "FAIL")
    assert len(told(server)) == 1
    assert [each.sent for each in done.told] == [True]
    assert nights(3, "FAIL").told == ()


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_bad_answer_costs_neither_verdict_nor_alarm(nights, server, monkeypatch, answer):
    monkeypatch.setattr("fabricproof.nightly.notify.PAUSES_SECONDS", ())
    monkeypatch.setattr("fabricproof.nightly.notify.time.sleep", lambda _: None)
    nights(0, "PASS")
    server.answer = answer
    first = nights(1, "FAIL")
    assert (first.status, first.result.verdict.value) == (None, "FAIL")
    assert [each.sent for each in first.told] == [False]
    server.answer, server.got = GOOD, []
    nights(2, "FAIL")
    assert len(told(server)) == 1
