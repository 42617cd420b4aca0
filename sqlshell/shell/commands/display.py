"""Commands for the display of results."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlshell.config.peers import without_effect
from sqlshell.config.settings import NO_PAGER, SEPARATOR, SWITCH, Setting
from sqlshell.errors import UsageError
from sqlshell.output.writers.formats import FORMATS, format_named
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.options import DISPLAY, checked, display_option

_LABELS: Final[Mapping[str, str]] = {
    "expanded": "Expanded display",
    "fieldsep": "Field separator",
    "recordsep": "Record separator",
    "null": "Null display",
    "footer": "Default footer",
    "numericlocale": "Locale-adjusted numeric output",
}
"""What psql calls options whose names do not say it."""


def _set(shell: CommandShell, name: str, value: object) -> None:
    """Set an option, and report its new value."""
    shell.set_options({name: value})
    _acknowledge(shell, _said(name, shown(DISPLAY[name], value)))


def _acknowledge(shell: CommandShell, sentence: str) -> None:
    """Say that an option was set; in a script, -q leaves it out."""
    (shell.say if shell.at_prompt else shell.diagnostics.report)(sentence)


def _said(name: str, text: str) -> str:
    """The sentence about the value of an option, as psql has it."""
    label = _LABELS.get(name) or name.replace("_", " ").capitalize()
    return f"{label} is {'used automatically' if (name, text) == ('expanded', 'auto') else text}."


@command("x", "[on|off|auto]", changes="shell")
async def expanded(shell: CommandShell, args: Args) -> None:
    """Show each row as a record, one line per column. With auto, only tables wider than the terminal are shown this
    way.

    At the prompt the default is auto. Without an argument, \\x switches between on and the default.
    """
    _set(shell, "expanded", args[0] if args else _toggled(shell))


@command("format", "[NAME]", aliases=(".mode",), changes="shell")
async def choose_format(shell: CommandShell, args: Args) -> None:
    """List the output formats, or select one."""
    if args:
        _set(shell, "format", format_named(args[0]).name)
        return
    width = max(len(item.name) for item in FORMATS)
    chosen = shell.session.options.format
    shell.say(
        "\n".join(f"{'*' if item.name == chosen else ' '} {item.name.ljust(width)}  {item.summary}" for item in FORMATS)
    )


@command("a", changes="shell")
async def alignment(shell: CommandShell, args: Args) -> None:
    """Switch between the table format (aligned) and the unaligned format."""
    _set(shell, "format", "table" if shell.session.options.format == "unaligned" else "unaligned")


@command("encoding", "[NAME]")
async def encoding(shell: CommandShell, args: Args) -> None:
    """Show the encoding of text, which is always UTF-8. \\encoding UTF8 is accepted, any other name is an error."""
    if not args:
        shell.say("UTF8")
    elif args[0].upper().replace("-", "") != "UTF8":
        raise UsageError(f"encoding {args[0]!r} is not supported", "text is always UTF-8")


@command("f", "[TEXT]", changes="shell")
async def field_separator(shell: CommandShell, args: Args) -> None:
    """Show or set the field separator of the unaligned format: \\f ',' or \\f '\\t'"""
    given = SEPARATOR.read(args[0], "\\f") if args else shell.session.options.fieldsep
    _set(shell, "fieldsep", given)


@command("timing", "[on|off]", aliases=(".timer",), changes="shell")
async def timing(shell: CommandShell, args: Args) -> None:
    """Show the time of each statement; without an argument, toggle it. It is off in scripts by default.

    At the prompt it is on by default, and the first \\timing without an argument keeps it on, unless a setting has
    turned it on or off."""
    options = shell.session.options
    chosen = args[0] == "on" if args else not (options.timing and "timing" in options.chosen)
    _set(shell, "timing", chosen)


@command("theme", "[NAME]", changes="shell")
async def theme(shell: CommandShell, args: Args) -> None:
    """List the themes in their colors, or select one. The completion menu previews each theme."""
    names = shell.environment.themes()
    if args:
        if args[0] not in names:
            raise UsageError(f"unknown theme {args[0]!r}", f"themes: {', '.join(names)}")
        _set(shell, "theme", args[0])
        return
    chosen = shell.session.options.theme
    lines = shell.front_end.theme_previews() if shell.session.interactive else names
    shell.say("\n".join(f"{'*' if line.split()[0] == chosen else ' '} {line}" for line in lines), own=True)


@command("t", "[on|off]", aliases=(".headers", ".header"), changes="shell")
async def rows_only(shell: CommandShell, args: Args) -> None:
    """Show rows only; without an argument, toggle it. Column names and record numbers are omitted.

    duckdb's .headers on is \\t off."""
    if not args.name.startswith("."):
        header = not (args[0] == "on" if args else shell.session.options.header)
        shell.set_options({"header": header})
        _acknowledge(shell, _said("tuples_only", SWITCH.shown(not header)))
        return
    _set(shell, "header", args[0] == "on" if args else not shell.session.options.header)


@command("pset", "[NAME] [VALUE]", aliases=(".show", "!options"), changes="shell")
async def pset(shell: CommandShell, args: Args) -> None:
    """List the display options, or set one: \\pset rowlimit 0, \\pset null ∅, \\pset wide fold.

    Without VALUE, an option that is on or off is toggled, and any other is shown. Options of psql that do not apply
    here are accepted with a warning.
    """
    options = shell.session.options
    if not args:
        texts = {name: shown(setting, getattr(options, name)) for name, setting in DISPLAY.items()}
        names, values = (max(map(len, words)) for words in (texts, texts.values()))
        lines = (f"  {name.ljust(names)}  {text.ljust(values)}  {_allowed(name)}" for name, text in texts.items())
        shell.say("\n".join(map(str.rstrip, lines)))
        return
    if warning := without_effect(args[0]):
        shell.diagnostics.warn_here(warning)
        return
    setting, inverted = display_option(args[0])
    name = setting.name
    value = before = getattr(options, name)
    if len(args) > 1:
        value = _read(shell, setting, args[1], inverted=inverted)
        if name == "pager":
            _warn_of_pager(shell, value)
    elif name == "expanded":
        value = _toggled(shell)
    elif name == "pager":
        value = "" if value == NO_PAGER else NO_PAGER
    elif isinstance(value, bool):
        value = not value
    text = shown(setting, not value if inverted else value) if value is not None else "the default of the format"
    sentence = _said("tuples_only" if inverted else name, text)
    if len(args) > 1 or value != before:
        shell.set_options({name: value})
        _acknowledge(shell, sentence)
    else:
        shell.say(sentence)


def _warn_of_pager(shell: CommandShell, command: str) -> None:
    """Warn if the first word of the command is a program that does not exist; then results are printed without it."""
    program = command.partition(" ")[0]
    if command != NO_PAGER and re.fullmatch(r"[\w./+-]+", program) and not shutil.which(program):
        shell.diagnostics.warn_here(f"there is no program {program!r}; \\pset pager takes on, off or a command")


def _toggled(shell: CommandShell) -> str:
    """The value of `expanded` after a command without a value: on, or the default."""
    default = "auto" if shell.session.interactive else "off"
    return default if shell.session.options.expanded == "on" else "on"


def options_in(shell: CommandShell, words: Sequence[str]) -> Mapping[str, object]:
    """Parse options such as `format=csv`. Raises UsageError."""
    options: dict[str, object] = {}
    for word in words:
        given, equals, text = word.partition("=")
        setting, inverted = display_option(given)
        if not equals:
            raise UsageError(f"option {given} requires a value", f"write it as ({given}=VALUE)")
        options[setting.name] = _read(shell, setting, text, inverted=inverted)
    return options


def _read(shell: CommandShell, setting: Setting, text: str, *, inverted: bool) -> Any:
    name = "tuples_only" if inverted else setting.name
    value = checked(setting.name, setting.kind.read(text, f"\\pset {name}"))
    if setting.name == "theme" and value not in shell.environment.themes():
        raise UsageError(f"unknown theme {value!r}", f"themes: {', '.join(shell.environment.themes())}")
    return not value if inverted else value


def _allowed(name: str) -> str:
    """A description of the values that an option accepts."""
    if name == "format":
        return ", ".join(item.name for item in FORMATS)
    setting = DISPLAY[name]
    return ", ".join(setting.kind.words) or in_locale(setting.help.partition(" [default: ")[0])


def shown(setting: Setting, value: Any) -> str:
    """Return the value of an option for people."""
    if value is None:
        return "(default of the format)"
    text = setting.kind.shown(value)
    return f'"{text}"' if setting.kind.metavar == "TEXT" else text
