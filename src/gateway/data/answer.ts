import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { WriteAnswer } from '#databases/drivers/driver.ts'
import type { Fetched } from './data.ts'

/** The success envelope around rows that are JSON text already: nothing of them is parsed or copied into objects. */
export function sendFetched(reply: FastifyReply, { rows, cacheKey, postProcessing }: Fetched): FastifyReply {
  const end = () => {
    const { rows: count, hasMore, total } = rows.facts()
    const facts = {
      cache_key: cacheKey,
      ...(total === undefined ? {} : { count: total }),
      ...(hasMore ? { has_more: true } : {}),
    }
    return tail(`Fetched ${count} rows`, facts, postProcessing)
  }
  reply.type('application/json; charset=utf-8')
  if (Array.isArray(rows.json)) return reply.send(Buffer.concat([HEAD, ...rows.json, end()]))
  return reply.send(Readable.from(around(rows.json, end), { objectMode: false }))
}

export function sendWritten(reply: FastifyReply, message: string, answer: WriteAnswer): FastifyReply {
  const facts = {
    affected_rows: answer.affected,
    ...(answer.total === undefined ? {} : { count: answer.total }),
    ...(answer.truncated ? { data_truncated: true } : {}),
  }
  return reply
    .type('application/json; charset=utf-8')
    .send(Buffer.concat([HEAD, ...answer.json, tail(message, facts)]))
}

const HEAD = Buffer.from('{"status":"success","data":')

/** Behind the rows, because how many they are is known then. */
const tail = (message: string, facts: Record<string, unknown>, postProcessing?: string): Buffer =>
  Buffer.from(
    `,${JSON.stringify({ message, ...facts }).slice(1, -1)}${postProcessing === undefined ? '' : `,"post_processing":${postProcessing}`}}`,
  )

async function* around(
  rows: AsyncIterable<Buffer> | readonly Buffer[],
  end: () => Buffer,
): AsyncGenerator<Buffer> {
  yield HEAD
  yield* rows
  yield end()
}
