"""The command line and the backslash commands as data: `sqlshell --spec`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from sqlshell.config.settings import BY_NAME
from sqlshell.errors import Exit
from sqlshell.output.writers.formats import FORMATS
from sqlshell.shell.commands import BUILTIN
from sqlshell.version import __version__


def spec_of(main: click.Command, summaries: Mapping[str, str], program: click.Context) -> dict[str, Any]:
    """Return everything that the help texts say; `summaries` has the names of the subcommands of the `program`.

    `options`, `arguments`, `subcommands` of the command line, `commands` (the backslash commands), `formats` and
    `exit_codes`. An option has `names`, `metavar` ("" for a flag), `choices`, `repeatable`, `help`, `group`, and, where
    it is a setting, `environment` and `profile_key`.
    """
    group = program.command
    assert isinstance(group, click.Group)
    subcommands = [
        (name, summary, command)
        for name, summary in summaries.items()
        if (command := group.get_command(program, name)) is not None
    ]
    return {
        "name": "sqlshell",
        "version": __version__,
        "help": main.help or "",
        "epilog": main.epilog or "",
        **_parameters(main),
        "subcommands": [
            {"name": name, "summary": summary, "help": command.help or "", **_parameters(command)}
            for name, summary, command in subcommands
        ],
        "commands": [
            {
                "name": item.name,
                "aliases": list(item.aliases),
                "usage": item.usage,
                "group": item.group,
                "help": item.help,
                "sends": item.sends,
            }
            for item in BUILTIN
        ],
        "formats": [{"name": item.name, "extensions": list(item.extensions), "help": item.summary} for item in FORMATS],
        "exit_codes": {item.name.lower(): int(item) for item in Exit},
    }


def _parameters(command: click.Command) -> dict[str, Any]:
    with click.Context(command, info_name=command.name, **command.context_settings) as context:
        parameters = command.get_params(context)
    return {
        "options": [_option(item) for item in parameters if isinstance(item, click.Option) and not item.hidden],
        "arguments": [
            {"name": item.human_readable_name, "required": item.required, "repeatable": item.nargs == -1}
            for item in parameters
            if isinstance(item, click.Argument)
        ],
    }


def _option(option: click.Option) -> dict[str, Any]:
    choices = list(option.type.choices) if isinstance(option.type, click.Choice) else []
    if option.name == "format":
        choices = [item.name for item in FORMATS]
    takes_value = not (option.is_flag or option.count)
    described = {
        "names": list(option.opts),
        "metavar": (option.metavar or "|".join(choices) or option.type.name.upper()) if takes_value else "",
        "choices": choices,
        "repeatable": bool(option.multiple or option.count),
        "help": option.help or "",
    }
    setting = BY_NAME.get(option.name or "")
    # An option of a subcommand is no setting, even if it has the name of one.
    if setting is None or getattr(option, "group", "") != setting.group:
        return described
    described["group"] = setting.group
    if setting.environment:
        described["environment"] = setting.variable
    if setting.profile:
        described["profile_key"] = setting.name
    return described
