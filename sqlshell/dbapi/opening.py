"""Opens a session at the service that a target names, by the rules of the shell: the same profiles, the same tokens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from sqlshell.client.http.trace import Trace
from sqlshell.client.statements.client import StreamLimits
from sqlshell.config.settings import CONNECTION, CONTEXT, SETTINGS
from sqlshell.config.values import config_folder, read_config, resolve
from sqlshell.dbapi.exceptions import Warning
from sqlshell.dbapi.session import Session, checked_autocommit
from sqlshell.errors import UsageError
from sqlshell.launch.credentials import permission_problems
from sqlshell.launch.services import open_endpoint, policy_of
from sqlshell.launch.targets import MEMORY, Destination, LocalService, context_of, find_destination, own_session
from sqlshell.runtime.event_loops import in_thread_or_undone
from sqlshell.text import did_you_mean

OPTIONS: Final = frozenset(
    setting.name for setting in SETTINGS if setting.group in {CONNECTION, CONTEXT} and setting.name != "offline"
) - {"url"} | {"read_only", "confirm", "yes"}
"""The settings that a program may pass."""

_FLAGS: Final = {flag: setting.name for setting in SETTINGS if setting.name in OPTIONS for flag in setting.flags}

_log = logging.getLogger("sqlshell")


@contextlib.contextmanager
def reporting() -> Iterator[Callable[[str], None]]:
    """A function for messages about unsafe settings, which are issued at the end as warnings of the caller's caller."""
    messages: list[str] = []
    try:
        yield messages.append
    finally:
        for text in messages:
            # Frames: this generator, contextlib, connect(), its caller.
            warnings.warn(text, Warning, stacklevel=4)


async def open_session(
    target: str | os.PathLike[str], options: Mapping[str, Any], warn: Callable[[str], None], *, autocommit: bool = False
) -> Session:
    """A session at the service of `target`, after its first response. `warn` receives warnings about unsafe settings.

    Raises UsageError for a target or option that is wrong, and the errors of the service.
    """
    checked_autocommit(autocommit)
    path = os.fspath(target) if isinstance(target, str | os.PathLike) else target
    if not isinstance(path, str):
        raise UsageError(
            f"the target must be a str or a path, not {type(path).__name__}",
            "pass a URL, the name of a profile, the path of a database file, or ':memory:'",
        )
    with _named_as_in_python():
        destination = _destination_of(path, options, warn)
    if destination.settings["offline"]:
        raise UsageError("offline applies only to the shell", "remove it from the profile")
    policy = policy_of(destination)
    if policy.read_only_by in _FLAGS:
        policy = replace(policy, read_only_by=_FLAGS[policy.read_only_by])
    endpoint = await in_thread_or_undone(
        lambda: open_endpoint(destination, read_only=policy.read_only), lambda opened: opened.release()
    )
    try:
        await asyncio.to_thread(endpoint.ready)
        trace = Trace(_log.debug, _detail)
        service = endpoint.service(trace, StreamLimits, warn=warn, retry=_log.info, note=_log.info)
        embedded = isinstance(destination.service, LocalService)
        try:
            context = context_of(destination)
            if not embedded:
                await service.version()
        except BaseException:
            await service.aclose()
            raise
    except BaseException:
        await asyncio.to_thread(endpoint.release)
        raise
    return Session(
        service,
        context,
        policy,
        endpoint.release,
        own_session=own_session(destination, context),
        embedded=embedded,
        upload_limit=destination.settings["upload_limit"] << 20,
        autocommit=autocommit,
        address=destination.address,
    )


@contextlib.contextmanager
def _named_as_in_python() -> Iterator[None]:
    """An error of a setting begins with the option's name instead of the flag's."""
    try:
        yield
    except UsageError as error:
        flag, colon, rest = error.message.partition(":")
        if colon and flag in _FLAGS:
            error.message = f"{_FLAGS[flag]}:{rest}"
        raise


def _detail() -> int:
    return 1 if _log.isEnabledFor(logging.DEBUG) else 0


def _destination_of(target: str, options: Mapping[str, Any], warn: Callable[[str], None]) -> Destination:
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in OPTIONS:
            raise UsageError(
                f"unknown option {name!r}",
                did_you_mean(name, sorted(OPTIONS), "docs/python.md lists the options"),
            )
    config = read_config(config_folder(os.environ))
    if target == MEMORY:
        # Whatever the environment and the profiles say.
        return Destination(resolve(given, {}, config), LocalService())
    for text in permission_problems(config):
        warn(text)
    return find_destination(target, given, os.environ, config, warn, visible=False)
