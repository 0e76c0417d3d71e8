"""Neighbour replay of a fit, at the seam: what two neighbouring tables would release, before noise, given the same releases.

`audit.replay` itself, on a fit without its reading: the first world is fitted with noise, the second to the same outcomes.
Then every release of the second must lie within the declared length of the first one's, and both must have learned the same
and say the same of it on the card. No statistics: one violation is a bug.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curador.audit.replay import replay

if TYPE_CHECKING:
    from curador.learn.base import Facts, PrivateEstimator


def violations(estimator: PrivateEstimator, facts: Facts, one: Any, other: Any) -> tuple[str, ...]:
    """Return in what the releases of two neighbours, and what is learned of them, differ; empty: as it should be."""
    plan = estimator._plan(estimator._goal(), facts)  # noqa: SLF001 -- a fit without its reading

    def fit(data: Any) -> dict[str, object]:
        fitted = estimator._fresh()._fitted(data, facts, plan)  # noqa: SLF001 -- idem
        estimator.privacy_ = fitted.privacy_
        return vars(fitted)

    found = replay(fit, one, other)
    assert found.releases, "a replay that sees no release shows nothing"
    return found.violations
