/** Functions of the system that change or lock the session, by OID: set_config and those of advisory locks. */
const SESSION_FUNCTIONS = [
  2078,
  ...Array.from({ length: 12 }, (_, n) => 2880 + n),
  ...Array.from({ length: 8 }, (_, n) => 3089 + n),
]
/** Whether a stored expression calls one of them. The pattern of LIKE is faster by seven times, and most defaults call nothing. */
const changesSession = (tree: string): string =>
  `${tree} operator(pg_catalog.~~) '%funcid %' and ${tree} operator(pg_catalog.~) ':(funcid|opfuncid) (${SESSION_FUNCTIONS.join('|')}) '`

/** Common table expressions: what runs user-defined functions when a table is read (`coded`) or written (`calling`), and whose policies read other tables (`looking`). */
export const CODE_OF_TABLES = `
-- Functions that may change or lock the session: those of users but for C, which superusers write, and set_config and pg_advisory_lock.
changing as (
  select p.oid from pg_catalog.pg_proc p join pg_catalog.pg_language l on l.oid = p.prolang
  where (p.oid >= 16384 and not l.lanname = any (array['c', 'internal'])) or p.oid = any ('{${SESSION_FUNCTIONS.join(',')}}'::pg_catalog.oid[])
),
-- Operators, casts, and what compares a type are called where no name tells, also with values of other if one is among them, all run code.
implied as (
  select exists (select from pg_catalog.pg_operator where oid >= 16384 and oprcode = any (select oid from changing))
    or exists (select from pg_catalog.pg_cast where oid >= 16384 and castfunc = any (select oid from changing))
    or exists (select from pg_catalog.pg_amproc where oid >= 16384 and amproc = any (select oid from changing))
    or exists (select from pg_catalog.pg_range where rngcanonical = any (select oid from changing) or rngsubdiff = any (select oid from changing)) as code
),
-- Stored expressions that call functions of the system that change the session: pg_depend does not list these.
stored as (
  select 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid as classid, oid as objid from pg_catalog.pg_attrdef where ${changesSession('adbin::pg_catalog.text')}
  union all
  select 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid, oid from pg_catalog.pg_constraint where ${changesSession('conbin::pg_catalog.text')}
  union all
  select 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid, oid from pg_catalog.pg_policy
    where ${changesSession('pg_catalog.concat(polqual, polwithcheck)')}
  union all
  select 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid, indexrelid from pg_catalog.pg_index
    where (indexprs is not null or indpred is not null) and ${changesSession('pg_catalog.concat(indexprs, indpred)')}
  union all
  select 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid, oid from pg_catalog.pg_rewrite
    where ev_class >= 16384 and ${changesSession('ev_action::pg_catalog.text')}
),
-- Materialized: inlined into the recursion, its estimated cost would make the server compile the statement (JIT), for 200 ms.
containing(part, whole) as materialized (
  select t.typbasetype, t.oid from pg_catalog.pg_type t where t.typbasetype >= 16384
  union all
  select t.typelem, t.oid from pg_catalog.pg_type t where t.typelem >= 16384
  union all
  select a.atttypid, r.reltype from pg_catalog.pg_attribute a join pg_catalog.pg_class r on r.oid = a.attrelid
    where a.atttypid >= 16384 and a.attnum > 0 and not a.attisdropped and r.reltype <> 0
  union all
  select g.rngsubtype, g.rngtypid from pg_catalog.pg_range g
  union all
  select g.rngtypid, g.rngmultitypid from pg_catalog.pg_range g
),
-- Domains with a check that calls a function, and the types that have them inside.
checked_type as (
  select k.contypid as oid from pg_catalog.pg_constraint k where k.contypid <> 0 and k.oid = any (
    select objid from pg_catalog.pg_depend where classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid
      and refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
    union all
    select objid from stored where classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid)
  union
  select containing.whole from checked_type join containing on containing.part = checked_type.oid
),
-- Objects that call user-defined functions, or convert to such a domain.
calling as (
  select classid, objid from pg_catalog.pg_depend where refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
  union all
  select classid, objid from pg_catalog.pg_depend
    where refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid and refobjid = any (select oid from checked_type)
  union all
  select classid, objid from stored
),
coded as (
  select a.attrelid as oid from pg_catalog.pg_attribute a
    where a.atttypid >= 16384 and a.attnum > 0 and not a.attisdropped and a.atttypid = any (select oid from checked_type)
  union
  select p.polrelid as oid from pg_catalog.pg_policy p
    where exists (select from calling where classid = 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid and objid = p.oid)
  union
  select r.ev_class from pg_catalog.pg_rewrite r
    where r.ev_class >= 16384 and exists (select from calling where classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid and objid = r.oid)
  union
  select r.ev_class from coded join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid and d.refobjid = coded.oid
    and d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid
  join pg_catalog.pg_rewrite r on r.oid = d.objid
),
-- Policies that read another table. One that reads its own is an endless recursion, which the server refuses.
looking as (
  select p.polrelid as oid from pg_catalog.pg_policy p join pg_catalog.pg_depend d on d.objid = p.oid and d.refobjid <> p.polrelid
  where d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
)`
