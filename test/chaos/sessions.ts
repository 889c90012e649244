import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Act } from './plan.ts'
import type { World } from './world.ts'

/** Milliseconds. A lock that is waited for longer fails its writer, as a deadlock does. */
const PATIENCE = { lock_timeout: 500, statement_timeout: 5_000 }
/** Seconds. */
const CONNECT = 5

/** Past the gateway, with a wait in milliseconds before each statement. False: one has failed, or its session has ended. */
export const inSession = (
  world: World,
  statements: readonly string[],
  waits: readonly number[] = [],
): Promise<boolean> =>
  withSession(world, async (client) => {
    for (const [index, statement] of statements.entries()) {
      await sleep(waits[index] ?? 0)
      await client.query(statement)
    }
  })

async function withSession(
  { databaseUrl }: World,
  work: (client: pg.Client) => Promise<void>,
): Promise<boolean> {
  const patience = { connectionTimeoutMillis: CONNECT * 1_000, ...PATIENCE }
  const client = new pg.Client({ connectionString: databaseUrl, ...patience })
  client.on('error', () => {})
  try {
    await client.connect()
    await work(client)
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

export const copy = (world: World, { into, rows }: Act & { way: 'copy' }): Promise<boolean> =>
  withSession(
    world,
    (client) =>
      new Promise((resolve, reject) => {
        client.once('error', reject)
        client.once('end', () => reject(new Error('the session has ended')))
        client.query({
          submit: (connection: pg.Connection) => void connection.query(`copy ${into} from stdin`),
          handleCopyInResponse(connection: CopyConnection) {
            connection.sendCopyFromChunk(Buffer.from(rows))
            connection.endCopyFrom()
          },
          handleCommandComplete() {},
          handleReadyForQuery: () => resolve(),
          handleError: reject,
        } as pg.Submittable)
      }),
  )

/** As pg has them, and its types do not. */
type CopyConnection = { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void }

let hasPsql = true

/** Where it is not installed, a word says once that its acts are skipped. */
export async function psql(
  { databaseUrl }: World,
  { options, script }: Act & { way: 'psql' },
): Promise<void> {
  if (!hasPsql) return
  const settings = Object.entries(PATIENCE).map(([name, value]) => `-c ${name}=${value}`)
  const env = { ...process.env, PGOPTIONS: settings.join(' '), PGCONNECT_TIMEOUT: String(CONNECT) }
  const child = spawn('psql', ['-X', '-q', ...options, '-f', '-', databaseUrl], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env,
  })
  // It ends early when its session does.
  child.stdin.on('error', () => {})
  child.stdin.end(script)
  await once(child, 'close').catch((error: unknown) => {
    hasPsql = false
    console.warn(`The acts by psql are skipped: ${error}`)
  })
}
