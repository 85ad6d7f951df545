"""ReFrame's one entry point: choose the site, let the library turn it into a configuration."""

import sys

from fabricproof.core.errors import FabricproofError
from fabricproof.rfm.settings import reframe_configuration
from fabricproof.site import choose_site

try:
    site_configuration = reframe_configuration(choose_site())
except FabricproofError as error:
    sys.exit(f"fabricproof: {error}")
