"""People are told of changes, nothing of the notifier changes a verdict, nothing is lost."""

import email
import http.server
import json
import os
import socketserver
import threading

import pytest

from fabricproof.nightly.log import Notice
from fabricproof.nightly.notify import deliver
from fabricproof.site.schema import NightSpec

NOTICE = Notice(name="n1", subject="2 legs\nturned RED", text="vc2 rail1")


class Server(http.server.ThreadingHTTPServer):
    """A chat: keeps what is posted, answers with a status."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted = []
        self.answers = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/secret"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.posted.append(json.loads(self.rfile.read(length)))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def chat(monkeypatch):
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("NIGHT_URL", server.url)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def sendmail(tmp_path, monkeypatch):
    """A sendmail that keeps what it is given."""
    program = tmp_path / "sendmail"
    program.write_text('#!/bin/sh\necho "$@" > "$0.options"\ncat > "$0.mail"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return program


WEBHOOK = NightSpec(webhook="NIGHT_URL")
MAIL = NightSpec(mail_to=["ops@example.org", "root"], mail_from="night@example.org")


def send(spec, notice=NOTICE):
    waiting = {(channel, notice.name): (notice, 0) for channel in ("mail", "webhook")}
    return tuple(deliver(spec, waiting, pauses=(0.0, 0.0)))


def test_a_webhook_gets_text_as_chats_take_it(chat):
    (done,) = send(WEBHOOK)
    assert done.sent
    assert chat.posted == [{"text": "2 legs\nturned RED\nvc2 rail1"}]


def test_a_server_that_stumbles_is_asked_again(chat):
    chat.answers = [503, 429]
    (done,) = send(WEBHOOK)
    assert done.sent
    assert len(chat.posted) == 3


def test_a_server_that_refuses_is_not_asked_again_tonight(chat):
    chat.answers = [404]
    (done,) = send(WEBHOOK)
    assert (done.sent, done.reason) == (False, "webhook: answered 404")
    assert len(chat.posted) == 1


def test_the_secret_stands_in_no_message(chat):
    chat.shutdown()
    chat.answers = [500, 500, 500]
    chat.server_close()
    (done,) = send(WEBHOOK)
    assert not done.sent
    assert "secret" not in str(done)


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "hooks.example.org"])
def test_a_url_that_is_none_is_said(monkeypatch, url):
    monkeypatch.setenv("NIGHT_URL", url)
    (done,) = send(WEBHOOK)
    assert not done.sent
    assert "NIGHT_URL" in done.reason


def test_sendmail_gets_one_whole_mail(sendmail):
    (done,) = send(MAIL)
    assert done.sent
    mail = email.message_from_bytes(sendmail.with_name("sendmail.mail").read_bytes())
    assert mail["To"] == "ops@example.org, root"
    assert mail["Subject"] == "2 legs turned RED"
    assert mail.get_payload().strip() == "vc2 rail1"
    assert sendmail.with_name("sendmail.options").read_text().split() == ["-t", "-oi"]


def test_a_sendmail_that_fails_is_said_with_its_words(sendmail):
    sendmail.write_text("#!/bin/sh\ncat >/dev/null\necho queue full >&2\nexit 75\n")
    (done,) = send(MAIL)
    assert not done.sent
    assert "status 75: queue full" in done.reason


def test_no_mailer_at_all_is_said(monkeypatch):
    monkeypatch.setattr("fabricproof.nightly.notify.shutil.which", lambda *_, **__: None)
    (done,) = send(MAIL)
    assert "set smtp" in done.reason


def test_a_mail_server_that_is_not_there_is_said():
    spec = NightSpec(mail_to=["root"], smtp="127.0.0.1:1")
    (done,) = send(spec)
    assert "mail server 127.0.0.1:1" in done.reason


@pytest.mark.parametrize(("spoilt", "status"), [("RCPT", 550), ("DATA", 554), ("", 250)])
def test_whoever_a_mail_server_refuses_was_not_told(spoilt, status):
    """One of two addresses, or the mail: what the others have is no reason to forget this one."""

    class Mail(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(b"220 here\r\n")
            for line in self.rfile:
                word = line[:4].decode().upper()
                bad = word == spoilt and (word != "RCPT" or b"gone" in line)
                code = status if bad else {"DATA": 354, "QUIT": 221}.get(word, 250)
                self.wfile.write(b"%d so\r\n" % code)
                if code == 354:
                    while self.rfile.readline() not in {b".\r\n", b""}:
                        pass
                    self.wfile.write(b"250 taken\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        to = ["root@example.org", "gone@example.org"]
        port = server.server_address[1]
        (done,) = send(NightSpec(mail_to=to, smtp=f"127.0.0.1:{port}"))
        server.shutdown()
        thread.join()
    assert done.sent == (not spoilt)
    assert str(status) in done.reason or done.sent
    assert ("gone@example.org" in done.reason) == (spoilt == "RCPT")


def test_nobody_named_is_nobody_told():
    assert send(NightSpec()) == ()


def test_a_url_in_the_site_file_is_refused():
    """The deliberate bad case: the secret itself where its variable's name belongs."""
    with pytest.raises(ValueError, match="webhook"):
        NightSpec(webhook="https://hooks.example.org/T0/secret")
