import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'

/**
 * `discard all` without prepared statements, which the driver keeps: resets settings, role, locks, temporary tables, cursors, notifications
 * and sequences. Runs after the answer, and only where user-defined functions may have run.
 */
const RESET = `set session authorization default; reset all; close all; unlisten *;
  select pg_catalog.pg_advisory_unlock_all(); discard temp; discard sequences`

/** Resets the session before the next caller has the connection. A connection that cannot be reset is destroyed. */
export async function resetSession(client: RowClient, patience: number): Promise<void> {
  // With a pooler, others already use the session; docs/decisions/0029-poolers.md.
  if (client.pooled !== undefined) {
    client.mayBeDirty = false
    return
  }
  const timer = setTimeout(() => client.destroy(), patience)
  try {
    client.since = performance.now()
    client.presence = undefined
    await client.query(RESET)
    if (!isFresh(client)) client.destroy()
    client.mayBeDirty = false
  } catch {
    client.destroy()
  } finally {
    clearTimeout(timer)
  }
}

/** Whether the settings are those of connect.ts; a pooler may have dropped the settings that a reset returns to. */
export const isFresh = (client: RowClient): boolean => !client.hasChangedSettings() && isAsAsked(client)

const isAsAsked = ({ reported }: RowClient): boolean =>
  reported.TimeZone === 'UTC' &&
  reported.IntervalStyle === 'iso_8601' &&
  reported.client_encoding === 'UTF8' &&
  reported.standard_conforming_strings === 'on'
