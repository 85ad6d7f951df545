"""A site as ReFrame's configuration, with the guards that hold for every check."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
import reframe

from fabricproof.core.errors import ConfigError
from fabricproof.job.job_end import RECORD_END
from fabricproof.rfm.settings import PERFLOG_COLUMNS, perflog_root, reframe_configuration
from fabricproof.site import load_site

SITES = Path(__file__).parents[2] / "site-configs"
TRAPS = Path(__file__).parents[1] / "rfm" / "site"
SHIPPED = sorted(path.parent.name for path in SITES.glob("*/site.toml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_site_is_a_configuration_that_reframe_accepts(name: str) -> None:
    configuration = reframe_configuration(load_site(str(SITES / name)))
    schema = Path(reframe.__file__).parent / "schemas" / "config.json"
    jsonschema.validate(configuration, json.loads(schema.read_text()))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_guards_are_set_for_every_site(name: str) -> None:
    configuration = reframe_configuration(load_site(str(SITES / name)))
    (general,) = configuration["general"]
    (logging,) = configuration["logging"]
    (perflog,) = logging["handlers_perflog"]
    assert general["trap_job_errors"] is True
    assert logging["perflog_multiline"] is True
    assert perflog["format"] == "|".join(PERFLOG_COLUMNS)
    assert perflog["append"] is True
    assert perflog["locking_enable"] is True


@pytest.mark.parametrize("name", SHIPPED)
def test_no_site_uses_a_scheduler_that_knows_no_exit_codes(name: str) -> None:
    site = load_site(str(SITES / name))
    assert "squeue" not in {partition.scheduler for partition in site.partitions}


def test_no_column_of_the_perflog_depends_on_the_quantity() -> None:
    assert len(set(PERFLOG_COLUMNS)) == len(PERFLOG_COLUMNS)
    assert "%(check_perfvalues)s" not in PERFLOG_COLUMNS
    for column in ("perf_var", "perf_value", "perf_unit"):
        assert f"%(check_{column})s" in PERFLOG_COLUMNS


def test_a_partition_has_its_launcher_and_what_its_own_checks_need_of_reframe() -> None:
    (system,) = reframe_configuration(load_site(str(TRAPS)))["systems"]
    (partition,) = system["partitions"]
    assert partition["launcher"] == "mpirun"
    assert partition["resources"] == [{"name": "memory", "options": ["--mem={size}"]}]


@pytest.mark.parametrize("key", ["launcher", "features", "prepare_cmds"])
def test_what_the_site_file_states_of_a_partition_is_not_stated_twice(
    tmp_path: Path, key: str
) -> None:
    site = _with_reframe_table(tmp_path, "")
    path = site / "site.toml"
    path.write_text(path.read_text().replace("resources = [", f"{key} = ["))
    with pytest.raises(ConfigError, match=rf"\[partitions\.reframe\] may not set {key}"):
        reframe_configuration(load_site(str(site)))


def _with_reframe_table(folder: Path, text: str) -> Path:
    shutil.copytree(TRAPS, folder / "site")
    path = folder / "site" / "site.toml"
    path.write_text(path.read_text() + text)
    return folder / "site"


@pytest.mark.parametrize(
    "option",
    ["trap_job_errors = false", 'check_search_path = ["x"]', "check_search_recursive = false"],
)
def test_a_site_cannot_switch_a_guard_off(tmp_path: Path, option: str) -> None:
    site = load_site(str(_with_reframe_table(tmp_path, f"{option}\n")))
    with pytest.raises(ConfigError, match=r"site\.toml: \[reframe\] may not set"):
        reframe_configuration(site)


def test_a_site_may_set_other_options_of_reframe(tmp_path: Path) -> None:
    site = load_site(str(_with_reframe_table(tmp_path, "pipeline_timeout = 3\n")))
    (general,) = reframe_configuration(site)["general"]
    assert general["pipeline_timeout"] == 3
    assert general["poll_rate_max"] == 50.0


def test_a_partition_carries_its_fabrics_as_features() -> None:
    (system,) = reframe_configuration(load_site(str(SITES / "vcluster")))["systems"]
    (partition,) = system["partitions"]
    assert partition["features"] == ["fabric-eth0"]
    (system,) = reframe_configuration(load_site(str(SITES / "local")))["systems"]
    (partition,) = system["partitions"]
    assert partition["features"] == ["fabric-memory"]


def test_a_site_without_modules_prepares_nothing() -> None:
    (system,) = reframe_configuration(load_site(str(TRAPS)))["systems"]
    assert system["partitions"][0]["prepare_cmds"] == [RECORD_END]


def test_the_perflogs_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", "/scratch/logs")
    assert perflog_root() == Path("/scratch/logs")
