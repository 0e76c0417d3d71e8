"""What every estimator promises, as functions of a case: scikit-learn's conventions where its own checks do not reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from curador.errors import InvalidParameter
from curador.learn import load

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Case:
    """One estimator, and data that it can be fitted to.

    kind      the class
    settings  constructor arguments with which it can be fitted
    data      positional arguments of `fit`
    more      the same with one record more
    use       from a fitted estimator to what it says of rows
    """

    kind: Any
    settings: dict[str, Any]
    data: tuple[Any, ...]
    more: tuple[Any, ...]
    use: Callable[[Any], Any]

    def made(self, **changed: Any) -> Any:
        """Return it, not fitted."""
        return self.kind(**{**self.settings, **changed})

    def fitted(self, **changed: Any) -> Any:
        """Return it, fitted."""
        return self.made(**changed).fit(*self.data)


class Exploding:
    """Data that nobody may look at."""

    def __getattribute__(self, name: str) -> Any:
        if name in {"__class__", "__dict__"}:
            return object.__getattribute__(self, name)
        message = f"the data were read: {name}"
        raise AssertionError(message)


def fitted_names(estimator: Any) -> set[str]:
    """Return the attributes that a fit would set."""
    return {name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")}


def constructor_only_stores(case: Case) -> None:
    """Whatever is given is kept as it is, right or wrong, and nothing else is there."""
    given = {name: object() for name in case.made().get_params()}
    made = case.kind(**given)

    assert vars(made) == given
    assert all(made.get_params()[name] is value for name, value in given.items())


def parameters_come_back(case: Case) -> None:
    """`clone` has the same parameters and no fit; `set_params` changes one; an unknown one is refused."""
    fitted = case.fitted()
    copied = clone(fitted)

    assert set(copied.get_params()) == set(fitted.get_params())
    assert fitted_names(copied) == set()
    assert copied.set_params(epsilon=7).get_params()["epsilon"] == 7
    assert fitted.get_params()["epsilon"] == case.settings["epsilon"]
    with pytest.raises(ValueError, match="nonsense"):
        copied.set_params(nonsense=1)


def nothing_is_there_before_a_fit(case: Case) -> None:
    """No attribute with a trailing underscore, and use is refused."""
    made = case.made()

    assert fitted_names(made) == set()
    with pytest.raises(NotFittedError):
        case.use(made)


def fit_returns_the_estimator(case: Case) -> None:
    """Itself, with its parameters as they were, and with a card."""
    made = case.made()
    before = dict(made.get_params())

    assert made.fit(*case.data) is made
    assert all(made.get_params()[name] is value for name, value in before.items())
    assert {"privacy_", "n_features_in_"} <= fitted_names(made)


def privacy_must_be_said(case: Case) -> None:
    """ε, δ and neighbours are asked for before the data are looked at."""
    unread = tuple(Exploding() for _ in case.data)
    for changed, words in (
        ({"epsilon": None}, "epsilon must be given"),
        ({"delta": None}, "delta must be given"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"delta": 1}, "delta must be"),
        ({"adjacency": "friends"}, "adjacency must be"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            case.made(**changed).fit(*unread)


def card_says_what_was_asked(case: Case) -> None:
    """ε and δ as they were given, every release with its noise."""
    card = case.fitted().privacy_

    assert card.estimator == case.kind.__name__
    assert (card.epsilon, card.delta) == (float(case.settings["epsilon"]), float(case.settings["delta"]))
    assert card.releases
    assert all(one.count >= 1 and one.deviation > 0 for one in card.releases)
    assert card.exact
    assert case.kind.__name__ in str(card)


def refit_is_a_new_fit(case: Case) -> None:
    """The second fit replaces the first; noise is fresh."""
    fitted = case.fitted()
    first = np.array(case.use(fitted), dtype=np.float64)
    names = fitted_names(fitted)
    fitted.fit(*case.data)

    assert fitted_names(fitted) == names
    assert not np.array_equal(first, np.asarray(case.use(fitted), dtype=np.float64))


def saved_is_loaded(case: Case, path: Any) -> None:
    """The file says the same of rows, and has the same parameters and card."""
    fitted = case.fitted()
    fitted.save(path)
    loaded = load(path)

    assert type(loaded) is case.kind
    assert loaded.privacy_ == fitted.privacy_
    assert fitted_names(loaded) == fitted_names(fitted)
    np.testing.assert_array_equal(np.asarray(case.use(loaded)), np.asarray(case.use(fitted)))
    with pytest.raises(NotFittedError):
        case.made().save(path)


def noise_does_not_follow_the_data(case: Case) -> None:
    """With one record more, releases are as many, as long and as noisy as before."""
    one = case.fitted().privacy_
    other = case.made().fit(*case.more).privacy_

    assert one.releases == other.releases
    assert (one.rho, one.records) == (other.rho, other.records)


CONVENTIONS: tuple[Callable[[Case], None], ...] = (
    constructor_only_stores,
    parameters_come_back,
    nothing_is_there_before_a_fit,
    fit_returns_the_estimator,
    privacy_must_be_said,
    card_says_what_was_asked,
    refit_is_a_new_fit,
    noise_does_not_follow_the_data,
)
