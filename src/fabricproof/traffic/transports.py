"""Which libraries carry an MPI's messages, which families have them, and what they speak.

``stacks.family`` knows the variables that force them; sources: as there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

FAMILIES = (
    "openmpi", "mpich", "intelmpi", "mvapich", "mvapich2", "craympich", "parastation",
)  # fmt: skip

#: libraries that carry the messages below the MPI.
UCX, LIBFABRIC, NATIVE = "ucx", "libfabric", "native"

#: UCX held to one kind of queue pair: reliable connections, unreliable datagrams.
UCX_RC, UCX_UD = "ucx-rc", "ucx-ud"

Transport = Literal["ucx", "ucx-rc", "ucx-ud", "libfabric", "native"]
"""What a site may name."""

TRANSPORTS: tuple[str, ...] = get_args(Transport)

#: protocols (names as in the fabric data) that are sockets to the MPI.
SOCKETS = frozenset({"tcp", "ipoib", "tcp-bypass"})
#: protocols that are verbs to the MPI.
VERBS = frozenset({"ib", "rocev2"})

#: How libfabric finds a device, by protocol.  hfi1 names its devices by the units that it counts
#: (Linux drivers/infiniband/hw/hfi1/init.c: rvt_set_ibdev_name), which fi_opx(7) and PSM2 take;
#: cxi: prov/cxi/src/cxip_env.c, cxip_env_validate_device_token (cxi0 to cxi99).
DEVICE_NAMES: Mapping[str, re.Pattern[str]] = {
    "opa": re.compile(r"hfi1_(?P<unit>[0-9]+):[1-9]"),
    "slingshot": re.compile(r"cxi[0-9]{1,2}"),
}

#: UCX's queue pairs exist on verbs alone (UCX FAQ, UCX_TLS); libfabric speaks what it has a
#: provider for here (fi_provider(7)).
_UCX: Mapping[str, frozenset[str]] = {UCX: VERBS | {"tcp"}, UCX_RC: VERBS, UCX_UD: VERBS}
_LIBFABRIC = {LIBFABRIC: VERBS | {"tcp", "opa", "slingshot", "efa"}}

#: Protocols that each transport of a family speaks.  Native is Open MPI's btl/tcp; MVAPICH2's verbs
#: or, as built, PSM2 (MVAPICH2 2.3.7 user guide, 4); ParaStation's own plugins (pscom,
#: doc/RuntimeConfig.md), whose TCP takes a network's address where a site names interfaces.  HPE's
#: libfabric is for Slingshot, cray-mpich-ucx for verbs (HPE Cray MPI, intro_mpi).
_OF_FAMILY: Mapping[str, Mapping[str, frozenset[str]]] = {
    "openmpi": {**_UCX, **_LIBFABRIC, NATIVE: frozenset({"tcp"})},
    "mpich": {**_UCX, **_LIBFABRIC},
    "mvapich": {**_UCX, **_LIBFABRIC},
    "mvapich2": {NATIVE: VERBS | {"opa"}},
    "intelmpi": _LIBFABRIC,
    "craympich": {
        LIBFABRIC: frozenset({"slingshot"}),
        **dict.fromkeys((UCX, UCX_RC, UCX_UD), VERBS),
    },
    "parastation": {**_UCX, NATIVE: frozenset({"ib", "opa"})},
}


def wire(protocol: str) -> str:
    """Return the protocol as the transport libraries see it."""
    return "tcp" if protocol in SOCKETS else protocol


def library_of(transport: str) -> str:
    """Return the library of a transport: ``ucx`` of ``ucx-ud``."""
    return transport.partition("-")[0]


def transports_of(family: str) -> tuple[str, ...]:
    """Return the transports that ``family`` can be told to use; none of an unknown family."""
    return tuple(_OF_FAMILY.get(family, ()))


def transports_over(family: str, protocol: str) -> tuple[str, ...]:
    """Return the transports of ``family`` that speak ``protocol``."""
    spoken = _OF_FAMILY.get(family, {}).items()
    return tuple(name for name, protocols in spoken if wire(protocol) in protocols)


def stated_transport(family: str, of_stack: str | None, of_fabric: str | None) -> str | None:
    """Return the transport that a site states: its stack's (possible or not), else its fabric's.

    None for neither, or if ``family`` lacks that of the fabric: Intel MPI on a fabric for which the
    site names UCX goes over libfabric all the same.
    """
    return of_stack or (of_fabric if of_fabric in transports_of(family) else None)


def transport_refusal(family: str, protocol: str, transport: str | None) -> str | None:
    """Return why ``family`` cannot take ``transport`` over ``protocol``; None if it can."""
    there, fitting = transports_of(family), transports_over(family, protocol)
    if transport in fitting or (transport is None and fitting):
        return None
    if transport is None:
        return f"nobody has documented how {family} is told to take {protocol}"
    if transport not in there:
        return f"{family} has no transport {transport!r}, it has {' or '.join(there) or 'none'}"
    other = f": there {family} has {' or '.join(fitting)}" if fitting else ""
    return f"{transport} does not speak {protocol}{other}"
