"""Sources as trees, each made once in a process: many rules are about all of them. Nobody may change what is returned."""

import ast
from functools import cache


@cache
def tree_of(text: str) -> ast.Module:
    """Return the tree of a source."""
    return ast.parse(text)


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a tree, in the order of `ast.walk`."""
    return tuple(ast.walk(tree))


def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source's tree."""
    return walk(tree_of(text))
