"""Redaction of secrets in statements, for the journal, logs and the history.

No analysis of a text can tell which of its values is the secret: `map(['password'], ['x'])`, `select 'x' password`. A
statement that names a secret anywhere, in any spelling, is therefore kept without any of its values.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from sqlshell.mask import MASK
from sqlshell.sql.analysis.lexed import Lexed, Redact, Sql, lexed, once_per_statement
from sqlshell.sql.analysis.tokens import Token, tokens
from sqlshell.sql.script.blanks import FOREIGN, ambiguous_characters

_QUOTED: Final = f"'{MASK}'"
NAMES: Final = re.compile(
    r"token(?!i[sz])|secret|passw|passphrase|passcode|passkey|credential|authorization|jaas|bearer|webhook|signature"
    r"|mnemonic|(?<![a-z])(?:pass|pwd|pw|dsn|pin|otp|totp|cvv|cvc)(?![a-z])|(?<![a-z])o?auth(?![a-z])"
    r"|(?:api|access|private|account|sas|shared|encrypt(?:ion)?|decrypt(?:ion)?|master|signing|hmac|aes|rsa|ssl|tls|ssh"
    r"|client|server|service|consumer|storage|license|host|session|symmetric|data|footer|column)[_.\- ]?keys?(?![a-z])"
    r"|parquet_key|key[_.\- ]?(?:password|material|id|pem|data)|(?<=[.])key\Z|sas[_.\- ]?url|connection[_.\- ]?string"
    r"|auth[_.\- ]?(?:header|code|key|user)|user[_.\- ]?info|sasl[_.\- ]?user|(?<![a-z])identified(?![a-z])|cookie",
    re.I,
)
"""Names of options with secret values: `'kafka.sasl.password' = '…'`, `ACCESS_KEY_ID '…'`."""

STEMS: Final = (
    *("auth", "bearer", "connection", "cookie", "credential", "cvc", "cvv", "dsn", "identified", "jaas", "key"),
    *("mnemonic", "otp", "pass", "pin", "pw", "sas", "secret", "signature", "token", "user", "webhook"),
)
"""Each name that NAMES finds contains one of these. Searching for them is a hundred times faster."""

OPTIONS: Final = re.compile(rf"(?<!\w)with[\s{FOREIGN}]*+(?:\(|--|/\*)", re.I)
"""Words that begin a list of options; a comment may precede its parenthesis."""

_BLANK: Final = r" \t\r\n\f\v"
_BLANK_CHARACTERS: Final = " \t\r\n\f\v"
_LOGIN: Final = re.compile(
    rf"://(?:[^{_BLANK}/@:'\"]{{0,999}}+:[^{_BLANK}@'\"]{{0,999}}+@|[^{_BLANK}/@:'\"?#]{{1,999}}+@)"
)
"""A URL with a password or token."""

_ANY_LOGIN: Final = re.compile(rf"://[^{_BLANK}'\"]{{1,999}}@")
_MISTYPED: Final = re.compile(r"\A(\s*+\\c(?:onnect)?\s++)(?!.*://)(?=['\"]?https?[/\\]|[^@]*:).*@", re.I | re.S)
"""The mistyped URL of \\c with a token: `\\c https//:TOKEN@host`."""

_USER: Final = re.compile(rf"[{_BLANK}]*+[^{_BLANK}:/@'\"]{{1,200}}+:[^{_BLANK}@'\"]{{1,200}}+@[\w(\[.]")
"""`user:password@host`, without a scheme."""

_PARAMETER: Final = re.compile(rf"[?&;](?:sig|signature|key|apikey|code|auth|pass|pwd|pw)=[^&;{_BLANK}]", re.I)
_KEY: Final = re.compile(r"(?<![a-z])\w{0,64}+\.key(?![\w.])", re.I)

_OTHER_KEY: Final = re.compile(
    r"(?!.*(?:partition|primary|foreign|sort|cluster(?:ing)?|dist(?:ribution)?|join|group|cache|order|lookup|surrogate"
    r"|natural|business|row|record|message|map|json|hash|unique|cell)[_.\- ]?key\Z)"
    r"(?:.*[_.\- ](?i:key)|.*[a-z0-9]Key)\Z"
)
"""Other names that end in key, if they are names of options or members."""

_CIPHER: Final = re.compile(r"(?:\w*_)?(?:en|de)crypt(?:_\w*)?|\w*hmac\w*|[bs]?crypt|pbkdf2\w*|jwt_\w+", re.I)
"""Functions with a key as an argument."""

_SHAPES: Final = re.compile(
    r"\beyJ[\w-]{5,}+\.eyJ[\w-]{2,}+(?:\.[\w-]*+)?|\bgh[opsur]_\w{4,}+|\bgithub_pat_\w{4,}+|\bglpat-[\w-]{8,}+"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bxox[abeoprs]-[\w-]{6,}+|\b[rs]k_(?:live|test)_\w{8,}+|\bAIza[\w-]{35}"
    r"|\bhooks\.slack\.com/[^\s'\"]++"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END)[^'\"])*+(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)
"""Formats of known tokens and keys."""

SHAPE_STEMS: Final = (
    *(
        "eyJ",
        "gho_",
        "ghp_",
        "ghs_",
        "ghu_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "AKIA",
        "ASIA",
        "xox",
        "k_live_",
        "k_test_",
    ),
    *("AIza", "hooks.slack.com/", "-----BEGIN "),
)
"""Each text that _SHAPES finds contains one of these."""

_POSSIBLE_SECRET: Final = re.compile(r"crypt|hmac|pbkdf2|jwt_|[a-z0-9_.\- ]key", re.I)

_LOGGED_IN: Final = re.compile(
    r"(?:\s|\A)(?:-u|--(?:proxy-)?user|--auth)[\s=]*+['\"]?(?=[^\s:'\"]{0,200}+:\S)"
    r"|\b(?:mysql\w*|mariadb[\w-]*|sshpass|sqlcmd|bcp|redis-cli|7z|zip|unzip|ldap\w+|mongo\w*|smbclient|tsql|isql"
    r"|clickhouse[\w-]*)\b[^|;&\n]{0,500}?\s-{1,2}[apw](?=\s*+\S)",
    re.I,
)
"""Options of programs that are followed by a password."""

_COMMAND_NAME: Final = re.compile(r"\s*+(?:\\\S*+)?")

_DEEPEST: Final = 4
"""Maximum depth of strings inside strings."""

_GIVEN: Final = re.compile(r"[\w.\-]{0,64}+[\s'\"\\\])]{0,64}+[=:>][\s'\"\\]{0,64}+(?:[^\s'\"%\\]|%(?!\Z|['\"]))")
"""The text that follows a secret name inside a string that also contains the value."""

_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|([bfnrtv])|(.))", re.S
)
"""An escape of E'…' or of JSON: a code point in hexadecimal or octal digits, a blank, or another character."""

_CODE_POINT: Final = re.compile(r"\\(?:\+([0-9a-fA-F]{6})|([0-9a-fA-F]{4}))")
"""An escape of U&'…'."""

_SPELLED: Final = re.compile(r"[@%&\\=]")
"""Occurs in a text that means other characters, or that contains a login or a parameter."""

_ENCODED: Final = re.compile(r"%[0-9a-fA-F]{2}|&(?:#|\w+;)|\\")
_BLANKS: Final = str.maketrans("", "", _BLANK_CHARACTERS)
_PUNCTUATION: Final = str.maketrans("", "", f"{_BLANK_CHARACTERS}'\"`|+,()[]$")
"""Text that may stand inside a name whose letters are in several strings."""

_CAMEL_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INVISIBLE: Final = frozenset({"Mn", "Me", "Cf"})
"""Categories of characters that a name may contain without looking different."""

_KEYLIKE: Final = re.compile(r"[\w.\-:/$@\[\]]{1,200}")
_KINDS: Final = frozenset({"OR", "REPLACE", "PERSISTENT", "TEMPORARY", "TEMP", "LOCAL"})
_SETTING_SECRETS: Final = frozenset({"CREATE", "UPDATE", "ALTER"})
_JOINTS: Final = frozenset({"=", ":", "IS", "BY", ">", "TO"})
_ENDS: Final = frozenset(
    {
        *("AND", "OR", "FROM", "WHERE", "GROUP", "ORDER", "LIMIT", "ON", "JOIN", "SELECT", "UNION", "THEN", "ELSE"),
        *("END", "WHEN", "HAVING", "RETURNING", "SET", "LEFT", "RIGHT", "INNER", "CROSS", "QUALIFY", "WINDOW"),
    }
)
"""Words that begin something other than the value of a secret."""

_OPTIONS: Final = frozenset({"ATTACH", "COPY", "EXPORT", "PRAGMA", "SET"})
"""Statements in which `name: value` and `name = value` are options with any name."""

_COMPARES: Final = frozenset({"=", "<", ">", "!", "~"})
_LONGEST_NUMBER: Final = 3
"""Maximum characters of a number that stays, if it is not the value of a secret name."""

_RELATIONS: Final = frozenset(
    {"TABLE", "VIEW", "INTO", "FROM", "JOIN", "EXISTS", "STREAM", "CHANGELOG", "ON", "UPDATE", "DATABASE", "SCHEMA"}
)
_OBJECT_VERBS: Final = frozenset({"CREATE", "DROP", "DESCRIBE"})
"""CREATE API_TOKEN and its like: the service makes the value of the token, so the statement contains no secret."""

_BEFORE_VALUES: Final = frozenset(
    {"TO", "IS", "IN", "LIKE", "ILIKE", "VALUES", "DEFAULT", "RETURN", "BETWEEN", "THEN", "ELSE"}
)
"""Words before a value; a text in double quotes after another word is a name."""

_OPEN: Final = {"(": ")", "[": "]", "{": "}"}


def redactor(more: Sequence[str]) -> Redact:
    """A variant of redacted() with additional patterns for secret names. Raises re.error for an invalid pattern."""
    if not more:
        return redacted
    names = re.compile("|".join([NAMES.pattern, *(f"(?:{re.compile(pattern).pattern})" for pattern in more)]), re.I)
    return lambda sql: redacted(sql, names)


def redacted(sql: Sql, names: re.Pattern[str] = NAMES) -> str:
    """The statement as written, without its secrets.

    If the statement contains the name of a secret, in any place and spelling, or a URL with a password, all its
    strings, comments and numbers of four or more characters are removed, and all values of CREATE SECRET. The names of
    tables, columns and options stay. If engines read the text differently, it is cut off at its first string.
    """
    statement = lexed(sql)
    return statement.answer((redacted, names), lambda: _redacted(statement, names, 0), long=True)


def redacted_options(sql: Sql) -> str:
    """A statement whose text is data, without the secrets in its options: each `WITH (…)` is redacted as in redacted().

    If a list might begin inside what looks like a string, the whole statement is redacted.
    """
    statement = lexed(sql)
    text = statement.text
    if not OPTIONS.search(text) or not may_hold_secrets(statement):
        return text
    given = statement.tokens
    lists = [*_lists(given)]
    if _unsure(text, given) or len(lists) < sum(1 for _ in OPTIONS.finditer(text)):
        return redacted(statement)
    cuts = []
    for begun, ended in lists:
        part = text[begun : ended or len(text)]
        if (shown := redacted(part)) != part:
            cuts.append((begun, ended or len(text), shown))
    return _without(text, cuts)


def _lists(given: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Start and end of each `WITH (…)`; the end is 0 if it is not closed."""
    begun, depth = -1, 0
    for token, after in zip(given, [*given[1:], None], strict=True):
        if begun >= 0:
            depth += (token.text == "(") - (token.text == ")")
            if token.text == ")" and not depth:
                yield begun, token.end
                begun = -1
        elif token.word == "WITH" and after is not None and after.text == "(":
            begun = token.start
    if begun >= 0:
        yield begun, 0


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options as they are stored and shown: `***` replaces values that are or contain a secret."""
    return {name: MASK if _is_secret_option(name, value) else value for name, value in options.items()}


def _is_secret_option(name: str, value: str) -> bool:
    if _is_named(name, NAMES) or _OTHER_KEY.match(name) or _has(value, SHAPE_STEMS):
        return True
    return _holds(value, NAMES)


@once_per_statement
def may_hold_secrets(statement: Lexed) -> bool:
    """Whether redacted() may change the statement; False if it certainly does not."""
    sql = statement.text
    if "@" in sql or _ENCODED.search(sql) or _has(sql, SHAPE_STEMS):
        return True
    plain = sql if sql.isascii() else _plain(sql)
    if _has(plain.lower().translate(_PUNCTUATION), STEMS):
        return True
    return _POSSIBLE_SECRET.search(sql) is not None or _PARAMETER.search(sql) is not None


def removed_values(sql: Sql, shown: str) -> list[str]:
    """The values of a statement that its redacted form `shown` does not contain."""
    kept = {token.text for token in lexed(shown)}
    values: dict[str, None] = {}
    given = lexed(sql).tokens
    for number, token in enumerate(given):
        after = given[number + 1].text if number + 1 < len(given) else ""
        valued = token.kind == "string" or (number and given[number - 1].text == "=" and token.kind != "sign")
        if valued and after != "=" and token.value and token.text not in kept:
            values |= {token.value: None, token.value.replace("'", "''"): None}
    return list(values)


def without_values(text: str, values: Sequence[str]) -> str:
    """A text about a statement, such as its error message, without these values, complete or truncated. An excerpt of
    the statement is removed as a whole.
    """
    text = text.partition("\nLINE ")[0]
    if len(values) > _MOST_VALUES:
        return NOT_RECORDED
    for value in values:
        if len(value) < _SHORTEST:
            text = re.sub(rf"""(["'`]){re.escape(value)}\1""", _QUOTED, text)
            continue
        for size in (len(value), *range(min(len(value) - 1, _CUT_OFF), _SHORTEST - 1, -1)):
            if value[:size] in text:
                text = _without_beginnings(text, value, size)
                break
    return text


def _without_beginnings(text: str, value: str, least: int) -> str:
    """A text without each beginning of a value that has at least this many characters."""
    pieces: list[str] = []
    done = 0
    while (at := text.find(value[:least], done)) >= 0:
        end = at + least
        while end < min(len(text), at + len(value)) and text[end] == value[end - at]:
            end += 1
        pieces += [text[done:at], MASK]
        done = end
    return "".join([*pieces, text[done:]])


NOT_RECORDED: Final = "the statement failed; its error message is not recorded because it may contain secrets"
_SHORTEST: Final = 4
_CUT_OFF: Final = 100
"""Minimum number of characters of a truncated value that are recognized."""

_MOST_VALUES: Final = 50


def _redacted(statement: Lexed, names: re.Pattern[str], depth: int) -> str:
    sql = statement.text
    if _has(sql, SHAPE_STEMS):
        sql = _SHAPES.sub(MASK, sql)
    if (backslash := sql.find("\\")) > 0 and (option := _LOGGED_IN.search(sql, backslash)):
        # A command follows the statement.
        sql = f"{sql[: option.end()]}{MASK}"
    if sql != statement.text:
        statement = lexed(sql)
    if sql.lstrip().startswith("\\"):
        return _command(statement, names, depth)
    if names is NAMES and not may_hold_secrets(statement):
        return sql
    given = statement.tokens
    if given and given[0].text == "\\":
        return _command(statement, names, depth)
    if not _is_suspicious(sql, given, names):
        return _hidden_logins(sql)
    # If two begin at the same position, the longer one contains the other.
    unsorted = [*_values(sql, given, names), *_comments(sql, given), *_created(given, len(sql))]
    cuts = sorted(unsorted, key=lambda cut: (cut[0], -cut[1]))
    if cuts and _unsure(sql, given):
        first = next((token.start for token in given if token.kind in {"string", "name"}), len(sql))
        start, _, left = cuts[0]
        return _hidden_logins(f"{sql[: min(first, start)]}{left if start < first else _QUOTED}")
    return _hidden_logins(_without(sql, cuts))


def _is_suspicious(sql: str, given: Sequence[Token], names: re.Pattern[str]) -> bool:
    """Whether the name of a secret occurs in a statement: as a word, alias or comment, in a string or in several."""
    strings: list[str] = []
    for token, before, opened, first, after in _placed(given):
        if token.kind in {"number", "sign"}:
            continue
        if token.kind == "string":
            strings.append(token.value)
            if not _may_name(strings[-1], names):
                continue
            if _mentions(strings[-1], names):
                return True
        elif token.kind == "name" and _mentions(token.value, names):
            return True
        if token.word == "API_TOKEN" and before is not None and before.word in _OBJECT_VERBS:
            continue
        if token.word == "UESCAPE" or _is_secret(token, after, names, opened, first):
            return True
    joined = "".join(strings)
    if _may_name(joined, names) and _is_named(joined, names):
        return True
    return any(_mentions(sql[a:b], names) for a, b in _between(sql, given))


def _placed(given: Sequence[Token]) -> Iterator[tuple[Token, Token | None, Sequence[str], str, Token | None]]:
    """Each token with the one before it, the words before the open brackets, the first word of its statement, and the
    token after it. A closing bracket is given after it has closed.
    """
    opened: list[str] = []
    first = ""
    for number, token in enumerate(given):
        before = given[number - 1] if number else None
        if token.kind == "sign":
            if token.text in _OPEN:
                opened.append("COLUMNS" if _lists_columns(given, number) else before.word if before else "")
            elif token.text in ")]}" and opened:
                opened.pop()
            elif token.text == ";" and not opened:
                first = ""
        first = first or token.word
        yield token, before, opened, first, given[number + 1] if number + 1 < len(given) else None


def _lists_columns(given: Sequence[Token], number: int) -> bool:
    """Whether the bracket at `number` follows the name of a table, as in INSERT INTO a.t (."""
    at = number - 1
    while at > 1 and given[at].kind in {"word", "name"} and given[at - 1].text == ".":
        at -= 2
    return at > 0 and given[at].kind in {"word", "name"} and given[at - 1].word in _RELATIONS


def _may_name(text: str, names: re.Pattern[str]) -> bool:
    """Whether a string may contain a name. This takes a small part of the time of a search, which counts where a
    statement has 100,000 strings.
    """
    if names is not NAMES or not text.isascii() or _SPELLED.search(text):
        return True
    return _has(text.lower().translate(_BLANKS), STEMS)


def _mentions(text: str, names: re.Pattern[str]) -> bool:
    """Whether a string or comment contains the name of a secret, or a URL with a password."""
    for form in _spellings(text):
        if names.search(form) or _KEY.search(form) or _PARAMETER.search(form):
            return True
        if "@" in form and (_LOGIN.search(form) or _USER.match(form)):
            return True
    return False


def _is_named(text: str, names: re.Pattern[str]) -> bool:
    return any(names.search(form) for form in _spellings(text))


def _spellings(text: str) -> Iterator[str]:
    """A text, and what may be meant by it: without escapes, blanks, accents and invisible characters."""
    yield text
    plain = text if text.isascii() else _plain(text)
    if plain is not text:
        yield plain
    if _ENCODED.search(plain):
        for read in (_without_escapes(plain), _CODE_POINT.sub(_character, plain)):
            # The text may have been encoded twice.
            once = unquote(html.unescape(read))
            plain = unquote(html.unescape(_without_escapes(once)))
            yield once
            yield plain
            yield plain.translate(_BLANKS)
    else:
        squeezed = plain.translate(_BLANKS)
        if len(squeezed) < len(plain):
            yield squeezed
    humps = _CAMEL_CASE.sub("_", plain)
    if len(humps) > len(plain):
        yield humps


def _plain(text: str) -> str:
    """A text in the letters that it looks like: full-width letters and accents are replaced."""
    return "".join(char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char) not in _INVISIBLE)


def _without_escapes(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    """The character of an escape; a blank for one that is invalid."""
    number, group = match.lastindex, match.group(match.lastindex or 0)
    if match.re is _ESCAPE and number == 5:
        return " "
    if match.re is _ESCAPE and number == 6:
        return group
    code = int(group, 8 if match.re is _ESCAPE and number == 4 else 16)
    return chr(code) if code < 0x110000 else " "


def _has(text: str, stems: Sequence[str]) -> bool:
    # A loop: this is asked for each statement, and a generator takes longer than the search.
    for stem in stems:  # noqa: SIM110
        if stem in text:
            return True
    return False


_Cut = tuple[int, int, str]
"""A range of characters to remove, and the replacement."""


def _without(sql: str, cuts: Sequence[_Cut]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, left in cuts:
        if start >= done:
            pieces += [sql[done:start], left]
            done = end
    return "".join([*pieces, sql[done:]])


def _hidden_logins(text: str) -> str:
    return _LOGIN.sub(f"://{MASK}@", text)


def _unsure(sql: str, given: Sequence[Token]) -> bool:
    """Whether another engine may find the ends of strings elsewhere."""
    if "\\'" in sql or '\\"' in sql:
        return True
    last = given[-1] if given else None
    if last is not None and last.kind in {"string", "name"} and last.end == len(sql):
        closed = last.text[-1] == last.text[0] or last.text[0] in "$eE"
        if len(last.text) < 2 or not closed:
            return True
    return bool(ambiguous_characters(sql))


def _command(statement: Lexed, names: re.Pattern[str], depth: int) -> str:
    """The redaction of a backslash command: everything after a secret name, or that contains one, is removed."""
    sql = statement.text
    ends = [_end(sql, statement.tokens, names, depth)]
    # The arguments of a command have no comments: text that begins like one may be a part of a value.
    uncommented = sql.replace("--", "__").replace("/*", "__")
    if uncommented != sql:
        ends.append(_end(sql, list(tokens(uncommented)), names, depth))
    if "\\'" in sql or '\\"' in sql:
        ends.append(_end(sql, list(tokens(uncommented, backslash=True)), names, depth))
    if option := _LOGGED_IN.search(sql):
        ends.append(option.end())
    end = min(ends)
    if end == len(sql) and _is_named(sql, names):
        # The name is in a spelling that only a part of the readers knows.
        end = len(sql) if names.search(sql) else len(sql) - len(_COMMAND_NAME.sub("", sql, count=1))
        end = next((token.start for token in statement.tokens if token.kind in {"string", "name"}), end)
    blank = " " if end and not sql[end - 1].isspace() and sql[end : end + 1].isspace() else ""
    shown = sql[:end] + (f"{blank}{MASK}" if sql[end:].strip() else "")
    return _MISTYPED.sub(rf"\1{MASK}@", _ANY_LOGIN.sub(f"://{MASK}@", shown))


def _end(sql: str, given: Sequence[Token], names: re.Pattern[str], depth: int) -> int:
    """The end of the part of a command that contains no secret."""
    for number, token in enumerate(given):
        if token.kind in {"string", "name"}:
            if _holds(token.value, names):
                return token.start
            inner = token.value
            if inner and (depth > _DEEPEST or _redacted(lexed(inner), names, depth + 1) != inner):
                return token.start
            if token.text[0] == "`" and (named := names.search(inner)) and inner[named.end() :].strip(" '\""):
                return token.start
        if number > 1 and _names(token, names):
            compared = any(before.text in _COMPARES for before in given[2:number])
            return given[2].start if compared else token.end
    return len(sql)


class _Reading:
    """The range in which numbers and words are the value of a secret name."""

    def __init__(self, name: Token, depth: int, *, bare: bool) -> None:
        self.name = name
        self.depth = depth
        self.bare = bare
        """Whether a word may be a value."""
        self.joined = False

    def takes(self, token: Token, before: Token | None) -> bool:
        """Whether a token other than a string is a value."""
        if token.kind == "number":
            return self.joined or before is self.name
        return self.bare and self.joined and token.kind in {"word", "name"}


def _values(sql: str, given: Sequence[Token], names: re.Pattern[str]) -> Iterator[_Cut]:
    """All strings, the numbers that may be secrets, and the words that are the value of a secret name."""
    reading: _Reading | None = None
    for number, (token, before, opened, first, after) in enumerate(_placed(given)):
        text, depth = token.text, len(opened)
        if reading is not None and (depth < reading.depth or (text in {",", ";"} and depth == reading.depth)):
            reading = None
        distinct = token.word == "FROM" and before is not None and before.word == "DISTINCT"
        if reading is not None and token.word in _ENDS and not distinct and depth == reading.depth:
            reading = None
        if token.kind == "string":
            named = (
                opened[-1:] == ["WITH"] and after is not None and after.text == "=" and not _holds(token.value, names)
            )
            if not named and not _is_variable(sql, given, number):
                yield token.start, token.end, _QUOTED
                continue
        if reading is not None and (text in _JOINTS or token.word in _JOINTS):
            reading.joined = True
        elif reading is not None and reading.takes(token, before):
            yield token.start, token.end, MASK
        elif token.kind == "number":
            # The digits of 0xFF are a word.
            end = after.end if after is not None and after.kind == "word" and after.start == token.end else token.end
            if end - token.start > _LONGEST_NUMBER:
                yield token.start, end, MASK
        elif token.kind == "name" and (_holds(token.value, names) or not _is_name(given, number, opened, names)):
            yield token.start, token.end, f"{text[0]}{MASK}{text[0]}"
        elif reading is None and _is_secret(token, after, names, opened, first):
            bare = first in {"SET", "ATTACH", "ALTER"} or token.word == "IDENTIFIED" or opened[-1:] == ["WITH"]
            reading = _Reading(token, depth, bare=bare)


def _is_name(given: Sequence[Token], number: int, opened: Sequence[str], names: re.Pattern[str]) -> bool:
    """Whether a text in double quotes is certainly a name: some engines read it as a string."""
    token, before = given[number], given[number - 1] if number else None
    after = given[number + 1].text if number + 1 < len(given) else ""
    if token.text[0] == "`" or before is None or "." in {before.text, after}:
        return True
    if opened[-1:] == ["WITH"] and after == "=":
        return True
    if before.kind == "word":
        if before.word == "BY":
            return number > 1 and given[number - 2].word in {"ORDER", "GROUP", "PARTITION"}
        return before.word not in _BEFORE_VALUES and not names.search(before.text)
    if before.text in {"(", ","}:
        return not opened or opened[-1] == "COLUMNS"
    return before.kind != "sign" or before.text in ")*"


def _is_secret(token: Token, after: Token | None, names: re.Pattern[str], opened: Sequence[str], first: str) -> bool:
    """Whether a token is a secret name at its position."""
    follows = after.text if after is not None else ""
    if opened[-1:] == ["WITH"] and follows == "=" and names.search(token.value):
        return True
    if token.kind == "word" and _CAMEL_CASE.search(token.text) and names.search(_CAMEL_CASE.sub("_", token.text)):
        return True
    if _names(token, names):
        # Before a dot, auth is a schema, not a column.
        return not (follows == "." and token.kind != "string" and token.value.lower() == "auth")
    if token.kind != "string" and follows == "(" and _CIPHER.fullmatch(token.value):
        return True
    if follows not in {":", "="} or len(token.text) > 200 or not _OTHER_KEY.match(token.value):
        return False
    return token.kind == "string" or first in _OPTIONS or "{" in opened


def _is_variable(sql: str, given: Sequence[Token], number: int) -> bool:
    """Whether a string is the name of a shell variable, as in `= :'name'`."""
    token = given[number]
    if number < 2 or sql[token.start - 1] != ":" or not token.value.isidentifier():
        return False
    return given[number - 2].text in {"=", ">", "(", ","} or given[number - 2].word in {"TO", "BY", "IS"}


def _created(given: Sequence[Token], end: int) -> Iterator[_Cut]:
    """The values in the parentheses of CREATE SECRET: each may be secret, whatever its name."""
    begun, depth = 0, 0
    for number, token in enumerate(given):
        if depth:
            depth += (token.text == "(") - (token.text == ")")
            if not depth:
                yield begun, token.start, MASK
        elif token.text == "(" and _creates_secret(given, number):
            begun, depth = token.end, 1
    if depth:
        yield begun, end, MASK


def _creates_secret(given: Sequence[Token], number: int) -> bool:
    """Whether the parenthesis at `number` opens the options of a CREATE SECRET (`CREATE TEMP SECRET name IN file (`) or
    UPDATE SECRET.
    """
    words: list[str] = []
    for token in given[max(0, number - 12) : number]:
        words = [] if token.text == ";" else [*words, token.word]
    while begun := next((at for at, word in enumerate(words) if word in _SETTING_SECRETS), -1) + 1:
        words = words[begun:]
        if "SECRET" in words and _KINDS.issuperset(words[: words.index("SECRET")]):
            return True
    return False


def _between(sql: str, given: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Start and end of what is between tokens, if it is more than blanks: the comments."""
    starts, ends = [0, *(token.end for token in given)], [*(token.start for token in given), len(sql)]
    for start, end in zip(starts, ends, strict=True):
        if end - start > 1 and not sql[start:end].isspace():
            yield start, end


def _comments(sql: str, given: Sequence[Token]) -> Iterator[_Cut]:
    """The comments. They are removed as a whole, because their syntax is unknown."""
    for start, end in _between(sql, given):
        line = "\n" if "\n" in sql[start:end] or "\r" in sql[start:end] else ""
        yield start, end, f" /* {MASK} */{line or ' '}"


def _holds(text: str, names: re.Pattern[str]) -> bool:
    """Whether a string contains a secret: `host=h password=p`, `{"token": "t"}`, `https://user:password@host`."""
    return any(_gives(form, names) for form in _spellings(text))


def _gives(value: str, names: re.Pattern[str]) -> bool:
    if "@" in value and (("://" in value and _LOGIN.search(value)) or _USER.match(value)):
        return True
    if not ("=" in value or ":" in value or ">" in value):
        return False
    if _PARAMETER.search(value):
        return True
    return any(_GIVEN.match(value, match.end()) for match in (*names.finditer(value), *_KEY.finditer(value)))


def _names(token: Token, names: re.Pattern[str]) -> bool:
    """Whether a token is a secret name, and not a text that only contains one."""
    if len(token.text) > 200:
        return False
    value = token.value
    if token.kind == "string" and not _KEYLIKE.fullmatch(value):
        return False
    return names.search(value) is not None
