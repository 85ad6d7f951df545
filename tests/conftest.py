"""What every room's tests may use: the command line, called as a user calls it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import vcluster.__main__
from fabricproof.cli.main import main
from fabricproof.core import project

ROOT = Path(__file__).resolve().parents[1]

# A busy machine makes no law false: no test depends on a time.  The same examples each time, so
# that a change is judged by what it changed; ``make check-long`` draws others ("search").
settings.register_profile(
    "search", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("same", settings.get_profile("search"), derandomize=True)
settings.load_profile("same")

#: what a person has set for his own cluster, and no test may depend on
OF_THE_CALLER = (
    "FABRICPROOF_SITE",
    "FABRICPROOF_SITES",
    "SPACK_ROOT",
)


#: marks of tests that submit jobs or bring clusters up, and how those who want that ask for it
OPT_IN = {
    "long": "make integration-long, make check-long",
    "rdma": "pytest -m rdma",
    "slurm": "pytest -m slurm",
    "vcluster": "pytest -m vcluster (as root)",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what only those get who ask for it."""
    asked = config.getoption("markexpr")
    for mark, how in OPT_IN.items():
        if mark in asked:
            continue
        opt_in = pytest.mark.skip(reason=f"opt in with: {how}")
        for item in items:
            if item.get_closest_marker(mark):
                item.add_marker(opt_in)


@pytest.fixture(autouse=True, scope="session")
def nothing_of_the_callers() -> None:
    """Take the caller's own settings away, and so from all that tests start."""
    for name in OF_THE_CALLER:
        os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def no_site_lies_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget where the sites of other tests lie: commands that are printed name them."""
    monkeypatch.setattr(project, "_SITE_WORDS", {})


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """Hear Ctrl-C where whoever started us does not: what a shell starts with ``&`` ignores it.

    What a test starts would inherit that, and no test could interrupt it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        """What ``--json`` printed, read strictly: NaN and Infinity are no JSON."""

        def refuse(text: str) -> None:
            raise AssertionError(f"{text} is no JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def fabricproof(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Call ``fabricproof ARG...`` in this process, through its real way in and out."""

    def handed_over(_: str, words: list[str], environment: dict[str, str]) -> None:
        """Stand in for the system call that turns this process into ``vcluster``."""
        assert words[:4] == [sys.executable, "-P", "-m", "vcluster"]
        monkeypatch.setattr(sys, "argv", words[3:])
        for name in ("VCLUSTER_PROGRAM", "VCLUSTER_INSTEAD"):
            monkeypatch.setenv(name, environment[name])
        vcluster.__main__.main()

    monkeypatch.setattr(os, "execve", handed_over)

    def call(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["fabricproof", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ended(status=int(leaving.value.code or 0), out=out, err=err)

    return call
