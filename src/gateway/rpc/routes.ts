import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { RowsResult } from '#databases/drivers/driver.ts'
import { FAILURES_OF } from '#databases/failures.ts'
import type { Row } from '#databases/request/request.ts'
import type { Config } from '#kernel/config/config.ts'
import { named } from '#kernel/http/document/components.ts'
import { edge } from '#kernel/http/failures.ts'
import { isGet } from '#kernel/http/methods.ts'
import { NOT_EMPTY, Nullable, Parsed } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { CountMode, columnsOf, conditionsOf, Row as RowSchema } from '../data/grammar.ts'
import { sendWhole } from '../data/send-result.ts'
import { callFunction, callOfBody, callOfQuery, type RequestedCall } from './rpc.ts'

const Name = Type.String({
  minLength: 1,
  maxLength: 200,
  description: 'The function, optionally as schema.name',
  examples: ['add'],
})
const Args = Type.Unsafe<Row>({
  type: 'object',
  description: 'Arguments by name',
  examples: [{ a: 1, b: 2 }],
})

const ascending = Type.Optional(Type.Boolean({ description: 'Default: true' }))
const Order = Type.Object({ column: Type.String({ minLength: 1 }), ascending }, named('CallOrder'))

const WRAPPER = {
  schema: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 63, default: 'public' }))),
  count: Type.Optional(Parsed(Type.Union([CountMode]))),
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  offset: Type.Optional(Type.Integer({ minimum: 0 })),
  head: Type.Optional(Type.Boolean({ description: 'Return no rows' })),
}

const bodyOf = ({ columns, conditions }: Config['limits']) =>
  Type.Object(
    {
      function: Type.Optional(Name),
      function_name: Type.Optional(
        Type.String({ ...Name, description: 'Alias of function', 'x-alias-of': 'function' }),
      ),
      args: Type.Optional(Args),
      select: Type.Optional(Parsed(columnsOf(columns))),
      filters: Type.Optional(Parsed(conditionsOf(conditions))),
      order: Type.Optional(
        Parsed(Type.Union([Type.String(), Order, Type.Array(Order)]), {
          description: 'Sort order of the rows; as text: `name.desc,id`',
        }),
      ),
      ...WRAPPER,
    },
    { ...NOT_EMPTY, examples: [{ function: 'add', args: { a: 1, b: 2 } }] },
  )
const CallBody = Type.Object(
  {},
  {
    additionalProperties: true,
    examples: [{ a: 1, b: 2 }],
    description: 'Arguments by name, or {args, schema, select, filters, order, count, limit, offset, head}',
  },
)
const ByName = Type.Object({ name: Name })
const inQuery = (description: string) => Type.Optional(Parsed(Type.Union([Type.String()]), { description }))
const CallQuery = Type.Object(
  {
    select: inQuery('Columns of the result, as in a fetch'),
    order: inQuery('`name.desc,id`'),
    ...WRAPPER,
  },
  {
    additionalProperties: true,
    description: 'Other parameters are arguments, or filters if they look like `gt.5`',
  },
)

const Called = Type.Object(
  {
    data: Type.Array(RowSchema),
    count: Type.Optional(Type.Integer()),
    has_more: Type.Optional(Type.Boolean({ description: 'There are more rows than the default limit' })),
  },
  named('FunctionCalled'),
)

export function rpcRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  const config = {
    access: access.fixed(['gateway.rpc.execute'], { asData: true }),
    failures: FAILURES_OF.call,
  }
  const call = async (request: FastifyRequest, reply: FastifyReply, requested: RequestedCall) => {
    const byAddress = isGet(request)
    return send(reply, await callFunction(kernel, gatewayCaller(request), requested, { byAddress }))
  }
  app.route({
    method: 'POST',
    url: '/gateway/rpc',
    config,
    schema: {
      operationId: 'callFunction',
      summary: 'Call a function',
      body: bodyOf(kernel.config.limits),
      response: { 200: Called },
    },
    handler: (request, reply) => call(request, reply, { ...request.body, function: nameOf(request.body) }),
  })
  app.route({
    method: 'POST',
    url: '/rpc/:name',
    config,
    schema: {
      operationId: 'callFunctionByName',
      summary: 'Call a function by its name',
      params: ByName,
      body: CallBody,
      response: { 200: Called },
    },
    handler: (request, reply) => call(request, reply, callOfBody(request.params.name, { ...request.body })),
  })
  app.route({
    method: 'GET',
    url: '/rpc/:name',
    config,
    schema: {
      operationId: 'callReadingFunction',
      summary: 'Call a function that only reads',
      params: ByName,
      querystring: CallQuery,
      response: { 200: Called },
    },
    handler: (request, reply) => call(request, reply, callOfQuery(request.params.name, { ...request.query })),
  })
}

function nameOf(body: { readonly function?: string; readonly function_name?: string }): string {
  const names = new Set([body.function, body.function_name].filter((name) => name !== undefined))
  const [name] = names
  if (name === undefined || names.size > 1)
    throw edge('validation_error', {
      message:
        name === undefined ? 'function is required' : 'function and function_name contradict each other',
      details: { field: 'function', in: 'body' },
    })
  return name
}

/** No envelope: the rows are already JSON text. */
function send(reply: FastifyReply, { json, facts }: RowsResult): FastifyReply {
  if (!Array.isArray(json)) throw new Error('The rows of a function are buffered')
  const { total, hasMore } = facts()
  const tail = `${total === undefined ? '' : `,"count":${total}`}${hasMore ? ',"has_more":true' : ''}}`
  return sendWhole(reply, [Buffer.from('{"data":'), ...json, Buffer.from(tail)])
}
