"""The reviewed data: valid against its schemas, consistent in itself, every number sourced."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from fabricproof.physics._data import DATA_DIRECTORY, load_data, nearest_names
from fabricproof.physics.links import known_links

NAMES = ("links", "pcie", "protocols")


def schema(name: str) -> dict[str, Any]:
    text = (DATA_DIRECTORY / f"{name}.schema.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def errors(name: str, content: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema(name))
    return [error.message for error in validator.iter_errors(content)]


def test_every_data_file_has_a_schema_and_the_other_way_round() -> None:
    files = {path.name for path in DATA_DIRECTORY.iterdir() if path.suffix == ".json"}
    assert files == {f"{name}{suffix}" for name in NAMES for suffix in (".json", ".schema.json")}


@pytest.mark.parametrize("name", NAMES)
def test_data_satisfies_its_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert errors(name, load_data(name)) == []


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("links", ("infiniband", "speeds", 0)),
        ("links", ("ethernet", "rates", 0)),
        ("links", ("others", 0)),
        ("pcie", ("generations", 0)),
        ("pcie", ("framings", "flits")),
        ("protocols", ("protocols", 0)),
    ],
)
def test_a_row_without_its_source_is_refused(name: str, path: tuple[str | int, ...]) -> None:
    content = copy.deepcopy(load_data(name))
    row: Any = content
    for step in path:
        row = row[step]
    del row["source"]
    assert errors(name, content) == ["'source' is a required property"]


def test_an_unknown_field_is_refused() -> None:
    content = copy.deepcopy(load_data("links"))
    content["others"][0]["data_rate"] = 100
    assert len(errors("links", content)) == 1


def test_a_reading_is_framing_or_a_share_and_not_both() -> None:
    content = copy.deepcopy(load_data("protocols"))
    content["protocols"][0]["low"]["share"] = 0.9
    assert len(errors("protocols", content)) == 1


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
