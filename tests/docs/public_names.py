"""Prints every public name with its signature; docs/reference is made from it.

python tests/docs/public_names.py names > docs/reference/public-names.txt
python tests/docs/public_names.py reference > docs/reference/README.md
"""

import inspect
import re
import sys
import types

import curador as cu

HEADINGS = {
    "Asking a table": [
        "open",
        "Curator",
        "connect",
        "RemoteAsker",
        "sandbox",
        "Sandbox",
        "Answer",
        "Study",
        "Budget",
        "Caps",
    ],
    "Mechanisms that add noise": [
        "Laplace",
        "Gaussian",
        "DiscreteLaplace",
        "DiscreteGaussian",
        "Staircase",
        "TruncatedLaplace",
    ],
    "Mechanisms that answer or choose": [
        "RandomizedResponse",
        "Exponential",
        "PermuteAndFlip",
        "NoisyMax",
        "Selection",
        "AboveThreshold",
        "Quantile",
    ],
    "Keys": ["GaussianKeys", "LaplaceKeys", "OptimalKeys"],
    "Local privacy": ["local"],
    "Learning": ["learn"],
    "Around mechanisms": ["clipping", "audit", "plots"],
    "Parts of one's own": ["testing"],
    "Losses": [
        "Loss",
        "compose",
        "Pure",
        "Approx",
        "Concentrated",
        "BoundedRange",
        "KeySelection",
        "Finite",
        "loss_from_record",
        "Interval",
        "losses",
    ],
    "Neighbours and sensitivities": [
        "Adjacency",
        "ADD_OR_REMOVE_ONE",
        "REPLACE_ONE",
        "Norm",
        "Sensitivity",
        "sensitivity",
    ],
    "Filters": ["PureFilter", "ConcentratedFilter", "RenyiFilter", "filters"],
    "Mathematics": ["divergence", "convert", "composition", "odds"],
    "Errors": [
        "CuradorError",
        "Refused",
        "InvalidParameter",
        "InvalidQuery",
        "InvalidStudy",
        "UnreadableData",
        "NotPrivate",
        "NotAllowed",
        "LedgerBusy",
        "BudgetExceeded",
        "Failed",
        "NumericalFailure",
    ],
}


def signature(thing):
    try:
        return str(inspect.signature(thing)).replace("curador.", "")
    except (TypeError, ValueError):
        return ""


def members(thing):
    """Public methods and properties that the class itself or a base of ours defines."""
    found = {}
    for base in reversed(thing.__mro__):
        if base.__module__.startswith("curador"):
            found.update({name: value for name, value in vars(base).items() if not name.startswith("_")})
    return sorted(
        (name, value)
        for name, value in found.items()
        if isinstance(value, (types.FunctionType, classmethod, staticmethod, property))
    )


ROOMS_SHOWN_ELSEWHERE = {"curador.privacy.losses": ("curador.privacy.kinds",)}
"""Where a public module gets from what it shows."""


def of_module(module):
    """Public functions and classes that the module's own room defines, or that it says it has."""
    rooms = (module.__name__, *ROOMS_SHOWN_ELSEWHERE.get(module.__name__, ()))
    if hasattr(module, "__getattr__"):
        return [(name, getattr(module, name)) for name in module.__all__]
    return sorted(
        (name, value)
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "").startswith(rooms)
    )


def lines():
    for name in cu.__all__:
        thing = getattr(cu, name)
        if isinstance(thing, types.ModuleType):
            for inner, value in of_module(thing):
                yield f"curador.{name}.{inner}{signature(value)}"
                if thing is cu.learn and isinstance(value, type):
                    yield from (f"curador.{name}.{inner}.{method}" for method, _ in members(value))
        elif isinstance(thing, type):
            yield f"curador.{name}{signature(thing)}"
            for inner, value in members(thing):
                kind = "" if isinstance(value, property) else signature(getattr(thing, inner))
                yield f"curador.{name}.{inner}{kind}"
        else:
            yield f"curador.{name}{signature(thing) if callable(thing) else ''}"


def sentence(thing):
    text = inspect.getdoc(thing) or ""
    return " ".join(text.split("\n\n")[0].split())


def options(thing):
    """The paragraphs below the first, as they stand: what may be said to the few functions that take many options."""
    return "\n\n".join((inspect.getdoc(thing) or "").split("\n\n")[1:])


def readable(thing, name, *, typed=True):
    """A signature for people: no quotes around types, one parameter a line where it is long; untyped, the names alone."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    given = [one for one in found.parameters.values() if one.name != "self"]
    parts, starred = [], False
    for one in given:
        if one.kind is one.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or one.kind in {one.KEYWORD_ONLY, one.VAR_POSITIONAL}
        parts.append(parameter(one, typed=typed))
    back = (
        f" -> {written(found.return_annotation)}"
        if typed and found.return_annotation not in (found.empty, None, "None")
        else ""
    )
    line = f"{name}({', '.join(parts)}){back}"
    if not typed or len(line) <= WIDE:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){back}"


WIDE = 100
"""Characters that fit beside the contents of the page."""


def parameter(one, *, typed):
    """One parameter; what a default prints is told only where it reads back."""
    star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = f": {written(one.annotation)}" if typed and one.annotation is not one.empty else ""
    if one.default is one.empty:
        return f"{star}{one.name}{kind}"
    text = repr(one.default)
    text = re.sub(r"<(\w+)\.(\w+): .*>", r"\1.\2", text)
    text = "..." if text.startswith("<") else text
    return f"{star}{one.name}{kind}{' = ' if kind else '='}{text}"


def written(annotation):
    """An annotation as its source has it."""
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("curador.", "")


def reference():
    yield "# Every public name\n"
    yield (
        "`import curador as cu`. This page is made from the docstrings; `make api` rewrites it, a test holds it. Methods\n"
        "are shown without types; `help(cu.open)`, an editor and [the plain list](public-names.txt) have them.\n"
    )
    for heading, names in HEADINGS.items():
        yield f"## {heading}\n"
        for name in names:
            thing = getattr(cu, name)
            yield f"### cu.{name}\n"
            if isinstance(thing, types.ModuleType):
                yield f"{sentence(thing)}\n"
                yield from (
                    f"- `{readable(value, inner, typed=False)}`: {sentence(value)}" for inner, value in of_module(thing)
                )
                yield ""
            elif isinstance(thing, type):
                if not issubclass(thing, Exception):
                    yield f"```python\n{readable(thing, f'cu.{name}')}\n```\n"
                yield f"{sentence(thing)}\n"
                shared = name != "Loss" and issubclass(thing, cu.Loss)
                rows = [] if shared or issubclass(thing, Exception) else members(thing)
                yield from (f"- `.{member(thing, inner, value)}" for inner, value in rows)
                yield ""
                if name == "Curator":
                    yield f"Options of `ask` and `preview`:\n\n```text\n{options(cu.Curator.ask)}\n```\n"
            elif callable(thing):
                yield f"```python\n{readable(thing, f'cu.{name}')}\n```\n\n{sentence(thing)}\n"
                if name == "open":
                    yield f"```text\n{options(thing)}\n```\n"


def member(thing, name, value):
    """What follows the point of a method or property: its names, and its sentence."""
    if isinstance(value, property):
        return f"{name}`: {sentence(value)}"
    method = getattr(thing, name)
    return f"{readable(method, name, typed=False)}`: {sentence(method)}"


if __name__ == "__main__":
    print("\n".join(reference() if sys.argv[1:] == ["reference"] else lines()))
