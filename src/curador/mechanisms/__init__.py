"""Mechanisms: a value in, a private one out. Frozen; `loss` is always that of the noise that is drawn."""

from curador.mechanisms.above_threshold import AboveThreshold
from curador.mechanisms.exponential import Exponential, PermuteAndFlip
from curador.mechanisms.gaussian import DiscreteGaussian, Gaussian
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys
from curador.mechanisms.laplace import DiscreteLaplace, Laplace, TruncatedLaplace
from curador.mechanisms.noisy_max import NoisyMax, Selection
from curador.mechanisms.optimal_keys import OptimalKeys
from curador.mechanisms.quantile import Quantile
from curador.mechanisms.randomized_response import RandomizedResponse
from curador.mechanisms.staircase import Staircase

__all__ = [
    "AboveThreshold",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "GaussianKeys",
    "Laplace",
    "LaplaceKeys",
    "NoisyMax",
    "OptimalKeys",
    "PermuteAndFlip",
    "Quantile",
    "RandomizedResponse",
    "Selection",
    "Staircase",
    "TruncatedLaplace",
]
