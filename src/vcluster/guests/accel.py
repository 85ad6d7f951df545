"""What carries the guests' instructions: KVM where it works, software emulation otherwise.

A /dev/kvm that opens is no proof: on a machine that is itself a guest, KVM may be emulated in turn
and be many times slower than QEMU's own translator (seen: a kernel that takes 4 s to come up under
TCG took more than 95 s).  So the guests' own kernel is started once under KVM, and has to say that
it runs within the time that TCG takes with ease.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vcluster.guests.image import Image
from vcluster.processes import clean_environment

#: TCG needs some 3 s for it on two busy cores; KVM on real hardware half a second
PROBE_SECONDS = 10.0
KVM, TCG = "kvm", "tcg"
#: What TCG may keep of translated code, in MB.  QEMU's own limit is 1 GB for each machine; a guest
#: that had run MPI jobs for a quarter of an hour had used half of that.
TRANSLATED_MB = 256
#: what the first program of a guest says (initramfs.sh)
RUNS = "fabricproof-guest: kernel"
#: of QEMU's message, in characters
_WORDS = 240
_DEVICE = Path("/dev/kvm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Acceleration:
    """How guests are run.

    Attributes:
        name: ``kvm`` or ``tcg``.
        reason: why, in words for people.
    """

    name: str
    reason: str

    def options(self) -> list[str]:
        """Return QEMU's options for it."""
        if self.name == KVM:
            return ["-accel", "kvm", "-cpu", "host"]
        return ["-accel", f"tcg,thread=multi,tb-size={TRANSLATED_MB}", "-cpu", "max"]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What came of starting a kernel.

    Attributes:
        seconds: until it ran; None if it did not.
        ended: QEMU ended by itself, and did not wait for the time to pass.
        said: QEMU's own last words, on one line.
    """

    seconds: float | None
    ended: bool = False
    said: str = ""


def choose(image: Image, wanted: str | None) -> Acceleration:
    """Return what to run guests with.

    ``wanted`` is ``kvm`` or ``tcg`` where somebody insists; None: the fastest that works.
    """
    if wanted is not None:
        return Acceleration(name=wanted, reason="as asked for")
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return Acceleration(name=TCG, reason="software emulation: this machine has no /dev/kvm")
    memory = image.folder / "acceleration.json"
    known = _remembered(memory)
    if known is not None:
        return known
    found = _find(image)
    with contextlib.suppress(OSError):
        told = {"boot": _boot(), "name": found.name, "reason": found.reason}
        memory.write_text(json.dumps(told))
    return found


def _boot() -> str:
    return _BOOT.read_text().strip()


def _remembered(memory: Path) -> Acceleration | None:
    """Return what was found since this machine was started; it may be another one tomorrow."""
    try:
        told = json.loads(memory.read_text())
        if told["boot"] == _boot():
            return Acceleration(name=told["name"], reason=told["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _find(image: Image) -> Acceleration:
    tried = probe(image, KVM)
    if tried.seconds is not None:
        return Acceleration(name=KVM, reason=f"KVM: a kernel came up in {tried.seconds:.1f} s")
    if tried.ended:
        how = f"/dev/kvm is there, and QEMU ends under it: {tried.said or 'no message'}"
    else:
        how = (
            f"under /dev/kvm no kernel came up within {PROBE_SECONDS:g} s (KVM inside a virtual "
            "machine without hardware support)"
        )
    return Acceleration(name=TCG, reason=f"software emulation: {how}")


def probe(image: Image, name: str) -> Attempt:
    """Start the guests' kernel under ``kvm`` or ``tcg``; return whether it runs, and when."""
    # Files without a name: nothing is left of them, however we end.
    with tempfile.TemporaryFile() as console, tempfile.TemporaryFile() as words:
        # Killed with -9, we take QEMU along: it belongs to no cluster, so no `down` would find it.
        command = ["setpriv", "--pdeathsig", "KILL"]
        command += ["qemu-system-x86_64", "-machine", "q35", "-m", "512", "-no-reboot"]
        command += Acceleration(name=name, reason="").options()
        command += ["-display", "none", "-monitor", "none", "-nodefaults", "-serial", "stdio"]
        command += ["-kernel", str(image.kernel), "-initrd", str(image.initramfs)]
        command += ["-append", "console=ttyS0 quiet panic=-1 fabricproof.probe=yes"]
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=words,
            env=clean_environment(),
            start_new_session=True,
        )
        try:
            return _wait(child, console, words)
        finally:
            child.kill()
            child.wait()


def _wait(child: subprocess.Popen[bytes], console: IO[bytes], words: IO[bytes]) -> Attempt:
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < PROBE_SECONDS:
        ended = child.poll() is not None  # asked first: the console is whole then
        if RUNS in _text(console):
            return Attempt(seconds=waited)
        if ended:
            return Attempt(seconds=None, ended=True, said=_last_words(_text(words)))
        time.sleep(0.05)
    return Attempt(seconds=None)


def _text(file: IO[bytes]) -> str:
    """Return what QEMU wrote so far; its place in the file, which is ours too, stays."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")


def _last_words(text: str) -> str:
    """Return what QEMU said, without its name and the places in its source."""
    lines = text.splitlines()
    told = [re.sub(r"^qemu-system-x86_64: (\S+\.c:\d+: )?", "", line.strip()) for line in lines]
    return " / ".join(line for line in told if line)[-_WORDS:]
