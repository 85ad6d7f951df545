"""Checks of a site that know nothing of us: judged by ReFrame, with the partition's launcher."""

# ruff: noqa: RUF012 - ReFrame reads class attributes as its variables

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_before, sanity_function

from fabricproof.rfm import Referenced


class _Own(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["triad 100.0"]
    num_tasks = 2
    tags = {"trap"}

    @sanity_function
    def once_per_line(self):
        return sn.assert_found(r"^triad", self.stdout)


class _Number(_Own):
    @performance_function("GB/s")
    def triad(self):
        return sn.extractsingle(r"triad (\S+)", self.stdout, 1, float)


@rfm.simple_test
class OwnTriad(_Number):
    extra_resources = {"memory": {"size": "1M"}}
    reference = {"*": {"triad": (100, -0.1, 0.1, "GB/s")}}


@rfm.simple_test
class OwnTooSlow(_Number):
    reference = {"*": {"triad": (200, -0.1, None, "GB/s")}}


@rfm.simple_test
class OwnEndless(_Number):
    executable_opts = ["triad inf"]
    reference = {"*": {"triad": (100, -0.1, None, "GB/s")}}


@rfm.simple_test
class OwnUnread(_Number):
    """ReFrame passes it with a warning."""

    executable_opts = ["triad none"]
    reference = {"*": {"triad": (100, -0.1, None, "GB/s")}}


@rfm.simple_test
class OwnUnjudged(_Number):
    """No reference."""


@rfm.simple_test
class OwnSanity(_Own):
    """No number."""


@rfm.simple_test
class OwnInsane(_Own):
    executable_opts = ["nothing"]


@rfm.simple_test
class OwnDead(_Number):
    postrun_cmds = ["exit 3"]
    reference = {"*": {"triad": (100, -0.1, 0.1, "GB/s")}}


@rfm.simple_test
class OwnSkipped(_Own):
    @run_before("setup")
    def leave_out(self):
        self.skip("not today")


# Those that take the site's references, and leave records.


class _Kept(_Number, Referenced):
    pass


@rfm.simple_test
class KeptWell(_Kept):
    """110 GB/s by the site, in another unit; 900 by itself."""

    threads = parameter([1, 2])
    reference = {"*": {"triad": (900, -0.1, None, "GB/s")}}


@rfm.simple_test
class KeptSlow(_Kept):
    reference = {"*": {"triad": (100, -0.1, None, "GB/s")}}


@rfm.simple_test
class KeptByItself(_Kept):
    reference = {"*": {"triad": (100, -0.1, None, "GB/s")}}


@rfm.simple_test
class KeptUnjudged(_Kept):
    """The site's reference is for another partition."""


@rfm.simple_test
class KeptInOtherUnit(_Kept):
    """The site's reference is a time."""


@rfm.simple_test
class KeptEndless(_Kept):
    executable_opts = ["triad inf"]


@rfm.simple_test
class KeptUnread(_Kept):
    executable_opts = ["triad none"]


@rfm.simple_test
class KeptMisspelt(_Kept):
    """The site's reference has another variable."""

    reference = {"*": {"triad": (100, -0.1, None, "GB/s")}}


@rfm.simple_test
class KeptInsane(_Kept):
    executable_opts = ["nothing"]


@rfm.simple_test
class KeptHello(_Own, Referenced):
    """No number."""


@rfm.simple_test
class KeptDays(_Own, Referenced):
    @performance_function("ns/day")
    def speed(self):
        return 12.0
