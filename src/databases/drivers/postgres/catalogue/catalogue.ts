import { CODE_OF_TABLES } from '#databases/drivers/postgres/catalogue/code-of-tables.ts'
import { OWN_TRIGGERS, withBodies } from '#databases/drivers/postgres/changes/note-function.ts'
import { HIDDEN_TABLES } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { qualifiedType, withSystemOperators } from '#databases/drivers/postgres/sql/system-names.ts'
import {
  type Catalogue,
  type Column,
  type Constraint,
  catalogueOf,
  type Table,
} from '#databases/plan/catalogue.ts'

/**
 * Reads everything that plans need in one statement, with one row and one JSON value. It runs with the client's own search path, so that
 * the server writes types and defaults as users of the database know them. Nothing in it waits for a lock on a table, or a change of one
 * table would stop the requests for all: names of columns in an expression are read under a lock, so it has none of checks and exclusions
 * (CONSTRAINT_DEFINITIONS_SQL), and defaults are written without their table, as they name no column.
 */
export const CATALOGUE_SQL = withBodies(
  withSystemOperators(`
with recursive base as (
  select oid as type, oid as root from pg_catalog.pg_type where typtype <> 'd'
  union all
  select t.oid, base.root from pg_catalog.pg_type t join base on t.typbasetype = base.type where t.typtype = 'd'
),
${CODE_OF_TABLES},
${OWN_TRIGGERS},
relation as (
  select c.oid, n.nspname, c.relname, c.relkind, c.reltuples,
    c.relkind = 'r' and not c.relhasrules and not c.relhassubclass and not c.relispartition
      and not c.oid = any (select inhrelid from pg_catalog.pg_inherits)
      and not c.oid = any (select tgrelid from pg_catalog.pg_trigger where not tgisinternal and not oid = any (select oid from own_trigger))
      and not c.oid = any (select confrelid from pg_catalog.pg_constraint where confdeltype = any (array['c', 'n', 'd']) or confupdtype = any (array['c', 'n', 'd']))
      as alone,
    c.relkind = 'r' and not c.relhassubclass and not c.relrowsecurity as plain, c.relrowsecurity as secured,
    c.relkind = 'r' and not c.relhassubclass and c.relrowsecurity and not c.oid = any (select oid from coded union all select oid from looking) as row_policies,
    c.relkind = any (array['r', 'f']) and c.relhassubclass as parent,
    (select code from implied) or c.oid = any (select oid from coded) as reads_code,
    c.oid = any (
      select f.adrelid from pg_catalog.pg_attrdef f where exists (select from calling where classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid and objid = f.oid)
      union all
      select k.conrelid from pg_catalog.pg_constraint k where exists (select from calling where classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid and objid = k.oid)
      union all
      select i.indrelid from pg_catalog.pg_index i where exists (select from calling where classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid and objid = i.indexrelid)
    ) as writes_code
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = any (array['r', 'v', 'm', 'f', 'p']) and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    and pg_catalog.has_schema_privilege(n.oid, 'usage')
    -- Stored answers and changed keys of all callers (idempotency-store.ts, changes/): no plan reaches them.
    and not (n.nspname = 'public' and c.relname = any (${HIDDEN_TABLES}))
)
select pg_catalog.json_build_object(
  'tables', (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(oid::pg_catalog.text, nspname, relname, relkind, reltuples, alone, plain, parent, reads_code, reads_code or writes_code or not alone, secured, row_policies)), '[]') from relation),
  'columns', (
    select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(
      r.oid::pg_catalog.text, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), ${qualifiedType('t')}, b.typcategory, b.typname,
      not a.attnotnull and t.typnotnull is not true, a.attgenerated <> '', a.attidentity,
      case when a.attidentity <> '' then
        (select 'nextval(' || pg_catalog.quote_literal(s.objid::pg_catalog.regclass::pg_catalog.text) || '::regclass)' from pg_catalog.pg_depend s
          where s.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid and s.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
            and s.refobjid = a.attrelid and s.refobjsubid = a.attnum and s.deptype = 'i')
      when a.attgenerated = '' then coalesce(pg_catalog.pg_get_expr(d.adbin, 0), pg_catalog.pg_get_expr(t.typdefaultbin, 0)) end,
      b.typdelim
    ) order by a.attrelid, a.attnum), '[]')
    from relation r
    join pg_catalog.pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    join pg_catalog.pg_type t on t.oid = a.atttypid
    join base on base.type = t.oid
    join pg_catalog.pg_type b on b.oid = base.root
    left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  ),
  'constraints', (
    select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(
      k.conrelid::pg_catalog.text, k.conname, k.contype,
      case when not k.contype = any (array['c', 'x']) then pg_catalog.pg_get_constraintdef(k.oid) end,
      (select pg_catalog.json_agg(a.attname order by n.place) from pg_catalog.unnest(k.conkey) with ordinality n(number, place)
        join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = n.number),
      k.confrelid::pg_catalog.text,
      (select pg_catalog.json_agg(a.attname order by n.place) from pg_catalog.unnest(k.confkey) with ordinality n(number, place)
        join pg_catalog.pg_attribute a on a.attrelid = k.confrelid and a.attnum = n.number),
      k.confdeltype = 'c', k.convalidated
    ) order by k.conrelid, k.conname), '[]')
    from relation r join pg_catalog.pg_constraint k on k.conrelid = r.oid
    where k.contype = any (array['p', 'u', 'f', 'c', 'x']) and k.conparentid = 0
  )
) as catalogue`),
)

/** The result of the statement: arrays instead of objects, because a large database has tens of thousands of entries. */
export type CatalogueRow = {
  readonly tables: readonly (readonly [
    oid: string,
    schema: string,
    name: string,
    kind: string,
    estimate: number,
    alone: boolean,
    plain: boolean,
    parent: boolean,
    readsCode: boolean,
    writesCode: boolean,
    secured: boolean,
    rowPolicies?: boolean,
  ])[]
  readonly columns: readonly (readonly [
    table: string,
    name: string,
    type: string,
    cast: string,
    category: string,
    base: string,
    nullable: boolean,
    generated: boolean,
    identity: string,
    fallback: string | null,
    separator?: string | null,
  ])[]
  readonly constraints: readonly (readonly [
    table: string,
    name: string,
    kind: string,
    definition: string | null,
    columns: readonly string[] | null,
    target: string,
    targetColumns: readonly string[] | null,
    cascades?: boolean,
    validated?: boolean,
  ])[]
}

export function buildCatalogue(row: CatalogueRow): Catalogue {
  const names = new Map(row.tables.map(([oid, schema, table]) => [oid, { schema, table }]))
  const columns = Map.groupBy(row.columns, ([table]) => table)
  const constraints = Map.groupBy(row.constraints, ([table]) => table)
  const tables = row.tables.map(
    ([
      oid,
      schema,
      name,
      kind,
      estimate,
      standsAlone,
      isPlain,
      hasChildren,
      readRunsCode,
      writeRunsCode,
      hasPolicies,
      hasRowPolicies,
    ]): Table => {
      const ofTable = (constraints.get(oid) ?? []).map((item) => constraintOf(item, names.get(item[5])))
      return {
        schema,
        name,
        kind: KINDS[kind] ?? 'table',
        estimatedRows: Math.max(0, estimate),
        columns: new Map((columns.get(oid) ?? []).map((item) => [item[1], columnOf(item)])),
        primaryKey: ofTable.find((constraint) => constraint.kind === 'primary key')?.columns ?? [],
        constraints: ofTable,
        standsAlone,
        isPlain,
        hasChildren,
        readRunsCode,
        writeRunsCode,
        hasPolicies,
        hasRowPolicies: hasRowPolicies === true,
      }
    },
  )
  return catalogueOf(tables)
}

function columnOf([
  ,
  name,
  type,
  cast,
  category,
  base,
  nullable,
  generated,
  identity,
  fallback,
  separator,
]: CatalogueRow['columns'][number]): Column {
  return {
    name,
    type,
    cast,
    category,
    base,
    nullable,
    fallback: fallback ?? undefined,
    writable: !generated && identity !== 'a',
    identity: identity === 'a' ? 'always' : identity === 'd' ? 'by default' : undefined,
    separator: separator === ',' ? undefined : (separator ?? undefined),
  }
}

function constraintOf(
  [, name, kind, definition, columns, , to, cascades, validated]: CatalogueRow['constraints'][number],
  target: { readonly schema: string; readonly table: string } | undefined,
): Constraint {
  const facts = { cascades: cascades === true, isValid: validated === true }
  return {
    name,
    kind: CONSTRAINT_KINDS[kind] ?? 'check',
    columns: columns ?? [],
    references: target && { ...target, ...facts, columns: to ?? [] },
    definition: definition ?? undefined,
  }
}

const KINDS: Readonly<Record<string, Table['kind']>> = {
  r: 'table',
  v: 'view',
  m: 'materialized view',
  f: 'foreign table',
  p: 'partitioned table',
}

const CONSTRAINT_KINDS: Readonly<Record<string, Constraint['kind']>> = {
  p: 'primary key',
  u: 'unique',
  f: 'foreign key',
  c: 'check',
  x: 'exclusion',
}
