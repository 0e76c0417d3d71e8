"""Sources as trees, each made once in a process: many rules are about all of them. Nobody may change what is returned."""

import ast
import gc
from functools import cache


@cache
def tree_of(text: str) -> ast.Module:
    """Return the tree of a source. Of its nodes nothing becomes garbage: looking for some took twice as long as reading."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collecting:
            gc.enable()


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a tree, in the order of `ast.walk`."""
    return tuple(ast.walk(tree))


def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source's tree."""
    return walk(tree_of(text))
