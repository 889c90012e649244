import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'

/**
 * What `discard all` does but for prepared statements, which are ours: settings go back to those of the start, role, locks, temporary
 * tables, cursors, notices and sequences to nothing. Behind the answer, and only where functions of users may have run.
 */
const RESET = `set session authorization default; reset all; close all; unlisten *;
  select pg_catalog.pg_advisory_unlock_all(); discard temp; discard sequences`

/** Before anybody else has the connection; what cannot be cleaned is destroyed. */
export async function resetSession(client: RowClient, patience: number): Promise<void> {
  // Behind a pooler the session is another's already; docs/decisions/0029-poolers.md.
  if (client.pooled !== undefined) {
    client.mayBeMarked = false
    return
  }
  const timer = setTimeout(() => client.destroy(), patience)
  try {
    client.since = performance.now()
    client.presence = undefined
    await client.query(RESET)
    if (!isFresh(client)) client.destroy()
    client.mayBeMarked = false
  } catch {
    client.destroy()
  } finally {
    clearTimeout(timer)
  }
}

/** As connect.ts made it; a pooler in between may have dropped the settings that a reset returns to. */
export const isFresh = (client: RowClient): boolean => !client.hasDrifted() && isAsAsked(client)

const isAsAsked = ({ reported }: RowClient): boolean =>
  reported.TimeZone === 'UTC' &&
  reported.IntervalStyle === 'iso_8601' &&
  reported.client_encoding === 'UTF8' &&
  reported.standard_conforming_strings === 'on'
