"""Site files: load, validate, and answer what a check may ask about the site."""

from fabricproof.site.load import load_site, site_folders
from fabricproof.site.model import Site

__all__ = ["Site", "load_site", "site_folders"]
