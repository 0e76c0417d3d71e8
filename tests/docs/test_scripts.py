"""Scripts beside the package use names of it that exist: nobody runs a bench at every change."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [path for folder in ("bench", "docs", "tools") for path in sorted((ROOT / folder).rglob("*.py"))]


def missing_names(source):
    """Return what a source imports from curador that is not there."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "curador":
            for name in (alias.name for alias in node.names):
                if not hasattr(importlib.import_module(node.module), name):
                    try:
                        importlib.import_module(f"{node.module}.{name}")
                    except ModuleNotFoundError:
                        found.append(f"{node.module}.{name}")
    return found


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_names_that_a_script_imports_exist(path):
    """Each of them."""
    assert missing_names(path.read_text(encoding="utf-8")) == []


def test_a_name_that_is_gone_is_seen():
    """Seeded: an import of what a module has only for its types."""
    assert missing_names("from curador.curator.price import QuestionOptions") == ["curador.curator.price.QuestionOptions"]
