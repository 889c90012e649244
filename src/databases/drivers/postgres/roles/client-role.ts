import { fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** Facts about a client's role (gateway.md 2). It must not give access to the whole server or to the password hashes. */
export type RoleFacts = {
  readonly superuser: boolean
  /** Predefined server roles that it is a member of. */
  readonly serverRoles: readonly string[]
  /** Before PostgreSQL 16 it could grant itself every role that is no superuser. */
  readonly createsRoles: boolean
  /** It could stream the whole server or decode its write-ahead log. */
  readonly replicates: boolean
  /** Its rights in a control schema of this database: reading a table, any other right, or none. */
  readonly control: 'reads' | 'has rights' | 'is there' | null
  /**
   * It is the login of the service or the owner of the control database, on the same server. From any database there it could terminate the
   * service's connections, change its password, or drop the database.
   */
  readonly ownsControl: boolean
}

/**
 * Takes literals: the start time of the control server, and its roles separated by commas. Every role counts that the session may take by
 * SET ROLE, inherited or not, from the login as well as from the current role: a setting of the login may have changed the role, and RESET
 * ROLE returns to it.
 */
export const roleSql = ({ startedAt, roles }: Readonly<Record<'startedAt' | 'roles', string>>): string => `
with mine as (
  select oid, rolname, rolsuper, rolcreaterole, rolreplication from pg_roles
  where pg_has_role(session_user, oid, 'member') or pg_has_role(current_user, oid, 'member')
),
control as (
  select n.oid as schema, c.oid as relation, c.relkind
  from pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
  where n.nspname in ('service', 'service_jobs') and exists (
    select from pg_class s join pg_namespace o on o.oid = s.relnamespace
    where o.nspname = 'service' and s.relname = 'session' and s.relkind in ('r', 'p')
  )
),
held as (
  select
    coalesce(bool_or(has_any_column_privilege(m.oid, c.relation, 'select')), false) as reads,
    coalesce(bool_or(
      has_table_privilege(m.oid, c.relation, 'select, insert, update, delete, truncate, references, trigger')
      or has_any_column_privilege(m.oid, c.relation, 'insert, update, references')
      or case when c.relkind = 'S' then has_sequence_privilege(m.oid, c.relation, 'usage') else false end
      or case when current_setting('server_version_num')::integer >= 170000
        then has_table_privilege(m.oid, c.relation, 'maintain') else false end
    ), false) or coalesce(bool_or(has_schema_privilege(m.oid, c.schema, 'create')), false) as rights
  from control c cross join mine m
)
select json_build_object(
  'superuser', exists (select from mine where rolsuper),
  'serverRoles', (
    select coalesce(json_agg(rolname order by rolname), '[]') from mine
    where rolname in ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
  ),
  'createsRoles', current_setting('server_version_num')::integer < 160000 and exists (select from mine where rolcreaterole),
  'replicates', exists (select from mine where rolreplication),
  'control', case when held.reads then 'reads' when held.rights then 'has rights' when exists (select from control) then 'is there' end,
  'ownsControl', extract(epoch from pg_postmaster_start_time())::text = ${startedAt} and exists (
    select from mine where rolname = any (array[${roles}]::text[]) and not exists (select from mine where rolsuper)
  )
) as role from held`

/** `allowServerRights`: the client is named in `gateway.unsafe_clients`; rights on the control schema are refused even then. */
export function unsafe(role: RoleFacts, allowServerRights: boolean): Failure | undefined {
  const reasons = [
    ...(role.superuser && !allowServerRights ? ['superuser'] : []),
    ...(allowServerRights ? [] : role.serverRoles),
    ...(role.createsRoles && !allowServerRights
      ? ['CREATEROLE, which before PostgreSQL 16 gives every other right']
      : []),
    ...(role.replicates && !allowServerRights ? ['REPLICATION'] : []),
    ...(role.ownsControl && !allowServerRights ? ['is the role of the control database'] : []),
    ...(role.control === null ? [] : [CONTROL[role.control]]),
  ]
  if (reasons.length === 0) return undefined
  return fail('unsafe_client', {
    hint: 'Give the client a database of its own, and a role with rights on its own tables only.',
    details: { reasons },
  })
}

const CONTROL = {
  reads: 'can read the control schema',
  'has rights': 'has rights on the control schema',
  // A role that is connected there can listen to and send the notifications of the caches.
  'is there': 'is in the control database',
}
