"""The commands of click that make up the command line: their help, and options from the table of settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
from click.core import ParameterSource

from sqlshell.config.settings import GROUPS, OTHER, SCRIPTS, SETTINGS, Setting
from sqlshell.errors import UsageError
from sqlshell.launch.subcommands import SUBCOMMANDS

_FILES: Final = {"FILE": "file", "PATH": "file", "DIR": "directory"}
"""The values, by their names in the help, that must not be empty."""


class Command(click.Command):
    """A command of click whose own text for --help is replaced."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "show this help and exit"
        return option

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        for parameter in self.get_params(ctx):
            kind = _FILES.get(parameter.metavar or "")
            if parameter.name in {"target", "targets"} and "" in _values(ctx, parameter):
                raise UsageError(
                    "TARGET is empty", f"pass a URL, a profile or a file, or omit it; see {self.name} --help"
                )
            if kind and "" in _values(ctx, parameter):
                named = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.metavar
                raise UsageError(f"{named}: the {kind} name is empty", f"pass a {kind} name; see {self.name} --help")
        return rest


def _values(ctx: click.Context, parameter: click.Parameter) -> tuple[Any, ...]:
    """What the command line gives for a parameter."""
    if ctx.get_parameter_source(parameter.name or "") is not ParameterSource.COMMANDLINE:
        return ()
    given = ctx.params.get(parameter.name or "")
    return given if isinstance(given, tuple) else (given,)


class GroupedCommand(Command):
    """A command whose help lists options by group, and which records the order of -c and -f.

    `own` are the names of the options that only this subcommand has; they come first in its help.
    """

    def __init__(self, *args: Any, own: frozenset[str] = frozenset(), **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.own = own

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        title = (self.name or "").split()[-1].capitalize()
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in ((title,) if self.own else ()) + GROUPS}
        places = {setting.name: setting.group for setting in SETTINGS} | {
            "command": SCRIPTS,
            "file": SCRIPTS,
            "output": "Output",
            "input_format": SCRIPTS,
            "no_align": "Output",
            "expanded": "Output",
        }
        places.update(dict.fromkeys(self.own, title))
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups[places.get(parameter.name or "", OTHER)].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if self.name != "sqlshell":
            return
        with formatter.section("Subcommands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        parser = self.make_parser(ctx)
        if self.name == "sqlshell":
            # Options of a subcommand are unknown here, and must not be reported as the error.
            parser.ignore_unknown_options = True
        given, rest, order = parser.parse_args(list(args))
        if self.name == "sqlshell":
            targets = given.get("target")
            words = [*(targets if isinstance(targets, tuple | list) else ()), *rest]
            if given.get("verbose"):
                _refuse_variable(words)
            _refuse_subcommand(words)
        ctx.meta["scripts"] = [item.name for item in order if item.name in {"command", "file"}]
        return super().parse_args(ctx, args)


def _refuse_subcommand(words: Sequence[str]) -> None:
    """Raises UsageError if the first word that is not an option is a subcommand."""
    first = next((word for word in words if word[:1] != "-"), "")
    if first in SUBCOMMANDS:
        raise UsageError(
            f"the subcommand {first} must come first: sqlshell {first} …", f"sqlshell {first} --help lists its options"
        )


def _refuse_variable(words: Sequence[str]) -> None:
    """Raises UsageError for `-v NAME=VALUE`, which sets a variable in psql."""
    for word in words:
        name, equals, _ = word.partition("=")
        if equals and name.isidentifier():
            raise UsageError("-v prints more messages and takes no value", f"to set a variable: --set {word}")


def option_of(setting: Setting) -> click.Option:
    name = [*setting.flags, setting.name]
    if setting.kind == "flag":
        return click.Option(name, is_flag=True, default=None, help=setting.help)
    if setting.kind == "many":
        return click.Option(name, multiple=True, metavar=setting.metavar, help=setting.help)
    if setting.kind == "count":
        return click.Option(name, count=True, default=None, help=setting.help)
    if setting.kind == "choice":
        return click.Option(name, type=click.Choice(setting.choices), help=setting.help)
    return click.Option(name, metavar=setting.metavar, help=setting.help)
