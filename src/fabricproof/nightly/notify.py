"""Tell people what changed: by mail and by webhook; a notice that fails is kept and sent again.

Nothing here changes a verdict.  What is to be told is in the log before anybody is told, so that no
end of the process loses it, and the next night tries again what was not sent.
"""

from __future__ import annotations

import os
import shutil
import smtplib
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from email.message import EmailMessage
from urllib.parse import urlsplit

from fabricproof.nightly.log import Notice, Told
from fabricproof.site import NightSpec, host_and_port

#: a mail server or a webhook may be silent for so long, in s
TIMEOUT_SECONDS = 20

#: One try may take so long in all, in s, with the name looked up and every byte of an answer that
#: drips; a night holds its lock meanwhile.
DEADLINE_SECONDS = 60.0

#: tries in one night, and how long after each of them
PAUSES_SECONDS = (2.0, 8.0)

#: Slack takes 40 000 characters of text, Mattermost 16 383, Teams 28 KB; mail takes all
WEBHOOK_CHARACTERS = 12_000


def channels(spec: NightSpec) -> tuple[str, ...]:
    """Return the channels that the site names: ``mail``, ``webhook``."""
    named = {"mail": spec.mail_to, "webhook": spec.webhook}
    return tuple(name for name, value in named.items() if value)


def deliver(
    spec: NightSpec,
    waiting: Mapping[tuple[str, str], tuple[Notice, int]],
    *,
    pauses: Sequence[float] = PAUSES_SECONDS,
) -> Iterator[Told]:
    """Send each notice that waits for a channel of the site; yield what became of it, one by one.

    No exception of a library leaves this: it is the reason of a delivery that failed.
    """
    failed: set[str] = set()
    for (channel, name), (notice, _) in waiting.items():
        if channel not in channels(spec):
            continue
        error = None
        # A channel that is down is asked once for every further notice, not three times.
        for pause in (*(() if channel in failed else pauses), None):
            error = _try(spec, channel, notice)
            if error is None or error.for_good or pause is None:
                break
            time.sleep(pause)
        if error is not None:
            failed.add(channel)
        yield Told(notice=name, channel=channel, sent=error is None, reason=str(error or ""))


def _try(spec: NightSpec, channel: str, notice: Notice) -> _NotSentError | None:
    """Try once, for :data:`DEADLINE_SECONDS` at most; return why it was not sent, None if it was.

    Time-outs of sockets hold for one read, and none for a look-up: the try has a thread of its own,
    which is left behind if it does not come back.
    """
    found = [_NotSentError(f"{channel}: not done in {DEADLINE_SECONDS:g} seconds")]

    def run() -> None:
        try:
            {"mail": _mail, "webhook": _post}[channel](spec, notice)
            found.clear()
        except _NotSentError as error:
            found[:] = [error]
        except Exception as error:  # an alarm outlives whatever a library raises
            found[:] = [_NotSentError(f"{channel}: {type(error).__name__}")]

    thread = threading.Thread(target=run, name=f"tell by {channel}", daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    return next(iter(found), None)


class _NotSentError(Exception):
    """A try failed; ``for_good`` where another one tonight would fail likewise."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


def _plain(text: str) -> str:
    """Return text that every coding can hold: a driver's or a file's name may be any bytes."""
    return text.encode(errors="replace").decode()


def _mail(spec: NightSpec, notice: Notice) -> None:
    message = EmailMessage()
    # A header of one line, whatever a node's driver called itself.
    message["Subject"] = _plain(" ".join(notice.subject.split()))
    message["To"] = ", ".join(spec.mail_to)
    if spec.mail_from:
        message["From"] = spec.mail_from
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(_plain(notice.text))
    if spec.smtp is None:
        _by_command(message, spec.mail_to)
        return
    host, port = host_and_port(spec.smtp)
    try:
        with smtplib.SMTP(host, port, timeout=TIMEOUT_SECONDS) as server:
            refused = server.send_message(
                message, from_addr=spec.mail_from or "fabricproof@localhost"
            )
    except (OSError, smtplib.SMTPException) as error:
        said = " ".join(str(error).split())[:200]
        raise _NotSentError(f"mail server {spec.smtp}: {said}") from None
    if refused:  # The others have it, and get it again: twice is better than never.
        said = ", ".join(f"{name} ({status})" for name, (status, _) in sorted(refused.items()))
        raise _NotSentError(f"mail server {spec.smtp} refused {said}", for_good=True)


def _by_command(message: EmailMessage, to: Sequence[str]) -> None:
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/lib"))
    sendmail = shutil.which("sendmail", path=folders)
    mail = shutil.which("mail", path=folders)
    if sendmail:
        command, given = [sendmail, "-t", "-oi"], message.as_bytes()
    elif mail:
        command = [mail, "-s", str(message["Subject"]), "--", *to]
        given = message.get_content().encode()
    else:
        raise _NotSentError("no sendmail and no mail command here; set smtp", for_good=True)
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _NotSentError(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.decode(errors="replace").split())[-200:]
        raise _NotSentError(f"{command[0]} ended with status {done.returncode}: {said}")


def _post(spec: NightSpec, notice: Notice) -> None:
    """POST ``{"text": ...}``, which Slack, Mattermost and Teams take alike.

    The URL is a secret and stands in no message.
    """
    url = os.environ.get(spec.webhook or "", "")
    if what := _why_no_url(url):
        raise _NotSentError(f"webhook: variable {spec.webhook} {what}", for_good=True)
    text = _plain(f"{notice.subject}\n{notice.text}")
    if len(text) > WEBHOOK_CHARACTERS:
        text = f"{text[:WEBHOOK_CHARACTERS]}\n... (cut; fabricproof report has all)"
    import requests  # noqa: PLC0415 - start-up time

    try:
        # A redirect would ask the other place without the text, and take its 200.
        answer = requests.post(
            url, json={"text": text}, timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
    except requests.RequestException as error:  # its text has the URL
        raise _NotSentError(f"webhook: {type(error).__name__}") from None
    if answer.status_code >= 300:
        code = answer.status_code
        for_good = code < 500 and code not in {408, 425, 429}
        redirect = ", a redirect: the text does not get there" if code < 400 else ""
        raise _NotSentError(f"webhook: answered {code}{redirect}", for_good=for_good)


def _why_no_url(url: str) -> str:
    """Return why nothing can be posted to ``url``, without a word of it; empty if it can."""
    if not url:
        return "is not set"
    parts = urlsplit(url) if all("!" <= each <= "~" for each in url) else None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.netloc:
        return "is no http or https URL"
    return "is no URL of a webhook: it holds a user before @" if "@" in parts.netloc else ""
