"""Named queries, stored in queries.toml of the config directory, which users may edit."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from sqlshell.errors import UsageError, reason
from sqlshell.origin import Text, Trusted, joined, trusted_text
from sqlshell.runtime.files import replace_private
from sqlshell.sql.analysis.secrets import redacted
from sqlshell.sql.analysis.tokens import tokens
from sqlshell.text import did_you_mean, format_count, was_or_were

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class SavedQueries:
    """Texts by name. The file is read each time, because other shells may change it."""

    def __init__(self, path: Path, redact: Callable[[str], str] = redacted) -> None:
        self._path = path
        self._redact = redact

    def all(self) -> dict[str, str]:
        """All queries, by name. Raises UsageError if the file cannot be read."""
        queries = self._entries(self._read())
        return {name: text for name, text in sorted(queries.items()) if isinstance(text, str)}

    def save(self, name: str, text: str) -> None:
        """Save a query. Raises UsageError for an invalid name, an empty text, a text with a secret, or a file that
        cannot be changed.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a valid query name",
                "a name consists of letters, digits, _ . and -",
            )
        if not text.strip():
            raise UsageError(f"the query {name!r} would be empty; it was not saved", f"\\n+ {name} '' deletes a query")
        if self._redact(text) != text:
            raise UsageError(
                "the statement may contain a secret, which would be saved in a file",
                "replace the secret with a variable, for example password = :'new_password'",
            )
        self._change(name, text)

    def delete(self, name: str) -> None:
        """Delete a query. Raises UsageError if there is none with this name, or the file cannot be changed."""
        self.text(name)
        self._change(name, None)

    def text(self, name: str) -> Trusted:
        """The text of a query. Raises UsageError if there is none with this name."""
        known = self.all()
        if name not in known:
            raise UsageError(f"no named query {name!r}", did_you_mean(name, known, "\\n lists the queries"))
        return Trusted(known[name])

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from None

    def _entries(self, content: str) -> dict[str, object]:
        try:
            return tomllib.loads(content)
        except tomllib.TOMLDecodeError as error:
            raise self._unreadable(error) from None

    def _change(self, name: str, text: str | None) -> None:
        """Write, replace or remove one entry. Everything else in the file is kept, comments too."""
        content = self._read()
        wanted = self._entries(content)
        present = name in wanted
        wanted.pop(name, None)
        entry: list[str] = []
        if text is not None:
            wanted[name] = text
            entry = f"{json.dumps(name)} = {_quoted(text)}".split("\n")
        lines = content.split("\n")
        spans = _spans(lines, name) if present else _ends(lines)
        for start, end in spans:
            changed = "\n".join([*lines[:start], *entry, *lines[end:]])
            if _has(changed, wanted):
                return self._write(changed)
        raise UsageError(
            f"cannot change {name!r} in {self._path}: it is not written as NAME = 'SQL'", "change it in an editor"
        )

    def _write(self, content: str) -> None:
        try:
            replace_private(self._path, content.encode())
        except (OSError, UnicodeEncodeError) as error:
            raise UsageError(f"cannot write to {self._path}: {reason(error)}") from None

    def _unreadable(self, error: Exception) -> UsageError:
        return UsageError(f"cannot read {self._path}: {reason(error)}")


def _spans(lines: Sequence[str], name: str) -> Iterator[tuple[int, int]]:
    """The lines that may be the entry of a name. A line inside of a string may look like its first line, and a string
    may contain what looks like its end: the changed file tells.
    """
    key = re.compile(rf"""[ \t]*("{re.escape(name)}"|'{re.escape(name)}'|{re.escape(name)})[ \t]*=""")
    for start, line in enumerate(lines):
        if key.match(line):
            yield from ((start, end) for end in range(start + 1, len(lines) + 1))


def _ends(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places where a new entry may be: at the end, or before the first table."""
    end = len(lines) - (not lines[-1])
    for place in (end, *(number for number, line in enumerate(lines) if line.lstrip().startswith("["))):
        yield place, place


def _has(content: str, wanted: Mapping[str, object]) -> bool:
    try:
        return tomllib.loads(content) == wanted
    except tomllib.TOMLDecodeError:
        return False


def with_arguments(text: Trusted, arguments: Sequence[Text]) -> Text:
    """The text with its arguments substituted for `$1` and so on, outside of strings. Raises UsageError for too few or
    too many.
    """
    pieces: list[Text] = []
    done, most = 0, 0
    signs = list(tokens(text))
    for sign, number in itertools.pairwise(signs):
        if sign.text != "$" or number.kind != "number" or number.start != sign.end or not number.text.isdecimal():
            continue
        at = int(number.text)
        if not 1 <= at <= len(arguments):
            raise UsageError(f"the query uses ${at}, but {_given(arguments)}", text)
        most = max(most, at)
        pieces += [trusted_text(Trusted(text[done : sign.start])), arguments[at - 1]]
        done = number.end
    if most < len(arguments):
        raise UsageError(f"the query takes {format_count(most, 'argument')}, but {_given(arguments)}", text)
    return joined([*pieces, trusted_text(Trusted(text[done:]))])


def _given(arguments: Sequence[Text]) -> str:
    return f"{format_count(len(arguments), 'argument')} {was_or_were(len(arguments))} given"


def _quoted(text: str) -> str:
    """A TOML string, with line breaks if possible."""
    plain = all(char.isprintable() or char in "\n\t" for char in text)
    if plain and "\n" in text and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    # TOML refuses one character more than JSON does.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
