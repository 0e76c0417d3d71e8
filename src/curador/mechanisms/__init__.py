"""Mechanisms: parameters in, loss and error out. Frozen; `loss` is always that of the noise that will be drawn."""

from curador.mechanisms.exponential import Exponential
from curador.mechanisms.gaussian import DiscreteGaussian, Gaussian
from curador.mechanisms.laplace import DiscreteLaplace, Laplace
from curador.mechanisms.randomized_response import RandomizedResponse

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Exponential", "Gaussian", "Laplace", "RandomizedResponse"]
