"""What a site's files give: defaults, rails as physics, references, and which site this is."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest
from edited_sites import FULL, edit

from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.physics import bound
from fabricproof.site import build_fabric, check_access, choose_site, load_site, site_folders
from fabricproof.site.schema import FabricSpec, RailSpec

SITES = Path(__file__).parents[2] / "site-configs"


@pytest.mark.parametrize("folder", site_folders(), ids=lambda folder: folder.name)
def test_every_shipped_site_loads(folder: Path) -> None:
    site = load_site(folder.name)
    assert site.name == folder.name
    assert load_site(str(folder)).spec == site.spec


def test_a_full_site_keeps_what_it_says(tmp_path: Path) -> None:
    file = edit(tmp_path, "site.toml", "", "") / "site.toml"
    file.write_text(file.read_text(), encoding="utf-8-sig")  # a byte order mark is no damage
    site = load_site(str(tmp_path))
    assert site.spec.tolerance == 0.08
    assert site.stack("mvapich2").environment == {"MV2_NUM_HCAS": "2"}
    assert site.reframe == {"general": [{"verbose": 1}]}
    assert site.fabric("eth0").capability_mb_s == 1125.0
    (tmp_path / "references.toml").unlink()
    assert load_site(str(tmp_path)).references == ()
    smallest = load_site(str(FULL.with_name("defaults")))
    assert (smallest.spec.tolerance, smallest.partition("p").scheduler) == (0.10, "slurm")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["-export"]', '["--map-by ppr:1:node", "-b=\'0,1\'"]'),
        ('MV2_NUM_HCAS = "2"', '_A1 = ""\nI_MPI_PIN_ORDER = "a b;c $(d)"'),
        ('["mvapich2/1.9"]', '["gcc/12.2", "openmpi/5.0+cuda@x86_64"]'),
        ('"--partition=compute"', '"-p compute --qos=test", "--constraint=\'a&b\'"'),
        ('version = "1.9"', 'version = "1.9"\ntransport = "ucx-ud"'),
        ("max_jobs = 4", 'reframe = { prepare_cmds = ["a"], resources = [], time_limit = "1h" }'),
        ("max_jobs = 4", 'python = "/usr/bin/python3.11"'),
    ],
)  # fmt: skip
def test_what_can_be_handed_on_is_taken(tmp_path: Path, old: str, new: str) -> None:
    load_site(str(edit(tmp_path, "site.toml", old, new)))


def test_a_rail_in_another_slot_has_its_own_ceiling() -> None:
    """Gordon: rail 0 at the link's rate, rail 1 in a Gen2 riser; shared by weight both are full."""
    site = load_site(str(FULL))
    rails = ["mlx4_0:1", "mlx4_1:1"]
    first, second = (bound(site.fabric("ib0", [rail])) for rail in rails)
    assert (first.name, second.name) == ("protocol", "slot_packet")
    both = site.fabric("ib0", rails)
    assert (both.num_rails, both.max_payload_bytes) == (2, 128)
    assert bound(both).high_mb_s == pytest.approx(first.high_mb_s + second.high_mb_s)
    assert bound(both).low_mb_s == pytest.approx(2 * min(first.low_mb_s, second.low_mb_s))


@pytest.mark.parametrize(
    ("rails", "words"), [(("mlx9",), "no such rail"), (("mlx4_0:1",) * 2, "a rail twice")]
)
def test_rails_are_those_of_the_site_each_once(rails: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_site(str(FULL)).fabric("ib0", rails)


def test_the_fabrics_own_maxpayload_counts_for_rails_that_state_none() -> None:
    rails = [RailSpec(interface="a:1"), RailSpec(interface="b:1", max_payload_bytes=512)]
    spec = FabricSpec(name="ib", link="QDR 4x", pcie="3.0x8", max_payload_bytes=256, rails=rails)
    assert build_fabric(spec, ("a:1", "b:1")).max_payload_bytes == 256


NODE = {"mlx5_0:1": "0000:81:00.0", "mlx5_0:2": "0000:81:00.0", "mlx5_2:1": "0000:c1:00.0"}


@pytest.mark.parametrize(
    ("rail", "name"),
    [
        (RailSpec(interface="mlx5_0:1"), "mlx5_0:1"),
        (RailSpec(interface="mlx5_9:1", other_names=["mlx5_2:1", "mlx5_0:1"]), "mlx5_2:1"),
        (RailSpec(interface="mlx5_0:1", pci_address="c1:00.0"), "mlx5_2:1"),
        (RailSpec(interface="mlx5_7:2", pci_address="0000:81:00.0"), "mlx5_0:2"),
        (RailSpec(interface="mlx5_7:1", pci_address="0000:e1:00.0"), "mlx5_7:1"),
        (RailSpec(interface="ib0", other_names=["ib1"]), "ib0"),
    ],
)
def test_a_rail_is_found_by_its_address_or_by_its_first_name_on_the_node(
    rail: RailSpec, name: str
) -> None:
    assert rail.name_on(NODE) == name


def _applied(folder: Path, **asked: str | int) -> dict[str, float]:
    stated = {"fabric": "ib0", "suite": "osu", "program": "osu_bw", "stack": "openmpi"}
    found = load_site(str(folder)).references_for(**{**stated, "num_rails": 1, **asked})
    return {quantity: reference.value for quantity, reference in found.items()}


@pytest.mark.parametrize(
    ("program", "stack", "rails", "expected"),
    [
        ("osu_bw", "openmpi", 1, 3800.0),
        ("osu_put_bw", "openmpi", 1, 3400.0),
        ("osu_bw", "mvapich2", 2, 7200.0),
        ("osu_bw", "mvapich2", 1, 3800.0),
    ],
)
def test_the_most_specific_reference_wins(
    program: str, stack: str, rails: int, expected: float
) -> None:
    found = _applied(FULL, program=program, stack=stack, num_rails=rails)
    assert found == {"bandwidth": expected, "latency_8B": 1.4}
    assert _applied(FULL, fabric="eth0") == {}


@pytest.mark.parametrize(
    ("written", "judged"),
    [
        ("bandwidth_1024KiB", "bandwidth_1MiB"),
        ("device_busbw_1024MiB", "device_busbw_1GiB"),
        ("bandwidth_3KiB", "bandwidth_3KiB"),
    ],
)
def test_a_reference_is_of_the_row_that_has_its_size_however_it_is_written(
    written: str, judged: str, tmp_path: Path
) -> None:
    text = f'quantity = "{written}"\nvalue = "3 GB/s"'
    folder = edit(tmp_path, "references.toml", 'quantity = "bandwidth"\nvalue = "3.8 GB/s"', text)
    assert _applied(folder)[judged] == 3000.0


def test_a_collective_must_be_named_and_a_stated_layout_is_the_one_that_it_holds_for(
    tmp_path: Path,
) -> None:
    shutil.copytree(SITES / "vcluster", tmp_path, dirs_exist_ok=True)
    entry = '[[references]]\nquantity = "latency{0}"\nvalue = "{1} us"\nfabric = "eth0"\n{2}\n'
    bcast = 'origin = "o"\nprogram = "osu_bcast"\n'
    (tmp_path / "references.toml").write_text(
        entry.format("", 50, 'origin = "o"')
        + entry.format("_64KiB", 900, bcast)
        + entry.format("_64KiB", 4000, f"{bcast}num_nodes = 4")
        + entry.format("_64KiB", 8000, f"{bcast}num_nodes = 4\nranks_per_node = 2")
    )

    def applied(program: str, **layout: int) -> list[float]:
        return [*_applied(tmp_path, fabric="eth0", program=program, **layout).values()]

    assert applied("osu_latency") == [50]
    assert applied("osu_allreduce", num_nodes=4, ranks_per_node=2) == []
    assert applied("osu_bcast") == applied("osu_bcast", num_nodes=2, ranks_per_node=1) == [900]
    assert applied("osu_bcast", num_nodes=4, ranks_per_node=1) == [4000]
    assert applied("osu_bcast", num_nodes=4, ranks_per_node=2) == [8000]


def test_the_catalogues_name_of_a_stack_and_what_its_mpich_speaks(tmp_path: Path) -> None:
    text = 'family = "mpich"\nprovisioned = {}\n'
    for stated, name, pmi1 in (("true", "openmpi", True), ('"mpich5"', "mpich5", True)):
        new = text.format(stated)
        folder = edit(tmp_path, "site.toml", 'family = "openmpi"\n', new)
        stack = load_site(str(folder)).stack("openmpi")
        assert (stack.installed_as, stack.speaks_pmi1) == (name, pmi1)


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sites that says which this host is by patterns."""
    for name, pattern in (("a", "login1"), ("b", r"login\\d+\\.b\\.org"), ("c", "login12$")):
        folder = edit(tmp_path / name, "site.toml", '"login1", "login2"', f'"{pattern}"')
        text = (folder / "site.toml").read_text()
        (folder / "site.toml").write_text(text.replace('"gordon"', f'"{name}"'))
    shutil.copytree(tmp_path / "a", tmp_path / "gallery" / "x")
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path))
    monkeypatch.delenv("FABRICPROOF_SITE", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("host", "site"),
    [("login1", "a"), ("login1.a.org", "a"), ("login7.b.org", "b"), ("login12", "c"),
     ("login13", "a")],
)  # fmt: skip
def test_a_host_is_matched_by_patterns_the_whole_name_first(
    sites: Path, monkeypatch: pytest.MonkeyPatch, host: str, site: str
) -> None:
    assert [folder.name for folder in site_folders()] == ["a", "b", "c"]
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    assert choose_site().name == site


@pytest.mark.parametrize("text", ["[site", "", "[site]\nhostnames = [1]\n"])
def test_a_broken_neighbour_is_named_and_blocks_nobody(
    sites: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (sites / "a" / "site.toml").write_text(text)
    (sites / "c" / "fabric.toml").write_text("[")
    monkeypatch.setattr(socket, "gethostname", lambda: "login7.b.org")
    assert choose_site().name == "b"
    assert capsys.readouterr().err.startswith("passed over: a: ")
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    with pytest.raises(InputMissingError, match="no site knows this host"):
        choose_site()


def test_a_site_that_is_not_there_has_a_likely_name() -> None:
    with pytest.raises(InputMissingError, match=r"'vcluster' or .* perhaps"):
        load_site("vclustr")


def test_variables_in_access_are_expanded_and_must_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = edit(tmp_path, "site.toml", '"--partition=compute"', '"-A $SBATCH_ACCOUNT"')
    monkeypatch.setenv("SBATCH_ACCOUNT", "p200")
    site = load_site(str(folder))
    check_access(site)
    assert site.partition("compute").access == ["-A p200"]
    monkeypatch.delenv("SBATCH_ACCOUNT")
    with pytest.raises(ConfigError, match=r"site\.toml:13: .*SBATCH_ACCOUNT to be set"):
        check_access(load_site(str(folder)))
