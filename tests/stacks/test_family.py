"""Paths: the exact environment of every family, and what each family cannot do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError
from fabricproof.stacks.family import (
    FAMILIES,
    default_transport,
    path_environment,
    rails_refusal,
)
from fabricproof.traffic.transports import stated_transport, transports_over


def can_use_rails(family: str, protocol: str, rails: int, **options: object) -> bool:
    return rails_refusal(family, protocol, rails, **options) is None


#: the environments that were seen to move every byte over rail0 and none elsewhere.
GOLDEN = [
    (
        ("openmpi", "tcp", ["rail0"]),
        {},
        {
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "self,tcp",
            "OMPI_MCA_btl_tcp_if_include": "rail0",
        },
    ),
    (
        ("openmpi", "tcp", ["rail0", "rail1"]),
        {"version": "4.1"},
        {
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "self,tcp",
            "OMPI_MCA_btl_tcp_if_include": "rail0,rail1",
            "OMPI_MCA_osc": "pt2pt",
        },
    ),
    (
        ("mpich", "tcp", ["rail0"]),
        {"launcher": "srun"},
        {
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "MPIR_CVAR_NOLOCAL": "1",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "rail0",
        },
    ),
    (
        ("mpich", "tcp", ["rail0", "rail1"]),
        {"launcher": "mpiexec"},
        {
            "MPIR_CVAR_CH4_NETMOD": "ucx",
            "MPIR_CVAR_NOLOCAL": "1",
            "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": "rail0,rail1",
            "UCX_MAX_RNDV_RAILS": "2",
            "UCX_MAX_EAGER_RAILS": "2",
        },
    ),
    (
        ("intelmpi", "tcp", ["rail0"]),
        {},
        {
            "I_MPI_FABRICS": "ofi",
            "I_MPI_OFI_PROVIDER": "tcp",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "rail0",
        },
    ),
    (
        ("openmpi", "ib", ["mlx5_0:1", "mlx5_1:1"]),
        {},
        {
            "OMPI_MCA_coll_hcoll_enable": "0",
            "OMPI_MCA_coll_ucc_enable": "0",
            "OMPI_MCA_pml": "ucx",
            "OMPI_MCA_osc": "ucx",
            "OMPI_MCA_btl": "self",
            "OMPI_MCA_opal_common_ucx_tls": "any",
            "OMPI_MCA_opal_common_ucx_devices": "any",
            "UCX_TLS": "rc,ud,self",
            "UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1",
            "UCX_MAX_RNDV_RAILS": "2",
            "UCX_MAX_EAGER_RAILS": "2",
        },
    ),
    (
        ("openmpi", "rocev2", ["rxe0:1"]),
        {"transport": "libfabric"},
        {
            "OMPI_MCA_coll_hcoll_enable": "0",
            "OMPI_MCA_coll_ucc_enable": "0",
            "OMPI_MCA_pml": "cm",
            "OMPI_MCA_mtl": "ofi",
            "OMPI_MCA_btl": "self",
            "OMPI_MCA_mtl_ofi_provider_include": "verbs;ofi_rxm",
            "FI_PROVIDER": "verbs;ofi_rxm",
            "FI_VERBS_DEVICE_NAME": "rxe0",
        },
    ),
    (
        ("intelmpi", "ib", ["mlx5_0:1"]),
        {},
        {
            "I_MPI_FABRICS": "ofi",
            "I_MPI_OFI_PROVIDER": "mlx",
            "FI_PROVIDER": "mlx",
            "UCX_TLS": "rc,ud,self",
            "UCX_NET_DEVICES": "mlx5_0:1",
            "UCX_MAX_RNDV_RAILS": "1",
            "UCX_MAX_EAGER_RAILS": "1",
        },
    ),
    (
        ("openmpi", "rocev2", ["rxe0:1"]),
        {"transport": "ucx-ud", "version": "4.1"},
        {
            "OMPI_MCA_coll_hcoll_enable": "0",
            "OMPI_MCA_coll_ucc_enable": "0",
            "OMPI_MCA_pml": "ucx",
            "OMPI_MCA_osc": "ucx",
            "OMPI_MCA_btl": "self",
            "OMPI_MCA_opal_common_ucx_tls": "any",
            "OMPI_MCA_opal_common_ucx_devices": "any",
            "UCX_TLS": "ud,self",
            "UCX_NET_DEVICES": "rxe0:1",
            "UCX_MAX_RNDV_RAILS": "1",
            "UCX_MAX_EAGER_RAILS": "1",
        },
    ),
    (
        ("mpich", "rocev2", ["rxe0:1", "rxe1:1"]),
        {"transport": "ucx-rc"},
        {
            "MPIR_CVAR_CH4_NETMOD": "ucx",
            "MPIR_CVAR_NOLOCAL": "1",
            "UCX_TLS": "rc,self",
            "UCX_NET_DEVICES": "rxe0:1,rxe1:1",
            "UCX_MAX_RNDV_RAILS": "2",
            "UCX_MAX_EAGER_RAILS": "2",
        },
    ),
    (
        # Seen to run over Soft-RoCE with these: impi 2021.18.1 names its provider verbs;ofi_rxm.
        ("intelmpi", "rocev2", ["rxe0:1"]),
        {},
        {
            "I_MPI_FABRICS": "ofi",
            "I_MPI_OFI_PROVIDER": "verbs",
            "FI_PROVIDER": "verbs",
            "FI_VERBS_DEVICE_NAME": "rxe0",
        },
    ),
    (
        ("openmpi", "opa", ["hfi1_1:1"]),
        {},
        {
            "OMPI_MCA_coll_hcoll_enable": "0",
            "OMPI_MCA_coll_ucc_enable": "0",
            "OMPI_MCA_pml": "cm",
            "OMPI_MCA_mtl": "ofi",
            "OMPI_MCA_btl": "self",
            "OMPI_MCA_mtl_ofi_provider_include": "opx",
            "FI_PROVIDER": "opx",
            "FI_OPX_HFI_SELECT": "1",
        },
    ),
    (
        ("intelmpi", "opa", ["hfi1_0:1"]),  # its libfabric has no opx
        {},
        {
            "I_MPI_FABRICS": "ofi",
            "I_MPI_OFI_PROVIDER": "psm2",
            "FI_PROVIDER": "psm2",
            "HFI_UNIT": "0",
        },
    ),
    (
        ("openmpi", "efa", ["rdmap0s6:1"]),
        {},
        {
            "OMPI_MCA_pml": "cm",
            "OMPI_MCA_mtl": "ofi",
            "OMPI_MCA_btl": "self",
            "OMPI_MCA_coll_hcoll_enable": "0",
            "OMPI_MCA_coll_ucc_enable": "0",
            "OMPI_MCA_mtl_ofi_provider_include": "efa",
            "FI_PROVIDER": "efa",
            "FI_EFA_IFACE": "rdmap0s6",
        },
    ),
    (
        ("intelmpi", "efa", ["rdmap0s6:1", "rdmap0s7:1"]),
        {},
        {
            "I_MPI_FABRICS": "ofi",
            "I_MPI_OFI_PROVIDER": "efa",
            "FI_PROVIDER": "efa",
            "FI_EFA_IFACE": "rdmap0s6,rdmap0s7",
            "I_MPI_MULTIRAIL": "1",
        },
    ),
    (
        ("mvapich", "slingshot", ["cxi0", "cxi1"]),
        {},
        {
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "MPIR_CVAR_NOLOCAL": "1",
            "FI_PROVIDER": "cxi",
            "FI_CXI_DEVICE_NAME": "cxi0,cxi1",
            "MPIR_CVAR_CH4_OFI_MAX_NICS": "2",
            "MPIR_CVAR_CH4_OFI_ENABLE_STRIPING": "1",
        },
    ),
]


@pytest.mark.parametrize(("net_path", "options", "expected"), GOLDEN)
def test_golden_environment(
    net_path: tuple[str, str, list[str]], options: dict[str, str], expected: dict[str, str]
):
    assert expected == path_environment(*net_path, **options)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_path_leaves_shared_memory_on(family: str):
    for launcher in ("srun", "mpirun"):
        environment = path_environment(family, "tcp", ["rail0"], launcher=launcher)
        assert not any(
            word in value.replace("self", "").split(",")
            for value in environment.values()
            for word in ("sm", "shm", "vader", "posix", "cma")
        )
        switched_off = {
            "openmpi": environment.get("OMPI_MCA_btl") == "self,tcp",
            "mpich": environment.get("MPIR_CVAR_NOLOCAL") == "1",
            "mvapich": environment.get("MPIR_CVAR_NOLOCAL") == "1",
            "intelmpi": environment.get("I_MPI_FABRICS") == "ofi",
        }
        assert switched_off[family]


def test_mpich_on_loopback_avoids_ucx_which_finds_no_route():
    environment = path_environment("mpich", "tcp", ["lo"], launcher="mpiexec")
    assert environment["FI_TCP_IFACE"] == "lo"


def test_ipoib_is_sockets_to_the_mpi():
    assert path_environment("openmpi", "tcp", ["ib0"]) == path_environment(
        "openmpi", "ipoib", ["ib0"]
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_yielding_only_where_cores_are_shared(family: str):
    plain = path_environment(family, "tcp", ["rail0"])
    shared = path_environment(family, "tcp", ["rail0"], oversubscribed=True)
    assert plain == {name: shared[name] for name in plain}
    assert not any("YIELD" in name.upper() or "PIN" in name for name in plain)


def test_shared_cores_never_make_mpirun_fill_the_first_node():
    """With Open MPI's oversubscribe mapping both ranks ran on one node: 1700 MB/s of memory."""
    shared = path_environment("openmpi", "tcp", ["rail0"], oversubscribed=True)
    assert not any("oversubscribe" in value for value in shared.values())
    assert shared["PRTE_MCA_hwloc_default_binding_policy"] == "none"


def test_two_tcp_rails_by_family():
    assert can_use_rails("openmpi", "tcp", 2)
    assert can_use_rails("mpich", "tcp", 2, launcher="mpiexec", pmi1=True)
    assert "PMI-1" in (rails_refusal("mpich", "tcp", 2, pmi1=True) or "")
    assert can_use_rails("mpich", "tcp", 2)
    assert "one of them" in (rails_refusal("intelmpi", "tcp", 2) or "")


def test_open_mpi_over_libfabric_has_one_device():
    refusal = rails_refusal("openmpi", "rocev2", 2, transport="libfabric")
    assert refusal is not None
    assert "one device" in refusal


@pytest.mark.parametrize("family", ["intelmpi", "mpich", "mvapich"])
def test_libfabrics_verbs_have_one_device_name(family: str):
    refusal = rails_refusal(family, "rocev2", 2, transport="libfabric")
    assert "FI_VERBS_DEVICE_NAME names one device" in (refusal or "")
    assert can_use_rails(family, "rocev2", 1, transport="libfabric")
    # mlx below Intel MPI on InfiniBand is UCX, which takes a list.
    assert can_use_rails("intelmpi", "ib", 2)


def test_one_rail_of_ucx_is_too_much_for_pmi1_as_well():
    assert "PMI-1" in (rails_refusal("mpich", "rocev2", 1, pmi1=True) or "")
    assert can_use_rails("mpich", "rocev2", 1, launcher="mpirun", pmi1=True)
    assert can_use_rails("mpich", "tcp", 1, pmi1=True)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", ["ib", "rocev2"])
def test_no_path_over_verbs_lets_tcp_in(family: str, protocol: str):
    """UCX and libfabric fall back in silence where they may."""
    for transport in (None, *transports_over(family, protocol)):
        environment = path_environment(family, protocol, ["x0:1"], transport=transport)
        words = {
            word
            for name, value in environment.items()
            if name.startswith(("UCX_TLS", "FI_PROVIDER", "I_MPI_OFI", "OMPI_MCA_btl"))
            for word in value.replace(";", ",").split(",")
        }
        assert words & {"rc", "ud", "verbs", "mlx"}
        assert not words & {"tcp", "sockets", "all", "net", "sm", "shm", "ib"}
        assert not any("oob" in name or "mgmt" in value for name, value in environment.items())


@pytest.mark.parametrize("family", FAMILIES)
def test_two_omni_path_adapters_are_more_than_a_process_is_told(family: str):
    assert "name one Omni-Path adapter" in (rails_refusal(family, "opa", 2) or "")


@given(st.sampled_from(FAMILIES), st.sampled_from(["tcp", "ib", "rocev2", "opa"]))
def test_one_rail_is_never_refused(family: str, protocol: str):
    assert can_use_rails(family, protocol, 1)
    assert default_transport(family, protocol) in {"ucx", "libfabric", "native"}


@given(
    st.sampled_from(FAMILIES),
    st.sampled_from(["tcp", "ib", "rocev2"]),
    st.lists(
        st.from_regex(r"[a-z]{2,5}[0-9]", fullmatch=True), min_size=1, max_size=4, unique=True
    ),
    st.sampled_from(["srun", "mpirun"]),
)
def test_every_rail_that_may_be_used_is_named(
    family: str, protocol: str, interfaces: list[str], launcher: str
):
    if can_use_rails(family, protocol, len(interfaces), launcher=launcher):
        environment = path_environment(family, protocol, interfaces, launcher=launcher)
        named = ",".join(environment.values()).split(",")
        wanted = interfaces if protocol == "tcp" or family == "openmpi" else interfaces[:1]
        assert all(interface in named for interface in wanted)


@pytest.mark.parametrize(
    ("arguments", "options", "complaint"),
    [
        (("lam", "tcp", ["rail0"]), {}, "unknown MPI family"),
        (("openmpi", "tcp", []), {}, "needs an interface"),
        (("mpich", "opa", ["opap24s0:1"]), {}, "names the driver's unit"),
        (("intelmpi", "tcp", ["rail0"]), {"transport": "ucx"}, "has no transport 'ucx'"),
        (("openmpi", "ib", ["a"]), {"transport": "native"}, "own transport is TCP"),
        (("openmpi", "bxi", ["bxi0"]), {}, "no libfabric provider"),
        (("mpich", "efa", ["efa0"]), {"transport": "ucx"}, "UCX does not speak"),
        (("openmpi", "tcp", ["rail0"]), {"transport": "ucx-ud"}, "ucx-ud does not speak"),
        (("openmpi", "tcp", ["rail0"]), {"transport": "ucx-dc"}, "ucx-dc does not speak"),
        (("intelmpi", "ib", ["a"]), {"transport": "ucx-rc"}, "has no transport 'ucx-rc'"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: tuple[str, str, list[str]], options: dict[str, str], complaint: str
):
    with pytest.raises(ConfigError, match=complaint):
        path_environment(*arguments, **options)


def test_a_fabrics_transport_is_for_the_families_that_have_it():
    assert stated_transport("mpich", None, "ucx") == "ucx"
    assert stated_transport("intelmpi", None, "ucx") is None
    assert stated_transport("openmpi", None, None) is None
