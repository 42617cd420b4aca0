"""How results are shown."""

from __future__ import annotations

from dataclasses import fields

from sqlshell.errors import UsageError
from sqlshell.output.formats import FORMATS, format_named
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.port import Port, Say
from sqlshell.shell.session import Options

SWITCH = {"on": True, "true": True, "1": True, "yes": True, "off": False, "false": False, "0": False, "no": False}


@command("x", "[on|off]")
async def expanded(port: Port, args: Args) -> Say:
    """Show each row as a record, one line a column; without a word, the other way than now."""
    options = port.session.options
    options.expanded = SWITCH[args[0]] if args else not options.expanded
    return Say(f"Expanded display is {'on' if options.expanded else 'off'}.")


@command("format", "[NAME]")
async def choose_format(port: Port, args: Args) -> Say:
    """Show the formats, or choose the one of the following results."""
    if args:
        port.session.options.format = format_named(args[0]).name
        return Say(f"Format is {port.session.options.format}.")
    width = max(len(item.name) for item in FORMATS)
    chosen = port.session.options.format
    return Say(
        "\n".join(f"{'*' if item.name == chosen else ' '} {item.name.ljust(width)}  {item.summary}" for item in FORMATS)
    )


@command("timing", "[on|off]")
async def timing(port: Port, args: Args) -> Say:
    """Show the time after each result, or not; without a word, the other way than now."""
    options = port.session.options
    options.timing = SWITCH[args[0]] if args else not options.timing
    return Say(f"Timing is {'on' if options.timing else 'off'}.")


@command("theme", "[NAME]")
async def theme(port: Port, args: Args) -> Say:
    """Show the themes in their colours, or choose one. The menu behind \\theme shows each while it is walked to."""
    names = port.hooks.themes()
    if args:
        if args[0] not in names:
            raise UsageError(f"there is no theme {args[0]!r}", f"themes: {', '.join(names)}")
        port.session.options.theme = args[0]
        return Say(f"Theme is {args[0]}.")
    chosen = port.session.options.theme
    lines = port.hooks.previews() if port.session.interactive else names
    return Say("\n".join(f"{'*' if line.split()[0] == chosen else ' '} {line}" for line in lines), own=True)


@command("pset", "[NAME] [VALUE]")
async def pset(port: Port, args: Args) -> Say:
    """Show the display options, or set one: \\pset rowlimit 0, \\pset null ∅, \\pset table_style simple."""
    options = port.session.options
    names = [field.name for field in fields(Options)]
    if not args:
        width = max(map(len, names))
        return Say("\n".join(f"  {name.ljust(width)}  {_shown(getattr(options, name))}" for name in names))
    name = args[0].replace("-", "_")
    if name not in names:
        import difflib

        near = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"options: {', '.join(names)}"
        raise UsageError(f"there is no option {args[0]!r}", hint)
    if len(args) > 1:
        setattr(options, name, _read(port, name, args[1]))
    return Say(f"{name} is {_shown(getattr(options, name))}.")


def _read(port: Port, name: str, text: str) -> object:
    old = getattr(Options(), name)
    if isinstance(old, bool):
        if text.lower() not in SWITCH:
            raise UsageError(f"{name} is on or off, not {text!r}")
        return SWITCH[text.lower()]
    if isinstance(old, int):
        if not text.isdecimal():
            raise UsageError(f"{name} is a number of rows, 0 for no limit, not {text!r}")
        return int(text)
    match name:
        case "format":
            return format_named(text).name
        case "table_style":
            from sqlshell.output.styles import style_named

            style_named(text)
        case "theme" if text not in port.hooks.themes():
            raise UsageError(f"there is no theme {text!r}", f"themes: {', '.join(port.hooks.themes())}")
        case "on_error" if text not in {"stop", "continue"}:
            raise UsageError(f"on_error is stop or continue, not {text!r}")
    return text


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "(the format's own)" if value is None else str(value)


COMMANDS = (expanded, choose_format, timing, theme, pset)
