"""Site files: load, validate, and answer what a check may ask about the site."""

from fabricproof.site.load import Site, load_site, site_folders

__all__ = ["Site", "load_site", "site_folders"]
