import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { Row } from '../data/grammar.ts'
import { sendWhole } from '../data/send-result.ts'
import { successOf } from '../envelope.ts'
import type { ExecutedSql } from './sql.ts'

/** The response to SQL. */
export const Ran = Type.Intersect([
  successOf(Type.Array(Row)),
  Type.Object({
    meta: Type.Object({
      backend: Type.String({ examples: ['postgresql'] }),
      returned_row_count: Type.Integer(),
      rows_affected: Type.Integer({
        description: 'Number of rows inserted, updated and deleted by all statements',
      }),
      statement_count: Type.Integer(),
      duration_ms: Type.Integer(),
    }),
  }),
])

/** The rows are already JSON text. */
export function sendExecuted(
  reply: FastifyReply,
  { result, backend, milliseconds }: ExecutedSql,
): FastifyReply {
  const meta = {
    backend,
    returned_row_count: result.rows,
    rows_affected: result.affected,
    statement_count: result.statements,
    duration_ms: milliseconds,
  }
  const head = Buffer.from('{"status":"success","message":"Query executed","data":')
  const tail = Buffer.from(`,"meta":${JSON.stringify(meta)}}`)
  return sendWhole(reply, [head, ...result.json, tail])
}
