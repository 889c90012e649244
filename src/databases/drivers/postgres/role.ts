import { fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** What a gateway's role must not be (gateway.md 2): a way to the files of the server, or to the password hashes. */
export type RoleFacts = {
  readonly superuser: boolean
  /** Those that it is a member of. */
  readonly serverRoles: readonly string[]
  /** The control schema is in this database and can be read, by the role or by one that it may become (SET ROLE). */
  readonly readsControl: boolean
}

export const roleSql = `
select json_build_object(
  'superuser', exists (select from pg_roles where rolsuper and pg_has_role(current_user, oid, 'member')),
  'serverRoles', (
    select coalesce(json_agg(rolname order by rolname), '[]') from pg_roles
    where rolname in ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
      and pg_has_role(current_user, oid, 'member')
  ),
  'readsControl', exists (
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_roles r on pg_has_role(current_user, r.oid, 'member')
    where n.nspname = 'service' and c.relname = 'session' and c.relkind in ('r', 'p')
      and has_schema_privilege(r.oid, n.oid, 'usage') and has_any_column_privilege(r.oid, c.oid, 'select')
  )
) as role`

/** `allowServerRights`: the client is named in `gateway.unsafe_clients`; the control schema stays closed even then. */
export function unsafe(role: RoleFacts, allowServerRights: boolean): Failure | undefined {
  const reasons = [
    ...(role.superuser && !allowServerRights ? ['superuser'] : []),
    ...(allowServerRights ? [] : role.serverRoles),
    ...(role.readsControl ? ['can read the control schema'] : []),
  ]
  if (reasons.length === 0) return undefined
  return fail('unsafe_client', {
    hint: 'Give the client a role of its own with rights on its own tables only.',
    details: { reasons },
  })
}
