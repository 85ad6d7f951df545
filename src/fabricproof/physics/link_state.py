"""Compare the link state that a site expects with the one that was observed.  Pure: no reading."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class PortState:
    """The state of one port and the slot behind it.  None means: not stated, or not observed.

    Attributes:
        port: which port, for example ``node001 mlx5_0/1`` or ``node001 eth2``.
        state: ``ACTIVE``, ``INIT``, ``DOWN`` (InfiniBand) or ``up``, ``down``; case is ignored.
        rate_gbit_s: data rate of the link in Gb/s.
        lanes: active width in lanes.
        mtu: bytes.
        pcie_generation: 1 to 6, as trained.
        pcie_lanes: as trained.
        max_payload_bytes: PCIe MaxPayload in force.
    """

    port: str
    state: str | None = None
    rate_gbit_s: float | None = None
    lanes: int | None = None
    mtu: int | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    max_payload_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Issue:
    """One way in which a port is not as expected.

    Attributes:
        port: the port.
        quantity: the field of :class:`PortState` that differs.
        expected: what should be there, as text.
        observed: what is there; ``not observed`` where nothing was.
        sentence: the same for people, with what it means.
    """

    port: str
    quantity: str
    expected: str
    observed: str
    sentence: str


#: field -> (words, unit, what a lower value usually means)
_MEANINGS: dict[str, tuple[str, str, str]] = {
    "state": ("link state", "", "no traffic, or none of the traffic, takes this port"),
    "rate_gbit_s": ("link rate", " Gb/s", "a cable or transceiver made the link train down"),
    "lanes": ("link width", " lanes", "a lane of the cable or connector is lost"),
    "mtu": ("MTU", " bytes", "each packet carries less payload"),
    "pcie_generation": ("PCIe generation", "", "the slot, riser or BIOS setting is older"),
    "pcie_lanes": ("PCIe width", " lanes", "the slot is narrower or the adapter sits badly"),
    "max_payload_bytes": ("PCIe MaxPayload", " bytes", "each PCIe packet carries less payload"),
}

#: sysfs rounds rates: '56 Gb/sec' for FDR's 54.5 data and 56.25 line Gb/s
_RATE_TOLERANCE = 0.05


def _same(quantity: str, expected: object, observed: object) -> bool:
    if isinstance(expected, str) and isinstance(observed, str):
        return expected.casefold() == observed.casefold()
    if quantity == "rate_gbit_s":
        assert isinstance(expected, (int, float))
        assert isinstance(observed, (int, float))
        return abs(observed - expected) <= _RATE_TOLERANCE * expected
    return expected == observed


def _is_less(expected: object, observed: object) -> bool:
    if isinstance(expected, (int, float)) and isinstance(observed, (int, float)):
        return observed < expected
    return isinstance(expected, str)


def _issue(port: str, quantity: str, expected: object, observed: object) -> Issue:
    words, unit, meaning = _MEANINGS[quantity]
    want = f"{expected}{unit}"
    if observed is None:
        got, why = "not observed", "nothing can be said about it"
    else:
        got = f"{observed}{unit}"
        why = meaning if _is_less(expected, observed) else "the site file is behind the machine"
    return Issue(
        port=port,
        quantity=quantity,
        expected=want,
        observed=got,
        sentence=f"{port}: {words} is {got}, expected {want}: {why}",
    )


def compare_link_state(expected: PortState, observed: PortState) -> tuple[Issue, ...]:
    """Return one issue for each stated quantity that is otherwise, or that was not observed.

    More than expected is an issue too: a site file that is behind the machine gives references
    that are too low.
    """
    pairs = (
        (field.name, getattr(expected, field.name), getattr(observed, field.name))
        for field in fields(PortState)
        if field.name != "port"
    )
    return tuple(
        _issue(observed.port, name, want, got)
        for name, want, got in pairs
        if want is not None and (got is None or not _same(name, want, got))
    )
