"""Redaction of secrets in statements, for the journal, logs and the history.

No analysis of a text can tell which of its values is the secret: `map(['password'], ['x'])`, `select 'x' password`. A
statement that names a secret anywhere is therefore kept without any of its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sqlshell.sql.analysis.lexed import Lexed, Redact, Sql, lexed
from sqlshell.sql.analysis.tokens import Token
from sqlshell.text import MASK

_NAMES: Final = (
    r"(?=[a-z?&;_.\-])(?:(?<!create api_)(?<!drop api_)(?<!describe api_)token(?!i[sz])|secret|passw|passphrase"
    r"|passcode|passkey|pwd|credential|authorization|jaas|bearer|webhook|signature"
    r"|cookie|mnemonic|crypt|hmac|pbkdf2"
    r"|(?<![a-z])(?:pass|pw|dsn|pin|otp|totp|cvv|cvc|identified|o?auth(?![.]))(?![a-z])"
    r"|(?:api|access|private|account|sas|shared|master|signing|aes|rsa|ssl|tls|ssh|client|server|service|consumer"
    r"|storage|keystore|license|host|session|symmetric|data|footer|column|parquet)[_.\- ]?keys?(?![a-z])"
    r"|key[_.\-]?(?:password|material|id|pem|data)(?![a-z])|connection[_.\- ]?string|user[_.\- ]?info"
    r"|auth[_.\- ]?(?:header|code)|[_.\-]key['\"]\s*=|[?&;](?:sig|key|code)=)"
)
"""Words that name a secret, as a part of any text in lower case: `kafka.sasl.password`, `?sig=…`."""

_STEMS: Final = (
    *("token", "secret", "pass", "pw", "credential", "auth", "jaas", "bearer", "webhook", "signature", "cookie"),
    *("mnemonic", "crypt", "hmac", "pbkdf2", "dsn", "pin", "otp", "cvv", "cvc", "identified", "key", "connection"),
    *("user", "sig=", "code="),
)
"""Each text in which _NAMES finds something contains one of these. Searching for them is a hundred times faster."""

_HAS_LOGIN: Final = r"(?a)[:/][^\s'\":/@]*+@"
"""The end of the user or password of a URL, also of one without a scheme or with a mistake in it."""

_LOGIN: Final = r"(?a)(:?//|[:/])[^\s'\"]{0,200}@"

_COMMAND: Final = re.compile(r"\s*+\\\S*+")

_LONGEST_NUMBER: Final = 3
"""Maximum number of digits that are kept of a statement that names a secret."""

_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "INSERT", "DELETE", "MERGE"})
"""Statements in which a bare word is a name; in the others it may be a value: `SET api_key = abc`."""

_BEFORE_VALUES: Final = frozenset({"TO", "IS", "IN", "LIKE", "BY", "VALUES", "DEFAULT", "THEN", "ELSE"})
_OPENING: Final = "([{"

NOT_RECORDED: Final = "the statement failed; its error message is not recorded because it may contain secrets"
_MAX_VALUES: Final = 50
_MIN_LENGTH: Final = 4
"""Minimum length of a value that is removed from a message wherever it occurs."""


def redactor(more: Sequence[str]) -> Redact:
    """Return redacted() with additional patterns for names of secrets. Raises re.error for a bad pattern."""
    if not more:
        return redacted
    names = re.compile("|".join(f"(?:{re.compile(pattern).pattern})" for pattern in more), re.I)
    return lambda sql: redacted(sql, names)


def names_secret(text: str, more: re.Pattern[str] | None = None) -> bool:
    """Return whether a text names a secret, also one that `more` finds, or contains the user or password of a URL."""
    if "@" in text and re.search(_HAS_LOGIN, text):
        return True
    if more is not None and any(more.search(word[0]) for word in re.finditer(r"[\w.\-]+", text)):
        return True
    folded = text.casefold()
    return any(stem in folded for stem in _STEMS) and re.search(_NAMES, folded) is not None


def redacted(sql: Sql, more: re.Pattern[str] | None = None) -> str:
    """Return the statement as written, or without its values if it names a secret anywhere.

    Its strings, comments and numbers of four or more digits are removed, everything in the parentheses of CREATE
    SECRET, and words that may be values. The names of tables, columns and options stay, and so do references to
    variables. Of a backslash command only the name stays. A text whose strings engines may read in different ways is
    cut off at its first quote.
    """
    statement = lexed(sql)
    return statement.answer((redacted, more), lambda: _redacted(statement, more), long=True)


def without_its_values(sql: str) -> str:
    """Return the beginning of a statement that names a secret elsewhere, without its values."""
    return _masked(lexed(sql))


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return options as they are stored and shown: `***` replaces values that are or contain a secret."""
    return {name: MASK if names_secret(f"'{name}'={value}") else value for name, value in options.items()}


def removed_values(sql: Sql, shown: str) -> list[str]:
    """Return the values of a statement that its redacted form `shown` does not contain."""
    given = lexed(sql).tokens
    kept = {token.text for token in lexed(shown)}
    values: dict[str, None] = {}
    for number, token in enumerate(given):
        before = given[number - 1].text if number else ""
        after = given[number + 1].text if number + 1 < len(given) else ""
        if token.value and token.text not in kept and (token.kind == "string" or before == "=") and after != "=":
            values |= {token.value: None, token.value.replace("'", "''"): None}
    return list(values)


def without_values(text: str, values: Sequence[str]) -> str:
    """Return an error message, or another text about a statement, without these values and without its excerpts."""
    if len(values) > _MAX_VALUES:
        return NOT_RECORDED
    text = text.partition("\nLINE ")[0]
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _MIN_LENGTH:
            text = text.replace(value, MASK)
        else:
            text = re.sub(rf"""(["'`]){re.escape(value)}\1""", f"'{MASK}'", text)
    return text


def _redacted(statement: Lexed, more: re.Pattern[str] | None) -> str:
    return _masked(statement) if names_secret(statement.text, more) else statement.text


def _masked(statement: Lexed) -> str:
    sql = statement.text
    if command := _COMMAND.match(sql):
        return f"{command[0]} {MASK}" if sql[command.end() :].strip() else sql
    given = statement.tokens
    shown, done = [], 0
    for start, end, left in _cuts(sql, given):
        if start >= done:
            shown += [sql[done:start], left]
            done = end
    return re.sub(_LOGIN, rf"\1{MASK}@", "".join([*shown, sql[done:]]))


_Cut = tuple[int, int, str]
"""A range of characters to remove, and the replacement."""


def _cuts(sql: str, given: Sequence[Token]) -> Iterator[_Cut]:
    """The values and comments, in order; a later one may lie within an earlier one."""
    unsure = _is_unsure(sql, given)
    opened: list[str] = []
    """The word before each bracket that is open; `listed` of them are VALUES."""
    listed = 0
    words: list[str] = []
    has_secret = False
    end = 0
    for number, token in enumerate(given):
        before = given[number - 1] if number else None
        if sql[end : token.start].strip():
            yield end, token.start, _comment(sql[end : token.start])
        end = token.end
        if unsure and token.kind in {"string", "name"}:
            yield token.start, len(sql), f"'{MASK}'"
            return
        if token.text == "\\":
            # A command follows the statement.
            yield token.start, len(sql), f"{_COMMAND.match(sql, token.start)[0]} {MASK}"  # type: ignore[index]
            return
        if token.text in _OPENING:
            if token.text == "(" and not opened and has_secret and words[0] not in _QUERIES:
                yield token.end, _closing(given, number, len(sql)), MASK
            opened.append(before.word if before is not None else "")
            listed += opened[-1] == "VALUES"
        elif token.text in ")]}":
            listed -= opened[-1:] == ["VALUES"]
            del opened[-1:]
        elif token.text == ";":
            words, has_secret = [], False
        elif token.kind == "string":
            if not _is_option(given, number, opened) and not _is_variable(sql, given, number):
                yield token.start, token.end, f"'{MASK}'"
        elif _is_value(given, number, opened[-1:], words, in_values=listed > 0):
            quote = token.text[0] if token.kind == "name" else ""
            yield token.start, token.end, f"{quote}{MASK}{quote}"
        words += [token.word] if token.word else []
        has_secret = has_secret or token.word == "SECRET"
    if sql[end:].strip():
        yield end, len(sql), _comment(sql[end:])


def _is_value(
    given: Sequence[Token], number: int, opened: Sequence[str], words: Sequence[str], *, in_values: bool
) -> bool:
    """Whether a number, a word or a text in double quotes, which some engines read as a string, may be a value."""
    token = given[number]
    if token.kind == "number":
        return len(token.text) > _LONGEST_NUMBER
    before, name = given[number - 1], given[number - 2] if number > 1 else None
    if not number or token.kind == "sign" or token.text[0] == "`":
        return False
    compared = before.text in {"=", ":", ">"} or before.word in _BEFORE_VALUES
    if token.kind == "name":
        around = f"{before.word} {''.join(opened)}"
        return compared or in_values or names_secret(around)
    if before.kind == "number" and before.end == token.start:
        # The digits of 0xFF are a word.
        return True
    called = number + 1 < len(given) and given[number + 1].text == "("
    assigned = compared and not called and name is not None and names_secret(name.value)
    return assigned and bool(words) and words[0] not in _QUERIES


def _comment(text: str) -> str:
    return f" /* {MASK} */{chr(10) if chr(10) in text or chr(13) in text else ' '}"


def _closing(given: Sequence[Token], number: int, end: int) -> int:
    """The start of the parenthesis that closes the one at `number`, or the end of the text."""
    depth = 0
    for token in given[number:]:
        depth += (token.text in _OPENING) - (token.text in ")]}")
        if not depth:
            return token.start
    return end


def _is_option(given: Sequence[Token], number: int, opened: Sequence[str]) -> bool:
    """Whether a string is the name of an option: WITH ('name' = …)."""
    return opened == ["WITH"] and number + 1 < len(given) and given[number + 1].text == "="


def _is_variable(sql: str, given: Sequence[Token], number: int) -> bool:
    """Whether a string is the name of a shell variable, as in `= :'name'`."""
    token = given[number]
    if number < 2 or sql[token.start - 1] != ":" or not token.value.isidentifier():
        return False
    return given[number - 2].text in {"=", ">", "(", ","} or given[number - 2].word in _BEFORE_VALUES


def _is_unsure(sql: str, given: Sequence[Token]) -> bool:
    """Whether engines may find the ends of strings in different places: one is unfinished, or contains a backslash."""
    if "\\'" in sql or '\\"' in sql:
        return True
    last = given[-1] if given else None
    if last is None or last.kind not in {"string", "name"} or last.end < len(sql):
        return False
    return len(last.text) < 2 or (last.text[0] not in "$eE" and last.text[-1] != last.text[0])
