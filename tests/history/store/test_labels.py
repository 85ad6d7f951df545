"""Names for runs: kept by appending, never guessed at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_records import SITE, quantity, run_id, write

from fabricproof.core.errors import InputMissingError, OutputError, ParseError
from fabricproof.core.records import append_records
from fabricproof.history.store import LOOK_LABEL, labels, labels_of, open_store, set_label
from fabricproof.history.store.label_file import LABELS_FILE

FIRST, SECOND, THIRD = run_id(1), run_id(2), run_id(3)


def test_a_name_has_the_runs_that_it_was_given_in_that_order(tmp_path: Path) -> None:
    """Given twice is given once."""
    assert set_label(tmp_path, SITE, [SECOND, FIRST], "before-swap") == (SECOND, FIRST)
    assert set_label(tmp_path, SITE, [FIRST], "before-swap") == ()
    assert labels(tmp_path, SITE) == {"before-swap": (SECOND, FIRST)}
    assert labels_of(labels(tmp_path, SITE), FIRST) == ("before-swap",)


def test_a_name_taken_away_is_gone_and_its_history_stays(tmp_path: Path) -> None:
    """The file only grows."""
    set_label(tmp_path, SITE, [FIRST, SECOND], "good")
    set_label(tmp_path, SITE, [FIRST], "good", given=False)
    assert labels(tmp_path, SITE) == {"good": (SECOND,)}
    assert len((tmp_path / SITE / LABELS_FILE).read_text().splitlines()) == 3
    with pytest.raises(InputMissingError, match=f"run {FIRST} has no label good"):
        set_label(tmp_path, SITE, [FIRST], "good", given=False)


@pytest.mark.parametrize("name", ["", "2026-11-01", "20261101T0", "a=b", "a b", "a,b", "-x", "a@b"])
def test_what_could_be_read_as_something_else_is_no_name(name: str, tmp_path: Path) -> None:
    """Dates, runs and inventory values are chosen by other words."""
    with pytest.raises(ParseError, match="no label"):
        set_label(tmp_path, SITE, [FIRST], name)


@pytest.mark.parametrize("name", ["latest", "last", "Baseline", "label", "stack", "a..b", "a.."])
def test_a_word_that_chooses_runs_is_no_name(name: str, tmp_path: Path) -> None:
    """A comparison would never find it; one of an older time can still be taken away."""
    with pytest.raises(ParseError, match="no label: expected none of baseline, label"):
        set_label(tmp_path, SITE, [FIRST], name)
    line = {"run_id": FIRST, "label": name, "given": True}
    append_records(tmp_path / SITE / LABELS_FILE, [line])
    assert set_label(tmp_path, SITE, [FIRST], name, given=False) == (FIRST,)
    assert labels(tmp_path, SITE) == {}


def test_a_label_that_cannot_be_kept_speaks_of_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OutputError, match="give the label again") as caught:
        set_label(tmp_path, SITE, [FIRST], "good")
    assert "stage folder" not in str(caught.value)


def test_the_store_knows_the_names_and_a_torn_line_is_noted(tmp_path: Path) -> None:
    """What a crash tore is said, not lost in silence."""
    write(tmp_path, [quantity(FIRST)])
    set_label(tmp_path, SITE, [FIRST], "good")
    path = tmp_path / SITE / LABELS_FILE
    path.write_bytes(path.read_bytes() + b'{"label": "ba')
    store = open_store(tmp_path, SITE)
    assert store.labels == {"good": (FIRST,)}
    assert store.notes == (f"{path}:2: a record torn by a crash was passed over",)


@pytest.mark.parametrize("text", ["", "\\ud800"])
def test_a_look_that_has_no_label_is_known_by_the_record_of_its_night(
    tmp_path: Path, text: str
) -> None:
    """Kept with the copy: a store that was opened before knows what came later, and the next."""
    write(tmp_path, [quantity(FIRST), quantity(SECOND), quantity(THIRD)])
    assert open_store(tmp_path, SITE).labels == {}
    looks = [{"run_id": SECOND, "reason": text}, {"run_id": ""}]
    record = {"kind": "confirmation", "run_id": FIRST, "looks": looks}
    write(tmp_path, [record, {"kind": "confirmation", "run_id": FIRST, "looks": None}])
    set_label(tmp_path, SITE, [THIRD], LOOK_LABEL)
    for _ in range(2):
        assert open_store(tmp_path, SITE).labels == {LOOK_LABEL: (THIRD, SECOND)}
