import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { WriteAnswer } from '#databases/drivers/driver.ts'
import type { Fetched } from './data.ts'
import type { Committed } from './transaction.ts'

/** The success envelope around rows that are JSON text already: nothing of them is parsed or copied into objects. */
export function sendFetched(reply: FastifyReply, fetched: Fetched): FastifyReply {
  const { rows, postProcessing } = fetched
  const end = () =>
    tail({ message: `Fetched ${rows.facts().rows} rows`, ...readFacts(fetched) }, postProcessing)
  reply.type('application/json; charset=utf-8')
  if (Array.isArray(rows.json)) return reply.send(Buffer.concat([HEAD, ...rows.json, end()]))
  return reply.send(Readable.from(around(rows.json, end), { objectMode: false }))
}

/** What stands beside the rows of a read, once they have been read. */
export function readFacts({ rows, cacheKey }: Fetched): Record<string, unknown> {
  const { hasMore, total } = rows.facts()
  return {
    cache_key: cacheKey,
    ...(total === undefined ? {} : { count: total }),
    ...(hasMore ? { has_more: true } : {}),
  }
}

export const sendWritten = (reply: FastifyReply, message: string, answer: WriteAnswer): FastifyReply =>
  reply
    .type('application/json; charset=utf-8')
    .send(Buffer.concat([HEAD, ...answer.json, tail({ message, ...writeFacts(answer) })]))

/** What stands beside the rows of a write. */
export const writeFacts = (answer: WriteAnswer): Record<string, unknown> => ({
  affected_rows: answer.affected,
  ...(answer.total === undefined ? {} : { count: answer.total }),
  ...(answer.truncated ? { data_truncated: true } : {}),
})

/** `results` is JSON; it stands in the data and on top. */
export function sendTransaction(
  reply: FastifyReply,
  { results, operations, replayed }: Committed,
): FastifyReply {
  if (replayed) reply.header('idempotency-replayed', 'true')
  const message = `Transaction of ${operations} operations committed`
  const committed = `"committed":true,"results":${results}`
  return reply
    .type('application/json; charset=utf-8')
    .send(`{"status":"success","message":"${message}","data":{${committed}},${committed}}`)
}

const HEAD = Buffer.from('{"status":"success","data":')

/** Behind the rows, because how many they are is known then; it closes the object. */
export const tail = (facts: Record<string, unknown>, postProcessing?: string): Buffer => {
  const grouped = postProcessing === undefined ? '' : `,"post_processing":${postProcessing}`
  return Buffer.from(`,${JSON.stringify(facts).slice(1, -1)}${grouped}}`)
}

async function* around(
  rows: AsyncIterable<Buffer> | readonly Buffer[],
  end: () => Buffer,
): AsyncGenerator<Buffer> {
  yield HEAD
  yield* rows
  yield end()
}
