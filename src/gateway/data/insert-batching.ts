import { requireAbility } from '#databases/drivers/abilities.ts'
import type { OpenTransaction, WriteResult } from '#databases/drivers/driver.ts'
import { rowTexts } from '#databases/drivers/json-rows.ts'
import { callerLeft } from '#databases/drivers/presence.ts'
import { Failure } from '#kernel/errors.ts'
import { HEADER, shownHeader } from '#kernel/http/header-names.ts'
import { fail } from '../errors.ts'
import { joinInserts, type Prepared } from '../prepare.ts'

type Insert = Prepared<'insert'>
type BatchRequest = {
  readonly milliseconds: number
  readonly bytes: number
  /** Called after the wait: the insert for the caller as it is now. Throws when the caller may not insert any more. */
  readonly renewed: () => Promise<Insert>
}

type InsertBatching = {
  /** Waits at most this long for similar inserts into the same table, then runs them together as one statement. */
  insert(insert: Insert, asked: BatchRequest): Promise<WriteResult>
  /** Runs all waiting inserts. Later inserts run at once. */
  close(): Promise<void>
}

type WaitingInsert = {
  readonly insert: Insert
  readonly renewed: BatchRequest['renewed']
  readonly resolve: (result: WriteResult | Promise<WriteResult>) => void
  readonly reject: (error: unknown) => void
}

type Batch = {
  /** Others differ from it only in rows, key and presence. */
  readonly first: Insert
  readonly waiting: WaitingInsert[]
  rows: number
  bytes: number
  /** performance.now() */
  closes: number
  timer: NodeJS.Timeout | undefined
}

/** A batch with this many rows or bytes ends early, so that its statement stays within the database's limits. */
const FULL = { rows: 10_000, bytes: 16_777_216 }
/** Limit for the bytes in all batches of the process. Above it the largest batch ends early. */
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
  /** Bytes waiting in all batches. */
  let bytesOfAll = 0

  function insert(insert: Insert, { milliseconds, bytes, renewed }: BatchRequest) {
    if (closed) return insert.run()
    const key = keyOf(insert)
    const open = batches.get(key)
    if (open !== undefined && !hasSameTarget(open.first, insert)) end(key)
    const batch = batches.get(key) ?? createBatch(insert)
    batches.set(key, batch)
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>()
    batch.waiting.push({ insert, renewed, resolve, reject })
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

  /** Ends the batch at the earliest requested time. */
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

const createBatch = (first: Insert): Batch => ({
  first,
  waiting: [],
  rows: 0,
  bytes: 0,
  closes: Number.POSITIVE_INFINITY,
  timer: undefined,
})

/** Key of a batch: everything except the rows, so that statement text, response members, role and claims are equal. */
function keyOf({ caller, plan }: Insert): string {
  const { request, columns, output } = plan
  const names = columns.map(({ name }) => name).sort()
  return JSON.stringify([
    caller.client.name,
    caller.persona,
    { ...request, rows: [] },
    names,
    output.map(({ as }) => as),
  ])
}

/**
 * Runs the inserts of a batch. It never rejects: every caller gets its own result. Rows of callers who have left, or who may not insert
 * any more, are not inserted.
 */
async function runBatch({ waiting: all }: Batch): Promise<void> {
  const waiting = (await Promise.all(all.map(permitted))).filter((one) => one !== undefined)
  const [first, ...others] = waiting
  if (first !== undefined && others.length > 0 && others.every((other) => isOfSameKind(first, other))) {
    try {
      const inTransaction = requireAbility(first.insert.caller.backend, 'transaction')
      const results = await inTransaction((on) => insertTogether(waiting, on), {})
      waiting.forEach(({ resolve, reject }, index) => {
        const result = results[index]
        if (result === undefined) reject(new Error('A caller of an insert batch has no result'))
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
  // Run them one at a time, in order of arrival. Those before may take long, in which a caller may lose the right.
  for (const one of waiting) {
    const still = await permitted(one)
    const result = still?.insert.run()
    if (result === undefined) continue
    one.resolve(result)
    await result.catch(() => {})
  }
}

/** The insert as its caller may run it now; undefined when the caller has its refusal. */
async function permitted(one: WaitingInsert): Promise<WaitingInsert | undefined> {
  try {
    const insert = await one.renewed()
    if (insert.caller.presence.hasLeft()) throw callerLeft()
    return { ...one, insert }
  } catch (error) {
    one.reject(error)
    return undefined
  }
}

/** While they waited, a caller may have lost the right to read what is returned. */
const isOfSameKind = (one: WaitingInsert, other: WaitingInsert): boolean =>
  hasSameTarget(one.insert, other.insert) && keyOf(one.insert) === keyOf(other.insert)

/**
 * In the meantime a client may have been given another database, and a table other columns: values are written as the types of the plan, so
 * one of before would change them.
 */
const hasSameTarget = (one: Insert, other: Insert): boolean =>
  one.caller.client === other.caller.client && one.plan.table === other.plan.table

/** Runs in a transaction, because only after the statement it is known whether every returned row can be assigned to its caller. */
async function insertTogether(
  waiting: readonly WaitingInsert[],
  on: OpenTransaction,
): Promise<WriteResult[]> {
  const [first, ...others] = waiting.map(({ insert }) => insert)
  if (first === undefined) return []
  const { plan, run } = joinInserts(first, others)
  const result = await run(on)
  const texts = rowTexts(Buffer.concat(result.json).toString())
  // ON CONFLICT DO NOTHING or a trigger has skipped rows, so rows cannot be assigned to callers.
  const isComplete =
    result.affected === plan.rows.length && (plan.request.head || texts.length === plan.rows.length)
  if (!isComplete) throw fail('write_conflict')
  let at = 0
  return [first, ...others].map(({ plan }) => {
    const returned = texts.slice(at, at + plan.rows.length)
    at += plan.rows.length
    return {
      json: [Buffer.from(`[${returned.join(',')}]`)],
      rows: returned.length,
      affected: plan.rows.length,
      truncated: false,
      total: undefined,
    }
  })
}

/**
 * After these failures, the outcome is unknown or a retry is pointless. An SQLSTATE without a meaning here is not among them, since it may be
 * that of a single row.
 */
const FINAL = new Set([
  'connection_lost',
  'client_unavailable',
  'client_busy',
  'client_refused',
  'unsafe_client',
])

const isUndone = (error: unknown): boolean => error instanceof Failure && !FINAL.has(error.code)
