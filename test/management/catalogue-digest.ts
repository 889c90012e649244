import type pg from 'pg'

/**
 * A digest of the structure of a database: relations, columns, defaults, constraints, indexes, functions, types, policies, triggers, rules,
 * comments, extensions, schemas and privileges, and the roles that this one belongs to or that are named `evil…`. Statistics are left out.
 */
export async function catalogueDigest(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ digest: string }>(DIGEST_SQL)
  return rows[0]?.digest ?? ''
}

/** Columns that change without a change of the structure. */
const STATISTICS = `'{relpages,reltuples,relallvisible,relallfrozen,relfrozenxid,relminmxid,relhasindex}'::text[]`

const CATALOGUES = [
  ...['attribute', 'attrdef', 'constraint', 'index', 'proc', 'policy', 'trigger', 'rewrite', 'type'],
  ...[
    'description',
    'extension',
    'namespace',
    'default_acl',
    'event_trigger',
    'sequence',
    'cast',
    'operator',
  ],
]

const lines = [
  `select 'class' as kind, (to_jsonb(c) - ${STATISTICS})::text as line from pg_class c`,
  ...CATALOGUES.map((name) => `select '${name}', to_jsonb(x)::text from pg_${name} x`),
  `select 'database', concat(datname, datdba, datacl) from pg_database where datname = current_database()`,
  `select 'role', to_jsonb(r)::text from pg_roles r where rolname ~ '^evil' or pg_has_role(current_user, r.oid, 'member')`,
]

const DIGEST_SQL = `select md5(string_agg(md5(kind || line), '' order by kind, line collate "C")) as digest
  from (${lines.join(' union all ')}) as everything`
