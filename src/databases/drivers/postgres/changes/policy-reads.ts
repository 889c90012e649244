import type { OwnerColumn, PolicyReads } from '#databases/drivers/changes.ts'
import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import { isSame } from '#databases/drivers/postgres/changes/noted-tables.ts'
import { LIMITED_LOCKS } from '#databases/drivers/postgres/sql/limited-locks.ts'
import {
  type FunctionReads,
  readsOfFunction,
  SEARCH_PATHS_SQL,
  SHADOWS_SQL,
} from '#databases/drivers/postgres/sql/policies/function-reads.ts'
import { ownerColumnOf } from '#databases/drivers/postgres/sql/policies/owner-column.ts'
import { type KnownFunctions, readsOfExpression } from '#databases/drivers/postgres/sql/policies/reads.ts'
import { type BuiltSql, bind, createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import type { TableName } from '#databases/request/request.ts'

export type ReadsOfPolicies = (table: TableName) => Promise<PolicyReads | 'not_live'>

/** Reads the policies by which these roles see rows of a table, and those of the tables that policies read. */
export function createPolicyReads(
  read: (sql: BuiltSql) => Promise<unknown>,
  { anonymousRole, signedInRole }: RowLevelSecurity,
): ReadsOfPolicies {
  return async (table) => {
    const tables: TableName[] = [table]
    const claims = new Set<string>()
    let readsAll = false
    let owners: readonly OwnerColumn[] | undefined
    // The list grows in the loop.
    for (const { schema, table: name } of tables) {
      const sql = createSql(POLICIES_SQL)
      for (const value of [schema, name, anonymousRole, signedInRole]) bind(sql, value)
      const found = (await read(sql)) as Policies | null | undefined // as the statement builds it
      // A view, or a foreign table: nothing is known of its rows.
      if (found === undefined || found === null) return 'not_live'
      const { expressions, hasCode } = found
      const known = hasCode ? undefined : await knownIn(found)
      if (known === undefined) return 'not_live'
      if (name === table.table && schema === table.schema) owners = await ownersIn(found)
      for (const text of expressions) {
        const reads = await readsOfExpression(text, known)
        if (reads === undefined) return 'not_live'
        if (reads.claims === 'all') readsAll = true
        else for (const claim of reads.claims) claims.add(claim)
        tables.push(...reads.tables.filter((one) => !tables.some((known) => isSame(known, one))))
      }
    }
    const reads = { claims: readsAll ? ('all' as const) : [...claims].sort(), tables: tables.slice(1) }
    return owners === undefined ? reads : { ...reads, owners }
  }
}

type Policies = {
  /** Operators of users, or functions that cannot be seen through. Their names need not stand in the text, as those of casts or of NULLIF. */
  readonly hasCode: boolean
  /** Functions of users that may be seen through. Without arguments, so that they stand in the text wherever they are called. */
  readonly functions: readonly { readonly schema: string; readonly name: string; readonly body: string }[]
  readonly expressions: readonly string[]
  /** The client's own role sees all rows. */
  readonly isOpen: boolean
}

/** Undefined where one of the functions reads anything but claims. */
async function knownIn({ functions }: Policies): Promise<KnownFunctions | undefined> {
  const known = new Map<string, FunctionReads>()
  for (const { schema, name, body } of functions) {
    const reads = await readsOfFunction(body)
    if (reads === undefined) return undefined
    known.set(JSON.stringify([schema, name]), reads)
  }
  return known
}

/** Undefined for policies of another form, and without policies: then all rows may be visible. */
async function ownersIn({ expressions, isOpen }: Policies): Promise<readonly OwnerColumn[] | undefined> {
  if (!isOpen || expressions.length === 0) return undefined
  const owners = await Promise.all(expressions.map(ownerColumnOf))
  return owners.every((owner) => owner !== undefined) ? owners : undefined
}

/**
 * A function `f` that may be seen through: its text is all that it does, and not computed once for a plan, which callers share, as an IMMUTABLE one
 * may be. A type of users could have a cast that runs code of theirs. The session's search path has pg_catalog first, also where it does not name it.
 */
const IS_CLEAR = `(f.prokind = 'f' and f.pronargs = 0 and f.prorettype < 16384 and f.provolatile = 's' and not f.prosecdef and not f.proretset
  and f.prolang = (select l.oid from pg_language l where l.lanname = 'sql') and f.proconfig is null
  and ${SHADOWS_SQL} = ''
  and not exists (select from unnest(${SEARCH_PATHS_SQL}) path where path ~ 'pg_catalog' and path !~ '^ *"?pg_catalog"?( *,|$)'))`

/** The policies for reading rows, of these roles. Runs with the search path pg_catalog. */
const POLICIES_SQL = `
with policy as (
  select p.* from pg_policy p join pg_class c on c.oid = p.polrelid and c.relrowsecurity
  where p.polcmd in ('r', '*') and p.polqual is not null
    and exists (
      select from unnest(p.polroles) granted(role)
      where case when granted.role = 0 then true else exists (
        select from pg_roles r where r.rolname in ($3, $4) and pg_has_role(r.oid, granted.role, 'usage')
      ) end
    )
)
select case when c.relkind in ('r', 'p') then json_build_object('isOpen', not row_security_active(c.oid), 'expressions', (
    select coalesce(json_agg(pg_get_expr(p.polqual, p.polrelid) order by p.polname), '[]') from policy p where p.polrelid = c.oid
  ), 'hasCode', exists (
    select from policy p join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = p.oid
    left join pg_proc f on d.refclassid = 'pg_proc'::regclass and f.oid = d.refobjid
    where p.polrelid = c.oid and d.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass) and ${IS_CLEAR} is not true
  ), 'functions', (
    select coalesce(json_agg(json_build_object('schema', s.nspname, 'name', f.proname,
      'body', coalesce('select ' || substring(pg_get_function_sqlbody(f.oid) from '^RETURN (.*)$'), f.prosrc))), '[]')
    from pg_proc f join pg_namespace s on s.oid = f.pronamespace
    where f.oid in (
      select d.refobjid from policy p join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = p.oid
      where p.polrelid = c.oid and d.refclassid = 'pg_proc'::regclass
    )
  )
) end as policies
from ${LIMITED_LOCKS} cross join pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relname = $2`
