"""One of two files with the same check name."""

# ruff: noqa: RUF012 - ReFrame reads class attributes as its variables

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import sanity_function


@rfm.simple_test
class Namesake(rfm.RunOnlyRegressionTest):
    valid_systems = ["stock:node"]
    valid_prog_environs = ["*"]
    executable = "true"

    @sanity_function
    def fine(self):
        return sn.assert_true(True)
