"""One check that fails where the Python of ReFrame has no fabricproof: it leaves out all others."""

import reframe as rfm
from reframe.core.builtins import run_before
from reframe.core.exceptions import ReframeError

try:
    import fabricproof  # noqa: F401 - whether it is there
except ImportError as error:
    WHY = (
        f"these checks need fabricproof in the Python that runs ReFrame, got: {error}; "
        "next: pip install it there, or fabricproof run --site SITE"
    )

    @rfm.simple_test
    class FabricproofIsNotInstalled(rfm.RunOnlyRegressionTest):
        """Fails, whatever tag selected it."""

        valid_systems = ["*"]
        valid_prog_environs = ["*"]
        tags = {"quick", "nightly", "full", "ethernet", "infiniband"}

        @run_before("setup")
        def fail_at_once(self):
            """Say what is missing."""
            raise ReframeError(WHY)
