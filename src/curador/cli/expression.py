"""What is typed at a command: losses written as text, and mechanisms by a word.

A loss is `1000*gaussian(sigma=20) + 50*rr(epsilon=0.5).group(2)`: Python's own grammar, read through an allow-list: sums,
whole counts, the mechanisms below with keyword arguments, and the methods subsample and group. Numbers keep the digits that
were typed.

Of `calibrate`: which mechanism a word names, and which goals it understands.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NoReturn, cast

from curador.errors import InvalidParameter, require
from curador.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential, Gaussian, Laplace, RandomizedResponse
from curador.privacy.loss import Loss
from curador.privacy.losses import Approx, Concentrated, GaussianLoss, KeySelection, LaplaceLoss, Pure, Shuffled

# ---- calibration -----------------------------------------------------------------------------------------------------------


_NOISE = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "discrete_gaussian": DiscreteGaussian,
    "discrete_laplace": DiscreteLaplace,
}


def calibrate_mechanism(
    mechanism: str,
    *,
    accuracy: str | None,
    confidence: str,
    sensitivity: str,
    rate: str | None,
    scheme: str,
    **goal: Any,
) -> Any:
    """Return the calibrated mechanism; a goal that it has no meaning for is refused."""
    if mechanism in _NOISE:
        noise: Any = _NOISE[mechanism]
        return noise.calibrate(
            sensitivity=sensitivity,
            accuracy=accuracy,
            confidence=confidence,
            rate=rate,
            scheme=scheme,
            **goal,
        )
    if accuracy is not None or rate is not None:
        raise InvalidParameter(subject="accuracy and rate", rule="must be given for noise mechanisms only", got=mechanism)
    if mechanism == "rr":
        return RandomizedResponse.calibrate(**goal)
    if mechanism == "exponential":
        return Exponential.calibrate(sensitivity=sensitivity, **goal)
    names = ", ".join([*_NOISE, "rr", "exponential"])
    raise InvalidParameter(subject="mechanism", rule=f"must be one of {names}", got=mechanism)


# ---- expression ------------------------------------------------------------------------------------------------------------


_LONGEST = 4_000

Builder = Callable[..., Loss]


def _with_sensitivity(mechanism: Callable[..., object]) -> Builder:
    def build(sensitivity: str = "1", **parameters: str) -> Loss:
        return cast("Loss", getattr(mechanism(sensitivity=sensitivity, **parameters), "loss"))  # noqa: B009 -- a property of each

    return build


def _laplace(*, scale: str | None = None, epsilon: str | None = None, sensitivity: str = "1") -> Loss:
    if epsilon is not None and scale is None:
        return Laplace.calibrate(sensitivity=sensitivity, epsilon=epsilon).loss
    return Laplace(sensitivity=sensitivity, scale=scale or "0").loss


def _response(**parameters: str) -> Loss:
    return RandomizedResponse(**parameters).loss


MECHANISMS: dict[str, Builder] = {
    "gaussian": _with_sensitivity(Gaussian),
    "laplace": _laplace,
    "discrete_gaussian": _with_sensitivity(DiscreteGaussian),
    "discrete_laplace": _with_sensitivity(DiscreteLaplace),
    "rr": _response,
    "exponential": _with_sensitivity(Exponential),
    "gdp": GaussianLoss,
    "ideal_laplace": LaplaceLoss,
    "pure": Pure,
    "approx": Approx,
    "zcdp": Concentrated,
    "keys": KeySelection,
    "shuffle": Shuffled,
}
"""The words of the little language, and what each builds."""


def loss_of(text: str) -> Loss:
    """Return the loss that the text describes; anything outside the allow-list is refused with its place."""
    require(len(text.strip()) > 0 and len(text) <= _LONGEST, "expression", f"1 to {_LONGEST} characters", text)
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise InvalidParameter(
            subject="expression", rule="must be a sum such as 100*gaussian(sigma=20) + laplace(scale=5)", got=f"{text[:80]!r}"
        ) from None
    try:
        return _loss(tree.body, text.strip())
    except RecursionError:
        raise InvalidParameter("expression must be nested less deeply; write counts instead of long sums.") from None


def _loss(node: ast.expr, text: str) -> Loss:
    match node:
        case ast.BinOp(op=ast.Add()):
            return _loss(node.left, text) + _loss(node.right, text)
        case ast.BinOp(op=ast.Mult(), left=ast.Constant()):
            return _loss(node.right, text) * _number(node.left, text)
        case ast.BinOp(op=ast.Mult(), right=ast.Constant()):
            return _loss(node.left, text) * _number(node.right, text)
        case ast.Call(func=ast.Name(id=name), args=[]):
            return _mechanism(name, _arguments(node, text))
        case ast.Call(func=ast.Attribute(value=inner, attr="subsample"), args=[]):
            arguments = _arguments(node, text)
            return _build_loss(_loss(inner, text).subsample, "subsample", arguments)
        case ast.Call(func=ast.Attribute(value=inner, attr="group"), args=[size], keywords=[]):
            return _loss(inner, text).group(_number(size, text))
        case _:
            return _refuse(node, text)


def _mechanism(name: str, arguments: dict[str, str]) -> Loss:
    if name not in MECHANISMS:
        raise InvalidParameter(subject="mechanism", rule=f"must be one of {', '.join(sorted(MECHANISMS))}", got=name)
    return _build_loss(MECHANISMS[name], name, arguments)


def _build_loss(build: Builder, name: str, arguments: dict[str, str]) -> Loss:
    try:
        return build(**arguments)
    except TypeError:
        given = ", ".join(arguments) or "nothing"
        raise InvalidParameter(subject=f"arguments of {name}", rule="must be its parameters by name", got=given) from None


def _arguments(node: ast.Call, text: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            _refuse(node, text)
        out[keyword.arg] = _number(keyword.value, text)
    return out


def _number(node: ast.expr, text: str) -> str:
    """The digits as typed: a constant, a ratio of two, a negative one, or a quoted word."""
    match node:
        case ast.Constant(value=str() as word):
            return word
        case ast.Constant(value=bool()):
            return _refuse(node, text)
        case ast.Constant(value=int() | float()):
            return (ast.get_source_segment(text, node) or "").replace("_", "")
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as inner):
            return "-" + _number(inner, text)
        case ast.BinOp(op=ast.Div(), left=ast.Constant() as top, right=ast.Constant() as bottom):
            return f"{_number(top, text)}/{_number(bottom, text)}"
        case _:
            return _refuse(node, text)


def _refuse(node: ast.expr, text: str) -> NoReturn:
    part = ast.get_source_segment(text, node) or text
    place = f"{part[:60]!r} at column {node.col_offset + 1}"
    raise InvalidParameter(subject="expression", rule="must be made of counts, mechanisms, subsample and group", got=place)
