"""A rank does not begin where a file is missing that its MPI would silently do without."""

import subprocess
from pathlib import Path

import pytest

import fabricproof.job

SCRIPT = Path(fabricproof.job.__file__).with_name("rank.sh")


@pytest.mark.parametrize(
    ("files", "status"), [("{here}", 0), ("{here}:{gone}", 74), ("{gone}", 74), ("", 0)]
)
def test_every_file_must_be_readable_on_the_node(tmp_path: Path, files: str, status: int):
    here, gone = tmp_path / "rules with blanks.conf", tmp_path / "gone.conf"
    here.touch()
    named = files.format(here=here, gone=gone)
    done = subprocess.run(
        ["/bin/bash", str(SCRIPT), "true"],
        env={"FABRICPROOF_LEG": str(tmp_path), "FABRICPROOF_FILES": named, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == status
    assert ("cannot read" in done.stderr) == (status != 0)
