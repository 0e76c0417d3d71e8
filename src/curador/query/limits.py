"""What is checked of the text before it is parsed: its size, its brackets, that it is one SELECT.

The tokens that are counted are those the parser then reads, so that no text is short for one and long for the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from curador.query.messages import Text, invalid, quoted
from curador.query.wording import check_wording

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.tokenizer_core import Token

MOST_BYTES = 16_384
MOST_TOKENS = 5_000
MOST_BRACKETS = 32

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_BEGINNINGS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}
_WORDS = {TokenType.VAR, TokenType.IDENTIFIER}


def tokens_of(text: str, place: Text, dialect: Dialect) -> list[Token]:
    """Return the tokens of one statement without its semicolon; refuse a text that breaks a limit."""
    _check_bytes(text, place)
    try:
        tokens = dialect.tokenize(text)
    except TokenError as problem:
        raise invalid(
            None,
            "the text must be closed: a string, a quoted name or a comment has no end",
            "comments nest: /* a /* b */ c */ is one comment.",
        ) from problem
    if len(tokens) > MOST_TOKENS:
        raise invalid(None, f"a question must have at most {MOST_TOKENS:,} tokens; got {len(tokens):,}")
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise invalid(None, "the text must be a SELECT; it is empty", "SELECT COUNT(*) FROM a_table")
    _check_tokens(tokens, place)
    check_wording(tokens, place)
    return tokens


def _check_bytes(text: str, place: Text) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as problem:
        raise invalid(
            place.place(problem.start), "the text must be Unicode; half of a surrogate pair stands here"
        ) from problem
    if size > MOST_BYTES:
        raise invalid(None, f"a question must have at most {MOST_BYTES:,} bytes; got {size:,}")
    if "\0" in text:
        raise invalid(place.place(text.index("\0")), "the text must have no NUL character")


def _check_tokens(tokens: list[Token], place: Text) -> None:
    first = tokens[0]
    if first.token_type not in _BEGINNINGS:
        raise invalid(
            place.place(first.start),
            f"a question must be a SELECT; this begins with {quoted(first.text)}",
            "only reading is possible: SELECT … FROM …, with WITH in front if need be.",
        )
    depth = 0
    before = first
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            depth += 1
            if depth > MOST_BRACKETS:
                raise invalid(place.place(token.start), f"brackets must be at most {MOST_BRACKETS} deep")
        elif kind in _CLOSING:
            depth -= 1
            if depth < 0:
                raise invalid(place.place(token.start), f"{quoted(token.text)} must close a bracket; none is open")
        elif kind == TokenType.SEMICOLON:
            raise invalid(place.place(token.start), "a question must be one statement", "ask them one after the other.")
        elif kind in _WORDS and before.token_type == TokenType.NUMBER and before.end + 1 == token.start:
            # 0x1F would be read as the number 0 with the alias x1F
            raise invalid(place.place(before.start), "a number must be written in decimal digits")
        before = token
    if depth:
        raise invalid(
            place.place(before.start), f"every bracket must be closed; {depth} {'is' if depth == 1 else 'are'} open"
        )
