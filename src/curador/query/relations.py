"""What stands in FROM: tables, common table expressions, subqueries, brackets of joins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import kinds
from curador.query.context import MOST_TABLES, Context, Environment, Released, Rows, scanned
from curador.query.expressions import operands, read
from curador.query.joins import From, Kind, Part, joined
from curador.query.messages import invalid, named, not_private, quoted
from curador.query.reading import Reading, taken
from curador.query.scope import Named, Scope, Source, source_of
from curador.query.terms import both, column, equal, renumbered
from curador.query.tree import Filter, Out

if TYPE_CHECKING:
    from curador.query.tree import Place


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing of FROM with the names it brings, its columns counted from 0."""

    content: Rows | Released
    sources: tuple[Source, ...]
    place: Place | None


def thing(node: exp.Expr, environment: Environment, context: Context) -> Thing:
    """Return what a node of FROM stands for."""
    place = context.place(node)
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            raise invalid(place, "a table must be named in FROM; functions and files cannot be read")
        this, alias, joins = taken(node, context, "this", "alias", "joins")
        if this.meta.get("end") in context.text.stars:
            raise invalid(place, "a table in FROM must not be followed by *")
        content = environment.get(this.name.lower()) or scanned(this.name, context, place)
        found = _named(content, alias, this.name, place)
        return _bracket(found, joins, environment, context) if joins else found
    if isinstance(node, exp.Subquery):
        inner, alias = taken(node, context, "this", "alias")
        if isinstance(inner, exp.Table):
            return _under(thing(inner, environment, context), alias)
        return _named(context.query(inner, environment, context), alias, None, place)
    raise invalid(
        place, f"{named(node, context.text)} must not stand in FROM", "FROM takes tables of the study and subqueries."
    )


def _named(content: Rows | Released, alias: Any, default: str | None, place: Place | None) -> Thing:
    if isinstance(content, Rows):
        source = source_of(default, content.columns)
    else:
        items = zip(content.items, content.terms[0], strict=True)
        source = Source(default, tuple(Named(item.name, term) for item, term in items))
    return _under(Thing(content, (source,), place), alias)


def _under(found: Thing, alias: Any) -> Thing:
    """Return the thing under an alias, which may name its columns too: t(x, y)."""
    if alias is None:
        return found
    name, names = taken_alias(alias, found.place)
    columns = tuple(one for source in found.sources for one in source.columns if not one.hidden)
    if len(names) > len(columns):
        raise invalid(found.place, f"an alias must name at most the {len(columns)} columns there are; got {len(names)}")
    new = [replace(one, name=name) for one, name in zip(columns, names, strict=False)]
    return Thing(found.content, (Source(name, (*new, *columns[len(new) :])),), found.place)


def taken_alias(alias: exp.TableAlias, place: Place | None) -> tuple[str | None, list[str]]:
    """Return the name and the column names of an alias."""
    plain = [isinstance(one, exp.Identifier) and (one.args.get("quoted") or one.name.isidentifier()) for one in alias.columns]
    if not all(plain):
        raise invalid(place, "the columns of an alias must be names: t(x, y)")
    return (alias.name or None), [one.name for one in alias.columns]


def _bracket(first: Thing, joins: list[exp.Join], environment: Environment, context: Context) -> Thing:
    """Return (a JOIN b ON …) as one relation that keeps the names inside."""
    done = joined(from_clause(first, joins, environment, context), [], context)
    rows = done.rows
    if done.rest:
        rows = rows.under(Filter(rows.relation, both(done.rest).row, first.place))
    return Thing(rows, done.scope.sources, first.place)


# ---- joins as they are written -----------------------------------------------------------------------------------------


def from_clause(first: Thing, joins: list[exp.Join], environment: Environment, context: Context) -> From:
    """Return FROM with all that its joins say, before it is one relation."""
    rows = _rows_of(first)
    clause = From([Part(rows, "first", 0, first.place)], list(first.sources), list(rows.columns))
    for node in joins:
        _add(clause, node, environment, context)
    return clause


def _rows_of(found: Thing) -> Rows:
    if isinstance(found.content, Released):
        raise not_private(
            found.place,
            "an aggregated subquery must stand alone in FROM: a join would need its exact rows",
            "group it by the unit to join it; or ask twice and combine the answers.",
        )
    return found.content


def _add(clause: From, node: exp.Join, environment: Environment, context: Context) -> None:
    this, on, using = taken(node, context, "this", "on", "using", ignored=("side", "kind", "method"))
    found = thing(this, environment, context)
    rows = _rows_of(found)
    if len(clause.parts) >= MOST_TABLES:
        raise invalid(found.place, f"a question must read at most {MOST_TABLES} tables; one that is used twice counts twice")
    kind = _kind(node, has_condition=on is not None or bool(using), place=found.place)
    start = len(clause.outs)
    part = Part(rows, kind, start, found.place)
    sources = [source.shown(lambda term: renumbered(term, lambda index: index + start)) for source in found.sources]
    for source in sources:
        if source.alias is not None and any(source.alias.lower() == (one.alias or "").lower() for one in clause.sources):
            raise invalid(
                found.place, f"the name {quoted(source.alias)} must stand once in FROM", "give one of them an alias."
            )
    left, right = list(clause.sources), sources
    for name in using or []:
        _use(name.name, left, right, part, context.place(name))
    if on is not None:
        reading = Reading(context, Scope([*left, *right]), "ON", read=read)
        part.on += [kinds.boolean(reading.of(one), "what follows ON") for one in operands(on, exp.And, reading)]
    clause.parts.append(part)
    if kind in {"semi", "anti"}:
        return
    clause.outs.extend(rows.columns)
    clause.sources = [*left, *right]
    if part.merged:
        width = len(clause.outs)
        outs = [Out(name, one.type or other.type, True) for name, one, other in part.merged if (one.type or other.type)]  # type: ignore[arg-type]
        clause.outs.extend(outs)
        clause.sources.append(
            Source(None, tuple(Named(out.name, column(width + index, out)) for index, out in enumerate(outs)))
        )


def _kind(node: exp.Join, *, has_condition: bool, place: Place | None) -> Kind:
    method, side, kind = (str(node.args.get(one) or "").upper() for one in ("method", "side", "kind"))
    words = " ".join(one for one in (method, side, kind) if one)
    known: dict[tuple[str, str, str], Kind] = {
        ("", "", ""): "inner" if has_condition else "comma",
        ("", "", "INNER"): "inner" if has_condition else "comma",
        ("", "", "CROSS"): "comma",
        ("", "LEFT", ""): "left",
        ("", "LEFT", "OUTER"): "left",
        ("", "RIGHT", ""): "right",
        ("", "RIGHT", "OUTER"): "right",
        ("", "FULL", ""): "full",
        ("", "FULL", "OUTER"): "full",
        ("", "", "SEMI"): "semi",
        ("", "LEFT", "SEMI"): "semi",
        ("", "", "ANTI"): "anti",
        ("", "LEFT", "ANTI"): "anti",
    }
    found = known.get((method, side, kind))
    if found is None:
        raise invalid(
            place, f"{words} JOIN is not part of the language", "JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN … ON or USING."
        )
    if has_condition == (kind == "CROSS") and (has_condition or found not in {"inner", "comma"}):
        rule = "must have no condition" if has_condition else "must have a condition: ON or USING"
        raise invalid(place, f"{words} JOIN {rule}")
    return found


def _use(name: str, left: list[Source], right: list[Source], part: Part, place: Place | None) -> None:
    """Equate the columns of this name on both sides, and let one of them stand for both."""
    one, other = (_visible(name, side, place) for side in (left, right))
    first, second = (side[at].columns[index].term for side, (at, index) in ((left, one), (right, other)))
    part.on.append(equal(*kinds.aligned(first, second, "USING")))
    if part.kind in {"right", "full"}:
        _hide(left, one)
    if part.kind != "right":
        _hide(right, other)
    if part.kind == "full":
        part.merged.append((name, first, second))


def _visible(name: str, sources: list[Source], place: Place | None) -> tuple[int, int]:
    found = [
        (at, index)
        for at, source in enumerate(sources)
        for index, one in enumerate(source.columns)
        if one.name.lower() == name.lower() and not one.hidden
    ]
    exact = [(at, index) for at, index in found if sources[at].columns[index].name == name]
    if len(exact) == 1:
        return exact[0]
    if len(found) != 1:
        rule = "must be of one table on each side" if found else "must be on both sides"
        raise invalid(place, f"the column {quoted(name)} of USING {rule}")
    return found[0]


def _hide(sources: list[Source], where: tuple[int, int]) -> None:
    at, index = where
    columns = sources[at].columns
    hidden = replace(columns[index], hidden=True)
    sources[at] = Source(sources[at].alias, (*columns[:index], hidden, *columns[index + 1 :]))
