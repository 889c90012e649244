import type pg from 'pg'

/**
 * A digest of the structure of a database: relations, columns, defaults, constraints, indexes, functions, types, policies, triggers, rules,
 * comments, extensions, schemas and privileges, this role, and the roles of the system that it belongs to or that are named `evil…`. Statistics are left
 * out, and roles of other tests, which run at the same time as the same role.
 */
export async function catalogueDigest(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ digest: string }>(DIGEST_SQL)
  return rows[0]?.digest ?? ''
}

/** Columns that change without a change of the structure. */
const STATISTICS = `'{relpages,reltuples,relallvisible,relallfrozen,relfrozenxid,relminmxid,relhasindex}'::text[]`

/** Large catalogues, and the column with the id. Objects of the system are left out: only a superuser can change them. */
const LARGE = {
  attribute: 'attrelid',
  proc: 'oid',
  type: 'oid',
  description: 'objoid',
  operator: 'oid',
  cast: 'oid',
  rewrite: 'oid',
}
const SMALL = [
  ...['attrdef', 'constraint', 'index', 'policy', 'trigger', 'extension', 'namespace', 'default_acl'],
  ...['event_trigger', 'sequence'],
]
/** The first id of an object that is not of the system. */
const FIRST = 16_384

const lines = [
  `select 'class' as kind, (to_jsonb(c) - ${STATISTICS})::text as line from pg_class c`,
  ...SMALL.map((name) => `select '${name}', to_jsonb(x)::text from pg_${name} x`),
  ...Object.entries(LARGE).map(
    ([name, id]) => `select '${name}', to_jsonb(x)::text from pg_${name} x where ${id} >= ${FIRST}`,
  ),
  `select 'database', concat(datname, datdba, datacl) from pg_database where datname = current_database()`,
  `select 'role', to_jsonb(r)::text from pg_roles r
    where rolname ~ '^evil' or rolname = current_user or rolname ~ '^pg_' and pg_has_role(current_user, oid, 'member')`,
]

const DIGEST_SQL = `select md5(string_agg(md5(kind || line), '' order by kind, line collate "C")) as digest
  from (${lines.join(' union all ')}) as everything`
