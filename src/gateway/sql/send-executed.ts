import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { linesOf } from '#databases/drivers/csv-lines.ts'
import type { SqlResult } from '#databases/drivers/driver.ts'
import { named } from '#kernel/http/document/components.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import { sendCsv, wantsCsv } from '../data/csv.ts'
import { Row } from '../data/grammar.ts'
import { sendWhole } from '../data/send-result.ts'
import { successOf } from '../envelope.ts'
import type { ExecutedSql } from './sql.ts'

/** The response to SQL. */
export const Ran = Type.Object(
  {
    ...successOf(Type.Array(Row)).properties,
    meta: Type.Object(
      {
        backend: Type.String({ examples: ['postgresql'] }),
        returned_row_count: Type.Integer(),
        rows_affected: Type.Integer({
          description: 'Number of rows inserted, updated and deleted by all statements',
        }),
        statement_count: Type.Integer(),
        duration_ms: Type.Integer(),
        columns: Type.Array(
          Type.Object(
            {
              name: Type.String({ examples: ['one'] }),
              type: Nullable(
                Type.String({
                  description:
                    'Of PostgreSQL itself, without its length; null for types that the database declares, and of ScyllaDB',
                  examples: ['integer'],
                }),
              ),
            },
            named('SqlColumn'),
          ),
          {
            description:
              'Columns of the rows, in order. Of two with one name, a row as an object has the value of the last',
          },
        ),
      },
      named('SqlMeta'),
    ),
  },
  named('SqlResult'),
)

/** The rows are already JSON text. */
export async function sendExecuted(
  reply: FastifyReply,
  { result, backend, milliseconds }: ExecutedSql,
): Promise<FastifyReply> {
  if (wantsCsv(reply.request)) return sendResultAsCsv(reply, result)
  const meta = {
    backend,
    returned_row_count: result.rows,
    rows_affected: result.affected,
    statement_count: result.statements,
    duration_ms: milliseconds,
    columns: result.columns.map(({ name, type = null }) => ({ name, type })),
  }
  const head = Buffer.from('{"status":"success","message":"Query executed","data":')
  const tail = Buffer.from(`,"meta":${JSON.stringify(meta)}}`)
  return sendWhole(reply, [head, ...result.json, tail])
}

async function sendResultAsCsv(
  reply: FastifyReply,
  { json, columns, rows }: SqlResult,
): Promise<FastifyReply> {
  const facts = () => ({ rows, hasMore: false, total: undefined })
  return sendCsv(reply, { name: 'query', columns, lines: await linesOf(json, columns), facts })
}
