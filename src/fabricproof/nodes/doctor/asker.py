"""Ask an MPI library itself: its version, the libraries it loads, what those can use here.

Run on a node, in the stack's environment, as ``python asker.py LIBRARY [FAMILY]``; needs nothing
but the standard library.  ``MPI_Get_library_version`` may be called before ``MPI_Init`` (MPI 3.0,
8.1.1), so no launcher is needed and no rank is started.  Every line is ``key: value``;
:mod:`.read` reads them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: MPI_MAX_LIBRARY_VERSION_STRING of MPICH 8192, of Open MPI 256.
_VERSION_BYTES = 8192

#: components that Open MPI 4 loads only when it starts, and which bring their libraries along.
_COMPONENTS = ("mca_pml_ucx.so", "mca_mtl_ofi.so", "mca_pmix_*.so")

#: libraries whose path is worth telling.
_TELLING = ("libmpi", "libucp", "libuct", "libfabric", "libpmi", "libpmix")


def _say(key: str, value: str) -> None:
    print(f"{key}: {value}", flush=True)  # noqa: T201 - a script's output


def _mapped() -> dict[str, Path]:
    """Return the shared libraries in this process: file name -> path."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if ".so" in line}
    return {Path(path).name: Path(path) for path in sorted(paths)}


def _find(begins: str) -> Path | None:
    return next((path for name, path in _mapped().items() if name.startswith(begins)), None)


def _load(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name, mode=os.RTLD_GLOBAL | os.RTLD_LAZY)
    except OSError as error:
        _say("fault", str(error))
        return None


def _ask_version(library: ctypes.CDLL) -> None:
    text, length = ctypes.create_string_buffer(_VERSION_BYTES), ctypes.c_int()
    if library.MPI_Get_library_version(text, ctypes.byref(length)) == 0:
        for line in text.value.decode(errors="replace").strip("\0\n ").splitlines():
            _say("version", line.strip())


def _ask_pmix() -> None:
    """``PMIx_Get_version`` may be called before ``PMIx_Init`` (PMIx standard 4.0, 5.2)."""
    path = _find("libpmix.so")
    pmix = None if path is None else _load(str(path))
    if pmix is not None:
        pmix.PMIx_Get_version.restype = ctypes.c_char_p
        _say("pmix", pmix.PMIx_Get_version().decode(errors="replace"))


def _load_components(library: Path) -> None:
    for pattern in _COMPONENTS:
        for component in sorted(library.parent.glob(f"openmpi*/**/{pattern}")):
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(component), mode=os.RTLD_LAZY)
                _say("component", component.name)


class _Named(ctypes.Structure):
    """The head of ``fi_domain_attr`` and ``fi_fabric_attr`` (rdma/fabric.h)."""

    _fields_ = (
        ("object", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("provider", ctypes.c_char_p),
    )


class _Info(ctypes.Structure):
    """``fi_info`` (rdma/fabric.h)."""


_Info._fields_ = (
    ("next", ctypes.POINTER(_Info)),
    ("caps", ctypes.c_uint64),
    ("mode", ctypes.c_uint64),
    ("address_format", ctypes.c_uint32),
    ("address_lengths", ctypes.c_size_t * 2),
    ("addresses", ctypes.c_void_p * 3),
    ("end_points", ctypes.c_void_p * 3),
    ("domain", ctypes.POINTER(_Named)),
    ("fabric", ctypes.POINTER(_Named)),
)

#: the line of libfabric's log for each provider it has (ofi_register_provider, src/fabric.c).
_REGISTERED = re.compile(r"registering provider: (\S+) \(([\d.]+)\)")


@contextlib.contextmanager
def _error_stream() -> Iterator[Path]:
    """Send the error stream of this process, C libraries included, to a file."""
    with tempfile.NamedTemporaryFile("w+") as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield Path(log.name)
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _say_verbs(name: str, *paths: Path | None) -> None:
    """Say that a library was built with verbs: it names libibverbs, to link or to open it."""
    if any(path is not None and b"libibverbs.so" in path.read_bytes() for path in paths):
        _say("verbs-in", name)


def _ask_libfabric() -> None:
    """List libfabric's providers, and the domains (devices) that they offer here.

    ``fi_getinfo`` with no hints loads every provider (fi_getinfo(3)); with logging on it names
    those too that find no device.
    """
    os.environ |= {"FI_LOG_LEVEL": "info", "FI_LOG_SUBSYS": "core"}
    os.environ.pop("FI_PROVIDER", None)
    with _error_stream() as log:
        fabric = _load(str(_find("libfabric.so") or "libfabric.so.1"))
        if fabric is None:
            return
        version, first = fabric.fi_version(), ctypes.POINTER(_Info)()
        fabric.fi_getinfo(version, None, None, ctypes.c_uint64(0), None, ctypes.byref(first))
        told = log.read_text(encoding="utf-8", errors="replace")
    _say_verbs("libfabric", _find("libfabric.so"))
    _say("libfabric", f"{version >> 16}.{version & 0xFFFF}")
    for provider, _ in dict.fromkeys(_REGISTERED.findall(told)):
        _say("provider", provider)
    for offer in dict.fromkeys(_offers(first)):
        _say("provider-domain", " ".join(offer))


def _offers(entry: Any) -> Iterator[tuple[str, str]]:
    while entry:
        fabric, domain = entry[0].fabric[0], entry[0].domain[0]
        yield (fabric.provider or b"").decode(), (domain.name or b"?").decode()
        entry = entry[0].next


class _MdResource(ctypes.Structure):
    """``uct_md_resource_desc_t``: UCT_MD_NAME_MAX is 16 (uct/api/uct.h)."""

    _fields_ = (("name", ctypes.c_char * 16),)


class _Component(ctypes.Structure):
    """``uct_component_attr_t`` (uct/api/uct.h), with room for what newer versions add."""

    _fields_ = (
        ("field_mask", ctypes.c_uint64),
        ("name", ctypes.c_char * 16),
        ("md_resource_count", ctypes.c_uint),
        ("md_resources", ctypes.POINTER(_MdResource)),
        ("more", ctypes.c_uint64 * 16),
    )


class _Transport(ctypes.Structure):
    """``uct_tl_resource_desc_t``: UCT_TL_NAME_MAX 10, UCT_DEVICE_NAME_MAX 32 (uct/api/uct.h)."""

    _fields_ = (
        ("name", ctypes.c_char * 10),
        ("device", ctypes.c_char * 32),
        ("kind", ctypes.c_int),
        ("system_device", ctypes.c_uint8),
    )


#: UCT_COMPONENT_ATTR_FIELD_NAME, _MD_RESOURCE_COUNT, _MD_RESOURCES.
_NAME_AND_COUNT, _RESOURCES = 0b11, 0b100


def _memory_domains(uct: ctypes.CDLL, component: ctypes.c_void_p) -> Iterator[tuple[str, bytes]]:
    asked = _Component(field_mask=_NAME_AND_COUNT)
    if uct.uct_component_query(component, ctypes.byref(asked)):
        return
    room = (_MdResource * max(1, asked.md_resource_count))()
    asked.field_mask, asked.md_resources = _RESOURCES, room
    uct.uct_component_query(component, ctypes.byref(asked))
    for entry in room[: asked.md_resource_count]:
        yield asked.name.decode(), entry.name


def _transports(
    uct: ctypes.CDLL, component: ctypes.c_void_p, domain: bytes
) -> Iterator[tuple[str, str]]:
    config, opened = ctypes.c_void_p(), ctypes.c_void_p()
    if uct.uct_md_config_read(component, None, None, ctypes.byref(config)):
        return
    if uct.uct_md_open(component, domain, config, ctypes.byref(opened)) == 0:
        found, count = ctypes.POINTER(_Transport)(), ctypes.c_uint()
        uct.uct_md_query_tl_resources(opened, ctypes.byref(found), ctypes.byref(count))
        for entry in found[: count.value]:
            yield entry.name.decode(), entry.device.decode()


def _ask_ucx() -> None:
    """List UCX's components and, for each, the transports with the devices they would use."""
    path = _find("libuct.so")
    if path is None:
        return
    uct = ctypes.CDLL(str(path))
    ucp = _load(str(_find("libucp.so") or "libucp.so.0"))
    if ucp is not None:
        ucp.ucp_get_version_string.restype = ctypes.c_char_p
        _say("ucx", ucp.ucp_get_version_string().decode())
    modules = sorted(path.parent.glob("ucx/libuct_*.so*"))
    _say_verbs("ucx", path, *modules)
    for name in sorted({module.name.partition(".")[0] for module in modules}):
        _say("ucx-module", name.removeprefix("libuct_"))
    components, count = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_uint()
    uct.uct_query_components(ctypes.byref(components), ctypes.byref(count))
    for component in map(ctypes.c_void_p, components[: count.value]):
        for name, domain in _memory_domains(uct, component):
            for transport, device in _transports(uct, component, domain):
                _say("ucx-transport", f"{transport} {device} {name}")
    _say("ucx-asked", "done")


def main(name: str, family: str = "") -> int:
    """Print everything about the MPI library ``name`` (a path or a soname)."""
    os.environ["UCX_LOG_LEVEL"] = "error"
    library = _load(name)
    if library is None:
        return 1
    path = _find("libmpi")
    _ask_version(library)
    if family == "openmpi" and path is not None:
        _load_components(path)
    _ask_pmix()
    if family == "intelmpi" or _find("libfabric"):
        _ask_libfabric()
    _ask_ucx()
    for soname, where in _mapped().items():
        if soname.startswith(_TELLING):
            _say("loads", str(where))
    _say("asked", "done")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
