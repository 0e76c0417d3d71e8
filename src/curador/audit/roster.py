"""Every mechanism under audit, with worlds that are hard for it."""

from __future__ import annotations

from curador.audit import worlds
from curador.audit.entry import ALONE, HALFWAY, LARGE, SMALL, Entry
from curador.audit.fit import gaussian_cells, laplace_cells
from curador.audit.local_roster import LOCAL
from curador.mechanisms.above_threshold import AboveThreshold
from curador.mechanisms.exponential import Exponential
from curador.mechanisms.gaussian import DiscreteGaussian, Gaussian
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys, OptimalKeys
from curador.mechanisms.laplace import DiscreteLaplace, Laplace
from curador.mechanisms.noisy_max import NoisyMax
from curador.mechanisms.permute_and_flip import PermuteAndFlip
from curador.mechanisms.quantile import Quantile
from curador.mechanisms.randomized_response import RandomizedResponse
from curador.mechanisms.staircase import Staircase
from curador.mechanisms.truncated_laplace import TruncatedLaplace

ADD, REPLACE = "add_or_remove_one", "replace_one"

ROSTER: tuple[Entry, ...] = (
    Entry(
        "Laplace",
        lambda e: Laplace.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed(0, 1),
        worlds.itself,
        law=lambda m, _: laplace_cells(worlds.steps(m.scale, m)),
        real=True,
    ),
    Entry(
        "Laplace, two numbers",
        lambda e: Laplace.calibrate(epsilon=e, sensitivity=1, dimension=2),
        worlds.fixed([0.0, 0.0], [0.5, 0.5]),
        worlds.both_halves,
    ),
    Entry(
        "Gaussian",
        lambda e: Gaussian.calibrate(epsilon=e, delta=SMALL, sensitivity=1),
        worlds.fixed(0, 1),
        worlds.itself,
        deltas=(SMALL, HALFWAY),
        law=lambda m, _: gaussian_cells(worlds.steps(m.sigma, m) ** 2),
        real=True,
    ),
    Entry(
        "Gaussian, two numbers",
        lambda e: Gaussian.calibrate(epsilon=e, delta=SMALL, sensitivity=1, dimension=2),
        worlds.fixed([0.0, 0.0], [0.6, 0.8]),
        worlds.along,
        deltas=(SMALL, HALFWAY),
    ),
    Entry(
        "DiscreteLaplace",
        lambda e: DiscreteLaplace.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed(0, 1),
        worlds.itself,
        law=lambda m, _: laplace_cells(m.scale),
    ),
    Entry(
        "DiscreteLaplace, replace-one",
        lambda e: DiscreteLaplace.calibrate(epsilon=e, sensitivity=2),
        worlds.fixed([5, 4], [4, 5]),
        worlds.moved_cell,
    ),
    Entry(
        "DiscreteGaussian",
        lambda e: DiscreteGaussian.calibrate(epsilon=e, delta=SMALL, sensitivity=1),
        worlds.fixed(0, 1),
        worlds.itself,
        deltas=(SMALL, HALFWAY),
        law=lambda m, _: gaussian_cells(m.sigma**2),
    ),
    Entry(
        "Staircase",
        lambda e: Staircase.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed(0, 1),
        worlds.itself,
        law=worlds.stairs,
        real=True,
    ),
    Entry(
        "TruncatedLaplace",
        lambda e: TruncatedLaplace.calibrate(epsilon=e, delta=LARGE, sensitivity=1),
        worlds.fixed(0, 1),
        worlds.itself,
        deltas=(LARGE,),
        law=lambda m, _: laplace_cells(worlds.steps(m.scale, m), reach=int(worlds.steps(m.reach, m))),
        real=True,
    ),
    Entry(
        "RandomizedResponse",
        lambda e: RandomizedResponse.calibrate(epsilon=e),
        worlds.fixed(0, 1),
        worlds.itself,
        law=worlds.answers,
    ),
    Entry(
        "RandomizedResponse, four answers",
        lambda e: RandomizedResponse.calibrate(epsilon=e, categories=4),
        worlds.fixed(0, 1),
        worlds.itself,
        law=worlds.answers,
    ),
    Entry(
        "RandomizedResponse, three bits",
        lambda e: RandomizedResponse.calibrate(epsilon=e, answers=3),
        worlds.fixed([0, 0, 0], [1, 1, 1]),
        worlds.code,
    ),
    Entry(
        "Exponential",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        worlds.unlikely_first,
        worlds.itself,
        law=worlds.chances,
    ),
    Entry(
        "Exponential, monotone",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1, monotone=True),
        worlds.rising_first,
        worlds.itself,
        law=worlds.chances,
    ),
    Entry(
        "Exponential, bounded range",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        worlds.bounded_range,
        worlds.itself,
        deltas=(HALFWAY,),
    ),
    Entry(
        "Exponential, between numbers",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed(([0.0, 0.1, 1.0], [0, 1]), ([0.0, 0.1, 1.0], [1, 0])),
        worlds.itself,
        many="release_between_many",
    ),
    Entry(
        "PermuteAndFlip",
        lambda e: PermuteAndFlip.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed([0, 0], [1, -1]),
        worlds.itself,
        law=worlds.chances,
    ),
    Entry(
        "PermuteAndFlip, monotone",
        lambda e: PermuteAndFlip.calibrate(epsilon=e, sensitivity=1, monotone=True),
        worlds.fixed([0, 0], [1, 0]),
        worlds.itself,
        law=worlds.chances,
    ),
    Entry(
        "NoisyMax",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1),
        worlds.behind(1, 0.45, 1.0),
        worlds.itself,
        law=worlds.chances,
    ),
    Entry(
        "NoisyMax, monotone",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, monotone=True),
        worlds.behind(1, 0.22, 0.0),
        worlds.is_first,
    ),
    Entry(
        "NoisyMax, top two",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, top=2),
        worlds.behind(2, 0.27, 1.0),
        worlds.of_first_two,
    ),
    Entry(
        "NoisyMax, gap",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, gap=True),
        worlds.fixed([0] * 6, [1] + [-1] * 5),
        worlds.gap_of_first,
    ),
    Entry(
        "AboveThreshold",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5"),
        worlds.fixed(*worlds.QUEUE),
        worlds.first_above,
    ),
    Entry(
        "AboveThreshold, monotone",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5", monotone=True),
        worlds.fixed([0.0] * 5 + [1.0], [1.0] * 6),
        worlds.first_above,
    ),
    Entry(
        "AboveThreshold, two hits",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5", hits=2),
        worlds.fixed([0.0] * 5 + [1.0] * 2, [1.0] * 5 + [0.0] * 2),
        worlds.last_two_lead,
    ),
    Entry(
        "AboveThreshold, gap",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5", gap=True),
        worlds.fixed(*worlds.QUEUE),
        worlds.gap_of_last,
    ),
    Entry(
        "Quantile",
        lambda e: Quantile.calibrate(q="0.5", lower=0, upper=1, epsilon=e, adjacency=ADD, cells=65),
        worlds.fixed(*worlds.MEDIAN),
        worlds.place_of_65,
        law=worlds.chances,
    ),
    Entry(
        "Quantile, replace-one",
        lambda e: Quantile.calibrate(q="0.5", lower=0, upper=1, epsilon=e, adjacency=REPLACE, cells=65),
        worlds.fixed(*worlds.MEDIAN_REPLACED),
        worlds.place_of_65,
        law=worlds.chances,
    ),
    Entry(
        "Quantile, minimum",
        lambda e: Quantile.calibrate(q=0, lower=0, upper=1, epsilon=e, adjacency=ADD, cells=3),
        worlds.at_the_bottom,
        worlds.place_of_3,
        law=worlds.chances,
    ),
    Entry(
        "GaussianKeys",
        lambda e: GaussianKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        worlds.at_threshold,
        worlds.shown,
        deltas=(LARGE, HALFWAY),
    ),
    Entry(
        "GaussianKeys, a key alone",
        lambda e: GaussianKeys.calibrate(epsilon=e, delta=ALONE, keys=1),
        worlds.fixed([0], [1]),
        worlds.shown,
        deltas=(ALONE,),
    ),
    Entry(
        "LaplaceKeys",
        lambda e: LaplaceKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        worlds.at_threshold,
        worlds.shown,
        deltas=(LARGE,),
    ),
    Entry(
        "LaplaceKeys, two keys",
        lambda e: LaplaceKeys.calibrate(epsilon=e, delta=LARGE, keys=2),
        worlds.at_threshold,
        worlds.how_many_shown,
        deltas=(LARGE,),
    ),
    Entry(
        "LaplaceKeys, a key alone",
        lambda e: LaplaceKeys.calibrate(epsilon=e, delta=ALONE, keys=1),
        worlds.fixed([0], [1]),
        worlds.shown,
        deltas=(ALONE,),
    ),
    Entry(
        "OptimalKeys",
        lambda e: OptimalKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        worlds.around_half,
        worlds.shown,
        deltas=(LARGE,),
    ),
    Entry(
        "OptimalKeys, two keys",
        lambda e: OptimalKeys.calibrate(epsilon=e, delta=LARGE, keys=2),
        worlds.around_half,
        worlds.how_many,
        deltas=(LARGE,),
    ),
    Entry(
        "OptimalKeys, a key alone",
        lambda e: OptimalKeys.calibrate(epsilon=e, delta=ALONE, keys=1),
        worlds.fixed([0], [1]),
        worlds.shown,
        deltas=(ALONE,),
    ),
    *LOCAL,
)
