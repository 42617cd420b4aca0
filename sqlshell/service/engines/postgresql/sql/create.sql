-- DESCRIBE ENGINE … SQL: the statements that create a relation again ($1 is its OID), without its owner and its
-- privileges, as pg_dump writes them; and the definitions of functions.

--- :definition
SELECT CASE WHEN p.prokind <> 'a' THEN pg_catalog.pg_get_functiondef(p.oid) END AS "Sql" FROM pg_catalog.pg_proc p

--- functions of name
-- $1 is the schema, '' for those on the search path. NULL for an aggregate, which PostgreSQL does not write.
:definition JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.proname = $2 AND CASE WHEN $1 = '' THEN pg_catalog.pg_function_is_visible(p.oid) ELSE n.nspname = $1 END
ORDER BY p.oid

--- functions of arguments
-- $1 is SQL, such as "f(int, text)".
:definition WHERE p.oid = pg_catalog.to_regprocedure($1)

--- :path
CASE WHEN c.relpersistence = 't' THEN pg_catalog.quote_ident(c.relname)
  ELSE pg_catalog.format('%I.%I', n.nspname, c.relname) END

--- :persistence
CASE c.relpersistence WHEN 't' THEN 'TEMPORARY ' WHEN 'u' THEN 'UNLOGGED ' END

--- :enabled
CASE enabled WHEN 'D' THEN 'DISABLE' WHEN 'A' THEN 'ENABLE ALWAYS' WHEN 'R' THEN 'ENABLE REPLICA' END

--- statements
-- The phase of a script in which each is run, so that those of several relations can follow each other: 1 sequences and
-- types; 2 tables; 3 owners of sequences, and indexes; 4 partitions, which take over indexes that they have; 5 foreign
-- keys; 6 views; 7 the rest. A statement that does not apply is NULL.
WITH own AS (
  SELECT c.*, :path AS path,
    CASE c.relkind WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'c'
      THEN 'TYPE' ELSE 'TABLE' END AS what,
    c.relkind IN ('r', 'p', 'f') AS is_table, c.relkind IN ('v', 'm') AS is_view, h.parents
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL (
    SELECT pg_catalog.string_agg(h.inhparent::pg_catalog.regclass::text, ', ' ORDER BY h.inhseqno) AS parents
    FROM pg_catalog.pg_inherits h WHERE h.inhrelid = c.oid) h
  WHERE c.oid = $1::pg_catalog.oid
), altered AS (
  SELECT *, CASE relkind WHEN 'f' THEN 'ALTER FOREIGN TABLE ' ELSE 'ALTER TABLE ONLY ' END || path AS alter FROM own
), sequences AS (
  SELECT c.oid, c.relname, :path AS path, :persistence AS persistence, d.deptype, a.attname,
    d.refobjid::pg_catalog.regclass || '.' || pg_catalog.quote_ident(a.attname) AS owner,
    pg_catalog.format_type(s.seqtypid, NULL) AS type,
    pg_catalog.concat(CASE WHEN c.relpersistence <> 't' THEN 'SEQUENCE NAME ' || :path || ' ' END) AS named,
    pg_catalog.format('START WITH %s INCREMENT BY %s MINVALUE %s MAXVALUE %s CACHE %s%s', s.seqstart, s.seqincrement,
      s.seqmin, s.seqmax, s.seqcache, CASE WHEN s.seqcycle THEN ' CYCLE' END) AS parameters
  FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refclassid = d.classid AND d.objid = c.oid AND d.deptype IN ('a', 'i')
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
  WHERE $1::pg_catalog.oid IN (c.oid, d.refobjid)
), columns AS (
  SELECT a.*, pg_catalog.quote_ident(a.attname) AS name, a.attislocal OR c.relispartition AS declared,
    pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS filled, c.reloftype <> 0 AS typed,
    pg_catalog.concat(pg_catalog.format_type(a.atttypid, a.atttypmod),
      (SELECT ' OPTIONS (' || pg_catalog.string_agg(pg_catalog.format('%I %L', o.option_name, o.option_value), ', ')
        || ')' FROM pg_catalog.pg_options_to_table(a.attfdwoptions) o),
      (SELECT pg_catalog.format(' COLLATE %I.%I', m.nspname, l.collname) FROM pg_catalog.pg_collation l
       JOIN pg_catalog.pg_namespace m ON m.oid = l.collnamespace
       WHERE l.oid = a.attcollation AND a.attcollation <> t.typcollation)) AS type,
    pg_catalog.concat(CASE WHEN s.oid IS NOT NULL THEN pg_catalog.format(' GENERATED %s AS IDENTITY (%s%s)',
        CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, s.named, s.parameters)
      WHEN a.attgenerated <> '' THEN pg_catalog.format(' GENERATED ALWAYS AS (%s) %s',
        pg_catalog.pg_get_expr(d.adbin, d.adrelid), CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END)
      ELSE ' DEFAULT ' || pg_catalog.pg_get_expr(d.adbin, d.adrelid) END,
      CASE WHEN a.attnotnull THEN ' NOT NULL' END) AS rest,
    CASE WHEN a.attstorage <> t.typstorage THEN CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL'
      WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END AS storage,
    -- Not every version has the column attcompression.
    CASE pg_catalog.to_jsonb(a)->>'attcompression' WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END AS compression
  FROM own c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    LEFT JOIN sequences s ON s.deptype = 'i' AND s.attname = a.attname
), constraints AS (
  -- CREATE TABLE ignores NOT VALID.
  SELECT k.*, pg_catalog.format('CONSTRAINT %I %s', k.conname, pg_catalog.pg_get_constraintdef(k.oid)) AS definition,
    k.contype <> 'f' AND (k.contype <> 'c' OR k.convalidated) AS inside,
    pg_catalog.concat(k.contype <> 'p', k.contype, k.conname) AS sort
  FROM own c JOIN pg_catalog.pg_constraint k ON k.conrelid = c.oid
  WHERE c.is_table AND (k.contype IN ('p', 'u', 'x') OR k.contype = 'f' AND k.conparentid = 0
    OR k.contype = 'c' AND (k.conislocal OR c.relispartition))
), lines AS (
  SELECT pg_catalog.string_agg(line, E',\n    ' ORDER BY place, sort COLLATE "C") AS text FROM (
    SELECT attnum, '', name || CASE WHEN typed THEN ' WITH OPTIONS' ELSE ' ' || type END || rest FROM columns
    WHERE declared AND (NOT typed OR attnotnull OR filled IS NOT NULL)
    UNION ALL SELECT 2000, sort, definition FROM constraints WHERE inside) AS l (place, sort, line)
), indexes AS (
  SELECT i.*, c.relname, :path AS path, CASE WHEN k.oid IS NULL THEN pg_catalog.pg_get_indexdef(c.oid) END AS definition
  FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid
      AND k.contype IN ('p', 'u', 'x')
  WHERE $1::pg_catalog.oid IN (i.indrelid, i.indexrelid)
), fired AS (
  SELECT 1 AS place, r.oid, r.rulename AS name, 'RULE' AS what, r.ev_enabled AS enabled,
    pg_catalog.rtrim(pg_catalog.pg_get_ruledef(r.oid), ';') AS definition
  FROM pg_catalog.pg_rewrite r WHERE r.ev_class = $1::pg_catalog.oid AND r.rulename <> '_RETURN'
  UNION ALL SELECT 2, t.oid, t.tgname, 'TRIGGER', t.tgenabled, pg_catalog.pg_get_triggerdef(t.oid)
  FROM pg_catalog.pg_trigger t WHERE t.tgrelid = $1::pg_catalog.oid AND NOT t.tgisinternal
    AND coalesce(pg_catalog.to_jsonb(t)->>'tgparentid', '0') = '0'
)
SELECT phase::int4 AS "Phase", $1::int8 AS "Age", text AS "Sql" FROM (
SELECT 1, 1, s.relname::text, 1, pg_catalog.format('CREATE %sSEQUENCE %s AS %s %s', s.persistence, s.path, s.type,
    s.parameters)
  FROM sequences s WHERE s.deptype IS DISTINCT FROM 'i'
UNION ALL SELECT 1, 1, '', 1, pg_catalog.format('CREATE TYPE %s AS (%s)', c.path,
    (SELECT pg_catalog.string_agg(name || ' ' || type, ', ' ORDER BY attnum) FROM columns))
  FROM own c WHERE c.relkind = 'c'
UNION ALL SELECT 2, 2, '', 1, pg_catalog.concat('CREATE ', :persistence, c.what, ' ', c.path,
    ' OF ' || CASE WHEN c.reloftype <> 0 THEN c.reloftype::pg_catalog.regtype END,
    CASE WHEN l.text IS NOT NULL OR c.reloftype = 0 THEN pg_catalog.concat(E' (\n    ', l.text, E'\n)') END,
    CASE WHEN NOT c.relispartition THEN E'\nINHERITS (' || c.parents || ')' END,
    CASE WHEN c.relkind = 'p' THEN E'\nPARTITION BY ' || pg_catalog.pg_get_partkeydef(c.oid) END,
    (SELECT pg_catalog.format(E'\nUSING %I', m.amname) FROM pg_catalog.pg_am m
     WHERE m.oid = c.relam AND m.amname <> 'heap'),
    E'\nWITH (' || pg_catalog.array_to_string(c.reloptions || (
      SELECT pg_catalog.array_agg('toast.' || o) FROM pg_catalog.pg_class t, pg_catalog.unnest(t.reloptions) o
      WHERE t.oid = c.reltoastrelid), ', ') || ')',
    (SELECT pg_catalog.format(E'\nTABLESPACE %I', s.spcname) FROM pg_catalog.pg_tablespace s
     WHERE s.oid = c.reltablespace),
    (SELECT pg_catalog.concat(pg_catalog.format(E'\nSERVER %I', f.srvname), ' OPTIONS (' || (
       SELECT pg_catalog.string_agg(pg_catalog.format('%I %L', o.option_name, o.option_value), ', ')
       FROM pg_catalog.pg_options_to_table(e.ftoptions) o) || ')')
     FROM pg_catalog.pg_foreign_table e JOIN pg_catalog.pg_foreign_server f ON f.oid = e.ftserver
     WHERE e.ftrelid = c.oid))
  FROM own c, lines l WHERE c.is_table
-- The parent of a column may have another default, and none for its children.
UNION ALL SELECT 2, 3, '', a.attnum * 10 + u.number, pg_catalog.format('%s ALTER COLUMN %s SET %s', c.alter, a.name,
    u.change)
  FROM altered c, columns a, LATERAL pg_catalog.unnest(ARRAY[
    CASE WHEN NOT a.declared AND a.attgenerated = '' THEN 'DEFAULT ' || a.filled END,
    CASE WHEN NOT a.declared AND a.attnotnull THEN 'NOT NULL' END, 'STORAGE ' || a.storage,
    'COMPRESSION ' || a.compression, 'STATISTICS ' || CASE WHEN a.attstattarget >= 0 THEN a.attstattarget END,
    '(' || pg_catalog.array_to_string(a.attoptions, ', ') || ')']) WITH ORDINALITY u (change, number)
  WHERE c.is_table AND u.change IS NOT NULL
UNION ALL SELECT 3, 4, s.relname, 1, pg_catalog.format('ALTER SEQUENCE %s OWNED BY %s', s.path, s.owner)
  FROM sequences s WHERE s.deptype = 'a'
UNION ALL SELECT 6, 4, '', 1, pg_catalog.concat('CREATE ', :persistence, c.what, ' ', c.path,
    (SELECT ' (' || pg_catalog.string_agg(name, ', ' ORDER BY attnum) || ')' FROM columns),
    ' WITH (' || pg_catalog.array_to_string(c.reloptions, ', ') || ')', E' AS\n',
    pg_catalog.rtrim(pg_catalog.pg_get_viewdef(c.oid), E'; \n'),
    CASE WHEN c.relkind = 'm' AND NOT c.relispopulated THEN E'\nWITH NO DATA' END)
  FROM own c WHERE c.is_view
UNION ALL SELECT 6, 5, '', a.attnum, pg_catalog.format('ALTER VIEW %s ALTER COLUMN %s SET DEFAULT %s', c.path, a.name,
    a.filled)
  FROM own c, columns a WHERE c.is_view AND a.filled IS NOT NULL
UNION ALL SELECT CASE WHEN c.is_view THEN 7 ELSE 3 END, 6, i.relname, u.number, u.text
  FROM altered c, indexes i, LATERAL pg_catalog.unnest(ARRAY[i.definition,
    CASE WHEN i.indisclustered AND c.oid = i.indrelid
      THEN pg_catalog.format('ALTER TABLE %s CLUSTER ON %I', c.path, i.relname) END,
    CASE WHEN i.indisreplident AND c.oid = i.indrelid
      THEN pg_catalog.format('%s REPLICA IDENTITY USING INDEX %I', c.alter, i.relname) END])
    WITH ORDINALITY u (text, number)
UNION ALL SELECT 7, 6, i.relname, 4, pg_catalog.format('COMMENT ON INDEX %s IS %L', i.path, o.description)
  FROM indexes i JOIN pg_catalog.pg_description o ON o.objoid = i.indexrelid AND o.objsubid = 0
    AND o.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
UNION ALL SELECT 4, 7, '', 1, pg_catalog.format('ALTER TABLE ONLY %s ATTACH PARTITION %s %s', c.parents, c.path,
    pg_catalog.pg_get_expr(c.relpartbound, c.oid))
  FROM own c WHERE c.is_table AND c.relispartition
-- PostgreSQL refuses ONLY for a foreign key of a partitioned table.
UNION ALL SELECT 5, 8, k.sort, 1, pg_catalog.format('%s ADD %s', CASE WHEN k.contype = 'f' AND c.relkind <> 'p'
    THEN c.alter ELSE pg_catalog.format('ALTER %s %s', c.what, c.path) END, k.definition)
  FROM altered c, constraints k WHERE NOT k.inside AND (k.contype = 'f' OR k.conislocal)
UNION ALL SELECT 7, 9, '', u.number, u.text
  FROM altered c, LATERAL pg_catalog.unnest(ARRAY[
    CASE c.relreplident WHEN 'f' THEN c.alter || ' REPLICA IDENTITY FULL'
      WHEN 'n' THEN c.alter || ' REPLICA IDENTITY NOTHING' END,
    CASE WHEN c.relrowsecurity THEN pg_catalog.format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', c.path) END,
    CASE WHEN c.relforcerowsecurity THEN pg_catalog.format('ALTER TABLE ONLY %s FORCE ROW LEVEL SECURITY', c.path) END])
    WITH ORDINALITY u (text, number)
  WHERE c.is_table
UNION ALL SELECT 7, 10, p.polname, 1, pg_catalog.format('CREATE POLICY %I ON %s %s', p.polname, c.path, :policy)
  FROM own c JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid
UNION ALL SELECT 7, 11, s.stxname, 1, pg_catalog.pg_get_statisticsobjdef(s.oid)
  FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = $1::pg_catalog.oid
UNION ALL SELECT 7, 11 + f.place, f.name, u.number, u.text
  FROM own c, fired f, LATERAL pg_catalog.unnest(ARRAY[f.definition,
    pg_catalog.format('ALTER TABLE %s ', c.path) || :enabled || pg_catalog.format(' %s %I', f.what, f.name)])
    WITH ORDINALITY u (text, number)
UNION ALL SELECT 7, 14, o.sort, o.number, pg_catalog.format('COMMENT ON %s IS %L', o.object, d.description)
  FROM (
    SELECT 'pg_class', c.oid, 0, '', pg_catalog.format('%s %s', c.what, c.path) FROM own c WHERE c.is_table OR c.is_view
    UNION ALL SELECT 'pg_class', c.oid, a.attnum, '', pg_catalog.format('COLUMN %s.%s', c.path, a.name)
    FROM own c, columns a WHERE c.is_table OR c.is_view
    UNION ALL SELECT 'pg_class', s.oid, 0, '', 'SEQUENCE ' || s.path FROM sequences s WHERE s.oid = $1::pg_catalog.oid
    UNION ALL SELECT 'pg_constraint', k.oid, 0, k.sort, pg_catalog.format('CONSTRAINT %I ON %s', k.conname, c.path)
    FROM own c, constraints k
    UNION ALL SELECT 'pg_policy', p.oid, 0, p.polname, pg_catalog.format('POLICY %I ON %s', p.polname, c.path)
    FROM own c JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid
    UNION ALL SELECT CASE f.what WHEN 'RULE' THEN 'pg_rewrite' ELSE 'pg_trigger' END, f.oid, 0, f.name,
      pg_catalog.format('%s %I ON %s', f.what, f.name, c.path) FROM own c, fired f
  ) AS o (class, oid, number, sort, object)
  JOIN pg_catalog.pg_description d ON d.objoid = o.oid AND d.objsubid = o.number
    AND d.classoid = ('pg_catalog.' || o.class)::pg_catalog.regclass
) AS statements (phase, place, sort, number, text)
WHERE text IS NOT NULL
ORDER BY place, sort COLLATE "C", number
