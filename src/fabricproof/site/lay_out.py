"""A folder for a site's own files, beside an installed fabricproof: laid out once, then theirs."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path

from fabricproof import __version__
from fabricproof.core.errors import ConfigError, OutputError, UnavailableError
from fabricproof.core.project import ENTRY_POINT, shipped
from fabricproof.core.whole_file import write_whole

#: what is laid out from the package; its checks and recipes stay there, so that a new version of
#: the package brings new ones and nothing is merged
_LAID_OUT = (".gitignore", "bin", "ci", "env.sh", "perflogs", ENTRY_POINT, "site-configs/vcluster")

_README = """# The fabric acceptance of this site

Laid out by `fabricproof init`. Theirs to whoever runs the cluster: put it under version control.

```sh
. ./env.sh                      # fabricproof and its reframe on PATH
fabricproof site init NAME      # a first site folder, from what this cluster shows
fabricproof site check NAME     # what is wrong in it, file and line
fabricproof stack install       # the MPI stacks that come as wheels
fabricproof run -t quick --site NAME
```

`site-configs/<site>/` is your cluster, `vcluster` the virtual one to try things with; `checks/` has
checks of your own; `ci/nightly/` the night as a timer, a cron job or a pipeline; `perflogs/` and
`work/` what runs leave. Another version: change `requirements.txt`, then
`.venv/bin/pip install -r requirements.txt`. Compute nodes must see `.venv` under the same path.
"""

_CHECKS = """# Checks of your own

ReFrame finds every file here beside those of fabricproof. Most are one line:

```python
import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark
from fabricproof.rfm.checks.family import family

osu = family(rfm.simple_test, __name__, PairBenchmark, "pt2pt", suite="osu")
osu("OursMultiPairBandwidth", "osu_mbw_mr", "nightly", "Several pairs at once, every night")
```

`fabricproof site roll SITE --write` then says that it is due.
"""


class Laid(StrEnum):
    """What became of one file."""

    WRITTEN = "written"
    SAME = "as before"
    KEPT = "kept"
    """It differs from what this version would write."""


def lay_out(folder: Path) -> dict[str, Laid]:
    """Lay a project for a site out in ``folder``; return what became of each file, by its path.

    No file that is there is touched.  ``.venv`` becomes a link to the environment that runs this,
    where there is none.

    Raises:
        ConfigError: this fabricproof runs from a checkout, which is a project already.
        UnavailableError: it is not installed in an environment of its own.
        OutputError: it cannot be written.
    """
    source = shipped()
    if source is None:
        raise ConfigError(
            "this fabricproof runs from a checkout, which is a project already",
            expected="an installed package",
            next_step="work in the checkout, or in a new environment: pip install fabricproof",
        )
    environment = Path(sys.prefix)
    if not (environment / "bin" / "fabricproof").is_file():
        raise UnavailableError(
            "fabricproof is not installed in an environment of its own",
            expected=f"a program {environment / 'bin' / 'fabricproof'}",
            got="none",
            next_step="python3 -m venv DIR/.venv && DIR/.venv/bin/pip install fabricproof",
        )
    try:
        laid = {
            name: _lay(folder / name, content, mode)
            for name, (content, mode) in sorted(_contents(source).items())
        }
        laid[".venv"] = _link(folder / ".venv", environment)
    except OSError as error:
        raise OutputError(
            f"cannot write: {error.strerror or error}",
            source=str(error.filename or folder),
            next_step="name a folder that can be written",
        ) from None
    return laid


def _contents(source: Path) -> dict[str, tuple[bytes, int]]:
    found: dict[str, tuple[bytes, int]] = {}
    for name in _LAID_OUT:
        top = source / name
        files = [top] if top.is_file() else [each for each in top.rglob("*") if each.is_file()]
        for each in files:
            # An installer need not keep the right to run a file that is no script of the package.
            mode = 0o755 if name == "bin" or each.suffix == ".sbatch" else 0o644
            found[str(each.relative_to(source))] = (each.read_bytes(), mode)
    found["README.md"] = (_README.encode(), 0o644)
    found["checks/README.md"] = (_CHECKS.encode(), 0o644)
    found["requirements.txt"] = (f"fabricproof=={__version__}\n".encode(), 0o644)
    return found


def _lay(path: Path, content: bytes, mode: int) -> Laid:
    if path.exists() or path.is_symlink():  # what a link leads to may be away for a while
        return Laid.SAME if path.is_file() and path.read_bytes() == content else Laid.KEPT
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    path.chmod(mode)
    return Laid.WRITTEN


def _link(path: Path, environment: Path) -> Laid:
    if path.exists():
        return Laid.SAME if path.samefile(environment) else Laid.KEPT
    if path.is_symlink():
        path.unlink()  # an environment that is gone
    path.symlink_to(os.path.realpath(environment), target_is_directory=True)
    return Laid.WRITTEN
