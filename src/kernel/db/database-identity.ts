import type pg from 'pg'

/** Identifies the server and the database independently of address and name. Every role may call it, unless that was revoked. */
export const IDENTITY_SQL = `select c.system_identifier::pg_catalog.text || '/' || d.oid::pg_catalog.text as identity
  from pg_catalog.pg_control_system() as c, pg_catalog.pg_database as d where d.datname operator(pg_catalog.=) pg_catalog.current_database()`

/** Undefined where the role may not ask. */
export async function databaseIdentity(client: pg.Client): Promise<string | undefined> {
  try {
    const { rows } = await client.query<{ identity: string }>(IDENTITY_SQL)
    return rows[0]?.identity
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === '42501') return undefined
    throw error
  }
}
