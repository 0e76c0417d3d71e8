"""Relations and expressions written by hand."""

from curador.query.tree import (
    Call,
    Distinct,
    Filter,
    Join,
    Literal,
    Out,
    Project,
    Ref,
    Scan,
    UnionAll,
    UnitGroup,
    Window,
    WindowCall,
)
from curador.study.values import Type


def scan(schema, name):
    """Return the whole table, as the parser makes it."""
    table = schema.table(name)
    unit = table.unit_index
    columns = tuple(
        Out(field.name, field.type, field.nullable, (name, field.name), unit=place == unit)
        for place, field in enumerate(table.fields)
    )
    return Scan(name, columns)


def column(relation, name):
    """Return a reference to the first column of this name."""
    index = next(place for place, one in enumerate(relation.columns) if one.name == name)
    return Ref(index, relation.columns[index].type)


def number(value):
    """Return a literal."""
    return Literal(value, Type.INTEGER if isinstance(value, int) else Type.FLOAT)


def call(function, *arguments, kind=Type.FLOAT):
    """Return a call."""
    return Call(function, arguments, kind)


def equal(left, right):
    """Return an equality."""
    return Call("=", (left, right), Type.BOOLEAN)


def where(relation, predicate):
    """Return the rows where a predicate holds."""
    return Filter(relation, predicate)


def joined(left, right, kind="inner", on=("id", "id")):
    """Return a join by the equality of two columns, or by none."""
    columns = left.columns if kind in {"semi", "anti"} else left.columns + right.columns
    condition = None
    if on is not None:
        second = column(right, on[1])
        condition = equal(column(left, on[0]), Ref(second.index + len(left.columns), second.type))
    return Join(left, right, kind, condition, columns)


def union(*relations):
    """Return rows one after the other."""
    return UnionAll(relations, relations[0].columns)


def by_unit(relation, *others):
    """Return one row for each unit, and for each value of other columns."""
    keys = (column(relation, "id"), *(column(relation, name) for name in others))
    return UnitGroup(relation, keys, (), tuple(relation.columns[key.index] for key in keys))


def projected(relation, *names):
    """Return some columns."""
    refs = tuple(column(relation, name) for name in names)
    return Project(relation, refs, tuple(relation.columns[ref.index] for ref in refs))


def joined_where(left, right, kind, condition):
    """Return a join by any condition; its references are to the left columns, then to the right ones."""
    return Join(left, right, kind, condition, left.columns if kind in {"semi", "anti"} else left.columns + right.columns)


def right_column(left, right, name):
    """Return a reference to a column of the right side of a join."""
    found = column(right, name)
    return Ref(found.index + len(left.columns), found.type)


def numbered(relation):
    """Return the rows with their number inside the unit, in the last column."""
    row_number = WindowCall("row_number", None, (), (), Type.INTEGER)
    return Window(relation, (row_number,), (*relation.columns, Out("number", Type.INTEGER, nullable=False)))


def distinct(relation):
    """Return one of each set of equal rows."""
    return Distinct(relation)
