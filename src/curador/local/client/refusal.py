"""The one error of the client part."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curador.errors import InvalidParameter as Refusal
else:
    try:  # inside curador the error is curador's own; on a device there is no curador
        from curador.errors import InvalidParameter as Refusal
    except ImportError:

        class Refusal(ValueError):  # noqa: N818 -- a refusal is an answer, not an error
            """A value breaks the rule of its parameter."""


def require(holds: bool, name: str, rule: str, value: object) -> None:  # noqa: FBT001
    """Raise Refusal unless the rule holds."""
    if not holds:
        shown = repr(value)
        raise Refusal(f"{name} must be {rule}; got {shown if len(shown) <= 80 else shown[:77] + '...'}.")
