import type pg from 'pg'
import type { SqlRole } from '#databases/drivers/driver.ts'
import { createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** The same database, with another login. */
export function loginAs(
  url: string | pg.ClientConfig,
  { name, password }: SqlRole,
): string | pg.ClientConfig {
  if (typeof url !== 'string') return { ...url, user: name, password }
  const login = new URL(url)
  login.username = encodeURIComponent(name)
  login.password = encodeURIComponent(password)
  // pg prefers these to the user and password in front of the host.
  for (const parameter of ['user', 'password']) login.searchParams.delete(parameter)
  return login.href
}

/** The roles of a connection of the client. The server is asked, because a pooler may map the login to another role. */
export const OWN_ROLES_SQL = createSql('select json_build_array(session_user, current_user) as roles')

/**
 * Which of the client's own roles the session can take, by any membership: ADMIN OPTION alone suffices to grant oneself the rest. With
 * pg_signal_backend it can end their statements without taking the role.
 */
export const reachableRolesSql = (names: string): string => `
select rolname from pg_roles
where (rolname in (${names}) or rolname = 'pg_signal_backend')
  and (pg_has_role(session_user, oid, 'member') or pg_has_role(current_user, oid, 'member'))
order by rolname`

export function unsafeSqlRole(reachable: readonly { readonly rolname: string }[]): Failure | undefined {
  if (reachable.length === 0) return undefined
  return fail('unsafe_client', {
    message: "The role for the callers' own SQL reaches the client's own role",
    hint: 'Give clients.NAME.sql_role a login of its own that is not, and is no member of, the role in the URL.',
    details: { reasons: reachable.map(({ rolname }) => `is or may become ${rolname}`) },
  })
}
