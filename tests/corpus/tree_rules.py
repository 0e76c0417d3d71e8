"""What must hold of every tree that a question becomes, found out again from the tables upwards.

What belongs to the unit is followed here by itself, without the marks that the reader of SQL leaves in the columns: a
column is told by the unit if the unit's column of a base table is anywhere in it.
"""

from curador.query.functions import FUNCTIONS
from curador.query.tree import (
    Aggregate,
    Call,
    Distinct,
    Filter,
    Join,
    Key,
    Literal,
    Project,
    Ref,
    Scan,
    UnionAll,
    UnitGroup,
    Window,
    releases_of,
    tables_in,
)
from curador.study.values import Type

WRITTEN = {  # where the catalogue asks for literals
    "in": slice(1, None),
    "like": slice(1, None),
    "ilike": slice(1, None),
    "round": slice(1, None),
    "power": slice(1, None),
    "substring": slice(1, None),
    "replace": slice(1, None),
    "starts_with": slice(1, None),
    "date_trunc": slice(0, 1),
    "extract": slice(0, 1),
    "date_diff": slice(0, 1),
    "date_add": slice(1, None),
}


def above(tree, question):
    """Assert that a tree over released rows reads the question's own blocks, of keys and aggregates, and no table."""
    assert not tables_in(tree), "no row of a table"
    leaves = releases_of(tree)
    assert {leaf.block for leaf in leaves} == set(question.blocks)
    for leaf in leaves:
        assert leaf.block.having is None
        kinds = [type(item.expression) for item in leaf.block.items]
        assert kinds[: len(leaf.block.keys)] == [Key] * len(leaf.block.keys)
        assert set(kinds[len(leaf.block.keys) :]) <= {Aggregate}
    names = [out.name.lower() for out in tree.columns]
    assert len(set(names)) == len(names)


def check(question, schema):
    """Assert every rule of a question's tree."""
    assert question.blocks
    width = len(question.blocks[0].items)
    for block in question.blocks:
        told, private = relation(block.relation, schema)
        assert private, "a block is over private rows"
        columns = block.relation.columns
        for key in block.keys:
            expression(key, columns)
            assert columns_of(key), "a key is over columns"
            assert not columns_of(key) & told, "no key tells the unit"
        assert question.above is not None or len(block.items) == width
        for node in (*(item.expression for item in block.items), *([] if block.having is None else [block.having])):
            released(node, block, columns, told)
        if block.having is not None:
            assert block.having.type is Type.BOOLEAN
    if question.above is not None:
        above(question.above, question)
        return
    names = [item.name.lower() for item in question.blocks[0].items]
    assert len(set(names)) == len(names)
    for order in question.order:
        if len(question.blocks) > 1:
            assert isinstance(order.expression, Ref)
            assert order.expression.index < width
        else:
            block = question.blocks[0]
            released(order.expression, block, block.relation.columns, relation(block.relation, schema)[0])
    assert set(question.tables) == {scan for block in question.blocks for scan in scans(block.relation)}


def released(node, block, columns, told):
    """Assert that a node is over keys, aggregates and literals."""
    if isinstance(node, Key):
        assert node.index < len(block.keys)
        assert node.type is block.keys[node.index].type
    elif isinstance(node, Aggregate):
        aggregate(node, columns, told)
    elif isinstance(node, Call):
        function(node)
        for one in node.arguments:
            released(one, block, columns, told)
    else:
        assert isinstance(node, Literal), f"{type(node).__name__} is not released"


def aggregate(node, columns, told):
    """Assert that an aggregate measures no unit."""
    if node.argument is not None:
        expression(node.argument, columns)
        assert not columns_of(node.argument) & told, "no aggregate measures the unit"
    else:
        assert node.function in {"count", "count_units"}
    if node.filter is not None:
        expression(node.filter, columns)
        assert node.filter.type is Type.BOOLEAN
    assert (node.q is not None) == (node.function == "quantile")


def expression(node, columns):
    """Assert that a node is about one row of these columns."""
    if isinstance(node, Ref):
        assert node.index < len(columns)
        assert node.type is columns[node.index].type
    elif isinstance(node, Call):
        function(node)
        for one in node.arguments:
            expression(one, columns)
    else:
        assert isinstance(node, Literal)


def function(node):
    """Assert that a function is of the catalogue, with literals where it asks for them."""
    assert node.function in FUNCTIONS
    if node.function in WRITTEN:
        assert all(isinstance(one, Literal) for one in node.arguments[WRITTEN[node.function]])


def columns_of(node):
    """Return the places of the columns in an expression."""
    if isinstance(node, Ref):
        return {node.index}
    return set().union(*(columns_of(one) for one in node.arguments)) if isinstance(node, Call) else set()


def relation(node, schema):
    """Assert the rules of a relation; return which of its columns tell the unit, and whether units own its rows."""
    match node:
        case Scan():
            table = schema.table(node.table)
            assert len(node.columns) == len(table.fields)
            told = set() if table.unit_index is None else {table.unit_index}
            private = not table.table.public
        case Filter():
            told, private = relation(node.input, schema)
            expression(node.predicate, node.columns)
            assert node.predicate.type is Type.BOOLEAN
        case Project():
            below, private = relation(node.input, schema)
            told = set()
            for index, (one, out) in enumerate(zip(node.expressions, node.columns, strict=True)):
                expression(one, node.input.columns)
                assert one.type is out.type
                if columns_of(one) & below:
                    merged = isinstance(one, Call) and one.function == "coalesce" and columns_of(one) <= below
                    assert isinstance(one, Ref) or merged, "no expression over the unit is selected"
                    told.add(index)
                assert out.source is None or isinstance(one, Ref)
        case Join():
            told, private = join(node, schema)
        case UnionAll():
            parts = [relation(one, schema) for one in node.inputs]
            assert all(private for _, private in parts), "UNION ALL is of private rows"
            assert len({frozenset(told) for told, _ in parts}) == 1, "a column is the unit in every part, or in none"
            for one in node.inputs:
                assert [out.type for out in one.columns] == [out.type for out in node.columns]
            told, private = parts[0]
        case UnitGroup():
            below, private = relation(node.input, schema)
            assert private
            assert any(isinstance(key, Ref) and key.index in below for key in node.keys), "the unit is a key"
            told = set()
            for index, key in enumerate(node.keys):
                expression(key, node.input.columns)
                if columns_of(key) & below:
                    assert isinstance(key, Ref)
                    told.add(index)
            for one in node.aggregates:
                aggregate(one, node.input.columns, below)
                assert one.function != "count_units"
            assert len(node.columns) == len(node.keys) + len(node.aggregates)
        case Window():
            told, private = relation(node.input, schema)
            assert private
            for one in node.calls:
                for part in (*one.partition, *(order for order, _, _ in one.order), *filter(None, (one.argument,))):
                    expression(part, node.input.columns)
                    assert not columns_of(part) & told, "no window is over the unit"
        case Distinct():
            told, private = relation(node.input, schema)
            assert told, "DISTINCT keeps the unit"
    for index, out in enumerate(node.columns):
        assert (out.unit or out.unit_or_null) == (index in told), "the mark in the column says what is true"
        assert not (out.unit and out.nullable)
    return told, private


def join(node, schema):
    """Assert that a join equates units or declared keys, and keeps no row that nobody owns."""
    left, left_private = relation(node.left, schema)
    right, right_private = relation(node.right, schema)
    width = len(node.left.columns)
    if node.on is not None:
        expression(node.on, (*node.left.columns, *node.right.columns))
        assert node.on.type is Type.BOOLEAN
    half = node.kind in {"semi", "anti"}
    if left_private and right_private:
        parts = node.on.arguments if isinstance(node.on, Call) and node.on.function == "and" else (node.on,)
        assert any(tied(one, node, left, right, schema) for one in parts), "units or declared keys are equated"
    elif left_private:
        assert node.kind not in {"right", "full"}
    elif right_private:
        assert node.kind not in {"left", "full", "semi", "anti"}
    assert len(node.columns) == (width if half else width + len(node.right.columns))
    told = left if half else left | {width + index for index in right}
    return told, left_private or right_private


def tied(node, around, left, right, schema):
    """Whether a condition equates two units, or two columns of one declared key, across a join."""
    if not (isinstance(node, Call) and node.function == "=" and all(isinstance(one, Ref) for one in node.arguments)):
        return False
    width = len(around.left.columns)
    low, high = sorted(one.index for one in node.arguments)
    if not low < width <= high:
        return False
    if low in left and high - width in right:
        return True
    ends = [around.left.columns[low].source, around.right.columns[high - width].source]
    return None not in ends and end_of(ends[0], schema) == end_of(ends[1], schema) is not None


def end_of(source, schema):
    """Return the key that a column is or refers to, None for a column that no key path names."""
    paths = {(one.table.name, one.path.column): (one.path.table, one.path.key) for one in schema.tables if one.path}
    return paths.get(source, source if source in paths.values() else None)


def scans(node):
    """Return the names of all tables that a relation reads."""
    if isinstance(node, Scan):
        return {node.table}
    parts = (
        node.inputs if isinstance(node, UnionAll) else (node.left, node.right) if isinstance(node, Join) else (node.input,)
    )
    return set().union(*(scans(one) for one in parts))
