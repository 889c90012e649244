import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import type { Stream } from './stream.ts'

/** Failures of a stream before it begins. */
export const STREAM_FAILURES = [
  ...FAILURES_OF.data,
  'not_live',
  'policy_not_live',
  'too_many_streams',
  'unsupported_by_driver',
]

/** Bytes of a body that asks for a stream. */
export const STREAM_BODY = 65_536

export const Events = { content: { 'text/event-stream': { schema: Type.String() } } }

export const WithSnapshot = Type.Optional(
  Type.Boolean({ default: true, description: 'Whether the rows of now are sent first' }),
)

/** The id of the last event that the reader has had. */
export function lastIdOf({ headers }: FastifyRequest): string | undefined {
  const id = headers['last-event-id']
  return typeof id === 'string' && id !== '' ? id : undefined
}

/** Proxies may neither keep the events back nor change them. */
const HEADERS = { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' }

export const sendStream = (reply: FastifyReply, { body }: Stream): FastifyReply =>
  reply.headers(HEADERS).type('text/event-stream; charset=utf-8').send(body)
