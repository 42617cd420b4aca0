-- LIST ENGINE: what a database has, as psql's \d commands show it. $1 is a schema, '' for those of users and the
-- session's own for temporary objects. What is between "details" and "end" is only in the list WITH DETAILS.
-- ":kind" stands for the part of that name.

--- :kind
CASE c.relpersistence WHEN 't' THEN 'temporary ' WHEN 'u' THEN 'unlogged ' ELSE '' END || CASE c.relkind
  WHEN 'r' THEN CASE WHEN c.relnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN 'system table' ELSE 'table' END
  WHEN 'p' THEN 'partitioned table' WHEN 'f' THEN 'foreign table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
  WHEN 'S' THEN 'sequence' WHEN 'i' THEN 'index' WHEN 'I' THEN 'partitioned index' WHEN 'c' THEN 'composite type'
  WHEN 't' THEN 'TOAST table' ELSE c.relkind::text END

--- :listed
CASE WHEN $1::text <> '' THEN n.nspname = $1 ELSE n.nspname <> 'information_schema'
  AND (n.nspname !~ '^pg_' OR n.oid = pg_catalog.pg_my_temp_schema()) END

--- :declared
-- Without the constraints that a foreign key to a partitioned table has for each partition.
NOT EXISTS (SELECT FROM pg_catalog.pg_constraint d WHERE d.oid = k.conparentid AND d.conrelid = k.conrelid)

--- relations
SELECT pg_catalog.current_database() AS "Database", n.nspname AS "Schema", c.relname AS "Name", :kind AS "Type",
  pg_catalog.pg_get_userbyid(c.relowner) AS "Owner", pg_catalog.pg_table_is_visible(c.oid) AS "Visible"
  -- details
  , CASE WHEN c.reltuples >= 0 AND c.relkind IN ('r', 'm', 'p') THEN c.reltuples::int8 END AS "Rows",
  pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) AS "Size",
  (SELECT m.amname FROM pg_catalog.pg_am m WHERE m.oid = c.relam) AS "AccessMethod",
  pg_catalog.obj_description(c.oid, 'pg_class') AS "Comment"
  -- end
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S', 'i', 'I') AND :listed
ORDER BY 2, 3

--- columns
SELECT pg_catalog.current_database() AS "Database", n.nspname AS "Schema", c.relname AS "Relation", a.attname AS "Name",
  pg_catalog.format_type(a.atttypid, a.atttypmod) AS "Type"
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND :listed
ORDER BY 2, 3, a.attnum

--- foreign_keys
SELECT k.conname AS "Name", pg_catalog.current_database() AS "Database", n.nspname AS "Schema", c.relname AS "Relation",
  t.relname AS "TargetRelation", a.attname AS "Column", b.attname AS "TargetColumn", m.nspname AS "TargetSchema"
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_class t ON t.oid = k.confrelid
  JOIN pg_catalog.pg_namespace m ON m.oid = t.relnamespace CROSS JOIN LATERAL
  ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey)) WITH ORDINALITY u (mine, its, place)
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.mine
  JOIN pg_catalog.pg_attribute b ON b.attrelid = t.oid AND b.attnum = u.its
WHERE k.contype = 'f' AND :declared AND :listed
ORDER BY 3, 4, 1, u.place

--- indexes
SELECT n.nspname AS "Schema", c.relname AS "Name", :kind AS "Type", pg_catalog.pg_get_userbyid(c.relowner) AS "Owner",
  t.relname AS "Table", pg_catalog.pg_table_is_visible(c.oid) AS "Visible"
  -- details
  , pg_catalog.pg_get_indexdef(c.oid) AS "Definition",
  pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid)) AS "Size",
  pg_catalog.obj_description(c.oid, 'pg_class') AS "Comment"
  -- end
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_class t ON t.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE :listed
ORDER BY 1, 2

--- :internal
-- Functions that are not called by name: their arguments are none of SQL, or they implement an operator, an index, a
-- type or an aggregate.
(EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.typtype = 'p' AND t.typname !~ '^(any|record$|void$)'
   AND t.oid = ANY (p.prorettype || p.proargtypes::pg_catalog.oid[]))
 OR p.oid IN (SELECT oprcode FROM pg_catalog.pg_operator UNION SELECT amproc FROM pg_catalog.pg_amproc
   UNION SELECT pg_catalog.unnest(ARRAY[typsend, typmodin]) FROM pg_catalog.pg_type
   UNION SELECT pg_catalog.unnest(ARRAY[aggtransfn, aggfinalfn, aggmtransfn, aggminvtransfn, aggmfinalfn])
   FROM pg_catalog.pg_aggregate))

--- functions
SELECT n.nspname AS "Schema", p.proname AS "Name", pg_catalog.pg_get_function_result(p.oid) AS "Result",
  pg_catalog.pg_get_function_arguments(p.oid) AS "Arguments",
  CASE p.prokind WHEN 'a' THEN 'aggregate' WHEN 'w' THEN 'window' WHEN 'p' THEN 'procedure' ELSE
    CASE WHEN p.prorettype = 'pg_catalog.trigger'::pg_catalog.regtype THEN 'trigger' ELSE 'function' END END AS "Type",
  n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AS "Own",
  pg_catalog.pg_function_is_visible(p.oid) AS "Visible", n.nspname = 'pg_catalog' AND :internal AS "Internal"
  -- details
  , CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END AS "Volatility",
  CASE p.proparallel WHEN 'r' THEN 'restricted' WHEN 's' THEN 'safe' ELSE 'unsafe' END AS "Parallel",
  pg_catalog.pg_get_userbyid(p.proowner) AS "Owner",
  CASE WHEN p.prosecdef THEN 'definer' ELSE 'invoker' END AS "Security",
  pg_catalog.array_to_string(p.proacl, E'\n') AS "Privileges", l.lanname AS "Language",
  pg_catalog.obj_description(p.oid, 'pg_proc') AS "Description"
  -- end
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE $1::text = '' OR n.nspname = $1
ORDER BY 1, 2, 4

--- types
SELECT n.nspname AS "Schema", t.typname AS "Name", pg_catalog.pg_type_is_visible(t.oid) AS "Visible",
  CASE t.typtype
    WHEN 'e' THEN 'enum (' || (SELECT pg_catalog.string_agg(pg_catalog.quote_literal(e.enumlabel), ', '
      ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid) || ')'
    WHEN 'd' THEN pg_catalog.concat('domain over ', pg_catalog.format_type(t.typbasetype, t.typtypmod),
      CASE WHEN t.typnotnull THEN ' NOT NULL' END, ' DEFAULT ' || t.typdefault,
      (SELECT ' ' || pg_catalog.string_agg(pg_catalog.pg_get_constraintdef(k.oid), ' ' ORDER BY k.conname)
       FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c'))
    WHEN 'c' THEN pg_catalog.concat('composite (', (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname)
      || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
      WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped), ')')
    WHEN 'r' THEN 'range of ' || (SELECT pg_catalog.format_type(r.rngsubtype, NULL) FROM pg_catalog.pg_range r
      WHERE r.rngtypid = t.oid)
    WHEN 'm' THEN 'multirange' WHEN 'p' THEN 'pseudo-type' ELSE 'base type' END AS "Type"
  -- details
  , pg_catalog.pg_get_userbyid(t.typowner) AS "Owner", pg_catalog.array_to_string(t.typacl, E'\n') AS "Privileges",
  pg_catalog.obj_description(t.oid, 'pg_type') AS "Comment"
  -- end
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE (t.typrelid = 0 OR EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c'))
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.oid = t.typelem AND e.typarray = t.oid) AND :listed
ORDER BY 1, 2

--- databases
SELECT d.datname AS "Name", d.datname = pg_catalog.current_database() AS "Current",
  pg_catalog.pg_get_userbyid(d.datdba) AS "Owner", pg_catalog.pg_encoding_to_char(d.encoding) AS "Encoding",
  d.datcollate AS "Collate", d.datctype AS "Ctype", pg_catalog.array_to_string(d.datacl, E'\n') AS "Privileges"
  -- details
  , CASE WHEN pg_catalog.has_database_privilege(d.oid, 'CONNECT')
    THEN pg_catalog.pg_size_pretty(pg_catalog.pg_database_size(d.oid)) ELSE 'no access' END AS "Size",
  (SELECT s.spcname FROM pg_catalog.pg_tablespace s WHERE s.oid = d.dattablespace) AS "Tablespace",
  pg_catalog.shobj_description(d.oid, 'pg_database') AS "Comment"
  -- end
FROM pg_catalog.pg_database d
WHERE $1::text IS NOT NULL
ORDER BY 1

--- schemas
SELECT n.nspname AS "Name", pg_catalog.pg_get_userbyid(n.nspowner) AS "Owner"
  -- details
  , pg_catalog.array_to_string(n.nspacl, E'\n') AS "Privileges",
  pg_catalog.obj_description(n.oid, 'pg_namespace') AS "Comment"
  -- end
FROM pg_catalog.pg_namespace n
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND $1::text IS NOT NULL
ORDER BY 1

--- roles
SELECT r.rolname AS "Name", pg_catalog.concat_ws(', ', CASE WHEN r.rolsuper THEN 'superuser' END,
    CASE WHEN NOT r.rolinherit THEN 'no inheritance' END, CASE WHEN r.rolcreaterole THEN 'create role' END,
    CASE WHEN r.rolcreatedb THEN 'create DB' END, CASE WHEN NOT r.rolcanlogin THEN 'cannot login' END,
    CASE WHEN r.rolreplication THEN 'replication' END, CASE WHEN r.rolbypassrls THEN 'bypass RLS' END,
    CASE WHEN r.rolconnlimit >= 0 THEN 'connections: ' || r.rolconnlimit END,
    'password valid until ' || r.rolvaliduntil) AS "Attributes",
  (SELECT pg_catalog.string_agg(g.rolname, ', ' ORDER BY g.rolname) FROM pg_catalog.pg_auth_members m
   JOIN pg_catalog.pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid) AS "MemberOf"
  -- details
  , pg_catalog.shobj_description(r.oid, 'pg_authid') AS "Comment"
  -- end
FROM pg_catalog.pg_roles r
WHERE r.rolname !~ '^pg_' AND $1::text IS NOT NULL
ORDER BY 1

--- privileges
SELECT n.nspname AS "Schema", c.relname AS "Name", :kind AS "Type",
  pg_catalog.array_to_string(c.relacl, E'\n') AS "Privileges",
  (SELECT pg_catalog.string_agg(a.attname || E':\n  ' || pg_catalog.array_to_string(a.attacl, E'\n  '), E'\n'
   ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
   WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attacl IS NOT NULL) AS "ColumnPrivileges",
  (SELECT pg_catalog.string_agg(pg_catalog.concat(p.polname, CASE WHEN NOT p.polpermissive THEN ' (RESTRICTIVE)' END,
     CASE WHEN p.polcmd = '*' THEN ':' ELSE ' (' || p.polcmd::text || '):' END,
     E'\n  (u): ' || pg_catalog.pg_get_expr(p.polqual, p.polrelid),
     E'\n  (c): ' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid),
     CASE WHEN p.polroles <> '{0}' THEN E'\n  to: ' || pg_catalog.array_to_string(ARRAY(SELECT r.rolname
       FROM pg_catalog.pg_roles r WHERE r.oid = ANY (p.polroles) ORDER BY 1), ', ') END), E'\n' ORDER BY p.polname)
   FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid) AS "Policies"
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND :listed
ORDER BY 1, 2
