"""Commands of psql that the shell does not have, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CATALOGS: Final[Mapping[str, str]] = {
    "dA": "pg_am",
    "db": "pg_tablespace",
    "dc": "pg_conversion",
    "dC": "pg_cast",
    "dconfig": "pg_settings",
    "dd": "pg_description",
    "ddp": "pg_default_acl",
    "dE": "pg_foreign_table",
    "des": "pg_foreign_server",
    "det": "pg_foreign_table",
    "deu": "pg_user_mapping",
    "dew": "pg_foreign_data_wrapper",
    "dF": "pg_ts_config",
    "dFd": "pg_ts_dict",
    "dFp": "pg_ts_parser",
    "dFt": "pg_ts_template",
    "dL": "pg_language",
    "do": "pg_operator",
    "dO": "pg_collation",
    "drds": "pg_db_role_setting",
    "drg": "pg_auth_members",
    "dRp": "pg_publication",
    "dRs": "pg_subscription",
    "dx": "pg_extension",
    "dX": "pg_statistic_ext",
    "dy": "pg_event_trigger",
}
"""The catalog of PostgreSQL that contains what the command lists."""

_OBJECTS: Final = "on PostgreSQL, call functions such as lo_get() and lo_put() in SQL"
_PARAMETERS: Final = "bound parameters are not supported; use :'name' to insert the value of a variable as a string"
_PIPELINES: Final = "pipelines are not supported; statements of a script are sent together where that is safe"

_REMEDIES: Final[Mapping[str, str]] = {
    "bind": _PARAMETERS,
    "bind_named": _PARAMETERS,
    "C": "print a title with \\echo",
    "close_prepared": _PARAMETERS,
    "da": "\\df lists aggregates too",
    "dD": "on PostgreSQL, \\dT lists domains too",
    "dl": _OBJECTS,
    "dP": "on PostgreSQL, \\dt and \\di list partitioned relations too",
    "ef": "\\sf NAME shows the definition, and \\e edits the last statement",
    "encoding": "text is always UTF-8",
    "ev": "\\schema NAME shows the definition, and \\e edits the last statement",
    "H": "use \\format html",
    "html": "use \\format html",
    "parse": _PARAMETERS,
    "password": "on PostgreSQL, write ALTER ROLE name PASSWORD '…'; the history does not keep the password",
    "setenv": "\\! runs a shell command; to set an environment variable for it: \\! NAME=VALUE command",
}


def remedy(name: str) -> str:
    """The hint for a command of psql that the shell does not have; "" for other names."""
    name = name.rstrip("+")
    if name.startswith("lo_"):
        return _OBJECTS
    if name.endswith("pipeline"):
        return _PIPELINES
    if catalog := _CATALOGS.get(name) or _CATALOGS.get(name.removesuffix("S")):
        return f"on PostgreSQL, write: select * from pg_catalog.{catalog}"
    return _REMEDIES.get(name) or _REMEDIES.get(name.removesuffix("S"), "")
