"""Tell people what changed: by mail and by webhook; a notice that fails is kept and sent again.

Nothing here changes a verdict.  What could not be sent is a line of the state file, and the next
night tries again.
"""

from __future__ import annotations

import json
import os
import shutil
import smtplib
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

from fabricproof.site.schema import NightSpec

#: a mail server or a webhook may take so long for one try
TIMEOUT_SECONDS = 20

#: tries in one night, and how long after each of them
PAUSES_SECONDS = (2.0, 8.0)

#: nights in which an old notice is tried again; after a week nobody wants it
NIGHTS_TRIED = 7

#: Slack takes 40 000 characters of text, Mattermost 16 383, Teams 28 KB; mail takes all
WEBHOOK_CHARACTERS = 12_000


@dataclass(frozen=True, kw_only=True)
class Notice:
    """What is to be told.

    Attributes:
        name: identity, of the night that made it.
        subject: one line.
        text: the rest.
        tries: nights in which it was tried before.
    """

    name: str
    subject: str
    text: str
    tries: int = 0


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What became of a notice on one channel."""

    notice: Notice
    channel: str
    sent: bool
    reason: str = ""

    def record(self) -> dict[str, Any]:
        """Return the line of the state file."""
        return {
            "kind": "notice",
            "notice": self.notice.name,
            "subject": self.notice.subject,
            "text": self.notice.text,
            "tries": self.notice.tries + 1,
            "channel": self.channel,
            "sent": self.sent,
            "reason": self.reason,
        }


def channels(spec: NightSpec) -> tuple[str, ...]:
    """Return the channels that the site names: ``mail``, ``webhook``."""
    return tuple(
        name for name, named in (("mail", spec.mail_to), ("webhook", spec.webhook)) if named
    )


def unsent(notices: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, Notice], ...]:
    """Return each (channel, notice) whose last try failed and that may be tried again."""
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    for line in notices:
        last[line["channel"], line["notice"]] = line
    return tuple(
        (
            channel,
            Notice(name=name, subject=line["subject"], text=line["text"], tries=line["tries"]),
        )
        for (channel, name), line in last.items()
        if not line["sent"] and line["tries"] < NIGHTS_TRIED
    )


def deliver(
    spec: NightSpec,
    notice: Notice | None,
    waiting: Sequence[tuple[str, Notice]],
    *,
    pauses: Sequence[float] = PAUSES_SECONDS,
) -> tuple[Delivery, ...]:
    """Send what waited since earlier nights, then ``notice``, on every channel of the site."""
    known = channels(spec)
    due = [(channel, old) for channel, old in waiting if channel in known]
    due += [(channel, notice) for channel in known if notice is not None]
    return tuple(_delivered(spec, channel, each, pauses) for channel, each in due)


def _delivered(spec: NightSpec, channel: str, notice: Notice, pauses: Sequence[float]) -> Delivery:
    send: Callable[[NightSpec, Notice], None] = {"mail": _mail, "webhook": _post}[channel]
    reason = ""
    for pause in (*pauses, None):
        try:
            send(spec, notice)
        except _NotSentError as error:
            reason = str(error)
            if error.for_good or pause is None:
                break
            time.sleep(pause)
        else:
            return Delivery(notice=notice, channel=channel, sent=True)
    return Delivery(notice=notice, channel=channel, sent=False, reason=reason)


class _NotSentError(Exception):
    """A try failed; ``for_good`` where another one tonight would fail likewise."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


def _mail(spec: NightSpec, notice: Notice) -> None:
    message = EmailMessage()
    # A header of one line, whatever a node's driver called itself.
    message["Subject"] = " ".join(notice.subject.split())
    message["To"] = ", ".join(spec.mail_to)
    if spec.mail_from:
        message["From"] = spec.mail_from
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(notice.text)
    if spec.smtp is None:
        _by_command(message, spec.mail_to)
        return
    host, port = _host_and_port(spec.smtp)
    try:
        with smtplib.SMTP(host, port, timeout=TIMEOUT_SECONDS) as server:
            server.send_message(message, from_addr=spec.mail_from or "fabricproof@localhost")
    except (OSError, smtplib.SMTPException) as error:
        raise _NotSentError(f"mail server {spec.smtp}: {error}") from None


def _host_and_port(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    try:
        return parts.hostname or text, parts.port or 25
    except ValueError:
        raise _NotSentError(f"smtp = {text!r}: no host:port", for_good=True) from None


def _by_command(message: EmailMessage, to: Sequence[str]) -> None:
    """Hand a mail to the machine: sendmail, else mail(1)."""
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
    if urlsplit(url).scheme not in {"http", "https"}:
        what = "is no http or https URL" if url else "is not set"
        raise _NotSentError(f"webhook: variable {spec.webhook} {what}", for_good=True)
    text = f"{notice.subject}\n{notice.text}"
    if len(text) > WEBHOOK_CHARACTERS:
        text = f"{text[:WEBHOOK_CHARACTERS]}\n... (cut; fabricproof report has all)"
    request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
        url,
        data=json.dumps({"text": text}).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "fabricproof"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            answer.read(1000)
    except urllib.error.HTTPError as error:
        error.close()
        for_good = 400 <= error.code < 500 and error.code not in {408, 425, 429}
        raise _NotSentError(f"webhook: answered {error.code}", for_good=for_good) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise _NotSentError(f"webhook: {type(error).__name__}: {reason}") from None


def what_was_sent(deliveries: Sequence[Delivery]) -> Iterator[str]:
    """Yield a sentence for each delivery."""
    for each in deliveries:
        old = " (of an earlier night)" if each.notice.tries else ""
        if each.sent:
            yield f"told by {each.channel}{old}: {each.notice.subject}"
        else:
            yield f"NOT told by {each.channel}{old}, tried again next night: {each.reason}"
