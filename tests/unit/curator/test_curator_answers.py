"""What is shown: answers, previews, receipts, budgets and logs, for people and for programs."""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import pytest
from curator_studies import BY_CITY, BY_SHOP, COUNT, open_curator
from rich.console import Console

from curador.answers.bias import as_shares
from curador.answers.column import AnswerColumn
from curador.answers.lost import advice, estimate_sentence
from curador.curator.answer import table_digest
from curador.curator.budget import log_table
from curador.curator.options import QuestionOptions
from curador.curator.preview import Preview, Previews
from curador.curator.previewing import count_fits
from curador.curator.price import price_at
from curador.errors import InvalidParameter
from curador.ledger.amounts import NOTHING, Amounts
from curador.privacy.losses import loss_from_record
from curador.study.values import Type

RECEIPT = {
    "version", "id", "time", "study", "analyst", "question", "plan", "unit", "adjacency", "caps", "bounds", "data_version",
    "measurements", "keys", "cost", "budget", "answer_digest", "ledger", "software", "plain",
}  # fmt: skip


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    with open_curator(tmp_path_factory.mktemp("study")) as made:
        yield made


@pytest.fixture(scope="module")
def answer(curator):
    return curator.ask(BY_CITY, spend="5%")


# ---- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_columns_are_in_the_order_of_the_select_list(answer):
    """Each released number is followed by its interval."""
    assert answer.columns == ("city", "n", "n_low", "n_high", "mean", "mean_low", "mean_high")
    assert [row["city"] for row in answer.rows] == ["Cuzco", "Lima", "Quito"]
    assert all(row["n_low"] <= row["n"] <= row["n_high"] for row in answer.rows)
    assert all(0 <= row["mean_low"] <= row["mean"] <= row["mean_high"] <= 500 for row in answer.rows)
    assert len(answer) == 3


def test_types_depend_on_the_question_only(curator, answer):
    """Counts are int64, other numbers float64, keys their declared type; also where there is no row."""
    kinds = {field.name: str(field.type) for field in answer.to_arrow().schema}
    assert kinds == {"city": "string", **dict.fromkeys(["n", "n_low", "n_high"], "int64")} | dict.fromkeys(
        ["mean", "mean_low", "mean_high"], "double"
    )
    none = curator.ask(f"{BY_CITY} HAVING COUNT(*) < -1000000", spend="5%")
    assert none.stored
    assert len(none) == 0
    assert none.to_arrow().schema == answer.to_arrow().schema
    assert str(none)


def test_data_frames(answer):
    """pandas and Polars get the same table."""
    pandas, polars = answer.to_pandas(), answer.to_polars()
    assert list(pandas.columns) == list(polars.columns) == list(answer.columns)
    assert pandas.to_dict("records") == polars.to_dicts() == answer.rows


def test_an_answer_is_frozen(answer):
    """Nobody edits what was released."""
    with pytest.raises(FrozenInstanceError):
        answer.cost = NOTHING


def test_the_table_says_what_the_error_bars_leave_out(answer):
    """Text and HTML show ± and the line about noise."""
    for text in (str(answer), answer._repr_html_()):
        assert "± noise only, after at most 5 rows a person" in text
        assert "± 95 %" in text
        assert "spent in [0, 500]" in text
    shown = Console(width=60, record=True)
    shown.print(answer)
    assert "Lima" in shown.export_text()


def test_the_cap_on_different_values_is_told(curator):
    """COUNT(DISTINCT x) counts at most `groups` values per person: said in answer and preview, and estimated."""
    sql = "SELECT COUNT(DISTINCT shop) AS shops, COUNT(*) AS n FROM visits"
    line = "shops: of at most 2 different values per person"
    options = {"spend": "5%", "caps": {"rows": 5, "groups": 2}}
    told = curator.ask(sql, **options, bias=True)
    assert line in told.notes
    assert line in curator.preview(sql, **options).notes
    assert any(part.name == "persons with more than 2 different values of shop" for part in told.bias)
    for other in ("SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(DISTINCT user_id) AS n FROM visits"):
        assert not any("different values" in note for note in curator.preview(other, **options).notes)


def test_the_cap_within_a_group_is_told(curator):
    """Every cap that was executed."""
    notes = curator.preview(BY_SHOP, spend="5%", caps={"rows": 5, "groups": 2, "rows_per_group": 1}).notes
    assert any("in at most 2 groups, at most 1 in one group" in note for note in notes), notes


def test_what_a_key_holds_cannot_break_the_page_or_the_terminal(answer):
    """Markup in a key is shown, not followed."""
    key, *rest = answer.parts
    hostile = replace(answer, parts=(replace(key, values=["<script>", "[red]x[/red]", "\x1b[2J"]), *rest))
    assert "<script>" not in hostile._repr_html_()
    assert "[red]x[/red]" in str(hostile)
    assert "\x1b" not in str(hostile)


def test_a_long_table_is_cut_for_people_only(answer):
    """Sixty rows are printed, all are there."""
    key, *rest = answer.parts
    long = replace(
        answer,
        parts=tuple(
            replace(part, values=part.values * 40, low=part.low and part.low * 40, high=part.high and part.high * 40)
            for part in (key, *rest)
        ),
    )
    assert len(long.rows) == 120
    assert "60 more rows" in str(long)


def test_another_confidence_costs_nothing(answer):
    """Intervals are computed again from what was released."""
    wide = answer.with_confidence("0.999")
    assert wide.confidence == Fraction(999, 1000)
    assert all(a["n_low"] < b["n_low"] for a, b in zip(wide.rows, answer.rows, strict=True))
    assert [row["mean"] for row in wide.rows] == [row["mean"] for row in answer.rows]
    for wrong in (0, 1, "x", 95):
        with pytest.raises(InvalidParameter, match="confidence"):
            answer.with_confidence(wrong)


def test_a_figure_shows_every_released_column(answer, curator):
    """One panel a number, a row a group; keys alone have nothing to draw."""
    figure = answer.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["n", "mean"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["Cuzco", "Lima", "Quito"]
    assert curator.ask(COUNT, spend="1%").plot().axes[0].get_yticklabels()[0].get_text() == "all"
    with pytest.raises(InvalidParameter, match="released number"):
        replace(answer, parts=answer.parts[:1]).plot()


def test_a_null_in_an_answer_is_shown(answer):
    """A mean of nothing is NULL with the interval of its bounds, in tables and figures."""
    mean = AnswerColumn("mean", Type.FLOAT, [None], [0.0], [500.0])
    one = replace(answer, parts=(AnswerColumn("city", Type.STRING, [None]), mean))
    assert "NULL" in str(one)
    assert one.plot()


def test_an_answer_says_why_groups_may_be_missing(tmp_path, tmp_path_factory):
    """The public threshold, as the preview has it; that none reached it only where none did; nothing where keys are known.

    By luck: the shop of one person is shown with probability at most the delta of the question's keys, below 1e-6.
    """
    with open_curator(tmp_path) as curator:
        told = f"reached {math.ceil(curator.preview(BY_SHOP, spend='50%').keys[0].threshold * 10) / 10:,}"
        some = curator.ask(BY_SHOP, spend="50%")
        none_left = curator.ask(f"{BY_SHOP} HAVING COUNT(*) > 1000000000", spend="50%")
        assert [note for note in some.notes if "groups are shown only if" in note and note.endswith(told)]
        assert len(none_left) == 0
        assert none_left.notes == some.notes
        assert not [note for note in curator.ask(BY_CITY, spend="5%").notes if "shown" in note]
    with open_curator(tmp_path_factory.mktemp("none"), shops={"corner": 1}) as curator:
        empty = curator.ask(BY_SHOP, spend="50%")
        assert len(empty) == 0
        assert "no group is shown: none had a noisy number of persons of" in str(empty)


# ---- receipts ------------------------------------------------------------------------------------------------------


def test_a_receipt_has_its_fields_and_no_others(answer):
    """Version 2 is a contract."""
    assert set(answer.receipt.record) == RECEIPT
    assert answer.receipt["version"] == 2
    assert json.loads(answer.receipt.to_json()) == answer.receipt.record
    assert str(answer.receipt) == answer.receipt.plain


def test_a_receipt_tells_what_the_ledger_tells(curator, answer):
    """Cost, losses, budget and chain agree with the ledger's entries."""
    entries = {entry.shown: entry for entry in curator.ledger.entries()}
    entry = entries[answer.receipt["id"]]
    assert entry.kind.value == "reserved"
    assert answer.receipt["ledger"] == {"id": curator.ledger.id, "hash": entry.hash}
    (settled,) = (one for one in entries.values() if one.refers == entry.id)
    assert answer.receipt["answer_digest"] == settled.answer_digest == table_digest(answer.parts)
    assert answer.receipt["plan"]["digest"] == entry.plan_digest
    assert Fraction(answer.receipt["cost"]["rho"]["exact"]) == entry.amounts.rho
    losses = [one["loss"] for one in answer.receipt["measurements"]]
    assert losses == list(entry.losses)
    assert sum(loss_from_record(one).rho for one in losses) <= entry.amounts.rho
    budget = answer.receipt["budget"]
    before, after = (Fraction(budget[name]["rho"]["exact"]) for name in ("before", "after"))
    assert after - before == entry.amounts.rho


def test_a_receipt_holds_no_time_taken_no_rows_and_no_digest_of_data(answer):
    """Nothing of what could tell two candidate tables apart, but the answer itself."""
    text = answer.receipt.to_json()
    for word in ("duration", "seconds", "elapsed", "row_count", "rows_read", "content", "sha256"):
        assert word not in text


def test_a_receipt_of_private_keys_shows_threshold_and_delta(curator):
    """The selection is a release of its own."""
    keys = curator.ask(BY_SHOP, spend="5%").receipt["keys"][0]
    assert keys["kind"] == "private"
    assert Fraction(keys["delta"]["exact"]) > 0
    assert Fraction(keys["threshold"]["exact"]) > 1
    assert keys["loss"]["kind"] == "KeySelection"


def test_a_receipt_of_a_quantile_shows_its_draws_and_tests(curator):
    """The point, both ends and their tests are paid for, and named."""
    receipt = curator.ask("SELECT MEDIAN(spent) AS m FROM visits", spend="5%").receipt
    (one,) = receipt["measurements"]
    assert one["mechanism"] == "Quantile"
    assert set(one["parameters"]) == {"point", "low", "high", "tests", "miss"}
    assert [set(test) for test in one["parameters"]["tests"]] == [{"sigma", "squared", "relation", "dimension"}] * 3
    assert sum(part["count"] for part in one["loss"]["parts"]) == 9
    assert receipt["bounds"][0]["upper"] == "500"


def test_the_receipt_of_a_stored_answer_costs_nothing(curator, answer):
    """The measurements stand there as they were paid for; the budget did not move."""
    again = curator.analyst("ana").ask(BY_CITY, spend="25%")
    assert again.stored
    receipt = again.receipt
    assert receipt["cost"]["rho"]["exact"] == "0"
    assert receipt["budget"]["before"] == receipt["budget"]["after"]
    assert receipt["budget"]["of"] == "share"
    assert receipt["measurements"] == answer.receipt["measurements"]
    assert "cost nothing more" in receipt["plain"]


def test_three_sentences_for_an_officer(answer):
    """Who is protected and in which role, what it cost and what can never be exceeded, what error bars leave out."""
    sentences = answer.receipt.plain.split(". ")
    assert len(sentences) == 3
    assert "at most 5 rows of one person" in sentences[0]
    assert "in another role" in sentences[0]
    assert "stays within ε = 3, δ = 1e-6" in sentences[1]
    assert "noise only" in sentences[2]


def test_the_digest_is_of_the_released_table(answer):
    """A changed number or name changes it; another confidence does not."""
    key, count, mean = answer.parts
    changed = replace(count, values=[count.values[0] + 1, *count.values[1:]])
    assert table_digest((key, changed, mean)) != table_digest(answer.parts)
    assert table_digest((key, replace(count, name="m"), mean)) != table_digest(answer.parts)
    assert table_digest(answer.with_confidence("0.5").parts) == table_digest(answer.parts)
    day = AnswerColumn("d", Type.DATE, [dt.date(2024, 1, 1), None])
    assert table_digest([day]) != table_digest([replace(day, values=["2024-01-01", None])])


# ---- previews ------------------------------------------------------------------------------------------------------


def test_a_preview_tells_errors_keys_and_how_often_it_fits(tmp_path):
    """± for counts, a table for means, thresholds for private keys."""
    with open_curator(tmp_path) as curator:
        text = "SELECT shop, COUNT(*) AS n, AVG(spent) AS mean, MEDIAN(spent) AS m FROM visits GROUP BY shop"
        preview = curator.preview(text, spend="5%")
        assert isinstance(preview, Preview)
        count, mean, median = preview.errors
        assert count.reach is not None
        assert [rows for rows, _ in mean.at] == [100, 1000, 10000]
        assert mean.at[0][1] > mean.at[2][1]
        assert (median.reach, median.at) == (None, ())
        (keys,) = preview.keys
        assert keys.threshold <= keys.half + 1 <= keys.often
        assert preview.fits == 20
        shown = str(preview)
        for words in ("this question fits 20 more times", "half the time", "in 95 % of all cases", "noise only", "measures"):
            assert words in shown
        assert "when drawn" in shown
        body = preview.to_dict()
        assert json.loads(json.dumps(body)) == body
        assert body["fits"] == 20


def test_the_sizes_of_groups_are_right(tmp_path):
    """A group of the `often` size is shown at least 95 % of the time, one of a unit less is not."""
    with open_curator(tmp_path) as curator:
        ready = price_at(curator._session, BY_SHOP, QuestionOptions(spend="5%"))  # noqa: SLF001 -- what a preview is made from
        selection = ready.priced[0].selections[0]
        (keys,) = curator.preview(BY_SHOP, spend="5%").keys
    for units, probability in ((keys.half, 0.5), (keys.often, 0.95)):
        assert selection.pass_probability(units) >= probability > selection.pass_probability(units - 1)


def test_a_preview_knows_what_is_stored(tmp_path):
    """A question that was answered before is shown as free."""
    with open_curator(tmp_path) as curator:
        assert not curator.preview(COUNT, spend="5%").stored
        curator.ask(COUNT, spend="5%")
        again = curator.preview(COUNT, spend="5%")
        assert again.stored
        assert "free" in str(again)
        assert again.fits == 19


def test_several_questions_are_previewed_together(tmp_path):
    """The costs add up; the same question twice is paid once."""
    with open_curator(tmp_path) as curator:
        both = curator.preview([BY_CITY, COUNT, f"{COUNT} -- again"], spend="60%")
        assert isinstance(both, Previews)
        assert len(both) == 3
        assert both.cost == both[0].cost + both[1].cost
        assert not both.fits
        assert "does not fit" in str(both)
        assert len(both.to_dict()["questions"]) == 3
        assert curator.preview((COUNT,), spend="60%").fits
        assert [one.question for one in both][1] == COUNT
        with pytest.raises(InvalidParameter):
            curator.preview([], spend="5%")


def test_an_analyst_sees_the_share(tmp_path):
    """Limit and rest are the analyst's."""
    with open_curator(tmp_path) as curator:
        ana = curator.analyst("ana").preview(COUNT, spend="5%")
        assert ana.fits == 20
        assert ana.limit.rho * 5 <= curator.preview(COUNT, spend="5%").limit.rho


def test_a_union_shows_the_larger_error(tmp_path):
    """Branches of a union have one column, and one ±."""
    with open_curator(tmp_path) as curator:
        small = "SELECT COUNT(DISTINCT user_id) AS n FROM visits"
        errors = curator.preview(f"{small} UNION ALL {COUNT}", spend="5%").errors
        assert len(errors) == 1
        swapped = curator.preview(f"{COUNT} UNION ALL {small}", spend="5%").errors
        assert errors[0].reach == swapped[0].reach


def test_times_counts_the_scarcest_amount():
    """δ may run out before ρ."""
    cost = Amounts(rho=Fraction(1, 100), delta=Fraction(1, 10**9))
    assert count_fits(cost, Amounts(rho=Fraction(1), delta=Fraction(5, 10**9))) == 5
    assert count_fits(cost, Amounts(rho=Fraction(3, 100), delta=Fraction(1))) == 3


# ---- budgets and logs ----------------------------------------------------------------------------------------------


def test_a_budget_adds_up(tmp_path):
    """Limit = spent + left, in exact numbers; ε is for display and grows."""
    with open_curator(tmp_path) as curator:
        before = curator.budget
        assert before.epsilon_spent == 0.0
        curator.ask(BY_SHOP, spend="5%")
        view = curator.budget
        assert view.spent + view.left == view.limit
        assert 0 < view.epsilon_spent <= 3
        body = view.to_dict()
        assert json.loads(json.dumps(body)) == body
        assert body["by_analyst"][0]["name"] == "owner"
        assert "for ever" in str(view)
        assert "ana" in str(view)
        own = curator.analyst("ana").budget
        assert "by_analyst" not in own.to_dict()
        assert "leo" not in str(own)


def test_an_analysts_log_is_the_analysts_own(tmp_path):
    """Entries, counters and hashes of others stay with the owner."""
    with open_curator(tmp_path) as curator:
        curator.ask(COUNT, spend="5%")
        ana = curator.analyst("ana")
        ana.ask(BY_CITY, spend="5%")
        assert {line["analyst"] for line in ana.log()} == {"ana"}
        assert all("sequence" not in line for line in ana.log())
        assert len(curator.log()) == 5
        shown = Console(width=200, record=True)
        shown.print(log_table(curator.log()))
        assert "committed" in shown.export_text()


# ---- bias ----------------------------------------------------------------------------------------------------------


def test_bias_estimates_cost_a_twentieth_of_the_spend(tmp_path):
    """The whole costs what was granted; the question's own share is 95 %."""
    with open_curator(tmp_path) as curator:
        plain, biased = (curator.preview(BY_CITY, spend="20%", bias=bias) for bias in (False, True))
        assert biased.cost.rho <= plain.cost.rho * (1 + Fraction(1, 10**9))
        assert biased.cost.rho >= plain.cost.rho * (1 - Fraction(1, 10**9))
        assert biased.errors[0].reach > plain.errors[0].reach
        answer = curator.ask(BY_CITY, spend="20%", bias=True)
        assert [part.name for part in answer.bias] == ["rows beyond 5 a person", "spent outside 0 … 500"]
        assert all(0 <= part.low[0] <= part.values[0] <= part.high[0] <= 1 for part in answer.bias)
        assert "rows beyond 5 a person: " in str(answer)
        assert "of the rows that were kept" in str(answer)
        assert len(answer.receipt["caps"]) == 3
        assert curator.ask(BY_CITY, spend="20%", bias=True).bias == answer.bias


def test_an_estimate_of_lost_rows_claims_no_more_than_a_lower_bound():
    """Rows are counted up to ten times the cap: at least so many were lost, at most all, and what to do stands below."""
    rows = AnswerColumn("rows beyond 10 a person", Type.FLOAT, [0.63], [0.61], [0.65])
    clamped = AnswerColumn("spent outside 0 … 500", Type.FLOAT, [0.02], [-0.01], [0.03])
    shares = as_shares([rows, clamped])
    assert (shares[0].low, shares[0].high) == ([0.61], [1.0])
    assert (shares[1].low, shares[1].high) == ([0.0], [0.03])
    assert estimate_sentence(shares[0]) == "rows beyond 10 a person: at least about 63 % (61 … 100 %)"
    assert estimate_sentence(shares[1]) == "spent outside 0 … 500: about 2 % of the rows that were kept (0 … 3 %)"
    assert "a larger cap on rows" in advice(shares)
    small = as_shares([replace(rows, values=[0.13], low=[-0.2], high=[0.27])])
    assert estimate_sentence(small[0]) == "rows beyond 10 a person: perhaps none, perhaps many; a larger spend would tell"
    assert advice(small) is None
    assert advice(shares[1:]) is None
    assert (
        estimate_sentence(replace(rows, values=[None], low=[None], high=[None]))
        == "rows beyond 10 a person: too little to say"
    )


def test_bias_beside_an_accuracy_costs_more(tmp_path):
    """An accuracy is kept; the estimates come on top."""
    with open_curator(tmp_path) as curator:
        plain, biased = (curator.preview(COUNT, accuracy={"n": 100}, bias=bias) for bias in (False, True))
        assert biased.errors == plain.errors
        assert biased.cost.rho > plain.cost.rho


def test_bias_is_refused_where_nothing_is_lost(tmp_path):
    """A question that neither a cap nor a bound can change has no bias."""
    with open_curator(tmp_path) as curator, pytest.raises(InvalidParameter, match="loses nothing"):
        curator.ask("SELECT COUNT(*) AS n FROM (SELECT user_id FROM visits GROUP BY user_id) AS u", spend="5%", bias=True)


def test_shares_stay_between_0_and_1():
    """What noise moved outside is moved back: that is post-processing."""
    (one,) = as_shares([AnswerColumn("x", Type.FLOAT, [1.2], [-0.5], [None])])
    assert (one.values, one.low, one.high) == ([1.0], [0.0], [None])
