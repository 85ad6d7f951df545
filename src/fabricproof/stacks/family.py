"""How each MPI family is told which path its messages take: data and pure functions.

A path is a protocol and the interfaces (or HCA ports) that carry it.  What is set here is always
exclusive: every other transport, shared memory included, is switched off, so that a path that
does not work is an error of the MPI and never a number from elsewhere.

Sources: for TCP, runs on a cluster with counters on every interface (``docs/stacks.md``).  For
InfiniBand, RoCE and the others, the families' own documents: Open MPI 5.0 docs ("Networking
support"), UCX FAQ (docs/source/faq.md: UCX_NET_DEVICES, UCX_TLS, multi-rail), libfabric manual
pages fi_tcp(7), fi_verbs(7), fi_opx(7), fi_psm2(7), fi_cxi(7), fi_efa(7), Open MPI 5.0 docs
("Omni-Path Architecture": HFI_UNIT), Intel MPI developer guide ("OFI Providers Support"), MPICH's
control variables (mpivars), HPE Cray MPI's intro_mpi (cpe.ext.hpe.com), MVAPICH2 2.3.7 user guide,
ParaStation's pscom (doc/RuntimeConfig.md), NCCL user guide and the README of aws-ofi-nccl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabricproof.core.errors import ConfigError
from fabricproof.traffic.transports import (
    DEVICE_NAMES,
    FAMILIES,
    LIBFABRIC,
    NATIVE,
    UCX,
    UCX_RC,
    UCX_UD,
    VERBS,
    library_of,
    stated_transport,
    transport_refusal,
    transports_over,
    wire,
)

__all__ = [
    "FAMILIES",
    "LIBFABRIC",
    "NATIVE",
    "UCX",
    "UCX_RC",
    "UCX_UD",
    "bus_environment",
    "crowd_environment",
    "default_transport",
    "gpu_environment",
    "path_environment",
    "rails_refusal",
    "stated_transport",
    "transport_refusal",
]

#: libfabric's provider for each protocol (fi_provider(7)), and the variable that picks the
#: device.  ``FI_EFA_IFACE``: fi_efa(7); what is older takes no notice of it.
_PROVIDERS: Mapping[str, tuple[str, str]] = {
    "tcp": ("tcp", "FI_TCP_IFACE"),
    "ib": ("verbs;ofi_rxm", "FI_VERBS_DEVICE_NAME"),
    "rocev2": ("verbs;ofi_rxm", "FI_VERBS_DEVICE_NAME"),
    "opa": ("opx", "FI_OPX_HFI_SELECT"),
    "slingshot": ("cxi", "FI_CXI_DEVICE_NAME"),
    "efa": ("efa", "FI_EFA_IFACE"),
}

#: Intel MPI's own libfabric has no opx ("OFI Providers Support": mlx, tcp, psm2, psm3, verbs, RxM);
#: PSM3 is for Ethernet (fi_provider(7)).
_INTEL_OPA = ("psm2", "HFI_UNIT")

#: UCX's transports by what the site names and by protocol.  None has ``tcp`` beside verbs: UCX_TLS
#: is exclusive, and UCX with tcp in it goes there without a word where a device fails.  ``ud``
#: beside ``rc``: connections are made over it, and ``rc_verbs`` alone fails with "no auxiliary
#: transport" (measured over Soft-RoCE).  The alias ``rc`` brings ``ud_verbs:aux`` with it, for
#: connections alone (src/ucp/core/ucp_context.c, ucp_tl_aliases); ``ud`` beside it lets UCX move
#: data over ud too where it expects many peers (openucx/ucx issue 4941).
_UCX_TRANSPORTS: Mapping[tuple[str, str], str] = {
    (UCX, "tcp"): "tcp,self",
    **{(UCX, verbs): "rc,ud,self" for verbs in sorted(VERBS)},
    **{(UCX_RC, verbs): "rc,self" for verbs in sorted(VERBS)},
    **{(UCX_UD, verbs): "ud,self" for verbs in sorted(VERBS)},
}

#: device variables that take a list of devices.
_LISTS = frozenset({"FI_CXI_DEVICE_NAME", "FI_EFA_IFACE"})
#: and those of providers that name devices without their port
_WITHOUT_PORT = frozenset({"FI_VERBS_DEVICE_NAME", "FI_EFA_IFACE"})


def default_transport(family: str, protocol: str, *, launcher: str = "srun", rails: int = 1) -> str:
    """Return the library that ``family`` uses for ``protocol`` unless a site says otherwise.

    Open MPI's own TCP stripes; UCX is what it recommends for InfiniBand and RoCE.  Intel MPI has
    libfabric only.  MPICH has either; under srun's PMI-1 its UCX addresses do not fit (see
    :func:`rails_refusal`), so one TCP rail goes through libfabric there.

    Raises:
        ConfigError: unknown family.
    """
    _check_family(family)
    spoken = wire(protocol)
    if family == "openmpi":
        return NATIVE if spoken == "tcp" else UCX if spoken in VERBS else LIBFABRIC
    fitting = transports_over(family, protocol)
    if family in {"mpich", "mvapich"} and spoken == "tcp":
        return LIBFABRIC if launcher == "srun" and rails == 1 else UCX
    return fitting[0] if fitting else LIBFABRIC


def _check_family(family: str) -> None:
    if family not in FAMILIES:
        raise ConfigError("unknown MPI family", expected=", ".join(FAMILIES), got=repr(family))


def rails_refusal(
    family: str,
    protocol: str,
    rails: int,
    *,
    transport: str | None = None,
    launcher: str = "srun",
    pmi1: bool = False,
) -> str | None:
    """Return why ``family`` cannot use ``rails`` rails of ``protocol`` at once; None if it can.

    ``launcher`` only matters where the two speak different PMIs; ``pmi1``: the MPI speaks PMI-1
    alone, as the wheel of ``fabricproof stack install`` does.
    """
    refusal = transport_refusal(family, protocol, transport)
    if refusal is not None:
        return refusal
    chosen = transport or default_transport(family, protocol, launcher=launcher, rails=rails)
    if family == "mpich" and pmi1 and launcher == "srun" and library_of(chosen) == UCX:
        return (
            "this MPICH speaks PMI-1 to srun, whose lines of 1024 bytes are too short for "
            "UCX addresses: start it with its own mpiexec"
        )
    if rails == 1 or library_of(chosen) == UCX:
        return None
    takes_a_list = chosen == NATIVE and family != "parastation" and wire(protocol) != "opa"
    return None if takes_a_list else _one_device(family, wire(protocol))


def _one_device(family: str, spoken: str) -> str | None:
    """Return why a process of ``family`` is given no second device; None if it is."""
    if family == "craympich":
        return "Cray MPICH gives each rank one NIC (MPICH_OFI_NIC_POLICY); pairs have a rank a node"
    if family == "parastation" and spoken == "ib":
        return "PSP_OPENIB_HCA names one adapter to pscom; its plugin of UCX takes several"
    why = _ONE_DEVICE.get(spoken)
    if why is None and family == "openmpi":
        why = "Open MPI's mtl/ofi gives a process one device; several are for several processes"
    if why is None and spoken in VERBS and not _is_mlx(family, spoken):
        # vrb_getinfo of libfabric's prov/verbs/src/verbs_info.c compares with one name.
        why = (
            "FI_VERBS_DEVICE_NAME names one device to libfabric's verbs provider; nobody has seen "
            "an MPI share its messages among several there"
        )
    return why


_ONE_DEVICE: Mapping[str, str] = {
    "tcp": "libfabric's tcp provider offers each interface by itself and the MPI takes one of "
    "them: measured, all bytes on one rail",
    "opa": "FI_OPX_HFI_SELECT and HFI_UNIT name one Omni-Path adapter for a process (fi_opx(7))",
}


def _is_mlx(family: str, protocol: str) -> bool:
    """Tell whether libfabric's provider is ``mlx``, which is UCX and takes its variables."""
    return family == "intelmpi" and protocol == "ib"


def path_environment(
    family: str,
    protocol: str,
    interfaces: Sequence[str],
    *,
    version: str = "",
    transport: str | None = None,
    launcher: str = "srun",
    oversubscribed: bool = False,
) -> dict[str, str]:
    """Return the variables that make an MPI of ``family`` use these interfaces and no other.

    ``interfaces`` are netdevs (``eth0``) for TCP, HCA ports (``mlx5_0:1``) or devices otherwise;
    ``version`` matters for Open MPI 4.  ``oversubscribed``: more spinning ranks than cores, or
    several nodes on one machine: let ranks yield and bind them to no core.  Never on a real
    cluster: it costs latency.

    Raises:
        ConfigError: unknown family or protocol, no interface, or a transport the family lacks.
    """
    if not interfaces:
        raise ConfigError("a path needs an interface", got="none")
    _check_family(family)
    spoken = wire(protocol)
    chosen = transport or default_transport(
        family, protocol, launcher=launcher, rails=len(interfaces)
    )
    if chosen == UCX and list(interfaces) == ["lo"]:
        # UCX's tcp makes no connection over the loopback interface ("no route to ...").
        chosen = LIBFABRIC
    if refusal := transport_refusal(family, protocol, chosen):
        raise ConfigError(refusal, got=f"{family}, {protocol}, {chosen}")
    environment = _MAKERS[family, library_of(chosen)](spoken, tuple(interfaces))
    if library_of(chosen) == UCX:
        environment["UCX_TLS"] = _UCX_TRANSPORTS[chosen, spoken]
    if family == "openmpi" and version.startswith("4.") and library_of(chosen) != UCX:
        # osc/rdma over btl/tcp aborts MPI_Win_allocate with MPI_ERR_WIN in 4.1; 5 lacks pt2pt.
        environment["OMPI_MCA_osc"] = "pt2pt"
    if oversubscribed:
        environment |= _OVERSUBSCRIBED[family]
    return environment


def _ucx(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    rails = str(len(interfaces))
    return {
        "UCX_TLS": _UCX_TRANSPORTS[UCX, spoken],
        "UCX_NET_DEVICES": ",".join(interfaces),
        "UCX_MAX_RNDV_RAILS": rails,
        "UCX_MAX_EAGER_RAILS": rails,
    }


def _libfabric(
    spoken: str, interfaces: tuple[str, ...], known: tuple[str, str] | None = None
) -> dict[str, str]:
    """Return what libfabric is told; ``known``: provider and variable of another build of it."""
    provider, variable = known or _PROVIDERS[spoken]
    environment = {"FI_PROVIDER": provider}
    if spoken == "opa":
        interfaces = (_unit(interfaces[0]),)
    if variable in _WITHOUT_PORT:
        interfaces = tuple(each.partition(":")[0] for each in interfaces)
    environment[variable] = ",".join(interfaces) if variable in _LISTS else interfaces[0]
    return environment


def _unit(rail: str) -> str:
    """Return the unit of an Omni-Path rail: ``0`` of ``hfi1_0:1``."""
    found = DEVICE_NAMES["opa"].fullmatch(rail)
    if found is None:
        raise ConfigError(
            "an Omni-Path rail names the driver's unit", expected="'hfi1_0:1'", got=repr(rail)
        )
    return found["unit"]


def _openmpi_native(_spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    # No sm or vader: two ranks on one node must fail to meet, not measure memory.
    return {
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "self,tcp",
        "OMPI_MCA_btl_tcp_if_include": ",".join(interfaces),
    }


#: Collectives that go by the messages of the pml, and so take the path: coll/hcoll and coll/ucc of
#: HPC-X choose devices by variables of their own (HCOLL_MAIN_IB, UCC_TLS).
_OWN_COLLECTIVES: Mapping[str, str] = {
    "OMPI_MCA_coll_hcoll_enable": "0",
    "OMPI_MCA_coll_ucc_enable": "0",
}


def _openmpi_ucx(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    # pml/ucx declines networks that are not InfiniBand unless told otherwise
    # (opal_common_ucx_devices, opal_common_ucx_tls; Open MPI 5.0 docs).
    return {
        **_OWN_COLLECTIVES,
        "OMPI_MCA_pml": "ucx",
        "OMPI_MCA_osc": "ucx",
        "OMPI_MCA_btl": "self",
        "OMPI_MCA_opal_common_ucx_tls": "any",
        "OMPI_MCA_opal_common_ucx_devices": "any",
        **_ucx(spoken, interfaces),
    }


def _openmpi_libfabric(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    environment = _libfabric(spoken, interfaces)
    return {
        **_OWN_COLLECTIVES,
        "OMPI_MCA_pml": "cm",
        "OMPI_MCA_mtl": "ofi",
        "OMPI_MCA_btl": "self",
        "OMPI_MCA_mtl_ofi_provider_include": environment["FI_PROVIDER"],
        **environment,
    }


def _ch4_ucx(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    # NOLOCAL: no shared memory between ranks of one node.
    return {
        "MPIR_CVAR_CH4_NETMOD": "ucx",
        "MPIR_CVAR_NOLOCAL": "1",
        **_ucx(spoken, interfaces),
    }


def _ch4_libfabric(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    environment = {
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "MPIR_CVAR_NOLOCAL": "1",
        **_libfabric(spoken, interfaces),
    }
    if len(interfaces) > 1:
        environment["MPIR_CVAR_CH4_OFI_MAX_NICS"] = str(len(interfaces))
        environment["MPIR_CVAR_CH4_OFI_ENABLE_STRIPING"] = "1"
    return environment


def _intel_libfabric(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    """Intel MPI: ``ofi`` alone (without ``shm``), the provider named twice on purpose.

    FI_PROVIDER is libfabric's filter, I_MPI_OFI_PROVIDER is Intel MPI's choice among what is
    left; either alone lets another provider in.  InfiniBand goes through ``mlx``, which is UCX.
    """
    if spoken == "ib":
        transport = _ucx(spoken, interfaces)
        return {"I_MPI_FABRICS": "ofi", **_both_providers("mlx"), **transport}
    environment = _libfabric(spoken, interfaces, _INTEL_OPA if spoken == "opa" else None)
    environment |= _both_providers(environment["FI_PROVIDER"].partition(";")[0])
    if len(interfaces) > 1:
        environment["I_MPI_MULTIRAIL"] = "1"
    return {"I_MPI_FABRICS": "ofi", **environment}


def _both_providers(provider: str) -> dict[str, str]:
    return {"FI_PROVIDER": provider, "I_MPI_OFI_PROVIDER": provider}


def _cray_libfabric(_spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    """Cray MPICH: each rank takes one NIC of those that it is left, by turns.

    intro_mpi: MPICH_OFI_NUM_NICS is ``number:indices``, MPICH_OFI_NIC_POLICY may have been set by a
    module.  The index of a NIC is the number of its device (HPE's own bandwidth script has cxi0 to
    cxi7 for ``8:0,1,2,3,4,5,6,7``).  No variable is documented that keeps ranks of one node off
    shared memory: the counters tell.
    """
    indices = ",".join(each.removeprefix("cxi") for each in interfaces)
    return {
        "MPICH_OFI_NIC_POLICY": "ROUND-ROBIN",
        "MPICH_OFI_NUM_NICS": f"{len(interfaces)}:{indices}",
    }


#: pscom's plugins, each with its variable: 0 switches it off (doc/RuntimeConfig.md)
_PSCOM = (
    "TCP", "SHM", "GATEWAY", "DAPL", "ELAN", "EXTOLL", "MXM", "OFED", "MVAPI", "GM", "OPENIB",
    "PSM", "UCP", "PORTALS", "VELO",
)  # fmt: skip


def _pscom(plugin: str) -> dict[str, str]:
    return {f"PSP_{name}": "1" if name == plugin else "0" for name in _PSCOM}


def _parastation_ucx(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    return {**_pscom("UCP"), **_ucx(spoken, interfaces)}


def _parastation_native(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    if spoken == "opa":
        return {**_pscom("PSM"), "HFI_UNIT": _unit(interfaces[0])}
    device, _, port = interfaces[0].partition(":")
    return {**_pscom("OPENIB"), "PSP_OPENIB_HCA": device, "PSP_OPENIB_PORT": port or "1"}


def _mvapich2(spoken: str, interfaces: tuple[str, ...]) -> dict[str, str]:
    """MVAPICH2 2.x, whose devices are its own: user guide 2.3.7, "MVAPICH2 Parameters"."""
    alone = {"MV2_USE_SHARED_MEM": "0"}
    if spoken == "opa":  # built for CH3-PSM2, which reads PSM2's variable
        return {**alone, "HFI_UNIT": _unit(interfaces[0])}
    ports = sorted({each.partition(":")[2] or "1" for each in interfaces})
    if len(ports) > 1:
        raise ConfigError("MV2_DEFAULT_PORT is one port of all HCAs", got=", ".join(interfaces))
    return {
        **alone,
        "MV2_IBA_HCA": ":".join(each.partition(":")[0] for each in interfaces),
        "MV2_NUM_HCAS": str(len(interfaces)),
        "MV2_DEFAULT_PORT": ports[0],
        **({"MV2_USE_RoCE": "1"} if spoken == "rocev2" else {}),
    }


_MAKERS = {
    ("openmpi", NATIVE): _openmpi_native,
    ("openmpi", UCX): _openmpi_ucx,
    ("openmpi", LIBFABRIC): _openmpi_libfabric,
    ("mpich", UCX): _ch4_ucx,
    ("mpich", LIBFABRIC): _ch4_libfabric,
    # MVAPICH 3 and 4 are built on MPICH's ch4 and take its variables (MVAPICH user guide).
    ("mvapich", UCX): _ch4_ucx,
    ("mvapich", LIBFABRIC): _ch4_libfabric,
    ("mvapich2", NATIVE): _mvapich2,
    ("intelmpi", LIBFABRIC): _intel_libfabric,
    # The module cray-mpich-ucx has one network module.
    ("craympich", UCX): _ucx,
    ("craympich", LIBFABRIC): _cray_libfabric,
    ("parastation", UCX): _parastation_ucx,
    ("parastation", NATIVE): _parastation_native,
}

#: what lets ranks that share a core live with each other.  mpirun binds rank 0 of every node to
#: core 0; where the nodes are namespaces of one machine that is the same core, two ranks spin on
#: it in turns of a scheduler tick, and a message takes 4 ms instead of 8 us (measured).
#: Open MPI's own "oversubscribe" mapping is deliberately absent: with it mpirun puts both ranks
#: of a two-node job on the first node.
_OVERSUBSCRIBED: Mapping[str, Mapping[str, str]] = {
    "openmpi": {
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
    },
    # hydra binds nothing unless it is told to; throttled, an idle rank sleeps for a microsecond.
    "mpich": {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1"},
    "mvapich": {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1"},
    # 3: an idle rank sleeps. 1 and 2 yield only, and one-sided transfers fell to a quarter.
    "intelmpi": {"I_MPI_PIN": "off", "I_MPI_THREAD_YIELD": "3"},
    "mvapich2": {"MV2_ENABLE_AFFINITY": "0"},
    "craympich": {},
    "parastation": {"PSP_SCHED_YIELD": "1"},
}


#: UCX's transports of a kind of GPU, by their alias (docs/source/faq.md, "Working with GPU")
_UCX_OF_GPUS: Mapping[str, str] = {"cuda": "cuda", "rocm": "rocm", "level-zero": "ze"}

#: what lets a family take buffers on GPUs (Intel MPI developer reference, "GPU Support"; MPICH's
#: control variables; intro_mpi; pscom's RuntimeConfig.md; MVAPICH2-GDR user guide); Open MPI does
#: if it was built so
_WITH_GPUS: Mapping[str, Mapping[str, str]] = {
    "openmpi": {},
    "mpich": {"MPIR_CVAR_ENABLE_GPU": "1"},
    "mvapich": {"MPIR_CVAR_ENABLE_GPU": "1"},
    "intelmpi": {"I_MPI_OFFLOAD": "1"},
    "craympich": {"MPICH_GPU_SUPPORT_ENABLED": "1"},
    "parastation": {"PSP_CUDA": "1"},
    "mvapich2": {"MV2_USE_{kind}": "1"},
}


def gpu_environment(family: str, kind: str, path: Mapping[str, str]) -> dict[str, str]:
    """Return what a leg with buffers on GPUs of ``kind`` sets beside the variables of its path.

    ``path`` is what :func:`path_environment` gave: where it names UCX's transports, those that copy
    between host and GPU have to be among them.  NVLink between nodes is off (UCX 1.18; older ones
    have not got it): the rails are measured.
    """
    _check_family(family)
    found = {name.format(kind=kind.upper()): to for name, to in _WITH_GPUS[family].items()}
    if "UCX_TLS" in path:
        found["UCX_TLS"] = f"{path['UCX_TLS']},{_UCX_OF_GPUS[kind]}"
        found |= {"UCX_CUDA_IPC_ENABLE_MNNVL": "n"} if kind == "cuda" else {}
    return found


def bus_environment(
    protocol: str, interfaces: Sequence[str], stated: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables that make NCCL and RCCL use these interfaces and no other.

    NCCL user guide, "Environment Variables": ``=`` before a list compares whole names,
    ``NCCL_NET`` names the only network module that may be taken: NCCL ends if it has none of that
    name.  Ranks of one node still share memory and NVLink, as users have it; NVLink between nodes
    is off, for the rails are measured.

    EFA and Slingshot need the plugin aws-ofi-nccl (its twin for RCCL): it names itself "AWS
    Libfabric", newer ones "Libfabric": the site's own ``NCCL_NET`` wins (``stated``).  It prints
    its provider with NCCL_DEBUG=INFO.

    Raises:
        ConfigError: no module speaks the protocol.
    """
    spoken, names = wire(protocol), "=" + ",".join(interfaces)
    stated = stated or {}
    if spoken in VERBS:
        found = {"NCCL_NET": "IB", "NCCL_IB_HCA": names}
    elif spoken == "tcp":
        found = {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": names}
    elif spoken in {"efa", "slingshot"}:
        name = stated.get("NCCL_NET", "AWS Libfabric")
        provider, variable = _PROVIDERS[spoken]
        devices = ",".join(each.partition(":")[0] for each in interfaces)
        found = {"NCCL_NET": name, "FI_PROVIDER": provider, variable: devices}
        found["NCCL_DEBUG"] = stated.get("NCCL_DEBUG", "INFO")
    else:
        raise ConfigError(
            "NCCL has no network module for this protocol",
            expected=", ".join(sorted({"efa", "slingshot", "tcp", *VERBS})),
            got=spoken,
        )
    return {**found, "NCCL_MNNVL_ENABLE": "0"}


def crowd_environment(family: str) -> dict[str, str]:
    """Return what lets more ranks than cores of ``family`` live with each other."""
    _check_family(family)
    return dict(_OVERSUBSCRIBED[family])
