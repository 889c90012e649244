import assert from 'node:assert/strict'
import { withClient } from '#test/database.ts'
import type { Load, Request } from './load/load.ts'

/** The parsed answer to one request of a load. Throws unless it is 2xx. */
export async function answerTo({ url, headers }: Load, request: Request): Promise<unknown> {
  const { path, method = 'GET', body } = request
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { ...headers, ...request.headers },
    ...(body !== undefined && { body }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

type Row = Readonly<Record<string, unknown>>

/** Rows as the database has them, to compare with those of an answer. */
export const rowsOf = (databaseUrl: string, query: string): Promise<readonly Row[]> =>
  withClient(databaseUrl, async (db) => (await db.query<Row>(query)).rows)

/** Compares rows value by value. Numbers may be written as texts, and times in any form of ISO 8601. */
export function assertSameRows(found: unknown, expected: readonly Row[]): void {
  assert.ok(Array.isArray(found), 'the answer has no rows')
  assert.deepEqual(found.map(comparable), expected.map(comparable))
}

const comparable = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row)
      .map(([name, value]): [string, unknown] => {
        if (name === 'price' || name === 'id') return [name, Number(value)]
        return [name, name === 'created_at' && value !== null ? timeOf(value) : value]
      })
      .sort(([left], [right]) => (left < right ? -1 : 1)),
  )

const timeOf = (value: unknown): number => new Date(value instanceof Date ? value : String(value)).getTime()
