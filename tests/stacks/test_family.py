"""Paths: the exact environment of every family, and what each family cannot do."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError
from fabricproof.stacks.family import (
    FAMILIES,
    bus_environment,
    default_transport,
    gpu_environment,
    path_environment,
    rails_refusal,
)
from fabricproof.traffic.transports import transport_refusal, transports_over

PROTOCOLS = ("tcp", "ib", "rocev2", "opa", "slingshot", "efa")
SPOKEN = [(each, over) for each in FAMILIES for over in PROTOCOLS if transports_over(each, over)]
RAILS = {"opa": ["hfi1_0:1", "hfi1_1:1"], "slingshot": ["cxi0", "cxi1"]}


def rails_of(protocol: str) -> list[str]:
    return RAILS.get(protocol, ["x0:1", "x1:1"] if protocol != "tcp" else ["rail0", "rail1"])


#: one path a line: family, protocol, rails, options, then the variables.  Of TCP and Soft-RoCE they
#: were seen to move every byte over the rails and none elsewhere.
GOLDEN = (Path(__file__).parent / "paths.txt").read_text().split("\n\n")


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.split("\n")[0])
def test_golden_environment(case: str):
    head, *lines = case.strip().split("\n")
    family, protocol, rails, *options = head.split()
    told = dict(each.split("=") for each in options)
    environment = path_environment(family, protocol, rails.split(","), **told)
    assert [f"{name}={value}" for name, value in sorted(environment.items())] == lines


@pytest.mark.parametrize(("family", "protocol"), SPOKEN)
def test_no_path_lets_shared_memory_or_another_network_in(family: str, protocol: str):
    """UCX, libfabric and pscom fall back in silence where they may."""
    for transport in (None, *transports_over(family, protocol)):
        for launcher in ("srun", "mpirun"):
            environment = path_environment(
                family, protocol, rails_of(protocol)[:1], transport=transport, launcher=launcher
            )
            words = {
                word
                for name, value in environment.items()
                if re.match("UCX_TLS|FI_PROVIDER|I_MPI_(OFI|FABRICS)|OMPI_MCA_btl", name)
                for word in value.replace(";", ",").split(",")
            }
            assert not words & {"sm", "shm", "vader", "posix", "cma", "all", "net"}
            assert protocol == "tcp" or not words & {"tcp", "sockets"}
            on = [
                name for name, value in environment.items() if name[:4] == "PSP_" and value == "1"
            ]
            assert len([name for name in on if "_" not in name[4:]]) == (family == "parastation")
            assert environment.get("MV2_USE_SHARED_MEM", "0") == "0"
            assert environment.get("MPIR_CVAR_NOLOCAL", "1") == "1"
            assert family != "craympich" or not any("MPIR_CVAR" in name for name in environment)


def test_mpich_on_loopback_avoids_ucx_which_finds_no_route():
    environment = path_environment("mpich", "tcp", ["lo"], launcher="mpiexec")
    assert environment["FI_TCP_IFACE"] == "lo"


def test_ipoib_is_sockets_to_the_mpi():
    sockets = path_environment("openmpi", "ipoib", ["ib0"])
    assert path_environment("openmpi", "tcp", ["ib0"]) == sockets


@pytest.mark.parametrize(("family", "protocol"), SPOKEN)
def test_yielding_only_where_cores_are_shared(family: str, protocol: str):
    rails = rails_of(protocol)[:1]
    plain = path_environment(family, protocol, rails)
    shared = path_environment(family, protocol, rails, oversubscribed=True)
    assert plain == {name: shared[name] for name in plain}
    # With Open MPI's oversubscribe mapping both ranks ran on one node: 1700 MB/s of memory.
    assert not any("oversubscribe" in value for value in shared.values())


@pytest.mark.parametrize(
    ("family", "protocol", "options", "words"),
    [
        ("openmpi", "tcp", {}, None),
        ("mpich", "tcp", {"launcher": "mpiexec", "pmi1": True}, None),
        ("mpich", "tcp", {}, None),
        ("intelmpi", "ib", {}, None),  # mlx below is UCX, which takes a list
        ("parastation", "ib", {}, None),
        ("mvapich2", "ib", {}, None),
        ("mpich", "tcp", {"pmi1": True}, "PMI-1"),
        ("intelmpi", "tcp", {}, "one of them"),
        ("openmpi", "rocev2", {"transport": "libfabric"}, "one device"),
        ("mpich", "rocev2", {"transport": "libfabric"}, "FI_VERBS_DEVICE_NAME names one device"),
        ("intelmpi", "rocev2", {}, "FI_VERBS_DEVICE_NAME names one device"),
        ("openmpi", "opa", {}, "name one Omni-Path adapter"),
        ("mvapich2", "opa", {}, "name one Omni-Path adapter"),
        ("parastation", "ib", {"transport": "native"}, "PSP_OPENIB_HCA names one adapter"),
        ("craympich", "slingshot", {}, "each rank one NIC"),
        ("craympich", "tcp", {}, "nobody has documented"),
        ("mvapich2", "efa", {}, "nobody has documented"),
    ],
)
def test_several_rails_or_the_reason(
    family: str, protocol: str, options: dict[str, object], words: str | None
):
    refusal = rails_refusal(family, protocol, 2, **options)
    assert (refusal is None) == (words is None)
    assert (words or "") in (refusal or "")


def test_one_rail_of_ucx_is_too_much_for_pmi1_as_well():
    assert "PMI-1" in (rails_refusal("mpich", "rocev2", 1, pmi1=True) or "")
    assert rails_refusal("mpich", "rocev2", 1, launcher="mpirun", pmi1=True) is None
    assert rails_refusal("mpich", "tcp", 1, pmi1=True) is None


@given(
    st.sampled_from(SPOKEN),
    st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
    st.sampled_from(["srun", "mpirun"]),
)
def test_every_rail_that_may_be_used_is_named(
    path: tuple[str, str], numbers: list[int], launcher: str
):
    family, protocol = path
    form = {"tcp": "eth{}", "opa": "hfi1_{}:1", "slingshot": "cxi{}"}.get(protocol, "x{}:1")
    rails = [form.format(each) for each in numbers]
    assert rails_refusal(family, protocol, 1) is None
    assert default_transport(family, protocol) in transports_over(family, protocol)
    if rails_refusal(family, protocol, len(rails), launcher=launcher) is None:
        environment = path_environment(family, protocol, rails, launcher=launcher)
        named = set(re.split("[,:]", ",".join(environment.values())))
        for rail, number in zip(rails, numbers, strict=True):
            whole = rail.partition(":")[0]
            assert {whole, whole.removeprefix("cxi"), str(number)} & named


@pytest.mark.parametrize(
    ("arguments", "options", "complaint"),
    [
        (("lam", "tcp", ["rail0"]), {}, "unknown MPI family"),
        (("openmpi", "tcp", []), {}, "needs an interface"),
        (("mpich", "opa", ["opap24s0:1"]), {}, "names the driver's unit"),
        (("intelmpi", "tcp", ["rail0"]), {"transport": "ucx"}, "has no transport 'ucx'"),
        (("openmpi", "ib", ["a"]), {"transport": "native"}, "native does not speak ib"),
        (("openmpi", "bxi", ["bxi0"]), {}, "libfabric does not speak bxi"),
        (("mpich", "efa", ["efa0"]), {"transport": "ucx"}, "ucx does not speak"),
        (("openmpi", "tcp", ["rail0"]), {"transport": "ucx-ud"}, "ucx-ud does not speak"),
        (("craympich", "tcp", ["hsn0"]), {}, "libfabric does not speak tcp"),
        (("mvapich2", "ib", ["mlx5_0:1", "mlx5_0:2"]), {}, "one port of all HCAs"),
    ],
)
def test_what_cannot_be_said_is_refused(
    arguments: tuple[str, str, list[str]], options: dict[str, str], complaint: str
):
    with pytest.raises(ConfigError, match=complaint):
        path_environment(*arguments, **options)


def test_a_transport_is_refused_by_what_it_speaks():
    assert transport_refusal("openmpi", "tcp", "ucx-rc") is not None
    assert transport_refusal("craympich", "slingshot", None) is None
    assert "has no transport" in str(transport_refusal("mvapich2", "ib", "ucx"))


def test_buffers_on_gpus():
    told = gpu_environment("craympich", "rocm", {})
    assert told == {"MPICH_GPU_SUPPORT_ENABLED": "1"}
    assert gpu_environment("mvapich2", "rocm", {}) == {"MV2_USE_ROCM": "1"}
    assert gpu_environment("mpich", "cuda", {"UCX_TLS": "rc,self"})["UCX_TLS"] == "rc,self,cuda"


@pytest.mark.parametrize(
    ("protocol", "rails", "told"),
    [
        ("efa", ["rdmap0s6:1", "rdmap1s6:1"], {"FI_EFA_IFACE": "rdmap0s6,rdmap1s6"}),
        ("slingshot", ["cxi0", "cxi1"], {"FI_CXI_DEVICE_NAME": "cxi0,cxi1"}),
    ],
)
def test_nccl_goes_by_its_plugin_where_it_has_no_module(
    protocol: str, rails: list[str], told: dict[str, str]
):
    environment = bus_environment(protocol, rails)
    provider = {"FI_PROVIDER": "efa" if protocol == "efa" else "cxi"}
    chosen = {"NCCL_NET": "AWS Libfabric", "NCCL_DEBUG": "INFO", "NCCL_MNNVL_ENABLE": "0"}
    assert environment == {**told, **provider, **chosen}
    newer = bus_environment(protocol, rails, {"NCCL_NET": "Libfabric"})
    assert newer["NCCL_NET"] == "Libfabric"
    with pytest.raises(ConfigError):
        bus_environment("opa", rails)
