"""Clusters by few noisy steps."""

import numpy as np
import pytest

from curador.errors import InvalidParameter
from curador.learn import PrivateKMeans
from curador.learn.clusters import CELLS, MOMENTS, SUMS, nearest, weighted_means
from curador.learn.release import Releaser

PRIVACY = {"epsilon": 1, "delta": 1e-6}
CENTRES = np.array([[0.6, 0.6, 0.0], [-0.6, 0.5, 0.2], [0.0, -0.7, -0.3]])


def made(count=3000, *, seed=1, wide=0):
    public = np.random.default_rng(seed)
    centres = np.hstack([CENTRES, np.zeros((3, wide))])
    rows = centres[public.integers(0, 3, count)] + 0.08 * public.normal(size=(count, 3 + wide))
    return np.clip(rows, -1, 1)


def inertia(rows, centres):
    return float(np.square(rows - centres[nearest(rows, centres)]).sum(axis=1).mean())


@pytest.fixture
def closed(monkeypatch):
    """Nothing may be released."""

    def refuse(*_arguments, **_options):
        raise AssertionError("released")

    monkeypatch.setattr(Releaser, "noisy", refuse)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epsilon": None}, "epsilon must be given"),
        ({"delta": None}, "delta must be given"),
        ({"bounds": None}, "bounds must be given"),
        ({"bounds": (1, 1)}, "bounds must be a pair"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"n_clusters": 2.5}, "n_clusters must be"),
        ({"n_nominal": -1}, "n_nominal must be"),
        ({"adjacency": None}, "adjacency must be"),
    ],
)
@pytest.mark.usefixtures("closed")
def test_what_cannot_be_fitted_is_refused_in_one_sentence(changed, words):
    """Before anything is released."""
    with pytest.raises(InvalidParameter, match=words):
        PrivateKMeans(**{"n_clusters": 3, "bounds": (-1, 1), **PRIVACY, **changed}).fit(made(20))


@pytest.mark.usefixtures("closed")
def test_a_forecast_reads_no_data():
    """From declared numbers."""
    estimator = PrivateKMeans(3, bounds=(-1, 1), n_nominal=100, **PRIVACY)

    assert not estimator.dry_run(n_features=3).worthwhile
    assert estimator.dry_run(10**6, 3).worthwhile


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("way", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("wide", [0, 3])
def test_without_noise_to_speak_of_it_finds_the_clusters(delta, way, wide):
    """Centres within a twentieth, counts within a tenth, and whoever is near one is predicted to be there."""
    rows = made(wide=wide)
    estimator = PrivateKMeans(3, epsilon=200, delta=delta, adjacency=way, bounds=(-1, 1)).fit(rows)
    order = nearest(np.hstack([CENTRES, np.zeros((3, wide))]), estimator.cluster_centers_)

    assert sorted(order) == [0, 1, 2]
    assert np.abs(estimator.cluster_centers_[order][:, :3] - CENTRES).max() < 0.05
    assert np.abs(estimator.counts_ - 1000).max() < 100
    assert (estimator.predict(CENTRES if not wide else np.hstack([CENTRES, np.zeros((3, wide))])) == order).all()
    assert estimator.score(rows) == pytest.approx(-len(rows) * inertia(rows, estimator.cluster_centers_))


WIDTHS, MIDDLES = np.array([2.0**13, 2.0**-20, 1.0]), np.array([2.0**14, 0.0, -4.0])


def bounds_of_widths():
    """The bounds of `made() * WIDTHS + MIDDLES`."""
    return MIDDLES - WIDTHS, MIDDLES + WIDTHS


def asked(monkeypatch, rows, bounds, **options):
    """What a fit would release of rows, before noise."""
    seen = []

    def noisy(_self, name, integers, *, length, step):
        seen.append((name, integers.tolist(), length, step))
        return integers * step

    monkeypatch.setattr(Releaser, "noisy", noisy)
    fitted = PrivateKMeans(3, bounds=bounds, **{**PRIVACY, **options}).fit(rows)
    return seen, fitted


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("way", ["add_or_remove_one", "replace_one"])
def test_a_unit_of_a_feature_changes_nothing(delta, way, monkeypatch):
    """Metres or miles: the same integers and lengths leave, centres come back in the unit of the data, and rows go there."""
    rows = np.rint(made(300) * 2**20) / 2**20  # so that units of powers of two move no bit
    options = {"delta": delta, "adjacency": way}
    plain, one = asked(monkeypatch, rows, (-1, 1), **options)
    wide, other = asked(monkeypatch, rows * WIDTHS + MIDDLES, bounds_of_widths(), **options)

    assert plain == wide
    assert other.cluster_centers_ == pytest.approx(one.cluster_centers_ * WIDTHS + MIDDLES, rel=1e-12, abs=1e-12)
    assert np.array_equal(other.predict(rows * WIDTHS + MIDDLES), one.predict(rows))
    assert other.score(rows * WIDTHS + MIDDLES) == pytest.approx(one.score(rows))
    assert np.array_equal(other.scale_, WIDTHS)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_narrow_features_find_their_places(delta):
    """Of features 10⁹ times as wide as others, every centre within a tenth of every half range: none in a corner."""
    rows = made() * WIDTHS + MIDDLES
    estimator = PrivateKMeans(3, epsilon=200, delta=delta, bounds=bounds_of_widths()).fit(rows)
    found = (estimator.cluster_centers_ - MIDDLES) / WIDTHS

    assert np.abs(found[nearest(CENTRES, found)] - CENTRES).max() < 0.1


def test_a_forecast_is_in_the_geometry_of_the_fit():
    """Widths do not matter; more features blur a centre more, and in the end it is they that hide it."""
    same, wide = (PrivateKMeans(3, bounds=one, **PRIVACY).dry_run(5000, 3) for one in ((-1, 1), bounds_of_widths()))
    few, many = (PrivateKMeans(3, bounds=(0, 9), **PRIVACY).dry_run(1000, features) for features in (2, 400))

    assert same == wide
    assert few.worthwhile
    assert not many.worthwhile
    assert many.numbers["error of a centre"] > many.numbers["spread of a feature"] / 4 > few.numbers["error of a centre"]
    assert few.numbers["noise of a count"] == many.numbers["noise of a count"]


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("features", [2, 9])
def test_a_forecast_of_a_centre_is_what_noise_does(delta, features, monkeypatch):
    """One deviation of noise in the sums of the last step moves a centre by what was forecast. No chance in it."""
    rows = np.clip(0.2 * np.random.default_rng(5).normal(size=(20_000, features)), -1, 1)
    estimator = PrivateKMeans(1, epsilon=1, delta=delta, bounds=(-1, 1))
    centres = []
    for pushed in (0.0, 1.0):

        def noisy(self, name, integers, *, length, step, pushed=pushed):
            self._count(name, length)
            last = name == SUMS and self._made[SUMS] == 3
            push = pushed * last * self.deviation(name, length=length, step=step)
            return integers * step + (push * (np.arange(features + 1) < features) if name == SUMS else 0.0)

        monkeypatch.setattr(Releaser, "noisy", noisy)
        centres.append(estimator.fit(rows).cluster_centers_[0])
    expected = estimator.dry_run(20_000, features).numbers["error of a centre"]

    assert centres[1] - centres[0] == pytest.approx(np.full(features, expected), rel=0.1)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_centres_stay_within_bounds_however_large_the_noise(delta):
    """One cluster, many, and fewer records than clusters."""
    for clusters in (1, 7):
        estimator = PrivateKMeans(clusters, epsilon=0.01, delta=delta, bounds=(2, 3)).fit(made(5) + 2)

        assert estimator.cluster_centers_.shape == (clusters, 3)
        assert (estimator.cluster_centers_ >= 2).all()
        assert (estimator.cluster_centers_ <= 3).all()
        assert (estimator.counts_ >= 0).all()


def test_nothing_about_rows_is_kept():
    """Neither labels nor an inertia that nobody bought."""
    estimator = PrivateKMeans(3, bounds=(-1, 1), **PRIVACY).fit(made(100))

    assert {name for name in vars(estimator) if name.endswith("_")} == {
        "cluster_centers_",
        "counts_",
        "n_features_in_",
        "privacy_",
        "scale_",
    }
    assert [(one.name, one.count) for one in estimator.privacy_.releases] == [(MOMENTS, 1), (CELLS, 1), (SUMS, 3)]


def test_weighted_means_finds_heavy_points():
    """Two heavy points among light ones."""
    points = np.array([[0.0, 0.0], [1.0, 1.0], [0.1, 0.0], [0.9, 1.0]])
    centres, shares = weighted_means(points, np.array([50.0, 50.0, 1.0, 1.0]), 2)

    assert sorted(centres[:, 0]) == pytest.approx([0.1 / 51, 1 - 0.1 / 51])
    assert shares == pytest.approx([0.5, 0.5])


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_it_learns_from_data(delta):
    """Of 20,000 records at ε = 1 the inertia of the true centres, within 5 %. Fails by chance less than once in 10⁶."""
    rows = made(20_000)
    found = [
        inertia(rows, PrivateKMeans(3, epsilon=1, delta=delta, bounds=(-1, 1)).fit(rows).cluster_centers_) for _ in range(5)
    ]

    assert np.median(found) < 1.05 * inertia(rows, CENTRES)
