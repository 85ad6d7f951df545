"""The digest of a week, for sites that want to hear that nothing changed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from fabricproof.nightly.notify import Notice
from fabricproof.nightly.state import Ended, LegState, Night, Nights

_NAME = "week-"
_DAYS = 7


def digest(
    site: str, history: Nights, tonight: Night, red: Mapping[str, LegState]
) -> Notice | None:
    """Return the digest where the last one, or the first night, is a week ago; else None."""
    name = f"{_NAME}{tonight.time:%Y-%m-%d}"
    since = _last(history) or (history.nights[0].time if history.nights else None)
    if since is None or tonight.time - since < datetime.timedelta(days=_DAYS):
        return None
    week = [
        night
        for night in (*history.nights, tonight)
        if tonight.time - night.time <= datetime.timedelta(days=_DAYS)
    ]
    whole = sum(night.ended is Ended.WHOLE for night in week)
    flutters = sum(state.flutter for night in week for state in night.legs.values())
    lines = [
        f"{len(week)} nights, {whole} of them whole",
        f"{flutters} times a leg was red and green when looked at again",
        *(f"red: {key}: {state.sentence}" for key, state in red.items()),
    ]
    return Notice(
        name=name, subject=f"fabricproof {site}: the week, {len(red)} red", text="\n".join(lines)
    )


def _last(history: Nights) -> datetime.datetime | None:
    found = [
        datetime.datetime.strptime(line["notice"], f"{_NAME}%Y-%m-%d").replace(tzinfo=datetime.UTC)
        for line in history.notices
        if str(line["notice"]).startswith(_NAME)
    ]
    return max(found, default=None)
