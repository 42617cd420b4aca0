"""Files that are sent with statements. Only files that the user's own text names are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlshell.client.http.upload import Attachment, attachment
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.origin import Trusted
from sqlshell.runtime.files import expanded, is_stdin
from sqlshell.sql.analysis.files import NamedFile, named_files, names_file, read_files
from sqlshell.sql.analysis.lexed import Lexed, Sql, lexed
from sqlshell.text import format_count


class Attachments:
    """The files that wait for the statement that names them (`--attach`, `\\attach`), and those named in its text."""

    def __init__(self, waiting: Sequence[Trusted], diagnostics: Diagnostics, limit: int = 0) -> None:
        """`limit` is the maximum size of a file in bytes, 0 for no limit."""
        self.limit = limit
        self._waiting: list[Attachment] = []
        self._diagnostics = diagnostics
        self._command_line_files = list(waiting)

    @property
    def waiting(self) -> list[Attachment]:
        """The files that wait. Raises UsageError if a file of the command line cannot be sent."""
        files, self._command_line_files = self._command_line_files, []
        for text in files:
            self.add(text)
        return self._waiting

    def add(self, text: Trusted) -> Attachment:
        """Add a file for a later statement that names it. Raises UsageError."""
        added = attachment(text, self.limit)
        self._waiting = [item for item in self.waiting if item.name != added.name] + [added]
        return added

    def clear(self) -> int:
        count = len(self.waiting)
        self._waiting = []
        return count

    def prepare(self, statement: Lexed) -> tuple[Lexed, list[Attachment]]:
        """The statement as it is sent, and its files, which are checked.

        Raises UsageError before anything is sent, also for a value from a service that names a file. The files keep
        waiting until mark_sent().
        """
        named = named_files(statement)
        files = [self._attachment_of(item) for item in named.files]
        taken = {file.name for file in files}
        names = {item.name for item in self.waiting} - taken
        mentioned = {name for name in names if names_file(statement, name)}
        files += [item for item in self.waiting if item.name in mentioned]
        # The text has changed if it named a file by path.
        sent = statement if named.sql == statement.text else lexed(named.sql)
        for file in files:
            if self._diagnostics.verbose:
                self._diagnostics.detail(
                    f"attached {file.path}: {format_count(file.size, 'byte')}, SHA-256 {file.sha256()}"
                )
        return sent, files

    def _attachment_of(self, item: NamedFile) -> Attachment:
        from sqlshell.sql.analysis.secrets import names_secret

        try:
            return attachment(item.path, self.limit)
        except UsageError as error:
            if names_secret(item.key) and not item.key.lower().endswith(("file", "path")):
                # The name may be the secret itself.
                error.message = "cannot send the file whose name follows @"
            error.message = f"{item.key!r}: {error.message}"
            error.hint = f"{error.hint or 'nothing was sent'}\nto write a value that begins with @, double it: '@@…'"
            raise

    def mark_sent(self, files: Sequence[Attachment]) -> None:
        names = {file.name for file in files}
        self._waiting = [item for item in self._waiting if item.name not in names]

    def check_all_used(self) -> None:
        """Raises UsageError for files of the command line that no statement named."""
        left = ", ".join(str(item.path) for item in self.waiting)
        if left:
            self._waiting = []
            raise UsageError(
                f"{left} was attached, but no statement used it", "name the file in a statement: 'file' = 'NAME'"
            )


def reads_stdin(sql: Sql) -> bool:
    """Whether a statement reads this program's stdin as a file, by any path or link."""
    return any(map(is_stdin, read_files(sql)))


def download_path(name: Trusted, output: Trusted) -> Path:
    """The path for a resource of that name: the file or directory `output`, "" for the working directory.

    Raises UsageError for an invalid file name: a name from the service never selects a directory.
    """
    path = expanded(output) if output else Path()
    if output and not path.is_dir() and not output.endswith(("/", "\\")):
        return path
    file_name = name.replace("\\", "/").rpartition("/")[2]
    if (
        file_name in {"", ".", ".."}
        or any(ord(char) < 32 or ord(char) == 127 for char in file_name)
        or ":" in file_name
    ):
        raise UsageError(f"{name!r} is not a file name", "set the output file with -o FILE")
    return path / file_name
