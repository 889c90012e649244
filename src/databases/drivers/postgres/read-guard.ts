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
 * Finds everything that the statement can call, from its names: functions, operators, relations and types; then, by the OIDs in the
 * catalogue and in stored trees, what these contain or imply: views, policies, defaults of arguments, parsed bodies, casts, which need not
 * be written where they are implicit, the operators that the planner may put in place of another, and what sorts and groups a type. A `type`
 * is what a value may be converted to, so the checks of a domain count; a `value` has its type already. Views of the system and of
 * extensions are not searched; no operator of the system has a VOLATILE function. Functions for input and output, for estimates and for
 * indexes are not followed: they are written in C, by superusers.
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
  select 'operator', o.oid from asked a join pg_catalog.pg_operator o on o.oprname = a.name and o.oprnamespace = a.namespace
  where a.kind = 'operator' and o.oid >= ${FIRST_OWN}::pg_catalog.oid
  union
  select 'relation', c.oid from asked a join pg_catalog.pg_class c on c.relname = a.name and c.relnamespace = a.namespace
  where a.kind = 'relation'
  union
  select 'type', t.oid from asked a join pg_catalog.pg_type t on t.typname = a.name and t.typnamespace = a.namespace
  where a.kind = any (array['type', 'function', 'attribute'])
  union
  -- Between types of the system, which no name of the statement need tell.
  select 'function', c.castfunc from pg_catalog.pg_cast c
  where c.castfunc >= ${FIRST_OWN}::pg_catalog.oid and c.castsource < ${FIRST_OWN}::pg_catalog.oid and c.casttarget < ${FIRST_OWN}::pg_catalog.oid
  union
  select next.kind, next.object from reached r cross join lateral (
    select
      case when named[1] = 'relid' then 'relation' when named[1] = 'resulttype' then 'type' when named[1] = 'vartype' then 'value'
        when named[1] = any (array['opno', 'eqop', 'sortop']) then 'operator' else 'function' end,
      named[2]::pg_catalog.oid
    from (
      select w.ev_action::pg_catalog.text from pg_catalog.pg_rewrite w join pg_catalog.pg_class c on c.oid = w.ev_class
      where r.kind = 'relation' and c.oid = r.object and c.relkind = 'v' and c.oid >= ${FIRST_OWN}::pg_catalog.oid and not exists (
        select from pg_catalog.pg_depend d
        where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid and d.deptype = 'e'
      )
      union all
      select pg_catalog.concat(y.polqual) from pg_catalog.pg_policy y where r.kind = 'relation' and y.polrelid = r.object
      union all
      select f.adbin::pg_catalog.text from pg_catalog.pg_attrdef f
      join pg_catalog.pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
      where r.kind = 'relation' and f.adrelid = r.object and a.attgenerated = 'v'
      union all
      select pg_catalog.concat(p.proargdefaults, ' ', p.prosqlbody) from pg_catalog.pg_proc p where r.kind = 'function' and p.oid = r.object
      union all
      select k.conbin::pg_catalog.text from pg_catalog.pg_constraint k where r.kind = 'type' and k.contypid = r.object
    ) stored(tree)
    cross join lateral pg_catalog.regexp_matches(stored.tree,
      ':(funcid|opfuncid|aggfnoid|winfnoid|relid|resulttype|vartype|opno|eqop|sortop) ([0-9]+)', 'g') named
    union all
    select part.kind, part.object from pg_catalog.pg_aggregate a cross join lateral (values
      ('function', a.aggtransfn::pg_catalog.oid), ('function', a.aggfinalfn::pg_catalog.oid), ('function', a.aggcombinefn::pg_catalog.oid),
      ('function', a.aggserialfn::pg_catalog.oid), ('function', a.aggdeserialfn::pg_catalog.oid), ('function', a.aggmtransfn::pg_catalog.oid),
      ('function', a.aggminvtransfn::pg_catalog.oid), ('function', a.aggmfinalfn::pg_catalog.oid), ('operator', a.aggsortop)
    ) part(kind, object)
    where r.kind = 'function' and a.aggfnoid::pg_catalog.oid = r.object
    union all
    select part.kind, part.object from pg_catalog.pg_proc p cross join lateral (
      select 'type', pg_catalog.unnest(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])) union all select 'value', p.prorettype
    ) part(kind, object)
    where r.kind = 'function' and p.oid = r.object
    union all
    select part.kind, part.object from pg_catalog.pg_operator o cross join lateral (values
      ('function', o.oprcode::pg_catalog.oid), ('operator', o.oprcom), ('operator', o.oprnegate),
      ('type', o.oprleft), ('type', o.oprright), ('value', o.oprresult)
    ) part(kind, object)
    where r.kind = 'operator' and o.oid = r.object
    union all
    select 'value', a.atttypid from pg_catalog.pg_attribute a where r.kind = 'relation' and a.attrelid = r.object and a.attnum > 0
    union all
    select 'value', c.reltype from pg_catalog.pg_class c where r.kind = 'relation' and c.oid = r.object
    union all
    select 'function', c.castfunc from pg_catalog.pg_cast c
    where r.kind = any (array['type', 'value']) and r.object >= ${FIRST_OWN}::pg_catalog.oid and (c.castsource = r.object or c.casttarget = r.object)
    union all
    select part.kind, part.object from pg_catalog.pg_opclass k join pg_catalog.pg_am m on m.oid = k.opcmethod cross join lateral (
      select 'function', f.amproc::pg_catalog.oid from pg_catalog.pg_amproc f where f.amprocfamily = k.opcfamily and f.amprocnum = 1
      union all
      select 'operator', f.amopopr from pg_catalog.pg_amop f where f.amopfamily = k.opcfamily
    ) part(kind, object)
    where r.kind = any (array['type', 'value']) and k.opcintype = r.object and m.amname = any (array['btree', 'hash'])
    union all
    select r.kind, part.object from pg_catalog.pg_type t cross join lateral (values (t.typbasetype), (t.typelem), (t.typarray)) part(object)
    where r.kind = any (array['type', 'value']) and t.oid = r.object
    union all
    select part.kind, part.object from pg_catalog.pg_range g cross join lateral (values
      (r.kind, g.rngsubtype), ('function', g.rngcanonical::pg_catalog.oid), ('function', g.rngsubdiff::pg_catalog.oid)
    ) part(kind, object)
    where r.kind = any (array['type', 'value']) and g.rngtypid = r.object
    union all
    select r.kind, a.atttypid from pg_catalog.pg_type t join pg_catalog.pg_attribute a on a.attrelid = t.typrelid
    where r.kind = any (array['type', 'value']) and t.oid = r.object and a.attnum > 0
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
