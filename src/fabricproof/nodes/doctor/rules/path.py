"""Rules about the paths: can this build take them, and what forces it to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.doctor.facts import Facts
from fabricproof.nodes.doctor.findings import diagnosis, fine, noted, unseen
from fabricproof.physics import SOFT_ROCE
from fabricproof.stacks.family import LIBFABRIC, NATIVE, UCX
from fabricproof.stacks.stack import NetPath

#: UCX's transports over verbs: rc_verbs, rc_mlx5, dc_mlx5, ud_verbs, ud_mlx5; srd is EFA's.
_UCX_VERBS = re.compile(r"^(rc|ud|dc)(_|$)")

#: whether UCX's ud_verbs looks at the address that a RoCE packet was sent to (UCX, ud_verbs.c)
_GID_CHECK = "UCX_UD_VERBS_ETH_DGID_CHECK"

#: Open MPI's components for each transport, and what to build it with.
_COMPONENTS = {
    NATIVE: (("pml:ob1", "btl:tcp"), "its own TCP (no --enable-mca-no-build=btl-tcp)"),
    UCX: (("pml:ucx",), "fabrics=ucx (configure --with-ucx)"),
    LIBFABRIC: (("pml:cm", "mtl:ofi"), "fabrics=ofi (configure --with-ofi)"),
}

_SILENT = {
    UCX: "UCX would fall back to TCP in silence; forced by UCX_TLS, as here, every leg aborts: "
    "no usable transport",
    LIBFABRIC: "InfiniBand would go over TCP (IPoIB); forced by FI_PROVIDER, as here, every leg "
    "aborts: no such provider",
}


def judge_paths(facts: Facts) -> Iterator[Finding]:
    """Yield what is to be said of each path of the partition."""
    if facts.subject.absent:
        return
    for net_path in facts.subject.net_paths:
        yield from _judge(facts, net_path)


def _judge(facts: Facts, net_path: NetPath) -> Iterator[Finding]:
    if net_path.refusal:
        yield diagnosis(
            None,
            "path",
            f"{net_path.name}: not with this stack: {net_path.refusal}",
            means="its checks are skipped with this reason",
        )
        return
    if facts.subject.container is not None:
        yield _forced(net_path)  # what else is in the image only a run shows
        return
    family = facts.subject.family
    if family == "openmpi":
        yield from _components(facts, net_path)
    elif family in {"mpich", "mvapich"}:
        yield from _netmod(facts, net_path)
    provider = net_path.environment.get("FI_PROVIDER", "")
    if net_path.transport == UCX or provider == "mlx":
        yield _ucx(facts, net_path)
        yield from _ucx_on_soft(facts, net_path)
    elif net_path.transport == LIBFABRIC:
        yield _libfabric(facts, net_path, provider.partition(";")[0])
    yield _forced(net_path)


def _forced(net_path: NetPath) -> Finding:
    lines = " ".join(f"{name}={value}" for name, value in sorted(net_path.environment.items()))
    return noted("setting", f"{net_path.name} is forced by {lines}")


def _components(facts: Facts, net_path: NetPath) -> Iterator[Finding]:
    needed, option = _COMPONENTS[net_path.transport]
    command = facts.seen_by("ompi_info")
    components = facts.mpi.components
    if components is None:
        yield unseen(
            "path",
            f"{net_path.name}: whether this Open MPI has {', '.join(needed)} is unknown",
            command,
        )
        return
    lost = [name for name in needed if name not in components]
    if lost:
        yield diagnosis(
            Verdict.FAIL,
            "path",
            f"{net_path.name}: this Open MPI has no {', '.join(lost)}",
            seen_by=command,
            means="it would take another path; forced by OMPI_MCA_pml, as here, it aborts: "
            f"{lost[0]} cannot be found",
            mend=f"build openmpi with {option}, or transport of {net_path.fabric} in fabric.toml",
        )
    elif net_path.transport == NATIVE:
        yield fine("path", f"{net_path.name}: {' and '.join(needed)} are built in", command)


def _netmod(facts: Facts, net_path: NetPath) -> Iterator[Finding]:
    """MPICH names its device: ``ch4:ucx ofi``; the path asks for one of these network modules."""
    lines = facts.library.version or ()
    device = next((line.partition(":")[2].strip() for line in lines if "Device" in line), "")
    wanted = net_path.environment.get("MPIR_CVAR_CH4_NETMOD", "")
    if not device or wanted in re.split(r"[:,\s]+", device):
        return
    yield diagnosis(
        Verdict.FAIL,
        "path",
        f"{net_path.name}: this build's device is {device}, without {wanted}",
        seen_by=facts.seen_by("asker"),
        means=f"MPIR_CVAR_CH4_NETMOD={wanted} is refused or not heard, and the path is not forced",
        mend=f"build mpich device=ch4 netmod={wanted}, or transport of {net_path.fabric} in "
        "fabric.toml",
    )


def _ucx(facts: Facts, net_path: NetPath) -> Finding:
    library, command = facts.library, facts.seen_by("asker")
    if library.transports is None:
        return unseen(
            "path", f"{net_path.name}: what UCX would take is unknown (no libucp answered)", command
        )
    verbs = net_path.protocol in {"ib", "rocev2"}
    wanted = [
        (name, device)
        for name, device in library.transports
        if (_UCX_VERBS.match(name) if verbs else name == "tcp")
    ]
    if not wanted:
        return _no_verbs(facts, net_path, UCX, "ib" in library.ucx_modules)
    devices = {device for _, device in wanted}
    lost = [rail for rail in net_path.rails if rail not in devices]
    names = ", ".join(sorted({name for name, _ in wanted}))
    if lost:
        return _elsewhere(facts, net_path, lost[0], f"UCX {library.ucx} has {names}", devices)
    return fine("path", f"{net_path.name}: UCX {library.ucx} offers {names} there", command)


def _ucx_on_soft(facts: Facts, net_path: NetPath) -> Iterator[Finding]:
    """UCX 1.13 drops what a software device receives over IPv4, and ends in a timeout of 30 s.

    Measured with Debian's UCX 1.13 on rdma_rxe: "unhandled timeout error" until the check of the
    receiver's address is off (ud_verbs, which rc_verbs needs too, to connect).
    """
    soft = {name for name, port in facts.node.ports.items() if port.get("kind") == SOFT_ROCE}
    version = facts.library.ucx or ""
    settings = {**facts.node.environment, **facts.subject.settings, **net_path.environment}
    is_off = settings.get(_GID_CHECK, "").lower() in {"n", "no", "0", "off"}
    if not soft & set(net_path.rails) or not version.startswith("1.13") or is_off:
        return
    yield diagnosis(
        Verdict.FAIL,
        "path",
        f"{net_path.name}: UCX {version} checks the GID of what it receives, on Soft-RoCE",
        seen_by=facts.seen_by("asker", "look"),
        means="it drops all that comes over IPv4: each leg ends in an unhandled timeout error",
        mend=f'environment = {{ {_GID_CHECK} = "n" }} of {facts.subject.name} in site.toml',
    )


def _libfabric(facts: Facts, net_path: NetPath, provider: str) -> Finding:
    library, command = facts.library, facts.seen_by("asker")
    if library.providers is None:
        return unseen("path", f"{net_path.name}: libfabric's providers are unknown", command)
    domains = {name for offered, name in library.domains or () if offered.startswith(provider)}
    if provider not in library.providers or (provider == "verbs" and not domains):
        return _no_verbs(facts, net_path, LIBFABRIC, provider in library.providers, provider)
    begins = {name.partition(":")[0] for name in net_path.rails}
    lost = sorted(each for each in begins if not any(_is_of(name, each) for name in domains))
    told = f"libfabric {library.libfabric} has {provider}"
    if lost:
        return _elsewhere(facts, net_path, lost[0], told, domains)
    return fine("path", f"{net_path.name}: {told}, and offers it there", command)


def _is_of(domain: str, rail: str) -> bool:
    """Tell whether a domain of libfabric is that device's, and not one's whose name is longer.

    verbs and efa append a kind (``mlx5_1-rdm``); those of tcp and cxi are the devices, and of opx
    their units (``ib0``: libfabric prov/opx, FI_OPX_DOMAIN_NAME_PREFIX).
    """
    name = f"{re.escape(rail)}|{re.escape(rail.replace('hfi1_', 'ib'))}"
    return re.search(rf"(?<![\w.-])({name})(?![\w.])", domain) is not None


def _elsewhere(facts: Facts, net_path: NetPath, rail: str, told: str, devices: set[str]) -> Finding:
    """A transport is built in, but not offered on the rail."""
    known = facts.node.is_node
    return diagnosis(
        Verdict.FAIL if known else Verdict.UNJUDGED,
        "path",
        f"{net_path.name}: {told}, not on {rail} but on "
        + (", ".join(sorted(devices)) or "nothing")
        + ("" if known else " (this machine is no node)"),
        seen_by=facts.seen_by("asker"),
        means="no message can be sent over that rail" if known else "",
        mend=f"ip link show {rail}; or correct rails of {net_path.fabric} in fabric.toml"
        if known
        else "ask a node: --on-node",
    )


def _no_verbs(
    facts: Facts, net_path: NetPath, kind: str, has_module: bool, provider: str = "verbs"
) -> Finding:
    """Nothing is offered: because it was not built, because it fails, or because of this machine.

    A library that names libibverbs was built with verbs, even where it says nothing for lack of
    a device (libfabric 1.17 does not so much as register the provider then).
    """
    verbs = provider in {"verbs", "mlx"}
    linked = has_module or (verbs and kind in facts.library.verbs_in)
    version = facts.library.ucx if kind == UCX else facts.library.libfabric
    name = f"UCX {version}" if kind == UCX else f"libfabric {version}"
    if linked and not facts.node.ports:
        return diagnosis(
            Verdict.UNJUDGED,
            "path",
            f"{net_path.name}: {name} is built with {provider}; {facts.node.host} has no HCA "
            "to prove it on",
            seen_by=facts.seen_by("asker", "look"),
            mend="" if facts.node.is_node else "ask a node: --on-node",
        )
    word = "transport" if kind == UCX else "provider"
    why = "offers none here though the node has an HCA" if linked else f"has no {provider} {word}"
    return diagnosis(
        Verdict.FAIL,
        "path",
        f"{net_path.name}: {name} {why}",
        seen_by=facts.seen_by("asker", "look"),
        means=_SILENT[kind] if verbs else f"forced by FI_PROVIDER={provider}, every leg aborts",
        mend=_build_mend(kind, provider, linked=linked),
    )


def _build_mend(kind: str, provider: str, *, linked: bool) -> str:
    if linked:
        return "ibv_devinfo; ulimit -l; ls -l /dev/infiniband (rights of the job's user)"
    if kind == UCX:
        return 'packages: ucx: require: "+verbs+rc+ud+dc+mlx5_dv+rdmacm" in the site\'s Spack scope'
    return (
        f'packages: libfabric: require: "fabrics={provider},rxm,tcp,shm" in the site\'s Spack '
        "scope; a wheel's or a vendor's: FI_PROVIDER_PATH to the folder of its *-fi.so"
    )
