"""A file is written whole or not at all, whatever fails and whoever else writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fabricproof.core.errors import OutputError
from fabricproof.core.whole_file import whole_file, write_whole


def test_writing_replaces_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "fabric.prom"
    write_whole(path, "old\n")
    write_whole(path, b"new\r\n")
    assert path.read_bytes() == b"new\r\n"
    assert [each.name for each in tmp_path.iterdir()] == ["fabric.prom"]


def test_a_folder_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write: No such file"):
        write_whole(tmp_path / "gone" / "fabric.prom", "x\n")


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_full_disk_leaves_what_was_there(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    (tmp_path / "other").write_text("old\n")
    with (
        pytest.raises(OSError, match="No space left on device"),
        whole_file(tmp_path / "fabric.prom", replace=False) as file,
    ):
        file.write(b"new\n")
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_half_of_what_was_to_be_written_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"

    def interrupted() -> None:
        with whole_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("links", [True, False])
def test_what_is_not_to_be_replaced_stays(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a file system without hard links (FAT, some FUSE)."""

    def none(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", none)
    path = tmp_path / "spring.json"
    for content in (b"first", b"second"):
        try:
            with whole_file(path, replace=False) as file:
                file.write(content)
        except FileExistsError:
            assert content == b"second"
        else:
            assert content == b"first"
    assert path.read_bytes() == b"first"
    assert [each.name for each in tmp_path.iterdir()] == ["spring.json"]


def test_a_link_laid_where_the_draft_goes_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".page.html.{os.getpid()}.new").symlink_to(victim)
    write_whole(tmp_path / "page.html", "page")
    assert victim.read_text() == "mine"
    assert (tmp_path / "page.html").read_text() == "page"
    assert not (tmp_path / "page.html").is_symlink()
