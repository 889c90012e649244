import { hash } from 'node:crypto'
import type pg from 'pg'
import { columnName } from './column-name.ts'
import type { Alarm } from './connection-alarm.ts'
import { GuardedClient } from './guarded-client.ts'
import { GRACE, tooManyWait } from './guarded-pool.ts'
import { type PoolAddress, pooledSession } from './session-settings.ts'
import { writtenValues } from './written-values.ts'

/** A short statement that reads by a unique key. Never one that a caller can make slow: the statements after it wait for it. */
type PreparedStatement<Row> = { readonly name: string; readonly text: string; readonly row?: Row }

/** Runs short statements on a few shared connections, many in flight on each (pipelining, 1.8× end to end). */
export type PipelinedStatements = {
  query<Row extends pg.QueryResultRow>(
    statement: PreparedStatement<Row>,
    values: readonly unknown[],
  ): Promise<readonly Row[]>
  /** One statement on each connection. */
  ping(): Promise<void>
  close(): Promise<void>
}

type PipelineOptions = PoolAddress & {
  /** Number of connections. */
  readonly count: number
  /** Milliseconds. */
  readonly statementTimeout: number
  /** Statements that may be under way or wait for a connection; beyond it 503 at once. */
  readonly maxWaiting: number
  readonly alarm: Alarm
}

export function preparedStatement<Row>(text: string): PreparedStatement<Row> {
  return { name: hash('sha1', text), text }
}

/** Columns of a table for a statement, each under its name in the program: `u.created_at as "createdAt"`. */
export const selectList = (table: string, names: readonly string[], prefix = ''): string =>
  names.map((name) => `${table}.${columnName(name)} as "${prefix}${name}"`).join(', ')

export function createPipelinedStatements(options: PipelineOptions): PipelinedStatements {
  const { count, maxWaiting, alarm } = options
  const connections = createConnections(count, (onEnd) => open(options, onEnd))
  let running = 0
  let turn = 0
  alarm.subscribe(() => connections.each((client) => client.suspect()))
  return {
    async query<Row extends pg.QueryResultRow>(
      { name, text }: PreparedStatement<Row>,
      values: readonly unknown[],
    ) {
      if (running >= maxWaiting) throw tooManyWait()
      running++
      try {
        turn = (turn + 1) % count
        const client = await connections.take(turn)
        const result = await client.query<Row>({ name, text, values: writtenValues(values) })
        return result.rows
      } finally {
        running--
      }
    },
    async ping() {
      const pings = Array.from({ length: count }, async (_, index) =>
        (await connections.take(index)).query({ name: 'ping', text: 'select 1' }),
      )
      await Promise.all(pings)
    },
    close: connections.close,
  }
}

async function open(options: PipelineOptions, onEnd: () => void): Promise<GuardedClient> {
  const { statementTimeout, alarm } = options
  const client = new GuardedClient({
    ...pooledSession(options, statementTimeout),
    pipeline: true,
    application_name: 'gatehouse pipelined',
    // For the first in line, whose answer all others wait for.
    deadline: statementTimeout + GRACE / 2,
    connectionTimeoutMillis: 5_000,
  })
  // The queries in flight reject by themselves; the next one opens a new connection.
  client.on('error', onEnd)
  client.on('end', onEnd)
  client.once('silent', alarm.raise)
  await client.connect()
  return client
}

type Connections = {
  /** The connection at this index, opened when it is first needed and again after it has ended. */
  take(index: number): Promise<GuardedClient>
  each(use: (client: GuardedClient) => void): void
  close(): Promise<void>
}

function createConnections(
  count: number,
  openOne: (onEnd: () => void) => Promise<GuardedClient>,
): Connections {
  const slots: (Promise<GuardedClient> | undefined)[] = Array.from({ length: count }, () => undefined)
  let isClosed = false
  return {
    take(index) {
      if (isClosed) throw new Error('the connections are closed')
      const held = slots[index]
      if (held !== undefined) return held
      // A connection emits its end twice, and between the two another one may have its place.
      const leave = (): void => {
        if (slots[index] === opening) slots[index] = undefined
      }
      const opening = openOne(leave)
      slots[index] = opening
      opening.catch(leave)
      return opening
    },
    each(use) {
      for (const slot of slots) slot?.then(use, () => {})
    },
    async close() {
      isClosed = true
      const held = await Promise.allSettled(slots)
      await Promise.all(held.map((slot) => (slot.status === 'fulfilled' ? slot.value?.end() : undefined)))
    },
  }
}
