import { sql } from 'kysely'
import { diskProblem } from '#gateway/backups/location/location.ts'
import { driftSentence, NOTED_DRIFT } from '#kernel/clock.ts'
import type { DriverName } from '#kernel/config/addresses.ts'
import { MigrationError, pendingMigrations } from '#kernel/db/migrate.ts'
import { preparedStatement } from '#kernel/db/pipelined-statements.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { singleFlight } from '#kernel/single-flight.ts'
import { withTimeout } from '#kernel/timeout.ts'

/** A component whose state is checked on request. It is offline if the check throws. */
export type Component = { readonly name: string; readonly driver: DriverName; check(): Promise<string> }

export type State = {
  readonly name: string
  /** The kind of database. */
  readonly driver?: DriverName
  readonly status: 'online' | 'offline'
  readonly message?: string
}

/** Problems that keep this process from serving requests. Empty if it is ready. */
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

/** Each kind of connection to the control database is checked, because requests need all of them and one may be dead while others work. */
async function silentPaths({ controlPaths }: Kernel): Promise<readonly string[]> {
  const answers = await Promise.allSettled(controlPaths.map(({ ping }) => inTime(ping())))
  return controlPaths.flatMap(({ name }, index) => (answers[index]?.status === 'fulfilled' ? [] : [name]))
}

/** Timeout of a check in milliseconds, after which a component counts as offline. */
const PATIENCE = 2_000

const inTime = <T>(answer: Promise<T>): Promise<T> =>
  withTimeout(answer, PATIENCE, () => {
    throw new Error(`no response within ${PATIENCE} ms`)
  })

/** Concurrent requests share one check, so that they cannot multiply the load: anyone can send them. */
export const componentStates = (checks: () => readonly Component[]): (() => Promise<readonly State[]>) =>
  singleFlight(() => Promise.all(checks().map(stateOf)))

/** Undefined if the control database does not respond. */
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

/** Components that are listed only if they have a problem. That of backups does not keep the process from serving requests. */
export async function troubles({ config, drift, disk }: Kernel): Promise<readonly State[]> {
  const full = await inTime(disk.problems()).catch(() => ['The disk of server.data_dir does not respond'])
  const ofBackups = await inTime(diskProblem(config)).catch(
    () => 'The disk of backups.location does not respond',
  )
  const apart = Math.abs(drift()) > NOTED_DRIFT ? [driftSentence(drift())] : []
  const states = (name: string, messages: readonly string[]) =>
    messages.map((message) => ({ name, status: 'offline' as const, message }))
  return [
    ...states('clock', apart),
    ...states('disk', full),
    ...states('backups', ofBackups === undefined ? [] : [ofBackups]),
  ]
}

async function stateOf({ name, driver, check }: Component): Promise<State> {
  try {
    return { name, driver, status: 'online', message: await inTime(check()) }
  } catch {
    // The cause is for the log and the operator only, not for anonymous callers.
    return { name, driver, status: 'offline' }
  }
}
