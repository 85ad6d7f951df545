"""Site files: load, validate, and answer what a check may ask about the site."""

from __future__ import annotations

from fabricproof.site.fits import Misfit
from fabricproof.site.load import (
    check_access,
    choose_site,
    error_at,
    gallery_folders,
    load_site,
    site_folders,
    site_of,
    sites_root,
)
from fabricproof.site.model import Site, build_fabric, gpus_of, protocol_of
from fabricproof.site.schema import (
    ExpectSpec,
    FabricSpec,
    GpuSpec,
    NightSpec,
    PartitionSpec,
    RailSpec,
    StackSpec,
    Stated,
)
from fabricproof.site.texts import host_and_port
from fabricproof.site.toml_file import did_you_mean

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "lay_out": "a folder for a site's own files, beside an installed package",
    "roll": "the checks that a site is due to run",
    "scheduling": "what Slurm must grant for that",
}

__all__ = [
    "ExpectSpec",
    "FabricSpec",
    "GpuSpec",
    "Misfit",
    "NightSpec",
    "PartitionSpec",
    "RailSpec",
    "Site",
    "StackSpec",
    "Stated",
    "build_fabric",
    "check_access",
    "choose_site",
    "did_you_mean",
    "error_at",
    "gallery_folders",
    "gpus_of",
    "host_and_port",
    "load_site",
    "protocol_of",
    "site_folders",
    "site_of",
    "sites_root",
]
