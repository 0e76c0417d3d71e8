"""The rules that every tree must keep can be broken, and the check sees it."""

from dataclasses import replace

import pytest
from query_words import read, schema
from tree_rules import check

from curador.query.tree import Aggregate, Call, Literal, Out, Project, Ref
from curador.study.values import Type

JOINED = "SELECT sex, SUM(spent) FROM people JOIN visits USING (user_id) GROUP BY sex"
GROUPED = "SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id)"
SELECTED = "SELECT COUNT(*) FROM (SELECT user_id, age FROM people)"
COUNTED = "SELECT COUNT(*) FROM people WHERE name LIKE 'a%'"


def broken(sql, change):
    question = read(sql)
    return replace(question, blocks=(change(question.blocks[0]),))


def over_unit(block):
    """Select an expression over the unit."""
    plus = Call("+", (Ref(0, Type.INTEGER), Literal(1, Type.INTEGER)), Type.INTEGER)
    relation = replace(
        block.relation, expressions=(plus, block.relation.expressions[1]), columns=(Out("x", Type.INTEGER, False),) * 2
    )
    return replace(block, relation=relation)


MUTANTS = {
    "the unit as key": (JOINED, lambda block: replace(block, keys=(Ref(0, Type.INTEGER),))),
    "the unit measured": (
        COUNTED,
        lambda block: replace(
            block, items=(replace(block.items[0], expression=Aggregate("sum", Ref(0, Type.INTEGER), Type.FLOAT)),)
        ),
    ),
    "a raw column released": (
        COUNTED,
        lambda block: replace(block, items=(replace(block.items[0], expression=Ref(1, Type.INTEGER)),)),
    ),
    "a join without the unit": (JOINED, lambda block: replace(block, relation=replace(block.relation, on=None))),
    "a join on something else": (
        JOINED,
        lambda block: replace(
            block,
            relation=replace(block.relation, on=Call("=", (Ref(1, Type.INTEGER), Ref(14, Type.INTEGER)), Type.BOOLEAN)),
        ),
    ),
    "a group without the unit": (
        GROUPED,
        lambda block: replace(
            block,
            relation=replace(block.relation, input=replace(block.relation.input, keys=(Ref(5, Type.INTEGER),))),
        ),
    ),
    "an expression over the unit": (SELECTED, over_unit),
    "a mark that is missing": (
        SELECTED,
        lambda block: replace(
            block,
            relation=replace(
                block.relation, columns=(replace(block.relation.columns[0], unit=False), block.relation.columns[1])
            ),
        ),
    ),
    "a function that does not exist": (
        COUNTED,
        lambda block: replace(
            block, relation=replace(block.relation, predicate=replace(block.relation.predicate, function="regexp"))
        ),
    ),
    "a pattern from a column": (
        COUNTED,
        lambda block: replace(
            block,
            relation=replace(
                block.relation,
                predicate=replace(block.relation.predicate, arguments=(Ref(8, Type.STRING), Ref(3, Type.STRING))),
            ),
        ),
    ),
    "a column of another type": (
        SELECTED,
        lambda block: replace(
            block,
            relation=Project(block.relation, (Ref(1, Type.STRING),), (Out("x", Type.STRING, True),)),
        ),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_tree_is_seen(mutant):
    """Each rule has a tree that breaks it and nothing else."""
    sql, change = MUTANTS[mutant]
    check(read(sql), schema("people"))

    with pytest.raises(AssertionError):
        check(broken(sql, change), schema("people"))
