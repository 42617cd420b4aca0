"""The OpenAPI 3.1 document of the interface as this service implements it."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping, Sequence
from typing import Any

from sqlshell.interface.models import PARQUET
from sqlshell.service.http.body import BATCH, NOT_ZONES
from sqlshell.service.objects.resources import KINDS
from sqlshell.service.objects.valid_names import name_pattern
from sqlshell.service.options import Options
from sqlshell.version import __version__

Json = dict[str, Any]
TEXT: Json = {"type": "string"}
UUID: Json = {"type": "string", "format": "uuid"}
COUNT: Json = {"type": "integer", "minimum": 0}
EVERYWHERE = ("400", "401", "403", "405", "408", "414", "421", "429", "431", "500", "501", "503")
"""Error statuses of any request; most of them occur before the request is routed."""

NULLABLE: Json = {"type": ["string", "null"]}


def document(options: Options) -> Json:
    """Build the document for a service with these options."""
    submitted: Json = {"anyOf": [_ref("StatementRequest"), _ref("BatchRequest")]}
    paths: Json = {
        "/v2/statements": {
            "post": {
                "operationId": "submitStatement",
                "summary": "Submit a statement",
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {
                            "schema": _object(
                                {
                                    "request": submitted,
                                    "attachments": _list({**TEXT, "format": "binary"}),
                                },
                                ["request"],
                            ),
                            "encoding": {"request": {"contentType": "application/json"}},
                        },
                        "application/json": {"schema": submitted},
                    },
                },
                "responses": _statement("finished, failed, or a SELECT on a stream that has started", ("413", "415")),
            }
        },
        "/v2/statements/{statementID}": {
            "get": {
                "operationId": "getStatementStatus",
                "summary": "Look up a statement",
                "description": (
                    "With partitionID, the request waits for the statement to finish: at most four seconds, or less "
                    "with the header Prefer: wait=N. The token of a dataplaneRequest is also accepted here. "
                    "Accept: application/vnd.apache.parquet without partitionID requests the whole result as a file. "
                    "If Accept also allows JSON, a result that is stored as JSON is returned as JSON; otherwise it is "
                    "converted to Parquet. "
                    "With Prefer: engine-types, columns have an engineType if the type alone does not identify it."
                ),
                "security": [{"token": []}, {"dataplane": []}],
                "parameters": [_path("statementID", UUID), *_look_up(), _query("batch", {**COUNT, "maximum": BATCH})],
                "responses": _statement(
                    "finished, failed, or a SELECT on a stream that is running",
                    ("404", "412", "416"),
                    whole=True,
                ),
            }
        },
        "/v2/version": {"get": _version("getVersion")},
        "/v2/download/{resourceType}/{organizationID}/{resourceName}": {
            "get": _download("downloadResource", "resourceType", "organizationID", "resourceName")
        },
        "/openapi.json": {
            "get": {
                "operationId": "getDocument",
                "summary": "This document",
                "security": [],
                "responses": {
                    "200": {
                        "description": "OpenAPI 3.1",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    },
                    **_errors(()),
                },
            }
        },
        "/v2/streams/{statementID}": {"get": _stream()},
    }
    if options.legacy:
        paths |= _legacy()
    return {
        "openapi": "3.1.0",
        "info": {"title": "Statement Execution Service", "version": __version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "dataplane": {"type": "http", "scheme": "bearer"},
            },
            "schemas": _schemas(options),
        },
    }


def _stream() -> Json:
    return {
        "operationId": "readStream",
        "summary": "Read the rows of a SELECT on a stream over a websocket",
        "description": (
            'First send the frame {"type": "auth", "accessToken": …, "sessionId": …} with the token of the '
            "dataplaneRequest; each received frame is a StreamFrame. The response to a request that does not ask for a "
            "websocket is 401 or 404, to one with another Host 421, and to one with another Origin 403. An invalid "
            "first frame closes the websocket with 4401."
        ),
        "security": [],
        "parameters": [_path("statementID", UUID)],
        "responses": {"101": {"description": "the websocket is open"}, **_errors(("404",))},
    }


def _schemas(options: Options) -> Json:
    name = {**NULLABLE, "maxLength": options.bounds.name}
    session = {**name, "pattern": name_pattern()}
    parameters = {
        "timezone": {"type": ["string", "null"], "enum": [*_zones(), None]},
        "sessionID": session,
        "transaction": {"type": ["string", "null"], "enum": ["open", "failed", None]},
    }
    place = {
        **dict.fromkeys(("organization", "role", "database", "schema", "store", "computePool"), name),
        "parameters": {**_object(parameters, []), "type": ["object", "null"]},
    }
    request = {
        "statement": {**TEXT, "minLength": 1, "maxLength": options.statement_limit, "pattern": r"\S"},
        **place,
    }
    batch = {
        "statements": {**_list({**TEXT, "minLength": 1, "pattern": r"\S"}), "minItems": 1, "maxItems": BATCH},
        "onError": {"type": ["string", "null"], "enum": ["stop", "continue", None]},
        **place,
    }
    column = {"name": TEXT, "type": TEXT, "nullable": {"type": "boolean"}, "display_hint": TEXT, "engineType": TEXT}
    number = {"type": ["integer", "null"]}
    framed = {**column, "length": number, "precision": number, "scale": number}
    context = {
        "organizationID": UUID,
        **dict.fromkeys(("roleName", "databaseName", "schemaName", "storeName", "computePoolName", "timezone"), TEXT),
        "transaction": {**TEXT, "enum": ["open", "failed"]},
    }
    plane = {
        **dict.fromkeys(("token", "uri", "queryID"), TEXT),
        "statementID": UUID,
        "requestType": {**TEXT, "enum": ["result-set", "streaming"]},
    }
    metadata = {
        "encoding": {**TEXT, "enum": ["json"]},
        "partitionInfo": _list(_object({"rowCount": COUNT}, ["rowCount"])),
        "columns": _list(_object(column, ["name", "type", "nullable"])),
        "dataplaneRequest": _object(plane, ["token", "uri", "statementID", "requestType"]),
        "context": _object(context, []),
    }
    status = {
        "sqlState": {**TEXT, "minLength": 5, "maxLength": 6},
        "message": TEXT,
        "statementID": UUID,
        "statementIDs": _list(UUID),
        "createdOn": {"type": "integer", "format": "int64"},
        "progress": {"type": "number", "minimum": 0, "maximum": 1},
        "statements": _list({"anyOf": [_ref("BatchedResultSet"), _ref("StatementStatus")]}),
    }
    whole = ["encoding", "partitionInfo", "columns"]
    result = {
        **{name: schema for name, schema in status.items() if name != "progress"},
        "metadata": _object(metadata, [*whole, "context"]),
        "data": _list(_list(NULLABLE)),
    }
    batched = {**result, "metadata": _object(metadata, whole), "elapsed": {"type": "number", "minimum": 0}}
    element = {"id": TEXT, "secret": TEXT, "data": _list({"type": "object"}), "action": TEXT, "target": TEXT}
    numbers = {name: {"type": "integer"} for name in ("major", "minor", "patch")}
    return {
        "StatementRequest": _object(request, ["statement"]),
        "BatchRequest": {**_object(batch, ["statements"]), "not": {"required": ["statement"]}},
        "StatementStatus": _object(status, ["sqlState", "statementID", "createdOn"]),
        "ResultSet": _object(result, ["sqlState", "statementID", "createdOn", "metadata"]),
        "BatchedResultSet": _object(batched, ["sqlState", "statementID", "createdOn", "metadata"]),
        "Version": _object(numbers, list(numbers)),
        "Error": _object({"message": TEXT, "traceID": TEXT}, ["message"]),
        "StreamFrame": _object(
            {
                "type": {**TEXT, "enum": ["metadata", "data", "error"]},
                "headers": {"type": "object"},
                "columns": _list(_object(framed, ["name", "type", "nullable"])),
                "data": _list(NULLABLE),
                "message": TEXT,
                "sqlCode": TEXT,
            },
            ["type", "headers"],
        ),
        "LegacyElement": _object(element, []),
    }


def _legacy() -> Json:
    form = {
        "orgID": UUID,
        **dict.fromkeys(("databaseName", "schemaName", "storeName"), TEXT),
        "statement": {**TEXT, "minLength": 1},
        "attachment": _list({**TEXT, "format": "binary"}),
    }
    return {
        "/run-statement": {
            "post": {
                "operationId": "runStatement",
                "summary": "Run statements (legacy)",
                "requestBody": {
                    "required": True,
                    "content": {"multipart/form-data": {"schema": _object(form, ["statement"])}},
                },
                "responses": {
                    "200": _json("the results", _list(_ref("LegacyElement"))),
                    **_errors(("413", "415")),
                },
            }
        },
        "/copy/{resource_type}/{org_id}/{resource_name}": {
            "get": _download("copyResource", "resource_type", "org_id", "resource_name")
        },
        "/version": {"get": _version("getLegacyVersion")},
    }


def _zones() -> list[str]:
    return sorted(zoneinfo.available_timezones() - NOT_ZONES)


def _look_up() -> list[Json]:
    number = {"type": "integer", "format": "int32", "minimum": 0, "maximum": 2**31 - 1}
    zone = {**TEXT, "enum": _zones()}
    return [_query("sessionID", TEXT), _query("partitionID", number), _query("timezone", zone)]


def _download(name: str, kind: str, organization: str, resource: str) -> Json:
    bytes_of = {"application/octet-stream": {"schema": {**TEXT, "format": "binary"}}}
    return {
        "operationId": name,
        "summary": "Download a resource",
        "parameters": [_path(kind, {**TEXT, "enum": list(KINDS)}), _path(organization, UUID), _path(resource, TEXT)],
        "responses": {
            "200": {"description": "the bytes", "content": bytes_of},
            **_part(bytes_of),
            **_errors(("404", "412", "416")),
        },
    }


def _version(name: str) -> Json:
    return {
        "operationId": name,
        "summary": "The service's version",
        "responses": {"200": _json("three numbers", _ref("Version")), **_errors(())},
    }


def _part(content: Json) -> Json:
    return {
        "206": {"description": "the bytes of a Range", "content": content},
        "304": {"description": "not modified"},
    }


def _statement(finished: str, errors: Sequence[str], *, whole: bool = False) -> Json:
    done = _json(finished, _ref("ResultSet"))
    file: Json = {PARQUET: {"schema": {**TEXT, "format": "binary"}}} if whole else {}
    done["content"] |= file
    return {
        "200": done,
        **(_part(file) if whole else {}),
        "202": _json("running or queued", _ref("StatementStatus")),
        **_errors(errors),
    }


def _errors(statuses: Sequence[str]) -> Json:
    return {status: _json("an error", _ref("Error")) for status in sorted({*statuses, *EVERYWHERE})}


def _json(text: str, schema: Json) -> Json:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Mapping[str, Any], required: Sequence[str]) -> Json:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _path(name: str, schema: Json) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(name: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "required": False, "schema": schema}
