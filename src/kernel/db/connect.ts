import { hash } from 'node:crypto'
import {
  CamelCasePlugin,
  Kysely,
  type KyselyPlugin,
  type OperationNode,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  type RawNode,
  sql,
  WithSchemaPlugin,
} from 'kysely'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import { createAlarm } from './connection-alarm.ts'
import { createPool, type PoolOptions } from './guarded-pool.ts'
import { joinBegin } from './joined-begin.ts'
import type { DB } from './tables.ts'
import { writtenValues } from './written-values.ts'

/** The control database, or a transaction on it; the first argument of every store function. */
export type Db = Kysely<DB>

export type ControlDatabase = {
  readonly db: Db
  readonly pool: pg.Pool
  close(): Promise<void>
}

export function connect(options: PoolOptions): ControlDatabase {
  const pool = createPool(options)
  const dialect = new PostgresDialect({ pool: preparing(pool) })
  const plugins = [new WithSchemaPlugin('service'), new CamelCasePlugin()].map(onlyForBuilt)
  return { db: new Kysely<DB>({ dialect, plugins }), pool, close: () => pool.end() }
}

/** SQL of ours names schemas and columns as they are, so its tree is not copied for the plugin: an eighth of the garbage of a sign-in. */
const onlyForBuilt = (plugin: KyselyPlugin): KyselyPlugin => ({
  transformQuery: (args) => (isText(args.node) ? args.node : plugin.transformQuery(args)),
  transformResult: (args) => plugin.transformResult(args),
})

// The kind of a node tells its type.
const isText = (node: OperationNode): boolean =>
  node.kind === 'RawNode' ? (node as RawNode).parameters.every(isText) : node.kind === 'ValueNode'

/** One connection, for a command. */
export const connectOnce = (url: string, statementTimeout = 30_000): ControlDatabase =>
  connect({
    url,
    name: 'command',
    max: 1,
    maxWaiting: 100,
    statementTimeout,
    onError: () => {},
    alarm: createAlarm(),
  })

/** A clock stopped at the database's time, for a command that acts at once. */
export async function clockOf(db: Db): Promise<Clock> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db)
  const [{ now } = { now: new Date(Number.NaN) }] = rows
  return () => now
}

/** Largest number of named texts: queries built from request data must not fill the server's memory. */
const NAMED_STATEMENTS = 500

/** The pool with every statement named by its text, so that PostgreSQL parses and plans it once per connection (1.4–2.4×). */
function preparing(pool: pg.Pool): PostgresPool {
  const names = new Map<string, string>()
  const nameOf = (text: string): string | undefined => {
    let name = names.get(text)
    if (name === undefined && names.size < NAMED_STATEMENTS) {
      name = hash('sha1', text)
      names.set(text, name)
    }
    return name
  }
  const clients = new WeakMap<pg.PoolClient, PostgresPoolClient>()
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => {
      const client = await pool.connect()
      let prepared = clients.get(client)
      if (prepared === undefined) {
        prepared = preparingClient(client, nameOf)
        clients.set(client, prepared)
      }
      return prepared
    },
  }
}

function preparingClient(
  client: pg.PoolClient,
  nameOf: (text: string) => string | undefined,
): PostgresPoolClient {
  const query = joinBegin(client, (text, values) => {
    const statement = { text, values: writtenValues(values) }
    const name = nameOf(text)
    return name === undefined ? statement : { ...statement, name }
  })
  // Kysely's type also has cursors, which it uses only for streams; there are none here.
  return {
    query,
    release: (error?: Error | boolean) => client.release(error),
  } as unknown as PostgresPoolClient
}
