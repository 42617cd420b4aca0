"""Commands for the display of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlshell.errors import UsageError
from sqlshell.output.writers.formats import FORMATS, format_named
from sqlshell.output.writers.unaligned import separator, shown_separator
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.effects import Chain, Effect, SetOptions, ShowMessage
from sqlshell.shell.interactive.look.templates import checked, checked_color
from sqlshell.shell.scripts.variables import OPTION_VALUES
from sqlshell.shell.session import Options
from sqlshell.shell.shell_view import ShellView
from sqlshell.spelling import did_you_mean

SWITCH = {"on": True, "true": True, "1": True, "yes": True, "off": False, "false": False, "0": False, "no": False}


def _set(text: str, **values: object) -> Chain:
    """Set options, and report their new values."""
    return Chain([SetOptions(values), ShowMessage(text)])


@command("x", "[on|off|auto]", changes="shell")
async def expanded(shell: ShellView, args: Args) -> Chain:
    """Show each row as a record, one line per column. With auto, only tables wider than the terminal are shown this
    way.

    At the prompt the default is auto. Without an argument, \\x switches between on and the default.
    """
    chosen = args[0] if args else _toggled(shell)
    message = {"auto": "used automatically", "on": "on", "off": "off"}[chosen]
    return _set(f"Expanded display is {message}.", expanded=chosen)


@command("format", "[NAME]", aliases=(".mode",), changes="shell")
async def choose_format(shell: ShellView, args: Args) -> Effect:
    """List the output formats, or set the one for the following results."""
    if args:
        name = format_named(args[0]).name
        return _set(f"Format is {name}.", format=name)
    width = max(len(item.name) for item in FORMATS)
    chosen = shell.session.options.format
    return ShowMessage(
        "\n".join(f"{'*' if item.name == chosen else ' '} {item.name.ljust(width)}  {item.summary}" for item in FORMATS)
    )


@command("a", changes="shell")
async def alignment(shell: ShellView, args: Args) -> Chain:
    """Switch between the table format (aligned) and the unaligned format."""
    name = "table" if shell.session.options.format == "unaligned" else "unaligned"
    return _set(f"Format is {name}.", format=name)


@command("f", "[TEXT]", changes="shell")
async def field_separator(shell: ShellView, args: Args) -> Effect:
    """Show or set the field separator of the unaligned format: \\f ',' or \\f '\\t'"""
    given = separator(args[0]) if args else shell.session.options.fieldsep
    message = f"Field separator is {shown(given)}."
    return _set(message, fieldsep=given) if args else ShowMessage(message)


@command("timing", "[on|off]", aliases=(".timer",), changes="shell")
async def timing(shell: ShellView, args: Args) -> Chain:
    """Show the time of each statement; without an argument, toggle it. It is off in scripts by default.

    At the prompt it is on by default, and the first \\timing without an argument keeps it on, unless a setting has
    turned it on or off."""
    options = shell.session.options
    chosen = SWITCH[args[0]] if args else not (options.timing and options.timing_chosen)
    return _set(f"Timing is {'on' if chosen else 'off'}.", timing=chosen)


@command("theme", "[NAME]", changes="shell")
async def theme(shell: ShellView, args: Args) -> Effect:
    """List the themes in their colors, or select one. The completion menu previews each theme."""
    names = shell.environment.themes()
    if args:
        if args[0] not in names:
            raise UsageError(f"unknown theme {args[0]!r}", f"themes: {', '.join(names)}")
        return _set(f"Theme is {args[0]}.", theme=args[0])
    chosen = shell.session.options.theme
    lines = shell.front_end.theme_previews() if shell.session.interactive else names
    return ShowMessage("\n".join(f"{'*' if line.split()[0] == chosen else ' '} {line}" for line in lines), own=True)


@command("t", "[on|off]", aliases=(".headers", ".header"), changes="shell")
async def rows_only(shell: ShellView, args: Args) -> Chain:
    """Show rows only; without an argument, toggle it. Column names and record numbers are omitted.

    The argument of duckdb's .headers is the opposite."""
    if not args.name.startswith("."):
        header = not (SWITCH[args[0]] if args else shell.session.options.header)
        return _set(f"Tuples only is {'off' if header else 'on'}.", header=header)
    header = SWITCH[args[0]] if args else not shell.session.options.header
    return _set(f"Column names are {'on' if header else 'off'}.", header=header)


@command("pset", "[NAME] [VALUE]", aliases=(".show", "!options"), changes="shell")
async def pset(shell: ShellView, args: Args) -> Effect:
    """List the display options, or set one: \\pset rowlimit 0, \\pset null ∅, \\pset wide fold.

    Without VALUE, an option that is on or off is toggled, and any other is shown. Options of psql that do not apply
    here are accepted with a notice.
    """
    options = shell.session.options
    if not args:
        names = max(map(len, NAMES))
        texts = {name: shown(getattr(options, name)) for name in NAMES}
        values = max(map(len, texts.values()))
        return ShowMessage(
            "\n".join(
                f"  {name.ljust(names)}  {texts[name].ljust(values)}  {_allowed(shell, name)}".rstrip()
                for name in NAMES
            )
        )
    if args[0].lower() in _PSQL_ONLY:
        return ShowMessage(f"psql's {args[0].lower()} has no effect: {_PSQL_ONLY[args[0].lower()]}.")
    name, inverted = _option(args[0])
    value = before = getattr(options, name)
    if len(args) > 1:
        value = _read(shell, name, args[1])
        value = not value if inverted else value
    elif name == "expanded":
        value = _toggled(shell)
    elif isinstance(value, bool):
        value = not value
    text = shown(not value if inverted else value) if value is not None else "the default of the format"
    message = f"Option {'tuples_only' if inverted else name} is {text}."
    return _set(message, **{name: value}) if len(args) > 1 or value != before else ShowMessage(message)


def _toggled(shell: ShellView) -> str:
    """The value of `expanded` after a command without a value: on, or the default."""
    default = "auto" if shell.session.interactive else "off"
    return default if shell.session.options.expanded == "on" else "on"


def options_in(shell: ShellView, words: Sequence[str]) -> Mapping[str, object]:
    """Parse options such as `format=csv`. Raises UsageError."""
    options: dict[str, object] = {}
    for word in words:
        given, equals, text = word.partition("=")
        name, inverted = _option(given)
        if not equals:
            raise UsageError(f"option {given} requires a value", f"write it as ({given}=VALUE)")
        value = _read(shell, name, text)
        options[name] = not value if inverted else value
    return options


_PSQL_NAMES = {
    "columns": "maxwidth",
    "x": "expanded",
}


_PSQL_ONLY = dict.fromkeys(
    ("border", "linestyle", "unicode_border_linestyle", "unicode_column_linestyle", "unicode_header_linestyle"),
    "\\pset table_style selects the frame of tables",
) | {
    "pager_min_lines": "the pager opens for output that is taller than the screen",
    "tableattr": "HTML tables have no attributes",
    "csv_fieldsep": "\\format tsv separates by tabs, \\pset fieldsep sets the separator of the unaligned format",
    "fieldsep_zero": "\\pset fieldsep sets the separator",
    "recordsep_zero": "\\pset recordsep sets the separator",
    "xheader_width": "the header of a record is as wide as its values",
}
"""Options of psql without a counterpart, and their replacements."""


def _option(given: str) -> tuple[str, bool]:
    """The name of an option, and whether the value is inverted (tuples_only). Raises UsageError."""
    wanted = given.lower().replace("-", "_")
    if wanted in {"tuples_only", "t"}:
        return "header", True
    name = _PSQL_NAMES.get(wanted, wanted)
    if name not in NAMES:
        raise UsageError(f"unknown option {given!r}", did_you_mean(name, NAMES, "\\pset lists the options"))
    return name, False


NAMES = tuple(name for name in Options.__struct_fields__ if name not in {"format_chosen", "timing_chosen"})
WORDS = {
    "expanded": ("off", "on", "auto"),
    "wide": ("scroll", "fold"),
    "on_error": ("stop", "continue"),
    "verbosity": OPTION_VALUES["VERBOSITY"],
}
"""The options whose value is one of a few words."""
NUMBERS = {
    "rowlimit": "rows of a SELECT at the prompt, except on a remote service; 0 = no limit",
    "maxwidth": "width of a value in characters, 0 = no limit",
    "explore": "columns from which a result opens in the explorer, 0 = never",
    "max_rows": "rows of an unbounded result, 0 = no limit",
    "stream_for": "seconds of an unbounded result, 0 = no limit",
    "notify": "seconds, 0 = never",
    "prompt_lines": "1, or 2 for the context above the statement",
}


def _allowed(shell: ShellView, name: str) -> str:
    """A description of the values that an option accepts."""
    old = getattr(Options(), name)
    if name in WORDS:
        return ", ".join(WORDS[name])
    match name:
        case "format":
            return ", ".join(item.name for item in FORMATS)
        case "table_style":
            return in_locale("auto, psql, simple, grid, rounded_outline, …")
        case "theme":
            return "a theme; \\theme lists them"
        case "null" | "fieldsep" | "recordsep":
            return "any text"
        case "prompt_color":
            return "a color, such as #ff5f5f"
        case "insert_table":
            return "the name of a table, written as in SQL"
        case "prompt" | "rprompt" | "toolbar" | "title":
            return 'a template, such as "{database}> "'
    return "on, off" if isinstance(old, bool) else NUMBERS.get(name, "a number")


def _read(shell: ShellView, name: str, text: str) -> object:
    old = getattr(Options(), name)
    if name == "expanded" and text.lower() in SWITCH:
        return "on" if SWITCH[text.lower()] else "off"
    if name in WORDS:
        if text.lower() not in WORDS[name]:
            raise UsageError(f"\\pset {name}: invalid value {text!r}", f"expected one of {', '.join(WORDS[name])}")
        return text.lower()
    if isinstance(old, bool):
        if text.lower() not in SWITCH:
            raise UsageError(f"\\pset {name}: invalid value {text!r}", "expected on or off")
        return SWITCH[text.lower()]
    if isinstance(old, int):
        if not (text.isascii() and text.isdecimal()):
            raise UsageError(f"\\pset {name}: invalid value {text!r}", f"expected a number ({NUMBERS[name]})")
        return int(text)
    if isinstance(old, float):
        from sqlshell.config.values import seconds_of

        seconds = seconds_of(text)
        if seconds is None:
            raise UsageError(
                f"\\pset {name}: invalid value {text!r}", f"expected a duration ({NUMBERS[name]}), such as 30s or 5m"
            )
        return seconds
    match name:
        case "format":
            return format_named(text).name
        case "table_style":
            from sqlshell.output.writers.styles import table_style

            table_style(text)
        case "theme" if text not in shell.environment.themes():
            raise UsageError(f"unknown theme {text!r}", f"themes: {', '.join(shell.environment.themes())}")
        case "prompt" | "rprompt" | "toolbar" | "title":
            return checked(name, text)
        case "prompt_color":
            return checked_color(text)
        case "fieldsep" | "recordsep":
            return separator(text)
    return text


def shown(value: object) -> str:
    """The value of an option as \\pset prints it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}s" if value else "0"
    return "(default of the format)" if value is None else shown_separator(str(value))


COMMANDS = (expanded, choose_format, alignment, field_separator, timing, theme, rows_only, pset)
