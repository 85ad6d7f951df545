"""Soft-RoCE devices: whether what is there is what is declared, and what follows from below.

An rdma_rxe device speaks verbs like an HCA, and every program takes it for one.  Only the kernel
says that it is none: such a device names its interface in the sysfs file ``parent``, which no
adapter has (Linux drivers/infiniband/sw/rxe/rxe_verbs.c, parent_show).
"""

from __future__ import annotations

from fabricproof.physics.links import SOFT_ROCE_NAME, Link

#: what rdma_rxe keeps of its interface's MTU for headers (Linux drivers/infiniband/sw/rxe/
#: rxe_hdr.h, RXE_MAX_HDR_LENGTH)
_HEADER_ROOM_BYTES = 80

#: path MTUs of InfiniBand and RoCE, in bytes (IBA specification vol. 1, PortInfo: MTU)
_PATH_MTUS = (4096, 2048, 1024, 512, 256)


def soft_path_mtu(interface_mtu: int) -> int | None:
    """Return the active MTU that rdma_rxe takes over an interface; None where none fits.

    Linux drivers/infiniband/sw/rxe/rxe_param.h, eth_mtu_int_to_enum: the largest path MTU within
    the interface's MTU less the room for headers.
    """
    room = interface_mtu - _HEADER_ROOM_BYTES
    return next((mtu for mtu in _PATH_MTUS if mtu <= room), None)


def device_word(link: str) -> str:
    """Return ``Soft-RoCE`` for the name of a software device's link, nothing for any other.

    It stands beside every path whose numbers people read, so that nobody takes them for an HCA's.

    Args:
        link: as :attr:`Link.name` has it; empty where nobody recorded one.
    """
    return SOFT_ROCE_NAME if link.startswith(SOFT_ROCE_NAME) else ""


def why_not_the_device(link: Link, port: str, parent: str | None, card: str = "") -> str:
    """Return in which way a port is not the device that its declared link needs; empty: it is.

    ``parent`` is empty where the port is soft and does not say over what; None for an adapter.
    """
    if parent is not None and not link.is_soft:
        below = f" over {parent}" if parent else ""
        return (
            f"{port} is {SOFT_ROCE_NAME}{below}: the kernel's software, no HCA, and the site "
            f'declares {link.name}: state link = "{SOFT_ROCE_NAME} ..." with the rate that '
            f"{parent or 'its interface'} is shaped to, or name the HCA's port"
        )
    if parent is None and link.is_soft:
        named = f" ({card})" if card else ""
        return (
            f"{port} is no {SOFT_ROCE_NAME} device{named}, and the site declares {link.name}: "
            "state the link of the adapter, or name the port of the software device (rdma link)"
        )
    return ""
