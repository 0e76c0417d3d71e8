"""Which questions are one, and what is stored of them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from curator_studies import BY_CITY, COUNT, make_study, session_of

from curador.answers.identity import canonical, decode_releases, encode_releases, identity, identity_digest, plain
from curador.answers.release import Ends, ReleasedBlock
from curador.curator.options import QuestionOptions
from curador.curator.price import price_at
from curador.errors import Failed
from curador.study.model import Budget
from curador.study.values import Type


@pytest.fixture
def asking(tmp_path):
    study = make_study(tmp_path)
    return asking_of(study)


def asking_of(study, *, version=1, analyst=None):
    return session_of(study, version=version, analyst=analyst)


def how(**changes):
    costs = {"spend", "rho", "epsilon", "accuracy"}
    return QuestionOptions(**({} if costs & set(changes) else {"spend": "5%"}), **changes)


SAME = [
    "select city, count(*) as n, avg(spent) as mean from visits group by city",
    "SELECT  city,\n COUNT(*) AS n, -- how many\n AVG(spent) AS mean FROM visits /* all */ GROUP BY city;",
    "SELECT AVG(spent) AS a, city AS c, COUNT(*) AS b FROM visits GROUP BY city",
    "SELECT v.city, COUNT(*) AS n, AVG(v.spent) AS mean FROM visits AS v GROUP BY v.city",
    "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY city ORDER BY n DESC LIMIT 2",
    "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY city HAVING COUNT(*) > 100",
    "SELECT COUNT(*) AS n, SUM(spent) AS s, city FROM visits GROUP BY city",
    "SELECT city, COUNT(*) * 2 AS twice, AVG(spent) / 100 AS m FROM visits GROUP BY 1",
]
OTHER = [
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT shop, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY shop",
    "SELECT COUNT(*) AS n, AVG(spent) AS mean FROM visits",
    "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits WHERE spent > 10 GROUP BY city",
    "SELECT city, COUNT(*) AS n, AVG(spent + 1) AS mean FROM visits GROUP BY city",
    "SELECT city, COUNT(*) FILTER (WHERE spent > 1) AS n, AVG(spent) AS mean FROM visits GROUP BY city",
]


@pytest.mark.parametrize("text", SAME, ids=range(len(SAME)))
def test_spelling_aliases_order_and_what_is_computed_afterwards_do_not_matter(asking, text):
    """Everything that is computed from the same measurements is the same question."""
    assert price_at(asking, text, how()).key == price_at(asking, BY_CITY, how()).key


@pytest.mark.parametrize("text", OTHER, ids=range(len(OTHER)))
def test_what_is_measured_matters(asking, text):
    """Another key, filter, argument or aggregate is another question."""
    assert price_at(asking, text, how()).key != price_at(asking, BY_CITY, how()).key


@pytest.mark.parametrize(
    "changes",
    [
        {"spend": "6%"},
        {"rho": "0.01"},
        {"epsilon": "0.1"},
        {"spend": "5%", "weights": {"n": 2}},
        {"caps": {"rows": 4}},
        {"bounds": {"mean": (0, 100)}},
        {"bias": True},
    ],
    ids=str,
)
def test_noise_caps_and_bounds_matter(asking, changes):
    """Another spend, cap or bound is another question."""
    assert price_at(asking, BY_CITY, how(**changes)).key != price_at(asking, BY_CITY, how()).key


def test_confidence_does_not_matter(asking):
    """Another confidence is another view of the same numbers."""
    assert price_at(asking, BY_CITY, how(confidence="0.9")).key == price_at(asking, BY_CITY, how()).key


def test_study_and_data_version_matter(asking, tmp_path):
    """The same text about other declarations or other data is another question."""
    own = price_at(asking, BY_CITY, how()).key
    study = make_study(tmp_path, budget=Budget(epsilon=3, delta="1e-6"), max_units=10**6)
    assert price_at(asking_of(study), BY_CITY, how()).key != own
    assert price_at(asking_of(asking.study), BY_CITY, how()).key == own
    assert price_at(asking_of(asking.study, version=2), BY_CITY, how()).key != own


def test_shares_of_one_amount_are_one_question(tmp_path):
    """25 % of a fifth is 5 % of the whole: whoever asks, the same noise is the same question, private keys included."""
    study = make_study(tmp_path)
    text = "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop"
    owner = price_at(asking_of(study), text, how(spend="2%"))
    ana = price_at(asking_of(study, analyst=study.analyst("ana")), text, how(spend="10%"))
    assert owner.key == ana.key
    assert owner.cost == ana.cost


def test_two_halves_of_a_union_may_stand_in_either_order(asking):
    """UNION ALL of two SELECTs is the same measurements in either order."""
    one, two = (
        "SELECT COUNT(*) AS n FROM visits WHERE city = 'Lima'",
        "SELECT COUNT(*) AS n FROM visits WHERE city = 'Quito'",
    )
    first, second = (price_at(asking, f"{a} UNION ALL {b}", how()) for a, b in ((one, two), (two, one)))
    assert first.key == second.key
    assert [places[0] for places in first.identities[0][1]] != [places[0] for places in second.identities[0][1]]


def test_order_of_keys_does_not_matter(asking):
    """GROUP BY a, b is GROUP BY b, a."""
    text = "SELECT COUNT(*) AS n FROM visits GROUP BY {}"
    keys = [price_at(asking, text.format(one), how()).key for one in ("city, shop", "shop, city")]
    assert keys[0] == keys[1]


def test_canonical_form_is_plain_and_exact(asking):
    """The canonical form is JSON whose numbers are integers and texts; no float can change it from machine to machine."""
    body = canonical(price_at(asking, BY_CITY, how()).priced[0])

    def leaves(value):
        if isinstance(value, dict):
            return [leaf for one in value.values() for leaf in leaves(one)]
        return [leaf for one in value for leaf in leaves(one)] if isinstance(value, list) else [value]

    assert not any(isinstance(leaf, float) for leaf in leaves(body))
    assert "n" not in leaves(body)
    assert "mean" not in leaves(body)


def test_a_changed_noise_parameter_is_seen(asking):
    """The seeded bug: a key that forgot the noise would serve an answer that was paid less for."""
    priced = price_at(asking, COUNT, how()).priced[0]
    noise = priced.noises[0][0]
    object.__setattr__(louder := replace(priced), "noises", ((_with(noise, sigma=2 * noise.sigma),),))
    assert identity_digest(identity(louder)) != identity_digest(identity(priced))


def _with(noise, **changes):
    copy = object.__new__(type(noise))
    for name in noise.__slots__:
        object.__setattr__(copy, name, changes.get(name, getattr(noise, name)))
    return copy


def test_values_keep_their_types():
    """A date, a timestamp, a fraction, a number and a text that look alike stay apart."""
    day = dt.date(2024, 1, 1)
    midnight = dt.datetime(2024, 1, 1)  # noqa: DTZ001
    values = [1, "1", True, Fraction(1), day, midnight, day.isoformat(), None]
    assert len({repr(plain(value)) for value in values}) == len(values)
    with pytest.raises(TypeError):
        plain(1.5)


# ---- what is stored ------------------------------------------------------------------------------------------------


def test_stored_numbers_come_back_in_the_order_of_the_asker(asking):
    """Keys and measurements that stand elsewhere in another spelling are found by what they are."""
    one = price_at(asking, "SELECT city, shop, COUNT(*) AS n, SUM(spent) AS s FROM visits GROUP BY city, shop", how())
    two = price_at(asking, "SELECT SUM(spent) AS s, COUNT(*) AS n, shop, city FROM visits GROUP BY shop, city", how())
    assert one.key == two.key
    plan = one.priced[0].plan.blocks[0]
    values = tuple(np.array([10 * place, 10 * place + 1]) for place in range(len(plan.measurements)))
    released = ReleasedBlock((["Lima", "Quito"], ["north", None]), values, np.array([7.5, 8.25]))
    (back,) = decode_releases(encode_releases(one.identities, [[released]]), two.identities, two.priced)
    assert back[0].keys == (["north", None], ["Lima", "Quito"])
    assert back[0].units.tolist() == [7.5, 8.25]
    texts = [one.text for one in plan.measurements]
    other = [one.text for one in two.priced[0].plan.blocks[0].measurements]
    assert [back[0].values[other.index(text)].tolist() for text in texts] == [one.tolist() for one in values]


def test_nothing_is_rounded_when_it_is_stored(asking):
    """Integers beyond 64 bits, every float, dates and NULL come back as they were."""
    ready = price_at(asking, "SELECT city, MEDIAN(spent) AS m, COUNT(*) AS n FROM visits GROUP BY city", how())
    block = ready.priced[0].plan.blocks[0]
    ends = Ends(*(np.array([0.1, 1e-300, 5e-324]) * scale for scale in (1, 2, 3)))
    wide = np.array([1 << 100, -(1 << 70), 3], object)
    values = tuple(ends if one.kind == "quantile" else wide for one in block.measurements)
    released = ReleasedBlock((["Lima", "Quito", None],), values)
    (back,) = decode_releases(encode_releases(ready.identities, [[released]]), ready.identities, ready.priced)
    for got, want in zip(back[0].values, values, strict=True):
        if isinstance(want, Ends):
            assert all(getattr(got, end).tobytes() == getattr(want, end).tobytes() for end in ("point", "low", "high"))
        else:
            assert got.tolist() == want.tolist()
    assert back[0].units is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Type.DATE, dt.date(1, 1, 1)),
        (Type.TIMESTAMP, dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001
        (Type.FLOAT, float("inf")),
        (Type.BOOLEAN, False),
        (Type.INTEGER, -(2**63)),
        (Type.STRING, "\ud800\x00é"),
    ],
)
def test_keys_of_every_type_are_stored(asking, kind, value):
    """A key comes back with its type."""
    ready = price_at(asking, BY_CITY, how())
    block = ready.priced[0].plan.blocks[0]
    typed = replace(block, keys=(replace(block.keys[0], type=kind),))
    priced = replace(ready.priced[0], plan=replace(ready.priced[0].plan, blocks=(typed,)))
    released = ReleasedBlock(([value, None],), tuple(np.array([1, 2]) for _ in block.measurements))
    (back,) = decode_releases(encode_releases(ready.identities, [[released]]), ready.identities, [priced])
    assert back[0].keys == ([value, None],)
    assert type(back[0].keys[0][0]) is type(value)


def test_an_unknown_version_is_refused(asking, monkeypatch):
    """Bytes of a later version are not guessed at."""
    ready = price_at(asking, COUNT, how())
    monkeypatch.setattr("curador.answers.identity.STORED_VERSION", 2)
    content = encode_releases(ready.identities, [[ReleasedBlock((), (np.array([1]),))]])
    monkeypatch.undo()
    with pytest.raises(Failed):
        decode_releases(content, ready.identities, ready.priced)
