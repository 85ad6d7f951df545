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


def test_reframes_own_keys_follow_ours_and_cannot_take_them_back(tmp_path: Path) -> None:
    path = _with_reframe_table(tmp_path, "") / "site.toml"
    text = path.read_text()
    own = (
        'features = ["gpu"], prepare_cmds = ["umask 022"], time_limit = "1h", resources = ['
        ", sched_options = { use_nodes_option = true, sched_access_in_submit = true }"
    )
    begin, end = own.split("resources = [")
    text = text.replace("{ resources = [", f"{{ {begin}resources = [")
    text = text.replace(" }] }\n", f" }}]{end} }}\n", 1)
    text = text.replace("version =", 'reframe = { cc = "cc", features = ["x"] }\nversion =', 1)
    path.write_text(text)
    configuration = reframe_configuration(load_site(str(path.parent)))
    partition, environment = (
        configuration["systems"][0]["partitions"][0],
        configuration["environments"][0],
    )
    assert partition["features"] == ["fabric-eth0", "gpu"]
    assert "trap fabricproof_ends EXIT" in partition["prepare_cmds"][0]
    assert partition["prepare_cmds"][-1] == "umask 022"
    assert partition["sched_options"] == {"use_nodes_option": True, "sched_access_in_submit": False}
    assert (partition["time_limit"], environment["cc"]) == ("1h", "cc")
    assert "mpi" in environment["features"]
    assert "x" in environment["features"]


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
