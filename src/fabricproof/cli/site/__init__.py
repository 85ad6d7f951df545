"""Commands about a site: site, preflight, inventory, subnet, stack."""
