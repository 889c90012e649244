import { requireAbility } from '#databases/drivers/abilities.ts'
import type { OpenTransaction, WriteResult } from '#databases/drivers/driver.ts'
import { rowTexts } from '#databases/drivers/json-rows.ts'
import { callerLeft } from '#databases/drivers/presence.ts'
import { Failure } from '#kernel/errors.ts'
import { HEADER, shownHeader } from '#kernel/http/header-names.ts'
import { fail } from '../errors.ts'
import { joinInserts, type Prepared } from '../prepare.ts'

type Insert = Prepared<'insert'>
type Asked = { readonly milliseconds: number; readonly bytes: number }

export type InsertBatching = {
  /** Waits at most so long for others that insert into the same table in the same way, then runs with them as one statement. */
  insert(insert: Insert, asked: Asked): Promise<WriteResult>
  /** Runs what waits; from then on nothing waits. */
  close(): Promise<void>
}

type Waiting = {
  readonly insert: Insert
  readonly resolve: (result: WriteResult | Promise<WriteResult>) => void
  readonly reject: (error: unknown) => void
}

type Batch = {
  /** The caller who opened it; the others differ from it in key and presence alone. */
  readonly caller: Insert['caller']
  readonly waiting: Waiting[]
  rows: number
  bytes: number
  /** performance.now() */
  closes: number
  timer: NodeJS.Timeout | undefined
}

/** A batch is closed early when it holds this much, so that its statement stays one that the database takes. */
const FULL = { rows: 10_000, bytes: 16_777_216 }
/** The same for the bytes in all batches of the process: above it the largest is closed early. */
const ALL_FULL = 4 * FULL.bytes

/** `X-Service-Insert-Window` (gateway.md 4), milliseconds. */
export function readInsertWindow(header: string | undefined, longest: number): number | undefined {
  if (header === undefined) return undefined
  const milliseconds = /^\d{1,5}$/.test(header) ? Number(header) : 0
  if (milliseconds >= 1 && milliseconds <= longest) return milliseconds
  throw fail('invalid_insert_window', {
    details: { header: shownHeader(HEADER.insertWindow), maximum: longest },
  })
}

export function createInsertBatching(): InsertBatching {
  const batches = new Map<string, Batch>()
  const running = new Set<Promise<void>>()
  let closed = false
  /** Bytes in all batches. */
  let bytesOfAll = 0

  function insert(insert: Insert, { milliseconds, bytes }: Asked) {
    if (closed) return insert.run()
    const key = keyOf(insert)
    // The client may have got another database meanwhile.
    if (batches.get(key)?.caller.client !== insert.caller.client) end(key)
    const batch = batches.get(key) ?? createBatch(insert)
    batches.set(key, batch)
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>()
    batch.waiting.push({ insert, resolve, reject })
    batch.rows += insert.plan.rows.length
    batch.bytes += bytes
    bytesOfAll += bytes
    if (batch.rows >= FULL.rows || batch.bytes >= FULL.bytes) end(key)
    else shorten(key, batch, milliseconds)
    endLargest()
    return promise
  }

  function endLargest(): void {
    while (bytesOfAll > ALL_FULL) {
      const [key] = [...batches].reduce((largest, one) => (one[1].bytes > largest[1].bytes ? one : largest))
      end(key)
    }
  }

  /** The one that waits least decides. */
  function shorten(key: string, batch: Batch, milliseconds: number): void {
    const closes = performance.now() + milliseconds
    if (closes >= batch.closes) return
    batch.closes = closes
    clearTimeout(batch.timer)
    batch.timer = setTimeout(() => end(key), milliseconds)
  }

  function end(key: string): void {
    const batch = batches.get(key)
    if (batch === undefined) return
    batches.delete(key)
    bytesOfAll -= batch.bytes
    clearTimeout(batch.timer)
    const work = runBatch(batch).finally(() => running.delete(work))
    running.add(work)
  }

  async function close(): Promise<void> {
    closed = true
    for (const key of [...batches.keys()]) end(key)
    await Promise.all(running)
  }

  return { insert, close }
}

const createBatch = ({ caller }: Insert): Batch => ({
  caller,
  waiting: [],
  rows: 0,
  bytes: 0,
  closes: Number.POSITIVE_INFINITY,
  timer: undefined,
})

/** Everything but the rows: the same text of the statement, the same members of the answer, and the same role and claims. */
function keyOf({ caller, plan }: Insert): string {
  const { request, columns, output, head } = plan
  const names = columns.map(({ name }) => name).sort()
  return JSON.stringify([
    caller.client.name,
    caller.persona,
    { ...request, rows: [] },
    names,
    output.map(({ as }) => as),
    head,
  ])
}

/** Never rejects: every caller gets an answer of its own. Rows of those who have left by now are not inserted. */
async function runBatch({ caller, waiting: all }: Batch): Promise<void> {
  const waiting = all.filter((one) => !hasLeft(one))
  for (const one of all) if (hasLeft(one)) one.reject(callerLeft())
  if (waiting.length > 1) {
    try {
      const inTransaction = requireAbility(caller.backend, 'transaction')
      const results = await inTransaction((on) => insertTogether(waiting, on), {})
      waiting.forEach(({ resolve, reject }, index) => {
        const result = results[index]
        if (result === undefined) reject(new Error('A caller of an insert batch has no answer'))
        else resolve(result)
      })
      return
    } catch (error) {
      if (!isUndone(error)) {
        for (const { reject } of waiting) reject(error)
        return
      }
    }
  }
  // One after the other, as they came.
  for (const { insert, resolve } of waiting) {
    const result = insert.run()
    resolve(result)
    await result.catch(() => {})
  }
}

const hasLeft = ({ insert }: Waiting): boolean => insert.caller.presence.hasLeft()

/** In a transaction, because only after the statement it is known whether every row can be told whose it is. */
async function insertTogether(waiting: readonly Waiting[], on: OpenTransaction): Promise<WriteResult[]> {
  const [first, ...others] = waiting.map(({ insert }) => insert)
  if (first === undefined) return []
  const { plan, run } = joinInserts(first, others)
  const result = await run(on)
  const texts = rowTexts(Buffer.concat(result.json).toString())
  // A conflict that was met with nothing, or a trigger, has left rows out: nobody knows whose.
  const isComplete = result.affected === plan.rows.length && (plan.head || texts.length === plan.rows.length)
  if (!isComplete) throw fail('write_conflict')
  let at = 0
  return [first, ...others].map(({ plan }) => {
    const own = texts.slice(at, at + plan.rows.length)
    at += plan.rows.length
    return {
      json: [Buffer.from(`[${own.join(',')}]`)],
      rows: own.length,
      affected: plan.rows.length,
      truncated: false,
      total: undefined,
    }
  })
}

/** After these it is not known whether the rows are there, or trying again is of no use. */
const FINAL = new Set([
  'connection_lost',
  'client_unavailable',
  'client_busy',
  'client_refused',
  'unsafe_client',
  'database_error',
])

const isUndone = (error: unknown): boolean => error instanceof Failure && !FINAL.has(error.code)
