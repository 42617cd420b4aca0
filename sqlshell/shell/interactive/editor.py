"""The user's editor: VISUAL, otherwise EDITOR, otherwise vi."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TextIO

from sqlshell.errors import UsageError, reason
from sqlshell.origin import Trusted
from sqlshell.output.sinks.command import lent_terminal
from sqlshell.runtime.files import expanded
from sqlshell.runtime.scratch import scratch


def edit_file(path: Trusted, stdin: TextIO) -> None:
    """Open a file and wait until the editor exits. Raises UsageError."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        with lent_terminal(stdin):
            done = subprocess.run([*shlex.split(editor), str(expanded(path))], check=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot start the editor {editor!r}: {reason(error)}", "set VISUAL or EDITOR to an editor"
        ) from None
    if done.returncode:
        raise UsageError(f"the editor failed with exit code {done.returncode}", "nothing was run")


def edit_text(text: str, path: Trusted, stdin: TextIO) -> Trusted:
    """Edit a text, or a file, and return what was saved; other users cannot read it. Raises UsageError."""
    folder = scratch().folder("editor")
    try:
        place = expanded(path) if path else folder / "statement.sql"
        if not path:
            try:
                place.write_text(f"{text.rstrip()}\n" if text else "", encoding="utf-8")
            except (OSError, UnicodeEncodeError) as error:
                raise UsageError(f"cannot write the text for the editor: {reason(error)}") from None
        edit_file(Trusted(str(place)), stdin)
        try:
            return Trusted(place.read_text(encoding="utf-8").rstrip())
        except FileNotFoundError:
            raise UsageError(f"nothing was saved to {path}" if path else "no text was saved") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path or 'the saved text'}: invalid UTF-8") from None
        except OSError as error:
            raise UsageError(f"cannot read {path or 'the saved text'}: {reason(error)}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
