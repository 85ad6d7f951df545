"""How ranks are started: the PMI of each family, and the site's word on it."""

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.stacks.family import FAMILIES
from fabricproof.stacks.launch import SRUN_PMI, find_pmi2_library, plan_launch

LIBRARY = "/l/libpmi2.so.0"


def test_each_family_is_started_with_the_pmi_it_speaks():
    assert set(SRUN_PMI) >= set(FAMILIES)
    assert plan_launch("openmpi").options == ("--mpi=pmix",)
    assert plan_launch("mpich").options == ("--mpi=pmi2",)
    assert plan_launch("craympich").options == ("--mpi=cray_shasta",)
    assert plan_launch("parastation").options == ()
    intel = plan_launch("intelmpi", pmi2_library=LIBRARY)
    assert intel.options == ("--mpi=pmi2",)
    assert intel.environment == {"I_MPI_PMI_LIBRARY": LIBRARY}


@pytest.mark.parametrize(
    ("pmi", "options"),
    [
        ("pmix", ("--mpi=pmix",)),
        ("pspmix", ("--mpi=pspmix",)),
        ("pmi1", ("--mpi=pmi2",)),
        ("default", ()),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_sites_word_on_pmi_wins(family: str, pmi: str, options: tuple[str, ...]):
    assert plan_launch(family, pmi=pmi, pmi2_library=LIBRARY).options == options


def test_a_pmi_library_that_the_site_states_is_not_overwritten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fabricproof.stacks.launch.PMI2_LIBRARIES", ())
    stated = {"I_MPI_PMI_LIBRARY": "/slurm/lib/libpmi.so"}
    assert plan_launch("intelmpi", stated=stated).environment == {}
    for pmi in ("default", "pmix"):
        assert plan_launch("intelmpi", pmi=pmi).environment == {}


def test_a_familys_own_launcher_needs_no_pmi_of_slurm():
    launch = plan_launch("intelmpi", "mpiexec", pmi="pmix")
    assert (launch.launcher, launch.options, launch.environment) == ("mpirun", (), {})
    assert plan_launch("mpich", "mpirun").launcher == "mpiexec"


def test_what_cannot_start_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="unknown MPI family"):
        plan_launch("lam")
    with pytest.raises(ConfigError, match="unknown launcher"):
        plan_launch("openmpi", "prun")
    with pytest.raises(UnavailableError, match="apt-get install libpmi2-0"):
        find_pmi2_library((str(tmp_path / "libpmi2.so"),))
