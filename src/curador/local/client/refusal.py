"""The one error of the client part."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from operator import index
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curador.errors import InvalidParameter as Refusal
else:
    try:  # inside curador the error is curador's own; on a device there is no curador
        from curador.errors import InvalidParameter as Refusal
    except ImportError:

        class Refusal(ValueError):  # noqa: N818 -- a refusal is an answer, not an error
            """A value breaks the rule of its parameter."""


_LONGEST = 100  # characters of a number's text
_FARTHEST = 400  # powers of ten: a text must not make a device compute for hours


def exact(value: object, name: str) -> Fraction:
    """Return the number exactly: the decimal that a person sees, for a float too. Texts of absurd size are refused."""
    try:
        if isinstance(value, bool):
            raise TypeError  # noqa: TRY301 -- told below, with everything else that is no number
        if isinstance(value, (str, float, Decimal)):
            text = value if isinstance(value, str) else repr(float(value)) if isinstance(value, float) else str(value)
            _, _, power = text.lower().partition("e")
            if len(text) > _LONGEST or (power and abs(int(power)) > _FARTHEST):
                raise ValueError  # noqa: TRY301 -- idem
            return Fraction(text)
        return value if isinstance(value, Fraction) else Fraction(index(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise Refusal(f"{name} must be a number; got {_show(value)}.") from None


def _show(value: object) -> str:
    """A public value as its writer would recognise it, cut where it is long."""
    if isinstance(value, int) and abs(value) >> 256:
        return "a very large one"
    text = str(value) if isinstance(value, Fraction) else repr(value[:_LONGEST] if isinstance(value, str) else value)
    return text if len(text) <= 80 else text[:77] + "..."


def require(holds: bool, name: str, rule: str, value: object) -> None:  # noqa: FBT001
    """Raise Refusal unless the rule holds."""
    if not holds:
        raise Refusal(f"{name} must be {rule}; got {_show(value)}.")
