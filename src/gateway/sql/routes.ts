import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import type { Json } from '#databases/request/request.ts'
import { Nullable, OneOf, spelled } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { ROWS_TYPES } from '../data/csv.ts'
import { InFormat } from '../data/schemas.ts'
import { Ran, sendExecuted } from './send-executed.ts'
import { DRIVER_SPELLINGS, NAMED_DRIVERS, type RequestedSql, runSql } from './sql.ts'

const SQL_FIELDS = {
  query: Type.String({
    minLength: 1,
    description:
      'The SQL text. Several statements are allowed only without params; the rows are those of the last',
    examples: ['select 1 as one'],
  }),
  params: Type.Optional(
    Nullable(
      Type.Array(Type.Unsafe<Json>({ description: 'A value' }), {
        maxItems: 65_535,
        description: 'Values for $1, $2, …; with them the text is exactly one statement',
      }),
    ),
  ),
  schema_name: Type.Optional(
    Nullable(
      Type.String({
        minLength: 1,
        maxLength: 63,
        description: 'Schema for unqualified names',
      }),
    ),
  ),
}

const SqlBody = Type.Object({
  driver: OneOf(NAMED_DRIVERS, {
    ...spelled(DRIVER_SPELLINGS),
    description: `The client's driver. Also accepted: ${Object.keys(DRIVER_SPELLINGS).join(', ')}`,
    examples: ['postgresql'],
  }),
  ...SQL_FIELDS,
  db_name: Type.Optional(
    Nullable(
      Type.String({ minLength: 1, maxLength: 63, description: 'The client, or the name of its database' }),
    ),
  ),
})
const QueryBody = Type.Object(SQL_FIELDS)

export function sqlRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  const config = {
    access: access.sql,
    produces: ROWS_TYPES,
    failures: [...FAILURES_OF.sql, 'driver_mismatch'],
  }
  const run = async (request: FastifyRequest, reply: FastifyReply, body: RequestedSql) =>
    sendExecuted(reply, await runSql(kernel, gatewayCaller(request), body))

  for (const url of ['/query/sql', '/gateway/sql']) {
    app.route({
      method: 'POST',
      url,
      config,
      schema: {
        operationId: 'runSqlOnDriver',
        summary: 'Run SQL on a named driver',
        body: SqlBody,
        querystring: InFormat,
        response: { 200: Ran },
      },
      handler: (request, reply) => run(request, reply, request.body),
    })
  }
  app.route({
    method: 'POST',
    url: '/gateway/query',
    config,
    schema: {
      operationId: 'runSql',
      summary: 'Run SQL',
      body: QueryBody,
      querystring: InFormat,
      response: { 200: Ran },
    },
    handler: (request, reply) => run(request, reply, request.body),
  })
}
