"""Columns of a history: which fields tell keys apart."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.history.store.model import FIELDS, schema, told_apart_by

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "site": st.just("s"),
            "stack": st.sampled_from(["gnu", "intel"]),
            "leg": st.sampled_from(["rail0", "rail1"]),
            "message_size": st.sampled_from([None, 1, 2]),
            "better": st.sampled_from([0, 1]),
        }
    ),
    max_size=6,
)


@given(ROWS, ROWS)
def test_keys_are_found_by_the_fields_that_differ_as_by_all(
    rows: list[dict[str, object]], known: list[dict[str, object]]
) -> None:
    kinds = schema(FIELDS)
    seen = pl.DataFrame([{**dict.fromkeys(FIELDS), **each} for each in rows], schema=kinds)
    keys = pl.DataFrame([{**dict.fromkeys(FIELDS), **each} for each in known], schema=kinds)
    keys = keys.unique(maintain_order=True).with_row_index("key")
    fields, alike = told_apart_by(seen, keys)
    by_all = seen.join(keys, on=FIELDS, how="left", nulls_equal=True, maintain_order="left")
    by_few = seen.join(
        alike.select("key", *fields), on=fields, how="left", nulls_equal=True, maintain_order="left"
    )
    assert by_few["key"].to_list() == by_all["key"].to_list()
