"""Numbers for whoever operates the service, on a loopback port of their own.

Claim   No label names an analyst, a token, a table or a question, and durations are whole ticks: what is told here is no
        finer than what every asker is told of the own question.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    from curador.server.service import Service

_TICKS: Final = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """What one process counts; several are added up by `prometheus_client.multiprocess`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self._requests = Counter("curador_requests", "Requests by route and status.", ["route", "status"], registry=own)
        self._ticks = Histogram(
            "curador_request_ticks", "Whole ticks until a request was answered.", ["route"], buckets=_TICKS, registry=own
        )
        self._refused = Counter("curador_logins_refused", "Logins that failed.", registry=own)
        self._under_way = Gauge(
            "curador_questions_under_way", "Questions handed over and not over.", registry=own, multiprocess_mode="livesum"
        )

    def count(self, route: str, status: int, seconds: float, tick: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(route, str(status)).inc()
        self._ticks.labels(route).observe(max(math.ceil(seconds / (tick or 1.0)), 1))

    def count_refused_login(self) -> None:
        """Count a login that failed."""
        self._refused.inc()

    def look(self, service: Service) -> None:
        """Take what is under way now."""
        self._under_way.set(service.under_way)
