import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { MigrationError, pendingMigrations } from '#kernel/db/migrate.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** A part whose state is asked for when somebody wants to know; throwing means offline. */
export type Component = { readonly name: string; check(): Promise<string> }

export type State = {
  readonly name: string
  readonly status: 'online' | 'offline'
  readonly message?: string
}

/** What keeps this process from answering requests; nothing when it is ready. */
export async function readiness(
  kernel: Kernel,
  { isDraining }: { isDraining(): boolean },
): Promise<readonly string[]> {
  if (isDraining()) return ['The service is shutting down']
  try {
    const pending = await inTime(pendingMigrations((text) => sql.raw(text).execute(kernel.db)))
    return pending.map((name) => `Migration ${name} has not been applied: run gatehouse migrate`)
  } catch (error) {
    return [error instanceof MigrationError ? error.message : 'The control database cannot be reached']
  }
}

/** How long a part may take to answer before it counts as offline, milliseconds. */
const PATIENCE = 2_000

async function inTime<T>(answer: Promise<T>): Promise<T> {
  const giveUp = new AbortController()
  const late = sleep(PATIENCE, undefined, { signal: giveUp.signal }).then(() => {
    throw new Error(`no answer within ${PATIENCE} ms`)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    giveUp.abort()
    // Its end is heard by nobody any more.
    late.catch(() => {})
  }
}

export function components(checks: readonly Component[]): Promise<readonly State[]> {
  return Promise.all(checks.map(stateOf))
}

async function stateOf({ name, check }: Component): Promise<State> {
  try {
    return { name, status: 'online', message: await inTime(check()) }
  } catch {
    // Why is for the log and the operator, not for whoever asks.
    return { name, status: 'offline' }
  }
}
