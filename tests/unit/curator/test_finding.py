"""Caps of a question's own: its rows are counted first, with a tenth of its spend, inside the same charge."""

import zlib
from dataclasses import replace
from fractions import Fraction

import pytest
from surveyed_studies import BY_CITY, BY_SHOP, COUNT, FILTERED, JOINED, charges, kinds, opened, session_of, write_study

import curador as cu
from curador.curator import asking, survey
from curador.curator import finding as finding_module
from curador.curator.asking import PricedQuestion, ask
from curador.curator.finding import FIND_SHARE, FindingQuestion, counting_name, join_parts, split_parts
from curador.curator.options import QuestionOptions
from curador.curator.price import price_question
from curador.errors import Failed, InvalidParameter, Refused
from curador.ledger.amounts import TICK, amounts_text
from curador.privacy.losses import loss_from_record
from curador.query.tree import Ref


def how(**given):
    """Options of a question, as the verbs make them."""
    return QuestionOptions(**given)


def priced(asker, text, **given):
    """The question with its price, as `ask` would take it to the door."""
    return price_question(session_of(asker), text, how(**given))


def shown(answer):
    """Everything of an answer that an asker sees, but what it cost and when."""
    receipt = {name: answer.receipt[name] for name in ("caps", "measurements", "keys", "plan", "survey", "answer_digest")}
    return answer.parts, answer.notes, answer.bias, receipt


@pytest.fixture(autouse=True)
def _one_cap(monkeypatch):
    """Let every survey find 8 rows: which caps it finds is the matter of other tests."""
    monkeypatch.setattr(survey, "choose_rows", lambda *_given, **_named: 8)


@pytest.fixture
def curator(tmp_path):
    """A study whose survey is bought."""
    with opened(tmp_path) as one:
        one.survey()
        yield one


# ---- inside one charge ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        FILTERED,
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in (BY_CITY, JOINED, BY_SHOP.replace("GROUP", "WHERE spent > 100 GROUP"))
        ),
    ],
)
def test_counts_and_answer_are_one_charge_of_the_whole_spend(text, curator):
    """One reservation, no more than was given and no less but for ticks; its losses account for all of it."""
    before = len(charges(curator))
    answer = curator.ask(text, spend="4%")
    assert len(charges(curator)) == before + 1
    entry = charges(curator)[-1]
    granted = curator.ledger.limits.share(Fraction(4, 100)).rho
    assert granted * Fraction(999_999, 1_000_000) - 8 * TICK <= answer.cost.rho <= granted  # scales are rounded up a little
    assert entry.amounts == answer.cost
    losses = [loss_from_record(dict(record)).concentrated for record in entry.losses]
    assert sum(rho for rho, _ in losses) <= answer.cost.rho
    assert sum(delta for _, delta in losses) <= answer.cost.delta
    assert losses[-1][0] <= granted * (1 - FIND_SHARE)
    curator.ledger.verify()


@pytest.mark.slow
def test_the_caps_follow_from_the_numbers_that_were_released(curator):
    """What is stored beside the answer says which caps it has."""
    question = priced(curator, FILTERED, spend="4%")
    assert isinstance(question, FindingQuestion)
    ask(question)
    stored = curator.ledger.stored(question.key, 1)
    bought, steps, caps = question._read(stored.answer)  # noqa: SLF001 -- what is stored
    assert [name for name, _ in question.missing] == bought == list(steps)
    made = question._resolve(steps, caps)  # noqa: SLF001
    asked = finding_module.caps_found(session_of(curator), question.plan.blocks[0], {"rows": steps[bought[0]]})
    assert (asked,) == caps
    assert made.plan.blocks[0].cap.rows == asked.rows


@pytest.mark.slow
def test_it_is_free_for_the_next_question_about_the_same_rows(tmp_path):
    """Also for another analyst, another aggregate, after reopening; not about other rows, nor for a new data version."""
    with opened(tmp_path) as curator:
        curator.survey()
        curator.analyst("ana").ask(FILTERED, spend="4%")
        assert kinds(curator)[-1] == "surveyed"
        summed = FILTERED.replace("COUNT(*)", "SUM(spent)")
        for asker in (curator, curator.analyst("leo")):
            assert isinstance(priced(asker, summed, spend="4%"), PricedQuestion)
        answer = curator.analyst("leo").ask(summed, spend="4%")
        assert kinds(curator)[-1] == "committed"
        assert len(answer.receipt["measurements"]) == 1
        assert isinstance(priced(curator, FILTERED.replace("400", "401"), spend="4%"), FindingQuestion)
    with opened(tmp_path) as curator:
        assert isinstance(priced(curator, summed, spend="3%"), PricedQuestion)
        curator.refresh("again")
        assert isinstance(priced(curator, summed, spend="3%"), FindingQuestion)


@pytest.mark.slow
def test_an_identical_question_is_given_again_with_everything(tmp_path):
    """Numbers, error bars, notes, receipt: by whoever, however written, after reopening, though all is known by then."""
    text = "SELECT city, SUM(spent) AS total, COUNT(*) AS n FROM visits WHERE spent > 400 GROUP BY city"
    with opened(tmp_path) as curator:
        curator.survey()
        first = curator.ask(text, rho="1/100")
        for asker in (curator, curator.analyst("ana")):
            again = asker.ask(text, rho="1/100")
            assert again.stored
            assert not again.cost.rho
            assert shown(again) == shown(first)
        renamed = curator.ask(text.replace("AS n", "AS m").replace("visits", "visits AS v"), rho="1/100")
        assert renamed.stored
        assert [part.values for part in renamed.parts] == [part.values for part in first.parts]
    with opened(tmp_path) as curator:
        again = curator.ask(text, rho="1/100")
        assert again.stored
        assert shown(again) == shown(first)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{FILTERED} UNION ALL {COUNT} WHERE city = 'Lima'", f"{COUNT} WHERE city = 'Lima' UNION ALL {FILTERED}"),
        (
            "SELECT city, shop, COUNT(*) AS n FROM visits WHERE spent > 9 GROUP BY city, shop",
            "SELECT city, shop, COUNT(*) AS n FROM visits WHERE spent > 9 GROUP BY shop, city",
        ),
    ],
)
def test_order_does_not_make_another_question(one, other, curator):
    """Of UNION ALL and of GROUP BY."""
    first, second = curator.ask(one, spend="4%"), curator.ask(other, spend="4%")
    assert second.stored
    assert sorted(map(str, second.rows)) == sorted(map(str, first.rows))


@pytest.mark.slow
def test_bias_estimates_are_part_of_it(curator):
    """Their plans are part of its key: arithmetic between aggregates may be another view, never another plan."""
    text = "SELECT SUM(spent) + COUNT(*) AS x FROM visits WHERE spent > 300"
    first = curator.ask(text, spend="4%", bias=True)
    assert first.bias
    assert shown(curator.ask(text, spend="4%", bias=True)) == shown(first)
    assert not curator.ask(text, spend="4%").stored
    apart = "SELECT SUM(spent) AS s, COUNT(*) AS x FROM visits WHERE spent > 300"
    curator.ask(apart, spend="4%", bias=True)  # the same measurements or others: never a failure
    assert "failed" not in kinds(curator)


@pytest.mark.slow
def test_a_stored_answer_keeps_its_caps_when_the_rule_of_choosing_changes(curator, monkeypatch):
    """How caps are chosen is no part of what is stored: an old answer is read by the caps that it was measured with."""
    first = curator.ask(FILTERED, spend="5%")
    monkeypatch.setattr(finding_module, "choose_rows", lambda *_, **__: 2 * first.receipt["caps"][0]["rows"])
    again = curator.ask(FILTERED, spend="5%")
    assert again.stored
    assert (again.rows, again.receipt["caps"]) == (first.rows, first.receipt["caps"])


@pytest.mark.slow
def test_fresh_pays_again_for_what_is_left_of_the_grant(curator):
    """The counts are known; the answer is drawn anew with the noise that it had."""
    first = curator.ask(FILTERED, spend="4%")
    second = curator.ask(FILTERED, spend="4%", fresh=True)
    assert not second.stored
    assert first.cost.rho * (1 - FIND_SHARE) - 3 * TICK <= second.cost.rho < first.cost.rho
    assert [part.name for part in second.parts] == [part.name for part in first.parts]
    assert second.receipt["caps"][0] == first.receipt["caps"][0]
    assert shown(curator.ask(FILTERED, spend="4%")) == shown(second)


@pytest.mark.slow
def test_what_somebody_else_counted_meanwhile_does_not_change_what_was_priced(curator):
    """Two priced before either asked: both pay and are right; the first numbers are those that are remembered."""
    one = priced(curator, FILTERED, spend="4%")
    other = priced(curator.analyst("ana"), FILTERED.replace("COUNT(*)", "SUM(spent)"), spend="4%")
    ask(one)
    (name, _) = one.missing[0]
    held = curator.ledger.counted(name)
    ask(other)
    assert curator.ledger.counted(name) == held
    assert kinds(curator).count("surveyed") == 2  # the survey, and the first who counted


@pytest.mark.slow
def test_numbers_that_were_lost_in_a_crash_are_remembered_when_it_is_asked_again(curator, monkeypatch):
    """They are in the answer."""
    with monkeypatch.context() as patch:
        patch.setattr(asking, "remember_counts", lambda _question: None)
        first = curator.ask(FILTERED, spend="4%")
    assert kinds(curator).count("surveyed") == 1
    again = curator.ask(FILTERED, spend="4%")
    assert kinds(curator).count("surveyed") == 2
    assert shown(again) == shown(first)


# ---- accuracy -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_accuracy_speaks_of_the_tables_cap_unless_caps_are_to_be_found(curator):
    """By default nothing is counted; with caps="find" the least spend buys the numbers, and the price is at their caps."""
    text = FILTERED.replace("400", "350")
    plain = curator.ask(text, accuracy={"n": 30_000})
    table = curator.schema.table("visits").table.caps.rows
    assert plain.receipt["caps"][0]["rows"] == table
    assert kinds(curator).count("surveyed") == 1
    before = len(charges(curator))
    found = curator.ask(text, accuracy={"n": 30_000}, caps="find")
    first, second = charges(curator)[before:]
    assert first.question == f"COUNT UNITS OF {text}"
    assert first.amounts == session_of(curator).least
    assert second.question == text
    assert kinds(curator).count("surveyed") == 2
    assert found.parts[0].high[0] - found.parts[0].low[0] <= 2 * 30_001
    assert curator.ask(text, accuracy={"n": 30_000}, caps="find").stored
    assert isinstance(priced(curator, text, spend="3%"), PricedQuestion)


@pytest.mark.slow
def test_a_preview_of_an_accuracy_gives_the_price_of_counting_first(curator):
    """Beside the price at the table's cap, as long as these rows were not counted; the answer says nothing of it."""
    text = FILTERED.replace("400", "340")
    shown_now = curator.preview(text, accuracy={"n": 300})
    (line,) = [note for note in shown_now.notes if "very rows" in note]
    assert 'caps="find" (in a shell: --caps find)' in line
    assert f"for {amounts_text(session_of(curator).least, pure=False, up=True)}," in line
    assert line in curator.preview(text, accuracy={"n": 300}, caps="find").notes
    assert not any("very rows" in note for note in curator.ask(text, accuracy={"n": 30_000}).notes)
    curator.ask(text, accuracy={"n": 30_000}, caps="find")
    known = curator.preview(text, accuracy={"n": 300})
    assert not any("very rows" in note for note in known.notes)
    assert known.cost.rho != shown_now.cost.rho
    for whole in ({"accuracy": {"n": 300}}, {"spend": "2%"}):
        assert not any("find" in note for note in curator.preview(COUNT, **whole).notes)


@pytest.mark.slow
def test_caps_to_be_found_buy_nothing_for_a_question_that_is_wrong(curator):
    """Bad input loses nothing; a statement with caps of its own needs none."""
    for text, options in (
        (FILTERED, {"accuracy": {"m": 300}}),
        (FILTERED, {"accuracy": {"n": -1}}),
        (FILTERED.replace("visits", "nowhere"), {"accuracy": {"n": 300}}),
        (FILTERED, {"accuracy": {"n": 300}, "at": 5, "weights": {"z": 1}}),
    ):
        before = curator.ledger.head
        with pytest.raises(Refused):
            curator.ask(text, **options, caps="find")
        assert curator.ledger.head == before
    with pytest.raises(InvalidParameter, match="caps"):
        curator.ask(FILTERED, spend="2%", caps="seek")


@pytest.mark.slow
def test_caps_that_are_given_leave_it_out(curator):
    """By the asker, or in a table's declaration: nothing is counted."""
    answer = curator.ask(FILTERED, spend="2%", caps={"rows": 3})
    assert answer.receipt["caps"][0]["rows"] == 3
    assert kinds(curator).count("surveyed") == 1
    assert isinstance(priced(curator, COUNT, spend="2%"), PricedQuestion)
    assert isinstance(priced(curator, "SELECT COUNT(*) AS n FROM people WHERE age > 9", spend="2%"), PricedQuestion)


@pytest.mark.slow
def test_declared_caps_beside_found_ones(tmp_path):
    """A join of a surveyed table with one whose caps are declared: its own rows are counted all the same."""
    path = write_study(tmp_path)
    more = '\n[tables.others]\nsource = "visits.parquet"\nunit = "user_id"\ncaps = { rows = 2 }\n'
    path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
    with cu.open(path) as curator:
        curator.survey()
        joined = "SELECT COUNT(*) AS n FROM visits JOIN others ON visits.user_id = others.user_id"
        first = curator.ask(joined, spend="4%")
        assert shown(curator.ask(joined, spend="4%")) == shown(first)
        assert isinstance(priced(curator, "SELECT COUNT(*) AS n FROM others WHERE shop = 'a'", spend="2%"), PricedQuestion)
        curator.ledger.verify()


# ---- least spend ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_below_the_least_only_a_stored_answer_is_given(tmp_path):
    """As for every question: an analyst with a larger share gets for nothing what one with a smaller one bought."""
    with opened(tmp_path, more='least_spend = "1%"') as curator:
        curator.survey()
        little = curator.ledger.limits.share(Fraction(3, 1000)).rho
        with pytest.raises(InvalidParameter, match="least spend"):
            curator.ask(FILTERED, rho=little)
        first = curator.analyst("leo").ask(FILTERED, rho=little)
        again = curator.ask(FILTERED, rho=little)
        assert again.stored
        assert shown(again) == shown(first)
        with pytest.raises(InvalidParameter, match="least spend"):
            curator.ask(FILTERED, rho=little, fresh=True)


# ---- what is promised -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_main_part_that_costs_more_than_was_promised_is_not_released(curator, monkeypatch):
    """The seeded bug: noise for the whole spend after a tenth of it was used."""
    plain = finding_module.price
    monkeypatch.setattr(
        finding_module, "price", lambda plan, kind, amount, *rest: plain(plan, kind, amount / (1 - FIND_SHARE), *rest)
    )
    with pytest.raises(Refused, match="can be computed"):
        curator.ask(FILTERED, spend="4%")
    question = priced(curator, FILTERED, spend="4%")
    with pytest.raises(Failed, match="must cost what was reserved"):
        question.compute(rehearsal=True)
    assert kinds(curator)[-1] == "surveyed"


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"spend": "4%"}, {"epsilon": "1/10"}])
@pytest.mark.parametrize("changes", [{}, {"budget": '{ epsilon = "3" }'}, {"adjacency": "replace_one"}])
def test_every_kind_of_grant_is_composed(given, changes, tmp_path):
    """Counts and promise together are within the charge: of pure budgets in ε, of Laplace questions in ρ, δ of keys apart."""
    with opened(tmp_path, **changes) as curator:
        curator.survey()
        texts = [FILTERED, BY_CITY] + (
            [] if "budget" in changes else [f"{BY_SHOP.replace('GROUP', 'WHERE spent > 1 GROUP')}"]
        )
        for text in texts:
            question = priced(curator, text, **given)
            assert isinstance(question, FindingQuestion)
            question.compute(rehearsal=True)
            curator.ask(text, **given)
            entry = charges(curator)[-1]
            losses = [loss_from_record(dict(record)) for record in entry.losses]
            if "budget" in changes:
                assert sum(one.pure_epsilon for one in losses) <= entry.amounts.epsilon
            else:
                assert sum(one.concentrated[0] for one in losses) <= entry.amounts.rho
                assert sum(one.concentrated[1] for one in losses) <= entry.amounts.delta
            assert not [kind for kind in kinds(curator) if kind == "failed"]
        curator.ledger.verify()


# ---- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_of_what_is_counted_are_of_rows_and_keys(curator):
    """Other rows, another kind, other keys: another name. The order of keys is none."""
    session = session_of(curator)
    countings = [
        need.counting
        for text in (
            "SELECT city, shop, COUNT(*) AS n FROM visits WHERE spent > 9 GROUP BY city, shop",
            "SELECT city, shop, COUNT(*) AS n FROM visits WHERE spent > 8 GROUP BY city, shop",
        )
        for need in priced(curator, text, spend="4%").needs[0].values()
    ]
    names = [counting_name(session, one) for one in countings]
    assert len(set(names)) == len(names) >= 4
    keyed = next(one for one in countings if len(one.keys) == 2)
    assert counting_name(session, replace(keyed, keys=keyed.keys[::-1])) == counting_name(session, keyed)
    assert counting_name(session, replace(keyed, keys=(Ref(0, keyed.keys[0].type),))) != counting_name(session, keyed)


def test_parts_that_are_stored_together_are_read_apart():
    """And nothing else is read."""
    first, second = zlib.compress(b"{}"), b"anything\n"
    assert split_parts(join_parts(first, second)) == (first, second)
    with pytest.raises(Failed, match="unknown version"):
        split_parts(b"curador found 2\n" + bytes(8))


# ---- what is told ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_left_out_is_told_of_what_was_measured(curator):
    """Of a table only of the table; of a filter the most that can be missing, or its own; of a join its own, or nothing."""
    whole = curator.ask(COUNT, spend="2%")
    assert any(note.startswith("in visits, of the first ") for note in whole.notes)
    own = curator.ask(FILTERED, spend="2%")
    assert any(note.startswith("among these rows, of the first ") for note in own.notes)
    assert not any("in visits" in note for note in own.notes)
    other = curator.ask(FILTERED.replace("400", "450"), spend="2%", caps={"rows": 2})
    assert not any("among these rows" in note for note in other.notes)
    assert any("visits" in note and "missing" in note for note in other.notes)
    joined = curator.ask(JOINED, spend="2%", caps={"rows": 2})
    assert any("not known for this join" in note for note in joined.notes)
    found = curator.ask(JOINED, spend="2%")
    assert any(note.startswith("among these rows") for note in found.notes)


@pytest.mark.slow
def test_an_empty_answer_says_why(curator):
    """The public threshold, not the rows."""
    answer = curator.ask(BY_SHOP, spend="0.1%")
    assert len(answer) == 0
    assert any("no group is shown: none had a noisy number of customers of" in note for note in answer.notes)
