"""Numbers that a document states: judged like measured ones, and never greener."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, FabricproofError, InputMissingError
from fabricproof.core.measure import Verdict, texts_of
from fabricproof.physics import Fabric
from fabricproof.site import load_toml
from fabricproof.verdict.document import PublishedFile, judge_published
from fabricproof.verdict.value import Judgement, Report, Rules
from tables import CX2, FDR


def published(text: str) -> PublishedFile:
    import tomllib  # noqa: PLC0415 - one helper

    return PublishedFile.model_validate(tomllib.loads('document = "made"\n' + text))


def judged(text: str, fabric: Fabric | None = None, **rules: object) -> Report:
    return judge_published(published(text), fabric, Rules(fabric=fabric, **rules))  # type: ignore[arg-type]


def only(report: Report) -> Judgement:
    assert len(report.quantities) == 1
    return report.quantities[0]


def quantity(value: str, rest: str = "", name: str = "bandwidth") -> str:
    return f'[[quantities]]\nname = "{name}"\nvalue = "{value}"\n{rest}\n'


def ratio(numerator: str, denominator: str, expected: str) -> str:
    return (
        f'[[ratios]]\nname = "gain"\nnumerator = "{numerator}"\n'
        f'denominator = "{denominator}"\nexpected = {expected}\n'
    )


def test_an_empty_file_proves_nothing() -> None:
    report = judged("")
    assert report.verdict is Verdict.UNJUDGED
    assert "the file states no number" in texts_of(report.findings)


def test_a_number_without_fabric_and_reference_is_unjudged() -> None:
    assert only(judged(quantity("3.4 GB/s"))).verdict is Verdict.UNJUDGED


def test_a_number_is_judged_by_the_fabric() -> None:
    assert only(judged(quantity("6300 MB/s"), FDR)).verdict is Verdict.PASS
    assert only(judged(quantity("5.6 GB/s"), FDR)).verdict is Verdict.FAIL
    assert only(judged(quantity("7 GB/s"), FDR)).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("reference", "verdict"),
    [("5.6 GB/s", Verdict.PASS), ("44.8 Gb/s", Verdict.PASS), ("7 GB/s", Verdict.FAIL)],
)
def test_a_reference_beside_the_number_counts(reference: str, verdict: Verdict) -> None:
    text = quantity("5.6 GB/s", f'reference = "{reference}"')
    assert only(judged(text, FDR)).verdict is verdict


def test_a_reference_of_another_kind_is_never_compared() -> None:
    text = quantity("5.6 GB/s", 'reference = "60 us"')
    assert only(judged(text, FDR)).verdict is Verdict.UNJUDGED


def test_both_directions_and_rails_are_stated_with_the_number() -> None:
    assert only(judged(quantity("13 GB/s"), FDR)).verdict is Verdict.INVALID
    assert only(judged(quantity("13 GB/s", "bidirectional = true"), FDR)).verdict is Verdict.PASS
    assert only(judged(quantity("13 GB/s", "rails = 2"), FDR)).verdict is Verdict.PASS


def test_pooled_numbers_are_unjudged_even_with_a_reference() -> None:
    text = quantity("1.4 us", 'reference = "2 us"\npooled_over = "hops"', "latency")
    found = only(judged(text, FDR))
    assert found.verdict is Verdict.UNJUDGED
    assert "per hop" in found.reason


def test_pooling_does_not_hide_the_impossible() -> None:
    text = quantity("0.1 us", 'pooled_over = "hops"', "latency")
    assert only(judged(text, FDR)).verdict is Verdict.INVALID


def test_one_impossible_pair_spoils_the_population() -> None:
    report = judged(quantity("6500 MB/s", 'maximum = "9 GB/s"'), FDR)
    assert report.verdict is Verdict.INVALID
    assert [each.name for each in report.quantities] == ["bandwidth", "bandwidth_maximum"]


def test_a_minimum_that_would_fail_by_itself_is_named() -> None:
    report = judged(quantity("6500 MB/s", 'minimum = "3 GB/s"'), FDR)
    assert report.verdict is Verdict.PASS
    assert any(
        text.startswith("bandwidth_minimum would be FAIL") for text in texts_of(report.findings)
    )


@pytest.mark.parametrize(("minimum", "named"), [("6,613 MB/s", True), ("7,400 MB/s", False)])
def test_an_outlier_is_named(minimum: str, named: bool) -> None:
    spread = f'minimum = "{minimum}"\nstandard_deviation = "35.19 MB/s"'
    report = judged(quantity("7505 MB/s", spread))
    assert any("outlier: the minimum" in text for text in texts_of(report.findings)) == named


@pytest.mark.parametrize("sigma", ["0 MB/s", "-1 MB/s"])
def test_no_spread_names_no_outlier(sigma: str) -> None:
    spread = f'minimum = "1 MB/s"\nstandard_deviation = "{sigma}"'
    assert not any(
        "outlier" in text for text in texts_of(judged(quantity("9 MB/s", spread)).findings)
    )


@pytest.mark.parametrize(
    ("numerator", "verdict"),
    [
        ("2 GB/s", Verdict.PASS),
        ("1.8 GB/s", Verdict.PASS),
        ("1.7 GB/s", Verdict.FAIL),
        ("2.3 GB/s", Verdict.FAIL),
        ("16 Gb/s", Verdict.PASS),
    ],
)
def test_a_ratio_is_about_what_was_expected(numerator: str, verdict: Verdict) -> None:
    assert only(judged(ratio(numerator, "1 GB/s", "2"))).verdict is verdict


def test_the_gain_of_rails_comes_from_physics() -> None:
    from dataclasses import replace  # noqa: PLC0415 - one test

    shared = replace(CX2, num_rails=2, rails_share_slot=True)
    apart = replace(CX2, num_rails=2)
    none, double = (
        ratio("3.4 GB/s", "3.4 GB/s", '"rails"'),
        ratio("6.8 GB/s", "3.4 GB/s", '"rails"'),
    )
    assert only(judged(none, shared)).verdict is Verdict.PASS
    assert only(judged(none, apart)).verdict is Verdict.FAIL
    assert only(judged(double, apart)).verdict is Verdict.PASS
    assert only(judged(double, shared)).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ratio("1 GB/s", "0 GB/s", "2"), "divides by nothing"),
        (ratio("1 GB/s", "1 us", "2"), "cannot convert"),
        (ratio("1 GB/s", "1 GB/s", "0"), "impossible reference"),
        (ratio("1 GB/s", "1 GB/s", "nan"), "impossible reference"),
        (ratio("1 GB/s", "1 GB/s", "inf"), "impossible reference"),
        (ratio("1 GB/s", "1 GB/s", '"rails"'), "has no expectation"),
        (ratio("1 GB/s", "1 GB/s", '"double"'), "has no expectation"),
        (quantity("3.4"), "not a quantity"),
        (quantity("4 KiB"), "cannot convert"),
        (quantity("3 GB/s", 'reference = "3"'), "not a quantity"),
        (quantity("3 GB/s", 'reference = "3 GB/s"\ntolerance = nan'), "impossible tolerance"),
        (quantity("3 GB/s", 'reference = "3 GB/s"\ntolerance = 1.0'), "impossible tolerance"),
    ],
)
def test_a_number_that_cannot_be_is_refused(text: str, words: str) -> None:
    with pytest.raises(FabricproofError, match=words):
        judged(text)


CURVE = """\
[[curves]]
program = "osu_bw"
unit = "{unit}"
message_sizes = {sizes}
bandwidths = {values}
"""


def test_a_curve_is_judged_as_a_table() -> None:
    text = CURVE.format(unit="GB/s", sizes=[2097152, 4194304], values=[6.4, 6.5])
    report = judged(text, FDR)
    assert report.verdict is Verdict.PASS
    assert [each.name for each in report.quantities] == ["bandwidth_2MiB", "bandwidth_4MiB"]


@pytest.mark.parametrize(
    ("unit", "sizes", "values", "words"),
    [
        ("GB/s", [1, 2], [1.0], "expected 2 bandwidths, got 1"),
        ("us", [1], [1.0], "cannot convert"),
        ("furlongs", [1], [1.0], "unknown unit"),
        ("GB/s", [2, 1], [1.0, 1.0], "message sizes that rise"),
        ("GB/s", [1, 1], [1.0, 1.0], "message sizes that rise"),
    ],
)
def test_a_damaged_curve_is_refused(
    unit: str, sizes: list[int], values: list[float], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        judged(CURVE.format(unit=unit, sizes=sizes, values=values))


@pytest.mark.parametrize("values", [[-1.0], [0.0]])
def test_a_curve_of_no_measurement_is_invalid(values: list[float]) -> None:
    report = judged(CURVE.format(unit="GB/s", sizes=[4194304], values=values), FDR)
    assert report.verdict is Verdict.INVALID


def test_what_a_document_cannot_show_is_said() -> None:
    assert "path not shown: a document holds no counters" in texts_of(
        judged(quantity("1 GB/s")).findings
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not = [toml", "not valid TOML"),
        ("statement = 'x'", "numbers.toml: missing key 'document'"),
        ('document = "x"\ntypo = 1', "numbers.toml:2: unknown key 'typo'"),
        ('document = "x"\n[fabric]\nlinc = "FDR"', "missing key 'fabric.link'"),
        ('document = "x"\n' + quantity("1 GB/s", "message_size = -1"), "quantities.0.message_size"),
        ('document = "x"\n' + CURVE.format(unit="GB/s", sizes=[-4], values=[1.0]), "curves.0"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words) as refused:
        load_toml(file, PublishedFile)
    assert str(refused.value).startswith(str(file))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "numbers.toml"
    file.write_bytes(b'document = "\xff"')
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_toml(file, PublishedFile)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputMissingError, match="cannot read"):
        load_toml(tmp_path / "none.toml", PublishedFile)
