import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { driftSentence, NOTED_DRIFT } from '#kernel/clock.ts'
import { MigrationError, pendingMigrations } from '#kernel/db/migrate.ts'
import { preparedStatement } from '#kernel/db/pipelined-statements.ts'
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
  const silent = await silentPaths(kernel)
  if (silent.length === kernel.controlPaths.length) return ['The control database cannot be reached']
  if (silent.length > 0) return [`The control database cannot be reached for ${silent.join(', ')}`]
  try {
    const pending = await inTime(pendingMigrations((text) => sql.raw(text).execute(kernel.db)))
    return [
      ...pending.map((name) => `Migration ${name} has not been applied: run gatehouse migrate`),
      ...(await inTime(kernel.disk.problems())),
    ]
  } catch (error) {
    return [error instanceof MigrationError ? error.message : 'The control database cannot be reached']
  }
}

/** One way to the control database may be dead while the others answer: requests take all of them. */
async function silentPaths({ controlPaths }: Kernel): Promise<readonly string[]> {
  const answers = await Promise.allSettled(controlPaths.map(({ ping }) => inTime(ping())))
  return controlPaths.flatMap(({ name }, index) => (answers[index]?.status === 'fulfilled' ? [] : [name]))
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

/** Who asks while the parts are being asked gets the same answer, so that strangers do not multiply the questions. */
export function componentStates(checks: () => readonly Component[]): () => Promise<readonly State[]> {
  let current: Promise<readonly State[]> | undefined
  return () => {
    current ??= Promise.all(checks().map(stateOf)).finally(() => {
      current = undefined
    })
    return current
  }
}

/** Undefined while the control database does not answer. */
export async function databaseFacts({
  pipelined,
  drift,
}: Kernel): Promise<{ readonly version: string; readonly drift: number } | undefined> {
  try {
    const [found] = await inTime(pipelined.query(FACTS, []))
    return found && { version: found.version, drift: drift() }
  } catch {
    return undefined
  }
}

const FACTS = preparedStatement<{ version: string }>(`select current_setting('server_version') as version`)

/** Parts that are there only while something is the matter with them. */
export async function troubles({ drift, disk }: Kernel): Promise<readonly State[]> {
  const full = await inTime(disk.problems()).catch(() => ['The disk of server.data_dir does not answer'])
  const apart = Math.abs(drift()) > NOTED_DRIFT ? [driftSentence(drift())] : []
  const states = (name: string, messages: readonly string[]) =>
    messages.map((message) => ({ name, status: 'offline' as const, message }))
  return [...states('clock', apart), ...states('disk', full)]
}

async function stateOf({ name, check }: Component): Promise<State> {
  try {
    return { name, status: 'online', message: await inTime(check()) }
  } catch {
    // Why is for the log and the operator, not for whoever asks.
    return { name, status: 'offline' }
  }
}
