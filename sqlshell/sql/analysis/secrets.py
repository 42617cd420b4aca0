"""Redaction of secrets in statements, for the journal, logs and the history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sqlshell.mask import MASK
from sqlshell.sql.analysis.lexed import Lexed, Redact, Sql, lexed, once_per_statement
from sqlshell.sql.analysis.tokens import Token, tokens
from sqlshell.sql.identifiers import literal
from sqlshell.sql.script.blanks import FOREIGN, ambiguous_characters

_QUOTED: Final = f"'{MASK}'"
NAMES: Final = re.compile(
    r"token(?!i[sz])|secret|passw|passphrase|credential|authorization|jaas|bearer|(?<![a-z])(?:pass|pwd|pw|dsn|auth)(?![a-z])"
    r"|webhook"
    r"|(?:api|access|private|account|sas|shared|encrypt(?:ion)?|decrypt(?:ion)?|master|signing|hmac|aes|rsa|ssl|tls|ssh"
    r"|client|server|service|consumer|storage|license|host|session|symmetric|data|footer|column)[_.\- ]?keys?(?![a-z])"
    r"|parquet_key|key[_.\- ]?(?:password|material|id|pem|data)|(?<=[.])key\Z|sas[_.\- ]?url|connection[_.\- ]?string"
    r"|auth[_.\- ]?(?:header|code|key|user)|user[_.\- ]?info|sasl[_.\- ]?user|(?<![a-z])identified(?![a-z])|cookie",
    re.I,
)
"""Names of options with secret values: `'kafka.sasl.password' = '…'`, `ACCESS_KEY_ID '…'`."""

STEMS: Final = (
    *("auth", "bearer", "connection", "cookie", "credential", "dsn", "identified", "jaas", "key", "pass", "pw", "sas"),
    *("secret", "token", "user", "webhook"),
)
"""Each name that NAMES finds contains one of these. Searching for them is a hundred times faster."""

OPTIONS: Final = re.compile(rf"(?<!\w)with[\s{FOREIGN}]*+(?:\(|--|/\*)", re.I)
"""Words that begin a list of options; a comment may precede its parenthesis."""

_BLANK: Final = r" \t\r\n\f\v"
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

_MAYBE: Final = re.compile(r"crypt|hmac|pbkdf2|jwt_|[a-z0-9_.\- ]key", re.I)

_LOGGED_IN: Final = re.compile(
    r"(?:\s|\A)(?:-u|--(?:proxy-)?user|--auth)[\s=]*+['\"]?(?=[^\s:'\"]{0,200}+:\S)"
    r"|\b(?:mysql\w*|mariadb[\w-]*|sshpass|sqlcmd|bcp|redis-cli|7z|zip|unzip|ldap\w+|mongo\w*|smbclient|tsql|isql"
    r"|clickhouse[\w-]*)\b[^|;&\n]{0,500}?\s-{1,2}[apw](?=\s*+\S)",
    re.I,
)
"""Options of programs that are followed by a password."""

_DEEPEST: Final = 4
"""Maximum depth of strings inside strings."""

_GIVEN: Final = re.compile(r"[\w.\-]{0,64}+[\s'\"\\\])]{0,64}+[=:>][\s'\"\\]{0,64}+(?:[^\s'\"%\\]|%(?!\Z|['\"]))")
"""What follows a secret name inside a string that also contains the value."""

_VALUE: Final = re.compile(r"[=:'\"`$>]|\bis\b", re.I)
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

_FILLING: Final = frozenset({"INSERT", "UPSERT", "MERGE", "VALUES"})
"""Statements in which values are far from the names of their columns."""

_OPTIONS: Final = frozenset({"ATTACH", "COPY", "EXPORT", "PRAGMA", "SET"})
"""Statements in which `name: value` and `name = value` are options with any name."""

_COMPARES: Final = frozenset({"=", "<", ">", "!", "~"})
_COMPARING: Final = frozenset({"LIKE", "ILIKE", "IN", "AS", "FROM", "GLOB", "SIMILAR"})

_OPEN: Final = {"(": ")", "[": "]", "{": "}"}


def redactor(more: Sequence[str]) -> Redact:
    """A variant of redacted() with additional patterns for secret names. Raises re.error for an invalid pattern."""
    if not more:
        return redacted
    names = re.compile("|".join([NAMES.pattern, *(f"(?:{re.compile(pattern).pattern})" for pattern in more)]), re.I)
    return lambda sql: redacted(sql, names)


def redacted(sql: Sql, names: re.Pattern[str] = NAMES) -> str:
    """The statement as written, without its secrets.

    `'***'` replaces strings that belong to a secret name, or that contain such a name with its value, or a URL with a
    password. All values of CREATE SECRET, and comments that contain a secret, are removed. If engines read the text
    differently, it is cut off at its first string.
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
    written = " = ".join(map(literal, (name, value)))
    return NAMES.search(name) is not None or redacted(f"WITH ({written})") != f"WITH ({written})"


@once_per_statement
def may_hold_secrets(statement: Lexed) -> bool:
    """Whether redacted() may change the statement; False if it certainly does not."""
    sql = statement.text
    if "@" in sql or "\\" in sql or _has_name(sql, NAMES) or _has(sql, SHAPE_STEMS):
        return True
    return any(pattern.search(sql) for pattern in (_KEY, _MAYBE, _PARAMETER))


def removed_values(sql: Sql, shown: str) -> list[str]:
    """The values of a statement that its redacted form `shown` does not contain."""
    kept = {token.text for token in lexed(shown)}
    found: dict[str, None] = {}
    given = lexed(sql).tokens
    for number, token in enumerate(given):
        after = given[number + 1].text if number + 1 < len(given) else ""
        valued = token.kind == "string" or (number and given[number - 1].text == "=" and token.kind != "sign")
        if valued and after != "=" and token.value and token.text not in kept:
            found |= {token.value: None, token.value.replace("'", "''"): None}
    return list(found)


def without_values(text: str, values: Sequence[str]) -> str:
    """A text about a statement, such as its error message, without these values, complete or truncated. An excerpt of
    the statement is removed as a whole.
    """
    text = text.partition("\nLINE ")[0]
    if len(values) > _MOST_VALUES:
        return UNTOLD
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
    made: list[str] = []
    done = 0
    while (at := text.find(value[:least], done)) >= 0:
        end = at + least
        while end < min(len(text), at + len(value)) and text[end] == value[end - at]:
            end += 1
        made += [text[done:at], MASK]
        done = end
    return "".join([*made, text[done:]])


UNTOLD: Final = "the statement failed; its error message is not recorded because it may contain secrets"
_SHORTEST: Final = 4
_CUT_OFF: Final = 100
"""Minimum number of characters of a truncated value that are recognized."""

_MOST_VALUES: Final = 50


def _redacted(statement: Lexed, names: re.Pattern[str], depth: int) -> str:
    sql = statement.text
    if _has(sql, SHAPE_STEMS):
        sql = _SHAPES.sub(MASK, sql)
    if (found := sql.find("\\")) > 0 and (option := _LOGGED_IN.search(sql, found)):
        # A command follows the statement.
        sql = f"{sql[: option.end()]}{MASK}"
    if sql != statement.text:
        statement = lexed(sql)
    if sql.lstrip().startswith("\\"):
        return _command(statement, names, depth)
    if not _has_name(sql, names) and not _KEY.search(sql) and not _MAYBE.search(sql):
        if "@" not in sql and not _PARAMETER.search(sql) and names is NAMES:
            return sql
        told = any(_holds(token.value, names) or _names(token, names) for token in statement)
        if not told and not _LOGIN.search(sql):
            return sql
    given = statement.tokens
    if given and given[0].text == "\\":
        return _command(statement, names, depth)
    # If two begin at the same position, the longer one contains the other.
    unsorted = [*_values(sql, given, names), *_comments(sql, given, names), *_created(given, len(sql))]
    cuts = sorted(unsorted, key=lambda cut: (cut[0], -cut[1]))
    if cuts and _unsure(sql, given):
        first = next((token.start for token in given if token.kind in {"string", "name"}), len(sql))
        start, _, left = cuts[0]
        return _hidden_logins(f"{sql[: min(first, start)]}{left if start < first else _QUOTED}")
    return _hidden_logins(_without(sql, cuts))


def _has_name(sql: str, names: re.Pattern[str]) -> bool:
    if names is NAMES and sql.isascii() and not _has(sql.lower(), STEMS):
        return False
    return names.search(sql) is not None


def _has(text: str, stems: Sequence[str]) -> bool:
    # A loop: this is asked for each statement, and a generator takes longer than the search.
    for stem in stems:  # noqa: SIM110
        if stem in text:
            return True
    return False


_Cut = tuple[int, int, str]
"""A range of characters to remove, and the replacement."""


def _without(sql: str, cuts: Sequence[_Cut]) -> str:
    made: list[str] = []
    done = 0
    for start, end, left in cuts:
        if start >= done:
            made += [sql[done:start], left]
            done = end
    return "".join([*made, sql[done:]])


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
    # The arguments of a command have no comments: what begins like one may be a part of a value.
    uncommented = sql.replace("--", "__").replace("/*", "__")
    if uncommented != sql:
        ends.append(_end(sql, list(tokens(uncommented)), names, depth))
    if "\\'" in sql or '\\"' in sql:
        ends.append(_end(sql, list(tokens(uncommented, backslash=True)), names, depth))
    if option := _LOGGED_IN.search(sql):
        ends.append(option.end())
    end = min(ends)
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


def _fillings(given: Sequence[Token], names: re.Pattern[str]) -> Iterator[bool]:
    """For each statement, whether it fills a table or columns with secret names."""
    fills = named = listed = False
    depth = 0
    for number, token in enumerate(given):
        if token.kind == "sign":
            depth = max(0, depth + (token.text in _OPEN) - (token.text in ")]}"))
            if token.text == ")" and number + 1 < len(given) and given[number + 1].word == "AS" and listed:
                fills = True
            listed = listed and token.text == ","
            if token.text == ";" and not depth:
                yield fills and named
                fills = named = False
        elif token.kind != "string":
            fills = fills or token.word in _FILLING
            secret = _names(token, names)
            named = named or secret
            # A list of columns: `t (a, password) AS …`.
            listed = listed or (depth > 0 and secret)
    yield fills and named


class _Reading:
    """The range in which strings are the value of a secret name."""

    def __init__(self, depth: int, *, skips: bool, bare: bool) -> None:
        self.depth = depth
        self.skips = skips
        """Whether the next comma separates the name from its value."""
        self.bare = bare
        self.joined = False

    def takes(self, token: Token, before: Token | None) -> bool:
        """Whether a token other than a string is a value: a number, or a word if words may be values."""
        if token.kind == "number":
            return self.joined or before is None or before.kind != "sign"
        return self.bare and self.joined and token.kind in {"word", "name"}


def _values(sql: str, given: Sequence[Token], names: re.Pattern[str]) -> Iterator[_Cut]:
    opened: list[str] = []
    reading: _Reading | None = None
    first = ""
    fills = _fillings(given, names)
    filling = next(fills, False)
    for number, token in enumerate(given):
        before = given[number - 1] if number else None
        text = token.text
        if token.kind == "sign":
            if text in _OPEN:
                opened.append(before.word if before is not None else "")
            elif text in ")]}":
                if opened:
                    opened.pop()
                if reading is not None and len(opened) < reading.depth:
                    reading = None
            elif text == ";" and not opened:
                reading, first, filling = None, "", next(fills, False)
                continue
            elif text == "," and reading is not None and len(opened) == reading.depth:
                if not reading.skips:
                    reading = None
                elif reading is not None:
                    reading.skips = False
        first = first or token.word
        distinct = token.word == "FROM" and before is not None and before.word == "DISTINCT"
        if reading is not None and token.word in _ENDS and not distinct and len(opened) == reading.depth:
            reading = None
        if token.kind == "string" and (reading is not None or filling or _holds(token.value, names)):
            if not _variable(sql, given, number):
                yield token.start, token.end, _QUOTED
            continue
        if token.kind == "name" and _holds(token.value, names):
            yield token.start, token.end, f'"{MASK}"'
            continue
        after = given[number + 1] if number + 1 < len(given) else None
        listed = token.word == "WITH" and after is not None and after.text == "("
        if listed and reading is not None and len(opened) == reading.depth and not reading.joined:
            # It was the name of the object that has these options.
            reading = None
        named = token.kind in {"string", "name", "word"} and _is_secret(token, after, names, opened, first)
        if named:
            yield from _before(sql, given, number)
        if reading is not None:
            if text in _JOINTS or token.word in _JOINTS:
                reading.joined = True
            elif reading.takes(token, before):
                yield token.start, token.end, MASK
        elif named:
            lists = after is not None and after.text == ","
            if lists and (token.kind != "string" or not opened or opened[-1] == "IN"):
                continue
            if after is not None and after.text == "(" and before is not None and before.word in _RELATIONS:
                continue
            bare = first in {"SET", "ATTACH", "ALTER"} or opened[-1:] == ["WITH"]
            reading = _Reading(len(opened), skips=lists, bare=bare)


def _is_secret(token: Token, after: Token | None, names: re.Pattern[str], opened: Sequence[str], first: str) -> bool:
    """Whether a token is a secret name at its position."""
    follows = after.text if after is not None else ""
    if opened[-1:] == ["WITH"] and follows == "=" and names.search(token.value):
        return True
    if _names(token, names):
        # It is the schema auth, not a column.
        return not (follows == "." and token.kind != "string" and token.value.lower() == "auth")
    if token.kind != "string" and follows == "(" and _CIPHER.fullmatch(token.value):
        return True
    if follows not in {":", "="} or len(token.text) > 200 or not _OTHER_KEY.match(token.value):
        return False
    return token.kind == "string" or first in _OPTIONS or "{" in opened


def _before(sql: str, given: Sequence[Token], number: int) -> Iterator[_Cut]:
    """The strings that a secret name is compared with, or that it names, if they precede it."""
    compares = False
    depth = 0
    for at in range(number - 1, max(-1, number - 200), -1):
        token = given[at]
        if token.kind == "sign":
            depth += (token.text in ")]}") - (token.text in _OPEN)
            if token.text == ";" or (token.text == "," and depth <= 0):
                return
            # What a cast makes may have a name: `'…'::VARCHAR password`.
            compares = compares or token.text in _COMPARES or token.text == ":"
        elif token.word in _COMPARING and (token.word != "FROM" or given[at - 1].word == "DISTINCT"):
            compares = True
        elif token.word in _ENDS and depth <= 0:
            return
        elif token.kind == "string" and compares and not _variable(sql, given, at):
            yield token.start, token.end, _QUOTED


_RELATIONS: Final = frozenset(
    {"TABLE", "VIEW", "INTO", "FROM", "JOIN", "EXISTS", "STREAM", "CHANGELOG", "ON", "SECRET"}
)


def _variable(sql: str, given: Sequence[Token], number: int) -> bool:
    """Whether a string is the name of a shell variable, as in `= :'name'`."""
    token = given[number]
    if number < 2 or sql[token.start - 1] != ":" or not token.value.isidentifier():
        return False
    return given[number - 2].text in {"=", ">", "("} or given[number - 2].word in {"TO", "BY", "IS"}


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


def _comments(sql: str, given: Sequence[Token], names: re.Pattern[str]) -> Iterator[_Cut]:
    """Comments that contain a secret name and a possible value. They are removed as a whole, because their syntax is
    unknown.
    """
    starts, ends = [0, *(token.end for token in given)], [*(token.start for token in given), len(sql)]
    for start, end in zip(starts, ends, strict=True):
        between = sql[start:end]
        if len(between) < 2 or between.isspace():
            continue
        named = names.search(between) or _KEY.search(between)
        if _LOGIN.search(between) or _PARAMETER.search(between) or (named and _VALUE.search(between)):
            line = "\n" if "\n" in between or "\r" in between else ""
            yield start, end, f" /* {MASK} */{line or ' '}"


def _holds(value: str, names: re.Pattern[str]) -> bool:
    """Whether a string contains a secret: `host=h password=p`, `{"token": "t"}`, `https://user:password@host`."""
    if "@" in value and (("://" in value and _LOGIN.search(value)) or _USER.match(value)):
        return True
    if not ("=" in value or ":" in value or ">" in value):
        return False
    if _PARAMETER.search(value):
        return True
    return any(_GIVEN.match(value, found.end()) for found in (*names.finditer(value), *_KEY.finditer(value)))


def _names(token: Token, names: re.Pattern[str]) -> bool:
    """Whether a token is a secret name, and not a text that only contains one."""
    if len(token.text) > 200:
        return False
    value = token.value
    if token.kind == "string" and not _KEYLIKE.fullmatch(value):
        return False
    return names.search(value) is not None
