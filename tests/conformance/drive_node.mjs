// Runs in Node with its own fetch, as strictly as the published API document is: what a generated TypeScript client does.
// Reads {"url", "token"} as JSON from stdin; writes {name: outcome} as JSON to stdout.
import { readFileSync } from "node:fs";

const { url, token } = JSON.parse(readFileSync(0, "utf8"));

function must(holds, what, body) {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(body)}`);
}

function checkStatus(body) {
  must(typeof body.sqlState === "string" && typeof body.statementID === "string", "status", body);
  must(Number.isInteger(body.createdOn), "createdOn", body);
  must(!("metadata" in body), "a status has no metadata", body);
}

function checkResultSet(body) {
  must(typeof body.sqlState === "string" && typeof body.statementID === "string", "result set", body);
  must(Number.isInteger(body.createdOn), "createdOn", body);
  const { encoding, partitionInfo, columns, dataplaneRequest } = body.metadata;
  must(encoding === "json" || encoding === "", "encoding", body);
  must(partitionInfo.every((item) => Number.isInteger(item.rowCount)), "partitionInfo", body);
  for (const column of columns)
    must(typeof column.name === "string" && typeof column.type === "string" && typeof column.nullable === "boolean", "column", body);
  for (const row of body.data ?? []) {
    must(row.length === columns.length, "as many values as columns", body);
    for (const value of row) must(value === null || typeof value === "string", "a value is text or null", body);
  }
  if (dataplaneRequest)
    for (const key of ["token", "uri", "requestType", "statementID"])
      must(typeof dataplaneRequest[key] === "string", key, body);
}

async function submit(statement, { attachments = [], bearer = token, context = {} } = {}) {
  const form = new FormData();
  const request = { statement, parameters: { sessionID: "node" }, ...context };
  form.append("request", new Blob([JSON.stringify(request)], { type: "application/json" }));
  for (const [name, bytes] of attachments) form.append("attachments", new Blob([bytes]), name);
  const headers = { Authorization: `Bearer ${bearer}` };
  let answer = await fetch(`${url}/v2/statements`, { method: "POST", headers, body: form });
  const statuses = [answer.status];
  while (answer.status === 202) {
    const body = await answer.json();
    checkStatus(body);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const query = new URLSearchParams({ partitionID: "0", timezone: "UTC", sessionID: "node" });
    answer = await fetch(`${url}/v2/statements/${body.statementID}?${query}`, { headers });
    statuses.push(answer.status);
  }
  const body = await answer.json();
  if (answer.ok) checkResultSet(body);
  return { statuses, state: body.sqlState, message: body.message, data: body.data ?? [], metadata: body.metadata };
}

const large = new Uint8Array(3_000_000).fill(120);
const calls = {
  quick: () => submit("select 1 as one, null as nothing;"),
  slow: () => submit("select count(*) as n from range(25000) a, range(10000) b where a.range * b.range % 7 = 1;"),
  ddl: () => submit("create table made (i integer);"),
  several: () => submit("insert into made values (1); insert into made values (2); select * from made;"),
  failed: () => submit("select * from none;"),
  empty: () => submit("select * from made where i > 5;"),
  listed: () => submit("LIST DATABASES;"),
  stream: () => submit("create stream clicks (id integer);"),
  streaming: () => submit("select id from clicks;"),
  attached: () => submit("create function_source big with ('file' = 'big.jar');", { attachments: [["big.jar", large]] }),
  unauthorized: () => submit("select 1;", { bearer: "wrong", attachments: [["big.jar", large]] }),
};
const outcomes = {};
for (const [name, call] of Object.entries(calls)) {
  try {
    outcomes[name] = await call();
  } catch (error) {
    outcomes[name] = { error: `${error}`, cause: `${error.cause ?? ""}` };
  }
}
console.log(JSON.stringify(outcomes));
process.exit(0);
