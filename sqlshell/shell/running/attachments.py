"""Files that go with statements. Only those that the person's own text names are ever read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlshell.client.http.upload import Attachment, attachment
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.origin import Own, Text
from sqlshell.runtime.descriptors import descriptor
from sqlshell.sql.analysis.files import NamedFile, named_files, names_file, read_files


class Attachments:
    """The files that wait for the statement that names them (`--attach`, `\\attach`), and those named in its text."""

    def __init__(self, waiting: Sequence[Own], diagnostics: Diagnostics, limit: int = 0) -> None:
        """`limit` is the most bytes that one file may have, 0 for any number."""
        self._limit = limit
        self._waiting: list[Attachment] = []
        self._diagnostics = diagnostics
        self._given = list(waiting)

    @property
    def waiting(self) -> list[Attachment]:
        """Raises UsageError for a file of the command line that cannot be sent."""
        given, self._given = self._given, []
        for text in given:
            self.add(text)
        return self._waiting

    def add(self, text: Own) -> Attachment:
        """A file for the statement that will name it. Raises UsageError."""
        added = attachment(text, self._limit)
        self._waiting = [item for item in self.waiting if item.name != added.name] + [added]
        return added

    def clear(self) -> int:
        count = len(self.waiting)
        self._waiting = []
        return count

    def of(self, statement: Text) -> tuple[str, list[Attachment]]:
        """The statement as it is sent, and its files, looked at.

        Raises UsageError before anything is sent, and for a file that is named by what came from a service. The files
        stay waiting until sent() says otherwise.
        """
        named = named_files(statement)
        files = [self._looked_at(item) for item in named.files]
        taken = {file.name for file in files}
        names = {item.name for item in self.waiting} - taken
        said = {name for name in names if names_file(statement, name)}
        files += [item for item in self.waiting if item.name in said]
        sql = named.sql
        for file in files:
            if self._diagnostics.verbose:
                self._diagnostics.detail(f"attached {file.path}: {file.size:,} bytes, sha256 {file.sha256()}")
        return sql, files

    def _looked_at(self, item: NamedFile) -> Attachment:
        from sqlshell.sql.analysis.secrets import NAMES

        try:
            return attachment(item.path, self._limit)
        except UsageError as error:
            if NAMES.search(item.key) and not item.key.lower().endswith(("file", "path")):
                # It may be the secret itself.
                error.message = "cannot send the file whose name follows @"
            error.message = f"{item.key!r}: {error.message}"
            error.hint = f"{error.hint or 'nothing was sent'}; to write a value that begins with @, double it: '@@…'"
            raise

    def sent(self, files: Sequence[Attachment]) -> None:
        names = {file.name for file in files}
        self._waiting = [item for item in self._waiting if item.name not in names]

    def unnamed(self) -> None:
        """Raises UsageError for files of the command line that no statement named."""
        left = ", ".join(str(item.path) for item in self.waiting)
        if left:
            self._waiting = []
            raise UsageError(
                f"{left} was attached, but no statement used it", "name the file in a statement: 'file' = 'NAME'"
            )


def reads_stdin(sql: str) -> bool:
    """Whether a statement reads a file that is this program's stdin, whatever path or link it names it by."""
    return any(map(is_stdin, read_files(sql)))


def is_stdin(path: str) -> bool:
    """Whether a path leads to this program's stdin."""
    found = descriptor(path)
    return found is not None and found.own and found.number == 0


def place_for(name: Own, output: Own) -> Path:
    """Where a resource of that name is written: the file or folder `output`, "" for the working folder.

    Raises UsageError for a name that is no file name: the service's names never choose a folder.
    """
    chosen = Path(output).expanduser() if output else Path()
    if output and not chosen.is_dir() and not output.endswith(("/", "\\")):
        return chosen
    bare = name.replace("\\", "/").rpartition("/")[2]
    if bare in {"", ".", ".."} or any(ord(char) < 32 or ord(char) == 127 for char in bare) or ":" in bare:
        raise UsageError(f"{name!r} is not a file name", "set the output file with -o FILE")
    return chosen / bare
