import type { Run } from './queue-version.ts'

/** Why the role of the control database cannot write, without its name, since /health/ready tells strangers; undefined when it can. */
export async function writeProblem(run: Run): Promise<string | undefined> {
  const { rows } = await run(STATE)
  const [{ standby, reads, closed }] = rows as [State] // the statement's own columns, always one row
  if (standby)
    return 'The control database is a standby, which takes no writes: name the primary server in database.url (DATABASE_URL)'
  if (reads)
    return (
      'Sessions in the control database are read-only: take default_transaction_read_only from the role, ' +
      'the database, the server and database.url (DATABASE_URL)'
    )
  if (closed.length === 0) return undefined
  return `The role of database.url (DATABASE_URL) may not write to ${closed.join(', ')} in the control database: name the owner of the tables there`
}

type State = {
  readonly standby: boolean
  readonly reads: boolean
  readonly closed: readonly string[]
}

const STATE = `select pg_is_in_recovery() as standby,
  current_setting('transaction_read_only') = 'on' as reads,
  array(
    select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'service' and c.relkind = 'r' and not has_table_privilege(c.oid, 'insert')
    order by c.relname limit 3
  ) as closed`
