"""Under which tag a fabric is measured."""

from __future__ import annotations

import pytest

from fabricproof.rfm.current import is_roce, technology
from fabricproof.site.schema import FabricSpec


@pytest.mark.parametrize(
    ("link", "protocol", "tag", "roce"),
    [
        ("Soft-RoCE 100 Mb/s", None, "infiniband", True),
        ("Soft-RoCE 100 Mb/s", "rocev2", "infiniband", True),
        ("rxe 1G", None, "infiniband", True),
        ("100GbE", "rocev2", "infiniband", True),
        ("EDR 4x", None, "infiniband", False),
        ("100MbE", "tcp", "ethernet", False),
        ("100MbE", None, "ethernet", False),
        (None, None, "memory", False),
    ],
)
def test_soft_roce_is_measured_with_all_that_speaks_verbs(
    link: str | None, protocol: str | None, tag: str, roce: bool
) -> None:
    keys = {"link": link, "protocol": protocol}
    given = {name: value for name, value in keys.items() if value is not None}
    spec = FabricSpec.model_validate({"name": "f", "rails": [{"interface": "rxe0:1"}], **given})
    assert (technology(spec), is_roce(spec)) == (tag, roce)
