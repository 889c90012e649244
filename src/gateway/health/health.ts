import { sql } from 'kysely'
import type { DriverName } from '#kernel/config/addresses.ts'
import { MigrationError } from '#kernel/db/migrate.ts'
import { preparedStatement } from '#kernel/db/pipelined-statements.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { singleFlight } from '#kernel/single-flight.ts'
import { withTimeout } from '#kernel/timeout.ts'
import { type Check, createChecks } from './checks.ts'
import { keepFor } from './mirrors.ts'

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
  checks: readonly Check[],
  { isDraining }: { isDraining(): boolean },
): Promise<readonly string[]> {
  if (isDraining()) return ['The service is shutting down']
  const silent = await silentPaths(kernel)
  if (silent.length === kernel.controlPaths.length) return ['The control database cannot be reached']
  if (silent.length > 0) return [`The control database cannot be reached for ${silent.join(', ')}`]
  try {
    const needed = checks.filter(({ stops }) => stops !== 'work')
    return (await Promise.all(needed.map(({ problems }) => inTime(problems())))).flat()
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

/** The checks of a running process. Other servers are asked once a minute, however many ask here: anyone can. */
export const checksOf = ({ config, db, disk, drift }: Kernel): readonly Check[] =>
  createChecks({ config, disk, drift, run: (text) => sql.raw(text).execute(db) }).map((check) =>
    check.isRemote ? { ...check, problems: recent(check.problems) } : check,
  )

const ASK_AGAIN = 60_000

/** The answer of a server within the last minute. One that is late is told by a later call. */
function recent(ask: () => Promise<readonly string[]>): () => Promise<readonly string[]> {
  let known: readonly string[] = []
  const asked = keepFor(ASK_AGAIN, async () => {
    known = await ask()
    return known
  })
  return () => withTimeout(asked(), PATIENCE / 2, () => known)
}

/** Checks that are listed only if they have a problem. */
export const troubles = async (checks: readonly Check[]): Promise<readonly State[]> =>
  (
    await Promise.all(
      checks.map(async ({ name, problems }) => {
        const messages = await inTime(problems()).catch((error: unknown) => [
          error instanceof MigrationError ? error.message : 'It cannot be checked: there is no answer',
        ])
        return messages.map((message) => ({ name, status: 'offline' as const, message }))
      }),
    )
  ).flat()

async function stateOf({ name, driver, check }: Component): Promise<State> {
  try {
    return { name, driver, status: 'online', message: await inTime(check()) }
  } catch {
    // The cause is for the log and the operator only, not for anonymous callers.
    return { name, driver, status: 'offline' }
  }
}
