"""Whose values: histograms that are the same in every environment."""

from __future__ import annotations

import numpy as np

from local import tasks


def histogram(name: str, people: int = tasks.PEOPLE, values: int = tasks.VALUES) -> np.ndarray:
    """Return how many people hold each value: in proportion to 1/rank, or all alike. They add up to `people`."""
    weights = 1.0 / np.arange(1, values + 1) if name == tasks.ZIPF else np.ones(values)
    wanted = people * weights / weights.sum()
    counts = np.floor(wanted).astype(np.int64)
    largest = np.argsort(counts - wanted, kind="stable")[: people - int(counts.sum())]
    counts[largest] += 1
    return counts


def people(counts: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return one value a person, in no order."""
    values = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(values)
