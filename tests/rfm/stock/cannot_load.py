"""A check file that cannot be imported."""

import no_such_module_anywhere
import reframe as rfm


@rfm.simple_test
class CannotLoad(rfm.RunOnlyRegressionTest):
    executable = no_such_module_anywhere.PROGRAM
