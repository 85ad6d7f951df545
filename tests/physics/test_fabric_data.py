"""The reviewed data: rows alike, consistent in itself, every number sourced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fabricproof.physics._data import load_data, nearest_names
from fabricproof.physics.links import known_links
from fabricproof.physics.protocols import known_protocols, protocols_over

#: fields that not every row of a table has
OPTIONAL = {"data_rate_gbit_s", "over", "packet_per_message"}


def tables(content: Any, place: str = "") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each list of rows in some data, or a dictionary's values if all are alike."""
    rows = list(content.values()) if isinstance(content, dict) else content
    if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
        yield place, rows
    for name, part in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(part, dict | list):
            yield from tables(part, f"{place}.{name}")


TABLES = {
    place: rows
    for name in ("links", "pcie", "protocols")
    for place, rows in tables(load_data(name), name)
    if all("source" in row or "floor_source" in row for row in rows)
}


def test_the_tables_are_those_that_are_known() -> None:
    """A row without its source would take its table out of this list."""
    known = "encodings infiniband.speeds ethernet.rates others"
    assert [place for place in TABLES if place.startswith("links")] == [
        f"links.{name}" for name in known.split()
    ]
    assert {"pcie.generations", "pcie.framings", "protocols.protocols"} <= TABLES.keys()


@pytest.mark.parametrize("place", TABLES)
def test_rows_of_a_table_have_the_same_fields_and_a_source_each(place: str) -> None:
    fields = TABLES[place][0].keys() - OPTIONAL
    for row in TABLES[place]:
        assert row.keys() - OPTIONAL == fields
        assert all(len(row[name]) >= 12 for name in ("source", "floor_source") if name in row)


def test_a_reading_is_framing_or_a_share_and_not_both() -> None:
    for protocol in known_protocols().values():
        for each in (protocol, *map(protocol.over, protocol.technologies)):
            for reading in each.readings:
                is_framing = reading.mtu is not None and reading.outside >= 1
                assert is_framing != (0 < (reading.share or 0) <= 1)
            assert each.floor_us > 0


def test_every_technology_of_a_link_has_its_protocol() -> None:
    for link in known_links().values():
        assert protocols_over(link.technology), link.name


@pytest.mark.parametrize(
    "row", load_data("links")["ethernet"]["rates"], ids=lambda row: row["source"]
)
def test_lanes_and_code_of_each_ethernet_rate_give_its_mac_rate(row: dict[str, Any]) -> None:
    code = load_data("links")["encodings"][row["encoding"]]
    rate = row["lanes"] * row["line_rate_gbit_s"] * code["data"] / code["line"]
    assert rate == pytest.approx(row["data_rate_gbit_s"], rel=1e-12)


def test_rs_fec_with_transcoding_is_exactly_sixteen_seventeenths() -> None:
    code = load_data("links")["encodings"]["256b/257b RS(544,514)"]
    assert code["data"] * 257 * 544 == code["line"] * 256 * 514


def test_tlp_parts_add_up_to_the_overhead() -> None:
    for framing in load_data("pcie")["framings"].values():
        for reading, words in framing["parts"].items():
            numbers = [int(word) for word in words.split() if word.isdigit()]
            assert sum(numbers) == framing["overhead_bytes"][reading], words


def test_a_flit_is_256_bytes() -> None:
    flit = load_data("pcie")["framings"]["flits"]["tlp_share"]
    generation = load_data("pcie")["generations"][-1]
    tlp, dlp, crc, fec = 236, 6, 8, 6
    assert (tlp, tlp + dlp) == (flit["data"], flit["line"])
    assert (tlp + dlp, tlp + dlp + crc + fec) == (generation["data"], generation["line"])


def test_aliases_and_names_are_unique() -> None:
    names = [name.lower() for name in known_links()]
    names += [alias for row in load_data("links")["others"] for alias in row["aliases"]]
    assert len(names) == len(set(names))
    spoken = [row["name"] for row in load_data("protocols")["protocols"]]
    spoken += [alias for row in load_data("protocols")["protocols"] for alias in row["aliases"]]
    assert len(spoken) == len(set(spoken))


def test_nearest_names_are_close_ones_and_at_most_three() -> None:
    assert (
        nearest_names("fdr 5x", ["FDR 4x", "FDR 8x", "FDR 1x", "FDR 2x", "40GbE"]).count("FDR") == 3
    )
    assert nearest_names("zzz", ["FDR 4x"]) == ""
