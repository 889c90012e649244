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
  if (Array.isArray(rows.json)) return sendWhole(reply, [HEAD, ...rows.json, end()])
  return reply.type(JSON_TYPE).send(Readable.from(around(rows.json, end), { objectMode: false }))
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
  sendWhole(reply, [HEAD, ...answer.json, tail({ message, ...writeFacts(answer) })])

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
    .type(JSON_TYPE)
    .send(`{"status":"success","message":"${message}","data":{${committed}},${committed}}`)
}

/** Node puts the headers and a text into one packet, the headers and bytes into two: that is a fifth of a small answer. */
function sendWhole(reply: FastifyReply, parts: readonly Buffer[]): FastifyReply {
  const body = Buffer.concat(parts)
  return reply.type(JSON_TYPE).send(body.length > SMALL ? body : body.toString())
}

/** Bytes; above it the text would cost more than the packet. */
const SMALL = 16_384

const JSON_TYPE = 'application/json; charset=utf-8'

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
