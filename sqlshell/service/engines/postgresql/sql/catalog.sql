-- What the service asks for LIST, DESCRIBE, USE and names in statements.

--- current names
SELECT pg_catalog.current_database(), pg_catalog.current_schema(), pg_catalog.version()

--- place
SELECT pg_catalog.current_schema(), pg_catalog.current_setting('search_path')

--- set
SELECT pg_catalog.set_config($1, $2, false)

--- templates
SELECT datname FROM pg_catalog.pg_database WHERE datistemplate OR NOT datallowconn

--- service databases
SELECT datname FROM pg_catalog.pg_database
WHERE datallowconn AND NOT datistemplate AND pg_catalog.has_database_privilege(oid, 'CONNECT') ORDER BY 1

--- has database
SELECT 1 FROM pg_catalog.pg_database WHERE datname = $1

--- has schema
SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1

--- has function
SELECT 1 FROM pg_catalog.pg_proc WHERE proname = $1 LIMIT 1

--- has effects
-- Whether a function of one of these names may have effects.
SELECT 1 FROM pg_catalog.pg_proc WHERE proname = ANY ($1::text[]) AND provolatile = 'v'
  AND NOT (pronamespace = 'pg_catalog'::regnamespace
    AND proname IN ('random', 'clock_timestamp', 'timeofday', 'gen_random_uuid')) LIMIT 1

--- :own
n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'

--- :relations
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace

--- has relation
SELECT '' :relations WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind NOT IN ('i', 'I')

--- schema of relation
-- $1 is its schema, or '' for one on the search path.
SELECT n.nspname :relations WHERE c.relname = $2 AND c.relkind NOT IN ('i', 'I')
  AND CASE WHEN $1 = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1 END

--- columns of relation
-- Name, OID and modifier of the type or of the domain's, nullability, type as text.
SELECT a.attname, coalesce(nullif(t.typbasetype, 0), t.oid)::text,
  CASE WHEN t.typbasetype <> 0 THEN t.typtypmod ELSE a.atttypmod END, NOT a.attnotnull,
  pg_catalog.format_type(a.atttypid, a.atttypmod)
:relations JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind NOT IN ('i', 'I')
ORDER BY a.attnum

--- service schemas
SELECT n.nspname, pg_catalog.current_database() FROM pg_catalog.pg_namespace n WHERE :own ORDER BY 1

--- service relations
-- Those of a schema ($1), of this name ($2); '' is any.
SELECT c.relname, n.nspname,
  CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' ELSE 'table' END,
  pg_catalog.current_database(),
  (SELECT pg_catalog.string_agg(a.attname, ', ' ORDER BY k.place) FROM pg_catalog.pg_index i,
     pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place), pg_catalog.pg_attribute a
   WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid AND a.attnum = k.number),
  pg_catalog.obj_description(c.oid, 'pg_class')
:relations WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND ($1 = '' AND :own OR n.nspname = $1)
  AND ($2 = '' OR c.relname = $2)
ORDER BY 4, 2, 1

--- service functions
SELECT p.proname, p.proname || '(' || pg_catalog.pg_get_function_identity_arguments(p.oid) || ')',
  CASE p.prokind WHEN 'a' THEN 'aggregate' WHEN 'p' THEN 'procedure' WHEN 'w' THEN 'window' ELSE 'function' END,
  pg_catalog.current_database(), n.nspname
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE :own ORDER BY 4, 5, 2
