"""Redaction of secrets in statements, for the journal, logs and the history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from sqlshell.sql.analysis.tokens import Token, tokens
from sqlshell.sql.identifiers import literal
from sqlshell.sql.script.blanks import FOREIGN, ambiguous_characters

STARS: Final = "'***'"
NAMES: Final = re.compile(
    r"token(?!i[sz])|secret|passw|passphrase|credential|authorization|jaas|bearer|(?<![a-z])(?:pass|pwd|pw|dsn|auth)(?![a-z])"
    r"|webhook"
    r"|(?:api|access|private|account|sas|shared|encrypt(?:ion)?|decrypt(?:ion)?|master|signing|hmac|aes|rsa|ssl|tls|ssh"
    r"|client|server|service|consumer|storage|license|host|session|symmetric|data|footer|column)[_.\- ]?keys?(?![a-z])"
    r"|parquet_key|key[_.\- ]?(?:password|material|id|pem|data)|(?<=[.])key\Z|sas[_.\- ]?url|connection[_.\- ]?string"
    r"|auth[_.\- ]?(?:header|code|key|user)|user[_.\- ]?info|sasl[_.\- ]?user|(?<![a-z])identified(?![a-z])|cookie",
    re.I,
)
"""Names whose values nobody else may read: `'kafka.sasl.password' = '…'`, `ACCESS_KEY_ID '…'`."""

OPTIONS: Final = re.compile(rf"(?<!\w)with[\s{FOREIGN}]*+(?:\(|--|/\*)", re.I)
"""How a list of options may begin; a comment may stand before its parenthesis."""

_BLANK: Final = r" \t\r\n\f\v"
_LOGIN: Final = re.compile(
    rf"://(?:[^{_BLANK}/@:'\"]{{0,999}}+:[^{_BLANK}@'\"]{{0,999}}+@|[^{_BLANK}/@:'\"?#]{{1,999}}+@)"
)
"""A URL with a user's password, or with a token."""

_ANY_LOGIN: Final = re.compile(rf"://[^{_BLANK}'\"]{{1,999}}@")
_USER: Final = re.compile(rf"[{_BLANK}]*+[^{_BLANK}:/@'\"]{{1,200}}+:[^{_BLANK}@'\"]{{1,200}}+@[\w(\[.]")
"""`user:password@host`, without a scheme."""

_PARAMETER: Final = re.compile(r"[?&;](?:sig|signature|key|apikey|code|auth|pass|pwd|pw)=[^&;\s]", re.I)
_KEY: Final = re.compile(r"(?<![a-z])\w{0,64}+\.key(?![\w.])", re.I)

_OTHER_KEY: Final = re.compile(
    r"(?!.*(?:partition|primary|foreign|sort|cluster(?:ing)?|dist(?:ribution)?|join|group|cache|order|lookup|surrogate"
    r"|natural|business|row|record|message|map|json|hash|unique|cell)[_.\- ]?key\Z)"
    r"(?:.*[_.\- ](?i:key)|.*[a-z0-9]Key)\Z"
)
"""A further name that ends in key, where it is the name of an option or of a member."""

_CIPHER: Final = re.compile(r"(?:\w*_)?(?:en|de)crypt(?:_\w*)?|\w*hmac\w*|[bs]?crypt|pbkdf2\w*|jwt_\w+", re.I)
"""Functions that take a key."""

_SHAPES: Final = re.compile(
    r"\beyJ[\w-]{5,}+\.eyJ[\w-]{2,}+(?:\.[\w-]*+)?|\bgh[opsur]_\w{4,}+|\bgithub_pat_\w{4,}+|\bglpat-[\w-]{8,}+"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bxox[abeoprs]-[\w-]{6,}+|\b[rs]k_(?:live|test)_\w{8,}+|\bAIza[\w-]{35}"
    r"|\bhooks\.slack\.com/[^\s'\"]++"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END)[^'\"])*+(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)
"""Tokens and keys that are known by their form."""

_MAYBE: Final = re.compile(r"crypt|hmac|pbkdf2|jwt_|[a-z0-9_.\- ]key", re.I)

_LOGGED_IN: Final = re.compile(
    r"(?:\s|\A)(?:-u|--(?:proxy-)?user|--auth)[\s=]*+['\"]?(?=[^\s:'\"]{0,200}+:\S)"
    r"|\b(?:mysql\w*|mariadb[\w-]*|sshpass|sqlcmd|bcp|redis-cli|7z|zip|unzip|ldap\w+|mongo\w*|smbclient|tsql|isql"
    r"|clickhouse[\w-]*)\b[^|;&\n]{0,500}?\s-{1,2}[apw](?=\s*+\S)",
    re.I,
)
"""Options of programs behind which a password stands."""

_DEEPEST: Final = 4
"""Texts within texts that are looked into."""

_GIVEN: Final = re.compile(r"[\w.\-]{0,64}+[\s'\"\\\])]{0,64}+[=:>][\s'\"\\]{0,64}+(?:[^\s'\"%\\]|%(?!\Z|['\"]))")
"""What stands behind a secret's name in a string that has its value too."""

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
"""Words that begin something else than the value of a secret."""

_FILLING: Final = frozenset({"INSERT", "UPSERT", "MERGE", "VALUES"})
"""What has values far from the names of their columns."""

_OPTIONS: Final = frozenset({"ATTACH", "COPY", "EXPORT", "PRAGMA", "SET"})
"""Statements in which `name: value` and `name = value` are options, of any name."""

_COMPARES: Final = frozenset({"=", "<", ">", "!", "~"})
_COMPARING: Final = frozenset({"LIKE", "ILIKE", "IN", "AS", "FROM", "GLOB", "SIMILAR"})

_OPEN: Final = {"(": ")", "[": "]", "{": "}"}


def redactor(more: Sequence[str]) -> Callable[[str], str]:
    """redacted() that takes these patterns for secrets' names too. Raises re.error for what is no pattern."""
    if not more:
        return redacted
    names = re.compile("|".join([NAMES.pattern, *(f"(?:{re.compile(pattern).pattern})" for pattern in more)]), re.I)
    return lambda sql: redacted(sql, names)


def redacted(sql: str, names: re.Pattern[str] = NAMES) -> str:
    """The statement as written without its secrets.

    `'***'` stands in the place of the strings that belong to a secret's name, or that hold such a name with its value
    or a URL with a password. All that a CREATE SECRET sets is left out, and comments that hold a secret are. Where
    engines read the text differently it ends at its first string.
    """
    return _redacted(sql, names, 0)


def redacted_options(sql: str) -> str:
    """A statement whose text is data, without the secrets of its options: of each `WITH (…)` as redacted() has it.

    Where a list may begin within what looks like a string, the whole statement is as redacted() has it.
    """
    if not OPTIONS.search(sql) or not may_hold_secrets(sql):
        return sql
    given = list(tokens(sql))
    lists = [*_lists(given)]
    if _unsure(sql, given) or len(lists) < sum(1 for _ in OPTIONS.finditer(sql)):
        return redacted(sql)
    cuts = []
    for begun, ended in lists:
        text = sql[begun : ended or len(sql)]
        if (shown := redacted(text)) != text:
            cuts.append((begun, ended or len(sql), shown))
    return _without(sql, cuts)


def _lists(given: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where each `WITH (…)` begins and ends, 0 for one that is not closed."""
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
    """Options as they are kept and shown: `***` stands in the place of a value that is or holds a secret."""
    return {name: "***" if _is_secret_option(name, value) else value for name, value in options.items()}


def _is_secret_option(name: str, value: str) -> bool:
    written = " = ".join(map(literal, (name, value)))
    return NAMES.search(name) is not None or redacted(f"WITH ({written})") != f"WITH ({written})"


def may_hold_secrets(sql: str) -> bool:
    """Whether redacted() has to be asked: False where it would leave a statement as it is."""
    looked_for = (NAMES, _KEY, _MAYBE, _PARAMETER, _SHAPES)
    return "@" in sql or "\\" in sql or any(pattern.search(sql) for pattern in looked_for)


def removed_values(sql: str, shown: str) -> list[str]:
    """The values that a statement has, and `shown`, which redacted() made of it, has not."""
    kept = {token.text for token in tokens(shown)}
    found: dict[str, None] = {}
    given = list(tokens(sql))
    for number, token in enumerate(given):
        after = given[number + 1].text if number + 1 < len(given) else ""
        valued = token.kind == "string" or (number and given[number - 1].text == "=" and token.kind != "sign")
        if valued and after != "=" and token.value and token.text not in kept:
            found |= {token.value: None, token.value.replace("'", "''"): None}
    return list(found)


def without_values(text: str, values: Sequence[str]) -> str:
    """A text about a statement, such as its error, without these values of the statement, whole or cut off at their
    end. An excerpt of the statement goes as it is."""
    text = text.partition("\nLINE ")[0]
    if len(values) > _MOST_VALUES:
        return UNTOLD
    for value in values:
        if len(value) < _SHORTEST:
            text = text.replace(f"'{value}'", STARS)
            continue
        for size in (len(value), *range(min(len(value) - 1, _CUT_OFF), _SHORTEST - 1, -1)):
            if value[:size] in text:
                text = text.replace(value[:size], "***")
                break
    return text


UNTOLD: Final = "the statement failed; its error message is not recorded because it may contain secrets"
_SHORTEST: Final = 4
_CUT_OFF: Final = 100
"""Characters of a value that a message may show before it is cut off."""

_MOST_VALUES: Final = 50


def _redacted(sql: str, names: re.Pattern[str], depth: int) -> str:
    given: list[Token] | None = None
    sql = _SHAPES.sub("***", sql)
    if (found := sql.find("\\")) > 0 and (option := _LOGGED_IN.search(sql, found)):
        # A command stands behind the statement.
        sql = f"{sql[: option.end()]}***"
    if sql.lstrip().startswith("\\"):
        return _command(sql, names, depth)
    if not names.search(sql) and not _KEY.search(sql) and not _MAYBE.search(sql):
        if "@" not in sql and not _PARAMETER.search(sql) and names is NAMES:
            return sql
        given = list(tokens(sql))
        if not any(_holds(token.value, names) or _names(token, names) for token in given) and not _LOGIN.search(sql):
            return sql
    given = list(tokens(sql)) if given is None else given
    if given and given[0].text == "\\":
        return _command(sql, names, depth)
    # Of two that begin at one place the longer has the other in it.
    unsorted = [*_values(sql, given, names), *_comments(sql, given, names), *_created(given, len(sql))]
    cuts = sorted(unsorted, key=lambda cut: (cut[0], -cut[1]))
    if cuts and _unsure(sql, given):
        first = next((token.start for token in given if token.kind in {"string", "name"}), len(sql))
        start, _, left = cuts[0]
        return _hidden_logins(f"{sql[: min(first, start)]}{left if start < first else STARS}")
    return _hidden_logins(_without(sql, cuts))


_Cut = tuple[int, int, str]
"""From which character to which something is taken out, and what stands in its place."""


def _without(sql: str, cuts: Sequence[_Cut]) -> str:
    made: list[str] = []
    done = 0
    for start, end, left in cuts:
        if start >= done:
            made += [sql[done:start], left]
            done = end
    return "".join([*made, sql[done:]])


def _hidden_logins(text: str) -> str:
    return _LOGIN.sub("://***@", text)


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


def _command(sql: str, names: re.Pattern[str], depth: int) -> str:
    """A backslash command, of which all goes that stands behind a secret's name, or that holds one."""
    ends = [_end(sql, list(tokens(sql)), names, depth)]
    if "\\'" in sql or '\\"' in sql:
        ends.append(_end(sql, list(tokens(sql, backslash=True)), names, depth))
    if option := _LOGGED_IN.search(sql):
        ends.append(option.end())
    end = min(ends)
    blank = " " if end and not sql[end - 1].isspace() and sql[end : end + 1].isspace() else ""
    return _ANY_LOGIN.sub("://***@", sql[:end] + (f"{blank}***" if sql[end:].strip() else ""))


def _end(sql: str, given: Sequence[Token], names: re.Pattern[str], depth: int) -> int:
    """Up to where a command holds no secret."""
    for number, token in enumerate(given):
        if token.kind in {"string", "name"}:
            if _holds(token.value, names):
                return token.start
            inner = token.value
            if inner and (depth > _DEEPEST or _redacted(inner, names, depth + 1) != inner):
                return token.start
            if token.text[0] == "`" and (named := names.search(inner)) and inner[named.end() :].strip(" '\""):
                return token.start
        if number > 1 and _names(token, names):
            compared = any(before.text in _COMPARES for before in given[2:number])
            return given[2].start if compared else token.end
    return len(sql)


def _fillings(given: Sequence[Token], names: re.Pattern[str]) -> Iterator[bool]:
    """Of each statement, whether it fills a table or columns that are named for a secret."""
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
    """What a secret's name has opened: up to where strings are its value."""

    def __init__(self, depth: int, *, skips: bool, bare: bool) -> None:
        self.depth = depth
        self.skips = skips
        """Whether the next comma stands between the name and its value."""
        self.bare = bare
        self.joined = False

    def takes(self, token: Token, before: Token | None) -> bool:
        """Whether a token that is no string is a value: a number, or a word where values may be words."""
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
        if reading is not None and token.word in _ENDS and len(opened) == reading.depth:
            reading = None
        if token.kind == "string" and (reading is not None or filling or _holds(token.value, names)):
            if not _variable(sql, given, number):
                yield token.start, token.end, STARS
            continue
        if token.kind == "name" and _holds(token.value, names):
            yield token.start, token.end, '"***"'
            continue
        after = given[number + 1] if number + 1 < len(given) else None
        listed = token.word == "WITH" and after is not None and after.text == "("
        if listed and reading is not None and len(opened) == reading.depth and not reading.joined:
            # It was the name of what has these options.
            reading = None
        named = token.kind in {"string", "name", "word"} and _is_secret(token, after, names, opened, first)
        if named:
            yield from _before(sql, given, number)
        if reading is not None:
            if text in _JOINTS or token.word in _JOINTS:
                reading.joined = True
            elif reading.takes(token, before):
                yield token.start, token.end, "***"
        elif named:
            lists = after is not None and after.text == ","
            if lists and (token.kind != "string" or not opened or opened[-1] == "IN"):
                continue
            if after is not None and after.text == "(" and before is not None and before.word in _RELATIONS:
                continue
            bare = first in {"SET", "ATTACH", "ALTER"} or opened[-1:] == ["WITH"]
            reading = _Reading(len(opened), skips=lists, bare=bare)


def _is_secret(token: Token, after: Token | None, names: re.Pattern[str], opened: Sequence[str], first: str) -> bool:
    """Whether a token is a secret's name where it stands."""
    follows = after.text if after is not None else ""
    if opened[-1:] == ["WITH"] and follows == "=" and names.search(token.value):
        return True
    if _names(token, names):
        # The schema auth, and not a column.
        return not (follows == "." and token.kind != "string" and token.value.lower() == "auth")
    if token.kind != "string" and follows == "(" and _CIPHER.fullmatch(token.value):
        return True
    if follows not in {":", "="} or len(token.text) > 200 or not _OTHER_KEY.match(token.value):
        return False
    return token.kind == "string" or first in _OPTIONS or "{" in opened


def _before(sql: str, given: Sequence[Token], number: int) -> Iterator[_Cut]:
    """The strings that a secret's name is compared with, or that it names, where they stand before it."""
    compares = False
    depth = 0
    for at in range(number - 1, max(-1, number - 200), -1):
        token = given[at]
        if token.kind == "sign":
            depth += (token.text in ")]}") - (token.text in _OPEN)
            if token.text == ";" or (token.text == "," and depth <= 0):
                return
            compares = compares or token.text in _COMPARES
        elif token.word in _COMPARING and (token.word != "FROM" or given[at - 1].word == "DISTINCT"):
            compares = True
        elif token.word in _ENDS and depth <= 0:
            return
        elif token.kind == "string" and compares and not _variable(sql, given, at):
            yield token.start, token.end, STARS


_RELATIONS: Final = frozenset(
    {"TABLE", "VIEW", "INTO", "FROM", "JOIN", "EXISTS", "STREAM", "CHANGELOG", "ON", "SECRET"}
)


def _variable(sql: str, given: Sequence[Token], number: int) -> bool:
    """Whether a string is the name of a variable of the shell's, as in `= :'name'`."""
    token = given[number]
    if number < 2 or sql[token.start - 1] != ":" or not token.value.isidentifier():
        return False
    return given[number - 2].text in {"=", ">", "("} or given[number - 2].word in {"TO", "BY", "IS"}


def _created(given: Sequence[Token], end: int) -> Iterator[_Cut]:
    """What stands in the parentheses of CREATE SECRET: any value may be secret, whatever its name."""
    begun, depth = 0, 0
    for number, token in enumerate(given):
        if depth:
            depth += (token.text == "(") - (token.text == ")")
            if not depth:
                yield begun, token.start, "***"
        elif token.text == "(" and _creates_secret(given, number):
            begun, depth = token.end, 1
    if depth:
        yield begun, end, "***"


def _creates_secret(given: Sequence[Token], number: int) -> bool:
    """Whether the parenthesis at `number` opens what a CREATE SECRET sets: `CREATE TEMP SECRET name IN file (`, or an
    UPDATE SECRET."""
    words: list[str] = []
    for token in given[max(0, number - 12) : number]:
        words = [] if token.text == ";" else [*words, token.word]
    while begun := next((at for at, word in enumerate(words) if word in _SETTING_SECRETS), -1) + 1:
        words = words[begun:]
        if "SECRET" in words and _KINDS.issuperset(words[: words.index("SECRET")]):
            return True
    return False


def _comments(sql: str, given: Sequence[Token], names: re.Pattern[str]) -> Iterator[_Cut]:
    """Comments that hold a secret's name and what may be its value; each goes whole, for nobody knows how it reads."""
    starts, ends = [0, *(token.end for token in given)], [*(token.start for token in given), len(sql)]
    for start, end in zip(starts, ends, strict=True):
        between = sql[start:end]
        if len(between) < 2 or between.isspace():
            continue
        named = names.search(between) or _KEY.search(between)
        if _LOGIN.search(between) or _PARAMETER.search(between) or (named and _VALUE.search(between)):
            line = "\n" if "\n" in between or "\r" in between else ""
            yield start, end, f" /* *** */{line or ' '}"


def _holds(value: str, names: re.Pattern[str]) -> bool:
    """Whether a string has a secret in it: `host=h password=p`, `{"token": "t"}`, `https://user:password@host`."""
    if "@" in value and (("://" in value and _LOGIN.search(value)) or _USER.match(value)):
        return True
    if not ("=" in value or ":" in value or ">" in value):
        return False
    if _PARAMETER.search(value):
        return True
    return any(_GIVEN.match(value, found.end()) for found in (*names.finditer(value), *_KEY.finditer(value)))


def _names(token: Token, names: re.Pattern[str]) -> bool:
    """Whether a token is the name of a secret, and no text that only speaks of one."""
    if len(token.text) > 200:
        return False
    value = token.value
    if token.kind == "string" and not _KEYLIKE.fullmatch(value):
        return False
    return names.search(value) is not None
