"""Commands of click that know the table of settings, options of psql and duckdb, and groups of options in the help."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from sqlshell.config.peers import OPTIONS, REFUSED_OPTIONS, option_remedy
from sqlshell.config.settings import COUNT, GROUPS, OTHER, SETTINGS, SWITCH, Setting
from sqlshell.config.values import config_folder, read_config
from sqlshell.errors import UsageError
from sqlshell.text import any_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SUBCOMMANDS: Final = {
    "serve": "run the local service for other programs",
    "fetch": "show the result of an earlier statement",
    "import": "load a file into a table",
    "export": "write the result of a statement to a file",
    "replay": "run a transcript again and print every difference",
    "download": "download a resource of the service to a file",
    "config": "list, show, check, create or edit profiles",
    "doctor": "check the installation and the connection",
    "completion": "print the completion script for bash, zsh or fish",
    "version": "print the version; with --server also the service's",
}
"""The names of the subcommands, and what each does."""

_NAMED: Final = {"FILE": "file", "PATH": "file", "DIR": "directory"}
"""The values, by their names in the help, that must not be empty."""

_TAKEN: Final = "sqlshell.taken"
_WORDS: Final = "sqlshell.words"
_ALL: Final = "sqlshell.all"
"""In the context's `meta`: the settings that options of the peers gave, the words of the command line, and whether the
help lists all options."""

_VARIABLE: Final = r"(?s)(-[1AXelqtx]*)v([A-Za-z_]\w*=.*)?"
"""psql's -v, perhaps after other flags, and perhaps with its value."""

_ASSIGNMENT: Final = r"(?s)[A-Za-z_]\w*=.*"


def argument(name: str, **given: Any) -> click.Argument:
    """Return an argument whose value a shell completes."""
    return click.Argument([name], shell_complete=_completions, **given)


class Choice(click.Choice[str]):
    """One of a few words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Raises UsageError."""
        with contextlib.suppress(click.BadParameter):
            return super().convert(value, param, ctx)
        raise invalid(param, value, any_of(self.choices))


def invalid(parameter: click.Parameter | None, value: object, expected: str) -> UsageError:
    """The error about a value of an option."""
    name = f"{parameter.opts[0]}: " if parameter is not None else ""
    return UsageError(f"{name}invalid value {str(value)[:40]!r}", f"expected {expected}")


class Option(click.Option):
    """An option that stands in a group of the help, and whose value a shell completes.

    One that is not used `often` is listed only by `--help all`.
    """

    def __init__(self, names: Sequence[str], *, group: str = OTHER, often: bool = True, **given: Any) -> None:
        super().__init__(names, shell_complete=_completions, **given)
        self.group = group
        self.often = often


class Command(click.Command):
    """A command whose help lists options by group, which refuses empty file names, and knows options of the peers.

    `takes` are the names of the settings that are options of the command.
    """

    def __init__(
        self, name: str, parameters: Iterable[click.Parameter], *, takes: frozenset[str] = frozenset(), **given: Any
    ) -> None:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        context = settings | given.pop("context_settings", {})
        own = list(parameters)
        names = {parameter.name for parameter in own}
        shared = [option_of(item) for item in SETTINGS if item.name in takes and item.name not in names]
        super().__init__(name, params=[*own, *shared], context_settings=context, **given)
        self.takes = takes

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            left_out = not all(getattr(parameter, "often", True) for parameter in self.params)
            option.help = "show this help; --help all lists all options" if left_out else "show this help"
        return option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            listed = lists_all(ctx) or getattr(parameter, "often", True)
            if record is not None and listed and isinstance(parameter, click.Option):
                # click sets two spaces before a default.
                text = record[1].replace("  [default", " [default")
                groups.setdefault(getattr(parameter, "group", OTHER), []).append((record[0], text))
        if list(groups) == [OTHER]:
            groups = {"Options": groups[OTHER]}
        for name in sorted(groups, key=lambda name: GROUPS.index(name) if name in GROUPS else -1):
            with formatter.section(name):
                formatter.write_dl(groups[name])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args, ctx.meta[_ALL] = _without_all(args)
        ctx.meta[_WORDS] = args = _with_variables(args) if "set" in self.takes else args
        self._add_options_of_peers(args)
        self.look_at(ctx, args)
        rest = super().parse_args(ctx, list(args))
        for parameter in self.get_params(ctx):
            kind = _NAMED.get(parameter.metavar or "")
            if parameter.name == "target" and "" in _values(ctx, parameter):
                raise UsageError(
                    "TARGET is empty", f"pass a URL, a profile or a file, or omit it; see {self.name} --help"
                )
            if kind and "" in _values(ctx, parameter):
                named = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.metavar
                raise UsageError(f"{named}: the {kind} name is empty", f"pass a {kind} name; see {self.name} --help")
        ctx.params.update(ctx.meta.get(_TAKEN, {}))
        return rest

    def _add_options_of_peers(self, words: Sequence[str]) -> None:
        """Add the options of psql and duckdb, unless all words are plainly sqlshell's own: most starts need none."""
        own = {"-h", "--help", *(flag for parameter in self.params for flag in parameter.opts)}
        if self.takes and any(word[:1] == "-" and word.partition("=")[0] not in own for word in words):
            self.params += _options_of_peers(self.takes, own)

    def look_at(self, ctx: click.Context, words: Sequence[str]) -> None:
        """Look at the words of a command line before they are parsed. Raises UsageError."""


def lists_all(ctx: click.Context) -> bool:
    """Return whether the help lists all options, as after `--help all`."""
    return bool(ctx.meta.get(_ALL))


def _without_all(args: Sequence[str]) -> tuple[list[str], bool]:
    """The words of a command line without the `all` of `--help all`, and whether it was there."""
    for at, (word, following) in enumerate(itertools.pairwise([*args, ""])):
        if word == "--":
            break
        if (word in {"-h", "--help"} and following == "all") or word == "--help=all":
            return [*args[:at], "--help", *args[at + 1 + (following == "all") :]], True
    return list(args), False


def option_of(setting: Setting) -> Option:
    """Return the option of a setting."""
    kind: dict[str, Any] = {"metavar": setting.kind.metavar}
    if setting.kind is SWITCH:
        kind = {"is_flag": True, "default": None}
    elif setting.kind is COUNT:
        kind = {"count": True, "default": None}
    elif setting.kind.words:
        kind = {"type": Choice(setting.kind.words)}
    elif setting.kind.default == ():
        kind["multiple"] = True
    return Option([*setting.flags, setting.name], help=setting.help, group=setting.group, often=setting.often, **kind)


def _options_of_peers(takes: frozenset[str], used: set[str]) -> Iterator[Option]:
    """The options of psql and duckdb that set one of `takes`, and those for which a remedy is named, as far as their
    names are not `used`."""
    hidden: dict[str, Any] = {"hidden": True, "expose_value": False}
    for number, (words, (setting, value)) in enumerate(OPTIONS.items()):
        names = [word for word in words.split() if word not in used]
        if names and setting in {*takes, "help"}:
            flag = value is not None
            yield Option([*names, f"taken_{number}"], is_flag=flag, callback=_taking(setting, value), **hidden)
    for number, words in enumerate(REFUSED_OPTIONS):
        names = [word for word in words.split() if word not in used and "=" not in word]
        if names:
            # The value is optional: an option is refused for its name.
            yield Option([*names, f"refused_{number}"], is_flag=False, flag_value="", callback=_refuse, **hidden)


def _taking(setting: str, value: Any) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that sets a setting to `value`, or to the option's value if it is None."""

    def take(ctx: click.Context, parameter: click.Parameter, given: Any) -> None:
        if not given or ctx.resilient_parsing:
            return
        if setting == "help":
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        ctx.meta.setdefault(_TAKEN, {})[setting] = given if value is None else value

    return take


def _refuse(ctx: click.Context, parameter: click.Parameter, given: Any) -> None:
    """Raises UsageError if an option of a peer is given."""
    if given is None or ctx.resilient_parsing:
        return
    typed = {word.partition("=")[0] for word in ctx.meta[_WORDS]}
    name = next((name for name in parameter.opts if name in typed), parameter.opts[0])
    raise UsageError(f"unknown option {name}", option_remedy(name))


def _with_variables(args: Sequence[str]) -> list[str]:
    """The words of a command line with --set NAME=VALUE in place of psql's -v NAME=VALUE and --variable.

    A -v without an assignment is sqlshell's own.
    """
    left, words = list(reversed(args)), []
    while left and left[-1] != "--":
        word = left.pop()
        name, equals, value = word.partition("=")
        if name == "--variable":
            word = f"--set{equals}{value}"
        match = re.fullmatch(_VARIABLE, word) if word[:1] == "-" and "v" in word else None
        assignment = match[2] if match is not None else None
        if match is not None and assignment is None and left and re.fullmatch(_ASSIGNMENT, left[-1]):
            assignment = left.pop()
        if match is None or assignment is None:
            words.append(word)
        else:
            words += ["--set", assignment] if match[1] == "-" else [match[1], "--set", assignment]
    return [*words, *reversed(left)]


def _values(ctx: click.Context, parameter: click.Parameter) -> tuple[Any, ...]:
    """What the command line gives for a parameter."""
    if ctx.get_parameter_source(parameter.name or "") is not ParameterSource.COMMANDLINE:
        return ()
    given = ctx.params.get(parameter.name or "")
    return given if isinstance(given, tuple) else (given,)


def _completions(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """What a shell offers for a value: files, or the names of what is known."""
    from click.shell_completion import CompletionItem

    if kind := _NAMED.get(parameter.metavar or ""):
        return [CompletionItem(typed, type="dir" if kind == "directory" else "file")]
    words: dict[str, str] = {}
    match parameter.name:
        case "target":
            # A subcommand comes first.
            others = [item for item in ctx.command.params if _values(ctx, item)]
            words = ({} if others or ctx.info_name != "sqlshell" else dict(SUBCOMMANDS)) | _profiles()
        case "profile":
            words = _profiles()
        case "format":
            from sqlshell.output.writers.formats import FORMATS

            words = {item.name: item.summary for item in FORMATS}
        case _ if "|" in (parameter.metavar or ""):
            words = dict.fromkeys((parameter.metavar or "").split("|"), "")
        case _:
            return parameter.type.shell_complete(ctx, parameter, typed)
    found = [CompletionItem(word, help=text) for word, text in words.items() if word.startswith(typed)]
    return [CompletionItem(typed, type="file"), *found] if parameter.name == "target" else found


def _profiles() -> dict[str, str]:
    with contextlib.suppress(UsageError):
        return dict.fromkeys(read_config(config_folder(os.environ)).profiles, "profile")
    return {}
