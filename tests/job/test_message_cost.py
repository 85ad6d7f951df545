"""What a collective should take, from the numbers of its own job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.job.evidence.references import channel_of, measured_channel, rules_of
from fabricproof.job.leg import Leg
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.value import at_most
from tables import table

LEG = Leg(
    name="rail0.4x1", rails=("rail0",), suite="osu", program="osu_bcast", environment={},
    commands=(("prog",),), expected_sizes=(4, 65536), num_nodes=4, required=("latency_4B",),
    fabric=Fabric(link=find_link("200MbE"), protocol="tcp", mtu=1500), tolerance=0.1,
    channel_leg="rail0.pair", model_factor=3.0,
)  # fmt: skip


def latency() -> str:
    """A whole table: sizes that double, as the parser demands."""
    rows = "".join(f"{2**step:<12}{10 + 0.04 * 2**step:14.2f}\n" for step in range(17))
    return "# OSU MPI Latency Test v7.2\n# Size          Latency (us)\n" + rows


def job_with(tmp_path: Path, text: str, *, status: str = "0", attempt: int = 1) -> Path:
    folder = tmp_path / "legs" / f"rail0_pair.{attempt}"
    folder.mkdir(parents=True)
    (folder / "stdout").write_text(text)
    (folder / "status").write_text(status)
    return tmp_path


def test_the_ends_of_a_latency_curve_are_alpha_and_beta(tmp_path: Path) -> None:
    channel = measured_channel(job_with(tmp_path, latency()), "rail0.pair")
    assert channel is not None
    assert channel.alpha_us == pytest.approx(10.04)
    assert channel.beta_us_per_byte == pytest.approx(0.04, rel=1e-4)


def test_a_broadcast_to_four_is_two_rounds(tmp_path: Path) -> None:
    rules = rules_of(LEG, job_with(tmp_path, latency()))
    small, large = rules.references["latency_4B"], rules.references["latency_64KiB"]
    assert small.value == pytest.approx(20.3, rel=0.02)
    assert small.upper == pytest.approx(3 * small.value)
    assert small.origin.startswith(
        "binomial model: 10.04 us a message and 25 MB/s, from rail0.pair"
    )
    assert large.origin.startswith("scatter-allgather model:")
    assert large.value == pytest.approx(5 * 10 + 1.5 * 65536 * 0.04, rel=0.02)


def test_the_sites_own_latency_is_the_least_alpha(tmp_path: Path) -> None:
    leg = replace(LEG, stated_alpha_us=1000.0)
    rules = rules_of(leg, job_with(tmp_path, latency()))
    assert rules.references["latency_4B"].value == pytest.approx(2000, rel=0.02)


def test_a_number_of_the_site_stands_before_the_model(tmp_path: Path) -> None:
    own = at_most(77, origin="site: measured")
    leg = replace(LEG, references={"latency_4B": own})
    rules = rules_of(leg, job_with(tmp_path, latency()))
    assert rules.references["latency_4B"] is own
    assert "latency_64KiB" in rules.references


@pytest.mark.parametrize(
    ("text", "status"),
    [(latency(), "1"), (latency(), "x"), ("", "0"), ("nonsense\n", "0"), (latency()[:-3], "0")],
)
def test_without_whole_numbers_of_the_pair_nothing_is_made_up(
    tmp_path: Path, text: str, status: str
) -> None:
    assert rules_of(LEG, job_with(tmp_path, text, status=status)).references == {}


def test_the_second_look_counts_where_it_is_whole(tmp_path: Path) -> None:
    job = job_with(tmp_path, latency())
    job_with(tmp_path, latency().replace(" 10.04", " 30.04"), attempt=2)
    channel = measured_channel(job, "rail0.pair")
    assert channel is not None
    assert channel.alpha_us == pytest.approx(30.04)
    (tmp_path / "legs" / "rail0_pair.2" / "status").write_text("137")
    channel = measured_channel(job, "rail0.pair")
    assert channel is not None
    assert channel.alpha_us == pytest.approx(10.04)


def test_one_row_or_none_tells_no_slope() -> None:
    columns = ("message_size", "latency_us")
    assert channel_of((table("osu_latency", columns, [(1, 10)]),)) is None
    assert channel_of((table("osu_bw", ("message_size", "bandwidth_mb_s"), [(1, 10)]),)) is None
    falling = channel_of((table("osu_latency", columns, [(1, 10), (2, 8)]),))
    assert falling is not None
    assert falling.beta_us_per_byte == 0


def test_a_share_that_may_be_the_whole_is_modelled_as_the_slower(tmp_path: Path) -> None:
    """IMB's Reduce_scatter: the printed size was the vector up to 2018, is a share since."""
    job = job_with(tmp_path, latency())
    leg = replace(LEG, suite="imb", program="Reduce_scatter")
    osu = replace(LEG, program="osu_reduce_scatter")
    slow = rules_of(leg, job).references["latency_64KiB"].value
    assert slow > 3 * rules_of(osu, job).references["latency_64KiB"].value
