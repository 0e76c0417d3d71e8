"""Seeded bugs: each breaks one rule of the planner, the lowering or the preparation, as such tools have been broken before.

A bug is a function that patches the product by `monkeypatch`. The judge must find each of them.
"""

import dataclasses
import hashlib

import pyarrow.parquet as pq

from curador.curator import asking, finding, survey
from curador.curator import curator as buying
from curador.curator import session as session_module
from curador.engines.duckdb import facts as facts_module
from curador.engines.duckdb import prepare, ranking, reading
from curador.engines.lower import aggregates as lowered_aggregates
from curador.engines.lower import block as lowered_block
from curador.engines.lower import dialect_duckdb
from curador.engines.lower import relation as lowered_relation
from curador.engines.lower.aggregates import TALLIES, BesideOthers, OwnPart
from curador.plan import aggregates, build, counting, listing, ownership, sensitivity, work
from curador.plan.functions import RANGES
from curador.plan.ownership import Owners
from curador.privacy.adjacency import Adjacency
from curador.privacy.losses import Concentrated
from curador.query.tree import Call, Filter, Literal, Ref, UnitGroup
from curador.study.model import Caps
from curador.study.values import Type


def _wrapped(patch, module, name, change):
    plain = getattr(module, name)
    patch.setattr(module, name, lambda *given, **named: change(plain, *given, **named))


def _cap_changed(patch, **changes):
    """The plan proves one cap, the engine executes another."""

    def change(plain, *given, **named):
        cap, contribution = plain(*given, **named)
        known = {name: value(cap) if callable(value) else value for name, value in changes.items()}
        return dataclasses.replace(cap, **known), contribution

    _wrapped(patch, build, "bound_contribution", change)


def no_row_cap(patch):
    """The row cap is planned and not executed."""
    _cap_changed(patch, by="none")


def one_row_too_many(patch):
    """An off-by-one in the row cap."""
    _cap_changed(patch, rows=lambda cap: cap.rows + 1)


def no_group_cap(patch):
    """L0 unbounded: groups are planned to be capped and are not."""
    _cap_changed(patch, groups=None)


def no_cap_in_groups(patch):
    """Rows of a unit in one group are not capped."""
    _cap_changed(patch, in_group=None)


def upper_bound_only(patch):
    """The sensitivity of a sum is its upper bound: negative values move it further."""
    _wrapped(patch, aggregates, "moves", lambda plain, cap, _low, high, adjacency: plain(cap, 0, max(high, 0), adjacency))


def root_of_rows(patch):
    """√m for the length of a bare row cap, where m rows may lie in one group."""

    def change(plain, contribution):
        one, _ = plain(contribution)
        return one, one

    _wrapped(patch, sensitivity, "count_norms", change)


def replaced_as_removed(patch):
    """Replace-one charged as add-or-remove."""
    always = Adjacency.ADD_OR_REMOVE_ONE
    _wrapped(patch, aggregates, "moves", lambda plain, cap, low, high, _: plain(cap, low, high, always))


def units_in_one_group(patch):
    """A unit counted once, though it is in several groups."""
    patch.setattr(aggregates, "presence_moves", lambda *_: (1, 1))


def public_rows_match_once(patch):
    """A join with a public table is thought to be free."""
    patch.setattr(ownership, "public_matches", lambda *_: 1)
    _wrapped(patch, ownership, "_scan", lambda plain, scan, schema, height: plain(scan, schema, height or 2))


def unions_count_once(patch):
    """UNION ALL keeps the rows per unit of its first branch."""
    patch.setattr(Owners, "_union", lambda self, union: self.of(union.inputs[0]))


def declared_is_believed(patch):
    """Every table is taken to have one row a unit."""
    _wrapped(patch, ownership, "_scan", lambda plain, *given: (plain(*given)[0], 1))


def joins_do_not_multiply(patch):
    """A join of two private tables keeps the rows of its left side."""
    patch.setattr(ownership, "_both", lambda _kind, left, *_: left)
    _wrapped(patch, ownership, "_scan", lambda plain, scan, schema, height: plain(scan, schema, height or 2))


def no_clamp(patch):
    """Values are not clamped after the expression."""
    patch.setattr(lowered_aggregates, "clamp_to_ends", lambda s, *_: s)
    patch.setattr(
        lowered_aggregates,
        "scale_to_steps",
        lambda x, grid, _lowest, dialect, **_: dialect.whole(f"floor({x} / {float(grid.step)!r})"),
    )


def not_a_number_passes(patch):
    """NaN and infinities reach the sum: a float sum, poisoned by one person."""

    def steps(column, _dialect):
        return [f"CAST(SUM({column.argument} + sqrt(CAST({column.argument} AS DOUBLE) - 5)) AS BIGINT)", "0"]

    patch.setitem(TALLIES, "steps", BesideOthers(steps, wide=True))


def join_off_the_unit(patch):
    """Private joins follow their text alone: path keys and conditions, not the unit."""
    _wrapped(patch, lowered_relation, "every", lambda plain, parts: plain([one for one in parts if "__u = " not in one]))
    _wrapped(patch, lowered_relation, "_join", lambda plain, join, *given: plain(dataclasses.replace(join, on=None), *given))


def random_by_dense_number(patch):
    """Groups are chosen by a hash of the dense number, which changes for all when one unit leaves."""
    plain = lowered_block.apply_caps

    def kept(*given, **named):
        found = plain(*given, **named)
        return tuple((name, text.replace("hash(__h", "hash(__u")) for name, text in found)

    patch.setattr(lowered_block, "apply_caps", kept)


def rank_with_ties(patch):
    """Every row of a unit has the rank 1, so all pass; and nobody verifies how rows lie."""
    _wrapped(patch, ranking, "number_rows", lambda plain, begins: plain(begins) * 0 + 1)
    patch.setattr(ranking, "verify_order", lambda *_: None)


def _passing_changed(patch, change):
    """The statement in which rows are capped while they pass is another one."""
    _wrapped(patch, dialect_duckdb, "first_rows_of", lambda plain, *given: change(plain(*given)))


def one_passing_row_too_many(patch):
    """An off-by-one in how far back the row stands that must be somebody else's."""
    _wrapped(patch, dialect_duckdb, "first_rows_of", lambda plain, source, most: plain(source, most + 1))


def passing_rows_out_of_order(patch):
    """Rows are met in another order than they lie in, and nobody looks whether they are."""
    passing = "(SELECT * FROM passing ORDER BY hash(__o0))"

    def change(text):
        return text.replace("__before >= __o0", "FALSE").replace("FROM passing", f"FROM {passing}")

    _passing_changed(patch, change)


def whoever_passed_before(patch):
    """Every m-th row counts, whoever's it is: one unit's rows decide which of the next one's are counted."""
    _passing_changed(patch, lambda text: text.replace("__back <= __o0 - __r", "__back < 0 OR __back % 2 = 0"))


def one_numbered_group_too_many(patch):
    """An off-by-one in the stored number up to which groups count."""

    def change(plain, block, schema):
        found = plain(block, schema)
        return found if found is None or found[1] is None else (found[0], found[1] + 1)

    _wrapped(patch, lowered_block, "stored_number", change)


def values_not_told_apart(patch):
    """Every value of a unit has the number 1."""
    _wrapped(patch, ranking, "number_values", lambda plain, *given: (plain(*given)[0] * 0 + 1, plain(*given)[1]))


def every_row_is_the_first(patch):
    """Every row is taken to be the first of its unit with its value: units are counted as often as they have rows."""
    _wrapped(patch, ranking, "number_values", lambda plain, *given: (plain(*given)[0], plain(*given)[1] | True))


def distinct_values_unbounded(patch):
    """COUNT(DISTINCT x) keeps every value of a unit."""
    every = OwnPart(
        lambda column, _: f"(SELECT * FROM kept WHERE {column.argument or 'NULL'} IS NOT NULL) AS s",
        lambda column: f"100 * COUNT(DISTINCT {column.argument or 'NULL'})",
    )
    patch.setitem(TALLIES, "distinct", every)


def caps_before_the_selection_only(patch):
    """Keys are selected by rows instead of units."""
    patch.setitem(TALLIES, "units", BesideOthers(lambda _column, _dialect: ["COUNT(*)"]))


def squares_of_half_the_range(patch):
    """The sensitivity of squares is taken as that of a narrower column."""
    _wrapped(
        patch,
        aggregates,
        "moves",
        lambda plain, cap, low, high, adjacency: (
            plain(cap, low // 2, high // 2, adjacency) if low < 0 else plain(cap, low, high, adjacency)
        ),
    )


def other_rows_are_counted(patch):
    """A whole number beyond 64 bits is NULL where rows are counted and clamped where they are summed."""
    plain = lowered_aggregates.argument

    def argument(term, grid, lowest, dialect):
        if term.raw:
            return lowered_aggregates.as_finite(term, dialect), False
        return plain(term, grid, lowest, dialect)

    patch.setattr(lowered_aggregates, "argument", argument)
    patch.setattr(lowered_block, "_same_rows", tuple)


def heights_off(patch):
    """The height that bounds work is planned and not executed."""
    patch.setattr(lowered_block, "rank_of", lambda cap, _relation, _schema: cap.rows if cap.by == "rank" else None)


def multiplied_for_nothing(patch):
    """Work counts one row of a public table for each row, however many match."""
    patch.setattr(work, "public_matches", lambda *_: 1)
    patch.setattr(work, "Owners", _PlainOwners)


class _PlainOwners(Owners):
    """Owners by which no relation multiplies the rows of a table."""

    def rows(self, relation):
        found = super().rows(relation)
        return found if found is None or self.height is None else min(found, self.height)


def key_list_from_data(patch):
    """What a key can be is looked up in people's rows."""

    def change(plain, facts, listing, most):
        found = plain(facts, listing, most)
        connection = facts._opened()  # noqa: SLF001 -- what a careless author would do
        try:
            rows = sum(connection.execute(f"SELECT count(*) FROM t{place}").fetchall()[0][0] for place in range(2))
        finally:
            connection.close()
        return found if found is None else tuple(sorted(found, key=str))[: 1 + rows % 4]

    _wrapped(patch, facts_module.VersionFacts, "images", change)


def null_tuple_forgotten(patch):
    """After LEFT JOIN public keys are listed as if every row had a match."""

    def alone(_lister, way, join, *_, **_side):
        nothing = tuple(Literal(None, column.type) for column in join.columns)
        return dataclasses.replace(way, columns=nothing, conditions=(Literal(False, Type.BOOLEAN),))

    patch.setattr(listing.Lister, "_alone", alone)


def _without_clamp(patch, when):
    """Blocks with such a tally put values on grids without clamping them."""
    clamp, steps, plain = lowered_aggregates.clamp_to_ends, lowered_aggregates.scale_to_steps, lowered_block._lower_kept  # noqa: SLF001
    off = []

    def scale(x, grid, lowest, dialect, **named):
        if off:
            return dialect.whole(f"floor({x} / {float(grid.step)!r}) - ({grid.start})")
        return steps(x, grid, lowest, dialect, **named)

    def kept(block, *given, **named):
        off.extend(tally for tally in block.tallies if when(tally))
        try:
            return plain(block, *given, **named)
        finally:
            off.clear()

    patch.setattr(lowered_aggregates, "clamp_to_ends", lambda text, *given: text if off else clamp(text, *given))
    patch.setattr(lowered_aggregates, "scale_to_steps", scale)
    patch.setattr(lowered_block, "_lower_kept", kept)


def _is_clamp(node):
    return isinstance(node, Call) and node.function in {"least", "greatest"}


def clamp_before_the_sum(patch):
    """A clamp of a unit's aggregate is executed on the rows below it, and not on the aggregate."""
    _without_clamp(patch, lambda tally: _is_clamp(tally.argument))
    _wrapped(
        patch,
        lowered_block,
        "_columns_of",
        lambda plain, tally, stored, layers: plain(
            dataclasses.replace(tally, argument=_innermost(tally.argument)) if _is_clamp(tally.argument) else tally,
            stored,
            layers,
        ),
    )


def _innermost(node):
    """What is clamped."""
    return _innermost(next(one for one in node.arguments if not isinstance(one, Literal))) if _is_clamp(node) else node


def root_of_groups_forgotten(patch):
    """A unit's aggregate in each of several groups moves the answer as if it were in one."""

    def change(plain, contribution, low, high, adjacency):
        one, two = plain(contribution, low, high, adjacency)
        return (one, two // contribution.groups) if contribution.keyed and contribution.in_group == 1 else (one, two)

    _wrapped(patch, aggregates, "moves", change)


def case_arm_is_believed(patch):
    """The range of a CASE, narrowed by the condition of another arm, is taken for granted, so nothing is clamped to it."""

    def case(call, ranges, relation):
        *pairs, _ = call.arguments
        return ranges.of(pairs[1], Filter(relation, pairs[0]))

    patch.setitem(RANGES, "case", case)
    _without_clamp(patch, lambda tally: isinstance(tally.argument, Call) and tally.argument.function == "case")


def moved_keys_stay_apart(patch):
    """Numbers that are moved to the ends of a range are thought to be in groups of their own."""
    _wrapped(patch, build, "bound_contribution", lambda plain, *given, **named: plain(*given, **{**named, "bare": True}))


def told_apart_by_nothing(patch):
    """Rows that are told apart are thought to be one of a unit, whatever tells them apart."""
    patch.setattr(Owners, "_different", lambda *_: 1)


BUGS = [
    key_list_from_data,
    null_tuple_forgotten,
    clamp_before_the_sum,
    root_of_groups_forgotten,
    case_arm_is_believed,
    moved_keys_stay_apart,
    told_apart_by_nothing,
    heights_off,
    multiplied_for_nothing,
    other_rows_are_counted,
    no_row_cap,
    one_row_too_many,
    no_group_cap,
    no_cap_in_groups,
    upper_bound_only,
    root_of_rows,
    replaced_as_removed,
    units_in_one_group,
    public_rows_match_once,
    unions_count_once,
    declared_is_believed,
    joins_do_not_multiply,
    no_clamp,
    not_a_number_passes,
    join_off_the_unit,
    random_by_dense_number,
    distinct_values_unbounded,
    caps_before_the_selection_only,
    squares_of_half_the_range,
    one_passing_row_too_many,
    passing_rows_out_of_order,
    whoever_passed_before,
]


def texts_of_any_length(patch):
    """Texts are prepared as they are."""
    patch.setattr(reading, "_short", lambda x, **_: x)
    patch.setattr(ranking, "_long_texts", lambda _schema: [])


def every_row_is_stored(patch):
    """A prepared table holds all rows of a unit."""
    _wrapped(patch, prepare, "stored_rows", lambda plain, table, study: 1 if plain(table, study) == 1 else 10**9)
    patch.setattr(lowered_block, "rank_of", lambda cap, _relation, _schema: cap.rows if cap.by == "rank" else None)


PREPARED_BUGS = [
    rank_with_ties,
    texts_of_any_length,
    every_row_is_stored,
    one_numbered_group_too_many,
    values_not_told_apart,
    every_row_is_the_first,
]
"""Bugs of preparation: worlds must be prepared with them."""


# ---- surveys and caps that are found --------------------------------------------------------------------------------------


def caps_from_exact_counts(patch):
    """The cap of a survey follows from what was tallied, not from what was released."""
    exact = {}

    def tally(plain, question, *, rehearsal):
        out = plain(question, rehearsal=rehearsal)
        if not rehearsal and question.text.startswith("SURVEY"):
            exact["cap"] = 1 + int(sum(out[0].tallies[0]))  # as good as any: it moves with one unit
        return out

    _wrapped(patch, asking.PricedQuestion, "_tallied", tally)
    _wrapped(patch, survey, "choose_rows", lambda plain, *given, **named: exact.get("cap") or plain(*given, **named))


def own_caps_from_exact_counts(patch):
    """The caps of a question follow from its exact tallies."""
    exact = {}

    def tally(plain, question, *, rehearsal):
        out = plain(question, rehearsal=rehearsal)
        if not rehearsal and [item.name for item in question.plan.blocks[0].items] == ["step", "units"]:
            exact["cap"] = 1 + int(sum(out[0].tallies[0]))
        return out

    _wrapped(patch, asking.PricedQuestion, "_tallied", tally)
    _wrapped(patch, finding, "choose_rows", lambda plain, *given, **named: exact.get("cap") or plain(*given, **named))


def rows_instead_of_units(patch):
    """A step counts rows: one unit is in it as often as it has rows."""

    def by_row(plain, relation, keys=(), **named):
        made = plain(relation, keys, **named)
        extra = tuple(Ref(place, column.type) for place, column in enumerate(relation.columns) if not column.unit)
        outs = tuple(column for column in relation.columns if not column.unit)
        held = made.columns[: len(made.keys)]
        return dataclasses.replace(made, keys=(*made.keys, *extra), columns=(*held, *outs, made.columns[-1]))

    _wrapped(patch, counting, "group_by_unit", by_row)
    _wrapped(
        patch,
        Owners,
        "rows",
        lambda plain, owners, relation: 1 if isinstance(relation, UnitGroup) else plain(owners, relation),
    )
    _wrapped(
        patch,
        Owners,
        "of",
        lambda plain, owners, relation: (True, 1) if isinstance(relation, UnitGroup) else plain(owners, relation),
    )


def analyst_buys_the_survey(patch):
    """Whoever asks first buys it."""
    owner = lambda session: dataclasses.replace(session, analyst=None)  # noqa: E731
    _wrapped(patch, buying, "needs_survey", lambda plain, session, *given: plain(owner(session), *given))
    _wrapped(patch, buying, "buy_survey", lambda plain, session, before, **named: plain(owner(session), before, **named))


def survey_bought_twice(patch):
    """Who buys looks again which survey is in force, and follows the one that was bought a moment ago."""
    _wrapped(patch, buying, "buy_survey", lambda plain, session, _before, **named: plain(session, session.survey, **named))


def main_part_too_dear(patch):
    """What is left of the spend is thought to be all of it."""
    _wrapped(patch, finding, "price", lambda plain, plan, kind, amount, *rest: plain(plan, kind, amount * 10 / 9, *rest))
    patch.setattr(finding, "_within", lambda *_: True)


def counts_of_other_rows(patch):
    """What was counted is remembered by its kind alone."""
    patch.setattr(finding, "counting_name", lambda _session, counting: hashlib.sha256(counting.kind.encode()).hexdigest())


def trial_caps_are_kept(patch):
    """The caps by which a question was tried out stay in force after the survey."""
    trials = []

    def trial(plain, session, rows):
        made = plain(session, rows)
        trials.append(made.trial)
        return made

    _wrapped(patch, survey, "trial_session", trial)
    plain = session_module.Session.schema

    def schema(session):
        own = plain.fget(session)
        if trials and own.found:
            caps = {one.table.name: one.table.caps for one in trials[-1].tables}
            return counting.with_caps(own, {name: caps[name] for name in own.found})
        return own

    patch.setattr(session_module.Session, "schema", property(schema))
    _wrapped(
        patch,
        session_module.Session,
        "at_one_survey",
        lambda plain, session: (
            dataclasses.replace(session, pinned=(session.schema, session.survey)) if session.trial is None else plain(session)
        ),
    )
    trials.clear()


def counted_by_what_is_there(patch):
    """Counting own rows fails where their units are odd in number: that it failed is an answer."""

    def tally(plain, question, *, rehearsal):
        out = plain(question, rehearsal=rehearsal)
        counted = [item.name for item in question.plan.blocks[0].items] == ["step", "units"]
        if not rehearsal and counted and int(sum(out[0].tallies[0])) % 2:
            raise ValueError("an odd number of units")
        return out

    _wrapped(patch, asking.PricedQuestion, "_tallied", tally)


def facts_become_declarations(patch):
    """What an owner is shown of rows is taken over: tables without declared caps get one as soon as the study is opened."""

    def opened(plain, *given):
        study = plain(*given)
        units = pq.read_table(study.folder / "visits.parquet", columns=["id"])["id"].to_pylist()
        fact = Caps(rows=1 + len(set(units)))  # as good as any: it moves with one unit
        tables = tuple(dataclasses.replace(one, caps=fact) if one.surveyed else one for one in study.tables)
        return dataclasses.replace(study, tables=tables)

    _wrapped(patch, buying, "study_of", opened)


def counts_are_never_charged(patch):
    """A second budget beside the first: units of own rows are counted, and the ledger hears of the main part alone."""
    plain = finding.FindingQuestion.request.func

    def request(question):
        kind = question.session.limits.kind
        amounts = finding._amounts_of(kind, question.promised).most(question.session.least)  # noqa: SLF001
        return dataclasses.replace(plain(question), amounts=amounts, losses=(question.promise.to_record(),))

    patch.setattr(finding.FindingQuestion, "request", property(request))


def survey_is_never_charged(patch):
    """A second budget beside the first: the survey is measured as it is, and the ledger hears of the least spend."""

    def change(plain, question):
        request, least = plain(question), question.session.least
        if not question.text.startswith("SURVEY"):
            return request
        promise = Concentrated(rho=least.rho, adjacency=question.session.study.adjacency)
        return dataclasses.replace(request, amounts=least, losses=(promise.to_record(),))

    _wrapped(patch, asking, "request_of", change)


SURVEY_BUGS = [
    facts_become_declarations,
    counts_are_never_charged,
    survey_is_never_charged,
    caps_from_exact_counts,
    own_caps_from_exact_counts,
    rows_instead_of_units,
    analyst_buys_the_survey,
    survey_bought_twice,
    main_part_too_dear,
    counts_of_other_rows,
    trial_caps_are_kept,
    counted_by_what_is_there,
]
"""Bugs of surveys and of caps that are found: whole histories must be played with them."""
