"""Which keys exist is itself private: a key is shown only where enough people hold it."""

from curador.mechanisms.keys.noisy import GaussianKeys, LaplaceKeys
from curador.mechanisms.keys.optimal import OptimalKeys

__all__ = ["GaussianKeys", "LaplaceKeys", "OptimalKeys"]
