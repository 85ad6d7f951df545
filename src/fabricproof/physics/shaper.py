"""A token bucket on the road: what lets a short message pass faster than the link's rate.

A wire has no memory; a shaper has one.  After a pause its bucket is full, and a message of the
bucket's size passes at the peak rate, or at once where there is none.  Cloud networks shape so
(burstable instances), and the rails of the virtual cluster do.  Over N bytes the bucket's share
vanishes, so that the plateau keeps its ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabricproof.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Shaper:
    """A token bucket as tc-tbf(8) describes it: mean rate, bucket, peak rate.

    The mean rate is the link's own.

    Attributes:
        burst_bytes: size of the bucket, 0 or more.
        peak_factor: peak rate over mean rate, at least 1.
        instant_bytes: what passes at once, at any rate; 0 or more, at most ``burst_bytes``.
    """

    burst_bytes: int
    peak_factor: float = 1.0
    instant_bytes: int = 0

    def __post_init__(self) -> None:
        """Refuse a bucket that cannot be.

        Raises:
            ConfigError: a value out of range.
        """
        if self.burst_bytes < 0 or not 0 <= self.instant_bytes <= self.burst_bytes:
            raise ConfigError(
                "impossible token bucket",
                expected="0 <= instant_bytes <= burst_bytes",
                got=f"burst_bytes {self.burst_bytes}, instant_bytes {self.instant_bytes}",
            )
        if not 1 <= self.peak_factor < float("inf"):
            raise ConfigError(
                "impossible peak rate", expected="a factor of at least 1", got=str(self.peak_factor)
            )

    def least_time_us(self, size_bytes: int, rate_mb_s: float) -> float:
        """Return the least time in which ``size_bytes`` pass after a pause, in us.

        From the definition of a token bucket with a peak: in time t at most
        min(peak t + instant, rate t + burst) bytes pass (RFC 2212, section 2: min[pT + M, rT + b]).

        Args:
            size_bytes: 0 or more.
            rate_mb_s: the mean rate in MB/s (bytes per us), positive.
        """
        at_peak = (size_bytes - self.instant_bytes) / (self.peak_factor * rate_mb_s)
        at_mean = (size_bytes - self.burst_bytes) / rate_mb_s
        return max(0.0, at_peak, at_mean)
