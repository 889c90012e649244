import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { namesIn } from '#databases/drivers/postgres/sql/statement-names.ts'
import { withSystemOperators } from '#databases/drivers/postgres/sql/system-names.ts'
import { fail } from '#databases/failures.ts'

/**
 * Checks a statement of a caller who may only read. A read-only transaction protects only rows: a function can still terminate or cancel
 * statements of others, change the session, or run SQL in an argument. VOLATILE functions are refused, except those that only generate or
 * measure a value, and so are functions that run SQL. Runs in the open transaction of the statement, whose search path resolves the names.
 */
export async function requireReading(client: RowClient, text: string): Promise<void> {
  const names = await namesIn(text)
  const { rows } = await client.query<{ functions: readonly string[] }>(GUARD_SQL, [
    JSON.stringify(names),
    MAKERS,
    EXTENSION_MAKERS,
    RUNNERS,
  ])
  const functions = rows[0]?.functions ?? []
  if (functions.length === 0) return
  throw fail('function_not_allowed', {
    message: `The right to read does not allow function ${functions[0]}`,
    hint: 'It may do more than read. Declare a function of your own STABLE or IMMUTABLE if it only reads; else use a key with the right gateway.query, or have clients.NAME.sql_role set.',
    details: { functions: functions.slice(0, 10) },
  })
}

/** VOLATILE functions of the system that generate or measure a value. */
const MAKERS = [
  'random',
  'random_normal',
  'clock_timestamp',
  'timeofday',
  'gen_random_uuid',
  'uuidv4',
  'uuidv7',
  'pg_relation_size',
  'pg_table_size',
  'pg_indexes_size',
  'pg_total_relation_size',
  'pg_database_size',
]

/** The same, of uuid-ossp and pgcrypto. */
const EXTENSION_MAKERS = [
  'uuid_generate_v1',
  'uuid_generate_v1mc',
  'uuid_generate_v4',
  'gen_random_bytes',
  'gen_random_uuid',
  'gen_salt',
]

/** Functions of the system, tablefunc and xml2 that run SQL or read objects named by an argument, whatever their volatility. */
const RUNNERS =
  '^(set_config|ts_stat|pg_input_.*|dblink.*|crosstab.*|connectby|xpath_table|(query|cursor|table|schema|database)_to_xml.*)$'

/** The first OID of user objects (FirstNormalObjectId). */
const FIRST_OWN = 16_384

/**
 * Finds everything that the statement can call, from its names: functions, functions of operators and of casts; then, by the OIDs in stored
 * trees, what these and views contain: views, policies, defaults of arguments, parsed bodies, checks of domains. Views of the system and of
 * extensions are not searched; no operator of the system has a VOLATILE function.
 */
const GUARD_SQL = withSystemOperators(`
with recursive scope as (
  select n.oid, n.nspname, n.nspname = any (pg_catalog.current_schemas(true)) as visible from pg_catalog.pg_namespace n
),
asked as (
  select a.kind, a.name, s.oid as namespace
  from pg_catalog.json_to_recordset($1::pg_catalog.json) as a(kind pg_catalog.text, schema pg_catalog.name, name pg_catalog.name)
  join scope s on s.nspname = a.schema or (a.schema is null and s.visible)
),
reached(kind, object) as (
  select 'function', p.oid from asked a join pg_catalog.pg_proc p on p.proname = a.name and p.pronamespace = a.namespace
  where a.kind = 'function'
    or (a.kind = 'attribute' and p.pronargs >= 1 and p.pronargs operator(pg_catalog.-) p.pronargdefaults <= 1)
  union
  select 'function', o.oprcode::pg_catalog.oid from asked a join pg_catalog.pg_operator o on o.oprname = a.name and o.oprnamespace = a.namespace
  where a.kind = 'operator' and o.oid >= ${FIRST_OWN}::pg_catalog.oid
  union
  select 'relation', c.oid from asked a join pg_catalog.pg_class c on c.relname = a.name and c.relnamespace = a.namespace
  where a.kind = 'relation'
  union
  select 'type', t.oid from asked a join pg_catalog.pg_type t on t.typname = a.name and t.typnamespace = a.namespace
  where a.kind = any (array['type', 'function', 'attribute'])
  union
  select next.kind, next.object from reached r cross join lateral (
    select case when named[1] = 'relid' then 'relation' when named[1] = 'resulttype' then 'type' else 'function' end, named[2]::pg_catalog.oid
    from (
      select w.ev_action::pg_catalog.text from pg_catalog.pg_rewrite w join pg_catalog.pg_class c on c.oid = w.ev_class
      where r.kind = 'relation' and c.oid = r.object and c.relkind = 'v' and c.oid >= ${FIRST_OWN}::pg_catalog.oid and not exists (
        select from pg_catalog.pg_depend d
        where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid and d.deptype = 'e'
      )
      union all
      select pg_catalog.concat(y.polqual) from pg_catalog.pg_policy y where r.kind = 'relation' and y.polrelid = r.object
      union all
      select pg_catalog.concat(p.proargdefaults, ' ', p.prosqlbody) from pg_catalog.pg_proc p where r.kind = 'function' and p.oid = r.object
      union all
      select k.conbin::pg_catalog.text from pg_catalog.pg_constraint k where r.kind = 'type' and k.contypid = r.object
    ) stored(tree)
    cross join lateral pg_catalog.regexp_matches(stored.tree, ':(funcid|opfuncid|aggfnoid|winfnoid|relid|resulttype) ([0-9]+)', 'g') named
    union all
    select 'function', part.object from pg_catalog.pg_aggregate a cross join lateral (values
      (a.aggtransfn::pg_catalog.oid), (a.aggfinalfn::pg_catalog.oid), (a.aggcombinefn::pg_catalog.oid), (a.aggserialfn::pg_catalog.oid),
      (a.aggdeserialfn::pg_catalog.oid), (a.aggmtransfn::pg_catalog.oid), (a.aggminvtransfn::pg_catalog.oid), (a.aggmfinalfn::pg_catalog.oid)
    ) part(object)
    where r.kind = 'function' and a.aggfnoid::pg_catalog.oid = r.object
    union all
    select 'function', c.castfunc from pg_catalog.pg_cast c where r.kind = 'type' and c.casttarget = r.object
    union all
    select 'type', part.object from pg_catalog.pg_type t cross join lateral (values (t.typbasetype), (t.typelem)) part(object)
    where r.kind = 'type' and t.oid = r.object
    union all
    select 'type', a.atttypid from pg_catalog.pg_type t join pg_catalog.pg_attribute a on a.attrelid = t.typrelid
    where r.kind = 'type' and t.oid = r.object and a.attnum > 0
  ) next(kind, object)
  where (r.object >= ${FIRST_OWN}::pg_catalog.oid or r.kind = 'type') and (next.object >= ${FIRST_OWN}::pg_catalog.oid or next.kind = 'function')
)
select coalesce(pg_catalog.array_agg(distinct pg_catalog.concat(n.nspname, '.', p.proname)), array[]::pg_catalog.text[]) as functions
from reached r join pg_catalog.pg_proc p on p.oid = r.object join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where r.kind = 'function' and (
  p.proname operator(pg_catalog.~) $4::pg_catalog.text
  or (p.provolatile = 'v' and case when p.oid >= ${FIRST_OWN}::pg_catalog.oid then not (
    p.proname = any ($3::pg_catalog.name[]) and exists (
      select from pg_catalog.pg_depend d
      where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and d.objid = p.oid and d.deptype = 'e'
    )
  ) else p.proname <> all ($2::pg_catalog.name[]) end)
)`)
