"""Root mean squared errors of released counts, sums and means against the tool's own bounded truth: numpy only.

A count and a sum are what is measured; the mean is their ratio, where the tool gives none of its own.
"""

from __future__ import annotations

import numpy as np


def errors(count, total, noisy_count, noisy_total):
    """Return the errors of count, sum and mean over all groups and redraws (the first axis of the noisy ones)."""
    mean, noisy_mean = total / count, noisy_total / np.maximum(noisy_count, 1)
    return {
        "n": _root_mean_square(noisy_count - count),
        "total": _root_mean_square(noisy_total - total),
        "mean": _root_mean_square(noisy_mean - mean),
    }


def _root_mean_square(error) -> float:
    return float(np.sqrt(np.mean(np.square(error))))
