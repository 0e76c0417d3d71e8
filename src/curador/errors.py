"""Every error curador raises on purpose.

CuradorError
├─ Refused                the request is not acceptable; the text is safe to show to anybody
│  ├─ InvalidParameter    a number, name or option breaks its rule (also a ValueError)
│  ├─ InvalidQuery        the statement cannot be read, or breaks a rule of the language (says where)
│  ├─ InvalidStudy        the owner's declaration cannot be used (says where)
│  │  └─ UnreadableData   nothing of what was declared can be read in the data: for the owner only, as rows decide it
│  ├─ NotPrivate          no proof exists for what was asked: no rule, no finite bound
│  ├─ NotAllowed          this analyst may not ask this
│  ├─ LedgerBusy          another writer holds the ledger; nothing was spent
│  └─ BudgetExceeded      a filter or ledger has no room for the loss
└─ Failed                 our side
   └─ NumericalFailure    a computation could not be certified

Sentence form: *x must be rule; got value.* and, where it helps, a second line `Hint: …`. The sentence is made of fields,
which every error carries: whoever needs the subject, the rule or the place asks for it, and nobody takes a sentence apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self


class CuradorError(Exception):
    """Root of the tree above.

    subject  what the sentence is about: a parameter, a key of the study file, a column
    rule     what must hold of it, with its verb: "must be positive"
    got      what there was instead, as its writer would recognise it
    text     the sentence where it has another form; then the three above are empty
    hint     what to do next
    place    where it stands: line and column of a question, line of a file
    path     keys from the top of a study, where it is about one
    """

    def __init__(
        self,
        text: str = "",
        *,
        subject: str = "",
        rule: str = "",
        got: str = "",
        hint: str | None = None,
        place: object = None,
        path: tuple[str | int, ...] = (),
    ) -> None:
        self.text = text
        self.subject = subject
        self.rule = rule
        self.got = got
        self.hint = hint
        self.place = place
        self.path = path
        super().__init__(str(self))

    @classmethod
    def must_be(
        cls,
        subject: str,
        rule: str,
        value: object,
        hint: str | None = None,
        *,
        place: object = None,
        path: tuple[str | int, ...] = (),
    ) -> Self:
        """Return the refusal in its usual form: subject must be rule; got value."""
        return cls(subject=subject, rule=f"must be {rule}", got=shown(value), hint=hint, place=place, path=path)

    @property
    def sentence(self) -> str:
        """What is wrong, without its place and without the hint."""
        return self.text or f"{self.subject} {self.rule}; got {self.got}."

    @property
    def fields(self) -> dict[str, str]:
        """What a program wants to know: the kind of error, its sentence, and the fields that say something, by name."""
        place = None if self.place is None else str(self.place)
        said = {"subject": self.subject, "rule": self.rule, "got": self.got, "hint": self.hint, "place": place}
        return {
            "error": type(self).__name__,
            "sentence": self.sentence,
            **{name: text for name, text in said.items() if text},
        }

    def __str__(self) -> str:
        text = self.sentence if self.place is None else f"{self.place}: {self.sentence}"
        return f"{text}\nHint: {self.hint}" if self.hint else text


class Refused(CuradorError):  # noqa: N818 -- a refusal is an answer, not an error of ours
    """The request is not acceptable; nothing was spent."""


class InvalidParameter(Refused, ValueError):  # noqa: N818 -- idem
    """A value breaks the rule of its parameter."""


class InvalidQuery(Refused):
    """A statement cannot be read or breaks a rule of the language."""


class InvalidStudy(Refused):
    """The owner's declaration, or a file it names, cannot be used."""


class UnreadableData(InvalidStudy):
    """What rows hold cannot be read as it was declared. Rows decide this: it is for the owner, and no analyst sees it."""


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
        raise InvalidParameter.must_be(name, rule, value, hint)
