"""A submission as the equivalent curl command, without the token, which curl takes from the environment."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TextIO

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.legacy import FIELDS
from sqlshell.client.statements.client import Submission
from sqlshell.client.statements.protocol import request_part
from sqlshell.client.target import Target
from sqlshell.context import SessionContext


def curl(target: Target, submission: Submission, context: SessionContext, *, legacy: bool, options: list[str]) -> str:
    """The curl command, over several lines. `options` are additional arguments, such as certificates."""
    lines = ["curl -sS"]
    if target.uds:
        lines[0] += f" --unix-socket {shlex.quote(target.uds)}"
    lines += [shlex.quote(option) for option in options]
    lines.append('-H "Authorization: Bearer $SQLSHELL_TOKEN"')
    if legacy:
        given = dict(context.parts())
        texts = {name: given[part] for name, part in FIELDS if given[part]} | {"statement": submission.text}
        lines += [f"--form-string {shlex.quote(f'{name}={text}')}" for name, text in texts.items()]
        file, path = "attachment", "/run-statement"
    else:
        request = request_part(context.request(submission.text, submission.row_limit)).decode()
        quoted = request.replace("\\", "\\\\").replace('"', '\\"')
        part = f'request="{quoted}";type=application/json'
        lines.append(f"-F {shlex.quote(part)}")
        file, path = "attachments", "/v2/statements"
    for item in submission.attachments:
        name = str(item.path).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f"""-F {shlex.quote(f'{file}=@"{name}";filename="{item.name}"')}""")
    lines.append(shlex.quote(f"{target.base}{path}"))
    return " \\\n  ".join(lines)


def curl_printer(
    target: Target, network: NetworkOptions, stdout: TextIO, *, legacy: bool
) -> Callable[[Submission, SessionContext], None]:
    """What prints each request as a curl command."""
    files = {"--cacert": network.ca_file, "--cert": network.client_cert, "--key": network.client_key}
    options = [word for flag, file in files.items() if file for word in (flag, file)]
    options += ["--insecure"] if network.insecure else []

    def print_curl(submission: Submission, context: SessionContext) -> None:
        stdout.write(f"{curl(target, submission, context, legacy=legacy, options=options)}\n")
        stdout.flush()

    return print_curl
