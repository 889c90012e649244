import { hash } from 'node:crypto'
import pg from 'pg'
import { systemSession } from './session.ts'

/** A short statement that reads by a unique key. Never for what a caller can make slow: others wait behind it. */
export type Statement<Row> = { readonly name: string; readonly text: string; readonly row?: Row }

/** Runs keyed statements on a few shared connections, many in flight on each (pipelining, 1.8× end to end). */
export type Keyed = {
  query<Row extends pg.QueryResultRow>(
    statement: Statement<Row>,
    values: readonly unknown[],
  ): Promise<readonly Row[]>
  close(): Promise<void>
}

export function statement<Row>(text: string): Statement<Row> {
  return { name: hash('sha1', text), text }
}

/** Columns of a table for a statement, each under its name in the program: `u.created_at as "createdAt"`. */
export const selectList = (table: string, names: readonly string[], prefix = ''): string =>
  names
    .map(
      (name) =>
        `${table}.${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)} as "${prefix}${name}"`,
    )
    .join(', ')

export function keyedConnections(url: string, count: number, statementTimeout: number): Keyed {
  const slots: (Promise<pg.Client> | undefined)[] = Array.from({ length: count }, () => undefined)
  let turn = 0
  let closed = false

  const open = async (onEnd: () => void): Promise<pg.Client> => {
    const client = new pg.Client({
      ...systemSession(url),
      pipeline: true,
      application_name: 'gatehouse keyed',
      statement_timeout: statementTimeout,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
    })
    // The queries in flight reject by themselves; the next one opens a new connection.
    client.on('error', onEnd)
    client.on('end', onEnd)
    await client.connect()
    return client
  }

  const take = (): Promise<pg.Client> => {
    if (closed) throw new Error('the connections are closed')
    turn = (turn + 1) % count
    const slot = turn
    const held = slots[slot]
    if (held !== undefined) return held
    // A connection says twice that it ends, and between the two its place may have been taken already.
    const leave = (): void => {
      if (slots[slot] === opening) slots[slot] = undefined
    }
    const opening = open(leave)
    slots[slot] = opening
    opening.catch(leave)
    return opening
  }

  return {
    async query<Row extends pg.QueryResultRow>({ name, text }: Statement<Row>, values: readonly unknown[]) {
      const client = await take()
      const result = await client.query<Row>({ name, text, values: [...values] })
      return result.rows
    },
    async close() {
      closed = true
      const held = await Promise.allSettled(slots)
      await Promise.all(held.map((slot) => (slot.status === 'fulfilled' ? slot.value?.end() : undefined)))
    },
  }
}
