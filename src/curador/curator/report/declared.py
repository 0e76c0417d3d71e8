"""What a report says of the study itself: who is protected, how strongly, tables, columns, caps and bounds, who may ask.

All of it is what the owner declared, what follows from it, and names and types that sources show without a row. Every cap and
bound says where it came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from curador.curator.declarations import declared_details
from curador.curator.pace import pace_text
from curador.curator.promise import belief_words, odds_of, odds_record, odds_words
from curador.ledger.limits import Limits
from curador.privacy.adjacency import Adjacency
from curador.study.check import owner_warnings
from curador.study.model import DEFAULT_LEAST_SPEND, DEFAULT_MAX_UNITS, UnitRow, owner_text
from curador.study.values import share_text
from curador.text import rounded_text

if TYPE_CHECKING:
    from fractions import Fraction

    from curador.curator.found import Survey
    from curador.study.model import Schema, Study, Table

DECLARED: Final = "declared"
DEFAULT: Final = "default"
FOLLOWS: Final = "follows from the unit"
SURVEYED: Final = "found by a survey"
MISSING: Final = "not known yet"
PUBLIC: Final = "public table"
"""Where a cap or bound came from."""


def protected_body(study: Study) -> dict[str, Any]:
    """Return who is protected, in words and as declared."""
    unit = study.unit_name
    if study.adjacency is Adjacency.REPLACE_ONE:
        change = f"Answers are nearly the same if the rows of any one {unit} are replaced by other rows."
    else:
        change = f"Answers are nearly the same whether or not the rows of any one {unit} are in the data."
    single = any(isinstance(table.unit, UnitRow) for table in study.tables)
    rows = (
        f"Each row is a {unit} of its own. If one human being has several rows, each row is protected by itself only."
        if single
        else f"All rows of one {unit} are protected together, in every table and data version of this study."
    )
    return {
        "unit": unit,
        "adjacency": str(study.adjacency),
        "most_units": study.max_units,
        "most_units_origin": DEFAULT if study.max_units == DEFAULT_MAX_UNITS else DECLARED,
        "row_is_unit": single,
        "words": [change, rows, f"Rows that mention a {unit} in another role than the declared one are not protected."],
    }


def promise_body(study: Study) -> dict[str, Any]:
    """Return how strong the promise is, computed anew by `privacy/odds`.

    Rounds  What somebody can gain, up.
    """
    budget, odds = study.budget, odds_of(study)
    limits = Limits.create(
        budget, adjacency=study.adjacency, unit=study.unit_name, max_units=study.max_units, owners=study.owners
    )
    concentrated = limits.kind == "concentrated"
    return {
        "kind": limits.kind,
        "epsilon": amount(budget.epsilon, up=True),
        "delta": None if budget.delta is None else amount(budget.delta, up=True),
        "delta_for_unlisted_groups": amount(limits.delta_keys, up=True) if concentrated else None,
        "rho": amount(limits.rho_limit, up=True) if concentrated else None,
        "odds": odds_record(odds),
        "belief_words": belief_words(study, odds.even),
        "odds_words": odds_words(study, odds),
        "least_spend": share_text(study.least_spend),
        "least_spend_origin": DEFAULT if study.least_spend == DEFAULT_LEAST_SPEND else DECLARED,
        "answers_leave": pace_text(study.engine),
        "warnings": list(owner_warnings(study)),
    }


def amount(value: Fraction, *, up: bool) -> dict[str, str]:
    """Return an exact amount with a decimal beside it. Rounds: the decimal, as said."""
    return {"exact": str(value), "decimal": rounded_text(value, up=up)}


# ---- tables ----------------------------------------------------------------------------------------------------------------


def tables_body(study: Study, survey: Survey | None, schema: Schema | None) -> list[dict[str, Any]]:
    """Return every table with its columns.

    schema   what the sources show without a row; None where they could not be looked at: then what is declared alone
    """
    said: dict[str, Any] = declared_details(study)["declarations"]["tables"]
    return [_table(study, table, said[table.name], survey, schema) for table in study.tables]


def _table(study: Study, table: Table, said: dict[str, Any], survey: Survey | None, schema: Schema | None) -> dict[str, Any]:
    found = None if schema is None else schema.table(table.name)
    declared = [_declared_column(name, column) for name, column in said["columns"].items()]
    others = (
        []
        if found is None
        else [_other_column(field.name, str(field.type)) for field in found.fields if table.column(field.name) is None]
    )
    return {
        "name": table.name,
        "source": table.source,
        "public": table.public,
        "rows_belong_to": owner_text(table.unit),
        "caps": _caps(table, survey, study.engine.unit_rows),
        "columns": [*declared, *others],
        "source_was_looked_at": found is not None,
    }


def _caps(table: Table, survey: Survey | None, stored: int) -> dict[str, Any]:
    """Return what one unit may contribute to one question, and where that came from.

    stored   rows of one unit that are stored at most: how far a question may go where a survey found the caps
    """
    found = None if survey is None else survey.tables.get(table.name)
    most = table.caps_max
    nothing: dict[str, Any] = {
        **dict.fromkeys(("rows", "groups", "rows_per_group", "survey")),
        "highest_of_a_question": None
        if most is None
        else {"rows": most.rows, "groups": most.most_groups, "rows_per_group": most.most_in_group},
    }
    if table.public:
        return {**nothing, "origin": PUBLIC}
    if table.single:
        return {**nothing, "rows": 1, "groups": 1, "rows_per_group": 1, "origin": DECLARED if table.unique else FOLLOWS}
    if table.caps is not None:
        caps = table.caps
        own = {"rows": caps.rows, "groups": caps.most_groups, "rows_per_group": caps.most_in_group}
        return {**nothing, **own, "origin": DECLARED}
    if survey is not None and found is not None:
        own = dict.fromkeys(("rows", "groups", "rows_per_group"), found.cap)
        bought = {"entry": survey.id, "time": survey.time, "data_version": survey.version}
        highest = nothing["highest_of_a_question"] or dict.fromkeys(own, stored)
        return {**own, "highest_of_a_question": highest, "survey": bought, "origin": SURVEYED}
    return {**nothing, "origin": MISSING}


def _declared_column(name: str, said: dict[str, Any]) -> dict[str, Any]:
    bounds, values = said["bounds"], said["values"]
    listed = values is not None
    return {
        "name": name,
        "type": said["type"],
        "declared": True,
        "nullable": said["nullable"],
        "bounds": None if bounds is None else {"lower": bounds[0], "upper": bounds[1], "origin": DECLARED},
        "values": {"number": len(values), "listed": values} if isinstance(values, list) else values if listed else None,
    }


def _other_column(name: str, kind: str) -> dict[str, Any]:
    """A column of the source that nobody declared: it can be filtered on and counted."""
    return {"name": name, "type": kind, "declared": False, "nullable": None, "bounds": None, "values": None}


# ---- analysts --------------------------------------------------------------------------------------------------------------


def analysts_body(study: Study) -> list[dict[str, Any]]:
    """Return who may ask, and what."""
    return [
        {
            "name": analyst.name,
            "share": share_text(analyst.share),
            "tables": None if analyst.tables is None else sorted(analyst.tables),
            "may_fit_models": analyst.train,
        }
        for analyst in study.analysts
    ]
