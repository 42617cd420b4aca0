"""`exit`, `quit` and `help` alone on a line at the prompt, as in psql: other clients have them as commands."""

from __future__ import annotations

import re

from sqlshell.sql.script.scanner import State

_WORDS = re.compile(r"(exit|quit|help)\s*;?\s*", re.IGNORECASE)

HELP = """Type:  \\? for help with sqlshell commands
       \\h for help with SQL
       \\g or a semicolon at the end to run a statement
       \\q to quit"""


def bare_word(line: str) -> str:
    """The word that is alone on a line, which may end with a semicolon: `exit`, `help` or ""."""
    match = _WORDS.fullmatch(line)
    if match is None:
        return ""
    return "help" if match[1].lower() == "help" else "exit"


def hint(line: str, state: State) -> str:
    """The message for such a line inside an unfinished statement, to which the line belongs; "" for other lines.

    `state` is that of the scanner before the line.
    """
    word = bare_word(line)
    if not word:
        return ""
    if state in {State.READY, State.STATEMENT, State.PARENTHESIS}:
        return "Use \\? for help, or Ctrl-C to clear the input." if word == "help" else "Use \\q to quit."
    # In quotes and comments a backslash does not begin a command.
    return "Press Ctrl-C to clear the input, and Ctrl-D to quit."
