"""Variables of psql that set its behavior and have no effect here, and their replacements."""

from __future__ import annotations

from typing import Final

_ONE_PROMPT: Final = "\\pset prompt sets the prompt; continuation lines have no prompt of their own"

_REMEDIES: Final = {
    "COMP_KEYWORD_CASE": "completion follows the case that you type",
    "ECHO_HIDDEN": "-vv prints the requests to the service",
    "FETCH_COUNT": "results of any size are read in parts",
    "HIDE_TABLEAM": "only \\d+ of one relation shows its access method",
    "HIDE_TOAST_COMPRESSION": "only \\d+ shows the compression of columns",
    "HISTCONTROL": "a line that begins with a space is not kept in the history",
    "HISTFILE": "the environment variable SQLSHELL_STATE_DIR sets the directory of the history",
    "HISTSIZE": "the size of the history cannot be set",
    "IGNOREEOF": "Ctrl-D at an empty prompt exits",
    "PROMPT1": "\\pset prompt sets the prompt, to a template such as {database}>",
    "PROMPT2": _ONE_PROMPT,
    "PROMPT3": _ONE_PROMPT,
    "SHOW_ALL_RESULTS": "the result of each statement is shown",
    "SHOW_CONTEXT": "\\set VERBOSITY verbose and \\errverbose show the context of an error",
    "SINGLELINE": "a statement in a script ends with ;",
    "SINGLESTEP": "`confirm` in a profile lists statements that require confirmation",
    "WATCH_INTERVAL": "write the seconds after \\watch",
}
_HARMLESS: Final = {
    "ECHO_HIDDEN": "off",
    "FETCH_COUNT": "0",
    "IGNOREEOF": "0",
    "SHOW_ALL_RESULTS": "on",
    "SINGLELINE": "off",
    "SINGLESTEP": "off",
}
"""The values that ask for nothing else than what is done anyway."""


def remedy(name: str, value: str) -> str:
    """The replacement of a variable of psql, "" if the value has its effect or the variable is not psql's."""
    return "" if _HARMLESS.get(name) == value.lower() else _REMEDIES.get(name, "")
