"""Every error curador raises on purpose.

CuradorError
├─ Refused                the request is not acceptable; the text is safe to show to anybody
│  ├─ InvalidParameter    a number, name or option breaks its rule (also a ValueError)
│  ├─ InvalidQuery        the statement cannot be read, or breaks a rule of the language (says where)
│  ├─ InvalidStudy        the owner's declaration cannot be used (says where)
│  ├─ NotPrivate          no proof exists for what was asked: no rule, no finite bound
│  ├─ NotAllowed          this analyst may not ask this
│  ├─ LedgerBusy          another writer holds the ledger; nothing was spent
│  └─ BudgetExceeded      a filter or ledger has no room for the loss
└─ Failed                 our side
   └─ NumericalFailure    a computation could not be certified

Sentence form: *x must be rule; got value.* and, where it helps, a second line `Hint: …`.
"""

from __future__ import annotations


class CuradorError(Exception):
    """Root of the tree above."""


class Refused(CuradorError):  # noqa: N818 -- a refusal is an answer, not an error of ours
    """The request is not acceptable; nothing was spent."""


class InvalidParameter(Refused, ValueError):  # noqa: N818 -- idem
    """A value breaks the rule of its parameter."""


class InvalidQuery(Refused):
    """A statement cannot be read or breaks a rule of the language."""


class InvalidStudy(Refused):
    """The owner's declaration, or a file it names, cannot be used."""


class NotAllowed(Refused):
    """This analyst may not ask this."""


class LedgerBusy(Refused):
    """Another writer holds the ledger."""


class NotPrivate(Refused):
    """No theorem covers what was asked."""


class BudgetExceeded(Refused):
    """The loss does not fit into what is left."""


class Failed(CuradorError):  # noqa: N818 -- pairs with Refused
    """Something on our side went wrong."""


class NumericalFailure(Failed):
    """A number could not be certified."""


def sentence(name: str, rule: str, value: object, hint: str | None = None) -> str:
    """Return the one form in which a broken rule is told."""
    text = f"{name} must be {rule}; got {shown(value)}."
    return f"{text}\nHint: {hint}" if hint else text


def shown(value: object) -> str:
    """Return the value as its writer would recognise it, cut where it is long."""
    try:
        text = repr(value) if isinstance(value, str) or not hasattr(value, "__str__") else str(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        text = "a number too long to be written"
    return text if len(text) <= 80 else text[:77] + "..."


def require(holds: bool, name: str, rule: str, value: object, hint: str | None = None) -> None:  # noqa: FBT001
    """Raise InvalidParameter unless the rule holds."""
    if not holds:
        raise InvalidParameter(sentence(name, rule, value, hint))
