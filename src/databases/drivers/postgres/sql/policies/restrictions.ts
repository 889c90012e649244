import type { ChangeConditions, Dependent } from '#databases/drivers/management.ts'
import { fail } from '#databases/failures.ts'

/**
 * Refuses a change that drops a restrictive policy of a table that stays: without it, callers see rows that it has hidden. PostgreSQL drops
 * a policy with anything that its expressions use, if CASCADE is asked for.
 */
export function keepRestrictions(): Required<Pick<ChangeConditions, 'check' | 'verify'>> {
  let before: readonly Restriction[] = []
  return {
    async check(query) {
      before = await query<Restriction>(RESTRICTIONS_SQL, [])
    },
    async verify(query) {
      if (before.length === 0) return
      const [lost] = await query<LostRestriction>(LOST_SQL, [JSON.stringify(before)])
      if (lost === undefined) return
      throw fail('object_in_use', {
        hint: 'A restrictive policy would be dropped too, and callers would see the rows that it hides. Drop it first.',
        details: { dependents: [{ type: 'policy', ...lost }] },
      })
    },
  }
}

type Restriction = { readonly policy: string; readonly relation: string; readonly name: string }
type LostRestriction = Pick<Dependent, 'name' | 'schema_name' | 'table_name'>

const RESTRICTIONS_SQL = `select oid::text as policy, polrelid::text as relation, polname as name from pg_policy where not polpermissive`

const LOST_SQL = `
select b.name, n.nspname as schema_name, c.relname as table_name
from json_to_recordset($1) as b(policy oid, relation oid, name text)
join pg_class c on c.oid = b.relation join pg_namespace n on n.oid = c.relnamespace
where not exists (select from pg_policy p where p.oid = b.policy) order by 2, 3, 1 limit 1`
