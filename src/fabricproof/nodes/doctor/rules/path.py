"""Rules about the paths: can this build take them, and what forces it to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabricproof.core.findings import Finding
from fabricproof.nodes.doctor.facts import Facts
from fabricproof.nodes.doctor.findings import diagnosis, fine, unseen, wrong
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
    for net_path in facts.subject.net_paths if not facts.subject.absent else ():
        if net_path.refusal:
            text = f"{net_path.name}: not with this stack: {net_path.refusal}"
            yield diagnosis(None, "path", text, "", "its checks are skipped with this reason")
            continue
        if facts.subject.container is None:  # what else is in an image only a run shows
            yield from _judge(facts, net_path)
        lines = " ".join(f"{name}={value}" for name, value in sorted(net_path.environment.items()))
        yield diagnosis(None, "setting", f"{net_path.name} is forced by {lines}")


def _judge(facts: Facts, net_path: NetPath) -> Iterator[Finding]:
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


def _components(facts: Facts, net_path: NetPath) -> Iterator[Finding]:
    needed, option = _COMPONENTS[net_path.transport]
    seen, components = facts.seen_by("ompi_info"), facts.mpi.components
    lost = [name for name in needed if name not in (components or ())]
    if components is None:
        text = f"{net_path.name}: whether this Open MPI has {', '.join(needed)} is unknown"
        yield unseen("path", text, seen)
    elif lost:
        text = f"{net_path.name}: this Open MPI has no {', '.join(lost)}"
        means = "it would take another path; forced by OMPI_MCA_pml, as here, it aborts: "
        mend = f"build openmpi with {option}, or transport of {net_path.fabric} in fabric.toml"
        yield wrong("path", text, seen, f"{means}{lost[0]} cannot be found", mend)
    elif net_path.transport == NATIVE:
        yield fine("path", f"{net_path.name}: {' and '.join(needed)} are built in", seen)


def _netmod(facts: Facts, net_path: NetPath) -> Iterator[Finding]:
    """MPICH names its device: ``ch4:ucx ofi``; the path asks for one of these network modules."""
    lines = facts.library.version or ()
    device = next((line.partition(":")[2].strip() for line in lines if "Device" in line), "")
    wanted = net_path.environment.get("MPIR_CVAR_CH4_NETMOD", "")
    if device and wanted not in re.split(r"[:,\s]+", device):
        text = f"{net_path.name}: this build's device is {device}, without {wanted}"
        means = f"MPIR_CVAR_CH4_NETMOD={wanted} is refused or not heard, and the path is not forced"
        mend = f"build mpich device=ch4 netmod={wanted}, or transport of {net_path.fabric} in "
        yield wrong("path", text, facts.seen_by("asker"), means, f"{mend}fabric.toml")


def _ucx(facts: Facts, net_path: NetPath) -> Finding:
    library, seen = facts.library, facts.seen_by("asker")
    if library.transports is None:
        text = f"{net_path.name}: what UCX would take is unknown (no libucp answered)"
        return unseen("path", text, seen)
    verbs = net_path.protocol in {"ib", "rocev2"}
    offered = {
        device: name
        for name, device in sorted(library.transports, reverse=True)
        if (_UCX_VERBS.match(name) if verbs else name == "tcp")
    }
    if not offered:
        return _not_offered(facts, net_path, UCX, "ib" in library.ucx_modules)
    lost = [rail for rail in net_path.rails if rail not in offered]
    names = {name for name, device in library.transports if device in offered}
    names = {name for name in names if (_UCX_VERBS.match(name) if verbs else name == "tcp")}
    told = f"UCX {library.ucx}"
    if lost:
        told += f" has {', '.join(sorted(names))}"
        return _elsewhere(facts, net_path, lost[0], told, set(offered))
    return fine("path", f"{net_path.name}: {told} offers {', '.join(sorted(names))} there", seen)


def _ucx_on_soft(facts: Facts, net_path: NetPath) -> Iterator[Finding]:
    """UCX 1.13 drops what a software device receives over IPv4, and ends in a timeout of 30 s.

    Measured with Debian's UCX 1.13 on rdma_rxe: "unhandled timeout error" until the check of the
    receiver's address is off (ud_verbs, which rc_verbs needs too, to connect).
    """
    soft = {name for name, port in facts.node.ports.items() if port.get("kind") == SOFT_ROCE}
    version = facts.library.ucx or ""
    settings = {**facts.node.environment, **facts.subject.settings, **net_path.environment}
    is_off = settings.get(_GID_CHECK, "").lower() in {"n", "no", "0", "off"}
    if soft & set(net_path.rails) and version.startswith("1.13") and not is_off:
        text = f"{net_path.name}: UCX {version} checks the GID of what it receives, on Soft-RoCE"
        means = "it drops all that comes over IPv4: each leg ends in an unhandled timeout error"
        mend = f'environment = {{ {_GID_CHECK} = "n" }} of {facts.subject.name} in site.toml'
        yield wrong("path", text, facts.seen_by("asker", "look"), means, mend)


def _libfabric(facts: Facts, net_path: NetPath, provider: str) -> Finding:
    library, seen = facts.library, facts.seen_by("asker")
    if library.providers is None:
        return unseen("path", f"{net_path.name}: libfabric's providers are unknown", seen)
    domains = {name for offered, name in library.domains or () if offered.startswith(provider)}
    has_provider = provider in library.providers
    if not has_provider or (provider == "verbs" and not domains):
        return _not_offered(facts, net_path, LIBFABRIC, has_provider, provider)
    rails = sorted({name.partition(":")[0] for name in net_path.rails})
    lost = [rail for rail in rails if not any(_is_of(name, rail) for name in domains)]
    told = f"libfabric {library.libfabric} has {provider}"
    if lost:
        return _elsewhere(facts, net_path, lost[0], told, domains)
    return fine("path", f"{net_path.name}: {told}, and offers it there", seen)


def _is_of(domain: str, rail: str) -> bool:
    """Tell whether a domain of libfabric is that device's, and not one's whose name is longer.

    verbs and efa append a kind (``mlx5_1-rdm``); those of tcp and cxi are the devices, and of opx
    their units (``ib0``: libfabric prov/opx, FI_OPX_DOMAIN_NAME_PREFIX).
    """
    name = f"{re.escape(rail)}|{re.escape(rail.replace('hfi1_', 'ib'))}"
    return re.search(rf"(?<![\w.-])({name})(?![\w.])", domain) is not None


def _elsewhere(facts: Facts, net_path: NetPath, rail: str, told: str, devices: set[str]) -> Finding:
    """A transport is built in, but not offered on the rail."""
    offered = ", ".join(sorted(devices)) or "nothing"
    text, seen = f"{net_path.name}: {told}, not on {rail} but on {offered}", facts.seen_by("asker")
    if not facts.node.is_node:
        text += " (this machine is no node)"
        return unseen("path", text, seen, mend="ask a node: --on-node")
    mend = f"ip link show {rail}; or correct rails of {net_path.fabric} in fabric.toml"
    return wrong("path", text, seen, "no message can be sent over that rail", mend)


def _not_offered(
    facts: Facts, net_path: NetPath, kind: str, has_module: bool, provider: str = "verbs"
) -> Finding:
    """Nothing is offered: because it was not built, because it fails, or because of this machine.

    A library that names libibverbs was built with verbs, even if it says nothing for lack of a
    device (libfabric 1.17 does not so much as register the provider then).
    """
    library, seen = facts.library, facts.seen_by("asker", "look")
    verbs = provider in {"verbs", "mlx"}
    linked = has_module or (verbs and kind in library.verbs_in)
    name = f"UCX {library.ucx}" if kind == UCX else f"libfabric {library.libfabric}"
    if linked and not facts.node.ports:
        text = f"{net_path.name}: {name} is built with {provider}; {facts.node.host} has no HCA "
        mend = "" if facts.node.is_node else "ask a node: --on-node"
        return unseen("path", f"{text}to prove it on", seen, mend=mend)
    word = "transport" if kind == UCX else "provider"
    why = f"has no {provider} {word}"
    means = _SILENT[kind] if verbs else f"forced by FI_PROVIDER={provider}, every leg aborts"
    if linked:
        why = "offers none here though the node has an HCA"
        mend = "ibv_devinfo; ulimit -l; ls -l /dev/infiniband (rights of the job's user)"
    elif kind == UCX:
        mend = 'ucx: require: "+verbs+rc+ud+dc+mlx5_dv+rdmacm" in the site\'s Spack scope'
        mend = f"packages: {mend}"
    else:
        mend = (
            f'packages: libfabric: require: "fabrics={provider},rxm,tcp,shm" in the site\'s Spack '
            "scope; a wheel's or a vendor's: FI_PROVIDER_PATH to the folder of its *-fi.so"
        )
    return wrong("path", f"{net_path.name}: {name} {why}", seen, means, mend)
