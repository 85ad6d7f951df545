"""Site files: those that ship load, and a wrong one says where and what in one line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, ExitStatus, FabricproofError, InputMissingError
from fabricproof.physics import bound
from fabricproof.site import load_site, site_folders
from fabricproof.site.model import build_fabric
from fabricproof.site.schema import FabricSpec, RailSpec

DATA = Path(__file__).parent / "data"
ERRORS = sorted((DATA / "err").iterdir())


@pytest.mark.parametrize("folder", site_folders(), ids=lambda folder: folder.name)
def test_every_shipped_site_loads(folder: Path) -> None:
    site = load_site(folder.name)
    assert site.name == folder.name
    assert load_site(str(folder)).spec == site.spec
    for spec in site.fabrics:
        rails = tuple(rail.interface for rail in spec.rails)
        if spec.link is not None:
            assert bound(site.fabric(spec.name, rails)).low_mb_s > 0
    for partition in site.partitions:
        for name in partition.stacks:
            assert site.stack(name).name == name
        for name in partition.fabrics:
            assert site.fabric_spec(name).name == name


def test_a_byte_order_mark_is_no_damage(tmp_path: Path) -> None:
    shutil.copytree(DATA / "full", tmp_path, dirs_exist_ok=True)
    file = tmp_path / "site.toml"
    file.write_text(file.read_text(), encoding="utf-8-sig")
    assert load_site(str(tmp_path)).name == "gordon"


def test_there_are_shipped_sites() -> None:
    assert {"vcluster", "local"} <= {folder.name for folder in site_folders()}


def test_the_smallest_site_gets_its_defaults() -> None:
    site = load_site(str(DATA / "defaults"))
    assert site.spec.tolerance == 0.10
    assert site.spec.modules_system == "lmod"
    assert site.partition("p").scheduler == "slurm"
    assert site.references == ()
    assert site.fabric("ib0").num_rails == 1
    assert site.fabric("ib0").slot is None


def test_a_full_site_keeps_what_it_says() -> None:
    site = load_site(str(DATA / "full"))
    assert site.spec.tolerance == 0.08
    assert site.partition("compute").max_message_size == "8MiB"
    assert site.stack("mvapich2").environment == {"MV2_NUM_HCAS": "2"}
    assert site.stack("mvapich2").suites == {"osu": "/opt/osu/bin"}
    assert site.reframe == {"general": [{"verbose": 1}]}
    assert site.fabric("eth0").flow_limit_gbit_s == 5.0
    assert site.fabric("eth0").capability_mb_s == 1125.0


def test_a_rail_in_another_slot_has_its_own_ceiling() -> None:
    site = load_site(str(DATA / "full"))
    first = bound(site.fabric("ib0", ["mlx4_0:1"]))
    second = bound(site.fabric("ib0", ["mlx4_1:1"]))
    assert first.name == "protocol"
    assert second.name == "slot_packet"
    assert second.high_mb_s < first.low_mb_s
    both = site.fabric("ib0", ["mlx4_0:1", "mlx4_1:1"])
    assert (both.num_rails, both.max_payload_bytes) == (2, 128)


def test_the_fabrics_own_maxpayload_counts_for_rails_that_state_none(tmp_path: Path) -> None:
    shutil.copytree(DATA / "full", tmp_path, dirs_exist_ok=True)
    file = tmp_path / "fabric.toml"
    file.write_text(file.read_text().replace("max_payload_bytes = 128", "max_payload_bytes = 512"))
    site = load_site(str(tmp_path))
    assert site.fabric("ib0", ["mlx4_0:1", "mlx4_1:1"]).max_payload_bytes == 256


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
    found = load_site(str(DATA / "full")).references_for(
        fabric="ib0", suite="osu", program=program, stack=stack, num_rails=rails
    )
    assert found["bandwidth"].value == expected
    assert found["latency_8B"].value == 1.4


def test_references_of_another_fabric_do_not_apply() -> None:
    found = load_site(str(DATA / "full")).references_for(
        fabric="eth0", suite="osu", program="osu_bw", stack="openmpi", num_rails=1
    )
    assert found == {}


def _with_reference(folder: Path, quantity: str, value: str) -> str:
    shutil.copytree(DATA / "full", folder, dirs_exist_ok=True)
    entry = f'quantity = "{quantity}"\nvalue = "{value}"\nfabric = "ib0"\norigin = "test"\n'
    with (folder / "references.toml").open("a") as file:
        file.write(f"\n[[references]]\n{entry}")
    return str(folder)


@pytest.mark.parametrize(
    ("written", "judged"),
    [
        ("bandwidth_1024KiB", "bandwidth_1MiB"),
        ("bandwidth_4194304B", "bandwidth_4MiB"),
        ("device_busbw_1024MiB", "device_busbw_1GiB"),
        ("bandwidth_3KiB", "bandwidth_3KiB"),
    ],
)
def test_a_reference_is_of_the_row_that_has_its_size_however_it_is_written(
    written: str, judged: str, tmp_path: Path
) -> None:
    found = load_site(_with_reference(tmp_path, written, "3 GB/s")).references_for(
        fabric="ib0", suite="osu", program="osu_bw", stack="openmpi", num_rails=1
    )
    assert found[judged].value == 3000.0
    assert written == judged or written not in found


def test_two_spellings_of_one_size_are_two_values_of_one_quantity(tmp_path: Path) -> None:
    _with_reference(tmp_path / "once", "bandwidth_1MiB", "3 GB/s")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    with (tmp_path / "twice" / "references.toml").open("a") as file:
        text = (tmp_path / "once" / "references.toml").read_text().rpartition("[[references]]")
        file.write("\n[[references]]" + text[2].replace("_1MiB", "_1024KiB"))
    load_site(str(tmp_path / "once"))
    with pytest.raises(ConfigError, match="a second value of 'bandwidth_1024KiB'"):
        load_site(str(tmp_path / "twice"))


def _overlaid(error_file: Path, folder: Path) -> tuple[str, str]:
    """Lay one wrong file over the full site; return the folder and the expected message."""
    shutil.copytree(DATA / "full", folder, dirs_exist_ok=True)
    shutil.copy(error_file, folder / f"{error_file.name.split('.')[1]}.toml")
    first = error_file.read_text().splitlines()[0]
    return str(folder), first.removeprefix("# ")


@pytest.mark.parametrize("error_file", ERRORS, ids=lambda path: path.name)
def test_a_wrong_file_is_named_with_its_line(error_file: Path, tmp_path: Path) -> None:
    folder, expected = _overlaid(error_file, tmp_path)
    with pytest.raises(FabricproofError) as refused:
        load_site(folder)
    said = str(refused.value).removeprefix(f"{folder}/")
    pattern = ".*".join(re.escape(part) for part in expected.split("..."))
    assert re.fullmatch(pattern, said), said
    assert refused.value.exit_status in {ExitStatus.CONFIG, ExitStatus.DATA}


@pytest.mark.parametrize("error_file", ERRORS, ids=lambda path: path.name)
def test_the_named_line_holds_what_is_wrong(error_file: Path, tmp_path: Path) -> None:
    folder, _ = _overlaid(error_file, tmp_path)
    with pytest.raises(FabricproofError) as refused:
        load_site(folder)
    error = refused.value
    if error.line is None:
        assert "missing key 'partitions'" in error.problem
        return
    line = error_file.read_text().splitlines()[error.line - 1]
    wrong = (error.got or "").strip("'")
    # A missing key has the line of its table, a key inside a list that of the list.
    assert wrong in line or line.startswith(("[[", "rails = [", "quantity = "))


@pytest.mark.parametrize("name", ["site.toml", "fabric.toml"])
def test_a_file_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    shutil.copytree(DATA / "full", tmp_path, dirs_exist_ok=True)
    (tmp_path / name).unlink()
    with pytest.raises(InputMissingError) as refused:
        load_site(str(tmp_path))
    assert refused.value.exit_status == ExitStatus.NO_INPUT


def test_a_site_without_references_is_fine(tmp_path: Path) -> None:
    shutil.copytree(DATA / "full", tmp_path, dirs_exist_ok=True)
    (tmp_path / "references.toml").unlink()
    assert load_site(str(tmp_path)).references == ()


def test_an_unknown_site_lists_the_known_ones() -> None:
    with pytest.raises(InputMissingError, match=r"no such site.*vcluster.*got 'nowhere'"):
        load_site("nowhere")


def test_text_in_another_encoding_is_named(tmp_path: Path) -> None:
    shutil.copytree(DATA / "full", tmp_path, dirs_exist_ok=True)
    (tmp_path / "fabric.toml").write_bytes(b'description = "caf\xe9"')
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_site(str(tmp_path))


def test_the_folder_of_sites_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DATA / "defaults", tmp_path / "mine")
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path))
    assert [folder.name for folder in site_folders()] == ["mine"]
    assert load_site("mine").name == "smallest"
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path / "none"))
    assert site_folders() == []


@pytest.mark.parametrize(
    ("rails", "words"), [(["mlx9"], "no such rail"), (["mlx4_0:1"] * 2, "a rail twice")]
)
def test_rails_are_those_of_the_site_each_once(rails: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_site(str(DATA / "full")).fabric("ib0", rails)


def test_unlike_rails_may_reach_the_sum_of_their_own_ceilings_and_no_more() -> None:
    """Gordon: rail 0 at the link's rate, rail 1 in a Gen2 riser; shared by weight both are full."""
    riser = RailSpec(interface="mlx4_1:1", pcie="2.0x8", max_payload_bytes=128)
    spec = FabricSpec(
        name="ib", link="QDR 4x", pcie="3.0x8", rails=[RailSpec(interface="mlx4_0:1"), riser]
    )
    alone = [build_fabric(spec, (rail.interface,)) for rail in spec.rails]
    both = build_fabric(spec, ("mlx4_0:1", "mlx4_1:1"))
    assert bound(both).high_mb_s == pytest.approx(sum(bound(each).high_mb_s for each in alone))
    assert bound(both).low_mb_s == pytest.approx(2 * min(bound(each).low_mb_s for each in alone))
    assert alone[0].unlike_rails_high_mb_s is None
