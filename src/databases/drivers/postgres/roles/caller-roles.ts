import { fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** Facts about a role for callers (gateway.md 19). Policies must apply to it. */
export type CallerRoleFacts = {
  readonly role: string
  readonly exists: boolean
  /** Whether the client's own role may SET ROLE to it. */
  readonly isGranted: boolean
  /** Roles that it is or may become and that bypass policies or table rights. */
  readonly powers: readonly string[]
  /** A table that it owns, directly or as a member of the owner: policies do not apply to owners. */
  readonly owns: string | null
}

/** `names`: literals, separated by commas. */
export const callerRolesSql = (names: string): string => `
select asked.role, r.oid is not null as exists, coalesce(pg_has_role(session_user, r.oid, 'member'), false) as "isGranted",
  array(
    select p.rolname::text from pg_roles p
    where (p.rolsuper or p.rolbypassrls or p.rolname in ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'))
      and pg_has_role(r.oid, p.oid, 'member') order by 1
  ) as powers,
  (
    select case n.nspname when 'public' then '' else quote_ident(n.nspname) || '.' end || quote_ident(c.relname)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      and pg_has_role(r.oid, c.relowner, 'member') order by 1 limit 1
  ) as owns
from unnest(array[${names}]::text[]) as asked(role) left join pg_roles r on r.rolname = asked.role`

export function unsafeCallerRoles(facts: readonly CallerRoleFacts[]): Failure | undefined {
  const unusable = facts.find(({ exists, isGranted }) => !exists || !isGranted)
  if (unusable !== undefined) return fail('roles_unavailable', { hint: adviceFor(unusable) })
  const reasons = facts.flatMap(reasonsAgainst)
  if (reasons.length === 0) return undefined
  return fail('unsafe_client', {
    message: 'A role for row-level security of this client is not bound by policies',
    hint: 'Give callers roles that own no table, and that are neither superuser nor BYPASSRLS, nor members of such.',
    details: { reasons },
  })
}

const adviceFor = ({ role, exists }: CallerRoleFacts): string =>
  exists
    ? `The client's own role must be able to become it: grant "${role}" to the client's role.`
    : `There is no role ${role}: create role "${role}" nologin, and grant it to the client's role.`

const reasonsAgainst = ({ role, powers, owns }: CallerRoleFacts): string[] => [
  ...powers.map((power) =>
    power === role ? `${role} is superuser or BYPASSRLS` : `${role} is a member of ${power}`,
  ),
  ...(owns === null ? [] : [`${role} owns ${owns}`]),
]
