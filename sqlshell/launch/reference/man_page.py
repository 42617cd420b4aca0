"""The man page, in roff: `sqlshell man | man -l -`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Described = Mapping[str, Any]


def man_page(spec: Described) -> str:
    """sqlshell(1)."""
    return "\n".join(_lines(spec)) + "\n"


def _lines(spec: Described) -> Iterator[str]:
    yield f'.TH SQLSHELL 1 "" "sqlshell {spec["version"]}" "User Commands"'
    yield ".SH NAME"
    yield "sqlshell \\- SQL shell for statement\\-execution services"
    yield ".SH SYNOPSIS"
    yield ".B sqlshell"
    yield _plain("[OPTIONS] [TARGET]")
    for item in spec["subcommands"]:
        arguments = " ".join(each["name"] if each["required"] else f"[{each['name']}]" for each in item["arguments"])
        yield ".br"
        yield f".B sqlshell {_plain(item['name'])}"
        yield _plain(f"[OPTIONS] {arguments}".rstrip())
    yield ".SH DESCRIPTION"
    yield _plain(spec["help"])
    yield ".SH OPTIONS"
    groups: dict[str, list[Described]] = {}
    for option in spec["options"]:
        groups.setdefault(option.get("group", ""), []).append(option)
    for group, options in groups.items():
        if group:
            yield f".SS {_plain(group)}"
        yield from _options(options)
    yield ".SH SUBCOMMANDS"
    shared = {tuple(option["names"]) for option in spec["options"]}
    for item in spec["subcommands"]:
        yield f".SS sqlshell {_plain(item['name'])}"
        yield _plain(item["help"])
        own = [option for option in item["options"] if tuple(option["names"]) not in shared]
        yield from _options(own)
    yield ".SH BACKSLASH COMMANDS"
    group = ""
    for item in spec["commands"]:
        if item["group"] != group:
            group = item["group"]
            yield f".SS {_plain(group)}"
        yield from _tagged(f"\\{item['name']} {item['usage']}".rstrip(), item["help"])
    yield ".SH FORMATS"
    for item in spec["formats"]:
        extensions = f" ({' '.join(item['extensions'])})" if item["extensions"] else ""
        yield from _tagged(item["name"], item["help"] + extensions)
    yield ".SH ENVIRONMENT"
    for option in spec["options"]:
        if "environment" in option:
            yield from _tagged(option["environment"], option["help"])
    yield ".SH EXAMPLES AND EXIT STATUS"
    yield ".nf"
    yield _plain(spec["epilog"].strip())
    yield ".fi"


def _options(options: Sequence[Described]) -> Iterable[str]:
    for option in options:
        names = ", ".join(option["names"])
        yield from _tagged(f"{names} {option['metavar']}".rstrip(), option["help"])


def _tagged(tag: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {_quoted(tag)}"
    paragraphs = text.split("\n\n")
    yield _plain(paragraphs[0])
    for paragraph in paragraphs[1:]:
        yield ".IP"
        yield _plain(paragraph)


def _quoted(text: str) -> str:
    return f'"{_plain(text).replace(chr(34), chr(92) + "(dq")}"'


def _plain(text: str) -> str:
    """A text that roff shows as it is: in ASCII, hyphens escaped, no line that begins like a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in escaped.split("\n"))
