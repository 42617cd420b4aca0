"""Completion of the command line in bash, zsh and fish, as scripts that run sqlshell only to list profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Described = Mapping[str, Any]

PROFILES = "sqlshell config list 2>/dev/null | awk '{print $1}'"
FILES = frozenset({"FILE", "DIR", "PATH", "TARGET"})


def bash(spec: Described) -> str:
    """A function for bash's `complete`, without the package bash-completion."""
    cases = []
    for name, command in _commands(spec):
        values = "\n".join(
            f"        {'|'.join(option['names'])}) {_bash_values(option)}; return ;;"
            for option in command["options"]
            if option["metavar"]
        )
        words = " ".join(word for option in command["options"] for word in option["names"])
        first = " ".join(item["name"] for item in spec["subcommands"]) if not name else _first_words(name, command)
        cases.append(
            f"    {name or '*'})\n      case $previous in\n{values}\n      esac\n"
            f'      options="{words}"\n      first="{first}"\n      ;;'
        )
    # The command without a name stands last: its pattern takes everything.
    cases = [*cases[1:], cases[0]]
    body = "\n".join(cases)
    return f"""# Completion of sqlshell for bash: eval "$(sqlshell completion bash)"
_sqlshell_files() {{
  local IFS=$'\n'
  COMPREPLY=($(compgen -f -- "$current"))
}}
_sqlshell() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous= options= first=
  [ "$COMP_CWORD" -gt 1 ] && previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  case ${{COMP_WORDS[1]}} in
{body}
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    _sqlshell_files
    [ "$COMP_CWORD" -eq 1 ] || [ "${{COMP_WORDS[1]}}" = config ] || [ "${{COMP_WORDS[1]}}" = completion ] &&
      COMPREPLY+=($(compgen -W "$first" -- "$current"))
  fi
}}
complete -o filenames -F _sqlshell sqlshell
"""


def _bash_values(option: Described) -> str:
    if option["choices"]:
        return f'COMPREPLY=($(compgen -W "{" ".join(option["choices"])}" -- "$current"))'
    if "--profile" in option["names"]:
        return f'COMPREPLY=($(compgen -W "$({PROFILES})" -- "$current"))'
    if option["metavar"] in FILES:
        return "_sqlshell_files"
    return ":"


def zsh(spec: Described) -> str:
    """A function for zsh's `_arguments`."""
    functions = []
    for name, command in _commands(spec):
        lines = [_zsh_option(option) for option in command["options"]]
        if name:
            words = _first_words(name, command)
            lines.append(f"'1:{words and 'word'}:({words})'" if words else "'*:file:_files'")
            function = f"_sqlshell_{name}"
        else:
            lines.append("'1: :_sqlshell_first'")
            function = "_sqlshell_main"
        body = " \\\n    ".join(lines)
        functions.append(f"{function}() {{\n  _arguments -s \\\n    {body}\n}}")
    known = "|".join(item["name"] for item in spec["subcommands"])
    joined = "\n".join(functions)
    names = " ".join(f"'{item['name']}:{_zsh(item['summary'])}'" for item in spec["subcommands"])
    return f"""#compdef sqlshell
# Completion of sqlshell for zsh: eval "$(sqlshell completion zsh)", after compinit
{joined}
_sqlshell_subcommands() {{
  local -a names=({names})
  _describe -t commands subcommand names
}}
_sqlshell_first() {{
  _alternative commands:subcommand:_sqlshell_subcommands files:target:_files
}}
_sqlshell() {{
  if (( CURRENT > 2 )) && [[ $words[2] == ({known}) ]]; then
    local name=$words[2]
    shift words
    (( CURRENT-- ))
    _sqlshell_$name
  else
    _sqlshell_main
  fi
}}
compdef _sqlshell sqlshell
"""


def _zsh_option(option: Described) -> str:
    text = f"[{_zsh(option['help'])}]"
    names = option["names"]
    spread = f"{{{','.join(names)}}}" if len(names) > 1 else names[0]
    exclusive = "'*'" if option["repeatable"] else f"'({' '.join(names)})'" if len(names) > 1 else ""
    value = ""
    if option["metavar"]:
        value = f":{_zsh(option['metavar'])}:"
        if option["choices"]:
            value += f"({' '.join(option['choices'])})"
        elif "--profile" in names:
            value += "($(" + PROFILES.replace("'", "'\\''") + "))"
        elif option["metavar"] in FILES:
            value += "_files"
        else:
            value += " "
    return f"{exclusive}{spread}'{text}{value}'"


def _zsh(text: str) -> str:
    for char in "\\[]:()":
        text = text.replace(char, "\\" + char)
    return text.replace("'", "'\\''").replace('"', "").replace("`", "").replace("$", "\\$").replace("\n", " ")


def fish(spec: Described) -> str:
    """Lines of fish's `complete`."""
    lines = ["# Completion of sqlshell for fish: sqlshell completion fish | source"]
    subcommands = " ".join(item["name"] for item in spec["subcommands"])
    for name, command in _commands(spec):
        where = f"__fish_seen_subcommand_from {name}" if name else f"not __fish_seen_subcommand_from {subcommands}"
        if words := _first_words(name, command):
            lines.append(f"complete -c sqlshell -n '{where}' -xa '{words}'")
        lines += [_fish_option(where, option) for option in command["options"]]
    for item in spec["subcommands"]:
        lines.append(f"complete -c sqlshell -n __fish_is_first_arg -a {item['name']} -d '{_fish(item['summary'])}'")
    return "\n".join(lines) + "\n"


def _fish_option(where: str, option: Described) -> str:
    words = [f"complete -c sqlshell -n '{where}'"]
    for name in option["names"]:
        words.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
    if option["choices"]:
        words.append(f"-xa '{' '.join(option['choices'])}'")
    elif "--profile" in option["names"]:
        words.append(f'-xa "({PROFILES.replace("$", chr(92) + "$")})"')
    elif option["metavar"] in FILES:
        words.append("-rF")
    elif option["metavar"]:
        words.append("-x")
    return " ".join([*words, f"-d '{_fish(option['help'])}'"])


def _fish(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", " ")


def _commands(spec: Described) -> Iterable[tuple[str, Described]]:
    return [("", spec), *((item["name"], item) for item in spec["subcommands"])]


def _first_words(name: str, command: Described) -> str:
    """The words that the first argument of a subcommand may be, from its metavar `a|b`."""
    names = [item["name"] for item in command["arguments"]][:1] if name else []
    return " ".join(names[0].split("|")) if names and "|" in names[0] else ""


SHELLS: Mapping[str, Callable[[Described], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
