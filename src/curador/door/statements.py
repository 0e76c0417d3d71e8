"""What a statement is, by our own reading of it: a question, a matter of the door, something for the shadow, or refused.

Claim   Whatever names a table that is no catalogue is a question: it goes to the curator, which answers or refuses it.
Needs   The shadow's role may read no table of the study (`shadow.py:require_unreadable`). So where this reading errs, as a
        reading of somebody else's language can, the statement is refused there; it never has an empty answer.

The language of the shadow is reading: SELECT, VALUES, TABLE, cursors over them, transactions. Whatever begins with another
word is the door's own matter, or refused.
"""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokenizer_core import TokenType

from curador.door.making import require_calls_end
from curador.door.problems import SqlProblem, refuse_touching
from curador.door.shadow_schema import NOT_CALLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.dialects.dialect import Dialect
    from sqlglot.tokenizer_core import Token

DIALECT = "postgres"

MOST_STATEMENTS = 100
"""In one message."""

MOST_TOKENS = 50_000
"""Of one message; what tools send about catalogues is long."""


class StatementKind(enum.Enum):
    """Who answers a statement."""

    QUESTION = "question"
    EXPLAIN = "explain"  # what a question would cost
    DECLARE = "declare"  # a cursor over a question
    FETCH = "fetch"  # of a cursor: ours, or the shadow's
    CLOSE = "close"
    SET = "set"
    SHOW = "show"
    CONFIG = "config"  # SELECT set_config(…)
    RESET = "reset"
    DISCARD = "discard"
    DEALLOCATE = "deallocate"
    ANSWERED = "answered"  # said to be done; there is nothing to do
    SHADOW = "shadow"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a message.

    text    the statement itself, as it was written
    words   its first tokens, upper case where they are no names or texts
    asked   the question inside: of EXPLAIN and DECLARE
    name    of a cursor
    at      where it begins in its message; None: it is not as it was written any more
    """

    kind: StatementKind
    text: str
    words: tuple[Word, ...] = ()
    asked: str = ""
    name: str = ""
    at: int | None = 0

    def place(self, position: int) -> int | None:
        """Return a place in the question inside, counted from 1, as one in the message."""
        inside = len(self.text) - len(self.asked) if self.asked else 0
        return None if self.at is None else position + inside + self.at


@dataclass(frozen=True, slots=True)
class Word:
    """A token: its text as a name is folded, and whether it is a quoted name or a text."""

    text: str
    quoted: bool = False
    start: int = 0

    @property
    def upper(self) -> str:
        """As a keyword; a quoted one is none."""
        return "" if self.quoted else self.text.upper()


def read_statements(text: str, tables: frozenset[str]) -> list[Statement]:
    """Return the statements of a message; refuse what nobody here does.

    tables  the study's tables that the asker may see
    """
    tokens = _tokens_of(text)
    parts = list(_split(tokens))
    if len(parts) > MOST_STATEMENTS:
        raise SqlProblem("54000", f"a message must have at most {MOST_STATEMENTS} statements; got {len(parts)}.")
    read = [(part[0].start, _read(text[part[0].start : part[-1].end + 1], part, tables)) for part in parts]
    return [one if one.at is None else replace(one, at=start) for start, one in read]


def parse_one(text: str) -> exp.Expr | None:
    """Return the tree of one statement; None where it cannot be read or is several."""
    try:
        tokens = _language().tokenize(text)
        found = _parser()(dialect=_language()).parse(tokens, text)
    except (SqlglotError, RecursionError):
        return None
    except Exception:  # noqa: BLE001 -- whatever a hostile text makes the parser do, it is a text that cannot be read
        return None
    trees = [tree for tree in found if tree is not None]
    return trees[0] if len(trees) == 1 and not isinstance(trees[0], exp.Command) else None


@functools.cache
def _language() -> Dialect:
    """PostgreSQL's, whose commands are tokens like everything else: the parser takes what follows one for a text.

    So are the types oid, regclass and the like, of which it knows no arrays else.
    """

    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in Postgres.Tokenizer.KEYWORDS.items() if kind != TokenType.OBJECT_IDENTIFIER
        }

    return type("CuradorDoor", (Postgres,), {"Tokenizer": Tokenizer})()


@functools.cache
def _parser() -> type:
    from curador.query.parser import parser_of  # heavy

    return parser_of(_language().parser_class)


# ---- tokens ----------------------------------------------------------------------------------------------------------------


def _tokens_of(text: str) -> list[Token]:
    try:
        tokens = _language().tokenize(text)
    except TokenError:
        hint = "a text, a quoted name or a comment has no end."
        raise SqlProblem("42601", "the text cannot be read as SQL.", hint) from None
    if len(tokens) > MOST_TOKENS:
        raise SqlProblem("54000", f"a message must have at most {MOST_TOKENS:,} tokens; got {len(tokens):,}.")
    if any(_is_escaped(token, text) for token in tokens):
        # the tokenizer reads U&"…" as three tokens: nobody here would see which table or function it names
        raise SqlProblem("0A000", 'a name or text must not be written as U&"…".', "write its letters themselves.")
    return tokens


def _is_escaped(token: Token, text: str) -> bool:
    """Whether it is a name or a text whose letters may stand as numbers."""
    if token.token_type == TokenType.IDENTIFIER:
        return text[max(token.start - 2, 0) : token.start].lower() == "u&"
    return token.token_type == TokenType.UNICODE_STRING


def _split(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if part:
                yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


_QUOTED = frozenset({TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING})
_TEXTS = frozenset(
    {TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING, TokenType.BYTE_STRING, TokenType.NATIONAL_STRING}
)


def _words_of(tokens: Sequence[Token], text_start: int) -> tuple[Word, ...]:
    return tuple(
        Word(
            token.text if token.token_type in _QUOTED else token.text.lower(),
            token.token_type in _QUOTED,
            token.start - text_start,
        )
        for token in tokens[:200]
    )


# ---- statements ------------------------------------------------------------------------------------------------------------


_READING = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})
_TO_SHADOW = frozenset({"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"})
_MODES = frozenset(
    {
        "ISOLATION",
        "LEVEL",
        "SERIALIZABLE",
        "REPEATABLE",
        "READ",
        "COMMITTED",
        "UNCOMMITTED",
        "WRITE",
        "ONLY",
        "NOT",
        "DEFERRABLE",
    }
)
"""Of a transaction. A standby refuses some of them; where nothing changes all are alike, so none goes there."""

_NOTHING = frozenset({"UNLISTEN"})
_FETCHED = frozenset({"FETCH", "MOVE"})
_ABOUT = {
    "COPY": "COPY is not here: a question is asked with SELECT, and nobody reads or writes rows.",
    "DO": "DO is not here: no programs run in the door.",
    "CALL": "CALL is not here: no programs run in the door.",
    "LISTEN": "LISTEN and NOTIFY are not here.",
    "NOTIFY": "LISTEN and NOTIFY are not here.",
    "PREPARE": "PREPARE must be of a statement about catalogues.",
}
_COPY_HINT = "ADBC asks without it after adbc.postgresql.use_copy=false."


def _read(text: str, tokens: Sequence[Token], tables: frozenset[str]) -> Statement:
    words = _words_of(tokens, tokens[0].start)
    first = words[0].upper
    if first in _READING:
        return _read_reading(text, tokens, words, tables)
    if first in {"BEGIN", "START"} and len(words) > 1 and _are_modes(words[1:]):
        return Statement(StatementKind.SHADOW, "BEGIN" if first == "BEGIN" else "START TRANSACTION", words, at=None)
    if first == "SET" and len(words) > 2 and words[1].upper == "TRANSACTION" and _are_modes(words[1:]):
        return Statement(StatementKind.ANSWERED, text, words)
    if first in _TO_SHADOW or (first == "SET" and len(words) > 1 and words[1].upper in {"TRANSACTION", "CONSTRAINTS"}):
        return Statement(StatementKind.SHADOW, text, words)
    if first in {"SET", "SHOW", "RESET", "DISCARD", "DEALLOCATE"}:
        return Statement(StatementKind[first], text, words)
    if first in _NOTHING:
        return Statement(StatementKind.ANSWERED, text, words)
    if first == "EXPLAIN":
        return _read_explain(text, tokens, words, tables)
    if first == "DECLARE":
        return _read_declare(text, tokens, words, tables)
    if first in _FETCHED or first == "CLOSE":
        if len(words) < 2:
            raise SqlProblem("42601", f"{first} must name a cursor.")
        return Statement(StatementKind.CLOSE if first == "CLOSE" else StatementKind.FETCH, text, words, name=words[-1].text)
    if first == "EXECUTE":
        return Statement(StatementKind.SHADOW, text, words)
    if first == "PREPARE":
        inner = _after(tokens, {"AS"})
        if inner and _read(text, inner, tables).kind is StatementKind.SHADOW and _word(inner[0]) in _READING:
            return Statement(StatementKind.SHADOW, text, words)
    if first in _ABOUT:
        raise SqlProblem("0A000", _ABOUT[first], _COPY_HINT if first == "COPY" else None)
    shown = "this" if words[0].quoted else first[:40]
    raise SqlProblem("0A000", f"a statement must only read; got {shown}.", "SELECT, and what is around it, is served here.")


def _are_modes(words: Sequence[Word]) -> bool:
    """Whether words behind BEGIN, START or SET are TRANSACTION or WORK, or none, and modes of one."""
    named = 1 if words[0].upper in {"TRANSACTION", "WORK"} else 0
    return all(word.upper in _MODES or word.text == "," for word in words[named:])


def _read_reading(text: str, tokens: Sequence[Token], words: tuple[Word, ...], tables: frozenset[str]) -> Statement:
    _require_no_forbidden_call(tokens)
    recursive = any(_word(token) == "RECURSIVE" for token in tokens)
    tree = parse_one(text)
    if tree is None and recursive:
        raise _recursive()
    if tree is None:
        if _names(tokens) & tables:
            return Statement(StatementKind.QUESTION, text, words)  # the curator says where it cannot be read
        require_calls_end(None, tokens)
        return Statement(StatementKind.SHADOW, text, words)
    if _is_config(tree):
        return Statement(StatementKind.CONFIG, text, words)
    catalogues, others = _tables_in(tree, tables)
    if others and catalogues:
        raise SqlProblem(
            "42501", f"{refuse_touching().sentence[:-1]}; it also reads catalogues.", "ask about the two one after the other."
        )
    if recursive and (others or not catalogues):
        raise _recursive()
    if others:
        return Statement(StatementKind.QUESTION, text, words)
    if _has_row_type(tree, tables):
        raise refuse_touching()  # the shadow would make rows of it, or none
    if _writes(tree):
        raise SqlProblem("0A000", "a statement must only read; got INTO or FOR UPDATE.")
    require_calls_end(tree, tokens)
    return Statement(StatementKind.SHADOW, text, words)


def _read_explain(text: str, tokens: Sequence[Token], words: tuple[Word, ...], tables: frozenset[str]) -> Statement:
    place, analyzes = 1, False
    options = len(tokens) > 2 and tokens[1].token_type == TokenType.L_PAREN
    if options and _word(tokens[2]) not in _READING:
        depth = 0
        for place, token in enumerate(tokens[1:], 1):  # noqa: B007 -- where the options end
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            analyzes = analyzes or _word(token) in {"ANALYZE", "ANALYSE"}
            if depth == 0:
                break
        place += 1
    while place < len(tokens) and _word(tokens[place]) in {"ANALYZE", "ANALYSE", "VERBOSE"}:
        analyzes = analyzes or _word(tokens[place]) != "VERBOSE"
        place += 1
    inner = tokens[place:]
    if not inner:
        raise SqlProblem("42601", "EXPLAIN must be of a statement.")
    asked = text[inner[0].start - tokens[0].start :]
    of = _read(asked, inner, tables)
    if of.kind is StatementKind.QUESTION:
        if analyzes:
            raise SqlProblem(
                "0A000", "EXPLAIN of a question must not ANALYZE: that would ask it.", "EXPLAIN by itself is free."
            )
        return Statement(StatementKind.EXPLAIN, text, words, asked)
    if of.kind is not StatementKind.SHADOW:
        raise SqlProblem("0A000", "EXPLAIN must be of a statement that reads.")
    return Statement(StatementKind.SHADOW, text, words)


def _read_declare(text: str, tokens: Sequence[Token], words: tuple[Word, ...], tables: frozenset[str]) -> Statement:
    inner = _after(tokens, {"FOR"})
    if not inner or len(words) < 4:
        raise SqlProblem("42601", "DECLARE must be of a cursor FOR a SELECT.")
    asked = text[inner[0].start - tokens[0].start :]
    of = _read(asked, inner, tables)
    if of.kind is StatementKind.QUESTION:
        if any(_word(token) == "BINARY" for token in tokens[2 : tokens.index(inner[0])]):
            raise SqlProblem(
                "0A000", "a cursor over a question must not be BINARY.", "the protocol asks for bytes by itself."
            )
        return Statement(StatementKind.DECLARE, text, words, asked, words[1].text)
    if of.kind is not StatementKind.SHADOW:
        raise SqlProblem("0A000", "a cursor must be over a SELECT.")
    return Statement(StatementKind.SHADOW, text, words)


def _after(tokens: Sequence[Token], names: set[str]) -> Sequence[Token]:
    """Return the tokens behind the first word of these that stands outside of brackets."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and _word(token) in names:
            return tokens[place + 1 :]
    return []


def _word(token: Token) -> str:
    return "" if token.token_type in _QUOTED else token.text.upper()


# ---- what is in them -------------------------------------------------------------------------------------------------------


_SHORTEST = 50
"""Bytes of a long name that are left in the name of its arrays' type, at least."""

_CATALOGUES = frozenset({"pg_catalog", "information_schema", "pg_toast"})


def _tables_in(tree: exp.Expr, tables: frozenset[str]) -> tuple[bool, bool]:
    """Return whether catalogues are read, and whether anything else is; a name of WITH that no table has is neither."""
    known = {table.lower() for table in tables}
    given = {cte.alias.lower() for cte in tree.find_all(exp.CTE)} - known
    catalogues = others = False
    for table in tree.find_all(exp.Table):
        name, schema = table.name.lower(), table.db.lower()
        if not isinstance(table.this, exp.Identifier) or (not schema and name in given):
            continue
        if schema in _CATALOGUES or (not schema and name.startswith("pg_") and name not in known):
            catalogues = True
        else:
            others = True
    # WITH a study's table's name is the curator's to read, however it is used
    return catalogues, others or any(cte.alias.lower() in known for cte in tree.find_all(exp.CTE))


def _has_row_type(tree: exp.Expr, tables: frozenset[str]) -> bool:
    """Whether a type is that of a table's rows, or of arrays of them, whose name PostgreSQL makes with `_`."""
    known = {_stem(table) for table in tables}
    names = [name for one in tree.find_all(exp.DataType) if (name := _type_name(one))]
    return any(_stem(name) in known for name in names)


def _type_name(type_: exp.DataType) -> str:
    """Return the last name of a type that is none of PostgreSQL's that we know."""
    kind = type_.args.get("kind")
    if isinstance(kind, exp.Dot):
        return kind.expression.name
    return kind.name if isinstance(kind, exp.Expr) else str(kind or "")


def _stem(name: str) -> bytes:
    """Return what a table's name and that of its arrays' type have in common, which is cut where it is long."""
    return name.lower().lstrip("_").encode("utf-8", "replace")[:_SHORTEST]


def _names(tokens: Sequence[Token]) -> set[str]:
    return {name for token in tokens if token.token_type not in _TEXTS for name in (token.text, token.text.lower())}


def _writes(tree: exp.Expr) -> bool:
    return tree.find(exp.Into, exp.Lock, exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create) is not None


def _is_config(tree: exp.Expr) -> bool:
    """Whether a SELECT does nothing but set settings, or read what was set."""
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is not None or tree.find(exp.Select) is not tree:
        return False
    calls = [config_call(item) for item in tree.expressions]
    return bool(calls) and None not in calls and any(call is not None and len(call[1]) == 3 for call in calls)


def config_call(item: exp.Expr) -> tuple[str, tuple[str, ...]] | None:
    """Return the name of a column and the arguments of set_config or current_setting; None where it is something else."""
    call = item.unalias()
    if isinstance(call, exp.Dot) and call.this.name.lower() == "pg_catalog":
        call = call.expression
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in {"set_config", "current_setting"}:
        return None
    if not all(isinstance(one, exp.Literal | exp.Boolean) for one in call.expressions):
        return None
    arguments = tuple(str(one.this) for one in call.expressions)
    if len(arguments) != 3 and call.name.lower() == "set_config":
        return None
    return item.alias or call.name.lower(), arguments


_FORBIDDEN = frozenset(NOT_CALLED)
_STATISTICS = re.compile(r"pg_stat_get_\w+|pg_(stat_)?(reset|clear)\w*|lo_\w+|dblink\w*|pg_(read|ls)_\w+")


def _require_no_forbidden_call(tokens: Sequence[Token]) -> None:
    for token, following in pairwise(tokens):
        if following.token_type != TokenType.L_PAREN or token.token_type in _TEXTS:
            continue
        name = token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()
        if name in _FORBIDDEN or _STATISTICS.fullmatch(name):
            raise SqlProblem(
                "42501", f"{name}() must not be called here.", "catalogues are described, and nothing waits or runs."
            )


def _recursive() -> SqlProblem:
    rule = "WITH must not be RECURSIVE but over catalogues alone: nothing here goes on without end."
    return SqlProblem("0A000", rule)
